//! Submissions of jobs: kept for a while, whatever becomes of the server. And uploads, which admins may remove.

use std::time::{Duration, SystemTime};

use reqwest::Method;
use serde_json::{Value as Json, json};

use super::fixture::{Client, Server, Site, job};
use super::remote::Remote;
use crate::cli::tasks::{TASK, package, python, with_python};

const WRITES: &str = "open('submission.csv', 'w').write('id,y\\n1,2\\n')";

fn client(server: &Server) -> Client {
    server.client(server.first_key.as_deref().unwrap())
}

fn route(job_id: &str) -> String {
    format!("/api/v1/jobs/{job_id}/submission")
}

/// Files in the folder of submissions.
fn kept(site: &Site) -> Vec<std::path::PathBuf> {
    let folder = site.place.path().join("clade-store/submissions");
    let entries = std::fs::read_dir(folder).into_iter().flatten().flatten();
    entries.map(|entry| entry.path()).collect()
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_submission_can_be_fetched_after_the_end() {
    let site = Site::new();
    let server = site.serve("process", 1);
    let client = client(&server);
    let done = client.run(&job(WRITES)).await;
    let told = &done["result"]["detail"]["submission"];
    let job_id = done["job_id"].as_str().unwrap();
    let fetched = client.get(&route(job_id)).await;
    assert_eq!((fetched.status.as_u16(), fetched.text.as_str()), (200, "id,y\n1,2\n"));
    let header = |name: &str| fetched.headers[name].clone();
    assert_eq!(header("x-submission-name"), "submission.csv");
    assert_eq!(header("content-length"), "9");
    let expected = json!({"name": "submission.csv", "bytes": 9, "sha256": header("x-submission-sha256")});
    assert_eq!(*told, expected, "{done}");

    // What an outcome needs is told.
    let detail = &done["result"]["detail"];
    assert_eq!(detail["end"], json!({"exited": {"code": 0}}), "{detail}");
    assert_eq!(
        detail["sandbox"],
        json!({"backend": "process", "grade": "unsandboxed", "layers": {}})
    );
    assert!(
        detail["started_at"].is_string() && detail["finished_at"].is_string(),
        "{detail}"
    );
    assert_eq!(detail["stdout"], json!({"bytes": 0, "truncated": false}));

    // Others do not see it.
    let other = server.client(&site.key("bob", &[]));
    assert_eq!(other.get(&route(job_id)).await.refused(404).0, "unknown_job");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn where_there_is_none_it_says_why() {
    let site = Site::new();
    let server = site.serve("process", 1);
    let client = client(&server);
    let none = client.run(&job("print('nothing')")).await;
    let refused = client.get(&route(none["job_id"].as_str().unwrap())).await.refused(404);
    assert_eq!(refused.0, "no_submission");
    assert!(
        refused.1.contains("the program wrote no submission.csv"),
        "{}",
        refused.1
    );
    let failed = client.run(&job(&format!("{WRITES}; raise SystemExit(3)"))).await;
    let refused = client
        .get(&route(failed["job_id"].as_str().unwrap()))
        .await
        .refused(404);
    assert!(refused.1.contains("exited with code 3"), "{}", refused.1);

    let running = client.submit(&job("import time; time.sleep(600)")).await;
    client.wait_for(&running, &["running"]).await;
    assert_eq!(client.get(&route(&running)).await.refused(409).0, "not_ended");
    client.delete(&format!("/api/v1/jobs/{running}")).await.ok();
    client.wait(&running).await;
    assert_eq!(client.get(&route(&running)).await.refused(404).0, "no_submission");

    let done = client.run(&job(WRITES)).await;
    let job_id = done["job_id"].as_str().unwrap();
    for path in kept(&site) {
        std::fs::remove_file(path).unwrap();
    }
    assert_eq!(client.get(&route(job_id)).await.refused(410).0, "submission_gone");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn another_output_may_be_asked_for_where_the_data_is_no_task() {
    let site = Site::new();
    let folder = package(&site.place).to_string_lossy().into_owned();
    with_python(&site.place, ["task", "add", &folder]).ok();
    let server = site.serve("native", 1);
    let client = client(&server);
    let mut body = job("open('räsult.json', 'w').write('[1]')");
    body["output_name"] = "räsult.json".into();
    let done = client.run(&body).await;
    let fetched = client.get(&route(done["job_id"].as_str().unwrap())).await;
    assert_eq!(
        (fetched.text.as_str(), &*fetched.headers["x-submission-name"]),
        ("[1]", "räsult.json")
    );
    assert_eq!(done["output_name"], "räsult.json");

    let code = "import os\nos.makedirs(os.environ['OUTPUT_DIR'] + '/a')\nopen(os.environ['OUTPUT_DIR'] + '/a/x', 'w').write('1')";
    let mut body = job(code);
    body["output_is_folder"] = true.into();
    let done = client.run(&body).await;
    let told = &done["result"]["detail"]["submission"];
    assert_eq!(told["name"], "output.tar", "{done}");
    let request = client.request(Method::GET, &route(done["job_id"].as_str().unwrap()));
    let bytes = request.send().await.unwrap().bytes().await.unwrap();
    let mut archive = tar::Archive::new(&*bytes);
    let names: Vec<String> = archive
        .entries()
        .unwrap()
        .map(|entry| entry.unwrap().path().unwrap().to_string_lossy().into_owned())
        .filter(|name| name.ends_with('x'))
        .collect();
    assert_eq!(names.len(), 1, "{names:?}");

    // The package of a task says it itself.
    for (field, value) in [("output_name", json!("x.csv")), ("output_is_folder", json!(true))] {
        let mut body = json!({"name": "t", "code": "pass", "data_dir": TASK});
        body[field] = value;
        let refused = client.post("/api/v1/jobs", &body).await.refused(422);
        assert!(refused.1.contains(&format!("field '{field}'")), "{}", refused.1);
    }
    // The same key with another output is another request.
    let mut body = job("pass");
    body["idempotency_key"] = "k".into();
    client.submit(&body).await;
    body["output_name"] = "other.csv".into();
    assert_eq!(
        client.post("/api/v1/jobs", &body).await.refused(409).0,
        "idempotency_conflict"
    );
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn submissions_survive_a_kill_and_go_when_they_are_old() {
    let site = Site::new();
    let server = site.serve("process", 1);
    let key = server.first_key.clone().unwrap();
    let client = server.client(&key);
    let done = client.run(&job(WRITES)).await;
    let old = done["job_id"].as_str().unwrap();
    server.kill();
    // What was moved in before a kill, and no job ended with.
    let folder = site.place.path().join("clade-store/submissions");
    let orphan = folder.join(format!("{old}.7"));
    std::fs::write(&orphan, "x").unwrap();
    std::fs::write(folder.join("00000000-0000-7000-8000-000000000000.1"), "x").unwrap();

    let server = site.serve("process", 1);
    let client = server.client(&key);
    assert_eq!(client.get(&route(old)).await.text, "id,y\n1,2\n");
    assert_eq!(kept(&site).len(), 1, "{:?}", kept(&site));
    server.stop();
    let long_ago = SystemTime::now() - Duration::from_secs(25 * 3600);
    for path in kept(&site) {
        std::fs::File::open(path).unwrap().set_modified(long_ago).unwrap();
    }
    let server = site.serve("process", 1);
    let client = server.client(&key);
    loop {
        let answer = client.get(&route(old)).await;
        if answer.status == 410 {
            break;
        }
        assert_eq!(answer.status, 200);
        tokio::time::sleep(Duration::from_millis(100)).await;
    }
    server.stop();

    let site = site.set("service.keep_submission_hours=0");
    let server = site.serve("process", 1);
    let client = server.client(&key);
    let done = client.run(&job(WRITES)).await;
    let refused = client.get(&route(done["job_id"].as_str().unwrap())).await.refused(410);
    assert_eq!(refused.0, "submissions_not_kept");
    assert!(kept(&site).is_empty());
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn one_that_came_from_a_worker_is_kept_too() {
    let site = Site::new();
    let server = site.serve("process", 0);
    let client = client(&server);
    let key = site.key("machines", &["--role", "worker"]);
    let _worker = Remote::start(
        &site,
        &server.url,
        &key,
        &python(),
        &["--executor", "process", "--slots", "1"],
    );
    let done = client.run(&job(WRITES)).await;
    let fetched = client.get(&route(done["job_id"].as_str().unwrap())).await;
    assert_eq!(fetched.text, "id,y\n1,2\n", "{fetched:?}");
    assert_eq!(
        done["result"]["detail"]["submission"]["sha256"],
        fetched.headers["x-submission-sha256"]
    );
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn an_upload_goes_when_no_job_needs_it() {
    let site = Site::new();
    let server = site.serve("process", 1);
    let admin = client(&server);
    let user = server.client(&site.key("ann", &[]));
    let archive = super::fixture::tar(&[("train.csv", tar::EntryType::Regular, b"id\n1\n")]);
    let send = || user.request(Method::POST, "/api/v1/uploads").body(archive.clone());
    let upload = user.send(send()).await.ok();
    let path = format!("/api/v1/uploads/{}", upload["upload"].as_str().unwrap());
    let body =
        |code: &str| -> Json { json!({"name": "u", "code": code, "data_dir": upload["upload"], "timeout": 600}) };
    let running = user.submit(&body("import time; time.sleep(600)")).await;
    let waiting = user.submit(&body("pass")).await;
    user.wait_for(&running, &["running"]).await;

    assert_eq!(user.delete(&path).await.refused(403).0, "forbidden");
    assert_eq!(admin.delete(&path).await.refused(409).0, "upload_in_use");
    user.delete(&format!("/api/v1/jobs/{running}")).await.ok();
    user.wait(&running).await;
    user.wait(&waiting).await;
    assert_eq!(admin.delete(&path).await.ok(), upload);
    assert_eq!(admin.delete(&path).await.refused(404).0, "unknown_upload");
    assert!(site.uploads().is_empty(), "{:?}", site.uploads());
    let refused = user.post("/api/v1/jobs", &body("pass")).await.refused(422);
    assert!(refused.1.contains("field 'data_dir'"), "{}", refused.1);
    // It may come again.
    assert_eq!(user.send(send()).await.ok()["upload"], upload["upload"]);
}
