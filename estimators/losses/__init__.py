"""Index losses, one a file; `IndexLoss` is the contract.

Examples
--------
>>> CheckLoss(0.5).value([-2.0, 2.0])
array([1., 1.])
"""

from privfit.estimators.losses.absolute import AbsoluteLoss
from privfit.estimators.losses.base import IndexLoss
from privfit.estimators.losses.check import CheckLoss, SmoothedCheckLoss
from privfit.estimators.losses.clipped_square import ClippedSquareLoss
from privfit.estimators.losses.exponential import ExponentialLoss
from privfit.estimators.losses.hinge import HingeLoss
from privfit.estimators.losses.huber import HuberLoss
from privfit.estimators.losses.indicator import IndicatorLoss
from privfit.estimators.losses.logistic import LogisticLoss
from privfit.estimators.losses.polynomial import PolynomialLoss
from privfit.estimators.losses.randomized_label import RandomizedLabelLoss
from privfit.estimators.losses.relu import ReluLoss
from privfit.estimators.losses.sinusoid import CosineLoss, SineLoss
from privfit.estimators.losses.smoothed import SmoothedLoss
from privfit.estimators.losses.squared import SquaredLoss
from privfit.estimators.losses.squared_hinge import SquaredHingeLoss

Loss = IndexLoss
"""Public name of `IndexLoss`, with the constructor ``Loss.from_expression``."""

__all__ = [
    "AbsoluteLoss",
    "CheckLoss",
    "ClippedSquareLoss",
    "CosineLoss",
    "ExponentialLoss",
    "HingeLoss",
    "HuberLoss",
    "IndexLoss",
    "IndicatorLoss",
    "LogisticLoss",
    "Loss",
    "PolynomialLoss",
    "RandomizedLabelLoss",
    "ReluLoss",
    "SineLoss",
    "SmoothedCheckLoss",
    "SmoothedLoss",
    "SquaredHingeLoss",
    "SquaredLoss",
]
