//! The jobs of all servers as one list.

use serde_json::{Value as Json, json};

use super::fixture::{Group, keyed};

fn ids(page: &Json) -> Vec<String> {
    let jobs = page["jobs"].as_array().unwrap();
    jobs.iter()
        .map(|job| job["job_id"].as_str().unwrap().to_owned())
        .collect()
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn pages_go_over_all_servers_the_newest_first() {
    let mut group = Group::new(&[0, 0, 0]);
    let (router, client) = group.routed().await;
    let mut expected = Vec::new();
    for number in 0..11 {
        let mut body = keyed(&format!("k{number}"));
        body["name"] = json!(if number % 3 == 0 { "third" } else { "other" });
        expected.push(client.submit(&body).await);
    }
    expected.sort();
    expected.reverse();
    let whole = client.get("/api/v1/jobs").await.ok();
    assert_eq!(ids(&whole), expected);
    assert_eq!(
        (&whole["next_cursor"], &whole["unreachable"]),
        (&Json::Null, &json!([]))
    );
    for limit in [1, 3, 11, 12] {
        let (mut seen, mut cursor, mut pages) = (Vec::new(), String::new(), 0);
        loop {
            let page = client.get(&format!("/api/v1/jobs?limit={limit}{cursor}")).await.ok();
            assert!(ids(&page).len() <= limit);
            seen.extend(ids(&page));
            pages += 1;
            match page["next_cursor"].as_str() {
                Some(next) => cursor = format!("&cursor={next}"),
                None => break,
            }
        }
        assert_eq!(seen, expected, "pages of {limit}");
        assert_eq!(pages, 11_usize.div_ceil(limit), "pages of {limit}");
    }
    let third = client.get("/api/v1/jobs?name=third&limit=3").await.ok();
    assert_eq!(ids(&third).len(), 3);
    let rest = third["next_cursor"].as_str().unwrap();
    let rest = client
        .get(&format!("/api/v1/jobs?name=third&limit=3&cursor={rest}"))
        .await
        .ok();
    assert_eq!((ids(&rest).len(), &rest["next_cursor"]), (1, &Json::Null));
    let one = client.get("/api/v1/jobs?idempotency_key=k7").await.ok();
    assert_eq!((ids(&one).len(), &one["jobs"][0]["idempotency_key"]), (1, &json!("k7")));
    let none = client.get("/api/v1/jobs?idempotency_key=none").await.ok();
    assert_eq!(none["jobs"], json!([]));
    for wrong in ["limit=0", "limit=501", "status=odd", "cursor=%00", "colour=red"] {
        assert_eq!(
            client.get(&format!("/api/v1/jobs?{wrong}")).await.refused(400).0,
            "invalid_parameter"
        );
    }
    let ann = router.client(&group.user("ann", "read"));
    assert_eq!(ann.get("/api/v1/jobs").await.ok()["jobs"], json!([]));
    assert_eq!(ann.get("/api/v1/jobs?user=admin").await.refused(403).0, "forbidden");
    assert_eq!(ann.get("/api/v1/jobs?idempotency_key=k7").await.ok()["jobs"], json!([]));

    // Never silently in part.
    group.servers.remove(2).kill();
    router.until_up("c", false).await;
    let part = client.get("/api/v1/jobs").await.ok();
    assert_eq!(part["unreachable"], json!(["c"]));
    assert!(ids(&part).len() < 11 && ids(&part).iter().all(|id| expected.contains(id)));
    group.servers.drain(..).for_each(crate::service::fixture::Server::kill);
    router.until_up("a", false).await;
    router.until_up("b", false).await;
    assert_eq!(client.get("/api/v1/jobs").await.refused(503).0, "server_unreachable");
    assert_eq!(
        client.post("/api/v1/jobs", &keyed("late")).await.refused(503).0,
        "server_unreachable"
    );
    let health = client.get("/health").await;
    assert_eq!(
        (health.status.as_u16(), &health.json()["status"]),
        (503, &json!("unreachable"))
    );
}
