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
    let error = place.run(["sql", "-c", "SELECT nope FROM evo.nodes"]).fails(1);
    assert!(error.contains("nope"), "{error}");
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
