//! Token counts of our own against those of the library `tokenizers` (`tokenizer/make.py` writes both).

use std::path::PathBuf;

use clade::model::Tokenizer;
use serde_json::{Value as Json, json};

pub fn file(name: &str) -> PathBuf {
    PathBuf::from(env!("CARGO_MANIFEST_DIR"))
        .join("tests/model/tokenizer")
        .join(name)
}

#[test]
fn tokens_are_counted_as_the_library_counts_them() {
    let rows: Vec<Json> = serde_json::from_str(&std::fs::read_to_string(file("counts.json")).unwrap()).unwrap();
    for kind in ["gpt2", "qwen", "llama", "deepseek"] {
        let tokenizer = Tokenizer::read(&file(&format!("{kind}.json"))).unwrap();
        for row in &rows {
            let text = row["text"].as_str().unwrap();
            assert_eq!(
                tokenizer.count(text),
                row["counts"][kind].as_u64().unwrap(),
                "{kind}: {text:?}"
            );
        }
    }
}

#[test]
fn tokenizers_of_another_kind_are_refused_by_name() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("tokenizer.json");
    let refused = |text: &str| {
        std::fs::write(&path, text).unwrap();
        Tokenizer::read(&path).unwrap_err().to_string()
    };
    let with = |name: &str, part: Json| {
        let mut all = json!({
            "model": {"type": "BPE", "vocab": {"a": 0, "b": 1, "ab": 2}, "merges": ["a b"]},
            "pre_tokenizer": {"type": "ByteLevel", "add_prefix_space": false},
        });
        all[name] = part;
        refused(&all.to_string())
    };
    for (error, said) in [
        (refused("{"), "cannot be read: EOF"),
        (
            with("model", json!({"type": "WordPiece", "vocab": {}})),
            "a WordPiece, not a BPE",
        ),
        (
            with("model", json!({"type": "Unigram", "vocab": [["a", 0.0]]})),
            "cannot be read",
        ),
        (
            with("model", json!({"type": "BPE", "vocab": {"a": 0}, "merges": ["a c"]})),
            "the vocabulary lacks",
        ),
        (
            with(
                "model",
                json!({"type": "BPE", "vocab": {}, "end_of_word_suffix": "</w>"}),
            ),
            "end_of_word_suffix",
        ),
        (
            with("pre_tokenizer", json!({"type": "Metaspace"})),
            "it splits by Metaspace",
        ),
        (with("pre_tokenizer", json!({"type": "Digits"})), "no ByteLevel"),
        (
            with(
                "pre_tokenizer",
                json!({"type": "Split", "pattern": {"Regex": "a(?=b)"}, "behavior": "Isolated"}),
            ),
            "it splits by the pattern a(?=b)",
        ),
    ] {
        assert!(error.contains(said) && error.contains("tokenizer.json"), "{error}");
    }
    assert!(
        Tokenizer::read(&folder.path().join("none.json"))
            .unwrap_err()
            .to_string()
            .contains("none.json")
    );
}
