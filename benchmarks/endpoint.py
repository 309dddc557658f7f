"""CPU seconds of a thousand requests: radgen's endpoint run against ``AsyncOpenAI`` as it comes.

A server in a process of its own answers after 50 ms. radgen's figures include the store, the check of every
answer against the schema and its evidence; the SDK's only its own validation. The client has one core.

Each figure is the best of three rounds, the clients in turn: what else the machine does only adds.

    python benchmarks/endpoint.py [--requests 4000] [--concurrency 64 256] [--rounds 3]
"""

from __future__ import annotations

import argparse
import asyncio
import json
import multiprocessing
import os
import resource
import tempfile
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

DELAY = 0.05
FINDINGS = [
    ("pleural_effusion", "Small left pleural effusion", {"severity": "mild", "laterality": "left"}),
    ("atelectasis", "adjacent left lower lobe atelectasis", {"laterality": "left", "lobe": "lower"}),
    (
        "pulmonary_nodule",
        "8 mm nodule in the right upper lobe",
        {"laterality": "right", "lobe": "upper", "size_mm": 8},
    ),
    ("cardiomegaly", "Heart is mildly enlarged", {"severity": "mild"}),
    ("pneumothorax", "No pneumothorax", {}),
]
WORDS = {
    "mild": "Small",
    "left": "left",
    "right": "right",
    "lower": "lower lobe",
    "upper": "upper lobe",
    8: "8 mm",
}


def report(number: int) -> dict[str, Any]:
    text = ". ".join(quote for _, quote, _ in FINDINGS)
    return {
        "id": f"r{number}",
        "findings": f"Study {number}. {text}.",
        "impression": "Left effusion, right nodule.",
    }


def canned() -> bytes:
    """One answer of the size that such a report has."""
    findings = []
    for tag, quote, attributes in FINDINGS:
        words = {
            name: WORDS[value] if WORDS[value] in quote else "mildly" for name, value in attributes.items()
        }
        presence = "absent" if quote.startswith("No") else "present"
        item = {"section": "findings", "finding": tag, "quote": quote, "presence": presence, **attributes}
        findings.append({**item, "words": words})
    message = {"role": "assistant", "content": json.dumps({"findings": findings})}
    body = json.dumps(
        {
            "id": "chatcmpl-1",
            "object": "chat.completion",
            "created": 1,
            "model": "bench",
            "choices": [{"index": 0, "message": message, "finish_reason": "stop"}],
            "usage": {"prompt_tokens": 1900, "completion_tokens": 260, "total_tokens": 2160},
        }
    ).encode()
    return b"HTTP/1.1 200 OK\r\nContent-Type: application/json\r\nContent-Length: %d\r\n\r\n%s" % (
        len(body),
        body,
    )


class Server(asyncio.Protocol):
    """Just enough HTTP to answer a POST after 50 ms, so that the server does not limit the client."""

    answer = canned()
    models = b'HTTP/1.1 200 OK\r\nContent-Length: 25\r\n\r\n{"data":[{"id":"bench"}]}'

    def connection_made(self, transport: Any) -> None:
        self.transport, self.buffer, self.need = transport, bytearray(), 0

    def data_received(self, data: bytes) -> None:
        self.buffer += data
        if not self.need:
            end = self.buffer.find(b"\r\n\r\n")
            if end < 0:
                return
            head = bytes(self.buffer[:end]).lower()
            if head.startswith(b"get"):
                self.buffer.clear()
                self.transport.write(self.models)
                return
            at = head.index(b"content-length:") + 15
            self.need = end + 4 + int(head[at : (head + b"\r\n").index(b"\r\n", at)])
        if len(self.buffer) >= self.need:
            self.buffer.clear()
            self.need = 0
            asyncio.get_running_loop().call_later(DELAY, self.send)

    def send(self) -> None:
        if not self.transport.is_closing():
            self.transport.write(self.answer)


def serve(port: Any) -> None:
    pin(-1)

    async def run() -> None:
        server = await asyncio.get_running_loop().create_server(Server, "127.0.0.1", 0, backlog=1024)
        port.send(server.sockets[0].getsockname()[1])
        await server.serve_forever()

    asyncio.run(run())


def pin(core: int) -> None:
    """Keep this process on one core, the server and the client on different ones."""
    if hasattr(os, "sched_setaffinity"):
        cores = sorted(os.sched_getaffinity(0))
        os.sched_setaffinity(0, {cores[core]})


def cpu() -> float:
    used = resource.getrusage(resource.RUSAGE_SELF)
    return used.ru_utime + used.ru_stime


