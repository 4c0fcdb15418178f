//! Importing a package: copy, check, score the sample, derive the validation split, prove it, move into the store.

use std::collections::BTreeMap;
use std::path::Path;
use std::sync::Arc;

use chrono::{DateTime, Utc};
use tokio_util::sync::CancellationToken;

use crate::gym::checks::{Check, CheckStatus, METRIC, SAMPLE, answer_path};
use crate::gym::error::{GymError, io};
use crate::gym::infer::{metric_facts, modality, task_type, title};
use crate::gym::instances::{NO_SPLIT, check_evaluator};
use crate::gym::manifest::ValidationSettings;
use crate::gym::package::MANIFEST;
use crate::gym::progress::Progress;
use crate::gym::rows::{
    BuildEventRow, ImportedTask, LeaderboardRow, QualityCheckRow, Submission, TaskFileRow, TaskRow,
};
use crate::gym::source::Layout;
use crate::gym::split::{CUSTOM_SPLIT, CustomSplit, Split, SplitInput, derive, perfect_submissions, verify_perfect};
use crate::gym::stage::Staged;
use crate::gym::table::Table;
use crate::gym::task::answer_files;
use crate::sandbox::{Evaluation, EvaluationSpec, Evaluator, Executor, JobSpec, Limits, ResultState};

/// What an import works with.
#[derive(Debug, Clone)]
pub struct Import {
    /// Runs the metric.
    pub evaluator: Arc<dyn Evaluator>,
    /// Runs a package's own splitter.
    pub executor: Arc<dyn Executor>,
    /// Limits of one run of the metric.
    pub metric_limits: Limits,
    /// Limits of a package's own splitter.
    pub split_limits: Limits,
    /// How the folder is laid out.
    pub layout: Layout,
    /// Import a package that fails its checks.
    pub force: bool,
    /// Time of the import.
    pub now: DateTime<Utc>,
    /// Told what begins.
    pub progress: Progress,
}

/// A validation split, or why scores are self-reported.
enum Validation {
    Derived(Split),
    Custom(Split),
    SelfReported(String),
}

/// What a validation is judged by.
struct Scale {
    higher_is_better: bool,
    bounds: (Option<f64>, Option<f64>),
}

/// Imports the package in a folder into the store's folder `tasks/<task_id>/<hash>`.
pub async fn import_package(
    path: &Path,
    store_dir: &Path,
    import: &Import,
    cancel: &CancellationToken,
) -> Result<ImportedTask, GymError> {
    let (from, tasks_dir, layout) = (path.to_owned(), store_dir.join("tasks"), import.layout.clone());
    let mut staged = blocking(move || Staged::new(layout.open(&from)?, &tasks_dir)).await?;
    let direction = match staged.instances.as_slice() {
        [] => score_sample(&mut staged, import, cancel).await?,
        _ => check_evaluator(&mut staged, import, cancel).await?,
    };
    if !import.force && !staged.failed().is_empty() {
        return Err(GymError::Refused {
            task_id: staged.task_id.clone(),
            failed: staged.failed(),
        });
    }
    let higher_is_better = direction.map_err(|detail| GymError::NoDirection {
        task_id: staged.task_id.clone(),
        detail,
    })?;
    let facts = metric_facts(&staged.metric_py, &staged.description);
    let bounds = (
        staged.manifest.theoretical_min.or(facts.min),
        staged.manifest.theoretical_max.or(facts.max),
    );
    let scale = Scale {
        higher_is_better,
        bounds,
    };
    let wish = column_wish(&staged.manifest.validation);
    let (mut staged, validation) = make_validation(staged, import, &scale, cancel).await?;
    if let (Some((key, column)), Validation::SelfReported(reason)) = (wish, &validation)
        && !import.force
    {
        let detail =
            format!("{MANIFEST} asks for validation.{key} '{column}', and no such split can be made: {reason}");
        return Err(GymError::Refused {
            task_id: staged.task_id.clone(),
            failed: vec![Check::failed("validation_split", detail)],
        });
    }
    let (kind, note, split) = match validation {
        Validation::Derived(split) => ("split", None, Some(split)),
        Validation::Custom(split) => ("custom", None, Some(split)),
        Validation::SelfReported(reason) => ("self_reported", Some(reason), None),
    };
    staged.checks.push(match (&note, &split) {
        (Some(reason), _) => Check::warning("validation_split", format!("scores are self-reported: {reason}")),
        (None, Some(split)) => Check::passed("validation_split", describe(split)),
        (None, None) => Check::passed("validation_split", "none"),
    });
    let metric = staged
        .manifest
        .metric
        .clone()
        .or(facts.name)
        .unwrap_or_else(|| "unknown".to_owned());
    let by_time = split.as_ref().is_some_and(|s| s.by_time);
    let ranked = split.as_ref().is_some_and(|s| s.how.contains("held back"));
    let (tables, columns) = (&staged.tables, &staged.columns);
    let task_type = staged
        .manifest
        .task_type
        .unwrap_or_else(|| task_type(Some(&metric), tables, columns, by_time, ranked));
    let modality = staged
        .manifest
        .modality
        .unwrap_or_else(|| modality(&staged.public_files(), tables, columns, task_type));
    let rows = |table: &Option<Table>| table.as_ref().map(|t| t.len() as i64);
    let package_path = format!("tasks/{}/{}", staged.task_id, &staged.hash[..12]);
    let task = TaskRow {
        task_id: staged.task_id.clone(),
        title: staged
            .manifest
            .title
            .clone()
            .unwrap_or_else(|| title(&staged.description, &staged.task_id)),
        description: staged.description.clone(),
        modality: modality.as_str().to_owned(),
        task_type: task_type.as_str().to_owned(),
        metric,
        higher_is_better,
        theoretical_min: bounds.0,
        theoretical_max: bounds.1,
        package_hash: staged.hash.clone(),
        package_path: package_path.clone(),
        source: staged.source.display().to_string(),
        validation: kind.to_owned(),
        validation_note: note.or_else(|| split.as_ref().map(describe)),
        id_column: columns.id.clone(),
        target_columns: columns.targets.clone(),
        train_rows: rows(&tables.train),
        test_rows: rows(&tables.test),
        known_leak: staged.known_leak.clone(),
        imported_at: import.now,
        submission: match staged.instances.as_slice() {
            [] => Submission::Table,
            _ => Submission::Folder,
        },
        preflight: staged.manifest.preflight.unwrap_or(false),
    };
    let imported = rows_of(&mut staged, task, split.as_ref(), import.now);
    let place = store_dir.join(package_path);
    blocking(move || staged.dir.publish(&place)).await?;
    Ok(imported)
}

