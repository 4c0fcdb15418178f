//! Seeded draws.

use rand::{Rng, SeedableRng};
use rand_chacha::ChaCha8Rng;

use super::genome::{Domain, Scalar, plain, plain_int};

/// A seeded source of draws. The same seed gives the same draws on every machine.
#[derive(Debug, Clone)]
pub(crate) struct Chance(ChaCha8Rng);

impl Chance {
    /// Draws for one sample of one attempt.
    pub(crate) fn new(seed: u64, sample: u32) -> Self {
        let mut rng = ChaCha8Rng::seed_from_u64(seed);
        rng.set_stream(u64::from(sample));
        Self(rng)
    }

    /// True with this probability.
    pub(crate) fn happens(&mut self, probability: f64) -> bool {
        self.unit() < probability
    }

    /// A number from 0 to 1.
    pub(crate) fn unit(&mut self) -> f64 {
        self.0.random::<f64>()
    }

    /// A whole number below `end`.
    pub(crate) fn below(&mut self, end: usize) -> usize {
        self.0.random_range(0..end.max(1))
    }

    /// One of these, none when there are none.
    pub(crate) fn pick<'a, T>(&mut self, items: &'a [T]) -> Option<&'a T> {
        items.get(self.below(items.len()))
    }

    /// One of these by weight, none when no weight is above zero.
    pub(crate) fn weighted<T: Copy>(&mut self, items: &[(T, f64)]) -> Option<T> {
        let total: f64 = items.iter().map(|(_, weight)| weight.max(0.0)).sum();
        let mut left = self.unit() * total;
        for (item, weight) in items.iter().filter(|(_, weight)| *weight > 0.0) {
            left -= weight;
            if left <= 0.0 {
                return Some(*item);
            }
        }
        None
    }

    /// A factor around 1: its logarithm is spread evenly up to `spread` on both sides.
    pub(crate) fn factor(&mut self, spread: f64) -> f64 {
        ((2.0 * self.unit() - 1.0) * spread).exp()
    }

    /// A seed for a program.
    pub(crate) fn seed(&mut self) -> u32 {
        self.0.random_range(1..1000)
    }

    /// A value near `value`, another one where the domain has choices. `reach` is the share of the domain that counts as
    /// near, on a logarithmic scale where the domain has one.
    pub(crate) fn near(&mut self, value: &Scalar, domain: Domain, reach: f64) -> Scalar {
        const LEAST: f64 = 0.6;
        let spread = |low: f64, high: f64| (reach * (high / low).ln()).max(LEAST);
        match domain {
            Domain::Log(low, high) => Scalar::Float(plain(
                (value.number() * self.factor(spread(low, high))).clamp(low, high),
            )),
            Domain::LogInt(low, high) => {
                let (low, high) = (low as f64, high as f64);
                Scalar::Int(plain_int(
                    (value.number() * self.factor(spread(low, high))).clamp(low, high),
                ))
            }
            Domain::Linear(low, high) => {
                let step = (2.0 * self.unit() - 1.0) * reach * (high - low);
                Scalar::Float(plain((value.number() + step).clamp(low, high)))
            }
            Domain::Names(names) => {
                let others: Vec<_> = names
                    .iter()
                    .filter(|name| Scalar::Text((**name).to_owned()) != *value)
                    .collect();
                self.pick(&others)
                    .map_or_else(|| value.clone(), |name| Scalar::Text((**name).to_owned()))
            }
            Domain::Numbers(numbers) => {
                let at = numbers
                    .iter()
                    .position(|number| Scalar::Float(*number) == *value)
                    .unwrap_or(0);
                let next = if at == 0 || (self.happens(0.5) && at + 1 < numbers.len()) {
                    at + 1
                } else {
                    at - 1
                };
                numbers
                    .get(next)
                    .map_or_else(|| value.clone(), |number| Scalar::Float(*number))
            }
            Domain::Layers(layers) => self
                .pick(layers)
                .map_or_else(|| value.clone(), |widths| Scalar::Ints(widths.to_vec())),
        }
    }
}
