"""Labels of reports, linear probes, encoders and their cache, settings."""

from __future__ import annotations

import sqlite3
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import train_runs
from evaluate_runs import SURE, Table, found, quiet, report, write_rows

from radgen.errors import OntologyError, RadgenError
from radgen.ontology.load import load_ontology
from radgen.train.encoder import encode
from radgen.train.evaluate.encoders import Encoder, model_hash, no_words, open_encoder
from radgen.train.evaluate.outcome import SkippedError
from radgen.train.evaluate.probes import Probe, probes, split, status_f1
from radgen.train.evaluate.reports import (
    ABSENT,
    NOT_NAMED,
    PRESENT,
    UNCERTAIN,
    present_tags,
    read_labels,
    read_pool,
    status_of,
)
from radgen.train.evaluate.settings import check_findings, load_settings, measures, quoted

ONTOLOGY = load_ontology()
SETTINGS = load_settings()
LABELS = SETTINGS.labels


# -------------------------------------------------------------------------------------------- labels


def state(presence: str, **more: Any) -> dict[str, Any]:
    return {"finding": "pleural_effusion", "presence": presence, **more}


@pytest.mark.parametrize(
    ("states", "expected"),
    [
        ([], NOT_NAMED),
        ([{"finding": "pneumothorax", "presence": "present"}], NOT_NAMED),
        ([state("absent")], ABSENT),
        ([state("absent", severity="severe")], NOT_NAMED),  # "no large effusion" denies a large one alone
        ([state("absent", temporal_change="new")], NOT_NAMED),
        ([state("absent", temporal_change="resolved")], ABSENT),
        ([state("indeterminate")], UNCERTAIN),
        ([state("present", certainty="possible")], UNCERTAIN),
        ([state("present", certainty="probable")], PRESENT),
        ([state("absent"), state("present")], PRESENT),
        ([state("absent"), state("indeterminate")], UNCERTAIN),
        ([state("present"), state("absent")], PRESENT),
    ],
)
def test_status_of_a_label(states: list[dict[str, Any]], expected: int) -> None:
    assert status_of(states, ["pleural_effusion"], LABELS) == expected


def test_present_findings_leave_hedged_ones_out() -> None:
    states = [state("present"), {"finding": "nodule", "presence": "present", "certainty": "possible"}]
    assert present_tags(states, LABELS) == {"pleural_effusion"}


def test_human_labels_with_two_and_with_four_statuses(tmp_path: Path) -> None:
    path = tmp_path / "labels.csv"
    path.write_text("file,Pleural_Effusion,Edema,normal\na,1,0,0\nc,0,0,1\n")
    labels = read_labels(path, ["a", "b", "c"], LABELS)
    assert labels.names == ["pleural effusion", "edema"]  # "normal" is no label of its own
    assert labels.status.tolist() == [[PRESENT, ABSENT], [-1, -1], [ABSENT, ABSENT]]
    assert labels.known.tolist() == [True, False, True]
    assert not labels.told_apart
    path.write_text("id,Edema,Mass\na,-1.0,\nb,1.0,0.0\n")
    labels = read_labels(path, ["a", "b"], LABELS)
    assert labels.status.tolist() == [[UNCERTAIN, NOT_NAMED], [PRESENT, ABSENT]]
    assert labels.told_apart


def test_wrong_labels_are_named(tmp_path: Path) -> None:
    path = tmp_path / "labels.csv"
    path.write_text("id,Edema\na,yes\n")
    with pytest.raises(RadgenError, match=r"labels\.csv:2: edema: expected 1, 0, -1 or nothing, found 'yes'"):
        read_labels(path, ["a"], LABELS)
    path.write_text("id,Edema\nz,1\n")
    with pytest.raises(SkippedError, match="labels for none of the reports"):
        read_labels(path, ["a"], LABELS)
    path.write_text("id\na\n")
    with pytest.raises(RadgenError, match="expected a header"):
        read_labels(path, ["a"], LABELS)
    with pytest.raises(RadgenError, match="cannot be read as a CSV"):
        read_labels(tmp_path / "none.csv", ["a"], LABELS)


