//! What is wrong with a checkpoint, a configuration or a step is named, and does no harm.

use clade_lm::{LmError, LogitRows, Step, StepSequence, build};
use serde_json::json;
use tch::{Device, Kind};

use crate::support::{Case, Formula, Order, Runner, assert_close};

fn fault(case: &Case) -> String {
    build(&case.config, &case.weights, Kind::Float, Device::Cpu)
        .unwrap_err()
        .to_string()
}

#[test]
fn a_missing_tensor_is_named() {
    for (case, missing) in [
        ("llama_bias", "model.layers.1.mlp.down_proj.bias"),
        ("qwen3", "model.layers.0.self_attn.k_norm.weight"),
        ("qwen3_5_moe", "model.layers.2.linear_attn.dt_bias"),
        ("qwen3_5_moe", "lm_head.weight"),
    ] {
        let mut case = Case::read(case);
        case.weights.tensors.retain(|(name, _)| name != missing);
        assert!(
            fault(&case).contains(&format!("no tensor '{missing}'")),
            "{missing}: {}",
            fault(&case)
        );
    }
    let mut case = Case::read("qwen3_moe");
    case.weights
        .tensors
        .retain(|(name, _)| !name.contains("experts.gate_up_proj"));
    assert!(fault(&case).contains("'model.layers.0.mlp.experts.0.gate_proj.weight', which qwen3_moe needs"));
}

#[test]
fn a_wrong_shape_is_named() {
    let mut case = Case::read("llama_tied");
    case.config.insert("intermediate_size".into(), json!(81));
    let error = fault(&case);
    assert!(
        error.contains("'model.layers.0.mlp.gate_proj.weight' has the shape [80, 48]"),
        "{error}"
    );
    assert!(error.contains("[81, 48]"), "{error}");
}

#[test]
fn what_is_not_known_is_refused_by_name() {
    let change = |case: &str, key: &str, value: serde_json::Value| {
        let mut case = Case::read(case);
        case.config.insert(key.into(), value);
        fault(&case)
    };
    let error = change("llama_tied", "model_type", json!("bloom"));
    assert!(error.contains("'bloom'") && error.contains("qwen3_moe"), "{error}");
    assert!(change("llama_tied", "hidden_act", json!("relu2")).contains("'relu2'"));
    assert!(change("llama_tied", "rope_scaling", json!({"type": "su", "factor": 2.0})).contains("'su'"));
    assert!(
        change("qwen2", "layer_types", json!(["full_attention", "chunked_attention"])).contains("'chunked_attention'")
    );
    assert!(change("qwen2", "layer_types", json!(["full_attention"])).contains("names 1 layers"));
    assert!(change("qwen3_moe", "num_experts_per_tok", json!(9)).contains("more than the 8 experts"));
    assert!(change("qwen3_moe", "vocab_size", json!(-1)).contains("'vocab_size' of the configuration is -1"));
}

#[test]
fn weights_are_replaced_whole_or_not_at_all() {
    for name in ["llama_tied", "qwen3_5_moe"] {
        let case = Case::read(name);
        let mut runner = Runner::new(case.model(), Order::Following);
        let prompt = &case.prompts[1];
        let logits = |runner: &mut Runner| {
            let mut sequence = runner.sequence();
            runner.run(&mut sequence, prompt)
        };
        let other = Formula {
            salt: "other",
            ..case.weights.clone()
        };

        let mut broken = other.clone();
        broken.tensors.retain(|(name, _)| name != "model.norm.weight");
        let error = runner.model.replace_weights(&broken).unwrap_err();
        assert!(matches!(error, LmError::MissingTensor { name, .. } if name == "model.norm.weight"));
        let mut broken = other.clone();
        broken
            .tensors
            .iter_mut()
            .find(|(name, _)| name == "model.norm.weight")
            .unwrap()
            .1 = vec![47];
        assert!(matches!(
            runner.model.replace_weights(&broken).unwrap_err(),
            LmError::Shape { .. }
        ));
        assert_close(&logits(&mut runner), &case.logits[1]);

        runner.model.replace_weights(&other).unwrap();
        let fresh = build(&case.config, &other, Kind::Float, Device::Cpu).unwrap();
        let expected = logits(&mut Runner::new(fresh, Order::Following));
        assert_close(&logits(&mut runner), &expected);
        assert!((expected - &case.logits[1]).abs().max().double_value(&[]) > 0.1);

        runner.model.replace_weights(&case.weights).unwrap();
        assert_close(&logits(&mut runner), &case.logits[1]);
    }
}

