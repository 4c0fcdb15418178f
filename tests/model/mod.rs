//! Models: the evolver on real tasks (its programs compile, run, and write submissions in the shape of the sample), and the
//! client of language-model services against one that misbehaves.

mod client;
mod counts;
mod official_scores;
mod search;
pub mod server;
mod statements;
mod torch;

use std::fs;
use std::path::PathBuf;
use std::process::{Command, Stdio};
use std::sync::Arc;
use std::time::{Duration, Instant};

use clade::model::{Evolver, GenerateRequest, Generator, NodeContext, SamplingParams, TaskContext};
use clade::operators::Operator;
use tempfile::TempDir;
use tokio_util::sync::CancellationToken;

/// Task, metric, direction, id and targets.
const TASKS: &[(&str, &str, bool, &str, &[&str])] = &[
    ("abalone-age", "rmse", false, "index", &["rings"]),
    ("ames-sale-price", "rmsle", false, "Id", &["price"]),
    ("bundesliga-outcome", "log_loss", false, "match", &["outcome"]),
    ("cell-segmentation", "accuracy", true, "cell", &["class"]),
    ("critic-verdict", "auc", true, "review", &["verdict"]),
    ("loan-interest-rate", "mae", false, "loan id", &["interest_rate"]),
    ("movie-topn", "map_at_k", true, "userId", &["movies"]),
    (
        "solar-flare-counts",
        "mean_columnwise_rmse",
        false,
        "region",
        &["c-class-flares", "m-class-flares", "x-class-flares"],
    ),
    ("spanish-credit-risk", "auc", true, "id", &["Resultado"]),
    ("tiny-digits", "accuracy", true, "image_id", &["digit"]),
    ("us-daily-births", "smape", false, "date", &["births"]),
    ("vowel-speakers", "accuracy", true, "series_id", &["speaker"]),
];

fn python() -> PathBuf {
    let python = std::env::var_os("CLADE_PYTHON")
        .expect("set CLADE_PYTHON to a Python interpreter with numpy, pandas and scikit-learn");
    PathBuf::from(python)
}

fn tasks() -> Vec<Arc<TaskContext>> {
    let Some(shared) = crate::shared::folder() else {
        return Vec::new();
    };
    let folder = shared.join("tasks");
    TASKS
        .iter()
        .map(|(task, metric, higher_is_better, id, targets)| {
            let public_dir = folder.join(task).join("data/public");
            Arc::new(TaskContext {
                task_id: (*task).to_owned(),
                description: fs::read_to_string(public_dir.join("description.txt")).unwrap(),
                public_dir,
                metric: (*metric).to_owned(),
                higher_is_better: *higher_is_better,
                modality: String::new(),
                task_type: String::new(),
                id_column: Some((*id).to_owned()),
                target_columns: targets.iter().map(|target| (*target).to_owned()).collect(),
                time_limit_seconds: 300,
            })
        })
        .collect()
}

fn request(task: &Arc<TaskContext>, operator: Operator, nodes: Vec<NodeContext>, seed: u64) -> GenerateRequest {
    GenerateRequest {
        operator,
        messages: Vec::new(),
        task: Arc::clone(task),
        nodes,
        params: SamplingParams::default(),
        seed,
        sample: 0,
        time_limit: None,
        attempt_key: format!("{operator}-{seed}"),
        request_hash: String::new(),
    }
}

fn node(role: &str, code: &str, score: Option<f64>) -> NodeContext {
    NodeContext {
        role: role.to_owned(),
        code: Some(code.to_owned()),
        status: if score.is_some() {
            "success"
        } else {
            "code_execution_error"
        }
        .to_owned(),
        error: score
            .is_none()
            .then(|| "ValueError: Found array with 0 sample(s)".to_owned()),
        score,
        ..NodeContext::default()
    }
}

async fn code(evolver: &Evolver, request: &GenerateRequest) -> String {
    let sample = evolver.generate(request, &CancellationToken::new()).await.unwrap();
    let again = evolver.generate(request, &CancellationToken::new()).await.unwrap();
    assert_eq!(sample.text, again.text, "the same request gives the same answer");
    assert_eq!(
        (sample.tokens_prompt, sample.tokens_completion, sample.cost_usd),
        (Some(0), Some(0), Some(0.0))
    );
    let (plan, rest) = sample.text.split_once("```python\n").unwrap();
    assert!(plan.len() > 40 && plan.trim_end().ends_with('.'), "{plan}");
    rest.strip_suffix("```\n").unwrap().to_owned()
}

