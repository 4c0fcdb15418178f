//! Files that are not what they should be. Each fault names the file, and the key or tensor.

use std::path::Path;

use clade_lm::load;

use crate::support::{Gguf, fixture, floats, folder, safetensors, with_header};

const CONFIG: &str = r#"{"model_type": "llama"}"#;

fn refused(path: &Path) -> String {
    load::open(path).unwrap_err().to_string()
}

/// The fault of opening a GGUF file of these bytes.
fn gguf(bytes: &[u8]) -> String {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("model.gguf");
    std::fs::write(&path, bytes).unwrap();
    refused(&path)
}

/// The fault of opening a folder with one safetensors file.
fn single(bytes: &[u8]) -> String {
    refused(folder(CONFIG, &[("model.safetensors", bytes)]).path())
}

#[track_caller]
fn says(error: &str, part: &str) {
    assert!(error.contains(part), "{error}");
}

#[test]
fn there_is_nothing() {
    says(&refused(Path::new("/nowhere/at/all")), "/nowhere/at/all cannot be read");
    let empty = tempfile::tempdir().unwrap();
    says(&refused(empty.path()), "config.json: is missing");
    let file = empty.path().join("model.bin");
    std::fs::write(&file, "").unwrap();
    says(&refused(&file), "neither a folder with config.json nor a .gguf file");
}

