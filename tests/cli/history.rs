//! Commands that show what a search left behind.

use super::fixture::Place;

#[test]
fn a_node_with_everything_about_it() {
    let place = Place::with_history();
    insta::assert_snapshot!("show_success", place.run(["show", "nabc02"]).ok());
    insta::assert_snapshot!("show_failure", place.run(["show", "nabd"]).ok());
    let json: serde_json::Value =
        serde_json::from_str(&place.run(["show", "nabc02", "--format", "json"]).ok()).unwrap();
    assert_eq!(json[0]["node_id"], "nabc02");
    assert!(place.run(["show", "nabc01", "--code"]).ok().ends_with("print(model)\n"));
}

#[test]
fn ids_may_be_shortened_while_they_are_unique() {
    let place = Place::with_history();
    insta::assert_snapshot!("ambiguous_node", place.run(["show", "nab"]).fails(1));
    assert_eq!(
        place.run(["show", "q"]).fails(1),
        "error: no node has an id that begins with 'q'\n"
    );
    assert_eq!(
        place.run(["show", "n'; --"]).fails(1),
        "error: no node has an id that begins with 'n'; --'\n"
    );
    place.run(["plot", "01r", "--out", "-"]).ok();
    assert!(
        Place::with_store()
            .run(["watch"])
            .fails(1)
            .contains("there is no run yet")
    );
}

#[test]
fn the_difference_of_two_programs() {
    let place = Place::with_history();
    insta::assert_snapshot!("diff_gain", place.run(["diff", "nabc01", "nabc02"]).ok());
    insta::assert_snapshot!("diff_equal_programs", place.run(["diff", "nabc01", "nxyz"]).ok());
    let coloured = place.run(["diff", "nabc01", "nabd", "--color", "always"]).ok();
    assert!(coloured.contains("\x1b[32m+print(1 / 0)\x1b[0m"), "{coloured}");
}

#[test]
fn runs_and_their_progress() {
    let place = Place::with_history();
    let runs: serde_json::Value = serde_json::from_str(&place.run(["runs", "--format", "json"]).ok()).unwrap();
    assert_eq!(runs[0]["run_id"], "01run");
    assert_eq!(runs[0]["steps"], 4);
    insta::assert_snapshot!("runs", place.run(["runs"]).ok());
    insta::assert_snapshot!("watch_once", place.run(["watch", "--once"]).ok());
    let watched = place.run(["watch"]);
    assert!(watched.stderr.contains("finished: step 4/4"), "{}", watched.stderr);
    assert_eq!(watched.code, 0);
    assert!(place.run(["watch", "--interval", "0"]).fails(2).contains("above 0"));
}

#[test]
fn a_picture_of_a_run() {
    let place = Place::with_history();
    let outcome = place.run(["plot", "last", "--out", "a.svg"]);
    assert!(outcome.stderr.contains("a.svg"));
    let svg = std::fs::read_to_string(place.path().join("a.svg")).unwrap();
    assert!(svg.contains("abalone") && svg.contains("mean absolute error (lower is better)"));
}

#[test]
fn tasks() {
    let place = Place::with_history();
    insta::assert_snapshot!("task_list", place.run(["task", "list"]).ok());
    insta::assert_snapshot!("task_show", place.run(["task", "show", "abalone"]).ok());
    assert_eq!(
        place.run(["task", "show", "nope"]).fails(1),
        "error: there is no task 'nope'; the tasks: abalone\n"
    );
    place.run(["task", "add", "nowhere"]).fails(1);
}

