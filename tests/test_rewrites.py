"""Paraphrases and condensations by a model: a server that rewrites some rightly, others wrongly."""

from __future__ import annotations

import json
import os
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import orjson
import pytest
from aiohttp import web
from endpoint_runs import QUICK
from endpoint_server import FaultServer, completion
from test_cli import run

from radgen.errors import RadgenError
from radgen.extract.endpoint.command import Options
from radgen.generators.similarity.discrepancies import make_discrepancies
from radgen.generators.similarity.make import ReportOrder
from radgen.generators.splits import SPLITS
from radgen.generators.verify import verify_folder
from radgen.ontology import load_ontology

SIDES = ("left", "right")
#: By the number in a report: what the server makes of its sentence, and whether that is harmless.
PARAPHRASES = (
    ("A {degree} {side} pleural effusion is seen.", True),
    ("A {degree} {other} pleural effusion is seen.", False),  # the wrong side
    ("The heart is seen.", False),  # a finding dropped
    ("A {degree} {side} pleural effusion is seen, and a {side} pneumothorax.", False),  # one added
    ("A {degree} {side} pleural effusion is seen since 1999.", False),  # a number from nowhere
    ("On view {view} there is a {degree} {side} pleural effusion.", False),  # its own words
)
CONDENSATIONS = (
    ("{Degree} {side} pleural effusion on view {view}. Mild cardiomegaly.", True),  # a denial left out
    ("{Degree} {other} pleural effusion. Mild cardiomegaly.", False),
    ("{Degree} {side} pleural effusion.", False),
    ("{Degree} {side} pleural effusion. Mild cardiomegaly. Rib fracture.", False),
)
DENIED = "There is no evidence of a pneumothorax on this examination."
_SENTENCE = re.compile(
    r"On view (?P<view>\w+) there is a (?P<degree>\w+) (?P<side>left|right) pleural effusion\."
)


def report(number: int) -> dict[str, Any]:
    """Every text is another one by the name of its view, which states nothing."""
    side, degree = SIDES[number % 2], ("small", "moderate", "large")[number % 3]
    word = "".join(chr(97 + int(digit)) for digit in str(number))
    return {
        "id": f"r{number}",
        "findings": f"View {word}q is complete. On view {word}q there is a {degree} {side} pleural effusion. "
        f"There is mild cardiomegaly. {DENIED}",
        "impression": None,
    }


class Rewriting(FaultServer):
    """Answers in turn with the rewrites above; remembers which are harmless, by original and rewrite."""

    def __init__(self) -> None:
        super().__init__()
        self.chat = self.rewrite
        self.harmless: dict[tuple[str, str], bool] = {}

    async def rewrite(self, request: web.Request) -> web.StreamResponse:
        body = json.loads(await request.read())
        self.bodies.append(body)
        self.keys.add(request.headers.get("Authorization"))
        user = body["messages"][1]["content"]
        found = _SENTENCE.search(user)
        text, true = "It is all as before.", False
        original = user.rpartition("\n")[2]
        if found:
            choices = CONDENSATIONS if DENIED in user else PARAPHRASES
            text, true = choices[len(self.harmless) % len(choices)]
            degree, side = found["degree"], found["side"]
            other = SIDES[1 - SIDES.index(side)]
            text = text.format(
                degree=degree, Degree=degree.capitalize(), side=side, other=other, view=found["view"]
            )
        self.harmless[original, text] = true
        return web.json_response(completion(json.dumps({"text": text})))


@pytest.fixture
def server() -> Iterator[Rewriting]:
    with Rewriting() as running:
        yield running


@pytest.fixture
def reports(tmp_path: Path) -> Path:
    path = tmp_path / "reports.jsonl"
    path.write_text("".join(json.dumps(report(number)) + "\n" for number in range(400)), encoding="utf-8")
    (tmp_path / "quick.yaml").write_text(QUICK, encoding="utf-8")
    return path


def options(reports: Path, out: Path, url: str, **more: Any) -> Options:
    given = {"base_url": url, "model": "test-model", "config": reports.with_name("quick.yaml"), **more}
    return Options(reports, out / "discrepancies", **given)


