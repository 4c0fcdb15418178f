//! Number formats of GGUF, and turning their blocks into floats.

mod k_quants;
mod legacy;

use std::fmt::Write as _;

use half::{bf16, f16};
use rayon::prelude::*;

use crate::weights::Dtype;

/// Numbers in a block of the K-quants.
const K: usize = 256;

/// A number format that is read.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum GgmlType {
    F32,
    F16,
    Bf16,
    Q4_0,
    Q4_1,
    Q5_0,
    Q5_1,
    Q8_0,
    Q2K,
    Q3K,
    Q4K,
    Q5K,
    Q6K,
}

impl GgmlType {
    const ALL: [Self; 13] = [
        Self::F32,
        Self::F16,
        Self::Bf16,
        Self::Q4_0,
        Self::Q4_1,
        Self::Q5_0,
        Self::Q5_1,
        Self::Q8_0,
        Self::Q2K,
        Self::Q3K,
        Self::Q4K,
        Self::Q5K,
        Self::Q6K,
    ];

    /// Name, code in files, numbers in a block, bytes of a block.
    const fn facts(self) -> (&'static str, u32, usize, usize) {
        match self {
            Self::F32 => ("F32", 0, 1, 4),
            Self::F16 => ("F16", 1, 1, 2),
            Self::Bf16 => ("BF16", 30, 1, 2),
            Self::Q4_0 => ("Q4_0", 2, 32, 18),
            Self::Q4_1 => ("Q4_1", 3, 32, 20),
            Self::Q5_0 => ("Q5_0", 6, 32, 22),
            Self::Q5_1 => ("Q5_1", 7, 32, 24),
            Self::Q8_0 => ("Q8_0", 8, 32, 34),
            Self::Q2K => ("Q2_K", 10, K, 84),
            Self::Q3K => ("Q3_K", 11, K, 110),
            Self::Q4K => ("Q4_K", 12, K, 144),
            Self::Q5K => ("Q5_K", 13, K, 176),
            Self::Q6K => ("Q6_K", 14, K, 210),
        }
    }

    /// The format of a code, or what is known of one that is not read.
    pub(super) fn from_code(code: u32) -> Result<Self, String> {
        Self::ALL
            .into_iter()
            .find(|format| format.facts().1 == code)
            .ok_or_else(|| match code {
                16..=23 | 29 => format!("an IQ format (ggml type {code})"),
                34 | 35 => format!("a ternary format (ggml type {code})"),
                other => format!("the unknown ggml type {other}"),
            })
    }

    /// The format of a name.
    pub(super) fn by_name(name: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|format| format.name() == name)
    }

    /// Names of all formats that are read.
    pub(super) fn names() -> String {
        let mut names = String::new();
        for (index, format) in Self::ALL.into_iter().enumerate() {
            let separator = if index == 0 { "" } else { ", " };
            let _ = write!(names, "{separator}{}", format.name());
        }
        names
    }

    /// Its name.
    pub(super) const fn name(self) -> &'static str {
        self.facts().0
    }

    /// Numbers in a block.
    pub(super) const fn block_elements(self) -> usize {
        self.facts().2
    }

    /// Bytes of a block.
    pub(super) const fn block_bytes(self) -> usize {
        self.facts().3
    }

    /// The format as checkpoints tell it.
    pub(super) const fn dtype(self) -> Dtype {
        match self {
            Self::F32 => Dtype::F32,
            Self::F16 => Dtype::F16,
            Self::Bf16 => Dtype::Bf16,
            quantized => Dtype::Quantized(quantized.name()),
        }
    }

    /// Turns whole blocks into floats: as many as `values` takes.
    pub(super) fn dequantize(self, blocks: &[u8], values: &mut [f32]) {
        let block: fn(&[u8], &mut [f32]) = match self {
            Self::F32 => |bytes, values| values[0] = f32::from_le_bytes([bytes[0], bytes[1], bytes[2], bytes[3]]),
            Self::F16 => |bytes, values| values[0] = f16::from_le_bytes([bytes[0], bytes[1]]).to_f32(),
            Self::Bf16 => |bytes, values| values[0] = bf16::from_le_bytes([bytes[0], bytes[1]]).to_f32(),
            Self::Q4_0 => legacy::q4_0,
            Self::Q4_1 => legacy::q4_1,
            Self::Q5_0 => legacy::q5_0,
            Self::Q5_1 => legacy::q5_1,
            Self::Q8_0 => legacy::q8_0,
            Self::Q2K => k_quants::q2_k,
            Self::Q3K => k_quants::q3_k,
            Self::Q4K => k_quants::q4_k,
            Self::Q5K => k_quants::q5_k,
            Self::Q6K => k_quants::q6_k,
        };
        // Each piece has work for some ten microseconds.
        let blocks_in_piece = 16_384 / self.block_elements();
        let pieces = blocks
            .par_chunks(blocks_in_piece * self.block_bytes())
            .zip(values.par_chunks_mut(blocks_in_piece * self.block_elements()));
        pieces.for_each(|(blocks, values)| {
            let pairs = blocks
                .chunks_exact(self.block_bytes())
                .zip(values.chunks_exact_mut(self.block_elements()));
            for (bytes, values) in pairs {
                block(bytes, values);
            }
        });
    }
}

/// The 16-bit float at a place.
fn half_at(bytes: &[u8], at: usize) -> f32 {
    f16::from_le_bytes([bytes[at], bytes[at + 1]]).to_f32()
}
