//! The body of `POST /jobs`, read field by field so that an error names the field.

use std::collections::BTreeMap;

use axum::http::StatusCode;
use serde::Serialize;
use serde_json::{Map, Value};
use utoipa::ToSchema;

use super::error::ApiError;
use crate::gym::Submission;
use crate::sandbox::{PROGRAM_NAME, is_output_name};
use crate::service::queue::{Class, Output};

/// Most characters of names and keys.
const MOST_CHARACTERS: usize = 512;
/// Most bytes of the name of a file; there is room for an ending.
const MOST_OUTPUT_BYTES: usize = 200;
/// Most variables, and most bytes of all of them.
const MOST_VARIABLES: usize = 256;
const MOST_VARIABLE_BYTES: usize = 64 << 10;
/// Variables that the clients always send and the service sets itself.
const REPLACED: [&str; 3] = ["DATA_DIR", "SANDBOX_DATA_DIR", "EXECUTION_MODE"];
/// Variables that the service or the sandbox sets.
const OURS: [&str; 5] = ["PATH", "RESOURCE_TYPE", "PRIORITY", "TRACE_ID", "OUTPUT_DIR"];
/// What the names of other such variables begin with.
const OUR_PREFIXES: [&str; 3] = ["LD_", "PYTHON", "JOB_"];
/// Shortest run that may be asked for.
const LEAST_SECONDS: f64 = 0.001;
/// Priority of a request that names none.
const USUAL_PRIORITY: u8 = 2;

/// A request for a job.
#[derive(Debug, Clone, PartialEq, Serialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct JobBody {
    /// Name of the job; the published clients send the name of the data.
    #[schema(min_length = 1, max_length = 512, pattern = r"^[^\x00-\x1f\x7f]+$")]
    pub name: String,
    /// Python text.
    pub code: String,
    /// A task of the store, an upload (sha256:...), or a folder below one of service.data_roots.
    #[schema(min_length = 1, max_length = 512)]
    pub data_dir: String,
    /// Longest run in seconds [default: sandbox.wall_seconds].
    #[schema(minimum = 0.001)]
    pub timeout: Option<f64>,
    /// cpu or gpu, in any case [default: cpu].
    #[schema(value_type = Option<String>, pattern = "^([cC][pP][uU]|[gG][pP][uU])$")]
    pub resource_type: Option<Class>,
    /// 1 is first, 9 last; the published clients send 1 for high and 2 for low [default: 2].
    #[schema(value_type = Option<u8>, minimum = 1, maximum = 9)]
    pub priority: u8,
    /// Variables of the program, by name.
    #[schema(value_type = Option<BTreeMap<String, String>>)]
    pub environment: BTreeMap<String, String>,
    /// The same key with the same request gives the same job.
    #[schema(min_length = 1, max_length = 512)]
    pub idempotency_key: Option<String>,
    /// validation or final, for tasks; the published clients may send both for data that is no task [default: validation].
    #[schema(pattern = "^(validation|final|both)$")]
    pub eval_split: Option<String>,
    /// What the program must write in its working directory; for data that is no task [default: submission.csv].
    #[schema(min_length = 1, max_length = 200, pattern = r"^[^/\x00-\x1f\x7f]+$")]
    pub output_name: Option<String>,
    /// That is a folder of files, which is collected as a tar file [default: false].
    pub output_is_folder: Option<bool>,
}

impl JobBody {
    /// Reads a body.
    ///
    /// # Errors
    /// Names the field that is wrong.
    pub fn read(value: Value, most_seconds: u64) -> Result<Self, ApiError> {
        let mut fields = match value {
            Value::Object(fields) => fields,
            other => {
                return Err(ApiError::new(
                    StatusCode::UNPROCESSABLE_ENTITY,
                    "invalid_field",
                    format!("the body must be a JSON object, not {}", kind(&other)),
                    "GET /api/v1/openapi.json describes the fields",
                ));
            }
        };
        let body = Self {
            name: plain(&mut fields, "name")?.ok_or_else(|| missing("name"))?,
            code: text(&mut fields, "code")?.ok_or_else(|| missing("code"))?,
            data_dir: text(&mut fields, "data_dir")?.ok_or_else(|| missing("data_dir"))?,
            timeout: seconds(&mut fields, most_seconds)?,
            resource_type: class(&mut fields)?,
            priority: priority(&mut fields)?,
            environment: environment(&mut fields)?,
            idempotency_key: plain(&mut fields, "idempotency_key")?,
            eval_split: eval_split(&mut fields)?,
            output_name: output_name(&mut fields)?,
            output_is_folder: flag(&mut fields, "output_is_folder")?,
        };
        match fields.keys().next() {
            Some(unknown) => Err(ApiError::field(
                unknown,
                "there is no such field; variables go below 'environment'",
            )),
            None => Ok(body),
        }
    }
}

