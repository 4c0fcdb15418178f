//! Planning, executing and refusing EXPAND; the lineage of plans.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]

use std::sync::Arc;

use async_trait::async_trait;
use datafusion::arrow::array::{
    ArrayRef, Float64Array, Int64Array, RecordBatch, StringArray, TimestampMicrosecondArray, new_null_array,
};
use datafusion::common::Result;
use datafusion::datasource::{MemTable, ViewTable};
use datafusion::execution::{SendableRecordBatchStream, SessionStateBuilder};
use datafusion::physical_plan::stream::RecordBatchStreamAdapter;
use datafusion::prelude::{SessionConfig, SessionContext};
use parking_lot::Mutex;

use super::*;
use crate::dialect::{ParsedStatement, Statement};

/// Answers every row with one attempt and remembers what it was asked.
#[derive(Debug, Default)]
struct Recorder(Mutex<Vec<ExpandRequest>>);

#[async_trait]
impl ExpandHandler for Recorder {
    async fn expand(&self, request: ExpandRequest) -> Result<SendableRecordBatchStream> {
        let rows = request.rows.len();
        let schema = result_schema();
        let columns: Vec<ArrayRef> = schema
            .fields()
            .iter()
            .map(|field| match field.name().as_str() {
                "attempt_id" => {
                    Arc::new(StringArray::from_iter_values((0..rows).map(|row| format!("a{row}")))) as ArrayRef
                }
                "operator" | "status" => Arc::new(StringArray::from_iter_values((0..rows).map(|_| field.name()))),
                "parent_id" => Arc::new(StringArray::from_iter(
                    request.rows.iter().map(|row| row.parent_id.clone()),
                )),
                "queued_at" => Arc::new(TimestampMicrosecondArray::from(vec![0; rows]).with_timezone("UTC")),
                _ => new_null_array(field.data_type(), rows),
            })
            .collect();
        let batch = RecordBatch::try_new(Arc::clone(&schema), columns)?;
        self.0.lock().push(request);
        Ok(Box::pin(RecordBatchStreamAdapter::new(
            schema,
            futures::stream::iter([Ok(batch)]),
        )))
    }

    async fn explain(&self, request: ExpandRequest) -> Result<SendableRecordBatchStream> {
        self.0.lock().push(request);
        let schema = explain_schema();
        let batch = RecordBatch::new_empty(Arc::clone(&schema));
        Ok(Box::pin(RecordBatchStreamAdapter::new(
            schema,
            futures::stream::iter([Ok(batch)]),
        )))
    }
}

fn session() -> (SessionContext, Arc<Recorder>) {
    let recorder = Arc::new(Recorder::default());
    let config = SessionConfig::new()
        .with_target_partitions(4)
        .with_extension(Arc::new(ExpandHandlerHandle(
            Arc::clone(&recorder) as Arc<dyn ExpandHandler>
        )));
    let state = SessionStateBuilder::new()
        .with_config(config)
        .with_default_features()
        .with_query_planner(query_planner())
        .build();
    let context = SessionContext::new_with_state(state);
    register(&context).unwrap();
    let batch = RecordBatch::try_from_iter([
        (
            "parent_id",
            Arc::new(StringArray::from(vec!["c", "a", "b"])) as ArrayRef,
        ),
        ("score", Arc::new(Float64Array::from(vec![3.0, 1.0, 2.0]))),
        ("step", Arc::new(Int64Array::from(vec![1, 2, 3]))),
    ])
    .unwrap();
    let table = MemTable::try_new(batch.schema(), vec![vec![batch.slice(0, 1)], vec![batch.slice(1, 2)]]).unwrap();
    context.register_table("t", Arc::new(table)).unwrap();
    (context, recorder)
}

fn parse(sql: &str) -> Statement {
    let mut parsed = crate::dialect::parse(sql).unwrap();
    let ParsedStatement { statement, .. } = parsed.remove(0);
    statement
}

