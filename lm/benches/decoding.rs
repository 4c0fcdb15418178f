//! Tokens per second of a model with the shapes of SmolLM2-135M and random weights: `cargo bench -p clade-lm --bench decoding`.
//!
//! `decoding.py` beside it measures transformers in the same way. Run both in turn, since speed differs from minute to minute on a
//! machine that others use too; with `THREADS=1`, tokens per second of the processor's time say more there than those of the clock.

use std::fs;
use std::io::{self, Write};
use std::time::Instant;

use clade_lm::{
    Cache, CacheSize, CausalLm, Dtype, LmError, LogitRows, Result, Step, StepSequence, TensorInfo, Weights, build,
};
use serde_json::{Value, json};
use tch::{Device, Kind, Tensor};

const LAYERS: i64 = 30;
const HIDDEN: i64 = 576;
const INNER: i64 = 1536;
const KEYS: i64 = 192;
const VOCABULARY: i64 = 49152;
const BLOCK_TOKENS: usize = 16;
const PROMPT: usize = 128;
const NEW_TOKENS: usize = 32;
const LONG_PROMPT: usize = 512;

/// Random weights.
#[derive(Debug)]
struct Random;

impl Weights for Random {
    fn tensors(&self) -> Vec<TensorInfo> {
        let mut shapes = vec![
            ("model.embed_tokens.weight".to_owned(), vec![VOCABULARY, HIDDEN]),
            ("model.norm.weight".to_owned(), vec![HIDDEN]),
        ];
        for layer in 0..LAYERS {
            for (name, shape) in [
                ("input_layernorm", vec![HIDDEN]),
                ("post_attention_layernorm", vec![HIDDEN]),
                ("self_attn.q_proj", vec![HIDDEN, HIDDEN]),
                ("self_attn.k_proj", vec![KEYS, HIDDEN]),
                ("self_attn.v_proj", vec![KEYS, HIDDEN]),
                ("self_attn.o_proj", vec![HIDDEN, HIDDEN]),
                ("mlp.gate_proj", vec![INNER, HIDDEN]),
                ("mlp.up_proj", vec![INNER, HIDDEN]),
                ("mlp.down_proj", vec![HIDDEN, INNER]),
            ] {
                shapes.push((format!("model.layers.{layer}.{name}.weight"), shape));
            }
        }
        shapes
            .into_iter()
            .map(|(name, shape)| TensorInfo {
                name,
                shape,
                dtype: Dtype::F32,
            })
            .collect()
    }

    fn has(&self, name: &str) -> bool {
        self.tensors().iter().any(|tensor| tensor.name == name)
    }

    fn get(&self, name: &str, kind: Kind, device: Device) -> Result<Tensor> {
        let Some(tensor) = self.tensors().into_iter().find(|tensor| tensor.name == name) else {
            return Err(LmError::MissingTensor {
                name: name.into(),
                model_type: "llama".into(),
            });
        };
        Ok(Tensor::f_randn(&tensor.shape, (kind, device))?.f_mul_scalar(0.02)?)
    }
}

/// Seconds of the clock, and of the processor in all threads (Linux tells them in hundredths).
#[derive(Clone, Copy)]
struct Watch {
    begin: Instant,
    spent: f64,
}

impl Watch {
    fn start() -> Self {
        Self {
            begin: Instant::now(),
            spent: Self::spent(),
        }
    }

    fn spent() -> f64 {
        let stat = fs::read_to_string("/proc/self/stat").unwrap_or_default();
        // The name of the program, in brackets, may hold spaces.
        let fields = stat
            .rsplit(')')
            .next()
            .unwrap_or_default()
            .split_whitespace()
            .skip(11)
            .take(2);
        fields.filter_map(|ticks| ticks.parse::<f64>().ok()).sum::<f64>() / 100.0
    }

    fn stop(self) -> [f64; 2] {
        [self.begin.elapsed().as_secs_f64(), Self::spent() - self.spent]
    }
}

/// Runs steps.
struct Bench {
    model: Box<dyn CausalLm>,
    cache: Box<dyn Cache>,
}

