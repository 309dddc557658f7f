"""Probe-13: counts, splits, independence of the templates, states, targets, grammar."""

from __future__ import annotations

import itertools
import math
import random
import re
from collections import Counter
from hashlib import blake2b
from pathlib import Path
from typing import Any

import orjson
import pytest
import yaml

import radgen
from radgen.generators.checkers import checker_of
from radgen.generators.contrasts import Contrasts, schedule
from radgen.generators.probe import Filler, probe_rows
from radgen.generators.probe_file import load_probe
from radgen.generators.probe_values import options
from radgen.generators.recipes import contrast_names, recipe
from radgen.ontology.finding import check_state
from radgen.ontology.load import load_ontology
from radgen.ontology.schema import Term
from radgen.templates.realiser import Realiser

PACKAGE = Path(radgen.__file__).parent
ROLES = ("anchor", "positive", "negative")
Row = dict[str, Any]


@pytest.fixture(scope="module")
def rows() -> list[Row]:
    return probe_rows(load_ontology())


def texts(rows: list[Row]) -> list[str]:
    return [row[role] for row in rows for role in ROLES]


# --- counts ---


def test_thirteen_groups_of_fifty_half_of_them_ordinal(rows: list[Row]) -> None:
    assert len(rows) == 650
    found = Counter((row["axis"], row["kind"]) for row in rows)
    graded = ("size", "count", "laterality", "location", "severity", "temporal_change", "density", "margin")
    for axis in (*graded, "certainty", "distribution", "zone"):
        assert (found[axis, "match"], found[axis, "ordinal"]) == (25, 25), axis
    for axis in ("presence", "synonym"):
        assert (found[axis, "match"], found[axis, "ordinal"]) == (50, 0), axis


def test_texts_differ_and_no_triplet_comes_twice(rows: list[Row]) -> None:
    assert all(len({row[role].lower() for role in ROLES}) == 3 for row in rows)
    assert len({tuple(row[role] for role in ROLES) for row in rows}) == 650
    assert len(set(texts(rows))) / 1950 >= 0.8
    assert len({row["id"] for row in rows}) == 650


def test_columns_are_those_of_a_triplet_file(rows: list[Row]) -> None:
    assert all(tuple(row) == (*Contrasts.columns, "kind") for row in rows)


def test_the_same_rows_every_time(rows: list[Row]) -> None:
    assert orjson.dumps(probe_rows(load_ontology())) == orjson.dumps(rows)


def test_each_group_has_forty_patterns() -> None:
    probe = load_probe()
    for name in probe.groups:
        group = getattr(probe, name)
        shells = len(probe.shells) if group.shell or name == "presence" else 0
        assert shells + len(group.patterns) + sum(map(len, group.said.values())) >= 40, name


def test_patterns_are_used_widely(rows: list[Row]) -> None:
    for name in load_probe().groups:
        used = {pattern for row in rows if row["axis"] == name for pattern in row["phrasings"]}
        assert len(used) >= 38, name


# --- the test split ---


def test_every_text_lies_in_the_test_split(rows: list[Row]) -> None:
    for text in texts(rows):  # by hand: the top twentieth of a 64-bit hash of the text in lower case
        assert text.endswith(".")
        value = int.from_bytes(blake2b(text[:-1].lower().encode(), digest_size=8).digest(), "big")
        assert value / 2**64 >= 0.95 - 1e-9, text


# --- independence of the generators' phrasing ---

TOKEN = re.compile(r"[a-z0-9]+(?:[.'/-][a-z0-9]+)*")
NUMBER = re.compile(r"\d+(\.\d+)?(-?[mc]m)?")
#: A 4-gram of these and of words of the findings' names names the finding; it is no phrase of a template.
WORDS = """a an the is are has have no of on with # mm cm one two three four five six
    left right left-sided right-sided bilateral both side sides upper middle mid lower lobe lobes
    lingula lingular zone zones field fields apical basal basilar lung lungs apex base apices bases
    mid-zone mid-zones region hemithorax"""
PLAIN = frozenset(WORDS.split())
SLOTS = {
    "side": ["left", "right"],
    "lobe": ["upper", "middle", "lower"],
    "abbr": ["LUL", "RML"],
    "word": ["two"],
    "one": ["lung", "kidney", "breast", "chest wall"],
    "both": ["lungs", "kidneys", "breasts", "chest walls"],
}


