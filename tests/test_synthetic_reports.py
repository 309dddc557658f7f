"""Synthetic reports: what they say, what they never say, and that they are the same everywhere."""

from __future__ import annotations

import itertools
import os
import re
import subprocess
import sys
from collections import Counter
from pathlib import Path
from typing import Any

import orjson
import pytest
from scipy.stats import spearmanr

from radgen.errors import OntologyError, RadgenError
from radgen.extract.readers import REPORT_COLUMNS, Report, open_reports
from radgen.extract.rules import default_extractor
from radgen.generators.check import check_sections
from radgen.generators.report_rules import Rules
from radgen.generators.report_settings import load_settings
from radgen.generators.reports import SyntheticReports, synthetic_reports
from radgen.ontology import Finding
from radgen.ontology.load import load_ontology

ROOT = Path(__file__).parents[1]
Row = dict[str, Any]


@pytest.fixture(scope="module")
def rows() -> list[Row]:
    made = SyntheticReports(load_ontology(), seed=3)
    return [made.row(index) for index in range(1500)]


@pytest.fixture(scope="module")
def rules() -> Rules:
    ontology = load_ontology()
    return Rules(ontology, load_settings(ontology))


def present(row: Row) -> list[Row]:
    return [state for state in row["truth"] if state["presence"] == "present"]


def test_columns_and_truth(rows: list[Row]) -> None:
    for row in rows:
        assert tuple(row) == REPORT_COLUMNS
        assert row["findings"].strip()
        assert row["impression"].strip()
        for text in (row["findings"], row["impression"]):
            assert not re.search(r"[{}|]|  | [.,]|\.\.|\ba [aeio]|\ban [bcdfgjkpqtvwyz]", text), text
        for state in row["truth"]:
            finding = Finding.model_validate(state)
            assert finding.stated() == state
            assert list(finding.stated()) == list(state)
        assert row["abnormalities"] == list(dict.fromkeys(state["finding"] for state in present(row)))
        assert len(row["prominence"]) == len(row["abnormalities"])
        assert all(weight >= 0 for weight in row["prominence"])
    assert len({row["id"] for row in rows}) == len(rows)
    assert len({row["findings"] for row in rows}) > 0.98 * len(rows)


def test_a_fifth_is_normal_and_half_is_ct(rows: list[Row]) -> None:
    normal = sum(not row["abnormalities"] for row in rows)
    assert 0.17 < normal / len(rows) < 0.23  # 20 %: three standard deviations are 3.1 %
    ct = sum(row["id"].startswith("ct") for row in rows)
    assert 0.46 < ct / len(rows) < 0.54
    for row in rows:
        if not row["abnormalities"]:
            assert all(state["presence"] in ("absent", "indeterminate") for state in row["truth"])


def test_every_abnormality_is_named_in_the_findings(rows: list[Row]) -> None:
    findings = load_ontology().findings
    for row in rows:
        text = row["findings"].lower()
        for tag in row["abnormalities"]:
            names = [name for term in findings[tag].terms for name in (term.text, term.form(True))]
            assert any(name.lower() in text for name in names), (tag, text)


def test_nothing_is_said_and_denied(rows: list[Row]) -> None:
    for row in rows:
        denied = {s["finding"] for s in row["truth"] if s["presence"] == "absent" and len(s) == 2}
        stated = {s["finding"] for s in row["truth"] if s["presence"] != "absent"}
        assert not denied & stated
        by_tag: dict[str, set[str]] = {}
        for state in row["truth"]:
            if state.get("acuity") is None:
                by_tag.setdefault(state["finding"], set()).add(state["presence"])
        assert all(len(presences) == 1 for presences in by_tag.values())