impl JobBody {
    /// What the program must write; none where the request does not say.
    pub fn output(&self) -> Option<Output> {
        if self.output_name.is_none() && self.output_is_folder.is_none() {
            return None;
        }
        let usual = match self.output_is_folder {
            Some(true) => Output::from(Submission::Folder),
            _ => Output::from(Submission::Table),
        };
        Some(Output {
            name: self.output_name.clone().unwrap_or(usual.name),
            is_folder: usual.is_folder,
        })
    }
}

fn missing(name: &str) -> ApiError {
    ApiError::field(name, "it is missing")
}

/// Takes a field; null is the same as none.
fn take(fields: &mut Map<String, Value>, name: &str) -> Option<Value> {
    fields.remove(name).filter(|value| !value.is_null())
}

fn text(fields: &mut Map<String, Value>, name: &str) -> Result<Option<String>, ApiError> {
    match take(fields, name) {
        None => Ok(None),
        Some(Value::String(text)) => Ok(Some(text)),
        Some(other) => Err(ApiError::field(
            name,
            format!("it must be a text, not {}", kind(&other)),
        )),
    }
}

/// A text that names something.
fn plain(fields: &mut Map<String, Value>, name: &str) -> Result<Option<String>, ApiError> {
    let Some(text) = text(fields, name)? else {
        return Ok(None);
    };
    if text.is_empty() {
        return Err(ApiError::field(name, "it is empty"));
    }
    if text.chars().count() > MOST_CHARACTERS {
        return Err(ApiError::field(
            name,
            format!("it has more than {MOST_CHARACTERS} characters"),
        ));
    }
    if text.chars().any(char::is_control) {
        return Err(ApiError::field(name, "it holds a control character"));
    }
    Ok(Some(text))
}

fn seconds(fields: &mut Map<String, Value>, most: u64) -> Result<Option<f64>, ApiError> {
    let Some(value) = take(fields, "timeout") else {
        return Ok(None);
    };
    let wrong = |problem: String| ApiError::field("timeout", problem);
    let seconds = match &value {
        Value::Number(number) => number.as_f64().unwrap_or(f64::NAN),
        other => return Err(wrong(format!("it must be a number of seconds, not {}", kind(other)))),
    };
    if !seconds.is_finite() || seconds < LEAST_SECONDS {
        return Err(wrong(format!("it must be at least {LEAST_SECONDS}, not {value}")));
    }
    if seconds > most as f64 {
        return Err(wrong(format!(
            "it is {value} s, and a job may run for {most} s at most (service.max_job_seconds)"
        )));
    }
    Ok(Some(seconds))
}

fn class(fields: &mut Map<String, Value>) -> Result<Option<Class>, ApiError> {
    let Some(name) = text(fields, "resource_type")? else {
        return Ok(None);
    };
    Class::parse(&name.to_ascii_lowercase())
        .map(Some)
        .ok_or_else(|| ApiError::field("resource_type", format!("it must be 'cpu' or 'gpu', not '{name}'")))
}

fn priority(fields: &mut Map<String, Value>) -> Result<u8, ApiError> {
    match take(fields, "priority") {
        None => Ok(USUAL_PRIORITY),
        Some(value) => value
            .as_u64()
            .and_then(|priority| u8::try_from(priority).ok())
            .filter(|priority| (1..=9).contains(priority))
            .ok_or_else(|| {
                ApiError::field(
                    "priority",
                    format!("it must be a whole number from 1 to 9, not {value}"),
                )
            }),
    }
}

fn eval_split(fields: &mut Map<String, Value>) -> Result<Option<String>, ApiError> {
    let Some(split) = text(fields, "eval_split")? else {
        return Ok(None);
    };
    match split.as_str() {
        "validation" | "final" | "both" => Ok(Some(split)),
        other => Err(ApiError::field(
            "eval_split",
            format!("it must be 'validation' or 'final', not '{other}'"),
        )),
    }
}

fn output_name(fields: &mut Map<String, Value>) -> Result<Option<String>, ApiError> {
    let name = plain(fields, "output_name")?;
    let Some(name) = name else { return Ok(None) };
    if name.len() > MOST_OUTPUT_BYTES {
        return Err(ApiError::field(
            "output_name",
            format!("it has more than {MOST_OUTPUT_BYTES} bytes"),
        ));
    }
    if !is_output_name(&name) {
        return Err(ApiError::field(
            "output_name",
            format!("it must be a plain file name other than {PROGRAM_NAME}, not '{name}'"),
        ));
    }
    Ok(Some(name))
}

fn flag(fields: &mut Map<String, Value>, name: &str) -> Result<Option<bool>, ApiError> {
    match take(fields, name) {
        None => Ok(None),
        Some(Value::Bool(flag)) => Ok(Some(flag)),
        Some(other) => Err(ApiError::field(
            name,
            format!("it must be true or false, not {}", kind(&other)),
        )),
    }
}

