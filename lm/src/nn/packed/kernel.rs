//! The arithmetic, with AVX2: the sums of some rows and panels are held in registers.

use std::arch::is_x86_feature_detected;
use std::arch::x86_64::{
    __m256, _MM_HINT_T1, _mm_prefetch, _mm256_broadcast_ss, _mm256_fmadd_ps, _mm256_loadu_ps, _mm256_setzero_ps,
    _mm256_storeu_ps,
};
use std::ops::Range;

use super::PANEL;
use super::product::{Origin, Product};

/// Numbers of a register.
const LANES: usize = 8;
/// Columns of a panel.
const WIDTH: usize = PANEL as usize;
/// Rows of one panel that are computed together: two registers for the sums of each, two for the panel and one for an input.
const ROWS: usize = 6;
/// Bytes of the numbers that one input has in a panel.
const LINE: usize = WIDTH * size_of::<f32>();

/// Whether this processor can compute it.
pub(super) fn is_available() -> bool {
    is_x86_feature_detected!("avx2") && is_x86_feature_detected!("fma")
}

/// Lines of a panel that are fetched ahead where two are read side by side.
const AHEAD: usize = 32;

/// Panels that are read side by side for so many rows. Few rows take as long as reading the panels does, and one core reads several
/// streams faster than one.
pub(super) fn panels_at_once(rows: usize) -> usize {
    match rows {
        0..=2 => 4,
        3..=4 => 2,
        _ => 1,
    }
}

/// Computes some rows of some panels of a product.
///
/// # Safety
///
/// The processor has AVX2 and FMA, the panels and the rows are within the product, and nobody else writes them.
pub(super) unsafe fn compute(product: &Product<'_>, panels: Range<usize>, rows: Range<usize>) {
    let most = panels_at_once(rows.len());
    let mut panel = panels.start;
    while panel < panels.end {
        let wide = panels.end - panel >= most;
        // SAFETY: what is asked for is a part of what the caller asks for.
        unsafe {
            match (rows.len(), wide) {
                (1, true) => Tile::new(product, panel, rows.start).compute::<1, 4>(),
                (2, true) => Tile::new(product, panel, rows.start).compute::<2, 4>(),
                (3, true) => Tile::new(product, panel, rows.start).compute::<3, 2>(),
                (4, true) => Tile::new(product, panel, rows.start).compute::<4, 2>(),
                _ => one_panel(product, panel, rows.clone()),
            }
        }
        panel += if wide { most } else { 1 };
    }
}

/// Computes some rows of one panel.
///
/// # Safety
///
/// That of [`compute`].
unsafe fn one_panel(product: &Product<'_>, panel: usize, rows: Range<usize>) {
    let groups = rows.len().div_ceil(ROWS);
    let bytes = product.inputs * LINE;
    let mut row = rows.start;
    for group in 0..groups {
        let count = (rows.end - row).div_ceil(groups - group);
        // SAFETY: as the caller says.
        unsafe {
            let tile = Tile {
                // The groups of rows fetch the panel that comes next, each its share.
                ahead: bytes + group * bytes / groups,
                ahead_step: LINE / groups,
                ..Tile::new(product, panel, row)
            };
            match count {
                1 => tile.compute::<1, 1>(),
                2 => tile.compute::<2, 1>(),
                3 => tile.compute::<3, 1>(),
                4 => tile.compute::<4, 1>(),
                5 => tile.compute::<5, 1>(),
                _ => tile.compute::<ROWS, 1>(),
            }
        }
        row += count;
    }
}

/// Some rows of some panels.
struct Tile {
    rows: *const f32,
    row_stride: usize,
    inputs: usize,
    /// The first panel; the others follow it.
    panel: *const f32,
    out: *mut f32,
    out_stride: usize,
    origin: Origin,
    /// How many bytes ahead of each panel is fetched.
    ahead: usize,
    /// Bytes that are fetched with each input.
    ahead_step: usize,
}

