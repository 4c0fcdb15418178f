//! What each row of a step attends to, worked out once for all layers.
//!
//! The keys of a row come in parts: prefixes of blocks that its sequence shares with others, and the rest that is its own. All rows
//! that share a part attend to it in one multiplication; the parts of a row are put together by their log-sum-exp.

use std::collections::BTreeMap;

use tch::{Device, Kind, Tensor};

use crate::cache::number;
use crate::error::Result;
use crate::model::Step;
use crate::nn::cpu::{Pages, Span};

/// Blocks that a shared prefix must have to be a part of its own: below, a second multiplication costs more than it saves.
const SHARED_BLOCKS: usize = 2;

/// Bytes of keys and values up to which the ends of sequences are copied together to attend in one call on CPU. The call saves
/// about as much as copying this much costs.
const GATHER_BYTES: u64 = 64 << 10;

/// Rows of a step.
#[derive(Debug)]
pub(crate) enum Rows {
    /// All.
    All,
    /// Some that follow one another.
    Run(i64, i64),
    /// Some, by number.
    List(Tensor),
}

/// Keys and values.
#[derive(Debug)]
pub(crate) enum Keys {
    /// Those of the step itself: rows that follow one another.
    Step(i64, i64),
    /// Slots of the cache that follow one another.
    Slots(i64, i64),
    /// Blocks of the cache; `skip` tokens at the beginning and those after `len` do not count.
    Blocks {
        /// The blocks.
        blocks: Tensor,
        /// Tokens of the first block before the part.
        skip: i64,
        /// Tokens of the part.
        len: i64,
    },
    /// The same number of blocks for each row.
    Each(Tensor),
    /// Where each row finds its own in the cache, for a kernel that goes there.
    Pages(Pages),
}

/// Which keys of a part a row sees.
#[derive(Debug)]
pub(crate) enum Sight {
    /// All.
    All,
    /// Those up to itself; there are as many keys as rows.
    Causal,
    /// As an additive mask of float32 says: `[rows, keys]`.
    Mask(Tensor),
    /// As an additive mask of float32 says of the keys of each row: `[rows, 1, 1, keys]`.
    Each(Tensor),
}

/// One multiplication.
#[derive(Debug)]
pub(crate) struct Part {
    /// Whose queries.
    pub(crate) rows: Rows,
    /// Whose keys.
    pub(crate) keys: Keys,
    /// Which of them.
    pub(crate) sight: Sight,
    /// Whether it is the first of its rows.
    pub(crate) first: bool,
}

/// All multiplications of a layer. The first parts of all rows come before the others.
#[derive(Debug)]
pub(crate) struct AttentionPlan {
    /// They.
    pub(crate) parts: Vec<Part>,
}

/// Where the keys and values of the step are written.
#[derive(Debug)]
pub(crate) enum Destination {
    /// Slots that follow one another, from here.
    Run(i64),
    /// Slots.
    Slots(Tensor),
}

/// Sequences of one new token whose states are moved on together.
#[derive(Debug)]
pub(crate) struct StateSteps {
    /// Their rows.
    pub(crate) rows: Tensor,
    /// Their slots.
    pub(crate) slots: Tensor,
}

/// A sequence of several new tokens, or a new one.
#[derive(Debug)]
pub(crate) struct StateRun {
    /// First row.
    pub(crate) start: i64,
    /// Rows.
    pub(crate) len: i64,
    /// Slot.
    pub(crate) slot: i64,
    /// Whether it begins here.
    pub(crate) fresh: bool,
}

/// How recurrent states are moved on.
#[derive(Debug)]
pub(crate) struct StatePlan {
    /// One after the other.
    pub(crate) runs: Vec<StateRun>,
    /// All at once.
    pub(crate) steps: Option<StateSteps>,
}

impl StatePlan {
    /// Of a step.
    pub(crate) fn new(step: &Step, device: Device) -> Result<Self> {
        let (mut runs, mut rows, mut slots) = (Vec::new(), Vec::new(), Vec::new());
        let mut row = 0;
        for sequence in &step.sequences {
            let (len, slot) = (number(sequence.len)?, i64::from(sequence.state));
            if sequence.start > 0 && len == 1 {
                rows.push(row);
                slots.push(slot);
            } else {
                runs.push(StateRun {
                    start: row,
                    len,
                    slot,
                    fresh: sequence.start == 0,
                });
            }
            row += len;
        }
        let list = |numbers: &[i64]| -> Result<Tensor> { Ok(Tensor::f_from_slice(numbers)?.f_to_device(device)?) };
        let steps = if rows.is_empty() {
            None
        } else {
            Some(StateSteps {
                rows: list(&rows)?,
                slots: list(&slots)?,
            })
        };
        Ok(Self { runs, steps })
    }
}

