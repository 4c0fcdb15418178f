//! Texts of models and logs of programs.

mod clear_log;
mod extract_code;
mod extract_json;
mod fence;
mod lines;
mod plan;
mod sanitize;
mod thinking;
mod truncate;
pub mod udf;
mod validation_score;

pub use clear_log::clear_log;
pub use extract_code::{ExtractedCode, extract_code};
pub use extract_json::extract_json;
pub use plan::plan_text;
pub use sanitize::{sanitize_output, sanitize_program};
pub use thinking::{split_thinking, strip_thinking};
pub use truncate::truncate_middle;
pub use validation_score::final_validation_score;
