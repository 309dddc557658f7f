"""The phrasings: surface forms of every value (``words.yaml``) and sentence frames (``frames.yaml``).

Frames are Jinja2 templates over slots. Each is rendered once, when the phrasings are loaded, with a mark
in the place of every slot; what is left are literals and slots, so that no template is run for a row.
"""

from __future__ import annotations

import functools
import hashlib
import re
from dataclasses import dataclass
from typing import Annotated, Any

import jinja2
from pydantic import BeforeValidator, Field

from radgen.errors import OntologyError, unknown
from radgen.ontology.load import Ontology, packaged
from radgen.ontology.schema import Modality, Strict
from radgen.yamlfile import Source, merge, validate, where

#: Slots of a frame, see ``frames.yaml``.
SLOTS = frozenset(
    {
        *("np", "a_np", "the_np", "of_np", "post", "pred", "of", "exist", "hedge"),
        *("front", "label", "whole", "lead", "be", "has", "shows", "contains"),
    }
)
#: Groups of canonical fields that are said together.
GROUPS: dict[str, tuple[str, ...]] = {
    "certainty": ("certainty",),
    "count": ("count", "count_category"),
    "temporal_change": ("temporal_change",),
    "severity": ("severity",),
    "size": ("size_mm", "size_dims_mm", "size_comparator"),
    "distribution": ("distribution",),
    "margin": ("margin",),
    "density": ("density",),
    "place": ("laterality", "lobe", "zone"),
}
#: Fields that no packaged phrasing says: a user's ``words`` section can make each of them a group.
OPEN_FIELDS = (
    "severity_min",
    "asymmetry",
    "anatomy",
    "segment",
    "level",
    "axial_distribution",
    "acuity",
    "temporality",
)
_MARK = re.compile("\x01([a-z_]+)\x02")
_ALTERNATIVE = re.compile(r"([A-Za-z]+)\|([A-Za-z]+)")


class Form(Strict):
    """One surface form; ``is|are`` in it is singular|plural.

    Attributes:
        text: the words, with the spaces and commas that attach them.
        classes: classes of finding it suits (``for`` in YAML); all if absent.
        number: ``singular`` or ``plural`` if it suits only one.
    """

    text: str
    classes: list[str] | None = Field(default=None, alias="for")
    number: str | None = None

    def suits(self, classes: frozenset[str], plural: bool) -> bool:
        """Whether it can be said of such a finding in such a number."""
        if self.classes is not None and not classes.intersection(self.classes):
            return False
        return self.number is None or (self.number == "plural") == plural

    def say(self, plural: bool) -> str:
        """Return the words with the verbs in the right number."""
        return agree(self.text, plural)


def agree(text: str, plural: bool) -> str:
    """Resolve ``singular|plural`` alternatives.

    >>> agree("is|are unchanged", True)
    'are unchanged'
    """
    return _ALTERNATIVE.sub(lambda match: match.group(2 if plural else 1), text)


def _form(value: Any) -> Any:
    return {"text": value} if isinstance(value, str) else value


FormText = Annotated[Form, BeforeValidator(_form)]
Forms = dict[str, list[FormText]]


class NumberForms(Strict):
    """How an integer count is said."""

    adj: list[str]
    post: list[str]
    pred: list[str]
    one: dict[str, list[str]]
    words: list[str]


class LobeForms(Strict):
    """How a lobe is said, on one side or on both."""

    one: dict[str, list[str]]
    lingula: dict[str, list[str]]
    both: dict[str, list[str]]
    abbreviations: dict[str, dict[str, str]]


class PlaceForms(Strict):
    """How sides, lobes and zones are said."""

    side: dict[str, dict[str, list[str]]]
    within: dict[str, dict[str, list[str]]]
    lobe: LobeForms
    zone: dict[str, dict[str, dict[str, list[str]]]]


class Words(Strict):
    """``words.yaml``."""

    words: dict[str, dict[str, Forms]]
    number_forms: NumberForms
    size_forms: dict[str, dict[str, list[str]]]
    place: PlaceForms


class FrameEntry(Strict):
    """One sentence frame; see ``frames.yaml``."""

    text: str
    modality: list[Modality] = Field(default=["xr", "ct"])
    asserts: bool = False
    negates: bool = False
    only: list[str] = Field(default=[])
    excludes: list[str] = Field(default=[], alias="not")


class Leads(Strict):
    """Lead-ins: words before a sentence that state nothing."""

    none_weight: Annotated[float, Field(ge=0, lt=1)]
    both: list[str]
    xr: list[str]
    ct: list[str]


