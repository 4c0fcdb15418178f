//! Prompts: the templates over the facts, within a budget of tokens.

use std::path::Path;
use std::sync::Arc;

use minijinja::Value;
use sha2::{Digest, Sha256};

use super::Operator;
use super::context::{board_sql, context_sql, facts_sql};
use super::cut::{self, Cut};
use super::facts::PromptFacts;
use super::sample;
use super::skills::Skills;
use crate::error::ErrorClass;
use crate::model::{Message, Role, TokenCounter};
use crate::templates::{SourceError, Templates};

/// Where the templates of the memory model are; no operator reads them.
const OF_MEMORY: &str = "memory/";

/// A prompt that cannot be made.
#[derive(Debug, thiserror::Error)]
pub enum PromptError {
    /// A template failed.
    #[error("the prompt of a {operator} could not be rendered: {source}")]
    Render {
        /// The operator.
        operator: Operator,
        /// Cause.
        source: SourceError,
    },
    /// What may not be cut is too long.
    #[error(
        "the prompt of a {operator} takes {needed} tokens with all that can be cut left out, but its budget is {budget}: raise \
         prompts.max_tokens (or the option prompt_tokens), or shorten the task's description"
    )]
    TooLong {
        /// The operator.
        operator: Operator,
        /// Tokens of the shortest prompt.
        needed: u64,
        /// The budget.
        budget: u64,
    },
}

impl PromptError {
    /// Class that decides what it means for a run: a draft that does not fit never will, a parent may just be too long.
    pub fn class(&self) -> ErrorClass {
        match self {
            Self::TooLong { operator, .. } if operator.arity() > 0 => ErrorClass::Candidate,
            _ => ErrorClass::Config,
        }
    }
}

/// A prompt as it is sent.
#[derive(Debug, Clone, PartialEq)]
pub struct Prompt {
    /// The messages.
    pub messages: Vec<Message>,
    /// Tokens of each message.
    pub tokens: Vec<u64>,
    /// What was left out, in the order it was cut.
    pub cuts: Vec<String>,
    /// Versions of the notes of the user that it holds.
    pub skills: Vec<String>,
    /// Nodes that it shows: role and id.
    pub shown: Vec<(String, String)>,
}

impl Prompt {
    /// Tokens of all messages.
    pub fn total_tokens(&self) -> u64 {
        self.tokens.iter().sum()
    }
}

/// Templates and notes.
#[derive(Debug)]
pub struct Prompts {
    templates: Arc<Templates>,
    skills: Skills,
}

impl Prompts {
    /// The templates, and the notes of a folder.
    ///
    /// # Errors
    /// When a file cannot be used; templates of the user are tried on made-up facts, so that a mistake in them shows at once.
    pub fn new(templates: Arc<Templates>, skills: Option<&Path>) -> Result<Self, SourceError> {
        let prompts = Self {
            templates,
            skills: skills.map(Skills::read).transpose()?.unwrap_or_default(),
        };
        if prompts.templates.are_replaced() {
            for operator in Operator::ALL {
                for facts in sample::facts(operator) {
                    prompts.messages(operator, &facts)?;
                }
            }
        }
        Ok(prompts)
    }

    /// The notes.
    pub fn skills(&self) -> &Skills {
        &self.skills
    }

    /// Version of an operator: changes with its queries and its templates.
    pub fn version(&self, operator: Operator) -> String {
        let mut hasher = Sha256::new();
        for sql in [context_sql(operator), board_sql(), facts_sql()] {
            hasher.update(sql);
        }
        for (name, text) in self.templates.texts() {
            let is_of_another = |other: &Operator| *other != operator && name == format!("{other}.j2");
            if !name.starts_with(OF_MEMORY) && !Operator::ALL.iter().any(is_of_another) {
                hasher.update(text);
            }
        }
        hex::encode(&hasher.finalize()[..6])
    }

    /// The prompt of an operator, of at most `budget` tokens: where it is longer, what helps least is left out first.
    ///
    /// # Errors
    /// When a template fails, or what may not be cut is too long.
    pub fn render(
        &self,
        operator: Operator,
        mut facts: PromptFacts,
        budget: u64,
        counter: &TokenCounter,
    ) -> Result<Prompt, PromptError> {
        facts.skills = self.skills.of(&facts.task.task_id);
        let whole = self.with_cuts(operator, &facts, &[], counter)?;
        if whole.total_tokens() <= budget {
            return Ok(whole);
        }
        let cuts = cut::order(&facts, operator.arity());
        let shortest = self.with_cuts(operator, &facts, &cuts, counter)?;
        if shortest.total_tokens() > budget {
            return Err(PromptError::TooLong {
                operator,
                needed: shortest.total_tokens(),
                budget,
            });
        }
        // The more is cut the shorter it is, so the fewest cuts that are enough are found by halving.
        let (mut too_few, mut enough, mut prompt) = (0, cuts.len(), shortest);
        while enough - too_few > 1 {
            let middle = too_few + (enough - too_few) / 2;
            let tried = self.with_cuts(operator, &facts, &cuts[..middle], counter)?;
            if tried.total_tokens() <= budget {
                (enough, prompt) = (middle, tried);
            } else {
                too_few = middle;
            }
        }
        Ok(prompt)
    }

    fn with_cuts(
        &self,
        operator: Operator,
        facts: &PromptFacts,
        cuts: &[Cut],
        counter: &TokenCounter,
    ) -> Result<Prompt, PromptError> {
        let mut kept = facts.clone();
        for cut in cuts {
            cut.apply(&mut kept);
        }
        let messages = self
            .messages(operator, &kept)
            .map_err(|source| PromptError::Render { operator, source })?;
        Ok(Prompt {
            tokens: messages.iter().map(|message| counter.count(&message.content)).collect(),
            messages,
            cuts: cuts.iter().map(|cut| cut.describe(facts)).collect(),
            skills: self.skills.versions(&kept.task.task_id, &kept.skills),
            shown: kept.nodes.into_iter().map(|node| (node.role, node.node_id)).collect(),
        })
    }

    fn messages(&self, operator: Operator, facts: &PromptFacts) -> Result<Vec<Message>, SourceError> {
        let values = Value::from_serialize(facts);
        let message = |role, name: &str| {
            Ok(Message {
                role,
                content: self.templates.render(name, &values)?,
            })
        };
        Ok(vec![
            message(Role::System, "system.j2")?,
            message(Role::User, &format!("{operator}.j2"))?,
        ])
    }
}