#[test]
fn files_of_every_format() {
    let place = Place::with_history();
    for (file, source) in [
        ("a.parquet", "evo.nodes"),
        ("a.csv", "SELECT node_id, score FROM evo.nodes ORDER BY node_id"),
        ("a.json", "evo.nodes"),
        ("a.arrow", "evo.nodes"),
    ] {
        let outcome = place.run(["export", source, "--out", file]);
        assert!(outcome.stderr.contains("wrote 4 rows"), "{}", outcome.stderr);
        outcome.ok();
    }
    let csv = std::fs::read_to_string(place.path().join("a.csv")).unwrap();
    assert_eq!(csv, "node_id,score\nnabc01,2.5\nnabc02,2.25\nnabd03,\nnxyz04,2.75\n");
    let parquet = std::fs::File::open(place.path().join("a.parquet")).unwrap();
    let reader = datafusion::parquet::arrow::arrow_reader::ParquetRecordBatchReaderBuilder::try_new(parquet).unwrap();
    for field in reader.schema().fields() {
        assert!(
            !format!("{:?}", field.data_type()).contains("View"),
            "{field} is a view"
        );
    }
    let rows: usize = reader.build().unwrap().map(|batch| batch.unwrap().num_rows()).sum();
    assert_eq!(rows, 4);
    assert!(
        place
            .run(["export", "evo.nodes", "--out", "a.xlsx"])
            .fails(2)
            .contains(".parquet")
    );
    place.run(["export", "SELECT nope", "--out", "b.csv"]).fails(1);
    assert!(!place.path().join("b.csv").exists());
    let left: Vec<_> = std::fs::read_dir(place.path())
        .unwrap()
        .filter(|entry| {
            entry
                .as_ref()
                .unwrap()
                .file_name()
                .to_string_lossy()
                .starts_with(".clade")
        })
        .collect();
    assert!(left.is_empty(), "{left:?}");
}

#[test]
fn the_board_and_the_cards_of_a_run() {
    let place = Place::with_history();
    insta::assert_snapshot!("export_board", place.run(["export", "board", "last"]).ok());
    let outcome = place.run(["export", "cards", "01r", "--out", "cards.json"]);
    assert_eq!(outcome.stderr, "wrote cards.json\n");
    insta::assert_snapshot!(
        "export_cards",
        std::fs::read_to_string(place.path().join("cards.json")).unwrap()
    );
    insta::assert_snapshot!("export_unknown_run", place.run(["export", "board", "nope"]).fails(1));
    place.run(["export", "evo.nodes"]).fails(2);
    place.run(["export", "--out", "a.csv"]).fails(2);
}

#[test]
fn policies_are_made_shown_and_dropped() {
    let place = Place::with_history();
    let query = "SELECT 'improve' AS operator, node_id AS parent_id, 1.0 AS weight FROM run.candidates";
    place
        .run(["policy", "create", "mine", query, "--comment", "it's mine"])
        .ok();
    place.run(["policy", "create", "mine", query]).fails(1);
    place
        .run_with_input(["policy", "create", "mine", "--replace"], query)
        .ok();
    let shown = place.run(["policy", "show", "mine"]).ok();
    assert!(
        shown.starts_with("CREATE POLICY mine") && shown.contains("run.candidates"),
        "{shown}"
    );
    insta::assert_snapshot!("policy_list", place.run(["policy", "list"]).ok());
    let list = place.run(["policy", "list", "--format", "csv"]).ok();
    assert!(list.contains("mine,") && list.contains("openmle_evo,"), "{list}");
    place.run(["policy", "drop", "mine"]).ok();
    place.run(["policy", "drop", "mine"]).fails(1);
}

#[test]
fn a_policy_is_shown_as_text_that_can_be_pasted() {
    let place = Place::with_store();
    let shown = place.run(["policy", "show", "best_of_n"]).ok();
    assert_eq!(shown, place.run(["sql", "-c", "SHOW CREATE POLICY best_of_n"]).ok());
    insta::assert_snapshot!("show_policy", shown);
    let own = shown.replace("POLICY best_of_n", "POLICY mine");
    place.run(["sql", "-c", &own]).ok();
    assert_eq!(place.run(["policy", "show", "mine"]).ok(), own);
}
