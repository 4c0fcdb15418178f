//! Tensors and configurations.

use clade_lm::load::{self, Checkpoint, Format};
use clade_lm::{Dtype, Weights};
use serde_json::{Value, json};
use tch::{Device, Kind, Tensor};

use crate::support::{Gguf, fixture, floats, folder, safetensors};

fn get(checkpoint: &Checkpoint, name: &str) -> Tensor {
    checkpoint.weights().get(name, Kind::Float, Device::Cpu).unwrap()
}

fn values(tensor: &Tensor) -> Vec<f32> {
    Vec::try_from(tensor.flatten(0, -1)).unwrap()
}

/// A GGUF file gives the tensors and the configuration that transformers makes of it.
fn same_as_transformers(architecture: &str, keys: &[&str]) {
    let gguf = load::open(&fixture(architecture).join("model.gguf")).unwrap();
    let reference = load::open(&fixture(architecture).join("hf")).unwrap();
    assert_eq!((gguf.format(), reference.format()), (Format::Gguf, Format::HuggingFace));

    let names = |checkpoint: &Checkpoint| -> Vec<_> {
        checkpoint
            .weights()
            .tensors()
            .into_iter()
            .map(|tensor| (tensor.name, tensor.shape))
            .collect()
    };
    assert_eq!(names(&gguf), names(&reference));
    for (name, shape) in names(&gguf) {
        let (ours, theirs) = (get(&gguf, &name), get(&reference, &name));
        assert_eq!(ours.size(), shape, "{name}");
        assert_eq!(values(&ours), values(&theirs), "{name}");
    }
    assert_eq!(gguf.weights().unused(), Vec::<String>::new());

    let common = [
        "model_type",
        "hidden_size",
        "num_hidden_layers",
        "num_attention_heads",
        "num_key_value_heads",
    ];
    let more = [
        "max_position_embeddings",
        "rms_norm_eps",
        "vocab_size",
        "tie_word_embeddings",
    ];
    for key in common.iter().chain(&more).chain(keys) {
        assert_eq!(gguf.config().get(*key), reference.config().get(*key), "{key}");
    }
}

fn theta(checkpoint: &Checkpoint) -> f64 {
    checkpoint.config()["rope_theta"].as_f64().unwrap()
}

#[test]
fn llama() {
    same_as_transformers("llama", &["intermediate_size", "head_dim"]);
    assert_eq!(theta(&load::open(&fixture("llama")).unwrap()), 50_000.0);
}

#[test]
fn qwen2() {
    same_as_transformers("qwen2", &["intermediate_size"]);
}

#[test]
fn qwen3() {
    same_as_transformers("qwen3", &["intermediate_size", "head_dim"]);
}

#[test]
fn qwen3_moe() {
    let keys = [
        "head_dim",
        "num_experts_per_tok",
        "norm_topk_prob",
        "moe_intermediate_size",
    ];
    same_as_transformers("qwen3moe", &keys);
    // Published configurations name it so, transformers saves it under another name.
    let checkpoint = load::open(&fixture("qwen3moe")).unwrap();
    assert_eq!(checkpoint.config()["num_experts"], json!(4));
}

#[test]
fn qwen3_5_moe() {
    let keys = [
        "head_dim",
        "num_experts",
        "num_experts_per_tok",
        "moe_intermediate_size",
        "shared_expert_intermediate_size",
        "layer_types",
        "linear_conv_kernel_dim",
        "linear_key_head_dim",
        "linear_num_key_heads",
        "linear_num_value_heads",
        "linear_value_head_dim",
        "rope_parameters",
    ];
    same_as_transformers("qwen35moe", &keys);
    let checkpoint = load::open(&fixture("qwen35moe")).unwrap();
    let ignored = checkpoint.weights().ignored();
    assert!(
        !ignored.is_empty() && ignored.iter().all(|name| name.starts_with("blk.4.")),
        "{ignored:?}"
    );
}

#[test]
fn formats_of_blocks() {
    let types = [
        ("F16", 1),
        ("BF16", 30),
        ("Q4_0", 2),
        ("Q4_1", 3),
        ("Q5_0", 6),
        ("Q5_1", 7),
        ("Q8_0", 8),
        ("Q2_K", 10),
        ("Q3_K", 11),
        ("Q4_K", 12),
        ("Q5_K", 13),
        ("Q6_K", 14),
    ];
    let reference = Tensor::read_safetensors(fixture("dequantization.safetensors")).unwrap();
    let of = |name: &str| &reference.iter().find(|(other, _)| other == name).unwrap().1;
    let mut file = Gguf::llama();
    for (name, code) in types {
        let blocks = Vec::<u8>::try_from(of(&format!("{name}.blocks")).flatten(0, -1)).unwrap();
        let shape: Vec<u64> = of(&format!("{name}.values"))
            .size()
            .iter()
            .map(|size| *size as u64)
            .collect();
        file.tensor(name, &shape, code, &blocks);
    }
    let folder = tempfile::tempdir().unwrap();
    let checkpoint = load::open(&file.write(folder.path())).unwrap();
    for (name, _) in types {
        let expected = of(&format!("{name}.values"));
        assert_eq!(values(&get(&checkpoint, name)), values(expected), "{name}");
        let half = checkpoint.weights().get(name, Kind::BFloat16, Device::Cpu).unwrap();
        assert_eq!(half, expected.to_kind(Kind::BFloat16), "{name}");
    }
}

