"""Batch files out, results in: in any order, twice, cut off, broken."""

from __future__ import annotations

import json
import random
from pathlib import Path
from typing import Any

import pytest
from endpoint_runs import extract, options, read, task, write_reports
from endpoint_server import FaultServer, completion, right_answer, truth

from radgen.errors import RadgenError
from radgen.extract.endpoint.command import extract_with_endpoint


def export(folder: Path, name: str = "batch", **changes: Any) -> list[dict[str, Any]]:
    assert extract_with_endpoint(options(folder, export_batch=folder / name, **changes), task()) == 0
    return [line for path in sorted((folder / name).iterdir()) for line in read(path)]


def case_of(line: dict[str, Any]) -> int:
    return int(line["body"]["messages"][1]["content"].split("Case ")[1].split(".")[0])


def result(line: dict[str, Any], **changes: Any) -> dict[str, Any]:
    body = completion(json.dumps(right_answer(case_of(line))))
    response = {"status_code": 200, "request_id": "x", "body": body}
    return {"id": "batch_req", "custom_id": line["custom_id"], "response": response, "error": None, **changes}


def take(folder: Path, rows: list[dict[str, Any]], name: str = "results.jsonl") -> int:
    path = folder / name
    path.write_text("".join(json.dumps(row) + "\n" for row in rows))
    return extract_with_endpoint(options(folder, import_batch=[path]), task())


def test_out_and_back_without_any_endpoint(tmp_path: Path) -> None:
    write_reports(tmp_path, [*range(30), 3, 4])
    lines = export(tmp_path)
    assert [case_of(line) for line in lines] == list(range(30))  # equal texts once
    assert {line["method"] for line in lines} == {"POST"}
    assert {line["url"] for line in lines} == {"/v1/chat/completions"}
    assert len({line["custom_id"] for line in lines}) == 30
    assert lines[0]["body"]["response_format"]["type"] == "json_schema"
    rows = [result(line) for line in lines]
    random.Random(1).shuffle(rows)
    assert take(tmp_path, rows) == 0
    done = read(tmp_path / "out.jsonl")
    assert [row["extracted"] for row in done] == [truth(case) for case in [*range(30), 3, 4]]


def test_a_batch_and_a_run_share_their_answers(tmp_path: Path) -> None:
    write_reports(tmp_path, range(20))
    with FaultServer() as server:
        assert extract(tmp_path, server, limit=8).code == 0
        lines = export(tmp_path)
        assert [case_of(line) for line in lines] == list(range(8, 20))
        assert take(tmp_path, [result(line) for line in lines[:5]]) == 1  # some are missing still
        assert extract(tmp_path, server).code == 0
    assert sorted(server.cases.elements()) == [*range(8), *range(13, 20)]


def test_importing_again_changes_nothing(tmp_path: Path, capfd: pytest.CaptureFixture[str]) -> None:
    write_reports(tmp_path, range(10))
    rows = [result(line) for line in export(tmp_path)]
    assert take(tmp_path, rows + rows[:4]) == 0
    assert "10 new (10 ok), 4 known already" in capfd.readouterr().err
    first = (tmp_path / "out.jsonl").read_bytes()
    assert take(tmp_path, rows) == 0
    assert "0 new (none), 10 known already" in capfd.readouterr().err
    assert (tmp_path / "out.jsonl").read_bytes() == first


