"""Records by a model behind an endpoint: a server whose answers are right, wrong in one thing, or broken."""

from __future__ import annotations

import copy
import json
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from aiohttp import web
from dataset_runs import radgen
from endpoint_runs import QUICK
from endpoint_server import FaultServer, completion

from radgen.errors import RadgenError
from radgen.extract.endpoint.command import Options
from radgen.generators.radthought.endpoint import make_with_endpoint
from radgen.generators.radthought.record import COLUMNS, read_record
from radgen.generators.radthought.records import RecordOrder
from radgen.generators.radthought.source import Source
from radgen.generators.radthought.task import RadThoughtTask, answer_schema

#: What a good model writes for :func:`report`.
RIGHT: dict[str, Any] = {
    "relations": ["adjacent_to(f2,f1)"],
    "first_order": [
        "There is a large right pleural effusion.",
        "Right lower lobe atelectasis.",
        "No pneumothorax.",
    ],
    "second_order": ["The right lower lobe atelectasis may be due to the large right pleural effusion."],
    "third_order": ["No pneumothorax complicates the right pleural effusion."],
    "synthesis": ["The large right pleural effusion is the leading finding.", "There is no pneumothorax."],
    "conclusions": [
        {
            "level": "second", "sentence": 1, "derived": ["f1", "f2"], "about": "compressive_atelectasis",
            "assertion": "present", "certainty": "possible", "mechanism": "compression",
            "mechanism_stated": False, "significance": "minor",
        },
        {"level": "third", "sentence": 1, "derived": ["f3"], "about": "pneumothorax", "assertion": "absent"},
        {
            "level": "synthesis", "sentence": 1, "derived": ["f1"], "about": "pleural_effusion",
            "assertion": "present", "severity": "severe", "acuity": None,
        },
    ],
}  # fmt: skip


def report(case: int) -> dict[str, Any]:
    return {
        "id": f"r{case}",
        "findings": f"Case {case}. There is a large right pleural effusion with adjacent right lower lobe "
        "atelectasis.",
        "impression": "No pneumothorax.",
    }


Change = Callable[[dict[str, Any]], None]


def _set(*path: Any) -> Change:
    """Return a change that lays a value at a path: the last item."""

    def change(answer: dict[str, Any]) -> None:
        *to, last, value = path
        inner: Any = answer
        for key in to:
            inner = inner[key]
        inner[last] = value

    return change


#: By case: what is wrong with its answers, and the reason that the rejects file gives.
WRONG: dict[int, tuple[Change, str]] = {
    1: (_set("relations", ["adjacent_to(f7,f1)"]), "'adjacent_to(f7,f1)': the report has no finding f7"),
    2: (_set("conclusions", 0, "derived", []), "conclusions.0.derived: List should have at least 1 item"),
    3: (_set("conclusions", 1, "assertion", "present"), "assertion: contradicts that of its evidence"),
    4: (_set("conclusions", 0, "mechanism_stated", True), "mechanism: stronger than 'possible'"),
    5: (_set("conclusions", 2, "acuity", "acute"), "acuity: not stated by its evidence"),
    6: (_set("second_order", 0, "There is acute pneumonia."), "second order, sentence 1: states pneumonia"),
    7: (_set("third_order", 0, "There is a pneumothorax."), "third order, sentence 1: pneumothorax is de"),
    8: (_set("first_order", 2, "There is a pneumothorax."), "first order, sentence 3: pneumothorax is den"),
    9: (_set("first_order", ["One effusion."]), "expected a sentence for each of 3 findings, found 1"),
    10: (_set("relations", ["secondary_to(f2,f1)"]), "secondary_to(f2,f1)': the report does not state it"),
    11: (_set("relations", ["a secret of the report"]), "relation 1: expected a relation such as"),
    12: (_set("conclusions", 0, "about", "a secret"), "conclusion 1: about: not a process of the rule base"),
    13: (_set("conclusions", 0, "sentence", 5), "conclusion 1: level 'second' has no sentence 5"),
    14: (_set("more", 1), "more: Extra inputs are not permitted"),
    15: (_set("relations", ["side(f1,left)"]), "relation 1: expected a relation such as"),
}  # fmt: skip


class Describing(FaultServer):
    """Answers case by case; a case of ``mended`` is right once it has been asked again."""

    def __init__(self) -> None:
        super().__init__()
        self.chat = self.describe
        self.mended: set[int] = set()
        self.repairs: list[str] = []

    async def describe(self, request: web.Request) -> web.StreamResponse:
        body = json.loads(await request.read())
        self.bodies.append(body)
        user = body["messages"][1]["content"]
        if "Case " not in user:
            return web.json_response(completion(json.dumps(RIGHT)))
        case = int(user.partition("Case ")[2].partition(".")[0])
        self.cases[case] += 1
        answer = copy.deepcopy(RIGHT)
        again = len(body["messages"]) > 2
        if again:
            self.repairs.append(body["messages"][-1]["content"])
        if case in WRONG and not (again and case in self.mended):
            WRONG[case][0](answer)
        text = json.dumps(answer)
        return web.json_response(completion(text[:-4] if case == 20 else text))


@pytest.fixture
def server() -> Iterator[Describing]:
    with Describing() as running:
        yield running


def write(tmp_path: Path, cases: list[int]) -> Path:
    rows = [report(case) for case in cases] + [{"id": "empty", "findings": "Dictated but not read."}]
    path = tmp_path / "reports.jsonl"
    path.write_text("".join(json.dumps(row) + "\n" for row in rows))
    (tmp_path / "quick.yaml").write_text(QUICK)
    return path


