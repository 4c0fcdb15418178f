//! A job from its request to its result.

use std::time::{Duration, Instant};

use reqwest::Method;
use serde_json::{Value as Json, json};

use super::fixture::{Client, Site, job};
use crate::cli::tasks::{TASK, package, with_python};

/// Prints its environment and what it finds at the place of the data.
const LOOK: &str = r#"
import json, os
names = ["RESOURCE_TYPE", "PRIORITY", "TRACE_ID", "JOB_ID", "JOB_NAME", "JOB_TIMEOUT", "EXECUTION_MODE", "MINE"]
print(json.dumps({name: os.environ.get(name) for name in names}))
assert os.environ["DATA_DIR"] == os.environ["SANDBOX_DATA_DIR"]
print(open(os.path.join(os.environ["SANDBOX_DATA_DIR"], "train.csv")).read())
print("Final Validation Score: 0.25")
"#;

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_program_runs_isolated_and_its_own_score_is_told_as_such() {
    let site = Site::new();
    let server = site.serve("native", 2);
    let client = server.client(server.first_key.as_deref().unwrap());
    let mut body = job(LOOK);
    body["environment"] = json!({"MINE": "yes", "DATA_DIR": "/x", "SANDBOX_DATA_DIR": "/x", "EXECUTION_MODE": "other"});
    body["priority"] = 3.into();
    let request = client.post_json("/api/v1/jobs", &body).header("X-Trace-ID", "trace-7");
    let accepted = client.send(request).await.ok();
    assert_eq!(accepted["status"], "queued");
    let job_id = accepted["job_id"].as_str().unwrap();
    let done = client.wait(job_id).await;
    assert_eq!(
        (&done["status"], &done["result"]["result"]),
        (&json!("completed"), &json!("success")),
        "{done}"
    );
    assert_eq!(
        (&done["result"]["score"], &done["result"]["score_source"]),
        (&json!(0.25), &json!("self_reported"))
    );
    assert_eq!(done["result"]["detail"]["isolation"], "isolated");
    assert_eq!(done["result"]["detail"]["limits"]["wall_seconds"], 60.0);
    assert_eq!(done["trace_id"], "trace-7");
    let shown = client.get(&format!("/api/v1/jobs/{job_id}")).await;
    assert_eq!(shown.headers["x-trace-id"], "trace-7");

    let log = done["result"]["run_log"].as_str().unwrap();
    let (_, rest) = log.split_once("--- SANDBOX STDOUT START ---\n").unwrap();
    let (printed, _) = rest.split_once("--- SANDBOX STDOUT END ---").unwrap();
    let environment: Json = serde_json::from_str(printed.lines().next().unwrap()).unwrap();
    let expected = json!({
        "RESOURCE_TYPE": "cpu", "PRIORITY": "3", "TRACE_ID": "trace-7", "JOB_ID": job_id, "JOB_NAME": "d",
        "JOB_TIMEOUT": "60", "EXECUTION_MODE": "shell", "MINE": "yes",
    });
    assert_eq!(environment, expected);
    assert!(printed.contains("id,y\n1,2\n"), "{printed}");
    server.stop();

    // The tables tell the same.
    let rows = site.rows("SELECT job_id, split, status, task_id FROM sandbox.jobs");
    assert_eq!(
        rows,
        json!([{"job_id": job_id, "split": "none", "status": "success", "task_id": "d"}])
    );
    let rows = site.rows("SELECT state, result, \"user\", data, attempts FROM sandbox.requests");
    assert_eq!(
        rows,
        json!([{"state": "completed", "result": "success", "user": "admin", "data": "d", "attempts": 1}])
    );
    let versions = site.rows("SELECT state FROM sandbox.requests_versions ORDER BY _seq");
    assert_eq!(
        versions,
        json!([{"state": "queued"}, {"state": "running"}, {"state": "completed"}])
    );
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn whatever_becomes_of_a_program_is_a_result() {
    let site = Site::new();
    let server = site.serve("native", 2);
    let client = server.client(server.first_key.as_deref().unwrap());
    for (code, timeout, state, cause) in [
        ("", 60.0, "code_missing", Json::Null),
        ("print('fine')", 60.0, "success", json!("exit")),
        ("raise SystemExit(3)", 60.0, "code_execution_error", json!("exit")),
        (
            "import os; os.kill(os.getpid(), 11)",
            60.0,
            "code_execution_error",
            json!("signal"),
        ),
        ("import time; time.sleep(60)", 0.5, "timeout", json!("wall_limit")),
    ] {
        let mut body = job(code);
        body["timeout"] = timeout.into();
        let done = client.run(&body).await;
        assert_eq!(done["status"], "completed", "{done}");
        assert_eq!(
            (&done["result"]["result"], &done["result"]["detail"]["cause"]),
            (&json!(state), &cause),
            "{code}"
        );
        assert_eq!(done["result"]["score"], Json::Null);
        if state == "code_execution_error" && cause == "exit" {
            assert_eq!(done["result"]["detail"]["exit_code"], 3);
        }
    }
}

/// Hands in the column of the sample submission, or something else.
fn submission(score_as: &str) -> String {
    format!(
        r#"
import os, pandas as pd
data = os.environ["DATA_DIR"]
print(sorted(os.listdir(data)))
sample = pd.read_csv(os.path.join(data, "sample_submission.csv"))
{score_as}
sample.to_csv("submission.csv", index=False)
print("Final Validation Score: 0.999")
"#
    )
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_task_is_scored_by_its_metric_and_its_answers_stay_hidden() {
    let site = Site::new();
    let package = package(&site.place);
    with_python(&site.place, ["task", "add", &package.to_string_lossy()]).ok();
    let server = site.serve("native", 2);
    let client = server.client(server.first_key.as_deref().unwrap());
    let body = |code: String, split: Option<&str>| {
        let mut body = json!({"name": TASK, "code": code, "data_dir": TASK, "timeout": 120});
        if let Some(split) = split {
            body["eval_split"] = split.into();
        }
        body
    };
    let constant = submission("sample.iloc[:, -1] = 0.5");
    for (split, expected) in [
        (None, "validation"),
        (Some("validation"), "validation"),
        (Some("final"), "final"),
    ] {
        let done = client.run(&body(constant.clone(), split)).await;
        let result = &done["result"];
        assert_eq!(
            (&result["result"], &result["score_source"]),
            (&json!("success"), &json!("evaluator")),
            "{done}"
        );
        assert_eq!(
            result["score"], 0.5,
            "a constant has an area of one half, whatever the program says: {done}"
        );
        assert_eq!(done["split"], expected);
    }
    // A metric that trips over a submission may print what it compared with.
    for split in ["validation", "final"] {
        let broken = submission("sample[sample.columns[-1]] = 'x'");
        let done = client.run(&body(broken, Some(split))).await;
        assert_eq!(
            (&done["status"], &done["result"]["result"]),
            (&json!("completed"), &json!("scoring_failed"))
        );
        let answers = std::fs::read_to_string(package.join("data/private/test_answer.csv")).unwrap();
        let text = done.to_string();
        for line in answers.lines().skip(1).take(50) {
            assert!(!text.contains(line), "{line} of the answers is in {text}");
        }
        let reason = done["result"]["detail"]["reason"].as_str().unwrap();
        if split == "final" {
            assert!(
                !reason.contains(':'),
                "of the real test only the stage is told: {reason}"
            );
        }
    }
    let nothing = client.run(&body("print(1)".to_owned(), None)).await;
    assert_eq!(nothing["result"]["result"], "submission_missing");
    let both = client.post("/api/v1/jobs", &body(constant, Some("both"))).await;
    let (_, message) = both.refused(422);
    assert!(
        message.contains("field 'eval_split'") && message.contains("'final'"),
        "{message}"
    );
    server.stop();
    let rows = site.rows("SELECT count(*) AS n FROM sandbox.jobs WHERE split = 'final' AND score IS NOT NULL");
    assert_eq!(
        rows,
        json!([{"n": 0}]),
        "test scores are in no table that a policy may read"
    );
}

async fn post_and_wait(client: &Client, seconds: f64, body: &Json) -> (u16, Json) {
    let answer = client
        .post(&format!("/api/v1/jobs/submit_and_wait?timeout_s={seconds}"), body)
        .await;
    (answer.status.as_u16(), answer.ok())
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn waiting_ends_with_the_job_or_with_patience() {
    let site = Site::new();
    let server = site.serve("process", 1);
    let client = server.client(server.first_key.as_deref().unwrap());
    let (status, done) = post_and_wait(&client, 120.0, &job("print('done')")).await;
    assert_eq!((status, &done["status"]), (200, &json!("completed")));
    assert!(done["result"]["run_log"].as_str().unwrap().contains("done"));
    let begin = Instant::now();
    let (status, running) = post_and_wait(&client, 0.3, &job("import time; time.sleep(120)")).await;
    assert_eq!(status, 202);
    assert!(
        begin.elapsed() < Duration::from_secs(30) && running["result"].is_null(),
        "{running}"
    );
    let path = format!("/api/v1/jobs/{}", running["job_id"].as_str().unwrap());
    client.delete(&path).await.ok();
    let wrong = client
        .post("/api/v1/jobs/submit_and_wait?timeout_s=-1", &job("1"))
        .await;
    wrong.refused(400);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_job_can_be_cancelled_waiting_running_and_ended() {
    let site = Site::new();
    let server = site.serve("native", 1);
    let client = server.client(server.first_key.as_deref().unwrap());
    let running = client.submit(&job("import time; time.sleep(120)")).await;
    client.wait_for(&running, &["running"]).await;
    let waiting = client.submit(&job("print('never')")).await;
    let cancelled = client.delete(&format!("/api/v1/jobs/{waiting}")).await;
    assert_eq!(
        (cancelled.status.as_u16(), &cancelled.ok()["status"]),
        (202, &json!("cancelled"))
    );
    for _ in 0..2 {
        let cancelled = client.delete(&format!("/api/v1/jobs/{running}")).await;
        assert_eq!(
            cancelled.status.as_u16(),
            202,
            "it may be asked for again: {cancelled:?}"
        );
    }
    let done = client.wait(&running).await;
    assert_eq!((&done["status"], &done["result"]), (&json!("cancelled"), &Json::Null));
    assert_eq!(
        client.delete(&format!("/api/v1/jobs/{running}")).await.ok()["status"],
        "cancelled"
    );
    let next = client.run(&job("print('next')")).await;
    assert_eq!(next["status"], "completed", "the worker is free again");
    let ended = next["job_id"].as_str().unwrap();
    assert_eq!(
        client.delete(&format!("/api/v1/jobs/{ended}")).await.ok()["status"],
        "completed"
    );
    client.delete("/api/v1/jobs/none").await.refused(404);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn the_list_is_filtered_and_comes_in_pages() {
    let site = Site::new();
    let server = site.serve("process", 2);
    let client = server.client(server.first_key.as_deref().unwrap());
    let mut ids = Vec::new();
    for number in 0..5 {
        let mut body = job("print(1)");
        body["name"] = format!("n{}", number % 2).into();
        ids.push(client.submit(&body).await);
    }
    for id in &ids {
        client.wait(id).await;
    }
    ids.reverse();
    let (mut seen, mut cursor) = (Vec::new(), String::new());
    loop {
        let page = client.get(&format!("/api/v1/jobs?limit=2{cursor}")).await.ok();
        for job in page["jobs"].as_array().unwrap() {
            assert_eq!(job["result"]["run_log"], Json::Null, "lists have no logs");
            seen.push(job["job_id"].as_str().unwrap().to_owned());
        }
        match page["next_cursor"].as_str() {
            Some(next) => cursor = format!("&cursor={next}"),
            None => break,
        }
    }
    assert_eq!(seen, ids, "the newest first, each once");
    let count = async |query: &str| {
        let page = client.get(&format!("/api/v1/jobs?{query}")).await.ok();
        page["jobs"].as_array().unwrap().len()
    };
    assert_eq!(count("name=n1").await, 2);
    assert_eq!(count("status=completed").await, 5);
    assert_eq!(count("status=queued").await, 0);
    for wrong in [
        "limit=0",
        "limit=501",
        "limit=x",
        "status=done",
        "cursor=%21",
        "colour=red",
        "limit=1&limit=2",
    ] {
        client.get(&format!("/api/v1/jobs?{wrong}")).await.refused(400);
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn workers_health_and_figures_are_shown() {
    let site = Site::new();
    let server = site.serve("process", 2);
    let client = server.client(server.first_key.as_deref().unwrap());
    let job_id = client.submit(&job("import time; time.sleep(120)")).await;
    client.wait_for(&job_id, &["running"]).await;
    let workers = client.get("/api/v1/workers/status").await.ok();
    let mut shown: Vec<(&str, &Json)> = workers["workers_show"]
        .as_array()
        .unwrap()
        .iter()
        .map(|worker| (worker["status"].as_str().unwrap(), &worker["job_id"]))
        .collect();
    shown.sort_by_key(|(status, _)| *status);
    assert_eq!(shown, [("busy", &json!(job_id)), ("idle", &Json::Null)]);
    let other = server.client(&site.key("other", &[]));
    let hidden = other.get("/api/v1/workers/status").await.ok();
    assert!(!hidden.to_string().contains(&job_id), "{hidden}");

    for path in ["/health", "/api/v1/health"] {
        assert_eq!(server.stranger().get(path).await.ok()["status"], "ok");
    }
    for path in ["/metrics", "/api/v1/metrics"] {
        server.stranger().get(path).await.refused(401);
        let figures = client.get(path).await.text;
        for line in [
            "clade_jobs{state=\"running\"} 1",
            "clade_queue_length{class=\"cpu\"} 0",
            "clade_workers{status=\"busy\"} 1",
            "clade_job_queued_seconds_count 1",
            "clade_requests_total{method=\"POST\",route=\"/api/v1/jobs\",code=\"200\"} 1",
        ] {
            assert!(figures.contains(line), "{line} is not in\n{figures}");
        }
    }
    let request = client.request(Method::DELETE, &format!("/api/v1/jobs/{job_id}"));
    client.send(request).await.ok();
}
