//! The writer: one thread that writes all commits of this process, as many as wait in one SQLite transaction.

use std::collections::HashMap;
use std::sync::Arc;
use std::sync::mpsc::{Receiver, Sender, channel};
use std::thread::JoinHandle;

use arrow::array::RecordBatch;
use arrow::compute::concat_batches;
use rusqlite::{Connection, Transaction, TransactionBehavior, params};
use tokio::sync::{oneshot, watch};

use super::database::{Registered, TABLE_BITS};
use super::options::Clock;
use super::txn::{Appends, ControlFn, Txn};
use crate::error::{Result, StoreError};
use crate::hot::codec;
use crate::newest::keep_newest_rows;
use crate::rows::conform;
use crate::spec::{Specs, TableKind};

/// Number of a commit.
pub type Seq = i64;

/// Most commits of one SQLite transaction; more wait for the next.
const GROUP: usize = 512;

/// Encoded rows of one table.
#[derive(Debug)]
struct Encoded {
    registered: Registered,
    rows: usize,
    data: Vec<u8>,
}

/// What the writer and those who hand it commits know about tables.
#[derive(Debug)]
pub(crate) struct Encoder {
    pub(crate) specs: Arc<Specs>,
    pub(crate) registered: HashMap<String, Registered>,
}

impl Encoder {
    fn encode(&self, appends: Appends) -> Result<Vec<Encoded>> {
        if let Some(error) = appends.error {
            return Err(error);
        }
        let mut by_table: Vec<(String, Vec<RecordBatch>)> = Vec::with_capacity(appends.batches.len());
        for (table, batch) in appends.batches {
            let batch = conform(self.specs.get(&table)?, &batch)?;
            match by_table.iter_mut().find(|(known, _)| *known == table) {
                Some((_, batches)) => batches.push(batch),
                None => by_table.push((table, vec![batch])),
            }
        }
        by_table
            .into_iter()
            .map(|(table, batches)| {
                let spec = self.specs.get(&table)?;
                let mut batch =
                    concat_batches(&spec.public_schema(), &batches).map_err(|source| StoreError::Arrow {
                        context: format!("rows of table {table}"),
                        source,
                    })?;
                if spec.kind == TableKind::Keyed && batch.num_rows() > 1 {
                    batch = keep_newest_rows(&batch, &spec.key_indices()).map_err(|source| StoreError::Arrow {
                        context: format!("rows of table {table}"),
                        source,
                    })?;
                }
                let registered = self
                    .registered
                    .get(&table)
                    .cloned()
                    .ok_or_else(|| StoreError::UnknownTable {
                        table: table.clone(),
                        known: "see the table registry of the store".into(),
                    })?;
                Ok(Encoded {
                    registered,
                    rows: batch.num_rows(),
                    data: codec::encode(&batch),
                })
            })
            .collect()
    }
}

struct Job {
    /// Rows that are encoded; empty when they are late.
    encoded: Vec<Encoded>,
    /// Rows that wait for what the control closures add.
    late: Option<Appends>,
    controls: Vec<ControlFn>,
    reply: oneshot::Sender<Result<Seq>>,
}

/// Handle of the writer thread.
#[derive(Debug)]
pub(crate) struct Writer {
    encoder: Arc<Encoder>,
    jobs: Option<Sender<Job>>,
    thread: Option<JoinHandle<()>>,
}

impl Writer {
    pub(crate) fn start(
        connection: Connection,
        encoder: Encoder,
        clock: Arc<dyn Clock>,
        committed: watch::Sender<Seq>,
    ) -> Result<Self> {
        let encoder = Arc::new(encoder);
        let (jobs, queue) = channel();
        let mut state = Thread {
            connection,
            encoder: Arc::clone(&encoder),
            clock,
            committed,
        };
        let thread = std::thread::Builder::new()
            .name("clade-writer".into())
            .spawn(move || state.run(&queue))
            .map_err(StoreError::io("clade-writer"))?;
        Ok(Self {
            encoder,
            jobs: Some(jobs),
            thread: Some(thread),
        })
    }

    /// Hands over a commit; resolves when it is durable.
    pub(crate) async fn commit(&self, txn: Txn) -> Result<Seq> {
        let (encoded, late) = match txn.late_rows {
            true => (Vec::new(), Some(txn.appends)),
            false => (self.encoder.encode(txn.appends)?, None),
        };
        let (reply, outcome) = oneshot::channel();
        let jobs = self.jobs.as_ref().ok_or(StoreError::Closed)?;
        jobs.send(Job {
            encoded,
            late,
            controls: txn.controls,
            reply,
        })
        .map_err(|_| StoreError::Closed)?;
        outcome.await.map_err(|_| StoreError::Closed)?
    }
}

impl Drop for Writer {
    fn drop(&mut self) {
        // The thread ends after the commits that are queued; waiting lets SQLite close its files in order.
        self.jobs = None;
        if let Some(thread) = self.thread.take() {
            let _ = thread.join();
        }
    }
}

type Replies = Vec<(oneshot::Sender<Result<Seq>>, Result<Seq>)>;

struct Thread {
    connection: Connection,
    encoder: Arc<Encoder>,
    clock: Arc<dyn Clock>,
    committed: watch::Sender<Seq>,
}

