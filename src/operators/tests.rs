#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]

use std::sync::Arc;

use super::{Operator, PromptFacts, Prompts, sample};
use crate::model::TokenCounter;
use crate::templates::{SourceError, Templates};

const COUNTER: TokenCounter = TokenCounter::Bytes;

fn built_in() -> Arc<Templates> {
    Arc::new(Templates::new(None).unwrap())
}

fn prompts() -> Prompts {
    Prompts::new(built_in(), None).unwrap()
}

fn text(prompts: &Prompts, operator: Operator, facts: PromptFacts) -> String {
    let prompt = prompts.render(operator, facts, u64::MAX, &COUNTER).unwrap();
    let texts: Vec<String> = prompt.messages.into_iter().map(|message| message.content).collect();
    texts.join("\n")
}

/// Facts with everything that a prompt can hold.
fn full(operator: Operator) -> PromptFacts {
    sample::facts(operator).swap_remove(1)
}

#[test]
fn every_template_renders_for_every_kind_of_task() {
    let prompts = prompts();
    for operator in Operator::ALL {
        for facts in sample::facts(operator) {
            let text = text(&prompts, operator, facts);
            assert!(text.contains("DATA_DIR") && text.contains("submission.csv") && text.contains("Predict y from x."));
            assert!(!text.contains("\n\n\n"), "{text}");
        }
    }
}

#[test]
fn every_prompt_states_what_is_left_and_only_a_repair_asks_for_less_work() {
    let prompts = prompts();
    for operator in Operator::ALL {
        let text = text(&prompts, operator, full(operator));
        for part in [
            "Steps left: 3.",
            "Seconds left: about 600.",
            "Execution limit of one program: 3600 seconds",
        ] {
            assert!(text.contains(part), "{operator}: {part}");
        }
        assert_eq!(
            text.to_lowercase().contains("cheaper"),
            operator == Operator::Debug,
            "{operator}"
        );
        assert_eq!(text.contains("It ran out of time."), operator == Operator::Debug);
    }
    let mut other_fault = full(Operator::Debug);
    other_fault.nodes[0].status = "code_execution_error".to_owned();
    assert!(
        !text(&prompts, Operator::Debug, other_fault)
            .to_lowercase()
            .contains("cheaper")
    );
}

#[test]
fn the_kind_of_data_decides_the_guidance() {
    let prompts = prompts();
    let of = |modality: &str, task_type: &str| {
        let mut facts = full(Operator::Draft);
        facts.task.modality = modality.to_owned();
        facts.task.task_type = task_type.to_owned();
        text(&prompts, Operator::Draft, facts)
    };
    for (modality, part) in [
        ("tabular", "Gradient-boosted trees"),
        ("text", "TF-IDF"),
        ("image", "Augment as the world allows"),
        ("audio", "log-mel"),
        ("time_series", "seasonal naive"),
        ("audio", "Split by speaker"),
        ("mixed", "Several kinds of data"),
        ("scientific", "problem from research"),
        ("never heard of", "Several kinds of data"),
    ] {
        assert!(of(modality, "regression").contains(part), "{modality}");
    }
    assert!(of("time_series", "multiclass").contains("a whole series"));
    assert!(of("tabular", "ranking").contains("build candidates first"));
    let mut facts = full(Operator::Draft);
    facts.task.validation_note = Some("the latest rows by 'day' (all of test.csv is later); 8 rows".to_owned());
    assert!(text(&prompts, Operator::Draft, facts).contains("validate on the latest part"));
}

#[test]
fn what_helps_least_is_cut_first_and_the_task_and_the_parent_never() {
    let prompts = prompts();
    let facts = full(Operator::Improve);
    let render = |budget| prompts.render(Operator::Improve, facts.clone(), budget, &COUNTER);
    let whole = render(u64::MAX).unwrap();
    assert!(whole.cuts.is_empty());
    assert_eq!(whole.shown.len(), 4);
    let mut seen: Vec<String> = Vec::new();
    let mut budget = whole.total_tokens();
    let last = loop {
        budget -= 5;
        match render(budget) {
            Ok(prompt) => {
                assert!(prompt.total_tokens() <= budget);
                assert!(prompt.cuts.starts_with(&seen), "{:?} after {seen:?}", prompt.cuts);
                let text = &prompt.messages[1].content;
                assert!(text.contains("Predict y from x.") && text.contains("print(1)"));
                assert_eq!(prompt.shown[0].0, "parent");
                seen = prompt.cuts;
            }
            Err(error) => break error,
        }
    };
    assert_eq!(
        seen,
        [
            "change of sibling sample-sibling",
            "change of child sample-child",
            "change of ancestor sample-ancestor",
            "words of sibling sample-sibling",
            "words of child sample-child",
            "words of ancestor sample-ancestor",
            "sample values of the data",
            "board",
            "child sample-child",
            "sibling sample-sibling",
            "ancestor sample-ancestor",
            "guidance",
            "columns of the data",
        ]
    );
    let message = last.to_string();
    assert!(
        message.contains("prompts.max_tokens") && message.contains(&budget.to_string()),
        "{message}"
    );
    assert_eq!(last.class(), crate::error::ErrorClass::Candidate);
    let draft = prompts
        .render(Operator::Draft, full(Operator::Draft), 10, &COUNTER)
        .unwrap_err();
    assert_eq!(draft.class(), crate::error::ErrorClass::Config);
}