def rows_of(folder: Path) -> list[dict[str, Any]]:
    return [
        orjson.loads(line)
        for split in SPLITS
        for line in (folder / f"{split}.jsonl").read_bytes().splitlines()
    ]


def test_only_true_rewrites_are_kept(server: Rewriting, reports: Path, tmp_path: Path) -> None:
    out = tmp_path / "data"
    made = make_discrepancies(ReportOrder(reports), out, endpoint=options(reports, out, server.url))
    by_model = [row for row in rows_of(made.folder) if row["control"] in ("paraphrase", "condensation")]
    assert {row["control"] for row in by_model} == {"paraphrase", "condensation"}
    for row in by_model:
        assert server.harmless[row["control_before"], row["control_after"]], row["control_after"]
        assert row["control_after"] in row["positive"]
        if row["control"] == "condensation":
            assert row["positive_target"] > row["negative_target"]
        gone = [state for state in row["anchor_state"] if state not in row["positive_state"]]
        expected = ["pneumothorax"] if row["control"] == "condensation" else []
        assert [state["finding"] for state in gone] == expected
    for reason in (
        "paraphrase: changes a finding",
        "paraphrase: drops a finding",
        "paraphrase: adds a finding",
        "paraphrase: has a number that was not there",
        "paraphrase: says it in the same words",
        "condensation: changes a finding",
        "condensation: drops a finding",
        "condensation: adds a finding",
    ):
        assert made.rejected.get(reason), reason
    verdict = verify_folder(made.folder, load_ontology())
    assert verdict.count == 0, verdict.problems


def test_nothing_is_paid_twice(server: Rewriting, reports: Path, tmp_path: Path) -> None:
    first, again = tmp_path / "a", tmp_path / "b"
    store = tmp_path / "store.sqlite"
    made = make_discrepancies(
        ReportOrder(reports, 60), first, endpoint=options(reports, first, server.url, store=store)
    )
    sent = len(server.bodies)
    assert sent == len({json.dumps(body) for body in server.bodies}) > 10
    other = make_discrepancies(
        ReportOrder(reports, 60), again, endpoint=options(reports, again, server.url, store=store)
    )
    assert len(server.bodies) == sent
    for split in SPLITS:
        name = f"{split}.jsonl"
        assert (made.folder / name).read_bytes() == (other.folder / name).read_bytes()
    assert {body["temperature"] for body in server.bodies} == {0.7}


def test_report_text_goes_only_where_it_may(reports: Path, tmp_path: Path) -> None:
    out = tmp_path / "data"
    with pytest.raises(RadgenError, match="--allow-remote"):
        make_discrepancies(ReportOrder(reports), out, endpoint=options(reports, out, "http://8.8.8.8/v1"))
    with pytest.raises(RadgenError, match="both --base-url URL and --model NAME"):
        make_discrepancies(
            ReportOrder(reports), out, endpoint=options(reports, out, "http://127.0.0.1/v1", model=None)
        )
    assert not out.exists()


def test_the_command_says_nothing_of_the_reports(server: Rewriting, reports: Path, tmp_path: Path) -> None:
    endpoint = ("--base-url", server.url, "--model", "test-model", "--api-key-env", "SECRET")
    key = {**os.environ, "SECRET": "key-of-the-test"}
    arguments = ("discrepancies", str(reports), "--out", str(tmp_path / "data"), "--n", "60")
    result = run(*arguments, *endpoint, env=key)
    assert result.returncode == 0, result.stderr
    assert server.keys == {"Bearer key-of-the-test"}
    said = result.stdout + result.stderr
    assert not re.search("effusion|cardiomegaly|key-of-the-test", said), said
    assert "requests sent" in said
    manifest = (tmp_path / "data" / "discrepancies" / "sections" / "manifest.json").read_bytes()
    assert b"key-of-the-test" not in manifest
    assert server.url.encode() not in manifest
    assert orjson.loads(manifest)["constants"]["rewrites"]["model"] == "test-model"
    alone = run(*arguments, "--allow-remote")
    assert alone.returncode == 2
    assert "need --base-url and --model" in alone.stderr
