"""Each event of spec §8 alone, over real HTTP: what the row becomes, and what the server was asked."""

from __future__ import annotations

import json
import time
from pathlib import Path
from typing import Any

import pytest
from endpoint_runs import extract, options, read, task, write_reports
from endpoint_server import BODIES, FaultServer, Plan, report, right_answer, truth

from radgen.errors import RadgenError
from radgen.extract.endpoint.command import extract_with_endpoint

TRANSPORTS = ["aiohttp", "openai"]


def faults(*names: str | None) -> Plan:
    """The faults of case 1, one a turn, then none; other cases get right answers."""
    return lambda case, turn: names[turn] if case == 1 and turn < len(names) else None


def test_a_run_without_faults(tmp_path: Path) -> None:
    write_reports(tmp_path, range(50))
    with FaultServer() as server:
        done = extract(tmp_path, server)
    assert done.code == 0
    assert [row["id"] for row in done.rows] == [f"r{case}" for case in range(50)]
    assert [row["extracted"] for row in done.rows] == [truth(case) for case in range(50)]
    assert all(
        list(row) == ["id", "extracted", "backend", "error", "salvaged", "dropped"]
        and (row["backend"], row["error"], row["salvaged"], row["dropped"]) == ("openai", None, False, 0)
        for row in done.rows
    )
    assert done.dead == []
    assert server.preflights == 1


@pytest.mark.parametrize("transport", TRANSPORTS)
@pytest.mark.parametrize(
    "fault",
    [
        "429 wait", "429 date", "429", "503", "503 wait", "500", "502", "504", "408", "409", "499",
        "reset", "half", "html", "truncated", "null_choices", "no_choices", "error_object", "null_body",
        "abort",
    ],
)  # fmt: skip
def test_what_passes_is_tried_again(tmp_path: Path, fault: str, transport: str) -> None:
    write_reports(tmp_path, range(3))
    with FaultServer(faults(fault, fault)) as server:
        done = extract(tmp_path, server, transport=transport)
    assert done.code == 0
    assert done.rows[1]["extracted"] == truth(1)
    assert dict(server.cases) == {0: 1, 1: 3, 2: 1}


def test_a_timeout_is_tried_again(tmp_path: Path) -> None:
    write_reports(tmp_path, range(3))
    with FaultServer(faults("slow")) as server:
        done = extract(tmp_path, server, timeout=0.4)
    assert (done.code, server.cases[1]) == (0, 2)
    assert done.rows[1]["extracted"] == truth(1)


@pytest.mark.parametrize(
    ("fault", "reason"),
    [
        ("500", "server_error"),
        ("reset", "reset"),
        ("html", "no_completion"),
        ("408", "server_error"),
    ],
)
def test_what_does_not_pass_is_a_dead_letter_after_six_attempts(
    tmp_path: Path, fault: str, reason: str
) -> None:
    write_reports(tmp_path, range(3))
    with FaultServer(faults(*[fault] * 100)) as server:
        done = extract(tmp_path, server)
    assert done.code == 1
    assert server.cases[1] == 6
    assert done.rows[1]["error"].split(":")[0] == reason
    assert (done.rows[1]["extracted"], done.rows[0]["error"], done.rows[2]["error"]) == ([], None, None)
    assert [letter["id"] for letter in done.dead] == ["r1"]


def test_a_rate_limit_uses_up_no_attempt(tmp_path: Path) -> None:
    write_reports(tmp_path, range(3))
    with FaultServer(faults(*["429 wait"] * 15, *["500"] * 5)) as server:
        server.retry_after = "0.01"
        done = extract(tmp_path, server)
    assert (done.code, server.cases[1]) == (0, 21)


def test_retry_after_is_waited_for_and_bounded_by_the_user(tmp_path: Path) -> None:
    write_reports(tmp_path, [1])
    with FaultServer(faults("503 wait")) as server:
        server.retry_after = "1.5"
        assert extract(tmp_path, server).code == 0
        (first, _, _), (second, _, _) = server.log
    assert second - first >= 1.5
    other = tmp_path / "bounded"
    other.mkdir()
    write_reports(other, [1])
    with FaultServer(faults("429 wait")) as server:
        server.retry_after = "100000"
        assert extract(other, server, max_wait=0.2).code == 0
        (first, _, _), (second, _, _) = server.log
    assert 0.2 <= second - first < 2


