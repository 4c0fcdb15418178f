//! Uploads: on all servers, and jobs go where they are.

use reqwest::Method;
use serde_json::json;
use tar::EntryType;

use super::fixture::{Group, dead_url};
use crate::service::fixture::{Answer, Client, tar};

async fn upload(client: &Client, bytes: Vec<u8>) -> Answer {
    let request = client.request(Method::POST, "/api/v1/uploads").body(bytes);
    client.send(request).await
}

fn reading(id: &str, key: &str) -> serde_json::Value {
    let code = "import os; print(open(os.environ['DATA_DIR'] + '/a.csv').read())";
    json!({"name": "u", "code": code, "data_dir": id, "timeout": 60, "idempotency_key": key})
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn an_upload_is_on_all_servers_and_any_of_them_runs_a_job_on_it() {
    let group = Group::of(&[1, 1], |number, site| match number {
        1 => site.set("service.upload_size=4MiB"),
        _ => site,
    })
    .set("upload_bytes = \"6MiB\"");
    let (router, client) = group.routed().await;
    let large = tar(&[("a.csv", EntryType::Regular, &vec![b'x'; 3 << 20])]);
    let kept = upload(&client, large).await.ok();
    assert_eq!(
        (&kept["servers"], &kept["bytes"]),
        (&json!(["a", "b"]), &json!(3 << 20))
    );
    let id = kept["upload"].as_str().unwrap();
    for server in &group.servers {
        let shown = server
            .client(&group.key)
            .get(&format!("/api/v1/uploads/{id}"))
            .await
            .ok();
        assert_eq!(shown["upload"], kept["upload"]);
    }
    assert_eq!(client.get(&format!("/api/v1/uploads/{id}")).await.ok()["files"], 1);
    let mut workers = std::collections::BTreeSet::new();
    for number in 0..4 {
        let done = client.run(&reading(id, &format!("k{number}"))).await;
        assert_eq!(done["result"]["detail"]["exit_code"], 0, "{done}");
        workers.insert(done["worker_id"].to_string());
    }
    assert_eq!(group.counts().await.iter().sum::<usize>(), 4);

    // One server takes it and the other does not: the jobs go to the first.
    let larger = tar(&[("a.csv", EntryType::Regular, &vec![b'y'; 5 << 20])]);
    let kept = upload(&client, larger).await.ok();
    assert_eq!(kept["servers"], json!(["a"]));
    let before = group.counts().await;
    for number in 0..3 {
        let body = reading(kept["upload"].as_str().unwrap(), &format!("l{number}"));
        assert_eq!(client.run(&body).await["result"]["detail"]["exit_code"], 0);
    }
    let after = group.counts().await;
    assert_eq!((after[0] - before[0], after[1] - before[1]), (3, 0));

    let none = format!("sha256:{}", "0".repeat(64));
    assert_eq!(
        client.get(&format!("/api/v1/uploads/{none}")).await.refused(404).0,
        "unknown_upload"
    );
    let (code, message) = client.post("/api/v1/jobs", &reading(&none, "none")).await.refused(422);
    assert_eq!(
        (code.as_str(), message.contains("there is no upload")),
        ("invalid_field", true)
    );
    let evil = tar(&[("../evil", EntryType::Regular, b"1")]);
    assert_eq!(upload(&client, evil).await.refused(422).0, "invalid_upload");
    assert_eq!(upload(&client, vec![0; 7 << 20]).await.refused(413).0, "body_too_large");
    let reader = router.client(&group.user("ann", "read"));
    assert_eq!(upload(&reader, b"x".to_vec()).await.refused(403).0, "forbidden");
    assert_eq!(
        upload(&router.client("nonsense"), b"x".to_vec()).await.refused(401).0,
        "unauthorized"
    );
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn with_a_dead_server_an_upload_is_kept_by_the_others() {
    let group = Group::new(&[1]);
    group.write(&[dead_url(), group.servers[0].url.clone()], "");
    let router = group.route_as_written(&[]);
    let client = router.client(&group.key);
    let kept = upload(&client, tar(&[("a.csv", EntryType::Regular, b"1")])).await.ok();
    assert_eq!(kept["servers"], json!(["b"]));
    let id = kept["upload"].as_str().unwrap();
    let done = client.run(&reading(id, "k")).await;
    assert_eq!(done["result"]["detail"]["exit_code"], 0, "{done}");
    // The dead one may have what the other has not.
    let none = format!("sha256:{}", "0".repeat(64));
    let (code, _) = client.get(&format!("/api/v1/uploads/{none}")).await.refused(503);
    assert_eq!(code, "server_unreachable");
    let (code, _) = client.post("/api/v1/jobs", &reading(&none, "none")).await.refused(503);
    assert_eq!(code, "server_unreachable");
}