/// Plan as a session does: our statements here, the rest by DataFusion; then the guard.
async fn plan(context: &SessionContext, sql: &str, access: Access) -> std::result::Result<LogicalPlan, String> {
    let state = context.state();
    let plan = match parse(sql) {
        Statement::Expand(expand) => plan_expand(&state, &expand, ExpandMode::Run).await,
        Statement::ExplainExpand(explain) => plan_expand(&state, &explain.expand, ExpandMode::Explain).await,
        Statement::DataFusion(statement) => state.statement_to_plan(*statement).await,
        other => panic!("{other}"),
    };
    let plan = plan.map_err(|error| error.find_root().message().into_owned())?;
    check_statement(&plan, access).map_err(|error| error.to_string())?;
    Ok(plan)
}

/// The plan of a statement that is right.
async fn planned(context: &SessionContext, sql: &str) -> LogicalPlan {
    plan(context, sql, Access::ReadWrite)
        .await
        .unwrap_or_else(|error| panic!("{sql}: {error}"))
}

async fn run(context: &SessionContext, sql: &str) -> Vec<RecordBatch> {
    let plan = planned(context, sql).await;
    context
        .execute_logical_plan(plan)
        .await
        .unwrap()
        .collect()
        .await
        .unwrap_or_else(|error| panic!("{sql}: {error}"))
}

fn parents(request: &ExpandRequest) -> Vec<&str> {
    request
        .rows
        .iter()
        .map(|row| row.parent_id.as_deref().unwrap_or("-"))
        .collect()
}

#[tokio::test]
async fn both_forms_make_the_same_node() {
    let (context, _) = session();
    let clause = planned(&context, "SELECT parent_id FROM t EXPAND WITH improve (samples => 4, max_wall => '10 min') USING MODEL m IN SANDBOX s ASYNC").await;
    let function = planned(&context, "SELECT * FROM expand((SELECT parent_id FROM t), 'improve', samples => 4, max_wall => 600, model => 'm', sandbox => 's', async => true)").await;
    let function = function.inputs()[0].clone();
    assert_eq!(
        ExpandNode::from_plan(&clause).unwrap(),
        ExpandNode::from_plan(&function).unwrap()
    );
}

#[tokio::test]
async fn rows_reach_the_handler_in_the_users_order() {
    let (context, recorder) = session();
    let batches = run(
        &context,
        "SELECT parent_id FROM t ORDER BY score DESC EXPAND WITH improve (samples => 2)",
    )
    .await;
    assert_eq!(batches.iter().map(RecordBatch::num_rows).sum::<usize>(), 3);
    run(&context, "SELECT parent_id FROM t EXPAND WITH improve").await;
    run(&context, "SELECT parent_id FROM t WHERE score > 9 EXPAND WITH improve").await;
    let requests = recorder.0.lock();
    assert_eq!(parents(&requests[0]), ["c", "b", "a"]);
    assert_eq!(requests[0].clause.options.samples, Some(2));
    assert_eq!(
        parents(&requests[1]),
        ["a", "b", "c"],
        "without ORDER BY the content decides"
    );
    assert!(requests[2].rows.is_empty());
}

#[tokio::test]
async fn the_function_works_inside_queries() {
    let (context, recorder) = session();
    let batches = run(
        &context,
        "WITH children AS (SELECT * FROM expand((SELECT parent_id FROM t WHERE score > 1), 'debug') AS e)
         SELECT c.parent_id, t.score FROM children c JOIN t ON t.parent_id = c.parent_id WHERE t.score > 2 LIMIT 5",
    )
    .await;
    assert_eq!(batches.iter().map(RecordBatch::num_rows).sum::<usize>(), 1);
    assert_eq!(recorder.0.lock().len(), 1);
    assert_eq!(
        parents(&recorder.0.lock()[0]),
        ["b", "c"],
        "filters stay above the EXPAND"
    );
}

#[tokio::test]
async fn explain_runs_nothing() {
    let (context, recorder) = session();
    let shown = run(
        &context,
        "EXPLAIN SELECT * FROM expand((SELECT parent_id FROM t), 'improve', samples => 3)",
    )
    .await;
    assert!(recorder.0.lock().is_empty());
    let text = datafusion::arrow::util::pretty::pretty_format_batches(&shown)
        .unwrap()
        .to_string();
    assert!(text.contains("Expand: EXPAND WITH improve (samples => 3)"), "{text}");
    assert!(
        text.contains("ExpandExec: EXPAND WITH improve (samples => 3)"),
        "{text}"
    );
    run(&context, "EXPLAIN SELECT parent_id FROM t EXPAND WITH improve").await;
    assert_eq!(parents(&recorder.0.lock()[0]), ["a", "b", "c"]);
}

