//! Shares products out to the threads of libtorch.

use std::ffi::{c_uint, c_void};
use std::sync::atomic::{AtomicUsize, Ordering};

use super::kernel;
use super::product::Product;

/// Multiplications below which waking other threads takes longer than they save.
const WORTH_SHARING: usize = 1 << 16;
/// Bytes of rows that are multiplied with one panel after the other, so that they stay in the cache of a core.
const BLOCK_BYTES: usize = 192 << 10;
/// Rows of a block are a multiple of what the kernel computes together.
const BLOCK_ROWS: usize = 6;
/// Parts that each thread gets at least where there is enough to do: threads that other programs disturb then do fewer.
const PARTS: usize = 8;
/// Panels of a part at most.
const PART_PANELS: usize = 8;

unsafe extern "C" {
    /// Calls a function in so many threads, this one among them, and waits for all (GNU OpenMP's entry for a parallel region).
    fn GOMP_parallel(function: unsafe extern "C" fn(*mut c_void), data: *mut c_void, threads: c_uint, flags: c_uint);
}

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
        let most = (BLOCK_BYTES / (product.inputs.max(1) * size_of::<f32>()) / BLOCK_ROWS * BLOCK_ROWS).max(BLOCK_ROWS);
        let blocks = product.count.div_ceil(most).max(1);
        let block = product.count.div_ceil(blocks).max(1);
        let panels = (product.panel_count * blocks / (threads * PARTS)).clamp(1, PART_PANELS);
        let panels = panels.next_multiple_of(kernel::panels_at_once(block));
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
        // SAFETY: there are products only where the kernel is available; the rest is what the caller says, and the cut is within the
        // product.
        unsafe { kernel::compute(self.product, panels, rows) }
    }
}

/// All that the threads share.
struct Work<'a> {
    cuts: Vec<Cut<'a>>,
    parts: usize,
    next: AtomicUsize,
}

impl Work<'_> {
    /// Computes parts until none is left.
    fn run(&self) {
        let mut cut = 0;
        loop {
            let part = self.next.fetch_add(1, Ordering::Relaxed);
            if part >= self.parts {
                return;
            }
            // The parts that a thread gets only grow.
            while self.cuts.get(cut + 1).is_some_and(|next| next.before <= part) {
                cut += 1;
            }
            if let Some(cut) = self.cuts.get(cut) {
                // SAFETY: the counter gives each part once.
                unsafe { cut.compute(part - cut.before) }
            }
        }
    }
}

unsafe extern "C" fn run(work: *mut c_void) {
    // SAFETY: `share_out` gives a `Work` that it keeps until all threads have returned, and that none of them changes but for the
    // counter.
    let work = unsafe { &*work.cast::<Work<'_>>() };
    work.run();
}

/// Computes products.
pub(super) fn share_out(products: &[Product<'_>]) {
    let amount: usize = products
        .iter()
        .map(|product| product.count * product.inputs * product.panel_count)
        .sum();
    let threads = if amount < WORTH_SHARING {
        1
    } else {
        usize::try_from(tch::get_num_threads()).unwrap_or(1).max(1)
    };
    let mut parts = 0;
    let mut cuts = Vec::with_capacity(products.len());
    for product in products {
        let cut = Cut::new(product, threads, parts);
        let count = cut.count();
        // Later parts are looked for by the first one of each product; one without parts must not hide another.
        if count > 0 {
            parts += count;
            cuts.push(cut);
        }
    }
    let mut work = Work {
        cuts,
        parts,
        next: AtomicUsize::new(0),
    };
    if threads == 1 {
        work.run();
        return;
    }
    let threads = c_uint::try_from(threads).unwrap_or(1);
    // SAFETY: the function takes what it is given, and does not unwind: it only computes on checked sizes.
    unsafe { GOMP_parallel(run, (&raw mut work).cast(), threads, 0) }
}
