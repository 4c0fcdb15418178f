//! Medals and ranks against a human leaderboard.

mod medal;
mod rank;
pub mod udf;

pub use medal::{Medal, MedalPositions, medal, medal_positions};
pub use rank::{human_rank, leaderboard_rank};
