//! How an engine is set up, and what follows for its cache.

use tch::Device;

use crate::error::{LmError, Result};
use crate::model::{CacheSize, ModelSpec};

/// Memory of the cache.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum CacheMemory {
    /// So many bytes, for keys, values and recurrent states together.
    Bytes(u64),
    /// A part of what is free on the model's device once the weights are there.
    Fraction {
        /// Part, above 0 and at most 1.
        fraction: f64,
        /// Bytes that are free.
        free: u64,
    },
    /// So many blocks of keys and values, whatever they take.
    Blocks(usize),
}

/// Options of an engine.
#[derive(Debug, Clone, PartialEq)]
pub struct EngineOptions {
    /// Memory of the cache.
    pub memory: CacheMemory,
    /// Tokens in a block. Prefixes are shared in whole blocks.
    pub block_tokens: usize,
    /// Most tokens of prompt and answer together; `None` = as many as the model was made for.
    pub max_positions: Option<usize>,
    /// Most tokens of one pass through the model; a longer prompt is computed in several. It must be above `max_running`, so that prompts
    /// go on while all other samples decode.
    pub step_tokens: usize,
    /// Most samples that run together.
    pub max_running: usize,
    /// Most requests that wait for their beginning; a further one is refused.
    pub max_waiting: usize,
    /// Whether a prompt begins with what other requests computed for the same tokens.
    pub prefix_sharing: bool,
    /// Snapshots of recurrent states that are kept for prefix sharing. A model without recurrent state has none.
    pub state_snapshots: usize,
}

impl EngineOptions {
    /// The usual options: blocks of 16 tokens, 512 tokens a step, 64 samples together, 1024 requests waiting, prefixes shared, 16 snapshots.
    pub fn new(memory: CacheMemory) -> Self {
        Self {
            memory,
            block_tokens: 16,
            max_positions: None,
            step_tokens: 512,
            max_running: 64,
            max_waiting: 1024,
            prefix_sharing: true,
            state_snapshots: 16,
        }
    }

    /// Most tokens of prompt and answer together.
    pub(super) fn positions(&self, spec: &ModelSpec) -> usize {
        self.max_positions.unwrap_or(spec.max_positions)
    }

    /// Size of the cache of a model.
    ///
    /// # Errors
    /// When an option cannot be, or the memory is too small for any request.
    pub fn cache_size(&self, spec: &ModelSpec) -> Result<CacheSize> {
        self.check(spec)?;
        let states = match (spec.state_bytes_per_sequence, self.prefix_sharing) {
            (0, _) => 0,
            (_, true) => self.max_running + self.state_snapshots,
            (_, false) => self.max_running,
        };
        let block_bytes = spec.kv_bytes_per_token * self.block_tokens as u64;
        let state_bytes = spec.state_bytes_per_sequence * states as u64;
        let available = match self.memory {
            CacheMemory::Bytes(bytes) => bytes,
            CacheMemory::Fraction { fraction, free } => (free as f64 * fraction) as u64,
            CacheMemory::Blocks(blocks) => state_bytes + block_bytes * blocks as u64,
        };
        let blocks = match (self.memory, block_bytes) {
            (CacheMemory::Blocks(blocks), _) => blocks as u64,
            // Without keys and values a block is a number only: as many as can be used.
            (_, 0) => (self.max_running * self.positions(spec).div_ceil(self.block_tokens)) as u64,
            _ => available.saturating_sub(state_bytes) / block_bytes,
        };
        if blocks == 0 || available < state_bytes {
            return Err(LmError::Memory {
                what: format!(
                    "a cache of one block of {} tokens and {states} recurrent states",
                    self.block_tokens
                ),
                needed: state_bytes + block_bytes,
                available,
                device: device_name(spec.device),
                advice: "give the cache more memory, or let fewer samples run together (max_running, state_snapshots)"
                    .to_owned(),
            });
        }
        let blocks = usize::try_from(blocks).unwrap_or(usize::MAX).min(u32::MAX as usize);
        Ok(CacheSize {
            block_tokens: self.block_tokens,
            blocks,
            states,
        })
    }