def test_clear_lungs_and_normal_hearts_are_what_they_are(rows: list[Row]) -> None:
    """By the words of the text and the organ system, not by the rules that made it."""
    findings = load_ontology().findings
    may_be_clear = {"low_lung_volumes", "hyperinflation", "azygos_lobe"}
    heart = {"cardiomegaly", "heart_failure", "pericardial_effusion", "cardiac_chamber_enlargement"}
    seen: Counter[str] = Counter()
    for row in rows:
        stated = {s["finding"] for s in row["truth"] if s["presence"] != "absent"}
        text = row["findings"]
        if re.search(r"lungs? (fields )?(are|is) (well expanded and )?clear", text, re.I):
            seen["lungs"] += 1
            lungs = {tag for tag in stated if findings[tag].system in ("lung", "airways")}
            assert lungs <= may_be_clear, text
            assert not stated & {"pulmonary_edema", "pulmonary_vascular_congestion", "pulmonary_embolism"}
        if re.search(r"(heart|cardiac)[a-z ]* (is|are) (normal|within normal)", text, re.I):
            seen["heart"] += 1
            assert not stated & heart, text
        if re.search(r"\bno (evidence of )?acute cardiopulmonary", row["impression"], re.I):
            seen["acute"] += 1
            acute = {"pneumonia", "consolidation", "pulmonary_edema", "pneumothorax", "pleural_effusion"}
            assert not stated & (acute | {"pulmonary_embolism", "lung_mass", "heart_failure"}), text
            assert all(
                s.get("temporal_change") not in ("new", "increased")
                for s in present(row)
                if findings[s["finding"]].system in ("lung", "airways", "pleura", "heart", "vessels")
            )
        if re.search(r"(osseous structures|bones|bony \w+) (is|are) (intact|unremarkable)", text, re.I):
            seen["bones"] += 1
            assert not [tag for tag in stated if findings[tag].family == "fracture_and_trauma"]
    assert min(seen[name] for name in ("lungs", "heart", "acute", "bones")) > 30


def test_organs_in_order(rows: list[Row]) -> None:
    ontology = load_ontology()
    system = {tag: entry.system for tag, entry in ontology.findings.items()}
    order = {
        "device": 0, "lung": 1, "airways": 1, "pleura": 2, "diaphragm": 2, "heart": 3, "vessels": 3,
        "mediastinum": 4, "lymphatic": 4, "bones": 5, "chest_wall": 5, "breast": 5, "hepatobiliary": 6,
        "spleen": 6, "pancreas": 6, "adrenal": 6, "urinary": 6,
    }  # fmt: skip
    extract = default_extractor()
    in_order = pairs = 0
    for row in rows[:400]:
        places = [
            order[system[found.finding]]
            for found in extract.extract(row["findings"], "findings")
            if system[found.finding] in order
        ]
        pairs += max(0, len(places) - 1)
        in_order += sum(a <= b for a, b in itertools.pairwise(places))
    assert pairs > 2000
    assert in_order / pairs > 0.96  # two findings in one sentence may stand before their organ


def test_labelled_reports_have_their_labels_in_order(rows: list[Row]) -> None:
    labels = ["Study", "Devices", "Lungs", "Pleura", "Heart", "Mediastinum", "Bones", "Upper abdomen"]
    labelled = [row["findings"] for row in rows if "\n" in row["findings"]]
    assert len(labelled) > 100
    for text in labelled:
        found = [line.split(":")[0] for line in text.split("\n")]
        assert found == sorted(found, key=labels.index)


def test_impression_repeats_what_matters_in_other_words(rows: list[Row]) -> None:
    """A large pneumothorax is never left out; the sentences of the two sections differ."""
    pneumothorax = same = total = 0
    for row in rows:
        for state in present(row):
            if state["finding"] == "pneumothorax" and state.get("severity") == "severe":
                pneumothorax += 1
                assert re.search(r"pneumothora|PTX", row["impression"], re.I), row["impression"]
        if row["abnormalities"]:
            first = re.sub(r"^1\. ", "", row["impression"]).split("\n")[0]
            total += 1
            same += first.lower() in row["findings"].lower()
    assert same / total < 0.1


def test_frequencies_follow_the_ontology(rows: list[Row]) -> None:
    findings = load_ontology().findings
    counts = Counter(tag for row in rows if row["id"].startswith("xr") for tag in row["abnormalities"])
    usual = ["cardiomegaly", "atelectasis", "pleural_effusion", "lung_opacity", "pulmonary_edema",
             "pulmonary_vascular_congestion", "osteopenia", "pneumothorax", "rib_fracture", "kyphosis",
             "pericardial_effusion", "pneumomediastinum", "mediastinal_mass", "empyema"]  # fmt: skip
    wanted = [findings[tag].frequency["xr"] for tag in usual]
    assert spearmanr([counts[tag] for tag in usual], wanted).statistic > 0.8
    assert all(
        row["id"].startswith("ct")
        for row in rows
        if {"renal_cyst", "thyroid_nodule"} & set(row["abnormalities"])
    )


