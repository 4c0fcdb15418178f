//! The engine that runs containers: how it is reached, and how its faults are told.

use std::time::Duration;

use bollard::Docker;
use bollard::errors::Error;

use crate::sandbox::SandboxError;

/// Time for one answer of the engine, waiting for programs excepted.
const ANSWER_LIMIT: Duration = Duration::from_secs(120);

/// Connects, and agrees on a version of the interface. Without an address: `DOCKER_HOST`, else the usual place.
///
/// # Errors
/// When the engine cannot be reached.
pub(in crate::sandbox) async fn connect(address: Option<&str>) -> Result<Docker, SandboxError> {
    let docker = match address {
        Some(address) => Docker::connect_with_host(address),
        None => Docker::connect_with_defaults(),
    };
    let docker = docker
        .map_err(|error| unreachable(address, &error))?
        .with_timeout(ANSWER_LIMIT);
    docker
        .negotiate_version()
        .await
        .map_err(|error| unreachable(address, &error))
}

/// Makes sure that the engine has an image.
///
/// # Errors
/// When it does not.
pub(super) async fn require_image(docker: &Docker, image: &str) -> Result<(), SandboxError> {
    match docker.inspect_image(image).await {
        Ok(_) => Ok(()),
        Err(Error::DockerResponseServerError { status_code: 404, .. }) => Err(SandboxError::Engine {
            reason: format!("it has no image {image}"),
            advice: "make it with `clade sandbox image build`, or name another in sandbox.docker.image".to_owned(),
        }),
        Err(error) => Err(fault("look for the image", &error)),
    }
}

fn unreachable(address: Option<&str>, error: &Error) -> SandboxError {
    let place = address
        .map(str::to_owned)
        .or_else(|| std::env::var("DOCKER_HOST").ok())
        .unwrap_or_else(|| "its usual place".to_owned());
    SandboxError::Engine {
        reason: format!("nothing answers at {place}: {error}"),
        advice: "start Docker or Podman, or name its socket in sandbox.docker.address".to_owned(),
    }
}

/// A fault of the engine while it was asked to do something; the job can be tried again.
pub(in crate::sandbox) fn fault(what: &str, error: &Error) -> SandboxError {
    SandboxError::Helper(format!("the container engine did not {what}: {error}"))
}
