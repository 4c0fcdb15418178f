//! What a suite wants: its searches, each with its run id and its seed, fixed before the first one begins.

use std::collections::BTreeMap;

use serde_json::{Map, Value as Json};

use super::error::{Result, SuiteError};
use crate::dialect::{Evolve, EvolveOptions};
use crate::engine::NEWEST_RUN;
use crate::gym::validate_task_name;
use crate::scheduler::{Run, derive_seed};

/// Most characters of a suite's name.
const NAME_LENGTH: usize = 64;
/// Most characters of a run id.
const RUN_ID_LENGTH: usize = 128;
/// Most searches of a suite.
const SEARCHES: u64 = 10_000;

/// What a suite is asked for.
#[derive(Debug, Clone)]
pub struct SuiteRequest {
    /// Name of the suite's run.
    pub name: String,
    /// Definition that names the tasks.
    pub definition: Option<String>,
    /// Tasks.
    pub tasks: Vec<String>,
    /// Searches of each task.
    pub repeats: u64,
    /// Policy, model, sandbox and options of every search; task, id and mode of waiting are the suite's.
    pub evolve: Evolve,
    /// Pipelines that run at once over all searches; none for those of one search.
    pub max_workers: Option<u64>,
}

/// A suite, as its row keeps it.
#[derive(Debug, Clone, PartialEq)]
pub struct Suite {
    /// Name of the suite's run.
    pub suite_id: String,
    /// Definition that named the tasks.
    pub definition: Option<String>,
    /// Tasks.
    pub tasks: Vec<String>,
    /// Searches of each task.
    pub repeats: i64,
    /// Seed that the seeds of the repeats are derived from.
    pub seed: i64,
    /// Policy.
    pub policy: String,
    /// Its text.
    pub policy_sql: String,
    /// Generator.
    pub model: String,
    /// Executor.
    pub sandbox: String,
    /// Options that every search is given.
    pub options: EvolveOptions,
    /// Everything that decides how a search goes.
    pub settings: Map<String, Json>,
    /// Searches that go on at once.
    pub runs_at_once: i64,
    /// When it was recorded.
    pub created_at: i64,
}

/// Where a search stands apart from its run.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum SearchStatus {
    /// It begins in its turn, or has begun: then its run says more.
    Planned,
    /// Its task is not imported.
    TaskMissing,
    /// It could not begin or go on.
    NotStarted,
}

impl SearchStatus {
    const ALL: [Self; 3] = [Self::Planned, Self::TaskMissing, Self::NotStarted];

    /// Name as stored.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Planned => "planned",
            Self::TaskMissing => "task_missing",
            Self::NotStarted => "not_started",
        }
    }

    /// The status of a stored name.
    pub fn of(name: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|status| status.as_str() == name)
    }
}

/// One search of a suite, as its row keeps it.
#[derive(Debug, Clone, PartialEq)]
pub struct Search {
    /// Run.
    pub run_id: String,
    /// Task.
    pub task_id: String,
    /// Number among the searches of the task, from 1.
    pub repeat: i64,
    /// Seed.
    pub seed: i64,
    /// Package of the task; none while it is not imported.
    pub package_hash: Option<String>,
    /// Where it stands.
    pub status: SearchStatus,
    /// Why it could not begin or go on.
    pub error: Option<String>,
}

impl SuiteRequest {
    /// Checks the request by itself.
    ///
    /// # Errors
    /// What is wrong with it.
    pub fn check(&self) -> Result<()> {
        let wrong = |message: String| Err(SuiteError::Usage(message));
        let is_plain = |c: char| c.is_ascii_alphanumeric() || "-_.".contains(c);
        if self.name.is_empty() || self.name.len() > NAME_LENGTH || !self.name.chars().all(is_plain) {
            return wrong(format!(
                "'{}' is no name of a suite: use 1 to {NAME_LENGTH} letters, digits and the characters - _ .",
                self.name
            ));
        }
        if self.name == NEWEST_RUN {
            return wrong(format!(
                "'{NEWEST_RUN}' names the newest run, whichever it is: choose another name for the suite"
            ));
        }
        if self.tasks.is_empty() {
            return wrong("a suite needs at least one task".to_owned());
        }
        for (index, task) in self.tasks.iter().enumerate() {
            validate_task_name(task).map_err(|error| SuiteError::Usage(error.to_string()))?;
            if self.tasks[..index].contains(task) {
                return wrong(format!("task {task} is named twice"));
            }
            if run_id(&self.name, task, i64::MAX).len() > RUN_ID_LENGTH {
                return wrong(format!(
                    "the ids of the runs of task {task} would be longer than {RUN_ID_LENGTH} characters: choose a shorter name"
                ));
            }
        }
        if self.evolve.options.id.is_some() {
            return wrong("the runs of a suite are named after it: leave the option id out".to_owned());
        }
        if self.repeats == 0 {
            return wrong("repeats must be at least 1".to_owned());
        }
        let searches = (self.tasks.len() as u64).saturating_mul(self.repeats);
        if searches > SEARCHES {
            return wrong(format!(
                "{searches} searches are too many for one suite: it takes {SEARCHES}"
            ));
        }
        Ok(())
    }

