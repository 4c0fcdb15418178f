//! Workers, health, figures, and what the router says of itself.

use serde_json::{Value as Json, json};

use super::fixture::{Group, keyed};
use crate::service::contract::check_contract;
use crate::service::remote::Remote;

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn workers_of_all_servers_are_shown_and_told_what_to_do() {
    let group = Group::new(&[1, 1]);
    let (router, client) = group.routed().await;
    let machines = group.sites[1].key("machines", &["--role", "worker"]);
    let python = crate::cli::tasks::python();
    let arguments = ["--executor", "process", "--slots", "2"];
    let worker = Remote::start(&group.sites[1], &group.servers[1].url, &machines, &python, &arguments);
    let shown = client.get("/api/v1/workers/status").await.ok();
    let all = shown["workers_show"].as_array().unwrap();
    let servers: Vec<&str> = all.iter().map(|worker| worker["server"].as_str().unwrap()).collect();
    assert_eq!(servers, ["a", "b", "b"]);
    assert!(all.iter().all(|worker| worker["status"] == "idle"), "{shown}");
    assert_eq!(shown["unreachable"], json!([]));
    // Its slots count until it is drained.
    let slots = |health: &Json| health["servers"][1]["load"]["cpu"]["slots"].clone();
    router.until(|health| slots(health) == 3).await;
    let path = format!("/api/v1/workers/{}/drain", worker.id);
    let ann = router.client(&group.user("ann", "submit"));
    assert_eq!(ann.post(&path, &json!({})).await.refused(403).0, "forbidden");
    assert_eq!(client.post(&path, &json!({})).await.status, 204);
    router.until(|health| slots(health) == 1).await;
    assert_eq!(
        client.post(&path.replace("drain", "resume"), &json!({})).await.status,
        204
    );
    router.until(|health| slots(health) == 3).await;
    for none in ["none", "..", "%2e%2e%2fjoin"] {
        let answer = client.post(&format!("/api/v1/workers/{none}/drain"), &json!({})).await;
        assert_eq!(answer.status.as_u16(), 404, "{answer:?}");
    }
    // Workers join servers.
    for route in ["join", "w1/claim", "w1/heartbeat", "w1/jobs/j1/finish"] {
        let answer = client.post(&format!("/api/v1/workers/{route}"), &json!({})).await;
        let advice = answer.json()["error"]["advice"].as_str().unwrap().to_owned();
        assert_eq!(answer.refused(404).0, "unknown_route");
        assert!(advice.contains("workers join a server"), "{advice}");
    }
    let machines = router.client(&machines);
    machines.get("/api/v1/jobs").await.refused(401);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn health_and_figures_tell_of_all_servers_and_no_addresses() {
    let group = Group::new(&[1, 1]);
    let (router, client) = group.routed().await;
    for number in 0..4 {
        client.run(&keyed(&format!("k{number}"))).await;
    }
    let health = client.get("/health").await;
    assert!(
        !health.text.contains("http") && !health.text.contains("clade_"),
        "{health:?}"
    );
    let health = health.ok();
    assert_eq!(health["status"], "ok");
    assert_eq!(health["servers"][0]["load"]["cpu"]["slots"], 1);
    let direct = group.servers[0].stranger().get("/health").await.ok();
    assert_eq!(
        direct["classes"],
        json!({
            "cpu": {"slots": 1, "busy": 0, "waiting": 0},
            "gpu": {"slots": 0, "busy": 0, "waiting": 0},
        })
    );
    router.client("").without_key().get("/metrics").await.refused(401);
    router.client("nonsense").get("/api/v1/metrics").await.refused(401);
    let figures = client.get("/api/v1/metrics").await.text;
    for part in [
        "clade_router_server_up{server=\"a\"} 1",
        "clade_router_server_up{server=\"b\"} 1",
        "clade_router_requests_total{method=\"POST\",route=\"/api/v1/jobs\",code=\"200\"} 4",
    ] {
        assert!(figures.contains(part), "{part}: {figures}");
    }
    let placed: u32 = figures
        .lines()
        .filter(|line| line.starts_with("clade_router_jobs_placed_total"))
        .map(|line| line.rsplit(' ').next().unwrap().parse::<u32>().unwrap())
        .sum();
    assert_eq!(placed, 4, "{figures}");
    let whoami = client.get("/api/v1/whoami").await.ok();
    assert_eq!((&whoami["user"], &whoami["role"]), (&json!("admin"), &json!("admin")));
    assert_eq!(whoami["key_id"].as_str(), group.key.split('_').nth(1));
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn made_up_requests_find_no_fault() {
    let group = Group::of(&[1, 1], |_, site| site.set("service.requests_per_minute=1000000"));
    let (router, client) = group.routed().await;
    let document = client.get("/api/v1/openapi.json").await.ok();
    for route in [
        "/jobs",
        "/jobs/{id}/logs",
        "/uploads",
        "/router/servers",
        "/router/reload",
        "/workers/{id}/drain",
    ] {
        assert!(document["paths"][format!("/api/v1{route}")].is_object(), "{route}");
    }
    check_contract(router.url.clone(), group.key.clone(), group.place.path()).await;
    client.get("/api/v1/jobs").await.ok();
}
