"""Rewrites by a model behind an endpoint: asked for, kept in the store, never trusted (spec §5, §8).

What comes back is only a proposal; ``discrepancies.py`` reads it again before it becomes a row.
"""

from __future__ import annotations

import asyncio
import functools
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from hashlib import sha256
from importlib import resources
from pathlib import Path
from typing import Annotated, Any, Literal

from pydantic import Field

from radgen.errors import RadgenError
from radgen.extract.endpoint.answer import AnswerError, Kind
from radgen.extract.endpoint.client import Client
from radgen.extract.endpoint.command import Options, checked_url, find_abilities, open_transport
from radgen.extract.endpoint.export import read_attempts
from radgen.extract.endpoint.reading import Item
from radgen.extract.endpoint.request import Abilities, Parsed, Requests
from radgen.extract.endpoint.run import End, Run, unfinished
from radgen.extract.endpoint.saying import say
from radgen.extract.endpoint.settings import load_settings
from radgen.extract.endpoint.store import DEAD, Store
from radgen.generators.similarity.edits import difference, differs_by
from radgen.generators.similarity.sections import Block, Section, State, row_random
from radgen.ontology.schema import Strict
from radgen.yamlfile import read_yaml, validate

Rewrite = Literal["paraphrase", "condensation"]
_NUMBER = re.compile(r"\d+(?:\.\d+)?")


class Wording(Strict):
    """``rewrites.yaml``."""

    version: str
    share: Annotated[float, Field(ge=0, le=1)]
    group: Annotated[int, Field(ge=1, le=10_000)]
    sampling: dict[str, float]
    shortest: dict[Rewrite, int]
    longest: dict[Rewrite, float]
    most_characters: Annotated[int, Field(ge=1)]
    system: str
    user: dict[Rewrite, str]
    repair: str


@functools.cache
def wording() -> Wording:
    """Return the packaged prompts and bounds."""
    with resources.as_file(resources.files("radgen.generators").joinpath("data", "rewrites.yaml")) as path:
        source = read_yaml(Path(path), name="radgen/generators/data/rewrites.yaml", careful=False)
    return validate(Wording, source.data, [source])


class RewriteTask:
    """Asks for one rewrite (see :class:`radgen.extract.endpoint.request.Task`)."""

    name = "rewrite"

    def __init__(self, words: Wording) -> None:
        self._words = words
        self.system, self.repair = words.system, words.repair
        # Repair and first request differ; the key holds the first one's words only.
        self.version = f"{words.version}.{sha256(words.repair.encode()).hexdigest()[:8]}"
        text = {"type": "string", "minLength": 1, "maxLength": words.most_characters}
        self.schema: Mapping[str, Any] = {
            "type": "object",
            "properties": {"text": text},
            "required": ["text"],
            "additionalProperties": False,
        }

    def user(self, report: Mapping[str, Any]) -> str | None:
        """Return the request for a rewrite of ``text``; the preflight gives its sentence as ``findings``."""
        prompt = self._words.user[report.get("kind", "paraphrase")]
        return prompt.replace("{{text}}", report.get("text") or report["findings"])

    def check(self, value: Any) -> str:
        """Return the rewrite with single spaces."""
        text = value.get("text") if isinstance(value, dict) and set(value) == {"text"} else None
        if not isinstance(text, str) or not text.strip() or len(text) > self._words.most_characters:
            raise AnswerError(Kind.schema, 'expected an object {"text": "…"} and nothing else')
        return " ".join(text.split())

    def parse(self, value: Any, report: Mapping[str, Any]) -> Parsed:
        """Return the rewrite."""
        return Parsed([{"text": self.check(value)}], {})


@dataclass(frozen=True)
class Wish:
    """A rewrite that is asked for: of the block at ``place``, or of the whole section if ``None``."""

    kind: Rewrite
    place: int | None
    item: Item

    @property
    def original(self) -> str:
        """The words that are to be rewritten."""
        return str(self.item.report["text"])

    def applied(self, section: Section, text: str) -> list[Block]:
        """Return the section's blocks with the rewrite in its place; what it states is to be read."""
        blocks, new = list(section.blocks), Block(text, (), single=False)
        if self.place is None:
            return [new]
        blocks[self.place] = new
        return blocks


@dataclass(frozen=True)
class Offer:
    """What came of a wish: its text, or why there is none."""

    wish: Wish
    text: str | None
    failure: str = ""


