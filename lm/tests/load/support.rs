//! Files for tests: the fixtures, and small ones written here.

use std::path::{Path, PathBuf};

use serde_json::Value;

/// A file that the reference script made.
pub fn fixture(name: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR"))
        .join("tests/load/fixtures")
        .join(name)
}

/// The JSON in a fixture.
pub fn fixture_json(name: &str) -> Value {
    serde_json::from_str(&std::fs::read_to_string(fixture(name)).unwrap()).unwrap()
}

/// Bytes of a safetensors file: name, number format, shape, data.
pub fn safetensors(tensors: &[(&str, &str, &[usize], &[u8])]) -> Vec<u8> {
    let mut header = Vec::new();
    let mut data = Vec::new();
    for (name, dtype, shape, bytes) in tensors {
        let offsets = [data.len(), data.len() + bytes.len()];
        header.push(format!(
            "\"{name}\":{{\"dtype\":\"{dtype}\",\"shape\":{shape:?},\"data_offsets\":{offsets:?}}}"
        ));
        data.extend_from_slice(bytes);
    }
    with_header(&format!("{{{}}}", header.join(",")), &data)
}

/// Bytes of a safetensors file with this header.
pub fn with_header(header: &str, data: &[u8]) -> Vec<u8> {
    let mut bytes = (header.len() as u64).to_le_bytes().to_vec();
    bytes.extend_from_slice(header.as_bytes());
    bytes.extend_from_slice(data);
    bytes
}

/// A folder with a configuration and files.
pub fn folder(config: &str, files: &[(&str, &[u8])]) -> tempfile::TempDir {
    let folder = tempfile::tempdir().unwrap();
    std::fs::write(folder.path().join("config.json"), config).unwrap();
    for (name, bytes) in files {
        std::fs::write(folder.path().join(name), bytes).unwrap();
    }
    folder
}

/// 32-bit floats as bytes.
pub fn floats(values: &[f32]) -> Vec<u8> {
    values.iter().flat_map(|value| value.to_le_bytes()).collect()
}

/// Writes GGUF files.
#[derive(Clone)]
pub struct Gguf {
    pub version: u32,
    keys: Vec<(String, u32, Vec<u8>)>,
    tensors: Vec<(String, Vec<u64>, u32, Vec<u8>)>,
    /// Where tensors are said to be beyond where they are.
    pub shift: u64,
}

fn text(value: &str) -> Vec<u8> {
    let mut bytes = (value.len() as u64).to_le_bytes().to_vec();
    bytes.extend_from_slice(value.as_bytes());
    bytes
}

impl Gguf {
    /// A Llama with all keys and one tensor.
    pub fn llama() -> Self {
        let mut file = Self {
            version: 3,
            keys: Vec::new(),
            tensors: Vec::new(),
            shift: 0,
        };
        file.text("general.architecture", "llama");
        for (key, value) in [
            ("block_count", 1),
            ("context_length", 64),
            ("embedding_length", 4),
            ("feed_forward_length", 8),
            ("attention.head_count", 2),
        ] {
            file.int(&format!("llama.{key}"), value);
        }
        file.float("llama.attention.layer_norm_rms_epsilon", 1e-5);
        file.tensor(
            "token_embd.weight",
            &[2, 4],
            0,
            &floats(&[1.0, 2.0, 3.0, 4.0, 5.0, 6.0, 7.0, 8.0]),
        );
        file
    }

    pub fn raw(&mut self, key: &str, code: u32, bytes: &[u8]) {
        self.keys.retain(|(other, ..)| other != key);
        self.keys.push((key.to_owned(), code, bytes.to_vec()));
    }

    pub fn text(&mut self, key: &str, value: &str) {
        self.raw(key, 8, &text(value));
    }

    pub fn int(&mut self, key: &str, value: u32) {
        self.raw(key, 4, &value.to_le_bytes());
    }

    pub fn float(&mut self, key: &str, value: f32) {
        self.raw(key, 6, &value.to_le_bytes());
    }

    /// The shape in the order of Hugging Face.
    pub fn tensor(&mut self, name: &str, shape: &[u64], code: u32, data: &[u8]) {
        self.tensors.push((
            name.to_owned(),
            shape.iter().rev().copied().collect(),
            code,
            data.to_vec(),
        ));
    }

    pub fn repeat_last_key(&mut self) {
        self.keys.extend(self.keys.last().cloned());
    }

    pub fn bytes(&self) -> Vec<u8> {
        let mut bytes = b"GGUF".to_vec();
        bytes.extend(self.version.to_le_bytes());
        bytes.extend((self.tensors.len() as u64).to_le_bytes());
        bytes.extend((self.keys.len() as u64).to_le_bytes());
        for (key, code, value) in &self.keys {
            bytes.extend(text(key));
            bytes.extend(code.to_le_bytes());
            bytes.extend(value);
        }
        let mut data = Vec::new();
        for (name, shape, code, values) in &self.tensors {
            bytes.extend(text(name));
            bytes.extend((shape.len() as u32).to_le_bytes());
            bytes.extend(shape.iter().flat_map(|size| size.to_le_bytes()));
            bytes.extend(code.to_le_bytes());
            bytes.extend((data.len() as u64 + self.shift).to_le_bytes());
            data.extend(values);
            data.resize(data.len().next_multiple_of(32), 0);
        }
        bytes.resize(bytes.len().next_multiple_of(32), 0);
        bytes.extend(data);
        bytes
    }

    pub fn write(&self, folder: &Path) -> PathBuf {
        let path = folder.join("model.gguf");
        std::fs::write(&path, self.bytes()).unwrap();
        path
    }
}