    fn check(&self, spec: &ModelSpec) -> Result<()> {
        let wrong = |problem: String| Err(LmError::Request(problem));
        for (name, value) in [
            ("block_tokens", self.block_tokens),
            ("max_positions", self.positions(spec)),
            ("max_running", self.max_running),
            ("max_waiting", self.max_waiting),
        ] {
            if value == 0 {
                return wrong(format!("the option {name} is 0, it must be at least 1"));
            }
        }
        if self.step_tokens <= self.max_running {
            return wrong(format!(
                "the option step_tokens is {}, it must be above max_running, which is {}",
                self.step_tokens, self.max_running
            ));
        }
        if self.positions(spec) > spec.max_positions {
            return wrong(format!(
                "the option max_positions is {}, the model was made for {}",
                self.positions(spec),
                spec.max_positions
            ));
        }
        if let CacheMemory::Fraction { fraction, .. } = self.memory
            && !(fraction > 0.0 && fraction <= 1.0)
        {
            return wrong(format!(
                "the fraction of memory is {fraction}, it must be above 0 and at most 1"
            ));
        }
        Ok(())
    }
}

fn device_name(device: Device) -> String {
    match device {
        Device::Cpu => "the CPU".to_owned(),
        Device::Cuda(number) => format!("cuda:{number}"),
        Device::Mps => "mps".to_owned(),
        Device::Vulkan => "vulkan".to_owned(),
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]

    use tch::Kind;

    use super::*;

    fn spec(kv_bytes_per_token: u64, state_bytes_per_sequence: u64) -> ModelSpec {
        ModelSpec {
            model_type: "test".to_owned(),
            kind: Kind::Float,
            device: Device::Cpu,
            vocab_size: 100,
            max_positions: 1000,
            parameters: 0,
            weight_bytes: 0,
            kv_bytes_per_token,
            state_bytes_per_sequence,
        }
    }

    fn options(memory: CacheMemory) -> EngineOptions {
        EngineOptions {
            max_running: 4,
            state_snapshots: 2,
            ..EngineOptions::new(memory)
        }
    }

    #[test]
    fn memory_is_shared_out_to_states_and_blocks() {
        let size = |memory, spec: &ModelSpec| options(memory).cache_size(spec).unwrap();
        let attention = size(CacheMemory::Bytes(10_000), &spec(10, 0));
        assert_eq!((attention.blocks, attention.states), (62, 0));
        let hybrid = size(CacheMemory::Bytes(10_000), &spec(10, 1000));
        assert_eq!((hybrid.blocks, hybrid.states), (25, 6));
        let half = size(
            CacheMemory::Fraction {
                fraction: 0.5,
                free: 20_000,
            },
            &spec(10, 1000),
        );
        assert_eq!(half, hybrid);
        assert_eq!(size(CacheMemory::Blocks(7), &spec(10, 1000)).blocks, 7);
        // No keys and values: blocks for all positions of all samples.
        assert_eq!(size(CacheMemory::Bytes(6000), &spec(0, 1000)).blocks, 4 * 63);
    }

    #[test]
    fn too_little_memory_is_told_with_numbers() {
        let error = options(CacheMemory::Bytes(5000))
            .cache_size(&spec(10, 1000))
            .unwrap_err();
        assert_eq!(
            error.to_string(),
            "a cache of one block of 16 tokens and 6 recurrent states needs 6160 bytes of memory on the CPU, 5000 are free; \
             give the cache more memory, or let fewer samples run together (max_running, state_snapshots)"
        );
    }

    #[test]
    fn options_that_cannot_be_are_named() {
        let problem = |change: fn(&mut EngineOptions)| {
            let mut options = options(CacheMemory::Bytes(1 << 20));
            change(&mut options);
            options.cache_size(&spec(10, 0)).unwrap_err().to_string()
        };
        assert!(problem(|options| options.block_tokens = 0).contains("block_tokens is 0"));
        assert!(problem(|options| options.step_tokens = 4).contains("step_tokens is 4"));
        assert!(problem(|options| options.max_positions = Some(1001)).contains("made for 1000"));
        assert!(problem(|options| options.memory = CacheMemory::Blocks(0)).contains("one block"));
        let fraction = CacheMemory::Fraction { fraction: 1.5, free: 1 };
        let error = options(fraction).cache_size(&spec(10, 0)).unwrap_err();
        assert!(error.to_string().contains("1.5"), "{error}");
    }
}
