//! Draws tokens from rows of logits, on the CPU.
//!
//! A row costs one look for its highest logit, plus one exponential a token where probabilities are needed. Nothing is sorted but the
//! tokens that a filter leaves.

mod filter;
mod rows;
#[cfg(test)]
mod tests;

use std::collections::{HashMap, HashSet};
use std::sync::Arc;

use clade_lm_api::messages::Sampling;
use rand_chacha::ChaCha12Rng;
use rand_chacha::rand_core::{RngCore, SeedableRng};

use self::filter::{Candidate, NucleusSpace};
use self::rows::{exp, highest, log_sum_exp, sum, weigh};
use super::event::{TokenLogprob, TokenLogprobs};
use crate::error::Result;

/// Weights that are summed up together, so that a draw skips most of a vocabulary.
const CHUNK: usize = 256;

/// A token that was drawn.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct Drawn {
    /// The token.
    pub(super) id: i64,
    /// Its log-probabilities, where they were asked for.
    pub(super) logprobs: Option<TokenLogprobs>,
}

/// Space that is used again from row to row: getting it anew costs more than filling it.
#[derive(Debug, Default)]
pub(super) struct Scratch {
    /// Logits after penalties.
    logits: Vec<f32>,
    space: Space,
}

#[derive(Debug, Default)]
struct Space {
    weights: Vec<f32>,
    /// Sums of chunks of the weights.
    sums: Vec<f64>,
    nucleus: NucleusSpace,
}

/// What draws the tokens of one sample.
#[derive(Debug, Clone)]
pub(super) struct Sampler {
    sampling: Sampling,
    logprobs: Option<usize>,
    generator: ChaCha12Rng,
    /// Tokens of the prompt; empty where no penalty asks for them.
    prompt: Arc<HashSet<i64>>,
    /// How often a token is in the answer; empty where no penalty asks for it.
    counts: HashMap<i64, u32>,
}

impl Sampler {
    /// A sampler whose draws follow from the seed and the number of the sample.
    pub(super) fn new(
        sampling: &Sampling,
        logprobs: Option<usize>,
        seed: u64,
        sample: u32,
        prompt: &Arc<HashSet<i64>>,
    ) -> Self {
        let mut generator = ChaCha12Rng::seed_from_u64(seed);
        generator.set_stream(u64::from(sample));
        Self {
            sampling: sampling.clone(),
            logprobs,
            generator,
            prompt: Arc::clone(prompt),
            counts: HashMap::new(),
        }
    }

    /// Draws the next token from the logits of the model.
    pub(super) fn draw(&mut self, row: &[f32], scratch: &mut Scratch) -> Result<Drawn> {
        let Scratch { logits, space } = scratch;
        let penalised = if self.sampling.has_penalties() {
            logits.clear();
            logits.extend_from_slice(row);
            self.penalise(logits);
            logits.as_slice()
        } else {
            row
        };
        let (id, sampling) = if self.sampling.temperature() == 0.0 {
            let (best, _) = highest(penalised)?;
            (best, 0.0)
        } else {
            self.draw_random(penalised, space)?
        };
        if self.sampling.has_penalties() {
            *self.counts.entry(i64::from(id)).or_default() += 1;
        }
        let logprobs = match self.logprobs {
            Some(count) => {
                let normalizer = log_sum_exp(row, &mut space.weights)?;
                Some(TokenLogprobs {
                    model: row[id as usize] - normalizer,
                    sampling,
                    top: filter::best(row, count)
                        .into_iter()
                        .map(|token| TokenLogprob {
                            id: i64::from(token.id),
                            logprob: token.score - normalizer,
                        })
                        .collect(),
                })
            }
            None => None,
        };
        Ok(Drawn {
            id: i64::from(id),
            logprobs,
        })
    }

    fn penalise(&self, logits: &mut [f32]) {
        let repetition = self.sampling.repetition_penalty() as f32;
        let repeat = |logit: &mut f32| {
            if *logit > 0.0 {
                *logit /= repetition;
            } else {
                *logit *= repetition;
            }
        };
        if repetition != 1.0 {
            let said = self.counts.keys().filter(|id| !self.prompt.contains(id));
            for id in self.prompt.iter().chain(said) {
                repeat(&mut logits[*id as usize]);
            }
        }
        let (presence, frequency) = (self.sampling.presence_penalty(), self.sampling.frequency_penalty());
        for (id, count) in &self.counts {
            logits[*id as usize] -= (presence + frequency * f64::from(*count)) as f32;
        }
    }

    /// Draws with a temperature above 0. The second value is the log-probability of the token under the distribution it was drawn from.
    fn draw_random(&mut self, logits: &[f32], space: &mut Space) -> Result<(u32, f32)> {
        let Space { weights, sums, nucleus } = space;
        let (_, highest) = highest(logits)?;
        let scale = (1.0 / self.sampling.temperature()) as f32;
        let top_p = self.sampling.top_p();
        let floor = self.sampling.min_p() as f32;
        if let Some(count) = self.sampling.top_k.filter(|count| *count < logits.len()) {
            let mut best = filter::best(logits, count);
            best.iter_mut()
                .for_each(|token| token.score = exp((token.score - highest) * scale));
            if top_p < 1.0 {
                let total = filter::total(&best);
                filter::keep_mass(&mut best, top_p * total);
            }
            best.retain(|token| token.score >= floor);
            return Ok(self.draw_candidate(&best));
        }
        weigh(weights, logits, highest, scale);
        sums.clear();
        sums.extend(weights.chunks(CHUNK).map(sum));
        let total: f64 = sums.iter().sum();
        if top_p == 1.0 && floor == 0.0 {
            return Ok(self.draw_weighted(weights, sums, total));
        }
        let mass = if top_p < 1.0 { top_p * total } else { f64::INFINITY };
        filter::nucleus(weights, mass, floor, nucleus);
        Ok(self.draw_candidate(&nucleus.chosen))
    }

    fn draw_weighted(&mut self, weights: &[f32], sums: &[f64], total: f64) -> (u32, f32) {
        let mut target = self.uniform() * total;
        // Where rounding leads beyond the end, it is the last token that has a probability.
        let mut chunk = 0;
        for (number, sum) in sums.iter().enumerate().filter(|(_, sum)| **sum > 0.0) {
            chunk = number;
            if target < *sum {
                break;
            }
            target -= sum;
        }
        let first = chunk * CHUNK;
        let mut drawn = first;
        for (place, weight) in weights[first..]
            .iter()
            .enumerate()
            .take(CHUNK)
            .filter(|(_, weight)| **weight > 0.0)
        {
            drawn = first + place;
            target -= f64::from(*weight);
            if target < 0.0 {
                break;
            }
        }
        (drawn as u32, logprob(weights[drawn], total))
    }

    fn draw_candidate(&mut self, candidates: &[Candidate]) -> (u32, f32) {
        let total = filter::total(candidates);
        let mut target = self.uniform() * total;
        let mut drawn = Candidate { id: 0, score: 0.0 };
        for token in candidates.iter().filter(|token| token.score > 0.0) {
            drawn = *token;
            target -= f64::from(token.score);
            if target < 0.0 {
                break;
            }
        }
        (drawn.id, logprob(drawn.score, total))
    }

    /// A number from 0 to below 1.
    fn uniform(&mut self) -> f64 {
        (self.generator.next_u64() >> 11) as f64 / (1_u64 << 53) as f64
    }
}

fn logprob(weight: f32, total: f64) -> f32 {
    (f64::from(weight).ln() - total.ln()) as f32
}
