"""What every noise law is: a few formulas, free of data and of domain.

A law P_x is the distribution of the released record when the record is x. It states its trade-off curve
T(P_x, P_x') for neighbours x, x' in a declared domain; everything else (guarantees, calibration, release)
is derived from that curve and from the law's sampler.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Mapping
from dataclasses import fields
from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np
from numpy.typing import ArrayLike, NDArray

from privfit.accounting.validation import check_choice

if TYPE_CHECKING:
    from privfit.accounting import TradeOffCurve
    from privfit.mechanisms.guarantee import Guarantee
    from privfit.mechanisms.releasing import Release

__all__ = ["REGISTRY", "Law", "check_protect"]

Floats = NDArray[np.float64]

REGISTRY: dict[str, type[Law]] = {}
"""Every mechanism by the name it carries in files; filled as the classes are imported."""


def check_protect(protect: str) -> str:
    """Return `protect` if it is "record" or "attribute", or raise ValueError.

    Examples
    --------
    >>> check_protect("record")
    'record'
    """
    hint = "'record' protects a whole row, 'attribute' protects one column of it."
    choice: str = check_choice("protect", protect, ("record", "attribute"), hint=hint)
    return choice


def _brief(value: Any) -> str:
    if isinstance(value, tuple):
        return f"({', '.join(_brief(v) for v in value)})"
    return f"{value:.6g}" if isinstance(value, float) else repr(value)


class Law(ABC):
    """A noise law: immutable, comparable, picklable, and without a trace of any data set.

    A new mechanism is one frozen dataclass with a `mechanism` name and the abstract methods below, in a
    file of its own, imported once in ``mechanisms/__init__.py``; the contract tests then cover it.
    """

    mechanism: ClassVar[str] = ""

    def __init_subclass__(cls, **keywords: Any) -> None:
        """Enter the class in the registry under its file name."""
        super().__init_subclass__(**keywords)
        if "mechanism" in cls.__dict__:
            REGISTRY[cls.mechanism] = cls

    def __str__(self) -> str:
        """The law for people: numbers to six digits (`repr` gives them in full)."""
        plain = not hasattr(self, "__dataclass_fields__")
        names = [] if plain else [field.name for field in fields(self)]  # type: ignore[arg-type]
        shown = ", ".join(f"{name}={_brief(getattr(self, name))}" for name in names)
        return f"{type(self).__name__}({shown})"

    @abstractmethod
    def scales(self, dim: int) -> Floats:
        """Return the noise scale of each of `dim` coordinates, shape (dim,)."""

    @property
    @abstractmethod
    def variance(self) -> float | Floats:
        """Variance of the noise: a float, or one number per coordinate."""

    @abstractmethod
    def characteristic_function(self, t: ArrayLike) -> float | Floats:
        """Return E exp(i t'Z) for t of shape (..., dim): shape (...)."""

    @abstractmethod
    def tradeoff(self, domain: Any, protect: str = "record") -> TradeOffCurve:
        """Return the curve of the stated law for neighbours in `domain` (no numerical slack)."""

    @abstractmethod
    def slack(self, domain: Any) -> float:
        """Return eta, the total variation per row between the sampler and the stated law."""

    def guarantee(self, domain: Any, releases: int = 1) -> Guarantee:
        """Return what a release under this law promises, record and attribute level, slack included.

        Parameters
        ----------
        domain : Box, Ball, Categories or tuple of them
            The declared domain.
        releases : int
            Number of releases of the same records, each with new noise, that the promise is to cover together.

        Returns
        -------
        Guarantee
            Curves with the sampler's slack charged; prints as a table.
        """
        from privfit.mechanisms.guarantee import Guarantee

        return Guarantee.of(self, domain, releases)

    def release(self, data: Any, domain: Any, **options: Any) -> Release:
        """Release every row of `data` once under this law.

        Parameters
        ----------
        data : pandas, polars or pyarrow table, or array of shape (n, dim)
            The private table.
        domain : Box, Ball or Categories
            Declared bounds, never computed from `data`.
        **options
            ``public``, ``rng``, ``rounding``, ``ledger``, ``label``, ``part`` and ``protect``, as in
            `privfit.mechanisms.release`.

        Returns
        -------
        Release
        """
        from privfit.mechanisms.releasing import release

        return release(data, self, domain=domain, **options)

    @property
    def exact_fraction(self) -> float:
        """Probability that a row (or one of its parts) comes out without noise, rounding apart."""
        return 0.0

    def to_dict(self) -> dict[str, Any]:
        """Return the law as plain numbers and strings, ready for JSON; `from_dict` reads it back."""
        out: dict[str, Any] = {"mechanism": self.mechanism}
        for field in fields(self):  # type: ignore[arg-type]
            value = getattr(self, field.name)
            out[field.name] = list(value) if isinstance(value, tuple) else value
        return out

    @classmethod
    def from_dict(cls, d: Mapping[str, Any]) -> Law:
        """Build a law from what `to_dict` wrote.

        Parameters
        ----------
        d : mapping
            ``{"mechanism": name, parameter: value, ...}``.

        Returns
        -------
        Law
            Of the class named by ``d["mechanism"]``.

        Raises
        ------
        TypeError
            If `d` is no mapping.
        ValueError
            If the mechanism is unknown, is not of this class, or its parameters do not fit.

        Examples
        --------
        >>> from privfit.mechanisms import Gaussian, Law
        >>> Law.from_dict({"mechanism": "gaussian", "scale": 2.0})
        Gaussian(scale=2.0)
        """
        if not isinstance(d, Mapping):
            raise TypeError(f"a law is read from a mapping, got {type(d).__name__}. Pass what to_dict returned.")
        name = d.get("mechanism")
        known = REGISTRY.get(name) if isinstance(name, str) else None
        if known is None or not issubclass(known, cls):
            allowed = ", ".join(repr(k) for k, v in sorted(REGISTRY.items()) if issubclass(v, cls))
            raise ValueError(f"mechanism must be one of {allowed}, got {name!r}. Pass what to_dict returned.")
        return known._from_parameters({key: value for key, value in d.items() if key != "mechanism"})

    @classmethod
    def _from_parameters(cls, parameters: dict[str, Any]) -> Law:
        expected = {field.name for field in fields(cls)}  # type: ignore[arg-type]
        if set(parameters) != expected:
            raise ValueError(
                f"a law {cls.mechanism!r} is read from exactly the parameters {sorted(expected)}, "
                f"got {sorted(map(str, parameters))}. Pass what to_dict returned."
            )
        return cls(**parameters)
