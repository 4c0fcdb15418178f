//! How Clade talks to its library of language models.
//!
//! libtorch takes a third of a second and a hundred megabytes to be linked into a process, which a database that is asked for a
//! row need not pay. So the models live in a library of their own, `libclade_lm.so`, which is loaded when the first of them is
//! used. Both sides speak JSON through one C function ([`Table`]); the messages are those of [`messages`].

mod error;
mod library;
pub mod messages;
mod sampling;
mod table;

pub use self::error::{ApiError, Fault, FaultKind, Result};
pub use self::library::Library;
pub use self::table::{ABI, Bytes, ENTRY, Sink, Table};