/// Programs of every operator on every task compile, and differ from the ones they come from.
#[tokio::test]
async fn programs_of_every_operator_compile() {
    const SEEDS: u64 = 6;
    let evolver = Evolver::new();
    let folder = TempDir::new().unwrap();
    for task in tasks() {
        for seed in 0..SEEDS {
            let draft = code(&evolver, &request(&task, Operator::Draft, Vec::new(), seed)).await;
            let second = code(&evolver, &request(&task, Operator::Draft, Vec::new(), seed + 100)).await;
            let parent = vec![node("parent", &draft, Some(0.5))];
            let improved = code(&evolver, &request(&task, Operator::Improve, parent, seed)).await;
            let parents = vec![node("parent", &draft, Some(0.5)), node("parent2", &second, Some(0.4))];
            let crossed = code(&evolver, &request(&task, Operator::Crossover, parents, seed)).await;
            let failed = vec![node("parent", &draft, None)];
            let debugged = code(&evolver, &request(&task, Operator::Debug, failed, seed)).await;
            for (operator, program) in [("improve", &improved), ("crossover", &crossed), ("debug", &debugged)] {
                assert_ne!(program, &draft, "{} {operator} {seed}", task.task_id);
            }
            let programs = [
                ("draft", draft),
                ("improve", improved),
                ("crossover", crossed),
                ("debug", debugged),
            ];
            for (operator, program) in programs {
                let longest = program.lines().map(|line| line.chars().count()).max().unwrap_or(0);
                assert!(
                    longest <= 130,
                    "{} {operator} {seed} has a line of {longest} characters",
                    task.task_id
                );
                fs::write(
                    folder.path().join(format!("{}-{operator}-{seed}.py", task.task_id)),
                    program,
                )
                .unwrap();
            }
        }
    }
    let check = "import pathlib, sys\nfor path in pathlib.Path(sys.argv[1]).glob('*.py'):\n    compile(path.read_text(), path.name, 'exec')\n";
    let output = Command::new(python())
        .args(["-c", check])
        .arg(folder.path())
        .output()
        .unwrap();
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
}

/// A draft of every task runs and writes a submission with the columns and ids of the sample.
#[tokio::test]
async fn drafts_of_every_task_submit_in_the_shape_of_the_sample() {
    let evolver = Evolver::new();
    let mut failures = Vec::new();
    for task in tasks() {
        let program = code(&evolver, &request(&task, Operator::Draft, Vec::new(), 3)).await;
        if let Err(failure) = run(&task, &program) {
            failures.push(format!("{}: {failure}", task.task_id));
        }
    }
    assert!(failures.is_empty(), "{}", failures.join("\n"));
}

fn run(task: &TaskContext, program: &str) -> Result<(), String> {
    const LIMIT: Duration = Duration::from_secs(600);
    let folder = TempDir::new().unwrap();
    fs::write(folder.path().join("program.py"), program).unwrap();
    let output = fs::File::create(folder.path().join("output.txt")).unwrap();
    let mut child = Command::new(python())
        .arg("program.py")
        .current_dir(folder.path())
        .env("DATA_DIR", &task.public_dir)
        .env("OMP_NUM_THREADS", "1")
        .stdin(Stdio::null())
        .stdout(output.try_clone().unwrap())
        .stderr(output)
        .spawn()
        .unwrap();
    let start = Instant::now();
    let status = loop {
        if let Some(status) = child.try_wait().unwrap() {
            break status;
        }
        if start.elapsed() > LIMIT {
            child.kill().unwrap();
            child.wait().unwrap();
            return Err("ran too long".to_owned());
        }
        std::thread::sleep(Duration::from_millis(20));
    };
    let log = fs::read_to_string(folder.path().join("output.txt")).unwrap();
    if !status.success() || !log.contains("Final Validation Score: ") {
        return Err(log);
    }
    let rows = |path: PathBuf| -> Vec<csv::StringRecord> {
        let mut reader = csv::ReaderBuilder::new().has_headers(false).from_path(path).unwrap();
        reader.records().map(Result::unwrap).collect()
    };
    let sample = rows(task.public_dir.join("sample_submission.csv"));
    let submission = rows(folder.path().join("submission.csv"));
    if submission.first() != sample.first() || submission.len() != sample.len() {
        return Err(format!(
            "{} rows with header {:?}",
            submission.len(),
            submission.first()
        ));
    }
    for (mine, given) in submission.iter().zip(&sample).skip(1) {
        if mine.get(0) != given.get(0) || mine.iter().any(str::is_empty) {
            return Err(format!("row {mine:?} for {given:?}"));
        }
    }
    Ok(())
}