def grams(text: str) -> set[tuple[str, ...]]:
    words = ["#" if NUMBER.fullmatch(word) else word for word in TOKEN.findall(text.lower())]
    return set(zip(*(words[start:] for start in range(4)), strict=False))


def strings(value: Any) -> list[str]:
    if isinstance(value, str):
        return [value]
    if isinstance(value, dict):
        return [found for inner in value.values() for found in strings(inner)]
    return [found for inner in value for found in strings(inner)] if isinstance(value, list) else []


def expand(text: str) -> list[str]:
    numbers = [re.sub(r"(\w+)\|(\w+)", rf"\{number}", text) for number in (1, 2)]
    out = []
    for form in numbers:
        names = re.findall(r"{(\w+)}", form)
        template = re.sub(r"{\w+}", "{}", form)
        choices = itertools.product(*(SLOTS.get(name, ["8"]) for name in names))
        out += [template.format(*values) for values in choices]
    return out


def template_grams() -> set[tuple[str, ...]]:
    """Every 4-gram within a frame, a lead-in or a surface form of the generators."""
    found: set[tuple[str, ...]] = set()
    for file in sorted(PACKAGE.glob("templates/data/*.yaml")):
        data = yaml.safe_load(file.read_text())
        for frame in data.pop("frames", {}).values():
            for part in re.split(r"{{.*?}}|{%.*?%}", frame["text"]):
                found |= grams(part)
        for text in strings(data):
            for form in expand(text):
                found |= grams(form)
    return found


def name_words() -> set[str]:
    probe = load_probe()
    terms = [*probe.names.values(), *(entry.names for entry in probe.synonym.findings.values())]
    forms = [form for found in terms for term in found for form in (term.text, term.plural or "")]
    return {word for form in forms for word in TOKEN.findall(form.lower())} - {"in", "under", "to", "within"}


def test_no_four_words_in_a_row_from_a_frame_or_a_surface_form(rows: list[Row]) -> None:
    theirs = template_grams()
    assert ("since", "the", "prior", "study") in theirs
    assert ("within", "the", "right", "upper") in theirs
    shared = {" ".join(gram): text for text in texts(rows) for gram in grams(text) & theirs}
    assert shared == {}


def test_no_four_words_in_a_row_from_generated_sentences(rows: list[Row]) -> None:
    ontology = load_ontology()
    realiser = Realiser(ontology)
    theirs: dict[tuple[str, ...], str] = {}
    generated = 0
    names = [name for name in contrast_names(ontology) if not name.endswith("_pairs")]
    for name in names:
        made = recipe(ontology, realiser, "contrasts", name, 3)
        for job in itertools.islice(schedule(made), 8):
            for row in made.block(job).rows[::3]:
                line = orjson.loads(row.line)
                for role in ROLES:
                    generated += 1
                    theirs.update(dict.fromkeys(grams(line[role]), line[role]))
    assert generated >= 3000
    plain = PLAIN | name_words()
    shared = {
        " ".join(gram): (text, theirs[gram])
        for text in texts(rows)
        for gram in grams(text)
        if gram in theirs and not plain.issuperset(gram)
    }
    assert shared == {}


# --- states and targets ---

VARYING = {
    "size": {"size_mm"},
    "count": {"count", "count_category"},
    "laterality": {"laterality"},
    "location": {"laterality", "lobe", "zone"},
    "zone": {"zone"},
    "temporal_change": {"temporal_change", "presence"},
    "certainty": {"certainty", "presence"},
    "presence": {"presence"},
    "synonym": {"finding"},
}


def test_states_are_valid_and_differ_on_the_axis_only(rows: list[Row]) -> None:
    ontology = load_ontology()
    for row in rows:
        varying = VARYING.get(row["axis"], {row["axis"]})
        rest = []
        for role in ROLES:
            state = row[f"{role}_state"]
            check_state(state)
            assert state["finding"] in ontology.findings
            if state.get("temporal_change") == "resolved":
                assert state["presence"] == "absent"
            if state.get("certainty") == "cannot_exclude":
                assert state["presence"] == "indeterminate"
            rest.append({key: value for key, value in state.items() if key not in varying})
        assert rest[0] == rest[1] == rest[2], row
        same = row["anchor_state"] == row["positive_state"]
        assert same == (row["kind"] == "match")
        assert row["negative_state"] not in (row["anchor_state"], row["positive_state"])


