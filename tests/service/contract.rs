//! The OpenAPI document against the server: made-up requests find no fault of the server and no answer that the document lacks.

use std::path::Path;
use std::process::Command;

use super::fixture::{Site, test_python};

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn made_up_requests_find_no_fault() {
    let site = Site::new().set("service.requests_per_minute=1000000");
    let server = site.serve("process", 2);
    let (url, key) = (server.url.clone(), server.first_key.clone().unwrap());
    check_contract(url, key, site.place.path()).await;
    server
        .client(server.first_key.as_deref().unwrap())
        .get("/api/v1/jobs")
        .await
        .ok();
}

/// Sends made-up requests to a service that describes itself.
pub async fn check_contract(url: String, key: String, folder: &Path) {
    let folder = folder.to_owned();
    let output = tokio::task::spawn_blocking(move || {
        Command::new(test_python().with_file_name("schemathesis"))
            .args(["run", &format!("{url}/api/v1/openapi.json")])
            .args(["--header", &format!("X-API-Key: {key}")])
            .args(["--phases", "examples,coverage,fuzzing"])
            .args([
                "--checks",
                "not_a_server_error,status_code_conformance,content_type_conformance,response_schema_conformance,unsupported_method",
            ])
            .args(["--max-examples", "15", "--seed", "1", "--no-shrink", "--no-color"])
            // Followed logs of jobs that do not end would be waited for.
            .args(["--request-timeout", "30", "--suppress-health-check", "all", "--warnings", "off"])
            .current_dir(folder)
            .output()
            .unwrap()
    });
    let output = output.await.unwrap();
    let said = String::from_utf8_lossy(&output.stdout);
    assert!(
        output.status.success(),
        "{said}{}",
        String::from_utf8_lossy(&output.stderr)
    );
}
