//! The safetensors files of a folder as one set of tensors.

use std::collections::{BTreeMap, BTreeSet};
use std::ops::Range;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use memmap2::Mmap;
use serde_json::Value;
use tch::{Device, Kind, Tensor};

use super::safetensors::{self, Entry};
use crate::error::{LmError, Result};
use crate::load::files::{self, format_error};
use crate::load::names::{self, Role};
use crate::weights::{Dtype, TensorInfo, Weights};

const SINGLE: &str = "model.safetensors";
const INDEX: &str = "model.safetensors.index.json";

/// Tensors in mapped files.
#[derive(Debug)]
pub(super) struct Shards {
    folder: PathBuf,
    tensors: BTreeMap<String, Placed>,
}

#[derive(Debug)]
struct Placed {
    file: Arc<Mmap>,
    bytes: Range<usize>,
    shape: Vec<i64>,
    dtype: Dtype,
    kind: Kind,
}

impl Shards {
    /// Opens the files of a folder. Gives also the names of tensors that are no part of the language model.
    pub(super) fn open(folder: &Path) -> Result<(Self, Vec<String>)> {
        let index = folder.join(INDEX);
        let mut read: Vec<(PathBuf, Arc<Mmap>, Vec<Entry>)> = Vec::new();
        let indexed = if index.exists() {
            Some(weight_map(&index)?)
        } else {
            None
        };
        let names = match &indexed {
            Some(map) => map.values().cloned().collect(),
            None => BTreeSet::from([SINGLE.to_owned()]),
        };
        for name in names {
            let path = folder.join(&name);
            if !path.exists() {
                return Err(missing(folder, &path, indexed.is_some()));
            }
            let file = files::map(&path)?;
            let entries = safetensors::entries(&path, &file)?;
            read.push((path, file, entries));
        }
        if let Some(map) = &indexed {
            check_index(&index, map, &read)?;
        }
        place(folder, read)
    }
}

/// Which file holds which tensor, as the index says.
fn weight_map(index: &Path) -> Result<BTreeMap<String, String>> {
    let object = files::read_object(index)?;
    let Some(Value::Object(map)) = object.get("weight_map") else {
        return Err(format_error(index, "has no object 'weight_map'"));
    };
    let mut files = BTreeMap::new();
    for (tensor, file) in map {
        let Value::String(file) = file else {
            return Err(format_error(index, format!("names no file for the tensor '{tensor}'")));
        };
        // A checkpoint from elsewhere must not make us read files outside its folder.
        let plain = Path::new(file)
            .file_name()
            .is_some_and(|name| name.to_str() == Some(file.as_str()));
        if !plain {
            let problem = format!("puts the tensor '{tensor}' into '{file}'; only files of the folder itself are read");
            return Err(format_error(index, problem));
        }
        files.insert(tensor.clone(), file.clone());
    }
    if files.is_empty() {
        return Err(format_error(index, "lists no tensors"));
    }
    Ok(files)
}

fn missing(folder: &Path, path: &Path, indexed: bool) -> LmError {
    let has = |suffix: &str| {
        std::fs::read_dir(folder).is_ok_and(|entries| {
            entries
                .flatten()
                .any(|entry| entry.file_name().to_string_lossy().ends_with(suffix))
        })
    };
    let problem = if indexed {
        format!("is missing, but {INDEX} names it; download the checkpoint again")
    } else if has(".bin") || has(".pth") {
        "is missing; pickled weights (.bin, .pth) are not read, convert the checkpoint to safetensors".to_owned()
    } else {
        format!("is missing, and so is {INDEX}; the folder holds no weights")
    };
    format_error(path, problem)
}

/// What the index promises must be there.
fn check_index(index: &Path, map: &BTreeMap<String, String>, read: &[(PathBuf, Arc<Mmap>, Vec<Entry>)]) -> Result<()> {
    let present: BTreeSet<(&str, &str)> = read
        .iter()
        .flat_map(|(path, _, entries)| {
            let file = path.file_name().and_then(|name| name.to_str()).unwrap_or_default();
            entries.iter().map(move |entry| (entry.name.as_str(), file))
        })
        .collect();
    match map
        .iter()
        .find(|(tensor, file)| !present.contains(&(tensor.as_str(), file.as_str())))
    {
        Some((tensor, file)) => Err(format_error(
            index,
            format!("says the tensor '{tensor}' is in {file}, but it is not"),
        )),
        None => Ok(()),
    }
}

/// Gives every tensor its name in the language model.
fn place(folder: &Path, read: Vec<(PathBuf, Arc<Mmap>, Vec<Entry>)>) -> Result<(Shards, Vec<String>)> {
    let bare = names::is_bare(
        read.iter()
            .flat_map(|(_, _, entries)| entries)
            .map(|entry| entry.name.as_str()),
    );
    let mut tensors: BTreeMap<String, Placed> = BTreeMap::new();
    let mut ignored = Vec::new();
    for (path, file, entries) in read {
        for Entry {
            name,
            dtype,
            shape,
            bytes,
        } in entries
        {
            let Role::Weight(role) = names::role(&name, bare) else {
                ignored.push(name);
                continue;
            };
            let (dtype, kind) = match dtype.as_str() {
                "F32" => (Dtype::F32, Kind::Float),
                "F16" => (Dtype::F16, Kind::Half),
                "BF16" => (Dtype::Bf16, Kind::BFloat16),
                "F8_E4M3" => (Dtype::F8E4m3, Kind::Float8e4m3fn),
                other => {
                    let problem =
                        format!("has the tensor '{name}' in {other}; weights are read in F32, F16, BF16 and F8_E4M3");
                    return Err(format_error(&path, problem));
                }
            };
            let placed = Placed {
                file: Arc::clone(&file),
                bytes,
                shape,
                dtype,
                kind,
            };
            if tensors.insert(role.clone(), placed).is_some() {
                return Err(format_error(
                    &path,
                    format!("has the tensor '{role}', which the checkpoint has twice"),
                ));
            }
        }
    }
    Ok((
        Shards {
            folder: folder.to_owned(),
            tensors,
        },
        ignored,
    ))
}

impl Weights for Shards {
    fn tensors(&self) -> Vec<TensorInfo> {
        self.tensors
            .iter()
            .map(|(name, placed)| TensorInfo {
                name: name.clone(),
                shape: placed.shape.clone(),
                dtype: placed.dtype,
            })
            .collect()
    }

    fn has(&self, name: &str) -> bool {
        self.tensors.contains_key(name)
    }

    fn get(&self, name: &str, kind: Kind, device: Device) -> Result<Tensor> {
        let placed = self
            .tensors
            .get(name)
            .ok_or_else(|| format_error(&self.folder, format!("has no tensor '{name}'")))?;
        let data = &placed.file[placed.bytes.clone()];
        Ok(Tensor::f_from_data_size(data, &placed.shape, placed.kind)?
            .f_to_device(device)?
            .f_to_kind(kind)?)
    }
}
