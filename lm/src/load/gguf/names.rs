//! Names and layouts of tensors: from llama.cpp's to Hugging Face's.

use std::collections::BTreeMap;

use super::architecture::{Architecture, LinearHeads};
use super::header::Entry;
use super::tensors::{Recipe, Undo};

/// Recipes of all tensors of the model, and the names of tensors in the file that are no part of it.
#[derive(Debug, Default)]
pub(super) struct Named {
    pub recipes: BTreeMap<String, Recipe>,
    pub ignored: Vec<String>,
}

/// What must be known of a model to lay out its tensors.
#[derive(Debug, Clone, Copy)]
pub(super) struct Layout {
    pub architecture: Architecture,
    pub layers: u64,
    pub heads: i64,
    pub key_value_heads: i64,
    /// Heads of the linear attention, where there is one.
    pub linear: Option<LinearHeads>,
}

/// Names the tensors of a file. Those of no known name keep theirs, so that the model can tell that it does not use them.
pub(super) fn name(entries: &BTreeMap<String, Entry>, layout: &Layout) -> Named {
    let mut named = Named::default();
    for (raw, entry) in entries {
        match raw.strip_prefix("blk.").and_then(|rest| rest.split_once('.')) {
            Some((layer, leaf)) => match layer.parse::<u64>() {
                // llama.cpp counts the blocks that predict further tokens as layers after the others.
                Ok(layer) if layer >= layout.layers => named.ignored.push(raw.clone()),
                Ok(layer) => layout.name_in_layer(raw, layer, leaf, entry, &mut named),
                Err(_) => named.add(raw.clone(), Recipe::plain(raw)),
            },
            None => layout.name_outside(raw, &mut named),
        }
    }
    named
}

impl Named {
    fn add(&mut self, name: String, recipe: Recipe) {
        self.recipes.insert(name, recipe);
    }
}

impl Layout {
    /// Norms whose weight is stored with one added.
    fn norm(&self, raw: &str) -> Recipe {
        if self.architecture.has_offset_norms() {
            Recipe::undoing(raw, [Undo::PlusOne])
        } else {
            Recipe::plain(raw)
        }
    }

    fn name_outside(&self, raw: &str, named: &mut Named) {
        match raw {
            "token_embd.weight" => named.add("model.embed_tokens.weight".to_owned(), Recipe::plain(raw)),
            "output_norm.weight" => named.add("model.norm.weight".to_owned(), self.norm(raw)),
            "output.weight" => named.add("lm_head.weight".to_owned(), Recipe::plain(raw)),
            // The configuration says the same, see `rope`.
            "rope_freqs.weight" => {}
            other => named.add(other.to_owned(), Recipe::plain(other)),
        }
    }

    fn name_in_layer(&self, raw: &str, layer: u64, leaf: &str, entry: &Entry, named: &mut Named) {
        let prefix = format!("model.layers.{layer}.");
        if let Some((stem, kind)) = leaf.rsplit_once('.') {
            if let Some(projection) = dense_name(stem) {
                let recipe = match stem {
                    "attn_q" => self.rotated(raw, self.heads),
                    "attn_k" => self.rotated(raw, self.key_value_heads),
                    "ffn_gate_inp_shexp" if entry.shape.len() == 1 => Recipe::undoing(raw, [Undo::Squeezed { dim: 0 }]),
                    _ => Recipe::plain(raw),
                };
                return named.add(format!("{prefix}{projection}.{kind}"), recipe);
            }
            if let Some(norm) = norm_name(stem) {
                return named.add(format!("{prefix}{norm}.{kind}"), self.norm(raw));
            }
        }
        if self
            .linear
            .is_some_and(|heads| name_linear(raw, &prefix, leaf, heads, named))
            || name_experts(raw, &prefix, leaf, entry, named)
        {
            return;
        }
        named.add(raw.to_owned(), Recipe::plain(raw));
    }