#[test]
fn configurations() {
    let weights = safetensors(&[]);
    let with = |config: &str| refused(folder(config, &[("model.safetensors", &weights)]).path());
    says(&with("{}"), "config.json: has no 'model_type'");
    says(&with(r#"{"model_type": 3}"#), "'model_type' is 3, a string is expected");
    says(&with("[]"), "config.json: is not a JSON object");
    says(&with("{"), "config.json: is not JSON");
    let folder = folder("", &[]);
    std::fs::write(folder.path().join("config.json"), [0x7b, 0xff]).unwrap();
    says(&refused(folder.path()), "config.json: is not UTF-8: byte 1");
}

#[test]
fn shards() {
    let index = |map: &str| format!(r#"{{"weight_map": {map}}}"#);
    let shard = safetensors(&[("a", "F32", &[1], &floats(&[1.0]))]);
    let with = |index: &str| {
        refused(
            folder(
                CONFIG,
                &[
                    ("model.safetensors.index.json", index.as_bytes()),
                    ("one.safetensors", &shard),
                ],
            )
            .path(),
        )
    };
    says(
        &with(&index(r#"{"a": "one.safetensors", "b": "two.safetensors"}"#)),
        "two.safetensors: is missing, but",
    );
    says(
        &with(&index(r#"{"a": "one.safetensors", "b": "one.safetensors"}"#)),
        "the tensor 'b' is in one.safetensors, but it is not",
    );
    for outside in ["../one.safetensors", "/etc/passwd", "sub/one.safetensors", ".."] {
        let map = format!(r#"{{"a": "{outside}"}}"#);
        says(&with(&index(&map)), "only files of the folder itself are read");
    }
    says(&with(&index(r#"{"a": 1}"#)), "names no file for the tensor 'a'");
    says(&with(&index("{}")), "lists no tensors");
    says(&with("{}"), "has no object 'weight_map'");

    let both = index(r#"{"a": "one.safetensors", "b": "two.safetensors"}"#);
    let two = safetensors(&[("a", "F32", &[1], &floats(&[2.0])), ("b", "F32", &[1], &floats(&[2.0]))]);
    let files: [(&str, &[u8]); 3] = [
        ("model.safetensors.index.json", both.as_bytes()),
        ("one.safetensors", &shard),
        ("two.safetensors", &two),
    ];
    says(
        &refused(folder(CONFIG, &files).path()),
        "has the tensor 'a', which the checkpoint has twice",
    );
    says(
        &refused(folder(CONFIG, &[("pytorch_model.bin", b"")]).path()),
        "convert the checkpoint to safetensors",
    );
    says(&refused(folder(CONFIG, &[]).path()), "the folder holds no weights");
}

#[test]
fn safetensors_files() {
    let whole = safetensors(&[("a", "F32", &[2], &floats(&[1.0, 2.0]))]);
    says(
        &single(&whole[..whole.len() - 1]),
        "is cut off: the tensor 'a' ends at byte",
    );
    says(&single(&whole[..20]), "is cut off: its header ends at byte");
    says(&single(&whole[..5]), "has 5 bytes, too few");
    let mut absurd = whole.clone();
    absurd[..8].copy_from_slice(&u64::MAX.to_le_bytes());
    says(&single(&absurd), "says its header has 18446744073709551615 bytes");

    let described = |entry: &str| single(&with_header(&format!("{{{entry}}}"), &[0; 8]));
    let entry = r#""a":{"dtype":"F32","shape":[2],"data_offsets":[0,8]}"#;
    says(&described(&format!("{entry},{entry}")), "has the tensor 'a' twice");
    says(
        &described(&entry.replace("[0,8]", "[0,4]")),
        "but F32 with the shape [2] has 8",
    );
    says(
        &described(&entry.replace("[0,8]", "[8,0]")),
        "but F32 with the shape [2] has 8",
    );
    says(
        &described(&entry.replace("[0,8]", "[8,16]")),
        "is cut off: the tensor 'a'",
    );
    says(
        &described(&entry.replace("F32", "F1")),
        "in the unknown number format 'F1'",
    );
    says(
        &described(&entry.replace("F32", "I32")),
        "has the tensor 'a' in I32; weights are read in",
    );
    says(&described(&entry.replace("[2]", "[-2]")), "which cannot be");
    says(
        &described(&entry.replace("[2]", "[4611686018427387904,4611686018427387904]")),
        "which cannot be",
    );
    says(
        &described(&entry.replace("dtype", "type")),
        "describes the tensor 'a' in a way that is not right",
    );
    says(&single(&with_header("[]", &[])), "has a header that is not right");
    let mut not_utf8 = with_header("{    }", &[]);
    not_utf8[10] = 0xff;
    says(&single(&not_utf8), "has a header that is not UTF-8");
}

#[test]
fn a_tensor_that_is_not_there() {
    use clade_lm::Weights;
    let get = |path: &Path| {
        let weights = load::open(path).unwrap().weights().clone();
        weights
            .get("model.absent", tch::Kind::Float, tch::Device::Cpu)
            .unwrap_err()
            .to_string()
    };
    says(&get(&fixture("llama/hf")), "has no tensor 'model.absent'");
    says(&get(&fixture("llama/model.gguf")), "has no tensor for 'model.absent'");
}

#[test]
fn gguf_files_that_are_cut_off() {
    let whole = std::fs::read(fixture("llama/model.gguf")).unwrap();
    // At any place: there is an error, no panic, and nothing large is allocated.
    for length in (0..whole.len() - 1).step_by(97).chain(0..64) {
        let error = gguf(&whole[..length]);
        assert!(
            error.contains("is cut off") || error.contains("is not a GGUF file"),
            "{length}: {error}"
        );
    }
    let mut file = Gguf::llama();
    file.shift = 1 << 40;
    says(
        &gguf(&file.bytes()),
        "is cut off: the tensor 'token_embd.weight' of 32 bytes begins at byte",
    );
    file.shift = u64::MAX;
    says(&gguf(&file.bytes()), "is cut off: the tensor 'token_embd.weight'");
}

#[test]
fn gguf_files_with_a_wrong_byte() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("model.gguf");
    for architecture in ["llama", "qwen35moe"] {
        let whole = std::fs::read(fixture(architecture).join("model.gguf")).unwrap();
        for place in (4..8000.min(whole.len())).step_by(61) {
            for wrong in [0x00, 0xff, whole[place].wrapping_add(1)] {
                let mut bytes = whole.clone();
                bytes[place] = wrong;
                std::fs::write(&path, bytes).unwrap();
                // Whether it is refused depends on the byte; that it neither panics nor allocates without end is asked here.
                if let Ok(checkpoint) = load::open(&path) {
                    assert!(checkpoint.info().parameters < 1 << 24);
                }
            }
        }
    }
}

#[test]
fn heads_that_do_not_fit() {
    let mut file = Gguf::llama();
    file.tensor("blk.0.attn_q.weight", &[6, 4], 0, &floats(&[0.0; 24]));
    says(
        &gguf(&file.bytes()),
        "'blk.0.attn_q.weight' with the shape [6, 4], which does not fit the numbers of heads",
    );
    file.int("llama.attention.head_count_kv", 0);
    says(
        &gguf(&file.bytes()),
        "the key 'llama.attention.head_count_kv' is 0, which cannot be",
    );
}

#[test]
fn gguf_lengths_that_cannot_be() {
    let huge = u64::MAX.to_le_bytes();
    let mut bytes = Gguf::llama().bytes();
    bytes[16..24].copy_from_slice(&huge);
    assert!(gguf(&bytes).contains("model.gguf: "), "{}", gguf(&bytes));
    let mut bytes = Gguf::llama().bytes();
    bytes[8..16].copy_from_slice(&huge);
    assert!(gguf(&bytes).contains("model.gguf: "), "{}", gguf(&bytes));
    let mut bytes = Gguf::llama().bytes();
    bytes[24..32].copy_from_slice(&huge);
    says(&gguf(&bytes), "a key needs 18446744073709551615 bytes");
    let mut file = Gguf::llama();
    let list: Vec<u8> = 4_u32.to_le_bytes().into_iter().chain(huge).collect();
    file.raw("some.list", 9, &list);
    says(
        &gguf(&file.bytes()),
        "the key 'some.list' has 18446744073709551615 elements",
    );
    let mut file = Gguf::llama();
    file.tensor("large", &[1 << 62, 32], 0, &[]);
    says(&gguf(&file.bytes()), "which cannot be");
}

#[test]
fn gguf_contents() {
    let changed = |change: &dyn Fn(&mut Gguf)| {
        let mut file = Gguf::llama();
        change(&mut file);
        gguf(&file.bytes())
    };
    says(&gguf(b"GGML and so on"), "does not begin with 'GGUF'");
    says(
        &changed(&|file| file.version = 1),
        "of version 1; versions 2 and 3 are read",
    );
    says(
        &changed(&|file| file.version = 3_u32.swap_bytes()),
        "for big-endian machines",
    );
    says(
        &changed(&|file| file.tensor("x", &[32], 16, &[0; 64])),
        "the tensor 'x' in an IQ format (ggml type 16); read are F32",
    );
    says(
        &changed(&|file| file.tensor("x", &[32], 99, &[0; 64])),
        "the unknown ggml type 99",
    );
    says(
        &changed(&|file| file.tensor("x", &[33], 8, &[0; 68])),
        "rows of 33 numbers, which is no multiple of 32",
    );
    says(
        &changed(&|file| file.tensor("token_embd.weight", &[4], 0, &[0; 16])),
        "has the tensor 'token_embd.weight' twice",
    );
    says(
        &changed(&|file| file.tensor("x", &[1, 1, 1, 1, 1], 0, &[0; 4])),
        "with 5 dimensions",
    );
    says(
        &changed(&|file| file.raw("k", 13, &[])),
        "the key 'k' has the unknown type 13",
    );
    says(
        &changed(&|file| file.raw("k", 7, &[2])),
        "the key 'k' has the truth value 2",
    );
    says(&changed(&Gguf::repeat_last_key), "twice");
    says(
        &changed(&|file| file.raw("k", 8, &[1, 0, 0, 0, 0, 0, 0, 0, 0xff])),
        "k at byte",
    );
    says(
        &changed(&|file| file.int("general.alignment", 24)),
        "'general.alignment' is 24",
    );
    says(
        &changed(&|file| file.int("split.count", 3)),
        "split into 3 files; join them",
    );
}

#[test]
fn gguf_keys() {
    let changed = |change: &dyn Fn(&mut Gguf)| {
        let mut file = Gguf::llama();
        change(&mut file);
        gguf(&file.bytes())
    };
    says(
        &changed(&|file| file.text("general.architecture", "mamba")),
        "the architecture 'mamba' is not known; known in GGUF files are llama,",
    );
    says(
        &changed(&|file| file.int("general.architecture", 1)),
        "the key 'general.architecture' is an integer, a string is expected",
    );
    says(
        &changed(&|file| file.text("llama.block_count", "1")),
        "the key 'llama.block_count' is a string, an integer that is not negative",
    );
    says(
        &changed(&|file| file.raw("llama.block_count", 5, &(-1_i32).to_le_bytes())),
        "an integer that is not negative is expected",
    );
    says(
        &changed(&|file| file.text("general.architecture", "qwen2")),
        "the key 'qwen2.embedding_length' is missing",
    );
    says(
        &changed(&|file| file.int("llama.attention.head_count", 0)),
        "the key 'llama.attention.head_count' is 0, which cannot be",
    );
    says(
        &changed(&|file| file.int("llama.expert_count", 8)),
        "with experts, which is not supported",
    );
    says(
        &changed(&|file| file.int("llama.attention.sliding_window", 8)),
        "with a sliding window, which is not supported",
    );
}

#[test]
fn tokenizers_and_templates() {
    let weights = safetensors(&[]);
    let with = |name: &str, text: &str| folder(CONFIG, &[("model.safetensors", &weights), (name, text.as_bytes())]);
    let tokenizer = |name: &str, text: &str| {
        let folder = with(name, text);
        let checkpoint = load::open(folder.path()).unwrap();
        let info = checkpoint.info();
        let error = checkpoint.tokenizer().unwrap_err().to_string();
        assert_eq!(
            (info.tokenizer, info.tokenizer_fault.as_deref()),
            (None, Some(error.as_str()))
        );
        error
    };
    says(&tokenizer("vocab.txt", ""), "tokenizer.json: is missing");
    says(
        &tokenizer("tokenizer.json", "{}"),
        "tokenizer.json: is no tokenizer that is known",
    );

    let template = |name: &str, text: &str, wanted: Option<&str>| {
        let folder = with(name, text);
        load::open(folder.path())
            .unwrap()
            .chat_template(wanted)
            .map(|template| template.is_some())
            .map_err(|error| error.to_string())
    };
    assert_eq!(template("vocab.txt", "", None), Ok(false));
    says(
        &template("vocab.txt", "", Some("tool_use")).unwrap_err(),
        "has no chat template 'tool_use'",
    );
    says(
        &template("vocab.txt", "", Some("../x")).unwrap_err(),
        "has no chat template '../x'",
    );
    says(
        &template("chat_template.jinja", "{% for %}", None).unwrap_err(),
        "chat_template.jinja failed",
    );
    says(
        &template("tokenizer_config.json", r#"{"chat_template": 1}"#, None).unwrap_err(),
        "neither a text nor a list",
    );
    let named = r#"{"chat_template": [{"name": "default", "template": "a"}, {"name": "tool_use", "template": "b"}]}"#;
    assert_eq!(template("tokenizer_config.json", named, None), Ok(true));
    assert_eq!(template("tokenizer_config.json", named, Some("tool_use")), Ok(true));
    says(
        &template("tokenizer_config.json", named, Some("rag")).unwrap_err(),
        "it has default, tool_use",
    );

    let gguf = |change: &dyn Fn(&mut Gguf)| {
        let folder = tempfile::tempdir().unwrap();
        let mut file = Gguf::llama();
        change(&mut file);
        load::open(&file.write(folder.path()))
            .unwrap()
            .tokenizer()
            .unwrap_err()
            .to_string()
    };
    says(
        &gguf(&|_| {}),
        "has no tokenizer (the key 'tokenizer.ggml.model' is missing)",
    );
    says(
        &gguf(&|file| file.text("tokenizer.ggml.model", "gpt2")),
        "the key 'tokenizer.ggml.tokens' is missing",
    );
    let tokens = |file: &mut Gguf, model: &str| {
        file.text("tokenizer.ggml.model", model);
        let mut list = [
            8_u32.to_le_bytes().as_slice(),
            &1_u64.to_le_bytes(),
            &1_u64.to_le_bytes(),
        ]
        .concat();
        list.push(b'a');
        file.raw("tokenizer.ggml.tokens", 9, &list);
    };
    says(&gguf(&|file| tokens(file, "bert")), "the tokenizer 'bert' is not known");
    says(
        &gguf(&|file| tokens(file, "llama")),
        "the key 'tokenizer.ggml.scores' is missing",
    );
    let unknown_split = gguf(&|file| {
        tokens(file, "gpt2");
        file.text("tokenizer.ggml.pre", "tekken");
    });
    says(&unknown_split, "split as 'tekken' says, which is not known");
    let no_such_token = gguf(&|file| {
        tokens(file, "gpt2");
        file.int("tokenizer.ggml.eos_token_id", 7);
    });
    says(&no_such_token, "'tokenizer.ggml.eos_token_id' is 7, there are 1 tokens");
}
