//! NULL, NaN, partitions, types and error messages through SQL.

use serde_json::{Value, json};

use crate::session::{column, error, rows, session, value};

#[tokio::test]
async fn null_gives_null() {
    let context = session();
    for call in [
        "signed_score(NULL, true)",
        "signed_score(1, NULL)",
        "novelty(NULL)",
        "linear_decay(NULL, 1, 1, 1)",
        "linear_decay(1, 1, 1, NULL)",
        "linear_decay(1, 1, 0, 1)",
        "python_imports(NULL)",
        "method_family(NULL)",
        "code_fingerprint(NULL)",
        "code_similarity(NULL, 'x')",
        "code_similarity('x', NULL)",
        "unified_diff('x', NULL)",
        "error_signature(NULL, 'ValueError: x')",
        "extract_code(NULL)",
        "strip_thinking(NULL)",
        "plan_text(NULL)",
        "final_validation_score(NULL)",
        "sanitize_output(NULL)",
        "clear_log(NULL)",
        "truncate_middle(NULL, 1, 1)",
        "truncate_middle('x', NULL, 1)",
        "medal(NULL, [1.0], true)",
        "medal(1, NULL, true)",
        "medal(1, [1.0], NULL)",
        "human_rank(NULL, [1.0], true)",
        "leaderboard_rank(1, NULL, true)",
        "medal_positions(NULL)",
        "medal_positions(0)",
    ] {
        assert_eq!(value(&context, &format!("SELECT {call}")).await, Value::Null, "{call}");
    }
    for call in [
        "minmax_norm(x)",
        "rank_norm(x)",
        "hybrid_norm(x)",
        "positive_delta_norm(x)",
        "softmax(x, 1)",
    ] {
        let sql =
            format!("SELECT {call} OVER () FROM (VALUES (CAST(NULL AS DOUBLE)), (CAST('NaN' AS DOUBLE))) AS t(x)");
        assert_eq!(
            column(&context, &sql).await.unwrap(),
            [Value::Null, Value::Null],
            "{call}"
        );
    }
}

#[tokio::test]
async fn invalid_scores_are_never_best() {
    let context = session();
    for word in ["NaN", "inf", "-inf"] {
        for call in [
            "signed_score(x, true)",
            "medal(x, [1.0, 2.0], false)",
            "human_rank(x, [1.0], true)",
            "novelty(x)",
        ] {
            let sql = format!("SELECT {call} FROM (SELECT CAST('{word}' AS DOUBLE) AS x)");
            assert_eq!(value(&context, &sql).await, Value::Null, "{call} of {word}");
        }
    }
    let sql = "SELECT softmax(x, 0) OVER () FROM (VALUES (1, 1.0), (2, CAST('inf' AS DOUBLE)), (3, 2.0), (4, 2.0)) AS t(i, x) ORDER BY i";
    assert_eq!(
        column(&context, sql).await.unwrap(),
        [json!(0.0), Value::Null, json!(0.5), json!(0.5)]
    );
}

#[tokio::test]
async fn partitions_do_not_see_each_other() {
    let context = session();
    let sql = "SELECT minmax_norm(x) OVER (PARTITION BY g), rank_norm(x) OVER (PARTITION BY g), hybrid_norm(x, 0.5) OVER (PARTITION BY g),
            positive_delta_norm(x, 'rank') OVER (PARTITION BY g), softmax(x, 0) OVER (PARTITION BY g)
        FROM (VALUES (1, 'a', 1), (2, 'a', 3), (3, 'b', 5), (4, 'a', 2), (5, 'c', NULL)) AS t(i, g, x) ORDER BY i";
    assert_eq!(
        rows(&context, sql).await.unwrap(),
        [
            vec![json!(0.0), json!(0.0), json!(0.0), json!(0.0), json!(0.0)],
            vec![json!(1.0), json!(1.0), json!(1.0), json!(1.0), json!(1.0)],
            vec![json!(0.5), json!(0.5), json!(0.5), json!(0.5), json!(1.0)],
            vec![json!(0.5), json!(0.5), json!(0.5), json!(0.5), json!(0.0)],
            vec![Value::Null, Value::Null, Value::Null, Value::Null, Value::Null],
        ]
    );
    let ordered = "SELECT minmax_norm(x) OVER (ORDER BY x DESC) FROM (VALUES (1), (2), (3)) AS t(x) ORDER BY x";
    assert_eq!(
        column(&context, ordered).await.unwrap(),
        [json!(0.0), json!(0.5), json!(1.0)]
    );
    let empty = "SELECT softmax(x, 1) OVER () FROM (SELECT 1.0 AS x WHERE false)";
    assert!(column(&context, empty).await.unwrap().is_empty());
}

