//! A stack of layers, each a mixer of tokens and a feed-forward block, as every architecture here is.

use std::collections::BTreeMap;

use tch::{Device, Kind, Tensor};

use crate::arch::config::Config;
use crate::cache::{BlockCache, CacheLayout, number};
use crate::error::{LmError, Result};
use crate::model::{Cache, CacheSize, CausalLm, LogitRows, ModelSpec, Step};
use crate::nn::attention::plan::{AttentionPlan, CacheShape, Destination, StatePlan};
use crate::nn::attention::{Attention, AttentionShape};
use crate::nn::cpu;
use crate::nn::gated_delta::{DeltaLayout, DeltaShape, GatedDelta};
use crate::nn::layout::Format;
use crate::nn::linear::{Linear, Projection};
use crate::nn::mlp::Mlp;
use crate::nn::moe::{Moe, MoeShape};
use crate::nn::norm::{NormWeight, RmsNorm};
use crate::nn::parameter::{Module, Parameter, Piece, load};
use crate::nn::rotary::{Angles, RopeShape, Rotary};
use crate::weights::Weights;

/// What mixes the tokens of a layer.
#[derive(Debug, Clone, Copy)]
pub(crate) enum Mixer {
    /// Attention to all tokens, or to the last few.
    Attention {
        /// Sizes.
        shape: AttentionShape,
        /// Tokens that are seen, with the token itself.
        window: Option<i64>,
    },
    /// A gated delta net.
    Delta {
        /// Sizes.
        shape: DeltaShape,
        /// How it is stored.
        layout: DeltaLayout,
    },
}

/// What works on each token of a layer.
#[derive(Debug, Clone, Copy)]
pub(crate) enum Feed {
    /// One block.
    Mlp {
        /// Inner units.
        width: i64,
        /// Whether there are biases.
        bias: bool,
    },
    /// A mixture of experts.
    Moe(MoeShape),
}

/// A layer.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Layer {
    /// Its mixer.
    pub(crate) mixer: Mixer,
    /// Its feed-forward block.
    pub(crate) feed: Feed,
}

/// All that a configuration says of a model.
#[derive(Debug)]
pub(crate) struct Blueprint {
    model_type: String,
    hidden: i64,
    vocabulary: i64,
    positions: usize,
    epsilon: f64,
    tied: bool,
    rope: RopeShape,
    norm_weight: NormWeight,
    layers: Vec<Layer>,
}

impl Blueprint {
    /// Layers, and around them what all architectures read alike.
    pub(crate) fn new(
        config: &Config<'_>,
        layers: Vec<Layer>,
        rope: RopeShape,
        norm_weight: NormWeight,
    ) -> Result<Self> {
        let positions = config.count("max_position_embeddings")?;
        Ok(Self {
            model_type: config.model_type().to_owned(),
            hidden: config.count("hidden_size")?,
            vocabulary: config.count("vocab_size")?,
            positions: usize::try_from(positions).unwrap_or(usize::MAX),
            epsilon: config.float("rms_norm_eps")?,
            tied: config.tied()?,
            rope,
            norm_weight,
            layers,
        })
    }

    fn cache(&self, kind: Kind, device: Device) -> CacheLayout {
        let mut layout = CacheLayout {
            attention_layers: 0,
            heads: 0,
            head_width: 0,
            state_layers: 0,
            conv: (0, 0),
            state: (0, 0, 0),
            kind,
            device,
        };
        for layer in &self.layers {
            match layer.mixer {
                Mixer::Attention { shape, .. } => {
                    layout.attention_layers += 1;
                    (layout.heads, layout.head_width) = (shape.key_heads, shape.head_width);
                }
                Mixer::Delta { shape, .. } => {
                    layout.state_layers += 1;
                    layout.conv = (shape.conv_width - 1, shape.channels());
                    layout.state = (shape.value_heads, shape.key_width, shape.value_width);
                }
            }
        }
        layout
    }
}