def curve(distance: float, sigma: float) -> float:
    return 2 * math.exp(-(distance**2) / (2 * sigma**2)) - 1


ORDER = {
    "severity": "trace mild moderate severe",
    "temporal_change": "resolved decreased stable increased new",
    "density": "ground_glass part_solid solid calcified",
    "margin": "smooth lobulated ill_defined spiculated",
    "certainty": "cannot_exclude possible probable definite",
    "distribution": "focal multifocal diffuse",
}
RANK = {"apical": 0, "upper": 1, "mid": 2, "middle": 2, "lingula": 2, "lower": 3, "basal": 4}
WORTH = {"single": 1, "few": 3, "multiple": 8, "innumerable": 24}


def expected(axis: str, a: Row, b: Row) -> float:
    """The target of ``b`` against ``a`` from the formulas of §2, with its numbers typed in here."""
    if axis in ORDER:
        levels = ORDER[axis].split()
        return curve(levels.index(a[axis]) - levels.index(b[axis]), 1.5)
    if axis == "size":
        return curve(math.log2(a["size_mm"] / b["size_mm"]), 1.5)
    if axis == "count":
        first, second = (one.get("count") or WORTH[one["count_category"]] for one in (a, b))
        return curve(math.log2(first / second), 1.5)
    if axis in ("location", "zone"):
        steps = abs(RANK[a.get("zone") or a["lobe"]] - RANK[b.get("zone") or b["lobe"]])
        return curve(steps + 2.5 * (a["laterality"] != b["laterality"]), 2.0)
    if axis == "laterality":
        if a[axis] == b[axis]:
            return 1.0
        return 0.15 if "bilateral" in (a[axis], b[axis]) else -0.6
    assert axis == "presence"
    return 1.0 if a[axis] == b[axis] else -1.0


def test_targets_follow_the_formulas(rows: list[Row]) -> None:
    for row in rows:
        if row["axis"] == "synonym":
            continue
        a, p, n = (row[f"{role}_state"] for role in ROLES)
        assert row["positive_target"] == pytest.approx(expected(row["axis"], a, p), abs=1e-12)
        assert row["negative_target"] == pytest.approx(expected(row["axis"], a, n), abs=1e-12)
        assert row["positive_target"] - row["negative_target"] >= 0.2 - 1e-9


def test_ordinal_laterality_is_both_sides_against_the_opposite_one(rows: list[Row]) -> None:
    for row in rows:
        if row["axis"] == "laterality" and row["kind"] == "ordinal":
            sides = [row[f"{role}_state"]["laterality"] for role in ROLES]
            assert sides in (["left", "bilateral", "right"], ["right", "bilateral", "left"])


def test_synonyms_are_graded_by_kinship() -> None:
    kin = {
        ("pleural_effusion", "pericardial_effusion"): -0.6,  # pleura, heart
        ("scoliosis", "kyphosis"): 0.2,  # both curvatures of the spine
        ("hepatic_steatosis", "cirrhosis"): 0.2,  # both diffuse diseases of the liver
        ("emphysema", "fibrosis"): -0.2,  # both of the lungs
        ("cholelithiasis", "nephrolithiasis"): -0.6,  # gallbladder, kidney
        ("osteopenia", "scoliosis"): -0.2,  # both of the bones
    }
    for (tag, other), target in kin.items():
        made = options(load_ontology(), load_probe(), "synonym", tag, "match", random.Random(0))
        found = {option.negative["finding"]: option for option in made}
        assert found[other].positive_target == 1.0
        assert found[other].negative_target == target, (tag, other)


def test_synonyms_name_one_finding_by_two_names(rows: list[Row]) -> None:
    named = [row for row in rows if row["axis"] == "synonym"]
    assert len({row["anchor_state"]["finding"] for row in named}) >= 40
    assert all(row["anchor_state"] == row["positive_state"] != row["negative_state"] for row in named)
    table = load_probe().synonym.findings
    for row in named:
        names = table[row["anchor_state"]["finding"]].names
        said = [
            {term.text for term in names if re.search(rf"\b{re.escape(term.form(many))}\b", row[role], re.I)}
            for role in ("anchor", "positive")
            for many in (False,)
        ]
        longest = [max(found, key=len) for found in said]
        assert longest[0] != longest[1], row


