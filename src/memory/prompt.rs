//! The prompt of the memory model: the templates `memory/system.j2` and `memory/summary.j2`.

use std::sync::Arc;

use minijinja::{Value, context};

use super::facts::{NodeFacts, ParentFacts};
use crate::model::{Message, Role};
use crate::templates::{SourceError, Templates};

/// A prompt of the memory model that could not be rendered.
#[derive(Debug, thiserror::Error)]
#[error("the prompt of the memory model could not be rendered: {0}")]
pub struct MemoryPromptError(#[from] SourceError);

/// The templates of the memory model.
#[derive(Debug)]
pub struct MemoryPrompts {
    templates: Arc<Templates>,
}

impl MemoryPrompts {
    /// The memory model's part of the templates.
    ///
    /// # Errors
    /// When a template of the user fails on made-up facts, so that a mistake in it shows at once.
    pub fn new(templates: Arc<Templates>) -> Result<Self, SourceError> {
        let prompts = Self { templates };
        if prompts.templates.are_replaced() {
            for node in samples() {
                prompts.messages(&node)?;
            }
        }
        Ok(prompts)
    }

    /// Messages that ask for the summary of a node.
    ///
    /// # Errors
    /// When a template fails.
    pub fn render(&self, node: &NodeFacts) -> Result<Vec<Message>, MemoryPromptError> {
        Ok(self.messages(node)?)
    }

    fn messages(&self, node: &NodeFacts) -> Result<Vec<Message>, SourceError> {
        let values: Value = context! {
            task => context! {
                description => node.description,
                metric => node.metric,
                higher_is_better => node.higher_is_better,
            },
            node => node,
            parents => node.parents,
        };
        let message = |role, template: &str| {
            Ok(Message {
                role,
                content: self.templates.render(template, &values)?,
            })
        };
        Ok(vec![
            message(Role::System, "memory/system.j2")?,
            message(Role::User, "memory/summary.j2")?,
        ])
    }
}

/// Made-up nodes that try every part of the templates: a good one with a parent, and a failed draft.
fn samples() -> [NodeFacts; 2] {
    let good = NodeFacts {
        operator: "improve".to_owned(),
        code: "x = 2\n".to_owned(),
        plan: Some("More of it.".to_owned()),
        status: "success".to_owned(),
        score: Some(0.75),
        delta_vs_parent: Some(0.25),
        method_family: "linear".to_owned(),
        description: "Predict y from x.".to_owned(),
        metric: "r2".to_owned(),
        higher_is_better: true,
        parents: vec![ParentFacts {
            status: "success".to_owned(),
            score: Some(0.5),
            method_family: "linear".to_owned(),
            changes: Some("-x = 1\n+x = 2\n".to_owned()),
            ..ParentFacts::default()
        }],
        ..NodeFacts::default()
    };
    let failed = NodeFacts {
        operator: "draft".to_owned(),
        plan: None,
        status: "code_execution_error".to_owned(),
        score: None,
        delta_vs_parent: None,
        error_signature: Some("ValueError".to_owned()),
        error: Some("ValueError: no".to_owned()),
        parents: Vec::new(),
        ..good.clone()
    };
    [good, failed]
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]

    use std::path::Path;

    use super::*;

    fn prompts(folder: Option<&Path>) -> Result<MemoryPrompts, SourceError> {
        MemoryPrompts::new(Arc::new(Templates::new(folder)?))
    }

    #[test]
    fn the_prompt_shows_the_program_its_outcome_and_what_was_changed() {
        let messages = prompts(None).unwrap().render(&samples()[0]).unwrap();
        insta::assert_snapshot!(messages[1].content);
    }

    #[test]
    fn a_folder_replaces_its_templates_and_mistakes_are_named() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("memory/summary.j2");
        std::fs::create_dir(folder.path().join("memory")).unwrap();
        std::fs::write(&path, "Of {{ node.method_family }}.").unwrap();
        let messages = prompts(Some(folder.path())).unwrap().render(&samples()[0]).unwrap();
        assert_eq!(messages[1].content, "Of linear.\n");
        assert!(messages[0].content.contains("exactly these two fields"));
        for (text, part) in [
            (
                "\n{{ node.famly }}",
                "summary.j2 is wrong: line 2: undefined value: there is no 'node.famly'",
            ),
            (
                "{% for parent in parents %}{{ parent.code }}{% endfor %}",
                "there is no 'parent.code'",
            ),
            ("", "summary.j2 cannot be used: it is empty"),
        ] {
            std::fs::write(&path, text).unwrap();
            let error = prompts(Some(folder.path())).unwrap_err().to_string();
            assert!(error.contains(part), "{error}");
        }
    }
}
