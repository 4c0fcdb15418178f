//! SQL functions about the texts of models and the logs of programs.

use std::borrow::Cow;
use std::sync::Arc;

use arrow::array::{ArrayRef, Float64Array, StringBuilder};
use arrow::datatypes::DataType;
use datafusion::common::cast::{as_int64_array, as_string_view_array};
use datafusion::common::{DataFusionError, Result};
use datafusion_macros::user_doc;

use crate::Function;
use crate::scalar::{exact, map_text, scalar, scalar_function};

/// Functions of this family.
pub fn functions() -> Vec<Function> {
    vec![
        scalar(ExtractCode::default()),
        scalar(ExtractJson::default()),
        scalar(StripThinking::default()),
        scalar(PlanText::default()),
        scalar(FinalValidationScore::default()),
        scalar(SanitizeOutput::default()),
        scalar(SanitizeProgram::default()),
        scalar(ClearLog::default()),
        scalar(TruncateMiddle::default()),
    ]
}

scalar_function!(
    /// `extract_code(text)`.
    #[user_doc(
        doc_section(label = "Model text"),
        description = "Program of a model's reply: the last closed Python block that parses and does more than name a value; without one a block that is never closed, or the whole reply. Thinking is stripped first and line ends become line feeds. NULL when the reply holds no program.",
        syntax_example = "extract_code(text)",
        sql_example = "SELECT extract_code('Plan.' || chr(10) || '```python' || chr(10) || 'x = 1' || chr(10) || '```'); -- x = 1",
        argument(name = "text", description = "Reply of a model.")
    )]
    ExtractCode,
    "extract_code",
    exact(&[("text", DataType::Utf8View)]),
    DataType::Utf8,
    |columns: &[ArrayRef]| { map_text(&columns[0], |text| super::extract_code(text).code.map(Cow::Owned)) }
);

scalar_function!(
    /// `extract_json(text)`.
    #[user_doc(
        doc_section(label = "Model text"),
        description = "First JSON object of a model's reply as JSON text: alone, in a code block or among words. Thinking is stripped first. NULL when the reply holds no whole object; a list or a number is none.",
        syntax_example = "extract_json(text)",
        sql_example = "SELECT extract_json('So: {\"a\": 1}.'); -- {\"a\":1}",
        argument(name = "text", description = "Reply of a model.")
    )]
    ExtractJson,
    "extract_json",
    exact(&[("text", DataType::Utf8View)]),
    DataType::Utf8,
    |columns: &[ArrayRef]| {
        map_text(&columns[0], |text| {
            let object = super::extract_json(text)?;
            Some(Cow::Owned(serde_json::Value::Object(object).to_string()))
        })
    }
);

scalar_function!(
    /// `strip_thinking(text)`.
    #[user_doc(
        doc_section(label = "Model text"),
        description = "Reply without its `<think>` blocks, trimmed. Text before a closing tag that was never opened goes too; a block that is never closed stays.",
        syntax_example = "strip_thinking(text)",
        sql_example = "SELECT strip_thinking('<think>hm</think> yes'); -- yes",
        argument(name = "text", description = "Reply of a model.")
    )]
    StripThinking,
    "strip_thinking",
    exact(&[("text", DataType::Utf8View)]),
    DataType::Utf8,
    |columns: &[ArrayRef]| { map_text(&columns[0], |text| Some(Cow::Owned(super::strip_thinking(text)))) }
);

scalar_function!(
    /// `plan_text(text)`.
    #[user_doc(
        doc_section(label = "Model text"),
        description = "Words of a reply before its first code fence, without thinking; empty when it has no fence.",
        syntax_example = "plan_text(text)",
        sql_example = "SELECT plan_text('Use a forest. ```x = 1```'); -- Use a forest.",
        argument(name = "text", description = "Reply of a model.")
    )]
    PlanText,
    "plan_text",
    exact(&[("text", DataType::Utf8View)]),
    DataType::Utf8,
    |columns: &[ArrayRef]| { map_text(&columns[0], |text| Some(Cow::Owned(super::plan_text(text)))) }
);

scalar_function!(
    /// `final_validation_score(log)`.
    #[user_doc(
        doc_section(label = "Model text"),
        description = "Last score that a program printed after `Final Validation Score:`. NULL when there is none or it is not one finite number.",
        syntax_example = "final_validation_score(log)",
        sql_example = "SELECT final_validation_score('Final Validation Score: 0.91'); -- 0.91",
        argument(name = "log", description = "What the run printed.")
    )]
    FinalValidationScore,
    "final_validation_score",
    exact(&[("log", DataType::Utf8View)]),
    DataType::Float64,
    |columns: &[ArrayRef]| {
        let logs = as_string_view_array(&columns[0])?;
        let scores: Float64Array = logs.iter().map(|log| super::final_validation_score(log?)).collect();
        Ok(Arc::new(scores) as ArrayRef)
    }
);