class Rewriter:
    """Asks for rewrites, a group at a time; use it as a context: its store is open within.

    Raises:
        RadgenError: no model, or an address that report text may not be sent to.
    """

    def __init__(self, options: Options) -> None:
        if not options.base_url or not options.model:
            raise RadgenError("rewrites by a model need both --base-url URL and --model NAME")
        self.options, self.words = options, wording()
        self.base_url = checked_url(options)
        chosen = options.settings()
        if chosen.sampling == load_settings().sampling:
            chosen = chosen.model_copy(update={"sampling": {**chosen.sampling, "plain": self.words.sampling}})
        self.requests = Requests(RewriteTask(self.words), options.model, chosen)
        self.wanted = self.asked = 0  # rewrites; requests that were sent for them
        self._abilities: Abilities | None = None
        self._wished: set[bytes] = set()

    @property
    def identity(self) -> dict[str, Any]:
        """What the rewrites depend on, for fingerprint and manifest."""
        settings = self.requests.settings
        return {
            "model": self.requests.model,
            "sampling": settings.sampling["plain"],
            "extra_body": settings.extra_body,
            **self.words.model_dump(exclude={"sampling"}),
        }

    def __enter__(self) -> Rewriter:
        self._store = Store(self.options.store_path, self.requests.settings.store)
        return self

    def __exit__(self, *error: Any) -> None:
        self._store.__exit__(*error)
        say(f"{self.wanted:,} rewrites, {self.asked:,} requests sent; answers: {self.options.store_path}")

    def offers(self, sections: Sequence[Section], turn: int, seed: int) -> list[Offer | None]:
        """Return an offer for each section, ``None`` where no rewrite is asked for.

        Raises:
            RadgenError: the endpoint is dead or refuses; what came back is stored.
            KeyboardInterrupt: stopped by Ctrl-C; likewise.
        """
        wishes = [self._wish(section, turn, seed) for section in sections]
        items = [wish.item for wish in wishes if wish]
        rows = list(unfinished(items, self.requests, self._store, set()))
        self.wanted += len(items)
        if rows:
            end = asyncio.run(self._send(rows))
            if end is not End.complete:
                raise KeyboardInterrupt
            self._store.flush()
        finals = self._store.finals([item.key for item in items if item.key])
        dead = self._store.attempts([key for key, attempt in finals.items() if attempt.final == DEAD])
        out: list[Offer | None] = []
        for wish in wishes:
            if wish is None or wish.item.key is None:
                out.append(None)
                continue
            attempts = dead.get(wish.item.key) or [finals[wish.item.key]]
            parsed, kind, _ = read_attempts(self.requests, wish.item, attempts)
            out.append(Offer(wish, parsed.items[0]["text"] if parsed else None, f"no answer ({kind})"))
        return out

    def _wish(self, section: Section, turn: int, seed: int) -> Wish | None:
        rng = row_random("rewrites", seed, turn, section.report, section.name)
        if rng.random() >= self.words.share:
            return None
        kind: Rewrite = rng.choice(list(self.words.user))
        least = self.words.shortest[kind]
        place, text = None, section.text
        if kind == "paraphrase":
            places = [
                at
                for at, block in enumerate(section.blocks)
                if block.single and block.states and len(block.text.split()) >= least
            ]
            if not places:
                return None
            place = rng.choice(places)
            text = section.blocks[place].text
        elif len(section.blocks) < 2 or len(text.split()) < least:
            return None
        report = {"id": section.report, "kind": kind, "text": text}
        user = self.requests.task.user(report)
        key = self.requests.key(user or "")
        # The same rewrite in a second row of the split would be the same string.
        if key in self._wished:
            return None
        self._wished.add(key)
        return Wish(kind, place, Item(0, report, user, key))

    async def _send(self, rows: list[Any]) -> End:
        transport = open_transport(self.options, self.requests.settings, self.base_url)
        try:
            if self._abilities is None:
                self._abilities = await find_abilities(
                    self.options, transport, self.requests, self._store, self.base_url
                )
        except BaseException:
            await transport.close()
            raise
        client = Client(transport, self.requests, self._abilities, self.requests.settings, self._store)
        end = await Run(client, self._store, iter(rows)).run()
        self.asked += client.tally.requests
        return end


def refusal(wish: Wish, text: str, old: Sequence[State], new: Sequence[State]) -> str | None:
    """Return why a rewrite is no harmless one, ``None`` if it is.

    Args:
        old, new: what the section stated, and what it reads as with the rewrite.
    """
    words = wording()
    if len(text.split()) > words.longest[wish.kind] * len(wish.original.split()):
        return "too long"
    if not set(_NUMBER.findall(text)) <= set(_NUMBER.findall(wish.original)):
        return "has a number that was not there"
    if differs_by(wish.kind, old, new):
        return None
    gone, come = difference(old, new)
    if wish.kind == "condensation":  # a denial may go, but not turn into something else
        named = {state["finding"] for state in come}
        gone = [state for state in gone if state.get("presence") != "absent" or state["finding"] in named]
    return "changes a finding" if gone and come else "adds a finding" if come else "drops a finding"
