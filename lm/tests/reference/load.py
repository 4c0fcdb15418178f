"""Makes the files that the tests of loading compare with: lm/tests/load/fixtures.

    python lm/tests/reference/load.py

Needs torch, transformers, gguf, safetensors and tokenizers. smollm2.py makes those of the real small model.
"""

import json
import pathlib
import shutil
import tempfile

import gguf
import numpy as np
import torch
from gguf import GGMLQuantizationType as Q
from safetensors.numpy import save_file
from tokenizers import AddedToken, Regex, Tokenizer, decoders, models, pre_tokenizers, trainers
from transformers import AutoConfig, AutoModelForCausalLM, PreTrainedTokenizerFast
from transformers.models.llama.tokenization_llama import LlamaTokenizer
from transformers.models.qwen2.tokenization_qwen2 import Qwen2Tokenizer
from transformers.models.qwen3_5.tokenization_qwen3_5 import Qwen3_5Tokenizer
from transformers.tokenization_utils_base import generate_merges

HERE = pathlib.Path(__file__).parent
OUT = HERE.parent / "load" / "fixtures"
RANDOM = np.random.default_rng(20)

TEXTS = [
    "",
    " ",
    "Hello, world!",
    "  two  spaces,\ttabs\t\tand\n\n\nnew lines \r\n end ",
    "def f(x):\n    return {k: v for k, v in x.items() if v != 0}  # 12 + 345 = 0x1F\n",
    "I'm, you're, THEY'LL, we'Ve 1st 22nd 333rd 4444 1234567.89e-10",
    "Größe, naïve café, cafe\u0301, Ελληνικά, русский текст, العربية, हिन्दी नमस्ते",
    "漢字かな交じり文、中文测试。한국어 텍스트",
    "emoji 👩‍👩‍👧‍👦 🏳️‍🌈 🇩🇪 👍🏽!! 🤷",
    "½ ² ① Ⅷ ٣ 𝟘 math: ∑_{i=0}^{∞} x²",
    "<|im_start|>user\nhi<|im_end|> and <|im_start|> again",
    "a\u00a0b\u200bc\u2028d\u0000e\x7f",
    "....!!!???---___===   \n \n  \n",
    "https://example.com/a?b=c&d=%20#e <tag attr='x'>y</tag> \\n \\u0041",
    "ſ ŉ ﬁ Å Å",
]
CORPUS = TEXTS * 3 + pathlib.Path(__file__).read_text().splitlines()


# Blocks of every format, and what the gguf package makes of them.


def dequantization():
    def halves(count, top):
        return (RANDOM.random(count) * top + 1e-3).astype(np.float16).view(np.uint8).reshape(count, 2)

    # Where in a block the 16-bit floats are; random bytes there would be infinities.
    floats = {
        Q.Q4_0: [0],
        Q.Q4_1: [0, 2],
        Q.Q5_0: [0],
        Q.Q5_1: [0, 2],
        Q.Q8_0: [0],
        Q.Q2_K: [80, 82],
        Q.Q3_K: [108],
        Q.Q4_K: [0, 2],
        Q.Q5_K: [0, 2],
        Q.Q6_K: [208],
    }
    tensors = {}
    for kind, places in floats.items():
        _, size = gguf.GGML_QUANT_SIZES[kind]
        blocks = RANDOM.integers(0, 256, (5, size), dtype=np.uint8)
        for place in places:
            blocks[:, place : place + 2] = halves(5, 0.1)
        tensors[f"{kind.name}.blocks"] = blocks.reshape(1, -1)
        tensors[f"{kind.name}.values"] = gguf.dequantize(blocks, kind)
    values = RANDOM.standard_normal((1, 64)).astype(np.float32)
    tensors["F16.blocks"] = values.astype(np.float16).view(np.uint8)
    tensors["F16.values"] = values.astype(np.float16).astype(np.float32)
    tensors["BF16.blocks"] = gguf.quantize(values, Q.BF16)
    tensors["BF16.values"] = gguf.dequantize(tensors["BF16.blocks"], Q.BF16)
    save_file({name: np.ascontiguousarray(tensor) for name, tensor in tensors.items()}, OUT / "dequantization.safetensors")


