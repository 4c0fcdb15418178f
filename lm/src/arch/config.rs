//! Keys of a `config.json`, with errors that name them.

use serde_json::{Map, Value};

use crate::error::{LmError, Result};
use crate::nn::rotary::{RopeScaling, RopeShape};

/// The part of a configuration that describes the language model.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Config<'a> {
    whole: &'a Map<String, Value>,
    text: &'a Map<String, Value>,
    model_type: &'a str,
}

impl<'a> Config<'a> {
    /// Of a `config.json`. That of a model of several media nests the language model as `text_config`.
    pub(crate) fn new(whole: &'a Map<String, Value>) -> Result<Self> {
        let text = match whole.get("text_config") {
            Some(Value::Object(text)) => text,
            _ => whole,
        };
        let model_type = text
            .get("model_type")
            .or_else(|| whole.get("model_type"))
            .and_then(Value::as_str);
        let model_type = model_type.ok_or_else(|| {
            LmError::Unsupported("the configuration has no 'model_type', which names the architecture".into())
        })?;
        Ok(Self {
            whole,
            text,
            model_type,
        })
    }

    /// Name of the architecture.
    pub(crate) fn model_type(&self) -> &'a str {
        self.model_type
    }

    /// A key that is there and not null.
    fn get(&self, key: &str) -> Option<&'a Value> {
        self.text.get(key).filter(|value| !value.is_null())
    }

    fn missing(&self, key: &str) -> LmError {
        LmError::Unsupported(format!(
            "the configuration has no '{key}', which {} needs",
            self.model_type
        ))
    }

    fn required<T>(&self, key: &str, value: Option<T>) -> Result<T> {
        value.ok_or_else(|| self.missing(key))
    }

    /// A count, which is at least 1.
    pub(crate) fn count(&self, key: &str) -> Result<i64> {
        self.required(key, self.count_if(key)?)
    }

    /// A count, where it is given.
    pub(crate) fn count_if(&self, key: &str) -> Result<Option<i64>> {
        self.get(key).map(|value| count(key, value)).transpose()
    }

    /// A number.
    pub(crate) fn float(&self, key: &str) -> Result<f64> {
        self.required(key, self.get(key).map(|value| float(key, value)).transpose()?)
    }

    /// A switch that has a default.
    pub(crate) fn flag(&self, key: &str, default: bool) -> Result<bool> {
        match self.get(key) {
            None => Ok(default),
            Some(Value::Bool(flag)) => Ok(*flag),
            Some(other) => Err(wrong(key, "true or false", other)),
        }
    }

    /// Names, one for each layer, where they are given.
    pub(crate) fn names(&self, key: &str, layers: i64) -> Result<Option<Vec<&'a str>>> {
        let Some(value) = self.get(key) else { return Ok(None) };
        let names = value
            .as_array()
            .and_then(|names| names.iter().map(Value::as_str).collect::<Option<Vec<_>>>())
            .ok_or_else(|| wrong(key, "a list of names", value))?;
        if i64::try_from(names.len()) != Ok(layers) {
            return Err(LmError::Unsupported(format!(
                "'{key}' of the configuration names {} layers, 'num_hidden_layers' says {layers}",
                names.len()
            )));
        }
        Ok(Some(names))
    }

    /// Numbers of layers.
    pub(crate) fn layer_numbers(&self, key: &str) -> Result<Vec<i64>> {
        let Some(value) = self.get(key) else {
            return Ok(Vec::new());
        };
        value
            .as_array()
            .and_then(|numbers| numbers.iter().map(Value::as_i64).collect())
            .ok_or_else(|| wrong(key, "a list of whole numbers", value))
    }

    /// Whether the output shares its weight with the embedding. The whole model says so, where there are several parts.
    pub(crate) fn tied(&self) -> Result<bool> {
        let key = "tie_word_embeddings";
        match self
            .whole
            .get(key)
            .filter(|value| !value.is_null())
            .or_else(|| self.get(key))
        {
            None => Ok(false),
            Some(Value::Bool(flag)) => Ok(*flag),
            Some(other) => Err(wrong(key, "true or false", other)),
        }
    }

    /// Refuses activations other than silu.
    pub(crate) fn require_silu(&self) -> Result<()> {
        match self.get("hidden_act").and_then(Value::as_str) {
            None | Some("silu" | "swish") => Ok(()),
            Some(other) => Err(LmError::Unsupported(format!(
                "the activation '{other}' is not known here, only 'silu'"
            ))),
        }
    }

    /// Heads of queries and of keys, and the width of a head. `width` is what the architecture assumes where it is not given.
    pub(crate) fn heads(&self, width: Option<i64>) -> Result<(i64, i64, i64)> {
        let queries = self.count("num_attention_heads")?;
        let keys = self.count_if("num_key_value_heads")?.unwrap_or(queries);
        if queries % keys != 0 {
            return Err(LmError::Unsupported(format!(
                "'num_attention_heads' is {queries}, which is no multiple of 'num_key_value_heads', {keys}"
            )));
        }
        let width = match self.count_if("head_dim")?.or(width) {
            Some(width) => width,
            None => self.count("hidden_size")? / queries,
        };
        Ok((queries, keys, width))
    }

    /// Positions. `partial` is the share of a head that is rotated where it is not given.
    pub(crate) fn rope(&self, head_width: i64, partial: f64) -> Result<RopeShape> {
        // Newer configurations hold all in `rope_parameters`; older ones hold scalings in `rope_scaling` and the rest beside it.
        let nested = self.get("rope_parameters").or_else(|| self.get("rope_scaling"));
        let nested = match nested {
            None => None,
            Some(Value::Object(parameters)) => Some(parameters),
            Some(other) => return Err(wrong("rope_parameters", "an object", other)),
        };
        let rope = Rope { config: *self, nested };
        let theta = rope.float_if("rope_theta")?.unwrap_or(10_000.0);
        let partial = rope.float_if("partial_rotary_factor")?.unwrap_or(partial);
        let dims = (head_width as f64 * partial) as i64;
        if dims < 2 || dims % 2 != 0 || dims > head_width {
            return Err(LmError::Unsupported(format!(
                "'partial_rotary_factor' {partial} rotates {dims} of {head_width} dimensions of a head; an even number is needed"
            )));
        }
        Ok(RopeShape {
            theta,
            dims,
            scaling: rope.scaling()?,
        })
    }
}

