"""A short, repeatable portion of the fuzz run; ``make fuzz`` runs the rest."""

import sys
from pathlib import Path

import pytest
from hypothesis import HealthCheck, Phase, given, settings

sys.path.insert(0, str(Path(__file__).parent))

import targets
from targets import TARGETS

from privfit.mechanisms import reader, record_checks

EXAMPLES = {"laws": 60, "domains": 60, "files": 30, "metadata": 40, "releases": 8}


def run(name, examples, **options):
    strategy, check = TARGETS[name]
    few = settings(
        max_examples=examples,
        deadline=None,
        derandomize=True,
        database=None,
        suppress_health_check=list(HealthCheck),
        **options,
    )
    few(given(strategy)(check))()


@pytest.mark.parametrize("name", TARGETS)
def test_target(name):
    run(name, EXAMPLES[name])


def test_the_targets_bite(monkeypatch):
    """Without the digests of the rows, or the checksum of the record, damage gets through, and is found."""
    targets.record()
    with monkeypatch.context() as without, pytest.raises(AssertionError):
        without.setattr(reader, "check_piece", lambda *_: None)
        run("files", 200, phases=[Phase.generate])
    with monkeypatch.context() as without, pytest.raises(AssertionError):
        without.setattr(record_checks, "checksum", lambda _: targets.record()["checksum"])
        run("metadata", 400, phases=[Phase.generate])
