//! Attention of single tokens to keys of their own, where these lie in the cache.

// Without kernels nothing attends here.
#![cfg_attr(not(cpu_kernels), allow(dead_code))]

use tch::{Device, Kind, Tensor};

use super::super::{PANEL, is_plain};
use crate::error::{LmError, Result};

/// Tokens of one sequence in the cache.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Span {
    /// Blocks that hold them, in order.
    pub(crate) blocks: Vec<usize>,
    /// Tokens of the first block that are before them.
    pub(crate) skip: usize,
    /// Tokens.
    pub(crate) len: usize,
}

/// What each of some rows sees.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Pages {
    /// Tokens of a block.
    pub(crate) block_tokens: usize,
    /// A span for each row.
    pub(crate) spans: Vec<Span>,
}

/// Attention of queries `[rows, key heads, group, width]` to the keys and values of a layer, `[slots, 2 * key heads * width]`, of which
/// each row sees a span. Gives what [`attend`](super::attend) gives.
///
/// # Errors
///
/// Sizes, number formats, devices or strides do not fit, or this machine has no kernel.
pub(crate) fn attend_pages(queries: &Tensor, cached: &Tensor, pages: &Pages, scale: f64) -> Result<(Tensor, Tensor)> {
    let (rows, key_heads, group, width) = queries.size4()?;
    let slots = usize::try_from(cached.size2()?.0).unwrap_or_default();
    let is_there = |span: &Span| {
        span.len > 0
            && span.skip + span.len <= span.blocks.len() * pages.block_tokens
            && span
                .blocks
                .iter()
                .all(|block| (block + 1) * pages.block_tokens <= slots)
    };
    let fits = is_plain(queries)
        && queries.stride().last() == Some(&1)
        && is_plain(cached)
        && cached.is_contiguous()
        && cached.size2()?.1 == 2 * key_heads * width
        && width % PANEL == 0
        && scale > 0.0
        && i64::try_from(pages.spans.len()).is_ok_and(|spans| spans == rows)
        && pages.spans.iter().all(is_there);
    if !fits {
        return Err(LmError::Model(format!(
            "queries {:?}, a cache {:?} and {} spans make no attention",
            queries.size(),
            cached.size(),
            pages.spans.len()
        )));
    }
    let output = Tensor::f_empty([rows, key_heads, group, width], (Kind::Float, Device::Cpu))?;
    let sums = Tensor::f_empty([rows, key_heads, group], (Kind::Float, Device::Cpu))?;
    #[cfg(cpu_kernels)]
    walk::compute(queries, cached, pages, scale as f32, &output, &sums)?;
    Ok((output, sums))
}

/// The work: one head of keys of one row at a time.
#[cfg(cpu_kernels)]
mod walk {
    use std::arch::x86_64::{
        _mm256_add_ps, _mm256_fmadd_ps, _mm256_loadu_ps, _mm256_set1_ps, _mm256_setzero_ps, _mm256_storeu_ps,
    };
    use std::cell::RefCell;

    use tch::Tensor;

    use super::super::super::product::size;
    use super::super::super::softmax::{softmax, total};
    use super::super::super::threads;
    use super::super::super::tile::LANES;
    use super::super::place::Place;
    use super::{Pages, Span};
    use crate::error::Result;

    /// Multiplications below which waking other threads takes longer than they save.
    const WORTH_SHARING: usize = 1 << 19;

    thread_local! {
        /// Where the tokens of a row are, and the scores of a head.
        static SCRATCH: RefCell<(Vec<usize>, Vec<f32>)> = const { RefCell::new((Vec::new(), Vec::new())) };
    }