/// What a configuration says of positions.
struct Rope<'a> {
    config: Config<'a>,
    nested: Option<&'a Map<String, Value>>,
}

impl Rope<'_> {
    fn get(&self, key: &str) -> Option<&Value> {
        let nested = self
            .nested
            .and_then(|nested| nested.get(key))
            .filter(|value| !value.is_null());
        nested.or_else(|| self.config.get(key))
    }

    fn float_if(&self, key: &str) -> Result<Option<f64>> {
        self.get(key).map(|value| float(key, value)).transpose()
    }

    fn float(&self, key: &str) -> Result<f64> {
        self.float_if(key)?.ok_or_else(|| self.config.missing(key))
    }

    /// Positions of the first training; those of the model where only these are given.
    fn original_positions(&self) -> Result<f64> {
        match self.float_if("original_max_position_embeddings")? {
            Some(positions) => Ok(positions),
            None => self.config.float("max_position_embeddings"),
        }
    }

    fn scaling(&self) -> Result<RopeScaling> {
        let Some(nested) = self.nested else {
            return Ok(RopeScaling::None);
        };
        if nested.values().any(Value::is_object) {
            return Err(LmError::Unsupported(
                "'rope_parameters' differ between kinds of layers, which is not known here".into(),
            ));
        }
        let kind = nested
            .get("rope_type")
            .or_else(|| nested.get("type"))
            .and_then(Value::as_str)
            .unwrap_or("default");
        match kind {
            // Sections of positions in space are for images; those of text are all the same, which is plain rotation.
            "default" | "mrope" => Ok(RopeScaling::None),
            "linear" => Ok(RopeScaling::Linear {
                factor: self.float("factor")?,
            }),
            "llama3" => Ok(RopeScaling::Llama3 {
                factor: self.float("factor")?,
                low_freq_factor: self.float("low_freq_factor")?,
                high_freq_factor: self.float("high_freq_factor")?,
                original_positions: self.original_positions()?,
            }),
            "yarn" => self.yarn(),
            other => Err(LmError::Unsupported(format!(
                "the scaling '{other}' of rotary positions is not known here, only default, linear, llama3 and yarn"
            ))),
        }
    }

    fn yarn(&self) -> Result<RopeScaling> {
        let original_positions = self.original_positions()?;
        let factor = match self.float_if("factor")? {
            Some(factor) => factor,
            None => self.config.float("max_position_embeddings")? / original_positions,
        };
        let magnitude = |weight: f64| {
            if factor <= 1.0 {
                1.0
            } else {
                0.1 * weight * factor.ln() + 1.0
            }
        };
        let given = |key: &str| Ok::<_, LmError>(self.float_if(key)?.filter(|value| *value != 0.0));
        let attention_factor = match (
            self.float_if("attention_factor")?,
            given("mscale")?,
            given("mscale_all_dim")?,
        ) {
            (Some(factor), _, _) => factor,
            (None, Some(some), Some(all)) => magnitude(some) / magnitude(all),
            (None, _, _) => magnitude(1.0),
        };
        let truncate = match self.get("truncate") {
            None => true,
            Some(Value::Bool(truncate)) => *truncate,
            Some(other) => return Err(wrong("truncate", "true or false", other)),
        };
        Ok(RopeScaling::Yarn {
            factor,
            attention_factor,
            beta_fast: given("beta_fast")?.unwrap_or(32.0),
            beta_slow: given("beta_slow")?.unwrap_or(1.0),
            original_positions,
            truncate,
        })
    }
}