@pytest.mark.parametrize("status", ["400", "413", "422"])
def test_a_rejected_request_is_a_dead_letter_at_once(tmp_path: Path, status: str) -> None:
    write_reports(tmp_path, range(3))
    with FaultServer(faults(*[status] * 9)) as server:
        done = extract(tmp_path, server)
    assert (done.code, server.cases[1]) == (1, 1)
    assert done.rows[1]["error"] == f"rejected: the server rejected the request (HTTP {status})"
    assert done.dead[0]["status"] == int(status)


@pytest.mark.parametrize("status", ["401", "403", "404", "429 quota"])
def test_a_refused_key_or_address_stops_the_run_with_the_cause(tmp_path: Path, status: str) -> None:
    write_reports(tmp_path, range(200))
    with FaultServer(lambda case, turn: status if case >= 20 else None) as server:
        server.delay = 0.01
        with pytest.raises(RadgenError, match=f"HTTP {status[:3]}: made to fail"):
            extract(tmp_path, server, concurrency=4)
        assert sum(server.cases.values()) <= 20 + 4
        server.plan = lambda case, turn: None
        done = extract(tmp_path, server, concurrency=4)
        assert (done.code, len(done.rows)) == (0, 200)
        assert all(count == 1 for case, count in server.cases.items() if case < 20)


@pytest.mark.parametrize("fault", ["length", "white_space", "length_whole"])
def test_a_cut_off_answer_gets_one_retry_with_double_the_tokens(tmp_path: Path, fault: str) -> None:
    write_reports(tmp_path, range(3))
    with FaultServer(faults(fault)) as server:
        server.keep_bodies = True
        done = extract(tmp_path, server)
    assert done.rows[1]["extracted"] == truth(1)
    asked = [body["max_tokens"] for body in server.bodies if "Case 1." in body["messages"][1]["content"]]
    assert asked == [4096, 8192]


@pytest.mark.parametrize(("fault", "reason"), [("length", "length"), ("white_space", "white_space")])
def test_cut_off_twice_is_a_dead_letter_never_an_empty_result(
    tmp_path: Path, fault: str, reason: str
) -> None:
    write_reports(tmp_path, range(3))
    with FaultServer(faults(*[fault] * 9)) as server:
        done = extract(tmp_path, server)
    assert (done.code, server.cases[1]) == (1, 2)
    assert done.rows[1]["error"].startswith(f"{reason}: ")
    assert done.dead[0]["step"] == "longer"
    assert '"finish_reason": "length"' in done.dead[0]["raw"]


@pytest.mark.parametrize("fault", ["reasoning_content", "reasoning"])
def test_an_answer_in_the_reasoning_field_is_salvaged(tmp_path: Path, fault: str) -> None:
    write_reports(tmp_path, range(3))
    with FaultServer(faults(fault)) as server:
        done = extract(tmp_path, server)
    assert [row["salvaged"] for row in done.rows] == [False, True, False]
    assert done.rows[1]["extracted"] == truth(1)
    assert json.loads((tmp_path / "out.manifest.json").read_text())["salvaged"] == 1


@pytest.mark.parametrize("fault", ["think", "think_unopened", "parts", "fence", "prose", "no_finish"])
def test_an_answer_in_odd_clothes_is_taken(tmp_path: Path, fault: str) -> None:
    write_reports(tmp_path, range(3))
    with FaultServer(faults(fault)) as server:
        done = extract(tmp_path, server)
    assert (done.rows[1]["extracted"], server.cases[1]) == (truth(1), 1)


@pytest.mark.parametrize(
    ("fault", "reason"),
    [
        ("invalid_json", "invalid_json"),
        ("schema", "schema_mismatch"),
        ("array", "schema_mismatch"),
        ("empty", "no_content"),
        ("reasoning_only_thought", "no_content"),
    ],
)
def test_an_invalid_answer_gets_one_repair_request(tmp_path: Path, fault: str, reason: str) -> None:
    write_reports(tmp_path, range(3))
    with FaultServer(faults(fault)) as server:
        server.keep_bodies = True
        done = extract(tmp_path, server)
        assert (done.code, done.rows[1]["extracted"]) == (0, truth(1))
        repair = [body for body in server.bodies if "Case 1." in body["messages"][1]["content"]][1]
        roles = [message["role"] for message in repair["messages"]]
        assert roles == ["system", "user", "assistant", "user"]
        assert repair["messages"][3]["content"].startswith("That answer cannot be used: ")
        if fault == "schema":
            assert repair["messages"][2]["content"] == json.dumps(right_answer(1)).replace(
                "present", "perhaps"
            )
            assert "findings.0.presence" in repair["messages"][3]["content"]
    other = tmp_path / "twice"
    other.mkdir()
    write_reports(other, range(3))
    with FaultServer(faults(*[fault] * 9)) as server:
        done = extract(other, server)
    assert (done.code, server.cases[1]) == (1, 2)
    assert done.rows[1]["error"].startswith(f"{reason}: ")
    assert done.dead[0]["raw"] is not None


