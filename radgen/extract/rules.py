"""Text to canonical findings, offline (spec §8, backend ``rules``)."""

from __future__ import annotations

import functools
from collections.abc import Mapping
from typing import Any

from radgen.extract.clauses import Mention, Reader
from radgen.extract.lexicon import Lexicon
from radgen.extract.matching import Item, Matcher
from radgen.extract.places import merge_places
from radgen.extract.sentences import sentences
from radgen.extract.tokens import Tokens, tokenize
from radgen.ontology import FIELDS, Evidence, Finding, Ontology, load_ontology

#: Fields that a normal statement ("heart size is normal") may carry beside absence.
_ORDER = {name: index for index, name in enumerate(FIELDS)}
_WAYS_BACK = 3

Record = dict[str, Any]
Span = tuple[int, int]


class RulesExtractor:
    """Finds the findings of an ontology in text.

    Its vocabulary is the ontology, so a finding that a user adds is found; the words of attributes are those
    of the generators and of ``data/cues.yaml``, and a user's ``lexicon`` section adds to them.

    >>> rules = default_extractor()
    >>> [finding.stated() for finding in rules.extract("No pneumothorax, small left effusion.")]
    [{'finding': 'pneumothorax', 'presence': 'absent'}, {'finding': 'pleural_effusion', 'presence': 'present', \
'severity': 'mild', 'laterality': 'left'}]
    """

    def __init__(self, ontology: Ontology) -> None:
        self.ontology = ontology
        self.lexicon = Lexicon(ontology)
        self.matcher = Matcher(self.lexicon)
        self.reader = Reader(self.lexicon)
        sections = self.lexicon.cues["sections"]
        self._silent = frozenset(sections["none"])
        self._headings = frozenset((*sections["none"], *sections["current"]))

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
        """Return the stated fields of every finding with the span of its evidence."""
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
            tokens = tokenize(text, body, end)
            if tokens.words:
                self._sentence(tokens, found)
        return found

    def _heading(self, text: str, start: int, end: int) -> tuple[str | None, int]:
        """Return the heading that a sentence begins with, and where the sentence itself begins."""
        colon = text.find(":", start, min(end, start + 40))
        if colon > 0:
            name = text[start:colon].strip().lower()
            if name in self._headings:
                return name, colon + 1
        return None, start

    # --- one sentence ---

    def _sentence(self, tokens: Tokens, found: list[tuple[Record, Span]]) -> None:
        items = self.matcher.items(tokens)
        if not items:
            return
        self._complete(items, tokens)
        items = merge_places(items)
        mentions, orphans = self.reader.read(items)
        if orphans and found:
            for orphan in orphans:
                _join(found, self._records(orphan)[0], (tokens.starts[orphan.start], tokens.end(orphan.end - 1)))
        first = len(found)
        for mention in mentions:
            if mention.dropped:
                continue
            span = tokens.starts[mention.start], tokens.end(mention.end - 1)
            for record in self._records(mention):
                self._append(found, record, span, mention, first)

    def _complete(self, items: list[Item], tokens: Tokens) -> None:
        """Read "pleural or pericardial effusion" as two findings."""
        finds = self.lexicon.finds
        for index, item in enumerate(items):
            words = item.phrase.words
            if item.kind != "find" or len(words) < 2 or item.start < 2:
                continue
            at = item.start - 1
            while at >= 1 and tokens.lower[at] in ("or", "and", ",", "/"):
                while at >= 1 and tokens.lower[at] in ("or", "and", ",", "/"):
                    at -= 1
                for cut in range(1, len(words)):
                    other = finds.get((tokens.lower[at], *words[cut:]))
                    if other and other[0][0] != item.phrase.find[0][0]:
                        break
                else:
                    break
                extra = Item("find", self.lexicon.phrases[(tokens.lower[at], *words[cut:])], at, at + 1, {})
                items[:] = sorted(
                    [old for old in items if not (old.start <= at < old.end)] + [extra], key=lambda old: old.start
                )
                at -= 1
            if len(items) <= index:
                break

    def _records(self, mention: Mention) -> list[Record]:
        """Return the states of a mention: one for each of its places."""
        state: Record = {}
        if mention.tag:
            state["finding"] = mention.tag
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
            known = len(sites) > 1 and mention.site in sites or "body" in sites
            if known and "anatomy" not in state:
                state["anatomy"] = mention.site
        records = []
        for side, lobe, zone in mention.places or [(None, None, None)]:
            record = dict(state)
            for name, value in (("laterality", side), ("lobe", lobe), ("zone", zone)):
                if value is not None:
                    record.setdefault(name, value)
            records.append(dict(sorted(record.items(), key=lambda entry: _ORDER[entry[0]])))
        return records

    def _append(
        self, found: list[tuple[Record, Span]], record: Record, span: Span, mention: Mention, first: int
    ) -> None:
        """Add a state, or let it complete an earlier one that it points back to."""
        if mention.definite and record["presence"] == "present":
            for index in range(len(found) - 1, max(-1, len(found) - 1 - _WAYS_BACK), -1):
                earlier, place = found[index]
                if earlier["finding"] == record["finding"] and earlier["presence"] == "present":
                    if all(earlier.get(name, value) == value for name, value in record.items()):
                        merged = {**record, **earlier}
                        found[index] = (
                            dict(sorted(merged.items(), key=lambda entry: _ORDER[entry[0]])),
                            (min(place[0], span[0]), max(place[1], span[1])),
                        )
                        return
                    break
        if any(record == earlier for earlier, _ in found):
            return
        for earlier, _ in found[first:]:  # "compression fracture with loss of height"
            if len(record) <= 2 and record.items() <= earlier.items():
                return
        found.append((record, span))


def _join(found: list[tuple[Record, Span]], more: Record, span: Span) -> None:
    """Complete the last finding by what is said of "it"."""
    record, place = found[-1]
    more = {name: value for name, value in more.items() if name not in ("finding", "presence")}
    if any(name in record and record[name] != value for name, value in more.items()):
        more = {name: value for name, value in more.items() if name not in record}
    merged = {**record, **more}
    if merged.get("temporal_change") == "resolved":
        merged["presence"] = "absent"
    found[-1] = (
        dict(sorted(merged.items(), key=lambda entry: _ORDER[entry[0]])),
        (min(place[0], span[0]), max(place[1], span[1])),
    )


@functools.cache
def default_extractor() -> RulesExtractor:
    """Return the extractor over the packaged ontology."""
    return RulesExtractor(load_ontology())
