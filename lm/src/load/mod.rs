//! Opening checkpoints: folders as Hugging Face publishes them, and GGUF files.
//!
//! Whatever the format, architectures see one form: configuration keys and names of tensors as Hugging Face has them.

mod checkpoint;
pub(crate) mod files;
mod gguf;
mod hf;
mod info;
pub mod memory;
mod names;
mod pull;
mod weights;

use std::path::{Path, PathBuf};

pub use self::checkpoint::{Checkpoint, Format};
use self::files::{format_error, io_error};
pub(crate) use self::gguf::Metadata as GgufMetadata;
pub use self::info::{FormatBytes, ModelInfo};
pub use self::pull::pull_smollm2;
pub use self::weights::CheckpointWeights;
use crate::error::Result;

/// Opens a checkpoint: a `.gguf` file, a folder with `config.json` and safetensors files, or a folder with one `.gguf` file. Headers
/// are read and checked, weights are not.
///
/// # Errors
/// When a file is missing, cut off or not what it should be, or the architecture of a GGUF file is not known.
pub fn open(path: &Path) -> Result<Checkpoint> {
    let metadata = std::fs::metadata(path).map_err(|source| io_error(path, source))?;
    if !metadata.is_dir() {
        return if is_gguf(path) {
            gguf::open(path)
        } else {
            Err(format_error(
                path,
                "is neither a folder with config.json nor a .gguf file",
            ))
        };
    }
    if path.join("config.json").exists() {
        return hf::open(path);
    }
    let files = gguf_files(path)?;
    match files.as_slice() {
        [] => hf::open(path),
        [file] => gguf::open(file),
        several => {
            let names: Vec<_> = several.iter().filter_map(|file| file.file_name()?.to_str()).collect();
            Err(format_error(
                path,
                format!("holds several models; name one of {}", names.join(", ")),
            ))
        }
    }
}

fn is_gguf(path: &Path) -> bool {
    path.extension()
        .is_some_and(|extension| extension.eq_ignore_ascii_case("gguf"))
}

fn gguf_files(folder: &Path) -> Result<Vec<PathBuf>> {
    let mut files = Vec::new();
    for entry in std::fs::read_dir(folder).map_err(|source| io_error(folder, source))? {
        let path = entry.map_err(|source| io_error(folder, source))?.path();
        if is_gguf(&path) {
            files.push(path);
        }
    }
    files.sort();
    Ok(files)
}
