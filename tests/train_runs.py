"""Tiny encoders and datasets for the tests of training: made here, nothing is downloaded."""

from __future__ import annotations

import itertools
from pathlib import Path

import orjson
import torch
from sentence_transformers import SentenceTransformer
from sentence_transformers.sentence_transformer.modules import Normalize, Pooling, Transformer
from tokenizers import Tokenizer, decoders, models, pre_tokenizers, processors, trainers
from transformers import BertConfig, BertModel, PreTrainedTokenizerFast, Qwen3Config, Qwen3Model

#: Two datasets that are made in a second, and left-out families for the packaged stages.
WITHOUT = ("radsim", "mined", "perturbation", "radthought")


def corpus() -> list[str]:
    sides, sizes = ("left", "right", "bilateral"), ("4 mm", "9 mm", "18 mm", "35 mm")
    nouns = ("nodule", "pleural effusion", "mass", "pneumothorax", "cyst")
    verbs = ("is seen", "is present", "can be noted", "has increased", "measures up to")
    words = itertools.product(sizes, sides, nouns, verbs)
    return [f"A {size} {side} {noun} {verb}." for size, side, noun, verb in words]


def bert(folder: Path, *, dropout: float = 0.0) -> Path:
    """Save a BERT-like encoder with mean pooling (WordPiece, two layers of 48, an unused pooler)."""
    tokenizer = Tokenizer(models.WordPiece(unk_token="[UNK]"))
    tokenizer.pre_tokenizer = pre_tokenizers.BertPreTokenizer()
    special = ["[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]"]
    trainer = trainers.WordPieceTrainer(vocab_size=160, special_tokens=special)
    tokenizer.train_from_iterator(corpus(), trainer)
    tokenizer.post_processor = processors.TemplateProcessing(
        single="[CLS] $A [SEP]", special_tokens=[("[CLS]", 2), ("[SEP]", 3)]
    )
    fast = PreTrainedTokenizerFast(
        tokenizer_object=tokenizer, pad_token="[PAD]", unk_token="[UNK]", cls_token="[CLS]",
        sep_token="[SEP]", mask_token="[MASK]",
    )  # fmt: skip
    torch.manual_seed(0)
    config = BertConfig(
        vocab_size=len(fast), hidden_size=48, num_hidden_layers=2, num_attention_heads=4,
        intermediate_size=96, max_position_embeddings=64, hidden_dropout_prob=dropout,
        attention_probs_dropout_prob=dropout,
    )  # fmt: skip
    return _save(folder, BertModel(config), fast, "mean")


def qwen(folder: Path) -> Path:
    """Save a Qwen3-like encoder with last-token pooling (byte-level BPE, end-of-text last, padded left)."""
    tokenizer = Tokenizer(models.BPE())
    tokenizer.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False)
    tokenizer.decoder = decoders.ByteLevel()
    alphabet = pre_tokenizers.ByteLevel.alphabet()
    trainer = trainers.BpeTrainer(vocab_size=400, special_tokens=["<|endoftext|>"], initial_alphabet=alphabet)
    tokenizer.train_from_iterator(corpus(), trainer)
    tokenizer.post_processor = processors.TemplateProcessing(
        single="$A <|endoftext|>", special_tokens=[("<|endoftext|>", 0)]
    )
    fast = PreTrainedTokenizerFast(
        tokenizer_object=tokenizer, pad_token="<|endoftext|>", eos_token="<|endoftext|>", padding_side="left"
    )
    torch.manual_seed(0)
    config = Qwen3Config(
        vocab_size=len(fast), hidden_size=48, num_hidden_layers=2, num_attention_heads=4,
        num_key_value_heads=2, intermediate_size=96, head_dim=16, max_position_embeddings=128,
    )  # fmt: skip
    return _save(folder, Qwen3Model(config), fast, "lasttoken")


def _save(folder: Path, model: torch.nn.Module, tokenizer: PreTrainedTokenizerFast, pooling: str) -> Path:
    plain = folder.with_name(f"{folder.name}-plain")
    model.save_pretrained(plain)
    tokenizer.save_pretrained(plain)
    encoder = SentenceTransformer(
        modules=[Transformer(str(plain)), Pooling(48, pooling), Normalize()], device="cpu"
    )
    encoder.save_pretrained(str(folder), create_model_card=False)
    return folder


def write_rows(path: Path, rows: list[dict[str, object]]) -> Path:
    """Write a JSONL file."""
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(b"".join(orjson.dumps(row) + b"\n" for row in rows))
    return path


def weights(folder: Path) -> dict[str, torch.Tensor]:
    """Return the weights of a saved model."""
    from safetensors.torch import load_file

    return load_file(folder / "model.safetensors")
