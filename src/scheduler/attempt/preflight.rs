//! The look at a program before it runs: what cannot come to a good end costs no job.

use clade_udfs::programs;

use crate::scheduler::error::{Result, SchedulerError};
use crate::scheduler::run::index::NodeOutcome;
use crate::scheduler::services::Services;

/// Status of a node whose program was not run.
pub const STATUS: &str = "preflight_failed";

/// What is wrong with a program.
#[derive(Debug, Clone, PartialEq, Eq)]
struct Fault {
    /// As runs that fail in this way have it.
    signature: &'static str,
    line: usize,
    message: String,
}

/// The outcome of a program that need not be run: it installs packages, does not compile, or imports what is not there. Nothing
/// for a program that may run.
///
/// # Errors
/// When the interpreter of the sandbox does not start.
pub async fn preflight(services: &Services, sandbox: &str, code: &str) -> Result<Option<NodeOutcome>> {
    if let Some(command) = programs::install_command(code) {
        return Ok(Some(outcome(&Fault {
            signature: "forbidden_install",
            line: command.line,
            message: format!(
                "it installs packages ({}), and there is no network: use what is installed",
                command.what
            ),
        })));
    }
    let needed = programs::needed_modules(code);
    let names: Vec<String> = needed.iter().map(|module| module.what.clone()).collect();
    let executor = &services.sandbox(sandbox)?.executor;
    let probe = executor.probe(code, &names).await.map_err(SchedulerError::from)?;
    if let Some((line, message)) = probe.syntax {
        return Ok(Some(outcome(&Fault {
            signature: "syntax_error",
            line,
            message: format!("SyntaxError: {message}"),
        })));
    }
    let missing = needed.iter().find(|module| probe.missing.contains(&module.what));
    Ok(missing.map(|module| {
        outcome(&Fault {
            signature: "import_error",
            line: module.line,
            message: format!("ModuleNotFoundError: No module named '{}'", module.what),
        })
    }))
}

fn outcome(fault: &Fault) -> NodeOutcome {
    NodeOutcome {
        status: STATUS.to_owned(),
        score: None,
        score_source: "none".to_owned(),
        self_reported_score: None,
        error_class: Some("candidate".to_owned()),
        error_signature: Some(fault.signature.to_owned()),
        error: Some(format!(
            "the program was not run: line {}: {}",
            fault.line, fault.message
        )),
    }
}
