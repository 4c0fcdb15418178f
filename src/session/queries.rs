//! Queries of the engine itself: planned once by text, bound to a snapshot and to parameters at each call.

use std::collections::HashMap;
use std::sync::Arc;

use clade_catalog::{Snapshot, Store};
use datafusion::common::{ParamValues, ScalarValue};
use datafusion::error::Result;
use datafusion::execution::SessionState;
use datafusion::logical_expr::LogicalPlan;
use datafusion::physical_plan::collect;
use parking_lot::Mutex;

use super::result_rows::ResultRows;
use super::variables::CladeVariables;

/// Runs the engine's own queries.
#[derive(Debug)]
pub struct Queries {
    store: Store,
    base: SessionState,
    plans: Mutex<HashMap<String, LogicalPlan>>,
}

/// Most plans kept; the engine's own texts are few, policies add theirs.
const MOST_PLANS: usize = 256;

impl Queries {
    /// Queries over a store with the functions, views and policies of a session state.
    pub fn new(store: Store, base: SessionState) -> Self {
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
        let snapshot = match at {
            Some(snapshot) => snapshot,
            None => self.store.snapshot(None).await?,
        };
        let state = self.bind(snapshot, run_id);
        let plan = self.plan(&state, sql).await?;
        let plan = if parameters.is_empty() {
            plan
        } else {
            let values: HashMap<String, ScalarValue> = parameters
                .iter()
                .map(|(name, value)| ((*name).to_owned(), value.clone()))
                .collect();
            plan.with_param_values(ParamValues::from(values))?
        };
        let physical = state.create_physical_plan(&plan).await?;
        let batches = collect(physical, state.task_ctx()).await?;
        Ok(ResultRows::new(batches))
    }

    async fn plan(&self, state: &SessionState, sql: &str) -> Result<LogicalPlan> {
        if let Some(plan) = self.plans.lock().get(sql) {
            return Ok(plan.clone());
        }
        let plan = state.create_logical_plan(sql).await?;
        let mut plans = self.plans.lock();
        if plans.len() >= MOST_PLANS {
            plans.clear();
        }
        plans.insert(sql.to_owned(), plan.clone());
        Ok(plan)
    }

    /// Forgets all plans: a policy or view they may read has changed.
    pub fn forget_plans(&self) {
        self.plans.lock().clear();
    }
}