@pytest.mark.parametrize("fault", ["refusal", "content_filter"])
def test_a_refusal_is_a_dead_letter_never_an_empty_result(tmp_path: Path, fault: str) -> None:
    write_reports(tmp_path, range(3))
    with FaultServer(faults(*[fault] * 9)) as server:
        done = extract(tmp_path, server)
    assert (done.code, server.cases[1]) == (1, 1)
    assert done.rows[1]["error"].startswith(f"{fault}: ")


def test_a_redirect_to_another_host_stops_the_run(tmp_path: Path) -> None:
    write_reports(tmp_path, range(3))
    for transport in TRANSPORTS:
        with (
            FaultServer(faults("redirect_away")) as server,
            pytest.raises(RadgenError, match=r"redirects to http://203\.0\.113\.7.*did not name"),
        ):
            extract(tmp_path, server, transport=transport)


def test_a_dead_endpoint_is_waited_for_and_spends_no_attempt(tmp_path: Path) -> None:
    """The endpoint is dead from the 30th case on, for longer than six attempts of any row would last."""
    write_reports(tmp_path, range(120))
    dead_since: list[float] = []

    def plan(case: int, turn: int) -> str | None:
        if case >= 30 and not dead_since:
            dead_since.append(time.monotonic())
            server.dead = True
            server._loop.call_later(3.0, revive)
        return None

    def revive() -> None:
        server.dead = False

    with FaultServer(plan) as server:
        server.delay = 0.005
        done = extract(tmp_path, server, concurrency=6, config="retry: {attempts: 3}\n")
    assert done.code == 0
    assert [row["extracted"] for row in done.rows] == [truth(case) for case in range(120)]
    # While it was dead the circuit let probes through, not rows: six workers, a few tries each.
    tried = [moment for moment, _, _ in server.log if 0.5 < moment - dead_since[0] < 3.0]
    assert len(tried) <= 6
    assert server.lists > 3


def test_a_server_that_is_not_there_yet_is_waited_for(tmp_path: Path) -> None:
    """Nobody listens on the port for two seconds in the middle of a run."""
    write_reports(tmp_path, range(60))
    import threading

    with FaultServer() as first:
        first.delay = 0.05
        port = first.port
        result: list[Any] = []
        thread = threading.Thread(target=lambda: result.append(extract(tmp_path, first, concurrency=4)))
        thread.start()
        while len(first.answered) < 20:
            time.sleep(0.01)
    time.sleep(2)
    with FaultServer(port=port) as second:
        thread.join(20)
        assert not thread.is_alive()
    assert result[0].code == 0
    assert [row["extracted"] for row in result[0].rows] == [truth(case) for case in range(60)]
    assert len(second.answered) <= 60 - 20 + 4


def test_an_endpoint_that_stays_dead_ends_the_run(tmp_path: Path) -> None:
    write_reports(tmp_path, range(40))

    def plan(case: int, turn: int) -> str | None:
        server.dead = server.dead or case >= 20
        return None

    with FaultServer(plan) as server:
        with pytest.raises(RadgenError, match=r"no sign of life for 0\.6 s.*same command goes on"):
            extract(tmp_path, server, concurrency=4, max_outage=0.6)
        server.dead, server.plan = False, lambda case, turn: None
        before = set(server.answered)
        done = extract(tmp_path, server, concurrency=4)
    assert done.code == 0
    assert all(server.answered.count(case) == 1 for case in before)


def test_concurrency_is_halved_on_overload_and_never_above_the_bound(tmp_path: Path) -> None:
    write_reports(tmp_path, range(300))

    async def chat(request: Any) -> Any:
        if server.under_way > 8:  # what the server can take
            return await server._fault(request, "503 wait", 0)
        return await server._answer(request)

    with FaultServer() as server:
        server.delay, server.retry_after = 0.01, "0.05"
        server.chat = chat
        done = extract(tmp_path, server, concurrency=32)
    assert done.code == 0
    assert server.most_under_way <= 32
    assert [row["extracted"] for row in done.rows] == [truth(case) for case in range(300)]