fn count(key: &str, value: &Value) -> Result<i64> {
    value
        .as_i64()
        .filter(|count| (1..=1 << 40).contains(count))
        .ok_or_else(|| wrong(key, "a whole number from 1", value))
}

fn float(key: &str, value: &Value) -> Result<f64> {
    value
        .as_f64()
        .filter(|number| number.is_finite())
        .ok_or_else(|| wrong(key, "a number", value))
}

fn wrong(key: &str, expected: &str, found: &Value) -> LmError {
    LmError::Unsupported(format!("'{key}' of the configuration is {found}, {expected} is needed"))
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, clippy::panic)]

    use serde_json::{Map, Value, json};

    use super::Config;
    use crate::nn::rotary::RopeScaling;

    fn map(value: Value) -> Map<String, Value> {
        let Value::Object(map) = value else { panic!("an object") };
        map
    }

    #[test]
    fn old_and_new_forms_of_positions_are_the_same() {
        let old = map(json!({
            "model_type": "llama", "rope_theta": 5e5, "max_position_embeddings": 128,
            "rope_scaling": {"type": "yarn", "factor": 4.0, "original_max_position_embeddings": 32},
        }));
        let new = map(json!({
            "model_type": "llama", "max_position_embeddings": 128,
            "rope_parameters": {"rope_type": "yarn", "rope_theta": 5e5, "factor": 4.0, "original_max_position_embeddings": 32},
        }));
        let old = Config::new(&old).unwrap().rope(16, 1.0).unwrap();
        assert_eq!(old, Config::new(&new).unwrap().rope(16, 1.0).unwrap());
        assert_eq!(old.theta, 5e5);
        assert!(matches!(
            old.scaling,
            RopeScaling::Yarn {
                factor: 4.0,
                original_positions: 32.0,
                ..
            }
        ));
    }

    #[test]
    fn nested_configurations_are_read() {
        let config = map(json!({
            "model_type": "qwen3_5_moe", "tie_word_embeddings": true,
            "text_config": {"model_type": "qwen3_5_moe_text", "hidden_size": 64, "tie_word_embeddings": false},
        }));
        let config = Config::new(&config).unwrap();
        assert_eq!(config.model_type(), "qwen3_5_moe_text");
        assert_eq!(config.count("hidden_size").unwrap(), 64);
        assert!(config.tied().unwrap());
    }

    #[test]
    fn what_is_wrong_is_named() {
        let config = map(json!({
            "model_type": "llama", "hidden_size": "wide", "hidden_act": "gelu_new", "num_attention_heads": 5,
            "num_key_value_heads": 2, "rope_parameters": {"rope_type": "longrope"}, "tie_word_embeddings": 1,
        }));
        let config = Config::new(&config).unwrap();
        let text = |error: crate::LmError| error.to_string();
        assert!(
            text(config.count("hidden_size").unwrap_err()).contains("'hidden_size' of the configuration is \"wide\"")
        );
        assert!(text(config.count("vocab_size").unwrap_err()).contains("no 'vocab_size', which llama needs"));
        assert!(text(config.require_silu().unwrap_err()).contains("'gelu_new'"));
        assert!(text(config.heads(None).unwrap_err()).contains("no multiple of 'num_key_value_heads'"));
        assert!(text(config.rope(16, 1.0).unwrap_err()).contains("'longrope'"));
        assert!(text(config.tied().unwrap_err()).contains("'tie_word_embeddings'"));
        assert!(text(config.rope(10, 0.5).unwrap_err()).contains("5 of 10"));
    }
}