/// The column that the package wants its validation split to follow. Scores that programs report themselves are no answer to that.
fn column_wish(settings: &ValidationSettings) -> Option<(&'static str, String)> {
    let group = settings.group_column.clone().map(|column| ("group_column", column));
    group.or_else(|| settings.time_column.clone().map(|column| ("time_column", column)))
}

fn describe(split: &Split) -> String {
    let mut text = format!(
        "{}; {} rows for training, {} held out",
        split.how, split.train_rows, split.test_rows
    );
    for note in &split.notes {
        text.push_str("; ");
        text.push_str(note);
    }
    text
}

fn rows_of(staged: &mut Staged, task: TaskRow, split: Option<&Split>, now: DateTime<Utc>) -> ImportedTask {
    let (task_id, package_hash) = (task.task_id.clone(), task.package_hash.clone());
    let leaderboard = staged
        .teams(task.higher_is_better)
        .into_iter()
        .map(|team| LeaderboardRow {
            task_id: task_id.clone(),
            rank: team.rank as i64,
            team: team.team,
            score: team.score,
            package_hash: package_hash.clone(),
        })
        .collect();
    let event = |event: &str, detail: String| BuildEventRow {
        task_id: task_id.clone(),
        package_hash: package_hash.clone(),
        event: event.to_owned(),
        detail,
        at: now,
    };
    let bytes: u64 = staged.files.iter().map(|f| f.bytes).sum();
    let mut events = vec![event(
        "imported",
        format!("{} files, {bytes} bytes, from {}", staged.files.len(), task.source),
    )];
    events.extend(split.map(|s| event("split_derived", describe(s))));
    let files = staged
        .files
        .iter()
        .map(|f| TaskFileRow {
            task_id: task_id.clone(),
            path: f.path.clone(),
            role: f.role.as_str().to_owned(),
            bytes: f.bytes as i64,
            sha256: f.sha256.clone(),
            package_hash: package_hash.clone(),
        })
        .collect();
    let checks = staged
        .checks
        .iter()
        .map(|c| QualityCheckRow {
            task_id: task_id.clone(),
            package_hash: package_hash.clone(),
            check_id: c.id.clone(),
            status: c.status.as_str().to_owned(),
            detail: c.detail.clone(),
        })
        .collect();
    ImportedTask {
        task,
        files,
        leaderboard,
        instances: std::mem::take(&mut staged.instances),
        checks,
        events,
    }
}