impl Thread {
    fn run(&mut self, queue: &Receiver<Job>) {
        while let Ok(first) = queue.recv() {
            let mut group = vec![first];
            group.extend(queue.try_iter().take(GROUP - 1));
            let mut replies = Vec::with_capacity(group.len());
            match self.write(group, &mut replies) {
                Ok(last) => {
                    for (reply, outcome) in replies {
                        // A caller that went away still has its commit.
                        let _ = reply.send(outcome);
                    }
                    self.committed
                        .send_if_modified(|seq| std::mem::replace(seq, last) != last);
                }
                Err(cause) => {
                    for (reply, outcome) in replies {
                        // What a commit did wrong itself is the better message.
                        let _ = reply.send(outcome.and_then(|_| Err(StoreError::Group(Arc::clone(&cause)))));
                    }
                }
            }
        }
    }

    /// Writes a group in one transaction. On an error nothing of it is in the database.
    fn write(&mut self, group: Vec<Job>, replies: &mut Replies) -> Result<Seq, Arc<StoreError>> {
        let context = "commit";
        let begun = self
            .connection
            .transaction_with_behavior(TransactionBehavior::Immediate)
            .and_then(|transaction| Ok((State::read(&transaction)?, transaction)));
        let (mut state, transaction) = match begun {
            Ok(begun) => begun,
            Err(error) => {
                replies.extend(group.into_iter().map(|job| (job.reply, Ok(0))));
                return Err(Arc::new(StoreError::sqlite(context)(error)));
            }
        };
        let before = state.last_seq;
        state.now = self.clock.now_micros().max(state.last_committed_at);
        for job in group {
            let reply = job.reply;
            let outcome = match &state.broken {
                Some(_) => Ok(0),
                None => apply(
                    &transaction,
                    &self.encoder,
                    &mut state,
                    job.encoded,
                    job.late,
                    job.controls,
                ),
            };
            replies.push((reply, outcome));
        }
        if let Some(cause) = state.broken {
            return Err(cause);
        }
        if state.last_seq > before {
            transaction
                .prepare_cached("UPDATE store_state SET last_seq = ?1, last_committed_at = ?2 WHERE id = 1")
                .and_then(|mut update| update.execute(params![state.last_seq, state.now]))
                .map_err(|error| Arc::new(StoreError::sqlite(context)(error)))?;
        }
        transaction
            .commit()
            .map_err(|error| Arc::new(StoreError::sqlite(context)(error)))?;
        Ok(state.last_seq)
    }
}

/// State of the open transaction.
struct State {
    last_seq: Seq,
    last_committed_at: i64,
    now: i64,
    /// Why the whole transaction cannot be committed any more.
    broken: Option<Arc<StoreError>>,
}

impl State {
    fn read(transaction: &Transaction<'_>) -> rusqlite::Result<Self> {
        transaction
            .prepare_cached("SELECT last_seq, last_committed_at FROM store_state WHERE id = 1")?
            .query_row([], |row| {
                Ok(Self {
                    last_seq: row.get(0)?,
                    last_committed_at: row.get(1)?,
                    now: 0,
                    broken: None,
                })
            })
    }
}

/// Applies one commit inside a savepoint.
fn apply(
    transaction: &Transaction<'_>,
    encoder: &Encoder,
    state: &mut State,
    mut encoded: Vec<Encoded>,
    late: Option<Appends>,
    controls: Vec<ControlFn>,
) -> Result<Seq> {
    let context = "commit";
    let outcome = (|| {
        transaction
            .execute_batch("SAVEPOINT one")
            .map_err(StoreError::sqlite(context))?;
        let mut appends = late.unwrap_or_default();
        for control in controls {
            control(transaction, &mut appends).map_err(StoreError::Control)?;
        }
        encoded.extend(encoder.encode(appends)?);
        if encoded.is_empty() {
            transaction
                .execute_batch("RELEASE one")
                .map_err(StoreError::sqlite(context))?;
            return Ok(state.last_seq);
        }
        let seq = state.last_seq + 1;
        let mut insert = transaction
            .prepare_cached("INSERT INTO hot (id, layout_id, rows, committed_at, data) VALUES (?1, ?2, ?3, ?4, ?5)")
            .map_err(StoreError::sqlite(context))?;
        for table in &encoded {
            let Registered { table_no, layout_id } = table.registered;
            insert
                .execute(params![
                    seq << TABLE_BITS | table_no,
                    layout_id,
                    table.rows as i64,
                    state.now,
                    table.data
                ])
                .map_err(StoreError::sqlite(context))?;
        }
        transaction
            .execute_batch("RELEASE one")
            .map_err(StoreError::sqlite(context))?;
        Ok(seq)
    })();
    match outcome {
        Ok(seq) => {
            state.last_seq = seq;
            Ok(seq)
        }
        // SQLite may roll the whole transaction back, as on a full disk; then the group is lost, not this commit alone.
        Err(error)
            if transaction.is_autocommit() || transaction.execute_batch("ROLLBACK TO one; RELEASE one").is_err() =>
        {
            let cause = Arc::new(error);
            state.broken = Some(Arc::clone(&cause));
            Err(StoreError::Group(cause))
        }
        Err(error) => Err(error),
    }
}