impl Destination {
    /// Of a step.
    pub(crate) fn new(step: &Step, block_tokens: usize, device: Device) -> Result<Self> {
        let mut slots = Vec::with_capacity(step.tokens.len());
        for sequence in &step.sequences {
            for position in sequence.start..sequence.start + sequence.len {
                slots.push(slot(&sequence.blocks, position, block_tokens)?);
            }
        }
        let follow = slots
            .windows(2)
            .all(|pair| matches!(pair, [first, second] if first + 1 == *second));
        Ok(match slots.first() {
            Some(&first) if follow => Self::Run(first),
            _ => Self::Slots(Tensor::f_from_slice(&slots)?.f_to_device(device)?),
        })
    }
}

/// The slot of a position; there is none beyond the blocks, which the caller has checked.
fn slot(blocks: &[u32], position: usize, block_tokens: usize) -> Result<i64> {
    let block = blocks.get(position / block_tokens).copied().unwrap_or_default();
    Ok(i64::from(block) * number(block_tokens)? + number(position % block_tokens)?)
}

/// One sequence of a step, as planning sees it.
#[derive(Clone, Copy)]
struct Sequence<'a> {
    row: usize,
    len: usize,
    start: usize,
    blocks: &'a [u32],
}

impl Sequence<'_> {
    fn end(&self) -> usize {
        self.start + self.len
    }
}

/// A sequence of one new token, and the token from which on its keys are its own.
struct End<'a> {
    sequence: Sequence<'a>,
    from: usize,
}

/// The cache as a plan sees it.
#[derive(Debug, Clone, Copy)]
pub(crate) struct CacheShape {
    /// Tokens of a block.
    pub(crate) block_tokens: usize,
    /// Bytes that keys and values of a token take in a layer.
    pub(crate) row_bytes: u64,
    /// Where it is.
    pub(crate) device: Device,
    /// Whether a kernel finds the keys of single tokens in the cache itself.
    pub(crate) has_pages: bool,
}

/// Puts a plan together.
struct Planner<'a> {
    cache: CacheShape,
    rows: usize,
    first: Vec<Part>,
    further: Vec<Part>,
    ends: Vec<End<'a>>,
}

impl AttentionPlan {
    /// Of a step, for layers that see `window` tokens or all.
    pub(crate) fn new(step: &Step, window: Option<usize>, cache: CacheShape) -> Result<Self> {
        let mut row = 0;
        let mut sequences = Vec::with_capacity(step.sequences.len());
        for sequence in &step.sequences {
            let (len, start) = (sequence.len, sequence.start);
            sequences.push(Sequence {
                row,
                len,
                start,
                blocks: &sequence.blocks,
            });
            row += len;
        }
        let mut planner = Planner {
            cache,
            rows: row,
            first: Vec::new(),
            further: Vec::new(),
            ends: Vec::new(),
        };
        // Where a window cuts, each sequence sees another part of what it shares, and all is its own.
        let cut = |sequence: &Sequence<'_>| window.filter(|window| sequence.end() > *window);
        let (within, beyond): (Vec<_>, Vec<_>) = sequences.into_iter().partition(|sequence| cut(sequence).is_none());
        for sequence in beyond {
            if let Some(window) = cut(&sequence) {
                planner.windowed(sequence, window)?;
            }
        }
        planner.share(&within, 0, 0)?;
        planner.finish_ends()?;
        let Planner { mut first, further, .. } = planner;
        first.extend(further);
        Ok(Self { parts: first })
    }
}

