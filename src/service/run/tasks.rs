//! The tasks of the store, as other processes may change them while the service runs.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::{Duration, Instant};

use parking_lot::Mutex;

use crate::gym::Task;
use crate::scheduler::Services;
use crate::service::error::{Result, ServiceError};

/// Time after which the list is read again.
const READ_AGAIN: Duration = Duration::from_secs(1);
/// Tasks that an error names.
const NAMED: usize = 20;

/// Hash of the package by task.
type Packages = Arc<BTreeMap<String, String>>;

/// The tasks of a store.
#[derive(Debug)]
pub(super) struct Tasks {
    services: Arc<Services>,
    known: Mutex<Option<(Instant, Packages)>>,
}

impl Tasks {
    pub(super) fn new(services: Arc<Services>) -> Self {
        Self {
            services,
            known: Mutex::default(),
        }
    }

    /// The task of an id; none when there is none. One that was imported anew is read anew.
    pub(super) async fn find(&self, task_id: &str) -> Result<Option<Arc<Task>>> {
        let packages = self.packages().await?;
        let Some(package) = packages.get(task_id) else {
            return Ok(None);
        };
        let task = self.services.task(task_id).await?;
        if task.row.package_hash == *package {
            return Ok(Some(task));
        }
        self.services.forget_task(task_id);
        Ok(Some(self.services.task(task_id).await?))
    }

    /// Names of tasks, for an error.
    pub(super) async fn names(&self) -> Result<String> {
        let packages = self.packages().await?;
        let names: Vec<&str> = packages.keys().take(NAMED).map(String::as_str).collect();
        Ok(match names.as_slice() {
            [] => "the store has none".to_owned(),
            names => format!("the store has {}", names.join(", ")),
        })
    }

    async fn packages(&self) -> Result<Packages> {
        if let Some((since, packages)) = &*self.known.lock()
            && since.elapsed() < READ_AGAIN
        {
            return Ok(Arc::clone(packages));
        }
        let since = Instant::now();
        let rows = self
            .services
            .queries
            .rows("SELECT task_id, package_hash FROM gym.tasks", &[], None, None)
            .await
            .map_err(ServiceError::query("tasks"))?;
        let packages = rows
            .iter()
            .map(|row| Ok((row.text("task_id")?, row.text("package_hash")?)))
            .collect::<datafusion::error::Result<BTreeMap<_, _>>>()
            .map_err(ServiceError::query("tasks"))?;
        let packages = Arc::new(packages);
        *self.known.lock() = Some((since, Arc::clone(&packages)));
        Ok(packages)
    }
}