# Small models: random tensors as llama.cpp names them, and what transformers makes of them.

VOCABULARY = 32


def write_model(path, architecture, keys, tensors, kinds=(Q.F32,), tokenizer=None):
    writer = gguf.GGUFWriter(path, architecture)
    for key, value in keys.items():
        name = f"{architecture}.{key}"
        if isinstance(value, bool):
            writer.add_bool(name, value)
        elif isinstance(value, int):
            writer.add_uint32(name, value)
        elif isinstance(value, float):
            writer.add_float32(name, value)
        elif isinstance(value, str):
            writer.add_string(name, value)
        else:
            writer.add_array(name, value)
    if tokenizer is None:
        writer.add_tokenizer_model("gpt2")
        writer.add_tokenizer_pre("gpt-2")
        writer.add_token_list([f"<{index}>" for index in range(VOCABULARY)])
        writer.add_token_merges([])
        writer.add_eos_token_id(2)
    else:
        tokenizer(writer)
    for index, (name, shape) in enumerate(tensors.items()):
        value = RANDOM.standard_normal(shape).astype(np.float32)
        if name.endswith("ssm_a"):
            value = -np.exp(value)
        # transformers joins stacks of experts only when they are in one block format.
        kind = Q.Q8_0 if "_exps" in name else kinds[index % len(kinds)]
        if len(shape) == 1 or "conv1d" in name or kind == Q.F32:
            writer.add_tensor(name, value)
        else:
            writer.add_tensor(name, gguf.quantize(value, kind), raw_dtype=kind)
    writer.write_header_to_file()
    writer.write_kv_data_to_file()
    writer.write_tensors_to_file()
    writer.close()


def attention(prefix, hidden, heads, kv_heads, head, output_gate=False):
    return {
        f"{prefix}.attn_q.weight": (heads * head * (2 if output_gate else 1), hidden),
        f"{prefix}.attn_k.weight": (kv_heads * head, hidden),
        f"{prefix}.attn_v.weight": (kv_heads * head, hidden),
        f"{prefix}.attn_output.weight": (hidden, heads * head),
    }


def dense(prefix, hidden, inner, end=""):
    return {
        f"{prefix}.ffn_gate{end}.weight": (inner, hidden),
        f"{prefix}.ffn_up{end}.weight": (inner, hidden),
        f"{prefix}.ffn_down{end}.weight": (hidden, inner),
    }


def experts(prefix, count, hidden, inner):
    return {
        f"{prefix}.ffn_gate_inp.weight": (count, hidden),
        f"{prefix}.ffn_gate_exps.weight": (count, inner, hidden),
        f"{prefix}.ffn_up_exps.weight": (count, inner, hidden),
        f"{prefix}.ffn_down_exps.weight": (count, hidden, inner),
    }


def base(layers, hidden, heads, kv_heads, **more):
    return {
        "block_count": layers,
        "context_length": 256,
        "embedding_length": hidden,
        "attention.head_count": heads,
        "attention.head_count_kv": kv_heads,
        "attention.layer_norm_rms_epsilon": 1e-5,
        "rope.freq_base": 50000.0,
        "vocab_size": VOCABULARY,
    } | {key.replace("__", "."): value for key, value in more.items()}


def outer(hidden, head=False):
    return {"token_embd.weight": (VOCABULARY, hidden), "output_norm.weight": (hidden,)} | (
        {"output.weight": (VOCABULARY, hidden)} if head else {}
    )


