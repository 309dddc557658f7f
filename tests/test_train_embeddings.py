"""Sparse gradients of token embeddings while chunks add up: the same gradients as torch's dense ones."""

from __future__ import annotations

from pathlib import Path

import pytest

torch = pytest.importorskip("torch")
pytest.importorskip("sentence_transformers")

import train_runs  # noqa: E402  # torch first

from radgen.train.encoder import load_encoder  # noqa: E402
from radgen.train.trainer import dense_gradients, sparse_embeddings  # noqa: E402

CHUNKS = (["small nodule", "small left nodule"], ["no nodule in the left upper lobe", "nodule"])


@pytest.mark.parametrize("make", ["bert", "qwen"])
def test_sparse_gradients_become_the_dense_ones(make: str, tmp_path: Path) -> None:
    """Two chunks that share tokens, padding in each; gradients of every parameter, dense again at the end."""
    getattr(train_runs, make)(tmp_path / make)
    model = load_encoder(str(tmp_path / make), max_tokens=32, device="cpu").eval()
    found = []
    for sparse in (False, True):
        if sparse:
            sparse_embeddings(model)
        model.zero_grad(set_to_none=True)
        vectors = torch.cat([model(model.preprocess(texts))["sentence_embedding"] for texts in CHUNKS])
        vectors.pow(3).sum().backward()
        was_sparse = [p.grad.is_sparse for p in model.parameters() if p.grad is not None]
        assert any(was_sparse) is sparse
        dense_gradients(model)
        found.append({n: p.grad for n, p in model.named_parameters() if p.grad is not None})
    dense, made = found
    assert set(dense) == set(made)
    for name, gradient in dense.items():
        assert not made[name].is_sparse
        torch.testing.assert_close(made[name], gradient, rtol=1e-5, atol=1e-7)
