//! The sandbox back ends against real programs: the shared ones, hostile ones and honest ones.

mod abuse;
mod basics;
mod evaluator;
mod isolation;
mod lifecycle;
mod programs;
mod root_tree;
mod speed;
pub mod support;
mod task;
mod warm;
