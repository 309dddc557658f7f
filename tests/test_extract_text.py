"""Whole texts: what points back, evidence, sections, headings, reports, a user's own findings."""

from __future__ import annotations

import logging
from pathlib import Path
from typing import Any

import pytest

from radgen.errors import OntologyError
from radgen.extract.cues import Cues, check_lexicon
from radgen.extract.rules import RulesExtractor, default_extractor
from radgen.ontology import load_ontology
from radgen.ontology.load import packaged
from radgen.yamlfile import validate


def found(text: str, section: str | None = None) -> list[dict[str, Any]]:
    return [finding.stated() for finding in default_extractor().extract(text, section)]


NODULE = {"finding": "pulmonary_nodule", "presence": "present"}
GONE = {"presence": "absent", "temporal_change": "resolved"}
EFFUSION = {"finding": "pleural_effusion", "presence": "present"}


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("There is a nodule. It measures 8 mm.", [{**NODULE, "size_mm": 8}]),
        (
            "There is a nodule in the left upper lobe. The nodule measures 8 mm and is unchanged.",
            [{**NODULE, "laterality": "left", "lobe": "upper", "size_mm": 8, "temporal_change": "stable"}],
        ),
        (
            "Right effusion. This has increased.",
            [{**EFFUSION, "laterality": "right", "temporal_change": "increased"}],
        ),
        (
            "Two nodules. The largest is 12 mm in the right lower lobe.",
            [{**NODULE, "count": 2, "size_mm": 12}],
        ),
        (
            "Nodule in the left upper lobe. The right upper lobe nodule measures 4 mm.",
            [
                {**NODULE, "laterality": "left", "lobe": "upper"},
                {**NODULE, "laterality": "right", "lobe": "upper", "size_mm": 4},
            ],
        ),
        (
            "A right nodule. A left nodule.",
            [{**NODULE, "laterality": "right"}, {**NODULE, "laterality": "left"}],
        ),
        ("There is a nodule. The lesion is unchanged.", [{**NODULE, "temporal_change": "stable"}]),
        ("The lesion is unchanged.", [{**NODULE, "finding": "lesion", "temporal_change": "stable"}]),
        ("No pneumothorax. No pneumothorax.", [{"finding": "pneumothorax", "presence": "absent"}]),
        ("Left effusion. It has resolved.", [{**EFFUSION, **GONE, "laterality": "left"}]),
    ],
)
def test_what_points_back_is_one_record(text: str, expected: list[dict[str, Any]]) -> None:
    # the order of fields is the one of the canonical finding
    assert [dict(sorted(record.items())) for record in found(text)] == [
        dict(sorted(e.items())) for e in expected
    ]


def test_evidence_is_the_words_of_the_finding_and_of_what_is_said_of_it() -> None:
    text = "Heart normal.\nIn addition, no pneumothorax; small left effusion, unchanged. Thank you."
    evidence = [finding.evidence for finding in default_extractor().extract(text)]
    assert [span.text for span in evidence if span] == [
        "Heart normal",
        "no pneumothorax",
        "small left effusion, unchanged",
    ]
    assert all(span and text[span.start : span.end] == span.text for span in evidence)


@pytest.mark.parametrize("section", ["indication", "History", "COMPARISON", "technique"])
def test_some_sections_state_no_current_finding(section: str) -> None:
    assert found("Left effusion.", section) == []
    assert found("Left effusion.", "findings") == [{**EFFUSION, "laterality": "left"}]


def test_headings_inside_a_text() -> None:
    text = (
        "INDICATION: Effusion. Pneumonia. COMPARISON: nodule\nFINDINGS: Left effusion.\nIMPRESSION: No mass."
    )
    assert found(text) == [{**EFFUSION, "laterality": "left"}, {"finding": "lung_mass", "presence": "absent"}]
    assert found("Bones: intact.") == [{"finding": "bone_abnormality", "presence": "absent"}]


