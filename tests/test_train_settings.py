"""Settings of training: the recipe's table, written here a second time; mistakes and what is said of them."""

from __future__ import annotations

from pathlib import Path

import pytest
import yaml

from radgen.errors import RadgenError
from radgen.train.settings import load_stage, names

AXES = ("size", "count", "laterality", "location", "severity", "temporal_change", "density", "margin",
        "certainty", "distribution")  # fmt: skip
STAGE2_WEIGHTS = {
    "size": 3.0, "laterality_controlled": 3.0, "count": 2.5, "location": 2.0, "severity": 2.0,
    "temporal_change": 2.0, "density": 2.0, "distribution": 2.0, "margin": 1.5, "certainty": 1.5,
}  # fmt: skip
LEVELS = ("scene_graph", "first_order", "second_order", "third_order", "synthesis")
CROSSAXIS = ("size_laterality", "size_location", "severity_laterality", "severity_location",
             "density_laterality", "count_laterality", "severity_temporal_change",
             "density_margin")  # fmt: skip


def test_what_all_stages_share() -> None:
    for word, batch in (("1", 256), ("2", 240), ("3", 240)):
        settings = load_stage(word, "h100").settings
        assert settings.batch == batch
        assert settings.model == "Qwen/Qwen3-Embedding-4B"
        assert (settings.warmup, settings.weight_decay, settings.seed) == (0.03, 0.01, 42)
        assert settings.losses["cosent"]["scale"] == 20
        assert settings.compute.precision == "bf16"
        assert settings.compute.tf32
        assert settings.compute.gradient_checkpointing
        assert settings.max_tokens == 9500


def test_stage_1_grows_from_128_tokens_to_9500() -> None:
    settings = load_stage("1", "h100").settings
    assert [settings.tokens_at(share) for share in (0, 0.49, 0.51, 1.0)] == [128, 128, 9500, 9500]
    assert settings.datasets["contrasts/size"].cap == 149_000
    assert settings.datasets["contrasts/laterality"].cap == 52_000
    families = {name.partition("/")[0] for name in settings.datasets}
    assert families == {"radsim", "mined", "perturbation", "radthought", "contrasts"}
    assert settings.after is None


def test_stage_2_weights_margins_and_caps() -> None:
    settings = load_stage("2", "h100").settings
    for axis, weight in STAGE2_WEIGHTS.items():
        entry = settings.datasets[f"contrasts/{axis}"]
        assert (entry.weight, entry.cap, entry.loss) == (weight, 60_000, "triplet")
        assert entry.margin == {"laterality_controlled": 0.45, "location": 0.30}.get(axis, 0.35)
    assert set(AXES) <= {name.removeprefix("contrasts/") for name in settings.datasets}
    assert settings.after == "stage1"


def test_stage_3_is_table_9() -> None:
    settings = load_stage("3", "h100").settings
    for name in CROSSAXIS:
        entry = settings.datasets[f"crossaxis/{name}"]
        assert (entry.weight, entry.cap, entry.loss) == (1.0, 50_000, "cosent")
    expected = {"radsim/findings": 1.5, "radsim/impression": 1.5, "radthought/fused": 0.6,
                "perturbation/sections": 0.5, "pairs/size_pairs": 0.4, "pairs/count_pairs": 0.4}  # fmt: skip
    expected |= {f"radthought/{level}": 2.0 for level in LEVELS}
    expected |= {f"contrasts/{axis}": 1.5 for axis in (*AXES, "laterality_controlled")}
    for name, weight in expected.items():
        assert (settings.datasets[name].weight, settings.datasets[name].cap) == (weight, 10_000), name
    assert settings.datasets["contrasts/location"].margin == 0.30
    assert settings.datasets["contrasts/laterality_controlled"].margin == 0.45
    assert (settings.steps, settings.after) == (900, "stage2")


def test_laptop_is_the_packaged_encoder_at_128_tokens() -> None:
    for word in ("1", "2", "3"):
        settings = load_stage(word, "laptop").settings
        assert (settings.model, settings.max_tokens, settings.compute.precision) == ("minilm", 128, "fp32")


