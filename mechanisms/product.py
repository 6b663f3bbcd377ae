r"""A product law: parts of the record released independently, each by its own law.

The record's curve is the composition of the parts' curves, an attribute lives in one part only, so the
attribute's curve is the worst (lower convex envelope of the minimum) of the parts' attribute curves.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, ClassVar, Self

import numpy as np
from numpy.typing import ArrayLike, NDArray

from privfit.accounting.validation import check_array
from privfit.mechanisms.columns import Column, as_columns
from privfit.mechanisms.domains import find_domain
from privfit.mechanisms.law import Law, check_protect

if TYPE_CHECKING:
    from privfit.accounting import TradeOffCurve

__all__ = ["Product"]

Floats = NDArray[np.float64]
Part = tuple[tuple[Column, ...], Law]


@dataclass(frozen=True, init=False, repr=False)
class Product(Law):
    """Independent laws for disjoint sets of columns.

    Parameters
    ----------
    parts : mapping
        ``{column or tuple of columns: law}``; a column is a name, or an integer position of an array.

    Examples
    --------
    >>> from privfit.mechanisms import Gaussian, RandomizedResponse
    >>> law = Product({("age", "hours"): Gaussian(1.0), "income": RandomizedResponse(1.0)})
    >>> law.columns
    ('age', 'hours', 'income')
    """

    items: tuple[Part, ...]
    mechanism: ClassVar[str] = "product"

    def __init__(self, parts: Mapping[Any, Law]) -> None:
        if not isinstance(parts, Mapping) or not parts:
            raise TypeError("parts must be a non-empty mapping {column or tuple of columns: law}.")
        items: list[Part] = []
        for key, law in parts.items():
            columns = as_columns("a key of parts", key if isinstance(key, tuple) else (key,))
            if not isinstance(law, Law) or isinstance(law, Product):
                raise TypeError(f"parts[{key!r}] must be a law other than Product, got {type(law).__name__}.")
            if law.mechanism == "randomized_response":
                if len(columns) != 1:
                    raise ValueError(f"RandomizedResponse releases one column, got {key!r}; give each its own.")
            else:
                law.scales(len(columns))
            items.append((columns, law))
        as_columns("the columns of parts", tuple(c for columns, _ in items for c in columns))
        object.__setattr__(self, "items", tuple(items))

    def __repr__(self) -> str:
        inner = ", ".join(f"{cols[0] if len(cols) == 1 else cols!r}: {law!r}" for cols, law in self.items)
        return f"Product({{{inner}}})"

    def __str__(self) -> str:
        inner = ", ".join(f"{cols[0] if len(cols) == 1 else cols!r}: {law}" for cols, law in self.items)
        return f"Product({{{inner}}})"

    @property
    def parts(self) -> dict[tuple[Column, ...], Law]:
        """The laws by their tuples of columns (a fresh dictionary)."""
        return dict(self.items)

    @property
    def columns(self) -> tuple[Column, ...]:
        """All released columns, in the order of the parts."""
        return tuple(column for columns, _ in self.items for column in columns)

    def _additive(self) -> list[Part]:
        return [part for part in self.items if part[1].mechanism != "randomized_response"]

    def scales(self, dim: int) -> Floats:
        """Return the scales of the columns with added noise, in the order of the parts.

        Parameters
        ----------
        dim : int
            Number of such columns.

        Returns
        -------
        ndarray of shape (dim,)
        """
        parts = self._additive()
        total = sum(len(columns) for columns, _ in parts)
        if dim != total or not parts:
            raise ValueError(f"dim must be {total}, the number of columns with added noise, got {dim!r}.")
        return np.concatenate([law.scales(len(columns)) for columns, law in parts])

    @property
    def variance(self) -> float | Floats:
        """Variances of the columns with added noise, in the order of the parts."""
        parts = self._additive()
        return np.concatenate([np.zeros(0), *(np.broadcast_to(law.variance, len(cols)) for cols, law in parts)])

    def characteristic_function(self, t: ArrayLike) -> float | Floats:
        """Return the product of the parts' characteristic functions over the columns with added noise."""
        points = np.atleast_1d(check_array("t", t))
        parts = self._additive()
        self.scales(points.shape[-1])
        out = np.ones(points.shape[:-1])
        start = 0
        for columns, law in parts:
            out = out * law.characteristic_function(points[..., start : start + len(columns)])
            start += len(columns)
        return float(out) if out.ndim == 0 else out

    def tradeoff(self, domain: Any, protect: str = "record") -> TradeOffCurve:
        """Return the composition (record) or the worst (attribute) of the parts' curves."""
        from privfit.accounting import minimum

        check_protect(protect)
        curves = [law.tradeoff(part, protect) for law, part in self.resolve(domain)]
        if len(curves) == 1:
            return curves[0]
        return curves[0].compose(*curves[1:]) if protect == "record" else minimum(*curves)

    def resolve(self, domain: Any) -> list[tuple[Law, Any]]:
        """Return every part's law with the part of `domain` that its columns live in."""
        return [(law, find_domain(domain, columns)) for columns, law in self.items]

    def slack(self, domain: Any) -> float:
        """Return the sum of the parts' slacks."""
        return sum(law.slack(part) for law, part in self.resolve(domain))

    @property
    def exact_fraction(self) -> float:
        """Largest probability that a part of a row comes out without noise."""
        return max(law.exact_fraction for _, law in self.items)

    @classmethod
    def calibrate(cls, *args: Any, **kwargs: Any) -> Self:
        """Refuse: a budget has to be divided between the parts first."""
        raise TypeError(
            "Product has no calibrate: privfit.mechanisms.calibrate_parts finds the laws of all parts for one target."
        )

    def to_dict(self) -> dict[str, Any]:
        """Return the parts as plain lists, ready for JSON."""
        parts = [{"columns": list(columns), "law": law.to_dict()} for columns, law in self.items]
        return {"mechanism": self.mechanism, "parts": parts}

    @classmethod
    def _from_parameters(cls, parameters: dict[str, Any]) -> Law:
        try:
            return cls({tuple(p["columns"]): Law.from_dict(p["law"]) for p in parameters.pop("parts")})
        except (KeyError, AttributeError) as error:
            raise ValueError("a product law is read from {'parts': [{'columns', 'law'}, ...]}.") from error
