"""privfit: fit the noise to a privacy budget, then fit models to the noisy data.

The names below are loaded when they are first used, so ``import privfit`` is cheap.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

__version__ = "0.1.0"

_HOMES = {
    "privfit.accounting": (
        "GDP",
        "Advantage",
        "Budget",
        "BudgetExceeded",
        "ErrorRates",
        "Ledger",
        "PrivacyFilter",
        "PrivacyOdometer",
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
    ),
    "privfit.mechanisms": (
        "AuditReport",
        "Ball",
        "Box",
        "Categories",
        "DiscreteLaplace",
        "Gaussian",
        "Laplace",
        "Product",
        "RandomizedResponse",
        "RecordBook",
        "Release",
        "SymmetricLaplace",
        "ZeroInflatedLaplace",
        "audit",
        "load_release",
        "open_release",
        "release",
        "release_dask",
        "release_file",
        "release_new",
    ),
    "privfit.estimators": (
        "HuberRegression",
        "LinearRegression",
        "LinearSVC",
        "LogisticRegression",
        "Loss",
        "MEstimator",
        "Mean",
        "PoissonRegression",
        "PrincipalComponents",
        "Quantile",
        "QuantileProcess",
        "QuantileRegression",
        "ReleaseTransformer",
        "Ridge",
        "RowNoise",
        "SmallSampleWarning",
        "from_formula",
        "plan",
    ),
    "privfit.datasets": ("load_adult",),
}
_HOME_OF = {name: home for home, names in _HOMES.items() for name in names}

_HIDDEN = ("Any", "TYPE_CHECKING", "annotations", "import_module")

__all__ = ["__version__", *sorted(_HOME_OF)]


def __getattr__(name: str) -> Any:
    if name not in _HOME_OF:
        raise AttributeError(f"module 'privfit' has no attribute {name!r}")
    value = getattr(import_module(_HOME_OF[name]), name)
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return sorted(name for name in {*globals(), *_HOME_OF} if name not in _HIDDEN)


if TYPE_CHECKING:
    from privfit.accounting import *  # noqa: F403
    from privfit.datasets import load_adult as load_adult
    from privfit.estimators import *  # noqa: F403
    from privfit.mechanisms import *  # noqa: F403
