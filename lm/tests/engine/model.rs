//! A model whose logits are a hash of the whole history, read back from the blocks and states of its cache: a wrong block, a copy that is
//! missing or a write into a shared block changes what comes out.

use std::any::Any;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};

use clade_lm::{Cache, CacheSize, CausalLm, LmError, LogitRows, ModelSpec, Result, Step, TensorInfo, Weights};
use parking_lot::{Condvar, Mutex};
use tch::{Device, Kind, Tensor};

pub const VOCABULARY: i64 = 64;
pub const POSITIONS: usize = 512;

/// What a step comes to.
pub enum Fate {
    Runs,
    Fails,
    Panics,
    NotANumber,
}

type Rule = Box<dyn Fn(&Step) -> Fate + Send>;

/// What a test sees of the model and does to it.
#[derive(Default)]
pub struct Watch {
    pub tokens: AtomicUsize,
    pub steps: AtomicUsize,
    pub largest_step: AtomicUsize,
    pub most_sequences: AtomicUsize,
    pub copied_blocks: AtomicUsize,
    pub copied_states: AtomicUsize,
    /// First tokens of sequences, in the order in which they began.
    pub begun: Mutex<Vec<i64>>,
    rule: Mutex<Option<Rule>>,
    gate: Mutex<Gate>,
    moved: Condvar,
}

#[derive(Default)]
struct Gate {
    is_shut: bool,
    waits: bool,
}

impl std::fmt::Debug for Watch {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Watch")
            .field("steps", &self.steps)
            .finish_non_exhaustive()
    }
}

impl Watch {
    /// Keeps the next step from going on.
    pub fn shut(&self) {
        self.gate.lock().is_shut = true;
    }

    /// Waits until a step stands at the gate.
    pub fn wait_for_step(&self) {
        let mut gate = self.gate.lock();
        while !gate.waits {
            self.moved.wait(&mut gate);
        }
    }

    pub fn open(&self) {
        self.gate.lock().is_shut = false;
        self.moved.notify_all();
    }

    pub fn set_rule(&self, rule: impl Fn(&Step) -> Fate + Send + 'static) {
        *self.rule.lock() = Some(Box::new(rule));
    }

    pub fn computed(&self) -> usize {
        self.tokens.load(Ordering::SeqCst)
    }

    fn pass_gate(&self) {
        let mut gate = self.gate.lock();
        while gate.is_shut {
            gate.waits = true;
            self.moved.notify_all();
            self.moved.wait(&mut gate);
        }
        gate.waits = false;
    }
}

