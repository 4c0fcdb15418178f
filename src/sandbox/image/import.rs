//! A root tree becomes an image of the engine.

use std::path::Path;
use std::process::Stdio;

use bollard::query_parameters::CreateImageOptionsBuilder;
use bollard::{Docker, body_try_stream};
use futures::{StreamExt, TryStreamExt};
use tokio::process::Command;
use tokio_util::io::ReaderStream;

use super::name_and_tag;
use crate::sandbox::SandboxError;
use crate::sandbox::docker::engine;

/// Bytes that are sent at once.
const PART: usize = 1 << 20;

/// Packs the tree and sends it; gives the image's id.
pub(super) async fn import(
    docker: &Docker,
    root: &Path,
    image: &str,
    settings: Vec<String>,
) -> Result<String, SandboxError> {
    let failed = |reason: String| SandboxError::Image {
        what: "pack the root tree".to_owned(),
        reason,
        advice: "look for free space in the folder of --work".to_owned(),
    };
    // Sorted and without times, so that the same tree is the same archive.
    let mut tar = Command::new("tar")
        .args(["--numeric-owner", "--sort=name", "--mtime=@0", "-C"])
        .arg(root)
        .args(["-c", "."])
        .stdin(Stdio::null())
        .stdout(Stdio::piped())
        .kill_on_drop(true)
        .spawn()
        .map_err(|error| failed(format!("tar does not start: {error}")))?;
    let archive = tar
        .stdout
        .take()
        .ok_or_else(|| failed("tar gives no output".to_owned()))?;
    let (name, tag) = name_and_tag(image);
    let options = CreateImageOptionsBuilder::new()
        .from_src("-")
        .repo(name)
        .tag(tag)
        .changes(settings)
        .build();
    let body = body_try_stream(ReaderStream::with_capacity(archive, PART));
    docker
        .create_image(Some(options), Some(body), None)
        .boxed()
        .try_for_each(|_| async { Ok(()) })
        .await
        .map_err(|error| engine::fault("import the image", &error))?;
    let status = tar.wait().await.map_err(|error| failed(error.to_string()))?;
    if !status.success() {
        return Err(failed(format!("tar ended with {status}")));
    }
    let found = docker
        .inspect_image(image)
        .await
        .map_err(|error| engine::fault("find the new image", &error))?;
    Ok(found.id.unwrap_or_default())
}