def test_packaged_files_have_no_key_twice() -> None:
    from radgen.yamlfile import read_yaml

    root = Path(load_stage.__code__.co_filename).parent / "data"
    files = sorted(root.rglob("*.yaml"))
    assert {"defaults", "stage1", "stage2", "stage3", "h100", "laptop"} <= {path.stem for path in files}
    for path in files:
        read_yaml(path)
    for stage in names("stage"):
        for preset in names("preset"):
            load_stage(stage, preset)


def test_set_reads_values_by_their_type() -> None:
    sets = ["lr=2e-5", "datasets.contrasts/size.weight=2", "grouping.form=false", "steps=7", "cap=null"]
    settings = load_stage("2", "h100", sets=sets).settings
    assert (settings.lr, settings.steps, settings.cap, settings.grouping.form) == (2e-5, 7, None, False)
    assert settings.datasets["contrasts/size"].weight == 2
    assert settings.datasets["contrasts/size"].margin == 0.35


def test_validation_rows_of_datasets_by_pattern() -> None:
    """The first pattern that fits; what none fits has the rows of all."""
    given = {"rows": 40, "rows_of.radthought/syn*": 30, "rows_of.radthought/*": 10}
    sets = [f"validation.{key}={value}" for key, value in given.items()]
    validation = load_stage("2", "h100", sets=sets).settings.validation
    names_ = ("radthought/synthesis", "radthought/fused", "contrasts/size")
    assert [validation.rows_for(name) for name in names_] == [30, 10, 40]
    assert load_stage("2", "h100").settings.validation.rows_for("radthought/fused") == 200


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        (
            "validation.rows_of.radsim/*=1",
            "--set validation.rows_of.radsim/*=1: input should be greater than or equal to 2, found 1",
        ),
        ("lrr=1", "--set lrr=1: unknown key 'lrr'; did you mean 'lr'?"),
        ("lr=fast", "--set lr=fast: expected a number, found 'fast'"),
        ("lr", "--set lr: expected KEY=VALUE, such as lr=2e-5"),
        ("batch=0", "--set batch=0: input should be greater than or equal to 1, found 0"),
        (
            "datasets.contrasts/sise.weight=2",
            "--set datasets.contrasts/sise.weight=2: unknown key 'datasets.contrasts/sise'; "
            "did you mean 'datasets.contrasts/size'?",
        ),
        (
            "compute.precision=bf61",
            "--set compute.precision=bf61: expected 'fp32' or 'bf16', found 'bf61'; did you mean 'bf16'?",
        ),
        ("steps.x=1", "--set steps.x=1: 'steps' holds a value, not further keys"),
    ],
)
def test_set_names_the_mistake(text: str, expected: str) -> None:
    with pytest.raises(RadgenError) as error:
        load_stage("2", "laptop", sets=[text])
    assert str(error.value) == expected


def test_unknown_stage_and_preset() -> None:
    with pytest.raises(RadgenError, match="--stage: unknown stage '4'"):
        load_stage("4", "laptop")
    with pytest.raises(RadgenError, match="--preset: unknown preset 'laptob'; did you mean 'laptop'"):
        load_stage("2", "laptob")


def test_a_file_of_ones_own(tmp_path: Path) -> None:
    """A user's stage file, and a file laid over a packaged stage; a mistake is named with its line."""
    own = tmp_path / "sides.yaml"
    own.write_text("datasets:\n  contrasts/laterality: {loss: triplet, margin: 0.5}\n")
    stage = load_stage(str(own), "laptop")
    assert stage.name == "sides"
    assert list(stage.settings.datasets) == ["contrasts/laterality"]
    over = tmp_path / "over.yaml"
    over.write_text(yaml.safe_dump({"batch": 12}))
    assert load_stage("3", "laptop", files=[over]).settings.batch == 12
    over.write_text("batch: 8\nlr: quick\n")
    with pytest.raises(RadgenError, match=r"over.yaml:2: lr: expected a number, found 'quick'"):
        load_stage("3", "laptop", files=[over])
