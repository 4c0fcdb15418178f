//! The image of programs and metrics: a base of a registry or of Debian packages, with pinned Python packages.

mod base;
mod command;
mod debian;
mod folder;
mod import;
mod python;

use std::path::PathBuf;

use bollard::Docker;
use bollard::errors::Error;
use sha2::{Digest, Sha256};

use super::SandboxError;
use super::docker::engine;

/// Packages that candidates and metrics can import, pinned.
pub const REQUIREMENTS: &str = include_str!("../../../configs/python/requirements.lock");
/// Base that is taken where a registry can be reached.
pub const REGISTRY_BASE: &str = "python:3.12-slim-bookworm";

/// Label with the digest of everything that an image was made of.
const INPUTS_LABEL: &str = "org.clade.inputs";
/// Raised when the way of making an image changes.
const RECIPE: &str = "1";
/// Where the virtual environment of an image lies.
const ENVIRONMENT: &str = "/opt/venv";

/// What an image is made from.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum ImageSource {
    /// [`REGISTRY_BASE`] where a registry can be reached, else Debian packages.
    Auto,
    /// Debian packages, by debootstrap.
    Debian,
    /// An image with Python and its `venv` module, pulled when the engine does not have it.
    Base(String),
}

impl From<&str> for ImageSource {
    fn from(text: &str) -> Self {
        match text {
            "auto" => Self::Auto,
            "debian" => Self::Debian,
            image => Self::Base(image.to_owned()),
        }
    }
}

/// What is made.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum ImageTarget {
    /// An image of the engine with this name, a tag included or not.
    Engine(String),
    /// A folder with the root tree, for jails.
    Folder(PathBuf),
}

/// What is asked for.
#[derive(Debug, Clone)]
pub struct ImageSpec {
    /// Address of the engine; `None` for `DOCKER_HOST` or the usual place.
    pub address: Option<String>,
    /// What is made.
    pub target: ImageTarget,
    /// What it is made from.
    pub source: ImageSource,
    /// Pinned packages, in the format of pip.
    pub requirements: String,
    /// Interpreter of the host whose pip fetches the packages.
    pub python: PathBuf,
    /// Mirror of Debian packages.
    pub mirror: String,
    /// Folder for the parts while they are put together; about 1.5 GB.
    pub work_dir: PathBuf,
    /// Make it also where it is there already.
    pub force: bool,
}

/// What is there now.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct BuiltImage {
    /// Id as the engine gives it, or the folder.
    pub id: String,
    /// It was there already, made of the same parts.
    pub was_current: bool,
}

/// Makes the image, or finds it made; `tell` hears of each step.
///
/// # Errors
/// When the engine, the registry, the packages or a command of the way fail; nothing of a half-made image stays.
pub async fn build_image(spec: &ImageSpec, tell: &(dyn Fn(&str) + Send + Sync)) -> Result<BuiltImage, SandboxError> {
    let base = fetch_base(spec, tell).await?;
    let inputs = inputs_digest(spec, base.as_ref().map(|(_, base)| *base));
    if !spec.force
        && let Some(id) = current(spec, &inputs).await?
    {
        return Ok(BuiltImage { id, was_current: true });
    }
    if let ImageTarget::Folder(folder) = &spec.target {
        folder::check(folder, spec.force)?;
    }
    if !rustix::process::geteuid().is_root() {
        return Err(SandboxError::Image {
            what: "make a root tree".to_owned(),
            reason: "its files belong to root, and so must be this process".to_owned(),
            advice: "run the command as root (sudo); the image can then be used without".to_owned(),
        });
    }
    let work = tempfile::Builder::new()
        .prefix("clade-image-")
        .tempdir_in(&spec.work_dir)
        .map_err(SandboxError::io("make a folder in", &spec.work_dir))?;
    let root = work.path().join("root");
    let variables = match base {
        Some((docker, base)) => base::unpack(&docker, base, &root, tell).await?,
        None => {
            debian::install(&spec.mirror, &root, tell).await?;
            Vec::new()
        }
    };
    python::install(spec, &root, tell).await?;
    let id = match &spec.target {
        ImageTarget::Engine(image) => {
            tell(&format!("importing the image {image}"));
            let docker = engine::connect(spec.address.as_deref()).await?;
            import::import(&docker, &root, image, settings(&variables, &inputs)).await?
        }
        ImageTarget::Folder(folder) => folder::keep(&root, folder, &inputs).await?,
    };
    Ok(BuiltImage { id, was_current: false })
}

