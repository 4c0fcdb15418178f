//! `clade sandbox`: what programs run in.

use std::path::PathBuf;

use clap::{Args, Subcommand};

use crate::cli::context::Context;
use crate::cli::error::CliError;
use crate::cli::terminal::note;
use crate::engine::EngineError;
use crate::sandbox::{ImageSource, ImageSpec, ImageTarget, REQUIREMENTS, build_image};

/// Arguments of `clade sandbox`.
#[derive(Debug, Args)]
pub struct SandboxArgs {
    #[command(subcommand)]
    action: SandboxAction,
}

#[derive(Debug, Subcommand)]
enum SandboxAction {
    /// The image of the docker executor.
    Image {
        #[command(subcommand)]
        action: ImageAction,
    },
}

#[derive(Debug, Subcommand)]
enum ImageAction {
    /// Make the image in which the docker executor runs programs, or a root tree for the native one: Python with pinned packages.
    ///
    /// An image that was made of the same parts stays as it is. Needs Docker or Podman, root, and pip of the configured
    /// interpreter; without a registry also debootstrap.
    Build(BuildArgs),
}

#[derive(Debug, Args)]
struct BuildArgs {
    /// Name of the image [default: sandbox.docker.image of the configuration].
    #[arg(long)]
    image: Option<String>,
    /// Make a folder with the same files instead, for sandbox.native.rootfs.
    #[arg(long, value_name = "DIR", conflicts_with = "image")]
    rootfs: Option<PathBuf>,
    /// What it is made from: auto (a Python image where a registry can be reached, else Debian packages), debian, or an image with
    /// Python and its venv module.
    #[arg(long, default_value = "auto", value_name = "SOURCE")]
    from: String,
    /// Packages to install, pinned, as pip reads them [default: those of the quickstart's environment].
    #[arg(long, value_name = "FILE")]
    requirements: Option<PathBuf>,
    /// Mirror of the Debian packages.
    #[arg(long, default_value = "http://deb.debian.org/debian", value_name = "URL")]
    mirror: String,
    /// Folder for the parts while they are put together; about 1.5 GB [default: the folder of temporary files].
    #[arg(long, value_name = "DIR")]
    work: Option<PathBuf>,
    /// Make it anew also where it is current.
    #[arg(long)]
    force: bool,
}

/// Runs the action.
pub async fn run(args: SandboxArgs, context: &Context) -> Result<(), CliError> {
    match args.action {
        SandboxAction::Image {
            action: ImageAction::Build(args),
        } => build(args, context).await,
    }
}

async fn build(args: BuildArgs, context: &Context) -> Result<(), CliError> {
    let config = &context.loaded.config;
    let cwd = std::env::current_dir().map_err(CliError::file("."))?;
    let requirements = match &args.requirements {
        Some(path) => std::fs::read_to_string(path).map_err(CliError::file(path))?,
        None => REQUIREMENTS.to_owned(),
    };
    let spec = ImageSpec {
        address: config.sandbox.docker.address.clone(),
        target: match args.rootfs {
            Some(folder) => ImageTarget::Folder(folder),
            None => ImageTarget::Engine(args.image.unwrap_or_else(|| config.sandbox.docker.image.clone())),
        },
        source: ImageSource::from(args.from.as_str()),
        requirements,
        python: config.python.resolve(&config.store.path, &cwd),
        mirror: args.mirror,
        work_dir: args.work.unwrap_or_else(std::env::temp_dir),
        force: args.force,
    };
    let built = build_image(&spec, &|step| note(step))
        .await
        .map_err(EngineError::from)?;
    let what = match &spec.target {
        ImageTarget::Engine(image) => format!("image {image}"),
        ImageTarget::Folder(_) => "root tree".to_owned(),
    };
    let id = &built.id;
    if built.was_current {
        note(format_args!("the {what} is current: {id}"));
    } else {
        note(format_args!("made the {what}: {id}"));
    }
    Ok(())
}