#[test]
fn gate_and_up_in_one_stack_are_two_matrices_of_each_expert() {
    let mut file = Gguf::llama();
    let values: Vec<f32> = (0_u8..24).map(f32::from).collect();
    file.tensor("blk.0.ffn_gate_up_exps.weight", &[3, 4, 2], 0, &floats(&values));
    let folder = tempfile::tempdir().unwrap();
    let checkpoint = load::open(&file.write(folder.path())).unwrap();
    let of = |expert: u8, projection: &str| {
        let tensor = get(
            &checkpoint,
            &format!("model.layers.0.mlp.experts.{expert}.{projection}_proj.weight"),
        );
        assert_eq!(tensor.size(), [2, 2]);
        self::values(&tensor)
    };
    assert_eq!(of(0, "gate"), [0.0, 1.0, 2.0, 3.0]);
    assert_eq!(of(2, "gate"), [16.0, 17.0, 18.0, 19.0]);
    assert_eq!(of(2, "up"), [20.0, 21.0, 22.0, 23.0]);

    file.tensor("blk.0.ffn_down_exps.weight", &[4], 0, &floats(&values[..4]));
    let error = load::open(&file.write(folder.path())).unwrap_err().to_string();
    assert!(
        error.contains("'blk.0.ffn_down_exps.weight' with the shape [4], which is no stack"),
        "{error}"
    );
}

#[test]
fn tensors_that_a_file_has_beyond_the_known_are_told() {
    let mut file = Gguf::llama();
    file.tensor("blk.0.new_thing.weight", &[1, 4], 0, &floats(&[0.0; 4]));
    let folder = tempfile::tempdir().unwrap();
    let checkpoint = load::open(&file.write(folder.path())).unwrap();
    assert_eq!(get(&checkpoint, "model.embed_tokens.weight").size(), [2, 4]);
    assert_eq!(checkpoint.weights().unused(), ["blk.0.new_thing.weight"]);
}

#[test]
fn scaled_rotary_positions() {
    let folder = tempfile::tempdir().unwrap();
    let scaling = |file: &Gguf| {
        load::open(&file.write(folder.path())).map(|checkpoint| checkpoint.config()["rope_scaling"].clone())
    };

    let mut file = Gguf::llama();
    file.text("llama.rope.scaling.type", "yarn");
    file.float("llama.rope.scaling.factor", 4.0);
    file.int("llama.rope.scaling.original_context_length", 32_768);
    let yarn = json!({ "rope_type": "yarn", "factor": 4.0, "original_max_position_embeddings": 32_768 });
    assert_eq!(scaling(&file).unwrap(), yarn);
    file.text("llama.rope.scaling.type", "longrope");
    assert!(
        scaling(&file)
            .unwrap_err()
            .to_string()
            .contains("'longrope' is not supported")
    );

    // Llama 3: the first frequencies as they are, the last by the whole factor, a blend between.
    let mut file = Gguf::llama();
    file.float("llama.rope.freq_base", 500_000.0);
    file.int("llama.rope.dimension_count", 64);
    let factors: Vec<f32> = (0..32)
        .map(|pair| {
            let wavelength = std::f64::consts::TAU * 500_000_f64.powf(f64::from(pair) / 32.0);
            let smooth = ((8192.0 / wavelength - 1.0) / 3.0).clamp(0.0, 1.0);
            (1.0 / ((1.0 - smooth) / 32.0 + smooth)) as f32
        })
        .collect();
    let mut other = file.clone();
    file.tensor("rope_freqs.weight", &[32], 0, &floats(&factors));
    let rule = scaling(&file).unwrap();
    assert_eq!((&rule["rope_type"], &rule["factor"]), (&json!("llama3"), &json!(32.0)));
    other.tensor("rope_freqs.weight", &[32], 0, &floats(&[3.0; 32]));
    assert!(
        scaling(&other)
            .unwrap_err()
            .to_string()
            .contains("not those of Llama 3")
    );
}

const CONFIG: &str = r#"{"model_type": "llama"}"#;

#[test]
fn shards_are_one_set_of_tensors() {
    let index = r#"{"weight_map": {"model.a": "one.safetensors", "model.b": "two.safetensors"}}"#;
    let one = safetensors(&[("model.a", "F32", &[2], &floats(&[1.0, 2.0]))]);
    let two = safetensors(&[("model.b", "BF16", &[1, 2], &[0x80, 0x3f, 0x00, 0xc0])]);
    let files: [(&str, &[u8]); 3] = [
        ("model.safetensors.index.json", index.as_bytes()),
        ("one.safetensors", &one),
        ("two.safetensors", &two),
    ];
    let folder = folder(CONFIG, &files);
    let checkpoint = load::open(folder.path()).unwrap();
    assert_eq!(values(&get(&checkpoint, "model.a")), [1.0, 2.0]);
    assert_eq!(values(&get(&checkpoint, "model.b")), [1.0, -2.0]);
    let tensors = checkpoint.weights().tensors();
    assert_eq!((tensors[1].name.as_str(), tensors[1].dtype), ("model.b", Dtype::Bf16));
}

