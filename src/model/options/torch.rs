//! Options of weights that run in this process.

use clade_lm_api::messages::{Load, Sampling};

use super::{ModelOptions, WrongOption};

/// Number formats that weights can be converted to.
const DTYPES: [&str; 4] = ["auto", "float32", "bfloat16", "float16"];

impl ModelOptions {
    /// What is loaded, and how.
    pub fn load(&self) -> Load {
        let auto = |value: &Option<String>| value.clone().unwrap_or_else(|| "auto".to_owned());
        Load {
            path: self.path.clone().unwrap_or_default(),
            device: auto(&self.device),
            dtype: auto(&self.dtype),
            cache_bytes: self.cache_memory.map(|size| size.bytes()),
            context_tokens: self.context_tokens.map(|count| count as usize),
            threads: self.threads,
        }
    }

    /// How tokens are drawn where a request does not say.
    pub fn sampling(&self) -> Sampling {
        Sampling {
            temperature: self.temperature,
            top_k: self.top_k.map(|count| count as usize),
            top_p: self.top_p,
            min_p: self.min_p,
            repetition_penalty: self.repetition_penalty,
            ..Sampling::default()
        }
    }

    /// Checks what weights need.
    pub(super) fn check_torch(&self) -> Result<(), WrongOption> {
        let wrong = |option, problem: String| Err(WrongOption { option, problem });
        if self.path.as_ref().is_none_or(|path| path.as_os_str().is_empty()) {
            return wrong(
                "path",
                "is needed by the torch provider: a folder with config.json, or a GGUF file".to_owned(),
            );
        }
        if let Some(device) = &self.device
            && !is_device(device)
        {
            return wrong(
                "device",
                "must be auto, cpu, cuda or a number of a GPU such as cuda:1".to_owned(),
            );
        }
        if let Some(dtype) = &self.dtype
            && !DTYPES.contains(&dtype.as_str())
        {
            return wrong("dtype", format!("must be one of {}", DTYPES.join(", ")));
        }
        let sampling = self.sampling().check();
        sampling.map_err(|error| WrongOption {
            option: error.name,
            problem: format!("must be {}", error.must),
        })
    }
}

fn is_device(name: &str) -> bool {
    match name.split_once(':') {
        None => ["auto", "cpu", "cuda"].contains(&name),
        Some((kind, number)) => kind == "cuda" && number.parse::<u8>().is_ok(),
    }
}
