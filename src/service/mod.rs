//! The HTTP job service: clients hand programs in, workers run them in the sandbox, results are kept in the store.
//!
//! A request becomes a row before it is answered; the row's state says what is to be done, so that a server that is killed goes on
//! where it was. See `docs/service.md`.

mod access;
mod api;
mod chat;
mod error;
mod figures;
pub(crate) mod fleet;
mod queue;
mod run;
mod serve;
mod uploads;

pub use access::{KeyRow, Quotas, Role, all_keys, create_key, revoke_key};
pub use error::ServiceError;
pub(crate) use queue::Class;
pub(crate) use run::{LiveJob, LiveJobs};
pub(crate) use serve::check_sandbox;
pub use serve::{ServeOptions, Service, Tls};
pub(crate) use uploads::unpack_data;
