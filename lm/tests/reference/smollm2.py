"""Makes the files that the tests on SmolLM2 compare with: lm/tests/load/fixtures/smollm2*.json.

    python lm/tests/reference/smollm2.py PATH OF smollm2-135m-instruct.gguf

`smollm2.json` has sums and first values of the tensors, and tokens of texts. `smollm2_greedy.json` has what transformers, which
dequantises the file to float32, writes greedily after ten prompts, and how far ahead each token was of the next best one.

Made with torch 2.11, transformers 5.24 and gguf 0.19.
"""

import json
import pathlib
import sys

import gguf
import torch
from load import OUT, TALK, TEXTS, byte_level, expected
from tokenizers import AddedToken, Tokenizer, decoders, models
from transformers import AutoModelForCausalLM, AutoTokenizer

NEW_TOKENS = 64

# Texts to continue, and questions in the model's own chat template.
PROMPTS = [
    "The French Revolution began in",
    "def fibonacci(n):\n    ",
    "Once upon a time, in a village by the sea, there lived",
    "1, 2, 4, 8, 16,",
    "Der schnelle braune Fuchs",
    "import pandas as pd\nfrom sklearn.linear_model import Ridge\n\ntrain = pd.read_csv(\"train.csv\")\n",
]
QUESTIONS = [
    "Explain in detail how gradient boosting works, step by step.",
    "Write a Python function that reverses a list in place.",
    "What are the advantages and disadvantages of cross-validation?",
    "Describe a sunset over the mountains.",
]


def tokenizer_of(path):
    reader = gguf.GGUFReader(path)
    fields = {key: reader.fields[f"tokenizer.ggml.{key}"].contents() for key in ["tokens", "merges", "token_type"]}
    vocabulary = {token: index for index, token in enumerate(fields["tokens"])}
    tokenizer = Tokenizer(models.BPE(vocab=vocabulary, merges=[tuple(merge.split(" ")) for merge in fields["merges"]]))
    # transformers splits the texts of such a file as GPT-2 does; the file says smollm, which sets digits apart.
    tokenizer.pre_tokenizer = byte_level("smollm")
    tokenizer.decoder = decoders.ByteLevel()
    control = [token for token, kind in zip(fields["tokens"], fields["token_type"]) if kind == 3]
    tokenizer.add_special_tokens([AddedToken(token, normalized=False, special=True) for token in control])
    return tokenizer


def facts(model, tokenizer, template):
    tensors = {}
    for name, tensor in model.state_dict().items():
        if name != "lm_head.weight":
            wide = tensor.double()
            first = tensor.flatten()[:4].tolist()
            tensors[name] = {"shape": list(tensor.shape), "sum": wide.sum().item(), "squares": (wide * wide).sum().item(), "first": first}
    talk = template.apply_chat_template(TALK, add_generation_prompt=True, tokenize=False)
    result = {"tensors": tensors, "texts": TEXTS, "expected": expected(tokenizer), "messages": json.dumps(TALK), "chat": talk}
    (OUT / "smollm2.json").write_text(json.dumps(result, ensure_ascii=False))


def continuation(model, tokens):
    """Greedy tokens, and for each the distance of its logit to the next best one."""
    inputs = torch.tensor([tokens])
    with torch.no_grad():
        answer = model.generate(
            inputs,
            attention_mask=torch.ones_like(inputs),
            do_sample=False,
            max_new_tokens=NEW_TOKENS,
            pad_token_id=2,
            output_logits=True,
            return_dict_in_generate=True,
        )
    best = [logits[0].topk(2).values for logits in answer.logits]
    return answer.sequences[0, len(tokens) :].tolist(), [round((first - second).item(), 6) for first, second in best]


def greedy(model, tokenizer, template):
    cases = []
    for text, is_chat in [(text, False) for text in PROMPTS] + [(text, True) for text in QUESTIONS]:
        whole = text
        if is_chat:
            whole = template.apply_chat_template([{"role": "user", "content": text}], add_generation_prompt=True, tokenize=False)
        tokens = tokenizer.encode(whole, add_special_tokens=False).ids
        new, gaps = continuation(model, tokens)
        written = tokenizer.decode(new, skip_special_tokens=True)
        cases.append({"prompt": text, "chat": is_chat, "tokens": tokens, "continuation": new, "text": written, "gaps": gaps})
        print(f"{len(new)} tokens, the closest choice {min(gaps):.4f}: {written!r}", flush=True)
    lines = ",\n".join(json.dumps(case, ensure_ascii=False) for case in cases)
    (OUT / "smollm2_greedy.json").write_text(f"[\n{lines}\n]\n")


if __name__ == "__main__":
    torch.set_num_threads(1)
    path = pathlib.Path(sys.argv[1])
    loaded = AutoModelForCausalLM.from_pretrained(path.parent, gguf_file=path.name, dtype=torch.float32).eval()
    own = tokenizer_of(path)
    chats = AutoTokenizer.from_pretrained(path.parent, gguf_file=path.name)
    facts(loaded, own, chats)
    greedy(loaded, own, chats)
