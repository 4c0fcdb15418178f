//! Shares products out to threads.

use super::product::Product;
use super::threads;
use super::tile::{self, ROWS, Strip, WIDTH};

/// Multiplications below which waking other threads takes longer than they save.
const WORTH_SHARING: usize = 1 << 16;
/// Bytes of rows that are multiplied with one panel after the other, so that they stay in the cache of a core.
const BLOCK_BYTES: usize = 192 << 10;
/// Parts that each thread gets at least where there is enough to do.
const PARTS: usize = 8;
/// Panels of a part at most.
const PART_PANELS: usize = 8;

/// A product, cut into parts.
struct Cut<'a> {
    product: &'a Product<'a>,
    /// Parts of the products before it.
    before: usize,
    /// Rows of a block.
    block: usize,
    /// Panels of a part.
    panels: usize,
    /// Parts of a block.
    parts: usize,
}

impl<'a> Cut<'a> {
    fn new(product: &'a Product<'a>, threads: usize, before: usize) -> Self {
        // A multiple of what the kernel computes together.
        let most = (BLOCK_BYTES / (product.inputs.max(1) * size_of::<f32>()) / ROWS * ROWS).max(ROWS);
        let blocks = product.count.div_ceil(most).max(1);
        let block = product.count.div_ceil(blocks).max(1);
        let panels = (product.panel_count * blocks / (threads * PARTS)).clamp(1, PART_PANELS);
        let panels = panels.next_multiple_of(tile::panels_at_once(block));
        Self {
            product,
            before,
            block,
            panels,
            parts: product.panel_count.div_ceil(panels),
        }
    }

    fn count(&self) -> usize {
        self.product.count.div_ceil(self.block) * self.parts
    }

    /// Computes a part. Blocks of rows come one after the other.
    ///
    /// # Safety
    ///
    /// Nobody else computes the same part.
    unsafe fn compute(&self, part: usize) {
        let (block, part) = (part / self.parts, part % self.parts);
        let rows = block * self.block..((block + 1) * self.block).min(self.product.count);
        let panels = part * self.panels..((part + 1) * self.panels).min(self.product.panel_count);
        let product = self.product;
        // SAFETY: there are products only where the kernels are available; rows and panels are within this one, and nobody else
        // computes them, as the caller says.
        unsafe {
            let strip = Strip {
                rows: product.rows,
                row_stride: product.row_stride,
                inputs: product.inputs,
                panels: product.panels,
                panel_stride: product.inputs * WIDTH,
                line_stride: WIDTH,
                out: product.out,
                out_stride: product.out_stride,
                origin: product.origin,
            };
            strip.at(rows.start, panels.start).compute(rows.len(), panels.len());
        }
    }
}

/// Computes products.
pub(super) fn multiply(products: &[Product<'_>]) {
    let amount: usize = products
        .iter()
        .map(|product| product.count * product.inputs * product.panel_count)
        .sum();
    let threads = if amount < WORTH_SHARING { 1 } else { threads::count() };
    let mut parts = 0;
    let mut cuts = Vec::with_capacity(products.len());
    for product in products {
        let cut = Cut::new(product, threads, parts);
        parts += cut.count();
        cuts.push(cut);
    }
    threads::share_out(threads, parts, &|part| {
        // Products without parts begin where the next one does.
        let next = cuts.partition_point(|cut| cut.before <= part);
        if let Some(cut) = next.checked_sub(1).and_then(|at| cuts.get(at)) {
            // SAFETY: each part is given once.
            unsafe { cut.compute(part - cut.before) }
        }
    });
}