def small_models():
    llama = outer(32)
    qwen2 = outer(32, head=True)
    qwen3 = outer(32)
    moe = outer(32, head=True)
    for layer in range(2):
        prefix = f"blk.{layer}"
        norms = {f"{prefix}.attn_norm.weight": (32,), f"{prefix}.ffn_norm.weight": (32,)}
        head_norms = {f"{prefix}.attn_q_norm.weight": (16,), f"{prefix}.attn_k_norm.weight": (16,)}
        llama |= norms | attention(prefix, 32, 4, 2, 8) | dense(prefix, 32, 64)
        biases = {f"{prefix}.attn_q.bias": (32,), f"{prefix}.attn_k.bias": (16,), f"{prefix}.attn_v.bias": (16,)}
        qwen2 |= norms | attention(prefix, 32, 4, 2, 8) | biases | dense(prefix, 32, 64)
        qwen3 |= norms | head_norms | attention(prefix, 32, 4, 2, 16) | dense(prefix, 32, 64)
        moe |= norms | head_norms | attention(prefix, 32, 4, 2, 16) | experts(prefix, 4, 32, 32)

    # Three layers with a delta net, one with attention, and a block that predicts further tokens.
    hybrid = outer(32, head=True)
    value_heads, value_size, key_heads, key_size = 4, 8, 2, 16
    values, channels = value_heads * value_size, 2 * key_heads * key_size + value_heads * value_size
    for layer in range(5):
        prefix = f"blk.{layer}"
        hybrid |= {f"{prefix}.attn_norm.weight": (32,), f"{prefix}.post_attention_norm.weight": (32,)}
        hybrid |= experts(prefix, 4, 32, 32) | dense(prefix, 32, 32, "_shexp") | {f"{prefix}.ffn_gate_inp_shexp.weight": (32,)}
        if layer >= 3:
            hybrid |= attention(prefix, 32, 4, 2, 16, output_gate=True)
            hybrid |= {f"{prefix}.attn_q_norm.weight": (16,), f"{prefix}.attn_k_norm.weight": (16,)}
        else:
            hybrid |= {
                f"{prefix}.attn_qkv.weight": (channels, 32),
                f"{prefix}.attn_gate.weight": (values, 32),
                f"{prefix}.ssm_alpha.weight": (value_heads, 32),
                f"{prefix}.ssm_beta.weight": (value_heads, 32),
                f"{prefix}.ssm_conv1d.weight": (channels, 4),
                f"{prefix}.ssm_a": (value_heads,),
                f"{prefix}.ssm_dt.bias": (value_heads,),
                f"{prefix}.ssm_norm.weight": (value_size,),
                f"{prefix}.ssm_out.weight": (32, values),
            }
    head = {"attention.key_length": 16, "attention.value_length": 16}
    expert = {"expert_count": 4, "expert_used_count": 2, "expert_feed_forward_length": 32}
    hybrid_keys = base(5, 32, 4, 2) | head | expert | {
        "expert_shared_feed_forward_length": 32,
        "full_attention_interval": 4,
        "nextn_predict_layers": 1,
        "rope.dimension_count": 4,
        "rope.dimension_sections": [1, 1, 0, 0],
        "ssm.conv_kernel": 4,
        "ssm.state_size": key_size,
        "ssm.group_count": key_heads,
        "ssm.time_step_rank": value_heads,
        "ssm.inner_size": values,
    }
    quantized = (Q.Q8_0, Q.Q4_0, Q.Q5_1, Q.F16, Q.Q4_1, Q.Q5_0)
    small = {
        "llama": (base(2, 32, 4, 2, rope__dimension_count=8, feed_forward_length=64), llama, quantized),
        "qwen2": (base(2, 32, 4, 2, feed_forward_length=64), qwen2, (Q.Q8_0, Q.F32, Q.F16)),
        "qwen3": (base(2, 32, 4, 2, feed_forward_length=64) | head, qwen3, (Q.F32,)),
        "qwen3moe": (base(2, 32, 4, 2, feed_forward_length=64) | head | expert, moe, (Q.Q8_0,)),
        "qwen35moe": (hybrid_keys, hybrid, (Q.F32, Q.Q8_0)),
    }
    for architecture, (keys, tensors, kinds) in small.items():
        folder = OUT / architecture
        shutil.rmtree(folder, ignore_errors=True)
        folder.mkdir(parents=True)
        path = folder / "model.gguf"
        write_model(path, architecture, keys, tensors, kinds)
        config = AutoConfig.from_pretrained(folder, gguf_file="model.gguf")
        # transformers does not read these two from files of the older architectures.
        if architecture in ("qwen3", "qwen3moe"):
            config.head_dim = 16
        if architecture == "qwen3moe":
            config.moe_intermediate_size = 32
        model = AutoModelForCausalLM.from_pretrained(folder, gguf_file="model.gguf", config=config, dtype=torch.float32)
        # A model that came from a GGUF file refuses to be saved; a fresh one with the same weights does not.
        if hasattr(model.config, "quantization_config"):
            del model.config.quantization_config
        fresh = AutoModelForCausalLM.from_config(model.config, dtype=torch.float32)
        fresh.load_state_dict(model.state_dict())
        with tempfile.TemporaryDirectory() as work:
            fresh.save_pretrained(work)
            (folder / "hf").mkdir()
            for name in ["config.json", "model.safetensors"]:
                shutil.copy(pathlib.Path(work) / name, folder / "hf" / name)