#[test]
fn a_step_that_does_not_fit_is_refused() {
    let case = Case::read("qwen3_5");
    let runner = &mut Runner::new(case.model(), Order::Following);
    let refused = |runner: &mut Runner, tokens: &[i64], change: &dyn Fn(&mut StepSequence)| {
        let mut sequence = StepSequence {
            start: 0,
            len: tokens.len(),
            blocks: vec![0],
            state: 0,
            logits: LogitRows::Last,
        };
        change(&mut sequence);
        let step = Step {
            tokens: tokens.to_vec(),
            sequences: vec![sequence],
        };
        match runner.model.forward(&step, runner.cache.as_mut()) {
            Err(LmError::Request(problem)) => problem,
            other => panic!("{other:?}"),
        }
    };
    assert!(refused(runner, &[1, 2], &|sequence| sequence.len = 1).contains("2 tokens, its sequences have 1"));
    assert!(refused(runner, &[], &|_| {}).contains("no new token"));
    assert!(refused(runner, &[96], &|_| {}).contains("token 96"));
    assert!(refused(runner, &[1, 2, 3, 4, 5], &|_| {}).contains("hold fewer"));
    assert!(refused(runner, &[1], &|sequence| sequence.start = 4).contains("hold fewer"));
    assert!(refused(runner, &[1], &|sequence| sequence.start = usize::MAX).contains("hold fewer"));
    assert!(refused(runner, &[1], &|sequence| sequence.blocks = vec![256]).contains("no block 256"));
    assert!(refused(runner, &[1], &|sequence| sequence.state = 16).contains("no state 16"));
    assert!(
        runner
            .cache
            .copy_block(0, 256)
            .unwrap_err()
            .to_string()
            .contains("no block 256")
    );
    assert!(
        runner
            .cache
            .copy_state(16, 0)
            .unwrap_err()
            .to_string()
            .contains("no state 16")
    );

    let other = Case::read("qwen3_5_moe").model();
    let size = runner.cache.size();
    runner.cache = Case::read("llama_tied").model().new_cache(size).unwrap();
    assert!(refused(runner, &[1], &|_| {}).contains("another model"));
    // Models of the same shape share caches.
    runner.cache = other.new_cache(size).unwrap();
    let mut sequence = runner.sequence();
    runner.feed(&mut sequence, &[1, 2, 3]);
}

#[test]
fn an_empty_step_gives_no_rows() {
    let case = Case::read("llama_tied");
    let mut runner = Runner::new(case.model(), Order::Following);
    assert_eq!(runner.step(&mut []).size(), [0, 96]);
    let mut sequence = runner.sequence();
    assert_eq!(
        runner.step(&mut [(&mut sequence, &[1, 2], LogitRows::None)]).size(),
        [0, 96]
    );
    assert_eq!(
        runner.step(&mut [(&mut sequence, &[3], LogitRows::Last)]).size(),
        [1, 96]
    );
}

#[test]
fn sizes_are_told() {
    let case = Case::read("qwen3_5_moe");
    let model = case.model();
    let spec = model.spec();
    assert_eq!(spec.model_type, "qwen3_5_moe_text");
    assert_eq!((spec.vocab_size, spec.max_positions), (96, 256));
    // Two layers of keys and values, two heads of 16 each.
    assert_eq!(spec.kv_bytes_per_token, 2 * 2 * 2 * 16 * 4);
    // Two layers of 3 inputs of 80 channels, and of 4 heads of 8 x 12.
    assert_eq!(spec.state_bytes_per_sequence, 2 * (3 * 80 + 4 * 8 * 12) * 4);
    let numbers = case
        .weights
        .tensors
        .iter()
        .map(|(_, shape)| shape.iter().product::<i64>() as u64)
        .sum::<u64>();
    assert_eq!(spec.parameters, numbers);
}
