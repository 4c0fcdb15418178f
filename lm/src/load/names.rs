//! Names of tensors: what belongs to the language model, and under which name it is asked for.

/// What a tensor of a file is to a causal language model.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Role {
    /// A weight of it, under the name that architectures ask for.
    Weight(String),
    /// Not a part of it: vision towers, heads for predicting several tokens, tables that are computed.
    Ignored,
}

/// Parts of a checkpoint that no causal language model of this crate uses.
const IGNORED: &[&str] = &[
    "visual.",
    "model.visual.",
    "vision_tower.",
    "model.vision_tower.",
    "multi_modal_projector.",
    "mtp.",
    "model.mtp.",
];

/// Prefixes of multimodal checkpoints, and what stands there in a text model.
const PREFIXES: &[(&str, &str)] = &[
    ("model.language_model.", "model."),
    ("language_model.model.", "model."),
    ("language_model.lm_head.", "lm_head."),
];

/// The role of a tensor of a Hugging Face checkpoint. `bare` says that the checkpoint was saved without the `model.` before each
/// name, as a model without a head is.
pub(super) fn role(name: &str, bare: bool) -> Role {
    if IGNORED.iter().any(|prefix| name.starts_with(prefix)) || name.ends_with(".rotary_emb.inv_freq") {
        return Role::Ignored;
    }
    for (prefix, text) in PREFIXES {
        if let Some(rest) = name.strip_prefix(prefix) {
            return Role::Weight(format!("{text}{rest}"));
        }
    }
    Role::Weight(if bare && !name.starts_with("lm_head.") {
        format!("model.{name}")
    } else {
        name.to_owned()
    })
}

/// Whether names lack the prefix `model.`.
pub(super) fn is_bare<'a>(mut names: impl Iterator<Item = &'a str>) -> bool {
    names.any(|name| name == "embed_tokens.weight")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn multimodal_prefixes_are_taken_off() {
        let weight = |name: &str| Role::Weight(name.to_owned());
        assert_eq!(
            role("model.language_model.layers.0.mlp.gate.weight", false),
            weight("model.layers.0.mlp.gate.weight")
        );
        assert_eq!(role("language_model.lm_head.weight", false), weight("lm_head.weight"));
        assert_eq!(role("model.norm.weight", false), weight("model.norm.weight"));
        assert_eq!(
            role("layers.0.input_layernorm.weight", true),
            weight("model.layers.0.input_layernorm.weight")
        );
    }

    #[test]
    fn vision_and_prediction_heads_are_ignored() {
        for name in [
            "model.visual.blocks.0.attn.qkv.weight",
            "visual.merger.norm.bias",
            "mtp.layers.0.mlp.gate.weight",
        ] {
            assert_eq!(role(name, false), Role::Ignored, "{name}");
        }
        assert_eq!(
            role("model.layers.0.self_attn.rotary_emb.inv_freq", false),
            Role::Ignored
        );
    }
}