def test_rules_labels_and_no_finding(tmp_path: Path) -> None:
    rows = [
        report("1", "There is a left pleural effusion. No pneumothorax.", "Possible pneumonia."),
        report("2", "The lungs are clear. No pleural effusion.", None),
    ]
    pool = read_pool(write_rows(tmp_path / "r.jsonl", rows), SETTINGS, ONTOLOGY)
    labels = pool.labels()
    status = dict(zip(labels.names, labels.status.T.tolist(), strict=True))
    assert status["pleural effusion"] == [PRESENT, ABSENT]
    assert status["pneumothorax"] == [ABSENT, NOT_NAMED]
    assert status["pneumonia"] == [UNCERTAIN, NOT_NAMED]
    assert status["no finding"] == [NOT_NAMED, PRESENT]
    assert pool.findings_present().names == ["pleural_effusion"]


def test_pools_and_their_tokens(tmp_path: Path) -> None:
    rows = [report("1", "a", "b"), report("1", "c", "d"), report("2", "", None)]
    path = write_rows(tmp_path / "r.jsonl", rows)
    pool = read_pool(path, SETTINGS, ONTOLOGY)
    assert (pool.kind, pool.tokens) == ("xr", 256)
    assert (pool.ids, pool.left_out) == (["1"], 2)  # the same id again, and no text
    assert read_pool(path, SETTINGS, ONTOLOGY, kind="openi").tokens == 128
    assert SETTINGS.tokens.sections[SETTINGS.tokens.archive_pool] == 128
    with pytest.raises(RadgenError, match="--pool: unknown pool 'open-i'; did you mean 'openi'"):
        read_pool(path, SETTINGS, ONTOLOGY, kind="open-i")
    with pytest.raises(RadgenError, match="holds no report with a text"):
        read_pool(write_rows(tmp_path / "e.jsonl", [report("2", " ", None)]), SETTINGS, ONTOLOGY)


# -------------------------------------------------------------------------------------------- probes


def probe_pool(tmp_path: Path, reports: int, labelled: str | None = None) -> tuple[Any, Table]:
    """Return reports whose effusion is one direction of their vectors and whose fracture is another."""
    rng = np.random.default_rng(1)
    rows, vectors = [], {}
    lines = ["id,effusion,fracture"]
    for number in range(reports):
        effusion, fracture = rng.random(2) < 0.4
        parts = ["There is a left pleural effusion." if effusion else "No pleural effusion."]
        parts += ["There is a rib fracture."] if fracture else []
        text = " ".join([*parts, f"Film {number}."])
        rows.append(report(f"r{number}", text, None))
        vectors[text] = [*np.eye(2)[int(effusion)], *np.eye(2)[int(fracture)], *(rng.normal(size=2) / 10)]
        lines.append(f"r{number},{int(effusion)},{int(fracture)}")
    csv = None
    if labelled:
        csv = tmp_path / labelled
        csv.write_text("\n".join(lines))
    path = write_rows(tmp_path / "reports.jsonl", rows)
    return read_pool(path, SETTINGS, ONTOLOGY, labels=csv), Table(vectors)


def test_probes_read_what_lies_in_the_vectors(tmp_path: Path) -> None:
    pool, table = probe_pool(tmp_path, 400)
    out = probes(pool, table, SETTINGS, SURE, quiet)
    values = found(out)
    assert values["probes.presence_f1", "all"].value == 1
    assert values["probes.presence_f1", "100"].value > 0.95
    assert values["probes.status_f1", "all"].value == 1
    assert values["probes.hamming", "all"].value == 0
    assert values["probes.hamming_best", "all"].value == 0
    assert values["probes.auroc", "pleural_effusion"].value == 1
    assert values["probes.youden_sensitivity", ""].value == 1
    learning = out.figures["learning"]
    assert learning["labels"] == [100, 300, 320]  # 1,000 is more than there are
    assert learning["presence_f1"]["mean"][-1] == 1
    assert "labels (rules): no finding, pleural effusion, fracture" in out.notes