def test_a_report_gives_rows_with_section_and_evidence() -> None:
    report = {"findings": "Left effusion.", "impression": "No mass.", "indication": "mass"}
    assert default_extractor().extract_report(report) == [
        {
            "section": "findings",
            **EFFUSION,
            "laterality": "left",
            "evidence": {"text": "Left effusion", "start": 0, "end": 13},
        },
        {
            "section": "impression",
            "finding": "lung_mass",
            "presence": "absent",
            "evidence": {"text": "No mass", "start": 0, "end": 7},
        },
    ]


USER = """
findings:
  pulmonary_sequestration:
    name: pulmonary sequestration
    plural: pulmonary sequestrations
    synonyms: [sequestered lobe / sequestered lobes]
    abbreviations: [PSQ]
    definition: lung tissue without a bronchus
    recognised: [intralobar sequestration]
    normal: [sequestration region]
    kind: disease
    system: lung
    family: cystic_lung_disease
    axes: [laterality, severity, temporal_change]
    sites: [lung]
lexicon:
  attributes:
    severity:
      severe: [whopping]
"""


def test_a_finding_that_a_user_adds_is_found_without_code(tmp_path: Path) -> None:
    file = tmp_path / "mine.yaml"
    file.write_text(USER, encoding="utf-8")
    rules = RulesExtractor(load_ontology([file]))
    tag = {"finding": "pulmonary_sequestration"}
    for text, expected in {
        "Small left pulmonary sequestration.": {
            **tag,
            "presence": "present",
            "severity": "mild",
            "laterality": "left",
        },
        "Pulmonary sequestrations are unchanged.": {
            **tag,
            "presence": "present",
            "temporal_change": "stable",
        },
        "No sequestered lobe.": {**tag, "presence": "absent"},
        "Right PSQ.": {**tag, "presence": "present", "laterality": "right"},
        "Lung tissue without a bronchus.": {**tag, "presence": "present"},
        "A whopping intralobar sequestration.": {**tag, "presence": "present", "severity": "severe"},
        "The sequestration region is normal.": {**tag, "presence": "absent"},
    }.items():
        assert [finding.stated() for finding in rules.extract(text)] == [expected], text
    assert [f.finding for f in rules.extract("right psq")] == []  # abbreviations in their own case only
    assert found("Right PSQ.") == []


def test_what_was_read_before_changes_nothing(caplog: pytest.LogCaptureFixture) -> None:
    rules = RulesExtractor(load_ontology())
    text = "No pneumothorax. There is a nodule. It measures 8 mm. No pneumothorax."
    with caplog.at_level(logging.DEBUG):
        first = rules.extract(text)
        first[0].finding = "changed"  # a caller's change must not reach what is remembered
        second = rules.extract(text)
    assert [f.stated() for f in second] == [f.stated() for f in default_extractor().extract(text)]
    assert rules.states(text) == rules.uncached(text)
    assert not caplog.records  # and nothing of a report is logged


WRONG = """
lexicon:
  attributes:
    severty: {severe: [whopping]}
    severity: {sever: [whopping]}
  phrases:
    - {finding: pneumothorx, text: [ptx]}
    - {finding: pneumothorax, text: [ptx], with: {sevrity: mild}}
"""


def test_mistakes_in_a_users_lexicon_are_reported_at_once(tmp_path: Path) -> None:
    file = tmp_path / "mine.yaml"
    file.write_text(WRONG, encoding="utf-8")
    with pytest.raises(OntologyError) as raised:
        RulesExtractor(load_ontology([file]))
    lines = sorted(str(raised.value).splitlines())
    assert lines == sorted(check_lexicon(file))
    expected = {4: "severity", 5: "severe", 7: "pneumothorax", 8: "severity"}
    for line, (number, right) in zip(lines, expected.items(), strict=True):
        assert line.startswith(f"{file}:{number}: lexicon.")
        assert f"did you mean '{right}'?" in line
    file.write_text("lexicon:\n  cues: {negatoin: [nope]}\n", encoding="utf-8")
    with pytest.raises(OntologyError, match=r"mine\.yaml:2: lexicon\.cues\.negatoin: .* mean 'negation'"):
        RulesExtractor(load_ontology([file]))


def test_the_packaged_cues_have_the_shape_that_is_asked_of_users() -> None:
    source = packaged("radgen.extract", "cues.yaml")[0]
    validate(Cues, source.data, [source])
