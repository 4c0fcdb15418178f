//! Places, order, limits, cancelling, and that nothing is lost by it.

use std::sync::atomic::Ordering;

use clade_lm::{CacheMemory, Completion, EndReason, EngineOptions, Generation, LmError, Request};

use super::model::POSITIONS;
use super::support::{Numbers, essence, lab, mixed, one_by_one, options, prompt};

#[test]
fn two_hundred_requests_with_cancels_limits_and_stops_leak_nothing() {
    for is_recurrent in [false, true] {
        let small = EngineOptions {
            memory: CacheMemory::Blocks(40),
            ..options()
        };
        let lab = lab(is_recurrent, small);
        let requests = mixed(200, 77);
        let expected = one_by_one(is_recurrent, &requests);
        let mut numbers = Numbers(5);
        let mut open: Vec<(usize, Option<usize>, Generation, Vec<Completion>)> = Vec::new();
        let mut ended = [0, 0];
        let mut next = 0;
        while next < requests.len() || !open.is_empty() {
            // Up to 20 at a time; every third is cancelled after some events, by a call or by dropping it.
            if next < requests.len() && open.len() < 20 {
                let generation = lab.engine.submit(requests[next].clone()).unwrap();
                let cancel = (numbers.below(3) == 0).then(|| numbers.below(30));
                open.push((next, cancel, generation, Completion::none(requests[next].samples)));
                next += 1;
                continue;
            }
            if numbers.below(10) == 0 {
                lab.engine.check().unwrap();
            }
            let chosen = numbers.below(open.len());
            let (number, cancel, generation, completions) = &mut open[chosen];
            let events = if numbers.below(4) == 0 { 10 } else { 1 };
            let mut has_ended = false;
            for _ in 0..events {
                if *cancel == Some(0) {
                    if *number % 2 == 0 {
                        has_ended = true;
                        break;
                    }
                    generation.cancel();
                }
                *cancel = cancel.map(|left| left.saturating_sub(1));
                match generation.next_event() {
                    Some(event) => Completion::add(completions, event),
                    None => {
                        has_ended = true;
                        break;
                    }
                }
            }
            if has_ended {
                let was_cancelled = cancel.is_some();
                let (number, _, _, completions) = open.swap_remove(chosen);
                ended[usize::from(was_cancelled)] += 1;
                if !was_cancelled {
                    assert_eq!(essence(&completions), expected[number], "request {number}");
                }
            }
        }
        assert!(ended[0] > 80 && ended[1] > 40, "{ended:?}");
        lab.assert_idle();
        let counters = lab.engine.stats().counters;
        assert!(
            counters.preemptions > 0 && counters.copied_blocks > 0 && counters.prefix_hits > 0,
            "{counters:?}"
        );
    }
}

#[test]
fn a_cancelled_request_tells_its_ends_and_frees_its_blocks_at_the_next_step() {
    let lab = lab(true, options());
    lab.watch.shut();
    let cancelled = lab
        .engine
        .submit(Request {
            samples: 3,
            ..Request::new(prompt(1, 9), 400)
        })
        .unwrap();
    lab.watch.wait_for_step();
    cancelled.canceller().cancel();
    lab.watch.open();
    let answers = cancelled.wait();
    assert!(
        answers
            .iter()
            .all(|answer| matches!(answer.reason, Some(EndReason::Cancelled)))
    );
    assert!(
        answers.iter().all(|answer| answer.tokens.len() <= 1),
        "only the step that ran goes on"
    );
    lab.assert_idle();
}

#[test]
fn a_request_that_is_dropped_or_cancelled_while_it_waits_never_begins() {
    let one = EngineOptions {
        max_running: 1,
        ..options()
    };
    let lab = lab(false, one);
    lab.watch.shut();
    let first = lab.engine.submit(Request::new(vec![1, 1, 1], 3)).unwrap();
    lab.watch.wait_for_step();
    drop(lab.engine.submit(Request::new(vec![2, 2, 2], 3)).unwrap());
    let third = lab.engine.submit(Request::new(vec![3, 3, 3], 3)).unwrap();
    third.cancel();
    let fourth = lab.engine.submit(Request::new(vec![4, 4, 4], 3)).unwrap();
    lab.watch.open();
    assert_eq!(first.wait()[0].tokens.len(), 3);
    assert_eq!(third.wait()[0].reason.as_ref().unwrap().as_str(), "cancelled");
    assert_eq!(fourth.wait()[0].tokens.len(), 3);
    assert_eq!(*lab.watch.begun.lock(), [1, 4]);
    lab.assert_idle();
}

