"""Learning from released data: corrected estimators with standard errors and the cost of privacy.

Examples
--------
>>> import numpy as np
>>> Mean().fit(np.array([[1.0], [3.0]])).mean_
array([2.])
"""

from importlib import import_module
from typing import TYPE_CHECKING, Any

from privfit.estimators.efficiency import Efficiency
from privfit.estimators.errors import CapabilityError, RankDeficiencyWarning, SmallSampleWarning
from privfit.estimators.huber_regression import HuberRegression
from privfit.estimators.linear_regression import LinearRegression
from privfit.estimators.linear_svc import LinearSVC
from privfit.estimators.logistic_regression import LogisticRegression
from privfit.estimators.mean import Mean
from privfit.estimators.poisson_regression import PoissonRegression
from privfit.estimators.principal_components import PrincipalComponents
from privfit.estimators.quantile import Quantile
from privfit.estimators.quantile_regression import QuantileRegression
from privfit.estimators.release_transformer import NewReleaseWarning, ReleaseTransformer
from privfit.estimators.ridge import Ridge

if TYPE_CHECKING:
    from privfit.estimators.plan_report import PlanReport as PlanReport
    from privfit.estimators.plan_row import PlanRow as PlanRow
    from privfit.estimators.planning import plan as plan

__all__ = [
    "CapabilityError",
    "Efficiency",
    "HuberRegression",
    "LinearRegression",
    "LinearSVC",
    "LogisticRegression",
    "Mean",
    "NewReleaseWarning",
    "PlanReport",
    "PlanRow",
    "PoissonRegression",
    "PrincipalComponents",
    "Quantile",
    "QuantileRegression",
    "RankDeficiencyWarning",
    "ReleaseTransformer",
    "Ridge",
    "SmallSampleWarning",
    "plan",
]

_WHEN_ASKED = {
    "PlanReport": "privfit.estimators.plan_report",
    "PlanRow": "privfit.estimators.plan_row",
    "plan": "privfit.estimators.planning",
}
"""What most programs do not need is loaded when it is first asked for."""


def __getattr__(name: str) -> Any:
    if name not in _WHEN_ASKED:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    value = getattr(import_module(_WHEN_ASKED[name]), name)
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return sorted({*globals(), *_WHEN_ASKED})
