//! Keys and values in blocks, and recurrent states in slots.

use std::any::Any;

use tch::{Device, Kind, Tensor};

use crate::error::{LmError, Result};
use crate::model::{Cache, CacheSize};

/// What the layers of a model keep.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct CacheLayout {
    /// Layers with attention.
    pub(crate) attention_layers: i64,
    /// Heads of keys and values.
    pub(crate) heads: i64,
    /// Width of a head.
    pub(crate) head_width: i64,
    /// Layers with a recurrent state.
    pub(crate) state_layers: i64,
    /// Inputs of the convolution that are kept, and its channels.
    pub(crate) conv: (i64, i64),
    /// Heads, key width and value width of the recurrent state.
    pub(crate) state: (i64, i64, i64),
    /// Number format of keys and values. Recurrent states are float32.
    pub(crate) kind: Kind,
    /// Device.
    pub(crate) device: Device,
}

impl CacheLayout {
    /// Numbers that a token takes in one layer.
    fn row(&self) -> i64 {
        2 * self.heads * self.head_width
    }

    /// Bytes that a token takes in one layer.
    pub(crate) fn row_bytes(&self) -> u64 {
        self.row().unsigned_abs() * self.kind.elt_size_in_bytes() as u64
    }

    /// Bytes that a token takes.
    pub(crate) fn token_bytes(&self) -> u64 {
        self.attention_layers.unsigned_abs() * self.row_bytes()
    }

    /// Bytes that the state of a sequence takes.
    pub(crate) fn state_bytes(&self) -> u64 {
        let conv = (self.conv.0 * self.conv.1).unsigned_abs() * self.kind.elt_size_in_bytes() as u64;
        let state = (self.state.0 * self.state.1 * self.state.2).unsigned_abs() * 4;
        self.state_layers.unsigned_abs() * (conv + state)
    }
}

/// The cache of a model of this crate. All layers are in one tensor, so that a block is copied by one operation.
#[derive(Debug)]
pub(crate) struct BlockCache {
    size: CacheSize,
    layout: CacheLayout,
    /// `[layers, slots, 2 * heads * head_width]`: the keys of a token, then its values, as the projections write them.
    rows: Tensor,
    /// `[layers, states, kept inputs, channels]`.
    convs: Tensor,
    /// `[layers, states, heads, key width, value width]`.
    states: Tensor,
}

impl BlockCache {
    /// An empty cache.
    pub(crate) fn new(size: CacheSize, layout: CacheLayout) -> Result<Self> {
        if size.block_tokens == 0 || size.blocks == 0 {
            return Err(LmError::Request(format!(
                "a cache of {} blocks of {} tokens holds nothing",
                size.blocks, size.block_tokens
            )));
        }
        let slots = number(size.blocks)?.saturating_mul(number(size.block_tokens)?);
        let states = if layout.state_layers > 0 {
            number(size.states)?
        } else {
            0
        };
        let (kept, channels) = layout.conv;
        let (heads, key_width, value_width) = layout.state;
        let zeros = |shape: &[i64], kind: Kind| {
            Tensor::f_zeros(shape, (kind, layout.device)).map_err(|error| {
                let bytes = shape.iter().fold(kind.elt_size_in_bytes() as u64, |bytes, side| {
                    bytes.saturating_mul(side.unsigned_abs())
                });
                LmError::Request(format!(
                    "a cache of {} blocks of {} tokens and {} states needs {bytes} bytes at once, which {:?} does not give \
                     ({error}); make it smaller",
                    size.blocks, size.block_tokens, size.states, layout.device
                ))
            })
        };
        Ok(Self {
            size,
            layout,
            rows: zeros(&[layout.attention_layers, slots, layout.row()], layout.kind)?,
            convs: zeros(&[layout.state_layers, states, kept, channels], layout.kind)?,
            states: zeros(
                &[layout.state_layers, states, heads, key_width, value_width],
                Kind::Float,
            )?,
        })
    }

    /// What it was made for.
    pub(crate) fn layout(&self) -> &CacheLayout {
        &self.layout
    }

    /// Keys and values of an attention layer.
    pub(crate) fn attention(&self, layer: i64) -> Result<AttentionLayer> {
        Ok(AttentionLayer {
            rows: self.rows.f_select(0, layer)?,
            block_tokens: number(self.size.block_tokens)?,
            heads: self.layout.heads,
            head_width: self.layout.head_width,
        })
    }

    /// States of a recurrent layer.
    pub(crate) fn state(&self, layer: i64) -> Result<StateLayer> {
        Ok(StateLayer {
            convs: self.convs.f_select(0, layer)?,
            states: self.states.f_select(0, layer)?,
        })
    }

    /// Clears slots of tokens in all layers. Whoever begins a block clears what it leaves empty, so that whole blocks can be read:
    /// what is beyond a sequence has no weight there, but would spoil it if it were not finite.
    pub(crate) fn clear(&self, start: i64, len: i64) -> Result<()> {
        let _ = self.rows.f_narrow(1, start, len)?.f_zero_()?;
        Ok(())
    }

