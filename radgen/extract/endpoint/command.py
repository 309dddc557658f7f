"""``radgen extract --backend openai``: the pieces put together, and what the user is told."""

from __future__ import annotations

import asyncio
import hashlib
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path

import orjson

from radgen import __version__
from radgen.console import counter
from radgen.errors import RadgenError
from radgen.extract.endpoint import preflight
from radgen.extract.endpoint.address import check_base_url, host_of, is_private, read_key
from radgen.extract.endpoint.batch import export_batch, import_batch
from radgen.extract.endpoint.client import Client
from radgen.extract.endpoint.export import Exported, export, replaced
from radgen.extract.endpoint.flow import Budget
from radgen.extract.endpoint.progress import progress
from radgen.extract.endpoint.reading import chunks
from radgen.extract.endpoint.request import Abilities, Requests, Task
from radgen.extract.endpoint.run import End, Run, missing
from radgen.extract.endpoint.saying import say, say_estimate, say_import, say_spent, say_written
from radgen.extract.endpoint.settings import Settings, load_settings
from radgen.extract.endpoint.store import DEAD, Store
from radgen.extract.endpoint.survey import Survey, survey
from radgen.extract.endpoint.transport import Transport, make_transport

BACKEND = "openai"


@dataclass
class Options:
    """What the command line gives; see ``radgen extract --help``."""

    reports: Path
    out: Path
    base_url: str | None = None
    model: str | None = None
    store: Path | None = None
    config: Path | None = None
    transport: str = "aiohttp"
    thinking: bool = False
    allow_remote: bool = False
    api_key_env: str | None = None
    api_key_file: Path | None = None
    concurrency: int | None = None
    timeout: float | None = None
    max_wait: float | None = None
    max_outage: float | None = None
    max_cost: float | None = None
    limit: int | None = None
    dry_run: bool = False
    retry_failed: bool = False
    preflight_again: bool = False
    export_batch: Path | None = None
    import_batch: Sequence[Path] = field(default_factory=tuple)
    force: bool = False

    @property
    def store_path(self) -> Path:
        """Where every answer is kept: beside the output if nothing else was asked for."""
        return self.store or self.out.with_name(f"{self.out.stem}.store.sqlite")

    def settings(self) -> Settings:
        """Return the numbers of the run."""
        return load_settings(
            self.config,
            concurrency=self.concurrency,
            timeout_s=self.timeout,
            retry__longest_told_wait_s=self.max_wait,
            circuit__give_up_s=self.max_outage,
        )


def extract_with_endpoint(options: Options, task: Task) -> int:
    """Run the command; returns the exit code: 0, 1 if a row failed or is missing, 130 after Ctrl-C.

    Raises:
        RadgenError: what the user can mend.
    """
    settings = options.settings()
    if options.max_cost is not None and not settings.prices:
        raise RadgenError("--max-cost needs a price: prices: {MODEL: {input: …, output: …}} in --config FILE")
    if not options.reports.is_file():
        raise RadgenError(f"{options.reports}: no such file; expected JSONL as `radgen reports` writes it")
    base_url = None
    if options.base_url or not (options.dry_run or options.export_batch or options.import_batch):
        base_url = checked_url(options)
    if options.dry_run and options.model is None:
        raise RadgenError("--dry-run sends nothing, not even the question for the model's name: give --model")
    model = options.model or asyncio.run(_only_model(options, settings, base_url))
    requests = Requests(task, model, settings, thinking=options.thinking)
    if options.dry_run and not options.store_path.exists():
        say_estimate(_survey(options, requests, None), requests)
        return 0
    with Store(options.store_path, settings.store) as store:
        if options.dry_run:
            say_estimate(_survey(options, requests, store), requests)
            return 0
        return _with_store(options, requests, store, base_url)


def checked_url(options: Options) -> str:
    """Return where reports may be sent; says so if others can read them on the way.

    Raises:
        RadgenError: see :func:`radgen.extract.endpoint.address.check_base_url`.
    """
    base_url = check_base_url(options.base_url, allow_remote=options.allow_remote)
    if options.allow_remote and base_url.startswith("http://") and not is_private(host_of(base_url)):
        say(f"warning: {base_url} is not encrypted, everyone on the way can read the reports")
    return base_url


def _with_store(options: Options, requests: Requests, store: Store, base_url: str | None) -> int:
    if options.import_batch:
        say_import(import_batch(options.import_batch, requests, store))
    if options.retry_failed:
        say(
            f"{store.retire_dead(_dead_keys(options, requests, store)):,} dead letters set aside, asked again"
        )
    if options.export_batch is None:
        _check_out(options, store)
    counts = _survey(options, requests, store)
    if options.export_batch is not None:
        return _export_batch(options, requests, store, base_url)
    if counts.missing and base_url is None:
        say(f"{counts.missing:,} of {counts.rows:,} reports have no answer yet")
        say("go on with --base-url URL, or with --export-batch FOLDER")
        return 1
    if counts.missing:
        say(
            f"{counts.rows:,} reports, {counts.missing:,} to ask for; "
            f"answers are kept in {options.store_path}"
        )
        end, client = asyncio.run(_ask(options, requests, store, base_url or "", counts))
        say_spent(client)
        if end is End.interrupted:
            say("everything that came back is stored; the same command goes on")
            return 130
        if end is End.budget:
            say(f"--max-cost {options.max_cost:g} is reached; the same command with a higher one goes on")
            return 1
    store.flush()
    return _write(options, requests, store)


