"""Learning from released data: corrected estimators with standard errors and the cost of privacy.

Examples
--------
>>> import numpy as np
>>> Mean().fit(np.array([[1.0], [3.0]])).mean_
array([2.])
"""

from privfit.estimators.efficiency import Efficiency
from privfit.estimators.errors import CapabilityError, RankDeficiencyWarning, SmallSampleWarning
from privfit.estimators.linear_regression import LinearRegression
from privfit.estimators.logistic_regression import LogisticRegression
from privfit.estimators.mean import Mean
from privfit.estimators.quantile import Quantile
from privfit.estimators.quantile_regression import QuantileRegression
from privfit.estimators.release_transformer import NewReleaseWarning, ReleaseTransformer

__all__ = [
    "CapabilityError",
    "Efficiency",
    "LinearRegression",
    "LogisticRegression",
    "Mean",
    "NewReleaseWarning",
    "Quantile",
    "QuantileRegression",
    "RankDeficiencyWarning",
    "ReleaseTransformer",
    "SmallSampleWarning",
]