#[tokio::test]
async fn a_plan_acts_once() {
    let (context, recorder) = session();
    let plan = planned(&context, "SELECT parent_id FROM t EXPAND WITH improve").await;
    let physical = context.state().create_physical_plan(&plan).await.unwrap();
    let task = context.task_ctx();
    datafusion::physical_plan::collect(Arc::clone(&physical), Arc::clone(&task))
        .await
        .unwrap();
    let error = datafusion::physical_plan::collect(physical, task).await.unwrap_err();
    assert!(error.to_string().contains("already run"), "{error}");
    assert_eq!(recorder.0.lock().len(), 1);
}

#[tokio::test]
async fn a_session_without_a_scheduler_says_so() {
    let (context, _) = session();
    let state = SessionStateBuilder::new()
        .with_default_features()
        .with_query_planner(query_planner())
        .build();
    let bare = SessionContext::new_with_state(state);
    let plan = planned(&context, "SELECT 'x' AS parent_id EXPAND WITH improve").await;
    let error = bare
        .execute_logical_plan(plan)
        .await
        .unwrap()
        .collect()
        .await
        .unwrap_err();
    assert!(error.to_string().contains("no scheduler"), "{error}");
}

#[tokio::test]
async fn columns_are_checked_when_the_statement_is_planned() {
    let (context, _) = session();
    let mut shown = Vec::new();
    for sql in [
        "SELECT score FROM t EXPAND WITH improve",
        "SELECT parent_id FROM t EXPAND WITH draft",
        "SELECT parent_id FROM t EXPAND WITH crossover",
        "SELECT parent_id, score FROM t EXPAND WITH improve",
        "SELECT score AS parent_id FROM t EXPAND WITH improve",
        "SELECT parent_id, score AS seed FROM t EXPAND WITH improve",
        "SELECT a.parent_id, b.parent_id FROM t a JOIN t b ON a.step = b.step EXPAND WITH improve",
        "SELECT * FROM expand(t, 'improve')",
        "SELECT * FROM expand((SELECT parent_id FROM t))",
        "SELECT * FROM expand((SELECT parent_id FROM t), 'mutate')",
        "SELECT * FROM expand((SELECT parent_id FROM t), 'improve', 4)",
        "SELECT * FROM expand((SELECT parent_id FROM t), 'improve', samples => 0)",
        "SELECT * FROM expand((SELECT parent_id FROM t), 'improve', sample => 1)",
        "SELECT * FROM expand((SELECT parent_id FROM t), 'improve', samples => 1 + 1)",
        "SELECT * FROM expand((SELECT parent_id FROM t), 'improve', model => 1)",
    ] {
        shown.push(format!(
            "{sql}\n=> {}",
            plan(&context, sql, Access::ReadWrite).await.unwrap_err()
        ));
    }
    insta::assert_snapshot!(shown.join("\n\n"));
}

#[tokio::test]
async fn rows_are_checked_before_anything_runs() {
    let (context, recorder) = session();
    let mut shown = Vec::new();
    for sql in [
        "VALUES ('a') EXPAND WITH improve",
        "SELECT CAST(NULL AS VARCHAR) AS parent_id EXPAND WITH improve",
        "SELECT 'a' AS parent_id, 'b' AS parent2_id EXPAND WITH debug",
        "SELECT 'a' AS parent_id, 'a' AS parent2_id EXPAND WITH crossover",
        "SELECT 'a' AS parent_id, 'draft' AS operator EXPAND WITH improve",
        "SELECT NULL AS parent_id, 'draft' AS operator EXPAND WITH improve",
        "SELECT 'a' AS parent_id, 'merge' AS operator EXPAND WITH improve",
        "SELECT 'a' AS parent_id, -1 AS seed EXPAND WITH improve",
        "SELECT CAST(NULL AS VARCHAR) AS task_id EXPAND WITH draft",
    ] {
        let found = match plan(&context, sql, Access::ReadWrite).await {
            Err(error) => error,
            Ok(plan) => {
                let frame = context.execute_logical_plan(plan).await.unwrap();
                frame.collect().await.unwrap_err().find_root().message().into_owned()
            }
        };
        shown.push(format!("{sql}\n=> {found}"));
    }
    assert!(recorder.0.lock().is_empty());
    insta::assert_snapshot!(shown.join("\n\n"));
}

