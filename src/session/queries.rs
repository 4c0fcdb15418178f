//! Queries of the engine itself: planned once by text and run, bound to a snapshot and to parameters at each call.

use std::collections::HashMap;
use std::sync::Arc;

use clade_catalog::{RepeatedQueries, Seq, Snapshot, Store};
use datafusion::common::{ParamValues, ScalarValue};
use datafusion::error::Result;
use datafusion::execution::{SessionState, TaskContext};
use datafusion::logical_expr::LogicalPlan;
use datafusion::physical_plan::execution_plan::reset_plan_states;
use datafusion::physical_plan::{ExecutionPlan, collect};
use parking_lot::Mutex;

use super::build::DEFAULT_SCHEMA;
use super::result_rows::ResultRows;
use super::variables::CladeVariables;
use crate::plan::lineage;
use crate::policy::CURRENT_RUN;

/// Runs the engine's own queries.
#[derive(Debug)]
pub struct Queries {
    store: Store,
    base: SessionState,
    plans: Mutex<HashMap<PlanKey, Plan>>,
}

/// Most plans kept; the engine's own texts are few, policies add theirs.
const MOST_PLANS: usize = 256;

/// A plan is made anew when the store has this many times the commits that it was made for.
const GROWTH: Seq = 2;
/// Commits from which on that is asked.
const FEWEST_COMMITS: Seq = 32;

/// A plan that was optimised holds `current_run()` as a constant, so plans are kept by run.
#[derive(Debug, PartialEq, Eq, Hash)]
struct PlanKey {
    sql: String,
    run_id: Option<String>,
}

/// A plan that is used more than once.
#[derive(Debug, Clone)]
enum Plan {
    /// Not optimised, since its functions change from statement to statement, such as `now()`.
    Logical(LogicalPlan),
    /// Optimised for good; parameters are still to be put in.
    Optimised(LogicalPlan),
    /// Without parameters: only its scans are bound when it is executed. This one never is; each execution resets a copy.
    Physical {
        plan: Arc<dyn ExecutionPlan>,
        /// Commit by whose table sizes its joins were chosen.
        seq: Seq,
    },
}

impl Plan {
    /// Whether the tables are still of the size that the plan was made for, roughly.
    fn suits(&self, snapshot: &Snapshot) -> bool {
        match self {
            Self::Logical(_) | Self::Optimised(_) => true,
            Self::Physical { seq, .. } => snapshot.seq() <= GROWTH * seq.max(&FEWEST_COMMITS),
        }
    }
}

impl Queries {
    /// Queries over a store with the functions, views and policies of a session state.
    pub fn new(store: Store, mut base: SessionState) -> Self {
        // These queries are asked at every step over rows that are in memory already: planning for several threads, and
        // moving rows between them, costs more than it gains.
        let config = base.config_mut();
        config.set_extension(Arc::new(RepeatedQueries));
        let options = config.options_mut();
        options.execution.target_partitions = 1;
        options.optimizer.enable_round_robin_repartition = false;
        options.optimizer.repartition_aggregations = false;
        options.optimizer.repartition_joins = false;
        options.optimizer.repartition_windows = false;
        options.optimizer.repartition_sorts = false;
        options.optimizer.repartition_file_scans = false;
        // The files are read for the long texts of a few rows: those are found before their texts are decoded.
        options.execution.parquet.pushdown_filters = true;
        // This would help scans of whole files, of which none is left.
        options.optimizer.enable_dynamic_filter_pushdown = false;
        Self {
            store,
            base,
            plans: Mutex::default(),
        }
    }

    /// The state that a statement on a snapshot, for a run, is planned and executed with.
    pub fn bind(&self, snapshot: Arc<Snapshot>, run_id: Option<&str>) -> SessionState {
        let mut state = self.base.clone();
        let config = state.config_mut();
        config.set_extension(snapshot);
        if let Some(variables) = config.options_mut().extensions.get_mut::<CladeVariables>() {
            variables.run_id = run_id.unwrap_or_default().to_owned();
        }
        state
    }

