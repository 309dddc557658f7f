"""Codebooks: centroids, thresholds, classification against a brute-force reference, files, errors."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Any

import numpy as np
import orjson
import pytest

pytest.importorskip("torch")
pytest.importorskip("sentence_transformers")
pytest.importorskip("sklearn")

from evaluate_runs import SURE, Table, found, quiet
from numpy.typing import NDArray

from radgen.errors import RadgenError
from radgen.extract.rules import default_extractor
from radgen.generators.states.corpus import Paperwork
from radgen.generators.states.settings import load_settings as load_states_settings
from radgen.ontology import load_ontology
from radgen.train.codebook.book import Codebook, load_codebook
from radgen.train.codebook.build import (
    Sentences,
    StateData,
    best_threshold,
    build_codebook,
    centroids,
    placed,
    read_states,
    require_sentences,
    thresholds,
)
from radgen.train.codebook.classify import (
    ABSENT,
    LOWEST,
    PRESENT,
    UNNAMED,
    classify_reports,
    classify_vectors,
    keyword_assignment,
    reports_of,
)
from radgen.train.codebook.settings import codebook_settings
from radgen.train.evaluate.outcome import SkippedError
from radgen.train.evaluate.settings import load_settings
from radgen.train.evaluate.states import mean_cosines, states

SETTINGS = codebook_settings().model_copy(update={"vectors": 2, "least_validation": 2})


def unit(values: Any) -> NDArray[np.float32]:
    array = np.asarray(values, np.float32)
    return array / np.linalg.norm(array, axis=-1, keepdims=True)


def random_book(seed: int, findings: int = 5, vectors: int = 7, dimensions: int = 24) -> Codebook:
    rng = np.random.default_rng(seed)
    return Codebook(
        tuple(f"finding_{n}" for n in range(findings)),
        unit(rng.normal(size=(findings, 2, vectors, dimensions))),
        rng.uniform(0.0, 0.1, size=(findings, 3)).astype(np.float32),
    )


def brute(book: Codebook, vector: Any, finding: int, assigned: bool | None) -> tuple[int, float, float]:
    """Classify one sentence for one finding, one codebook vector after another."""

    def nearest(vectors: Any) -> float:
        return max(sum(float(a) * float(b) for a, b in zip(vector, row, strict=True)) for row in vectors)

    present, absent = (nearest(book.vectors[finding, state]) for state in (0, 1))
    by_state, as_present, as_absent = (float(value) for value in book.thresholds[finding])
    if assigned is not None:
        if not assigned:
            return UNNAMED, max(present, absent), -2.0
        score = present - absent
        return (PRESENT, present, score) if score >= by_state else (ABSENT, absent, score)
    score = present - absent
    if score >= as_present:
        return PRESENT, present, score
    if -score >= as_absent:
        return ABSENT, absent, score
    return UNNAMED, max(present, absent), score


@pytest.mark.parametrize("by_keywords", [True, False])
def test_classification_is_that_of_brute_force(by_keywords: bool) -> None:
    book = random_book(1)
    rng = np.random.default_rng(2)
    vectors = unit(rng.normal(size=(40, book.dimensions)) + 2 * book.vectors[rng.integers(0, 5, 40), 0, 0])
    assigned = rng.random((40, 5)) < 0.5 if by_keywords else None
    made = classify_vectors(book, vectors, assigned, batch=7)
    states_seen = set()
    for row in range(40):
        for finding in range(5):
            given = None if assigned is None else bool(assigned[row, finding])
            state, similarity, score = brute(book, vectors[row], finding, given)
            assert made.state[row, finding] == state
            assert made.similarity[row, finding] == pytest.approx(similarity, abs=1e-5)
            assert made.score[row, finding] == pytest.approx(score, abs=1e-5)
            states_seen.add(state)
    assert states_seen == {PRESENT, ABSENT, UNNAMED}


def test_one_matrix_product_a_batch_and_no_loop_over_sentences(monkeypatch: pytest.MonkeyPatch) -> None:
    """The lines of Python that run do not grow with the sentences of a batch, only with the batches."""
    book = random_book(3)
    vectors = unit(np.random.default_rng(4).normal(size=(3000, book.dimensions)))
    products = []
    real = Codebook.similarities

    def counting(self: Codebook, part: Any) -> Any:
        products.append(len(part))
        return real(self, part)

    monkeypatch.setattr(Codebook, "similarities", counting)

    def lines(count: int) -> int:
        seen = 0

        def trace(frame: Any, event: str, _: Any) -> Any:
            nonlocal seen
            if "codebook" not in frame.f_code.co_filename:
                return None
            seen += event == "line"
            return trace

        sys.settrace(trace)
        try:
            classify_vectors(book, vectors[:count], batch=1000)
        finally:
            sys.settrace(None)
        return seen

    assert lines(10) == lines(1000)
    assert lines(3000) < 3.5 * lines(1000)
    assert products == [10, 1000, 1000, 1000, 1000, 1000]


def test_reports_take_the_strongest_state_of_their_sentences() -> None:
    book = Codebook(("effusion",), unit([[[[1, 0, 0]], [[0, 1, 0]]]]), np.zeros((1, 3), np.float32))
    vectors = unit([[0.2, 1, 0], [1, 0.1, 0], [1, 0.5, 0], [0.1, 1, 0], [0, 0, 1]])
    assigned = np.array([[True], [True], [True], [True], [False]])
    sentences = classify_vectors(book, vectors, assigned)
    assert sentences.state[:, 0].tolist() == [ABSENT, PRESENT, PRESENT, ABSENT, UNNAMED]
    whole, decides = reports_of(sentences, np.array([0, 0, 0, 1, 2]), 4)
    assert whole.state[:, 0].tolist() == [PRESENT, ABSENT, UNNAMED, UNNAMED]
    assert decides[:, 0].tolist() == [1, 3, -1, -1]  # of the two present ones, the one that is nearer
    assert whole.score[:, 0].tolist()[2:] == [LOWEST, LOWEST]
    assert whole.score[0, 0] == pytest.approx(0.9 / 1.01**0.5, abs=1e-6)


def test_vectors_of_another_model_are_refused() -> None:
    with pytest.raises(RadgenError, match="vectors of 8 dimensions, but the codebook's have 24"):
        classify_vectors(random_book(1), np.zeros((2, 8), np.float32))
    assert classify_vectors(random_book(1), np.zeros((0, 24), np.float32)).state.shape == (0, 5)


def test_keywords_assign_a_sentence_to_every_finding_that_it_names() -> None:
    texts = ["Left effusion without pneumothorax.", "The heart is enlarged.", "Nothing to report."]
    found_in = keyword_assignment(
        default_extractor(), texts, ["pleural_effusion", "pneumothorax", "cardiomegaly"]
    )
    assert found_in.tolist() == [[True, True, False], [False, False, True], [False, False, False]]


# --- building -------------------------------------------------------------------------------------


def test_centroids_are_those_of_clear_clusters_whatever_their_order() -> None:
    rng = np.random.default_rng(5)
    middles = unit(np.eye(4)[:3])
    points = unit(np.repeat(middles, 30, axis=0) + rng.normal(scale=0.01, size=(90, 4)))
    made = centroids(points, 3, 100, 42)
    assert np.allclose(np.linalg.norm(made, axis=1), 1, atol=1e-6)
    nearest = (made @ middles.T).argmax(axis=1)
    assert sorted(nearest.tolist()) == [0, 1, 2]
    for row, which in zip(made, nearest, strict=True):
        mean = points[30 * which : 30 * which + 30].astype(np.float64).mean(axis=0)
        assert row == pytest.approx(mean / np.linalg.norm(mean), abs=1e-5)
    assert np.array_equal(made, centroids(points, 3, 100, 42))


def test_sentences_that_lie_elsewhere_are_left_out_of_a_state() -> None:
    own = unit([[1, 0, 0], [0, 0, 1], [1, 0.2, 0], [0.2, 1, 0]])
    other, unnamed = unit([[0, 1, 0], [0, 1, 0.1]]), unit([[0, 0, 1]])
    # The second is one of the unnamed, the fourth nearer to the other state; mean (2.18, 1.18, 1) / 2.67.
    assert np.array_equal(placed(own, (other, unnamed), 1), own[[0, 2]])
    # Three are asked for: of the two, the fourth is less misplaced (0.59 - 0.98 against 0.37 - 1).
    assert np.array_equal(placed(own, (other, unnamed), 3), own[[0, 2, 3]])


def test_threshold_separates_and_else_has_the_best_balanced_accuracy() -> None:
    assert best_threshold(np.array([0.5, 0.9]), np.array([-0.2, 0.1])) == pytest.approx(0.3)
    positive, negative = np.array([0.0, 0.6, 0.8, 0.9]), np.array([-0.5, 0.1, 0.2, 0.7])
    cuts = np.linspace(-1, 1, 2001)
    best = max((positive >= cut).mean() + (negative < cut).mean() for cut in cuts)
    cut = best_threshold(positive, negative)
    assert (positive >= cut).mean() + (negative < cut).mean() == pytest.approx(best)


TEXTS = {
    "Effusion.": [1, 0.1, 0],
    "Effusion is seen.": [1, 0.2, 0],
    "An effusion.": [1, 0, 0.1],
    "No effusion.": [0.1, 1, 0],
    "No effusion seen.": [0.2, 1, 0],
    "Without effusion.": [0, 1, 0.1],
    "Normal spine.": [0, 0.1, 1],
    "Normal ribs.": [0.1, 0, 1],
}


def data(present: int = 3, absent: int = 3) -> StateData:
    texts = list(TEXTS)
    said = {"effusion": {"present": list(range(present)), "absent": [3, 4, 5][:absent]}}
    sentences = Sentences(texts, said, {"effusion": set(range(6))}, [6, 7])
    return StateData(Path("data"), {"train": sentences, "validation": sentences}, ("effusion",), {"a": "b"})


class Named(Table):
    """A table of vectors with the name and hash that manifests have."""

    def __init__(self, mark: str = "1" * 16) -> None:
        super().__init__(TEXTS)
        self.hash = mark


def test_a_codebook_of_given_vectors(tmp_path: Path) -> None:
    book = build_codebook(data(), Named(), SETTINGS)
    assert book.vectors.shape == (1, 2, 2, 3)
    assert book.manifest["model"] == {"name": "table", "hash": "1" * 16}
    made = classify_vectors(book, unit(list(TEXTS.values())))
    assert made.state[:, 0].tolist() == [PRESENT] * 3 + [ABSENT] * 3 + [UNNAMED] * 2
    book.save(tmp_path / "book")
    again = load_codebook(tmp_path / "book")
    assert np.array_equal(again.vectors, book.vectors)
    assert np.array_equal(again.thresholds, book.thresholds)
    assert again.findings == ("effusion",)
    build_codebook(data(), Named(), SETTINGS).save(tmp_path / "other")
    for name in ("vectors.safetensors", "manifest.json"):
        assert (tmp_path / "book" / name).read_bytes() == (tmp_path / "other" / name).read_bytes()


def test_a_misplaced_sentence_makes_no_codebook_vector() -> None:
    """The fourth present sentence lies where the sentences about no finding lie."""
    encoder, made = Named(), data()
    encoder.rows["Effusive change."] = unit([0.05, 0, 1])
    train = made.splits["train"]
    train.texts.append("Effusive change.")
    train.said["effusion"]["present"].append(len(train.texts) - 1)
    train.named["effusion"].add(len(train.texts) - 1)
    kept = build_codebook(made, encoder, SETTINGS)
    assert kept.vectors[0, 0, :, 2].max() < 0.2
    assert "1 sentence left out, which the encoder places nearer to another state" in kept.manifest["notes"]
    plain = build_codebook(made, encoder, SETTINGS.model_copy(update={"leave_out": False}))
    assert plain.vectors[0, 0, :, 2].max() > 0.9


def test_thresholds_need_validation_sentences_of_both_states() -> None:
    book = build_codebook(data(), Named(), SETTINGS)
    held = data(present=1).splits["validation"]
    chosen, notes = thresholds(book, held, unit(list(TEXTS.values())), SETTINGS)
    assert chosen.tolist() == [[0.0, 0.0, 0.0]]
    assert notes == ["effusion: fewer than 2 validation sentences of a state: threshold 0"]


def test_another_codebook_or_a_spoiled_one_is_named(tmp_path: Path) -> None:
    book = build_codebook(data(), Named(), SETTINGS)
    place = tmp_path / "book"
    book.save(place)
    other = build_codebook(data(), Named("2" * 16), SETTINGS)
    with pytest.raises(RadgenError, match=r"holds another codebook .* --force"):
        other.save(place)
    other.save(place, force=True)
    manifest = (place / "manifest.json").read_bytes()
    (place / "manifest.json").write_bytes(orjson.dumps({**orjson.loads(manifest), "format": 1}))
    with pytest.raises(RadgenError, match=r"a codebook of format 1, expected 2; .* --force"):
        load_codebook(place)
    (place / "manifest.json").write_bytes(manifest)
    (place / "vectors.safetensors").write_bytes(b"spoiled")
    with pytest.raises(RadgenError, match="is not the file that its manifest names"):
        load_codebook(place)
    with pytest.raises(RadgenError, match="no such folder; make a codebook with radgen codebook build"):
        load_codebook(tmp_path / "nothing")
    (tmp_path / "mine").mkdir()
    (tmp_path / "mine" / "notes.txt").write_text("mine")
    with pytest.raises(RadgenError, match="holds files that are no codebook"):
        book.save(tmp_path / "mine", force=True)


def test_errors_of_findings_say_what_to_do(tmp_path: Path) -> None:
    with pytest.raises(
        RadgenError, match=r"needs both states of a finding: effusion \(no absent sentence\); leave it"
    ):
        require_sentences(data(absent=0), 2)
    with pytest.raises(
        RadgenError, match=r"fewer sentences than --vectors 3: effusion absent 2; give --vectors 2"
    ):
        require_sentences(data(absent=2), 3)
    without = data()
    without.splits["train"].unnamed.clear()
    with pytest.raises(RadgenError, match="no sentence names none of the findings"):
        require_sentences(without, 2)
    with pytest.raises(RadgenError, match=r"no sentences by state here; make them with radgen states --out"):
        read_states(tmp_path)
    for name in ("sentences", "others"):
        manifest = {"family": "states", "constants": {"findings": ["pneumothorax", "nodule"]}, "files": {}}
        (tmp_path / "states" / name).mkdir(parents=True)
        (tmp_path / "states" / name / "manifest.json").write_bytes(orjson.dumps(manifest))
    with pytest.raises(
        RadgenError,
        match=r"--findings: .*did you mean 'pneumothorax'\?.* radgen states --findings pneumothorx",
    ):
        read_states(tmp_path, ["nodule", "pneumothorx"])


# --- reports --------------------------------------------------------------------------------------


def test_reports_are_classified_sentence_by_sentence(tmp_path: Path) -> None:
    reports = [
        {"id": "a", "findings": "Pleural effusion. Normal spine.", "impression": "No pleural effusion."},
        {"id": "b", "findings": "Normal spine."},
    ]
    path = tmp_path / "reports.jsonl"
    path.write_bytes(b"".join(orjson.dumps(row) + b"\n" for row in reports))
    vectors = {
        "Pleural effusion.": [1, 0.1, 0],
        "No pleural effusion.": [0.1, 1, 0],
        "Normal spine.": [0, 0.1, 1],
    }
    encoder = Named()
    encoder.rows |= {text: unit(row) for text, row in vectors.items()}
    book = build_codebook(data(), encoder, SETTINGS)
    book = Codebook(("pleural_effusion",), book.vectors, book.thresholds, book.manifest)
    for assign in ("keywords", "codebook"):
        out = tmp_path / f"{assign}.jsonl"
        counts = classify_reports(path, out, book, encoder, default_extractor(), SETTINGS, assign=assign)
        assert (counts.reports, counts.sentences) == (2, 4)
        first, second = (orjson.loads(line) for line in out.read_bytes().splitlines())
        assert first["findings"]["pleural_effusion"]["state"] == "present"
        assert first["findings"]["pleural_effusion"]["section"] == "findings"
        assert (
            first["findings"]["pleural_effusion"]["start"],
            first["findings"]["pleural_effusion"]["end"],
        ) == (0, 17)
        stated = [
            (row["section"], row["findings"]["pleural_effusion"]["state"]) for row in first["sentences"]
        ]
        assert stated == [("findings", "present"), ("impression", "absent")]
        assert second["findings"]["pleural_effusion"]["state"] is None
        assert second["findings"]["pleural_effusion"]["similarity"] is None
        assert second["sentences"] == []
    # Paperwork is left out where no keyword says that a sentence is about a finding.
    options = load_states_settings(load_ontology())
    paperwork = Paperwork(options.model_copy(update={"administrative": ["^Normal spine"]}))
    for assign, sentences in (("keywords", 4), ("codebook", 2)):
        out = tmp_path / f"{assign}-paperwork.jsonl"
        counts = classify_reports(
            path, out, book, encoder, default_extractor(), SETTINGS, paperwork=paperwork, assign=assign
        )
        assert (counts.reports, counts.sentences) == (2, sentences)
    with pytest.raises(RadgenError, match="exists already"):
        classify_reports(path, out, book, encoder, default_extractor(), SETTINGS)
    with pytest.raises(RadgenError, match="is not the model of the codebook"):
        classify_reports(path, tmp_path / "x", book, Named("3" * 16), default_extractor(), SETTINGS)


# --- suite states ---------------------------------------------------------------------------------


def test_mean_cosines_leave_pairs_of_one_phrasing_out() -> None:
    own = unit([[1, 0], [1, 0], [0, 1]])
    within, across = mean_cosines(own, np.array([0, 0, 1]), unit([[-1, 0]]))
    assert within.tolist() == pytest.approx([0.0, 0.0, 0.0])  # the two equal ones are of one phrasing
    assert across.tolist() == pytest.approx([-1.0, -1.0, 0.0])
    alone, _ = mean_cosines(own[:2], np.array([0, 0]), own)
    assert alone.tolist() == []


def test_suite_states(tmp_path: Path) -> None:
    rows = [("a", "present", "1"), ("b", "present", "2"), ("c", "absent", "3"), ("d", "absent", "4")]
    rows.append(("e", "indeterminate", "5"))
    path = tmp_path / "states" / "sentences" / "test.jsonl"
    path.parent.mkdir(parents=True)
    lines = [{"sentence": s, "finding": "mass", "presence": p, "phrasing": f} for s, p, f in rows]
    lines.append({"sentence": "a", "finding": "nodule", "presence": "present", "phrasing": "1"})
    path.write_bytes(b"".join(orjson.dumps(row) + b"\n" for row in lines))
    encoder = Table({"a": [1, 0], "b": [0.6, 0.8], "c": [-1, 0], "d": [-0.6, 0.8]})
    outcome = states(tmp_path, encoder, load_settings(), SURE, quiet)
    values = found(outcome)
    # a·b = c·d = 0.6; a·c = -1, a·d = -0.6, b·c = -0.6, b·d = -0.36 + 0.64 = 0.28
    assert values["states.within", "mass"].value == pytest.approx(0.6)
    assert values["states.within", "mass/present"].value == pytest.approx(0.6)
    assert values["states.across", "mass"].value == pytest.approx((-1 - 0.6 - 0.6 + 0.28) / 4)
    assert values["states.across", "nodule"].value is None
    assert values["states.across", "nodule"].reason == "no test sentence states it absent"
    assert values["states.across", ""].value == pytest.approx((-1 - 0.6 - 0.6 + 0.28) / 4)
    box = outcome.figures["boxes"]["mass"]["across"]  # of the sentences: -0.8, -0.16, -0.8, -0.16
    assert (box["n"], box["median"]) == (4, pytest.approx(-0.48))
    with pytest.raises(SkippedError, match="needs --states"):
        states(tmp_path / "none", encoder, load_settings(), SURE, quiet)
