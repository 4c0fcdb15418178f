//! Which server gets a job: the one with the least to do for each of its slots.

use crate::service::Class;
use crate::service::api::types::ClassLoads;

/// A server that may get a job.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Candidate {
    /// What it said of its load; none where it says nothing.
    pub(super) load: Option<ClassLoads>,
    /// Jobs of the class that it got since it said so.
    pub(super) placed: u32,
}

/// How good a server is, the smallest first.
#[derive(Debug, Clone, Copy, PartialEq)]
enum Rank {
    /// It has slots of the class, and so many jobs for each.
    Loaded(f64),
    /// Nothing is known.
    Unknown,
    /// It has no slots of the class: it may still know what to do, or get workers later.
    Without(f64),
}

impl Rank {
    fn of(candidate: &Candidate, class: Class) -> Self {
        let Some(load) = candidate.load else {
            return Self::Unknown;
        };
        let of = |class: Class| {
            let load = load.of(class);
            let jobs = f64::from(load.busy) + f64::from(load.waiting) + f64::from(candidate.placed);
            (load.slots > 0).then(|| jobs / f64::from(load.slots))
        };
        match (of(class), of(Class::Cpu)) {
            (Some(load), _) => Self::Loaded(load),
            // One that runs jobs for a GPU without one does so on these.
            (None, cpu) => Self::Without(cpu.unwrap_or(f64::INFINITY)),
        }
    }

    fn key(self) -> (u8, f64) {
        match self {
            Self::Loaded(load) => (0, load),
            Self::Unknown => (1, 0.0),
            Self::Without(load) => (2, load),
        }
    }
}

/// The places of servers in the order in which they are tried. Among equals, `turn` says who is first.
pub(super) fn order(candidates: &[Candidate], class: Class, turn: usize) -> Vec<usize> {
    let count = candidates.len().max(1);
    let mut order: Vec<(u8, f64, usize, usize)> = candidates
        .iter()
        .enumerate()
        .map(|(place, candidate)| {
            let (kind, load) = Rank::of(candidate, class).key();
            let after = (place + count - turn % count) % count;
            (kind, load, after, place)
        })
        .collect();
    order.sort_by(|a, b| a.0.cmp(&b.0).then(a.1.total_cmp(&b.1)).then(a.2.cmp(&b.2)));
    order.into_iter().map(|(_, _, _, place)| place).collect()
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;
    use crate::service::api::types::ClassLoad;

    fn candidate(cpu: (u32, u32, u32), gpu_slots: u32, placed: u32) -> Candidate {
        let (slots, busy, waiting) = cpu;
        Candidate {
            load: Some(ClassLoads {
                cpu: ClassLoad { slots, busy, waiting },
                gpu: ClassLoad {
                    slots: gpu_slots,
                    ..ClassLoad::default()
                },
            }),
            placed,
        }
    }

    const SILENT: Candidate = Candidate { load: None, placed: 0 };

    #[test]
    fn the_least_loaded_for_its_size_comes_first() {
        let all = [
            candidate((2, 2, 2), 0, 0),
            candidate((8, 8, 4), 0, 0),
            candidate((0, 0, 0), 4, 0),
            candidate((1, 1, 0), 0, 0),
            SILENT,
        ];
        assert_eq!(order(&all, Class::Cpu, 0), [3, 1, 0, 4, 2]);
        assert_eq!(order(&all, Class::Gpu, 0), [2, 4, 3, 1, 0]);
    }

    #[test]
    fn what_was_placed_meanwhile_counts() {
        let all = [candidate((2, 0, 0), 0, 3), candidate((2, 2, 0), 0, 0)];
        assert_eq!(order(&all, Class::Cpu, 0), [1, 0]);
    }

    #[test]
    fn equals_take_turns() {
        for equal in [SILENT, candidate((2, 1, 0), 0, 0)] {
            let first: Vec<usize> = (0..6).map(|turn| order(&[equal; 3], Class::Cpu, turn)[0]).collect();
            assert_eq!(first, [0, 1, 2, 0, 1, 2]);
        }
    }

    fn any_candidate() -> impl Strategy<Value = Candidate> {
        let known = (0..5_u32, 0..5_u32, 0..9_u32, 0..3_u32, 0..9_u32)
            .prop_map(|(slots, busy, waiting, gpu, placed)| candidate((slots, busy, waiting), gpu, placed));
        prop_oneof![4 => known, 1 => Just(SILENT)]
    }

    proptest! {
        #[test]
        fn every_server_is_tried_once_and_none_before_a_better_one(
            all in proptest::collection::vec(any_candidate(), 0..8),
            turn in any::<usize>(),
            is_gpu in any::<bool>(),
        ) {
            let class = if is_gpu { Class::Gpu } else { Class::Cpu };
            let order = order(&all, class, turn);
            let mut places = order.clone();
            places.sort_unstable();
            prop_assert_eq!(places, (0..all.len()).collect::<Vec<_>>());
            for pair in order.windows(2) {
                let [a, b] = [all[pair[0]], all[pair[1]]].map(|candidate| Rank::of(&candidate, class).key());
                prop_assert!(a.0 < b.0 || a.0 == b.0 && a.1 <= b.1, "{:?} before {:?}", a, b);
            }
        }

        #[test]
        fn jobs_spread_by_size(sizes in proptest::collection::vec(1..9_u32, 1..6), rounds in 1..5_u32) {
            let mut all: Vec<Candidate> = sizes.iter().map(|slots| candidate((*slots, 0, 0), 0, 0)).collect();
            for turn in 0..sizes.iter().sum::<u32>() * rounds {
                let best = order(&all, Class::Cpu, turn as usize)[0];
                all[best].placed += 1;
            }
            for (candidate, slots) in all.iter().zip(&sizes) {
                prop_assert_eq!(candidate.placed, slots * rounds, "as many for each slot");
            }
        }
    }
}
