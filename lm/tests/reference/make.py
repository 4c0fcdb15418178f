"""Makes the references of the parity tests with transformers: python lm/tests/reference/make.py

A case is a small configuration that takes one way through an architecture. Its weights are not stored: both sides compute them from
the names of the tensors (`values`). Stored are the shapes, three prompts, greedy continuations, and logits in float32.

Made with torch 2.11 and transformers 5.24.
"""

import json
import math
import pathlib

import numpy
import torch
import transformers
from safetensors.torch import save_file

HERE = pathlib.Path(__file__).parent / "parity"
VOCABULARY = 96
PROMPTS = [5, 17, 80]
# Rows of logits that are kept of a prompt: the last ones.
ROWS = 17
NEW_TOKENS = 64

BASE = {
    "vocab_size": VOCABULARY,
    "hidden_size": 48,
    "intermediate_size": 80,
    "num_hidden_layers": 2,
    "num_attention_heads": 4,
    "num_key_value_heads": 2,
    "hidden_act": "silu",
    "max_position_embeddings": 256,
    "rms_norm_eps": 1e-5,
    "tie_word_embeddings": False,
}
MOE = {"moe_intermediate_size": 24, "num_experts": 8, "num_experts_per_tok": 3}
HYBRID = {
    "head_dim": 16,
    "num_hidden_layers": 4,
    "layer_types": ["linear_attention", "full_attention", "linear_attention", "full_attention"],
    "linear_conv_kernel_dim": 4,
    "linear_key_head_dim": 8,
    "linear_value_head_dim": 12,
    "linear_num_key_heads": 2,
    "linear_num_value_heads": 4,
}
SHARED = {"shared_expert_intermediate_size": 40}
YARN = {"rope_type": "yarn", "rope_theta": 10000.0, "factor": 4.0, "original_max_position_embeddings": 32}
LLAMA3 = {
    "rope_type": "llama3",
    "rope_theta": 10000.0,
    "factor": 8.0,
    "low_freq_factor": 1.0,
    "high_freq_factor": 4.0,
    "original_max_position_embeddings": 64,
}

# Every case as its config.json says it, in the old form and the new.
CASES = {
    "llama_tied": {"model_type": "llama", "tie_word_embeddings": True, "rope_theta": 5000.0},
    "llama_bias": {
        "model_type": "llama",
        "attention_bias": True,
        "mlp_bias": True,
        "num_key_value_heads": 4,
        "head_dim": 16,
        "rope_parameters": LLAMA3,
    },
    "llama_linear": {"model_type": "llama", "num_key_value_heads": 1, "rope_scaling": {"type": "linear", "factor": 3.0}},
    "mistral_window": {"model_type": "mistral", "sliding_window": 8, "head_dim": 16},
    "qwen2": {"model_type": "qwen2", "tie_word_embeddings": True, "rope_parameters": {"rope_type": "default", "rope_theta": 1e6}},
    "qwen2_window": {
        "model_type": "qwen2",
        "num_hidden_layers": 3,
        "use_sliding_window": True,
        "sliding_window": 8,
        "max_window_layers": 1,
    },
    "qwen3": {"model_type": "qwen3", "head_dim": 16, "rope_parameters": YARN},
    "qwen3_layer_types": {
        "model_type": "qwen3",
        "head_dim": 16,
        "attention_bias": True,
        "use_sliding_window": True,
        "sliding_window": 6,
        "layer_types": ["sliding_attention", "full_attention"],
        "rope_parameters": {**YARN, "truncate": False, "beta_fast": 16.0, "beta_slow": 2.0, "mscale": 0.7, "mscale_all_dim": 0.9},
    },
    "qwen3_moe": {
        "model_type": "qwen3_moe",
        **MOE,
        "head_dim": 16,
        "num_hidden_layers": 3,
        "norm_topk_prob": True,
        "mlp_only_layers": [1],
    },
    "qwen3_moe_unnormalised": {
        "model_type": "qwen3_moe",
        **MOE,
        "head_dim": 16,
        "norm_topk_prob": False,
        "decoder_sparse_step": 2,
    },
    "qwen3_next": {
        "model_type": "qwen3_next",
        **HYBRID,
        **MOE,
        **SHARED,
        "norm_topk_prob": False,
        "mlp_only_layers": [2],
        "partial_rotary_factor": 0.5,
    },
    "qwen3_5": {"model_type": "qwen3_5_text", **HYBRID, "tie_word_embeddings": True},
    "qwen3_5_moe": {
        "model_type": "qwen3_5_moe_text",
        **HYBRID,
        **MOE,
        **SHARED,
        "rope_parameters": {
            "rope_type": "default",
            "rope_theta": 1e5,
            "partial_rotary_factor": 0.25,
            "mrope_section": [1, 1, 0],
            "mrope_interleaved": True,
        },
    },
}
# As they are published: the language model is one part of several.
NESTED = {"qwen3_5_moe": "qwen3_5_moe"}


