//! Engines over the model of the tests, and requests to compare them with.

use std::sync::Arc;

use clade_lm::{
    CacheMemory, Completion, Detokenizer, EndReason, Engine, EngineOptions, Request, Result, Sampling, Stats,
    TextDecoder,
};

use super::model::{HistoryModel, VOCABULARY, Watch};

/// Letters, two-letter pieces, and a character in two halves.
#[derive(Debug)]
pub struct Letters;

/// First half of `é`.
pub const FIRST_HALF: i64 = 62;
/// Second half of `é`.
pub const SECOND_HALF: i64 = 63;

pub fn piece(id: i64) -> String {
    let letter = |number: i64| char::from(b'a' + u8::try_from(number % 26).unwrap());
    match id {
        0..26 => letter(id).to_string(),
        26 => " ".to_owned(),
        27 => "\n".to_owned(),
        _ => [letter(id * 7), letter(id * 11 + 3)].iter().collect(),
    }
}

struct LettersDecoder {
    is_open: bool,
}

impl TextDecoder for LettersDecoder {
    fn push(&mut self, id: i64) -> Result<String> {
        let was_open = std::mem::replace(&mut self.is_open, id == FIRST_HALF);
        let text = match id {
            FIRST_HALF => String::new(),
            SECOND_HALF if was_open => return Ok("é".to_owned()),
            SECOND_HALF => "\u{fffd}".to_owned(),
            _ => piece(id),
        };
        Ok(if was_open { format!("\u{fffd}{text}") } else { text })
    }

    fn finish(&mut self) -> Result<String> {
        let replaced = if std::mem::take(&mut self.is_open) {
            "\u{fffd}"
        } else {
            ""
        };
        Ok(replaced.to_owned())
    }
}

impl Detokenizer for Letters {
    fn decoder(&self, _: &[i64]) -> Result<Box<dyn TextDecoder>> {
        Ok(Box::new(LettersDecoder { is_open: false }))
    }
}

/// Text of tokens, decoded at once.
pub fn text_of(tokens: &[i64]) -> String {
    let mut decoder = Letters.decoder(&[]).unwrap();
    let mut text: String = tokens.iter().map(|id| decoder.push(*id).unwrap()).collect();
    text.push_str(&decoder.finish().unwrap());
    text
}

/// An engine and its model.
pub struct Lab {
    pub engine: Engine,
    pub watch: Arc<Watch>,
}

/// Small blocks and steps, so that everything has borders.
pub fn options() -> EngineOptions {
    EngineOptions {
        block_tokens: 4,
        step_tokens: 24,
        max_running: 8,
        state_snapshots: 6,
        ..EngineOptions::new(CacheMemory::Blocks(400))
    }
}

pub fn lab(is_recurrent: bool, options: EngineOptions) -> Lab {
    let model = HistoryModel::new(is_recurrent);
    let watch = Arc::clone(&model.watch);
    let engine = Engine::start(Box::new(model), Arc::new(Letters), options).unwrap();
    Lab { engine, watch }
}

impl Lab {
    /// Submits all requests, then waits for all.
    pub fn together(&self, requests: &[Request]) -> Vec<Vec<Completion>> {
        // They are all there before the first step goes on.
        self.watch.shut();
        let generations: Vec<_> = requests
            .iter()
            .map(|request| self.engine.submit(request.clone()).unwrap())
            .collect();
        self.watch.open();
        generations.into_iter().map(clade_lm::Generation::wait).collect()
    }

    pub fn alone(&self, request: &Request) -> Vec<Completion> {
        self.engine.submit(request.clone()).unwrap().wait()
    }

    /// What the engine did, answers included that have just ended.
    pub fn stats(&self) -> Stats {
        self.engine.check().unwrap();
        self.engine.stats()
    }

    /// Everything is accounted for, and nobody holds anything.
    pub fn assert_idle(&self) {
        let stats = self.stats();
        for places in [stats.blocks, stats.states] {
            assert_eq!(places.held, 0, "{stats:?}");
            assert_eq!(places.free + places.kept, places.total, "{stats:?}");
        }
        assert_eq!((stats.running, stats.paused, stats.waiting), (0, 0, 0), "{stats:?}");
    }
}

/// What a caller can tell two answers apart by, beside what they used.
pub fn essence(completions: &[Completion]) -> Vec<String> {
    let one = |completion: &Completion| {
        let reason = completion.reason.as_ref().map(|reason| match reason {
            EndReason::Error(error) => format!("error: {error}"),
            other => format!("{other:?}"),
        });
        format!(
            "{:?} {:?} {:?} {:?}",
            completion.tokens, completion.text, completion.logprobs, reason
        )
    };
    completions.iter().map(one).collect()
}

/// Answers to requests, each on an engine of its own that does nothing else and shares nothing.
pub fn one_by_one(is_recurrent: bool, requests: &[Request]) -> Vec<Vec<String>> {
    let options = EngineOptions {
        prefix_sharing: false,
        max_running: 1,
        step_tokens: 512,
        ..options()
    };
    let lab = lab(is_recurrent, options);
    requests.iter().map(|request| essence(&lab.alone(request))).collect()
}

/// Numbers from a seed.
pub struct Numbers(pub u64);

impl Numbers {
    pub fn below(&mut self, limit: usize) -> usize {
        self.0 = self
            .0
            .wrapping_mul(6_364_136_223_846_793_005)
            .wrapping_add(1_442_695_040_888_963_407);
        usize::try_from(self.0 >> 33).unwrap() % limit
    }
}

pub fn prompt(seed: u64, len: usize) -> Vec<i64> {
    let mut numbers = Numbers(seed.wrapping_mul(0x9e37_79b9) + 7);
    (0..len).map(|_| numbers.below(VOCABULARY as usize) as i64).collect()
}

/// Requests of all kinds: lengths, numbers of samples, temperatures, filters, penalties, stops and common beginnings.
pub fn mixed(count: usize, seed: u64) -> Vec<Request> {
    let mut numbers = Numbers(seed);
    let beginnings = [prompt(900, 21), prompt(901, 12), prompt(902, 40)];
    (0..count)
        .map(|number| {
            let mut tokens = match numbers.below(5) {
                begins @ 0..3 => beginnings[begins].clone(),
                _ => Vec::new(),
            };
            let len = 1 + numbers.below(30);
            tokens.extend(prompt(numbers.below(6) as u64, len));
            let sampling = Sampling {
                temperature: [Some(0.0), Some(0.5), None, Some(1.5)][numbers.below(4)],
                top_k: [None, Some(1), Some(9), Some(1000)][numbers.below(4)],
                top_p: [None, Some(0.9), Some(0.4)][numbers.below(3)],
                min_p: [None, Some(0.05)][numbers.below(2)],
                repetition_penalty: [None, Some(1.3)][numbers.below(2)],
                presence_penalty: [None, Some(0.5)][numbers.below(2)],
                frequency_penalty: [None, Some(0.2)][numbers.below(2)],
                seed: Some(number as u64),
            };
            Request {
                samples: [1, 1, 2, 5][numbers.below(4)],
                sampling,
                stop_tokens: (0..numbers.below(3))
                    .map(|_| numbers.below(VOCABULARY as usize) as i64)
                    .collect(),
                stop_strings: [vec![], vec!["ab".to_owned(), "e".to_owned()]][numbers.below(2)].clone(),
                logprobs: [None, Some(0), Some(3)][numbers.below(3)],
                priority: numbers.below(3) as i32 - 1,
                ..Request::new(tokens, 1 + numbers.below(40))
            }
        })
        .collect()
}
