"""Errors and warnings of the estimators: each says what is missing and what to use instead."""

from __future__ import annotations

__all__ = ["CapabilityError", "RankDeficiencyWarning", "SmallSampleWarning"]


class CapabilityError(NotImplementedError, ValueError):
    """A loss and a noise law have no exact correction; the message names the missing piece and a way out.

    Examples
    --------
    >>> from privfit.estimators.losses import LogisticLoss
    >>> from privfit.estimators.symbols import Symbol
    >>> LogisticLoss().apply([0.0], Symbol(heat=0.5))
    Traceback (most recent call last):
        ...
    privfit.estimators.errors.CapabilityError: the logistic loss has no exact correction under Gaussian noise...
    """


class SmallSampleWarning(UserWarning):
    """The released sample is too small for this noise: the estimate is not a usable interior minimum.

    Examples
    --------
    >>> issubclass(SmallSampleWarning, UserWarning)
    True
    """


class RankDeficiencyWarning(UserWarning):
    """Some coefficients are not identified by the columns (collinear, constant, or more than rows).

    Examples
    --------
    >>> issubclass(RankDeficiencyWarning, UserWarning)
    True
    """
