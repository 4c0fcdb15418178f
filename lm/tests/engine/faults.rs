//! Steps that fail, models that panic, engines that end, and weights that change.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use clade_lm::{
    Completion, Detokenizer, EndReason, Engine, EngineOptions, LmError, Request, Result, Sampling, Step, TextDecoder,
};

use super::model::{CutOff, Fate, HistoryModel, NumberWeights};
use super::support::{essence, lab, mixed, one_by_one, options, prompt};

fn error_of(completion: &Completion) -> &LmError {
    match &completion.reason {
        Some(EndReason::Error(error)) => error,
        other => panic!("{other:?}"),
    }
}

fn greedy(prompt: Vec<i64>, max_tokens: usize) -> Request {
    Request {
        sampling: Sampling::greedy(),
        ..Request::new(prompt, max_tokens)
    }
}

#[test]
fn the_newest_request_of_a_step_that_fails_ends_and_the_others_go_on() {
    for is_recurrent in [false, true] {
        let lab = lab(is_recurrent, options());
        // A step of more than three sequences is too large.
        lab.watch.set_rule(|step: &Step| {
            if step.sequences.len() > 3 {
                Fate::Fails
            } else {
                Fate::Runs
            }
        });
        let requests: Vec<Request> = (0..5).map(|seed| greedy(prompt(seed, 6), 12)).collect();
        let answers = lab.together(&requests);
        let expected = one_by_one(is_recurrent, &requests);
        for number in 0..3 {
            assert_eq!(essence(&answers[number]), expected[number], "request {number}");
        }
        for answer in &answers[3..] {
            assert!(error_of(&answer[0]).to_string().contains("out of memory"));
            assert!(matches!(error_of(&answer[0]), LmError::Torch(_)));
        }
        lab.assert_idle();
        assert_eq!(lab.engine.stats().counters.failed_steps, 2);
    }
}

#[test]
fn a_request_that_fails_alone_ends_and_the_engine_goes_on() {
    for is_recurrent in [false, true] {
        let lab = lab(is_recurrent, options());
        lab.watch.set_rule(|step: &Step| {
            if step.tokens.contains(&7) {
                Fate::Fails
            } else {
                Fate::Runs
            }
        });
        let failed = lab.alone(&Request {
            samples: 3,
            ..Request::new(vec![1, 7, 2], 5)
        });
        assert_eq!(failed.len(), 3);
        for completion in &failed {
            assert!(error_of(completion).to_string().contains("out of memory"));
            assert!(completion.tokens.is_empty());
        }
        lab.assert_idle();
        let request = greedy(vec![1, 2, 3], 1);
        assert_eq!(
            essence(&lab.alone(&request)),
            one_by_one(is_recurrent, std::slice::from_ref(&request))[0]
        );
    }
}

#[test]
fn steps_that_fail_now_and_then_change_no_token_of_the_others() {
    for is_recurrent in [false, true] {
        let lab = lab(is_recurrent, options());
        let calls = AtomicUsize::new(1);
        // Recurrent states are computed again after a failure, which takes steps of its own.
        let period = if is_recurrent { 60 } else { 10 };
        lab.watch
            .set_rule(move |_| match calls.fetch_add(1, Ordering::SeqCst) % period {
                0 => Fate::Fails,
                _ => Fate::Runs,
            });
        let requests = mixed(40, 9);
        let answers = lab.together(&requests);
        let expected = one_by_one(is_recurrent, &requests);
        let mut failed = 0;
        for (number, answer) in answers.iter().enumerate() {
            if answer
                .iter()
                .any(|completion| matches!(completion.reason, Some(EndReason::Error(_))))
            {
                failed += 1;
            } else {
                assert_eq!(essence(answer), expected[number], "request {number}");
            }
        }
        assert!(failed > 0 && failed < 30, "{failed}");
        lab.assert_idle();
    }
}

#[test]
fn logits_that_are_no_numbers_end_the_sample() {
    let lab = lab(false, options());
    lab.watch.set_rule(|_| Fate::NotANumber);
    let answers = lab.alone(&greedy(prompt(1, 5), 5));
    assert!(
        error_of(&answers[0]).to_string().contains("not numbers"),
        "{:?}",
        answers[0]
    );
    lab.watch.set_rule(|_| Fate::Runs);
    assert_eq!(lab.alone(&greedy(prompt(1, 5), 5))[0].tokens.len(), 5);
    lab.assert_idle();
}