#[tokio::test]
async fn rows_may_bring_their_own_operator() {
    let (context, recorder) = session();
    run(
        &context,
        "SELECT * FROM (VALUES (1, 'a', CAST(NULL AS VARCHAR), 'improve', 0.25), (2, NULL, 't', 'draft', 1.0), (3, 'b', NULL, NULL, 0.5))
             AS p (seed, parent_id, task_id, operator, weight) ORDER BY seed EXPAND WITH debug",
    )
    .await;
    let requests = recorder.0.lock();
    let rows: Vec<_> = requests[0]
        .rows
        .iter()
        .map(|row| (row.ordinal, row.operator.as_str(), row.seed, row.weight))
        .collect();
    assert_eq!(
        rows,
        [
            (0, "improve", Some(1), Some(0.25)),
            (1, "draft", Some(2), Some(1.0)),
            (2, "debug", Some(3), Some(0.5))
        ]
    );
}

#[tokio::test]
async fn the_guard_refuses() {
    let (context, _) = session();
    let sql = "SELECT parent_id FROM expand((SELECT parent_id FROM t), 'improve')";
    let view = context.state().create_logical_plan(sql).await.unwrap();
    context
        .register_table("v", Arc::new(ViewTable::new(view, None)))
        .unwrap();
    let from = "FROM expand((SELECT parent_id FROM t), 'improve')";
    let mut shown = Vec::new();
    for (sql, access) in [
        (format!("CREATE VIEW x AS SELECT * {from}"), Access::ReadWrite),
        (format!("CREATE TABLE x AS SELECT * {from}"), Access::ReadWrite),
        (
            format!("INSERT INTO t SELECT parent_id, score, 1 {from}"),
            Access::ReadWrite,
        ),
        (format!("COPY (SELECT * {from}) TO 'x.csv'"), Access::ReadWrite),
        (format!("EXPLAIN ANALYZE SELECT * {from}"), Access::ReadWrite),
        (
            format!("SELECT * FROM t WHERE parent_id IN (SELECT parent_id {from})"),
            Access::ReadWrite,
        ),
        (format!("SELECT (SELECT count(*) {from})"), Access::ReadWrite),
        (
            format!("WITH e AS (SELECT * {from}) SELECT * FROM e a JOIN e b ON a.attempt_id = b.attempt_id"),
            Access::ReadWrite,
        ),
        (format!("SELECT * {from} UNION ALL SELECT * {from}"), Access::ReadWrite),
        (
            "SELECT * FROM expand((SELECT parent_id FROM v), 'improve')".to_owned(),
            Access::ReadWrite,
        ),
        (
            "SELECT parent_id FROM v EXPAND WITH improve".to_owned(),
            Access::ReadWrite,
        ),
        (
            format!(
                "WITH RECURSIVE r AS (SELECT 'x' AS id UNION ALL SELECT e.node_id {from} AS e JOIN r ON r.id = e.parent_id) SELECT * FROM r"
            ),
            Access::ReadWrite,
        ),
        (format!("PREPARE p AS SELECT * {from}"), Access::ReadWrite),
        (format!("SELECT * {from}"), Access::ReadOnly),
        (
            "SELECT parent_id FROM t EXPAND WITH improve".to_owned(),
            Access::ReadOnly,
        ),
        ("INSERT INTO t VALUES ('x', 1.0, 1)".to_owned(), Access::ReadOnly),
        ("DELETE FROM t".to_owned(), Access::ReadOnly),
        ("CREATE TABLE x AS SELECT 1".to_owned(), Access::ReadOnly),
        ("CREATE VIEW x AS SELECT 1".to_owned(), Access::ReadOnly),
        ("DROP TABLE t".to_owned(), Access::ReadOnly),
        (
            "CREATE EXTERNAL TABLE x STORED AS CSV LOCATION 'x.csv'".to_owned(),
            Access::ReadOnly,
        ),
        ("COPY (SELECT 1) TO 'x.csv'".to_owned(), Access::ReadOnly),
        (
            "PREPARE p AS INSERT INTO t VALUES ('x', 1.0, 1)".to_owned(),
            Access::ReadOnly,
        ),
        (
            "EXPLAIN ANALYZE INSERT INTO t VALUES ('x', 1.0, 1)".to_owned(),
            Access::ReadOnly,
        ),
    ] {
        let error = plan(&context, &sql, access).await.expect_err(&sql);
        shown.push(format!("{sql}\n=> {error}"));
    }
    insta::assert_snapshot!(shown.join("\n\n"));
}

