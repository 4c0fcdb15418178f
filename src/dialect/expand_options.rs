//! Options of `EXPAND WITH operator (…)`.

use std::time::Duration;

use super::option::{OptionType, OptionValue, Range, option_table};

/// What a failed attempt means for its statement.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum OnError {
    /// A failure is a row like any other.
    Record,
    /// The first failure ends the statement with an error.
    Fail,
    /// So many failures stop the dispatch of further attempts.
    StopAfter(u64),
}

impl OptionType for OnError {
    const KIND: &'static str = "'record', 'fail' or 'stop_after_n' with a number for n, such as 'stop_after_3'";

    fn read(value: &OptionValue, _range: Range) -> Option<Self> {
        let OptionValue::Text(text) = value else { return None };
        match text.to_ascii_lowercase().as_str() {
            "record" => Some(Self::Record),
            "fail" => Some(Self::Fail),
            text => text
                .strip_prefix("stop_after_")?
                .parse()
                .ok()
                .filter(|count| *count > 0)
                .map(Self::StopAfter),
        }
    }

    fn write(&self) -> OptionValue {
        OptionValue::Text(match self {
            Self::Record => "record".to_owned(),
            Self::Fail => "fail".to_owned(),
            Self::StopAfter(count) => format!("stop_after_{count}"),
        })
    }
}

option_table! {
    /// Options of an EXPAND; a field is `None` when the user did not give it and the default holds.
    pub struct ExpandOptions of "EXPAND" {
        /// Programs to make from each input row. Default 1.
        samples: u64, Range::Within(1.0, 10_000.0);
        /// Seed of the statement; the same seed on the same snapshot asks the model the same. Default: one drawn from the clock, stored with every attempt.
        seed: u64, Range::AtLeast(0.0);
        /// Attempts in flight at once. Default: the configured workers.
        concurrency: u64, Range::Within(1.0, 1_024.0);
        /// Budget: prompt and completion tokens of the whole statement.
        max_tokens: u64, Range::AtLeast(1.0);
        /// Budget: US dollars of the whole statement.
        max_cost_usd: f64, Range::AtLeast(0.0);
        /// Budget: wall time of the whole statement.
        max_wall: Duration, Range::Above(0.0);
        /// Budget: sandbox jobs of the whole statement.
        max_jobs: u64, Range::AtLeast(1.0);
        /// Longest run of one candidate program.
        timeout: Duration, Range::Above(0.0);
        /// Sampling temperature of the model.
        temperature: f64, Range::Within(0.0, 2.0);
        /// Nucleus sampling of the model.
        top_p: f64, Range::AboveUpTo(0.0, 1.0);
        /// Model that summarises the nodes a prompt shows; 'none' shows the facts alone. Default: search.memory_model of the configuration.
        memory_model: String, Range::Any;
        /// What a failed attempt means: 'record' (default), 'fail' or 'stop_after_n'.
        on_error: OnError, Range::Any;
        /// Id of the statement: run again under its id, it resumes and repeats nothing. Default: a new id.
        id: String, Range::Any;
        /// Answer equal requests from the response cache. Default true.
        cache: bool, Range::Any;
        /// Most tokens of one prompt: what helps least is left out of a longer one. Default: prompts.max_tokens.
        prompt_tokens: u64, Range::Within(1_000.0, 10_000_000.0);
        /// Start candidates from the warm pool. Default true.
        warm: bool, Range::Any;
        /// Look at programs before they run: syntax, installs of packages, modules that are not there. Default: what the task says.
        preflight: bool, Range::Any;
        /// Go on under a cost budget although the model's price is not known. Default false.
        allow_unknown_cost: bool, Range::Any;
    }
}