    /// Rows of a query with named parameters, for a run, on a snapshot (the newest by default).
    ///
    /// # Errors
    /// When the query does not plan or fails.
    pub async fn rows(
        &self,
        sql: &str,
        parameters: &[(&str, ScalarValue)],
        run_id: Option<&str>,
        at: Option<Arc<Snapshot>>,
    ) -> Result<ResultRows> {
        let (plan, context) = self.physical_plan(sql, parameters, run_id, at).await?;
        Ok(ResultRows::new(collect(plan, context).await?))
    }

    /// The plan that [`Queries::rows`] executes, and what it is executed with.
    ///
    /// # Errors
    /// When the query does not plan.
    pub async fn physical_plan(
        &self,
        sql: &str,
        parameters: &[(&str, ScalarValue)],
        run_id: Option<&str>,
        at: Option<Arc<Snapshot>>,
    ) -> Result<(Arc<dyn ExecutionPlan>, Arc<TaskContext>)> {
        let snapshot = match at {
            Some(snapshot) => snapshot,
            None => self.store.snapshot(None).await?,
        };
        let state = self.bind(Arc::clone(&snapshot), run_id);
        let key = PlanKey {
            sql: sql.to_owned(),
            run_id: run_id.map(str::to_owned),
        };
        let kept = self.plans.lock().get(&key).cloned();
        let plan = match kept.filter(|plan| plan.suits(&snapshot)) {
            Some(plan) => plan,
            None => self.keep(key, self.plan(&state, &snapshot, sql, parameters.is_empty()).await?),
        };
        let physical = match plan {
            Plan::Physical { plan, .. } => reset_plan_states(plan)?,
            Plan::Optimised(logical) => plan_physical(&state, &with_parameters(logical, parameters)?).await?,
            Plan::Logical(logical) => {
                let optimised = state.optimize(&with_parameters(logical, parameters)?)?;
                plan_physical(&state, &optimised).await?
            }
        };
        Ok((physical, state.task_ctx()))
    }

    async fn plan(&self, state: &SessionState, snapshot: &Snapshot, sql: &str, is_whole: bool) -> Result<Plan> {
        let logical = state.create_logical_plan(sql).await?;
        let lineage = lineage(&logical, DEFAULT_SCHEMA)?;
        let is_lasting = lineage.volatile.is_empty() && lineage.stable.iter().all(|name| name == CURRENT_RUN);
        if !is_lasting {
            return Ok(Plan::Logical(logical));
        }
        let optimised = state.optimize(&logical)?;
        Ok(match is_whole && lineage.table_functions.is_empty() {
            true => Plan::Physical {
                plan: plan_physical(state, &optimised).await?,
                seq: snapshot.seq(),
            },
            false => Plan::Optimised(optimised),
        })
    }

    fn keep(&self, key: PlanKey, plan: Plan) -> Plan {
        let mut plans = self.plans.lock();
        if plans.len() >= MOST_PLANS {
            plans.clear();
        }
        plans.insert(key, plan.clone());
        plan
    }

    /// Forgets all plans: a policy or view they may read has changed.
    pub fn forget_plans(&self) {
        self.plans.lock().clear();
    }
}

fn with_parameters(plan: LogicalPlan, parameters: &[(&str, ScalarValue)]) -> Result<LogicalPlan> {
    if parameters.is_empty() {
        return Ok(plan);
    }
    let values: HashMap<String, ScalarValue> = parameters
        .iter()
        .map(|(name, value)| ((*name).to_owned(), value.clone()))
        .collect();
    plan.with_param_values(ParamValues::from(values))
}

async fn plan_physical(state: &SessionState, optimised: &LogicalPlan) -> Result<Arc<dyn ExecutionPlan>> {
    state.query_planner().create_physical_plan(optimised, state).await
}
