//! The arguments: what is common to all commands, and which command.

use std::path::PathBuf;

use clap::{Args, Parser, Subcommand};

use super::commands::{
    bench::BenchArgs, config::ConfigArgs, diff::DiffArgs, doctor::DoctorArgs, evolve::EvolveArgs, exec::ExecArgs,
    export::ExportArgs, grade::GradeArgs, init::InitArgs, key::KeyArgs, model::ModelArgs, plot::PlotArgs,
    policy::PolicyArgs, prompt::PromptArgs, quickstart::QuickstartArgs, report::ReportArgs, router::RouterArgs,
    runs::RunsArgs, sandbox::SandboxArgs, serve::ServeArgs, show::ShowArgs, sql::SqlArgs, task::TaskArgs,
    watch::WatchArgs, worker::WorkerArgs,
};
use super::printer::Format;
use super::terminal::ColorChoice;
use crate::config::{ConfigError, Override, Sources};

/// An embedded analytical database for the evolution of machine-learning programs.
///
/// Search history is tables, selection policies are views, and `SELECT … EXPAND WITH improve` turns rows into programs
/// that are run and scored. Start with `clade quickstart`.
#[derive(Debug, Parser)]
#[command(
    name = "clade",
    version,
    max_term_width = 100,
    subcommand_required = true,
    arg_required_else_help = true
)]
pub struct Cli {
    /// Common to all commands.
    #[command(flatten)]
    pub global: GlobalArgs,
    /// What to do.
    #[command(subcommand)]
    pub command: Command,
}

/// Common to all commands.
#[derive(Debug, Clone, Default, Args)]
#[command(next_help_heading = "Common options")]
pub struct GlobalArgs {
    /// Folder of the store [default: clade-store, or CLADE_STORE].
    #[arg(long, global = true, value_name = "DIR")]
    pub store: Option<PathBuf>,
    /// Configuration file [default: ./clade.toml when there is one, or CLADE_CONFIG].
    #[arg(long, global = true, value_name = "FILE")]
    pub config: Option<PathBuf>,
    /// Profile of the search: standard, multi_worker, naturebench, smoke, or an own one.
    #[arg(long, global = true, value_name = "NAME")]
    pub profile: Option<String>,
    /// Set a key of the configuration, such as search.steps=16; may be repeated.
    #[arg(long = "set", global = true, value_name = "KEY=VALUE")]
    pub settings: Vec<String>,
    /// Colours: auto, always or never.
    #[arg(
        long,
        global = true,
        value_enum,
        default_value_t,
        value_name = "WHEN",
        hide_possible_values = true
    )]
    pub color: ColorChoice,
    /// What to log to standard error: error, warn, info, debug, trace or a filter [default: warn].
    #[arg(long, global = true, value_name = "LEVEL")]
    pub log: Option<String>,
}

/// Format of results.
#[derive(Debug, Clone, Copy, Default, Args)]
pub struct FormatArgs {
    /// How results are written: table, json (one array of row objects), csv or arrow (IPC stream).
    #[arg(
        long,
        value_enum,
        default_value_t,
        value_name = "FORMAT",
        hide_possible_values = true
    )]
    pub format: Format,
}

/// Files of the user that prompts are made of.
#[derive(Debug, Clone, Default, Args)]
pub struct PromptSourceArgs {
    /// Folder of notes that enter prompts: <task>.md for one task, general.md for every task [default: prompts.skills of the
    /// configuration].
    #[arg(long, value_name = "DIR")]
    pub skills: Option<PathBuf>,
    /// Folder of templates that take the place of the built-in ones of the same names [default: prompts.templates of the
    /// configuration].
    #[arg(long, value_name = "DIR")]
    pub prompts: Option<PathBuf>,
}

