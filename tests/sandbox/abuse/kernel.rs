//! Group C: calls of the kernel, and what the kernel says of a program's rights.

use super::attempts::attempt;
use super::rows::Rows;
use crate::sandbox::support::Bench;

#[tokio::test(flavor = "multi_thread")]
async fn c13_c14_c15_c16_the_kernel_offers_little() {
    let mut rows = Rows::default();
    attempt(&Bench::new(), "kernel.py", &[], &mut rows).await;
    rows.check();
}
