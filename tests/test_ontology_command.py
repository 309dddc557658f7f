"""``radgen ontology list | show | check``: what a person asks, and hand-written files full of mistakes."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from radgen.errors import OntologyError, RadgenError
from radgen.ontology import load_ontology
from radgen.ontology.browse import describe, find_tag, select
from radgen.templates.check import check_file

ROOT = Path(__file__).resolve().parents[1]


def run(*arguments: object, **options: object) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "-m", "radgen", "ontology", *map(str, arguments)]
    return subprocess.run(command, capture_output=True, text=True, cwd=ROOT, **options)  # type: ignore[call-overload]


def rows(*arguments: object) -> dict[str, list[str]]:
    result = run("list", *arguments)
    assert result.returncode == 0, result.stderr
    header, *lines = (line.split("\t") for line in result.stdout.splitlines())
    assert header == ["tag", "name", "kind", "system", "axes", "modalities", "reports"]
    return {line[0]: line[1:] for line in lines}


def test_list_and_its_filters() -> None:
    every = rows()
    assert every["pleural_effusion"][:3] == ["pleural effusion", "disease", "pleura"]
    assert int(every["pleural_effusion"][5]) > 26_000  # table 10: 26,497 radiographs
    devices = rows("--kind", "device")
    assert {"pacemaker", "endotracheal_tube"} <= set(devices)
    assert "pleural_effusion" not in devices
    assert not any("severity" in row[3] or "density" in row[3] for row in devices.values())
    pleura = rows("--system", "pleura", "--axis", "severity")
    assert "pleural_effusion" in pleura
    assert "pneumonia" not in pleura
    assert set(rows("--axis", "laterality_controlled")) == set(rows("--axis", "laterality"))
    assert "pulmonary_nodule" in rows("--modality", "xr")


def test_list_all_has_every_tag() -> None:
    every = rows("--all")
    assert every["ground_glass_nodule"][:2] == ["= pulmonary_nodule density ground_glass", "alias"]
    assert every["normal"][1] == "no finding"
    assert set(every) == set(load_ontology().tags)


def test_a_table_on_a_terminal() -> None:
    """A terminal of 120 columns gets a table with a caption, in which no tag is cut."""
    command = [sys.executable, "-m", "radgen", "ontology", "list"]
    code = f"import pty, sys; sys.exit(pty.spawn({command!r}) >> 8)"
    environment = os.environ | {"COLUMNS": "120", "TERM": "xterm"}
    result = subprocess.run(
        [sys.executable, "-c", code],
        capture_output=True,
        text=True,
        cwd=ROOT,
        env=environment,
        stdin=subprocess.DEVNULL,
    )
    assert result.returncode == 0
    assert "usual_interstitial_pneumonia_pattern" in result.stdout
    assert f"of {len(load_ontology().tags)} tags" in result.stdout


@pytest.mark.parametrize(
    "word", ["pleural_effusion", "pleural effusion", "Pleural-Effusion", "pleural fluid", "effusions"]
)
def test_show_finds_names(word: str) -> None:
    assert find_tag(load_ontology(), word) == "pleural_effusion"


def test_show() -> None:
    result = run("show", "pleural_effusion")
    assert result.returncode == 0
    for part in ("name: pleural effusion / pleural effusions", "kind: disease", "axes: laterality, severity"):
        assert part in result.stdout
    result = run("show", "ground_glass_nodule")
    assert result.stdout.startswith("ground_glass_nodule means pulmonary_nodule with density ground_glass\n")
    result = run("show", "normal")
    assert (result.returncode, result.stdout.startswith("normal states no finding: ")) == (0, True)


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (["show", "pnemothorax"], "unknown tag 'pnemothorax'; did you mean 'pneumothorax'?"),
        (["list", "--kind", "devise"], "unknown kind 'devise'; did you mean 'device'?"),
        (["list", "--system", "long"], "unknown organ system 'long'; did you mean 'lung'?"),
        (["list", "--axis", "laterallity"], "unknown axis 'laterallity'; did you mean 'laterality'?"),
        (["list", "--modality", "mr"], "unknown modality 'mr'; known: ct, xr"),
        (["chek", "x"], "no such command 'chek'. Did you mean 'check'?"),
        (["check", "no_such.yaml"], "no_such.yaml: no such file"),
    ],
)
def test_mistakes_are_one_line(arguments: list[str], said: str) -> None:
    result = run(*arguments)
    assert (result.returncode, result.stdout) == (2, "")
    assert result.stderr.startswith("radgen: ")
    assert said in result.stderr
    assert result.stderr.count("\n") == 1


GOOD = """\
findings:
  cardiac_myxoma:
    name: cardiac myxoma
    plural: cardiac myxomas
    synonyms: ["atrial myxoma / atrial myxomas"]
    system: heart
    family: cardiac_enlargement
    axes: [size, certainty]
    sites: [heart]
    size_mm: [10, 80]
  pleural_effusion: {severities: [mild, moderate, severe]}
aliases:
  myxoma: {finding: cardiac_myxoma}
axes:
  severity: {sigma: 2.0}
