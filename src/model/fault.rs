//! Answers that hold no program: what is wrong with them, whose fault it is, and what to do.

use crate::error::ErrorClass;

/// What is wrong with an answer.
#[derive(Debug, Clone, PartialEq, thiserror::Error)]
pub enum ReplyFault {
    /// The whole token budget went into reasoning.
    #[error(
        "the answer was cut off at {max_tokens} tokens before its text began: all of them went into reasoning; raise \
         max_output_tokens or ask for less reasoning (extra_body)"
    )]
    EmptyLength {
        /// Token limit of the request.
        max_tokens: u32,
    },
    /// The model reasoned and then said nothing.
    #[error("the answer holds reasoning only and no text")]
    ReasoningOnly,
    /// The model called tools that it was never given.
    #[error("the model called tools ({names}) instead of writing an answer; turn tools off at the provider")]
    ToolCalls {
        /// Names of the tools.
        names: String,
    },
    /// The model or a filter refused.
    #[error("the model refused to answer: {reason}")]
    Refused {
        /// What it said.
        reason: String,
    },
    /// The prompt does not fit into the model's context.
    #[error("the prompt is too long for the model: {message}")]
    PromptTooLong {
        /// What the provider said.
        message: String,
    },
    /// The list of choices is empty.
    #[error("the provider's answer has no choices; it is asked again")]
    NoChoices,
    /// The answer is whole and empty.
    #[error("the answer is empty (finish reason '{finish_reason}'); it is asked again")]
    Empty {
        /// Why the model stopped.
        finish_reason: String,
    },
    /// The answer is not what the protocol wants.
    #[error("the provider's answer is malformed: {problem}; it began with: {excerpt}")]
    Malformed {
        /// What is wrong.
        problem: String,
        /// Beginning of the answer.
        excerpt: String,
    },
    /// A page for people instead of an answer.
    #[error(
        "the provider answered with an HTML page ({title}) instead of JSON: check that the endpoint is the base URL of the \
         API, and whether a proxy stands in between"
    )]
    Page {
        /// Title of the page.
        title: String,
    },
    /// The stream ended before the answer did.
    #[error(
        "the stream was cut off after {bytes} bytes of text ({cause}); the partial text is kept in evo.generations"
    )]
    Cut {
        /// Bytes of text that had come.
        bytes: usize,
        /// How it ended.
        cause: String,
    },
    /// Nothing came for too long.
    #[error("no answer within {setting} = {seconds} s ({bytes} bytes of text had come); raise it for a slow model")]
    Stalled {
        /// Setting that ended the wait.
        setting: &'static str,
        /// Its value.
        seconds: f64,
        /// Bytes of text that had come.
        bytes: usize,
    },
    /// The provider sent an error in the place of an answer.
    #[error("the provider reported an error instead of an answer: {message}")]
    Reported {
        /// What it said.
        message: String,
    },
    /// The provider failed.
    #[error("{message}")]
    Failed {
        /// HTTP status and what it said.
        message: String,
    },
    /// The provider refuses such requests; asking again does not help.
    #[error("{message}")]
    Rejected {
        /// HTTP status, what it said, and what to set.
        message: String,
    },
    /// The provider asked to wait.
    #[error("rate limited: {message}")]
    Limited {
        /// HTTP status and what it said.
        message: String,
    },
}

impl ReplyFault {
    /// Class that decides what becomes of the attempt: a result of the model is a node without a program, a failure of the
    /// provider is tried again.
    pub fn class(&self) -> ErrorClass {
        match self {
            Self::EmptyLength { .. }
            | Self::ReasoningOnly
            | Self::ToolCalls { .. }
            | Self::Refused { .. }
            | Self::PromptTooLong { .. } => ErrorClass::Candidate,
            Self::Rejected { .. } => ErrorClass::Config,
            Self::Limited { .. } => ErrorClass::RateLimit,
            Self::NoChoices
            | Self::Empty { .. }
            | Self::Malformed { .. }
            | Self::Page { .. }
            | Self::Cut { .. }
            | Self::Stalled { .. }
            | Self::Reported { .. }
            | Self::Failed { .. } => ErrorClass::Provider,
        }
    }

    /// Short name, as `evo.generations.fault` and `evo.nodes.error_signature` keep it.
    pub fn name(&self) -> &'static str {
        match self {
            Self::EmptyLength { .. } => "empty_length",
            Self::ReasoningOnly => "reasoning_only",
            Self::ToolCalls { .. } => "tool_calls",
            Self::Refused { .. } => "refused",
            Self::PromptTooLong { .. } => "prompt_too_long",
            Self::NoChoices => "no_choices",
            Self::Empty { .. } => "empty",
            Self::Malformed { .. } => "malformed",
            Self::Page { .. } => "html_page",
            Self::Cut { .. } => "stream_cut",
            Self::Stalled { .. } => "stalled",
            Self::Reported { .. } => "reported",
            Self::Failed { .. } => "failed",
            Self::Rejected { .. } => "rejected",
            Self::Limited { .. } => "rate_limited",
        }
    }

    /// Whether the provider may have computed something, of which nothing came: a request that it turned away cost nothing, one
    /// that it took may have cost all that it was allowed to.
    pub fn may_have_cost(&self) -> bool {
        !matches!(
            self,
            Self::Page { .. }
                | Self::Reported { .. }
                | Self::Failed { .. }
                | Self::Rejected { .. }
                | Self::Limited { .. }
        )
    }

    /// The fault with every text that came from the provider changed.
    pub fn map_texts(self, change: impl Fn(String) -> String) -> Self {
        match self {
            Self::ToolCalls { names } => Self::ToolCalls { names: change(names) },
            Self::Refused { reason } => Self::Refused { reason: change(reason) },
            Self::PromptTooLong { message } => Self::PromptTooLong {
                message: change(message),
            },
            Self::Empty { finish_reason } => Self::Empty {
                finish_reason: change(finish_reason),
            },
            Self::Malformed { problem, excerpt } => Self::Malformed {
                problem: change(problem),
                excerpt: change(excerpt),
            },
            Self::Page { title } => Self::Page { title: change(title) },
            Self::Cut { bytes, cause } => Self::Cut {
                bytes,
                cause: change(cause),
            },
            Self::Reported { message } => Self::Reported {
                message: change(message),
            },
            Self::Failed { message } => Self::Failed {
                message: change(message),
            },
            Self::Rejected { message } => Self::Rejected {
                message: change(message),
            },
            Self::Limited { message } => Self::Limited {
                message: change(message),
            },
            fault @ (Self::EmptyLength { .. } | Self::ReasoningOnly | Self::NoChoices | Self::Stalled { .. }) => fault,
        }
    }
}
