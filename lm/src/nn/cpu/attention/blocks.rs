//! Attention, cut into blocks of rows of one head of keys each.

use std::cell::RefCell;
use std::ops::Range;

use tch::Tensor;

use super::super::product::Origin;
use super::super::product::size;
use super::super::softmax::softmax;
use super::super::threads;
use super::super::tile::{ROWS, Strip, WIDTH};
use super::Seen;
use super::place::Place;
use crate::error::Result;

/// Bytes of scores of a block, so that they stay in the cache of a core.
const SCORE_BYTES: usize = 192 << 10;
/// Blocks that each thread gets at least where there is enough to do.
const PARTS: usize = 4;
/// Multiplications below which waking other threads takes longer than they save.
const WORTH_SHARING: usize = 1 << 20;

thread_local! {
    /// Scores of a block, and sixteen keys as a panel.
    static SCRATCH: RefCell<(Vec<f32>, Vec<f32>)> = const { RefCell::new((Vec::new(), Vec::new())) };
}

/// All of it.
struct Attention {
    queries: Place,
    keys: Place,
    values: Place,
    output: Place,
    sums: Place,
    tokens: usize,
    group: usize,
    width: usize,
    seen: Seen,
    scale: f32,
    /// Rows of a block, a multiple of what the kernel computes together.
    block: usize,
}

// SAFETY: threads only read queries, keys and values, and each writes other rows of the output.
unsafe impl Sync for Attention {}

/// Fills the output and the log-sum-exp. The tensors fit each other.
pub(super) fn compute(
    queries: &Tensor,
    keys: &Tensor,
    values: &Tensor,
    seen: Seen,
    scale: f32,
    output: &Tensor,
    sums: &Tensor,
) -> Result<()> {
    let (rows, key_heads, group, width) = queries.size4()?;
    let (rows, key_heads, group) = (size(rows)?, size(key_heads)?, size(group)?);
    let (tokens, width) = (size(keys.size3()?.0)?, size(width)?);
    let amount = rows * tokens * key_heads * group * width;
    let threads = if amount < WORTH_SHARING { 1 } else { threads::count() };
    let by_cache = SCORE_BYTES / size_of::<f32>() / (group * tokens).max(1);
    let by_threads = (rows * key_heads).div_ceil(threads * PARTS);
    let attention = Attention {
        queries: Place::new(queries)?,
        keys: Place::new(keys)?,
        values: Place::new(values)?,
        output: Place::new(output)?,
        sums: Place::new(sums)?,
        tokens,
        group,
        width,
        seen,
        scale,
        block: by_cache.min(by_threads).max(1).next_multiple_of(ROWS),
    };
    let blocks = rows.div_ceil(attention.block);
    threads::share_out(threads, blocks * key_heads, &|part| {
        // The last blocks see most keys: what takes longest begins first.
        let (block, head) = (blocks - 1 - part / key_heads, part % key_heads);
        let from = block * attention.block;
        // SAFETY: there are kernels, as was checked with the tensors, and each part is given once.
        unsafe { attention.block(from..(from + attention.block).min(rows), head) }
    });
    Ok(())
}

impl Attention {
    /// Computes some rows of one head of keys.
    ///
    /// # Safety
    ///
    /// The processor has AVX2 and FMA, and nobody else computes them.
    unsafe fn block(&self, rows: Range<usize>, head: usize) {
        let tokens = match self.seen {
            Seen::All => self.tokens,
            Seen::UpToItself => rows.end,
        };
        let stride = tokens.next_multiple_of(WIDTH);
        SCRATCH.with_borrow_mut(|(scores, panel)| {
            let len = rows.len() * self.group * stride;
            if scores.len() < len {
                scores.resize(len, 0.0);
            }
            panel.resize(self.width * WIDTH, 0.0);
            // SAFETY: as the caller says.
            unsafe {
                self.score(&rows, head, tokens, scores, panel);
                for (index, scores) in scores
                    .chunks_exact_mut(stride)
                    .take(rows.len() * self.group)
                    .enumerate()
                {
                    let (row, member) = (index % rows.len(), index / rows.len());
                    let seen = match self.seen {
                        Seen::All => tokens,
                        Seen::UpToItself => rows.start + row + 1,
                    };
                    self.weigh(rows.start + row, head, member, scores, seen);
                }
                self.mix(&rows, head, tokens, scores);
            }
        });
    }

    /// Products of queries and keys: for each head of the group and each row a line of scores.
    ///
    /// # Safety
    ///
    /// That of [`Attention::block`].
    unsafe fn score(&self, rows: &Range<usize>, head: usize, tokens: usize, scores: &mut [f32], panel: &mut [f32]) {
        let stride = tokens.next_multiple_of(WIDTH);
        for first in (0..tokens).step_by(WIDTH) {
            let count = WIDTH.min(tokens - first);
            for key in 0..count {
                // SAFETY: the key is there, with so many numbers.
                let key_numbers = unsafe { std::slice::from_raw_parts(self.keys.at(first + key, head, 0), self.width) };
                for (line, number) in panel.chunks_exact_mut(WIDTH).zip(key_numbers) {
                    if let Some(place) = line.get_mut(key) {
                        *place = *number;
                    }
                }
            }
            for member in 0..self.group {
                // SAFETY: the queries are there, and the scores have place for each row of each head.
                unsafe {
                    let strip = Strip {
                        rows: self.queries.at(rows.start, head, member),
                        row_stride: self.queries.row,
                        inputs: self.width,
                        panels: panel.as_ptr(),
                        panel_stride: 0,
                        line_stride: WIDTH,
                        out: scores.as_mut_ptr().add(member * rows.len() * stride + first),
                        out_stride: stride,
                        origin: Origin::Zero,
                    };
                    strip.compute(rows.len(), 1);
                }
            }
        }
    }

    /// Makes weights of the scores of a row, of which it sees the first ones.
    ///
    /// # Safety
    ///
    /// That of [`Attention::block`].
    unsafe fn weigh(&self, row: usize, head: usize, member: usize, scores: &mut [f32], seen: usize) {
        let (seen, hidden) = scores.split_at_mut(seen);
        // SAFETY: the processor can, and the row is there.
        unsafe {
            let (sum, log) = softmax(seen, self.scale);
            let share = 1.0 / sum;
            seen.iter_mut().for_each(|weight| *weight *= share);
            *self.sums.at(row, head, member) = log;
        }
        hidden.fill(0.0);
    }

    /// Sums of values by weight.
    ///
    /// # Safety
    ///
    /// That of [`Attention::block`].
    unsafe fn mix(&self, rows: &Range<usize>, head: usize, tokens: usize, weights: &[f32]) {
        let stride = tokens.next_multiple_of(WIDTH);
        for member in 0..self.group {
            // SAFETY: values and output are there, and there are weights for each row of each head.
            unsafe {
                let strip = Strip {
                    rows: weights.as_ptr().add(member * rows.len() * stride),
                    row_stride: stride,
                    inputs: tokens,
                    panels: self.values.at(0, head, 0),
                    panel_stride: WIDTH,
                    line_stride: self.values.row,
                    out: self.output.at(rows.start, head, member),
                    out_stride: self.output.row,
                    origin: Origin::Zero,
                };
                strip.compute(rows.len(), self.width / WIDTH);
            }
        }
    }
}
