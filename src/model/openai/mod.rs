//! The `openai` generator: chat completions of any OpenAI-compatible service.
//!
//! `client` sends one request and `reading` reads what comes back; the parts know one thing each: the body of a request, the
//! pieces of an answer, what HTTP errors mean, tokens and their plausibility, the API key. What is peculiar to a service is data
//! (`profile`).

mod body;
mod client;
mod endpoint;
mod events;
mod failure;
mod profile;
mod reading;
mod reply;
mod retry_after;
mod secret;
mod transport;
mod usage;

pub use client::OpenAi;
pub use endpoint::Endpoint;
pub use profile::Profile;
pub use secret::is_secret_name;
pub use usage::prompt_token_bound;
