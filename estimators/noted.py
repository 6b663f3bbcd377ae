"""What a fit warned of is kept, so that its summary and diagnosis say it, too."""

from __future__ import annotations

import warnings
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from privfit.estimators.errors import SmallSampleWarning

__all__ = ["noted_warnings"]

_SAID_ELSEWHERE = ("released records are too few", "the estimate lies on", "the search did not", "exceeds half")


@contextmanager
def noted_warnings(model: Any) -> Iterator[None]:
    """Add the texts of each `SmallSampleWarning` to the cautions of a model, where no other diagnostic says the same.

    Every warning is issued as it was.

    Parameters
    ----------
    model : estimator
        Whose ``diagnostics_`` are set within.

    Examples
    --------
    >>> from types import SimpleNamespace
    >>> model = SimpleNamespace(diagnostics_={})
    >>> with warnings.catch_warnings(record=True), noted_warnings(model):
    ...     warnings.warn("about 2 of 4 records lie beyond.", SmallSampleWarning)
    >>> model.diagnostics_
    {'cautions': ['about 2 of 4 records lie beyond']}
    """
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        yield
    texts = [str(one.message).rstrip(".") for one in caught if issubclass(one.category, SmallSampleWarning)]
    said = [text for text in texts if not any(words in text[:60] for words in _SAID_ELSEWHERE)]
    if said:
        model.diagnostics_["cautions"] = [*model.diagnostics_.get("cautions", ()), *said]
    for one in caught:
        warnings.warn_explicit(one.message, one.category, one.filename, one.lineno)
