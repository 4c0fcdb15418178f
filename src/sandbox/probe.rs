//! What the interpreter of candidates says of a program before it runs. The text is compiled and thrown away; nothing of it is run.

use std::path::Path;
use std::process::Stdio;
use std::time::Duration;

use serde::Deserialize;
use tokio::io::AsyncWriteExt;
use tokio::process::Command;
use tracing::warn;

use super::SandboxError;

/// The question, as a Python program.
const PROBE: &str = include_str!("python/probe.py");

/// Longest wait for an answer.
const LIMIT: Duration = Duration::from_secs(20);

/// What an interpreter says of a program.
#[derive(Debug, Clone, Default, PartialEq, Eq, Deserialize)]
pub struct Probe {
    /// Line and message of the first fault of the syntax.
    pub syntax: Option<(usize, String)>,
    /// Modules that are not there.
    pub missing: Vec<String>,
}

/// Asks an interpreter. One that gives no answer in time, or breaks off over the text, says nothing against the program: the
/// sandbox decides then.
///
/// # Errors
/// When it does not start.
pub(crate) async fn ask(python: &Path, code: &str, modules: &[String]) -> Result<Probe, SandboxError> {
    let mut child = Command::new(python)
        .args(["-I", "-B", "-c", PROBE])
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::null())
        .kill_on_drop(true)
        .spawn()
        .map_err(SandboxError::io("start", python))?;
    let question = serde_json::json!({ "code": code, "modules": modules }).to_string();
    let stdin = child.stdin.take();
    let answer = async {
        let asked = async {
            if let Some(mut stdin) = stdin {
                // One that ended over the text takes no more of it.
                let _ = stdin.write_all(question.as_bytes()).await;
            }
        };
        let (output, ()) = tokio::join!(child.wait_with_output(), asked);
        output
    };
    let said = match tokio::time::timeout(LIMIT, answer).await {
        Ok(output) => output.map_err(SandboxError::io("ask", python))?.stdout,
        Err(_) => Vec::new(),
    };
    Ok(serde_json::from_slice(&said).unwrap_or_else(|_| {
        warn!(python = %python.display(), "the interpreter gave no answer about a program; it runs without one");
        Probe::default()
    }))
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]

    use super::*;

    async fn probe(code: &str, modules: &[&str]) -> Probe {
        let modules: Vec<String> = modules.iter().map(|name| (*name).to_owned()).collect();
        ask(Path::new("python3"), code, &modules).await.unwrap()
    }

    #[tokio::test]
    async fn faults_of_the_syntax_and_missing_modules_are_named() {
        assert_eq!(probe("x = 1\n", &["os", "json"]).await, Probe::default());
        let (line, message) = probe("x = 1\nreturn x\n", &[]).await.syntax.unwrap();
        assert_eq!((line, message.as_str()), (2, "'return' outside function"));
        let found = probe("import nowhere\n", &["sys", "nowhere", "xml"]).await;
        assert_eq!((found.syntax, found.missing), (None, vec!["nowhere".to_owned()]));
    }

    #[tokio::test]
    async fn nothing_of_the_text_is_run() {
        let folder = tempfile::tempdir().unwrap();
        let place = folder.path().join("made");
        let code = format!("open({:?}, 'w').write('x')\n", place.display().to_string());
        assert_eq!(probe(&code, &[]).await, Probe::default());
        assert!(!place.exists());
    }

    #[tokio::test]
    async fn an_interpreter_that_gives_no_answer_says_nothing() {
        assert_eq!(ask(Path::new("false"), "x = 1\n", &[]).await.unwrap(), Probe::default());
        assert!(ask(Path::new("/no/python"), "x = 1\n", &[]).await.is_err());
    }
}
