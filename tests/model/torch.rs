//! Models of provider torch: SmolLM2, a small real one, through the command line, SQL, a search, and the HTTP routes of OpenAI.

use std::ffi::CStr;
use std::fs::File;
use std::io::Read;
use std::os::fd::FromRawFd;
use std::os::unix::fs::OpenOptionsExt;
use std::path::PathBuf;
use std::process::{Command, Stdio};

use serde_json::{Value as Json, json};

use crate::cli::fixture::Place;
use crate::cli::tasks::{TASK, package, with_python};
use crate::service::fixture::{Site, test_python};

/// The tests run what `make setup-torch` builds, unless they are told to go without.
fn has_torch() -> bool {
    std::env::var_os("CLADE_SKIP_TORCH").is_none_or(|skip| skip != "1")
}

/// SmolLM2-135M-Instruct, installed once for all tests of this user.
fn smollm2(place: &Place) -> PathBuf {
    let cache = std::env::var_os("XDG_CACHE_HOME").map_or_else(
        || PathBuf::from(std::env::var_os("HOME").unwrap()).join(".cache"),
        PathBuf::from,
    );
    let path = cache.join("clade/models/smollm2-135m-instruct.gguf");
    place
        .run(["model", "pull-smollm2", "--to", path.to_str().unwrap()])
        .ok();
    path
}

fn create(place: &Place, path: &std::path::Path) {
    let options = format!(
        "provider 'torch', path '{}', threads 2, cache_memory '512MiB'",
        path.display()
    );
    place
        .run([
            "sql",
            "-c",
            &format!("CREATE MODEL smollm2 OPTIONS ({options}, max_output_tokens 48)"),
        ])
        .ok();
}

#[test]
fn without_the_library_a_model_says_how_to_get_it() {
    let place = Place::with_store();
    place
        .run([
            "sql",
            "-c",
            "CREATE MODEL m OPTIONS (provider 'torch', path '/weights')",
        ])
        .ok();
    for arguments in [
        vec!["model", "test", "m"],
        vec!["model", "info", "/weights"],
        vec!["model", "pull-smollm2", "--to", "m.gguf"],
    ] {
        let output = place
            .command(arguments)
            .env("CLADE_LM_LIBRARY", "/nowhere/libclade_lm.so")
            .output()
            .unwrap();
        let said = String::from_utf8(output.stderr).unwrap();
        assert_eq!(output.status.code(), Some(1), "{said}");
        assert!(
            said.contains("there is no /nowhere/libclade_lm.so: `make setup-torch` builds it"),
            "{said}"
        );
    }
}

#[test]
fn options_belong_to_their_provider() {
    let place = Place::with_store();
    let refused = |options: &str| {
        let statement = format!("CREATE MODEL m OPTIONS ({options})");
        place.run(["sql", "-c", &statement]).fails(1)
    };
    for (options, said) in [
        ("provider 'torch'", "option path is needed by the torch provider"),
        (
            "provider 'torch', path 'x', endpoint 'http://localhost'",
            "option endpoint is none of the provider torch",
        ),
        (
            "provider 'openai', endpoint 'http://localhost', model 'm', dtype 'float32'",
            "option dtype is none of the provider openai",
        ),
        (
            "provider 'torch', path 'x', device 'gpu'",
            "option device must be auto, cpu, cuda",
        ),
        (
            "provider 'torch', path 'x', dtype 'int4'",
            "option dtype must be one of auto, float32, bfloat16, float16",
        ),
        (
            "provider 'torch', path 'x', cache_memory 'much'",
            "option cache_memory must be a size",
        ),
        ("provider 'torch', path 'x', top_k 0", "option top_k must be at least 1"),
    ] {
        let error = refused(options);
        assert!(error.contains(said), "{options}: {error}");
    }
}

