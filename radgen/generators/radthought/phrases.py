"""Findings as noun phrases and sentences: the realiser's words, and own ones where it has none.

The realiser of ``radgen.templates`` says what the generators state. Reports state more (acuity, segments,
vertebral levels, shapes): those words are laid around its phrase, and the sentence is kept if the rules
extractor reads exactly the finding in it. What is said of a finding depends on the finding and on the random
generator alone.
"""

from __future__ import annotations

import random
from collections import OrderedDict
from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

from radgen.errors import RadgenError
from radgen.extract.rules import RulesExtractor, default_extractor
from radgen.generators.radthought.settings import RadThoughtFile
from radgen.generators.report_draw import in_order
from radgen.generators.report_settings import Settings, load_settings
from radgen.generators.report_speech import Voices
from radgen.ontology.load import Ontology
from radgen.ontology.schema import Term
from radgen.templates.forms import centimetres, millimetres
from radgen.templates.phrasings import agree
from radgen.templates.realiser import Speaker, is_plural
from radgen.templates.text import article

State = Mapping[str, Any]
_KEPT = 8192
_DRAWS = 6
#: Candidates of own sentences that are read before one is kept.
_CANDIDATES = 24
_SIZE = ("size_mm", "size_dims_mm", "size_comparator")
_COUNT = ("count", "count_category")
_PLACE = ("laterality", "lobe", "zone")
#: Fields of a noun phrase by its detail; certainty and acuity always stand.
DETAILS: dict[str, tuple[str, ...]] = {
    "name": (),
    "place": (*_PLACE, *_COUNT),
    "still": (*_PLACE, *_COUNT, "severity", *_SIZE),
    "full": (*_PLACE, *_COUNT, "severity", *_SIZE, "temporal_change"),
    "whole": (*_PLACE, *_COUNT, "severity", *_SIZE, "margin", "density", "temporal_change"),
}
#: What is left out first where the realiser cannot say all at once; it is said in front then.
_DROPPED = (("margin",), ("density",), ("temporal_change",), ("severity",), _SIZE, _COUNT, _PLACE)
_BARE = frozenset(("finding", "presence"))
#: In front of a noun phrase, in this order.
_PREFIXES = (
    "certainty", "count", "count_category", "temporal_change", "acuity", "severity", "margin",
    "density", "distribution", "morphology", "laterality", "axial_distribution", "lobe", "zone",
)  # fmt: skip
_OUTER = ("temporal_change", "severity", *_COUNT)
_INNER = frozenset(_PREFIXES[1:])
_SUFFIXES = (
    "size_mm",
    "segment",
    "anatomy",
    "level",
    "asymmetry",
    "distance_mm",
    "prior_size_mm",
    "size_range_mm",
)
#: The axis of the fields that only some findings have.
_AXES = {
    "severity": "severity", "density": "density", "margin": "margin", "distribution": "distribution",
    "count": "count", "count_category": "count", "laterality": "laterality", "lobe": "location",
    "zone": "location", **dict.fromkeys(_SIZE, "size"),
}  # fmt: skip


class NounPhrase(NamedTuple):
    """A noun phrase without an article, and whether its verb is in the plural."""

    text: str
    plural: bool


