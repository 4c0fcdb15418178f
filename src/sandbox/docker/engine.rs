//! The engine that runs containers: how it is reached, and how its faults are told.

use std::time::Duration;

use bollard::Docker;
use bollard::errors::Error;

use super::options::DockerOptions;
use crate::sandbox::SandboxError;

/// Time for one answer of the engine, waiting for programs excepted.
const ANSWER_LIMIT: Duration = Duration::from_secs(120);

/// Connects, and agrees on a version of the interface.
///
/// # Errors
/// When the engine cannot be reached, or does not have the image.
pub(super) async fn connect(options: &DockerOptions) -> Result<Docker, SandboxError> {
    let docker = match &options.address {
        Some(address) => Docker::connect_with_host(address),
        None => Docker::connect_with_defaults(),
    };
    let docker = docker
        .map_err(|error| unreachable(options, &error))?
        .with_timeout(ANSWER_LIMIT);
    let docker = docker
        .negotiate_version()
        .await
        .map_err(|error| unreachable(options, &error))?;
    match docker.inspect_image(&options.image).await {
        Ok(_) => Ok(docker),
        Err(Error::DockerResponseServerError { status_code: 404, .. }) => Err(SandboxError::Engine {
            reason: format!("it has no image {}", options.image),
            advice: "make it with `clade sandbox image build`, or name another in sandbox.docker.image".to_owned(),
        }),
        Err(error) => Err(fault("look for the image", &error)),
    }
}

fn unreachable(options: &DockerOptions, error: &Error) -> SandboxError {
    let place = options
        .address
        .clone()
        .or_else(|| std::env::var("DOCKER_HOST").ok())
        .unwrap_or_else(|| "its usual place".to_owned());
    SandboxError::Engine {
        reason: format!("nothing answers at {place}: {error}"),
        advice: "start Docker or Podman, or name its socket in sandbox.docker.address".to_owned(),
    }
}

/// A fault of the engine while it was asked to do something; the job can be tried again.
pub(super) fn fault(what: &str, error: &Error) -> SandboxError {
    SandboxError::Helper(format!("the container engine did not {what}: {error}"))
}
