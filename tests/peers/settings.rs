//! Settings that do nothing: OpenEvolve #41 and #32, and its memory_limit_mb and cpu_limit, which say "not implemented".

use std::io::{BufRead, BufReader, Write};
use std::net::{TcpListener, TcpStream};
use std::path::Path;

use super::bed::{Bed, Reply};
use crate::cli::fixture::{Place, finish};
use crate::engine::fixture::{rows, session, texts};

/// All Rust sources below a folder but those that only read and check the configuration.
fn sources(folder: &Path) -> String {
    let mut text = String::new();
    for entry in std::fs::read_dir(folder).unwrap() {
        let path = entry.unwrap().path();
        if path.is_dir() && !path.ends_with("src/config") {
            text += &sources(&path);
        } else if path.extension().is_some_and(|ending| ending == "rs") {
            text += &std::fs::read_to_string(&path).unwrap();
        }
    }
    text
}

/// Every key of the configuration is read by something other than the configuration itself, by its name or through a function
/// of its section.
#[test]
fn no_setting_is_without_a_reader() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR"));
    let used = sources(&root.join("src"));
    let sections: String = [
        "sandbox", "remote", "store", "python", "search", "service", "access", "log",
    ]
    .iter()
    .map(|name| std::fs::read_to_string(root.join(format!("src/config/{name}.rs"))).unwrap())
    .collect();
    // A function of a section stands for the key that it reads.
    let reads = |key: &str| -> Vec<String> {
        let bodies = sections.split("    pub fn ").skip(1);
        bodies
            .filter(|body| body.contains(&format!("self.{key}")) || body.contains(&format!("self\n            .{key}")))
            .map(|body| body.split('(').next().unwrap().to_owned())
            .collect()
    };
    let place = Place::new();
    let list = place.run(["config", "--format", "json"]).ok();
    let list: serde_json::Value = serde_json::from_str(&list).unwrap();
    let keys: Vec<&str> = list
        .as_array()
        .unwrap()
        .iter()
        .map(|row| row["key"].as_str().unwrap())
        .collect();
    assert!(keys.len() > 40, "{keys:?}");
    for key in keys {
        if key.starts_with("search.settings.") || key.starts_with("models.") {
            // Policies read these in SQL: `every_option_of_a_run_reaches_its_policy`.
            continue;
        }
        let name = key.rsplit('.').next().unwrap();
        let mut names = reads(name);
        names.push(name.to_owned());
        let is_read = names.iter().any(|name| {
            [format!(".{name}\n"), format!(".{name}.")]
                .iter()
                .any(|text| used.contains(text))
                || [',', ')', '(', ';', ' ', '?', '{']
                    .iter()
                    .any(|end| used.contains(&format!(".{name}{end}")))
        });
        assert!(is_read, "nothing reads {key}");
    }
}

/// Every option of EVOLVE is in the run's options, and a policy sees the settings that are made for it.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn every_option_of_a_run_reaches_its_policy() {
    let settings = [
        ("migration_interval", "8"),
        ("migration_size", "9"),
        ("drafts", "3"),
        ("debug_depth", "4"),
        ("debug_probability", "0.125"),
        ("crossover_probability", "0.25"),
        ("crossover_after", "7"),
        ("fresh_draft_probability", "0.375"),
        ("quality_weight", "2"),
        ("progress_weight", "3"),
        ("novelty_weight", "5"),
        ("selection_temperature", "0.5"),
        ("exploration", "6"),
    ];
    let bed = Bed::new([Reply::Seeded]);
    let engine = bed.create().await;
    let given: Vec<String> = settings
        .iter()
        .map(|(name, value)| format!("{name} => {value}"))
        .collect();
    let sql = format!(
        "EVOLVE TASK 'toy' WITH (steps => 1, seed => 1, id => 'r', {})",
        given.join(", ")
    );
    rows(&session(&engine), &sql).await.unwrap();
    let client = crate::engine::fixture::run_session(&engine, "r");
    for (name, value) in settings {
        let seen = texts(&client, &format!("SELECT CAST({name} AS DOUBLE) FROM run.settings")).await;
        assert_eq!(seen[0].parse::<f64>().unwrap(), value.parse::<f64>().unwrap(), "{name}");
    }
    // Views that ship use each of them.
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("sql");
    let views = policies(&root);
    for (name, _) in settings {
        assert!(
            views.contains(&format!("s.{name}")) || views.contains(&format!(".{name}")),
            "no policy uses {name}"
        );
    }
}

/// Texts of the shipped policies and the views of a run but the one that lists the settings.
fn policies(root: &Path) -> String {
    ["policies", "views/run"]
        .iter()
        .flat_map(|folder| std::fs::read_dir(root.join(folder)).unwrap())
        .map(|entry| entry.unwrap().path())
        .filter(|path| !path.ends_with("settings.sql"))
        .map(|path| std::fs::read_to_string(path).unwrap())
        .collect()
}

/// Temporary credentials of a bucket have a third part, which was configured and never sent.
#[test]
fn the_session_token_of_a_bucket_is_sent() {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let address = listener.local_addr().unwrap();
    let server = std::thread::spawn(move || {
        let (mut stream, _) = listener.accept().unwrap();
        let lines = BufReader::new(stream.try_clone().unwrap())
            .lines()
            .map_while(Result::ok);
        let headers: Vec<String> = lines.take_while(|line| !line.is_empty()).collect();
        // The client gives up at once.
        stream
            .write_all(b"HTTP/1.1 403 Forbidden\r\ncontent-length: 0\r\nconnection: close\r\n\r\n")
            .unwrap();
        headers
    });
    let place = Place::new();
    let endpoint = format!("store.s3.endpoint=http://{address}");
    let bucket = [
        "--set",
        "store.cold=s3://shelf/a",
        "--set",
        &endpoint,
        "--set",
        "store.s3.allow_http=true",
    ];
    let mut command = place.command(["init"].iter().chain(&bucket));
    let credentials = [
        ("AWS_ACCESS_KEY_ID", "key"),
        ("AWS_SECRET_ACCESS_KEY", "secret"),
        ("AWS_SESSION_TOKEN", "a-token"),
    ];
    finish(command.envs(credentials), "").ok();
    let policy = "CREATE POLICY p AS SELECT 'draft' AS operator, CAST(NULL AS VARCHAR) AS parent_id";
    let mut command = place.command(["sql", "-c", policy, "-c", "CHECKPOINT"].iter().chain(&bucket));
    finish(command.envs(credentials), "");
    // Had it asked for nothing, this ends the wait.
    drop(TcpStream::connect(address));
    let headers = server.join().unwrap();
    assert!(
        headers
            .iter()
            .any(|line| line.eq_ignore_ascii_case("x-amz-security-token: a-token")),
        "{headers:?}"
    );
}
