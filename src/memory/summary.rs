//! A summary: the two fields that a memory model answers with, and what stands in for them.

use serde_json::Value as Json;

use super::facts::NodeFacts;
use clade_udfs::text::{extract_json, truncate_middle};

/// Longest field in bytes: three times what the prompt asks for.
pub const LONGEST_FIELD: usize = 1_500;

const OVERVIEW: &str = "method_overview";
const EXPERIENCE: &str = "parent_comparison_experience";

/// What is known of a node in words.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Summary {
    /// What the program does.
    pub method_overview: String,
    /// What was changed against the parent and what that taught.
    pub parent_comparison_experience: String,
}

/// Why an answer is no summary.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum SummaryFault {
    /// No JSON object in it.
    #[error("the answer holds no JSON object")]
    NoObject,
    /// A field is not there.
    #[error("the field {0} is missing")]
    Missing(&'static str),
    /// A field that was not asked for.
    #[error("the field {0} was not asked for")]
    Unknown(String),
    /// A field is no text, or an empty one.
    #[error("the field {0} is no text")]
    NoText(&'static str),
    /// A field is too long.
    #[error("the field {field} has {bytes} bytes, {LONGEST_FIELD} are allowed")]
    TooLong {
        /// Field.
        field: &'static str,
        /// Its length.
        bytes: usize,
    },
}

impl Summary {
    /// Reads an answer: one JSON object with exactly the two fields.
    ///
    /// # Errors
    /// When it is anything else.
    pub fn read(answer: &str) -> Result<Self, SummaryFault> {
        let mut object = extract_json(answer).ok_or(SummaryFault::NoObject)?;
        let mut field = |field: &'static str| match object.remove(field) {
            None => Err(SummaryFault::Missing(field)),
            Some(Json::String(text)) if !text.trim().is_empty() => {
                let text = text.trim();
                if text.len() > LONGEST_FIELD {
                    let bytes = text.len();
                    return Err(SummaryFault::TooLong { field, bytes });
                }
                Ok(text.to_owned())
            }
            Some(_) => Err(SummaryFault::NoText(field)),
        };
        let summary = Self {
            method_overview: field(OVERVIEW)?,
            parent_comparison_experience: field(EXPERIENCE)?,
        };
        match object.keys().next() {
            Some(unknown) => Err(SummaryFault::Unknown(unknown.chars().take(80).collect())),
            None => Ok(summary),
        }
    }

    /// What stands in for a summary that could not be made: the facts, in words.
    pub fn of_facts(facts: &NodeFacts) -> Self {
        let outcome = match (facts.score, facts.delta_vs_parent) {
            (Some(score), Some(delta)) => {
                format!("Validation score {score}, a gain of {delta} over the best parent (above 0 is better).")
            }
            (Some(score), None) => format!("Validation score {score}, without a scored parent to compare with."),
            (None, _) => match &facts.error_signature {
                Some(signature) => format!("No score: {}, {signature}.", facts.status),
                None => format!("No score: {}.", facts.status),
            },
        };
        let overview = match facts.plan.as_deref().map(str::trim) {
            Some(plan) if !plan.is_empty() => format!("{}: {plan}", facts.method_family),
            _ => format!("{}, without a plan in words.", facts.method_family),
        };
        Self {
            method_overview: within(overview),
            parent_comparison_experience: within(outcome),
        }
    }

    /// A summary that is as long as any may be, for what a prompt may cost at most.
    pub fn longest() -> Self {
        let text = "x".repeat(LONGEST_FIELD);
        Self {
            method_overview: text.clone(),
            parent_comparison_experience: text,
        }
    }
}

/// The text, cut to the longest field.
fn within(text: String) -> String {
    if text.len() <= LONGEST_FIELD {
        return text;
    }
    // A character has four bytes at the most, and the note in the middle is short.
    let letters = LONGEST_FIELD / 4 - 40;
    truncate_middle(&text, letters, letters / 2).into_owned()
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]

    use super::*;

    fn fault(answer: &str) -> String {
        Summary::read(answer).unwrap_err().to_string()
    }

    #[test]
    fn exactly_two_texts_are_a_summary() {
        let answer = "```json\n{\"method_overview\": \" A forest. \", \"parent_comparison_experience\": \"More trees did not help.\"}\n```";
        assert_eq!(
            Summary::read(answer).unwrap(),
            Summary {
                method_overview: "A forest.".to_owned(),
                parent_comparison_experience: "More trees did not help.".to_owned(),
            }
        );
    }

    #[test]
    fn anything_else_is_a_named_fault() {
        let long = format!("{{\"method_overview\": \"{}\"}}", "ä".repeat(LONGEST_FIELD));
        let faults = [
            fault("a forest"),
            fault("[1]"),
            fault(r#"{"method_overview": "x"}"#),
            fault(r#"{"method_overview": "x", "parent_comparison_experience": 3}"#),
            fault(r#"{"method_overview": " ", "parent_comparison_experience": "x"}"#),
            fault(r#"{"method_overview": "x", "parent_comparison_experience": "y", "score": 1}"#),
            fault(&long),
        ];
        insta::assert_snapshot!(faults.join("\n"), @r"
        the answer holds no JSON object
        the answer holds no JSON object
        the field parent_comparison_experience is missing
        the field parent_comparison_experience is no text
        the field method_overview is no text
        the field score was not asked for
        the field method_overview has 3000 bytes, 1500 are allowed
        ");
    }

    #[test]
    fn what_stands_in_for_a_summary_is_no_longer_than_one() {
        let facts = NodeFacts {
            plan: Some("ä".repeat(9_000)),
            method_family: "boosting".to_owned(),
            score: Some(0.5),
            ..NodeFacts::default()
        };
        let summary = Summary::of_facts(&facts);
        assert!(summary.method_overview.len() <= LONGEST_FIELD);
        assert!(summary.method_overview.starts_with("boosting: ä"));
        assert_eq!(
            summary.parent_comparison_experience,
            "Validation score 0.5, without a scored parent to compare with."
        );
    }
}
