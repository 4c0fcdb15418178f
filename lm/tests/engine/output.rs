//! Tokens, texts, log-probabilities and ends.

use clade_lm::{Completion, EndReason, Event, Request, Sampling};
use futures::StreamExt;

use super::model::VOCABULARY;
use super::support::{FIRST_HALF, essence, lab, options, piece, prompt, text_of};

fn seeded(seed: u64) -> Sampling {
    Sampling {
        seed: Some(seed),
        ..Sampling::default()
    }
}

fn request(max_tokens: usize) -> Request {
    Request {
        sampling: seeded(11),
        ..Request::new(prompt(3, 7), max_tokens)
    }
}

#[test]
fn an_answer_ends_at_its_length() {
    let lab = lab(false, options());
    let answer = lab.alone(&request(12)).remove(0);
    assert_eq!(answer.tokens.len(), 12);
    assert!(matches!(answer.reason, Some(EndReason::Length)));
    assert_eq!(answer.text, text_of(&answer.tokens));
    assert_eq!((answer.usage.prompt_tokens, answer.usage.completion_tokens), (7, 12));
}

#[test]
fn a_stop_token_is_told_and_its_text_is_not() {
    let lab = lab(false, options());
    let free = lab.alone(&request(20)).remove(0);
    let stop = free.tokens[6];
    let first = free.tokens.iter().position(|id| *id == stop).unwrap();
    let stopped = lab
        .alone(&Request {
            stop_tokens: vec![stop],
            ..request(20)
        })
        .remove(0);
    assert_eq!(stopped.tokens, free.tokens[..=first]);
    assert_eq!(stopped.text, text_of(&free.tokens[..first]));
    assert!(matches!(stopped.reason, Some(EndReason::StopToken(id)) if id == stop));
    assert_eq!(stopped.reason.unwrap().as_str(), "stop");
}

#[test]
fn a_stop_string_is_found_across_tokens_and_cut() {
    let lab = lab(false, options());
    let free = lab.alone(&request(30)).remove(0);
    // From the middle of one token over a whole one into a third.
    let place = (4..free.tokens.len() - 3)
        .find(|place| free.tokens[*place..place + 3].iter().all(|id| (28..62).contains(id)))
        .expect("three tokens of two letters");
    let text = text_of(&free.tokens);
    let start = text_of(&free.tokens[..place]).len() + 1;
    let stop = text[start..start + 4].to_owned();
    assert_eq!(text.find(&stop), Some(start), "it is the first of its kind");
    let stopped = lab
        .alone(&Request {
            stop_strings: vec!["no such text".to_owned(), stop],
            ..request(30)
        })
        .remove(0);
    assert_eq!(stopped.text, text[..start]);
    assert_eq!(stopped.tokens, free.tokens[..place + 3]);
    assert!(matches!(stopped.reason, Some(EndReason::StopString(1))));
}

#[test]
fn text_waits_while_it_may_be_the_beginning_of_a_stop_string() {
    let lab = lab(false, options());
    let free = lab.alone(&request(8)).remove(0);
    let text = text_of(&free.tokens);
    // The whole text and a letter that never comes: all of it is held until the end.
    let held = Request {
        stop_strings: vec![format!("{text}!")],
        ..request(8)
    };
    let mut generation = lab.engine.submit(held).unwrap();
    let mut texts = Vec::new();
    while let Some(event) = generation.next_event() {
        match event {
            Event::Token(token) => texts.push(token.text),
            Event::End(end) => assert_eq!(end.text, text),
        }
    }
    assert_eq!(texts, vec![String::new(); 8]);
}

#[test]
fn texts_of_tokens_are_the_text_of_the_answer() {
    let lab = lab(false, options());
    let mut has_open_character = false;
    for seed in 0..40 {
        let answer = lab
            .alone(&Request {
                sampling: seeded(seed),
                stop_strings: vec!["zzzz".to_owned()],
                ..Request::new(prompt(seed, 5), 25)
            })
            .remove(0);
        assert_eq!(answer.text, text_of(&answer.tokens));
        has_open_character |= answer.tokens.last() == Some(&FIRST_HALF);
    }
    assert!(has_open_character, "an answer ends within a character");
    assert_eq!(piece(0), "a");
}

#[test]
fn a_seed_gives_the_same_again_and_samples_differ() {
    let lab = lab(true, options());
    let of = |seed, samples| {
        essence(&lab.alone(&Request {
            samples,
            sampling: seeded(seed),
            ..Request::new(prompt(3, 7), 16)
        }))
    };
    let four = of(1, 4);
    assert_eq!(of(1, 4), four);
    assert_eq!(of(1, 2), four[..2], "a sample does not depend on how many there are");
    assert_ne!(four[0], four[1]);
    assert_ne!(of(2, 1)[0], four[0]);
}

#[test]
fn a_seed_that_the_engine_chose_is_told() {
    let lab = lab(false, options());
    let without = Request::new(prompt(3, 7), 16);
    let generation = lab.engine.submit(without.clone()).unwrap();
    let seed = generation.seed();
    let answers = essence(&generation.wait());
    let again = lab.alone(&Request {
        sampling: seeded(seed),
        ..without.clone()
    });
    assert_eq!(essence(&again), answers);
    assert_ne!(lab.engine.submit(without).unwrap().seed(), seed);
}

#[test]
fn logprobs_are_those_of_the_model_and_of_the_draw() {
    let lab = lab(false, options());
    let answers = lab.alone(&Request {
        samples: 3,
        logprobs: Some(VOCABULARY as usize),
        sampling: Sampling {
            top_k: Some(4),
            temperature: Some(0.7),
            ..seeded(5)
        },
        ..Request::new(prompt(3, 7), 10)
    });
    for answer in &answers {
        assert_eq!(answer.logprobs.len(), answer.tokens.len());
        for (id, logprobs) in answer.tokens.iter().zip(&answer.logprobs) {
            let sum: f64 = logprobs.top.iter().map(|top| f64::from(top.logprob).exp()).sum();
            assert!((sum - 1.0).abs() < 1e-5, "{sum}");
            let place = logprobs.top.iter().position(|top| top.id == *id).unwrap();
            assert_eq!(logprobs.top[place].logprob, logprobs.model);
            assert!(place < 4);
            // The four tokens of the draw, from what the model says of them.
            let weight = |logprob: f32| (f64::from(logprob) / 0.7).exp();
            let total: f64 = logprobs.top[..4].iter().map(|top| weight(top.logprob)).sum();
            let expected = (weight(logprobs.model) / total).ln();
            assert!((f64::from(logprobs.sampling) - expected).abs() < 1e-4);
        }
    }
    let few = lab.alone(&Request {
        logprobs: Some(2),
        ..request(3)
    });
    assert!(few[0].logprobs.iter().all(|logprobs| logprobs.top.len() == 2));
    assert!(lab.alone(&request(3))[0].logprobs.is_empty());
}

#[test]
fn an_async_task_reads_the_events_as_a_stream() {
    let lab = lab(false, options());
    let expected = essence(&lab.alone(&request(9)));
    let mut generation = lab.engine.submit(request(9)).unwrap();
    let mut completions = Completion::none(1);
    let events = futures::executor::block_on(async {
        let mut count = 0;
        while let Some(event) = generation.next().await {
            count += 1;
            Completion::add(&mut completions, event);
        }
        count
    });
    assert_eq!(events, 10);
    assert_eq!(essence(&completions), expected);
}
