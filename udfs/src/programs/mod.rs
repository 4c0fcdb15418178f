//! Facts about programs: imports, method family, fingerprint, similarity, differences and failures.

mod error_signature;
mod fingerprint;
mod imports;
mod method_family;
mod preflight;
mod similarity;
pub(crate) mod source;
mod traceback;
pub mod udf;
mod unified_diff;

pub use error_signature::error_signature;
pub use fingerprint::code_fingerprint;
pub use imports::python_imports;
pub use method_family::method_family;
pub use preflight::{Found, install_command, needed_modules};
pub use similarity::{CodeProfile, code_similarity};
pub use unified_diff::unified_diff;
