//! Layout of the lineage: a lane for every node.
//!
//! A node keeps its lane for as long as it has children to come; its last child goes on in the same lane, the others
//! branch off into the nearest lane that is free for the whole of their own life. Two nodes never share a place.

use std::collections::BTreeMap;

use super::History;

/// The lanes of a history.
pub(crate) struct Lanes {
    /// Lane of every node, from 0.
    pub lane: Vec<usize>,
    /// Number of lanes.
    pub count: usize,
}

impl Lanes {
    /// Lays a history out.
    pub fn of(history: &History) -> Self {
        let last_child = last_children(history);
        let ends = chain_ends(history, &last_child);
        let mut taken = Taken::default();
        // Signed lanes around the first root, so that branches spread to both sides.
        let mut lanes: Vec<i64> = Vec::with_capacity(history.nodes.len());
        for (index, end) in ends.iter().copied().enumerate() {
            let parent = history.parents[index];
            let inherited = parent
                .filter(|parent| last_child[*parent] == Some(index))
                .map(|parent| lanes[parent]);
            let lane = inherited.unwrap_or_else(|| {
                let from = parent.map_or(0, |parent| lanes[parent]);
                let start = history.nodes[index].step;
                taken.nearest_free(from, start, end)
            });
            if inherited.is_none() {
                taken.take(lane, history.nodes[index].step, end);
            }
            lanes.push(lane);
        }
        let (low, high) = lanes
            .iter()
            .fold((0, 0), |(low, high), lane| (low.min(*lane), high.max(*lane)));
        let lane = lanes
            .into_iter()
            .map(|lane| usize::try_from(lane - low).unwrap_or(0))
            .collect();
        Self {
            lane,
            count: usize::try_from(high - low).unwrap_or(0) + 1,
        }
    }
}

/// The last child by first parent of every node.
fn last_children(history: &History) -> Vec<Option<usize>> {
    let mut last = vec![None; history.nodes.len()];
    for (child, parent) in history.parents.iter().enumerate() {
        if let Some(parent) = parent {
            last[*parent] = Some(child);
        }
    }
    last
}

/// Step at which a lane that starts with a node ends: that of the last node of its chain of last children.
fn chain_ends(history: &History, last_child: &[Option<usize>]) -> Vec<u64> {
    let mut ends = vec![0; history.nodes.len()];
    // Children come after their parents, so they are done first from the back.
    for index in (0..ends.len()).rev() {
        ends[index] = last_child[index].map_or(history.nodes[index].step, |child| ends[child]);
    }
    ends
}

/// Spans of steps that are taken, by lane.
#[derive(Default)]
struct Taken {
    spans: BTreeMap<i64, Vec<(u64, u64)>>,
}

impl Taken {
    fn is_free(&self, lane: i64, start: u64, end: u64) -> bool {
        // One step of room on both sides keeps neighbours apart.
        self.spans
            .get(&lane)
            .is_none_or(|spans| spans.iter().all(|(s, e)| end + 1 < *s || *e + 1 < start))
    }

    /// The free lane nearest to `from`; above and below take turns.
    fn nearest_free(&self, from: i64, start: u64, end: u64) -> i64 {
        let mut distance = 0;
        loop {
            for lane in [from + distance, from - distance] {
                if self.is_free(lane, start, end) {
                    return lane;
                }
            }
            distance += 1;
        }
    }

    fn take(&mut self, lane: i64, start: u64, end: u64) {
        self.spans.entry(lane).or_default().push((start, end));
    }
}
