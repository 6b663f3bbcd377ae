"""Learning from released data: corrected estimators with standard errors and the cost of privacy.

Examples
--------
>>> import numpy as np
>>> Mean().fit(np.array([[1.0], [3.0]])).mean_
array([2.])
"""

from typing import TYPE_CHECKING

from privfit.estimators.efficiency import Efficiency
from privfit.estimators.errors import CapabilityError, RankDeficiencyWarning, SmallSampleWarning
from privfit.estimators.huber_regression import HuberRegression
from privfit.estimators.linear_regression import LinearRegression
from privfit.estimators.linear_svc import LinearSVC
from privfit.estimators.logistic_regression import LogisticRegression
from privfit.estimators.losses import Loss
from privfit.estimators.m_estimator import MEstimator
from privfit.estimators.mean import Mean
from privfit.estimators.poisson_regression import PoissonRegression
from privfit.estimators.principal_components import PrincipalComponents
from privfit.estimators.quantile import Quantile
from privfit.estimators.quantile_process import QuantileProcess
from privfit.estimators.quantile_regression import QuantileRegression
from privfit.estimators.release_transformer import NewReleaseWarning, ReleaseTransformer
from privfit.estimators.ridge import Ridge
from privfit.estimators.row_noise import RowNoise
from privfit.mechanisms.when_asked import when_asked

if TYPE_CHECKING:
    from privfit.estimators.bootstrap import Bootstrap as Bootstrap
    from privfit.estimators.formula import from_formula as from_formula
    from privfit.estimators.plan_report import PlanReport as PlanReport
    from privfit.estimators.plan_row import PlanRow as PlanRow
    from privfit.estimators.planning import plan as plan
    from privfit.estimators.regions import ConfidenceRegion as ConfidenceRegion
    from privfit.estimators.relu_network import ReluNetworkClassifier as ReluNetworkClassifier
    from privfit.estimators.relu_network import ReluNetworkRegressor as ReluNetworkRegressor

__all__ = [
    "Bootstrap",
    "CapabilityError",
    "ConfidenceRegion",
    "Efficiency",
    "HuberRegression",
    "LinearRegression",
    "LinearSVC",
    "LogisticRegression",
    "Loss",
    "MEstimator",
    "Mean",
    "NewReleaseWarning",
    "PlanReport",
    "PlanRow",
    "PoissonRegression",
    "PrincipalComponents",
    "Quantile",
    "QuantileProcess",
    "QuantileRegression",
    "RankDeficiencyWarning",
    "ReleaseTransformer",
    "ReluNetworkClassifier",
    "ReluNetworkRegressor",
    "Ridge",
    "RowNoise",
    "SmallSampleWarning",
    "from_formula",
    "plan",
]

__getattr__, __dir__ = when_asked(
    __name__,
    {
        "Bootstrap": "bootstrap",
        "ConfidenceRegion": "regions",
        "PlanReport": "plan_report",
        "PlanRow": "plan_row",
        "ReluNetworkClassifier": "relu_network",
        "ReluNetworkRegressor": "relu_network",
        "from_formula": "formula",
        "plan": "planning",
    },
)
