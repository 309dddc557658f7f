"""Probe-13 (spec §3, §10): 650 triplets whose sentences are written apart from the generators' templates.

The sentences are those of ``data/probe.yaml``. All texts lie in the test split, whatever the seed of a
training set, because a text's split is a hash of the text (spec §2).
"""

from __future__ import annotations

import itertools
import random
import re
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import orjson

from radgen.errors import RadgenError
from radgen.generators.blocks import context_hash, ordered, row_id
from radgen.generators.probe_file import Group, Pattern, ProbeFile, load_probe
from radgen.generators.probe_values import Option, option_key, options
from radgen.generators.splits import Splitter
from radgen.ontology.load import Ontology
from radgen.ontology.schema import FindingEntry, Term
from radgen.templates.forms import centimetres, millimetres
from radgen.templates.realiser import article, is_plural, jaccard

NAME = "probe13"
State = dict[str, Any]
_BY_PLACE = re.compile(r"([\w]+)\|\|([\w]+)")
_BY_NOUN = re.compile(r"([\w]+)\|([\w]+)")
#: "the both lungs", "the a pair of": the article that the filled-in form makes superfluous.
_DOUBLE = re.compile(r"\b[Tt]he (both )|(?<=\bthe )an? ")
_THE_LOBE = re.compile(r"\b([Tt])he (?=(?:left|right) (?:(?:upper|middle|lower) lobe|lung) )")
_ARTICLE = re.compile(r"a\(n\) (\S+)")
#: How many fillings of one pattern are tried, and how many findings a row.
FILLS, ATTEMPTS = 25, 200
#: How many negatives compete in nearness of wording where a row has a lexical trap.
RIVALS = 6


@dataclass(frozen=True)
class Utterance:
    """A sentence, and the pattern that it was made of."""

    text: str
    pattern: str


def probe_rows(ontology: Ontology) -> list[dict[str, Any]]:
    """Return the rows of Probe-13: the columns of a contrasts triplet file, and ``kind``.

    ``axis`` is the group; ``kind`` is ``match`` (the positive has the anchor's value) or ``ordinal`` (it is
    nearer than the negative). Groups without grades (presence, synonym) have ``match`` only.

    Raises:
        RadgenError: the sentences of ``probe.yaml`` are too few for the rows asked for.
    """
    probe = load_probe()
    writer = Writer(ontology, probe)
    rows: list[dict[str, Any]] = []
    for name in probe.groups:
        rows += writer.group(name)
    return rows


class Writer:
    """Writes the rows, group by group; no text is used twice over the whole set."""

    def __init__(self, ontology: Ontology, probe: ProbeFile) -> None:
        self.ontology = ontology
        self.probe = probe
        self.splitter = Splitter(ontology.axes.splits)
        self.used: set[str] = set()

    def group(self, name: str) -> list[dict[str, Any]]:
        """Return the rows of one group, match and ordinal in turn where both exist."""
        rng = random.Random(f"{self.probe.seed}:{name}")
        group: Group = getattr(self.probe, name)
        turns: Counter[Any] = Counter()
        patterns: Counter[str] = Counter()
        wheel = _wheel(sorted(group.tags), rng)
        kinds = ("match",) if name in ("presence", "synonym") else ("match", "ordinal")
        rows: list[dict[str, Any]] = []
        while len(rows) < self.probe.rows_per_group:
            kind = kinds[len(rows) % len(kinds)]
            trap = len(rows) // len(kinds) % 10 < 10 * self.probe.trap_share
            for _ in range(ATTEMPTS):
                found = options(self.ontology, self.probe, name, next(wheel), kind, rng)
                if not found:
                    continue
                fewest = min(turns[option_key(name, option)] for option in found)
                option = rng.choice([one for one in found if turns[option_key(name, one)] == fewest])
                said = self._say(name, group, option, trap, patterns, rng)
                if said is not None:
                    break
            else:
                raise RadgenError(
                    f"radgen/generators/data/probe.yaml: {name}: too few sentences for "
                    f"{self.probe.rows_per_group} rows, {len(rows)} were made; write more patterns or names"
                )
            turns[option_key(name, option)] += 1
            for one in said:
                self.used.add(one.text.lower())
                patterns[one.pattern] += 1
            rows.append(_row(name, kind, option, said))
        return rows

    def _say(
        self,
        name: str,
        group: Group,
        option: Option,
        trap: bool,
        patterns: Counter[str],
        rng: random.Random,
    ) -> tuple[Utterance, Utterance, Utterance] | None:
        anchor = next(self._sentences(name, group, option.anchor, option.names[0], patterns, rng), None)
        if anchor is None:
            return None
        limit = self.probe.max_word_jaccard
        positive = _first(
            self._sentences(name, group, option.positive, option.names[1], patterns, rng),
            lambda one: one.pattern != anchor.pattern and jaccard(anchor.text, one.text) < limit,
        )
        if positive is None:
            return None
        taken = {anchor.text.lower(), positive.text.lower()}
        rivals = []
        for one in self._sentences(name, group, option.negative, option.names[2], patterns, rng):
            if one.text.lower() not in taken:
                rivals.append(one)
            if len(rivals) == (RIVALS if trap else 1):
                break
        if not rivals:
            return None
        return anchor, positive, max(rivals, key=lambda one: jaccard(anchor.text, one.text))

    def _sentences(
        self,
        name: str,
        group: Group,
        state: State,
        names: Sequence[Term],
        patterns: Counter[str],
        rng: random.Random,
    ) -> Iterator[Utterance]:
        """Yield unused sentences of the test split that say a state, those of rare patterns first."""
        classes = classes_of(self.ontology.findings[state["finding"]])
        found = [
            (key, pattern)
            for key, pattern in _patterns(self.probe, name, group, state)
            if not pattern.classes or classes & set(pattern.classes)
        ]
        rng.shuffle(found)
        found.sort(key=lambda item: patterns[item[0]])
        filler = Filler(self.probe, name, group, state, classes)
        for key, pattern in found:
            for text in filler.texts(pattern.text, names, rng):
                if text.lower() not in self.used and self.splitter.of(text) == "test":
                    yield Utterance(text, key)
                    break


