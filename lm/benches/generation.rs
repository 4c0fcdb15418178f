//! Seconds that the engine takes to read a prompt and to continue it, as lines of JSON:
//! `generation MODEL THREADS SEED PROMPT_TOKENS NEW_TOKENS SAMPLES`.
//!
//! `benches/local_models.py` of the repository runs it in turn with transformers. Speed on a shared machine differs from minute to
//! minute; only the two beside each other say something.

use std::env;
use std::error::Error;
use std::fmt;
use std::io::{self, Write};
use std::path::Path;
use std::sync::Arc;
use std::thread;
use std::time::Instant;

use clade_lm::{CacheMemory, Detokenizer, Engine, EngineOptions, Event, Request, Sampling, TextDecoder, build, load};
use serde_json::json;
use tch::{Device, Kind};

/// Tokens are measured, not their text.
#[derive(Debug)]
struct NoText;

impl Detokenizer for NoText {
    fn decoder(&self, _prompt: &[i64]) -> clade_lm::Result<Box<dyn TextDecoder>> {
        Ok(Box::new(Self))
    }
}

impl TextDecoder for NoText {
    fn push(&mut self, _id: i64) -> clade_lm::Result<String> {
        Ok(String::new())
    }

    fn finish(&mut self) -> clade_lm::Result<String> {
        Ok(String::new())
    }
}

/// A wrong command line.
#[derive(Debug)]
struct Usage;

impl fmt::Display for Usage {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str("generation MODEL THREADS SEED PROMPT_TOKENS NEW_TOKENS SAMPLES")
    }
}

impl Error for Usage {}

fn main() -> Result<(), Box<dyn Error>> {
    // Cargo's own arguments, as --bench, are not for here.
    let arguments: Vec<String> = env::args()
        .skip(1)
        .filter(|argument| !argument.starts_with("--"))
        .collect();
    let [model, numbers @ ..] = arguments.as_slice() else {
        return Err(Usage.into());
    };
    let numbers = numbers
        .iter()
        .map(|number| number.parse())
        .collect::<Result<Vec<usize>, _>>()?;
    let [threads, seed, prompt_tokens, new_tokens, samples] = numbers[..] else {
        return Err(Usage.into());
    };
    tch::set_num_threads(i32::try_from(threads)?);
    let checkpoint = load::open(Path::new(model))?;
    // On a thread that ends: see `LocalModel::load`.
    let model = thread::scope(|scope| {
        let weights = checkpoint.weights();
        scope
            .spawn(|| build(checkpoint.config(), weights.as_ref(), Kind::Float, Device::Cpu))
            .join()
    });
    let model = model.map_err(|_| "the thread that loads the model panicked")??;
    let vocabulary = usize::try_from(model.spec().vocab_size)?;
    let engine = Engine::start(model, Arc::new(NoText), EngineOptions::new(CacheMemory::Blocks(512)))?;
    let prompt = |first: usize, len: usize| -> Vec<i64> {
        (first..first + len)
            .map(|token| (token * 7919 % vocabulary) as i64)
            .collect()
    };
    // What is done once in a process is no part of the speed.
    engine.submit(Request::new(prompt(1, 8), 2))?.wait();

    let begin = Instant::now();
    let mut generation = engine.submit(Request {
        samples,
        sampling: Sampling::greedy(),
        ..Request::new(prompt(seed, prompt_tokens), new_tokens)
    })?;
    let (mut first, mut tokens) = (None, Vec::new());
    while let Some(event) = generation.next_event() {
        match event {
            Event::Token(token) => {
                first.get_or_insert_with(|| begin.elapsed());
                if token.sample == 0 {
                    tokens.push(token.id);
                }
            }
            Event::End(end) => {
                if end.reason.as_str() != "length" {
                    return Err(format!("a sample ended early: {:?}", end.reason).into());
                }
            }
        }
    }
    let (first, all) = (first.ok_or("there was no token")?, begin.elapsed());
    let line = json!({
        "prompt_seconds": first.as_secs_f64(),
        "new_seconds": (all - first).as_secs_f64(),
        "tokens": tokens,
    });
    writeln!(io::stdout(), "{line}")?;
    Ok(())
}
