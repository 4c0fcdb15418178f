//! The file of the router, read again.

use std::time::{Duration, Instant};

use serde_json::{Value as Json, json};

use super::fixture::{Group, Router, keyed};
use crate::service::fixture::{Client, LIMIT};

fn names(health: &Json) -> Vec<&str> {
    let servers = health["servers"].as_array().unwrap();
    servers.iter().map(|server| server["name"].as_str().unwrap()).collect()
}

async fn reload(client: &Client) -> crate::service::fixture::Answer {
    client.post("/api/v1/router/reload", &json!({})).await
}

async fn until_said(router: &Router, part: &str) {
    let begin = Instant::now();
    while !router.said().contains(part) {
        assert!(begin.elapsed() < LIMIT, "{}", router.said());
        tokio::time::sleep(Duration::from_millis(20)).await;
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_changed_file_holds_at_once_and_a_wrong_one_changes_nothing() {
    let group = Group::new(&[0, 0]);
    let urls = group.urls();
    group.write(&urls[..1], "");
    let router = group.route_as_written(&[]);
    let client = router.client(&group.key);
    let first = client.submit(&keyed("k1")).await;
    // An editor puts a new file in its place.
    group.write(&urls, "");
    router.until(|health| names(health) == ["a", "b"]).await;
    // Somebody writes into it.
    let path = group.place.path().join("router.toml");
    let good = std::fs::read_to_string(&path).unwrap();
    std::fs::write(&path, good.replace("name = \"b\"", "name = \"c\"")).unwrap();
    router.until(|health| names(health) == ["a", "c"]).await;
    // Nonsense, by its writer and by call.
    std::fs::write(&path, format!("{good}\ncolour = 1\n")).unwrap();
    until_said(&router, "the file of the router is wrong").await;
    assert_eq!(names(&router.until(|_| true).await), ["a", "c"]);
    let (code, message) = reload(&client).await.refused(422);
    assert_eq!(code, "invalid_configuration");
    assert!(
        message.contains("router.toml") && message.contains("colour"),
        "{message}"
    );
    assert_eq!(names(&router.until(|_| true).await), ["a", "c"]);
    client.job(&first).await;
    std::fs::remove_file(&path).unwrap();
    assert!(reload(&client).await.refused(422).1.contains("cannot read"));
    // A signal says so, too.
    std::fs::write(&path, &good).unwrap();
    router.hang_up();
    router.until(|health| names(health) == ["a", "b"]).await;
    let (status, listed) = {
        let answer = client.get("/api/v1/router/servers").await;
        (answer.status.as_u16(), answer.json())
    };
    assert_eq!(status, 200);
    assert_eq!(listed["servers"][1]["url"], json!(urls[1]));
    let ann = router.client(&group.user("ann", "submit"));
    assert_eq!(ann.get("/api/v1/router/servers").await.refused(403).0, "forbidden");
    assert_eq!(reload(&ann).await.refused(403).0, "forbidden");
    assert_eq!(reload(&router.client("nonsense")).await.refused(401).0, "unauthorized");
    router.stop();
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn servers_come_go_move_and_are_drained() {
    let mut group = Group::new(&[0, 0]);
    let urls = group.urls();
    let (router, client) = group.routed().await;
    for number in 0..4 {
        client.submit(&keyed(&format!("k{number}"))).await;
    }
    assert_eq!(group.counts().await, [2, 2]);
    // Both drained but the second, by name.
    let path = group.place.path().join("router.toml");
    let text = std::fs::read_to_string(&path).unwrap();
    let drained = text.replace("name = \"a\"", "name = \"a\"\ndrain = true");
    std::fs::write(&path, &drained).unwrap();
    let told = reload(&client).await.ok();
    assert!(told["removed"] == json!([]) && told["added"] == json!([]), "{told}");
    router.until(|_| true).await;
    for number in 0..8 {
        client.submit(&keyed(&format!("k{number}"))).await;
    }
    assert_eq!(
        group.counts().await,
        [2, 6],
        "the old ones are found, the new ones go elsewhere"
    );
    // What takes a restart is said.
    std::fs::write(&path, format!("address = \"127.0.0.1:1\"\n{text}")).unwrap();
    let told = reload(&client).await.ok();
    assert_eq!(told["needs_restart"], json!(["address"]), "{told}");
    until_said(&router, "after a restart").await;
    // A server moves: what is known of its name stays.
    let moved = urls[1].clone();
    group.servers.remove(1).kill();
    let server = group.sites[1].serve("process", 0);
    assert_ne!(server.url, moved);
    group.write(&[urls[0].clone(), server.url.clone()], "");
    reload(&client).await.ok();
    router.until_up("b", true).await;
    for number in 0..8 {
        let answer = client.post("/api/v1/jobs", &keyed(&format!("k{number}"))).await;
        assert_eq!(answer.headers["idempotent-replay"], "true");
    }
    // One that is removed is not known any more.
    let on_b = server.client(&group.key).get("/api/v1/jobs").await.ok();
    let id = on_b["jobs"][0]["job_id"].as_str().unwrap().to_owned();
    client.job(&id).await;
    group.write(&urls[..1], "");
    let told = reload(&client).await.ok();
    assert!(
        told["removed"] == json!(["b"]) || told["removed"] == json!([]),
        "{told}"
    );
    router.until(|health| names(health) == ["a"]).await;
    assert_eq!(
        client.get(&format!("/api/v1/jobs/{id}")).await.refused(404).0,
        "unknown_job"
    );
}

#[test]
fn a_wrong_file_or_address_is_said_at_the_start() {
    let place = crate::cli::fixture::Place::new();
    let missing = place.run(["router"]).fails(1);
    assert!(
        missing.contains("router.toml") && missing.contains("--config"),
        "{missing}"
    );
    place.write("router.toml", "");
    let none = place.run(["router"]).fails(2);
    assert!(none.contains("[[server]]"), "{none}");
    place.write("router.toml", "[[server]]\nname = \"a\"\nurl = \"http://10.0.0.1:1\"\n");
    let clear = place.run(["router"]).fails(2);
    assert!(
        clear.contains("in the clear") && clear.contains("--insecure"),
        "{clear}"
    );
    place.write(
        "router.toml",
        "[[server]]\nname = \"a\"\nurl = \"http://127.0.0.1:1\"\n",
    );
    let open = place.run(["router", "--address", "0.0.0.0:0"]).fails(2);
    assert!(open.contains("--tls-cert") && open.contains("--insecure"), "{open}");
    place.run(["router", "--tls-cert", "x"]).fails(2);
    let tls = place.run(["router", "--tls-cert", "x", "--tls-key", "y"]).fails(1);
    assert!(tls.contains("the TLS certificate x and key y cannot be used"), "{tls}");
}

#[test]
fn a_key_of_another_server_is_taken_once() {
    let (one, other) = (
        crate::service::fixture::Site::new(),
        crate::service::fixture::Site::new(),
    );
    let key = one.key("ann", &[]);
    let give = |text: &str| {
        let arguments = [
            "key",
            "create",
            "ann",
            "--role",
            "read",
            "--key-env",
            "GIVEN_KEY",
            "--format",
            "json",
        ];
        let mut command = other.place.command(arguments);
        crate::cli::fixture::finish(command.env("GIVEN_KEY", text), "")
    };
    let made: Json = serde_json::from_str(&give(&key).ok()).unwrap();
    let id = key.split('_').nth(1).unwrap();
    assert_eq!(
        made,
        json!([{"key_id": id, "name": "ann", "role": "read"}]),
        "the secret is not shown"
    );
    let taken = give(&key).fails(1);
    assert!(
        taken.contains(&format!("there is a key '{id}' already, of ann")),
        "{taken}"
    );
    for wrong in ["nonsense", &key[..key.len() - 1], &key.to_uppercase()] {
        let refused = give(wrong).fails(1);
        assert!(
            refused.contains("that is no API key") && !refused.contains(wrong),
            "{refused}"
        );
    }
    assert!(give("").fails(1).contains("the variable GIVEN_KEY holds no API key"));
}
