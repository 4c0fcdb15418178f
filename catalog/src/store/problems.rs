//! Problems that are noted in `system.problems`, each once.

use super::Store;
use super::blobs::content_hash;
use super::txn::Txn;
use crate::error::Result;
use crate::rows::Rows;
use crate::value::Value;

const PROBLEMS: &str = "system.problems";

impl Store {
    /// Notes a problem in `system.problems`; the same component and subject are noted once. Returns whether it was new.
    pub async fn report_problem(&self, component: &str, severity: &str, subject: &str, message: &str) -> Result<bool> {
        let problem_id = content_hash(format!("{component}\n{subject}").as_bytes());
        let mut rows = Rows::for_spec(self.specs().get(PROBLEMS)?);
        rows.push([
            ("problem_id", Value::from(problem_id.as_str())),
            ("component", component.into()),
            ("severity", severity.into()),
            ("subject", subject.into()),
            ("message", message.into()),
            ("at", Value::Timestamp(self.inner.options.clock.now_micros())),
        ])?;
        let (fresh, noted) = std::sync::mpsc::channel();
        let mut txn = Txn::new();
        txn.control_rows(move |transaction, appends| {
            let new = transaction.execute("INSERT OR IGNORE INTO known_problems VALUES (?1)", [problem_id])? > 0;
            if new {
                appends.append(PROBLEMS, rows);
            }
            // The receiver waits in this very call.
            let _ = fresh.send(new);
            Ok::<_, rusqlite::Error>(())
        });
        self.commit(txn).await?;
        Ok(noted.recv().unwrap_or(false))
    }

    /// Notes a problem of the store itself where failing to note it must not hide the problem's own error.
    pub(crate) async fn note_problem(&self, component: &str, subject: &str, message: &str) {
        tracing::warn!(component, subject, message, "problem");
        if self.is_read_only() || self.specs().get(PROBLEMS).is_err() {
            return;
        }
        if let Err(error) = self.report_problem(component, "error", subject, message).await {
            tracing::warn!(%error, "the problem could not be noted in system.problems");
        }
    }
}
