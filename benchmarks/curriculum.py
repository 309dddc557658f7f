"""The three stages on the laptop preset, stage by stage: what each does to an encoder, and what it costs.

    python benchmarks/curriculum.py --out RUN                                   # everything, from nothing
    python benchmarks/curriculum.py --out RUN --archive NLMCXR_reports.tgz      # and retrieval
    python benchmarks/curriculum.py --out RUN --holdout phrasings --stages 2,3  # new wording apart
    python benchmarks/curriculum.py --out RUN --scale 0.1 --sample 100          # a small look

Made in RUN where it is not there yet: ``data`` (the collection, and from synthetic reports the pairs,
triplets, perturbations and RadThought of stage 1) and ``models``. Each stage is a `radgen train` of its own,
whose processor time (all threads, reading the data, validation, checkpoints, everything) is printed. Judged
before and after each stage: Contrast-10, CrossAxis-8, Probe-13, and retrieval between findings and impression
over the studies of the archive that have both (128 tokens), none of which is trained on.

With ``--holdout phrasings`` the encoder never sees a fifth of the sentence frames, nor one name of each
finding that has several; Contrast-10 (made without a holdout) is then split by what is new in a row: nothing,
a frame, a name, or both.
"""

from __future__ import annotations

import argparse
import os
import resource
import subprocess
import sys
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
from rich.console import Console
from rich.table import Table

from radgen.extract.readers import Report, open_reports
from radgen.generators.holdout import Holdout
from radgen.ontology.load import load_ontology
from radgen.train import measures
from radgen.train.encoder import MINILM, encode, load_encoder
from radgen.train.evaluate.judging_sets import Row, read

TRIPLET = ("anchor", "positive", "negative")
NEW = ("nothing", "frame", "name", "frame and name")
LEVELS = {"pairs": ("sentence", "findings", "impression"), "triplets": ("report", "sentence")}
FAMILIES = ("findings_alignment", "coherence", "derivation")
Vectors = Callable[[Sequence[str]], Any]


def radgen(*words: str | Path) -> tuple[float, float]:
    """Run a radgen command; return its processor seconds (all threads and children) and wall seconds."""
    before, start = resource.getrusage(resource.RUSAGE_CHILDREN), time.perf_counter()
    environment = {**os.environ, "OMP_WAIT_POLICY": "PASSIVE"}  # spinning threads would count as work
    subprocess.run([sys.executable, "-m", "radgen", *map(str, words)], check=True, env=environment)
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    used = after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime
    return used, time.perf_counter() - start


def make_data(data: Path, reports: int, rows: int, holdout: str | None, *, stage1: bool) -> None:
    """Make what is missing: the collection, and what stage 1 takes from synthetic reports."""
    if holdout:
        for folder, axis in (
            ("size", "all"),
            ("presence", "presence"),
        ):  # a finding's other names are held out
            if not (data / "contrasts" / folder).is_dir():
                radgen("contrasts", "--axis", axis, "--out", data, "--holdout", holdout)
        if not (data / "crossaxis").is_dir():
            radgen("crossaxis", "--combination", "all", "--out", data, "--holdout", holdout)
    elif not (data / "collection.json").is_file():
        radgen("collection", "--out", data)
    if not stage1:
        return
    source, records = data / "synthetic.jsonl", data / "radthought" / "records"
    if not source.is_file():
        radgen("reports", "--synthetic", str(reports), "--out", source)
    for command, levels in LEVELS.items():
        for level in levels:
            if not (data / ("radsim" if command == "pairs" else "mined") / level).is_dir():
                radgen(command, source, "--level", level, "--n", str(rows), "--out", data)
    if not (data / "perturbation").is_dir():
        radgen("perturb", source, "--n", str(rows), "--out", data)
    if not records.is_dir():
        radgen("radthought", "records", source, "--truth", "--out", records)
    if not (data / "radthought" / "fused").is_dir():
        radgen("radthought", "pairs", records, "--n", str(rows), "--out", data)
    for family in FAMILIES:
        if not (data / "radthought" / family).is_dir():
            words = ("--reports", source, "--family", family, "--n", str(rows), "--out", data)
            radgen("radthought", "triplets", records, *words)


