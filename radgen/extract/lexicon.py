"""The extractor's vocabulary: the ontology, the generators' words, and the cues in ``data/cues.yaml``."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from itertools import product
from typing import Any

from radgen.extract.cues import load_cues
from radgen.extract.tokens import expand, phrase_words
from radgen.ontology import FindingEntry, Ontology, Term
from radgen.templates.phrasings import Words, agree, load_phrasings

#: Roles of a phrase, in the order in which one wins over another that has the same words.
ROLES = (
    "find",
    "ignore",
    "break",
    "limited",
    "history",
    "history_after",
    "hypothetical",
    "relation",
    "attribute",
    "negation",
    "post_negation",
    "normal",
    "not_normal",
    "largest",
    "pronoun",
    "there",
    "with",
    "versus",
    "or",
    "slash",
    "and",
    "comma",
    "prep",
    "det",
    "verb",
    "place",
    "number",
    "subject",
)


@dataclass(slots=True)
class Phrase:
    """What one phrase of the vocabulary means; it may play several parts.

    Attributes:
        roles: names of :data:`ROLES`.
        find: what it names: (tag, implied attributes, plural), one entry a finding.
        attrs: canonical fields that it states.
        subject: findings that its normality denies.
        abnormal: findings that it states of a subject ("tortuous" of the aorta).
        place: side, position, zone, lobe or noun of a place.
        before, after: whether an attribute stands before its finding only, or after it only.
        predicate: whether it says something of the whole subject ("are unchanged").
        strong: whether it is the name or a synonym of a finding.
    """

    roles: set[str] = field(default_factory=set)
    find: list[tuple[str, dict[str, Any], bool]] = field(default_factory=list)
    attrs: dict[str, Any] = field(default_factory=dict)
    subject: list[str] = field(default_factory=list)
    abnormal: set[str] = field(default_factory=set)
    place: dict[str, str] = field(default_factory=dict)
    before: bool = False
    after: bool = False
    predicate: bool = False
    strong: bool = False
    kind: str = ""
    words: tuple[str, ...] = ()


class Lexicon:
    """All phrases by their words.

    Attributes:
        phrases: words to meaning; words are in lower case, abbreviations as written.
        finds: words to tags, to complete "pleural or pericardial effusion".
        words: every word of the vocabulary.
        devices: tags of devices.
        cues: the parsed ``cues.yaml``.
    """

    def __init__(self, ontology: Ontology) -> None:
        self.ontology = ontology
        self.cues: dict[str, Any] = load_cues(ontology)
        self.phrases: dict[tuple[str, ...], Phrase] = {}
        self.devices = frozenset(tag for tag, entry in ontology.findings.items() if entry.kind == "device")
        self.focal = frozenset(tag for tag, entry in ontology.findings.items() if "size" in entry.axes)
        self.general = frozenset(self.cues.get("general", ()))
        self.quality = frozenset(tag for tag, entry in ontology.findings.items() if entry.kind == "quality")
        self.events = frozenset(
            tag for tag, e in ontology.findings.items() if e.kind in ("device", "procedure")
        )
        self.sites = {tag: frozenset(entry.sites) for tag, entry in ontology.findings.items()}
        self.unsided = frozenset(
            tag
            for tag, entry in ontology.findings.items()
            if all(ontology.anatomy.sites[site].sides == "single" for site in entry.sites)
        )
        self.numbers: dict[str, int] = {}
        self._grammar()
        self._certainties()
        self._attributes()
        self._generated(load_phrasings(ontology).words)
        self._places()
        self._findings()
        self._inner()
        self._compositions()
        self._spellings()
        for words, phrase in self.phrases.items():
            phrase.words = words
            phrase.kind = _kind(phrase)
            if phrase.kind == "attribute" and "certainty" in phrase.attrs and words[0] in ("is", "are"):
                phrase.kind = "verdict"  # resolved by what follows: see regions.hedge_next
        self.refine: dict[tuple[str, str], str] = {}
        for rule in self.cues.get("refine", []):
            for word, (site, tag) in product(rule["words"], rule["sites"].items()):
                if tag in ontology.findings:
                    self.refine[word, site] = tag
        self._slim()
        self.finds = {words: p.find for words, p in self.phrases.items() if p.find}
        self.words = frozenset(word for words in self.phrases for word in words)

    def _slim(self) -> None:
        """Let phrases share what is empty; a collection of garbage then has less to look at."""
        empty = Phrase()
        for phrase in self.phrases.values():
            phrase.roles = empty.roles
            for name in ("find", "attrs", "subject", "abnormal", "place"):
                if not getattr(phrase, name):
                    setattr(phrase, name, getattr(empty, name))

    # --- building ---

    def _add(self, text: str, role: str, cased: bool = False) -> Phrase | None:
        words = tuple(phrase_words(text if cased else text.lower()))
        if not words:
            return None
        phrase = self.phrases.setdefault(words, Phrase())
        phrase.roles.add(role)
        return phrase

    def _all(self, patterns: Iterable[Any], role: str) -> Iterator[Phrase]:
        for pattern in patterns:
            for text in expand(str(pattern)):
                phrase = self._add(text, role)
                if phrase is not None:
                    yield phrase

    def _grammar(self) -> None:
        acute = self.cues["cues"].pop("normal_acute", [])
        for role, patterns in self.cues["cues"].items():
            for _ in self._all(patterns, role):
                pass
        for phrase in self._all(acute, "normal"):
            phrase.attrs["acuity"] = "acute"
        for level, patterns in self.cues["relations"].items():
            for phrase in self._all(patterns, "relation"):
                phrase.attrs["certainty"] = level

    def _state(self, patterns: Iterable[Any], name: str, value: str) -> None:
        for phrase in self._all(patterns, "attribute"):
            if not phrase.attrs:
                phrase.attrs[name] = value

    def _certainties(self) -> None:
        for level, patterns in self.cues["certainty"].items():
            self._state(patterns, "certainty", level)

    def _attributes(self) -> None:
        values = self.cues["attributes"]
        for name, levels in values.items():
            for level, patterns in levels.items():
                self._state(patterns, name, level)
        for word in self.cues["morphology"]:
            phrase = self._add(word, "attribute")
            if phrase is not None and not phrase.attrs:
                phrase.attrs["morphology"] = [word]
        for entry in self.cues.get("states", []):
            for phrase in self._all(entry["text"], "attribute"):
                phrase.attrs = dict(entry["attrs"])
        for low, high in product(values["severity"].items(), repeat=2):
            order = list(values["severity"])
            if order.index(low[0]) >= order.index(high[0]):
                continue
            for first, second in product(_single(low[1]), _single(high[1])):
                for join in self.cues["axis_joins"]:
                    phrase = self._add(f"{first} {join} {second}", "attribute")
                    if phrase is not None:
                        phrase.attrs = {"severity": high[0], "severity_min": low[0]}

    def _generated(self, words: Words) -> None:
        """Add every form that the generators use, whole, so that none can be misread in part."""
        for name, levels in words.words.items():
            target = "count_category" if name == "count" else name
            for level, positions in levels.items():
                for position, forms in positions.items():
                    for form in forms:
                        for plural in (False, True):
                            self._generated_form(position, agree(form.text, plural), target, level)
        for number, word in enumerate(words.number_forms.words):
            self.numbers[word] = number
        for word, number in self.numbers.items():
            if number < 1:
                continue
            phrase = self._add(word, "number")
            if phrase is not None:
                phrase.attrs["count"] = number
            for text in (
                f"{word} in number",
                f"number {word}",
                f"numbering {word}",
                f"totaling {word}",
                f"a total of {word}",
            ):
                phrase = self._add(text, "attribute")
                if phrase is not None:
                    phrase.attrs = {"count": number}

    def _generated_form(self, position: str, text: str, name: str, level: str) -> None:
        text = text.lstrip(" ,").removeprefix("that ")
        role = "relation" if position == "hedge" or position == "exist" else "attribute"
        phrase = self._add(text, role)
        if phrase is None:
            return
        if role == "relation":
            phrase.roles.discard("attribute")
        phrase.attrs = {name: level}
        phrase.predicate = phrase.predicate or position == "pred"
        phrase.before = phrase.before or position == "of"

    def _places(self) -> None:
        places = self.cues["places"]

        def put(patterns: Iterable[Any], **values: str) -> None:
            for phrase in self._all(patterns, "place"):
                phrase.place.update(values)

        for side, patterns in places["side"].items():
            put(patterns, laterality=side)
        for word, position in places["lobe_position"].items():
            put([word], lobe_position=position)
        for word, position in places["zone_position"].items():
            put([word], zone_position=position)
        put(places["lobe_noun"], noun="lobe")
        put(places["zone_noun"], noun="zone")
        for zone, patterns in places["zone"].items():
            put(patterns, zone=zone)
        for lobe, patterns in places["lobe"].items():
            put(patterns, lobe=lobe)
        for word, values in places["both"].items():
            for text in {word, word.lower()}:
                phrase = self._add(text, "place", cased=True)
                if phrase is not None:
                    phrase.place.update(values)
        for word, side in places["abbreviations"].items():
            phrase = self._add(word, "place", cased=True)
            if phrase is not None:
                phrase.place["laterality"] = side
        for segment in places["segments"]:
            phrase = self._add(segment, "attribute")
            if phrase is not None:
                phrase.attrs = {"segment": segment.removesuffix(" segment")}
        for site, patterns in places["anatomy"].items():
            for phrase in self._all(patterns, "place"):
                phrase.place["anatomy"] = site

    def _findings(self) -> None:
        for tag, entry in self.ontology.findings.items():
            self._finding(tag, entry)
        for alias in self.ontology.aliases.values():
            implied = dict(alias.implies)
            if alias.name:
                self._name(Term(text=alias.name), alias.finding, implied)
            for term in alias.synonyms:
                self._name(term, alias.finding, implied)
        for extra in self.cues.get("phrases", []):
            for text in extra["text"]:
                phrase = self._add(text, "find", cased=extra.get("cased", False))
                if phrase is not None:
                    phrase.find = [(extra["finding"], dict(extra.get("with", {})), text.endswith("s"))]

    def _finding(self, tag: str, entry: FindingEntry) -> None:
        abbreviations = {term.text for term in entry.abbreviations}
        for term in [*entry.terms, *([entry.definition] if entry.definition else [])]:
            self._name(term, tag, {}, term.text in abbreviations, strong=True)
        for text in entry.recognised:
            self._name(Term(text=text), tag, {**_sided(text, entry), **self._graded(text)})
        for text in entry.normal:
            for form in {text, *([_plural(text)] if not text.endswith("s") else [])}:
                phrase = self._add(form, "subject")
                if phrase is not None and tag not in phrase.subject:
                    phrase.subject.append(tag)

    def _graded(self, text: str) -> dict[str, Any]:
        """Return the degree that a recognised form names: "heart is mildly enlarged"."""
        for word in text.split():
            phrase = self.phrases.get((word,)) if word.endswith("ly") else None
            if phrase is not None and "severity" in phrase.attrs:
                return {"severity": phrase.attrs["severity"]}
        return {}

    def _name(
        self, term: Term, tag: str, implied: dict[str, Any], cased: bool = False, strong: bool = False
    ) -> None:
        singular = term.text
        plural = term.plural or ("" if term.number == "plural" else _plural(singular))
        forms = {
            singular: term.number == "plural" or (singular.endswith("s") and not singular.endswith("is"))
        }
        if plural and plural != singular:
            forms[plural] = True
        for text, many in forms.items():
            for variant, extra in self._sided_variants(text, tag):
                phrase = self._add(variant, "find", cased=cased)
                if phrase is None:
                    continue
                known = [found for found, _, _ in phrase.find]
                phrase.strong = phrase.strong or strong
                if tag not in known and not known:
                    phrase.find.append((tag, {**implied, **extra}, many))

    def _sided_variants(self, text: str, tag: str) -> Iterator[tuple[str, dict[str, Any]]]:
        """Yield "elevation of the left hemidiaphragm" beside "elevation of the hemidiaphragm"."""
        yield text, {}
        entry = self.ontology.findings[tag]
        if "laterality" in entry.axes or tag not in self.unsided:
            for join in (" of the ", " in the ", " of ", " at the "):
                if join in text and not {"left", "right", "bilateral"} & set(text.lower().split()):
                    head, tail = text.split(join, 1)
                    if join == " of " and tail.startswith("the "):
                        continue
                    for side, words in (("left", "left"), ("right", "right"), ("bilateral", "bilateral")):
                        yield f"{head}{join}{words} {tail}", {"laterality": side}
                    if join.endswith("the "):
                        yield f"{head}{join.removesuffix('the ')}both {tail}", {"laterality": "bilateral"}
                    return

    def _inner(self) -> None:
        """Let "displaced rib fracture" state what "displaced" states, beside "rib fracture"."""
        for words, phrase in self.phrases.items():
            if phrase.strong or len(phrase.find) != 1 or len(words) < 2:
                continue
            tag, implied, many = phrase.find[0]
            first, rest = self.phrases.get(words[:1]), self.phrases.get(words[1:])
            if first is not None and words[1].startswith("lobe") and "lobe_position" in first.place:
                phrase.find = [(tag, {"lobe": first.place["lobe_position"], **implied}, many)]
                continue
            if first is None or rest is None or not rest.find or rest.find[0][0] != tag:
                continue
            side = first.place.get("laterality")
            stated = {**first.attrs, **({"laterality": side} if side else {})}
            phrase.find = [(tag, {**rest.find[0][1], **stated, **implied}, many)]

    def _compositions(self) -> None:
        """Learn "thyroid" + "heterogeneous" from "thyroid is heterogeneous", and the listed ones."""
        for tag, entry in self.ontology.findings.items():
            for text in entry.recognised:
                for verb in (" is ", " are "):
                    if verb in text:
                        subject, predicate = text.split(verb, 1)
                        first, _, rest = predicate.partition(" ")
                        self._compose(tag, [subject], [rest if rest and first.endswith("ly") else predicate])
        for item in self.cues.get("compositions", []):
            tag = item["finding"]
            if tag in self.ontology.findings:
                subjects = item.get("subjects") or self.ontology.findings[tag].normal
                self._compose(tag, subjects, item["predicates"])

    def _compose(self, tag: str, subjects: Iterable[str], predicates: Iterable[str]) -> None:
        for phrase in self._all(subjects, "subject"):
            if tag not in phrase.subject:
                phrase.abnormal.add(f"of:{tag}")
        for phrase in self._all(predicates, "abnormal"):
            phrase.abnormal.add(tag)

    def _spellings(self) -> None:
        for words, phrase in list(self.phrases.items()):
            text = " ".join(words)
            for us, gb in self.cues.get("spellings", {}).items():
                if us in text:
                    self.phrases.setdefault(tuple(text.replace(us, gb).split(" ")), phrase)


def _kind(phrase: Phrase) -> str:
    for role in ROLES:
        if role in phrase.roles:
            return role
    return "abnormal"


def _single(patterns: Iterable[str]) -> list[str]:
    return [pattern for pattern in patterns if " " not in pattern and "(" not in pattern]


def _plural(text: str) -> str:
    """Return a likely plural, or nothing where the text is one already."""
    last = text.rsplit(" ", 1)[-1]
    if not last.isalpha() or last.endswith("s") or " of " in text or " in " in text:
        return ""
    for end, other in (
        ("thorax", "thoraces"),
        ("apex", "apices"),
        ("x", "xes"),
        ("ch", "ches"),
        ("sh", "shes"),
    ):
        if last.endswith(end):
            return text[: -len(end)] + other
    if last.endswith("y") and last[-2:-1] not in "aeiou":
        return text[:-1] + "ies"
    return text + "s"


def _sided(text: str, entry: FindingEntry) -> dict[str, Any]:
    """Return the side that a recognised form names, if its finding can have one."""
    if "laterality" in entry.axes:
        for side in ("left", "right", "bilateral"):
            if side in text.lower().split():
                return {"laterality": side}
    return {}
