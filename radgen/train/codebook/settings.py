"""The numbers of ``data/codebook.yaml``, checked when they are read."""

from __future__ import annotations

import functools
from pathlib import Path
from typing import Annotated

from pydantic import Field

from radgen.ontology.schema import Strict
from radgen.yamlfile import read_yaml, validate

Count = Annotated[int, Field(ge=1)]


class CodebookSettings(Strict):
    """``codebook.yaml``."""

    leave_out: bool
    vectors: Count
    iterations: Count
    seed: int
    batch: Count
    encode_batch: Count
    max_tokens: Annotated[int, Field(ge=4)]
    least_validation: Count


@functools.cache
def codebook_settings() -> CodebookSettings:
    """Return the packaged settings."""
    path = Path(__file__).parent / "data" / "codebook.yaml"
    source = read_yaml(path, name="radgen/train/codebook/data/codebook.yaml", careful=False)
    return validate(CodebookSettings, source.data, [source])
