//! Durable attempts, leases, budgets, the search loop.
//!
//! Every attempt is planned in one commit and ends in another; between the two it is in the queue under a lease, so that a
//! process that dies loses nothing but work in flight, which the next one takes up again.

mod attempt;
mod budget;
mod control;
mod error;
mod expand;
mod final_run;
mod generation;
mod ids;
mod queue;
mod record;
mod run;
mod services;
mod summaries;
mod tasks;

pub use attempt::candidate::{ProgramResult, ProgramRun, run_program};
pub use attempt::park::model_pauses;
pub use attempt::work_dir::{WorkDir, sweep as sweep_work_dir};
pub use attempt::{Attempt, AttemptSettings};
pub use budget::{Balance, BudgetError, BudgetExhausted, Resource};
pub use control::{RunHandle, Scheduler};
pub use error::{Result, SchedulerError};
pub use expand::{ExpandPlan, Expansion};
pub use generation::estimate::Estimate;
pub use generation::overview::Overviews;
pub use generation::preview::Preview;
pub use ids::{attempt_id, derive_seed, draw_rng, fresh_id, node_id, sha256_hex};
pub use queue::conducted::RunControl;
pub use queue::hold::Held;
pub use queue::lease::{LeaseRow, host_name, leases, owner_may_live, suite_lease, this_process};
pub use record::statement_rows::StatementRecord;
pub use record::{Ending, JobPurpose, job_rows};
pub use run::conductor::{StopReason, load_index};
pub use run::draw::{Candidates, Drawn, candidates, draw as draw_step};
pub use run::index::{IndexedNode, NodeOutcome, Place, RunIndex};
pub use run::progress::leaderboard;
pub use run::{BestNode, ENGINE_VERSION, Progress, Run, RunOptions};
pub use services::{Sandbox, Sandboxes, Services};
pub use summaries::SummariesInWork;