    /// The suite of a request, from the run that its options would give.
    ///
    /// # Errors
    /// When one search alone has more workers than all of them may have.
    pub fn suite(self, run: &Run, settings: Map<String, Json>) -> Result<Suite> {
        Ok(Suite {
            runs_at_once: runs_at_once(run.options.workers, self.max_workers)?,
            suite_id: self.name,
            definition: self.definition,
            tasks: self.tasks,
            repeats: i64::try_from(self.repeats).unwrap_or(i64::MAX),
            seed: run.options.seed,
            policy: run.policy.clone(),
            policy_sql: run.policy_sql.clone(),
            model: run.model.clone(),
            sandbox: run.sandbox.clone(),
            options: self.evolve.options,
            settings,
            created_at: run.created_at,
        })
    }
}

impl Suite {
    /// The searches of a new suite: the first of each task, then the second, so that what is done early covers every task.
    /// `packages` are the imported tasks with their packages.
    pub fn searches(&self, packages: &BTreeMap<String, String>) -> Vec<Search> {
        let search = |repeat: i64, task: &String| {
            let package_hash = packages.get(task).cloned();
            Search {
                run_id: run_id(&self.suite_id, task, repeat),
                task_id: task.clone(),
                repeat,
                seed: derive_seed(self.seed, "repeat", repeat, 0),
                status: match package_hash {
                    Some(_) => SearchStatus::Planned,
                    None => SearchStatus::TaskMissing,
                },
                package_hash,
                error: None,
            }
        };
        (1..=self.repeats)
            .flat_map(|repeat| self.tasks.iter().map(move |task| (repeat, task)))
            .map(|(repeat, task)| search(repeat, task))
            .collect()
    }

    /// The statement of a search.
    pub fn evolve(&self, search: &Search) -> Evolve {
        Evolve {
            task_id: search.task_id.clone(),
            options: EvolveOptions {
                id: Some(search.run_id.clone()),
                seed: u64::try_from(search.seed).ok(),
                ..self.options.clone()
            },
            ..self.template()
        }
    }

    /// The statement that all searches share.
    pub fn template(&self) -> Evolve {
        Evolve {
            task_id: self.tasks.first().cloned().unwrap_or_default(),
            policy: Some(self.policy.clone()),
            model: Some(self.model.clone()),
            sandbox: Some(self.sandbox.clone()),
            options: self.options.clone(),
            is_async: false,
        }
    }
}

/// Searches that go on at once.
///
/// # Errors
/// When one search alone has more workers than all of them may have.
pub fn runs_at_once(workers: usize, max_workers: Option<u64>) -> Result<i64> {
    let Some(most) = max_workers else { return Ok(1) };
    let runs = most / (workers.max(1) as u64);
    if runs == 0 {
        return Err(SuiteError::Usage(format!(
            "one search has {workers} workers, which is more than the {most} that all of them may have"
        )));
    }
    Ok(i64::try_from(runs).unwrap_or(i64::MAX))
}

fn run_id(suite: &str, task: &str, repeat: i64) -> String {
    format!("{suite}.{task}.{repeat}")
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]

    use super::*;

    fn request(name: &str, tasks: &[&str], repeats: u64) -> SuiteRequest {
        SuiteRequest {
            name: name.to_owned(),
            definition: None,
            tasks: tasks.iter().map(|task| (*task).to_owned()).collect(),
            repeats,
            evolve: Evolve {
                task_id: String::new(),
                policy: None,
                model: None,
                sandbox: None,
                options: EvolveOptions::default(),
                is_async: false,
            },
            max_workers: None,
        }
    }

    #[test]
    fn requests_are_checked() {
        let message = |request: SuiteRequest| request.check().unwrap_err().to_string();
        assert!(request("s", &["a", "b"], 3).check().is_ok());
        assert!(message(request("a b", &["a"], 1)).contains("no name of a suite"));
        assert!(message(request("last", &["a"], 1)).contains("names the newest run"));
        assert!(message(request("s", &[], 1)).contains("at least one task"));
        assert!(message(request("s", &["a", "b", "a"], 1)).contains("named twice"));
        assert!(message(request("s", &["../a"], 1)).contains("not a task name"));
        assert!(message(request("s", &["a"], 0)).contains("at least 1"));
        assert!(message(request("s", &["a"], 10_001)).contains("too many"));
        assert!(message(request("s", &[&"a".repeat(120)], 1)).contains("shorter name"));
    }

    #[test]
    fn workers_bound_the_searches() {
        assert_eq!(runs_at_once(4, None).unwrap(), 1);
        assert_eq!(runs_at_once(4, Some(9)).unwrap(), 2);
        assert!(runs_at_once(4, Some(3)).unwrap_err().to_string().contains("4 workers"));
    }
}