#[tokio::test]
async fn the_guard_lets_through() {
    let (context, _) = session();
    for sql in [
        "SELECT * FROM t",
        "SET datafusion.execution.batch_size = 1024",
        "EXPLAIN SELECT * FROM expand((SELECT parent_id FROM t), 'improve')",
        "EXPLAIN SELECT parent_id FROM t EXPAND WITH improve",
        "EXPLAIN ANALYZE SELECT * FROM t",
        "EXPLAIN INSERT INTO t VALUES ('x', 1.0, 1)",
    ] {
        plan(&context, sql, Access::ReadOnly)
            .await
            .unwrap_or_else(|error| panic!("{sql}: {error}"));
    }
}

#[tokio::test]
async fn definitions_may_not_act() {
    let (context, _) = session();
    let plan = planned(&context, "SELECT parent_id FROM t EXPAND WITH improve").await;
    insta::assert_snapshot!(check_definition(&plan, "in a policy").unwrap_err(), @"EXPAND is refused in a policy: it would act every time somebody reads it; write the EXPAND as a statement");
}

#[tokio::test]
async fn lineage_sees_through_everything() {
    let (context, _) = session();
    for (name, sql) in [
        ("hidden", "SELECT parent_id, score FROM t"),
        ("twice", "SELECT * FROM hidden"),
    ] {
        let plan = context.state().create_logical_plan(sql).await.unwrap();
        context
            .register_table(name, Arc::new(ViewTable::new(plan, Some(sql.to_owned()))))
            .unwrap();
    }
    let table = |name: &str| {
        let batch = RecordBatch::try_from_iter([("x", Arc::new(Int64Array::from(vec![1])) as ArrayRef)]).unwrap();
        context
            .register_table(
                name,
                Arc::new(MemTable::try_new(batch.schema(), vec![vec![batch]]).unwrap()),
            )
            .unwrap();
    };
    for name in ["a", "b", "c", "d", "e"] {
        table(name);
    }
    let of = async |sql: &str| lineage(&context.state().create_logical_plan(sql).await.unwrap(), "public").unwrap();
    let tables = |lineage: &Lineage| lineage.tables.iter().map(ToString::to_string).collect::<Vec<_>>();

    assert_eq!(tables(&of("SELECT 1 FROM twice").await), ["public.t"]);
    let all = of("WITH w AS (SELECT x FROM a)
         SELECT (SELECT max(x) FROM b), w.x FROM w
         WHERE w.x IN (SELECT x FROM c) AND EXISTS (SELECT 1 FROM d WHERE d.x = w.x)
         UNION ALL SELECT 0, x FROM e WHERE x > (SELECT count(*) FROM twice)")
    .await;
    assert_eq!(
        tables(&all),
        ["public.a", "public.b", "public.c", "public.d", "public.e", "public.t"]
    );
    assert!(all.volatile.is_empty() && all.stable.is_empty() && !all.expands);

    let recursive =
        of("WITH RECURSIVE r AS (SELECT x FROM a UNION ALL SELECT r.x + 1 FROM r JOIN b ON b.x = r.x) SELECT * FROM r")
            .await;
    assert_eq!(tables(&recursive), ["public.a", "public.b"]);

    let impure = of("SELECT x FROM a WHERE x > (SELECT random() FROM b) ORDER BY now()").await;
    assert_eq!(impure.volatile.into_iter().collect::<Vec<_>>(), ["random"]);
    assert_eq!(impure.stable.into_iter().collect::<Vec<_>>(), ["now"]);

    let function = of("SELECT * FROM generate_series(1, 3)").await;
    assert_eq!(
        function.table_functions.into_iter().collect::<Vec<_>>(),
        ["generate_series"]
    );
    assert!(
        of("SELECT parent_id FROM expand((SELECT parent_id FROM t), 'improve')")
            .await
            .expands
    );
}