def test_probes_of_human_labels_have_no_four_statuses(tmp_path: Path) -> None:
    pool, table = probe_pool(tmp_path, 200, "human.csv")
    values = found(probes(pool, table, SETTINGS, SURE, quiet))
    assert values["probes.presence_f1", "all"].value == 1
    missing = values["probes.status_f1", "all"]
    assert missing.value is None
    assert missing.reason == "human.csv does not tell absent from not named"


def test_probes_need_reports_and_labels(tmp_path: Path) -> None:
    pool, table = probe_pool(tmp_path, 100)
    with pytest.raises(SkippedError, match=r"100 reports with labels \(rules\): fewer than 150"):
        probes(pool, table, SETTINGS, SURE, quiet)
    rows = [report(str(n), f"The lungs are clear, film {n}.", None) for n in range(200)]
    path = write_rows(tmp_path / "clear.jsonl", rows)
    csv = tmp_path / "none.csv"
    csv.write_text("id,edema\n" + "\n".join(f"{n},0" for n in range(200)))
    with pytest.raises(SkippedError, match="no label"):
        probes(read_pool(path, SETTINGS, ONTOLOGY, labels=csv), table, SETTINGS, SURE, quiet)


def test_a_column_with_one_status_is_predicted_as_it_is() -> None:
    vectors = np.eye(4, dtype=np.float32)
    classes = np.array([[0, 1], [0, 0], [0, 1], [0, 0]], np.int8)
    made = Probe(vectors, classes, 1000.0, 100, weighted=False)
    assert made.classes(vectors).tolist() == classes.tolist()
    assert made.chances(vectors)[:, 0].tolist() == [0, 0, 0, 0]


def test_status_f1_by_hand() -> None:
    truth, predicted = np.array([[0], [1], [2], [3]]), np.array([[0], [1], [3], [3]])
    # not named 1, absent 1, uncertain 0, present 2/3
    assert status_f1(predicted, truth) == pytest.approx((1 + 1 + 0 + 2 / 3) / 4)


def test_reports_are_split_by_their_ids() -> None:
    names = [f"r{n}" for n in range(100)]
    one, two = split(names, 0.8, 42), split(list(reversed(names)), 0.8, 42)
    assert len(one.train) == 80
    assert {names[i] for i in one.test} == {names[99 - i] for i in two.test}
    assert {names[i] for i in split(names, 0.8, 7).test} != {names[i] for i in one.test}


# ------------------------------------------------------------------------------------------ encoders


