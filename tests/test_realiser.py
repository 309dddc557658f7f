"""The realiser: what it makes of random states; articles, agreement and variety by hand."""

from __future__ import annotations

import random
import re
from typing import Any

import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

from radgen.errors import RadgenError
from radgen.generators import contexts as ctx
from radgen.generators.blocks import overlap
from radgen.ontology.load import load_ontology
from radgen.templates.forms import all_forms, number_forms, place_forms, size_forms
from radgen.templates.realiser import Chorus, Realiser
from radgen.templates.text import article, jaccard, words_of

ONTOLOGY = load_ontology()
REALISER = Realiser(ONTOLOGY)
WORDS = REALISER.phrasings.words
TAGS = sorted(tag for tag, entry in ONTOLOGY.findings.items() if entry.axes)


@st.composite
def states(draw: st.DrawFn) -> tuple[dict[str, Any], str]:
    """Any finding with a place and up to three further groups of what it can state, and a modality."""
    tag = draw(st.sampled_from(TAGS))
    entry = ONTOLOGY.findings[tag]
    fields: dict[str, Any] = dict(draw(st.sampled_from([(), *ctx.places(ONTOLOGY, tag)])))
    groups = [group for group in ctx.GROUP_AXES if group in entry.axes]
    for group in draw(st.lists(st.sampled_from(groups), unique=True, max_size=3)) if groups else []:
        fields |= dict(draw(st.sampled_from(ctx.group_options(ONTOLOGY, tag, group))))
    fields.setdefault("presence", "present")
    assume(ctx.possible(fields))
    return {"finding": tag, **fields}, draw(st.sampled_from(entry.modalities))


@given(states(), st.integers(0, 2**32))
def test_any_sentence_of_any_state(drawn: tuple[dict[str, Any], str], seed: int) -> None:
    state, modality = drawn
    try:
        speaker = REALISER.speaker(state, modality)  # type: ignore[arg-type]
    except RadgenError:
        assume(False)
    rng = random.Random(seed)
    said = [(text, mask) for text, mask, _ in (speaker.say(rng) for _ in range(3))]
    chorus = Chorus()
    chorus.add(0, speaker)
    for head, tail, mask, cores, _ in chorus.shells(0, rng.random)[1]:
        said += [(head + core + tail, mask | more) for core, more in cores[0]]
    for text, mask in said:
        assert text[0].isupper() or text[0].isdigit()
        assert text.endswith(".")
        assert re.sub(r"\d\.\d", "", text).count(".") == 1
        assert not re.search(r"[{}|<>_\x00-\x1f]|None|  | [,.;]", text)
        # The mask that the filters work on is that of the words of the text, and of no others.
        assert mask.bit_count() == len(set(words_of(text)))
        assert mask == REALISER.piece(text)[1]


@given(states(), states(), st.integers(0, 2**32))
def test_overlap_of_masks_is_the_jaccard_of_words(
    one: tuple[dict[str, Any], str], other: tuple[dict[str, Any], str], seed: int
) -> None:
    rng = random.Random(seed)
    try:
        a, b = (REALISER.speaker(*drawn).say(rng) for drawn in (one, other))  # type: ignore[arg-type]
    except RadgenError:
        assume(False)
    first, second = set(words_of(a.text)), set(words_of(b.text))
    expected = len(first & second) / len(first | second)
    assert overlap(a.mask, b.mask) == jaccard(a.text, b.text) == expected


def test_most_states_can_be_said() -> None:
    rng = random.Random(1)
    said = tried = 0
    for tag in TAGS:
        places = [(), *ctx.places(ONTOLOGY, tag)]
        groups = [group for group in ctx.GROUP_AXES if group in ONTOLOGY.findings[tag].axes]
        for _ in range(4):
            fields: dict[str, Any] = dict(rng.choice(places))
            if groups:
                fields |= dict(rng.choice(ctx.group_options(ONTOLOGY, tag, rng.choice(groups))))
            fields.setdefault("presence", "present")
            if ctx.possible(fields):
                tried += 1
                modality = ONTOLOGY.findings[tag].modalities[0]
                said += REALISER.can_say({"finding": tag, **fields}, modality)
    assert tried > 500
    assert said / tried > 0.97


@pytest.mark.parametrize(
    ("word", "expected"),
    [
        ("8 mm", "an"), ("8-mm", "an"), ("80 mm", "an"), ("11 mm", "an"), ("18 mm", "an"), ("1 mm", "a"),
        ("10 mm", "a"), ("110 mm", "a"), ("12 mm", "a"), ("5 mm", "a"), ("0.8 cm", "a"), ("1.8 cm", "a"),
        ("RUL nodule", "an"), ("RLL nodule", "an"), ("RML nodule", "an"), ("LLL nodule", "an"),
        ("LUL nodule", "an"), ("CT", "a"), ("PICC", "a"),
        ("ET tube", "an"), ("NG tube", "an"), ("IVC filter", "an"),
        ("unilateral effusion", "a"), ("uniform", "a"),
        ("unchanged effusion", "an"), ("unequivocal", "an"),
        ("unusual", "an"), ("uncomplicated", "an"), ("hourglass", "an"), ("hilar", "a"),
        ("hiatal hernia", "a"),
        ("effusion", "an"), ("ill-defined", "an"), ("opacity", "an"), ("acute", "an"), ("moderate", "a"),
        ("upper lobe", "an"), ("uterine", "a"), ("ureteral", "a"), ("Left", "a"), ("right", "a"),
        ("large", "a"), ("small", "a"), ("nodule", "a"), ("spiculated", "a"),
    ],
)  # fmt: skip
def test_articles(word: str, expected: str) -> None:
    assert article(word) == expected


