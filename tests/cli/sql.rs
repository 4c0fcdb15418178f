//! `clade sql`: formats, several statements, errors.

use super::fixture::Place;

const SQL: &str = "SELECT 1 AS a, 'x' AS b, NULL AS c UNION ALL SELECT 22, 'it''s', 'y' ORDER BY a";

#[test]
fn formats() {
    let place = Place::with_store();
    for format in ["table", "json", "csv"] {
        insta::assert_snapshot!(
            format!("sql_{format}"),
            place.run(["sql", "-c", SQL, "--format", format]).ok()
        );
    }
    let arrow = place.command(["sql", "-c", SQL, "--format", "arrow"]).output().unwrap();
    let reader = arrow::ipc::reader::StreamReader::try_new(arrow.stdout.as_slice(), None).unwrap();
    assert_eq!(reader.map(|batch| batch.unwrap().num_rows()).sum::<usize>(), 2);
}

#[test]
fn rows_go_to_standard_output_and_counts_to_standard_error() {
    let place = Place::with_store();
    let outcome = place.run(["sql", "-c", SQL]);
    assert!(outcome.stderr.starts_with("(2 rows, "), "{}", outcome.stderr);
    assert!(!outcome.stdout.contains("rows"));
}

#[test]
fn statements_come_from_commands_files_and_standard_input() {
    let place = Place::with_store();
    let file = place.write("two.sql", "SET clade.model = 'evolver';\nSELECT 2 AS n;");
    let path = file.to_string_lossy().into_owned();
    assert_eq!(
        place
            .run(["sql", "-c", "SELECT 1 AS n", "-f", &path, "--format", "csv"])
            .ok(),
        "n\n1\nn\n2\n"
    );
    assert_eq!(
        place.run(["sql", "-f", &path, "--format", "json"]).ok(),
        "[\n{\"n\":2}\n]\n"
    );
    assert_eq!(
        place.run_with_input(["sql", "--format", "csv"], "SELECT 3 AS n").ok(),
        "n\n3\n"
    );
    assert_eq!(
        place
            .run_with_input(["sql", "-f", "-", "--format", "csv"], "SELECT 4 AS n")
            .ok(),
        "n\n4\n"
    );
    assert_eq!(
        place
            .run(["sql", "-c", "SET clade.model = 'evolver'", "--format", "json"])
            .ok(),
        "[]\n"
    );
    place.run(["sql", "-f", "nowhere.sql"]).fails(1);
}

#[test]
fn errors_show_the_place() {
    let place = Place::with_store();
    insta::assert_snapshot!(
        "sql_error_syntax",
        place.run(["sql", "-c", "SELECT 1;\nSELECT (2 FROM x"]).fails(1)
    );
    for (name, sql) in [
        ("column", "SELECT 1;\n  SELECT step,\n    scor FROM evo.nodes"),
        ("column_of_a_table", "SELECT n.step, n.zzzz FROM evo.edges AS n"),
        ("table", "SELECT 1; SELECT * FROM evo.nowhere"),
        ("function", "SELECT minmax_nrm(score) OVER () FROM evo.nodes"),
        ("types", "SELECT 'a' + TRUE"),
        (
            "nested_window",
            "SELECT softmax(minmax_norm(score) OVER (), 1.0) OVER () FROM evo.nodes",
        ),
        (
            "nested_without_columns",
            "SELECT sum(rank() OVER ()) OVER () FROM evo.nodes",
        ),
        (
            "policy",
            "CREATE POLICY p AS\n  SELECT 'improve' AS operator,\n  nod_id AS parent_id FROM run.candidates",
        ),
        (
            "expand",
            "SELECT node_id AS parent_id, nope\nFROM evo.nodes EXPAND WITH improve",
        ),
    ] {
        insta::assert_snapshot!(
            format!("sql_error_{name}"),
            place.run(["sql", "-c", sql, "--format", "csv"]).fails(1)
        );
    }
    let outcome = place.run(["sql", "-c", "SELECT 1 AS n; SELECT * FROM nowhere", "--format", "csv"]);
    assert_eq!(outcome.stdout, "n\n1\n", "statements before the error have been done");
    outcome.fails(1);
}

#[test]
fn a_reader_does_not_write() {
    let place = Place::with_store();
    let sql = "CREATE POLICY p AS SELECT 'draft' AS operator, NULL AS parent_id";
    let error = place.run(["sql", "--read-only", "-c", sql]).fails(1);
    assert!(error.contains("read"), "{error}");
    assert_eq!(
        place
            .run(["sql", "--read-only", "-c", "SELECT 1 AS n", "--format", "csv"])
            .ok(),
        "n\n1\n"
    );
}

/// Lines on standard error without row counts.
fn said(place: &Place, sql: &str) -> String {
    let outcome = place.run(["sql", "-c", sql]);
    assert_eq!(outcome.code, 0, "{}", outcome.stderr);
    let lines = outcome.stderr.lines().filter(|line| !line.starts_with('('));
    lines.map(|line| format!("{line}\n")).collect()
}

