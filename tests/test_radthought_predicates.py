"""The language of predicates: reading, printing, errors, the form without ids, and states as predicates."""

from __future__ import annotations

import random
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from radgen.errors import RadgenError
from radgen.generators.radthought.grammar import Bound, Choice, PredicateError, Ref, Variable, parse_terms
from radgen.generators.radthought.predicates import (
    VOCABULARY,
    Predicate,
    canonical,
    format_predicate,
    parse,
    predicates_of,
    renumbered,
    states_of,
)
from radgen.generators.reports import SyntheticReports
from radgen.ontology import load_ontology

NAMES = st.from_regex(r"[a-z][a-z0-9_]{0,12}", fullmatch=True)
REFS = st.builds(Ref, st.integers(1, 300))
NUMBERS = st.decimals(0, 2000, places=2).map(float)
TEXTS = st.one_of(NAMES, st.text(min_size=1).filter(str.strip))


def _terms(name: str) -> st.SearchStrategy[Predicate]:
    signature = VOCABULARY[name]
    if signature.kind == "ref":
        pair = st.tuples(REFS, REFS).filter(lambda refs: refs[0] != refs[1])
        return pair.map(lambda refs: Predicate(name, refs))
    term: st.SearchStrategy[Any] = TEXTS
    if signature.kind == "number":
        term = st.one_of(NUMBERS, st.sampled_from(sorted(signature.values))) if signature.values else NUMBERS
    elif signature.values:
        term = st.sampled_from(sorted(signature.values))
    rest = st.lists(term, min_size=signature.least, max_size=signature.most)
    return st.tuples(REFS, rest).map(lambda both: Predicate(name, (both[0], *both[1])))


PREDICATES = st.sampled_from(sorted(VOCABULARY)).flatmap(_terms)


@given(PREDICATES)
def test_printed_predicates_are_read_back(predicate: Predicate) -> None:
    assert parse(format_predicate(predicate)) == predicate


@given(PREDICATES, st.sampled_from([" ", "  ", "\t", "\n"]))
def test_white_space_between_the_parts_means_nothing(predicate: Predicate, space: str) -> None:
    text = format_predicate(predicate)
    head, _, tail = text.partition("(")
    assert parse(f"{space}{head}{space}({space}{tail[:-1]}{space}){space}") == predicate


@given(st.text(max_size=40))
def test_any_text_is_read_or_refused_in_one_line(text: str) -> None:
    try:
        predicate = parse(text)
        said = ""
    except PredicateError as error:
        said = str(error)
    if said:
        assert len(said.splitlines()) == 1
        assert "expect" in said or "unknown" in said
    else:
        assert parse(format_predicate(predicate)) == predicate


@pytest.mark.parametrize(
    ("text", "says"),
    [
        ("side(f1,rigth)", "unknown value 'rigth'; did you mean 'right'?"),
        ("sid(f1,right)", "unknown predicate 'sid'; did you mean 'side'?"),
        ("side(f1 right)", "character 9: expected ',' or ')', found 'right'"),
        ("side(f1,right", "character 14: expected ',' or ')', found the end"),
        ("side f1", "character 6: expected '(', found 'f1'"),
        ("side(f1,right) x", "character 16: expected the end, found 'x'"),
        ("side(right)", "expected a finding (f1, f2, …) as the first term"),
        ("side(f1,left,right)", "expected 1 after the finding, found 2"),
        ("adjacent_to(f1,f1)", "expected two different findings"),
        ("adjacent_to(f1,lung)", "expected another finding (f1, f2, …), found lung"),
        ("size_mm(f1,large)", "expected a number, found large"),
        ("side(f1,f2)", "expected a value, found the finding f2"),
        ("lobe(f1,2)", "expected a word, found the number 2"),
        ('level(f1,"T8)', "character 10: did not expect a text that does not end"),
        ("count(f1,lots)", "unknown value 'lots'; known: few, innumerable, multiple, single"),
        ("finding(f0,mass)", "expected a finding (f1, f2, …) as the first term"),
        ("finding(E,mass)", "character 9: expected a finding (f1), a number, a name or a text, found 'E'"),
        ("", "character 1: expected the name of a predicate, found the end"),
    ],
)
def test_errors_say_what_was_expected(text: str, says: str) -> None:
    with pytest.raises(RadgenError) as error:
        parse(text)
    assert says in str(error.value)
    assert "\n" not in str(error.value)