def classes_of(entry: FindingEntry) -> frozenset[str]:
    """Return the words that suit a finding: ``lesion`` (a size), ``amount`` (fluid, air) or ``degree``."""
    if "size" in entry.axes:
        return frozenset({"lesion"})
    return frozenset({"degree" if entry.severity_words == "degree" else "amount"})


class Filler:
    """Fills patterns with the words for one state."""

    def __init__(
        self, probe: ProbeFile, name: str, group: Group, state: State, classes: frozenset[str]
    ) -> None:
        self.probe = probe
        self.state = state
        self.plural = is_plural(state) and name != "distribution"
        self.bare = name in ("count", "distribution")  # their forms bring their own article
        self.heads = tuple(probe.plural_heads)
        self.both = state.get("laterality") == "bilateral"
        self.slots = slots(probe, name, group, state, classes)
        self.places = [""] if name in ("laterality", "location", "zone") else self._before()

    def texts(self, pattern: str, names: Sequence[Term], rng: random.Random) -> Iterator[str]:
        """Yield the sentences of a pattern in random order, at most ``FILLS`` of them."""
        slots = [slot for slot in self.slots if "{" + slot + "}" in pattern]
        forms = list(itertools.product(*(self.slots[slot] for slot in slots)))
        ways = list(itertools.product(names, self.places, forms))
        for term, place, words in rng.sample(ways, min(FILLS, len(ways))):
            yield self.fill(pattern, term, place, dict(zip(slots, words, strict=True)))

    def fill(self, pattern: str, term: Term, place: str, words: Mapping[str, str]) -> str:
        """Return one sentence: slots filled, numbers agreed, articles set."""
        plural = term.number == "plural" or (self.plural and term.number == "count")
        name = term.form(plural)
        text = pattern
        for slot, form in words.items():
            text = text.replace("{" + slot + "}", form)
        text = text.replace("{np}", f"{place} {name}" if place else name)
        if "{" in text:
            raise RadgenError(f"radgen/generators/data/probe.yaml: '{pattern}': no value for {text!r}")
        if "|" in text:
            verbs = plural or any(form.endswith(self.heads) for form in words.values())
            text = _BY_PLACE.sub(lambda match: match.group(2 if self.both else 1), text)
            text = _BY_NOUN.sub(lambda match: match.group(2 if verbs else 1), text)
        if "a(n)" in text:
            with_article = term.number == "count" and not plural and not self.bare
            text = _ARTICLE.sub(
                lambda match: (article(match.group(1)) + " " if with_article else "") + match.group(1), text
            )
        if place:
            # "the right upper lobe", "of the right lung" are whole phrases of the generators.
            text = _THE_LOBE.sub(lambda match: match.group(1) + ("hese " if plural else "his "), text)
        text = _DOUBLE.sub(lambda match: match.group(1) or "", text)
        return text[0].upper() + text[1:] + "."

    def _before(self) -> list[str]:
        """The ways to say the state's place before the finding's name."""
        return places_before(self.probe, self.state)


