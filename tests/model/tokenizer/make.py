"""Writes the small tokenizers of this folder and what the library `tokenizers` counts with them (counts.json).

    pip install tokenizers
    python tests/model/tokenizer/make.py
"""

import json
import pathlib

from tokenizers import Regex, Tokenizer, decoders, models, pre_tokenizers, trainers

HERE = pathlib.Path(__file__).parent
WORDS = r"(?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{L}\p{N}]?\p{L}+|"
REST = r"| ?[^\s\p{L}\p{N}]+[\r\n]*|\s*[\r\n]+|\s+(?!\S)|\s+"
CJK = r"[一-龥぀-ゟ゠-ヿ]+"


def split(pattern):
    return pre_tokenizers.Split(Regex(pattern), "isolated")


BYTES = pre_tokenizers.ByteLevel(add_prefix_space=False, use_regex=False)
KINDS = {
    "gpt2": pre_tokenizers.ByteLevel(add_prefix_space=False),
    "qwen": pre_tokenizers.Sequence([split(WORDS + r"\p{N}" + REST), BYTES]),
    "llama": pre_tokenizers.Sequence([split(WORDS + r"\p{N}{1,3}" + REST), BYTES]),
    "deepseek": pre_tokenizers.Sequence([split(r"\p{N}{1,3}"), split(CJK), split(WORDS + r"\p{N}" + REST), BYTES]),
}
CORPUS = [
    "import pandas as pd\nfrom sklearn.ensemble import RandomForestRegressor\n\n\ndef main() -> None:\n    train = pd.read_csv('train.csv')\n",
    "    model = RandomForestRegressor(n_estimators=300, random_state=42)\n    model.fit(train[features], train['target'])\n",
    "    print(f'Final Validation Score: {score}')\n\n\nif __name__ == '__main__':\n    main()\n",
    "The plan: we'll use gradient boosting, because it's robust; cross-validate with 5 folds and 1000 trees.\n",
    "Größe und Länge, déjà vu, 训练集和测试集, テスト, 12345 67.89 %\n",
] * 4
TEXTS = [
    "",
    " ",
    "a",
    "    ",
    "x    y",
    "x \n\n   y\r\n\tz  ",
    "print(1234567)\n",
    "I'LL we've don't ſ's",
    "Größe 训练集和测试集テスト ok",
    "emoji 🙂 and \u00a0 wide\u3000space \u2028 line",
    "=" * 300 + "\n" + "ab" * 500,
    "\n\nx = [1, 22, 333, 4444]\n\n\n",
    "a.b(c)!?? --> {d: 'e'}\n",
    "".join(CORPUS[:5]),
    "  leading and trailing  ",
]


def main():
    rows = [{"text": text, "counts": {}} for text in TEXTS]
    for name, pre_tokenizer in KINDS.items():
        tokenizer = Tokenizer(models.BPE(ignore_merges=name == "llama"))
        tokenizer.pre_tokenizer = pre_tokenizer
        tokenizer.decoder = decoders.ByteLevel()
        alphabet = pre_tokenizers.ByteLevel.alphabet()
        trainer = trainers.BpeTrainer(vocab_size=500, initial_alphabet=alphabet, show_progress=False)
        tokenizer.train_from_iterator(CORPUS, trainer)
        saved = json.loads(tokenizer.to_str())
        if name == "gpt2":
            saved["model"]["merges"] = [" ".join(pair) for pair in saved["model"]["merges"]]
        (HERE / f"{name}.json").write_text(json.dumps(saved, ensure_ascii=False, separators=(",", ":")) + "\n")
        for row in rows:
            row["counts"][name] = len(tokenizer.encode(row["text"], add_special_tokens=False).ids)
    (HERE / "counts.json").write_text(json.dumps(rows, indent=1) + "\n")


main()