#[test]
fn a_small_real_model_answers_on_the_command_line() {
    if !has_torch() {
        return;
    }
    let place = Place::with_store();
    let path = smollm2(&place);
    let path = path.to_str().unwrap();
    let info = place.run(["model", "info", path]).ok();
    assert!(
        info.contains("architecture  llama") && info.contains("chat template yes"),
        "{info}"
    );
    let facts: Json = serde_json::from_str(&place.run(["model", "info", path, "--format", "json"]).ok()).unwrap();
    assert_eq!(facts[0]["parameters"], 134_515_008);
    let fixed = ["--cache-memory", "256MiB", "--threads", "2", "--temperature", "0"];
    let generate = |more: &[&str]| {
        let arguments = ["model", "generate", path, "The capital of France is"];
        let limits = ["--max-tokens", "8"];
        place
            .run(arguments.iter().chain(&limits).chain(&fixed).chain(more))
            .ok()
    };
    let text = generate(&[]);
    assert!(text.contains("Paris"), "{text}");
    assert_eq!(generate(&[]), text, "the same again");
    let several = generate(&["--samples", "2"]);
    assert_eq!(several.matches(text.trim()).count(), 2, "{several}");
    let chat = ["model", "chat", path, "--message", "Say hello.", "--max-tokens", "12"];
    let answer = place.run(chat.iter().chain(&fixed)).ok();
    assert!(answer.to_lowercase().contains("hello"), "{answer}");
    let mut child = place
        .command(["model", "chat", path, "--max-tokens", "8"].iter().chain(&fixed))
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::null())
        .spawn()
        .unwrap();
    std::io::Write::write_all(&mut child.stdin.take().unwrap(), b"Say hello.\n\nAgain.\n").unwrap();
    let output = child.wait_with_output().unwrap();
    assert!(output.status.success());
    assert!(String::from_utf8(output.stdout).unwrap().lines().count() >= 2);
    let error = place.run(["model", "chat", "nobody"]).fails(1);
    assert!(
        error.contains("no folder, file or model with provider torch"),
        "{error}"
    );
}

/// What a command writes to its two streams, of which standard error is a terminal.
fn on_a_terminal(place: &Place, arguments: &[&str]) -> (String, String) {
    // SAFETY: the flags are valid; whether it went well is seen below.
    let descriptor = unsafe { libc::posix_openpt(libc::O_RDWR | libc::O_NOCTTY | libc::O_CLOEXEC) };
    assert!(descriptor >= 0, "{}", std::io::Error::last_os_error());
    // SAFETY: the descriptor was made just now and is nobody else's.
    let mut master = unsafe { File::from_raw_fd(descriptor) };
    let mut name = [0_u8; 64];
    // SAFETY: the descriptor is open, and the name has the room that is told.
    let codes = unsafe {
        [
            libc::grantpt(descriptor),
            libc::unlockpt(descriptor),
            libc::ptsname_r(descriptor, name.as_mut_ptr().cast(), name.len()),
        ]
    };
    assert_eq!(codes, [0; 3]);
    let name = CStr::from_bytes_until_nul(&name).unwrap().to_str().unwrap();
    let terminal = File::options()
        .read(true)
        .write(true)
        .custom_flags(libc::O_NOCTTY)
        .open(name)
        .unwrap();
    let child = place
        .command(arguments)
        .stdin(Stdio::null())
        .stdout(Stdio::piped())
        .stderr(terminal)
        .spawn()
        .unwrap();
    // Where nobody has the other end open any more, reading ends with an error.
    let reader = std::thread::spawn(move || {
        let (mut seen, mut buffer) = (Vec::new(), [0; 4096]);
        while let Ok(read @ 1..) = master.read(&mut buffer) {
            seen.extend_from_slice(&buffer[..read]);
        }
        String::from_utf8_lossy(&seen).into_owned()
    });
    let output = child.wait_with_output().unwrap();
    let seen = reader.join().unwrap();
    assert!(output.status.success(), "{seen}");
    (String::from_utf8(output.stdout).unwrap(), seen)
}

#[test]
fn loading_and_generation_have_bars_on_a_terminal() {
    if !has_torch() {
        return;
    }
    let place = Place::with_store();
    let path = smollm2(&place);
    let path = path.to_str().unwrap();
    let fixed = ["--cache-memory", "256MiB", "--threads", "2", "--temperature", "0"];
    let arguments = [
        "model",
        "generate",
        path,
        "The capital of France is",
        "--max-tokens",
        "24",
    ];
    let arguments = [&arguments[..], &fixed].concat();
    let (text, seen) = on_a_terminal(&place, &arguments);
    assert!(seen.contains("loading") && seen.contains("MiB"), "{seen}");
    assert!(
        seen.contains("generating") && seen.contains("of 24") && seen.contains("a second"),
        "{seen}"
    );
    let output = place.command(&arguments).output().unwrap();
    let piped = String::from_utf8(output.stderr).unwrap();
    assert!(!piped.contains("loading ") && !piped.contains("generating"), "{piped}");
    assert_eq!(
        String::from_utf8(output.stdout).unwrap(),
        text,
        "bars change nothing in an answer"
    );
}

