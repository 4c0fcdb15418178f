//! Prompts: minijinja templates under `configs/prompts/`, one an operator, over the task and the nodes of the context.

use minijinja::{Environment, UndefinedBehavior, context};
use serde::{Deserialize, Serialize};
use sha2::{Digest, Sha256};

use super::Operator;
use super::context::{ContextNode, context_sql};
use crate::model::{Message, Role, TaskContext};

const TEMPLATES: [(&str, &str); 7] = [
    ("system.j2", include_str!("../../configs/prompts/system.j2")),
    ("task.j2", include_str!("../../configs/prompts/task.j2")),
    ("node.j2", include_str!("../../configs/prompts/node.j2")),
    ("draft.j2", include_str!("../../configs/prompts/draft.j2")),
    ("improve.j2", include_str!("../../configs/prompts/improve.j2")),
    ("debug.j2", include_str!("../../configs/prompts/debug.j2")),
    ("crossover.j2", include_str!("../../configs/prompts/crossover.j2")),
];

/// Parts of a time budget in which a prompt states what is left: finer figures would differ between runs of one seed, whose
/// prompts are otherwise the same and whose replies could be taken from the cache.
const TIME_PARTS: f64 = 20.0;

/// What is left of the budgets, as a prompt states it.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct PromptBudget {
    /// Steps left, this one included.
    pub steps_left: Option<i64>,
    /// Seconds left, to a twentieth of the limit.
    pub seconds_left: Option<i64>,
}

impl PromptBudget {
    /// Seconds left of a limit as a prompt states them: the nearest twentieth of the limit, at least one while there is any.
    pub fn stated_seconds(limit: f64, left: f64) -> i64 {
        if left <= 0.0 || limit <= 0.0 {
            return 0;
        }
        let parts = (left / limit * TIME_PARTS).round().clamp(1.0, TIME_PARTS);
        (limit * parts / TIME_PARTS).round() as i64
    }
}

/// A prompt that could not be rendered.
#[derive(Debug, thiserror::Error)]
#[error("the prompt template of operator {operator} could not be rendered: {source}")]
pub struct PromptError {
    operator: Operator,
    source: Box<minijinja::Error>,
}

/// The prompt templates.
#[derive(Debug)]
pub struct Prompts {
    templates: Environment<'static>,
}

impl Prompts {
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

    /// Messages of an operator for a task, its context nodes (parents first) and what is left of the budgets.
    ///
    /// # Errors
    /// When the template fails.
    pub fn render(
        &self,
        operator: Operator,
        task: &TaskContext,
        nodes: &[ContextNode],
        budget: PromptBudget,
    ) -> Result<Vec<Message>, PromptError> {
        let values = context! {
            task => context! {
                task_id => task.task_id,
                description => task.description,
                metric => task.metric,
                higher_is_better => task.higher_is_better,
            },
            time_limit_seconds => task.time_limit_seconds,
            nodes => nodes,
            steps_left => budget.steps_left,
            seconds_left => budget.seconds_left,
        };
        let render = |name: &str| {
            self.templates
                .get_template(name)
                .and_then(|template| template.render(&values))
                .map_err(|source| PromptError {
                    operator,
                    source: Box::new(source),
                })
        };
        Ok(vec![
            Message {
                role: Role::System,
                content: render("system.j2")?,
            },
            Message {
                role: Role::User,
                content: render(&format!("{operator}.j2"))?,
            },
        ])
    }
}

/// Version of an operator: changes with its context query and its templates.
pub fn operator_version(operator: Operator) -> String {
    let mut hasher = Sha256::new();
    hasher.update(context_sql(operator));
    for (name, source) in TEMPLATES {
        if !Operator::ALL
            .iter()
            .any(|other| *other != operator && name == format!("{other}.j2"))
        {
            hasher.update(source);
        }
    }
    hasher.finalize()[..6]
        .iter()
        .map(|byte| format!("{byte:02x}"))
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_time_left_is_stated_in_twentieths_of_the_limit() {
        let stated = |left| PromptBudget::stated_seconds(3600.0, left);
        assert_eq!([stated(3600.0), stated(3599.7), stated(3520.0)], [3600, 3600, 3600]);
        assert_eq!([stated(3420.0), stated(3380.0), stated(1810.4)], [3420, 3420, 1800]);
        assert_eq!([stated(12.0), stated(0.0), stated(-3.0)], [180, 0, 0]);
    }
}
