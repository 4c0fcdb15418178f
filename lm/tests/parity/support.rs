//! Cases of `reference/make.py`, their weights, and sequences that run through a cache.

use std::path::PathBuf;

use clade_lm::{
    Cache, CacheSize, CausalLm, Dtype, LmError, LogitRows, Result, Step, StepSequence, TensorInfo, Weights, build,
};
use serde_json::{Map, Value};
use tch::{Device, Kind, Tensor};

/// Tokens in a block: small, so that short sequences have many.
pub const BLOCK_TOKENS: usize = 4;

/// What transformers said.
pub struct Case {
    pub config: Map<String, Value>,
    pub weights: Formula,
    pub prompts: Vec<Vec<i64>>,
    pub continuations: Vec<Vec<i64>>,
    /// Logits of the last tokens of each prompt.
    pub logits: Vec<Tensor>,
}

impl Case {
    pub fn read(name: &str) -> Self {
        let folder = PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("tests/reference/parity");
        let text = std::fs::read_to_string(folder.join(format!("{name}.json"))).unwrap();
        let case: Value = serde_json::from_str(&text).unwrap();
        let lists = |key: &str| serde_json::from_value::<Vec<Vec<i64>>>(case[key].clone()).unwrap();
        let tensors = serde_json::from_value::<Vec<(String, Vec<i64>)>>(Value::Array(
            case["tensors"]
                .as_object()
                .unwrap()
                .iter()
                .map(|(name, shape)| serde_json::json!([name, shape]))
                .collect(),
        ));
        let mut logits = Tensor::read_safetensors(folder.join(format!("{name}.safetensors"))).unwrap();
        logits.sort_by(|one, other| one.0.cmp(&other.0));
        Self {
            config: case["config"].as_object().unwrap().clone(),
            weights: Formula {
                tensors: tensors.unwrap(),
                centre: case["centre"].as_f64().unwrap() as f32,
                salt: "",
            },
            prompts: lists("prompts"),
            continuations: lists("continuations"),
            logits: logits.into_iter().map(|(_, rows)| rows).collect(),
        }
    }

    pub fn model(&self) -> Box<dyn CausalLm> {
        build(&self.config, &self.weights, Kind::Float, Device::Cpu).unwrap()
    }
}

/// Weights by the formula of `reference/make.py`.
#[derive(Debug, Clone)]
pub struct Formula {
    pub tensors: Vec<(String, Vec<i64>)>,
    /// What weights of norms are around.
    pub centre: f32,
    /// Makes other weights of the same shapes.
    pub salt: &'static str,
}