impl<'a> Planner<'a> {
    /// Plans sequences whose blocks are the same up to block `depth`, and whose tokens are planned up to block `planned`.
    fn share(&mut self, sequences: &[Sequence<'a>], depth: usize, planned: usize) -> Result<()> {
        let Some((head, rest)) = sequences.split_first() else {
            return Ok(());
        };
        if rest.is_empty() {
            return self.own(*head, planned * self.cache.block_tokens);
        }
        // Only blocks that all have filled before this step.
        let filled = sequences
            .iter()
            .map(|sequence| sequence.start / self.cache.block_tokens)
            .min()
            .unwrap_or(0);
        let same = |block: &usize| {
            rest.iter()
                .all(|other| other.blocks.get(*block) == head.blocks.get(*block))
        };
        let common = (depth..filled).take_while(same).count() + depth;
        let planned = if common >= planned + SHARED_BLOCKS {
            let keys = self.cached(
                head.blocks,
                planned * self.cache.block_tokens,
                common * self.cache.block_tokens,
            )?;
            let rows = self.rows_of(sequences)?;
            self.further.push(Part {
                rows,
                keys,
                sight: Sight::All,
                first: false,
            });
            common
        } else {
            planned
        };
        let mut branches: BTreeMap<Option<u32>, Vec<Sequence<'a>>> = BTreeMap::new();
        for sequence in sequences {
            let filled = sequence.start / self.cache.block_tokens > common;
            let next = sequence.blocks.get(common).copied().filter(|_| filled);
            if next.is_none() {
                self.own(*sequence, planned * self.cache.block_tokens)?;
            } else {
                branches.entry(next).or_default().push(*sequence);
            }
        }
        for branch in branches.values() {
            self.share(branch, common, planned)?;
        }
        Ok(())
    }

    /// Plans what is a sequence's own, from a token on.
    fn own(&mut self, sequence: Sequence<'a>, from: usize) -> Result<()> {
        if sequence.len == 1 {
            self.ends.push(End { sequence, from });
            return Ok(());
        }
        let (row, len) = (number(sequence.row)?, number(sequence.len)?);
        let rows = self.rows_of(&[sequence])?;
        self.first.push(Part {
            rows,
            keys: Keys::Step(row, len),
            sight: Sight::Causal,
            first: true,
        });
        if from < sequence.start {
            let keys = self.cached(sequence.blocks, from, sequence.start)?;
            let rows = self.rows_of(&[sequence])?;
            self.further.push(Part {
                rows,
                keys,
                sight: Sight::All,
                first: false,
            });
        }
        Ok(())
    }

    /// Plans a sequence that is longer than the window.
    fn windowed(&mut self, sequence: Sequence<'a>, window: usize) -> Result<()> {
        let from = (sequence.start + 1).saturating_sub(window);
        if sequence.len == 1 {
            self.ends.push(End { sequence, from });
            return Ok(());
        }
        let keys = self.cached(sequence.blocks, from, sequence.end())?;
        let options = (Kind::Int64, self.cache.device);
        let queries =
            Tensor::f_arange_start(number(sequence.start)?, number(sequence.end())?, options)?.f_unsqueeze(1)?;
        let distance = queries.f_sub(&Tensor::f_arange_start(
            number(from)?,
            number(sequence.end())?,
            options,
        )?)?;
        let hidden = distance.f_lt(0)?.f_logical_or(&distance.f_ge(number(window)?)?)?;
        let sight = Sight::Mask(mask(&hidden)?);
        let rows = self.rows_of(&[sequence])?;
        self.first.push(Part {
            rows,
            keys,
            sight,
            first: true,
        });
        Ok(())
    }

    /// Plans the ends of sequences of one new token: short ones together, others in place.
    fn finish_ends(&mut self) -> Result<()> {
        let ends = std::mem::take(&mut self.ends);
        if self.cache.has_pages && !ends.is_empty() {
            return self.pages(&ends);
        }
        let mut together: BTreeMap<usize, Vec<End<'a>>> = BTreeMap::new();
        for end in ends {
            let blocks = end.sequence.end().div_ceil(self.cache.block_tokens) - end.from / self.cache.block_tokens;
            // Lengths of one call differ by a factor of two at most, so that half of what is copied counts at least.
            together.entry(blocks.next_power_of_two()).or_default().push(end);
        }
        for (blocks, ends) in together {
            let bytes = (blocks * self.cache.block_tokens) as u64 * self.cache.row_bytes;
            if ends.len() > 1 && (self.cache.device != Device::Cpu || bytes <= GATHER_BYTES) {
                self.each(&ends)?;
                continue;
            }
            for End { sequence, from } in ends {
                let keys = self.cached(sequence.blocks, from, sequence.end())?;
                let rows = self.rows_of(&[sequence])?;
                self.first.push(Part {
                    rows,
                    keys,
                    sight: Sight::All,
                    first: true,
                });
            }
        }
        Ok(())
    }

    /// All ends as one part, whose keys stay where they are.
    fn pages(&mut self, ends: &[End<'a>]) -> Result<()> {
        let block_tokens = self.cache.block_tokens;
        let span = |End { sequence, from }: &End<'a>| {
            let blocks = from / block_tokens..sequence.end().div_ceil(block_tokens);
            let blocks = sequence.blocks.get(blocks).unwrap_or_default();
            Span {
                blocks: blocks.iter().map(|&block| block as usize).collect(),
                skip: from % block_tokens,
                len: sequence.end() - from,
            }
        };
        let spans = ends.iter().map(span).collect();
        let sequences = ends.iter().map(|end| end.sequence).collect::<Vec<_>>();
        let rows = self.rows_of(&sequences)?;
        self.first.push(Part {
            rows,
            keys: Keys::Pages(Pages { block_tokens, spans }),
            sight: Sight::All,
            first: true,
        });
        Ok(())
    }

    fn each(&mut self, ends: &[End<'a>]) -> Result<()> {
        let block_tokens = self.cache.block_tokens;
        let spans = ends
            .iter()
            .map(|end| (end.from / block_tokens, end.sequence.end().div_ceil(block_tokens)));
        let width = spans.clone().map(|(from, to)| to - from).max().unwrap_or(0);
        let (mut blocks, mut bounds) = (
            Vec::with_capacity(ends.len() * width),
            Vec::with_capacity(2 * ends.len()),
        );
        for (end, (from, to)) in ends.iter().zip(spans) {
            // What is missing to the common width is filled with a block of the sequence itself.
            let own = end.sequence.blocks.get(from..to).unwrap_or_default();
            let filler = own.first().copied().unwrap_or_default();
            blocks.extend(
                own.iter()
                    .chain(std::iter::repeat_n(&filler, width - own.len()))
                    .map(|&block| i64::from(block)),
            );
            bounds.push(number(end.from - from * block_tokens)?);
            bounds.push(number(end.sequence.end() - from * block_tokens)?);
        }
        let sequences = ends.iter().map(|end| end.sequence).collect::<Vec<_>>();
        let positions = Tensor::f_arange(number(width * block_tokens)?, (Kind::Int64, self.cache.device))?;
        let bounds = self.list(&bounds)?.f_view([-1, 2])?;
        let hidden = positions.f_lt_tensor(&bounds.f_narrow(1, 0, 1)?)?;
        let hidden = hidden.f_logical_or(&positions.f_ge_tensor(&bounds.f_narrow(1, 1, 1)?)?)?;
        let sight = Sight::Each(mask(&hidden)?.f_unsqueeze(1)?.f_unsqueeze(1)?);
        let rows = self.rows_of(&sequences)?;
        let keys = Keys::Each(self.list(&blocks)?);
        self.first.push(Part {
            rows,
            keys,
            sight,
            first: true,
        });
        Ok(())
    }

    /// Keys in the cache from a token to another.
    fn cached(&self, blocks: &[u32], from: usize, to: usize) -> Result<Keys> {
        let (first, last) = (from / self.cache.block_tokens, to.div_ceil(self.cache.block_tokens));
        let blocks = blocks.get(first..last).unwrap_or_default();
        let follow = blocks
            .windows(2)
            .all(|pair| matches!(pair, [block, next] if block + 1 == *next));
        let (skip, len) = (number(from % self.cache.block_tokens)?, number(to - from)?);
        if follow {
            let block = i64::from(blocks.first().copied().unwrap_or_default());
            return Ok(Keys::Slots(block * number(self.cache.block_tokens)? + skip, len));
        }
        let blocks = blocks.iter().map(|&block| i64::from(block)).collect::<Vec<_>>();
        Ok(Keys::Blocks {
            blocks: self.list(&blocks)?,
            skip,
            len,
        })
    }

    /// The rows of some sequences.
    fn rows_of(&self, sequences: &[Sequence<'a>]) -> Result<Rows> {
        let mut rows = Vec::new();
        for sequence in sequences {
            for row in sequence.row..sequence.row + sequence.len {
                rows.push(number(row)?);
            }
        }
        let follow = rows
            .windows(2)
            .all(|pair| matches!(pair, [row, next] if row + 1 == *next));
        Ok(match rows.first() {
            Some(_) if follow && rows.len() == self.rows => Rows::All,
            Some(&row) if follow => Rows::Run(row, number(rows.len())?),
            _ => Rows::List(self.list(&rows)?),
        })
    }

    fn list(&self, numbers: &[i64]) -> Result<Tensor> {
        Ok(Tensor::f_from_slice(numbers)?.f_to_device(self.cache.device)?)
    }
}

/// An additive mask.
fn mask(hidden: &Tensor) -> Result<Tensor> {
    let mut mask = Tensor::f_zeros(hidden.size(), (Kind::Float, hidden.device()))?;
    Ok(mask.f_masked_fill_(hidden, f64::NEG_INFINITY)?)
}

#[cfg(test)]
mod tests;
