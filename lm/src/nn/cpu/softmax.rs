//! Softmax of a row, with AVX2.

use std::arch::x86_64::{
    __m256, _MM_FROUND_NO_EXC, _MM_FROUND_TO_NEAREST_INT, _mm_add_ps, _mm_add_ss, _mm_cvtss_f32, _mm_movehl_ps,
    _mm_shuffle_ps, _mm256_add_epi32, _mm256_add_ps, _mm256_castps256_ps128, _mm256_castsi256_ps, _mm256_cvtps_epi32,
    _mm256_extractf128_ps, _mm256_fmadd_ps, _mm256_fnmadd_ps, _mm256_loadu_ps, _mm256_max_ps, _mm256_mul_ps,
    _mm256_round_ps, _mm256_set1_epi32, _mm256_set1_ps, _mm256_setzero_ps, _mm256_slli_epi32, _mm256_storeu_ps,
    _mm256_sub_ps,
};

use super::tile::LANES;

/// Where `exp` is taken as 0: below, it is no normal number of float32.
const LOWEST: f32 = -87.0;

/// Sum of the eight numbers of a register, in one order.
#[target_feature(enable = "avx2,fma")]
#[inline]
pub(super) fn total(register: __m256) -> f32 {
    let halves = _mm_add_ps(_mm256_castps256_ps128(register), _mm256_extractf128_ps::<1>(register));
    let pairs = _mm_add_ps(halves, _mm_movehl_ps(halves, halves));
    _mm_cvtss_f32(_mm_add_ss(pairs, _mm_shuffle_ps::<1>(pairs, pairs)))
}

/// `exp` of numbers that are not above 0, to about 1e-7 of its value: `2^n * exp(r)` with `r` at most half of `ln 2`.
#[target_feature(enable = "avx2,fma")]
#[inline]
fn exp(x: __m256) -> __m256 {
    // In this order, what is no number stays none.
    let x = _mm256_max_ps(_mm256_set1_ps(LOWEST), x);
    let n = _mm256_round_ps::<{ _MM_FROUND_TO_NEAREST_INT | _MM_FROUND_NO_EXC }>(_mm256_mul_ps(
        x,
        _mm256_set1_ps(std::f32::consts::LOG2_E),
    ));
    // ln 2 in two parts, of which the first has few digits.
    let r = _mm256_fnmadd_ps(n, _mm256_set1_ps(0.693_359_4), x);
    let r = _mm256_fnmadd_ps(n, _mm256_set1_ps(-2.121_944_4e-4), r);
    // Taylor's series: the next term is below 1e-8.
    let mut sum = _mm256_set1_ps(1.0 / 5040.0);
    for factor in [1.0 / 720.0, 1.0 / 120.0, 1.0 / 24.0, 1.0 / 6.0, 0.5, 1.0, 1.0] {
        sum = _mm256_fmadd_ps(sum, r, _mm256_set1_ps(factor));
    }
    let power = _mm256_slli_epi32::<23>(_mm256_add_epi32(_mm256_cvtps_epi32(n), _mm256_set1_epi32(127)));
    _mm256_mul_ps(sum, _mm256_castsi256_ps(power))
}

/// The largest number.
#[target_feature(enable = "avx2,fma")]
fn largest(numbers: &[f32]) -> f32 {
    let mut largest = _mm256_set1_ps(f32::NEG_INFINITY);
    let mut chunks = numbers.chunks_exact(LANES);
    for chunk in &mut chunks {
        // SAFETY: a chunk has eight numbers.
        largest = _mm256_max_ps(largest, unsafe { _mm256_loadu_ps(chunk.as_ptr()) });
    }
    let mut lanes = [0.0_f32; LANES];
    // SAFETY: there is place for eight numbers.
    unsafe { _mm256_storeu_ps(lanes.as_mut_ptr(), largest) };
    lanes
        .iter()
        .chain(chunks.remainder())
        .copied()
        .fold(f32::NEG_INFINITY, f32::max)
}

/// Replaces scores by `exp(scale * (score - largest))`. Gives the sum of these, and the log-sum-exp of the scaled scores. `scale` is
/// above 0.
#[target_feature(enable = "avx2,fma")]
pub(super) fn softmax(scores: &mut [f32], scale: f32) -> (f32, f32) {
    let largest = largest(scores);
    let (whole, rest) = scores.split_at_mut(scores.len() / LANES * LANES);
    let (shift, factor) = (_mm256_set1_ps(largest), _mm256_set1_ps(scale));
    let mut sum = _mm256_setzero_ps();
    for chunk in whole.chunks_exact_mut(LANES) {
        // SAFETY: a chunk has eight numbers.
        unsafe {
            let scores = _mm256_loadu_ps(chunk.as_ptr());
            let weights = exp(_mm256_mul_ps(_mm256_sub_ps(scores, shift), factor));
            _mm256_storeu_ps(chunk.as_mut_ptr(), weights);
            sum = _mm256_add_ps(sum, weights);
        }
    }
    let mut sum = total(sum);
    if !rest.is_empty() {
        let mut padded = [f32::NEG_INFINITY; LANES];
        for (place, score) in padded.iter_mut().zip(rest.iter()) {
            *place = (score - largest) * scale;
        }
        // SAFETY: there are eight numbers, and place for as many.
        unsafe {
            let weights = exp(_mm256_loadu_ps(padded.as_ptr()));
            _mm256_storeu_ps(padded.as_mut_ptr(), weights);
        }
        for (score, weight) in rest.iter_mut().zip(padded) {
            *score = weight;
            sum += weight;
        }
    }
    (sum, largest * scale + sum.ln())
}

#[cfg(test)]
mod tests {
    use super::softmax;
    use crate::nn::cpu::has_kernels;

    #[test]
    fn weights_are_those_of_double_precision() {
        if !has_kernels() {
            return;
        }
        for len in [1, 7, 8, 9, 40, 1003] {
            let scores: Vec<f32> = (0..len)
                .map(|index| ((index * 7919) % 1009) as f32 * 0.17 - 60.0)
                .collect();
            let largest = scores.iter().copied().fold(f32::MIN, f32::max);
            let exact: Vec<f64> = scores
                .iter()
                .map(|score| ((f64::from(*score) - f64::from(largest)) * 0.125).exp())
                .collect();
            let mut weights = scores;
            // SAFETY: the processor can compute it, as was asked above.
            let (sum, log) = unsafe { softmax(&mut weights, 0.125) };
            for (weight, exact) in weights.iter().zip(&exact) {
                // The argument is rounded, which counts the more the larger it is.
                let tolerance = 1.5e-7 * (1.0 - exact.ln());
                assert!(
                    (f64::from(*weight) - exact).abs() <= tolerance * exact,
                    "{weight} {exact}"
                );
            }
            let total: f64 = exact.iter().sum();
            assert!((f64::from(sum) - total).abs() < 1e-6 * total);
            assert!((f64::from(log) - (f64::from(largest) * 0.125 + total.ln())).abs() < 1e-5);
        }
    }

    #[test]
    fn far_scores_have_no_weight() {
        if !has_kernels() {
            return;
        }
        let mut scores = vec![0.0, -1e5, f32::NEG_INFINITY];
        // SAFETY: the processor can compute it, as was asked above.
        let (sum, _) = unsafe { softmax(&mut scores, 1.0) };
        assert!(scores[1] < 1e-37 && scores[2] < 1e-37);
        assert_eq!(sum, 1.0);
    }
}