def _survey(options: Options, requests: Requests, store: Store | None) -> Survey:
    with counter("reports looked through") as show:
        return survey(options.reports, requests, store, options.limit, tick=show)


async def _only_model(options: Options, settings: Settings, base_url: str | None) -> str:
    """Return the one model that the endpoint serves, for a command without ``--model``."""
    if base_url is None:
        raise RadgenError("--model is missing: the name that the endpoint serves")
    transport = open_transport(options, settings, base_url)
    try:
        served = await preflight.served_models(transport, settings, base_url)
    finally:
        await transport.close()
    return preflight.choose_model(None, served, settings, base_url)


def open_transport(options: Options, settings: Settings, base_url: str) -> Transport:
    """Return what sends requests, with the user's key."""
    key = read_key(options.api_key_env, options.api_key_file)
    return make_transport(options.transport, base_url, key, settings.concurrency, settings.connect_timeout_s)


async def _ask(
    options: Options, requests: Requests, store: Store, base_url: str, counts: Survey
) -> tuple[End, Client]:
    settings = requests.settings
    transport = open_transport(options, settings, base_url)
    try:
        abilities = await find_abilities(options, transport, requests, store, base_url)
    except BaseException:
        await transport.close()
        raise
    price = settings.price(requests.model)
    if options.max_cost is not None and price is None:
        await transport.close()
        raise RadgenError(f"--max-cost: no price for '{requests.model}' in the config; '*' is any model")
    budget = Budget(price, options.max_cost, counts.spent or 0.0)
    client = Client(transport, requests, abilities, settings, store, budget)
    run = Run(client, store, missing(requests, store, options.reports, options.limit))
    with progress(client, counts.requests) as show:
        return await run.run(show), client


async def find_abilities(
    options: Options, transport: Transport, requests: Requests, store: Store, base_url: str
) -> Abilities:
    """Return what the server can do: the stored finding, or a new look; the model is checked each time."""
    served = await preflight.served_models(transport, requests.settings, base_url)
    name = preflight.choose_model(requests.model, served, requests.settings, base_url)
    known = preflight.recall(store, base_url, requests.model, requests)
    if known is not None and not options.preflight_again:
        say(f"{base_url}, {name}: {preflight.describe(known, None)} (found earlier)")
        return known
    abilities, found = await preflight.probe(transport, requests, name, base_url)
    say(f"{base_url}, {name}: {found}")
    preflight.remember(store, base_url, requests.model, requests, abilities)
    return abilities


def _dead_keys(options: Options, requests: Requests, store: Store) -> list[bytes]:
    dead: set[bytes] = set()
    for group in chunks(options.reports, requests, requests.settings.read_rows, options.limit):
        states = store.states([item.key for item in group if item.key is not None])
        dead.update(key for key, final in states.items() if final == DEAD)
    return sorted(dead)


# -- files ------------------------------------------------------------------------------------------


def _check_out(options: Options, store: Store) -> None:
    """Refuse before anything is paid to replace a file that is not ours, or that was changed since."""
    out = options.out
    if options.force or not out.exists():
        return
    if out.is_file() and store.get(f"written {out.resolve()}") == _sha256(out):
        return
    raise RadgenError(f"{out}: exists already and was not written from this store; --force replaces it")


def _sha256(path: Path) -> str:
    with open(path, "rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


def _write(options: Options, requests: Requests, store: Store) -> int:
    """Write the output, the dead letters if there are any, and the manifest; returns the exit code."""
    out = options.out
    dead_path = out.with_name(f"{out.stem}.dead-letters.jsonl")
    with replaced(out) as file, replaced(dead_path) as dead:
        result = export(options.reports, file, dead, requests, store, BACKEND, options.limit)
    if not result.failed:
        dead_path.unlink()
    store.put(f"written {out.resolve()}", result.sha256)
    with replaced(out.with_name(f"{out.stem}.manifest.json")) as manifest:
        manifest.write(orjson.dumps(_manifest(options, requests, result), option=orjson.OPT_INDENT_2) + b"\n")
    say_written(options.out, result, dead_path)
    return 1 if result.failed else 0


def _manifest(options: Options, requests: Requests, result: Exported) -> dict[str, object]:
    return {
        "command": "radgen extract",
        "version": __version__,
        "backend": BACKEND,
        "model": requests.model,
        "prompt": requests.task.version,
        "thinking": options.thinking,
        "sampling": requests.settings.sampling[requests.style],
        "reports": options.reports.name,
        "limit": options.limit,
        "rows": result.rows,
        "failed": dict(sorted(result.failed.items())),
        "dropped": dict(sorted(result.dropped.items())),
        "salvaged": result.salvaged,
        "sha256": {options.out.name: result.sha256},
    }


def _export_batch(options: Options, requests: Requests, store: Store, base_url: str | None) -> int:
    abilities = preflight.recall(store, base_url, requests.model, requests) if base_url else None
    folder = options.export_batch or Path()
    rows = missing(requests, store, options.reports, options.limit)
    result = export_batch(rows, folder, requests, abilities or Abilities())
    say(f"{result.requests:,} requests in {len(result.files):,} files in {folder}; when they are answered:")
    say(
        f"  radgen extract {options.reports} --out {options.out} --backend openai --model {requests.model} \\"
    )
    say("    --import-batch RESULTS.jsonl")
    return 0
