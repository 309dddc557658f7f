"""From an answer to findings: evidence, names, schema; the texts and the right results written by hand."""

from __future__ import annotations

import json
from typing import Any

import pytest
from endpoint_runs import task

from radgen.errors import RadgenError
from radgen.extract.endpoint.answer import AnswerError, Kind
from radgen.extract.endpoint.task import locate
from radgen.extract.endpoint.wire import answer_type, derive_schema, packaged_schema
from radgen.ontology.finding import FIELDS, Finding

REPORT = {
    "id": "a",
    "findings": "There is a 12 mm solid nodule in the right\nupper lobe.  No effusion.",
    "impression": "Right upper lobe nodule.",
}
NODULE = {
    "section": "findings",
    "finding": "pulmonary_nodule",
    "quote": "12 mm solid nodule in the right upper lobe",
    "presence": "present",
    "size_mm": 12,
    "density": "solid",
    "laterality": "right",
    "lobe": "upper",
    "words": {"size_mm": "12 mm", "density": "solid", "laterality": "right", "lobe": "upper lobe"},
}


def parse(
    *items: dict[str, Any], report: dict[str, Any] = REPORT
) -> tuple[list[dict[str, Any]], dict[str, int]]:
    parsed = task().parse({"findings": list(items)}, report)
    return parsed.items, parsed.dropped


def test_a_finding_with_evidence_is_kept_whole() -> None:
    items, dropped = parse(NODULE)
    assert dropped == {}
    assert items == [
        {
            "section": "findings",
            "finding": "pulmonary_nodule",
            "presence": "present",
            "laterality": "right",
            "lobe": "upper",
            "size_mm": 12.0,
            "density": "solid",
            "evidence": {"text": "12 mm solid nodule in the right\nupper lobe", "start": 11, "end": 53},
        }
    ]
    assert REPORT["findings"][11:53] == items[0]["evidence"]["text"]


def test_an_attribute_without_evidence_is_dropped_and_counted() -> None:
    invented = {**NODULE, "margin": "spiculated", "count": 2, "severity": "mild"}
    invented["words"] = {**NODULE["words"], "margin": "spiculated", "severity": ""}
    items, dropped = parse(invented)
    assert dropped == {"attribute_without_evidence": 3}
    assert {"margin", "count", "severity"}.isdisjoint(items[0])


def test_words_of_the_other_section_are_no_evidence() -> None:
    report = {"id": "b", "findings": "A nodule.", "impression": "A left nodule."}
    item = {"section": "findings", "finding": "pulmonary_nodule", "quote": "A nodule", "laterality": "left"}
    items, dropped = parse({**item, "words": {"laterality": "left"}}, report=report)
    assert dropped == {"attribute_without_evidence": 1}
    assert "laterality" not in items[0]


def test_part_of_a_word_is_no_evidence() -> None:
    assert locate("left", "a cleft") is None
    assert locate("8 mm", "18 mm") is None
    assert locate("8 mm", "18 mm, then 8 mm") == (12, 16)
    assert locate("", "text") is None
    assert locate(" . ", "text.") is None
    assert locate("mild", "MILD  edema") == (0, 4)


def test_a_quote_that_is_not_in_the_report_drops_the_finding() -> None:
    items, dropped = parse({**NODULE, "quote": "large left pleural effusion"})
    assert (items, dropped) == ([], {"finding_without_evidence": 1})


def test_the_section_is_where_the_quote_stands() -> None:
    item = {"section": "findings", "finding": "pulmonary_nodule", "quote": "Right upper lobe nodule"}
    items, _ = parse(item)
    assert items[0]["section"] == "impression"
    del item["section"]
    assert parse(item)[0][0]["section"] == "impression"


@pytest.mark.parametrize(
    ("name", "tag", "implied"),
    [
        ("pleural_effusion", "pleural_effusion", {}),
        ("Pleural effusion", "pleural_effusion", {}),
        ("pleural effusions", "pleural_effusion", {}),
        ("ground_glass_nodule", "pulmonary_nodule", {"density": "ground_glass"}),
    ],
)
def test_names_resolve_to_canonical_findings(name: str, tag: str, implied: dict[str, str]) -> None:
    items, dropped = parse({"finding": name, "quote": "No effusion", "presence": "absent"})
    assert dropped == {}
    stated = {key: value for key, value in items[0].items() if key not in ("section", "evidence")}
    assert stated == {"finding": tag, "presence": "absent", **implied}


def test_what_a_name_implies_needs_no_words_of_its_own() -> None:
    item = {"finding": "ground_glass_nodule", "quote": "solid nodule", "density": "ground_glass"}
    items, dropped = parse(item)
    assert (items[0]["density"], dropped) == ("ground_glass", {})
    items, dropped = parse({**item, "density": "solid"})
    assert (items[0]["density"], dropped) == ("ground_glass", {"attribute_without_evidence": 1})
    items, dropped = parse({**item, "density": "solid", "words": {"density": "solid"}})
    assert (items[0]["density"], dropped) == ("solid", {})


