//! The arithmetic of products, with AVX2: the sums of some rows and panels are held in registers.

use std::arch::is_x86_feature_detected;
use std::arch::x86_64::{
    __m256, _MM_HINT_T1, _mm_prefetch, _mm256_broadcast_ss, _mm256_fmadd_ps, _mm256_loadu_ps, _mm256_setzero_ps,
    _mm256_storeu_ps,
};

use super::PANEL;
use super::product::Origin;

/// Columns of a panel.
pub(super) const WIDTH: usize = PANEL as usize;
/// Numbers of a register.
pub(super) const LANES: usize = 8;
/// Rows of one panel that are computed together: two registers for the sums of each, two for the panel and one for an input.
pub(super) const ROWS: usize = 6;
/// Bytes that one input has in a panel.
const LINE: usize = WIDTH * size_of::<f32>();
/// Lines that are fetched ahead of each panel where two are read side by side.
const AHEAD: usize = 32;

/// Whether this processor can compute it.
pub(super) fn is_available() -> bool {
    is_x86_feature_detected!("avx2") && is_x86_feature_detected!("fma")
}

/// Panels that are read side by side for so many rows. Few rows take as long as reading the panels does, and one core reads several
/// streams faster than one.
pub(super) fn panels_at_once(rows: usize) -> usize {
    match rows {
        0..=2 => 4,
        3..=4 => 2,
        _ => 1,
    }
}

/// Rows that are multiplied with panels.
#[derive(Debug, Clone, Copy)]
pub(super) struct Strip {
    /// The first row; the numbers of a row follow one another.
    pub(super) rows: *const f32,
    /// Numbers from a row to the next.
    pub(super) row_stride: usize,
    /// Numbers of a row.
    pub(super) inputs: usize,
    /// The first panel: a line of `WIDTH` numbers for each input.
    pub(super) panels: *const f32,
    /// Numbers from a panel to the next.
    pub(super) panel_stride: usize,
    /// Numbers from a line to the next.
    pub(super) line_stride: usize,
    /// Where the first row and panel go; panels follow one another in a row.
    pub(super) out: *mut f32,
    /// Numbers from a row of the output to the next.
    pub(super) out_stride: usize,
    /// What is added to.
    pub(super) origin: Origin,
}

impl Strip {
    /// From another row and panel on.
    ///
    /// # Safety
    ///
    /// They are there.
    pub(super) unsafe fn at(self, row: usize, panel: usize) -> Self {
        // SAFETY: as the caller says.
        unsafe {
            Self {
                rows: self.rows.add(row * self.row_stride),
                panels: self.panels.add(panel * self.panel_stride),
                out: self.out.add(row * self.out_stride + panel * WIDTH),
                origin: match self.origin {
                    Origin::Bias(bias) => Origin::Bias(bias.add(panel * WIDTH)),
                    origin => origin,
                },
                ..self
            }
        }
    }

    /// Computes so many rows and panels.
    ///
    /// # Safety
    ///
    /// The processor has AVX2 and FMA, the rows and panels are there, and nobody else writes them.
    pub(super) unsafe fn compute(self, rows: usize, panels: usize) {
        let most = panels_at_once(rows);
        let mut panel = 0;
        while panel < panels {
            let wide = panels - panel >= most;
            // SAFETY: what is asked for is a part of what the caller asks for.
            unsafe {
                let strip = self.at(0, panel);
                let tile = Tile {
                    strip,
                    ahead: AHEAD * LINE,
                    ahead_step: LINE,
                };
                match (rows, wide) {
                    (1, true) => tile.compute::<1, 4>(),
                    (2, true) => tile.compute::<2, 4>(),
                    (3, true) => tile.compute::<3, 2>(),
                    (4, true) => tile.compute::<4, 2>(),
                    _ => strip.one_panel(rows),
                }
            }
            panel += if wide { most } else { 1 };
        }
    }

    /// Computes so many rows of the first panel.
    ///
    /// # Safety
    ///
    /// That of [`Strip::compute`].
    unsafe fn one_panel(self, rows: usize) {
        let groups = rows.div_ceil(ROWS);
        // The groups of rows fetch the panel that comes next, each its share; lines with gaps are not read from afar.
        let (bytes, step) = if self.line_stride == WIDTH {
            (self.inputs * LINE, LINE / groups.max(1))
        } else {
            (0, 0)
        };
        let mut row = 0;
        for group in 0..groups {
            let count = (rows - row).div_ceil(groups - group);
            // SAFETY: as the caller says.
            unsafe {
                let tile = Tile {
                    strip: self.at(row, 0),
                    ahead: bytes + group * bytes / groups,
                    ahead_step: step,
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
}

/// Rows and panels of which all sums are in registers.
struct Tile {
    strip: Strip,
    /// How many bytes ahead of each panel is fetched.
    ahead: usize,
    /// Bytes that are fetched with each input.
    ahead_step: usize,
}

impl Tile {
    /// Computes `R` rows of `P` panels.
    ///
    /// # Safety
    ///
    /// The processor has AVX2 and FMA, and the strip has so many rows and panels.
    #[target_feature(enable = "avx2,fma")]
    unsafe fn compute<const R: usize, const P: usize>(&self) {
        // SAFETY: the loops stay within `R` rows, `P` panels of `inputs` lines and their columns. What is fetched ahead may lie beyond;
        // fetching has no effect where nothing is.
        unsafe {
            let mut sums = self.begin::<R, P>();
            let Strip {
                inputs,
                row_stride,
                line_stride,
                ..
            } = self.strip;
            let step = self.ahead_step;
            let mut number = self.strip.rows;
            let mut lines = [self.strip.panels; P];
            for (panel, line) in lines.iter_mut().enumerate() {
                *line = line.add(panel * self.strip.panel_stride);
            }
            let mut ahead = lines.map(|line| line.wrapping_byte_add(self.ahead));
            for _ in 0..inputs {
                for panel in 0..P {
                    let left = _mm256_loadu_ps(lines[panel]);
                    let right = _mm256_loadu_ps(lines[panel].add(LANES));
                    lines[panel] = lines[panel].wrapping_add(line_stride);
                    // Four streams are fetched by the processor itself.
                    if P < 4 {
                        _mm_prefetch::<_MM_HINT_T1>(ahead[panel].cast());
                        ahead[panel] = ahead[panel].wrapping_byte_add(step);
                    }
                    for (row, sums) in sums.iter_mut().enumerate() {
                        let number = _mm256_broadcast_ss(&*number.add(row * row_stride));
                        sums[panel][0] = _mm256_fmadd_ps(number, left, sums[panel][0]);
                        sums[panel][1] = _mm256_fmadd_ps(number, right, sums[panel][1]);
                    }
                }
                number = number.wrapping_add(1);
            }
            for (row, sums) in sums.iter().enumerate() {
                for (panel, sum) in sums.iter().enumerate() {
                    let out = self.strip.out.add(row * self.strip.out_stride + panel * WIDTH);
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
                    let from = match self.strip.origin {
                        Origin::Zero => continue,
                        Origin::Bias(bias) => bias.add(panel * WIDTH),
                        Origin::Out => self
                            .strip
                            .out
                            .add(row * self.strip.out_stride + panel * WIDTH)
                            .cast_const(),
                    };
                    *sum = [_mm256_loadu_ps(from), _mm256_loadu_ps(from.add(LANES))];
                }
            }
        }
        sums
    }
}