@pytest.mark.parametrize(
    ("denied", "there", "allowed"),
    [
        ("lung_abnormality", {"finding": "consolidation"}, False),
        ("lung_abnormality", {"finding": "low_lung_volumes"}, True),
        ("lung_abnormality", {"finding": "rib_fracture"}, True),
        ("pneumothorax", {"finding": "pleural_effusion"}, True),
        ("pneumothorax", {"finding": "hydropneumothorax"}, False),
        ("pneumothorax", {"finding": "pneumomediastinum"}, True),
        ("consolidation", {"finding": "pneumonia"}, False),
        ("pleural_effusion", {"finding": "empyema"}, False),
        ("cardiomegaly", {"finding": "heart_failure"}, False),
        ("abdominal_abnormality", {"finding": "renal_cyst"}, False),
        ("pulmonary_edema", {"finding": "pulmonary_vascular_congestion"}, True),
    ],
)
def test_what_may_be_denied_beside_what(rules: Rules, denied: str, there: Row, allowed: bool) -> None:
    assert rules.may_deny({"finding": denied}, [{"presence": "present", **there}]) is allowed


def test_no_acute_abnormality_beside_old_disease_only(rules: Rules) -> None:
    acute = {"finding": "bone_abnormality", "acuity": "acute"}
    assert rules.may_deny(acute, [{"finding": "degenerative_changes"}])
    assert not rules.may_deny(acute, [{"finding": "rib_fracture"}])
    assert not rules.may_deny({"finding": "bone_abnormality"}, [{"finding": "degenerative_changes"}])
    new = {"finding": "degenerative_changes", "temporal_change": "increased"}
    assert not rules.may_deny(acute, [new])


def test_prominence_grows_with_severity_and_size() -> None:
    made = SyntheticReports(load_ontology(), modality="xr")
    weight = made._writers["xr"].prominence
    effusion = {"finding": "pleural_effusion", "presence": "present"}
    # disease 1.0 x pleural fluid 1.2 x severe 1.6 = 1.92; x mild 0.8 = 0.96
    assert weight({**effusion, "severity": "severe"}) == pytest.approx(1.92)
    assert weight({**effusion, "severity": "mild"}) == pytest.approx(0.96)
    nodule = {"finding": "pulmonary_nodule", "presence": "present"}
    assert weight({**nodule, "size_mm": 4.0}) < weight({**nodule, "size_mm": 25.0})
    assert weight({"finding": "endotracheal_tube", "presence": "present"}) == pytest.approx(0.3)


def test_the_extractor_reads_back_the_truth(rows: list[Row]) -> None:
    extract = default_extractor()
    right = wrong = missed = 0
    for row in rows[:400]:
        found = extract.extract_report({"findings": row["findings"], "impression": row["impression"]})
        got = {(state["finding"], state["presence"]) for state in found}
        truth = {(state["finding"], state["presence"]) for state in row["truth"]}
        right += len(got & truth)
        wrong += len(got - truth)
        missed += len(truth - got)
    assert 2 * right / (2 * right + wrong + missed) >= 0.98


def run(*arguments: str, **environment: str) -> subprocess.CompletedProcess[str]:
    env = {**os.environ, "PYTHONPATH": str(ROOT), **environment}
    command = [sys.executable, "-m", "radgen", "reports", *arguments]
    return subprocess.run(command, capture_output=True, text=True, env=env)


def test_same_bytes_whatever_the_workers_and_the_hash_seed(tmp_path: Path) -> None:
    first, second = tmp_path / "a.jsonl", tmp_path / "b.jsonl"
    done = [
        run("--synthetic", "600", "--seed", "5", "--out", str(first), "--workers", "1", PYTHONHASHSEED="1"),
        run("--synthetic", "600", "--seed", "5", "--out", str(second), "--workers", "3", PYTHONHASHSEED="2"),
    ]
    assert [result.returncode for result in done] == [0, 0], done[0].stderr + done[1].stderr
    assert first.read_bytes() == second.read_bytes()
    lines = first.read_bytes().splitlines()
    assert len(lines) == 600
    made = SyntheticReports(load_ontology(), seed=5)
    assert made.row(412) == orjson.loads(lines[412])  # a row alone, out of its order
    assert SyntheticReports(load_ontology(), seed=6).row(412)["findings"] != made.row(412)["findings"]
    read = list(open_reports(first))
    assert all(isinstance(item, Report) for item in read)
    assert [item.data for item in read if isinstance(item, Report)] == [orjson.loads(line) for line in lines]


def test_rows_come_one_by_one() -> None:
    endless = synthetic_reports(10**12, modality="ct")
    assert [report.data["id"] for report in itertools.islice(endless, 2)] == ["ct-42-000001", "ct-42-000002"]


