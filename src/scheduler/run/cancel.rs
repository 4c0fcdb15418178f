//! Cancelling runs: a request to whoever is at work on one, or the end of one that nobody works on.

use clade_catalog::Txn;

use super::progress;
use crate::scheduler::attempt::settle;
use crate::scheduler::error::Result;
use crate::scheduler::record::statement_rows;
use crate::scheduler::run::Run;
use crate::scheduler::services::Services;

/// Asks the process that is at work on a run to cancel it.
///
/// # Errors
/// When the store fails.
pub async fn request(services: &Services, run_id: &str) -> Result<()> {
    let id = run_id.to_owned();
    Ok(services
        .store
        .control(move |tx| {
            tx.execute(
                "INSERT OR REPLACE INTO run_requests (run_id, request) VALUES (?1, 'cancel')",
                [id],
            )
            .map(|_| ())
        })
        .await?)
}

/// Cancels a run that nobody conducts and whose lease this process holds; one that has ended stays as it is.
///
/// # Errors
/// When the store fails.
pub async fn idle_run(services: &Services, run: &Run) -> Result<()> {
    let run_id = run.run_id.clone();
    let mut txn = Txn::new();
    txn.control(move |tx| {
        tx.execute("DELETE FROM run_requests WHERE run_id = ?1", [&run_id])
            .map(|_| ())
    });
    if !run.has_ended() {
        settle::cancel_pending(services, &run.statement_id).await?;
        let mut progress = progress::progress(services, run).await?;
        progress.status = "cancelled";
        progress.stop_reason = Some("cancelled".to_owned());
        progress.finished_at = Some(services.now());
        txn.append("evo.runs", run.rows(&progress)?);
        txn.append(
            "evo.statements",
            statement_rows::ended(services, &run.statement_id, &progress).await?,
        );
    }
    services.store.commit(txn).await?;
    Ok(())
}
