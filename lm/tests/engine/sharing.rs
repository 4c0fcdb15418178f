//! Prompts are computed once.

use std::sync::atomic::Ordering;

use clade_lm::{CacheMemory, EngineOptions, Request};

use super::support::{lab, options, prompt};

fn one_token(prompt: Vec<i64>) -> Request {
    Request::new(prompt, 1)
}

#[test]
fn samples_of_a_prompt_compute_it_once() {
    for is_recurrent in [false, true] {
        let lab = lab(is_recurrent, options());
        let request = Request {
            samples: 6,
            ..Request::new(prompt(1, 30), 5)
        };
        let answers = lab.alone(&request);
        // The last token of an answer is not read again.
        assert_eq!(lab.watch.computed(), 30 + 6 * 4);
        assert_eq!(
            answers
                .iter()
                .map(|answer| answer.usage.cached_tokens)
                .collect::<Vec<_>>(),
            [0, 30, 30, 30, 30, 30]
        );
        // The prompt ends within a block, which all samples but the last one to leave it copy.
        assert_eq!(lab.watch.copied_blocks.load(Ordering::SeqCst), 5);
        assert_eq!(lab.stats().counters.copied_blocks, 5);
        lab.assert_idle();
    }
}

#[test]
fn a_prompt_that_fills_its_blocks_is_shared_without_copies() {
    let lab = lab(false, options());
    let request = Request {
        samples: 6,
        ..Request::new(prompt(1, 32), 5)
    };
    lab.alone(&request);
    assert_eq!(lab.watch.copied_blocks.load(Ordering::SeqCst), 0);
    assert_eq!(lab.watch.computed(), 32 + 6 * 4);
}

#[test]
fn a_later_prompt_begins_with_the_blocks_of_an_earlier_one() {
    let lab = lab(false, options());
    let first = prompt(1, 18);
    lab.alone(&one_token(first.clone()));
    assert_eq!(lab.watch.computed(), 18);
    // The same prompt: four blocks of four are there.
    let again = lab.alone(&one_token(first.clone()));
    assert_eq!((lab.watch.computed(), again[0].usage.cached_tokens), (20, 16));
    // Another end after 10 tokens: two blocks are.
    let mut other = first[..10].to_vec();
    other.extend(prompt(2, 10));
    let other = lab.alone(&one_token(other));
    assert_eq!((lab.watch.computed(), other[0].usage.cached_tokens), (32, 8));
    // A prompt of whole blocks: at least one token is computed, to draw from.
    let whole = lab.alone(&one_token(first[..16].to_vec()));
    assert_eq!((lab.watch.computed(), whole[0].usage.cached_tokens), (36, 12));
    assert_eq!(lab.stats().counters.prefix_hits, 3);
}

#[test]
fn an_answer_is_the_beginning_of_the_next_prompt() {
    let lab = lab(false, options());
    let first = prompt(1, 10);
    let answer = lab.alone(&Request::new(first.clone(), 11));
    let mut conversation = first;
    conversation.extend(&answer[0].tokens);
    conversation.extend(prompt(2, 5));
    let next = lab.alone(&one_token(conversation));
    // 10 + 10 tokens were computed: five whole blocks.
    assert_eq!(next[0].usage.cached_tokens, 20);
}

#[test]
fn requests_that_come_together_wait_for_the_first_to_compute_their_prefix() {
    for is_recurrent in [false, true] {
        let lab = lab(is_recurrent, options());
        let common = prompt(1, 50);
        let requests: Vec<Request> = (0..5)
            .map(|number| {
                let mut tokens = common.clone();
                tokens.extend(prompt(10 + number, 6));
                one_token(tokens)
            })
            .collect();
        lab.together(&requests);
        let computed = lab.watch.computed();
        if is_recurrent {
            // The second one finds that they go apart after 48 tokens, and keeps the state there.
            assert_eq!(computed, 56 + 56 + 3 * 8);
        } else {
            assert_eq!(computed, 56 + 4 * 8);
        }
        lab.assert_idle();
    }
}

#[test]
fn recurrent_states_are_kept_where_prompts_end_and_go_apart() {
    let lab = lab(true, options());
    let first = prompt(1, 18);
    lab.alone(&one_token(first.clone()));
    assert_eq!((lab.watch.computed(), lab.stats().states.kept), (18, 1));
    let again = lab.alone(&one_token(first.clone()));
    assert_eq!((lab.watch.computed(), again[0].usage.cached_tokens), (20, 16));
    let other = |seed| {
        let mut tokens = first[..10].to_vec();
        tokens.extend(prompt(seed, 10));
        one_token(tokens)
    };
    // Keys and values of two blocks are there, but no state after them: it is computed, and kept this time.
    let second = lab.alone(&other(2));
    assert_eq!((lab.watch.computed(), second[0].usage.cached_tokens), (40, 0));
    let third = lab.alone(&other(3));
    assert_eq!((lab.watch.computed(), third[0].usage.cached_tokens), (52, 8));
    lab.assert_idle();
}

#[test]
fn snapshots_give_way_to_newer_ones_and_to_samples() {
    let few = EngineOptions {
        state_snapshots: 2,
        max_running: 2,
        ..options()
    };
    let lab = lab(true, few);
    for seed in 0..9 {
        lab.alone(&one_token(prompt(seed, 18)));
    }
    let states = lab.stats().states;
    assert_eq!((states.total, states.held), (4, 0));
    assert!(states.kept > 0 && states.kept <= 4, "{states:?}");
    // The newest is there, the oldest is not.
    assert_eq!(lab.alone(&one_token(prompt(8, 18)))[0].usage.cached_tokens, 16);
    assert_eq!(lab.alone(&one_token(prompt(0, 18)))[0].usage.cached_tokens, 0);
    lab.assert_idle();
}

#[test]
fn blocks_that_nobody_uses_are_kept_until_they_are_needed() {
    let small = EngineOptions {
        memory: CacheMemory::Blocks(12),
        ..options()
    };
    let lab = lab(false, small);
    lab.alone(&one_token(prompt(1, 16)));
    lab.alone(&one_token(prompt(2, 16)));
    let blocks = lab.stats().blocks;
    assert_eq!((blocks.free, blocks.kept), (4, 8));
    // It needs 10 blocks: the 4 free ones and the 6 that were used longest ago.
    lab.alone(&one_token(prompt(3, 40)));
    let second = lab.alone(&one_token(prompt(2, 16)));
    assert_eq!(
        second[0].usage.cached_tokens, 8,
        "the end of a prompt gives way before its beginning"
    );
    lab.assert_idle();
}