    /// All of it.
    struct Walk<'a> {
        queries: Place,
        output: Place,
        sums: Place,
        /// Keys of all heads of a token, then its values.
        cached: *const f32,
        key_heads: usize,
        group: usize,
        width: usize,
        pages: &'a Pages,
        scale: f32,
    }

    /// What values are weighted with.
    #[derive(Clone, Copy)]
    struct Weights<'a> {
        /// Where the tokens are.
        places: &'a [usize],
        /// A number for each.
        scores: &'a [f32],
        /// What each is multiplied with.
        share: f32,
    }

    // SAFETY: threads only read queries and cache, and each writes another head of the output.
    unsafe impl Sync for Walk<'_> {}

    /// Fills the output and the log-sum-exp. The tensors fit each other, and the spans the cache.
    pub(super) fn compute(
        queries: &Tensor,
        cached: &Tensor,
        pages: &Pages,
        scale: f32,
        output: &Tensor,
        sums: &Tensor,
    ) -> Result<()> {
        let (_, key_heads, group, width) = queries.size4()?;
        let walk = Walk {
            queries: Place::new(queries)?,
            output: Place::new(output)?,
            sums: Place::new(sums)?,
            cached: cached.data_ptr().cast_const().cast(),
            key_heads: size(key_heads)?,
            group: size(group)?,
            width: size(width)?,
            pages,
            scale,
        };
        let tokens: usize = pages.spans.iter().map(|span| span.len).sum();
        let amount = tokens * walk.key_heads * walk.group * walk.width;
        let threads = if amount < WORTH_SHARING { 1 } else { threads::count() };
        threads::share_out(threads, pages.spans.len() * walk.key_heads, &|part| {
            let (row, head) = (part / walk.key_heads, part % walk.key_heads);
            if let Some(span) = pages.spans.get(row) {
                // SAFETY: there are kernels, as was checked with the tensors, and each part is given once.
                unsafe { walk.head(row, head, span) }
            }
        });
        Ok(())
    }

    impl Walk<'_> {
        /// Computes one head of keys of a row.
        ///
        /// # Safety
        ///
        /// The processor has AVX2 and FMA, and nobody else computes it.
        unsafe fn head(&self, row: usize, head: usize, span: &Span) {
            SCRATCH.with_borrow_mut(|(places, scores)| {
                self.find(span, places);
                scores.resize(self.group * span.len, 0.0);
                // SAFETY: as the caller says.
                unsafe {
                    self.score(row, head, places, scores);
                    for (member, scores) in scores.chunks_exact_mut(span.len).enumerate() {
                        let (sum, log) = softmax(scores, self.scale);
                        *self.sums.at(row, head, member) = log;
                        let share = 1.0 / sum;
                        for first in (0..self.width).step_by(2 * LANES) {
                            let weights = Weights { places, scores, share };
                            self.mix(row, head, member, weights, first);
                        }
                    }
                }
            });
        }

        /// Numbers from the beginning of the cache to the keys of each token; its values are `key_heads * width` further.
        fn find(&self, span: &Span, places: &mut Vec<usize>) {
            let block_tokens = self.pages.block_tokens;
            places.clear();
            places.extend((span.skip..span.skip + span.len).map(|at| {
                let block = span.blocks.get(at / block_tokens).copied().unwrap_or_default();
                (block * block_tokens + at % block_tokens) * 2 * self.key_heads * self.width
            }));
        }

        /// Products of the queries of a group with each key.
        ///
        /// # Safety
        ///
        /// That of [`Walk::head`].
        #[target_feature(enable = "avx2,fma")]
        unsafe fn score(&self, row: usize, head: usize, places: &[usize], scores: &mut [f32]) {
            for (token, place) in places.iter().enumerate() {
                let key = self.cached.wrapping_add(place + head * self.width);
                for member in 0..self.group {
                    // SAFETY: key and query have `width` numbers, a multiple of two registers.
                    let product = unsafe {
                        let query = self.queries.at(row, head, member).cast_const();
                        let mut sums = [_mm256_setzero_ps(); 2];
                        for at in (0..self.width).step_by(2 * LANES) {
                            for (index, sum) in sums.iter_mut().enumerate() {
                                let at = at + index * LANES;
                                *sum =
                                    _mm256_fmadd_ps(_mm256_loadu_ps(query.add(at)), _mm256_loadu_ps(key.add(at)), *sum);
                            }
                        }
                        total(_mm256_add_ps(sums[0], sums[1]))
                    };
                    if let Some(score) = scores.get_mut(member * places.len() + token) {
                        *score = product;
                    }
                }
            }
        }

        /// Sums two registers of the values by weight.
        ///
        /// # Safety
        ///
        /// That of [`Walk::head`].
        #[target_feature(enable = "avx2,fma")]
        unsafe fn mix(&self, row: usize, head: usize, member: usize, weights: Weights<'_>, first: usize) {
            // SAFETY: values and output have `width` numbers, of which these are sixteen.
            unsafe {
                let mut sums = [_mm256_setzero_ps(); 2];
                let values = self.cached.add((self.key_heads + head) * self.width + first);
                for (place, score) in weights.places.iter().zip(weights.scores) {
                    let value = values.add(*place);
                    let weight = _mm256_set1_ps(*score * weights.share);
                    for (index, sum) in sums.iter_mut().enumerate() {
                        *sum = _mm256_fmadd_ps(weight, _mm256_loadu_ps(value.add(index * LANES)), *sum);
                    }
                }
                let output = self.output.at(row, head, member).add(first);
                for (index, sum) in sums.iter().enumerate() {
                    _mm256_storeu_ps(output.add(index * LANES), *sum);
                }
            }
        }
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]

    use tch::{Device, Kind, Tensor};

    use super::{Pages, Span, attend_pages};
    use crate::nn::cpu::is_available;

    const CPU: (Kind, Device) = (Kind::Float, Device::Cpu);

    fn span(blocks: &[usize], skip: usize, len: usize) -> Span {
        Span {
            blocks: blocks.to_vec(),
            skip,
            len,
        }
    }

    #[test]
    fn rows_see_their_spans() {
        if !is_available(Kind::Float, Device::Cpu) {
            return;
        }
        for (key_heads, group, width) in [(1, 1, 16), (3, 3, 64), (2, 4, 48)] {
            let cached = Tensor::randn([40, 2 * key_heads * width], CPU);
            let beside = Tensor::randn([3, key_heads * group + 2, width], CPU);
            let queries = beside.narrow(1, 0, key_heads * group).unflatten(1, [key_heads, group]);
            let pages = Pages {
                block_tokens: 4,
                spans: vec![span(&[7, 2, 9], 3, 9), span(&[0], 0, 1), span(&[5, 4, 3, 1], 1, 13)],
            };
            let (output, sums) = attend_pages(&queries, &cached, &pages, 0.3).unwrap();
            for (row, span) in pages.spans.iter().enumerate() {
                let slots: Vec<i64> = (span.skip..span.skip + span.len)
                    .map(|at| (span.blocks[at / 4] * 4 + at % 4) as i64)
                    .collect();
                // [key heads, tokens, width] in double precision
                let seen = cached
                    .index_select(0, &Tensor::from_slice(&slots))
                    .to_kind(Kind::Double)
                    .view([-1, 2, key_heads, width]);
                let part = |index: i64| seen.select(1, index).transpose(0, 1);
                let query = queries.select(0, row as i64).to_kind(Kind::Double);
                let scores = query.matmul(&part(0).transpose(1, 2)) * 0.3;
                let exact = scores.softmax(-1, Kind::Double).matmul(&part(1));
                let found = output.select(0, row as i64);
                assert!((found - exact).abs().max().double_value(&[]) < 2e-6);
                let exact = scores.logsumexp([-1].as_slice(), false);
                assert!((sums.select(0, row as i64) - exact).abs().max().double_value(&[]) < 5e-6);
            }
        }
    }

    #[test]
    fn spans_beyond_the_cache_are_refused() {
        if !is_available(Kind::Float, Device::Cpu) {
            return;
        }
        let (queries, cached) = (Tensor::zeros([1, 1, 1, 16], CPU), Tensor::zeros([8, 32], CPU));
        for (span, is_right) in [
            (span(&[1], 0, 4), true),
            (span(&[2], 0, 1), false),
            (span(&[1], 1, 4), false),
            (span(&[1], 0, 0), false),
        ] {
            let pages = Pages {
                block_tokens: 4,
                spans: vec![span],
            };
            assert_eq!(attend_pages(&queries, &cached, &pages, 1.0).is_ok(), is_right);
        }
    }
}
