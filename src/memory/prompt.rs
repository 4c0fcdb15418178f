//! The prompt of the memory model: minijinja templates under `configs/memory/`.

use minijinja::{Environment, UndefinedBehavior, context};

use super::facts::NodeFacts;
use crate::model::{Message, Role};

const TEMPLATES: [(&str, &str); 2] = [
    ("system.j2", include_str!("../../configs/memory/system.j2")),
    ("summary.j2", include_str!("../../configs/memory/summary.j2")),
];

/// A prompt of the memory model that could not be rendered.
#[derive(Debug, thiserror::Error)]
#[error("the prompt template configs/memory/{template} could not be rendered: {source}")]
pub struct MemoryPromptError {
    template: &'static str,
    source: Box<minijinja::Error>,
}

/// The templates.
#[derive(Debug)]
pub struct MemoryPrompts {
    templates: Environment<'static>,
}

impl MemoryPrompts {
    /// Compiles the embedded templates.
    ///
    /// # Errors
    /// When a template does not compile.
    pub fn embedded() -> Result<Self, minijinja::Error> {
        let mut templates = Environment::new();
        templates.set_undefined_behavior(UndefinedBehavior::Strict);
        templates.set_trim_blocks(true);
        templates.add_filter("truncate", |text: String, length: usize| {
            clade_udfs::text::truncate_middle(&text, length, length / 2).into_owned()
        });
        for (name, source) in TEMPLATES {
            templates.add_template(name, source)?;
        }
        Ok(Self { templates })
    }

    /// Messages that ask for the summary of a node.
    ///
    /// # Errors
    /// When a template fails.
    pub fn render(&self, node: &NodeFacts) -> Result<Vec<Message>, MemoryPromptError> {
        let values = context! {
            task => context! {
                description => node.description,
                metric => node.metric,
                higher_is_better => node.higher_is_better,
            },
            node => node,
            parents => node.parents,
        };
        let message = |role, template: &'static str| {
            let rendered = self
                .templates
                .get_template(template)
                .and_then(|found| found.render(&values));
            rendered
                .map(|content| Message { role, content })
                .map_err(|source| MemoryPromptError {
                    template,
                    source: Box::new(source),
                })
        };
        Ok(vec![
            message(Role::System, "system.j2")?,
            message(Role::User, "summary.j2")?,
        ])
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]

    use super::*;
    use crate::memory::facts::ParentFacts;

    #[test]
    fn the_prompt_shows_the_program_its_outcome_and_what_was_changed() {
        let node = NodeFacts {
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
        let messages = MemoryPrompts::embedded().unwrap().render(&node).unwrap();
        insta::assert_snapshot!(messages[1].content);
    }
}
