//! Conducting a suite: so many searches at once, each on its own; what fails with one is a row and touches no other.

use std::collections::VecDeque;

use clade_catalog::Txn;
use futures::StreamExt;
use futures::stream::FuturesUnordered;

use super::error::{Result, SuiteError};
use super::plan::{Search, SearchStatus, Suite, SuiteRequest, runs_at_once};
use super::record::{self, SuiteStatus};
use super::settings::{differences, settings};
use crate::engine::{Engine, Session};
use crate::scheduler::{Held, Progress, suite_lease};

/// What happens to a search.
#[derive(Debug)]
pub enum Event<'a> {
    /// It begins.
    Started(&'a Search),
    /// It goes on where it was.
    Resumed(&'a Search),
    /// Its run ended.
    Ended(&'a Search, &'a Progress),
    /// It could not begin or go on, or broke off.
    Failed(&'a Search),
    /// Its task is not imported.
    Missing(&'a Search),
}

/// How a suite ended, in numbers of searches.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Outcome {
    /// All of them.
    pub searches: usize,
    /// Those whose run has ended by itself, now or before.
    pub finished: usize,
    /// Those whose run the user cancelled.
    pub cancelled: usize,
    /// Those that failed, or could not begin.
    pub failed: usize,
    /// Those whose task is not imported.
    pub missing: usize,
    /// Those that were stopped, or not begun because the suite was.
    pub interrupted: usize,
}

/// How one search ended.
enum Ended {
    Run(Progress),
    Failed(String),
}

/// Records a suite and conducts it to its end. `told` hears of every search.
///
/// # Errors
/// When it cannot be done as asked, or the store fails; a search that fails is a row.
pub async fn start(session: &Session, request: SuiteRequest, told: &dyn Fn(Event<'_>)) -> Result<Outcome> {
    request.check()?;
    let engine = session.engine();
    let held = engine.scheduler().hold(&suite_lease(&request.name)).await?;
    let begun = begin(session, request).await;
    conduct_held(session, held, begun, told).await
}

/// Goes on with what a suite has left: what never began, was interrupted or failed, and tasks that are imported by now.
///
/// # Errors
/// When there is no such suite, nothing is left of it, what decides how its searches go differs, or the store fails.
pub async fn resume(
    session: &Session,
    suite_id: &str,
    max_workers: Option<u64>,
    told: &dyn Fn(Event<'_>),
) -> Result<Outcome> {
    let engine = session.engine();
    engine.require_suite(suite_id).await?;
    let held = engine.scheduler().hold(&suite_lease(suite_id)).await?;
    let begun = take_up(session, suite_id, max_workers).await;
    conduct_held(session, held, begun, told).await
}

/// A suite with what it has to do.
struct Begun {
    suite: Suite,
    /// Every search, with the status of its run.
    searches: Vec<(Search, Option<String>)>,
}

async fn begin(session: &Session, request: SuiteRequest) -> Result<Begun> {
    let engine = session.engine();
    let name = request.name.clone();
    if Suite::find(engine, &name).await?.is_some() {
        return Err(SuiteError::Request(format!(
            "there is a suite '{name}' already: clade bench resume {name} goes on with it; choose another name for another one"
        )));
    }
    let mut template = request.evolve.clone();
    template.task_id = request.tasks.first().cloned().unwrap_or_default();
    let run = session.planned_run(template).await?;
    engine.scheduler().check(&run).await?;
    let settings = settings(&run, &engine.config().sandbox)?;
    let suite = request.suite(&run, settings)?;
    let searches = suite.searches(&record::packages(engine).await?);
    refuse_taken_ids(engine, &searches).await?;
    let now = engine.now();
    let mut txn = Txn::new();
    txn.append("bench.suites", suite.rows(SuiteStatus::Running, now)?);
    txn.append(
        "bench.suite_runs",
        record::search_rows(&suite.suite_id, &searches, now)?,
    );
    engine.store().commit(txn).await?;
    Ok(Begun {
        suite,
        searches: searches.into_iter().map(|search| (search, None)).collect(),
    })
}

async fn refuse_taken_ids(engine: &Engine, searches: &[Search]) -> Result<()> {
    let rows = engine
        .queries()
        .rows("SELECT run_id FROM evo.runs", &[], None, None)
        .await?;
    for row in rows.iter() {
        let run_id = row.text("run_id")?;
        if searches.iter().any(|search| search.run_id == run_id) {
            return Err(SuiteError::Request(format!(
                "there is a run '{run_id}' already, which is no run of this suite: choose another name"
            )));
        }
    }
    Ok(())
}

async fn take_up(session: &Session, suite_id: &str, max_workers: Option<u64>) -> Result<Begun> {
    let engine = session.engine();
    let Some(mut suite) = Suite::find(engine, suite_id).await? else {
        return Err(SuiteError::Request(format!("suite '{suite_id}' is gone")));
    };
    let mut searches = record::load_searches(engine, suite_id).await?;
    let run = session.planned_run(suite.template()).await?;
    engine.scheduler().check(&run).await?;
    let packages = record::packages(engine).await?;
    let planned: Vec<Search> = searches.iter().map(|(search, _)| search.clone()).collect();
    let now = settings(&run, &engine.config().sandbox)?;
    let found = differences(&suite, &planned, &run, &now, &packages);
    if !found.is_empty() {
        return Err(SuiteError::Differs {
            suite_id: suite_id.to_owned(),
            differences: found,
        });
    }
    for (search, _) in &mut searches {
        if search.package_hash.is_none() {
            search.package_hash = packages.get(&search.task_id).cloned();
        }
        search.status = match search.package_hash {
            Some(_) => SearchStatus::Planned,
            None => SearchStatus::TaskMissing,
        };
        search.error = None;
    }
    if !searches.iter().any(|(search, run)| is_left(search, run.as_deref())) {
        let missing = searches
            .iter()
            .filter(|(search, _)| search.status == SearchStatus::TaskMissing)
            .map(|(search, _)| search.task_id.as_str());
        let missing: std::collections::BTreeSet<&str> = missing.collect();
        return Err(SuiteError::Request(if missing.is_empty() {
            format!("suite '{suite_id}' has ended: there is nothing to resume")
        } else {
            let missing: Vec<&str> = missing.into_iter().collect();
            format!(
                "suite '{suite_id}' has only searches left whose tasks are not imported: {}; clade task add imports them",
                missing.join(", ")
            )
        }));
    }
    if max_workers.is_some() {
        suite.runs_at_once = runs_at_once(run.options.workers, max_workers)?;
    }
    let (at, changed) = (engine.now(), searches.iter().map(|(search, _)| search));
    let mut txn = Txn::new();
    txn.append("bench.suites", suite.rows(SuiteStatus::Running, at)?);
    txn.append("bench.suite_runs", record::search_rows(suite_id, changed, at)?);
    engine.store().commit(txn).await?;
    Ok(Begun { suite, searches })
}

/// Whether there is something to do for a search.
fn is_left(search: &Search, run: Option<&str>) -> bool {
    search.status == SearchStatus::Planned && !matches!(run, Some("finished" | "cancelled"))
}

/// Conducts a suite whose lease this process holds, and gives the lease up.
async fn conduct_held(
    session: &Session,
    held: Held,
    begun: Result<Begun>,
    told: &dyn Fn(Event<'_>),
) -> Result<Outcome> {
    let conducted = match begun {
        Ok(begun) => conduct(session, &held, &begun, told)
            .await
            .map(|outcome| (begun.suite, outcome)),
        Err(error) => Err(error),
    };
    let (suite, outcome) = match conducted {
        Ok(conducted) => conducted,
        Err(error) => {
            held.release_after(&error).await;
            return Err(error);
        }
    };
    let status = if outcome.interrupted > 0 {
        SuiteStatus::Interrupted
    } else {
        SuiteStatus::Finished
    };
    let mut txn = Txn::new();
    txn.append("bench.suites", suite.rows(status, session.engine().now())?);
    held.release(txn).await?;
    Ok(outcome)
}

async fn conduct(session: &Session, held: &Held, begun: &Begun, told: &dyn Fn(Event<'_>)) -> Result<Outcome> {
    let Begun { suite, searches } = begun;
    let mut outcome = Outcome {
        searches: searches.len(),
        ..Outcome::default()
    };
    let mut waiting = VecDeque::new();
    for (search, run) in searches {
        match run.as_deref() {
            Some("finished") => outcome.finished += 1,
            Some("cancelled") => outcome.cancelled += 1,
            run if is_left(search, run) => waiting.push_back((search, run.is_some())),
            _ => {
                told(Event::Missing(search));
                outcome.missing += 1;
            }
        }
    }
    let most = usize::try_from(suite.runs_at_once).unwrap_or(1).max(1);
    let mut flying = FuturesUnordered::new();
    // Another process that has taken the suite over conducts what waits: nothing more begins here, and nothing is written.
    let mut lost = None;
    loop {
        while flying.len() < most && lost.is_none() && !held.is_stopped() && !waiting.is_empty() {
            if let Err(error) = held.keep().await {
                lost = Some(error);
                break;
            }
            let Some((search, has_begun)) = waiting.pop_front() else {
                break;
            };
            told(if has_begun {
                Event::Resumed(search)
            } else {
                Event::Started(search)
            });
            flying.push(async move { (search, one(session, suite, search, has_begun).await) });
        }
        let Some((search, ended)) = flying.next().await else {
            break;
        };
        match ended {
            Ended::Run(progress) => {
                match progress.status {
                    "finished" => outcome.finished += 1,
                    "cancelled" => outcome.cancelled += 1,
                    "failed" => outcome.failed += 1,
                    _ => outcome.interrupted += 1,
                }
                told(Event::Ended(search, &progress));
            }
            Ended::Failed(error) => {
                outcome.failed += 1;
                let search = Search {
                    status: SearchStatus::NotStarted,
                    error: Some(error),
                    ..search.clone()
                };
                let mut txn = Txn::new();
                txn.append(
                    "bench.suite_runs",
                    record::search_rows(&suite.suite_id, [&search], session.engine().now())?,
                );
                match held.commit(txn).await {
                    Ok(()) => told(Event::Failed(&search)),
                    Err(error) => lost = Some(error),
                }
            }
        }
    }
    if let Some(error) = lost {
        return Err(error.into());
    }
    outcome.interrupted += waiting.len();
    Ok(outcome)
}

/// Conducts one search to its end.
async fn one(session: &Session, suite: &Suite, search: &Search, has_begun: bool) -> Ended {
    match run_one(session, suite, search, has_begun).await {
        Ok(progress) => Ended::Run(progress),
        Err(error) => Ended::Failed(error.to_string()),
    }
}

async fn run_one(session: &Session, suite: &Suite, search: &Search, has_begun: bool) -> Result<Progress> {
    let scheduler = session.engine().scheduler();
    let handle = if has_begun {
        scheduler.resume(&search.run_id).await?
    } else {
        let evolve = suite.evolve(search);
        let sql = evolve.to_string();
        let run = session.planned_run(evolve).await?;
        if run.policy_sql != suite.policy_sql {
            return Err(SuiteError::Request(format!(
                "policy {} was changed while the suite went on",
                suite.policy
            )));
        }
        scheduler.start(run, &sql).await?
    };
    Ok(handle.wait().await?)
}