#[test]
fn a_panic_is_told_to_all_requests_and_later_ones_are_refused() {
    let lab = lab(false, options());
    lab.watch.set_rule(|step: &Step| {
        if step.tokens.contains(&7) {
            Fate::Panics
        } else {
            Fate::Runs
        }
    });
    let requests = [
        greedy(vec![1, 2], 300),
        greedy(vec![7], 300),
        Request {
            samples: 2,
            ..greedy(vec![3], 300)
        },
    ];
    let reason = "the engine failed and runs no more: a bug in the model";
    for completion in lab.together(&requests).iter().flatten() {
        assert!(matches!(error_of(completion), LmError::Stopped(_)));
        assert_eq!(error_of(completion).to_string(), reason);
    }
    let refused = lab.engine.submit(greedy(vec![1], 1)).unwrap_err();
    assert_eq!(refused.to_string(), reason);
    assert_eq!(lab.engine.check().unwrap_err().to_string(), reason);
    lab.engine.shutdown();
}

#[test]
fn a_shutdown_ends_all_requests() {
    let lab = lab(true, options());
    lab.watch.shut();
    let generations: Vec<_> = (0..12)
        .map(|seed| lab.engine.submit(greedy(prompt(seed, 9), 300)).unwrap())
        .collect();
    lab.watch.wait_for_step();
    std::thread::scope(|scope| {
        scope.spawn(|| lab.engine.shutdown());
        while lab.engine.submit(greedy(vec![1], 1)).is_ok() {
            std::thread::yield_now();
        }
        lab.watch.open();
    });
    for generation in generations {
        let answer = generation.wait().remove(0);
        assert_eq!(error_of(&answer).to_string(), "the engine was shut down");
    }
    let refused = lab.engine.submit(greedy(vec![1], 1)).unwrap_err();
    assert!(matches!(refused, LmError::Stopped(_)));
    let stats = lab.engine.stats();
    assert_eq!((stats.blocks.held, stats.states.held), (0, 0));
    lab.engine.shutdown();
}

#[test]
fn weights_change_between_requests() {
    let weights = |number| Arc::new(NumberWeights(Some(number)));
    for is_recurrent in [false, true] {
        let one = EngineOptions {
            max_running: 2,
            ..options()
        };
        let lab = lab(is_recurrent, one);
        let request = greedy(prompt(1, 30), 20);
        let before = essence(&lab.alone(&request));
        lab.watch.shut();
        // Begun requests end with the old weights, also samples that wait for a place; what has not begun gets the new ones.
        let begun = lab
            .engine
            .submit(Request {
                samples: 5,
                ..request.clone()
            })
            .unwrap();
        lab.watch.wait_for_step();
        let reply = lab.engine.replace_weights(weights(5)).unwrap();
        let waiting = lab.engine.submit(request.clone()).unwrap();
        lab.watch.open();
        assert!(
            begun
                .wait()
                .iter()
                .all(|answer| essence(std::slice::from_ref(answer)) == before)
        );
        reply.wait().unwrap();
        let answer = waiting.wait();
        assert_ne!(essence(&answer), before);
        assert_eq!(answer[0].usage.cached_tokens, 0, "nothing is left of the old weights");
        // Back again, and what does not fit leaves the weights as they are.
        lab.engine.replace_weights(weights(0)).unwrap().wait().unwrap();
        let error = lab
            .engine
            .replace_weights(Arc::new(NumberWeights(None)))
            .unwrap()
            .wait()
            .unwrap_err();
        assert!(matches!(error, LmError::MissingTensor { .. }));
        assert_eq!(essence(&lab.alone(&request)), before);
        lab.assert_idle();
    }
}

#[test]
fn replacing_weights_waits_for_nobody_when_nothing_runs() {
    let lab = lab(false, options());
    let weights = Arc::new(NumberWeights(Some(1)));
    futures::executor::block_on(lab.engine.replace_weights(weights.clone()).unwrap()).unwrap();
    lab.engine.shutdown();
    assert!(matches!(lab.engine.replace_weights(weights), Err(LmError::Stopped(_))));
}

