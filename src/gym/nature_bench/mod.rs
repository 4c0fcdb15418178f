//! Tasks of NatureBench, presented as packages of ours.
//!
//! ```text
//! <task>/problem/README.md, data_description.md     what candidates read
//! <task>/problem/data/<instance>/…                  what candidates see
//! <task>/evaluation/evaluator.py, ground_truth/…    scores the files of an output folder, instance by instance
//! <task>/metadata.json                              published scores by instance
//! ```
//!
//! A program fills a folder with files for every instance. Its score is how far it is from the published scores.

mod metadata;
mod published;

use std::fmt::Write as _;
use std::path::Path;

use crate::gym::checks::{DESCRIPTION, METRIC};
use crate::gym::error::{GymError, io};
use crate::gym::manifest::{Manifest, Modality};
use crate::gym::package::{FileRole, MANIFEST, Package};
use crate::gym::rows::{Instance, Submission};
use crate::gym::source::{Contents, Source};

use metadata::Metadata;

/// The metric; the published scores are put into its place.
const ADAPTER: &str = include_str!("adapter.py");

/// What is told of handing in, below the task's own text; the instances are put into its place.
const HANDING_IN: &str = include_str!("handing_in.md");

/// Name of the score that a task has.
const METRIC_NAME: &str = "relative gap";

/// Finds the files of a task.
pub fn open(path: &Path) -> Result<Source, GymError> {
    let root = path.canonicalize().map_err(io("open", path))?;
    let (problem, evaluation) = (root.join("problem"), root.join("evaluation"));
    let (readme, data) = (problem.join("README.md"), problem.join("data"));
    let wanted = [
        (root.join("metadata.json"), "metadata.json"),
        (readme.clone(), "problem/README.md"),
        (evaluation.join("evaluator.py"), "evaluation/evaluator.py"),
    ];
    if let Some((_, missing)) = wanted.iter().find(|(path, _)| !path.is_file()) {
        return Err(GymError::package(
            path,
            format!("there is no {missing}: name the folder of one NatureBench task, tasks/<case_id>"),
        ));
    }
    if !data.is_dir() {
        let hint = if problem.join("data_archives").is_dir() {
            "; unpack the archives of problem/data_archives into problem/data first"
        } else {
            ""
        };
        return Err(GymError::package(
            path,
            format!("there is no folder problem/data{hint}"),
        ));
    }
    let metadata = Metadata::read(&wanted[0].0)?;
    let mut package = Package::empty(root.clone());
    package.add_tree(&data, "data/public", FileRole::Public)?;
    package.add_tree(&evaluation, "data/private", FileRole::Private)?;
    let made = tempfile::tempdir().map_err(io("create a folder in", &std::env::temp_dir()))?;
    let mut make = |name: &str, text: String, place: &str, role: FileRole| -> Result<(), GymError> {
        let file = made.path().join(name);
        std::fs::write(&file, text).map_err(io("write", &file))?;
        package.put(&file, place, role);
        Ok(())
    };
    let text = description(&readme, &problem.join("data_description.md"), &metadata.instances)?;
    make("description.txt", text, DESCRIPTION, FileRole::Public)?;
    make("metric.py", metric_py(&metadata.instances), METRIC, FileRole::Utils)?;
    package.files.sort_by(|a, b| a.path.cmp(&b.path));
    let id = root.file_name().map(|name| name.to_string_lossy().into_owned());
    let manifest = Manifest::read(&root.join(MANIFEST))?;
    Ok(Source {
        manifest: Manifest {
            id: manifest.id.or(id),
            title: manifest.title.or(metadata.title),
            metric: manifest.metric.or(Some(METRIC_NAME.to_owned())),
            modality: manifest.modality.or(Some(Modality::Scientific)),
            preflight: manifest.preflight.or(Some(true)),
            ..manifest
        },
        package,
        contents: Contents::Instances {
            instances: metadata.instances,
            left_out: metadata.left_out,
        },
        made: Some(made),
    })
}

fn description(readme: &Path, data: &Path, instances: &[Instance]) -> Result<String, GymError> {
    let mut text = std::fs::read_to_string(readme).map_err(io("read", readme))?;
    if data.is_file() {
        let data = std::fs::read_to_string(data).map_err(io("read", data))?;
        let _ = write!(text, "\n\n{data}");
    }
    let mut table = String::new();
    for Instance {
        instance,
        metric,
        higher_is_better,
        sota,
        ..
    } in instances
    {
        let better = if *higher_is_better { "higher" } else { "lower" };
        let _ = writeln!(table, "| {instance} | {metric} | {better} | {sota} |");
    }
    let handing_in = HANDING_IN
        .replace("$folder", Submission::Folder.name())
        .replace("$instances", table.trim_end());
    let _ = write!(text, "\n\n{handing_in}");
    Ok(text)
}

/// The metric with the published scores.
fn metric_py(instances: &[Instance]) -> String {
    // What JSON writes of texts and numbers is Python, too; truth values are not.
    let fields: Vec<String> = instances
        .iter()
        .map(|instance| {
            format!(
                "    {}: {{\"metric\": {}, \"higher_is_better\": {}, \"sota\": {}}},\n",
                serde_json::json!(instance.instance),
                serde_json::json!(instance.metric),
                if instance.higher_is_better { "True" } else { "False" },
                serde_json::json!(instance.sota),
            )
        })
        .collect();
    ADAPTER.replace("__INSTANCES__", &format!("{{\n{}}}", fields.concat()))
}
