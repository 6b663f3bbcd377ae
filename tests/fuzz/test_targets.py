"""A short, repeatable portion of the fuzz run; ``make fuzz`` runs the rest."""

import sys
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings

sys.path.insert(0, str(Path(__file__).parent))

from targets import TARGETS

EXAMPLES = {"laws": 200, "domains": 200, "files": 60, "metadata": 60, "releases": 20}


@pytest.mark.parametrize("name", TARGETS)
def test_target(name):
    strategy, check = TARGETS[name]
    few = settings(
        max_examples=EXAMPLES[name],
        deadline=None,
        derandomize=True,
        database=None,
        suppress_health_check=list(HealthCheck),
    )
    few(given(strategy)(check))()
