"""What a release will do, said in parameters alone: which law releases which columns of which domain.

A plan is made and checked before a cell is read, knows nothing of the data, and is all that a worker needs, beside
the master key and the number of its first row, to release some rows of a table.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from privfit.accounting.validation import check_choice
from privfit.mechanisms.blocks import check_part, release_part
from privfit.mechanisms.categories import Categories
from privfit.mechanisms.columns import Column, as_columns
from privfit.mechanisms.domains import Domain, as_domains
from privfit.mechanisms.grid import ROUNDINGS
from privfit.mechanisms.keystream import KEY_BYTES
from privfit.mechanisms.law import Law
from privfit.mechanisms.product import Product

if TYPE_CHECKING:
    from privfit.mechanisms.frames import Table
    from privfit.mechanisms.guarantee import Guarantee

__all__ = ["Part", "Plan", "plan_release"]

Part = tuple[tuple[Column, ...], Law, Any]


@dataclass(frozen=True)
class Plan:
    """A checked release before its data (see `plan_release`).

    Attributes
    ----------
    law : Law
        One law, or a Product.
    domains : tuple of Box, Ball or Categories
    public : tuple of str or int
        Columns published unchanged.
    rounding : str
    """

    law: Law
    domains: tuple[Domain, ...]
    public: tuple[Column, ...] = ()
    rounding: str = "nearest"

    @property
    def domain(self) -> Domain | tuple[Domain, ...]:
        """The domain as it was declared: one part, or a tuple of several."""
        return self.domains[0] if len(self.domains) == 1 else self.domains

    @property
    def parts(self) -> list[Part]:
        """The columns, the law and the domain of every part, in the order of the law's coordinates."""
        if isinstance(self.law, Product):
            resolved = self.law.resolve(self.domains)
            return [(columns, own, part) for (columns, own), (_, part) in zip(self.law.items, resolved, strict=True)]
        return [(self.domains[0].columns, self.law, self.domains[0])]

    @property
    def noisy(self) -> tuple[Column, ...]:
        """Columns that a law releases, in the order of the domain's declarations."""
        released = {column for columns, _, _ in self.parts for column in columns}
        return tuple(c for domain in self.domains for c in domain.columns if c in released)

    @property
    def columns(self) -> tuple[Column, ...]:
        """All columns that leave: those with noise, then the public ones."""
        return self.noisy + self.public

    def guarantee(self) -> Guarantee:
        """Return what the release promises."""
        return self.law.guarantee(self.domain)

    def order(self, names: Sequence[Column]) -> tuple[Column, ...]:
        """Return the names of a table, in their order, after a check that they are the columns of the plan.

        Parameters
        ----------
        names : sequence of str or int

        Raises
        ------
        ValueError
            If a column of the plan is not there, or the table has columns that the plan does not name.
        """
        wanted = self.columns
        missing = [repr(c) for c in wanted if c not in names]
        if missing:
            # the names found are not repeated: in a file read without its header line they are somebody's values
            raise ValueError(
                f"data has no column {', '.join(missing)} among its {len(names)}; compare the names with the "
                "domain's, and make sure that the header line was read as one."
            )
        extra = [repr(c) for c in names if c not in wanted]
        if extra:
            raise ValueError(
                f"data has columns that no law releases: {', '.join(extra)}. Give them a law and a domain, "
                "list them in public, or drop them."
            )
        return tuple(names)

    def check_schema(self, table: Table) -> tuple[Column, ...]:
        """Raise whatever is wrong with the names and types of a table, from its schema alone; return its names.

        Parameters
        ----------
        table : Table

        Raises
        ------
        TypeError, ValueError
            As `order`, and if a column has a type that cannot be read.
        """
        names = self.order(table.names)
        self.release_rows(table.without_rows(), bytes(KEY_BYTES))
        return names

    def public_columns(self, table: Table) -> dict[Column, Any]:
        """Return fresh copies of the columns that are published unchanged.

        Parameters
        ----------
        table : Table
        """
        return {column: table.public(column) for column in self.public}

    def release_rows(
        self, table: Table, master: bytes, first: int = 0, public: Mapping[Column, Any] | None = None
    ) -> dict[Column, Any]:
        """Return the released columns of a table, or of some consecutive rows of one.

        Parameters
        ----------
        table : Table
            Its names passed `order`.
        master : bytes
            The release's master key: the same key, number and rows give the same bytes.
        first : int
            Number of the table's first row in the whole.
        public : mapping, optional
            What `public_columns` returned, where it was asked before.

        Returns
        -------
        dict
            ``{column: values}`` in the order of `table`; fresh memory.
        """
        done = dict(self.public_columns(table) if public is None else public)
        for number, (columns, own, part) in enumerate(self.parts):
            cells = table.cells(part)
            if isinstance(part, Categories):
                codes = np.empty(table.rows, dtype=np.int64)
                release_part(own, part, cells, [codes], master, number, self.rounding, first)
                done[columns[0]] = part.decode(codes)
            else:
                out = np.empty((len(columns), table.rows))
                release_part(own, part, cells, list(out), master, number, self.rounding, first)
                done.update(zip(columns, out, strict=True))
        return {name: done[name] for name in table.names}


def plan_release(law: Any, domain: Any, public: Iterable[Column] | None = None, rounding: str = "nearest") -> Plan:
    """Check the parameters of a release and return them as a plan.

    Parameters
    ----------
    law : Law or mapping
        A law for all columns of `domain`, or ``{column or tuple of columns: law}``.
    domain : Box, Ball, Categories or tuple of them
    public : iterable of str or int, optional
    rounding : {"nearest", "stochastic"}

    Returns
    -------
    Plan

    Raises
    ------
    TypeError, ValueError
        If the parameters do not fit together.

    Examples
    --------
    >>> from privfit.mechanisms import Box, Gaussian
    >>> plan_release(Gaussian(20.0), Box({"age": (17, 90)}), public=["state"]).columns
    ('age', 'state')
    """
    check_choice("rounding", rounding, tuple(ROUNDINGS))
    domains = as_domains(domain)
    law = Product(law) if isinstance(law, Mapping) else law
    if not isinstance(law, Law):
        raise TypeError(f"law must be a law or a mapping {{columns: law}}, got {type(law).__name__}.")
    if not isinstance(law, Product) and len(domains) != 1:
        raise ValueError(
            f"domain has {len(domains)} parts and law is one law: pass {{columns: law}} to say which law "
            "releases which columns."
        )
    open_columns = as_columns("public", public) if public else ()
    plan = Plan(law, domains, open_columns, rounding)
    for _, own, part in plan.parts:
        check_part(own, part)
    as_columns("released and public columns together", plan.columns)
    return plan