/// A mixer with its weights and its place in the cache.
#[derive(Debug)]
enum Mixing {
    Attention {
        block: Attention,
        window: Option<usize>,
        cache: i64,
    },
    Delta {
        block: GatedDelta,
        cache: i64,
    },
}

#[derive(Debug)]
enum Feeding {
    Mlp(Box<Mlp>),
    Moe(Box<Moe>),
}

#[derive(Debug)]
struct Block {
    mixer_norm: RmsNorm,
    mixer: Mixing,
    feed_norm: RmsNorm,
    feed: Feeding,
}

/// All weights.
#[derive(Debug)]
struct Stack {
    /// None where the output is used.
    embedding: Option<Parameter>,
    blocks: Vec<Block>,
    norm: RmsNorm,
    output: Linear,
}

/// The model.
#[derive(Debug)]
pub(crate) struct Decoder {
    spec: ModelSpec,
    cache: CacheLayout,
    stack: Stack,
    rotary: Rotary,
}

impl Decoder {
    /// Builds a model and reads its weights.
    pub(crate) fn new(blueprint: Blueprint, weights: &dyn Weights, kind: Kind, device: Device) -> Result<Self> {
        let _guard = tch::no_grad_guard();
        let mut stack = Stack::new(&blueprint, Format { kind, device });
        let cache = blueprint.cache(kind, device);
        let amount = load(&mut stack, weights, &blueprint.model_type, device)?;
        let spec = ModelSpec {
            model_type: blueprint.model_type,
            kind,
            device,
            vocab_size: blueprint.vocabulary,
            max_positions: blueprint.positions,
            parameters: amount.parameters,
            weight_bytes: amount.bytes,
            kv_bytes_per_token: cache.token_bytes(),
            state_bytes_per_sequence: cache.state_bytes(),
        };
        Ok(Self {
            spec,
            cache,
            stack,
            rotary: Rotary::new(blueprint.rope, device)?,
        })
    }

    /// Refuses steps that would read or write where they must not.
    fn check(&self, step: &Step, size: CacheSize) -> Result<()> {
        let refuse = |problem: String| Err(LmError::Request(problem));
        let tokens = step.sequences.iter().map(|sequence| sequence.len).sum::<usize>();
        if tokens != step.tokens.len() {
            return refuse(format!(
                "a step has {} tokens, its sequences have {tokens}",
                step.tokens.len()
            ));
        }
        if let Some(token) = step
            .tokens
            .iter()
            .find(|token| !(0..self.spec.vocab_size).contains(*token))
        {
            return refuse(format!(
                "the token {token} is not in the vocabulary of {}",
                self.spec.vocab_size
            ));
        }
        for (index, sequence) in step.sequences.iter().enumerate() {
            let end = sequence.start.saturating_add(sequence.len);
            if sequence.len == 0 {
                return refuse(format!("sequence {index} of a step has no new token"));
            }
            if end > sequence.blocks.len().saturating_mul(size.block_tokens) {
                return refuse(format!(
                    "sequence {index} of a step has {end} tokens, its {} blocks of {} hold fewer",
                    sequence.blocks.len(),
                    size.block_tokens
                ));
            }
            if let Some(block) = sequence.blocks.iter().find(|&&block| block as usize >= size.blocks) {
                return refuse(format!(
                    "the cache has {} blocks, there is no block {block}",
                    size.blocks
                ));
            }
            if self.cache.state_layers > 0 && sequence.state as usize >= size.states {
                return refuse(format!(
                    "the cache has {} states, there is no state {}",
                    size.states, sequence.state
                ));
            }
        }
        Ok(())
    }
}

