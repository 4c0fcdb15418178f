//! Competitions as MLE-Bench prepares them, presented as packages of ours.
//!
//! ```text
//! <competition>/prepared/public/…              what candidates see, with description.md and a sample submission
//! <competition>/prepared/private/…             answers, as CSV or JSON lines
//! <competition>/{config.yaml,grade.py,leaderboard.csv,description.md}   or in a folder of competitions
//! ```

mod config;
mod direction;
mod grader;

use std::path::{Path, PathBuf};

use crate::gym::checks::{ANSWER, ANSWER_LINES, DESCRIPTION, METRIC, SAMPLE};
use crate::gym::error::{GymError, io};
use crate::gym::manifest::Manifest;
use crate::gym::package::{FileRole, LEADERBOARDS, MANIFEST, Package};
use crate::gym::source::{Contents, MleBenchOptions, Source};
use crate::gym::split::CUSTOM_SPLIT;
use crate::gym::table::Table;

use config::Config;
use direction::higher_is_better;
use grader::Grader;

/// Names that graders read their answers under, the likeliest first.
const ANSWER_NAMES: [&str; 7] = [
    "answers",
    "test_answer",
    "gold_submission",
    "solution",
    "test_labels",
    "labels",
    "test",
];

/// Where private files other than the answers are kept; no evaluation sees them.
const OTHER_PRIVATE: &str = "data/private/other";

/// Finds the files of a prepared competition.
pub fn open(path: &Path, options: &MleBenchOptions) -> Result<Source, GymError> {
    let root = data_folder(path)?;
    let (public, private) = (root.join("prepared/public"), root.join("prepared/private"));
    let id = root
        .file_name()
        .map(|name| name.to_string_lossy().into_owned())
        .unwrap_or_default();
    let competition = match &options.competitions {
        None => root.clone(),
        Some(folder) => folder.join(&id),
    };
    if !competition.is_dir() {
        return Err(GymError::package(
            path,
            format!(
                "there is no folder {} with the grader and the leaderboard of {id}",
                competition.display()
            ),
        ));
    }
    let config = Config::read(&competition.join("config.yaml"))?;
    let answers = answers(&config, &root, &private)?;
    let sample = sample(&config, &root, &public)?;
    let mut package = Package::empty(root.clone());
    package.add_tree(&public, "data/public", FileRole::Public)?;
    package.add_tree(&private, OTHER_PRIVATE, FileRole::Private)?;
    let is_lines = answers.extension().is_some_and(|end| end.eq_ignore_ascii_case("jsonl"));
    package
        .files
        .retain(|file| file.role != FileRole::Private || file.source != answers);
    package.put(
        &answers,
        if is_lines { ANSWER_LINES } else { ANSWER },
        FileRole::Private,
    );
    // Under two names it would be taken for a file that tells about test rows.
    package.files.retain(|file| file.source != sample);
    package.put(&sample, SAMPLE, FileRole::Public);
    let descriptions = [&public, &competition, &root].map(|folder| folder.join("description.md"));
    let description = descriptions.iter().find(|path| path.is_file()).ok_or_else(|| {
        GymError::package(
            path,
            "there is no description.md in prepared/public, beside the grader or beside the data",
        )
    })?;
    let made = tempfile::tempdir().map_err(io("create a folder in", &std::env::temp_dir()))?;
    let told = made.path().join("description.txt");
    let text = std::fs::read_to_string(description).map_err(io("read", description))?;
    std::fs::write(&told, text + &renamed(&sample)).map_err(io("write", &told))?;
    package.put(&told, DESCRIPTION, FileRole::Public);
    let leaderboard = competition.join("leaderboard.csv");
    if leaderboard.is_file() {
        package.put(&leaderboard, LEADERBOARDS[0], FileRole::Meta);
    }
    let splitter = root.join(CUSTOM_SPLIT);
    if splitter.is_file() {
        package.put(&splitter, CUSTOM_SPLIT, FileRole::Utils);
    }
    let grader = Grader {
        direction: direction(options, &leaderboard, path)?,
        answers_are_records: is_lines,
    };
    let metric = made.path().join("metric.py");
    let text = grader.metric_py(&competition, &config, &id, path)?;
    std::fs::write(&metric, text).map_err(io("write", &metric))?;
    package.put(&metric, METRIC, FileRole::Utils);
    package.files.sort_by(|a, b| a.path.cmp(&b.path));
    let manifest = Manifest::read(&root.join(MANIFEST))?;
    Ok(Source {
        manifest: Manifest {
            id: manifest.id.or(config.id).or(Some(id)),
            title: manifest.title.or(config.name),
            metric: manifest.metric.or(config.metric),
            ..manifest
        },
        package,
        contents: Contents::ForeignTables,
        made: Some(made),
    })
}