impl Formula {
    fn values(&self, name: &str, shape: &[i64]) -> Tensor {
        let mut seed = 0xcbf2_9ce4_8422_2325_u64;
        for byte in name.bytes().chain(self.salt.bytes()) {
            seed = (seed ^ u64::from(byte)).wrapping_mul(0x100_0000_01b3);
        }
        let scaled = |index: u64| {
            let mut state = seed.wrapping_add((index + 1).wrapping_mul(0x9e37_79b9_7f4a_7c15));
            state = (state ^ (state >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
            state = (state ^ (state >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
            state ^= state >> 31;
            let unit = (state >> 40) as f32 / (1 << 23) as f32 - 1.0;
            if name.contains("norm") {
                (if name.contains("linear_attn") {
                    0.75
                } else {
                    self.centre
                }) + 0.25 * unit
            } else if name.contains("embed") || name.contains("lm_head") {
                0.25 * unit
            } else {
                0.5 * unit
            }
        };
        let count = shape.iter().product::<i64>() as u64;
        Tensor::from_slice(&(0..count).map(scaled).collect::<Vec<_>>()).reshape(shape)
    }
}

impl Weights for Formula {
    fn tensors(&self) -> Vec<TensorInfo> {
        let info = |(name, shape): &(String, Vec<i64>)| TensorInfo {
            name: name.clone(),
            shape: shape.clone(),
            dtype: Dtype::F32,
        };
        self.tensors.iter().map(info).collect()
    }

    fn has(&self, name: &str) -> bool {
        self.tensors.iter().any(|(known, _)| known == name)
    }

    fn get(&self, name: &str, kind: Kind, device: Device) -> Result<Tensor> {
        let Some((_, shape)) = self.tensors.iter().find(|(known, _)| known == name) else {
            return Err(LmError::MissingTensor {
                name: name.into(),
                model_type: "a test".into(),
            });
        };
        Ok(self.values(name, shape).to_kind(kind).to_device(device))
    }
}

/// The same weights with each expert's tensors apart, as checkpoints of Qwen3-MoE are published.
#[derive(Debug)]
pub struct Apart(pub Formula);

impl Apart {
    /// `(fused name, expert, first row, rows)` of the name of a tensor of an expert.
    fn part(&self, name: &str) -> Option<(String, i64, bool)> {
        let (layer, rest) = name.split_once(".experts.")?;
        let (expert, projection) = rest.split_once('.')?;
        let fused = if projection == "down_proj.weight" {
            "down_proj"
        } else {
            "gate_up_proj"
        };
        Some((
            format!("{layer}.experts.{fused}"),
            expert.parse().ok()?,
            projection == "up_proj.weight",
        ))
    }
}

impl Weights for Apart {
    fn tensors(&self) -> Vec<TensorInfo> {
        let mut tensors = Vec::new();
        for tensor in self.0.tensors() {
            let [experts, rows, columns] = tensor.shape[..] else {
                tensors.push(tensor);
                continue;
            };
            if !tensor.name.contains(".experts.") {
                tensors.push(tensor);
                continue;
            }
            let (at, projection) = tensor.name.rsplit_once('.').unwrap();
            let parts = if projection == "down_proj" {
                vec![("down_proj", rows)]
            } else {
                vec![("gate_proj", rows / 2), ("up_proj", rows / 2)]
            };
            for expert in 0..experts {
                for &(part, rows) in &parts {
                    let name = format!("{at}.{expert}.{part}.weight");
                    tensors.push(TensorInfo {
                        name,
                        shape: vec![rows, columns],
                        dtype: Dtype::F32,
                    });
                }
            }
        }
        tensors
    }

    fn has(&self, name: &str) -> bool {
        self.tensors().iter().any(|tensor| tensor.name == name)
    }

    fn get(&self, name: &str, kind: Kind, device: Device) -> Result<Tensor> {
        let Some((fused, expert, second)) = self.part(name) else {
            return self.0.get(name, kind, device);
        };
        let all = self.0.get(&fused, kind, device)?.get(expert);
        if fused.ends_with("down_proj") {
            return Ok(all);
        }
        let half = all.size()[0] / 2;
        Ok(all.narrow(0, if second { half } else { 0 }, half))
    }
}

/// How blocks are handed out.
#[derive(Clone, Copy, PartialEq, Eq)]
pub enum Order {
    /// Those of a sequence follow one another.
    Following,
    /// They do not.
    Scattered,
}

/// A sequence in the cache.
#[derive(Clone)]
pub struct Sequence {
    pub len: usize,
    pub blocks: Vec<u32>,
    pub state: u32,
}

/// A model with a cache.
pub struct Runner {
    pub model: Box<dyn CausalLm>,
    pub cache: Box<dyn Cache>,
    free: Vec<u32>,
    states: u32,
}

impl Runner {
    pub fn new(model: Box<dyn CausalLm>, order: Order) -> Self {
        const BLOCKS: u32 = 256;
        let size = CacheSize {
            block_tokens: BLOCK_TOKENS,
            blocks: BLOCKS as usize,
            states: 16,
        };
        let cache = model.new_cache(size).unwrap();
        let free = match order {
            // From the end, since the last one is taken first.
            Order::Following => (0..BLOCKS).rev().collect(),
            Order::Scattered => (0..BLOCKS).map(|block| (block * 37 + 5) % BLOCKS).collect(),
        };
        Self {
            model,
            cache,
            free,
            states: 0,
        }
    }

    pub fn sequence(&mut self) -> Sequence {
        self.states += 1;
        Sequence {
            len: 0,
            blocks: Vec::new(),
            state: self.states - 1,
        }
    }

    /// Another sequence that goes on from where one is: it shares all blocks that are full.
    pub fn fork(&mut self, from: &Sequence) -> Sequence {
        let mut fork = self.sequence();
        fork.len = from.len;
        fork.blocks = from.blocks[..from.len / BLOCK_TOKENS].to_vec();
        if !from.len.is_multiple_of(BLOCK_TOKENS) {
            let block = self.free.pop().unwrap();
            self.cache.copy_block(from.blocks[fork.blocks.len()], block).unwrap();
            fork.blocks.push(block);
        }
        self.cache.copy_state(from.state, fork.state).unwrap();
        fork
    }

    /// Runs new tokens of some sequences in one step.
    pub fn step(&mut self, parts: &mut [(&mut Sequence, &[i64], LogitRows)]) -> Tensor {
        let mut step = Step::default();
        for (sequence, tokens, logits) in parts.iter_mut() {
            let end = sequence.len + tokens.len();
            while sequence.blocks.len() * BLOCK_TOKENS < end {
                sequence.blocks.push(self.free.pop().unwrap());
            }
            step.tokens.extend_from_slice(tokens);
            step.sequences.push(StepSequence {
                start: sequence.len,
                len: tokens.len(),
                blocks: sequence.blocks.clone(),
                state: sequence.state,
                logits: *logits,
            });
            sequence.len = end;
        }
        self.model.forward(&step, self.cache.as_mut()).unwrap()
    }

    /// Runs tokens of one sequence for what they leave in the cache.
    pub fn feed(&mut self, sequence: &mut Sequence, tokens: &[i64]) {
        assert_eq!(self.step(&mut [(sequence, tokens, LogitRows::None)]).size()[0], 0);
    }

    /// Runs tokens of one sequence and gives logits of all.
    pub fn run(&mut self, sequence: &mut Sequence, tokens: &[i64]) -> Tensor {
        self.step(&mut [(sequence, tokens, LogitRows::All)])
    }
}

/// Requires that logits are the same up to rounding.
#[track_caller]
pub fn assert_close(found: &Tensor, expected: &Tensor) {
    assert_eq!(found.size(), expected.size());
    let difference = (found - expected).abs().max().double_value(&[]);
    assert!(difference <= 1e-4, "logits differ by {difference}");
}