impl Tile {
    /// From a row and a panel on.
    ///
    /// # Safety
    ///
    /// Both are within the product.
    unsafe fn new(product: &Product<'_>, panel: usize, row: usize) -> Self {
        // SAFETY: as the caller says.
        unsafe {
            Self {
                rows: product.rows.add(row * product.row_stride),
                row_stride: product.row_stride,
                inputs: product.inputs,
                panel: product.panels.add(panel * product.inputs * WIDTH),
                out: product.out.add(row * product.out_stride + panel * WIDTH),
                out_stride: product.out_stride,
                origin: match product.origin {
                    Origin::Bias(bias) => Origin::Bias(bias.add(panel * WIDTH)),
                    origin => origin,
                },
                ahead: AHEAD * LINE,
                ahead_step: LINE,
            }
        }
    }

    /// Computes `R` rows of `P` panels.
    ///
    /// # Safety
    ///
    /// The processor has AVX2 and FMA, and the pointers are good for so many rows and panels.
    #[target_feature(enable = "avx2,fma")]
    unsafe fn compute<const R: usize, const P: usize>(&self) {
        // SAFETY: the loops stay within `R` rows, `P` panels of `inputs` lines and their columns. What is fetched ahead may lie beyond;
        // fetching has no effect where nothing is.
        unsafe {
            let mut sums = self.begin::<R, P>();
            let (stride, step) = (self.row_stride, self.ahead_step);
            let mut number = self.rows;
            let mut lines = [self.panel; P];
            for (panel, line) in lines.iter_mut().enumerate() {
                *line = self.panel.add(panel * self.inputs * WIDTH);
            }
            let mut ahead = lines.map(|line| line.wrapping_byte_add(self.ahead));
            for _ in 0..self.inputs {
                for panel in 0..P {
                    let left = _mm256_loadu_ps(lines[panel]);
                    let right = _mm256_loadu_ps(lines[panel].add(LANES));
                    lines[panel] = lines[panel].add(WIDTH);
                    // Four streams are fetched by the processor itself.
                    if P < 4 {
                        _mm_prefetch::<_MM_HINT_T1>(ahead[panel].cast());
                        ahead[panel] = ahead[panel].wrapping_byte_add(step);
                    }
                    for (row, sums) in sums.iter_mut().enumerate() {
                        let number = _mm256_broadcast_ss(&*number.add(row * stride));
                        sums[panel][0] = _mm256_fmadd_ps(number, left, sums[panel][0]);
                        sums[panel][1] = _mm256_fmadd_ps(number, right, sums[panel][1]);
                    }
                }
                number = number.add(1);
            }
            for (row, sums) in sums.iter().enumerate() {
                for (panel, sum) in sums.iter().enumerate() {
                    let out = self.out.add(row * self.out_stride + panel * WIDTH);
                    _mm256_storeu_ps(out, sum[0]);
                    _mm256_storeu_ps(out.add(LANES), sum[1]);
                }
            }
        }
    }

    /// What the sums begin with.
    ///
    /// # Safety
    ///
    /// That of [`Tile::compute`].
    #[target_feature(enable = "avx2,fma")]
    #[inline]
    unsafe fn begin<const R: usize, const P: usize>(&self) -> [[[__m256; 2]; P]; R] {
        let mut sums = [[[_mm256_setzero_ps(); 2]; P]; R];
        for (row, sums) in sums.iter_mut().enumerate() {
            for (panel, sum) in sums.iter_mut().enumerate() {
                // SAFETY: as the caller says.
                unsafe {
                    let from = match self.origin {
                        Origin::Zero => continue,
                        Origin::Bias(bias) => bias.add(panel * WIDTH),
                        Origin::Out => self.out.add(row * self.out_stride + panel * WIDTH).cast_const(),
                    };
                    *sum = [_mm256_loadu_ps(from), _mm256_loadu_ps(from.add(LANES))];
                }
            }
        }
        sums
    }
}
