"""What decoding.rs measures, with transformers: python lm/benches/decoding.py"""

import os
import time

import numpy
import torch
import transformers

PROMPT, NEW_TOKENS, LONG_PROMPT = 128, 32, 512

torch.set_num_threads(int(os.environ.get("THREADS", "2")))
config = transformers.LlamaConfig(
    hidden_size=576,
    intermediate_size=1536,
    num_hidden_layers=30,
    num_attention_heads=9,
    num_key_value_heads=3,
    vocab_size=49152,
    max_position_embeddings=8192,
    tie_word_embeddings=True,
)
model = transformers.AutoModelForCausalLM.from_config(config, dtype=torch.float32).eval()


def generate(samples: int, prompt: int, new: int) -> numpy.ndarray:
    inputs = (torch.arange(prompt) * 7 % 49152).repeat(samples, 1)
    begin = numpy.array([time.perf_counter(), time.process_time()])
    model.generate(
        inputs,
        attention_mask=torch.ones_like(inputs),
        do_sample=False,
        max_new_tokens=new,
        min_new_tokens=new,
        eos_token_id=None,
        pad_token_id=0,
    )
    return numpy.array([time.perf_counter(), time.process_time()]) - begin


def line(name: str, tokens: int, seconds: list[numpy.ndarray]) -> None:
    clock, processor = tokens / numpy.min(seconds, axis=0)
    print(f"{name:<12} {clock:8.1f} tokens/s, {processor:8.1f} by processor time", flush=True)


rounds = int(os.environ.get("ROUNDS", "3"))
with torch.no_grad():
    for samples in (1, 4, 16):
        # Less the prompt, which decoding.rs does not count either.
        seconds = []
        for _ in range(rounds):
            seconds.append(generate(samples, PROMPT, NEW_TOKENS + 1) - generate(samples, PROMPT, 1))
        line(f"{samples} samples", samples * NEW_TOKENS, seconds)
    line("prompt", LONG_PROMPT, [generate(1, LONG_PROMPT, 1) for _ in range(rounds)])
