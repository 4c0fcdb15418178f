//! Which weights a command runs, and loading them under a bar.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use clade_lm_api::messages::{Load, Sampling};
use clap::Args;

use super::bars::LoadBar;
use crate::cli::client::Client;
use crate::cli::context::Context;
use crate::cli::error::CliError;
use crate::cli::terminal::note;
use crate::config::ByteSize;
use crate::engine::EngineError;
use crate::model::Provider;
use crate::model::torch::{LoadedModel, load};
use crate::templates::size;

/// The model of a command.
#[derive(Debug, Args)]
pub(super) struct WeightsArgs {
    /// A folder with config.json or a GGUF file; else the name of a model with provider torch.
    model: String,
    /// Where it runs: auto, cpu, cuda or cuda:N [default: the model's, else auto].
    #[arg(long, value_name = "DEVICE")]
    device: Option<String>,
    /// Number format: auto, float32, bfloat16 or float16 [default: the model's, else auto].
    #[arg(long, value_name = "DTYPE")]
    dtype: Option<String>,
    /// Threads on the CPU [default: the model's, else all cores].
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(1..=1024))]
    threads: Option<u32>,
    /// Memory for keys and values [default: the model's, else a third of what is free].
    #[arg(long, value_name = "SIZE")]
    cache_memory: Option<ByteSize>,
}

/// How a command samples.
#[derive(Debug, Args)]
pub(super) struct SamplingArgs {
    /// Longest answer in tokens [default: as long as the context of the model allows].
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(1..))]
    pub max_tokens: Option<u32>,
    /// Softmax temperature; 0 takes the most likely token [default: what the model advises, else 1].
    #[arg(long, value_name = "T")]
    temperature: Option<f64>,
    /// Draw from the so many most likely tokens.
    #[arg(long, value_name = "K", value_parser = clap::value_parser!(u32).range(1..))]
    top_k: Option<u32>,
    /// Draw from the most likely tokens that have this share of the probability.
    #[arg(long, value_name = "P")]
    top_p: Option<f64>,
    /// Leave out tokens with less than this share of the most likely one's probability.
    #[arg(long, value_name = "P")]
    min_p: Option<f64>,
    /// Divide what was said already in likelihood.
    #[arg(long, value_name = "F")]
    repetition_penalty: Option<f64>,
    /// Seed of the draws; the same one gives the same answer.
    #[arg(long, value_name = "N")]
    seed: Option<u64>,
    /// Text that ends an answer; may be repeated.
    #[arg(long, value_name = "TEXT")]
    pub stop: Vec<String>,
}

impl SamplingArgs {
    pub(super) fn sampling(&self) -> Sampling {
        Sampling {
            temperature: self.temperature,
            top_k: self.top_k.map(|count| count as usize),
            top_p: self.top_p,
            min_p: self.min_p,
            repetition_penalty: self.repetition_penalty,
            seed: self.seed,
            ..Sampling::default()
        }
    }
}

impl WeightsArgs {
    /// The model, loaded.
    pub(super) async fn loaded(&self, context: &Context) -> Result<Arc<LoadedModel>, CliError> {
        let mut request = self.request(context).await?;
        for (given, option) in [(&self.device, &mut request.device), (&self.dtype, &mut request.dtype)] {
            if let Some(given) = given {
                option.clone_from(given);
            }
        }
        request.threads = self.threads.or(request.threads);
        request.cache_bytes = self.cache_memory.map(ByteSize::bytes).or(request.cache_bytes);
        let bar = LoadBar::new(&context.stderr);
        let shown = bar.clone();
        let model = load(&request, move |progress| shown.show(progress)).await;
        bar.finish();
        let model = model.map_err(|error| CliError::Failed(error.to_string()))?;
        let facts = model.facts();
        note(format!(
            "{}: {:.0} million parameters in {} on {}, {} of weights, room for {} tokens in {}, loaded in {:.1} s",
            facts.model_type,
            facts.parameters as f64 / 1e6,
            facts.dtype,
            facts.device,
            size(facts.weight_bytes),
            facts.cache_tokens,
            size(facts.cache_bytes),
            facts.seconds
        ));
        Ok(model)
    }

    async fn request(&self, context: &Context) -> Result<Load, CliError> {
        let path = Path::new(&self.model);
        if path.exists() {
            let path = std::path::absolute(path).map_err(CliError::file(path))?;
            return Ok(of_path(path));
        }
        if self.model.contains('/') || self.model.ends_with(".gguf") {
            return Err(CliError::Failed(format!("there is no folder or file {}", self.model)));
        }
        let client = Client::reader(context).await?;
        let models = &client.engine().scheduler().services().models;
        let entries = models.entries().await.map_err(EngineError::from)?;
        let known = entries.into_iter().find(|entry| entry.name == self.model);
        match known.and_then(|entry| entry.options) {
            Some(options) if options.provider == Provider::Torch => Ok(options.load()),
            Some(options) => Err(CliError::Failed(format!(
                "model {} is of provider {}: its weights are not here",
                self.model, options.provider
            ))),
            None => Err(CliError::Failed(format!(
                "there is no folder, file or model with provider torch that is called {}; SHOW MODELS lists the models",
                self.model
            ))),
        }
    }
}

fn of_path(path: PathBuf) -> Load {
    Load {
        path,
        device: "auto".to_owned(),
        dtype: "auto".to_owned(),
        cache_bytes: None,
        context_tokens: None,
        threads: None,
    }
}