@dataclass
class Judges:
    """The judging sets and the real reports, read once."""

    judging: Path
    sample: int
    archive: Path | None
    new: Callable[[Row], str] | None
    _sets: dict[str, list[Row]] = field(default_factory=dict)
    _sections: list[tuple[str, str]] = field(default_factory=list)

    def rows(self, name: str) -> list[Row]:
        """Return the rows of a judging set."""
        if name not in self._sets:
            most = self.sample if name == "contrast_10" else 0
            self._sets[name] = read(self.judging, name, most, 42).rows
        return self._sets[name]

    def sections(self) -> list[tuple[str, str]]:
        """Return findings and impression of every study that has both."""
        if not self._sections and self.archive:
            for report in open_reports(self.archive):
                if isinstance(report, Report):
                    pair = tuple((report.data.get(name) or "").strip() for name in ("findings", "impression"))
                    if all(pair):
                        self._sections.append((pair[0], pair[1]))
        return self._sections

    def __call__(self, model: str) -> dict[str, float]:
        """Return the figures of a model."""
        encoder = load_encoder(model, max_tokens=128, device="cpu")

        def vectors(texts: Sequence[str]) -> Any:
            return encode(encoder, texts, 32)

        figures = self._ordering("contrast_10", vectors, lambda row: str(row["axis"]))
        figures["mean of ten"] = sum(figures.values()) / len(figures)
        figures["lowest axis"] = min(figures.values())
        if self.new:
            found = self._ordering("contrast_10", vectors, self.new)
            figures |= {f"new: {name}": found[name] for name in NEW if name in found}
        figures |= self._crossed(vectors)
        probe = self._ordering("probe_13", vectors, lambda row: f"{row['kind']} {row['axis']}")
        for kind in ("match", "ordinal"):  # the mean of the groups, as `radgen evaluate` has it
            groups = [value for name, value in probe.items() if name.startswith(kind)]
            figures[f"Probe-13 {kind}"] = sum(groups) / len(groups)
        if self.archive:
            figures |= self._retrieval(vectors)
        return figures

    def _ordering(self, name: str, vectors: Vectors, group: Callable[[Row], str]) -> dict[str, float]:
        rows = self.rows(name)
        right = measures.ordered(*(vectors([row[column] for row in rows]) for column in TRIPLET))
        groups = np.array([group(row) for row in rows])
        return {one: float(right[groups == one].mean()) for one in dict.fromkeys(groups)}

    def _crossed(self, vectors: Vectors) -> dict[str, float]:
        rows = self.rows("crossaxis_8")
        cosine = measures.cosines(*(vectors([row[f"sentence{i}"] for row in rows]) for i in (1, 2)))
        figures = {"CrossAxis-8": measures.spearman(cosine, np.array([row["score"] for row in rows]))}
        combinations = np.array([row["combination"] for row in rows])
        for name in dict.fromkeys(combinations):
            relations = [row["side_relation"] if row["combination"] == name else None for row in rows]
            if any(relations):
                figures[f"flip {name}"] = measures.side_flip_response(cosine, relations)
        return figures

    def _retrieval(self, vectors: Vectors) -> dict[str, float]:
        figures: dict[str, float] = {}
        for source, target, name in ((0, 1, "findings→impression"), (1, 0, "impression→findings")):
            asked = [pair[source] for pair in self.sections()]
            place: dict[str, int] = {}
            own = np.array([place.setdefault(pair[target], len(place)) for pair in self.sections()], np.int64)
            found = measures.ranks(vectors(asked), vectors(list(place)), own, np.bincount(own))
            figures |= {f"{name} R@{k}": found.recall(k) for k in (1, 10)}
        return figures


