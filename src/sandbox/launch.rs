//! A program as an isolating back end starts it: what is shown to it, what it is told, what is taken out afterwards.

use std::collections::BTreeMap;
use std::path::PathBuf;

use serde::{Deserialize, Serialize};

use super::evaluation::{self, RunnerInputs, named_like};
use super::job::{DATA_VARIABLES, EvaluationSpec, JobSpec, Limits, OUTPUT_DIR, PROGRAM_NAME, thread_environment};
use super::observe::LogObserver;

/// Where a candidate finds its public data.
pub(crate) const DATA: &str = "/candidate/data";
/// The directory that a program may fill, and its working directory.
pub(crate) const SCRATCH: &str = "/candidate/scratch";
/// Where the evaluator's inputs are shown.
const EVALUATION: &str = "/evaluation";

/// A path of the host that is shown to the program, read-only.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub(crate) struct Input {
    /// On the host.
    pub(crate) source: PathBuf,
    /// Where the program sees it, absolute.
    pub(crate) target: String,
}

/// A file with given content.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub(crate) struct TextFile {
    /// Path as the program sees it, or below the scratch directory when relative.
    pub(crate) path: String,
    /// Its content.
    pub(crate) content: String,
}

/// What to take out after the end.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub(crate) struct Collection {
    /// Name in the scratch directory.
    pub(crate) name: String,
    /// It is a folder.
    pub(crate) is_folder: bool,
    /// Where the copy goes.
    pub(crate) target: PathBuf,
}

/// One program with everything around it.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub(crate) struct Launch {
    /// Names the job.
    pub(crate) job_id: String,
    /// Interpreter arguments before the script; a warm child has none.
    pub(crate) flags: Vec<String>,
    /// The script as the program sees it.
    pub(crate) script: String,
    /// Its arguments.
    pub(crate) arguments: Vec<String>,
    /// The whole environment of the program.
    pub(crate) env: BTreeMap<String, String>,
    /// Host paths to show.
    pub(crate) inputs: Vec<Input>,
    /// Read-only files outside the scratch directory.
    pub(crate) files: Vec<TextFile>,
    /// Files put into the scratch directory before the start.
    pub(crate) scratch_files: Vec<TextFile>,
    /// Limits of the job.
    pub(crate) limits: Limits,
    /// Submission to collect.
    pub(crate) collect: Option<Collection>,
    /// The output is sent to the server while the program runs.
    pub(crate) is_observed: bool,
    /// Who gets it there; it stays in the server.
    #[serde(skip)]
    pub(crate) observer: Option<LogObserver>,
}

impl Launch {
    /// A candidate: it sees its public data and finds its own source in the scratch directory.
    pub(crate) fn candidate(job: &JobSpec) -> Self {
        let mut env = base_environment(job.limits.cpus);
        env.extend(DATA_VARIABLES.map(|name| (name.to_owned(), DATA.to_owned())));
        if job.output_is_folder {
            env.insert(OUTPUT_DIR.to_owned(), format!("{SCRATCH}/{}", job.output_name));
        }
        env.extend(job.env.clone());
        Self {
            job_id: job.job_id.clone(),
            flags: Vec::new(),
            script: format!("{SCRATCH}/{PROGRAM_NAME}"),
            arguments: Vec::new(),
            env,
            inputs: vec![Input {
                source: job.data_dir.clone(),
                target: DATA.to_owned(),
            }],
            files: Vec::new(),
            scratch_files: vec![TextFile {
                path: PROGRAM_NAME.to_owned(),
                content: job.code.clone(),
            }],
            limits: job.limits.clone(),
            collect: Some(Collection {
                name: job.output_name.clone(),
                is_folder: job.output_is_folder,
                target: job.output_path(),
            }),
            is_observed: job.observer.is_some(),
            observer: job.observer.clone(),
        }
    }

    /// An evaluation: the metric, the submission and the hidden answers, and nothing that the candidate could have written beside
    /// its submission.
    pub(crate) fn evaluation(spec: &EvaluationSpec) -> Self {
        let place = |name: &str| format!("{EVALUATION}/{name}");
        let mut inputs = vec![
            Input {
                source: spec.metric_py.clone(),
                target: place("metric.py"),
            },
            Input {
                source: spec.submission.clone(),
                target: place(&named_like("submission", &spec.submission)),
            },
        ];
        let named = |(index, path): (usize, &PathBuf)| Input {
            source: path.clone(),
            target: place(&named_like(&format!("answers-{index}"), path)),
        };
        inputs.extend(spec.answers.iter().enumerate().map(named));
        let runner_inputs = RunnerInputs {
            metric: inputs[0].target.clone(),
            submission: inputs[1].target.clone(),
            answers: inputs[2..].iter().map(|input| input.target.clone()).collect(),
        };
        Self {
            job_id: "evaluation".to_owned(),
            flags: vec!["-I".to_owned(), "-B".to_owned()],
            script: place("evaluate.py"),
            arguments: vec![runner_inputs.to_argument()],
            env: base_environment(spec.limits.cpus),
            inputs,
            files: vec![TextFile {
                path: place("evaluate.py"),
                content: evaluation::RUNNER.to_owned(),
            }],
            scratch_files: Vec::new(),
            limits: spec.limits.clone(),
            collect: None,
            is_observed: false,
            observer: None,
        }
    }
}

/// Variables of every program: nothing of the server's own environment.
fn base_environment(cpus: u32) -> BTreeMap<String, String> {
    let fixed = [
        ("PATH", "/usr/local/bin:/usr/bin:/bin"),
        ("HOME", SCRATCH),
        ("TMPDIR", "/tmp"),
        ("LANG", "C.UTF-8"),
        ("LC_ALL", "C.UTF-8"),
        ("MPLBACKEND", "Agg"),
        ("MPLCONFIGDIR", "/tmp/matplotlib"),
        ("PYTHONDONTWRITEBYTECODE", "1"),
        ("PYTHONHASHSEED", "0"),
        ("PYTHONUNBUFFERED", "1"),
    ];
    let fixed = fixed
        .into_iter()
        .map(|(name, value)| (name.to_owned(), value.to_owned()));
    fixed.chain(thread_environment(cpus)).collect()
}