    fn check(&self, what: &str, number: u32, count: usize) -> Result<i64> {
        if usize::try_from(number).is_ok_and(|number| number < count) {
            Ok(i64::from(number))
        } else {
            Err(LmError::Request(format!(
                "the cache has {count} {what}s, there is no {what} {number}"
            )))
        }
    }
}

impl Cache for BlockCache {
    fn size(&self) -> CacheSize {
        self.size
    }

    fn copy_block(&mut self, from: u32, to: u32) -> Result<()> {
        let (from, to) = (
            self.check("block", from, self.size.blocks)?,
            self.check("block", to, self.size.blocks)?,
        );
        let tokens = number(self.size.block_tokens)?;
        let block = |at: i64| self.rows.f_narrow(1, at * tokens, tokens);
        Ok(block(to)?.f_copy_(&block(from)?)?)
    }

    fn copy_state(&mut self, from: u32, to: u32) -> Result<()> {
        if self.layout.state_layers == 0 {
            return Ok(());
        }
        let (from, to) = (
            self.check("state", from, self.size.states)?,
            self.check("state", to, self.size.states)?,
        );
        for tensor in [&self.convs, &self.states] {
            tensor.f_select(1, to)?.f_copy_(&tensor.f_select(1, from)?)?;
        }
        Ok(())
    }

    fn as_any_mut(&mut self) -> &mut dyn Any {
        self
    }
}

/// Keys and values of one layer.
#[derive(Debug)]
pub(crate) struct AttentionLayer {
    rows: Tensor,
    block_tokens: i64,
    heads: i64,
    head_width: i64,
}

impl AttentionLayer {
    /// All slots, `[slots, 2 * heads * width]`.
    pub(crate) fn rows(&self) -> &Tensor {
        &self.rows
    }

    /// Writes rows of keys and values to slots that follow one another.
    pub(crate) fn write_run(&self, start: i64, rows: &Tensor) -> Result<()> {
        Ok(self.rows.f_narrow(0, start, rows.size2()?.0)?.f_copy_(rows)?)
    }

    /// Writes rows of keys and values to slots.
    pub(crate) fn write(&mut self, slots: &Tensor, rows: &Tensor) -> Result<()> {
        let _ = self.rows.f_index_copy_(0, slots, rows)?;
        Ok(())
    }

    /// Keys and values of slots that follow one another, `[n, 2, heads, width]`, without a copy.
    pub(crate) fn run(&self, start: i64, len: i64) -> Result<Tensor> {
        Ok(self
            .rows
            .f_narrow(0, start, len)?
            .f_view([len, 2, self.heads, self.head_width])?)
    }

    /// Keys and values of blocks, `[blocks * block_tokens, 2, heads, width]`, as a copy.
    pub(crate) fn gather(&self, blocks: &Tensor) -> Result<Tensor> {
        let by_block = self
            .rows
            .f_view([-1, self.block_tokens * 2 * self.heads * self.head_width])?;
        Ok(by_block
            .f_index_select(0, blocks)?
            .f_view([-1, 2, self.heads, self.head_width])?)
    }
}

/// Recurrent states of one layer.
#[derive(Debug)]
pub(crate) struct StateLayer {
    convs: Tensor,
    states: Tensor,
}

impl StateLayer {
    /// Forgets a sequence.
    pub(crate) fn reset(&mut self, slot: i64) -> Result<()> {
        let _ = self.convs.f_select(0, slot)?.f_zero_()?;
        let _ = self.states.f_select(0, slot)?.f_zero_()?;
        Ok(())
    }

    /// Inputs of the convolution that one sequence keeps, in place.
    pub(crate) fn conv(&self, slot: i64) -> Result<Tensor> {
        Ok(self.convs.f_select(0, slot)?)
    }

    /// The state of one sequence, in place.
    pub(crate) fn state(&self, slot: i64) -> Result<Tensor> {
        Ok(self.states.f_select(0, slot)?)
    }

    /// Inputs of the convolution that some sequences keep, as a copy.
    pub(crate) fn convs(&self, slots: &Tensor) -> Result<Tensor> {
        Ok(self.convs.f_index_select(0, slots)?)
    }

    /// States of some sequences, as a copy.
    pub(crate) fn states(&self, slots: &Tensor) -> Result<Tensor> {
        Ok(self.states.f_index_select(0, slots)?)
    }

    /// Writes inputs of the convolution back.
    pub(crate) fn put_convs(&mut self, slots: &Tensor, convs: &Tensor) -> Result<()> {
        let _ = self.convs.f_index_copy_(0, slots, convs)?;
        Ok(())
    }

    /// Writes states back.
    pub(crate) fn put_states(&mut self, slots: &Tensor, states: &Tensor) -> Result<()> {
        let _ = self.states.f_index_copy_(0, slots, states)?;
        Ok(())
    }
}

/// A count as libtorch takes it.
pub(crate) fn number(count: usize) -> Result<i64> {
    i64::try_from(count).map_err(|_| LmError::Request(format!("{count} is more than can be counted here")))
}
