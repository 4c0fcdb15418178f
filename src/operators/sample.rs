//! Made-up facts that try every part of the templates.

use super::Operator;
use super::context::ContextNode;
use super::facts::{BoardFacts, FamilyFacts, LimitFacts, PromptBudget, PromptFacts, TaskFacts};
use super::packages::{Package, Packages};
use super::skills::SkillTexts;
use crate::gym::{ColumnOverview, DataOverview, FileOverview, Modality, TaskType};

/// Facts for prompts of an operator: every kind of data and of task, with and without what may be missing.
pub(super) fn facts(operator: Operator) -> Vec<PromptFacts> {
    let plain = PromptFacts {
        task: TaskFacts {
            task_id: "sample".to_owned(),
            title: "A sample".to_owned(),
            description: "Predict y from x.".to_owned(),
            modality: Modality::Tabular.as_str().to_owned(),
            task_type: TaskType::Regression.as_str().to_owned(),
            metric: "rmse".to_owned(),
            validation: "self_reported".to_owned(),
            ..TaskFacts::default()
        },
        limits: LimitFacts {
            seconds: 3600,
            memory: "4 GiB".to_owned(),
            scratch: "4 GiB".to_owned(),
            submission: "submission.csv".to_owned(),
            ..LimitFacts::default()
        },
        budget: PromptBudget::default(),
        packages: Packages::default(),
        data: DataOverview::default(),
        board: BoardFacts::default(),
        skills: SkillTexts::default(),
        guidance: true,
        nodes: nodes(operator, false),
    };
    let full = PromptFacts {
        task: TaskFacts {
            theoretical_min: Some(0.0),
            theoretical_max: Some(1.0),
            id_column: Some("id".to_owned()),
            target_columns: vec!["y".to_owned()],
            validation: "split".to_owned(),
            validation_note: Some(
                "whole groups of 'g' (as task.toml says); 80 rows for training, 20 held out".to_owned(),
            ),
            ..plain.task.clone()
        },
        limits: LimitFacts {
            cpus: Some(2),
            has_gpu: Some(false),
            ..plain.limits.clone()
        },
        budget: PromptBudget {
            steps_left: Some(3),
            seconds_left: Some(600),
        },
        packages: Packages {
            python: Some("3.12.1".to_owned()),
            shown: vec![Package {
                name: "numpy".to_owned(),
                version: "2.0".to_owned(),
            }],
            others: 7,
        },
        data: data(),
        board: BoardFacts {
            families: vec![FamilyFacts {
                method_family: "linear".to_owned(),
                nodes: 2,
                good: 1,
                best_score: Some(0.5),
            }],
            underexplored: vec!["linear".to_owned()],
            best_score: Some(0.5),
            best_family: Some("linear".to_owned()),
            best_step: Some(2),
            steps: 9,
        },
        skills: SkillTexts {
            general: Some("Be honest.".to_owned()),
            task: Some("y is skewed.".to_owned()),
        },
        nodes: nodes(operator, true),
        ..plain.clone()
    };
    let modalities = Modality::ALL.iter().map(|modality| {
        let mut facts = full.clone();
        facts.task.modality = modality.as_str().to_owned();
        facts
    });
    let task_types = TaskType::ALL.iter().map(|task_type| {
        let mut facts = full.clone();
        facts.task.task_type = task_type.as_str().to_owned();
        facts
    });
    std::iter::once(plain.clone())
        .chain(modalities)
        .chain(task_types)
        .collect()
}

fn data() -> DataOverview {
    DataOverview {
        files: vec![
            FileOverview {
                kind: "folder".to_owned(),
                files: Some(1),
                bytes: 100,
                note: Some("1 links or special files are not read".to_owned()),
                ..FileOverview::default()
            },
            FileOverview {
                path: "train.csv".to_owned(),
                kind: "table".to_owned(),
                format: "csv".to_owned(),
                bytes: 100,
                rows: Some(10),
                columns: Some(2),
                column_facts: vec![ColumnOverview {
                    name: "x".to_owned(),
                    kind: "number".to_owned(),
                    missing: Some(0.25),
                    distinct: Some(3),
                    minimum: Some("0".to_owned()),
                    maximum: Some("9".to_owned()),
                    samples: vec!["1".to_owned(), "2".to_owned()],
                }],
                columns_left_out: 1,
                ..FileOverview::default()
            },
            FileOverview {
                path: "a.wav".to_owned(),
                kind: "audio".to_owned(),
                format: "wav".to_owned(),
                seconds: Some(1.5),
                sample_rate: Some(16_000),
                channels: Some(1),
                ..FileOverview::default()
            },
            FileOverview {
                path: "a.png".to_owned(),
                kind: "image".to_owned(),
                format: "png".to_owned(),
                width: Some(8),
                height: Some(8),
                channels: Some(3),
                summary: Some("a picture".to_owned()),
                ..FileOverview::default()
            },
        ],
        files_left_out: 2,
        kinds: vec!["audio".to_owned(), "image".to_owned(), "table".to_owned()],
    }
}

/// Parents and one node of every role.
fn nodes(operator: Operator, full: bool) -> Vec<ContextNode> {
    let node = |role: &str, fails: bool| ContextNode {
        node_id: format!("sample-{role}"),
        role: role.to_owned(),
        operator: "draft".to_owned(),
        code: full.then(|| "print(1)".to_owned()),
        plan: full.then(|| "A plan.".to_owned()),
        status: if fails { "timeout" } else { "success" }.to_owned(),
        is_buggy: fails,
        score: (!fails).then_some(0.5),
        signed_score: (!fails).then_some(0.5),
        error_class: fails.then(|| "candidate".to_owned()),
        error_signature: (fails && full).then(|| "oom".to_owned()),
        error: (fails && full).then(|| "It said this.".to_owned()),
        method_family: "linear".to_owned(),
        sandbox_seconds: full.then_some(1.5),
        delta_vs_parent: full.then_some(0.25),
        method_overview: full.then(|| "It fits a line.".to_owned()),
        parent_comparison_experience: full.then(|| "Lines help.".to_owned()),
        change: full.then(|| "@@ -1 +1 @@".to_owned()),
    };
    let is_debug = operator == Operator::Debug;
    let parents = ["parent", "parent2"]
        .iter()
        .take(operator.arity())
        .map(|role| node(role, is_debug));
    let related: &[&str] = match operator {
        Operator::Draft => &[],
        Operator::Debug => &["same_error", "recent_error"],
        _ => &["ancestor", "sibling", "child"],
    };
    parents
        .chain(related.iter().filter(|_| full).map(|role| node(role, is_debug)))
        .collect()
}
