//! `clade policy`: list, show, make and try selection policies.

use std::io::Read;
use std::path::PathBuf;

use clap::{Args, Subcommand};

use crate::cli::args::FormatArgs;
use crate::cli::client::Client;
use crate::cli::context::Context;
use crate::cli::error::CliError;
use crate::cli::printer::Format;
use crate::cli::sql_text::literal;
use crate::dialect;
use crate::engine::EngineError;

/// Arguments of `clade policy`.
#[derive(Debug, Args)]
pub struct PolicyArgs {
    #[command(subcommand)]
    action: PolicyAction,
}

#[derive(Debug, Subcommand)]
enum PolicyAction {
    /// List shipped and own policies.
    List {
        #[command(flatten)]
        format: FormatArgs,
    },
    /// Print the statement that makes a policy.
    Show {
        /// Policy.
        name: String,
        #[command(flatten)]
        format: FormatArgs,
    },
    /// Make a policy from a query.
    Create {
        /// Name.
        name: String,
        /// The query; without it and without --file: standard input.
        #[arg(conflicts_with = "file")]
        query: Option<String>,
        /// File with the query.
        #[arg(short, long, value_name = "FILE")]
        file: Option<PathBuf>,
        /// What the policy does.
        #[arg(long)]
        comment: Option<String>,
        /// Replace a policy of the same name.
        #[arg(long)]
        replace: bool,
    },
    /// Remove an own policy.
    Drop {
        /// Policy.
        name: String,
    },
    /// Replay a policy on a recorded run, step by step, without spending anything.
    Trace {
        /// Policy.
        name: String,
        /// Run: an id, its beginning, or last.
        #[arg(default_value = "last")]
        run: String,
        #[command(flatten)]
        format: FormatArgs,
    },
}

/// Runs the action.
pub async fn run(args: PolicyArgs, context: &Context) -> Result<(), CliError> {
    match args.action {
        PolicyAction::List { format } => {
            let mut printer = context.printer(format.format)?;
            Client::reader(context)
                .await?
                .run("SHOW POLICIES", &mut printer)
                .await?;
            printer.finish()
        }
        PolicyAction::Show { name, format } => {
            let mut printer = context.printer(format.format)?;
            let client = Client::reader(context).await?;
            let sql = format!("SHOW CREATE POLICY {}", literal(&name));
            if format.format != Format::Table {
                client.run(&sql, &mut printer).await?;
                return printer.finish();
            }
            for row in client.statement_rows(&sql).await?.iter() {
                printer.line(row.text("create_policy")?)?;
            }
            printer.finish()
        }
        PolicyAction::Create {
            name,
            query,
            file,
            comment,
            replace,
        } => {
            let query = match (query, &file) {
                (Some(query), _) => query,
                (None, Some(path)) => std::fs::read_to_string(path).map_err(CliError::file(path))?,
                (None, None) => {
                    let mut text = String::new();
                    std::io::stdin()
                        .read_to_string(&mut text)
                        .map_err(CliError::file("standard input"))?;
                    text
                }
            };
            let statements = dialect::parse(&query).map_err(EngineError::from)?;
            if statements.len() != 1 {
                return Err(CliError::Failed(format!(
                    "a policy is one query, and this text holds {} statements",
                    statements.len()
                )));
            }
            let replace = if replace { "OR REPLACE " } else { "" };
            let comment = comment
                .map(|text| format!(" COMMENT {}", literal(&text)))
                .unwrap_or_default();
            let sql = format!("CREATE {replace}POLICY {}{comment} AS\n{query}", literal(&name));
            act(context, &sql).await
        }
        PolicyAction::Drop { name } => act(context, &format!("DROP POLICY {}", literal(&name))).await,
        PolicyAction::Trace { name, run, format } => {
            let mut printer = context.printer(format.format)?;
            let client = Client::reader(context).await?;
            let run = client.run_id(&run).await?;
            let sql = format!("SELECT * FROM policy_trace({}, {})", literal(&name), literal(&run));
            client.run(&sql, &mut printer).await?;
            printer.finish()
        }
    }
}

/// Runs a statement without a result and says what it did.
async fn act(context: &Context, sql: &str) -> Result<(), CliError> {
    let mut printer = context.printer(Format::Table)?;
    let client = Client::writer(context).await?;
    let result = client.act(sql, &mut printer).await;
    client.close().await;
    result
}
