//! Clade command line.
fn main() {}