class FramesFile(Strict):
    """``frames.yaml``."""

    frames: dict[str, FrameEntry]
    np_orders: list[list[str]]
    post_order: list[str]
    limits: dict[str, int]
    never_both_after: list[list[str]]
    leads: Leads


@dataclass(frozen=True)
class Frame:
    """A frame after its one rendering: literals and slots in turn."""

    name: str
    entry: FrameEntry
    segments: tuple[tuple[bool, str], ...]
    slots: frozenset[str]

    @property
    def post_closes(self) -> bool:
        """Whether a phrase that opens with a comma has to close with one: the sentence goes on after it."""
        for place, (is_slot, text) in enumerate(self.segments[:-1]):
            if is_slot and text == "post":
                return self.segments[place + 1][1].startswith(" ")
        return False


@dataclass(frozen=True, eq=False)
class Phrasings:
    """All phrasings, and the fingerprint of the files they came from.

    Attributes:
        further: groups beside :data:`GROUPS` that a user's ``words`` section adds; each is one field.
    """

    words: Words
    frames: dict[str, Frame]
    layout: FramesFile
    fingerprint: str
    further: tuple[str, ...] = ()


def _compile(name: str, entry: FrameEntry, sources: list[Source]) -> Frame:
    """Render the template once with marks for slots.

    Raises:
        OntologyError: it is not Jinja2, or names a slot that does not exist.
    """
    environment = jinja2.Environment(undefined=jinja2.StrictUndefined, autoescape=False)
    place = where(sources, ("frames", name, "text"))
    try:
        text = environment.from_string(entry.text).render({slot: f"\x01{slot}\x02" for slot in SLOTS})
    except jinja2.UndefinedError as error:
        slot = str(error).split("'")[1]
        raise OntologyError([f"{place}: frames.{name}: {unknown('slot', slot, SLOTS)}"]) from None
    except jinja2.TemplateError as error:
        raise OntologyError([f"{place}: frames.{name}: not a Jinja2 template: {error}"]) from None
    segments: list[tuple[bool, str]] = []
    for index, piece in enumerate(_MARK.split(text)):
        if piece:
            segments.append((index % 2 == 1, piece))
    slots = frozenset(piece for is_slot, piece in segments if is_slot)
    if not slots & {"np", "a_np", "the_np", "of_np"}:
        raise OntologyError([f"{place}: frames.{name}: expected one of np, a_np, the_np, of_np in the text"])
    return Frame(name, entry, tuple(segments), slots)


def _with_further(layout: FramesFile, further: tuple[str, ...]) -> FramesFile:
    """Give further groups their places: before the noun just ahead of the place, after it at the end."""
    if not further:
        return layout
    orders = []
    for order in layout.np_orders:
        at = order.index("place")
        orders.append([*order[:at], *further, *order[at:]])
    return layout.model_copy(update={"np_orders": orders, "post_order": [*layout.post_order, *further]})


@functools.lru_cache(maxsize=4)
def load_phrasings(ontology: Ontology) -> Phrasings:
    """Load the packaged phrasings with the sections ``words``, ``frames`` and ``leads`` of the user's files.

    Raises:
        OntologyError: with every mistake of shape, or the first frame that is no template.
    """
    here = "radgen.templates"
    word_sources, frame_sources = packaged(here, "words.yaml"), packaged(here, "frames.yaml")
    users = list(ontology.user_sources)
    word_data, frame_data = dict(word_sources[0].data), dict(frame_sources[0].data)
    for source in users:
        word_data = merge(word_data, {key: source.data[key] for key in ("words",) if key in source.data})
        frame_data = merge(
            frame_data, {key: source.data[key] for key in ("frames", "leads") if key in source.data}
        )
    words = validate(Words, word_data, [*word_sources, *users])
    layout = validate(FramesFile, frame_data, [*frame_sources, *users])
    problems: list[str] = []
    further = tuple(sorted(set(words.words) - set(GROUPS)))
    for name in further:
        if name not in OPEN_FIELDS:
            place = where([*word_sources, *users], ("words", name))
            problems.append(f"{place}: words.{name}: {unknown('field', name, [*GROUPS, *OPEN_FIELDS])}")
    layout = _with_further(layout, further)
    frames = {}
    for name, entry in sorted(layout.frames.items()):
        try:
            frames[name] = _compile(name, entry, [*frame_sources, *users])
        except OntologyError as error:
            problems += error.problems
    if problems:
        raise OntologyError(problems)
    digest = hashlib.sha256()
    for source in [*word_sources, *frame_sources, *users]:
        digest.update(source.text.encode())
    return Phrasings(words, frames, layout, digest.hexdigest(), further)
