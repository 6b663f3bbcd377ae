"""Accounting: what a noise law guarantees, as an exact trade-off curve."""

from privfit.accounting.base import Precision, TradeOffCurve
from privfit.accounting.calibration import GDP, Advantage, Budget, ErrorRates, Target, calibrate
from privfit.accounting.composition import compose
from privfit.accounting.discrete import approximate_dp, from_points, from_profile, randomized_response
from privfit.accounting.gaussian import gaussian
from privfit.accounting.laplace import laplace
from privfit.accounting.limit import limit_noise, symmetric_laplace_limit, zil_limit
from privfit.accounting.symmetric_laplace import symmetric_laplace, zil
from privfit.accounting.wrappers import minimum, shifted, zero_inflated

__all__ = [
    "GDP",
    "Advantage",
    "Budget",
    "ErrorRates",
    "Precision",
    "Target",
    "TradeOffCurve",
    "approximate_dp",
    "calibrate",
    "compose",
    "from_points",
    "from_profile",
    "gaussian",
    "laplace",
    "limit_noise",
    "minimum",
    "randomized_response",
    "shifted",
    "symmetric_laplace",
    "symmetric_laplace_limit",
    "zero_inflated",
    "zil",
    "zil_limit",
]