fn mix(value: u64) -> u64 {
    let mut value = value.wrapping_add(0x9e37_79b9_7f4a_7c15);
    value = (value ^ (value >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    value = (value ^ (value >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    value ^ (value >> 31)
}

fn join(hash: u64, token: i64) -> u64 {
    mix(hash ^ mix(token as u64))
}

#[derive(Debug, Clone, Copy, Default)]
struct State {
    hash: u64,
    tokens: usize,
}

#[derive(Debug)]
struct HistoryCache {
    size: CacheSize,
    blocks: Vec<Vec<i64>>,
    states: Vec<State>,
    watch: Arc<Watch>,
}

impl Cache for HistoryCache {
    fn size(&self) -> CacheSize {
        self.size
    }

    fn copy_block(&mut self, from: u32, to: u32) -> Result<()> {
        self.watch.copied_blocks.fetch_add(1, Ordering::SeqCst);
        self.blocks[to as usize] = self.blocks[from as usize].clone();
        Ok(())
    }

    fn copy_state(&mut self, from: u32, to: u32) -> Result<()> {
        self.watch.copied_states.fetch_add(1, Ordering::SeqCst);
        self.states[to as usize] = self.states[from as usize];
        Ok(())
    }

    fn as_any_mut(&mut self) -> &mut dyn Any {
        self
    }
}

/// The model. Its weights are a number, and one more tensor of which nothing is kept.
#[derive(Debug)]
pub struct HistoryModel {
    spec: ModelSpec,
    weight: AtomicU64,
    pub watch: Arc<Watch>,
}

impl HistoryModel {
    pub fn new(is_recurrent: bool) -> Self {
        Self {
            spec: ModelSpec {
                model_type: "history".to_owned(),
                kind: Kind::Float,
                device: Device::Cpu,
                vocab_size: VOCABULARY,
                max_positions: POSITIONS,
                parameters: 1,
                weight_bytes: 8,
                kv_bytes_per_token: 8,
                state_bytes_per_sequence: if is_recurrent { 16 } else { 0 },
            },
            weight: AtomicU64::new(0),
            watch: Arc::default(),
        }
    }

    fn write(&self, step: &Step, cache: &mut HistoryCache) -> Result<()> {
        let broken = |what: String| Err(LmError::Model(what));
        let size = cache.size.block_tokens;
        let mut new = step.tokens.iter();
        for (number, sequence) in step.sequences.iter().enumerate() {
            let end = sequence.start + sequence.len;
            if sequence.len == 0 || sequence.blocks.len() != end.div_ceil(size) {
                return broken(format!(
                    "{} blocks for {}..{end}",
                    sequence.blocks.len(),
                    sequence.start
                ));
            }
            for (other, others) in step.sequences.iter().enumerate().filter(|(other, _)| *other != number) {
                let written = &sequence.blocks[sequence.start / size..];
                if written.iter().any(|block| others.blocks.contains(block)) {
                    return broken(format!("sequence {number} writes into a block of sequence {other}"));
                }
            }
            for position in sequence.start..end {
                let Some(token) = new.next() else {
                    return broken("too few tokens".to_owned());
                };
                cache.blocks[sequence.blocks[position / size] as usize][position % size] = *token;
                if position == 0 {
                    self.watch.begun.lock().push(*token);
                }
                if self.spec.state_bytes_per_sequence > 0 {
                    let state = &mut cache.states[sequence.state as usize];
                    if position == 0 {
                        *state = State::default();
                    }
                    if state.tokens != position {
                        return broken(format!("a state of {} tokens at position {position}", state.tokens));
                    }
                    state.hash = join(state.hash, *token);
                    state.tokens += 1;
                }
            }
        }
        Ok(())
    }

    fn row(&self, history: u64) -> impl Iterator<Item = f32> {
        let history = mix(history ^ self.weight.load(Ordering::SeqCst));
        (0..VOCABULARY).map(move |id| (join(history, id) >> 40) as f32 / (1 << 24) as f32 * 6.0 - 3.0)
    }
}

impl CausalLm for HistoryModel {
    fn spec(&self) -> &ModelSpec {
        &self.spec
    }

    fn new_cache(&self, size: CacheSize) -> Result<Box<dyn Cache>> {
        Ok(Box::new(HistoryCache {
            size,
            blocks: vec![vec![-1; size.block_tokens]; size.blocks],
            states: vec![State::default(); size.states],
            watch: Arc::clone(&self.watch),
        }))
    }

    fn forward(&self, step: &Step, cache: &mut dyn Cache) -> Result<Tensor> {
        let watch = &self.watch;
        watch.pass_gate();
        watch.steps.fetch_add(1, Ordering::SeqCst);
        watch.tokens.fetch_add(step.tokens.len(), Ordering::SeqCst);
        watch.largest_step.fetch_max(step.tokens.len(), Ordering::SeqCst);
        watch.most_sequences.fetch_max(step.sequences.len(), Ordering::SeqCst);
        let cache = cache.as_any_mut().downcast_mut::<HistoryCache>().unwrap();
        let fate = watch.rule.lock().as_ref().map_or(Fate::Runs, |rule| rule(step));
        // Also a step that fails has written.
        self.write(step, cache)?;
        let mut logits = Vec::new();
        let rows = step
            .sequences
            .iter()
            .filter(|sequence| sequence.logits == LogitRows::Last)
            .count();
        for sequence in &step.sequences {
            let size = cache.size.block_tokens;
            let mut history = 0;
            for position in 0..sequence.start + sequence.len {
                history = join(
                    history,
                    cache.blocks[sequence.blocks[position / size] as usize][position % size],
                );
            }
            if self.spec.state_bytes_per_sequence > 0 {
                let state = cache.states[sequence.state as usize];
                assert_eq!(
                    state.hash, history,
                    "the recurrent state is another one than that of the tokens"
                );
            }
            if sequence.logits == LogitRows::Last {
                logits.extend(self.row(history));
            }
        }
        match fate {
            Fate::Runs => {}
            Fate::Fails => return Err(tch::TchError::Torch("out of memory".to_owned()).into()),
            Fate::Panics => panic!("a bug in the model"),
            Fate::NotANumber => logits.fill(f32::NAN),
        }
        Ok(Tensor::f_from_slice(&logits)?.f_reshape([rows as i64, VOCABULARY])?)
    }

    fn replace_weights(&mut self, weights: &dyn Weights) -> Result<()> {
        let weight = weights.get("weight", Kind::Int64, Device::Cpu)?;
        self.weight.store(weight.f_int64_value(&[])? as u64, Ordering::SeqCst);
        drop(weights.get("second", Kind::Int64, Device::Cpu)?);
        Ok(())
    }
}

/// A checkpoint of that model; without a number it lacks the tensor.
#[derive(Debug)]
pub struct NumberWeights(pub Option<i64>);

impl Weights for NumberWeights {
    fn tensors(&self) -> Vec<TensorInfo> {
        Vec::new()
    }

    fn has(&self, name: &str) -> bool {
        name == "weight" && self.0.is_some()
    }

    fn get(&self, name: &str, _: Kind, _: Device) -> Result<Tensor> {
        match self.0 {
            Some(number) => Ok(Tensor::from(number)),
            None => Err(LmError::MissingTensor {
                name: name.to_owned(),
                model_type: "history".to_owned(),
            }),
        }
    }
}

/// A checkpoint that cannot be read to its end.
#[derive(Debug)]
pub struct CutOff;

impl Weights for CutOff {
    fn tensors(&self) -> Vec<TensorInfo> {
        Vec::new()
    }

    fn has(&self, _: &str) -> bool {
        true
    }

    fn get(&self, name: &str, _: Kind, _: Device) -> Result<Tensor> {
        match name {
            "weight" => Ok(Tensor::from(9_i64)),
            _ => Err(LmError::Format {
                path: "/weights".into(),
                problem: "ends too soon".to_owned(),
            }),
        }
    }
}
