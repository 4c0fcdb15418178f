//! The sandbox back ends against real programs: the shared ones and hostile ones.

mod basics;
mod programs;
mod support;