/// The folder of a competition's data: the one that holds `prepared`, which may be named itself.
fn data_folder(path: &Path) -> Result<PathBuf, GymError> {
    let root = path.canonicalize().map_err(io("open", path))?;
    let is_prepared = |folder: &Path| folder.join("public").is_dir() && folder.join("private").is_dir();
    if is_prepared(&root.join("prepared")) {
        return Ok(root);
    }
    match root.parent() {
        Some(parent) if root.ends_with("prepared") && is_prepared(&root) => Ok(parent.to_owned()),
        _ => Err(GymError::package(
            path,
            "there are no folders prepared/public and prepared/private; `mlebench prepare` makes them",
        )),
    }
}

/// The answers: the file that the configuration names, else the one whose name says so.
fn answers(config: &Config, root: &Path, private: &Path) -> Result<PathBuf, GymError> {
    if let Some(named) = &config.answers {
        return named_file(root, named);
    }
    let mut tables: Vec<PathBuf> = Vec::new();
    for entry in std::fs::read_dir(private).map_err(io("read", private))? {
        let path = entry.map_err(io("read", private))?.path();
        let end = path.extension().map(|end| end.to_string_lossy().to_ascii_lowercase());
        if path.is_file() && matches!(end.as_deref(), Some("csv" | "jsonl")) {
            tables.push(path);
        }
    }
    tables.sort();
    let stem = |path: &PathBuf| {
        path.file_stem()
            .map(|stem| stem.to_string_lossy().to_ascii_lowercase())
            .unwrap_or_default()
    };
    let likely = ANSWER_NAMES
        .iter()
        .find_map(|name| tables.iter().find(|path| stem(path) == *name));
    match (tables.as_slice(), likely) {
        ([only], _) => Ok(only.clone()),
        (_, Some(likely)) => Ok(likely.clone()),
        ([], None) => Err(GymError::package(
            private,
            "there are no answers: a file .csv or .jsonl",
        )),
        (several, None) => Err(GymError::package(
            private,
            format!(
                "it does not say which file holds the answers ({}): put the competition's config.yaml beside the data",
                names(several)
            ),
        )),
    }
}

/// The sample submission: the file that the configuration names, else the public one whose name says so.
fn sample(config: &Config, root: &Path, public: &Path) -> Result<PathBuf, GymError> {
    if let Some(named) = &config.sample_submission {
        return named_file(root, named);
    }
    let mut found = Vec::new();
    for entry in std::fs::read_dir(public).map_err(io("read", public))? {
        let path = entry.map_err(io("read", public))?.path();
        let name = path
            .file_name()
            .map(|name| name.to_string_lossy().to_ascii_lowercase())
            .unwrap_or_default();
        if path.is_file() && name.ends_with(".csv") && name.contains("sample") && name.contains("submission") {
            found.push(path);
        }
    }
    found.sort();
    found
        .into_iter()
        .next()
        .ok_or_else(|| GymError::package(public, "there is no sample submission, such as sample_submission.csv"))
}

/// What the description has to add where the sample submission has another name here.
fn renamed(sample: &Path) -> String {
    let ours = Path::new(SAMPLE).file_name();
    match sample.file_name().filter(|name| Some(*name) != ours) {
        Some(name) => format!(
            "\n\nThe file {} is called sample_submission.csv here.\n",
            name.to_string_lossy()
        ),
        None => String::new(),
    }
}

/// A file that the configuration names, below the folder of all data: its first part is the competition.
fn named_file(root: &Path, named: &str) -> Result<PathBuf, GymError> {
    let below = named.split_once('/').map_or(named, |(_, below)| below);
    let path = root.join(below);
    let is_inside = path.canonicalize().is_ok_and(|real| real.starts_with(root));
    if is_inside && path.is_file() {
        return Ok(path);
    }
    Err(GymError::package(
        root,
        format!("config.yaml names the file {below}, which is not there"),
    ))
}

fn direction(options: &MleBenchOptions, leaderboard: &Path, path: &Path) -> Result<bool, GymError> {
    if let Some(given) = options.higher_is_better {
        return Ok(given);
    }
    if !leaderboard.is_file() {
        return Err(GymError::package(
            path,
            "there is no leaderboard.csv that would say whether higher or lower is better; say it with --better",
        ));
    }
    higher_is_better(&Table::read(leaderboard)?)
        .map_err(|reason| GymError::package(leaderboard, format!("{reason}; say with --better which way is better")))
}

fn names(paths: &[PathBuf]) -> String {
    let names: Vec<String> = paths
        .iter()
        .filter_map(|path| Some(path.file_name()?.to_string_lossy().into_owned()))
        .collect();
    names.join(", ")
}
