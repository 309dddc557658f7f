"""A dataset folder as another team uses it: loaded by ``datasets``, trained on by the lines of its card."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from dataset_runs import SPLITS, dataset, rows_of

datasets = pytest.importorskip("datasets", reason="datasets (extra dev) loads the folders")

FAMILIES = [
    ("contrasts", "temporal_change"),
    ("contrasts", "finding"),
    ("pairs", "size_pairs"),
    ("crossaxis", "size_location"),
]


def stated(value: Any) -> Any:
    """What a loaded state states: the columns that are null everywhere apart."""
    if isinstance(value, dict):
        return {key: stated(inner) for key, inner in value.items() if inner is not None}
    return value


@pytest.mark.parametrize(("family", "name"), FAMILIES)
def test_three_splits_with_equal_columns(tmp_path: Path, family: str, name: str) -> None:
    folder = dataset(tmp_path, family, name, 60)
    loaded = datasets.load_dataset(str(folder), cache_dir=str(tmp_path / "cache"))
    assert {split: len(loaded[split]) for split in loaded} == {"train": 54, "validation": 3, "test": 3}
    assert len({str(loaded[split].features) for split in SPLITS}) == 1
    for split in SPLITS:
        rows = rows_of(folder, split)
        assert list(loaded[split].column_names) == list(rows[0])
        assert [stated(row) for row in loaded[split]] == [stated(row) for row in rows]


@pytest.fixture(scope="module")
def encoder(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    """A tiny encoder with random weights, saved in a folder."""
    pytest.importorskip("sentence_transformers", reason="sentence-transformers (extra train) trains")
    import torch
    from sentence_transformers import SentenceTransformer
    from sentence_transformers.sentence_transformer.modules import Normalize, Pooling, Transformer
    from tokenizers import Tokenizer, models, normalizers, pre_tokenizers, processors, trainers
    from transformers import BertConfig, BertModel, PreTrainedTokenizerFast

    folder = tmp_path_factory.mktemp("encoder")
    special = ["[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]"]
    tokenizer = Tokenizer(models.WordPiece(unk_token="[UNK]"))
    tokenizer.normalizer = normalizers.Lowercase()
    tokenizer.pre_tokenizer = pre_tokenizers.BertPreTokenizer()
    words = [
        "left right bilateral effusion nodule measuring 8 mm in the lower lobe is stable, new, increased"
    ]
    tokenizer.train_from_iterator(words, trainers.WordPieceTrainer(vocab_size=200, special_tokens=special))
    tokenizer.post_processor = processors.TemplateProcessing(
        single="[CLS] $A [SEP]", special_tokens=[("[CLS]", 2), ("[SEP]", 3)]
    )
    names = {"pad_token": "[PAD]", "unk_token": "[UNK]", "cls_token": "[CLS]", "sep_token": "[SEP]"}
    PreTrainedTokenizerFast(tokenizer_object=tokenizer, model_max_length=64, **names).save_pretrained(
        folder / "b"
    )
    torch.manual_seed(0)
    config = BertConfig(
        vocab_size=tokenizer.get_vocab_size(), hidden_size=48, num_hidden_layers=2, num_attention_heads=4,
        intermediate_size=64, max_position_embeddings=64,
    )  # fmt: skip
    BertModel(config).save_pretrained(folder / "b")
    model = SentenceTransformer(modules=[Transformer(str(folder / "b")), Pooling(48, "mean"), Normalize()])
    model.save(str(folder / "model"))
    return str(folder / "model")


@pytest.mark.parametrize(
    ("family", "name"), [("contrasts", "temporal_change"), ("crossaxis", "size_location")]
)
def test_the_lines_of_the_card_train(tmp_path: Path, encoder: str, family: str, name: str) -> None:
    from sentence_transformers import SentenceTransformerTrainingArguments

    folder = dataset(tmp_path, family, name, 60)
    (code,) = re.findall(r"```python\n(.*?)```", (folder / "README.md").read_text(), re.DOTALL)
    assert "select_columns" in code
    given = SentenceTransformerTrainingArguments(
        str(tmp_path / "out"), max_steps=2, report_to=[], save_strategy="no", use_cpu=True, disable_tqdm=True,
        learning_rate=0.01,
    )  # fmt: skip
    # Only the two places are filled in, and the number of steps.
    code = code.replace("path/to/an/encoder", encoder).replace("path/to/this/folder", str(folder))
    code = code.replace("train_dataset=data,", "train_dataset=data, args=GIVEN,")
    assert "GIVEN" in code
    names: dict[str, Any] = {"GIVEN": given}
    exec(code, names)  # the card's own lines
    from sentence_transformers import SentenceTransformer

    fresh = SentenceTransformer(encoder).state_dict()
    trained = names["model"].state_dict()
    assert any(not trained[key].cpu().equal(value) for key, value in fresh.items())
