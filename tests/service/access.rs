//! Keys: the first one, roles, quotas, revocation.

use reqwest::Method;
use serde_json::json;

use super::fixture::{Site, job};

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn the_first_start_prints_one_key_and_the_store_keeps_a_hash() {
    let site = Site::new();
    let server = site.serve("process", 1);
    let key = server.first_key.clone().expect("a key is printed");
    server.client(&key).get("/api/v1/jobs").await.ok();
    server.stop();
    let again = site.serve("process", 1);
    assert_eq!(again.first_key, None, "it is printed once");
    again.client(&key).get("/api/v1/jobs").await.ok();
    again.stop();
    let secret = key.rsplit('_').next().unwrap();
    let rows = site.rows("SELECT * FROM sandbox.api_keys").to_string();
    assert!(!rows.contains(secret) && rows.contains("admin"), "{rows}");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_key_that_is_wrong_unknown_or_revoked_is_refused_alike() {
    let site = Site::new();
    let server = site.serve("process", 1);
    let key = site.key("ann", &[]);
    server.client(&key).get("/api/v1/jobs").await.ok();
    let mut wrong = key.clone();
    wrong.replace_range(key.len() - 1.., if key.ends_with('0') { "1" } else { "0" });
    let unknown = format!("clade_{}_{}", "0".repeat(12), "0".repeat(64));
    let mut answers = Vec::new();
    for other in [wrong.as_str(), &unknown, "nonsense", ""] {
        let answer = server.client(other).get("/api/v1/jobs").await;
        assert_eq!(answer.headers["www-authenticate"], "Bearer");
        answers.push(answer.refused(401));
    }
    answers.dedup();
    assert_eq!(answers.len(), 1, "{answers:?}");
    server.stranger().get("/api/v1/jobs").await.refused(401);

    // As a bearer too.
    let stranger = server.stranger();
    let bearer = stranger.request(Method::GET, "/api/v1/jobs").bearer_auth(&key);
    stranger.send(bearer).await.ok();

    let key_id = key.split('_').nth(1).unwrap();
    site.place.run(["key", "revoke", key_id]).ok();
    tokio::time::sleep(std::time::Duration::from_millis(1200)).await;
    server.client(&key).get("/api/v1/jobs").await.refused(401);
    let listed = site.place.run(["key", "list"]).ok();
    assert!(listed.contains("ann") && listed.contains("submit"), "{listed}");
    let missing = site.place.run(["key", "revoke", "none"]).fails(1);
    assert!(missing.contains("there is no key 'none'"), "{missing}");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn users_see_their_own_jobs_and_admins_see_all() {
    let site = Site::new();
    let server = site.serve("process", 1);
    let [ann, same_ann, bob, reader] = [
        site.key("ann", &[]),
        site.key("ann", &[]),
        site.key("bob", &[]),
        site.key("ann", &["--role", "read"]),
    ];
    let (ann, bob) = (server.client(&ann), server.client(&bob));
    let admin = server.client(server.first_key.as_deref().unwrap());
    let job_id = ann.submit(&job("print(1)")).await;
    let path = format!("/api/v1/jobs/{job_id}");
    for client in [&ann, &server.client(&same_ann), &admin, &server.client(&reader)] {
        assert_eq!(client.job(&job_id).await["user"], "ann");
        assert_eq!(
            client.get("/api/v1/jobs").await.ok()["jobs"].as_array().unwrap().len(),
            1
        );
    }
    bob.get(&path).await.refused(404);
    bob.get(&format!("{path}/logs")).await.refused(404);
    bob.delete(&path).await.refused(404);
    assert_eq!(bob.get("/api/v1/jobs").await.ok()["jobs"], json!([]));
    bob.get("/api/v1/jobs?user=ann").await.refused(403);
    assert_eq!(
        admin.get("/api/v1/jobs?user=bob").await.ok()["jobs"],
        json!([]),
        "an admin may ask for one user"
    );

    let reader = server.client(&reader);
    reader.post("/api/v1/jobs", &job("print(1)")).await.refused(403);
    reader.delete(&path).await.refused(403);
    let upload = reader.request(Method::POST, "/api/v1/uploads").body("x");
    reader.send(upload).await.refused(403);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn quotas_of_a_key_hold_and_say_when_to_come_again() {
    let site = Site::new().set("service.queue_limit=4");
    let server = site.serve("process", 1);
    let busy = server.client(server.first_key.as_deref().unwrap());
    let blocker = busy.submit(&job("import time; time.sleep(120)")).await;
    busy.wait_for(&blocker, &["running"]).await;

    let few = server.client(&site.key("few", &["--queued", "2"]));
    few.submit(&job("1")).await;
    few.submit(&job("2")).await;
    let full = few.post("/api/v1/jobs", &job("3")).await;
    assert!(full.headers["retry-after"].parse::<u32>().unwrap() >= 1);
    let (code, message) = full.refused(429);
    assert_eq!(code, "queue_full");
    assert!(message.contains("2 of your jobs wait"), "{message}");

    busy.submit(&job("4")).await;
    busy.submit(&job("5")).await;
    let (_, message) = busy.post("/api/v1/jobs", &job("6")).await.refused(429);
    assert!(message.contains("the queue is full: 4 jobs wait"), "{message}");

    let hasty = server.client(&site.key("hasty", &["--per-minute", "3"]));
    let mut codes = Vec::new();
    let mut last = None;
    for _ in 0..5 {
        let answer = hasty.get("/api/v1/jobs").await;
        codes.push(answer.status.as_u16());
        last = Some(answer);
    }
    assert_eq!(codes, [200, 200, 200, 429, 429]);
    let wait: u32 = last.unwrap().headers["retry-after"].parse().unwrap();
    assert!((1..=20).contains(&wait), "{wait}");
    busy.delete(&format!("/api/v1/jobs/{blocker}")).await.ok();
}
