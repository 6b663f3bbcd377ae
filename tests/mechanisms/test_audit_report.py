"""What an audit reports, and how it refuses what it cannot audit."""

import json
import math

import numpy as np
import pytest

from privfit.accounting import gaussian
from privfit.mechanisms import Gaussian, RandomizedResponse
from privfit.mechanisms.auditing import audit, audit_noise
from tests.mutants import scale
from tests.mutants.cases import unit
from tests.mutants.functions import audited, noisy


def test_report_says_what_was_tested():
    report = audit(scale.other_scale(Gaussian(1.0), 0.5), unit(1), samples=5_000)
    text, data = str(report), report.to_dict()
    assert "ALARM" in text and "record: 0 = 0 against 0 = 1" in text and "1e-06" in text
    assert data["passed"] is False and len(data["tests"]) == len(report.tests) and data["claimed"]
    assert json.loads(json.dumps(data)) == data
    assert "no alarm" in str(audit(Gaussian(1.0), unit(1), samples=500))


def test_report_draws_the_curve_and_the_points():
    from matplotlib.figure import Figure

    report = audit(Gaussian(1.0), unit(1), samples=500)
    ax = Figure().add_subplot()
    assert report.plot(ax) is ax
    seen = ax.containers[0].lines[0]
    assert np.array_equal(seen.get_xdata(), [p.alpha for p in report.points])
    with pytest.raises(ValueError, match="no curve to draw"):
        audit_noise(np.random.default_rng(0).normal(size=200), Gaussian(1.0)).plot()


@pytest.mark.parametrize(
    ("call", "error", "words"),
    [
        (lambda: audit(3.0), TypeError, "mechanism must be a law"),
        (lambda: audit(Gaussian(1.0)), TypeError, "domain must be"),
        (lambda: audit(Gaussian(1.0), unit(1), samples=10), ValueError, "samples must be"),
        (lambda: audit(Gaussian(1.0), unit(1), false_alarm=0.9), ValueError, "false_alarm must be"),
        (lambda: audit(Gaussian(1.0), unit(1), false_alarm=math.nan), ValueError, "false_alarm must be"),
        (lambda: audit(Gaussian(1.0), unit(1), protect="column"), ValueError, "protect must be"),
        (lambda: audit(Gaussian(1.0), unit(1), rounding="up"), ValueError, "rounding must be"),
        (lambda: audit(Gaussian(1.0), unit(1), claimed=gaussian(1.0)), TypeError, "are for callables"),
        (lambda: audit(noisy), TypeError, "needs claimed="),
        (lambda: audit(noisy, unit(1), claimed=gaussian(1.0), inputs=(0, 1)), TypeError, "are for laws"),
        (lambda: audited(noisy, inputs=(1.0, 2.0, 3.0)), TypeError, "inputs must be a pair"),
        (lambda: audited(noisy, claimed=0.3), TypeError, "must be a TradeOffCurve"),
        (lambda: audited(noisy, score=3), TypeError, "score must be a callable"),
        (lambda: audited(noisy, vectorized=5), TypeError, "vectorized must be"),
        (lambda: audited(lambda x, n: np.zeros(n + 1)), ValueError, "must return n outputs"),
        (lambda: audited(lambda x, n: 3.0), TypeError, "must return n outputs"),
        (lambda: audited(lambda x: 1 / x), RuntimeError, r"raised ZeroDivisionError for inputs\[0\]"),
        (lambda: audited(noisy, score=lambda y: "a"), RuntimeError, "score raised"),
        (lambda: audited(noisy, score=lambda y: y[:5]), ValueError, "one number per output"),
        (lambda: audit_noise(np.zeros(5), Gaussian(1.0)), ValueError, "noise must be finite"),
        (lambda: audit_noise(np.full(500, np.inf), Gaussian(1.0)), ValueError, "noise must be finite"),
        (lambda: audit_noise(np.zeros((500, 2)), Gaussian((1.0, 1.0, 1.0))), ValueError, "3"),
        (lambda: audit_noise(np.zeros(500), RandomizedResponse(1.0)), TypeError, "law must add noise"),
        (lambda: audit_noise(lambda n, sizes=[200, 201]: np.zeros(sizes.pop()), Gaussian(1.0)), ValueError, "as many"),
    ],
)
def test_bad_input_is_refused_with_the_reason(call, error, words):
    with pytest.raises(error, match=words):
        call()
