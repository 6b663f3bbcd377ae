"""Shared material of the mechanism tests."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

from privfit.mechanisms import Box


def square(dim: int) -> Box:
    """The box [-1, 1]^dim."""
    return Box(dict.fromkeys(range(dim), (-1, 1)))


@pytest.fixture
def unit_noise() -> Callable[..., np.ndarray]:
    """Noise of a law through the real release path: `rows` releases of the origin, reproducible."""

    def draw(law: Any, rows: int, dim: int, key: int = 1) -> np.ndarray:
        return law.release(np.zeros((rows, dim)), square(dim), rng=key).frame

    return draw