#[tokio::test]
async fn arguments_have_names_and_types() {
    let context = session();
    for (sql, expected) in [
        (
            "SELECT truncate_middle(text => repeat('x', 300), keep => 2, max => 100)",
            json!("xx\n ... [296 characters not shown] ... \nxx"),
        ),
        (
            "SELECT signed_score(higher_is_better => false, score => 2)",
            json!(-2.0),
        ),
        ("SELECT softmax(temperature => 1, x => 3) OVER ()", json!(1.0)),
        ("SELECT positive_delta_norm(x => 3) OVER ()", json!(1.0)),
        ("SELECT hybrid_norm(x => 3, w => 1) OVER ()", json!(0.5)),
        ("SELECT medal(0.9, [0.8, 0.7], true)", json!("gold")),
        (
            "SELECT medal(score => 3, leaderboard => [1, 2, 2], higher_is_better => false)",
            json!("none"),
        ),
        ("SELECT leaderboard_rank(2, [3, NULL, 1], true)", json!(2)),
        ("SELECT human_rank(2, make_array(), true)", Value::Null),
        (
            "SELECT novelty(count(*)) FROM (VALUES (1), (2), (3)) AS t(x)",
            json!(0.5),
        ),
        ("SELECT medal_positions(250)['silver']", json!(50)),
        (
            "SELECT python_imports(arrow_cast('import os', 'LargeUtf8'))",
            json!(["os"]),
        ),
        ("SELECT error_signature('timeout', NULL)", json!("timeout")),
        (
            "SELECT error_signature('code_execution_error', 'ModuleNotFoundError: No module named q')",
            json!("import_error"),
        ),
    ] {
        assert_eq!(value(&context, sql).await, expected, "{sql}");
    }
}

#[tokio::test]
async fn columns_and_constants_mix() {
    let context = session();
    let sql = "SELECT medal(x, [3.0, 2.0, 1.0], true), code_similarity(c, 'x = 1'), unified_diff(c, c)
        FROM (VALUES (1, 3.5, 'x=1'), (2, 0.5, 'y'), (3, NULL, NULL)) AS t(i, x, c) ORDER BY i";
    assert_eq!(
        rows(&context, sql).await.unwrap(),
        [
            vec![json!("gold"), json!(1.0), json!("")],
            vec![json!("none"), json!(0.0), json!("")],
            vec![Value::Null, Value::Null, Value::Null],
        ]
    );
    let boards = "SELECT leaderboard_rank(2.5, b, true) FROM (SELECT 1 AS i, [3.0, 2.0] AS b UNION ALL SELECT 2, [1.0]) ORDER BY i";
    assert_eq!(column(&context, boards).await.unwrap(), [json!(2), json!(1)]);
}

#[tokio::test]
async fn errors_say_what_to_do() {
    let context = session();
    for (sql, message) in [
        (
            "SELECT softmax(1.0, -1) OVER ()",
            "softmax: temperature is -1; it must be finite and not below 0",
        ),
        (
            "SELECT softmax(x, x) OVER () FROM (VALUES (1.0), (2.0)) AS t(x)",
            "softmax: temperature differs within a partition",
        ),
        (
            "SELECT positive_delta_norm(1.0, 'exp') OVER ()",
            "unknown mode 'exp'; use 'minmax', 'rank' or 'hybrid'",
        ),
        (
            "SELECT truncate_middle('abc', -1, 0)",
            "truncate_middle: max is -1; it must not be below 0",
        ),
        (
            "SELECT medal('a', [1.0], true)",
            "medal takes a score, a list of the leaderboard's scores and a boolean",
        ),
        ("SELECT medal(1.0, 2.0, true)", "medal takes a score, a list"),
        ("SELECT minmax_norm('text', 1) OVER ()", "minmax_norm"),
    ] {
        let found = error(&context, sql).await;
        assert!(found.contains(message), "{sql}: {found}");
    }
}