def newness(holdout: str | None) -> Callable[[Row], str] | None:
    """Return what tells which wording of a row was kept out of training; None without that holdout."""
    if holdout != "phrasings":
        return None
    ontology = load_ontology()
    held = Holdout.of(holdout, ontology)
    names = held.terms or {}

    def new(row: Row) -> str:
        frame = any(name in held.frames for name in row["phrasings"])
        text = " ".join(row[column] for column in TRIPLET).lower()
        name = any(term.lower() in text for term in names.get(row["anchor_state"]["finding"], ()))
        return NEW[frame + 2 * name]

    return new


def show(columns: dict[str, dict[str, float]], costs: dict[str, tuple[float, float]]) -> None:
    """Print the figures, a model a column, and what each stage cost."""
    table = Table(*["", *columns])
    for name in dict.fromkeys(name for figures in columns.values() for name in figures):
        table.add_row(name, *(f"{figures.get(name, float('nan')):.3f}" for figures in columns.values()))
    for at, name in enumerate(("processor seconds", "wall seconds")):
        table.add_row(name, *(f"{costs[one][at]:,.0f}" if one in costs else "" for one in columns))
    Console(width=120).print(table)
    late = [costs[name][0] for name in ("stage 2", "stage 3") if name in costs]
    if len(late) == 2:
        print(f"stages 2 and 3 together: {sum(late):,.0f} processor seconds (25 minutes of two cores: 3,000)")


def main() -> None:
    """Train and judge."""
    shape = argparse.RawDescriptionHelpFormatter
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=shape)
    parser.add_argument("--out", type=Path, required=True, help="folder for data and models")
    parser.add_argument("--data", type=Path, help="datasets that are there already (default: OUT/data)")
    parser.add_argument("--stages", default="1,2,3", help="stages to train, e.g. 2,3")
    parser.add_argument("--preset", default="laptop")
    parser.add_argument("--scale", type=float, default=1.0, help="factor on the steps of each stage")
    parser.add_argument("--seed", type=int, default=42)
    parser.add_argument("--sample", type=int, default=475, help="Contrast-10 triplets an axis; 0: all 2,950")
    parser.add_argument("--archive", type=Path, help="reports with both sections: retrieval")
    parser.add_argument("--holdout", choices=("phrasings",), help="keep wording out of training")
    parser.add_argument("--reports", type=int, default=20_000, help="synthetic reports for stage 1")
    parser.add_argument("--rows", type=int, default=10_000, help="rows of each dataset made from them")
    options = parser.parse_args()
    data, models = options.data or options.out / "data", options.out / "models"
    stages = options.stages.split(",")
    make_data(data, options.reports, options.rows, options.holdout, stage1="1" in stages)
    judging = data / "judging"
    if options.holdout:  # its own judging set has new wording alone: the plain one has both
        judging = options.out / "judging"
        if not judging.is_dir():
            radgen("benchmark", "--out", options.out)
    judge = Judges(judging, options.sample, options.archive, newness(options.holdout))
    columns, costs = {"untrained": judge(MINILM)}, {}
    before = MINILM
    for stage in stages:
        words: list[str | Path] = ["train", "--stage", stage, "--preset", options.preset, "--data", data]
        words += ["--out", models, "--model", before, "--seed", str(options.seed), "--resume"]
        if options.scale != 1.0:
            words += ["--steps", str(max(1, round(options.scale * _steps(stage, options.preset))))]
        if "1" not in stages:  # nothing is made of reports then
            words += [word for family in ("radsim", "mined", "perturbation", "radthought")
                      for word in ("--without", family)]  # fmt: skip
        if options.holdout:
            words += ["--without", "contrasts/finding"]
        name = f"stage {stage}"
        costs[name] = radgen(*words)
        before = str(models / f"stage{stage}" / "model")
        columns[name] = judge(before)
        show(columns, costs)


def _steps(stage: str, preset: str) -> int:
    from radgen.train.settings import load_stage

    steps = load_stage(stage, preset).settings.steps
    if steps is None:
        raise SystemExit(f"--scale: stage {stage} of preset {preset} has no number of steps")
    return steps


if __name__ == "__main__":
    main()