impl Stack {
    fn new(blueprint: &Blueprint, format: Format) -> Self {
        let Blueprint {
            hidden,
            vocabulary,
            epsilon,
            norm_weight,
            ..
        } = *blueprint;
        let norm = |name: &str| RmsNorm::new(name, hidden, epsilon, norm_weight);
        let embedding = "model.embed_tokens";
        let (mut attentions, mut deltas) = (0, 0);
        let next = |count: &mut i64| {
            *count += 1;
            *count - 1
        };
        let block = |(index, layer): (usize, &Layer)| {
            let at = format!("model.layers.{index}");
            let mixer = match layer.mixer {
                Mixer::Attention { shape, window } => Mixing::Attention {
                    block: Attention::new(&format!("{at}.self_attn"), shape, format),
                    window: window.and_then(|window| usize::try_from(window).ok()),
                    cache: next(&mut attentions),
                },
                Mixer::Delta { shape, layout } => Mixing::Delta {
                    block: GatedDelta::new(&format!("{at}.linear_attn"), shape, layout, epsilon, format),
                    cache: next(&mut deltas),
                },
            };
            let mlp = format!("{at}.mlp");
            let feed = match layer.feed {
                Feed::Mlp { width, bias } => Feeding::Mlp(Box::new(Mlp::new(&mlp, hidden, width, bias, format))),
                Feed::Moe(shape) => Feeding::Moe(Box::new(Moe::new(&mlp, shape, format))),
            };
            Block {
                mixer_norm: norm(&format!("{at}.input_layernorm")),
                mixer,
                feed_norm: norm(&format!("{at}.post_attention_layernorm")),
                feed,
            }
        };
        let blocks = blueprint.layers.iter().enumerate().map(block).collect();
        let rows = || Piece::new(format!("{embedding}.weight"), [vocabulary, hidden]);
        let output = if blueprint.tied { embedding } else { "lm_head" };
        Self {
            embedding: (!blueprint.tied).then(|| Parameter::new([vocabulary, hidden], format.kind, vec![rows()])),
            blocks,
            norm: norm("model.norm"),
            output: Linear::new(hidden, &[Projection::new(output, vocabulary)], false, format),
        }
    }
}

impl Module for Stack {
    fn parameters<'a>(&'a mut self, list: &mut Vec<&'a mut Parameter>) {
        list.extend(self.embedding.as_mut());
        for block in &mut self.blocks {
            block.mixer_norm.parameters(list);
            match &mut block.mixer {
                Mixing::Attention { block, .. } => block.parameters(list),
                Mixing::Delta { block, .. } => block.parameters(list),
            }
            block.feed_norm.parameters(list);
            match &mut block.feed {
                Feeding::Mlp(block) => block.parameters(list),
                Feeding::Moe(block) => block.parameters(list),
            }
        }
        self.norm.parameters(list);
        self.output.parameters(list);
    }
}

/// What is worked out of a step once for all layers.
struct Plan {
    angles: Angles,
    attention: BTreeMap<Option<usize>, AttentionPlan>,
    destination: Destination,
    states: StatePlan,
}

impl Decoder {
    fn plan(&self, step: &Step, size: CacheSize) -> Result<Plan> {
        let device = self.spec.device;
        let mut positions = Vec::with_capacity(step.tokens.len());
        for sequence in &step.sequences {
            positions.extend(number(sequence.start)?..number(sequence.start + sequence.len)?);
        }
        let positions = Tensor::f_from_slice(&positions)?.f_to_device(device)?;
        let mut attention = BTreeMap::new();
        let shape = CacheShape {
            block_tokens: size.block_tokens,
            row_bytes: self.cache.row_bytes(),
            device,
            has_pages: cpu::is_available(self.spec.kind, device) && self.cache.head_width % cpu::PANEL == 0,
        };
        for block in &self.stack.blocks {
            if let Mixing::Attention { window, .. } = block.mixer
                && !attention.contains_key(&window)
            {
                attention.insert(window, AttentionPlan::new(step, window, shape)?);
            }
        }
        Ok(Plan {
            angles: self.rotary.angles(&positions, self.spec.kind)?,
            attention,
            destination: Destination::new(step, size.block_tokens, device)?,
            states: StatePlan::new(step, device)?,
        })
    }