/// Digest of what decides about the content of an image.
fn inputs_digest(spec: &ImageSpec, base: Option<&str>) -> String {
    let mut hash = Sha256::new();
    for part in [
        RECIPE,
        base.unwrap_or(debian::SUITE),
        debian::PACKAGES,
        python::SCRIPT,
        &spec.requirements,
    ] {
        hash.update((part.len() as u64).to_le_bytes());
        hash.update(part);
    }
    hex::encode(hash.finalize())
}

/// The base to build on, and the engine that has it; none for Debian packages.
async fn fetch_base<'a>(
    spec: &'a ImageSpec,
    tell: &(dyn Fn(&str) + Send + Sync),
) -> Result<Option<(Docker, &'a str)>, SandboxError> {
    let address = spec.address.as_deref();
    match &spec.source {
        ImageSource::Debian => Ok(None),
        ImageSource::Base(base) => {
            let docker = engine::connect(address).await?;
            base::fetch(&docker, base, tell).await?;
            Ok(Some((docker, base)))
        }
        ImageSource::Auto => {
            let docker = engine::connect(address).await?;
            match base::fetch(&docker, REGISTRY_BASE, tell).await {
                Ok(()) => Ok(Some((docker, REGISTRY_BASE))),
                Err(error) => {
                    tell(&format!("{error}; Debian packages are taken instead"));
                    Ok(None)
                }
            }
        }
    }
}

/// What is there already when it was made of these parts.
async fn current(spec: &ImageSpec, inputs: &str) -> Result<Option<String>, SandboxError> {
    let image = match &spec.target {
        ImageTarget::Folder(folder) => return Ok(folder::current(folder, inputs)),
        ImageTarget::Engine(image) => image,
    };
    let docker = engine::connect(spec.address.as_deref()).await?;
    let found = match docker.inspect_image(image).await {
        Ok(found) => found,
        Err(Error::DockerResponseServerError { status_code: 404, .. }) => return Ok(None),
        Err(error) => return Err(engine::fault("look for the image", &error)),
    };
    let label = found
        .config
        .and_then(|config| config.labels)
        .and_then(|mut labels| labels.remove(INPUTS_LABEL));
    Ok(found.id.filter(|_| label.as_deref() == Some(inputs)))
}

/// Settings of an image, as instructions of a Dockerfile; `variables` are those of its base, such as the paths of a GPU's
/// libraries.
fn settings(variables: &[String], inputs: &str) -> Vec<String> {
    let of_base = variables
        .iter()
        .filter_map(|variable| variable.split_once('='))
        .filter(|(name, _)| *name != "PATH")
        .map(|(name, value)| format!("ENV {name}={}", serde_json::json!(value)));
    let own = [
        format!("ENV PATH={ENVIRONMENT}/bin:/usr/local/bin:/usr/bin:/bin"),
        "USER 65534:65534".to_owned(),
        "WORKDIR /".to_owned(),
        r#"CMD ["python3"]"#.to_owned(),
        format!("LABEL {INPUTS_LABEL}={inputs}"),
    ];
    of_base.chain(own).collect()
}

/// Name and tag of an image.
fn name_and_tag(image: &str) -> (&str, &str) {
    match image.rsplit_once(':') {
        // A colon before a slash is that of a registry's port.
        Some((name, tag)) if !tag.contains('/') => (name, tag),
        _ => (image, "latest"),
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;

    #[test]
    fn a_tag_is_told_from_a_port() {
        assert_eq!(name_and_tag("clade-sandbox"), ("clade-sandbox", "latest"));
        assert_eq!(name_and_tag("clade-sandbox:gpu"), ("clade-sandbox", "gpu"));
        assert_eq!(name_and_tag("here:5000/clade"), ("here:5000/clade", "latest"));
        assert_eq!(name_and_tag("here:5000/clade:2"), ("here:5000/clade", "2"));
    }

    #[test]
    fn other_packages_or_another_base_make_another_image() {
        let spec = ImageSpec {
            address: None,
            target: ImageTarget::Engine("clade-sandbox".to_owned()),
            source: ImageSource::Auto,
            requirements: "numpy==2.4.6\n".to_owned(),
            python: PathBuf::from("python3"),
            mirror: "http://deb.debian.org/debian".to_owned(),
            work_dir: std::env::temp_dir(),
            force: false,
        };
        let digest = inputs_digest(&spec, None);
        assert_eq!(digest, inputs_digest(&spec, None));
        assert_ne!(digest, inputs_digest(&spec, Some("python:3.12")));
        let other = ImageSpec {
            requirements: "numpy==2.4.7\n".to_owned(),
            ..spec.clone()
        };
        assert_ne!(digest, inputs_digest(&other, None));
    }
}
