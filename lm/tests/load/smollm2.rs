//! The real small model.

use std::collections::BTreeMap;

use clade_lm::local::LocalModel;
use clade_lm::text::ChatOptions;
use clade_lm::{Completion, Weights, load};
use clade_lm_api::messages::{Generate, Load, Message, Prompt, Sampling};
use serde_json::Value;
use tch::{Device, Kind, Tensor};

use crate::chats::messages;
use crate::pull::smollm2;
use crate::support::fixture_json;
use crate::tokenizers::same;

#[test]
fn tensors_are_those_that_transformers_reads() {
    let Some(path) = smollm2() else { return };
    let checkpoint = load::open(&path).unwrap();
    let reference = fixture_json("smollm2.json");
    let tensors = reference["tensors"].as_object().unwrap();
    assert_eq!(checkpoint.weights().tensors().len(), tensors.len());
    for (name, expected) in tensors {
        let tensor = checkpoint.weights().get(name, Kind::Float, Device::Cpu).unwrap();
        assert_eq!(
            serde_json::to_value(tensor.size()).unwrap(),
            expected["shape"],
            "{name}"
        );
        let first: Vec<f32> = serde_json::from_value(expected["first"].clone()).unwrap();
        assert_eq!(
            Vec::<f32>::try_from(tensor.flatten(0, -1).narrow(0, 0, 4)).unwrap(),
            first,
            "{name}"
        );
        let wide = tensor.to_kind(Kind::Double);
        let near = |found: Tensor, expected: &Value| {
            let (found, expected) = (found.double_value(&[]), expected.as_f64().unwrap());
            assert!(
                (found - expected).abs() <= 1e-9 * (1.0 + expected.abs()),
                "{name}: {found}, {expected}"
            );
        };
        near((&wide * &wide).sum(Kind::Double), &expected["squares"]);
        near(wide.sum(Kind::Double), &expected["sum"]);
    }
}

#[test]
fn tokens_and_chats_are_the_models() {
    let Some(path) = smollm2() else { return };
    let checkpoint = load::open(&path).unwrap();
    let reference = fixture_json("smollm2.json");
    let tokenizer = checkpoint.tokenizer().unwrap();
    let texts: Vec<String> = serde_json::from_value(reference["texts"].clone()).unwrap();
    same(&tokenizer, &texts, &reference["expected"]);
    assert_eq!(checkpoint.stop_tokens(&tokenizer).unwrap(), [2]);

    let template = checkpoint.chat_template(None).unwrap().unwrap();
    let options = ChatOptions {
        add_generation_prompt: true,
        ..ChatOptions::default()
    };
    let text = template
        .render(&messages(reference["messages"].as_str().unwrap()), &options)
        .unwrap();
    assert_eq!(text, reference["chat"].as_str().unwrap());
}

#[test]
fn facts_are_the_models() {
    let Some(path) = smollm2() else { return };
    let info = load::open(&path).unwrap().info();
    assert_eq!((info.model_type.as_str(), info.parameters), ("llama", 134_515_008));
    assert_eq!(
        (info.layers, info.hidden_size, info.context, info.vocabulary),
        (Some(30), Some(576), Some(8192), Some(49152))
    );
    let formats: Vec<&str> = info.dtypes.iter().map(|format| format.dtype.as_str()).collect();
    assert_eq!(formats, ["Q4_1", "Q8_0", "F32"]);
    assert!(info.chat_template && info.tokenizer_fault.is_none());
    assert!(
        info.to_string()
            .contains("memory        513.1 MiB in float32, 256.6 MiB in bfloat16"),
        "{info}"
    );
}

/// Begins one greedy answer to a prompt.
fn asked(model: &LocalModel, prompt: &Prompt) -> clade_lm::Generation {
    let request = Generate {
        model: 0,
        prompt: prompt.clone(),
        samples: 1,
        max_tokens: Some(64),
        sampling: Sampling::greedy(),
        stop: Vec::new(),
        logprobs: None,
        priority: 0,
    };
    model.generate(&request).unwrap().0
}

#[test]
fn greedy_answers_are_those_of_transformers() {
    let Some(path) = smollm2() else { return };
    let request = Load {
        path,
        device: "cpu".to_owned(),
        dtype: "float32".to_owned(),
        cache_bytes: Some(256 << 20),
        context_tokens: None,
        threads: None,
    };
    let model = LocalModel::load(&request, |_| {}).unwrap();
    let cases = fixture_json("smollm2_greedy.json");
    let cases = cases.as_array().unwrap();
    assert_eq!(cases.len(), 10);
    let prompts: Vec<Prompt> = cases
        .iter()
        .map(|case| {
            let text = case["prompt"].as_str().unwrap().to_owned();
            if case["chat"].as_bool().unwrap() {
                let message = Message {
                    role: "user".to_owned(),
                    content: text,
                };
                Prompt::Chat {
                    messages: vec![message],
                    variables: BTreeMap::new(),
                }
            } else {
                Prompt::Text(text)
            }
        })
        .collect();
    // All at once: what runs beside an answer changes nothing in it.
    let generations: Vec<_> = prompts.iter().map(|prompt| asked(&model, prompt)).collect();
    for ((case, prompt), generation) in cases.iter().zip(&prompts).zip(generations) {
        let numbers = |key: &str| serde_json::from_value::<Vec<i64>>(case[key].clone()).unwrap();
        assert_eq!(model.tokens(prompt).unwrap(), numbers("tokens"), "{prompt:?}");
        let expected = numbers("continuation");
        assert_eq!(expected.len(), 64);
        let Completion { tokens, text, .. } = generation.wait().remove(0);
        let apart = expected
            .iter()
            .zip(&tokens)
            .position(|(expected, token)| expected != token);
        assert_eq!(
            tokens,
            expected,
            "{prompt:?}: apart at {apart:?}, where the reference is ahead by {:?}",
            apart.map(|place| &case["gaps"][place])
        );
        assert_eq!(text, case["text"].as_str().unwrap());
    }
}
