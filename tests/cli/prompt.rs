//! `clade prompt`: what would be sent, without sending it.

use super::fixture::Place;

/// The recorded search, with files of its task.
fn place() -> Place {
    let place = Place::with_history();
    for (path, text) in [
        ("utils/metric.py", "class MaeMetrics:\n    pass\n"),
        ("data/private/test_answer.csv", "id,age\n1,9\n"),
        ("data/public/train.csv", "id,length,age\n1,0.5,9\n"),
        ("validation/public/train.csv", "id,length,age\n1,0.5,9\n2,0.25,7\n"),
        ("validation/private/test_answer.csv", "id,age\n3,secret\n"),
    ] {
        let path = place.path().join("clade-store/tasks/abalone/p1").join(path);
        std::fs::create_dir_all(path.parent().unwrap()).unwrap();
        std::fs::write(path, text).unwrap();
    }
    place
}

#[test]
fn the_prompt_is_printed_with_its_tokens_and_nothing_is_written() {
    let place = place();
    let shown = place.run(["prompt", "improve", "--parent", "nabc02"]).ok();
    for part in [
        "──── system, ",
        "──── user, ",
        "RandomForestRegressor",
        "Predict the age of each abalone from its measures.",
        "`train.csv` (csv, 31 bytes): 2 rows of 3 columns",
        "Steps left: not counted",
        "(estimate: a token every 4 bytes)",
        "shown:   parent nabc02",
        "shown:   sibling nxyz04",
        "What it changed:",
    ] {
        assert!(shown.contains(part), "{part} in {shown}");
    }
    assert!(!shown.contains("secret"));
    let sql = "SELECT (SELECT count(*) FROM gym.overview_files) + (SELECT count(*) FROM evo.generations)
               + (SELECT count(*) FROM evo.attempts) AS written";
    let written = place.run(["sql", "--format", "csv", "-c", sql]).ok();
    assert_eq!(written, "written\n0\n");
}

#[test]
fn json_has_a_row_a_message() {
    let place = place();
    let text = place
        .run([
            "prompt",
            "crossover",
            "--parent",
            "nabc02",
            "--parent2",
            "nabc01",
            "--format",
            "json",
        ])
        .ok();
    let rows: Vec<serde_json::Value> = serde_json::from_str(&text).unwrap();
    let roles: Vec<&str> = rows.iter().filter_map(|row| row["role"].as_str()).collect();
    assert_eq!(roles, ["system", "user"]);
    let tokens: i64 = rows.iter().filter_map(|row| row["tokens"].as_i64()).sum();
    assert_eq!(rows[0]["prompt_tokens"].as_i64(), Some(tokens));
    assert_eq!(rows[0]["most_prompt_tokens"].as_i64(), Some(65_536));
    assert!(
        rows[1]["shown"]
            .as_str()
            .unwrap()
            .starts_with("parent nabc02; parent2 nabc01")
    );
}

#[test]
fn the_tokenizer_of_a_model_counts() {
    let place = place();
    let tokenizer = std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/model/tokenizer/gpt2.json");
    let tokenizer = tokenizer.to_string_lossy();
    place.write(
        "clade.toml",
        &format!(
            "[models.counted]\nprovider = 'openai'\nendpoint = 'http://localhost:9/v1'\nmodel = 'm'\ntokenizer = '{tokenizer}'\n"
        ),
    );
    let shown = place
        .run(["prompt", "draft", "--task", "abalone", "--model", "counted"])
        .ok();
    assert!(shown.contains("(the model's tokenizer)"), "{shown}");
}

#[test]
fn notes_and_templates_of_a_folder_enter() {
    let place = place();
    for (path, text) in [
        ("skills/abalone.md", "Shells have no zero length."),
        ("skills/nowhere.md", "For another store."),
        (
            "prompts/modality/tabular.j2",
            "- Our own advice for {{ task.metric }}.\n",
        ),
    ] {
        std::fs::create_dir_all(place.path().join(path).parent().unwrap()).unwrap();
        place.write(path, text);
    }
    let flags = [
        "prompt",
        "draft",
        "--task",
        "abalone",
        "--skills",
        "skills",
        "--prompts",
        "prompts",
    ];
    let outcome = place.run(flags);
    assert!(
        outcome.stderr.contains("the store has no task 'nowhere'"),
        "{}",
        outcome.stderr
    );
    let shown = outcome.ok();
    assert!(
        shown.contains("Shells have no zero length.") && shown.contains("skill:   abalone.md@"),
        "{shown}"
    );
    assert!(shown.contains("- Our own advice for mean absolute error."), "{shown}");
    place.write("prompts/improove.j2", "x");
    let refused = place.run(flags);
    assert_eq!(refused.code, 1);
    assert!(
        refused.stderr.contains("prompts/improove.j2") && refused.stderr.contains("improve.j2"),
        "{}",
        refused.stderr
    );
    std::fs::remove_file(place.path().join("prompts/improove.j2")).unwrap();
    for (text, part) in [
        (
            "One.\n{{ task.metrc }}\n",
            "prompts/data.j2 is wrong: line 2: undefined value: there is no 'task.metrc'",
        ),
        ("\n", "prompts/data.j2 cannot be used: it is empty"),
    ] {
        place.write("prompts/data.j2", text);
        let refused = place.run(flags);
        assert!(refused.code == 1 && refused.stderr.contains(part), "{}", refused.stderr);
    }
    let refused = place.run(["prompt", "draft", "--task", "abalone", "--skills", "no-such-folder"]);
    assert!(refused.stderr.contains("no-such-folder"), "{}", refused.stderr);
}

#[test]
fn a_longer_prompt_says_what_was_left_out() {
    let place = place();
    let whole = place
        .run(["prompt", "improve", "--parent", "nabc02", "--format", "json"])
        .ok();
    let rows: Vec<serde_json::Value> = serde_json::from_str(&whole).unwrap();
    let budget = rows[0]["prompt_tokens"].as_i64().unwrap() - 1;
    let setting = format!("prompts.max_tokens={budget}");
    let shown = place
        .run(["prompt", "improve", "--parent", "nabc02", "--set", &setting])
        .ok();
    assert!(shown.contains("left out: change of "), "{shown}");
}

#[test]
fn wrong_uses_are_explained() {
    let place = place();
    for (arguments, code, part) in [
        (vec!["prompt", "improve"], 2, "improve needs --parent"),
        (vec!["prompt", "draft"], 2, "draft needs --task or --run"),
        (
            vec!["prompt", "draft", "--task", "abalone", "--parent", "nabc01"],
            2,
            "draft takes no --parent",
        ),
        (
            vec!["prompt", "polish"],
            2,
            "the operators are draft, improve, debug and crossover",
        ),
        (vec!["prompt", "debug", "--parent", "nabc02"], 1, "is healthy"),
        (
            vec!["prompt", "improve", "--parent", "zzz"],
            1,
            "no node has an id that begins with 'zzz'",
        ),
        (vec!["prompt", "draft", "--task", "nope"], 1, "the store has abalone"),
        (
            vec!["prompt", "improve", "--parent", "nabc02", "--model", "nope"],
            1,
            "nope",
        ),
    ] {
        let outcome = place.run(&arguments);
        assert_eq!(outcome.code, code, "{arguments:?}: {}", outcome.stderr);
        assert!(outcome.stderr.contains(part), "{arguments:?}: {}", outcome.stderr);
    }
}
