//! Ends of programs in the words of the table: the same word for the same limit, whichever layer held it.

use clade::sandbox::{CandidateResult, JobEnd, JobOutcome, ResultState};

/// How a job ended.
pub fn end(outcome: &JobOutcome) -> String {
    let error = outcome.stderr.text();
    match &outcome.end {
        // A program that met a limit in one of its calls says so itself.
        JobEnd::Exited { code: 0 } => {
            let text = outcome.stdout.text();
            let own = text.lines().find(|line| line.starts_with("stopped: "));
            own.unwrap_or("passes").to_owned()
        }
        JobEnd::Exited { .. } if is_out_of_memory(&error) => "stopped: memory".to_owned(),
        JobEnd::Exited { .. } if error.contains("File too large") => "stopped: file size".to_owned(),
        JobEnd::Exited { code } => format!("exit code {code}"),
        JobEnd::Signaled { signal } => format!("signal {signal}"),
        JobEnd::WallLimit => "stopped: wall time".to_owned(),
        JobEnd::CpuLimit => "stopped: CPU time".to_owned(),
        JobEnd::MemoryLimit => "stopped: memory".to_owned(),
        JobEnd::DiskLimit(_) => "stopped: disk".to_owned(),
        end => panic!("{end:?}: {error}"),
    }
}

fn is_out_of_memory(error: &str) -> bool {
    error.contains("MemoryError") || error.contains("Cannot allocate memory")
}

/// What became of a candidate and its submission.
pub fn score(result: &CandidateResult) -> String {
    const REFUSALS: [&str; 8] = [
        "symbolic link",
        "hard link",
        "pipe",
        "directory",
        "socket",
        "folder",
        "wrote no",
        "limit",
    ];
    let detail = result.detail.as_deref().unwrap_or_default();
    match result.state {
        ResultState::Success => "scored".to_owned(),
        ResultState::ScoringFailed => "not scored".to_owned(),
        ResultState::SubmissionMissing => {
            let found = REFUSALS.into_iter().find(|word| detail.contains(word));
            match found.unwrap_or_else(|| panic!("{detail}")) {
                "wrote no" => "refused: nothing there".to_owned(),
                "limit" => "refused: size".to_owned(),
                reason => format!("refused: {reason}"),
            }
        }
        state => panic!("{state}: {detail}"),
    }
}
