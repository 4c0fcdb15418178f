//! Uploads: kept by content, and nothing that leads elsewhere.

use std::io::Write;

use reqwest::Method;
use serde_json::json;
use tar::EntryType;

use super::fixture::{Answer, Client, LIMIT, Site, begin_upload, tar};

pub async fn upload(client: &Client, bytes: Vec<u8>) -> Answer {
    let request = client.request(Method::POST, "/api/v1/uploads").body(bytes);
    client.send(request).await
}

fn packed(bytes: &[u8]) -> Vec<u8> {
    let mut packed = flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::best());
    packed.write_all(bytes).unwrap();
    packed.finish().unwrap()
}

#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn a_folder_is_kept_once_and_jobs_read_it() {
    let site = Site::new();
    let server = site.serve("native", 1);
    let client = server.client(server.first_key.as_deref().unwrap());
    let files = [
        ("./", EntryType::Directory, &b""[..]),
        ("./a/train.csv", EntryType::Regular, b"id\n7\n"),
    ];
    let plain = tar(&files);
    let first = upload(&client, plain.clone()).await.ok();
    let id = first["upload"].as_str().unwrap().to_owned();
    assert!(
        id.starts_with("sha256:") && first["bytes"] == 5 && first["files"] == 1,
        "{first}"
    );
    // Packed, in another order, and many times at once: it is the same content.
    let mut again = tokio::task::JoinSet::new();
    for _ in 0..6 {
        let (client, bytes) = (client.clone(), packed(&plain));
        again.spawn(async move { upload(&client, bytes).await.ok()["upload"].clone() });
    }
    while let Some(same) = again.join_next().await {
        assert_eq!(same.unwrap(), id.as_str());
    }
    let shown = client.get(&format!("/api/v1/uploads/{id}")).await.ok();
    assert_eq!(shown, first);
    assert_eq!(site.uploads().len(), 1);

    let code =
        "import os; print(open(os.environ['DATA_DIR'] + '/a/train.csv').read(), os.listdir(os.environ['DATA_DIR']))";
    let body = json!({"name": "u", "code": code, "data_dir": id, "timeout": 60});
    let done = client.run(&body).await;
    let log = done["result"]["run_log"].as_str().unwrap();
    assert!(log.contains("id\n7\n ['a']"), "{done}");
    client
        .get(&format!("/api/v1/uploads/sha256:{}", "0".repeat(64)))
        .await
        .refused(404);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn archives_that_lead_elsewhere_or_explode_are_refused_and_leave_nothing() {
    let site = Site::new()
        .set("service.upload_size=1MiB")
        .set("service.upload_files=50")
        .set("service.upload_depth=3");
    let server = site.serve("process", 1);
    let client = server.client(server.first_key.as_deref().unwrap());
    let file = EntryType::Regular;
    for (name, kind, part) in [
        ("../evil", file, "leads out"),
        ("a/../../evil", file, "leads out"),
        ("/etc/evil", file, "absolute"),
        ("link", EntryType::Symlink, "symbolic link"),
        ("hard", EntryType::Link, "hard link"),
        ("null", EntryType::Char, "a device"),
        ("pipe", EntryType::Fifo, "a pipe"),
    ] {
        let bytes = tar(&[("good.csv", file, b"1"), (name, kind, b"")]);
        let (code, message) = upload(&client, bytes).await.refused(422);
        assert_eq!(code, "invalid_upload");
        assert!(message.contains(part), "{message}");
    }
    let bomb = packed(&tar(&[("bomb", file, &vec![0; 64 << 20])]));
    assert!(bomb.len() < 1 << 20);
    assert_eq!(upload(&client, bomb).await.refused(413).0, "upload_too_large");
    let names: Vec<String> = (0..60).map(|number| format!("f{number}")).collect();
    let many: Vec<_> = names.iter().map(|name| (name.as_str(), file, &b""[..])).collect();
    upload(&client, tar(&many)).await.refused(413);
    upload(&client, tar(&[("a/b/c/d/e", file, b"")])).await.refused(413);
    for nonsense in [
        Vec::new(),
        b"no archive".to_vec(),
        packed(b"no archive"),
        vec![0x1f, 0x8b, 0, 1, 2],
    ] {
        upload(&client, nonsense).await.refused(422);
    }
    let whole = tar(&[("a", file, &[7; 5000])]);
    upload(&client, whole[..3000].to_vec()).await.refused(422);
    assert_eq!(site.uploads(), Vec::<std::path::PathBuf>::new());
    assert!(!site.place.path().join("evil").exists() && !std::path::Path::new("/etc/evil").exists());
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn all_uploads_together_have_a_limit() {
    let site = Site::new().set("service.uploads_size=1000");
    let server = site.serve("process", 1);
    let client = server.client(server.first_key.as_deref().unwrap());
    let file = |content: u8| tar(&[("a", EntryType::Regular, &[content; 600])]);
    upload(&client, file(1)).await.ok();
    assert_eq!(upload(&client, file(2)).await.refused(413).0, "uploads_full");
    upload(&client, file(1)).await.ok();
    let key = server.first_key.clone().unwrap();
    server.stop();
    let server = site.serve("process", 1);
    let client = server.client(&key);
    assert_eq!(
        upload(&client, file(2)).await.refused(413).0,
        "uploads_full",
        "also after a restart"
    );
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn only_so_many_are_received_at_once_and_of_one_user_fewer() {
    let site = Site::new()
        .set("service.uploads_at_once=2")
        .set("service.uploads_per_user=1");
    let server = site.serve("process", 0);
    let [ann, bob, eve] = ["ann", "bob", "eve"].map(|user| site.key(user, &[]));
    let (of_ann, of_bob, of_eve) = (server.client(&ann), server.client(&bob), server.client(&eve));
    let first = begin_upload(&server.url, &ann).await;
    let small = || tar(&[("a", EntryType::Regular, b"1")]);
    let refused = upload(&of_ann, small()).await;
    assert!(refused.headers["retry-after"].parse::<u32>().unwrap() >= 1);
    let (code, message) = refused.refused(429);
    assert_eq!(code, "too_many_uploads");
    assert!(message.contains("1 of your uploads"), "{message}");
    upload(&of_bob, small()).await.ok();
    let second = begin_upload(&server.url, &bob).await;
    let (_, message) = upload(&of_eve, small()).await.refused(429);
    assert!(message.contains("2 uploads are being received"), "{message}");
    // Those that are broken off leave their places, and nothing on the disk.
    drop((first, second));
    let begin = std::time::Instant::now();
    while !upload(&of_ann, small()).await.status.is_success() {
        assert!(begin.elapsed() < LIMIT);
        tokio::time::sleep(std::time::Duration::from_millis(20)).await;
    }
    while site.uploads().len() > 1 {
        assert!(begin.elapsed() < LIMIT, "{:?}", site.uploads());
        tokio::time::sleep(std::time::Duration::from_millis(20)).await;
    }
}