/// Scores the sample submission on the real answers and records the check. Gives the metric's direction, or what was said instead of it.
async fn score_sample(
    staged: &mut Staged,
    import: &Import,
    cancel: &CancellationToken,
) -> Result<Result<bool, Option<String>>, GymError> {
    const FAILED: &str = "metric_execution_failed";
    let root = staged.dir.path().to_owned();
    let truth = answer_path(&root);
    if !truth.is_file() || ![SAMPLE, METRIC].iter().all(|p| root.join(p).is_file()) {
        staged.checks.push(Check::failed(
            FAILED,
            "the metric was not run, because files are missing",
        ));
        return Ok(Err(None));
    }
    let answers = answer_files(&root.join("data/private"), &truth)?;
    let limit = import.metric_limits.wall.as_secs_f64();
    import.progress.say(&format!(
        "{}: running {METRIC} on the sample submission, at most {limit} s",
        staged.task_id
    ));
    let evaluation = evaluate(&root, answers, &root.join(SAMPLE), import, cancel, &staged.task_id).await?;
    staged.checks.push(match score_of(&evaluation, import) {
        Ok(score) => Check::passed("metric", format!("the sample submission scores {score}")),
        Err(reason) => Check::failed(FAILED, format!("the sample submission was not scored: {reason}")),
    });
    Ok(evaluation.higher_is_better.ok_or(evaluation.detail))
}

pub(super) async fn evaluate(
    root: &Path,
    answers: Vec<std::path::PathBuf>,
    submission: &Path,
    import: &Import,
    cancel: &CancellationToken,
    task_id: &str,
) -> Result<Evaluation, GymError> {
    let spec = EvaluationSpec {
        metric_py: root.join(METRIC),
        answers,
        submission: submission.to_owned(),
        limits: import.metric_limits.clone(),
        warm: false,
    };
    let evaluation = import.evaluator.evaluate(spec, cancel).await;
    evaluation.map_err(|source| GymError::Sandbox {
        task_id: task_id.to_owned(),
        source,
    })
}

/// What is said of an evaluation that went over its time. The limit is the only one that is counted in seconds, and it ends the
/// evaluation right after them.
pub(super) fn over_time(evaluation: &Evaluation, import: &Import) -> Option<String> {
    let limit = import.metric_limits.wall.as_secs_f64();
    (evaluation.state != ResultState::Success && evaluation.wall_seconds >= limit)
        .then(|| format!("{METRIC} did not end within {limit} s; sandbox.evaluation_seconds sets the limit"))
}

fn score_of(evaluation: &Evaluation, import: &Import) -> Result<f64, String> {
    match evaluation.score {
        Some(score) if evaluation.valid && evaluation.state == ResultState::Success && score.is_finite() => Ok(score),
        _ => Err(over_time(evaluation, import)
            .or_else(|| evaluation.detail.clone())
            .unwrap_or_else(|| evaluation.state.as_str().to_owned())),
    }
}

/// Derives and proves the validation split, else asks the package's own splitter.
async fn make_validation(
    staged: Staged,
    import: &Import,
    scale: &Scale,
    cancel: &CancellationToken,
) -> Result<(Staged, Validation), GymError> {
    if !staged.instances.is_empty() {
        return Ok((staged, Validation::SelfReported(NO_SPLIT.to_owned())));
    }
    import.progress.say(&format!(
        "{}: making the validation split and scoring its answers",
        staged.task_id
    ));
    let (mut staged, derived) = blocking(move || {
        let out = staged.dir.path().join("validation");
        let (public, files) = (staged.dir.path().join("data/public"), staged.public_files());
        let derived = match split_input(&staged, &public, &files) {
            Some(input) => derive(&input, &out)?,
            None => Err("the package lacks one of its tables".to_owned()),
        };
        Ok((staged, derived))
    })
    .await?;
    let mut reason = match derived {
        Ok(split) => match prove(&mut staged, import, scale, cancel).await? {
            Ok(()) => return Ok((staged, Validation::Derived(split))),
            Err(reason) => reason,
        },
        Err(reason) => reason,
    };
    remove_validation(&staged)?;
    if staged.dir.path().join(CUSTOM_SPLIT).is_file() {
        match custom(&mut staged, import, scale, cancel).await? {
            Ok(split) => return Ok((staged, Validation::Custom(split))),
            Err(why) => reason = format!("{reason}; {why}"),
        }
        remove_validation(&staged)?;
    }
    Ok((staged, Validation::SelfReported(reason)))
}

fn remove_validation(staged: &Staged) -> Result<(), GymError> {
    let path = staged.dir.path().join("validation");
    if path.exists() {
        std::fs::remove_dir_all(&path).map_err(io("remove", &path))
    } else {
        Ok(())
    }
}