def test_radgen_verify_agrees(rows: list[Row]) -> None:
    ontology = load_ontology()
    checkers = {name: checker_of({"family": "probe", "name": name}, ontology) for name in load_probe().groups}
    wrong = [
        reason for row in rows for reason in checkers[row["axis"]].row("test", orjson.dumps(row) + b"\n")
    ]
    assert wrong == []


def test_names_are_known_to_the_ontology() -> None:
    ontology, probe = load_ontology(), load_probe()
    tables = [*probe.names.items(), *((tag, entry.names) for tag, entry in probe.synonym.findings.items())]
    for tag, names in tables:
        entry = ontology.findings[tag]
        forms = [form for term in entry.terms for form in (term.text, term.plural or "")]
        known = {form.lower() for form in [*forms, *entry.recognised]}
        if entry.definition:
            known.add(entry.definition.text)
        for term in names:
            assert term.text.lower() in known, (tag, term.text)
            assert term.plural is None or term.plural.lower() in known, (tag, term.plural)


# --- grammar ---


def test_articles_verbs_and_plurals() -> None:
    probe = load_probe()
    nodule = Term(text="lung nodule", plural="lung nodules", number="count")
    edema = Term(text="edema", number="mass")
    one = {"finding": "pulmonary_nodule", "laterality": "left", "zone": "upper"}
    both = {**one, "laterality": "bilateral"}

    def fill(name: str, state: Row, pattern: str, term: Term, **words: str) -> str:
        return Filler(probe, name, getattr(probe, name), state, frozenset()).fill(pattern, term, "", words)

    pattern = "{loc} harbors||harbor a(n) {np}"
    assert fill("zone", one, pattern, nodule, loc="the left apex") == "The left apex harbors a lung nodule."
    assert fill("zone", both, pattern, nodule, loc="both apices") == "Both apices harbor lung nodules."
    assert fill("zone", both, pattern, edema, loc="both apices") == "Both apices harbor edema."
    size = {"finding": "pulmonary_nodule", "size_mm": 8.0}
    shell = "a(n) {d} {np} is|are detected"
    assert fill("size", size, shell, nodule, d="8 mm") == "An 8 mm lung nodule is detected."
    assert fill("size", size, shell, nodule, d="1.2 cm") == "A 1.2 cm lung nodule is detected."
    several = {"finding": "pulmonary_nodule", "count": 3}
    found = "a(n) {q} {np} is|are found"
    assert fill("count", several, found, nodule, q="three") == "Three lung nodules are found."
    assert fill("count", several, "please note the {q} {np}", nodule, q="a pair of") == (
        "Please note the pair of lung nodules."
    )
    spread = {"finding": "pulmonary_edema", "distribution": "multifocal"}
    assert fill("distribution", spread, "{adj} {np} is|are found", edema, adj="scattered foci of") == (
        "Scattered foci of edema are found."
    )


def test_no_sentence_breaks_grammar(rows: list[Row]) -> None:
    one = "effusion|nodule|mass|cyst|bulla|cavity|lesion|metastasis|consolidation|edema|emphysema|fibrosis"
    many = "effusions|nodules|masses|cysts|bullae|cavities|lesions|metastases"
    start = r"^(?:(?!of\b|with\b|edges\b)[\w-]+ ){0,4}"
    wrong = re.compile(
        r"[{}|]|a\(n\)|\ba [aeio]|\ban [^aeiouFHLMNRSX81 ]|\b[Tt]he (?:both|a|an)\b|\b(\w+) \1\b|  | [,.;:]"
        rf"|{start}(?:{one}) (?:are|have|come)\b|{start}(?:{many}) (?:is|has|comes)\b"
        rf"|\b(?:[Tt]wo|[Tt]hree|[Ff]our|[Ff]ive|[Ss]ix) (?:[\w-]+ )*(?:{one})\b"
    )
    assert [text for text in texts(rows) if wrong.search(text)] == []
    assert all(text[0].isupper() or text[0].isdigit() for text in texts(rows))