def make(reports: Path, url: str | None, **more: Any) -> tuple[Any, int]:
    given = {"base_url": url, "model": "test-model", "config": reports.with_name("quick.yaml"), **more}
    folder = reports.with_name("records")
    return make_with_endpoint(RecordOrder(Source(reports)), Options(reports, folder, **given), folder)


def rows_of(path: Path) -> list[dict[str, Any]]:
    return [json.loads(line) for line in path.read_text().splitlines()]


def test_answers_become_records_or_rejects(server: Describing, tmp_path: Path) -> None:
    server.mended = {14}
    reports = write(tmp_path, [0, *WRONG, 20, 30])
    made, code = make(reports, server.url)
    assert code == 1
    records = rows_of(tmp_path / "records" / "records.jsonl")
    assert [row["id"] for row in records] == ["r0", "r14", "r30"]
    for row in records:
        assert tuple(row) == COLUMNS
        assert read_record(row).backend == "openai:test-model"
        assert row["predicates"].count("adjacent_to(f2,f1)") == 1
        assert [item["rule"] for item in row["conclusions"]] == [None] * 3
        assert row["conclusions"][0]["mechanism"] == "possible(compression)"
        assert row["conclusions"][2]["text"] == "The large right pleural effusion is the leading finding."
    rejects = {row["id"]: row["reason"] for row in rows_of(tmp_path / "records" / "rejects.jsonl")}
    assert rejects.keys() == {*(f"r{case}" for case in WRONG if case != 14), "r20", "empty"}
    for case, (_, reason) in WRONG.items():
        if case != 14:
            assert reason in rejects[f"r{case}"], case
    assert rejects["r20"].startswith("invalid_json")
    assert rejects["empty"] == "no finding was read in it"
    assert "secret" not in (tmp_path / "records" / "rejects.jsonl").read_text()
    for said in ("more: Extra inputs", "level 'second' has no sentence 5", "relation 1: expected a relation"):
        assert any(said in text for text in server.repairs)
    assert made.records == 3
    manifest = json.loads((tmp_path / "records" / "manifest.json").read_text())
    assert (manifest["backend"], manifest["counts"]["reports"]) == ("openai:test-model", 19)


def test_nothing_is_asked_for_twice(server: Describing, tmp_path: Path) -> None:
    reports = write(tmp_path, [0, 3, 14, 30])
    make(reports, server.url)
    asked = server.cases.copy()
    before = (tmp_path / "records" / "records.jsonl").read_bytes()
    _, code = make(reports, server.url)
    assert (code, server.cases) == (1, asked)
    assert (tmp_path / "records" / "records.jsonl").read_bytes() == before
    server.mended = {14}
    made, code = make(reports, server.url, retry_failed=True)
    reasons = {"no finding was read in it": 1, "conclusion: assertion: contradicts that of its evidence": 1}
    assert (code, made.records, made.rejected) == (1, 3, reasons)
    assert server.cases[0] == asked[0]


def test_every_string_and_list_has_a_maximum() -> None:
    def walk(node: Any) -> None:
        if isinstance(node, dict):
            kind = node.get("type")
            if kind == "string" and "enum" not in node:
                assert "maxLength" in node
            if kind == "array":
                assert "maxItems" in node
            if kind == "object":
                assert node["additionalProperties"] is False
            assert "$ref" not in node
            for inner in node.values():
                walk(inner)
        elif isinstance(node, list):
            for inner in node:
                walk(inner)

    walk(answer_schema())


def test_what_is_sent(server: Describing, tmp_path: Path) -> None:
    make(write(tmp_path, [0]), server.url)
    (body,) = [body for body in server.bodies if "Case 0." in body["messages"][1]["content"]]
    assert body["response_format"]["json_schema"]["schema"] == answer_schema()
    user = body["messages"][1]["content"]
    assert "Case 0. There is a large right pleural effusion" in user
    assert "severity(f1,severe)" in user
    assert "assertion(f3,absent)" in user
    assert "compressive_atelectasis" in body["messages"][0]["content"]
    assert "{{" not in user + body["messages"][0]["content"]


def test_text_in_a_report_is_no_mark_of_the_prompt(tmp_path: Path) -> None:
    task = RadThoughtTask(RecordOrder(Source(write(tmp_path, [0]))), "test-model")
    user = task.user({"findings": "Right pleural effusion. {{impression}}", "impression": "{{predicates}}"})
    assert user is not None
    assert user.count("{{predicates}}") == 1
    assert user.endswith("side(f1,right)")


def test_mistakes_of_the_user(server: Describing, tmp_path: Path) -> None:
    reports = write(tmp_path, [0])
    with pytest.raises(RadgenError, match="--model is missing"):
        make(reports, server.url, model=None)
    with pytest.raises(RadgenError, match="leave --extracted and --truth out"):
        make_with_endpoint(
            RecordOrder(Source(reports, truth=True)), Options(reports, tmp_path / "r"), tmp_path / "r"
        )
    (tmp_path / "records").mkdir()
    (tmp_path / "records" / "mine.txt").write_text("mine")
    with pytest.raises(RadgenError, match="no radgen dataset"):
        make(reports, server.url)
    assert not server.bodies
    run = radgen("radthought", "--backend", "openai", "--model", "m", cwd=tmp_path)
    assert (run.returncode, run.stderr.count("\n")) == (2, 1)
    assert "--backend openai needs a file of reports" in run.stderr
