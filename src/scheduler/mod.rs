//! Durable attempts, leases, budgets, the search loop.
//!
//! Every attempt is planned in one commit and ends in another; between the two it is in the queue under a lease, so that a
//! process that dies loses nothing but work in flight, which the next one takes up again.

mod attempt;
mod booking;
mod budget;
mod cancel;
mod candidate;
mod conducted;
mod conductor;
mod context;
mod error;
mod estimate;
mod expand;
mod facts;
mod final_run;
mod finish;
mod generate;
mod heartbeat;
mod hold;
mod ids;
mod index;
mod lease;
mod park;
mod pipeline;
mod preflight;
mod queue;
mod record;
mod reply;
mod reserve;
mod retry;
mod run;
mod runs;
mod select;
mod selection;
mod services;
mod settle;
mod statement;
mod tasks;
mod wall_clock;
mod work_dir;

pub use attempt::{Attempt, AttemptSettings};
pub use budget::{Balance, BudgetError, BudgetExhausted, Resource};
pub use candidate::{ProgramResult, ProgramRun, run_program};
pub use conducted::RunControl;
pub use conductor::{StopReason, load_index};
pub use error::{Result, SchedulerError};
pub use estimate::Estimate;
pub use expand::{ExpandPlan, Expansion};
pub use finish::leaderboard;
pub use hold::Held;
pub use ids::{attempt_id, derive_seed, draw_rng, fresh_id, node_id, sha256_hex};
pub use index::{IndexedNode, NodeOutcome, Place, RunIndex};
pub use lease::{LeaseRow, host_name, leases, this_process};
pub use park::model_pauses;
pub use record::{Ending, JobPurpose, job_rows};
pub use run::{BestNode, ENGINE_VERSION, Progress, Run, RunOptions};
pub use runs::{RunHandle, Scheduler};
pub use select::{Candidates, Drawn, candidates, draw as draw_step};
pub use services::{Sandbox, Sandboxes, Services};
pub use statement::StatementRecord;
pub use work_dir::sweep as sweep_work_dir;