/// What a split is made from; `None` when a table is missing.
fn split_input<'a>(staged: &'a Staged, public: &'a Path, files: &'a [String]) -> Option<SplitInput<'a>> {
    let tables = &staged.tables;
    Some(SplitInput {
        public,
        public_files: files,
        train: tables.train.as_ref()?,
        test: tables.test.as_ref()?,
        sample: tables.sample.as_ref()?,
        answer: tables.answer.as_ref()?,
        columns: &staged.columns,
        settings: &staged.manifest.validation,
    })
}

/// Scores the validation's sample and its perfect submission; the inner error says why the split cannot be used.
async fn prove(
    staged: &mut Staged,
    import: &Import,
    scale: &Scale,
    cancel: &CancellationToken,
) -> Result<Result<(), String>, GymError> {
    let root = staged.dir.path().to_owned();
    let answer_path = root.join("validation/private/test_answer.csv");
    let sample_path = root.join("validation/public/sample_submission.csv");
    let run = async |submission: &Path| {
        evaluate(
            &root,
            vec![answer_path.clone()],
            submission,
            import,
            cancel,
            &staged.task_id,
        )
        .await
    };
    let sample_score = match score_of(&run(&sample_path).await?, import) {
        Ok(score) => score,
        Err(reason) => {
            return Ok(Err(format!(
                "the metric refuses the sample submission of the derived split: {reason}"
            )));
        }
    };
    let (sample, answer) = (Table::read(&sample_path)?, Table::read(&answer_path)?);
    let scratch = root.join("perfect_submission.csv");
    let mut best: Option<f64> = None;
    for submission in perfect_submissions(&sample, &answer, &staged.columns) {
        submission.save(&scratch)?;
        if let Ok(score) = score_of(&run(&scratch).await?, import) {
            let better = best.is_none_or(|b| if scale.higher_is_better { score > b } else { score < b });
            best = if better { Some(score) } else { best };
        }
        std::fs::remove_file(&scratch).map_err(io("remove", &scratch))?;
    }
    let check = verify_perfect(best, sample_score, scale.higher_is_better, scale.bounds);
    if check.status == CheckStatus::Failed {
        return Ok(Err(check.detail));
    }
    staged.checks.push(check);
    Ok(Ok(()))
}

/// Runs the package's own splitter in the sandbox and proves what it made.
async fn custom(
    staged: &mut Staged,
    import: &Import,
    scale: &Scale,
    cancel: &CancellationToken,
) -> Result<Result<Split, String>, GymError> {
    let root = staged.dir.path().to_owned();
    let (public, files) = (root.join("data/public"), staged.public_files());
    let code = std::fs::read_to_string(root.join(CUSTOM_SPLIT)).map_err(io("read", &root.join(CUSTOM_SPLIT)))?;
    let output_dir = root.join("split_output");
    std::fs::create_dir(&output_dir).map_err(io("create", &output_dir))?;
    let job = JobSpec {
        job_id: format!("split-{}", &staged.hash[..12]),
        code,
        data_dir: public.clone(),
        env: BTreeMap::new(),
        limits: import.split_limits.clone(),
        output_name: CustomSplit::OUTPUT.to_owned(),
        output_is_folder: false,
        output_dir: output_dir.clone(),
        warm: false,
        observer: None,
    };
    let outcome = import.executor.run(job, cancel).await;
    let outcome = outcome.map_err(|source| GymError::Sandbox {
        task_id: staged.task_id.clone(),
        source,
    })?;
    let written = match (&outcome.state, &outcome.submission) {
        (None, Some(file)) => Ok(std::fs::read(&file.path).map_err(io("read", &file.path))?),
        _ => Err(format!(
            "{CUSTOM_SPLIT} failed: {}",
            outcome.detail.unwrap_or_else(|| "it wrote no split.json".to_owned())
        )),
    };
    std::fs::remove_dir_all(&output_dir).map_err(io("remove", &output_dir))?;
    let custom = match written.and_then(|bytes| CustomSplit::parse(&bytes)) {
        Ok(custom) => custom,
        Err(reason) => return Ok(Err(reason)),
    };
    let Some(input) = split_input(staged, &public, &files) else {
        return Ok(Err("the package lacks one of its tables".to_owned()));
    };
    let split = match custom.write(&input, &root.join("validation"))? {
        Ok(split) => split,
        Err(reason) => return Ok(Err(reason)),
    };
    Ok(prove(staged, import, scale, cancel).await?.map(|()| split))
}

/// Runs work with many file operations beside the threads that serve queries.
async fn blocking<T: Send + 'static>(
    work: impl FnOnce() -> Result<T, GymError> + Send + 'static,
) -> Result<T, GymError> {
    tokio::task::spawn_blocking(work)
        .await
        .map_err(|e| GymError::Interrupted(e.to_string()))?
}