"""


def test_a_good_file(tmp_path: Path) -> None:
    path = tmp_path / "my.yaml"
    path.write_text(GOOD)
    result = run("check", path)
    assert (result.returncode, result.stdout, result.stderr) == (0, f"{path}: no mistakes\n", "")
    ontology = load_ontology([path])
    assert ontology.axis("severity").sigma == 2.0
    assert ontology.resolve("myxoma") == ("cardiac_myxoma", {})
    effusion = ontology.findings["pleural_effusion"]
    assert effusion.severities == ["mild", "moderate", "severe"]
    assert effusion.name == "pleural effusion"  # what the file does not say stays
    assert "cardiac_myxoma" in select(ontology, axis="size")
    assert describe(ontology, "myxoma").finding == "cardiac_myxoma"
    shown = run("show", "atrial myxoma", "--ontology", path)
    assert "size: 10 to 80 mm" in shown.stdout


#: Each line with a mistake says in a comment what must be reported for that line.
BAD = """\
findings:
  cardiac_myxoma:
    name: cardiac myxoma
    plural: cardiac myxomas
    kind: diseas                      # kind: …did you mean 'disease'?
    system: hart                      # unknown organ system 'hart'; did you mean 'heart'?
    family: pericardial_diseases      # unknown family 'pericardial_diseases'; did you mean 'pericardial_d…
    axes: [sise, count]               # axes.0: …did you mean 'size'?
    sites: [hearts]                   # sites.0: unknown site 'hearts'; did you mean 'heart'?
    max_count: three                  # max_count: expected a whole number, found 'three'
  snowball:                           # snowball.name: expected a value for 'name', found none
    nmae: snowball                    # unknown key 'nmae'; did you mean 'name'?
    system: lung
    family: nodule_mass               # unknown family 'nodule_mass'; did you mean 'nodule_mass_continuum'?
    sites: [lung]
  pleural_effusion:
    axes: [laterality, severity, margn]   # axes.2: …did you mean 'margin'?
  second_effusion:
    name: thing
    system: lung
    family: nodule_mass_continuum
    sites: [lung]
    synonyms: [pleural fluid]         # 'pleural fluid' already names 'pleural_effusion'
aliases:
  myxoma: {finding: cardiac_mixoma}   # unknown finding 'cardiac_mixoma'; did you mean 'cardiac_myxoma'?
  ball: {finding: snowball}
  glass: {finding: pulmonary_nodule, with: {density: grund_glass}}   # …did you mean 'ground_glass'?
axes:
  severity: {sigma: -1}               # axes.severity.sigma: input should be greater than 0, found -1
frmes: {}                             # frmes: unknown section; did you mean 'frames'?
frames:
  mine: {text: "There is {{ a_npp }}."}   # frames.mine: unknown slot 'a_npp'; did you mean 'a_np'?
words:
  severity: 5                         # words.severity: expected a mapping (key: value), found 5
"""


def test_every_mistake_at_once(tmp_path: Path) -> None:
    path = tmp_path / "bad.yaml"
    path.write_text(BAD)
    expected = {
        number: [part for part in line.split("# ", 1)[1].split("…") if part]
        for number, line in enumerate(BAD.splitlines(), start=1)
        if "# " in line
    }
    result = run("check", path)
    assert (result.returncode, result.stdout) == (2, "")
    *lines, last = result.stderr.splitlines()
    assert last == f"radgen: {len(expected)} mistakes in {path}"
    assert len(lines) == len(expected)
    for line, (number, parts) in zip(lines, expected.items(), strict=True):
        assert line.startswith(f"radgen: {path}:{number}: "), line
        for part in parts:
            assert part in line


def test_other_commands_report_every_mistake_too(tmp_path: Path) -> None:
    path = tmp_path / "bad.yaml"
    path.write_text(BAD)
    with pytest.raises(OntologyError) as error:
        load_ontology([path])
    assert [problem.split(":")[1] for problem in error.value.problems] == ["30"]  # the unknown section
    path.write_text(BAD.replace("frmes: {}", "#"))
    result = run("list", "--ontology", path)
    assert result.returncode == 2
    found = [int(line.split(":")[2]) for line in result.stderr.splitlines()]
    assert found == [5, 6, 7, 8, 9, 10, 11, 12, 14, 17, 23, 25, 27, 29]


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("findings: [a", ["2: not valid YAML"]),
        ("- a\n- b\n", ["1: expected a mapping of sections, found list"]),
        ("findings:\n  a: {name: x}\n  a: {name: y}\n", ["3: 'findings.a' stands twice (first on line 2)"]),
        ("findings:\n\tx: 1\n", ["2: not valid YAML"]),
        ("findings: 3\n", ["1: findings: expected a mapping (key: value), found 3"]),
        ("frames:\n  mine: {text: 'There is {{ a_np '}\n", ["2: frames.mine: not a Jinja2 template"]),
        ("frames:\n  mine: {text: 'Nothing.'}\n", ["2: frames.mine: expected one of np, a_np"]),
        ("splits: {train: 0.8, test: 0.05}\n", ["1: splits: expected shares that add up to 1, found 0.9"]),
        ("splits: {train: 0.9}\n", []),
        ("", []),
    ],
)
def test_single_mistakes(tmp_path: Path, text: str, expected: list[str]) -> None:
    path = tmp_path / "my.yaml"
    path.write_text(text)
    problems = check_file(path)
    for want in expected:
        assert any(problem.startswith(f"{path}:{want}") for problem in problems), problems
    assert bool(problems) == bool(expected)


def test_file_that_is_no_text(tmp_path: Path) -> None:
    path = tmp_path / "my.yaml"
    path.write_bytes(b"\xff\xfe\x00")
    with pytest.raises(RadgenError, match="cannot be read as UTF-8 text"):
        check_file(path)