    /// Clears what blocks that are begun in this step leave empty.
    fn clear(step: &Step, cache: &BlockCache) -> Result<()> {
        let block_tokens = cache.size().block_tokens;
        for sequence in &step.sequences {
            let end = sequence.start + sequence.len;
            let (block, used) = (end / block_tokens, end % block_tokens);
            if used > 0 && sequence.start <= block * block_tokens {
                let block = sequence.blocks.get(block).copied().unwrap_or_default() as usize;
                cache.clear(number(block * block_tokens + used)?, number(block_tokens - used)?)?;
            }
        }
        Ok(())
    }

    /// The wanted rows, or none if all are.
    fn wanted(step: &Step) -> Result<Option<Vec<i64>>> {
        let mut rows = Vec::new();
        let mut row = 0;
        for sequence in &step.sequences {
            let end = row + number(sequence.len)?;
            match sequence.logits {
                LogitRows::None => {}
                LogitRows::Last => rows.push(end - 1),
                LogitRows::All => rows.extend(row..end),
            }
            row = end;
        }
        Ok((rows.len() < step.tokens.len()).then_some(rows))
    }
}

impl CausalLm for Decoder {
    fn spec(&self) -> &ModelSpec {
        &self.spec
    }

    fn new_cache(&self, size: CacheSize) -> Result<Box<dyn Cache>> {
        let _guard = tch::no_grad_guard();
        Ok(Box::new(BlockCache::new(size, self.cache)?))
    }

    fn forward(&self, step: &Step, cache: &mut dyn Cache) -> Result<Tensor> {
        let _guard = tch::no_grad_guard();
        let cache = cache
            .as_any_mut()
            .downcast_mut::<BlockCache>()
            .filter(|cache| *cache.layout() == self.cache);
        let Some(cache) = cache else {
            return Err(LmError::Request("the cache is that of another model".into()));
        };
        self.check(step, cache.size())?;
        if step.tokens.is_empty() {
            return Ok(Tensor::f_empty(
                [0, self.spec.vocab_size],
                (Kind::Float, self.spec.device),
            )?);
        }
        let plan = self.plan(step, cache.size())?;
        Self::clear(step, cache)?;

        let tokens = Tensor::f_from_slice(&step.tokens)?.f_to_device(self.spec.device)?;
        let mut stream = match &self.stack.embedding {
            Some(embedding) => embedding.tensor().f_index_select(0, &tokens)?,
            None => self.stack.output.embed(&tokens)?,
        };
        for block in &self.stack.blocks {
            let rows = block.mixer_norm.forward(&stream)?;
            match &block.mixer {
                Mixing::Attention {
                    block,
                    window,
                    cache: layer,
                } => {
                    let Some(attention) = plan.attention.get(window) else {
                        continue;
                    };
                    let mut layer = cache.attention(*layer)?;
                    block.add_to(
                        &mut stream,
                        &rows,
                        &plan.angles,
                        attention,
                        &plan.destination,
                        &mut layer,
                    )?;
                }
                Mixing::Delta { block, cache: layer } => {
                    block.add_to(&mut stream, &rows, &plan.states, &mut cache.state(*layer)?)?;
                }
            }
            let rows = block.feed_norm.forward(&stream)?;
            match &block.feed {
                Feeding::Mlp(block) => block.add_to(&mut stream, &rows)?,
                Feeding::Moe(block) => block.add_to(&mut stream, &rows)?,
            }
        }
        if let Some(rows) = Self::wanted(step)? {
            stream = stream.f_index_select(0, &Tensor::f_from_slice(&rows)?.f_to_device(self.spec.device)?)?;
        }
        let logits = self.stack.output.forward(&self.stack.norm.forward(&stream)?)?;
        Ok(logits.f_to_kind(Kind::Float)?)
    }

    fn replace_weights(&mut self, weights: &dyn Weights) -> Result<()> {
        let _guard = tch::no_grad_guard();
        load(&mut self.stack, weights, &self.spec.model_type, self.spec.device)?;
        Ok(())
    }
}
