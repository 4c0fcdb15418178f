//! `clade worker`: runs jobs of a job service on another machine.

use std::path::PathBuf;

use clap::Args;
use tokio_util::sync::CancellationToken;

use crate::cli::cache_folder::cache_folder;
use crate::cli::context::Context;
use crate::cli::error::CliError;
use crate::cli::interrupt;
use crate::cli::terminal::note;
use crate::config::ByteSize;
use crate::engine::sandboxes;
use crate::worker::{Worker, WorkerOptions};

/// What is said when it is told to stop.
const STOPPING: &str = "stopping: jobs that run go back into the queue";

/// Arguments of `clade worker`.
#[derive(Debug, Args)]
pub struct WorkerArgs {
    /// Address of the server, such as https://jobs.example.org:8765.
    #[arg(long, value_name = "URL")]
    server: String,
    /// Variable that holds an API key with the role worker.
    #[arg(long, value_name = "NAME")]
    key_env: String,
    /// Jobs that run at once [default: sandbox.concurrency of the configuration, else what cores and free memory allow].
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(0..=1024))]
    slots: Option<u32>,
    /// More jobs that run at once, which ask for a GPU; the sandbox must have one.
    #[arg(long, value_name = "N", default_value_t = 0, value_parser = clap::value_parser!(u32).range(0..=1024))]
    gpu_slots: u32,
    /// Executor of all jobs: native, docker or process [default: sandbox.executor of the configuration].
    #[arg(long, value_name = "NAME")]
    executor: Option<String>,
    /// Folder for data of jobs, kept for later ones [default: clade/worker in XDG_CACHE_HOME or ~/.cache].
    #[arg(long, value_name = "DIR")]
    cache: Option<PathBuf>,
    /// Data that is kept there for later jobs; what was not used for longest goes first, what runs stays.
    #[arg(long, value_name = "SIZE", default_value = "20GiB")]
    cache_size: ByteSize,
    /// Send the key to another machine without HTTPS.
    #[arg(long)]
    insecure: bool,
}

/// Works until it is told to stop.
pub async fn run(args: WorkerArgs, context: &Context) -> Result<(), CliError> {
    let config = &context.loaded.config;
    let name = &args.key_env;
    let key = std::env::var(name).ok().filter(|key| !key.trim().is_empty()).ok_or_else(|| {
        CliError::Failed(format!(
            "the variable {name} holds no API key: make one on the server with `clade key create NAME --role worker`"
        ))
    })?;
    let slots = args.slots.unwrap_or_else(|| config.sandbox.effective_concurrency());
    if slots == 0 && args.gpu_slots == 0 {
        return Err(CliError::Usage(
            "a worker needs a slot: give --slots or --gpu-slots".to_owned(),
        ));
    }
    let cache = match args.cache {
        Some(cache) => cache,
        None => cache_folder("worker", "--cache")?,
    };
    let cache = std::path::absolute(&cache).map_err(|source| CliError::File { path: cache, source })?;
    let executor = args.executor.unwrap_or_else(|| config.sandbox.executor.clone());
    let mut known = sandboxes(config, cache.clone())?;
    let names: Vec<String> = known.keys().cloned().collect();
    let sandbox = known.remove(&executor).ok_or_else(|| {
        CliError::Failed(format!(
            "unknown sandbox '{executor}': the sandboxes are {}",
            names.join(", ")
        ))
    })?;
    let options = WorkerOptions {
        server: args.server,
        key: key.trim().to_owned(),
        insecure: args.insecure,
        slots,
        gpu_slots: args.gpu_slots,
        cache,
        cache_bytes: args.cache_size.bytes(),
        warm: config.sandbox.warm,
    };
    let stop = CancellationToken::new();
    let server = options.server.clone();
    let worker = Worker::open(sandbox, options, stop.clone()).await?;
    let joined = |worker: &Worker| {
        note(format!(
            "joined {server} as {} with {slots} slots and {} for GPU jobs, sandbox {executor}; Ctrl-C leaves",
            worker.id(),
            args.gpu_slots
        ));
    };
    interrupt::until_stopped(&stop, STOPPING, worker.run(joined)).await??;
    note("left; what was running goes on elsewhere");
    Ok(())
}
