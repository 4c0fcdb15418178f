//! The root tree of an image that the engine has or can pull.

use std::path::Path;
use std::process::Stdio;

use bollard::Docker;
use bollard::errors::Error;
use bollard::models::ContainerCreateBody;
use bollard::query_parameters::{CreateContainerOptions, CreateImageOptionsBuilder, RemoveContainerOptionsBuilder};
use futures::{StreamExt, TryStreamExt};
use tokio::io::AsyncWriteExt;
use tokio::process::Command;

use super::name_and_tag;
use crate::sandbox::SandboxError;
use crate::sandbox::docker::engine::fault;

/// Makes sure that the engine has the base.
///
/// # Errors
/// When it does not and no registry gives it.
pub(super) async fn fetch(
    docker: &Docker,
    base: &str,
    tell: &(dyn Fn(&str) + Send + Sync),
) -> Result<(), SandboxError> {
    match docker.inspect_image(base).await {
        Ok(_) => return Ok(()),
        Err(Error::DockerResponseServerError { status_code: 404, .. }) => {}
        Err(error) => return Err(fault("look for the base image", &error)),
    }
    tell(&format!("pulling {base}"));
    let (name, tag) = name_and_tag(base);
    let options = CreateImageOptionsBuilder::new().from_image(name).tag(tag).build();
    docker
        .create_image(Some(options), None, None)
        .boxed()
        .try_for_each(|_| async { Ok(()) })
        .await
        .map_err(|error| SandboxError::Image {
            what: format!("pull {base}"),
            reason: error.to_string(),
            advice: "check the name and the registry, or use --from debian".to_owned(),
        })
}

/// Unpacks the base into `root`; gives the variables that its programs have.
pub(super) async fn unpack(
    docker: &Docker,
    base: &str,
    root: &Path,
    tell: &(dyn Fn(&str) + Send + Sync),
) -> Result<Vec<String>, SandboxError> {
    tell(&format!("unpacking {base}"));
    std::fs::create_dir(root).map_err(SandboxError::io("make", root))?;
    // Never started: a container is what the engine can export.
    let body = ContainerCreateBody {
        image: Some(base.to_owned()),
        cmd: Some(vec!["/bin/true".to_owned()]),
        ..ContainerCreateBody::default()
    };
    let container = docker
        .create_container(None::<CreateContainerOptions>, body)
        .await
        .map_err(|error| fault("make a container of the base", &error))?
        .id;
    let unpacked = export(docker, &container, root).await;
    let options = RemoveContainerOptionsBuilder::new().force(true).v(true).build();
    docker
        .remove_container(&container, Some(options))
        .await
        .map_err(|error| fault("remove the container of the base", &error))?;
    unpacked?;
    let image = docker
        .inspect_image(base)
        .await
        .map_err(|error| fault("describe the base image", &error))?;
    Ok(image.config.and_then(|config| config.env).unwrap_or_default())
}

async fn export(docker: &Docker, container: &str, root: &Path) -> Result<(), SandboxError> {
    let failed = |reason: String| SandboxError::Image {
        what: "unpack the base image".to_owned(),
        reason,
        advice: "look for free space in the folder of --work".to_owned(),
    };
    let mut tar = Command::new("tar")
        .args(["--numeric-owner", "-x", "-C"])
        .arg(root)
        .stdin(Stdio::piped())
        .kill_on_drop(true)
        .spawn()
        .map_err(|error| failed(format!("tar does not start: {error}")))?;
    let mut input = tar
        .stdin
        .take()
        .ok_or_else(|| failed("tar takes no input".to_owned()))?;
    let mut archive = std::pin::pin!(docker.export_container(container));
    while let Some(part) = archive.next().await {
        let part = part.map_err(|error| fault("export the base image", &error))?;
        input
            .write_all(&part)
            .await
            .map_err(|error| failed(error.to_string()))?;
    }
    drop(input);
    let status = tar.wait().await.map_err(|error| failed(error.to_string()))?;
    if status.success() {
        Ok(())
    } else {
        Err(failed(format!("tar ended with {status}")))
    }
}