#[test]
fn statements_without_rows_say_what_they_did() {
    let place = Place::with_history();
    let policy = "CREATE POLICY p AS SELECT 'draft' AS operator, CAST(NULL AS VARCHAR) AS parent_id";
    for (sql, answer) in [
        (
            policy,
            "policy p is made: EVOLVE TASK '…' WITH POLICY p searches with it",
        ),
        (
            &policy.replace("CREATE", "CREATE OR REPLACE"),
            "policy p is replaced: EVOLVE TASK '…' WITH POLICY p searches with it",
        ),
        ("DROP POLICY p", "policy p is dropped; the runs that used it keep it"),
        ("DROP POLICY IF EXISTS p", "there was no policy p to drop"),
        ("SET clade.model = 'evolver'", "clade.model is evolver"),
        (
            "SET clade.model = ''",
            "clade.model is not set any more: its default holds",
        ),
        ("SET clade.run_id = 'last'", "clade.run_id is 01run"),
        ("SET clade.run_id = '01'", "clade.run_id is 01run"),
        ("CHECKPOINT", "all rows are in Parquet files now"),
        ("OPTIMIZE evo.nodes", "small files of table evo.nodes are merged"),
        ("CREATE VIEW v AS SELECT 1 AS one", "view v is made for this session"),
    ] {
        assert_eq!(said(&place, sql), format!("{answer}\n"), "{sql}");
    }
    let json = place.run(["sql", "-c", "CHECKPOINT", "--format", "json"]);
    assert_eq!((json.stdout.as_str(), json.stderr.as_str()), ("[]\n", ""));
}

#[test]
fn the_run_that_is_shown_must_exist() {
    let place = Place::with_history();
    let warning = said(&place, "SELECT count(*) AS n FROM run.nodes");
    assert!(
        warning.starts_with("note: no run is chosen") && warning.contains("SET clade.run_id = 'last'"),
        "{warning}"
    );
    let in_json = place.run(["sql", "-c", "SELECT * FROM policies.uniform", "--format", "json"]);
    assert!(
        in_json.stderr.starts_with("note: no run is chosen"),
        "{}",
        in_json.stderr
    );
    assert_eq!(
        said(&place, "SET clade.run_id = 'last'; SELECT count(*) FROM run.nodes")
            .lines()
            .count(),
        1
    );
    insta::assert_snapshot!(
        "unknown_run",
        place.run(["sql", "-c", "SET clade.run_id = 'nonsense'"]).fails(1)
    );
    let error = place.run(["sql", "--run", "nonsense", "-c", "SELECT 1"]).fails(1);
    assert!(error.contains("01run"), "{error}");
    assert_eq!(
        place.run(["policy", "trace", "uniform", "--format", "json"]).ok(),
        "[]\n"
    );
}

#[test]
fn a_table_and_its_columns_are_explained() {
    let place = Place::with_store();
    let outcome = place.run(["sql", "-c", "DESCRIBE evo.edges"]);
    assert!(
        outcome.stderr.starts_with("evo.edges: One row a parent-child link.\n"),
        "{}",
        outcome.stderr
    );
    insta::assert_snapshot!("describe", outcome.ok());
}

#[test]
fn one_text_of_several_lines_is_printed_as_it_is() {
    let place = Place::with_history();
    let code = "SELECT code FROM evo.nodes WHERE node_id = 'nabc01'";
    let program = "import pandas as pd\nfrom sklearn.linear_model import Ridge\n\nmodel = Ridge()\nprint(model)\n";
    assert_eq!(place.run(["sql", "-c", code]).ok(), program);
    assert_eq!(place.run(["show", "nabc01", "--code"]).ok(), program);
}

#[test]
fn commands_of_the_shell_work_in_a_pipe() {
    let place = Place::with_history();
    let script = "SELECT 1 AS n;\n.format csv\nSELECT 2\n  AS n;\n.policies\n.quit\nSELECT 3 AS n;\n";
    let outcome = place.run_with_input(["sql"], script);
    assert!(
        outcome.stdout.contains("\nn\n2\nname,origin,comment\n"),
        "{}",
        outcome.stdout
    );
    assert!(outcome.stdout.contains("uniform,shipped,"), "{}", outcome.stdout);
    assert!(!outcome.ok().contains('3'));
    // The line is that of the whole text.
    let error = place
        .run_with_input(["sql"], ".timing off\nSELECT 1;\n.format csv\n\nSELECT (;\n")
        .fails(1);
    assert!(error.starts_with("error: line 5, column 9"), "{error}");
    let error = place.run_with_input(["sql"], ".nope\n").fails(2);
    assert!(error.contains("there is no command '.nope'"), "{error}");
}