# Tokenizers.

SPECIAL = ["<|endoftext|>", "<|im_start|>", "<|im_end|>"]
LLAMA3_SPLIT = (
    r"(?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}{1,3}"
    r"| ?[^\s\p{L}\p{N}]+[\r\n]*|\s*[\r\n]+|\s+(?!\S)|\s+"
)


def byte_level(splits):
    def words(**options):
        return pre_tokenizers.ByteLevel(add_prefix_space=False, **options)

    return {
        "gpt-2": words(),
        "smollm": pre_tokenizers.Sequence([pre_tokenizers.Digits(individual_digits=True), words()]),
        "llama-bpe": pre_tokenizers.Sequence(
            [pre_tokenizers.Split(Regex(LLAMA3_SPLIT), behavior="isolated"), words(use_regex=False)]
        ),
    }[splits]


def trained():
    tokenizer = Tokenizer(models.BPE())
    tokenizer.pre_tokenizer = byte_level("gpt-2")
    trainer = trainers.BpeTrainer(
        vocab_size=700, special_tokens=SPECIAL, initial_alphabet=sorted(pre_tokenizers.ByteLevel.alphabet()), show_progress=False
    )
    tokenizer.train_from_iterator(CORPUS, trainer)
    model = json.loads(tokenizer.to_str())["model"]
    tokens = sorted(model["vocab"], key=model["vocab"].get)
    return tokens, [tuple(merge) for merge in model["merges"]]


def reference_byte_level(tokens, merges, splits):
    vocabulary = {token: index for index, token in enumerate(tokens)}
    if splits in ("qwen2", "qwen35"):
        made = (Qwen2Tokenizer if splits == "qwen2" else Qwen3_5Tokenizer)(vocab=vocabulary, merges=merges)
        tokenizer = made.backend_tokenizer
    else:
        tokenizer = Tokenizer(models.BPE(vocab=vocabulary, merges=merges, ignore_merges=splits == "llama-bpe"))
        tokenizer.pre_tokenizer = byte_level(splits)
        tokenizer.decoder = decoders.ByteLevel()
    tokenizer.add_special_tokens([AddedToken(token, normalized=False, special=True) for token in SPECIAL])
    return tokenizer


def embedding_only(path, tokenizer, size):
    """A model of one layer with hardly anything in it but a tokenizer."""
    tensors = {"token_embd.weight": (size, 32), "output_norm.weight": (32,)}
    write_model(path, "llama", base(1, 32, 4, 2, feed_forward_length=32), tensors, (Q.Q4_0,), tokenizer)