impl PromptSourceArgs {
    /// Values of the configuration that the flags set.
    pub fn overrides(&self) -> Vec<Override> {
        let flags = [
            ("prompts.skills", "--skills", &self.skills),
            ("prompts.templates", "--prompts", &self.prompts),
        ];
        flags
            .into_iter()
            .filter_map(|(key, flag, path)| {
                Some(Override {
                    key: key.to_owned(),
                    value: path.as_ref()?.to_string_lossy().into_owned(),
                    flag: flag.to_owned(),
                })
            })
            .collect()
    }
}

/// What to do.
#[derive(Debug, Subcommand)]
pub enum Command {
    /// Make a store.
    Init(InitArgs),
    /// Make an example store, search on an example task and show what came out.
    Quickstart(QuickstartArgs),
    /// Run SQL, or open the SQL shell.
    Sql(SqlArgs),
    /// Import, list and show tasks.
    Task(TaskArgs),
    /// List, show and test models; CREATE MODEL makes one.
    Model(ModelArgs),
    /// List, show, make and try selection policies.
    Policy(PolicyArgs),
    /// Print the prompt that an operator would send, without sending it.
    ///
    /// The prompt is that of a request made now: of the next step of a run with --run, else of an EXPAND outside of any run. Nothing
    /// is written.
    Prompt(PromptArgs),
    /// Search for better programs on a task.
    ///
    /// What is left out has the default of the configuration; `clade config search` shows it. Ctrl-C finishes the
    /// programs in flight and ends; a second one ends at once. `clade runs resume` goes on.
    Evolve(Box<EvolveArgs>),
    /// Search on several tasks, several times each, and compare.
    Bench(BenchArgs),
    /// Run one program as a candidate and print its job.
    Exec(ExecArgs),
    /// Make what programs run in.
    Sandbox(SandboxArgs),
    /// List, cancel and resume runs.
    Runs(RunsArgs),
    /// Follow a run while it works.
    Watch(WatchArgs),
    /// Draw a run: scores over steps and the lineage of its programs.
    Plot(PlotArgs),
    /// Write a page about one or several runs, or about a suite, to show or to send.
    Report(ReportArgs),
    /// Show a program with its facts, code, logs and children.
    Show(ShowArgs),
    /// Compare two programs.
    Diff(DiffArgs),
    /// Write a table or the result of a query to a file.
    Export(ExportArgs),
    /// Grade a submission against the hidden answers.
    Grade(GradeArgs),
    /// Run the HTTP job service: clients hand programs in, the sandbox runs them.
    Serve(ServeArgs),
    /// Run jobs of a job service on this machine, which may be another one than the server's.
    Worker(WorkerArgs),
    /// Put one address in front of several servers of the job service.
    ///
    /// Each job goes to the server with the least to do, and is found again wherever it is. --config names the file with the servers
    /// [default: router.toml], which is read again when it changes. It is another file than that of the other commands: of those, the
    /// router takes the log level and nothing else.
    Router(RouterArgs),
    /// Make, list and revoke API keys of the job service.
    Key(KeyArgs),
    /// Check this machine: Python, sandbox, store.
    Doctor(DoctorArgs),
    /// Print the configuration with the origin of every value.
    Config(ConfigArgs),
}

impl GlobalArgs {
    /// What the configuration is read from.
    pub fn sources(&self) -> Result<Sources, ConfigError> {
        let mut sources = Sources {
            file: self.config.clone(),
            ..Sources::from_process()
        };
        for setting in &self.settings {
            sources.overrides.push(Override::parse(setting, "--set")?);
        }
        let flags = [
            (
                "store.path",
                "--store",
                self.store.as_ref().map(|path| path.to_string_lossy().into_owned()),
            ),
            ("log.level", "--log", self.log.clone()),
            ("search.profile", "--profile", self.profile.clone()),
        ];
        for (key, flag, value) in flags {
            if let Some(value) = value {
                sources.overrides.push(Override {
                    key: key.to_owned(),
                    value,
                    flag: flag.to_owned(),
                });
            }
        }
        Ok(sources)
    }
}
