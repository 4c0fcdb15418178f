//! Problems that a person has dealt with. What is still wrong is noted anew when it is met again.

use rusqlite::{Connection, OptionalExtension, Transaction, params};

use super::error::Result;
use super::open::Engine;

/// Setting of the store that holds the time of the last acknowledgement, microseconds UTC.
const ACKNOWLEDGED: &str = "problems.acknowledged_at";

impl Engine {
    /// Takes the problems noted so far as known; returns their number.
    ///
    /// # Errors
    /// When the store cannot be written.
    pub async fn acknowledge_problems(&self) -> Result<i64> {
        let now = self.now();
        let count = self.store().control(move |tx| acknowledge(tx, now)).await?;
        Ok(count)
    }

    /// When problems were last acknowledged, microseconds UTC.
    ///
    /// # Errors
    /// When the store cannot be read.
    pub async fn problems_acknowledged_at(&self) -> Result<Option<i64>> {
        Ok(self.store().control_read(acknowledged_at).await?)
    }
}

fn acknowledge(tx: &Transaction<'_>, now: i64) -> rusqlite::Result<i64> {
    // A problem that is not known is noted when it is met.
    let count = tx.query_row("SELECT count(*) FROM known_problems", [], |row| row.get(0))?;
    tx.execute("DELETE FROM known_problems", [])?;
    tx.execute(
        "INSERT OR REPLACE INTO settings (key, value) VALUES (?1, ?2)",
        params![ACKNOWLEDGED, now.to_string()],
    )?;
    Ok(count)
}

fn acknowledged_at(conn: &Connection) -> rusqlite::Result<Option<i64>> {
    let value: Option<String> = conn
        .prepare_cached("SELECT value FROM settings WHERE key = ?1")?
        .query_row([ACKNOWLEDGED], |row| row.get(0))
        .optional()?;
    Ok(value.and_then(|value| value.parse().ok()))
}