def values(name: str, shape: tuple[int, ...], centre: float) -> torch.Tensor:
    """Numbers that both sides compute alike, exact in float32: splitmix64 of the name's FNV-1a hash and the index."""
    seed = 0xCBF29CE484222325
    for byte in name.encode():
        seed = ((seed ^ byte) * 0x100000001B3) % 2**64
    with numpy.errstate(over="ignore"):
        state = numpy.uint64(seed) + numpy.arange(1, math.prod(shape) + 1, dtype=numpy.uint64) * numpy.uint64(0x9E3779B97F4A7C15)
        state = (state ^ (state >> numpy.uint64(30))) * numpy.uint64(0xBF58476D1CE4E5B9)
        state = (state ^ (state >> numpy.uint64(27))) * numpy.uint64(0x94D049BB133111EB)
        state = state ^ (state >> numpy.uint64(31))
    unit = (state >> numpy.uint64(40)).astype(numpy.float32) / numpy.float32(2**23) - numpy.float32(1)
    if "norm" in name:
        unit = numpy.float32(0.75 if "linear_attn" in name else centre) + numpy.float32(0.25) * unit
    elif "embed" in name or "lm_head" in name:
        unit = numpy.float32(0.25) * unit
    else:
        unit = numpy.float32(0.5) * unit
    return torch.from_numpy(unit.reshape(shape))


def make(name: str, config: dict) -> None:
    config = {**BASE, **config}
    parsed = transformers.AutoConfig.for_model(**json.loads(json.dumps(config)))
    model = transformers.AutoModelForCausalLM.from_config(parsed, attn_implementation="eager", dtype=torch.float32).eval()
    # Weights of norms are factors, or in these families what is added to one.
    centre = 0.0 if config["model_type"].startswith(("qwen3_next", "qwen3_5")) else 0.75
    shapes = {}
    with torch.no_grad():
        for tensor, parameter in model.named_parameters():
            shapes[tensor] = list(parameter.shape)
            parameter.copy_(values(tensor, tuple(parameter.shape), centre))
    logits, prompts, continuations = {}, [], []
    for number, length in enumerate(PROMPTS):
        tokens = [(7 * number + 13 * place + place * place // 3) % VOCABULARY for place in range(length)]
        inputs = torch.tensor([tokens])
        with torch.no_grad():
            logits[f"logits.{number}"] = model(inputs, use_cache=False).logits[0, -ROWS:].contiguous()
            answer = model.generate(
                inputs,
                attention_mask=torch.ones_like(inputs),
                do_sample=False,
                max_new_tokens=NEW_TOKENS,
                min_new_tokens=NEW_TOKENS,
                eos_token_id=None,
                pad_token_id=0,
            )
        prompts.append(tokens)
        continuations.append(answer[0, length:].tolist())
    if name in NESTED:
        config = {"model_type": NESTED[name], "tie_word_embeddings": config["tie_word_embeddings"], "text_config": config}
    case = {"config": config, "centre": centre, "tensors": shapes, "prompts": prompts, "continuations": continuations}
    (HERE / f"{name}.json").write_text(json.dumps(case, separators=(",", ":")) + "\n")
    save_file(logits, HERE / f"{name}.safetensors")
    with torch.no_grad():
        cache, rows = None, []
        for token in prompts[2]:
            output = model(torch.tensor([[token]]), cache=cache, use_cache=True)
            cache = output.cache
            rows.append(output.logits[0])
    rounding = (torch.cat(rows)[-ROWS:] - logits["logits.2"]).abs().max().item()
    spread = logits["logits.2"].std().item()
    tokens = len(set(continuations[2]))
    print(f"{name}: deviation {spread:.2f}, {tokens} different tokens, token by token differs by {rounding:.1e}", flush=True)


if __name__ == "__main__":
    HERE.mkdir(exist_ok=True)
    torch.set_num_threads(1)
    for case, settings in CASES.items():
        make(case, settings)