def test_conditions_have_variables_choices_and_comparisons() -> None:
    assert parse_terms("severity(E, moderate|severe)", pattern=True) == (
        "severity",
        (Variable("E"), Choice(("moderate", "severe"))),
    )
    assert parse_terms("size_mm(N, >=30)", pattern=True) == ("size_mm", (Variable("N"), Bound(">=", 30.0)))
    assert parse_terms("finding(N, @nodule|lung_mass)", pattern=True)[1][1] == Choice(
        ("@nodule", "lung_mass")
    )
    with pytest.raises(PredicateError, match="expected a variable, a value"):
        parse_terms("side(E,)", pattern=True)
    with pytest.raises(PredicateError, match="did not expect the character"):
        parse_terms("side(E,!left)", pattern=True)


def test_the_form_without_ids() -> None:
    rows = ["finding(f1,pleural_effusion)", "side(f1,right)", "finding(f2,atelectasis)", "adjacent_to(f2,f1)"]
    assert canonical(map(parse, rows)) == (
        "adjacent_to(atelectasis,pleural_effusion)",
        "finding(atelectasis)",
        "finding(pleural_effusion)",
        "side(pleural_effusion,right)",
    )
    turned = [*rows[:3], "adjacent_to(f1,f2)"]
    assert canonical(map(parse, turned)) == canonical(map(parse, rows))
    caused = [*rows[:3], "secondary_to(f1,f2)"]
    assert "secondary_to(pleural_effusion,atelectasis)" in canonical(map(parse, caused))


@given(st.integers(0, 10_000), st.randoms(use_true_random=False))
def test_numbering_and_order_change_nothing(seed: int, rng: random.Random) -> None:
    states = REPORTS.row(seed)["truth"]
    rows = [item for number, state in enumerate(states, 1) for item in predicates_of(state, number)]
    if len(states) > 1:
        rows.append(Predicate("differential", (Ref(1), Ref(2))))
    numbers = list(range(1, len(states) + 1))
    rng.shuffle(numbers)
    other = renumbered(rows, dict(enumerate(numbers, 1)))
    rng.shuffle(other)
    assert canonical(other) == canonical(rows)


REPORTS = SyntheticReports(load_ontology(), 11)


def test_states_become_predicates_and_back() -> None:
    full = {
        "finding": "pulmonary_nodule", "presence": "present", "certainty": "probable", "severity": "moderate",
        "severity_min": "mild", "laterality": "bilateral", "asymmetry": "left", "lobe": "upper",
        "zone": "apical", "anatomy": "aorta", "segment": "anterior", "level": "T8", "size_mm": 12.5,
        "size_dims_mm": [12.5, 8.0], "size_range_mm": [3.0, 12.5], "size_comparator": "up_to",
        "prior_size_mm": 9.0, "distance_mm": 40.0, "count": 3, "count_category": "few", "density": "solid",
        "margin": "smooth", "distribution": "focal", "axial_distribution": "subpleural",
        "temporal_change": "increased", "acuity": "chronic", "temporality": "current",
        "morphology": ["nodular", "wedge shaped"],
    }  # fmt: skip
    for device in (False, True):
        rows = predicates_of(full, 3, device=device)
        assert states_of(map(parse, map(format_predicate, rows))) == {3: full}
        assert any(item.name == "device_position" for item in rows) is device
    assert 'morphology(f3,"wedge shaped")' in map(str, predicates_of(full, 3))
    for index in range(200):
        for state in REPORTS.row(index)["truth"]:
            assert states_of(predicates_of(state, 1)) == {1: state}
