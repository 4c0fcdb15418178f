//! Faults that users of similar systems have reported: each is a test that keeps Clade from it, named after the fault, with a
//! comment that says where it was reported. `docs/peers.md` is their table, and the table of bad input.

mod bad_input;
pub mod bed;
mod control_c;
pub mod gyms;
mod islands;
mod lessons;
#[path = "../../catalog/tests/store/mount.rs"]
mod mount;
mod ownership;
mod resume;
mod sandbox;
mod scores;
mod settings;
mod storage;
mod table;
mod timeouts;