class Phraser:
    """Says findings of one ontology."""

    def __init__(self, ontology: Ontology, rules: RadThoughtFile) -> None:
        self.ontology = ontology
        self.words = rules.phrases
        settings = load_settings(ontology)
        self.voices = Voices(ontology, settings)
        self.extractor = RulesExtractor(ontology) if ontology.user_sources else default_extractor()
        self.normal = _normal_statements(settings)
        self._speakers: OrderedDict[Any, Speaker | None] = OrderedDict()
        self._own: OrderedDict[Any, list[str]] = OrderedDict()

    # --- noun phrases ---

    def noun_phrase(self, rng: random.Random, state: State, detail: str = "place") -> NounPhrase:
        """Return a noun phrase for a finding that is (or may be) there.

        Args:
            detail: a key of ``DETAILS``: how much of what is stated is said.
        """
        wanted = (*DETAILS[detail], "certainty", "acuity")
        return self._phrase(rng, {name: state[name] for name in wanted if name in state}, state)

    def denied(self, rng: random.Random, state: State) -> NounPhrase:
        """Return what follows "no": a singular noun phrase with everything that restricts the denial."""
        rest = {
            name: value for name, value in state.items() if name not in ("finding", "presence", "certainty")
        }
        return self._phrase(rng, rest, state, denied=True)

    def _phrase(
        self, rng: random.Random, fields: dict[str, Any], state: State, *, denied: bool = False
    ) -> NounPhrase:
        tag = state["finding"]
        term = self._term(rng, tag, denied)
        own = {name: fields.pop(name) for name in list(fields) if name not in DETAILS["whole"]}
        if "size_range_mm" in own:
            own.pop("size_mm", None)  # its upper end
            fields.pop("size_mm", None)
        if denied and "distribution" in own:
            fields["distribution"] = own.pop("distribution")
        own.update({name: fields.pop(name) for name in self._unusual(tag, fields)})
        if "severity_min" in own and "severity" in fields:
            own["severity"] = fields.pop("severity")
        if fields.get("laterality") == "midline" or "laterality" not in fields:
            own.update({name: fields.pop(name) for name in _PLACE if name in fields})
        if not _INNER.isdisjoint(own):  # what stands in front of these is said in front of them, too
            own.update({name: fields.pop(name) for name in _OUTER if name in fields})
        said = self._said(rng, tag, fields, term)
        for group in _DROPPED:
            if said is not None:
                break
            gone = {name: fields.pop(name) for name in group if name in fields}
            if gone:
                own.update(gone)
                said = self._said(rng, tag, fields, term)
        plural = is_plural({**fields, **own})
        many = term.number == "plural" or (plural and term.plural is not None)
        if said is None or (many and not is_plural(fields) and term.number == "count"):
            own.update(fields)
            said = term.form(plural)
        text = f"{self._prefix(tag, own)}{said}{self._suffix(own)}"
        return NounPhrase(text, many)

    def _term(self, rng: random.Random, tag: str, denied: bool) -> Term:
        terms: Sequence[Term] = self.voices.terms[tag]
        if denied:
            plain = [term for term in terms if term.number != "plural"]
            short = [term for term in plain if " of " not in term.text and " in " not in term.text]
            terms = short or plain or terms
        return terms[int(rng.random() * len(terms))]

    def _said(self, rng: random.Random, tag: str, fields: State, term: Term) -> str | None:
        """Return the realiser's phrase, None where it has none that can stand inside a sentence."""
        speaker = self._speaker("phrase", {"finding": tag, "presence": "present", **fields}, term)
        if speaker is None:
            return None
        for _ in range(_DRAWS):
            text = speaker.say(rng).text[:-1]
            if "," in text or "(" in text or " with " in text or text.startswith(("A ", "An ")):
                continue
            return text if text.split(" ", 1)[0] in self.voices.capitals else text[0].lower() + text[1:]
        return None

    def _speaker(self, section: str, state: State, term: Term | None = None) -> Speaker | None:
        key = (section, term.text if term else "", *state, *map(str, state.values()))
        if key in self._speakers:
            self._speakers.move_to_end(key)
            return self._speakers[key]
        try:
            terms = self.voices.terms[state["finding"]] if term is None else [term]
            found: Speaker | None = self.voices.realisers[section].speaker(state, "ct", terms)
        except RadgenError:
            found = None
        self._speakers[key] = found
        if len(self._speakers) > _KEPT:
            self._speakers.popitem(last=False)
        return found

    def _unusual(self, tag: str, fields: State) -> list[str]:
        """Return the fields that the realiser has no usual words for: of an axis that the finding has not."""
        axes = self.ontology.findings[tag].axes
        out = [name for name in fields if name in _AXES and _AXES[name] not in axes]
        if not set(out).isdisjoint(_PLACE):  # a side of the realiser may name a site that is not stated
            out = [name for name in fields if name in out or name in _PLACE]
        if "size_dims_mm" in fields and "size_comparator" in fields and "size_mm" not in out:
            out += [name for name in _SIZE if name in fields]
        return out

    # --- own words ---

    def _prefix(self, tag: str, own: State) -> str:
        out = []
        for name in _PREFIXES:
            value = own.get(name)
            if value is None:
                continue
            if name == "morphology":
                out += value
            elif name == "severity":
                out.append(self._severity(tag, own))
            elif name == "count":
                out.append(f"{value:g}")
            else:
                out.append(self.words.prefix[name].get(value, value))
        return "".join(f"{word} " for word in out if word)

    def _severity(self, tag: str, own: State) -> str:
        entry = self.ontology.findings[tag]
        sized = entry.severity_words != "degree" or "size" in entry.axes
        words = self.words.amounts if sized else self.words.prefix["severity"]
        least = own.get("severity_min")
        most = words[own["severity"]]
        return f"{words[least]} to {most}" if least else most

    def _size(self, own: State) -> str:
        dims = own.get("size_dims_mm")
        text = " x ".join(millimetres(value) for value in dims) if dims else millimetres(own["size_mm"])
        return f"{self.words.comparators.get(own.get('size_comparator', ''), '')} {text} mm".strip()

    def _suffix(self, own: State) -> str:
        out = []
        for name in _SUFFIXES:
            value = own.get(name)
            if value is None:
                continue
            if name == "asymmetry":
                out.append(self.words.asymmetry[value])
                continue
            shown = value
            if name == "anatomy":
                shown = self.words.sites.get(value, self._site(value))
            elif name == "size_mm":
                shown = self._size(own)
            elif name in ("distance_mm", "prior_size_mm"):
                shown = centimetres(value) if name == "distance_mm" else millimetres(value)
            elif name == "size_range_mm":
                shown = " to ".join(millimetres(number) for number in value)
            elif name == "level" and value[0].isdigit():
                shown = f"the {value}"
            out.append(self.words.suffix[name].format(value=shown))
        return "".join(out)

    def _site(self, name: str) -> str:
        site = self.ontology.anatomy.sites.get(name)
        return site.name if site is not None else name.replace("_", " ")

    # --- sentences of the first order ---

    def sentence(self, rng: random.Random, state: State) -> str:
        """Return one sentence that states exactly a finding."""
        entry = self.ontology.findings[state["finding"]]
        normal = self.normal.get(_key(state))
        if normal is not None and rng.random() < self.words.normal_share:
            return normal[int(rng.random() * len(normal))]
        if entry.kind != "procedure" and not self._unusual(state["finding"], state):
            speaker = self._speaker("findings", state)
            if speaker is not None:
                return speaker.say(rng).text
        texts = self._sentences(state)
        return texts[int(rng.random() * len(texts))]

    def _sentences(self, state: State) -> list[str]:
        """Return own sentences for a finding, those that read back exactly if there are any."""
        key = _key(state)
        known = self._own.get(key)
        if known is None:
            rng = random.Random("\0".join(map(str, key)))  # the same whoever asks first
            drawn = dict.fromkeys(self._draft(rng, state) for _ in range(_CANDIDATES))
            ranked = sorted(((self.distance(text, state), text) for text in drawn), key=lambda pair: pair[0])
            least = ranked[0][0]
            known = self._own[key] = [text for distance, text in ranked if distance == least]
            if len(self._own) > _KEPT:
                self._own.popitem(last=False)
        return known

    def _draft(self, rng: random.Random, state: State) -> str:
        words = self.words
        kind = self.ontology.findings[state["finding"]].kind
        fields = {name: value for name, value in state.items() if name not in _BARE}
        hedge = fields.get("certainty")
        if state.get("presence") == "absent":
            resolved = fields.get("temporal_change") == "resolved"
            if resolved:
                del fields["temporal_change"]
            texts = words.resolved if resolved else words.absent
            phrase = self._phrase(rng, fields, state, denied=not resolved)
        elif hedge in words.hedged:
            del fields["certainty"]
            phrase, texts = self._phrase(rng, fields, state), words.hedged[hedge]
        elif kind == "procedure" and not fields.keys() - {"laterality"}:
            phrase, texts = self._phrase(rng, fields, state), words.procedure
        else:
            phrase, texts = self._phrase(rng, fields, state), words.present
        text = texts[int(rng.random() * len(texts))]
        noun = phrase.text
        a_noun = (
            noun if phrase.plural or self._uncounted(state["finding"], noun) else f"{article(noun)} {noun}"
        )
        return capital(agree(text.format(np=noun, a_np=a_noun), phrase.plural))

    def _uncounted(self, tag: str, noun: str) -> bool:
        """Whether a phrase takes no article: a mass noun."""
        return all(term.number != "count" or term.text not in noun for term in self.voices.terms[tag])

    def distance(self, text: str, state: State) -> int:
        """Return how many fields the extractor reads otherwise than they stand in a state."""
        found = [read for read, _ in self.extractor.states(text)]
        if not found:
            return 100
        return min(len(read.items() ^ state.items()) if hashable(read, state) else differing(read, state)
                   for read in found) + 3 * (len(found) - 1)  # fmt: skip


def _key(state: State) -> tuple[str, ...]:
    return (*state, *map(str, state.values()))


def _normal_statements(settings: Settings) -> dict[tuple[str, ...], list[str]]:
    """Return sentences of normal organs ("The lungs are clear.") by the one denial that each states."""
    out: dict[tuple[str, ...], list[str]] = {}
    for part in settings.parts.values():
        for statement in part.statements:
            plain = [text for text in statement.texts if "{" not in text]
            if len(statement.says) == 1 and plain:
                state = in_order({"presence": "absent", **statement.says[0]})
                out.setdefault(_key(state), []).extend(plain)
    return out


def hashable(*states: State) -> bool:
    """Whether no value is a list."""
    return not any(isinstance(value, list) for state in states for value in state.values())


def differing(first: State, second: State) -> int:
    """Return how many fields of two states differ."""
    return sum(first.get(name) != second.get(name) for name in {*first, *second})


def capital(text: str) -> str:
    """Return a text with a capital at its start."""
    return text[:1].upper() + text[1:]