def test_equal_texts_are_paid_once_and_order_is_kept(tmp_path: Path) -> None:
    path = write_reports(tmp_path, [3, 1, 3, 2, 1, 3] * 20)
    with FaultServer() as server:
        done = extract(tmp_path, server)
    assert dict(server.cases) == {1: 1, 2: 1, 3: 1}
    assert [row["id"] for row in done.rows] == [row["id"] for row in read(path)]
    assert [row["extracted"] for row in done.rows][:4] == [truth(3), truth(1), truth(3), truth(2)]


def test_a_report_without_text_costs_nothing_and_fails_nothing(tmp_path: Path) -> None:
    rows = [report(1), {"id": "blank", "findings": " ", "impression": None}, report(2)]
    (tmp_path / "reports.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows))
    with FaultServer() as server:
        done = extract(tmp_path, server)
    assert (done.code, sum(server.cases.values())) == (0, 2)
    assert (done.rows[1]["id"], done.rows[1]["extracted"], done.rows[1]["error"]) == ("blank", [], None)


def test_the_same_command_again_asks_for_nothing_and_writes_the_same_bytes(tmp_path: Path) -> None:
    write_reports(tmp_path, range(20))
    with FaultServer(faults(*["refusal"] * 9)) as server:
        assert extract(tmp_path, server).code == 1
        first = (tmp_path / "out.jsonl").read_bytes()
        asked, lists = sum(server.cases.values()), server.lists
        assert extract(tmp_path, server).code == 1
        assert (sum(server.cases.values()), server.lists, server.preflights) == (asked, lists, 1)
        assert (tmp_path / "out.jsonl").read_bytes() == first
        # More reports: only they are asked for, and the preflight is remembered.
        write_reports(tmp_path, range(25))
        assert extract(tmp_path, server).code == 1
        assert (sum(server.cases.values()), server.preflights) == (asked + 5, 1)


def test_parsing_again_needs_no_endpoint(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A parser that knows better reads the stored answers, those of dead letters too."""
    write_reports(tmp_path, range(4))
    with FaultServer(faults(*["schema"] * 9)) as server:
        assert extract(tmp_path, server).code == 1
    parser = task()
    check = parser.check

    def lenient(value: Any) -> Any:
        return check(json.loads(json.dumps(value).replace('"perhaps"', '"present"')))

    monkeypatch.setattr(parser, "check", lenient)
    done = extract(tmp_path, None, base_url="http://127.0.0.1:9/v1")
    assert done.code == 0
    assert done.rows[1]["extracted"][0]["presence"] == "present"
    assert done.dead == []
    assert not (tmp_path / "out.dead-letters.jsonl").exists()


def test_retry_failed_asks_for_dead_letters_again(tmp_path: Path) -> None:
    write_reports(tmp_path, range(10))
    with FaultServer(faults("refusal")) as server:
        assert extract(tmp_path, server).code == 1
        done = extract(tmp_path, server, retry_failed=True)
    assert (done.code, done.dead) == (0, [])
    assert (server.cases[1], sum(server.cases.values())) == (2, 11)


def test_limit_takes_the_first_rows(tmp_path: Path) -> None:
    write_reports(tmp_path, range(30))
    with FaultServer() as server:
        done = extract(tmp_path, server, limit=7)
        assert [row["id"] for row in done.rows] == [f"r{case}" for case in range(7)]
        assert sorted(server.cases) == list(range(7))
        assert len(extract(tmp_path, server).rows) == 30
        assert sum(server.cases.values()) == 30


def test_dry_run_sends_nothing_and_counts(tmp_path: Path, capfd: pytest.CaptureFixture[str]) -> None:
    write_reports(tmp_path, [*range(10), 3, 4])
    prices = "prices: {test-model: {input: 1000000, output: 2000000}}\n"
    with FaultServer() as server:
        assert extract_with_endpoint(options(tmp_path, server, dry_run=True, config=prices), task()) == 0
        said = capfd.readouterr().err
        assert (server.lists, server.preflights, sum(server.cases.values())) == (0, 0, 0)
        assert not (tmp_path / "out.jsonl").exists()
        assert not list(tmp_path.glob("*sqlite*"))
        assert "12 reports: 0 finished, 0 dead letters, 0 without text, 12 to ask for" in said
        assert "10 requests" in said
        assert "7,000 out" in said  # 700 a request, as the packaged file takes
        assert extract(tmp_path, server, limit=6).code == 0
        capfd.readouterr()
        assert extract_with_endpoint(options(tmp_path, server, dry_run=True, config=prices), task()) == 0
        said = capfd.readouterr().err
    assert "4 requests" in said
    assert "200 out" in said  # 50 a request, as this model wrote
    assert "paid so far: 1,200.00" in said  # 6 x (100 tokens at 1 + 50 at 2)


def test_max_cost_is_never_exceeded_and_the_same_command_goes_on(tmp_path: Path) -> None:
    """150 tokens a request at a price of 1 each; a request may cost 4096 and its body at most."""
    write_reports(tmp_path, range(200))
    prices = "prices: {'*': {input: 1000000, output: 1000000}}\nmax_tokens: {plain: 60}\n"
    with FaultServer() as server:
        server.delay = 0.005
        chosen = options(tmp_path, server, max_cost=15_000, config=prices, concurrency=8)
        assert extract_with_endpoint(chosen, task()) == 1
        paid = 150 * len(server.answered)
        assert 3_000 < paid <= 15_000
        assert not (tmp_path / "out.jsonl").exists()
        assert extract_with_endpoint(chosen, task()) == 1  # what was paid before counts
        assert 150 * len(server.answered) <= 15_000
        chosen.max_cost = 100_000
        assert extract_with_endpoint(chosen, task()) == 0
        assert len(server.answered) == 200


def test_max_cost_without_prices_is_refused(tmp_path: Path) -> None:
    write_reports(tmp_path, range(3))
    with FaultServer() as server, pytest.raises(RadgenError, match="--max-cost needs a price"):
        extract(tmp_path, server, max_cost=1)


def test_another_file_is_never_overwritten(tmp_path: Path) -> None:
    write_reports(tmp_path, range(3))
    out = tmp_path / "out.jsonl"
    out.write_text("mine\n")
    with FaultServer() as server:
        with pytest.raises(RadgenError, match="exists already"):
            extract(tmp_path, server)
        assert (out.read_text(), sum(server.cases.values())) == ("mine\n", 0)
        assert extract(tmp_path, server, force=True).code == 0
        out.write_bytes(out.read_bytes() + b"edited\n")
        with pytest.raises(RadgenError, match="exists already"):
            extract(tmp_path, server)


@pytest.mark.parametrize(
    ("line", "message"),
    [
        ("{", r"reports\.jsonl:2: not a line of JSON"),
        ("[1]", r"reports\.jsonl:2: expected an object"),
        (
            '{"id": 1, "text": "SECRET"}',
            r"reports\.jsonl:2: expected the columns id, findings and impression",
        ),
        ('{"id": 1, "findings": 5}', r"reports\.jsonl:2: 'findings' is int, expected text or null"),
    ],
)
def test_a_broken_row_is_found_before_anything_is_paid(tmp_path: Path, line: str, message: str) -> None:
    (tmp_path / "reports.jsonl").write_text(json.dumps(report(1)) + "\n" + line + "\n")
    with FaultServer() as server:
        with pytest.raises(RadgenError, match=message) as error:
            extract(tmp_path, server)
        assert "SECRET" not in str(error.value)
        assert (server.preflights, sum(server.cases.values())) == (0, 0)


def test_a_paid_answer_is_stored_even_if_the_parser_crashes(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    write_reports(tmp_path, range(3))
    monkeypatch.setattr(task(), "check", lambda value: 1 // 0)
    with FaultServer() as server:
        done = extract(tmp_path, server)
        assert [row["error"].split(":")[0] for row in done.rows] == ["schema_mismatch"] * 3
        monkeypatch.undo()
        asked = sum(server.cases.values())
        assert extract(tmp_path, server).code == 0
        assert sum(server.cases.values()) == asked


def test_every_fault_of_the_server_is_used_here() -> None:
    """A body that no test sends would test nothing."""
    source = "".join(path.read_text() for path in Path(__file__).parent.glob("test_endpoint_*.py"))
    assert [name for name in BODIES if f'"{name}"' not in source] == []
