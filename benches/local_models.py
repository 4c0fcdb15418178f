#!/usr/bin/env python3
"""Compares the speed of models of provider torch with transformers, on the CPU in float32.

    benches/local_models.py [--model FILE] [--threads 2] [--rounds 3]

Both run in turn in the same minutes, since only that compares them on a machine that others use too. Reading a prompt of 512 tokens is
measured, and continuing one of 128 by 32 tokens in 1, 4 and 16 samples. What both say is compared too. Needs cargo, LIBTORCH
(`scripts/setup-torch.sh`), the model (`clade model pull-smollm2`), and a Python with torch 2.11, transformers and gguf: run it with that.
"""

import argparse
import json
import os
import pathlib
import subprocess
import time

import torch
import transformers

ROOT = pathlib.Path(__file__).resolve().parent.parent
CACHE = pathlib.Path(os.environ.get("XDG_CACHE_HOME") or pathlib.Path.home() / ".cache")
# Name, tokens of the prompt, new tokens, samples.
CASES = [
    ("prompt of 512", 512, 1, 1),
    ("1 sample", 128, 33, 1),
    ("4 samples", 128, 33, 4),
    ("16 samples", 128, 33, 16),
]


def program() -> str:
    """Builds lm/benches/generation.rs and gives its path."""
    command = ["cargo", "bench", "--locked", "--manifest-path", str(ROOT / "lm/Cargo.toml"), "--bench", "generation"]
    done = subprocess.run([*command, "--no-run", "--message-format=json"], check=True, stdout=subprocess.PIPE, text=True)
    messages = [json.loads(line) for line in done.stdout.splitlines()]
    return next(m["executable"] for m in messages if m.get("executable") and m["target"]["name"] == "generation")


class Clade:
    def __init__(self, program: str, model: pathlib.Path, threads: int):
        self.command = [program, str(model), str(threads)]

    def run(self, seed: int, prompt: int, new: int, samples: int) -> dict:
        command = [*self.command, *map(str, (seed, prompt, new, samples))]
        return json.loads(subprocess.run(command, check=True, stdout=subprocess.PIPE, text=True).stdout)


class Transformers:
    def __init__(self, model: pathlib.Path, threads: int):
        transformers.utils.logging.disable_progress_bar()
        torch.set_num_threads(threads)
        load = transformers.AutoModelForCausalLM.from_pretrained
        self.model = load(model.parent, gguf_file=model.name, dtype=torch.float32).eval()
        self.run(1, 8, 2, 1)

    def generate(self, seed: int, prompt: int, new: int, samples: int) -> tuple[float, list[int]]:
        vocabulary = self.model.config.vocab_size
        ids = torch.tensor([[token * 7919 % vocabulary for token in range(seed, seed + prompt)]] * samples)
        begin = time.perf_counter()
        with torch.no_grad():
            out = self.model.generate(
                ids,
                attention_mask=torch.ones_like(ids),
                do_sample=False,
                max_new_tokens=new,
                min_new_tokens=new,
                eos_token_id=None,
                pad_token_id=0,
            )
        return time.perf_counter() - begin, out[0, prompt:].tolist()

    def run(self, seed: int, prompt: int, new: int, samples: int) -> dict:
        # It does not tell when the first token is there. One sample reads the prompt for all others in Clade; here each does, which
        # is not counted.
        first = self.generate(seed, prompt, 1, samples)[0]
        seconds, tokens = self.generate(seed, prompt, new, samples) if new > 1 else (first, [])
        return {"prompt_seconds": first, "new_seconds": seconds - first, "tokens": tokens}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    usual = CACHE / "clade/models/smollm2-135m-instruct.gguf"
    parser.add_argument("--model", type=pathlib.Path, default=usual, help="a GGUF file (default: %(default)s)")
    parser.add_argument("--program", help="lm/benches/generation.rs, built (default: it is built for this)")
    parser.add_argument("--threads", type=int, default=2)
    parser.add_argument("--rounds", type=int, default=3)
    options = parser.parse_args()
    sides = {
        "clade": Clade(options.program or program(), options.model, options.threads),
        "transformers": Transformers(options.model, options.threads),
    }
    print(f"{'tokens a second':<16}{'clade':>10}{'transformers':>14}{'ratio':>8}{'in each round':>24}", flush=True)
    for name, prompt, new, samples in CASES:
        speeds: dict[str, list[float]] = {side: [] for side in sides}
        said = {}
        for round_ in range(options.rounds):
            for side, runner in sides.items():
                result = runner.run(1000 * (round_ + 1), prompt, new, samples)
                tokens, seconds = (prompt, result["prompt_seconds"])
                if new > 1:
                    tokens, seconds = ((new - 1) * samples, result["new_seconds"])
                    said.setdefault(round_, []).append(result["tokens"])
                speeds[side].append(tokens / seconds)
        ours, theirs = (max(speeds[side]) for side in sides)
        rounds = " ".join(f"{one / other:.2f}" for one, other in zip(*speeds.values()))
        print(f"{name:<16}{ours:>10.1f}{theirs:>14.1f}{ours / theirs:>8.2f}{rounds:>24}", flush=True)
        for one, other in said.values():
            if one != other:
                at = next(index for index, pair in enumerate(zip(one, other)) if pair[0] != pair[1])
                print(f"  the continuations differ from token {at + 1} on: {one[at]} and {other[at]}", flush=True)


if __name__ == "__main__":
    main()
