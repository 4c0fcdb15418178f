//! Commands of the host: run to their end, their failure told with what they printed.

use std::process::Stdio;

use tokio::process::Command;

use crate::sandbox::SandboxError;

/// Lines of a failed command that are shown.
const SHOWN_LINES: usize = 12;

/// Runs a command; gives its standard output.
///
/// # Errors
/// When it cannot be started (`missing` says how to get it) or fails.
pub(super) async fn run(what: &str, command: &mut Command, missing: &str) -> Result<String, SandboxError> {
    let output = command
        .stdin(Stdio::null())
        .kill_on_drop(true)
        .output()
        .await
        .map_err(|error| SandboxError::Image {
            what: what.to_owned(),
            reason: format!("{} does not start: {error}", name(command)),
            advice: missing.to_owned(),
        })?;
    if output.status.success() {
        return Ok(String::from_utf8_lossy(&output.stdout).into_owned());
    }
    let mut text = String::from_utf8_lossy(&output.stderr).into_owned();
    if text.trim().is_empty() {
        text = String::from_utf8_lossy(&output.stdout).into_owned();
    }
    Err(SandboxError::Image {
        what: what.to_owned(),
        reason: format!("{} ended with {}:\n{}", name(command), output.status, last_lines(&text)),
        advice: "nothing was changed; mend the cause and run the command again".to_owned(),
    })
}

fn name(command: &Command) -> String {
    command.as_std().get_program().to_string_lossy().into_owned()
}

/// The end of a text: what went wrong stands there.
pub(super) fn last_lines(text: &str) -> String {
    let lines: Vec<&str> = text.lines().filter(|line| !line.trim().is_empty()).collect();
    lines[lines.len().saturating_sub(SHOWN_LINES)..].join("\n")
}
