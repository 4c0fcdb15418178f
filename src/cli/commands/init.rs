//! `clade init`: make a store.

use clap::Args;

use crate::cli::context::Context;
use crate::cli::error::CliError;
use crate::cli::terminal::note;
use crate::config::Override;
use crate::engine::OpenMode;

/// Arguments of `clade init`.
#[derive(Debug, Args)]
pub struct InitArgs {
    /// Keep the Parquet files of the cold tier in a bucket, such as s3://bucket/prefix; fixed once the store is made.
    #[arg(long, value_name = "URL")]
    cold: Option<String>,
}

/// Makes the store.
pub async fn run(args: InitArgs, context: &Context) -> Result<(), CliError> {
    let cold = args.cold.map(|url| Override {
        key: "store.cold".to_owned(),
        value: url,
        flag: "--cold".to_owned(),
    });
    let context = context.with(cold)?;
    let path = context.loaded.config.store.path.clone();
    let engine = context.engine(OpenMode::Create).await?;
    engine.close().await;
    note(format!("made the store {}", path.display()));
    note("next: clade task add PATH, then clade evolve TASK; or clade sql for a shell");
    Ok(())
}