def expected(tokenizer, texts=TEXTS):
    ids = [tokenizer.encode(text, add_special_tokens=False).ids for text in texts]
    return {
        "tokens": ids,
        "with_special": [tokenizer.decode(tokens, skip_special_tokens=False) for tokens in ids],
        "without_special": [tokenizer.decode(tokens, skip_special_tokens=True) for tokens in ids],
    }


def tokenizers():
    folder = OUT / "tokenizers"
    shutil.rmtree(folder, ignore_errors=True)
    folder.mkdir(parents=True)
    tokens, merges = trained()
    result = {"texts": TEXTS}
    for splits in ["gpt-2", "smollm", "llama-bpe", "qwen2", "qwen35"]:

        def write(writer, splits=splits):
            writer.add_tokenizer_model("gpt2")
            writer.add_tokenizer_pre(splits)
            writer.add_token_list(tokens)
            writer.add_token_types([3 if token in SPECIAL else 1 for token in tokens])
            writer.add_token_merges([" ".join(merge) for merge in merges])
            writer.add_bos_token_id(tokens.index("<|im_start|>"))
            writer.add_eos_token_id(tokens.index("<|im_end|>"))
            writer.add_add_bos_token(False)

        embedding_only(folder / f"{splits}.gguf", write, len(tokens))
        reference = reference_byte_level(tokens, merges, splits)
        result[splits] = expected(reference)
        if splits == "qwen2":
            reference.save(str(folder / "tokenizer.json"), pretty=False)
    result["llama"] = sentencepiece(folder / "llama.gguf")
    (folder / "expected.json").write_text(json.dumps(result, ensure_ascii=False))


def sentencepiece(path):
    tokenizer = Tokenizer(models.BPE(unk_token="<unk>"))
    tokenizer.pre_tokenizer = pre_tokenizers.Metaspace()
    trainer = trainers.BpeTrainer(vocab_size=400, special_tokens=["<unk>"], limit_alphabet=90, show_progress=False)
    tokenizer.train_from_iterator(CORPUS, trainer)
    learned = sorted(tokenizer.get_vocab(), key=tokenizer.get_vocab().get)[1:]
    single = [piece for piece in learned if len(piece) == 1]
    joined = [piece for piece in learned if len(piece) > 1]
    tokens = ["<unk>", "<s>", "</s>"] + [f"<0x{byte:02X}>" for byte in range(256)] + joined + single
    kinds = [2, 3, 3] + [6] * 256 + [1] * len(learned)
    scores = [0.0] * 259 + [-float(rank) for rank in range(len(learned))]

    def write(writer):
        writer.add_tokenizer_model("llama")
        writer.add_token_list(tokens)
        writer.add_token_types(kinds)
        writer.add_token_scores(scores)
        writer.add_bos_token_id(1)
        writer.add_eos_token_id(2)
        writer.add_unk_token_id(0)

    embedding_only(path, write, len(tokens))
    vocabulary = {token: index for index, token in enumerate(tokens)}
    reference = LlamaTokenizer(vocab=vocabulary, merges=generate_merges(vocabulary, dict(zip(tokens, scores)))).backend_tokenizer
    return expected(reference)


# Chat templates: short ones that do what those of the model families do.

PLAIN = """{% for message in messages %}{% if loop.first and messages[0]['role'] != 'system' %}{{ '<|im_start|>system
Be helpful.<|im_end|>
' }}{% endif %}{{'<|im_start|>' + message['role'] + '
' + message['content'] + '<|im_end|>' + '
'}}{% endfor %}{% if add_generation_prompt %}{{ '<|im_start|>assistant
' }}{% endif %}"""

