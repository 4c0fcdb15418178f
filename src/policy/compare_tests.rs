//! Comparing policies on a recorded run.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]

use std::sync::Arc;

use datafusion::arrow::util::pretty::pretty_format_batches;
use datafusion::prelude::SessionContext;

use super::PolicyCompare;
use super::testkit::History;
use super::trace_tests::{Recorded, search};

const STEPS: i64 = 16;

/// A session in which a run of `openmle_evo` can be compared, and its store.
async fn session() -> (History, SessionContext) {
    let (history, steps) = search("openmle_evo", STEPS).await;
    let context = history.session().await;
    let record = Recorded::new(&history, context.clone(), steps);
    context.register_udtf("policy_compare", Arc::new(PolicyCompare::new(Arc::new(record))));
    (history, context)
}

async fn show(context: &SessionContext, sql: &str) -> String {
    let batches = match context.sql(sql).await {
        Ok(frame) => frame.collect().await,
        Err(error) => Err(error),
    };
    match batches {
        Ok(batches) => pretty_format_batches(&batches).unwrap().to_string(),
        Err(error) => error.strip_backtrace(),
    }
}

#[tokio::test]
async fn policies_are_compared_step_by_step() {
    let (_history, context) = session().await;
    let mut shown = Vec::new();
    for sql in [
        "SELECT policy, count(*) AS steps, count(*) FILTER (WHERE agrees) AS agree,
                count(*) FILTER (WHERE probability > 0) AS offered, round(avg(agreement), 3) AS agreement
         FROM policy_compare('openmle_evo, uniform, aide_greedy', 'r') GROUP BY policy ORDER BY policy",
        "SELECT step, operator, parents, round(payoff, 3) AS payoff, policy, round(probability, 3) AS p, round(parent_probability, 3) AS parent_p,
                top_operator, top_parents, round(top_probability, 3) AS top_p, round(top_payoff, 3) AS top_payoff, agrees, agreement
         FROM policy_compare(['openmle_evo', 'map_elites'], 'r') WHERE step > 10 ORDER BY step, policy",
    ] {
        shown.push(show(&context, sql).await);
    }
    insta::assert_snapshot!(shown.join("\n\n"));
}

#[tokio::test]
async fn wrong_calls_say_what_is_wrong() {
    let (_history, context) = session().await;
    let mut shown = Vec::new();
    for call in [
        "policy_compare('uniform')",
        "policy_compare('', 'r')",
        "policy_compare(1, 'r')",
        "policy_compare(['uniform', 'aide_greedy', 'uniform'], 'r')",
        "policy_compare('uniform', 7)",
        "policy_compare('uniform', 'x')",
    ] {
        shown.push(format!(
            "{call}\n  {}",
            show(&context, &format!("SELECT * FROM {call}")).await
        ));
    }
    insta::assert_snapshot!(shown.join("\n"));
}