fn environment(fields: &mut Map<String, Value>) -> Result<BTreeMap<String, String>, ApiError> {
    let given = match take(fields, "environment") {
        None => return Ok(BTreeMap::new()),
        Some(Value::Object(given)) => given,
        Some(other) => {
            return Err(ApiError::field(
                "environment",
                format!("it must be an object with texts, not {}", kind(&other)),
            ));
        }
    };
    if given.len() > MOST_VARIABLES {
        return Err(ApiError::field(
            "environment",
            format!("it has more than {MOST_VARIABLES} variables"),
        ));
    }
    let mut bytes = 0;
    let mut environment = BTreeMap::new();
    for (name, value) in given {
        let wrong = |problem: &str| ApiError::field(&format!("environment.{name}"), problem);
        let Value::String(value) = value else {
            return Err(wrong("it must be a text"));
        };
        bytes += name.len() + value.len();
        if bytes > MOST_VARIABLE_BYTES {
            return Err(ApiError::field(
                "environment",
                format!("it has more than {MOST_VARIABLE_BYTES} bytes"),
            ));
        }
        if value.contains('\0') {
            return Err(wrong("it holds a NUL character"));
        }
        if REPLACED.contains(&name.as_str()) {
            continue;
        }
        let mut characters = name.chars();
        let begins_well = characters.next().is_some_and(|c| c.is_ascii_alphabetic() || c == '_');
        if !begins_well || !characters.all(|c| c.is_ascii_alphanumeric() || c == '_') {
            return Err(wrong(
                "a variable's name has letters, digits and '_' and begins with no digit",
            ));
        }
        if OURS.contains(&name.as_str()) || OUR_PREFIXES.iter().any(|prefix| name.starts_with(prefix)) {
            return Err(wrong("the service sets it; choose another name"));
        }
        environment.insert(name, value);
    }
    Ok(environment)
}

fn kind(value: &Value) -> &'static str {
    match value {
        Value::Null => "null",
        Value::Bool(_) => "true or false",
        Value::Number(_) => "a number",
        Value::String(_) => "a text",
        Value::Array(_) => "a list",
        Value::Object(_) => "an object",
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;
    use serde_json::json;

    fn with(field: &str, value: Value) -> Result<JobBody, ApiError> {
        let mut body = json!({"name": "n", "code": "c", "data_dir": "d"});
        body[field] = value;
        JobBody::read(body, 100)
    }

    #[test]
    fn what_is_left_out_has_its_default() {
        let body = with("eval_split", Value::Null).unwrap();
        assert_eq!((body.priority, body.timeout, body.resource_type), (2, None, None));
        assert!(body.environment.is_empty());
    }

    #[test]
    fn an_error_names_the_field() {
        for (field, value) in [
            ("name", json!("")),
            ("name", json!("a\0")),
            ("name", json!(7)),
            ("code", json!(["x"])),
            ("timeout", json!("30")),
            ("timeout", json!(0)),
            ("timeout", json!(-1)),
            ("timeout", json!(101)),
            ("timeout", json!(1e300)),
            ("resource_type", json!("tpu")),
            ("priority", json!(0)),
            ("priority", json!(10)),
            ("priority", json!(1.5)),
            ("priority", json!(true)),
            ("eval_split", json!("test")),
            ("environment", json!([])),
            ("environment", json!({"A": 1})),
            ("environment", json!({"A B": "x"})),
            ("environment", json!({"LD_PRELOAD": "x"})),
            ("environment", json!({"PYTHONPATH": "x"})),
            ("environment", json!({"PATH": "x"})),
            ("environment", json!({"JOB_ID": "x"})),
            ("environment", json!({"A": "x\0"})),
            ("idempotency_key", json!("")),
            ("output_name", json!("")),
            ("output_name", json!("a/b")),
            ("output_name", json!("..")),
            ("output_name", json!("candidate.py")),
            ("output_name", json!("x".repeat(201))),
            ("output_is_folder", json!("yes")),
            ("colour", json!("red")),
        ] {
            let error = format!("{:?}", with(field, value.clone()).unwrap_err());
            assert!(error.contains(&format!("field '{field}")), "{field} {value}: {error}");
        }
    }

    #[test]
    fn what_the_clients_always_send_is_taken_and_replaced() {
        let sent = json!({"DATA_DIR": "/x", "SANDBOX_DATA_DIR": "/x", "EXECUTION_MODE": "shell", "HF_ENDPOINT": "h"});
        let body = with("environment", sent).unwrap();
        assert_eq!(body.environment.into_keys().collect::<Vec<_>>(), ["HF_ENDPOINT"]);
        assert_eq!(
            with("resource_type", json!("GPU")).unwrap().resource_type,
            Some(Class::Gpu)
        );
    }
}
