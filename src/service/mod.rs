//! The HTTP job service: clients hand programs in, workers run them in the sandbox, results are kept in the store.
//!
//! A request becomes a row before it is answered; the row's state says what is to be done, so that a server that is killed goes on
//! where it was. See `docs/service.md`.

mod access;
pub(crate) mod api;
mod chat;
pub(crate) mod client_address;
mod error;
mod exposition;
mod figures;
pub(crate) mod fleet;
mod listen;
mod queue;
mod run;
mod serve;
mod submissions;
mod uploads;

pub use access::{KeyRow, Quotas, Role, adopt_key, all_keys, create_key, revoke_key};
pub use error::ServiceError;
pub(crate) use error::is_full;
pub(crate) use exposition::{Exposition, Labels};
pub(crate) use fleet::wire::suits as versions_suit;
pub(crate) use listen::Listener;
pub use listen::Tls;
pub(crate) use queue::Class;
pub(crate) use run::{LiveJob, LiveJobs};
pub(crate) use serve::check_sandbox;
pub use serve::{ServeOptions, Service};
pub(crate) use uploads::{Packer, PlaceLimits, Places, UPLOAD_PREFIX, unpack_data};
