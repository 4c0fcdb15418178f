//! The data that a job names: a task of the store, an upload, or a folder below a configured root.

use std::path::{Component, Path, PathBuf};
use std::sync::Arc;

use super::tasks::Tasks;
use crate::gym::{Submission, normalize_slug, validate_task_name};
use crate::sandbox::Scoring;
use crate::scheduler::Services;
use crate::service::error::{Result, ServiceError};
use crate::service::queue::{DataRef, EvalSplit, JobRequest, Output};
use crate::service::uploads::{UPLOAD_PREFIX, Uploads};

/// Why data cannot be used.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum DataFault {
    /// The name is none that could be looked for.
    #[error("{0}")]
    Name(String),
    /// There is nothing of this name.
    #[error("{0}")]
    Unknown(String),
    /// The task has no such part.
    #[error("{0}")]
    Split(String),
}

/// Data that was found.
#[derive(Debug, Clone)]
pub struct Found {
    /// What the program sees.
    pub dir: PathBuf,
    /// How the submission is scored.
    pub scoring: Scoring,
    /// What the program must write.
    pub output: Output,
}

/// Finds data.
#[derive(Debug)]
pub struct DataFinder {
    tasks: Tasks,
    uploads: Arc<Uploads>,
    roots: Vec<PathBuf>,
}

impl DataFinder {
    /// A finder in a store, its uploads and some folders.
    ///
    /// # Errors
    /// When a folder does not exist.
    pub fn new(
        services: Arc<Services>,
        uploads: Arc<Uploads>,
        roots: impl IntoIterator<Item = PathBuf>,
    ) -> Result<Self> {
        let roots = roots
            .into_iter()
            .map(|root| match root.canonicalize() {
                Ok(path) if path.is_dir() => Ok(path),
                _ => Err(ServiceError::Config(format!(
                    "service.data_roots names {}, which is no folder",
                    root.display()
                ))),
            })
            .collect::<Result<_>>()?;
        Ok(Self {
            tasks: Tasks::new(services),
            uploads,
            roots,
        })
    }

    /// What a request means by a name.
    ///
    /// # Errors
    /// The outer error is a fault of ours, the inner one of the request.
    pub async fn resolve(&self, name: &str, split: Option<&str>) -> Result<Result<DataRef, DataFault>> {
        if let Some(reason) = refused(name) {
            return Ok(Err(DataFault::Name(reason)));
        }
        if let Some(hash) = name.strip_prefix(UPLOAD_PREFIX) {
            return Ok(match self.uploads.find(hash).await? {
                Some(_) => Ok(DataRef::Upload { hash: hash.to_owned() }),
                None => Err(DataFault::Unknown(format!(
                    "there is no upload {name}: send the folder to POST /api/v1/uploads first"
                ))),
            });
        }
        for task_id in [name.to_owned(), normalize_slug(name)] {
            if validate_task_name(&task_id).is_err() || self.tasks.find(&task_id).await?.is_none() {
                continue;
            }
            let split = match split {
                None | Some("validation") => EvalSplit::Validation,
                Some("final") => EvalSplit::Final,
                Some(other) => {
                    return Ok(Err(DataFault::Split(format!(
                        "task '{task_id}' is scored on one part at a time, 'validation' or 'final', not on '{other}'"
                    ))));
                }
            };
            return Ok(Ok(DataRef::Task { task_id, split }));
        }
        if self.folder(name).await.is_some() {
            return Ok(Ok(DataRef::Folder { name: name.to_owned() }));
        }
        Ok(Err(DataFault::Unknown(format!(
            "'{name}' is neither a task ({}) nor a folder below one of service.data_roots",
            self.tasks.names().await?
        ))))
    }

    /// Where the data of a request lies, what is to be written, and how it is scored.
    ///
    /// # Errors
    /// When it is gone; the message says what.
    pub async fn find(&self, request: &JobRequest) -> Result<Found, String> {
        let asked = || request.output.clone().unwrap_or(Submission::Table.into());
        let unscored = |dir: PathBuf| Found {
            dir,
            scoring: Scoring::Unscored,
            output: asked(),
        };
        let data = &request.data;
        match data {
            DataRef::Upload { hash } => match self.uploads.find(hash).await {
                Ok(Some(upload)) => Ok(unscored(upload.data)),
                Ok(None) => Err(format!("the upload {} is gone", data.name())),
                Err(error) => Err(error.to_string()),
            },
            DataRef::Folder { name } => match self.folder(name).await {
                Some(dir) => Ok(unscored(dir)),
                None => Err(format!("the folder '{name}' is gone from service.data_roots")),
            },
            DataRef::Task { task_id, split } => {
                let task = match self.tasks.find(task_id).await {
                    Ok(Some(task)) => task,
                    Ok(None) => return Err(format!("the task '{task_id}' is gone")),
                    Err(error) => return Err(error.to_string()),
                };
                let (part, scored) = match (split, &task.validation) {
                    (EvalSplit::Validation, Some(validation)) => (validation, true),
                    (EvalSplit::Validation, None) => (&task.final_, false),
                    (EvalSplit::Final, _) => (&task.final_, true),
                };
                let scoring = match scored {
                    true => Scoring::Metric {
                        metric_py: part.metric_py.clone(),
                        answers: part.answers.clone(),
                    },
                    false => Scoring::SelfReported,
                };
                Ok(Found {
                    dir: part.public_dir.clone(),
                    scoring,
                    output: part.submission.into(),
                })
            }
        }
    }

    /// A folder below a root. A link that leads out of it is not followed.
    async fn folder(&self, name: &str) -> Option<PathBuf> {
        for root in &self.roots {
            let Ok(path) = tokio::fs::canonicalize(root.join(name)).await else {
                continue;
            };
            if path.starts_with(root) && path != *root && path.is_dir() {
                return Some(path);
            }
        }
        None
    }
}

/// Why a name is not even looked for.
fn refused(name: &str) -> Option<String> {
    const MOST: usize = 512;
    if name.trim().is_empty() {
        return Some("it is empty".to_owned());
    }
    if name.len() > MOST {
        return Some(format!("it has {} bytes, at most {MOST} are taken", name.len()));
    }
    if name.chars().any(char::is_control) {
        return Some("it holds a control character".to_owned());
    }
    let is_plain = |component: Component<'_>| matches!(component, Component::Normal(_) | Component::CurDir);
    if name.starts_with(['/', '\\', '~']) || !Path::new(name).components().all(is_plain) {
        return Some(
            "absolute paths and '..' are refused: name a task, an upload (sha256:...) or a folder below one of service.data_roots"
                .to_owned(),
        );
    }
    None
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_that_lead_elsewhere_are_refused() {
        for name in [
            "",
            " ",
            "/etc",
            "../x",
            "a/../../b",
            "a/..",
            "a\0b",
            "a\nb",
            "~root",
            "\\\\host",
            "./../x",
        ] {
            assert!(refused(name).is_some(), "{name:?}");
        }
        for name in ["titanic", "kaggle/titanic", "sha256:00", "a..b", "päckchen"] {
            assert!(refused(name).is_none(), "{name:?}");
        }
    }
}