scalar_function!(
    /// `sanitize_output(log)`.
    #[user_doc(
        doc_section(label = "Model text"),
        description = "Log without official scores, so that a model may see it: any case, JSON keys, `nan`, `inf` and numbers with a unit. The line of the first one becomes a notice, later ones vanish; the program's own validation score stays.",
        syntax_example = "sanitize_output(log)",
        sql_example = "SELECT sanitize_output('Final Score: 0.79'); -- [official score removed]",
        argument(name = "log", description = "What the run printed, with the grader's feedback.")
    )]
    SanitizeOutput,
    "sanitize_output",
    exact(&[("log", DataType::Utf8View)]),
    DataType::Utf8,
    |columns: &[ArrayRef]| { map_text(&columns[0], |log| Some(Cow::Owned(super::sanitize_output(log)))) }
);

scalar_function!(
    /// `sanitize_program(code)`.
    #[user_doc(
        doc_section(label = "Model text"),
        description = "Program without official scores in its comments and texts, so that a model may see it; what it computes stays, and so does its own validation score.",
        syntax_example = "sanitize_program(code)",
        sql_example = "SELECT sanitize_program('x = 1  # Final Score: 0.79'); -- x = 1  # [official score removed]",
        argument(name = "code", description = "Python program.")
    )]
    SanitizeProgram,
    "sanitize_program",
    exact(&[("code", DataType::Utf8View)]),
    DataType::Utf8,
    |columns: &[ArrayRef]| { map_text(&columns[0], |code| Some(super::sanitize_program(code))) }
);

scalar_function!(
    /// `clear_log(log)`.
    #[user_doc(
        doc_section(label = "Model text"),
        description = "Output regions of a run log: first all between `--- OUTPUT START ---` and `--- OUTPUT END ---`, then all between the `SANDBOX STDOUT` marks, without heartbeats; each begins with a line break. Empty when the log has none.",
        syntax_example = "clear_log(log)",
        sql_example = "SELECT clear_log('--- OUTPUT START --- hi --- OUTPUT END ---'); -- hi",
        argument(name = "log", description = "Run log.")
    )]
    ClearLog,
    "clear_log",
    exact(&[("log", DataType::Utf8View)]),
    DataType::Utf8,
    |columns: &[ArrayRef]| { map_text(&columns[0], |log| Some(Cow::Owned(super::clear_log(log)))) }
);

scalar_function!(
    /// `truncate_middle(text, max, keep)`.
    #[user_doc(
        doc_section(label = "Model text"),
        description = "Text itself when it has at most `max` characters; otherwise its first and last `keep` characters around a line that says how many are not shown. A text that would not get shorter stays as it is.",
        syntax_example = "truncate_middle(text, max, keep)",
        sql_example = "SELECT truncate_middle(repeat('x', 6000), 5100, 2500);",
        argument(name = "text", description = "Text to shorten."),
        argument(name = "max", description = "Characters that need no shortening."),
        argument(name = "keep", description = "Characters kept at each end.")
    )]
    TruncateMiddle,
    "truncate_middle",
    exact(&[
        ("text", DataType::Utf8View),
        ("max", DataType::Int64),
        ("keep", DataType::Int64)
    ]),
    DataType::Utf8,
    truncate_middle
);

fn truncate_middle(columns: &[ArrayRef]) -> Result<ArrayRef> {
    let (limits, keeps) = (as_int64_array(&columns[1])?, as_int64_array(&columns[2])?);
    let mut texts = StringBuilder::with_capacity(columns[0].len(), 0);
    for ((text, max), keep) in as_string_view_array(&columns[0])?.iter().zip(limits).zip(keeps) {
        match (text, max, keep) {
            (Some(text), Some(max), Some(keep)) => {
                texts.append_value(super::truncate_middle(
                    text,
                    characters(max, "max")?,
                    characters(keep, "keep")?,
                ));
            }
            _ => texts.append_null(),
        }
    }
    Ok(Arc::new(texts.finish()))
}

fn characters(count: i64, parameter: &str) -> Result<usize> {
    usize::try_from(count).map_err(|_| {
        DataFusionError::Execution(format!(
            "truncate_middle: {parameter} is {count}; it must not be below 0"
        ))
    })
}
