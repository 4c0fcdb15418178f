//! What a generator is asked and what it answers.

use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use serde::{Deserialize, Serialize};

use crate::operators::Operator;

/// Who speaks a message.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Role {
    /// Standing instructions.
    System,
    /// The one who asks.
    User,
    /// The model.
    Assistant,
}

impl Role {
    /// Name as stored in tables and sent to providers.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::System => "system",
            Self::User => "user",
            Self::Assistant => "assistant",
        }
    }
}

/// One message of a prompt.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Message {
    /// Who speaks.
    pub role: Role,
    /// What is said.
    pub content: String,
}

/// How to sample an answer.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
pub struct SamplingParams {
    /// Softmax temperature.
    pub temperature: f64,
    /// Nucleus share.
    pub top_p: f64,
    /// Longest answer, in tokens.
    pub max_tokens: u32,
}

impl Default for SamplingParams {
    fn default() -> Self {
        Self {
            temperature: 1.0,
            top_p: 1.0,
            max_tokens: 16_384,
        }
    }
}

/// The task a program is written for: its public side only.
#[derive(Debug, Clone, PartialEq)]
pub struct TaskContext {
    /// Task id.
    pub task_id: String,
    /// Folder of the public files that candidate programs read.
    pub public_dir: PathBuf,
    /// The task's own description.
    pub description: String,
    /// Name of the metric.
    pub metric: String,
    /// Direction of the metric.
    pub higher_is_better: bool,
    /// Kind of data: tabular, text, image, …
    pub modality: String,
    /// Kind of problem: regression, classification, …
    pub task_type: String,
    /// Column that names a row of the submission, when known.
    pub id_column: Option<String>,
    /// Columns to predict, empty when not known.
    pub target_columns: Vec<String>,
    /// Longest a candidate program may run.
    pub time_limit_seconds: u64,
}

/// A node of the search that the prompt shows.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct NodeContext {
    /// Node id.
    pub node_id: String,
    /// Part the node plays in the prompt: `parent`, `parent2`, `ancestor`, `sibling`, …
    pub role: String,
    /// Operator that made the node.
    pub operator: String,
    /// The program, when it has one.
    pub code: Option<String>,
    /// The plan in words.
    pub plan: Option<String>,
    /// Result state.
    pub status: String,
    /// Validation score.
    pub score: Option<f64>,
    /// Class of its error.
    pub error_class: Option<String>,
    /// Signature of its error.
    pub error_signature: Option<String>,
    /// Error text: the end of the log.
    pub error: Option<String>,
    /// Method family of the program.
    pub method_family: String,
}

/// One question to a generator.
#[derive(Debug, Clone, PartialEq)]
pub struct GenerateRequest {
    /// Operator that asks.
    pub operator: Operator,
    /// The rendered prompt.
    pub messages: Vec<Message>,
    /// The task.
    pub task: Arc<TaskContext>,
    /// Nodes that the prompt shows; for an operator with parents the first is the parent.
    pub nodes: Vec<NodeContext>,
    /// How to sample.
    pub params: SamplingParams,
    /// Seed of the attempt.
    pub seed: u64,
    /// Which of the samples asked for this is, from 0.
    pub sample: u32,
    /// Key of the attempt, the same when a run is repeated.
    pub attempt_key: String,
    /// Hash of everything that decides the answer (prompt, model, parameters, seed, sample).
    pub request_hash: String,
}

/// What is known of an answer's tokens beside the two counts.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct UsageDetails {
    /// Prompt tokens that the provider had in its cache.
    pub cached_prompt: Option<u64>,
    /// Completion tokens that went into reasoning.
    pub reasoning: Option<u64>,
    /// Prompt tokens by our own estimate.
    pub estimated_prompt: Option<u64>,
    /// Completion tokens by our own estimate.
    pub estimated_completion: Option<u64>,
    /// Why the reported counts cannot be right; they are kept as they were reported.
    pub problem: Option<String>,
}

/// One answer.
#[derive(Debug, Clone, PartialEq)]
pub struct Sample {
    /// The answer: a short plan, then one fenced Python program.
    pub text: String,
    /// Reasoning that the provider returned apart from the answer.
    pub reasoning: Option<String>,
    /// Why the answer ended: `stop`, `length`, …
    pub finish_reason: String,
    /// Tokens of the prompt, when known.
    pub tokens_prompt: Option<u64>,
    /// Tokens of the answer, when known.
    pub tokens_completion: Option<u64>,
    /// What else is known of its tokens.
    pub usage: UsageDetails,
    /// Cost in US dollars, when known.
    pub cost_usd: Option<f64>,
    /// True when the answer came from a cache or a recording, so that nothing was spent now.
    pub cached: bool,
    /// Time from the question to the end of the answer.
    pub latency: Duration,
}

impl Sample {
    /// Whether nothing of an answer came: no text, no reasoning, no token counts.
    pub fn is_blank(&self) -> bool {
        self.text.is_empty()
            && self.reasoning.is_none()
            && self.tokens_prompt.is_none()
            && self.tokens_completion.is_none()
    }
}