def sentences(state: dict[str, Any], number: int = 300) -> list[str]:
    rng = random.Random(3)
    modality = ONTOLOGY.findings[state["finding"]].modalities[0]
    speaker = REALISER.speaker({"presence": "present", **state}, modality)
    return [speaker.say(rng).text for _ in range(number)]


SINGULAR = r"\b(?:is|has|measures|demonstrates|shows|appears|remains)\b"
PLURAL = r"\b(?:are|have|measure|demonstrate|show|appear|remain|number)\b"
SUBJECT = (
    r"\b(?:radiographs?|film|views?|CT|images?|scan|study|examination|imaging|lungs?|lobes?|zones?|bases|apices)\b"
    r"[^,]*?\b(?:shows?|demonstrates?|reveals?|contains?|is notable)\b|note is made"
)


@pytest.mark.parametrize(
    ("state", "wrong"),
    [
        ({"finding": "pulmonary_nodule", "margin": "spiculated"}, PLURAL),
        ({"finding": "pulmonary_nodule", "count": 1, "density": "solid"}, PLURAL),
        ({"finding": "pleural_effusion", "laterality": "left", "severity": "mild"}, PLURAL),
        ({"finding": "pulmonary_nodule", "count": 3, "margin": "spiculated"}, SINGULAR),
        ({"finding": "pulmonary_nodule", "count_category": "few"}, SINGULAR),
        ({"finding": "pleural_effusion", "laterality": "bilateral", "severity": "mild"}, SINGULAR),
    ],
)  # fmt: skip
def test_verbs_agree_with_what_is_counted(state: dict[str, Any], wrong: str) -> None:
    texts = sentences(state)
    bad = [text for text in texts if re.search(wrong, re.sub(SUBJECT, "", text, flags=re.IGNORECASE))]
    assert bad == []


@pytest.mark.parametrize("modality", ["xr", "ct"])
def test_there_are_frames_enough(modality: str) -> None:
    frames = [frame for frame in REALISER.phrasings.frames.values() if modality in frame.entry.modality]
    assert sum(not frame.entry.negates for frame in frames) >= 25


ORDINAL = [
    (name, level)
    for name, axis in ONTOLOGY.axes.axes.items()
    if axis.kind == "ordinal" or name == "count"
    for level in axis.levels
]


@pytest.mark.parametrize(("axis", "level"), ORDINAL)
def test_every_level_has_four_surface_forms(axis: str, level: str) -> None:
    forms = {text.strip(" ,") for texts in all_forms(WORDS, axis, level).values() for text in texts}
    assert len(forms) >= 4


POSITIONS = ("adj", "post", "pred")


@pytest.mark.parametrize("count", ONTOLOGY.axes.axes["count"].integers)
def test_every_count_has_four_surface_forms(count: int) -> None:
    assert len({text.strip(" ,") for name in POSITIONS for text in number_forms(WORDS, count, name)}) >= 4


@pytest.mark.parametrize("kind", ["plain", "up_to", "approx", "dims"])
def test_every_size_has_four_surface_forms(kind: str) -> None:
    forms = {text.strip(" ,") for name in POSITIONS for text in size_forms(WORDS, (kind, 12.0, 8.0), name)}
    assert len(forms) >= 4


def test_how_a_size_is_said() -> None:
    assert {"8 mm", "8-mm", "0.8 cm"} <= set(size_forms(WORDS, ("plain", 8.0, 0.0), "adj"))
    assert {"12 x 8 mm", "1.2 x 0.8 cm"} <= set(size_forms(WORDS, ("dims", 12.0, 8.0), "adj"))
    after = {text.strip(", ") for text in size_forms(WORDS, ("up_to", 20.0, 0.0), "post")}
    assert {"measuring up to 20 mm", "measuring up to 2.0 cm"} <= after


PLACES = [
    *((side, None, None) for side in ("left", "right", "bilateral")),
    *((side, lobe, None) for lobe, entry in ONTOLOGY.anatomy.lobes.items() for side in entry.sides),
    *((side, None, zone) for zone in ONTOLOGY.anatomy.zones for side in ("left", "right", "bilateral")),
]


@pytest.mark.parametrize("place", PLACES, ids=str)
def test_every_place_has_four_surface_forms(place: tuple[str, str | None, str | None]) -> None:
    site = ONTOLOGY.anatomy.sites["lung"]
    positions = ("adj", "post", "front", "label", "whole")
    forms = {text.strip(" ,") for name in positions for text in place_forms(WORDS, place, site, name)}
    assert len(forms) >= 4