TOOLS = """
{%- if tools %}
    {{- '<|im_start|>system\\n' }}
    {%- if messages[0].role == 'system' %}
        {{- messages[0].content + '\\n\\n' }}
    {%- endif %}
    {{- "# Tools\\n<tools>" }}
    {%- for tool in tools %}
        {{- "\\n" }}
        {{- tool | tojson }}
    {%- endfor %}
    {{- "\\n</tools><|im_end|>\\n" }}
{%- endif %}
{%- set ns = namespace(last=messages|length - 1, searching=true) %}
{%- for message in messages[::-1] %}
    {%- set index = (messages|length - 1) - loop.index0 %}
    {%- if ns.searching and message.role == "user" and message.content is string and not(message.content.startswith('<result>') and message.content.endswith('</result>')) %}
        {%- set ns.searching = false %}
        {%- set ns.last = index %}
    {%- endif %}
{%- endfor %}
{%- for message in messages %}
    {%- set content = message.content if message.content is string else '' %}
    {%- if message.role == "assistant" %}
        {%- set thought = '' %}
        {%- if message.reasoning_content is string %}
            {%- set thought = message.reasoning_content %}
        {%- elif '</think>' in content %}
            {%- set thought = content.split('</think>')[0].rstrip('\\n').split('<think>')[-1].lstrip('\\n') %}
            {%- set content = content.split('</think>')[-1].lstrip('\\n') %}
        {%- endif %}
        {%- if loop.index0 > ns.last and (loop.last or thought) %}
            {{- '<|im_start|>assistant\\n<think>\\n' + thought.strip('\\n') + '\\n</think>\\n\\n' + content.lstrip('\\n') }}
        {%- else %}
            {{- '<|im_start|>' + message.role + '\\n' + content }}
        {%- endif %}
        {%- for call in message.tool_calls or [] %}
            {%- if call.function %}
                {%- set call = call.function %}
            {%- endif %}
            {{- '\\n<call>{"name": "' ~ call.name ~ '", "arguments": ' }}
            {%- if call.arguments is string %}{{- call.arguments }}{%- else %}{{- call.arguments | tojson }}{%- endif %}
            {{- '}</call>' }}
        {%- endfor %}
        {{- '<|im_end|>\\n' }}
    {%- elif message.role == "tool" %}
        {%- if loop.first or (messages[loop.index0 - 1].role != "tool") %}
            {{- '<|im_start|>user' }}
        {%- endif %}
        {{- '\\n<result>\\n' + content + '\\n</result>' }}
        {%- if loop.last or (messages[loop.index0 + 1].role != "tool") %}
            {{- '<|im_end|>\\n' }}
        {%- endif %}
    {%- elif message.role != "system" or not tools %}
        {{- '<|im_start|>' + message.role + '\\n' + content + '<|im_end|>' + '\\n' }}
    {%- endif %}
{%- endfor %}
{%- if add_generation_prompt %}
    {{- '<|im_start|>assistant\\n' }}
    {%- if enable_thinking is defined and enable_thinking is false %}
        {{- '<think>\\n\\n</think>\\n\\n' }}
    {%- endif %}
{%- endif %}
"""

STRICT = """{{ bos_token }}{% if messages[0]['role'] == 'system' %}
  {% set system = messages[0]['content'] | trim %}
  {% set rest = messages[1:] %}
{% else %}
  {% set system = none %}
  {% set rest = messages %}
{% endif %}
{% for message in rest %}
  {% if (message['role'] == 'user') != (loop.index0 % 2 == 0) %}
    {{ raise_exception('Roles must alternate') }}
  {% endif %}
  {% if message.role == 'user' %}
[INST]{% if loop.first and system is not none %} <<{{ system }}>>{% endif %} {{ message['content'] | trim }} [/INST]
  {% else %}
{% generation %}
{{ message['content'] }}{{ eos_token }}
{% endgeneration %}
  {% endif %}
  {# parts of a message #}
  {% for key, value in message.items() %}{% if key not in ['role', 'content'] %}{{ key }}={{ value }};{% endif %}{% if loop.index > 5 %}{% break %}{% endif %}{% endfor %}
{% endfor %}
"""