    fn rotated(&self, raw: &str, heads: i64) -> Recipe {
        if self.architecture == Architecture::Llama {
            Recipe::undoing(raw, [Undo::PairedRotary { heads }])
        } else {
            Recipe::plain(raw)
        }
    }
}

/// Experts are stacked in the file; the model has tensors for each.
fn name_experts(raw: &str, prefix: &str, leaf: &str, entry: &Entry, named: &mut Named) -> bool {
    let projections: &[(&str, Option<i64>)] = match leaf {
        "ffn_gate_exps.weight" => &[("gate", None)],
        "ffn_up_exps.weight" => &[("up", None)],
        "ffn_down_exps.weight" => &[("down", None)],
        "ffn_gate_up_exps.weight" => &[("gate", Some(0)), ("up", Some(1))],
        _ => return false,
    };
    for expert in 0..entry.shape.first().copied().unwrap_or(0) {
        for (projection, half) in projections {
            let name = format!("{prefix}mlp.experts.{expert}.{projection}_proj.weight");
            named.add(name, Recipe::expert(raw, expert, *half));
        }
    }
    true
}

/// Projections, by the stem of their name.
fn dense_name(stem: &str) -> Option<&'static str> {
    Some(match stem {
        "attn_q" => "self_attn.q_proj",
        "attn_k" => "self_attn.k_proj",
        "attn_v" => "self_attn.v_proj",
        "attn_output" => "self_attn.o_proj",
        "ffn_gate" => "mlp.gate_proj",
        "ffn_up" => "mlp.up_proj",
        "ffn_down" => "mlp.down_proj",
        "ffn_gate_inp" => "mlp.gate",
        "ffn_gate_inp_shexp" => "mlp.shared_expert_gate",
        "ffn_gate_shexp" => "mlp.shared_expert.gate_proj",
        "ffn_up_shexp" => "mlp.shared_expert.up_proj",
        "ffn_down_shexp" => "mlp.shared_expert.down_proj",
        _ => return None,
    })
}

/// Norms, by the stem of their name.
fn norm_name(stem: &str) -> Option<&'static str> {
    Some(match stem {
        "attn_norm" => "input_layernorm",
        "ffn_norm" | "post_attention_norm" => "post_attention_layernorm",
        "attn_q_norm" => "self_attn.q_norm",
        "attn_k_norm" => "self_attn.k_norm",
        _ => return None,
    })
}

/// Tensors of the gated delta net. Whatever has a place for each head of values is in another order of heads.
fn name_linear(raw: &str, prefix: &str, leaf: &str, heads: LinearHeads, named: &mut Named) -> bool {
    let tiled = |dim: i64, offset: i64, head_size: i64| Undo::TiledHeads {
        dim,
        offset,
        key_heads: heads.keys,
        per_key_head: heads.values / heads.keys,
        head_size,
    };
    let query_key_rows = 2 * heads.keys * heads.key_size;
    let (name, undo) = match leaf {
        "attn_qkv.weight" => ("in_proj_qkv.weight", vec![tiled(0, query_key_rows, heads.value_size)]),
        "attn_gate.weight" => ("in_proj_z.weight", vec![tiled(0, 0, heads.value_size)]),
        "ssm_alpha.weight" => ("in_proj_a.weight", vec![tiled(0, 0, 1)]),
        "ssm_beta.weight" => ("in_proj_b.weight", vec![tiled(0, 0, 1)]),
        "ssm_conv1d.weight" => (
            "conv1d.weight",
            vec![tiled(0, query_key_rows, heads.value_size), Undo::Squeezed { dim: 1 }],
        ),
        "ssm_a" => ("A_log", vec![Undo::NegatedExponential, tiled(0, 0, 1)]),
        "ssm_dt.bias" => ("dt_bias", vec![tiled(0, 0, 1)]),
        "ssm_norm.weight" => ("norm.weight", Vec::new()),
        "ssm_out.weight" => ("out_proj.weight", vec![tiled(1, 0, heads.value_size)]),
        _ => return false,
    };
    named.add(format!("{prefix}linear_attn.{name}"), Recipe::undoing(raw, undo));
    true
}
