//! Clade's SQL functions.
//!
//! Each family has a folder: the kernels are pure Rust functions, and `udf` beside them wraps them for DataFusion.
//! NULL gives NULL; NaN and infinities are invalid scores, which are never best and do not change the others.

pub mod direction;
mod function;
pub mod grading;
pub mod programs;
mod reference;
mod scalar;
pub mod text;
pub mod utility;

pub use function::{Function, all_functions, register_all};
pub use reference::reference_page;
