//! `clade model`, and keys that must not be seen anywhere.

use std::path::Path;

use super::fixture::{Place, finish};
use crate::model::server::{Act, Server, answer, error, message};

const KEY: &str = "sk-planted-7f3a91c2";

/// Runs the program while the service answers.
async fn run(place: &Place, arguments: &[&str]) -> super::fixture::Outcome {
    let mut command = place.command(arguments);
    command.env("PLANTED_KEY", KEY);
    tokio::task::spawn_blocking(move || finish(&mut command, ""))
        .await
        .unwrap()
}

fn configure(place: &Place, server: &Server) {
    place.write(
        "clade.toml",
        &format!(
            "[models.remote]\nprovider = \"openai\"\nendpoint = \"{}\"\nmodel = \"m\"\napi_key_env = \"PLANTED_KEY\"\n",
            server.endpoint
        ),
    );
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_model_is_listed_shown_and_tested() {
    let server = Server::start(|_, _| answer(&message(&serde_json::json!({"content": "ready"}), "stop"))).await;
    let place = Place::with_store();
    configure(&place, &server);
    let listed = run(&place, &["model", "list", "--format", "csv"]).await.ok();
    assert!(
        listed.contains("evolver,evolver,built-in") && listed.contains("remote,openai,configuration"),
        "{listed}"
    );
    let shown = run(&place, &["model", "show", "remote", "--format", "json"]).await.ok();
    assert!(shown.contains("\"api_key_env\":\"PLANTED_KEY\""), "{shown}");
    let tested = run(&place, &["model", "test", "remote", "--format", "json"]).await.ok();
    let row: serde_json::Value = serde_json::from_str(&tested).unwrap();
    assert_eq!(row[0]["answer"], "ready");
    assert_eq!(row[0]["finish_reason"], "stop");
    assert_eq!(row[0]["tokens_prompt"], 700);
    assert!(row[0]["latency_seconds"].as_f64().unwrap() > 0.0);
    assert!(
        server.received()[0].head.contains(&format!("Bearer {KEY}")),
        "the key is sent"
    );
    let unknown = run(&place, &["model", "show", "nothing"]).await.fails(1);
    assert!(
        unknown.contains("the known models are evolver, remote, replay"),
        "{unknown}"
    );
    let built_in = run(&place, &["model", "test", "evolver"]).await;
    assert!(built_in.stderr.contains("nothing to connect to"), "{}", built_in.stderr);
}

/// Every file below a folder that holds the text.
fn files_with(folder: &Path, text: &str) -> Vec<String> {
    let mut found = Vec::new();
    for entry in std::fs::read_dir(folder).unwrap() {
        let path = entry.unwrap().path();
        if path.is_dir() {
            found.extend(files_with(&path, text));
        } else if std::fs::read(&path)
            .unwrap()
            .windows(text.len())
            .any(|window| window == text.as_bytes())
        {
            found.push(path.display().to_string());
        }
    }
    found
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn rd_agent_939_a_key_that_the_service_echoes_is_found_nowhere() {
    let echo = format!("Incorrect API key provided: {KEY}. ");
    // Long enough that an excerpt is cut; the key stands where a cut would leave a part of it.
    let long = format!("{}{KEY}{}", "x".repeat(490), "y".repeat(900));
    let texts = [echo.clone(), long];
    let server = Server::start(move |number, _| {
        let text = &texts[number / 6 % 2];
        match number % 6 {
            0 => error(500, text),
            1 => Act::Answer(200, Vec::new(), text.clone()),
            2 => answer(&serde_json::json!({"error": {"message": text}})),
            3 => Act::Cut(vec![
                serde_json::json!({"choices": [{"delta": {"content": text}}]}).to_string(),
            ]),
            4 => answer(&message(
                &serde_json::json!({"content": text, "reasoning": text}),
                "stop",
            )),
            _ => error(401, text),
        }
    })
    .await;
    let place = Place::with_store();
    configure(&place, &server);
    let shared =
        std::env::var("CLADE_SHARED").unwrap_or_else(|_| concat!(env!("CARGO_MANIFEST_DIR"), "/../shared").into());
    let task = format!("{shared}/tasks/abalone-age");
    let commands: [&[&str]; 10] = [
        &["task", "add", &task],
        &["model", "test", "remote"],
        &["model", "test", "remote"],
        &["--log", "debug", "model", "test", "remote"],
        &[
            "--log",
            "trace",
            "evolve",
            "abalone-age",
            "--model",
            "remote",
            "--steps",
            "4",
        ],
        &[
            "--log",
            "trace",
            "evolve",
            "abalone-age",
            "--model",
            "remote",
            "--steps",
            "4",
        ],
        &[
            "sql",
            "-c",
            "EXPLAIN SELECT 'abalone-age' AS task_id EXPAND WITH draft USING MODEL remote",
        ],
        &["sql", "-c", "SELECT * FROM system.models"],
        &["sql", "-c", "SELECT * FROM evo.attempts"],
        &["config"],
    ];
    for arguments in commands {
        let mut command = place.command(arguments);
        command.env("PLANTED_KEY", KEY);
        if let Some(python) = std::env::var_os("CLADE_PYTHON") {
            command.env("CLADE_PYTHON", python);
        }
        let outcome = tokio::task::spawn_blocking(move || finish(&mut command, ""))
            .await
            .unwrap();
        if arguments[0] == "task" {
            assert_eq!(outcome.code, 0, "{}", outcome.stderr);
        }
        for said in [&outcome.stdout, &outcome.stderr] {
            assert!(!said.contains("sk-planted"), "{arguments:?}: {said}");
        }
    }
    assert!(server.count() > 6, "{}", server.count());
    assert_eq!(files_with(place.path(), "sk-planted"), Vec::<String>::new());
}
