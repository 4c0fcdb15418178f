//! Uploads: on all servers, and jobs go where they are.

use serde_json::json;
use tar::EntryType;

use super::fixture::{Group, dead_url};
use crate::service::fixture::{begin_upload, tar};
use crate::service::uploads::upload;

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

    // What a program wrote comes from the server that ran it; an upload that is removed is removed everywhere.
    let mut writing = reading(id, "w");
    writing["code"] = "open('submission.csv', 'w').write('id,y\\n1,2\\n')".into();
    let done = client.run(&writing).await;
    let path = format!("/api/v1/jobs/{}/submission", done["job_id"].as_str().unwrap());
    let submission = client.get(&path).await;
    assert_eq!(
        (submission.status.as_u16(), submission.text.as_str()),
        (200, "id,y\n1,2\n")
    );
    assert_eq!(submission.headers["x-submission-name"], "submission.csv");
    let silent = client.run(&reading(id, "s")).await;
    let path = format!("/api/v1/jobs/{}/submission", silent["job_id"].as_str().unwrap());
    assert_eq!(client.get(&path).await.refused(404).0, "no_submission");
    let path = format!("/api/v1/uploads/{id}");
    let submitter = router.client(&group.user("ann", "submit"));
    assert_eq!(submitter.delete(&path).await.refused(403).0, "forbidden");
    assert_eq!(client.delete(&path).await.ok()["upload"], id);
    for server in &group.servers {
        server.client(&group.key).get(&path).await.refused(404);
    }
    assert_eq!(client.delete(&path).await.refused(404).0, "unknown_upload");

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

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn only_so_many_uploads_are_on_their_way_and_a_server_with_too_many_is_left_out() {
    let group = Group::of(&[0, 0], |_, site| site.set("service.uploads_per_user=1")).set("uploads_per_user = 2");
    let (router, client) = group.routed().await;
    let small = tar(&[("a", EntryType::Regular, b"2")]);
    // One server has as many as it takes.
    let at_a = begin_upload(&group.servers[0].url, &group.key).await;
    let direct = group.servers[0].client(&group.key);
    upload(&direct, small.clone()).await.refused(429);
    assert_eq!(upload(&client, small.clone()).await.ok()["servers"], json!(["b"]));
    // Both have.
    let at_b = begin_upload(&group.servers[1].url, &group.key).await;
    let direct = group.servers[1].client(&group.key);
    upload(&direct, small.clone()).await.refused(429);
    let (code, message) = upload(&client, small.clone()).await.refused(429);
    assert_eq!(code, "too_many_uploads");
    assert!(message.contains("1 of your uploads"), "{message}");
    drop((at_a, at_b));
    // The router itself has.
    let first = begin_upload(&router.url, &group.key).await;
    let second = begin_upload(&router.url, &group.key).await;
    let (_, message) = upload(&client, small.clone()).await.refused(429);
    assert!(message.contains("2 of your uploads"), "{message}");
    drop((first, second));
}
