//! Tokenizers give the tokens that the tokenizers of Hugging Face give.

use clade_lm::load;
use clade_lm::text::{Detokenizer, Tokenizer};
use serde_json::Value;

use crate::support::{fixture, fixture_json};

fn texts(value: &Value) -> Vec<String> {
    serde_json::from_value(value.clone()).unwrap()
}

/// Checks tokens and decoded texts against the reference.
pub fn same(tokenizer: &Tokenizer, all: &[String], expected: &Value) {
    let tokens: Vec<Vec<u32>> = serde_json::from_value(expected["tokens"].clone()).unwrap();
    let with_special = texts(&expected["with_special"]);
    let without_special = texts(&expected["without_special"]);
    assert!(all.len() == tokens.len() && !all.is_empty());
    for (index, text) in all.iter().enumerate() {
        assert_eq!(tokenizer.encode(text, false).unwrap(), tokens[index], "{text:?}");
        assert_eq!(
            tokenizer.decode(&tokens[index], true).unwrap(),
            with_special[index],
            "{text:?}"
        );
        assert_eq!(
            tokenizer.decode(&tokens[index], false).unwrap(),
            without_special[index],
            "{text:?}"
        );
    }
}

fn gguf(name: &str) -> Tokenizer {
    load::open(&fixture("tokenizers").join(format!("{name}.gguf")))
        .unwrap()
        .tokenizer()
        .unwrap()
}

fn gguf_is_same(name: &str) {
    let reference = fixture_json("tokenizers/expected.json");
    same(&gguf(name), &texts(&reference["texts"]), &reference[name]);
}

#[test]
fn split_as_gpt_2() {
    gguf_is_same("gpt-2");
}

#[test]
fn split_as_smollm() {
    gguf_is_same("smollm");
}

#[test]
fn split_as_llama_3() {
    gguf_is_same("llama-bpe");
}

#[test]
fn split_as_qwen2() {
    gguf_is_same("qwen2");
}

#[test]
fn split_as_qwen3_5() {
    gguf_is_same("qwen35");
}

#[test]
fn sentencepiece() {
    gguf_is_same("llama");
}

#[test]
fn tokenizer_json() {
    let folder = tempfile::tempdir().unwrap();
    let copy = |from: &str, to: &str| std::fs::copy(fixture(from), folder.path().join(to)).unwrap();
    copy("llama/hf/config.json", "config.json");
    copy("llama/hf/model.safetensors", "model.safetensors");
    copy("tokenizers/tokenizer.json", "tokenizer.json");
    let configured = r#"{"eos_token": {"content": "<|im_end|>", "special": true}, "bos_token": null}"#;
    std::fs::write(folder.path().join("tokenizer_config.json"), configured).unwrap();
    std::fs::write(
        folder.path().join("generation_config.json"),
        r#"{"eos_token_id": [2, 0], "top_k": 20}"#,
    )
    .unwrap();
    let checkpoint = load::open(folder.path()).unwrap();
    let tokenizer = checkpoint.tokenizer().unwrap();
    let reference = fixture_json("tokenizers/expected.json");
    same(&tokenizer, &texts(&reference["texts"]), &reference["qwen2"]);
    assert_eq!(tokenizer.kind(), "tokenizer.json, BPE");
    assert_eq!(
        (tokenizer.begin_token(), tokenizer.end_token()),
        (None, tokenizer.token("<|im_end|>"))
    );
    assert_eq!(checkpoint.stop_tokens(&tokenizer).unwrap(), [2, 0]);
    assert_eq!(checkpoint.generation_config()["top_k"], 20);

    std::fs::write(
        folder.path().join("tokenizer_config.json"),
        r#"{"eos_token": "<none>"}"#,
    )
    .unwrap();
    let error = load::open(folder.path()).unwrap().tokenizer().unwrap_err().to_string();
    assert!(
        error.contains("says eos_token is '<none>', which is no token"),
        "{error}"
    );
}

#[test]
fn tokens_around_a_text() {
    let sentencepiece = gguf("llama");
    let bare = sentencepiece.encode("Hello", false).unwrap();
    let complete = sentencepiece.encode("Hello", true).unwrap();
    assert_eq!(complete[0], sentencepiece.begin_token().unwrap());
    assert_eq!(complete[1..], bare);
    let smollm = gguf("smollm");
    assert_eq!(
        smollm.encode("Hello", true).unwrap(),
        smollm.encode("Hello", false).unwrap()
    );
    assert!(smollm.is_special(smollm.token("<|im_end|>").unwrap()));
    assert!(!smollm.is_special(smollm.encode("a", false).unwrap()[0]));
    assert_eq!(
        smollm.written(smollm.end_token().unwrap()).as_deref(),
        Some("<|im_end|>")
    );
}

#[test]
fn a_stream_of_tokens_never_shows_a_part_of_a_character() {
    let reference = fixture_json("tokenizers/expected.json");
    for name in ["gpt-2", "qwen2", "llama"] {
        let tokenizer = gguf(name);
        for text in texts(&reference["texts"]) {
            let tokens = tokenizer.encode(&text, false).unwrap();
            let whole = tokenizer.decode(&tokens, true).unwrap();
            let mut stream = Detokenizer::new(&tokenizer, &[], true);
            let mut shown = String::new();
            for token in &tokens {
                let part = stream.push(*token).unwrap();
                assert!(!part.contains('\u{FFFD}'), "{name}: {part:?} of {text:?}");
                shown.push_str(&part);
                assert!(whole.starts_with(&shown), "{name}: {shown:?} of {whole:?}");
            }
            shown.push_str(&stream.finish().unwrap());
            assert_eq!(shown, whole, "{name}");
            assert_eq!(stream.finish().unwrap(), "");
        }
    }
}

#[test]
fn a_stream_continues_its_prompt() {
    let tokenizer = gguf("llama");
    let tokens = tokenizer
        .encode("one two three four five six seven eight nine", false)
        .unwrap();
    let whole = tokenizer.decode(&tokens, true).unwrap();
    for cut in 1..tokens.len() {
        let (prompt, answer) = tokens.split_at(cut);
        let mut stream = Detokenizer::new(&tokenizer, prompt, true);
        let mut shown: String = answer.iter().map(|token| stream.push(*token).unwrap()).collect();
        shown.push_str(&stream.finish().unwrap());
        assert_eq!(format!("{}{shown}", tokenizer.decode(prompt, true).unwrap()), whole);
    }
}

#[test]
fn bytes_that_are_no_character_are_shown_at_the_end() {
    let tokenizer = gguf("gpt-2");
    let emoji = tokenizer.encode("\u{1F937}", false).unwrap();
    assert!(emoji.len() > 1);
    let mut stream = Detokenizer::new(&tokenizer, &[], true);
    assert_eq!(stream.push(emoji[0]).unwrap(), "");
    assert_eq!(stream.finish().unwrap(), "\u{FFFD}");
}
