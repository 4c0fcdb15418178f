//! `clade serve`: the HTTP job service.

use std::path::PathBuf;

use clap::Args;
use tokio_util::sync::CancellationToken;

use crate::cli::context::Context;
use crate::cli::error::CliError;
use crate::cli::interrupt;
use crate::cli::terminal::{Look, note};
use crate::config::Override;
use crate::engine::OpenMode;
use crate::service::{ServeOptions, Service, Tls};

/// What is said when it is told to stop.
const STOPPING: &str = "stopping: jobs that run go back into the queue";

/// Arguments of `clade serve`.
#[derive(Debug, Args)]
pub struct ServeArgs {
    /// Address and port [default: service.address of the configuration, which is 127.0.0.1:8765].
    #[arg(long, value_name = "ADDRESS")]
    address: Option<String>,
    /// Jobs that run at once in the server itself, 0 where all run on other machines (clade worker) [default: service.workers of
    /// the configuration, else what cores and free memory allow].
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(0..=1024))]
    workers: Option<u32>,
    /// Executor of all jobs: native, docker or process [default: sandbox.executor of the configuration].
    #[arg(long, value_name = "NAME")]
    executor: Option<String>,
    /// Certificate chain (PEM) for HTTPS.
    #[arg(long, value_name = "FILE", requires = "tls_key")]
    tls_cert: Option<PathBuf>,
    /// Private key (PEM) for HTTPS.
    #[arg(long, value_name = "FILE", requires = "tls_cert")]
    tls_key: Option<PathBuf>,
    /// Serve an address that other machines reach without HTTPS; keys and programs are sent in the clear.
    #[arg(long)]
    insecure: bool,
    /// Make the store when there is none.
    #[arg(long)]
    create: bool,
}

/// Serves until it is told to stop.
pub async fn run(args: ServeArgs, context: &Context) -> Result<(), CliError> {
    let config = &context.loaded.config;
    let asked = args.workers.or(config.service.workers);
    // The sandbox must let as many run as there are workers.
    let concurrency = asked.map(|workers| Override {
        key: "sandbox.concurrency".to_owned(),
        value: workers.saturating_add(config.service.gpu_workers).max(1).to_string(),
        flag: "--workers".to_owned(),
    });
    let context = context.with(concurrency)?;
    let config = &context.loaded.config;
    let options = ServeOptions {
        address: args.address.unwrap_or_else(|| config.service.address.clone()),
        executor: args.executor.unwrap_or_else(|| config.sandbox.executor.clone()),
        workers: asked.unwrap_or_else(|| config.sandbox.effective_concurrency()),
        tls: args
            .tls_cert
            .zip(args.tls_key)
            .map(|(certificate, key)| Tls { certificate, key }),
        insecure: args.insecure,
    };
    let mode = match args.create {
        true => OpenMode::CreateIfMissing,
        false => OpenMode::Existing,
    };
    let engine = context.engine(mode).await?;
    let mut service = Service::open(&engine, &options).await?;
    if let Some(key) = service.first_key() {
        note("the store had no API key; this one, for admins, is shown now and never again:");
        note(context.stderr.paint(Look::Bold, key));
    }
    let stop = CancellationToken::new();
    let serving = async {
        note(format!(
            "serving on {} with {} workers, sandbox {}; Ctrl-C stops",
            service.url(),
            service.workers(),
            options.executor
        ));
        service.run(stop.clone()).await
    };
    interrupt::until_stopped(&stop, STOPPING, serving).await??;
    engine.close().await;
    note("stopped; what was running goes on at the next start");
    Ok(())
}