#[test]
fn parts_of_a_multimodal_model() {
    let one = floats(&[1.0]);
    let names = [
        "model.language_model.norm.weight",
        "model.visual.patch.weight",
        "mtp.norm.weight",
        "lm_head.weight",
    ];
    let tensors: Vec<(&str, &str, &[usize], &[u8])> = names
        .iter()
        .map(|name| (*name, "F32", [1_usize].as_slice(), one.as_slice()))
        .collect();
    let folder = folder(CONFIG, &[("model.safetensors", &safetensors(&tensors))]);
    let checkpoint = load::open(folder.path()).unwrap();
    let names: Vec<String> = checkpoint
        .weights()
        .tensors()
        .into_iter()
        .map(|tensor| tensor.name)
        .collect();
    assert_eq!(names, ["lm_head.weight", "model.norm.weight"]);
    assert_eq!(
        checkpoint.weights().ignored(),
        ["model.visual.patch.weight", "mtp.norm.weight"]
    );
    assert_eq!(checkpoint.info().ignored, 2);
}

#[test]
fn eight_bit_weights_are_multiplied_by_the_scales_of_their_blocks() {
    // Blocks of 2 x 3 in a matrix of 3 x 4: the last ones are cut. 0x38 is 1, 0xC4 is -3.
    let weight: Vec<u8> = (0..12).map(|index| if index % 2 == 0 { 0x38 } else { 0xC4 }).collect();
    let scales = floats(&[1.0, 10.0, 100.0, 1000.0]);
    let tensors: [(&str, &str, &[usize], &[u8]); 3] = [
        ("model.w.weight", "F8_E4M3", &[3, 4], &weight),
        ("model.w.weight_scale_inv", "F32", &[2, 2], &scales),
        ("model.norm.weight", "F32", &[4], &scales),
    ];
    let config =
        r#"{"model_type": "qwen3", "quantization_config": {"quant_method": "fp8", "weight_block_size": [2, 3]}}"#;
    let with = |tensors: &[(&str, &str, &[usize], &[u8])], config: &str| {
        let folder = folder(config, &[("model.safetensors", &safetensors(tensors))]);
        load::open(folder.path())
    };
    let checkpoint = with(&tensors, config).unwrap();
    let expected = [
        1.0, -3.0, 1.0, -30.0, 1.0, -3.0, 1.0, -30.0, 100.0, -300.0, 100.0, -3000.0,
    ];
    assert_eq!(values(&get(&checkpoint, "model.w.weight")), expected);
    assert_eq!(
        values(&get(&checkpoint, "model.norm.weight")),
        [1.0, 10.0, 100.0, 1000.0]
    );
    let names: Vec<String> = checkpoint
        .weights()
        .tensors()
        .into_iter()
        .map(|tensor| tensor.name)
        .collect();
    assert_eq!(names, ["model.norm.weight", "model.w.weight"]);

    let fault = |result: clade_lm::Result<Checkpoint>| result.unwrap_err().to_string();
    assert!(fault(with(&tensors[..1], config)).contains("without its scales 'model.w.weight_scale_inv'"));
    assert!(fault(with(&tensors, CONFIG)).contains("has no 'quantization_config'"));
    let gptq = config.replace("fp8", "gptq");
    assert!(fault(with(&tensors, &gptq)).contains("by the method 'gptq', which is not read"));
}

#[test]
fn a_folder_with_one_gguf_file_is_that_file() {
    let folder = tempfile::tempdir().unwrap();
    Gguf::llama().write(folder.path());
    assert_eq!(load::open(folder.path()).unwrap().format(), Format::Gguf);
    std::fs::write(folder.path().join("other.gguf"), "").unwrap();
    let error = load::open(folder.path()).unwrap_err().to_string();
    assert!(error.contains("name one of model.gguf, other.gguf"), "{error}");
}

#[test]
fn what_a_user_is_told_of_a_model() {
    let info = load::open(&fixture("llama").join("model.gguf")).unwrap().info();
    assert_eq!(
        (info.layers, info.heads, info.key_value_heads),
        (Some(2), Some(4), Some(2))
    );
    assert_eq!((info.context, info.vocabulary), (Some(256), Some(32)));
    assert_eq!(info.memory_f32, info.parameters * 4);
    assert_eq!(info.memory_bf16, info.parameters * 2);
    assert!(
        info.dtypes.iter().any(|format| format.dtype == "Q5_1"),
        "{:?}",
        info.dtypes
    );
    let shown = info.to_string();
    for line in [
        "architecture  llama\n",
        "format        GGUF\n",
        "chat template no\n",
        "heads         4, of keys and values 2\n",
    ] {
        assert!(shown.contains(line), "{shown}");
    }
    let json: Value = serde_json::to_value(&info).unwrap();
    assert_eq!(json["format"], "gguf");
}
