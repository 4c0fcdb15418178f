//! Tokenizer and chat template of a GGUF file, from its metadata.

mod byte_level;
mod sentencepiece;
mod splits;

use tokenizers::AddedToken;
use tokenizers::models::ModelWrapper;
use tokenizers::processors::template::TemplateProcessing;

use super::chat::{ChatTemplate, SpecialTokens};
use super::tokenizer::Tokenizer;
use crate::error::{LmError, Result};
use crate::load::GgufMetadata;

/// Kinds of tokens, as files number them.
const CONTROL: i32 = 3;
const USER_DEFINED: i32 = 4;

/// The vocabulary of a file.
struct Vocabulary {
    tokens: Vec<String>,
    kinds: Vec<i32>,
    unknown: Option<u32>,
}

/// Builds the tokenizer that the metadata describe.
pub(crate) fn tokenizer(metadata: &GgufMetadata) -> Result<Tokenizer> {
    if !metadata.has("tokenizer.ggml.model") {
        return Err(metadata.fault("has no tokenizer (the key 'tokenizer.ggml.model' is missing)"));
    }
    let model: String = metadata.required("tokenizer.ggml.model")?;
    let vocabulary = vocabulary(metadata)?;
    let size = vocabulary.tokens.len();
    let special = |key: &str| match metadata.optional::<u32>(&format!("tokenizer.ggml.{key}_token_id"))? {
        Some(token) if token as usize >= size => Err(metadata.fault(format!(
            "'tokenizer.ggml.{key}_token_id' is {token}, there are {size} tokens"
        ))),
        token => Ok(token),
    };
    let (begin, end) = (special("bos")?, special("eos")?);
    let (mut inner, kind) = match model.as_str() {
        "gpt2" => {
            let split: String = metadata
                .optional("tokenizer.ggml.pre")?
                .unwrap_or_else(|| "default".to_owned());
            (
                byte_level::build(metadata, &vocabulary, &split)?,
                format!("GGUF, byte-level BPE, split as '{split}'"),
            )
        }
        "llama" => (
            sentencepiece::build(metadata, &vocabulary)?,
            "GGUF, SentencePiece BPE".to_owned(),
        ),
        other => {
            return Err(LmError::Unsupported(format!(
                "{}: the tokenizer '{other}' is not known; known in GGUF files are gpt2 and llama",
                metadata.path().display()
            )));
        }
    };
    add_whole_tokens(metadata, &vocabulary, &mut inner)?;
    // Files of SentencePiece models from before the key was there expect the token.
    let add_begin = metadata
        .optional("tokenizer.ggml.add_bos_token")?
        .unwrap_or(model == "llama");
    let add_end = metadata.optional("tokenizer.ggml.add_eos_token")?.unwrap_or(false);
    surround(
        metadata,
        &mut inner,
        begin.filter(|_| add_begin),
        end.filter(|_| add_end),
    )?;
    Ok(Tokenizer::new(inner, &kind, begin, end))
}

fn vocabulary(metadata: &GgufMetadata) -> Result<Vocabulary> {
    let tokens: Vec<String> = metadata.required("tokenizer.ggml.tokens")?;
    let kinds: Vec<i32> = metadata.optional("tokenizer.ggml.token_type")?.unwrap_or_default();
    if !kinds.is_empty() && kinds.len() != tokens.len() {
        let problem = format!(
            "'tokenizer.ggml.token_type' has {} entries for {} tokens",
            kinds.len(),
            tokens.len()
        );
        return Err(metadata.fault(problem));
    }
    let unknown = metadata.optional::<u32>("tokenizer.ggml.unknown_token_id")?;
    Ok(Vocabulary { tokens, kinds, unknown })
}

/// Control tokens and those that a user defined are found whole in a text.
fn add_whole_tokens(metadata: &GgufMetadata, vocabulary: &Vocabulary, inner: &mut tokenizers::Tokenizer) -> Result<()> {
    let of_kind = |wanted: i32| {
        let tokens = vocabulary
            .tokens
            .iter()
            .zip(&vocabulary.kinds)
            .filter(move |(_, kind)| **kind == wanted);
        tokens.map(move |(token, _)| AddedToken::from(token.clone(), wanted == CONTROL).normalized(false))
    };
    let failed = |error: tokenizers::Error| metadata.fault(format!("has tokens that cannot be added: {error}"));
    inner.add_special_tokens(of_kind(CONTROL)).map_err(failed)?;
    inner.add_tokens(of_kind(USER_DEFINED)).map_err(failed)?;
    Ok(())
}

/// Tokens that are put before and after a text.
fn surround(
    metadata: &GgufMetadata,
    inner: &mut tokenizers::Tokenizer,
    begin: Option<u32>,
    end: Option<u32>,
) -> Result<()> {
    let around = [begin.map(|token| ("begin", token)), end.map(|token| ("end", token))];
    let parts = match (begin, end) {
        (None, None) => return Ok(()),
        (Some(_), None) => "begin:0 $A:0",
        (None, Some(_)) => "$A:0 end:0",
        (Some(_), Some(_)) => "begin:0 $A:0 end:0",
    };
    let failed = |error: String| metadata.fault(format!("has tokens around texts that cannot be used: {error}"));
    let template = TemplateProcessing::builder()
        .try_single(parts)
        .map_err(|error| failed(error.to_string()))?
        .special_tokens(around.into_iter().flatten().collect::<Vec<_>>())
        .build()
        .map_err(|error| failed(error.to_string()))?;
    inner.with_post_processor(Some(template));
    Ok(())
}

/// The chat template, or a named one.
pub(crate) fn chat_template(metadata: &GgufMetadata, name: Option<&str>) -> Result<Option<ChatTemplate>> {
    let key = match name {
        None | Some("default") => "tokenizer.chat_template".to_owned(),
        Some(name) => format!("tokenizer.chat_template.{name}"),
    };
    let Some(source) = metadata.optional::<String>(&key)? else {
        return match name {
            None => Ok(None),
            Some(name) => Err(metadata.fault(format!("has no chat template '{name}'"))),
        };
    };
    let mut tokens = SpecialTokens::new();
    if metadata.has("tokenizer.ggml.tokens") {
        let written: Vec<String> = metadata.required("tokenizer.ggml.tokens")?;
        for (key, name) in [
            ("bos", "bos_token"),
            ("eos", "eos_token"),
            ("unknown", "unk_token"),
            ("padding", "pad_token"),
        ] {
            let token = metadata.optional::<u32>(&format!("tokenizer.ggml.{key}_token_id"))?;
            if let Some(text) = token.and_then(|token| written.get(token as usize)) {
                tokens.insert(name.to_owned(), text.clone());
            }
        }
    }
    ChatTemplate::new(&format!("of {}", metadata.path().display()), &source, tokens).map(Some)
}

/// A model of merges, from pairs.
fn model(
    metadata: &GgufMetadata,
    builder: tokenizers::models::bpe::BpeBuilder,
    tokens: impl Iterator<Item = (String, u32)>,
    merges: Vec<(String, String)>,
) -> Result<ModelWrapper> {
    let vocabulary: tokenizers::models::bpe::Vocab = tokens.collect();
    builder
        .vocab_and_merges(vocabulary, merges)
        .build()
        .map(ModelWrapper::BPE)
        .map_err(|error| metadata.fault(format!("has merges that do not fit its tokens: {error}")))
}
