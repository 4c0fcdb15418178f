//! A template, and rendering it as transformers does.

use std::collections::BTreeMap;
use std::fmt::Write as _;

use minijinja::value::ValueKind;
use minijinja::{Environment, Error, ErrorKind, Value};
use regex::Regex;

use super::json::{Json, Ordered};
use super::python;
use crate::error::{LmError, Result};

/// Special tokens as they are written, by the name of their role.
pub(crate) type SpecialTokens = BTreeMap<String, String>;

/// Steps that a template may take: enough for any conversation, and an end to one that would never have one.
const FUEL: u64 = 10_000_000;

/// Names under which a message may carry reasoning. The first is the one that templates read.
const REASONING: [&str; 3] = ["reasoning_content", "thinking", "reasoning"];

/// A chat template.
#[derive(Debug)]
pub struct ChatTemplate {
    environment: Environment<'static>,
    name: String,
    special: SpecialTokens,
}

/// What a template is told beside the messages.
#[derive(Debug, Clone, Default)]
pub struct ChatOptions {
    /// Whether the text ends with the beginning of an answer.
    pub add_generation_prompt: bool,
    /// Tools, as JSON schemas of functions.
    pub tools: Vec<Json>,
    /// Further variables, as `enable_thinking`.
    pub variables: Vec<(String, Json)>,
}

impl ChatTemplate {
    /// Parses a template. `name` tells where it comes from.
    ///
    /// # Errors
    /// When it is not right.
    pub(crate) fn new(name: &str, source: &str, special: SpecialTokens) -> Result<Self> {
        let mut environment = Environment::new();
        environment.set_trim_blocks(true);
        environment.set_lstrip_blocks(true);
        environment.set_fuel(Some(FUEL));
        environment.set_unknown_method_callback(minijinja_contrib::pycompat::unknown_method_callback);
        environment.set_auto_escape_callback(|_| minijinja::AutoEscape::None);
        environment.set_formatter(|out, _, value| {
            let mut text = String::new();
            python::print(&mut text, value)?;
            out.write_str(&text).map_err(Error::from)
        });
        environment.add_filter("tojson", python::tojson);
        environment.add_function("raise_exception", raise_exception);
        environment.add_function("strftime_now", strftime_now);
        let failed = |problem: String| LmError::Template {
            name: name.to_owned(),
            problem,
        };
        let source = without_generation_tags(source).map_err(|error| failed(error.to_string()))?;
        environment
            .add_template_owned("chat", source)
            .map_err(|error| failed(error.to_string()))?;
        Ok(Self {
            environment,
            name: name.to_owned(),
            special,
        })
    }

    /// The text of a conversation.
    ///
    /// # Errors
    /// When the template refuses the conversation, or fails.
    pub fn render(&self, messages: &[Json], options: &ChatOptions) -> Result<String> {
        let none_if_empty = |values: &[Json]| match values {
            [] => Value::from(()),
            values => values.iter().map(|Json(value)| value.clone()).collect(),
        };
        let mut context: BTreeMap<&str, Value> = BTreeMap::new();
        for (role, token) in &self.special {
            context.insert(role, Value::from(token.as_str()));
        }
        let messages: Vec<Value> = messages.iter().map(|Json(message)| normalized(message)).collect();
        context.insert("messages", Value::from(messages));
        context.insert("tools", none_if_empty(&options.tools));
        context.insert("documents", Value::from(()));
        context.insert("add_generation_prompt", Value::from(options.add_generation_prompt));
        for (name, Json(value)) in &options.variables {
            context.insert(name, value.clone());
        }
        let template = self.environment.get_template("chat");
        template.and_then(|template| template.render(context)).map_err(|error| {
            // What a template says by `raise_exception` is for the user.
            let problem = error.detail().map_or_else(|| error.to_string(), ToOwned::to_owned);
            let line = error.line().map(|line| format!(" (line {line})")).unwrap_or_default();
            LmError::Template {
                name: self.name.clone(),
                problem: format!("{problem}{line}"),
            }
        })
    }
}

/// A message without keys of no value, with its reasoning under the names that templates read.
fn normalized(message: &Value) -> Value {
    let (ValueKind::Map, Ok(keys)) = (message.kind(), message.try_iter()) else {
        return message.clone();
    };
    let mut pairs: Vec<(String, Value)> = Vec::new();
    for key in keys {
        if let (Some(name), Ok(value)) = (key.as_str(), message.get_item(&key))
            && !value.is_none()
        {
            pairs.push((name.to_owned(), value));
        }
    }
    let reasoning = REASONING.iter().find_map(|name| {
        pairs
            .iter()
            .find(|(key, _)| key == name)
            .map(|(_, value)| value.clone())
    });
    if let Some(reasoning) = reasoning {
        if !pairs.iter().any(|(key, _)| key == "thinking") {
            pairs.insert(0, ("thinking".to_owned(), reasoning.clone()));
        }
        pairs.push((REASONING[0].to_owned(), reasoning));
    }
    Ordered::value(pairs)
}

/// Templates mark what an assistant wrote for training; for a text the mark means nothing.
fn without_generation_tags(source: &str) -> std::result::Result<String, regex::Error> {
    let begin = Regex::new(r"\{%([-+]?)\s*generation\s*([-+]?)%\}")?;
    let end = Regex::new(r"\{%([-+]?)\s*endgeneration\s*([-+]?)%\}")?;
    let source = begin.replace_all(source, "{%$1 if true $2%}");
    Ok(end.replace_all(&source, "{%$1 endif $2%}").into_owned())
}

fn raise_exception(message: String) -> std::result::Result<Value, Error> {
    Err(Error::new(ErrorKind::InvalidOperation, message))
}

fn strftime_now(format: &str) -> std::result::Result<String, Error> {
    let mut text = String::new();
    write!(text, "{}", chrono::Local::now().format(format)).map_err(|_| {
        Error::new(
            ErrorKind::InvalidOperation,
            format!("'{format}' is no format of a date"),
        )
    })?;
    Ok(text)
}
