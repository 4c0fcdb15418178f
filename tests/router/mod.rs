//! Several servers behind a router, seen from outside.

mod clients;
mod cut;
mod faults;
mod fixture;
mod idempotency;
mod kills;
mod list;
mod placement;
mod refusals;
mod reload;
mod status;
mod sticky;
mod uploads;
