//! Tokenizer and chat template of a Hugging Face folder.

use std::path::Path;

use serde_json::{Map, Value};

use super::chat::{ChatTemplate, SpecialTokens};
use super::tokenizer::Tokenizer;
use crate::error::Result;
use crate::load::files::{format_error, read_optional_object, read_text};

const CONFIG: &str = "tokenizer_config.json";

/// Reads `tokenizer.json`.
pub(crate) fn tokenizer(folder: &Path) -> Result<Tokenizer> {
    let path = folder.join("tokenizer.json");
    if !path.exists() {
        return Err(format_error(
            &path,
            "is missing; the tokenizer is read from it (a tokenizer of another kind can be saved so by transformers: \
             AutoTokenizer.from_pretrained(…).save_pretrained(…))",
        ));
    }
    let text = read_text(&path)?;
    let mut inner = tokenizers::Tokenizer::from_bytes(text.as_bytes())
        .map_err(|error| format_error(&path, format!("is no tokenizer that is known: {error}")))?;
    // A prompt is never cut or filled up behind the user's back.
    inner.with_padding(None);
    inner
        .with_truncation(None)
        .map_err(|error| format_error(&path, error.to_string()))?;
    let special = special_tokens(folder)?;
    let token = |name: &str, text: Option<&String>| match text {
        Some(text) => inner.token_to_id(text).map(Some).ok_or_else(|| {
            format_error(
                &folder.join(CONFIG),
                format!("says {name} is '{text}', which is no token of tokenizer.json"),
            )
        }),
        None => Ok(None),
    };
    let begin = token("bos_token", special.get("bos_token"))?;
    let end = token("eos_token", special.get("eos_token"))?;
    let model = serde_json::from_str::<Value>(&text)
        .ok()
        .and_then(|json| Some(json.get("model")?.get("type")?.to_string()));
    let kind = format!(
        "tokenizer.json, {}",
        model.as_deref().unwrap_or("of no named model").trim_matches('"')
    );
    Ok(Tokenizer::new(inner, &kind, begin, end))
}

/// Tokens that have a role, by the name of it: written as a text or as an object with a text.
fn special_tokens(folder: &Path) -> Result<SpecialTokens> {
    let mut tokens = SpecialTokens::new();
    for file in ["special_tokens_map.json", CONFIG] {
        let Some(object) = read_optional_object(&folder.join(file))? else {
            continue;
        };
        for (name, value) in object.iter().filter(|(name, _)| name.ends_with("_token")) {
            let text = match value {
                Value::String(text) => Some(text),
                Value::Object(token) => match token.get("content") {
                    Some(Value::String(text)) => Some(text),
                    _ => None,
                },
                _ => None,
            };
            if let Some(text) = text {
                tokens.insert(name.clone(), text.clone());
            }
        }
    }
    Ok(tokens)
}

/// Reads the chat template: a file of its own, or from the tokenizer's configuration.
pub(crate) fn chat_template(folder: &Path, name: Option<&str>) -> Result<Option<ChatTemplate>> {
    let tokens = special_tokens(folder)?;
    let path = match name {
        None | Some("default") => folder.join("chat_template.jinja"),
        Some(name) => {
            // A name is no path.
            if Path::new(name).file_name().is_none_or(|file| file != name) {
                return Err(format_error(folder, format!("has no chat template '{name}'")));
            }
            folder.join("additional_chat_templates").join(format!("{name}.jinja"))
        }
    };
    if path.exists() {
        return ChatTemplate::new(&path.display().to_string(), &read_text(&path)?, tokens).map(Some);
    }
    let config_path = folder.join(CONFIG);
    let config = read_optional_object(&config_path)?.unwrap_or_default();
    match templates(&config_path, &config)? {
        Templates::None if name.is_none() => Ok(None),
        Templates::One(source) if matches!(name, None | Some("default")) => {
            ChatTemplate::new(&config_path.display().to_string(), source, tokens).map(Some)
        }
        Templates::Named(list) => {
            let wanted = name.unwrap_or("default");
            match list.iter().find(|(name, _)| *name == wanted) {
                Some((_, source)) => {
                    ChatTemplate::new(&format!("'{wanted}' of {}", config_path.display()), source, tokens).map(Some)
                }
                None => {
                    let names: Vec<&str> = list.iter().map(|(name, _)| *name).collect();
                    let problem = format!("has no chat template '{wanted}'; it has {}", names.join(", "));
                    Err(format_error(&config_path, problem))
                }
            }
        }
        Templates::None | Templates::One(_) => Err(format_error(
            folder,
            format!("has no chat template '{}'", name.unwrap_or("default")),
        )),
    }
}

/// Templates in a tokenizer's configuration.
enum Templates<'a> {
    None,
    One(&'a str),
    Named(Vec<(&'a str, &'a str)>),
}

fn templates<'a>(path: &Path, config: &'a Map<String, Value>) -> Result<Templates<'a>> {
    let text = |value: &'a Value, key: &str| match value.get(key) {
        Some(Value::String(text)) => Ok(text.as_str()),
        _ => Err(format_error(
            path,
            format!("has in the list 'chat_template' an entry without the text '{key}'"),
        )),
    };
    match config.get("chat_template") {
        None | Some(Value::Null) => Ok(Templates::None),
        Some(Value::String(source)) => Ok(Templates::One(source)),
        Some(Value::Array(list)) => {
            let named = list
                .iter()
                .map(|entry| Ok((text(entry, "name")?, text(entry, "template")?)));
            Ok(Templates::Named(named.collect::<Result<_>>()?))
        }
        Some(_) => Err(format_error(
            path,
            "'chat_template' is neither a text nor a list of named texts",
        )),
    }
}
