"""Settings of a stage: YAML files laid over each other, then ``--set``; every mistake named (spec §7).

``defaults.yaml`` < the stage's file < the preset < the preset's part for the stage < the user's < ``--set``.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from fnmatch import fnmatch
from pathlib import Path
from typing import Annotated, Any, Literal

import yaml
from pydantic import BaseModel, Field, ValidationError

from radgen.errors import RadgenError, unknown
from radgen.ontology.schema import Strict
from radgen.yamlfile import Source, explain, merge, read_yaml, validate

_DATA = Path(__file__).parent / "data"
#: Where keys are patterns or names of metrics, so that any may be added.
_FREE = (["checkpoint", "score"], ["checkpoint", "guard"], ["validation", "rows_of"])
Share = Annotated[float, Field(ge=0, le=1)]
Positive = Annotated[float, Field(gt=0)]
Count = Annotated[int, Field(ge=1)]


class DatasetSettings(Strict):
    """How one dataset enters the mixture.

    Attributes:
        loss: name of a loss (``losses.py``).
        weight: factor on its loss, w in Σ p·w·L.
        cap: at most so many rows count and are used.
        share: factor on its capped rows where its probability is worked out (ours).
        margin: of the triplet loss; the stage's where absent.
        rows: rows of one batch of it; absent, the step's shared out over its datasets (ours). A loss whose
            negatives are the batch's other rows needs many.
    """

    loss: str
    weight: Annotated[float, Field(ge=0)] = 1.0
    cap: Count | None = None
    share: Positive = 1.0
    margin: Annotated[float, Field(ge=0, le=2)] | None = None
    rows: Count | None = None


class Length(Strict):
    """Texts are cut after ``tokens`` for this share of the steps."""

    share: Positive
    tokens: Annotated[int, Field(ge=4)]


class Grouping(Strict):
    """Rows of one context in a batch, and what is formed of their texts."""

    form: bool
    rows_per_context: Count
    min_gap: Annotated[float, Field(ge=0, le=2)]
    max_rows: Count


class Compute(Strict):
    """How it is computed; changes no number beyond rounding."""

    precision: Literal["fp32", "bf16"]
    tf32: bool
    gradient_checkpointing: bool
    flash_attention: bool
    chunk_tokens: Count


class ValidationSettings(Strict):
    """How often and on how much a stage is judged.

    Attributes:
        evaluations: of a stage, beside the one at its start.
        rows: validation rows of each dataset.
        rows_of: the same for datasets by pattern of their names, in place of ``rows``; the first that fits.
        reports: for retrieval.
    """

    evaluations: Count
    rows: Annotated[int, Field(ge=2)]
    rows_of: dict[str, Annotated[int, Field(ge=2)]]
    reports: Count

    def rows_for(self, dataset: str) -> int:
        """Return the validation rows of a dataset."""
        return next((n for pattern, n in self.rows_of.items() if fnmatch(dataset, pattern)), self.rows)


class Rule(Strict):
    """Which evaluation becomes the checkpoint (``checkpoints.choose``)."""

    score: dict[str, float]
    guard: dict[str, Annotated[float, Field(ge=0)]]


class StageSettings(Strict):
    """Everything that identifies a stage; see ``data/defaults.yaml`` for what each key means."""

    model: str
    after: str | None
    seed: int
    steps: Count | None
    batch: Count
    datasets_per_step: Count
    lr: Positive
    warmup: Share
    weight_decay: Annotated[float, Field(ge=0)]
    max_grad_norm: Positive
    adam_beta2: Annotated[float, Field(gt=0, lt=1)]
    dropout: Share | None
    merge: Share
    cap: Count | None
    lengths: Annotated[list[Length], Field(min_length=1)]
    losses: dict[str, dict[str, float]]
    grouping: Grouping
    compute: Compute
    validation: ValidationSettings
    checkpoint: Rule
    makes: dict[str, str]
    datasets: Annotated[dict[str, DatasetSettings], Field(min_length=1)]

    def tokens_at(self, share_done: float) -> int:
        """Return the length at which texts are cut when so much of the stage is done."""
        total, reached = sum(part.share for part in self.lengths), 0.0
        for part in self.lengths:
            reached += part.share / total
            if share_done < reached:
                return part.tokens
        return self.lengths[-1].tokens

    @property
    def max_tokens(self) -> int:
        """The longest text of the stage, in tokens."""
        return max(part.tokens for part in self.lengths)


@dataclass(frozen=True)
class Stage:
    """One stage: its name, its settings, the preset."""

    name: str
    preset: str
    settings: StageSettings


def names(kind: Literal["stage", "preset"]) -> list[str]:
    """Return the packaged stages or presets."""
    return sorted(path.stem for path in (_DATA / f"{kind}s").glob("*.yaml"))


def stage_name(word: str) -> str:
    """Return the stage's name for what ``--stage`` gives: a number, a name, or a file of one's own."""
    if word.endswith((".yaml", ".yml")):
        return Path(word).stem
    name = f"stage{word}" if word.isdigit() else word
    if name not in names("stage"):
        known = [*(stage.removeprefix("stage") for stage in names("stage")), "all"]
        raise RadgenError(f"--stage: {unknown('stage', word, known)}")
    return name


def load_stage(
    word: str, preset: str, *, files: Sequence[Path] = (), sets: Sequence[str] = (), **overrides: Any
) -> Stage:
    """Read a stage.

    Args:
        word: ``1``, ``2``, ``3``, another packaged stage, or the path of a stage file.
        preset: ``h100``, ``laptop`` or the path of a file.
        files: the user's YAML files, over everything before.
        sets: ``key=value`` each, the key dotted: ``lr=2e-5``, ``datasets.contrasts/size.weight=2``.
        overrides: top-level settings that are not None, from options of their own.

    Raises:
        RadgenError: an unknown stage, preset, key or value, with the nearest right one.
    """
    name = stage_name(word)
    if not preset.endswith((".yaml", ".yml")) and preset not in names("preset"):
        raise RadgenError(f"--preset: {unknown('preset', preset, names('preset'))}")
    sources = [
        _source(_DATA, "defaults"),
        _source(_DATA / "stages", word),
        _preset(_source(_DATA / "presets", preset), name),
        *(read_yaml(path) for path in files),
    ]
    data: dict[str, Any] = {}
    for source in sources:
        data = merge(data, source.data)
    data = merge(data, {key: value for key, value in overrides.items() if value is not None})
    settings = validate(StageSettings, data, sources)
    for dataset in settings.datasets:
        if "." in dataset:
            raise RadgenError(f"{sources[1].name}: datasets: {dataset}: a dataset's name may hold no dot")
    for text in sets:
        data = merge(data, _assignment(text, data))
        try:
            settings = StageSettings.model_validate(data)
        except ValidationError as error:
            raise RadgenError(f"--set {text}: {explain(error.errors()[0], StageSettings)}") from None
    return Stage(name, Path(preset).stem, settings)


def _source(folder: Path, name: str) -> Source:
    if name.endswith((".yaml", ".yml")):
        return read_yaml(Path(name))
    name = f"stage{name}" if name.isdigit() else name
    return read_yaml(folder / f"{name}.yaml", name=f"{name}.yaml", careful=False)


def _preset(source: Source, stage: str) -> Source:
    """Lay the part of a preset that is for one stage over the rest of it."""
    parts = source.data.pop("stages", None) or {}
    for name in parts:
        if name not in names("stage") and name != stage:
            raise RadgenError(f"{source.name}: stages: {unknown('stage', name, names('stage'))}")
    source.data = merge(source.data, parts.get(stage) or {})
    return source


def _assignment(text: str, data: dict[str, Any]) -> dict[str, Any]:
    """Turn ``a.b=value`` into a nested mapping; every part of the key must be there already."""
    key, equals, value = text.partition("=")
    if not equals or not key:
        raise RadgenError(f"--set {text}: expected KEY=VALUE, such as lr=2e-5")
    try:
        parsed = yaml.safe_load(value)
    except yaml.YAMLError:
        parsed = value
    path: list[str] = []
    here = data
    rest = key
    while rest:
        # The longest key that fits comes first: names of datasets may hold anything but a dot.
        word = rest if rest in here else rest.partition(".")[0]
        known: set[str] = set(here)
        if not path:
            known |= set(StageSettings.model_fields)
        elif len(path) == 2 and path[0] == "datasets":
            known |= set(DatasetSettings.model_fields)
        if word not in known and path not in _FREE:
            dotted = [".".join([*path, one]) for one in (word, *known)]
            raise RadgenError(f"--set {text}: {unknown('key', dotted[0], dotted[1:])}")
        path.append(word)
        rest = rest[len(word) + 1 :]
        below = here.get(word)
        if rest and not isinstance(below, dict):
            raise RadgenError(f"--set {text}: '{'.'.join(path)}' holds a value, not further keys")
        here = below if isinstance(below, dict) else {}
    nested: Any = parsed
    for word in reversed(path):
        nested = {word: nested}
    result: dict[str, Any] = nested
    return result


def as_data(model: BaseModel) -> dict[str, Any]:
    """Return settings as plain data for files."""
    return model.model_dump(mode="json")
