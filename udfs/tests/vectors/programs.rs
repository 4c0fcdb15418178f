//! Programs and the replies they come in.

use datafusion::prelude::SessionContext;
use serde_json::{Value, json};

use super::{Case, Check, Predicate, Suite};
use crate::session::{put_table, texts, value};

/// Imports of a program.
pub struct Imports;

impl Suite for Imports {
    const FILE: &'static str = "evo_extract_imports";
    const PREDICATES: &'static [(&'static str, Predicate)] = &[("import list in a broken program", |check| {
        let code = check.input["code"].as_str().unwrap_or_default();
        let lists_modules = |line: &str| line.trim_start().starts_with("import ") && line.contains(',');
        code.contains("= =") && code.lines().any(lists_modules)
    })];

    async fn checks(context: &SessionContext, case: &Case) -> Vec<Check> {
        put_table(context, "t", vec![("code", texts([case.input["code"].as_str()]))]);
        let ours = value(context, "SELECT python_imports(code) FROM t").await;
        vec![Check::new("python_imports", &case.input, &case.expected, ours)]
    }
}

/// Family labels of the search harness.
pub struct MethodFamily;

impl Suite for MethodFamily {
    const FILE: &'static str = "method_family";

    async fn checks(context: &SessionContext, case: &Case) -> Vec<Check> {
        put_table(context, "t", vec![("code", texts([case.input["code"].as_str()]))]);
        let ours = value(context, "SELECT method_family(code) FROM t").await;
        vec![Check::new("method_family", &case.input, &case.expected["evo"], ours)]
    }
}

/// Signatures of failures.
pub struct ErrorSignature;

fn log(input: &Value) -> String {
    let part = |name: &str| input[name].as_str().unwrap_or_default().to_owned();
    format!("{}\n{}", part("raw_run_log"), part("clear_run_log"))
}

/// A line that begins with the name of an exception, as the interpreter prints it.
fn shows_exception(input: &Value) -> bool {
    log(input).lines().any(|line| {
        let name = line.split(':').next().unwrap_or_default();
        name.ends_with("Error") && !name.contains(' ')
    })
}

impl Suite for ErrorSignature {
    const FILE: &'static str = "evo_error_signature";
    const PREDICATES: &'static [(&'static str, Predicate)] = &[
        ("status is NULL", |check| {
            check.input["status"].is_null() && !check.reference.is_null()
        }),
        ("HTTP code of the sandbox service", |check| {
            check.input["status_code"].as_i64().is_some_and(|code| code >= 500)
        }),
        ("words in the log but no exception", |check| {
            check.input["status_code"] == 200
                && !check.reference.is_null()
                && check.input["status"] == "failed"
                && !shows_exception(&check.input)
        }),
        ("exception that the reference has no class for", |check| {
            check.input["status"] == "failed" && shows_exception(&check.input) && check.reference.is_null()
        }),
    ];

    async fn checks(context: &SessionContext, case: &Case) -> Vec<Check> {
        let log = log(&case.input);
        put_table(
            context,
            "t",
            vec![
                ("status", texts([case.input["status"].as_str()])),
                ("log", texts([Some(log.as_str())])),
            ],
        );
        let ours = value(context, "SELECT error_signature(status, log) FROM t").await;
        vec![Check::new("error_signature", &case.input, &case.expected, ours)]
    }
}

/// Programs of replies, against the reference's text before it is reformatted.
pub struct CodeExtraction;

fn reply(check: &Check) -> &str {
    check.input["text"].as_str().unwrap_or_default()
}

impl Suite for CodeExtraction {
    const FILE: &'static str = "code_extraction";
    const PREDICATES: &'static [(&'static str, Predicate)] = &[
        ("block that is never closed", |check| {
            reply(check).matches("```").count() == 1
        }),
        ("block in another language beside the program", |check| {
            reply(check).contains("```json")
        }),
        ("space before the language", |check| reply(check).contains("``` python")),
        ("several programs", |check| {
            reply(check).matches("```python").count() > 1
        }),
        ("no statement", |check| {
            let lines: Vec<&str> = reply(check).lines().filter(|line| !line.starts_with("```")).collect();
            !lines.is_empty() && lines.iter().all(|line| line.starts_with('#'))
        }),
        ("carriage returns", |check| reply(check).contains('\r')),
    ];

    async fn checks(context: &SessionContext, case: &Case) -> Vec<Check> {
        put_table(context, "t", vec![("reply", texts([case.input["text"].as_str()]))]);
        let ours = value(context, "SELECT extract_code(reply) FROM t").await;
        let reference = match &case.expected["response"]["raw"] {
            Value::String(raw) if raw.is_empty() => &Value::Null,
            raw => raw,
        };
        vec![Check::new("extract_code", &case.input, reference, ours)]
    }
}

/// Thinking and plans of replies.
pub struct ThinkingTags;

impl Suite for ThinkingTags {
    const FILE: &'static str = "thinking_tags";

    async fn checks(context: &SessionContext, case: &Case) -> Vec<Check> {
        put_table(context, "t", vec![("reply", texts([case.input["text"].as_str()]))]);
        let ours = value(context, "SELECT [strip_thinking(reply), plan_text(reply)] FROM t").await;
        let reference = json!([case.expected["rest"], case.expected["text_up_to_code"]]);
        vec![Check::new(
            "strip_thinking and plan_text",
            &case.input,
            &reference,
            ours,
        )]
    }
}
