//! The engine over real architectures: neither what runs beside a sample nor losing its blocks changes a token.

use std::sync::Arc;

use clade_lm::{
    CacheMemory, Counters, Detokenizer, Engine, EngineOptions, Request, Result, Sampling, TextDecoder, Usage,
};

use crate::support::{BLOCK_TOKENS, Case};

/// Tokens have no text here.
#[derive(Debug)]
struct NoText;

impl Detokenizer for NoText {
    fn decoder(&self, _: &[i64]) -> Result<Box<dyn TextDecoder>> {
        Ok(Box::new(Self))
    }
}

impl TextDecoder for NoText {
    fn push(&mut self, _: i64) -> Result<String> {
        Ok(String::new())
    }

    fn finish(&mut self) -> Result<String> {
        Ok(String::new())
    }
}

/// Steps in which the long prompts do not fit whole.
fn options() -> EngineOptions {
    EngineOptions {
        block_tokens: BLOCK_TOKENS,
        step_tokens: 24,
        max_running: 12,
        ..EngineOptions::new(CacheMemory::Blocks(600))
    }
}

/// Nothing is shared, and one sample runs after the other.
fn one_by_one() -> EngineOptions {
    EngineOptions {
        prefix_sharing: false,
        max_running: 1,
        step_tokens: 512,
        ..options()
    }
}

/// The prompts of the case and two that begin as its long one does, with several samples of some.
fn requests(case: &Case) -> Vec<Request> {
    let long = &case.prompts[2];
    let mut prompts = case.prompts.clone();
    prompts.push([&long[..41], &[1, 2, 3]].concat());
    prompts.push([&long[..62], &[7, 8]].concat());
    let samples = [4, 1, 3, 1, 2];
    let temperatures = [1.0, 0.0, 0.8, 1.3, 1.0];
    (0_u64..)
        .zip(prompts)
        .zip(samples.into_iter().zip(temperatures))
        .map(|((seed, prompt), (samples, temperature))| Request {
            samples,
            sampling: Sampling {
                temperature: Some(temperature),
                top_p: Some(0.95),
                seed: Some(seed),
                ..Sampling::default()
            },
            ..Request::new(prompt, 40)
        })
        .collect()
}

/// What came of requests that were asked together.
struct Outcome {
    tokens: Vec<Vec<Vec<i64>>>,
    usages: Vec<Usage>,
    counters: Counters,
}

fn run(case: &Case, options: EngineOptions, requests: &[Request]) -> Outcome {
    let engine = Engine::start(case.model(), Arc::new(NoText), options).unwrap();
    let generations: Vec<_> = requests
        .iter()
        .map(|request| engine.submit(request.clone()).unwrap())
        .collect();
    let (mut tokens, mut usages) = (Vec::new(), Vec::new());
    for generation in generations {
        let answers = generation.wait();
        assert!(
            answers
                .iter()
                .all(|answer| answer.reason.as_ref().is_some_and(|reason| reason.as_str() == "length"))
        );
        usages.extend(answers.iter().map(|answer| answer.usage));
        tokens.push(answers.into_iter().map(|answer| answer.tokens).collect());
    }
    engine.check().unwrap();
    Outcome {
        tokens,
        usages,
        counters: engine.stats().counters,
    }
}

macro_rules! cases {
    ($($name:ident),* $(,)?) => { $(
        mod $name {
            use super::*;

            const NAME: &str = stringify!($name);

            #[test]
            fn greedy_answers_are_those_of_transformers() {
                greedy(&Case::read(NAME));
            }

            #[test]
            fn a_batch_gives_the_tokens_of_one_by_one() {
                batch(&Case::read(NAME));
            }

            #[test]
            fn samples_that_lose_their_blocks_give_the_same_tokens() {
                preempted(&Case::read(NAME));
            }
        }
    )* };
}

cases![llama_tied, qwen3_next];

fn greedy(case: &Case) {
    let requests = case.prompts.iter().map(|prompt| Request {
        sampling: Sampling::greedy(),
        ..Request::new(prompt.clone(), case.continuations[0].len())
    });
    let outcome = run(case, options(), &requests.collect::<Vec<_>>());
    assert_eq!(outcome.tokens.concat(), case.continuations);
}

fn batch(case: &Case) {
    let requests = requests(case);
    let alone = run(case, one_by_one(), &requests);
    let together = run(case, options(), &requests);
    assert_eq!(together.tokens, alone.tokens);
    // Eleven samples of 40 tokens, of which those of one prompt draw the first in one step.
    assert!(alone.counters.steps >= 11 * 39, "{:?}", alone.counters);
    assert!(
        together.counters.steps < alone.counters.steps,
        "{:?}",
        together.counters
    );
    assert!(together.counters.computed_tokens < alone.counters.computed_tokens);
    // Samples of one prompt differ from each other.
    assert_ne!(alone.tokens[0][0], alone.tokens[0][1]);
    // All of it twice: the second time a prompt is in the cache.
    let again = run(case, options(), &[requests.clone(), requests].concat());
    assert_eq!(again.tokens, [alone.tokens.clone(), alone.tokens].concat());
    assert!(again.counters.prefix_hits > 0, "{:?}", again.counters);
}

fn preempted(case: &Case) {
    let requests = requests(case);
    let alone = run(case, one_by_one(), &requests);
    // Three samples of the long prompt alone need 20 blocks for it and 10 each for their answers.
    let small = EngineOptions {
        memory: CacheMemory::Blocks(40),
        ..options()
    };
    let lost = run(case, small, &requests);
    assert_eq!(lost.tokens, alone.tokens);
    assert!(lost.counters.preemptions > 0, "{:?}", lost.counters);
    let told: usize = lost.usages.iter().map(|usage| usage.preemptions).sum();
    assert_eq!(told as u64, lost.counters.preemptions);
}