DUMP = """{{ value | tojson }}
{{ value | tojson(indent=2) }}
{{ value }} {{ value.items() | list | length }}
{{- value.get('absent', 'nothing') }} {{ value.float }} {{ value.flag ~ '' if false else 'x' }}
{% if absent is defined %}defined{% endif %}{{ absent }}{{ unset or 'or' }}"""

VALUE = {
    "z": "first <b> & 'quoted' \"double\" \\ slash\n\ttab é 漢 👍 \u0001",
    "a": [1, -2, 3.5, 1e20, 1e-7, True, False, None, [], {}, {"k": []}],
    "float": 2.0,
    "flag": True,
    "nested": {"y": 1, "b": {"c": "it's"}},
}

TOOL = {
    "type": "function",
    "function": {
        "name": "search",
        "description": "Finds things",
        "parameters": {"type": "object", "required": ["query"], "properties": {"query": {"type": "string"}, "limit": {"type": "integer"}}},
    },
}

TALK = [{"role": "user", "content": "Hi"}, {"role": "assistant", "content": "Hello!"}, {"role": "user", "content": " 2+2? \n"}]
SYSTEM = [{"role": "system", "content": " Be brief. "}]
AGENT = SYSTEM + [
    {"role": "user", "content": "Find x"},
    {
        "role": "assistant",
        "content": "",
        "reasoning_content": "I should search",
        "tool_calls": [{"type": "function", "function": {"name": "search", "arguments": {"query": "x", "limit": 3, "ä": [1.5, None]}}}],
    },
    {"role": "tool", "content": "found x"},
    {"role": "tool", "content": "and y"},
    {"role": "assistant", "content": "<think>\nso\n</think>\n\nIt is x"},
]


def chats():
    tokenizer = PreTrainedTokenizerFast(
        tokenizer_object=Tokenizer(models.BPE(vocab={"<s>": 0, "</s>": 1}, merges=[])), bos_token="<s>", eos_token="</s>"
    )
    cases = [
        ("plain", PLAIN, TALK, None, True, {}),
        ("plain, no prompt", PLAIN, SYSTEM + TALK, None, False, {}),
        ("tools, none", TOOLS, TALK, None, True, {}),
        ("tools, thinking off", TOOLS, TALK, None, True, {"enable_thinking": False}),
        ("tools, thinking on", TOOLS, TALK, None, True, {"enable_thinking": True}),
        ("tools, an agent", TOOLS, AGENT, [TOOL, TOOL], False, {}),
        ("tools, an agent without tools", TOOLS, AGENT, None, True, {}),
        ("tools, no content", TOOLS, [{"role": "user", "content": "a"}, {"role": "assistant", "content": None, "tool_calls": None}], None, False, {}),
        ("strict", STRICT, TALK[:2], None, False, {}),
        ("strict, system", STRICT, SYSTEM + TALK, None, True, {}),
        ("strict, further keys", STRICT, [{"role": "user", "content": "x", "n": 1, "b": True, "l": ["a'b", 1.0]}], None, False, {}),
        ("strict, refused", STRICT, TALK[1:], None, False, {}),
        ("values", DUMP, TALK, None, False, {"value": VALUE}),
    ]
    written = []
    for name, template, messages, tools, prompt, variables in cases:
        case = {"name": name, "template": template, "messages": json.dumps(messages), "prompt": prompt}
        case["tools"] = [json.dumps(tool) for tool in tools or []]
        case["variables"] = {key: json.dumps(value) for key, value in variables.items()}
        try:
            case["text"] = tokenizer.apply_chat_template(
                messages, tools=tools, chat_template=template, add_generation_prompt=prompt, tokenize=False, **variables
            )
        except Exception as error:
            case["error"] = str(error)
        written.append(case)
    (OUT / "chats.json").write_text(json.dumps(written, ensure_ascii=False, indent=1))


if __name__ == "__main__":
    OUT.mkdir(parents=True, exist_ok=True)
    torch.manual_seed(0)
    dequantization()
    small_models()
    tokenizers()
    chats()