#[test]
fn higher_priorities_begin_sooner_and_equal_ones_in_order() {
    let one = EngineOptions {
        max_running: 1,
        ..options()
    };
    let lab = lab(false, one);
    lab.watch.shut();
    let request = |token, priority| Request {
        priority,
        ..Request::new(vec![token; 3], 2)
    };
    let first = lab.engine.submit(request(1, 0)).unwrap();
    lab.watch.wait_for_step();
    let others: Vec<Generation> = [(2, 0), (3, 5), (4, -1), (5, 5), (6, 0)]
        .map(|(token, priority)| lab.engine.submit(request(token, priority)).unwrap())
        .into();
    lab.watch.open();
    first.wait();
    others.into_iter().for_each(|other| drop(other.wait()));
    assert_eq!(*lab.watch.begun.lock(), [1, 3, 5, 2, 6, 4]);
}

#[test]
fn the_queue_has_a_bound() {
    let short = EngineOptions {
        max_running: 1,
        max_waiting: 2,
        ..options()
    };
    let lab = lab(false, short);
    lab.watch.shut();
    let request = || Request::new(prompt(1, 3), 3);
    let running = lab.engine.submit(request()).unwrap();
    lab.watch.wait_for_step();
    let waiting = [
        lab.engine.submit(request()).unwrap(),
        lab.engine.submit(request()).unwrap(),
    ];
    assert_eq!(lab.engine.stats().waiting, 2);
    let error = lab.engine.submit(request()).unwrap_err();
    assert!(matches!(error, LmError::Busy(_)));
    assert_eq!(
        error.to_string(),
        "2 requests wait already, which is the most that max_waiting allows; try again later"
    );
    lab.watch.open();
    running.wait();
    waiting.into_iter().for_each(|other| drop(other.wait()));
    lab.engine.submit(request()).unwrap().wait();
    lab.assert_idle();
}

#[test]
fn what_can_never_be_served_is_refused_with_numbers() {
    let small = EngineOptions {
        memory: CacheMemory::Blocks(10),
        ..options()
    };
    let lab = lab(false, small);
    let refused = |request: Request| {
        let error = lab.engine.submit(request).unwrap_err();
        assert!(matches!(error, LmError::Request(_)), "{error:?}");
        error.to_string()
    };
    assert_eq!(
        refused(Request::new(prompt(1, 30), 12)),
        "a prompt of 30 tokens and an answer of up to 12 need 11 blocks of 4 tokens, the cache has 10; give the cache more memory, or ask \
         for less"
    );
    assert_eq!(
        refused(Request::new(prompt(1, 30), POSITIONS)),
        "a prompt of 30 tokens and an answer of up to 512 are more than the 512 positions of the model; ask for at most 482 tokens"
    );
    // The last token of an answer is never read.
    assert_eq!(lab.engine.longest(), 41);
    assert_eq!(lab.alone(&Request::new(prompt(1, 30), 11))[0].tokens.len(), 11);
    assert!(refused(Request::new(vec![], 1)).contains("no tokens"));
    assert!(refused(Request::new(vec![1, 64], 1)).contains("token 64"));
    assert!(refused(Request::new(vec![1, -1], 1)).contains("token -1"));
    assert!(refused(Request::new(vec![1], 0)).contains("at most 0 tokens"));
    let with = |change: fn(&mut Request)| {
        let mut request = Request::new(vec![1], 1);
        change(&mut request);
        refused(request)
    };
    assert!(with(|request| request.samples = 0).contains("0 samples"));
    assert!(with(|request| request.stop_strings = vec![String::new()]).contains("stop string"));
    assert!(with(|request| request.stop_tokens = vec![99]).contains("token 99"));
    assert!(with(|request| request.logprobs = Some(65)).contains("logprobs is 65"));
    assert!(with(|request| request.sampling.temperature = Some(-1.0)).contains("temperature is -1"));
    assert!(with(|request| request.sampling.temperature = Some(f64::NAN)).contains("temperature is NaN"));
    assert!(with(|request| request.sampling.temperature = Some(1e-9)).contains("temperature"));
    assert!(with(|request| request.sampling.top_k = Some(0)).contains("top_k is 0"));
    assert!(with(|request| request.sampling.top_p = Some(0.0)).contains("top_p is 0"));
    assert!(with(|request| request.sampling.min_p = Some(1.5)).contains("min_p is 1.5"));
    assert!(with(|request| request.sampling.repetition_penalty = Some(0.0)).contains("repetition_penalty is 0"));
    assert!(
        with(|request| request.sampling.presence_penalty = Some(f64::INFINITY)).contains("presence_penalty is inf")
    );
    lab.assert_idle();
}

#[test]
fn long_prompts_do_not_hold_up_those_that_decode() {
    let lab = lab(false, options());
    lab.watch.shut();
    let first = lab.engine.submit(Request::new(prompt(1, 3), 30)).unwrap();
    lab.watch.wait_for_step();
    let long = lab.engine.submit(Request::new(prompt(2, 200), 1)).unwrap();
    lab.watch.open();
    first.wait();
    long.wait();
    lab.engine.check().unwrap();
    // 23 tokens of the long prompt fit each step beside the one token of the other.
    assert_eq!(lab.watch.steps.load(Ordering::SeqCst), 30);
    assert_eq!(lab.watch.largest_step.load(Ordering::SeqCst), 24);
}
