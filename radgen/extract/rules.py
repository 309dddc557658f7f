"""Text to canonical findings, offline (spec §8, backend ``rules``)."""

from __future__ import annotations

import functools
from collections.abc import Callable, Mapping
from typing import Any

from radgen.extract.clauses import Reader
from radgen.extract.lexicon import Lexicon, Phrase
from radgen.extract.matching import Item, Matcher
from radgen.extract.mentions import Mention
from radgen.extract.places import merge_places
from radgen.extract.sentences import sentences
from radgen.extract.tokens import Tokens, tokenize
from radgen.ontology import FIELDS, Evidence, Finding, Ontology, load_ontology

#: Fields that a normal statement ("heart size is normal") may carry beside absence.
_ORDER = {name: index for index, name in enumerate(FIELDS)}
_PLACE = _ORDER.__getitem__
_WAYS_BACK = 3
#: How many earlier findings a new one is compared with, so that the time stays linear.
_WINDOW = 200
_SIDES = frozenset(("left", "right", "bilateral"))
_LISTING = frozenset(("or", "and", ",", "/"))

#: How many sentences are remembered, and up to which length.
_REMEMBERED = 20_000
_REMEMBERED_LENGTH = 300

Record = dict[str, Any]
Span = tuple[int, int]
#: What a sentence says of its own findings and of earlier ones: state, span, whether it points back.
_Said = list[tuple[Record, Span, bool]]
_Sentence = tuple[_Said, _Said]
_NOTHING: _Sentence = ([], [])