@pytest.fixture(scope="module")
def tiny(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return train_runs.bert(tmp_path_factory.mktemp("models") / "bert")


TEXTS = ["A 4 mm left nodule is seen.", "A 9 mm right mass is present.", "A 4 mm left nodule is seen."]


def test_vectors_are_kept_by_model_and_text(tiny: Path, tmp_path: Path) -> None:
    one = open_encoder(str(tiny), "tiny", 128, 8, device="cpu", cache=tmp_path)
    vectors = one.vectors(TEXTS, 128)
    assert vectors == pytest.approx(encode(one.model, TEXTS), abs=1e-6)
    assert (vectors[0] == vectors[2]).all()
    assert np.linalg.norm(vectors, axis=1) == pytest.approx([1, 1, 1], abs=1e-5)
    again = open_encoder(str(tiny), "again", 128, 8, device="cpu", cache=tmp_path)
    encoded: list[int] = []
    assert (again.vectors(TEXTS, 128, encoded.append) == vectors).all()
    assert not encoded  # all came from the cache
    again.vectors(["A new text."], 128, encoded.append)
    assert encoded == [1]
    again.vectors(TEXTS, 8, encoded.append)
    assert encoded == [1, 2]  # cut elsewhere, other vectors
    files = sorted(path.name for path in tmp_path.iterdir())
    assert files == [f"{one.hash}-64.sqlite", f"{one.hash}-8.sqlite"]  # 64: the positions there are
    for path in tmp_path.iterdir():
        assert b"nodule" not in path.read_bytes()  # no text is kept


def test_a_broken_cache_is_named(tiny: Path, tmp_path: Path) -> None:
    made = open_encoder(str(tiny), "tiny", 128, 8, device="cpu", cache=tmp_path)
    (tmp_path / f"{made.hash}-64.sqlite").write_bytes(b"no database" * 100)
    with pytest.raises(RadgenError, match=r"the cache of vectors cannot be read .*delete it"):
        made.vectors(TEXTS, 128)


def test_a_cache_of_other_vectors_is_not_read(tiny: Path, tmp_path: Path) -> None:
    made = open_encoder(str(tiny), "tiny", 128, 8, device="cpu", cache=tmp_path)
    vectors = made.vectors(TEXTS, 128)
    with sqlite3.connect(tmp_path / f"{made.hash}-64.sqlite") as store:
        store.execute("UPDATE vectors SET vector = ?", (b"\0" * 8,))  # too short for a vector
    fresh = open_encoder(str(tiny), "tiny", 128, 8, device="cpu", cache=tmp_path)
    assert fresh.vectors(TEXTS, 128) == pytest.approx(vectors, abs=1e-6)


def test_the_hash_follows_the_weights(tiny: Path, tmp_path: Path) -> None:
    import torch

    one = open_encoder(str(tiny), "tiny", 128, 8, device="cpu", cache=None)
    same = open_encoder(str(tiny), "other name", 64, 8, device="cpu", cache=None)
    assert one.hash == same.hash
    with torch.no_grad():
        next(iter(one.model.parameters())).add_(1e-3)
    assert model_hash(one.model) != same.hash


def test_a_model_without_a_tokenizer_is_refused(tiny: Path, tmp_path: Path) -> None:
    import shutil

    bare = tmp_path / "bare"
    shutil.copytree(tiny, bare)
    for path in bare.glob("tokenizer*"):
        path.unlink()
    with pytest.raises(RadgenError, match=r"tokenizer|no model that can be loaded"):
        open_encoder(str(bare), "bare", 128, 8, device="cpu", cache=None)


def test_a_tokenizer_of_unknown_words_is_found_out(tiny: Path) -> None:
    class Deaf:
        """What transformers makes where the tokenizer's files are missing: every word is unknown."""

        all_special_ids = (0, 2, 3)

        def encode(self, text: str) -> list[int]:
            return [2, *(1 for _ in text.split()), 3]

    class Model:
        tokenizer: Any = Deaf()

    assert no_words(Model()) == "the tokenizer knows no word (its files are missing?)"
    Model.tokenizer = None
    assert no_words(Model()) == "the model has no tokenizer"
    real = open_encoder(str(tiny), "tiny", 128, 8, device="cpu", cache=None)
    assert isinstance(real, Encoder)
    assert no_words(real.model) is None


# ------------------------------------------------------------------------------------------ settings


def test_settings_of_the_user_replace_and_are_checked(tmp_path: Path) -> None:
    path = tmp_path / "mine.yaml"
    path.write_text("sample: {contrasts: 10}\nprobes:\n  sizes: [50]\n")
    mine = load_settings((str(path),))
    assert (mine.sample.contrasts, mine.sample.crossaxis, mine.probes.sizes) == (10, 0, [50])
    path.write_text("sample:\n  contrast: 10\n")
    with pytest.raises(OntologyError, match=r"mine\.yaml:2: sample\.contrast: unknown key 'contrast'; did"):
        load_settings((str(path),))
    path.write_text("labels:\n  findings:\n    mine: [plueral_effusion]\n")
    with pytest.raises(RadgenError, match="'plueral_effusion'; did you mean 'pleural_effusion'"):
        check_findings(load_settings((str(path),)), ONTOLOGY)


def test_packaged_settings_name_findings_and_measures_that_there_are() -> None:
    check_findings(SETTINGS, ONTOLOGY)
    assert {item.measure for item in quoted()} <= set(measures())
    assert {measure.better for measure in measures().values()} == {"higher", "lower", "none"}
    assert len(SETTINGS.labels.findings) == 13  # and "no finding": CheXbert's 14
    assert len(SETTINGS.heads.attributes) == 11