#[test]
fn a_search_with_a_small_model_gives_a_row_for_everything_that_it_writes() {
    if !has_torch() {
        return;
    }
    let place = Place::with_store();
    create(&place, &smollm2(&place));
    with_python(&place, ["task", "add", package(&place).to_str().unwrap()]).ok();
    let rows =
        |sql: &str| -> Json { serde_json::from_str(&place.run(["sql", "-c", sql, "--format", "json"]).ok()).unwrap() };
    let explain = || {
        let statement = format!("EXPLAIN SELECT '{TASK}' AS task_id EXPAND WITH draft USING MODEL smollm2");
        let explained = with_python(&place, ["sql", "-c", &statement, "--format", "json"]).ok();
        serde_json::from_str::<Json>(&explained).unwrap()[0].clone()
    };
    let before = explain();
    // 134,515,008 numbers in float32.
    assert_eq!(before["weight_bytes"], 538_060_032, "{before}");
    assert_eq!(before["cache_bytes"], 512 << 20);
    assert_eq!(
        (&before["model_seconds"], &before["tokens_per_second"]),
        (&Json::Null, &Json::Null)
    );
    assert_eq!(before["note"], "time: unknown until the first generation");
    with_python(
        &place,
        ["evolve", TASK, "--model", "smollm2", "--steps", "3", "--seed", "1"],
    )
    .ok();
    let after = explain();
    assert!(after["model_seconds"].as_f64().unwrap() > 0.0, "{after}");
    assert!(after["tokens_per_second"].as_f64().unwrap() > 0.0, "{after}");
    assert_eq!(after["note"], Json::Null);
    let nodes = rows("SELECT count(*) AS n, count(status) AS told FROM evo.nodes");
    assert_eq!(nodes, json!([{"n": 3, "told": 3}]));
    let generations = rows(
        "SELECT count(*) AS n, min(tokens_prompt) > 100 AS has_prompt, max(tokens_completion) <= 48 AS is_bounded,
                sum(cost_usd) AS cost, count(DISTINCT model) AS models FROM evo.generations",
    );
    assert_eq!(
        generations,
        json!([{"n": 3, "has_prompt": true, "is_bounded": true, "cost": 0.0, "models": 1}])
    );
    let listed = rows("SELECT provider, is_free, profile FROM system.models WHERE name = 'smollm2'");
    assert_eq!(
        listed,
        json!([{"provider": "torch", "is_free": false, "profile": null}])
    );
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn the_client_of_openai_talks_to_the_server() {
    if !has_torch() {
        return;
    }
    let site = Site::new();
    create(&site.place, &smollm2(&site.place));
    let server = site.serve("process", 1);
    let key = server.first_key.clone().unwrap();
    let client = server.client(&key);
    let (code, message) = client
        .post(
            "/v1/chat/completions",
            &json!({"model": "gpt", "messages": [{"role": "user", "content": "x"}]}),
        )
        .await
        .refused(404);
    assert!(
        code == "model_not_found" && message.contains("there are: smollm2"),
        "{message}"
    );
    let misspelt = json!({"model": "smollm2", "messages": [{"role": "user", "content": "x"}], "temprature": 0});
    let (_, message) = client.post("/v1/chat/completions", &misspelt).await.refused(422);
    assert!(message.contains("temprature"), "{message}");
    server.stranger().get("/v1/models").await.refused(401);
    let url = format!("{}/v1", server.url);
    let script = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/model/openai_client.py");
    let output =
        tokio::task::spawn_blocking(move || Command::new(test_python()).args([script, &url, &key]).output().unwrap())
            .await
            .unwrap();
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    let seen: Json = serde_json::from_slice(&output.stdout).unwrap();
    assert_eq!(seen["models"], json!(["smollm2"]));
    assert!(seen["text"].as_str().unwrap().contains("France"), "{seen}");
    assert_eq!(seen["streamed"], seen["text"], "a stream gives the same text");
    assert_eq!(seen["finish"], "length");
    assert_eq!(seen["answers"], 3);
    assert_eq!(seen["completion_tokens"], 6);
    assert_eq!(seen["stream_completion_tokens"], 6);
    assert_eq!((&seen["logprobs"], &seen["top"]), (&json!(6), &json!(2)), "{seen}");
    assert!(seen["highest_logprob"].as_f64().unwrap() <= 0.0);
    assert!(seen["stopped"].as_str().unwrap().len() < seen["text"].as_str().unwrap().len());
}
