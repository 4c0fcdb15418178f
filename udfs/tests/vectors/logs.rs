//! Logs of programs.

use datafusion::prelude::SessionContext;
use serde_json::{Value, json};

use super::{Case, Check, Predicate, Suite};
use crate::session::{booleans, integers, put_table, texts, value};

/// The score that a program printed about itself.
pub struct ValidationScore;

impl Suite for ValidationScore {
    const FILE: &'static str = "log_validation_score";
    const PREDICATES: &'static [(&'static str, Predicate)] =
        &[("source text of a print", |check| check.input.get("code").is_some())];

    async fn checks(context: &SessionContext, case: &Case) -> Vec<Check> {
        put_table(context, "t", vec![("log", texts([case.input["text"].as_str()]))]);
        let ours = value(context, "SELECT final_validation_score(log) FROM t").await;
        let reference = if case.input.get("code").is_some() {
            &case.expected["print_check"]
        } else {
            &case.expected["evo"]
        };
        vec![Check::new("final_validation_score", &case.input, reference, ours)]
    }
}

/// JSON that a model was asked for.
pub struct JsonOutput;

impl Suite for JsonOutput {
    const FILE: &'static str = "parse_json_output";

    async fn checks(context: &SessionContext, case: &Case) -> Vec<Check> {
        put_table(context, "t", vec![("text", texts([case.input["text"].as_str()]))]);
        let ours = match value(context, "SELECT extract_json(text) FROM t").await {
            Value::String(text) => serde_json::from_str(&text).unwrap(),
            other => other,
        };
        vec![Check::new("extract_json", &case.input, &case.expected["rl"], ours)]
    }
}

/// Output regions.
pub struct ClearLog;

impl Suite for ClearLog {
    const FILE: &'static str = "log_clear";
    const PREDICATES: &'static [(&'static str, Predicate)] =
        &[("log is NULL", |check| check.input["run_log"].is_null())];

    async fn checks(context: &SessionContext, case: &Case) -> Vec<Check> {
        put_table(context, "t", vec![("log", texts([case.input["run_log"].as_str()]))]);
        let ours = value(context, "SELECT clear_log(log) FROM t").await;
        vec![Check::new("clear_log", &case.input, &case.expected, ours)]
    }
}

/// Shortened texts.
pub struct TrimLongString;

impl Suite for TrimLongString {
    const FILE: &'static str = "evo_trim_long_string";

    async fn checks(context: &SessionContext, case: &Case) -> Vec<Check> {
        let [length, threshold, keep] = ["length", "threshold", "k"].map(|name| case.input[name].as_i64().unwrap());
        let text: String = case.input["repeat"]
            .as_str()
            .unwrap()
            .chars()
            .cycle()
            .take(usize::try_from(length).unwrap())
            .collect();
        put_table(
            context,
            "t",
            vec![
                ("text", texts([Some(text.as_str())])),
                ("max", integers([threshold])),
                ("keep", integers([keep])),
            ],
        );
        let short = value(context, "SELECT truncate_middle(text, max, keep) FROM t").await;
        let ours = describe(&text, short.as_str().unwrap(), usize::try_from(keep).unwrap());
        vec![Check::new("truncate_middle", &case.input, &case.expected, ours)]
    }
}

/// The facts that were recorded about the reference's answer.
fn describe(text: &str, short: &str, keep: usize) -> Value {
    let letters: Vec<char> = short.chars().collect();
    if short == text {
        return json!({"truncated": false, "output_len": letters.len()});
    }
    let (head, rest) = letters.split_at(keep);
    assert!(text.starts_with(&head.iter().collect::<String>()));
    let (marker, tail) = rest.split_at(rest.len() - keep);
    let digits: String = marker.iter().filter(|letter| letter.is_ascii_digit()).collect();
    json!({
        "truncated": true,
        "output_len": letters.len(),
        "head_len": head.len(),
        "tail": tail[tail.len() - 40..].iter().collect::<String>(),
        "dropped": digits.parse::<u64>().unwrap(),
        "marker_len": marker.len(),
    })
}

/// Logs that a model may see.
pub struct PromptSanitization;

impl Suite for PromptSanitization {
    const FILE: &'static str = "evo_prompt_sanitization";
    const PREDICATES: &'static [(&'static str, Predicate)] = &[
        ("log is NULL", |check| check.input["output"].is_null()),
        ("other spelling of a score", |check| {
            let log = check.input["output"].as_str().unwrap_or_default();
            check.input["enabled"] == true && (log.contains("FINAL SCORE") || log.contains("\"Final Score\""))
        }),
    ];

    async fn checks(context: &SessionContext, case: &Case) -> Vec<Check> {
        put_table(
            context,
            "t",
            vec![
                ("log", texts([case.input["output"].as_str()])),
                ("enabled", booleans([case.input["enabled"].as_bool()])),
            ],
        );
        let sql = "SELECT CASE WHEN enabled THEN sanitize_output(log) ELSE log END FROM t";
        let ours = match value(context, sql).await {
            Value::String(log) => json!(log.replace("[official score removed]", "<REDACTED>")),
            other => other,
        };
        vec![Check::new("sanitize_output", &case.input, &case.expected, ours)]
    }
}