def measured(work: Callable[[], int]) -> tuple[float, float]:
    """Return CPU seconds of a thousand requests, and requests a second."""
    before, began = cpu(), time.perf_counter()
    count = work()
    return 1000 * (cpu() - before) / count, count / (time.perf_counter() - began)


def radgen(url: str, count: int, concurrency: int, folder: Path, transport: str = "aiohttp") -> Iterator[Any]:
    """Yield the work: from the file of reports to the last answer in the store."""
    from radgen.extract.endpoint.client import Client
    from radgen.extract.endpoint.request import Abilities, Requests
    from radgen.extract.endpoint.run import Run, missing
    from radgen.extract.endpoint.settings import load_settings
    from radgen.extract.endpoint.store import Store
    from radgen.extract.endpoint.task import ExtractionTask
    from radgen.extract.endpoint.transport import make_transport
    from radgen.ontology import load_ontology

    reports = folder / "reports.jsonl"
    reports.write_text("".join(json.dumps(report(number)) + "\n" for number in range(count)))
    settings = load_settings(concurrency=concurrency)
    requests = Requests(ExtractionTask(load_ontology()), "bench", settings)
    path = folder / f"{transport}-{concurrency}.sqlite"

    def work() -> int:
        async def run() -> None:
            with Store(path, settings.store) as store:
                sender = make_transport(transport, url, None, concurrency, 10)
                client = Client(sender, requests, Abilities(), settings, store)
                await Run(client, store, missing(requests, store, reports)).run()
                assert client.tally.rows == count, client.tally
                assert client.tally.failed == 0, client.tally

        asyncio.run(run())
        return count

    yield work


def sdk(url: str, count: int, concurrency: int, _folder: Path) -> Iterator[Any]:
    """Yield the work: the same bodies through ``chat.completions.create``."""
    from openai import AsyncOpenAI

    from radgen.extract.endpoint.request import Abilities, Requests
    from radgen.extract.endpoint.settings import load_settings
    from radgen.extract.endpoint.task import ExtractionTask
    from radgen.ontology import load_ontology

    task = ExtractionTask(load_ontology())
    requests = Requests(task, "bench", load_settings())
    users = [task.user(report(number)) or "" for number in range(count)]

    def work() -> int:
        async def run() -> None:
            async with AsyncOpenAI(base_url=url, api_key="none") as client:
                waiting = iter(users)

                async def worker() -> None:
                    for user in waiting:
                        body = requests.body(user, Abilities(), 4096)
                        extra = {"chat_template_kwargs": body.pop("chat_template_kwargs")}
                        answer = await client.chat.completions.create(**body, extra_body=extra)
                        json.loads(answer.choices[0].message.content or "")

                await asyncio.gather(*(worker() for _ in range(concurrency)))

        asyncio.run(run())
        return count

    yield work


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else None)
    parser.add_argument("--requests", type=int, default=4000)
    parser.add_argument("--concurrency", type=int, nargs="+", default=[64, 256])
    parser.add_argument("--rounds", type=int, default=3)
    chosen = parser.parse_args()
    ours, theirs = multiprocessing.Pipe()
    server = multiprocessing.get_context("spawn").Process(target=serve, args=(theirs,), daemon=True)
    server.start()
    url = f"http://127.0.0.1:{ours.recv()}/v1"
    pin(0)
    print(f"{'client':28} {'concurrency':>11} {'CPU-s/1,000':>12} {'requests/s':>11} {'against SDK':>12}")
    with tempfile.TemporaryDirectory() as name:
        for concurrency in chosen.concurrency:
            clients: list[tuple[str, Any, int]] = [
                ("AsyncOpenAI as it comes", sdk, max(500, chosen.requests // 4)),
                (
                    "radgen --transport openai",
                    lambda *a: radgen(*a, transport="openai"),
                    chosen.requests // 2,
                ),
                ("radgen", radgen, chosen.requests),
            ]
            best: dict[str, tuple[float, float]] = {}
            for turn in range(chosen.rounds + 1):  # the first, short one is for imports and first connections
                for label, make, count in clients:
                    folder = Path(name, f"{label}-{concurrency}-{turn}".replace(" ", "-"))
                    folder.mkdir()
                    for work in make(url, count if turn else 300, concurrency, folder):
                        cost, rate = measured(work)
                    if turn:
                        known = best.get(label, (float("inf"), 0.0))
                        best[label] = min(cost, known[0]), max(rate, known[1])
            reference = best[clients[0][0]][0]
            for label, (cost, rate) in best.items():
                factor = f"{reference / cost:11.1f}x"
                print(f"{label:28} {concurrency:11} {cost:12.2f} {rate:11.0f} {factor}", flush=True)
    server.terminate()


if __name__ == "__main__":
    main()
