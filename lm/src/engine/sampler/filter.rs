//! Which tokens are drawn from, without sorting a whole vocabulary.

use std::cmp::Ordering;

/// Up to so many tokens are chosen with a heap; more of them, by selection among all.
const HEAP_LIMIT: usize = 1024;
/// Tokens that are compared together with the worst of the chosen.
const GROUP: usize = 64;

/// A token that may be drawn.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) struct Candidate {
    /// Token.
    pub(super) id: u32,
    /// What it is ranked by: a logit or a weight.
    pub(super) score: f32,
}

/// The higher score first, of equal ones the lower id.
fn best_first(a: &Candidate, b: &Candidate) -> Ordering {
    b.score.total_cmp(&a.score).then(a.id.cmp(&b.id))
}

fn all(scores: &[f32]) -> impl Iterator<Item = Candidate> {
    (0..).zip(scores).map(|(id, &score)| Candidate { id, score })
}

/// The `count` best tokens, the best one first.
pub(super) fn best(scores: &[f32], count: usize) -> Vec<Candidate> {
    if count == 0 {
        return Vec::new();
    }
    let mut chosen: Vec<Candidate>;
    if count >= scores.len() {
        chosen = all(scores).collect();
    } else if count > HEAP_LIMIT {
        chosen = all(scores).collect();
        chosen.select_nth_unstable_by(count - 1, best_first);
        chosen.truncate(count);
    } else {
        chosen = all(&scores[..count]).collect();
        // The worst of the chosen at the root; ids rise, so an equal score never replaces one.
        (0..count / 2).rev().for_each(|place| sink(&mut chosen, place));
        for (group, first) in scores[count..].chunks(GROUP).zip((count as u32..).step_by(GROUP)) {
            // Most groups have nothing to offer, which is seen faster for all of it at once.
            let worst = chosen[0].score;
            if !group.iter().fold(false, |any, score| any | (*score > worst)) {
                continue;
            }
            for (id, &score) in (first..).zip(group) {
                if score > chosen[0].score {
                    chosen[0] = Candidate { id, score };
                    sink(&mut chosen, 0);
                }
            }
        }
    }
    chosen.sort_unstable_by(best_first);
    chosen
}

/// Moves the entry of a heap down to its place, the worst entry being the root.
fn sink(heap: &mut [Candidate], mut place: usize) {
    loop {
        let mut worst = place;
        for child in [2 * place + 1, 2 * place + 2] {
            if child < heap.len() && best_first(&heap[child], &heap[worst]).is_gt() {
                worst = child;
            }
        }
        if worst == place {
            return;
        }
        heap.swap(place, worst);
        place = worst;
    }
}

/// Space for a nucleus.
#[derive(Debug, Default)]
pub(super) struct NucleusSpace {
    /// The nucleus itself.
    pub(super) chosen: Vec<Candidate>,
    ranked: Vec<Candidate>,
}

/// Chooses the tokens with the highest weights that together have at least `mass`, in the order of their ids, and none with a weight below `floor`
/// (which may make them less). The highest weight is 1.
pub(super) fn nucleus(weights: &[f32], mass: f64, floor: f32, space: &mut NucleusSpace) {
    let NucleusSpace { chosen, ranked } = space;
    let mut cutoff = 1.0 / 16.0_f32;
    loop {
        let reached = cutoff.max(floor);
        chosen.clear();
        chosen.extend(all(weights).filter(|token| token.score >= reached));
        let has_mass = total(chosen) >= mass;
        if has_mass {
            ranked.clone_from(chosen);
            let last = last_of_mass(ranked, mass);
            chosen.retain(|token| best_first(token, &last).is_le());
        }
        if has_mass || reached == floor {
            return;
        }
        cutoff = if cutoff > 1e-9 { cutoff / 32.0 } else { 0.0 };
    }
}

/// The last token, in order of rank, that is needed for a mass which all together have. The list is halved until one is left.
fn last_of_mass(tokens: &mut [Candidate], mut mass: f64) -> Candidate {
    let mut rest = tokens;
    while rest.len() > 1 {
        let half = rest.len() / 2;
        rest.select_nth_unstable_by(half, best_first);
        let (better, worse) = rest.split_at_mut(half);
        let reached = total(better);
        if reached >= mass {
            rest = better;
        } else {
            mass -= reached;
            rest = worse;
        }
    }
    rest[0]
}

/// Sum of scores.
pub(super) fn total(tokens: &[Candidate]) -> f64 {
    tokens.iter().map(|token| f64::from(token.score)).sum()
}

/// Keeps the shortest beginning of a sorted list that has a mass.
pub(super) fn keep_mass(sorted: &mut Vec<Candidate>, mass: f64) {
    let mut sum = 0.0;
    let enough = sorted.iter().position(|token| {
        sum += f64::from(token.score);
        sum >= mass
    });
    if let Some(last) = enough {
        sorted.truncate(last + 1);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn scores(count: usize) -> Vec<f32> {
        (0..count)
            .map(|number| ((number * 7919) % 1013) as f32 / 1013.0)
            .collect()
    }

    fn sorted(scores: &[f32]) -> Vec<Candidate> {
        let mut tokens: Vec<Candidate> = all(scores).collect();
        tokens.sort_by(best_first);
        tokens
    }

    #[test]
    fn the_best_are_those_of_a_full_sort() {
        let scores = scores(5000);
        for count in [0, 1, 2, 7, 50, 1024, 1025, 4999, 5000, 6000] {
            assert_eq!(best(&scores, count), sorted(&scores)[..count.min(5000)], "{count}");
        }
    }

    fn nucleus_of(weights: &[f32], mass: f64, floor: f32) -> Vec<Candidate> {
        let mut space = NucleusSpace::default();
        nucleus(weights, mass, floor, &mut space);
        space.chosen
    }

    #[test]
    fn the_nucleus_is_the_shortest_beginning_of_a_full_sort_with_the_mass() {
        let mut weights = scores(3000);
        for power in [1, 4, 30] {
            weights.iter_mut().for_each(|weight| *weight = weight.powi(power));
            let highest = weights.iter().copied().fold(0.0, f32::max);
            weights.iter_mut().for_each(|weight| *weight /= highest);
            let total: f64 = weights.iter().map(|weight| f64::from(*weight)).sum();
            for share in [1e-6, 0.1, 0.5, 0.9, 0.999] {
                let nucleus = nucleus_of(&weights, share * total, 0.0);
                let sum = |tokens: &[Candidate]| tokens.iter().map(|token| f64::from(token.score)).sum::<f64>();
                let mut ranked = nucleus.clone();
                ranked.sort_by(best_first);
                assert!(sum(&ranked) >= share * total * (1.0 - 1e-9));
                assert!(sum(&ranked[..ranked.len() - 1]) < share * total * (1.0 + 1e-9));
                assert!(nucleus.is_sorted_by_key(|token| token.id));
                assert_eq!(ranked, sorted(&weights)[..nucleus.len()]);
            }
        }
    }

    #[test]
    fn the_floor_cuts_the_nucleus() {
        let weights = [0.5, 1.0, 0.25, 0.75, 0.0];
        let ids = |mass, floor| {
            nucleus_of(&weights, mass, floor)
                .iter()
                .map(|token| token.id)
                .collect::<Vec<_>>()
        };
        assert_eq!(ids(2.5, 0.0), [0, 1, 2, 3]);
        assert_eq!(ids(2.5, 0.5), [0, 1, 3]);
        assert_eq!(ids(1.5, 0.5), [1, 3]);
        assert_eq!(ids(2.5, 1.0), [1]);
    }
}
