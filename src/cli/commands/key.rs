//! `clade key`: API keys of the job service.

use std::sync::Arc;

use arrow::array::{ArrayRef, StringArray};
use clap::{Args, Subcommand};

use crate::cli::args::FormatArgs;
use crate::cli::client::Client;
use crate::cli::context::Context;
use crate::cli::error::CliError;
use crate::cli::terminal::note;
use crate::engine::QueryOutput;
use crate::service::{Quotas, Role, adopt_key, create_key, revoke_key};

/// Arguments of `clade key`.
#[derive(Debug, Args)]
pub struct KeyArgs {
    #[command(subcommand)]
    action: KeyAction,
}

#[derive(Debug, Subcommand)]
enum KeyAction {
    /// Make a key and print it. It is shown now and never again: the store keeps a hash.
    ///
    /// With --key-env none is made: the key that another server printed opens this one, too, as servers behind a router need it.
    Create {
        /// User: keys of one name see the same jobs.
        name: String,
        /// What it may do: read (look at jobs), submit (hand in and cancel as well), admin (all users' jobs) or worker (run jobs, see
        /// `clade worker`).
        #[arg(
            long,
            value_enum,
            default_value = "submit",
            value_name = "ROLE",
            hide_possible_values = true
        )]
        role: Role,
        /// Jobs that may wait [default: service.queued_per_user].
        #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(1..))]
        queued: Option<u32>,
        /// Jobs that may run at once [default: service.running_per_user].
        #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(1..))]
        running: Option<u32>,
        /// Requests in a minute [default: service.requests_per_minute].
        #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(1..))]
        per_minute: Option<u32>,
        /// Variable that holds a key of another server, which is taken instead of a new one.
        #[arg(long, value_name = "NAME")]
        key_env: Option<String>,
        #[command(flatten)]
        format: FormatArgs,
    },
    /// List the keys; their secrets are nowhere.
    List {
        #[command(flatten)]
        format: FormatArgs,
    },
    /// Refuse a key from now on.
    Revoke {
        /// Id of the key.
        key_id: String,
    },
}

/// Runs the action.
pub async fn run(args: KeyArgs, context: &Context) -> Result<(), CliError> {
    match args.action {
        KeyAction::Create {
            name,
            role,
            queued,
            running,
            per_minute,
            key_env,
            format,
        } => {
            let name = name.trim();
            if name.is_empty() || name.chars().any(char::is_control) {
                return Err(CliError::Usage("a key needs the name of its user".to_owned()));
            }
            let given = key_env.map(|variable| given_key(&variable)).transpose()?;
            let mut printer = context.printer(format.format)?;
            let client = Client::writer(context).await?;
            let engine = client.engine();
            let quotas = Quotas {
                queued,
                running,
                requests_per_minute: per_minute,
            };
            let (store, queries, now) = (engine.store(), engine.queries(), engine.now());
            let (made, key) = match given {
                Some(text) => (None, adopt_key(store, queries, &text, name, role, quotas, now).await?),
                None => {
                    let (text, key) = create_key(store, name, role, quotas, now).await?;
                    (Some(text), key)
                }
            };
            let column = |value: &str| Arc::new(StringArray::from(vec![value])) as ArrayRef;
            // Who gives a key has it.
            let mut columns: Vec<_> = made.iter().map(|text| ("key", column(text))).collect();
            columns.extend([
                ("key_id", column(&key.key_id)),
                ("name", column(&key.name)),
                ("role", column(key.role.as_str())),
            ]);
            let output = QueryOutput::of_columns(columns)?;
            printer.print(output).await?;
            printer.finish()?;
            client.close().await;
            Ok(())
        }
        KeyAction::List { format } => {
            let mut printer = context.printer(format.format)?;
            let sql = "SELECT key_id, name, role, queued_limit, running_limit, requests_per_minute, created_at, revoked_at \
                       FROM sandbox.api_keys ORDER BY created_at, key_id";
            Client::reader(context).await?.run(sql, &mut printer).await?;
            printer.finish()
        }
        KeyAction::Revoke { key_id } => {
            let client = Client::writer(context).await?;
            let engine = client.engine();
            let key = revoke_key(engine.store(), engine.queries(), &key_id, engine.now()).await?;
            client.close().await;
            note(format!("the key {key_id} of {} is refused from now on", key.name));
            Ok(())
        }
    }
}

fn given_key(variable: &str) -> Result<String, CliError> {
    let key = std::env::var(variable).unwrap_or_default();
    match key.trim() {
        "" => Err(CliError::Failed(format!(
            "the variable {variable} holds no API key: put one in it that `clade key create` printed for another server"
        ))),
        key => Ok(key.to_owned()),
    }
}
