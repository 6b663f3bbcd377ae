"""Accounting: what a noise law guarantees, as an exact trade-off curve."""

from privfit.accounting.adaptive import PrivacyFilter, PrivacyOdometer
from privfit.accounting.attacks import attack_success, reconstruction_robustness
from privfit.accounting.base import Precision, TradeOffCurve
from privfit.accounting.calibration import calibrate
from privfit.accounting.composition import compose
from privfit.accounting.discrete import (
    approximate_dp,
    from_distributions,
    from_losses,
    from_points,
    from_profile,
    randomized_response,
)
from privfit.accounting.discrete_noise import discrete_gaussian, discrete_laplace
from privfit.accounting.empirical import empirical
from privfit.accounting.exponential_mechanism import exponential_mechanism
from privfit.accounting.gaussian import gaussian
from privfit.accounting.generalized_gaussian import generalized_gaussian
from privfit.accounting.group import group
from privfit.accounting.iterations import IterationNoise, calibrate_iterations
from privfit.accounting.l2_laplace import l2_laplace
from privfit.accounting.laplace import laplace
from privfit.accounting.ledger import BudgetExceeded, Entry, Ledger
from privfit.accounting.limit import limit_noise, symmetric_laplace_limit, zil_limit
from privfit.accounting.parallel import parallel
from privfit.accounting.renyi import rdp
from privfit.accounting.renyi_conversion import from_rdp, from_zcdp
from privfit.accounting.risk import bayes_risk, posterior_odds, posterior_probability, predictive_values
from privfit.accounting.shuffling import shuffled
from privfit.accounting.subsampling import subsample
from privfit.accounting.symmetric_laplace import symmetric_laplace, zil
from privfit.accounting.symmetrized import symmetrized
from privfit.accounting.targets import GDP, Advantage, Budget, ErrorRates, Target
from privfit.accounting.unary_encoding import (
    optimized_unary_encoding,
    symmetric_unary_encoding,
    unary_encoding,
)
from privfit.accounting.wrappers import minimum, shifted, zero_inflated
from privfit.accounting.zcdp import zcdp

__all__ = [
    "GDP",
    "Advantage",
    "Budget",
    "BudgetExceeded",
    "Entry",
    "ErrorRates",
    "IterationNoise",
    "Ledger",
    "Precision",
    "PrivacyFilter",
    "PrivacyOdometer",
    "Target",
    "TradeOffCurve",
    "approximate_dp",
    "attack_success",
    "bayes_risk",
    "calibrate",
    "calibrate_iterations",
    "compose",
    "discrete_gaussian",
    "discrete_laplace",
    "empirical",
    "exponential_mechanism",
    "from_distributions",
    "from_losses",
    "from_points",
    "from_profile",
    "from_rdp",
    "from_zcdp",
    "gaussian",
    "generalized_gaussian",
    "group",
    "l2_laplace",
    "laplace",
    "limit_noise",
    "minimum",
    "optimized_unary_encoding",
    "parallel",
    "posterior_odds",
    "posterior_probability",
    "predictive_values",
    "randomized_response",
    "rdp",
    "reconstruction_robustness",
    "shifted",
    "shuffled",
    "subsample",
    "symmetric_laplace",
    "symmetric_laplace_limit",
    "symmetric_unary_encoding",
    "symmetrized",
    "unary_encoding",
    "zcdp",
    "zero_inflated",
    "zil",
    "zil_limit",
]
