//! Round trips, snapshots of errors, and text that must not be misread.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]

use std::time::Duration;

use proptest::prelude::*;

use super::*;
use crate::operators::Operator;

fn one(text: &str) -> Statement {
    let mut parsed = parse(text).unwrap_or_else(|error| panic!("{text}\n{error}"));
    assert_eq!(parsed.len(), 1, "{text}");
    parsed.remove(0).statement
}

fn error(text: &str) -> String {
    parse(text).expect_err(text).to_string()
}

#[test]
fn every_form_prints_and_parses_to_itself() {
    for text in [
        "SELECT node_id AS parent_id FROM evo.best EXPAND WITH improve",
        "SELECT 1 AS parent_id EXPAND WITH debug (samples => 4, max_wall => '10 min', temperature => 0.6, cache => false)",
        "WITH best AS (SELECT 1 AS a) SELECT a AS parent_id FROM best EXPAND WITH improve USING MODEL evolver IN SANDBOX native ASYNC",
        "SELECT 1 AS task_id EXPAND WITH draft (on_error => 'stop_after_3', id => 'my-statement.1') USING MODEL 'org/model-7b'",
        "(SELECT 1 AS parent_id) UNION ALL (SELECT 2) EXPAND WITH improve",
        "VALUES (1, 2) EXPAND WITH crossover",
        "EXPLAIN SELECT 1 AS parent_id EXPAND WITH improve (samples => 2)",
        "EXPLAIN VERBOSE SELECT 1 AS parent_id EXPAND WITH improve",
        "CREATE POLICY three AS SELECT 1 AS operator",
        "CREATE OR REPLACE POLICY three COMMENT 'it''s mine' AS SELECT operator FROM run.candidates",
        "DROP POLICY three",
        "DROP POLICY IF EXISTS \"Odd Name\"",
        "SHOW POLICIES",
        "SHOW CREATE POLICY three",
        "EVOLVE TASK 'titanic'",
        "EVOLVE TASK 'titanic' WITH POLICY mcts_uct USING MODEL evolver IN SANDBOX native WITH (steps => 64, workers => 4, seed => 42, mode => 'generation', max_sandbox => '12 h') ASYNC",
        "SHOW RUNS",
        "CANCEL RUN '0196'",
        "RESUME RUN '0196'",
        "CHECKPOINT",
        "OPTIMIZE",
        "OPTIMIZE evo.nodes",
        "CREATE TASK FROM './tasks/titanic'",
        "CREATE MODEL local OPTIONS (provider => 'openai', url => 'http://localhost:30000/v1', max_tokens => 4096, stream => true, bias => -1.5)",
        "CREATE OR REPLACE MODEL local OPTIONS ()",
        "CREATE MODEL local OPTIONS (provider 'openai', temperature 0.7, stream false, 'top_p' => 1)",
        "DROP MODEL local",
        "DROP MODEL IF EXISTS 'org/model-7b'",
        "SHOW MODELS",
        "SET clade.model = 'evolver'",
        "EXPLAIN SELECT 1",
        "SELECT expand FROM (SELECT 1 AS expand) AS t",
        "SELECT 'EXPAND WITH improve' AS text",
    ] {
        let statement = one(text);
        assert_eq!(one(&statement.to_string()), statement, "{text}\nprinted: {statement}");
    }
}

#[test]
fn an_expand_has_its_parts() {
    let Statement::Expand(expand) = one(
        "select parent_id from policies.p -- EXPAND WITH draft (\n expand /* here */ with Improve (samples => 4, MAX_TOKENS => 200000, timeout => 90) in sandbox Native using model \"GPT\" async;",
    ) else {
        panic!("not an EXPAND")
    };
    assert_eq!(expand.query.to_string(), "SELECT parent_id FROM policies.p");
    assert_eq!(expand.clause.operator, Operator::Improve);
    assert_eq!(expand.clause.options.samples, Some(4));
    assert_eq!(expand.clause.options.max_tokens, Some(200_000));
    assert_eq!(expand.clause.options.timeout, Some(Duration::from_secs(90)));
    assert_eq!(expand.clause.model.as_deref(), Some("GPT"));
    assert_eq!(expand.clause.sandbox.as_deref(), Some("native"));
    assert!(expand.clause.is_async);
}