#[test]
fn weights_that_fail_in_the_middle_stop_all_requests_until_a_replacement_succeeds() {
    let lab = lab(false, options());
    let request = greedy(prompt(1, 12), 6);
    let before = essence(&lab.alone(&request));
    lab.watch.shut();
    let begun = lab.engine.submit(request.clone()).unwrap();
    lab.watch.wait_for_step();
    let reply = lab.engine.replace_weights(Arc::new(CutOff)).unwrap();
    let waiting = lab.engine.submit(request.clone()).unwrap();
    lab.watch.open();
    assert_eq!(
        essence(&begun.wait()),
        before,
        "what has begun ends with the old weights"
    );
    let expected = "the weights of the model are mixed, because replacing them failed in the middle: /weights: ends too soon; \
                    nothing is generated until they are replaced whole, or the model is loaded again";
    assert_eq!(reply.wait().unwrap_err().to_string(), expected);
    assert_eq!(error_of(&waiting.wait()[0]).to_string(), expected);
    let refused = lab.engine.submit(request.clone()).unwrap_err();
    assert!(matches!(refused, LmError::MixedWeights(_)));
    assert_eq!(refused.to_string(), expected);
    // Weights that do not fit mend nothing.
    let error = lab
        .engine
        .replace_weights(Arc::new(NumberWeights(None)))
        .unwrap()
        .wait();
    assert!(matches!(error, Err(LmError::MissingTensor { .. })));
    assert!(lab.engine.submit(request.clone()).is_err());
    lab.engine
        .replace_weights(Arc::new(NumberWeights(Some(0))))
        .unwrap()
        .wait()
        .unwrap();
    assert_eq!(essence(&lab.alone(&request)), before);
    lab.assert_idle();
}

/// A tokenizer that cannot read some prompts, some tokens, or the end of a text.
#[derive(Debug, Clone, Copy)]
struct Unreadable {
    prompt: i64,
    token: i64,
    end: bool,
}

fn unreadable<T>(what: &str) -> Result<T> {
    Err(LmError::Tokenizer(format!("{what} makes no sense")))
}

impl Detokenizer for Unreadable {
    fn decoder(&self, prompt: &[i64]) -> Result<Box<dyn TextDecoder>> {
        if prompt.contains(&self.prompt) {
            return unreadable("the prompt");
        }
        Ok(Box::new(*self))
    }
}

impl TextDecoder for Unreadable {
    fn push(&mut self, id: i64) -> Result<String> {
        if id == self.token {
            return unreadable(&format!("token {id}"));
        }
        Ok("x".to_owned())
    }

    fn finish(&mut self) -> Result<String> {
        if self.end {
            unreadable("the end")
        } else {
            Ok(String::new())
        }
    }
}

#[test]
fn what_the_tokenizer_cannot_read_ends_the_sample_with_its_fault() {
    let request = greedy(prompt(1, 5), 8);
    let tokens = lab(false, options()).alone(&request).remove(0).tokens;
    let (fifth, fine) = (
        tokens[4],
        Unreadable {
            prompt: -1,
            token: -1,
            end: false,
        },
    );
    let engine = |text| Engine::start(Box::new(HistoryModel::new(false)), Arc::new(text), options()).unwrap();
    let alone = |text| engine(text).submit(request.clone()).unwrap().wait().remove(0);

    assert!(matches!(alone(fine).reason, Some(EndReason::Length)));
    let broken = alone(Unreadable { token: fifth, ..fine });
    let first = tokens.iter().position(|id| *id == fifth).unwrap();
    assert_eq!(broken.tokens, tokens[..=first], "what came before was told");
    assert_eq!(broken.text, "x".repeat(first));
    assert_eq!(
        error_of(&broken).to_string(),
        format!("the tokenizer failed: token {fifth} makes no sense")
    );
    let cut = alone(Unreadable { end: true, ..fine });
    assert_eq!((cut.tokens.len(), cut.text.as_str()), (8, "xxxxxxxx"));
    assert_eq!(
        error_of(&cut).to_string(),
        "the tokenizer failed: the end makes no sense"
    );
    let unread = Unreadable {
        prompt: request.prompt[0],
        ..fine
    };
    let refused = engine(unread).submit(request.clone()).unwrap_err();
    assert_eq!(refused.to_string(), "the tokenizer failed: the prompt makes no sense");
}