def test_every_item_is_a_canonical_finding() -> None:
    everything = {
        "certainty": "possible", "severity": "mild", "severity_min": "trace", "asymmetry": "left",
        "zone": "apical", "anatomy": "lung", "segment": "8", "level": "T8", "size_dims_mm": [12, 8.5],
        "size_range_mm": [4, 12], "size_comparator": "approx", "prior_size_mm": 10, "distance_mm": 0,
        "count": 2, "count_category": "few", "margin": "smooth", "distribution": "focal",
        "axial_distribution": "central", "temporal_change": "new", "acuity": "acute",
        "temporality": "current", "morphology": ["nodular"],
    }  # fmt: skip
    worded = [*(name for name in everything if name != "temporality"), *NODULE["words"]]
    item = {**NODULE, **everything, "words": dict.fromkeys(worded, "12 mm")}
    items, dropped = parse(item)
    assert dropped == {}
    finding = {key: value for key, value in items[0].items() if key != "section"}
    assert Finding.model_validate(finding).model_dump(exclude_none=True) == finding
    assert list(finding) == [*FIELDS, "evidence"]


def test_an_unknown_finding_is_dropped_and_counted() -> None:
    assert parse({"finding": "unicorn", "quote": "No effusion"}) == ([], {"unknown_finding": 1})


def test_a_repeated_finding_is_kept_once() -> None:
    items, dropped = parse(NODULE, NODULE, NODULE)
    assert (len(items), dropped) == (1, {"repeated": 2})


@pytest.mark.parametrize(
    "value",
    [
        [],
        None,
        "text",
        {},
        {"findings": None},
        {"findings": [], "comment": "x"},
        {"findings": [{"finding": "pleural_effusion"}]},
        {"findings": [{**NODULE, "presence": "perhaps"}]},
        {"findings": [{**NODULE, "size_mm": -4}]},
        {"findings": [{**NODULE, "size_mm": 4000}]},
        {"findings": [{**NODULE, "colour": "red"}]},
        {"findings": [{**NODULE, "words": {"colour": "red"}}]},
        {"findings": [{**NODULE, "quote": ""}]},
        {"findings": [{**NODULE, "anatomy": "x" * 81}]},
        {"findings": [NODULE] * 101},
    ],
)
def test_what_does_not_match_the_schema_says_so(value: Any) -> None:
    with pytest.raises(AnswerError) as error:
        task().check(value)
    assert error.value.kind is Kind.schema


def test_nulls_mean_unstated() -> None:
    item = {**dict.fromkeys(FIELDS), "finding": "pneumothorax", "quote": "No effusion", "words": None}
    items, dropped = parse(item)
    assert dropped == {}
    assert sorted(items[0]) == ["evidence", "finding", "section"]


def test_the_schema_that_is_sent_is_the_one_that_is_checked() -> None:
    assert packaged_schema() == derive_schema()


def test_every_attribute_is_nullable_bounded_and_without_default() -> None:
    item = packaged_schema()["properties"]["findings"]["items"]
    assert item["required"] == ["finding", "quote"]
    assert set(FIELDS) <= set(item["properties"])
    for name in FIELDS[1:]:
        assert {"type": "null"} in item["properties"][name]["anyOf"], name
    open_ended: list[str] = []

    def look(node: Any, path: str) -> None:
        if isinstance(node, list):
            for part in node:
                look(part, path)
        elif isinstance(node, dict):
            assert "default" not in node, path
            assert "$ref" not in node, path
            kind = node.get("type")
            if kind == "string" and "enum" not in node and "maxLength" not in node:
                open_ended.append(path)
            if kind == "array" and "maxItems" not in node:
                open_ended.append(path)
            if kind == "object" and node.get("additionalProperties") is not False:
                open_ended.append(path)
            for key, value in node.items():
                look(value, f"{path}.{key}")

    look(packaged_schema(), "")
    assert open_ended == []


def test_the_validator_agrees_with_the_json_schema_on_required_and_unknown_keys() -> None:
    schema = answer_type().json_schema()
    assert schema["additionalProperties"] is False
    assert json.dumps(schema).count('"default"') == 0


def test_a_report_without_text_needs_no_request() -> None:
    assert task().user({"id": 1, "findings": None, "impression": " \n"}) is None
    assert task().user({"id": 1, "findings": "", "impression": "No change."}) is not None
    with pytest.raises(RadgenError, match="'findings' is list"):
        task().user({"id": 1, "findings": ["a"]})


def test_braces_in_a_report_are_only_text() -> None:
    user = task().user({"id": 1, "findings": "{{impression}} {x}", "impression": "B"})
    assert user == "FINDINGS:\n{{impression}} {x}\n\nIMPRESSION:\nB"


def test_the_prompt_names_every_finding() -> None:
    for tag in ("pleural_effusion", "pulmonary_nodule", "cardiomegaly"):
        assert f" {tag}," in task().system
    assert "{{" not in task().system
