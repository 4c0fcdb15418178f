//! From a prompt to its tokens.

use std::collections::BTreeMap;

use clade_lm_api::messages::{Message, Prompt};
use serde_json::Value;

use crate::error::{LmError, Result};
use crate::text::{ChatOptions, ChatTemplate, Json, Tokenizer};

/// Tokens of a prompt.
pub(super) fn tokens(tokenizer: &Tokenizer, template: Option<&ChatTemplate>, prompt: &Prompt) -> Result<Vec<i64>> {
    let tokens = match prompt {
        // A template writes special tokens itself.
        Prompt::Chat { messages, variables } => tokenizer.encode(&written(template, messages, variables)?, false)?,
        Prompt::Text(text) => tokenizer.encode(text, true)?,
    };
    Ok(tokens.into_iter().map(i64::from).collect())
}

fn written(
    template: Option<&ChatTemplate>,
    messages: &[Message],
    variables: &BTreeMap<String, Value>,
) -> Result<String> {
    let template = template
        .ok_or_else(|| LmError::Request("the model has no chat template, so it can only continue texts".to_owned()))?;
    let messages: Vec<Json> = messages
        .iter()
        .map(|message| Json::message(&message.role, &message.content))
        .collect();
    let options = ChatOptions {
        add_generation_prompt: true,
        variables: variables
            .iter()
            .map(|(name, value)| Ok((name.clone(), Json::parse(&value.to_string())?)))
            .collect::<Result<_>>()?,
        ..ChatOptions::default()
    };
    template.render(&messages, &options)
}