class RulesExtractor:
    """Finds the findings of an ontology in text.

    Its vocabulary is the ontology, so a finding that a user adds is found; the words of attributes are those
    of the generators and of ``data/cues.yaml``, and a user's ``lexicon`` section adds to them.

    >>> rules = default_extractor()
    >>> for finding in rules.extract("No pneumothorax, small left effusion."):
    ...     print(finding.stated())
    {'finding': 'pneumothorax', 'presence': 'absent'}
    {'finding': 'pleural_effusion', 'presence': 'present', 'severity': 'mild', 'laterality': 'left'}
    """

    def __init__(self, ontology: Ontology) -> None:
        self.ontology = ontology
        self.lexicon = Lexicon(ontology)
        self.matcher = Matcher(self.lexicon)
        self.reader = Reader(self.lexicon)
        self._memory: dict[str, _Sentence] = {}
        sections = self.lexicon.cues["sections"]
        self._silent = frozenset(sections["none"])
        self._headings = frozenset((*sections["none"], *sections["current"], *sections["organs"]))
        self._organs = frozenset(sections["organs"])

    def extract(self, text: str, section: str | None = None) -> list[Finding]:
        """Return the findings of a text, in the order in which it states them.

        Args:
            text: a sentence or a whole section; evidence spans are positions in it.
            section: name of the section, if known ("indication" states no current finding).
        """
        return [
            Finding(**state, evidence=Evidence(text=text[start:end], start=start, end=end))
            for state, (start, end) in self.states(text, section)
        ]

    def extract_report(self, report: Mapping[str, str]) -> list[Record]:
        """Return the findings of a report's sections, each with ``section`` and ``evidence``."""
        rows: list[Record] = []
        for section, text in report.items():
            for state, (start, end) in self.states(text, section):
                evidence = {"text": text[start:end], "start": start, "end": end}
                rows.append({"section": section, **state, "evidence": evidence})
        return rows

    def states(self, text: str, section: str | None = None) -> list[tuple[Record, Span]]:
        """Return the stated fields of every finding with the span of its evidence.

        Sentences that have been read before are not read again; the memory for them is bounded.
        """
        return self._states(text, section, self._remembered)

    def uncached(self, text: str, section: str | None = None) -> list[tuple[Record, Span]]:
        """Return what :meth:`states` returns, reading every sentence anew."""
        return self._states(text, section, self._read)

    def forget(self) -> None:
        """Forget the sentences that have been read."""
        self._memory.clear()

    def _states(
        self, text: str, section: str | None, read: Callable[[str], _Sentence]
    ) -> list[tuple[Record, Span]]:
        if section is not None and section.strip().lower() in self._silent:
            return []
        found: list[tuple[Record, Span]] = []
        silent = False
        for start, end in sentences(text):
            heading, body = self._heading(text, start, end)
            if heading is not None:
                silent = heading in self._silent
            if silent:
                continue
            mentions, orphans = read(text[body:end])
            if not mentions and heading in self._organs:
                body = start  # "Bones: intact."
                mentions, orphans = read(text[body:end])
            if found:
                for record, (low, high), _ in orphans:
                    _join(found, record, (body + low, body + high))
            first = len(found)
            for record, (low, high), definite in mentions:
                span = (body + low, body + high)
                if not (definite and self._completes(found, record, span)):
                    _append(found, dict(record), span, first)
        return found

    def _remembered(self, sentence: str) -> _Sentence:
        known = self._memory.get(sentence)
        if known is None:
            known = self._read(sentence)
            if len(sentence) <= _REMEMBERED_LENGTH:
                if len(self._memory) >= _REMEMBERED:
                    self._memory.clear()
                self._memory[sentence] = known
        return known

    def _completes(self, found: list[tuple[Record, Span]], record: Record, span: Span) -> bool:
        """Let "the nodule" complete the nodule that was named before; tell whether there is one."""
        tag = record["finding"]
        if record["presence"] != "present":
            return False
        tags = self.lexicon.focal if tag in self.lexicon.general else (tag,)
        for index in range(len(found) - 1, max(-1, len(found) - 1 - _WAYS_BACK), -1):
            earlier, place = found[index]
            if earlier["finding"] not in tags or earlier["presence"] != "present":
                continue
            if any(name != "finding" and earlier.get(name, value) != value for name, value in record.items()):
                return False
            found[index] = _ordered({**record, **earlier}), _around(place, span)
            return True
        return False

    def _heading(self, text: str, start: int, end: int) -> tuple[str | None, int]:
        """Return the heading that a sentence begins with, and where the sentence itself begins."""
        colon = text.find(":", start, min(end, start + 40))
        if colon > 0:
            name = text[start:colon].strip().lower()
            if name in self._headings:
                return name, colon + 1
        return None, start

    # --- one sentence ---

    def _read(self, sentence: str) -> _Sentence:
        """Return what a sentence says of findings that it names, and of what was named before it."""
        tokens = tokenize(sentence)
        items = self.matcher.items(tokens) if tokens.words else []
        if not items:
            return _NOTHING
        items = merge_places(self._complete(items, tokens))
        mentions, orphans = self.reader.read(items)
        starts = tokens.starts
        return (
            [
                (record, (starts[mention.start], tokens.end(mention.end - 1)), mention.definite)
                for mention in mentions
                if not mention.dropped
                for record in self._records(mention)
            ],
            [
                (self._records(orphan)[0], (starts[orphan.start], tokens.end(orphan.end - 1)), True)
                for orphan in orphans
            ],
        )

    def _complete(self, items: list[Item], tokens: Tokens) -> list[Item]:
        """Read "pleural or pericardial effusion" as two findings."""
        lower = tokens.lower
        if _LISTING.isdisjoint(lower):
            return items
        extras: dict[int, Item] = {}
        for item in items:
            if item.kind != "find" or item.start < 2:
                continue
            at = item.start - 1
            if lower[at] in _SIDES:  # "left hilar and right paratracheal lymphadenopathy"
                at -= 1
            if lower[at] not in _LISTING:
                continue
            while at >= 1 and lower[at] in _LISTING:
                while at >= 1 and lower[at] in _LISTING:
                    at -= 1
                other = self._elliptical(lower[at], item)
                if other is None or at in extras:
                    break
                extras[at] = Item("find", other, at, at + 1, {})
                at -= 1
        if not extras:
            return items
        kept = [item for item in items if extras.keys().isdisjoint(range(item.start, item.end))]
        return sorted([*kept, *extras.values()], key=lambda item: item.start)

    def _elliptical(self, word: str, item: Item) -> Phrase | None:
        """Return what a word names with the last words of a finding: "pleural (effusion)"."""
        words = item.phrase.words
        for cut in range(1, len(words)):
            other = self.lexicon.phrases.get((word, *words[cut:]))
            if other is not None and other.find and other.find[0][0] != item.phrase.find[0][0]:
                return other
        return None

    def _records(self, mention: Mention) -> list[Record]:
        """Return the states of a mention: one for each of its places."""
        state: Record = {"finding": mention.tag} if mention.tag else {}
        if not mention.attrs and not mention.places and not mention.certainty and not mention.site:
            state["presence"] = "absent" if mention.negated else "present"
            return [state]
        attrs = dict(mention.attrs)
        presence = "absent" if mention.negated else "present"
        certainty = mention.certainty
        if attrs.get("temporal_change") == "resolved":
            presence = "absent"
        if certainty == "cannot_exclude":
            presence = "indeterminate"
        elif mention.negated and certainty == "definite":
            certainty = None
        state["presence"] = attrs.pop("presence", presence)
        if certainty and "certainty" not in attrs:
            state["certainty"] = certainty
        state.update(attrs)
        if mention.site and mention.tag and mention.tag not in self.lexicon.events:
            sites = self.lexicon.sites[mention.tag]
            known = (len(sites) > 1 and mention.site in sites) or "body" in sites
            if known and "anatomy" not in state:
                state["anatomy"] = mention.site
        records = []
        for side, lobe, zone in mention.places or [(None, None, None)]:
            record = dict(state)
            for name, value in (("laterality", side), ("lobe", lobe), ("zone", zone)):
                if value is not None:
                    record.setdefault(name, value)
            records.append(_ordered(record))
        return records


def _append(found: list[tuple[Record, Span]], record: Record, span: Span, first: int) -> None:
    """Add a state that is not there yet; ``first`` is where those of this sentence begin."""
    for index in range(max(0, len(found) - _WINDOW), len(found)):
        earlier = found[index][0]
        if record == earlier:
            return
        if index >= first and len(record) <= 2 and record.items() <= earlier.items():
            return  # "compression fracture with loss of height"
    found.append((record, span))


def _ordered(record: Record) -> Record:
    if len(record) <= 2:
        return record
    return {name: record[name] for name in sorted(record, key=_PLACE)}


def _around(first: Span, second: Span) -> Span:
    return min(first[0], second[0]), max(first[1], second[1])


def _join(found: list[tuple[Record, Span]], more: Record, span: Span) -> None:
    """Complete the last finding by what is said of "it"."""
    record, place = found[-1]
    more = {name: value for name, value in more.items() if name not in ("finding", "presence")}
    if any(name in record and record[name] != value for name, value in more.items()):
        more = {name: value for name, value in more.items() if name not in record}
    merged = {**record, **more}
    if merged.get("temporal_change") == "resolved":
        merged["presence"] = "absent"
    found[-1] = _ordered(merged), _around(place, span)


@functools.cache
def default_extractor() -> RulesExtractor:
    """Return the extractor over the packaged ontology."""
    return RulesExtractor(load_ontology())