#[test]
fn a_text_is_cut_into_statements() {
    let parsed = parse(";; SELECT 'a;b' ; -- c;\n\n  SHOW RUNS;\nCHECKPOINT").unwrap();
    let found: Vec<_> = parsed
        .iter()
        .map(|one| (one.sql.as_str(), one.line, one.column))
        .collect();
    assert_eq!(
        found,
        [("SELECT 'a;b'", 1, 4), ("SHOW RUNS", 3, 3), ("CHECKPOINT", 4, 1)]
    );
    assert!(parse("  -- nothing\n;").unwrap().is_empty());
}

#[test]
fn a_policy_keeps_its_text() {
    let body = "-- first\n  SELECT node_id,\n         1.0 AS weight -- 'ü'\n  FROM run.candidates";
    let Statement::CreatePolicy(create) = one(&format!("CREATE POLICY P COMMENT 'c' AS\n{body}  ;")) else {
        panic!("not a policy")
    };
    assert_eq!(create.name, "p");
    assert_eq!(create.sql, &body[body.find("SELECT").unwrap()..]);
}

#[test]
fn options_pass_through_json() {
    let Statement::Evolve(evolve) = one(
        "EVOLVE TASK 't' WITH (steps => 64, mode => 'async', max_wall => '90 s', quality_weight => 0.5, cache => true)",
    ) else {
        panic!("not an EVOLVE")
    };
    let json = evolve.options.to_json();
    insta::assert_snapshot!(json, @r#"{"cache":true,"max_wall":90.0,"mode":"async","quality_weight":0.5,"steps":64}"#);
    assert_eq!(EvolveOptions::from_json(&json).unwrap(), evolve.options);
    assert!(EvolveOptions::from_json(&serde_json::json!({"steps": []})).is_err());
}

#[test]
fn errors_name_the_place() {
    let texts = [
        "SELECT parent_id FROM x EXPAND WITH",
        "SELECT parent_id FROM x EXPAND WITH (samples => 1)",
        "SELECT parent_id FROM x EXPAND WITH mutate",
        "SELECT parent_id FROM x EXPAND WITH improve (sample => 1)",
        "SELECT parent_id FROM x EXPAND WITH improve (samples => 1, seed => 2, samples => 3)",
        "SELECT parent_id FROM x EXPAND WITH improve (samples => 0)",
        "SELECT parent_id FROM x EXPAND WITH improve (samples => 1.5)",
        "SELECT parent_id FROM x EXPAND WITH improve (top_p => 0)",
        "SELECT parent_id FROM x EXPAND WITH improve (timeout => 'soon')",
        "SELECT parent_id FROM x EXPAND WITH improve (on_error => 'ignore')",
        "SELECT parent_id FROM x EXPAND WITH improve (samples = 1)",
        "SELECT parent_id FROM x EXPAND WITH improve (samples => 1",
        "SELECT parent_id FROM x EXPAND WITH improve (samples => abc)",
        "SELECT parent_id FROM x EXPAND WITH improve USING evolver",
        "SELECT parent_id FROM x EXPAND WITH improve ASYNC ASYNC",
        "SELECT parent_id FROM x EXPAND WITH improve LIMIT 3",
        "SELECT parent_id FROM x EXPAND WITH improve EXPAND WITH debug",
        "SELECT * FROM (SELECT parent_id FROM x EXPAND WITH improve)",
        "EXPAND WITH improve",
        "EXPLAIN ANALYZE SELECT parent_id FROM x EXPAND WITH improve",
        "INSERT INTO y SELECT parent_id FROM x EXPAND WITH improve",
        "CREATE VIEW v AS SELECT parent_id FROM x EXPAND WITH improve",
        "CREATE TABLE v AS SELECT parent_id FROM x EXPAND WITH improve",
        "CREATE POLICY v AS SELECT parent_id FROM x EXPAND WITH improve",
        "SELECT 1;\nSELECT parent_id\nFRM x y z EXPAND WITH improve",
        "SELECT 1;\nSELECT",
        "SELECT 1; SELECT (1; SELECT 2",
        "SELECT 'open",
        "SELECT 1 FROM a b c",
        "CREATE POLICY p AS",
        "CREATE POLICY p AS DROP TABLE x",
        "CREATE POLICY p SELECT 1",
        "EVOLVE 'titanic'",
        "EVOLVE TASK titanic",
        "EVOLVE TASK 'titanic' WITH steps => 64",
        "EVOLVE TASK 'titanic' WITH (step => 64)",
        "EVOLVE TASK 'titanic' WITH (mode => 'fast')",
        "EVOLVE TASK 'titanic' FOR 64",
        "SHOW RUNS now",
        "CANCEL 'x'",
        "RESUME RUN x",
        "CREATE MODEL m (a => 1)",
        "CREATE TASK './x'",
        "DROP POLICY",
        "CREATE TASK FROM ' '",
        "BEGIN",
        "SELECT 1;\n  COMMIT",
        "START TRANSACTION READ ONLY",
        "VACUUM evo.nodes",
        "ANALYZE TABLE evo.nodes",
        "ALTER TABLE evo.nodes ADD COLUMN x INT",
        "CREATE INDEX i ON evo.nodes (score)",
        "CREATE SCHEMA mine",
        "USE gym",
        "GRANT SELECT ON evo.nodes TO me",
        "SELCT 1",
        "SELECT 'draft' operator, 'x' parent_id",
        "SELECT 'draft' operator",
        "CREATE POLICY p AS\n  SELECT 'draft' operator, NULL AS parent_id",
    ];
    let shown: Vec<String> = texts.iter().map(|text| format!("{text}\n=> {}", error(text))).collect();
    insta::assert_snapshot!(shown.join("\n\n"));
}

/// Names: bare, quoted, with quotes and other scripts.
fn name() -> impl Strategy<Value = String> {
    prop_oneof![
        "[a-z_][a-z0-9_]{0,8}",
        "[A-Za-z0-9 ./:'\"ü漢-]{1,12}",
        Just("using".to_owned()),
        Just("true".to_owned())
    ]
}

fn duration() -> impl Strategy<Value = Duration> {
    (1_u64..1_000_000_000).prop_map(Duration::from_millis)
}

prop_compose! {
    fn expand_options()(
        samples in proptest::option::of(1_u64..10_000),
        seed in proptest::option::of(0..=i64::MAX as u64),
        max_cost_usd in proptest::option::of(0.0..1e6_f64),
        max_wall in proptest::option::of(duration()),
        top_p in proptest::option::of(1e-6..=1.0_f64),
        on_error in proptest::option::of(prop_oneof![Just(OnError::Record), Just(OnError::Fail), (1..u64::MAX).prop_map(OnError::StopAfter)]),
        id in proptest::option::of("[A-Za-z0-9_.:-]{1,20}"),
        cache in proptest::option::of(any::<bool>()),
    ) -> ExpandOptions {
        ExpandOptions { samples, seed, max_cost_usd, max_wall, top_p, on_error, id, cache, ..ExpandOptions::default() }
    }
}

prop_compose! {
    fn evolve_options()(
        steps in proptest::option::of(1_u64..10_000),
        mode in proptest::option::of(prop_oneof![Just(RunMode::Async), Just(RunMode::Generation)]),
        max_sandbox in proptest::option::of(duration()),
        novelty_weight in proptest::option::of(0.0..1_000.0_f64),
    ) -> EvolveOptions {
        EvolveOptions { steps, mode, max_sandbox, novelty_weight, ..EvolveOptions::default() }
    }
}

fn query() -> impl Strategy<Value = (Box<datafusion::sql::sqlparser::ast::Query>, String)> {
    prop_oneof![
        Just("SELECT parent_id FROM policies.p LIMIT 3"),
        Just("WITH a AS (SELECT 1 AS x) SELECT x AS parent_id FROM a WHERE x IN (SELECT 2) ORDER BY x"),
        Just("VALUES (1, 'a;b')"),
    ]
    .prop_map(|sql| match one(&format!("CREATE POLICY p AS {sql}")) {
        Statement::CreatePolicy(create) => (create.query, sql.to_owned()),
        _ => panic!("not a policy"),
    })
}

fn statement() -> impl Strategy<Value = Statement> {
    let targets = || {
        (
            proptest::option::of(name()),
            proptest::option::of(name()),
            any::<bool>(),
        )
    };
    let operator = proptest::sample::select(Operator::ALL.to_vec());
    let expand = || {
        (query(), operator.clone(), expand_options(), targets()).prop_map(
            |((query, _), operator, options, (model, sandbox, is_async))| Expand {
                query,
                clause: ExpandClause {
                    operator,
                    options,
                    model,
                    sandbox,
                    is_async,
                },
            },
        )
    };
    let explain = (expand(), any::<bool>());
    let evolve = (".{0,12}", proptest::option::of(name()), evolve_options(), targets());
    let value = prop_oneof![
        any::<i32>().prop_map(|number| OptionValue::Number(number.to_string())),
        ".{0,12}".prop_map(OptionValue::Text),
        any::<bool>().prop_map(OptionValue::Bool),
    ];
    prop_oneof![
        expand().prop_map(|expand| Statement::Expand(Box::new(expand))),
        explain.prop_map(|(expand, verbose)| Statement::ExplainExpand(Box::new(ExplainExpand { verbose, expand }))),
        (any::<bool>(), name(), proptest::option::of(".{0,12}"), query()).prop_map(
            |(or_replace, name, comment, (query, sql))| Statement::CreatePolicy(Box::new(CreatePolicy {
                or_replace,
                name,
                comment,
                query,
                sql
            }))
        ),
        (any::<bool>(), name()).prop_map(|(if_exists, name)| Statement::DropPolicy(DropPolicy { if_exists, name })),
        name().prop_map(|name| Statement::ShowCreatePolicy { name }),
        evolve.prop_map(
            |(task_id, policy, options, (model, sandbox, is_async))| Statement::Evolve(Box::new(Evolve {
                task_id,
                policy,
                model,
                sandbox,
                options,
                is_async
            }))
        ),
        ".{0,12}".prop_map(|run_id| Statement::CancelRun { run_id }),
        proptest::collection::vec(name(), 1..4).prop_map(|table| Statement::Optimize { table: Some(table) }),
        ".{0,12}".prop_map(|path| Statement::CreateTask {
            path: format!("tasks/{path}")
        }),
        (
            any::<bool>(),
            name(),
            proptest::collection::btree_map(name(), value, 0..4)
        )
            .prop_map(|(or_replace, name, options)| Statement::CreateModel(CreateModel {
                or_replace,
                name,
                options: options.into_iter().collect()
            })),
    ]
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 256, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn printing_and_parsing_agree(statement in statement()) {
        let text = statement.to_string();
        let parsed = parse(&text).map_err(|error| TestCaseError::fail(error.to_string()))?;
        prop_assert_eq!(parsed.len(), 1);
        prop_assert_eq!(&parsed[0].statement, &statement);
        prop_assert_eq!(&parsed[0].sql, &text);
    }

    #[test]
    fn no_text_makes_the_parser_fall_over(text in "(EXPAND|WITH|EVOLVE|TASK|CREATE|POLICY|AS|SELECT|;|\\(|\\)|=>|'|\"|,|\n|ü|[a-z]{1,3}|[0-9]{1,2}| |\\.|--|/\\*){0,24}") {
        if let Err(error) = parse(&text) {
            prop_assert!(error.line >= 1 && error.column >= 1, "{}", error);
        }
    }
}
