//! What a sample draws depends on its request alone.

use std::sync::atomic::Ordering;

use clade_lm::{CacheMemory, EngineOptions, Request, Sampling};

use super::support::{Lab, essence, lab, mixed, one_by_one, options, prompt};

fn same_as_one_by_one(is_recurrent: bool, options: EngineOptions, requests: &[Request]) -> Lab {
    let lab = lab(is_recurrent, options);
    let together: Vec<Vec<String>> = lab.together(requests).iter().map(|answers| essence(answers)).collect();
    let alone = one_by_one(is_recurrent, requests);
    for (number, (together, alone)) in together.iter().zip(&alone).enumerate() {
        assert_eq!(together, alone, "request {number}: {:?}", requests[number]);
    }
    lab.assert_idle();
    lab
}

#[test]
fn a_batch_gives_the_same_as_one_by_one() {
    for is_recurrent in [false, true] {
        let lab = same_as_one_by_one(is_recurrent, options(), &mixed(40, 1));
        assert!(
            lab.watch.most_sequences.load(Ordering::SeqCst) == 8,
            "samples ran together"
        );
    }
}

#[test]
fn the_same_comes_out_without_prefix_sharing() {
    for is_recurrent in [false, true] {
        let without = EngineOptions {
            prefix_sharing: false,
            ..options()
        };
        let lab = same_as_one_by_one(is_recurrent, without, &mixed(40, 2));
        let stats = lab.stats();
        assert_eq!(
            (stats.counters.reused_tokens, stats.blocks.kept, stats.states.kept),
            (0, 0, 0)
        );
        let shared = same_as_one_by_one(is_recurrent, options(), &mixed(40, 2));
        assert!(shared.stats().counters.prefix_hits > 5, "{:?}", shared.stats());
        assert!(shared.watch.computed() < lab.watch.computed());
    }
}

#[test]
fn the_same_comes_out_when_samples_lose_their_blocks() {
    for is_recurrent in [false, true] {
        for blocks in [24, 28, 40] {
            let small = EngineOptions {
                memory: CacheMemory::Blocks(blocks),
                ..options()
            };
            let requests: Vec<Request> = mixed(30, 3)
                .into_iter()
                .filter(|request| request.prompt.len() + request.max_tokens < 90)
                .collect();
            let lab = same_as_one_by_one(is_recurrent, small, &requests);
            let preemptions = lab.stats().counters.preemptions;
            assert!(preemptions > 0, "{blocks} blocks");
        }
    }
}

#[test]
fn the_same_comes_out_whatever_the_sizes_of_blocks_and_steps() {
    for is_recurrent in [false, true] {
        for (block_tokens, step_tokens) in [(1, 9), (3, 10), (16, 64), (64, 500)] {
            let sizes = EngineOptions {
                block_tokens,
                step_tokens,
                memory: CacheMemory::Blocks(2000 / block_tokens),
                ..options()
            };
            let lab = same_as_one_by_one(is_recurrent, sizes, &mixed(16, 4));
            assert!(lab.watch.largest_step.load(Ordering::SeqCst) <= step_tokens);
        }
    }
}

#[test]
fn more_samples_than_may_run_together_take_turns() {
    for is_recurrent in [false, true] {
        let few = EngineOptions {
            max_running: 3,
            state_snapshots: 0,
            ..options()
        };
        let request = Request {
            samples: 10,
            sampling: Sampling {
                seed: Some(4),
                ..Sampling::default()
            },
            ..Request::new(prompt(1, 13), 9)
        };
        let lab = same_as_one_by_one(is_recurrent, few, &[request.clone(), request]);
        assert_eq!(lab.watch.most_sequences.load(Ordering::SeqCst), 3);
    }
}

#[test]
fn a_lost_sample_is_computed_again_and_goes_on() {
    // Two answers of 40 tokens do not fit 15 blocks of 4, one does.
    let small = EngineOptions {
        memory: CacheMemory::Blocks(15),
        ..options()
    };
    let requests: Vec<Request> = (0..2)
        .map(|seed| Request {
            sampling: Sampling {
                seed: Some(seed),
                ..Sampling::default()
            },
            ..Request::new(prompt(seed, 8), 40)
        })
        .collect();
    let lab = lab(false, small);
    let answers = lab.together(&requests);
    assert_eq!(answers[0][0].usage.preemptions, 0, "the older one keeps its blocks");
    assert!(answers[1][0].usage.preemptions > 0);
    assert!(answers.iter().all(|answer| answer[0].tokens.len() == 40));
    lab.assert_idle();
}