def places_before(probe: ProbeFile, state: Mapping[str, Any]) -> list[str]:
    """Return the ways to say a place before a name: "left-sided", "right upper lobe", "both apical"."""
    words = probe.places
    side, lobe, zone = state.get("laterality"), state.get("lobe"), state.get("zone")
    if side is None:
        return [""]
    if side == "bilateral":
        where = [f"bilateral {lobe} lobe"] if lobe else [f"bilateral {word}" for word in words.plain(zone)]
        return where if lobe or zone else list(words.both)
    if lobe == "lingula":
        found = words.lingula
    elif lobe:
        found = words.lobe
    else:
        found = words.zone[zone] if zone else words.side
    return [text.format(side=side, lobe=lobe) for text in found]


def slots(
    probe: ProbeFile, name: str, group: Group, state: Mapping[str, Any], classes: frozenset[str]
) -> dict[str, list[str]]:
    """Return the words for each slot of a group's patterns, for one state."""
    if name == "size":
        size = state["size_mm"]
        numbers = {"mm": millimetres(size), "cm": centimetres(size)}
        return {"d": [text.format(**numbers) for text in group.forms["d"]]}
    if name in ("location", "zone"):
        found = located(probe, state)
        spots = [text.removeprefix("the ") for text in found]
        return {"loc": found, "spot": spots, "placed": places_before(probe, state)}
    value = group.values.get(level(name, state), {})
    out: dict[str, list[str]] = {}
    for slot, forms in value.items():
        base, _, wanted = slot.partition(".")
        if not wanted or wanted in classes:
            out[base] = forms
    return out


def located(probe: ProbeFile, state: Mapping[str, Any]) -> list[str]:
    """Return the noun phrases for a state's place."""
    side, lobe, zone = state["laterality"], state.get("lobe"), state.get("zone")
    number = "both" if side == "bilateral" else "one"
    if zone:
        found = probe.locations.zone[zone][number]
    else:
        found = probe.locations.lobe["lingula" if lobe == "lingula" else number]
    return [text.format(side=side, lobe=lobe) for text in found]


def level(name: str, state: Mapping[str, Any]) -> str:
    """Return the value of a state that its words are listed under in ``probe.yaml``."""
    if name == "count":
        return str(state.get("count") or state["count_category"])
    if name in ("size", "location", "zone", "synonym"):
        return "any"
    return str(state["presence" if name == "presence" else name])


def _patterns(
    probe: ProbeFile, name: str, group: Group, state: Mapping[str, Any]
) -> Iterator[tuple[str, Pattern]]:
    """Yield what can say a state, with the names that rows give as ``phrasings``."""
    value = level(name, state)
    said = value
    if name == "laterality":
        said = "both" if value == "bilateral" else "one"
    for index, pattern in enumerate(group.patterns):
        yield f"probe.{name}.{index}", pattern
    for index, pattern in enumerate(group.said.get(said, [])):
        yield f"probe.{name}.{said}.{index}", pattern
    shell = group.shell
    if name == "presence" and value == "present":
        shell = "{np}"
    if shell is None:
        return
    for index, text in enumerate(probe.shells):
        yield f"probe.shell.{index}", Pattern(text=text.replace("{x}", shell))


def _row(
    name: str, kind: str, option: Option, said: tuple[Utterance, Utterance, Utterance]
) -> dict[str, Any]:
    texts = dict(zip(("anchor", "positive", "negative"), (one.text for one in said), strict=True))
    rest = {
        "axis": name,
        "positive_target": option.positive_target,
        "negative_target": option.negative_target,
        "anchor_state": ordered(option.anchor),
        "positive_state": ordered(option.positive),
        "negative_state": ordered(option.negative),
        "context": context_hash(option.anchor, option.varying),
        "phrasings": [one.pattern for one in said],
        "kind": kind,
    }
    key = row_id(NAME, orjson.dumps(texts)[1:-1], orjson.dumps(rest)[1:-1]).decode()
    return {**texts, "id": key, **rest}


def _first(found: Iterator[Utterance], suits: Callable[[Utterance], bool]) -> Utterance | None:
    return next((one for one in found if suits(one)), None)


def _wheel(tags: list[str], rng: random.Random) -> Iterator[str]:
    """Yield the findings over and over, each round in another order."""
    while True:
        rng.shuffle(tags)
        yield from list(tags)