#[test]
fn a_node_that_is_cut_is_not_shown() {
    let prompts = prompts();
    let facts = full(Operator::Improve);
    let whole = prompts
        .render(Operator::Improve, facts.clone(), u64::MAX, &COUNTER)
        .unwrap();
    let fewer = (1..whole.total_tokens())
        .rev()
        .map(|budget| {
            prompts
                .render(Operator::Improve, facts.clone(), budget, &COUNTER)
                .unwrap()
        })
        .find(|prompt| prompt.cuts.iter().any(|cut| cut == "sibling sample-sibling"))
        .unwrap();
    let shown: Vec<&str> = fewer.shown.iter().map(|(role, _)| role.as_str()).collect();
    assert_eq!(shown, ["parent", "ancestor"]);
    assert!(!fewer.messages[1].content.contains("sibling"));
}

#[test]
fn a_folder_replaces_templates_and_mistakes_are_named() {
    let dir = tempfile::tempdir().unwrap();
    let before = prompts();
    let folder = || Prompts::new(Arc::new(Templates::new(Some(dir.path()))?), None);
    let write = |name: &str, text: &str| {
        let path = dir.path().join(name);
        std::fs::create_dir_all(path.parent().unwrap()).unwrap();
        std::fs::write(path, text).unwrap();
    };
    write("modality/tabular.j2", "- Use {{ task.metric | upper }} wisely.\n");
    let prompts = folder().unwrap();
    assert!(text(&prompts, Operator::Draft, full(Operator::Draft)).contains("- Use RMSE wisely."));
    assert_ne!(prompts.version(Operator::Draft), before.version(Operator::Draft));
    assert_eq!(
        before.version(Operator::Draft),
        super::Prompts::new(built_in(), None).unwrap().version(Operator::Draft)
    );
    for (name, template, part) in [
        ("drat.j2", "x", "there is no prompt template 'drat.j2'"),
        ("modality/taste.j2", "x", "modality/text.j2"),
        ("draft.j2", "{% if %}", "line 1"),
        (
            "draft.j2",
            "one\n{{ task.metrc }}",
            "line 2: undefined value: there is no 'task.metrc'; the page",
        ),
        (
            "draft.j2",
            "{% if task.metric == 'rmse' and budgt.steps_left %}x{% endif %}",
            "line 1: undefined value: there is no 'budgt.steps_left'",
        ),
        ("draft.j2", "{{ nope | upper }}", "there is no 'nope'"),
        (
            "draft.j2",
            "{{ task.metric ~ task.nope ~ nope }}",
            "there is no 'task.nope'; the page",
        ),
        (
            "draft.j2",
            "{{ nope ~ task.nope }}",
            "there is no 'nope' or no 'task.nope'",
        ),
        ("draft.j2", "{{ nope + 1 }}", "there is no 'nope'"),
        (
            "draft.j2",
            "{% for file in dta.files %}{% endfor %}",
            "there is no 'dta.files'",
        ),
        (
            "improve.j2",
            "{% for node in nodes %}\n{{ node.stauts }}\n{% endfor %}",
            "line 2: undefined value: there is no 'node.stauts'",
        ),
        ("debug.j2", "{{ nodes[0].stauts }}", "'nodes[0].stauts' has none"),
        ("modality/tabular.j2", "{{ task.nope }}", "there is no 'task.nope'"),
        ("draft.j2", "", "it is empty"),
        (
            "draft.j2",
            "{% for a in range(9999) %}{% for b in range(9999) %}{% endfor %}{% endfor %}",
            "it does not come to an end within 5000000 steps",
        ),
        (
            "draft.j2",
            "{% for a in range(70) %}{{ 'x' * 1000000 }}{% endfor %}",
            "it renders more than 67108864 bytes",
        ),
        ("draft.j2", "{% include 'draft.j2' %}", "recursion limit exceeded"),
        ("task_type/regression.j2", " \n\t\n", "it is empty"),
        ("notes.md", "x", "there is no prompt template 'notes.md'"),
    ] {
        write(name, template);
        let error = folder().unwrap_err().to_string();
        assert!(error.contains(part) && error.contains(name), "{error}");
        std::fs::remove_file(dir.path().join(name)).unwrap();
    }
    // What a template sets itself is not missing.
    write("draft.j2", "{% macro m(x) %}{{ m(x) }}{% endmacro %}{{ m(1) }}");
    let error = folder().unwrap_err().to_string();
    assert!(error.ends_with("recursion limit exceeded"), "{error}");
    assert!(matches!(
        Templates::new(Some(std::path::Path::new("/no/prompts"))),
        Err(SourceError::Folder { .. })
    ));
}

#[test]
fn notes_enter_as_they_are_and_are_recorded() {
    let dir = tempfile::tempdir().unwrap();
    std::fs::write(dir.path().join("general.md"), "Mind {{ braces }}.").unwrap();
    std::fs::write(dir.path().join("sample.md"), "y is a count.").unwrap();
    let prompts = Prompts::new(built_in(), Some(dir.path())).unwrap();
    let prompt = prompts
        .render(Operator::Draft, full(Operator::Draft), u64::MAX, &COUNTER)
        .unwrap();
    let text = &prompt.messages[1].content;
    assert!(text.contains("Mind {{ braces }}.") && text.contains("y is a count."));
    assert_eq!(prompt.skills.len(), 2);
    assert!(prompt.skills[1].starts_with("sample.md@"));
    let mut other = full(Operator::Draft);
    other.task.task_id = "other".to_owned();
    let prompt = prompts.render(Operator::Draft, other, u64::MAX, &COUNTER).unwrap();
    assert_eq!(prompt.skills.len(), 1);
}