def test_a_user_changes_numbers_and_adds_a_finding(tmp_path: Path) -> None:
    file = tmp_path / "mine.yaml"
    file.write_text(
        "findings:\n"
        "  crescent_sign:\n"
        "    {name: crescent sign, plural: crescent signs, system: lung, family: cystic_lung_disease,\n"
        "     axes: [laterality, certainty], sites: [lung]}\n"
        "reports:\n"
        "  normal_share: 0.0\n"
        "  factors: {findings: {crescent_sign: 1000000}}\n"
    )
    made = SyntheticReports(load_ontology([file]), modality="xr")
    rows = [made.row(index) for index in range(40)]
    assert all(row["abnormalities"] for row in rows)
    assert sum("crescent sign" in row["findings"].lower() for row in rows) > 20


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("reports:\n  normal_share: 2\n", "mine.yaml:2: normal_share:"),
        ("reports:\n  normal_shar: 0.1\n", "did you mean 'normal_share'?"),
        ("reports:\n  factors:\n    findings: {pneumothorx: 2}\n", "did you mean 'pneumothorax'?"),
        ("reports:\n  frames: {impression: [bear]}\n", "did you mean 'bare'?"),
    ],
)
def test_mistakes_in_the_users_file(tmp_path: Path, text: str, said: str) -> None:
    file = tmp_path / "mine.yaml"
    file.write_text(text)
    with pytest.raises((OntologyError, RadgenError)) as caught:
        SyntheticReports(load_ontology([file]))
    assert said in str(caught.value)
    assert "frames" in text or check_sections(file) == str(caught.value).splitlines()


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("radthought:\n  groups:\n    background: [pneumothorx]\n", "did you mean 'pneumothorax'?"),
        ("radthought:\n  phrase: {}\n", "mine.yaml:2: phrase: "),
        (
            "radthought:\n  patterns: {normal_whole: {texts: ['No {A}.', 'No {none}.', 'As normal.']}}\n",
            "'As normal.': does not name A",
        ),
        ("states:\n  synthetic: {reports: none}\n", "mine.yaml:2: synthetic.reports: "),
    ],
)
def test_the_other_sections_are_checked_too(tmp_path: Path, text: str, said: str) -> None:
    file = tmp_path / "mine.yaml"
    file.write_text(text)
    (problem,) = check_sections(file)
    assert said in problem


def test_mistakes_of_other_sections_are_not_reported_twice(tmp_path: Path) -> None:
    """``words`` is the templates' to check; RadThought's rules, which use words too, say nothing of it."""
    file = tmp_path / "mine.yaml"
    file.write_text("words: 3\nradthought:\n  groups: {}\nstates:\n  synthetic: {reports: none}\n")
    (problem,) = check_sections(file)
    assert "mine.yaml:5: synthetic.reports: " in problem


def test_ontology_check_reports_every_mistake_of_the_section(tmp_path: Path) -> None:
    file = tmp_path / "mine.yaml"
    file.write_text("words: 3\nreports:\n  normal_share: 2\n  again_shar: 0.1\n")
    command = [sys.executable, "-m", "radgen", "ontology", "check", str(file)]
    result = subprocess.run(
        command, capture_output=True, text=True, env={**os.environ, "PYTHONPATH": str(ROOT)}
    )
    assert result.returncode == 2
    for line in ("mine.yaml:1: words", "mine.yaml:3: normal_share", "mine.yaml:4: again_shar"):
        assert line in result.stderr
    assert "did you mean 'again_share'?" in result.stderr
    file.write_text("reports:\n  again_share: 0.1\n")
    result = subprocess.run(
        command, capture_output=True, text=True, env={**os.environ, "PYTHONPATH": str(ROOT)}
    )
    assert (result.returncode, result.stdout) == (0, f"{file}: no mistakes\n")


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (["--synthetic", "0"], "expected at least 1 report"),
        (["--synthetic", "2", "--modality", "mr"], "unknown modality 'mr'; known: both, ct, xr"),
        (["--synthetic", "2", "in.csv"], "reads no PATH"),
    ],
)
def test_mistakes_on_the_command_line(tmp_path: Path, arguments: list[str], said: str) -> None:
    result = run(*arguments, "--out", str(tmp_path / "o.jsonl"))
    assert result.returncode == 2
    assert said in result.stderr
    assert result.stderr.count("\n") == 1
    assert not list(tmp_path.iterdir())