def test_a_cut_off_last_line_a_broken_line_and_foreign_lines(
    tmp_path: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    write_reports(tmp_path, range(6))
    lines = export(tmp_path)
    texts = [json.dumps(result(line)) for line in lines]
    path = tmp_path / "results.jsonl"
    foreign = [json.dumps(result(lines[0], custom_id=name)) for name in ("request-1", "ab", None)]
    path.write_text("\n".join([texts[0], "{oops", *foreign, *texts[1:5], "", texts[5][:-9]]))
    assert extract_with_endpoint(options(tmp_path, import_batch=[path]), task()) == 1
    said = capfd.readouterr().err
    assert f"{path}:2" in said
    assert "3 lines are answers to no request" in said
    assert "the last line is cut off" in said
    assert "1 of 6 reports have no answer yet" in said
    assert [case_of(line) for line in export(tmp_path, "again")] == [5]
    path.write_text("\n".join(texts))  # whole, without a line end after the last
    assert extract_with_endpoint(options(tmp_path, import_batch=[path]), task()) == 0


def test_what_failed_in_a_batch_is_sent_again_in_the_right_form(tmp_path: Path) -> None:
    write_reports(tmp_path, range(7))
    lines = export(tmp_path)
    rows = [result(line) for line in lines]
    text = json.dumps(right_answer(1))
    rows[1]["response"]["body"] = completion(text[:40], "length")
    rows[2]["response"]["body"] = completion("nothing")
    rows[3]["response"] = {"status_code": 500, "body": {"error": {"message": "crash"}}}
    rows[4] = {**rows[4], "response": None, "error": {"code": "batch_expired", "message": "expired"}}
    rows[5]["response"] = {"status_code": 400, "body": {"error": {"message": "too long"}}}
    rows[6]["response"]["body"] = completion(None, refusal="No.")
    assert take(tmp_path, rows) == 1
    second = export(tmp_path, "second")
    assert [case_of(line) for line in second] == [1, 2, 3, 4]
    assert second[0]["body"]["max_tokens"] == 2 * lines[1]["body"]["max_tokens"]
    assert [message["role"] for message in second[1]["body"]["messages"]][2:] == ["assistant", "user"]
    assert second[2]["body"] == lines[3]["body"]
    # The first file again, by mistake, before the second comes back: it answers no second request.
    assert take(tmp_path, rows) == 1
    assert take(tmp_path, [result(line) for line in second], "more.jsonl") == 1
    done = read(tmp_path / "out.jsonl")
    assert [row["extracted"] for row in done[:5]] == [truth(case) for case in range(5)]
    assert [row["error"].split(":")[0] for row in done[5:]] == ["rejected", "refusal"]


def test_files_hold_no_more_than_the_limits(tmp_path: Path) -> None:
    write_reports(tmp_path, range(25))
    export(tmp_path, config="batch: {lines: 10}\n")
    files = sorted((tmp_path / "batch").iterdir())
    assert [path.name for path in files] == [f"requests-0000{number}.jsonl" for number in (1, 2, 3)]
    assert [len(read(path)) for path in files] == [10, 10, 5]
    size = len((files[0].read_bytes()).splitlines(keepends=True)[0])
    export(tmp_path, "small", config=f"batch: {{megabytes: {3.5 * size / 1e6}}}\n")
    sizes = [path.stat().st_size for path in (tmp_path / "small").iterdir()]
    assert len(sizes) == 9
    assert max(sizes) <= 3.5 * size
    with pytest.raises(RadgenError, match="a batch file may hold 100"):
        export(tmp_path, "tiny", config="batch: {megabytes: 0.0001}\n")
    assert sorted(path.name for path in tmp_path.iterdir() if path.is_dir()) == ["batch", "small"]


def test_the_packaged_limits_are_those_of_the_batch_api() -> None:
    from radgen.extract.endpoint.settings import load_settings

    batch = load_settings().batch
    assert (batch.lines, batch.megabytes, batch.url) == (50_000, 200, "/v1/chat/completions")


def test_a_folder_with_something_in_it_is_left_alone(tmp_path: Path) -> None:
    write_reports(tmp_path, range(3))
    (tmp_path / "batch").mkdir()
    (tmp_path / "batch" / "mine").write_text("x")
    with pytest.raises(RadgenError, match="is no empty folder"):
        export(tmp_path)
    assert [path.name for path in (tmp_path / "batch").iterdir()] == ["mine"]


def test_a_results_file_that_is_not_there(tmp_path: Path) -> None:
    write_reports(tmp_path, range(3))
    chosen = options(tmp_path, import_batch=[tmp_path / "none.jsonl"])
    with pytest.raises(RadgenError, match=r"none\.jsonl: No such file"):
        extract_with_endpoint(chosen, task())


def test_import_and_run_in_one_command(tmp_path: Path) -> None:
    write_reports(tmp_path, range(10))
    lines = export(tmp_path)
    path = tmp_path / "results.jsonl"
    path.write_text("".join(json.dumps(result(line)) + "\n" for line in lines[:6]))
    with FaultServer() as server:
        assert extract(tmp_path, server, import_batch=[path]).code == 0
    assert sorted(server.cases) == [6, 7, 8, 9]