impl Bench {
    /// A pass of some sequences from one position on; gives the likeliest next tokens.
    fn pass(&mut self, start: usize, len: usize, tables: &[Vec<u32>], next: &[i64]) -> Result<Vec<i64>> {
        let sequence = |blocks: &Vec<u32>| StepSequence {
            start,
            len,
            blocks: blocks.clone(),
            state: 0,
            logits: LogitRows::Last,
        };
        let step = Step {
            tokens: next.to_vec(),
            sequences: tables.iter().map(sequence).collect(),
        };
        let logits = self.model.forward(&step, self.cache.as_mut())?;
        Ok(Vec::try_from(logits.f_argmax(1, false)?)?)
    }

    /// Seconds that the prompt takes.
    fn prefill(&mut self, len: usize) -> Result<[f64; 2]> {
        let table = (0..len.div_ceil(BLOCK_TOKENS) as u32).collect::<Vec<_>>();
        let tokens = (0..len as i64).map(|token| token * 7 % VOCABULARY).collect::<Vec<_>>();
        let watch = Watch::start();
        self.pass(0, len, &[table], &tokens)?;
        Ok(watch.stop())
    }

    /// Seconds that `NEW_TOKENS` of so many samples of one prompt take.
    fn decode(&mut self, samples: usize) -> Result<[f64; 2]> {
        self.prefill(PROMPT)?;
        let own = NEW_TOKENS.div_ceil(BLOCK_TOKENS);
        let shared = PROMPT / BLOCK_TOKENS;
        let table = |sample: usize| {
            let first = shared + sample * own;
            (0..shared)
                .chain(first..first + own)
                .map(|block| block as u32)
                .collect::<Vec<_>>()
        };
        let tables = (0..samples).map(table).collect::<Vec<_>>();
        let mut next = (0..samples as i64).collect::<Vec<_>>();
        let watch = Watch::start();
        for place in 0..NEW_TOKENS {
            next = self.pass(PROMPT + place, 1, &tables, &next)?;
        }
        Ok(watch.stop())
    }
}

fn main() -> Result<()> {
    let number = |name: &str, default: i32| {
        std::env::var(name)
            .ok()
            .and_then(|text| text.parse().ok())
            .unwrap_or(default)
    };
    tch::set_num_threads(number("THREADS", 2));
    let config = json!({
        "model_type": "llama", "hidden_size": HIDDEN, "intermediate_size": INNER, "num_hidden_layers": LAYERS,
        "num_attention_heads": 9, "num_key_value_heads": 3, "vocab_size": VOCABULARY, "max_position_embeddings": 8192,
        "rms_norm_eps": 1e-5, "rope_theta": 100000.0, "tie_word_embeddings": true,
    });
    let Value::Object(config) = config else { return Ok(()) };
    let model = build(&config, &Random, Kind::Float, Device::Cpu)?;
    let cache = model.new_cache(CacheSize {
        block_tokens: BLOCK_TOKENS,
        blocks: 256,
        states: 0,
    })?;
    let mut bench = Bench { model, cache };
    let rounds = number("ROUNDS", 3);
    let line = |name: &str, tokens: usize, seconds: &[[f64; 2]]| {
        let best = |of: usize| {
            let least = seconds
                .iter()
                .filter_map(|times| times.get(of))
                .copied()
                .fold(f64::INFINITY, f64::min);
            tokens as f64 / least
        };
        let _ = writeln!(
            io::stdout(),
            "{name:<12} {:>8.1} tokens/s, {:>8.1} by processor time",
            best(0),
            best(1)
        );
    };
    let only = number("SAMPLES", 0) as usize;
    for samples in [1, 4, 16].into_iter().filter(|samples| only == 0 || only == *samples) {
        let seconds = (0..rounds).map(|_| bench.decode(samples)).collect::<Result<Vec<_>>>()?;
        line(&format!("{samples} samples"), samples * NEW_TOKENS, &seconds);
    }
    let seconds = (0..rounds)
        .map(|_| bench.prefill(LONG_PROMPT))
        .collect::<Result<Vec<_>>>()?;
    line("prompt", LONG_PROMPT, &seconds);
    Ok(())
}
