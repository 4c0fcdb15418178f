//! Chat templates give the texts that transformers gives.

use clade_lm::load;
use clade_lm::text::{ChatOptions, ChatTemplate, Json};
use serde_json::Value;

use crate::support::{fixture, fixture_json, folder, safetensors};

fn template(source: &str) -> clade_lm::Result<Option<ChatTemplate>> {
    let config = r#"{"bos_token": "<s>", "eos_token": {"content": "</s>"}}"#;
    let files: [(&str, &[u8]); 3] = [
        ("model.safetensors", &safetensors(&[])),
        ("tokenizer_config.json", config.as_bytes()),
        ("chat_template.jinja", source.as_bytes()),
    ];
    let folder = folder(r#"{"model_type": "llama"}"#, &files);
    load::open(folder.path()).unwrap().chat_template(None)
}

/// Messages in a JSON text.
pub fn messages(text: &str) -> Vec<Json> {
    serde_json::from_str(text).unwrap()
}

#[test]
fn texts_are_those_of_transformers() {
    let cases = fixture_json("chats.json");
    let cases = cases.as_array().unwrap();
    assert!(cases.len() > 10);
    for case in cases {
        let text = |key: &str| case[key].as_str().unwrap();
        let options = ChatOptions {
            add_generation_prompt: case["prompt"].as_bool().unwrap(),
            tools: case["tools"]
                .as_array()
                .unwrap()
                .iter()
                .map(|tool| Json::parse(tool.as_str().unwrap()).unwrap())
                .collect(),
            variables: case["variables"]
                .as_object()
                .unwrap()
                .iter()
                .map(|(name, value)| (name.clone(), Json::parse(value.as_str().unwrap()).unwrap()))
                .collect(),
        };
        let rendered = template(text("template"))
            .unwrap()
            .unwrap()
            .render(&messages(text("messages")), &options);
        match &case["text"] {
            Value::String(expected) => assert_eq!(&rendered.unwrap(), expected, "{}", text("name")),
            _ => {
                let error = rendered.unwrap_err().to_string();
                assert!(error.contains(text("error")), "{}: {error}", text("name"));
            }
        }
    }
}

#[test]
fn a_template_knows_the_date() {
    let template = template("{{ strftime_now('%Y-%m-%d') }}").unwrap().unwrap();
    let before = chrono::Local::now().format("%Y-%m-%d").to_string();
    let rendered = template.render(&[], &ChatOptions::default()).unwrap();
    let after = chrono::Local::now().format("%Y-%m-%d").to_string();
    assert!(rendered == before || rendered == after, "{rendered}");
}

#[test]
fn a_template_without_an_end_is_stopped() {
    let source = "{% for a in range(100000) %}{% for b in range(100000) %}{% set c = b %}{% endfor %}{% endfor %}";
    let error = template(source)
        .unwrap()
        .unwrap()
        .render(&[], &ChatOptions::default())
        .unwrap_err()
        .to_string();
    assert!(error.contains("fuel"), "{error}");
}

#[test]
fn the_template_of_a_gguf_file() {
    let checkpoint = load::open(&fixture("tokenizers/smollm.gguf")).unwrap();
    assert!(checkpoint.chat_template(None).unwrap().is_none());
    let mut file = crate::support::Gguf::llama();
    file.text(
        "tokenizer.chat_template",
        "{% for message in messages %}{{ message.role }}: {{ message.content }}{% endfor %}",
    );
    file.text("tokenizer.chat_template.tool_use", "tools");
    let folder = tempfile::tempdir().unwrap();
    let checkpoint = load::open(&file.write(folder.path())).unwrap();
    let render = |name: Option<&str>| {
        let template = checkpoint.chat_template(name).unwrap().unwrap();
        template
            .render(&[Json::message("user", "hi")], &ChatOptions::default())
            .unwrap()
    };
    assert_eq!(render(None), "user: hi");
    assert_eq!(render(Some("tool_use")), "tools");
    assert!(checkpoint.chat_template(Some("rag")).is_err());
}
