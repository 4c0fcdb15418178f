//! `clade router`: one address in front of several servers of the job service.

use std::path::PathBuf;

use clap::Args;
use tokio_util::sync::CancellationToken;

use crate::cli::error::CliError;
use crate::cli::interrupt;
use crate::cli::terminal::note;
use crate::router::{RouterOptions, RouterServer};
use crate::service::Tls;

/// File that is read when none is named.
const LOCAL_FILE: &str = "router.toml";
/// What is said when it is told to stop.
const STOPPING: &str = "stopping: what is under way may end";

/// Arguments of `clade router`.
#[derive(Debug, Args)]
pub struct RouterArgs {
    /// The file, which --config names: of this command it is another file than of the others.
    #[arg(skip)]
    pub file: Option<PathBuf>,
    /// Address and port [default: address of the file, which is 127.0.0.1:8700 where it says none].
    #[arg(long, value_name = "ADDRESS")]
    address: Option<String>,
    /// Certificate chain (PEM) for HTTPS [default: tls_cert of the file].
    #[arg(long, value_name = "FILE", requires = "tls_key")]
    tls_cert: Option<PathBuf>,
    /// Private key (PEM) for HTTPS [default: tls_key of the file].
    #[arg(long, value_name = "FILE", requires = "tls_cert")]
    tls_key: Option<PathBuf>,
    /// Serve an address that other machines reach, and send keys to servers on other machines, without HTTPS.
    #[arg(long)]
    insecure: bool,
}

/// Routes until it is told to stop.
pub async fn run(args: RouterArgs) -> Result<(), CliError> {
    let options = RouterOptions {
        path: args.file.unwrap_or_else(|| PathBuf::from(LOCAL_FILE)),
        address: args.address,
        tls: args
            .tls_cert
            .zip(args.tls_key)
            .map(|(certificate, key)| Tls { certificate, key }),
        insecure: args.insecure,
    };
    let router = RouterServer::open(options).await?;
    let stop = CancellationToken::new();
    let routing = async {
        let (all, up) = router.servers();
        note(format!(
            "routing on {} to {all} servers, of which {up} answer; Ctrl-C stops",
            router.url()
        ));
        router.run(stop.clone()).await
    };
    interrupt::until_stopped(&stop, STOPPING, routing).await??;
    note("stopped");
    Ok(())
}
