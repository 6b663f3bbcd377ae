"""Releasing a table once: declared domain, fresh key, grid values, and the law that comes with them.

Every error and warning depends on parameters and on the table's schema alone; what a cell holds can change
neither. The domain is public and chosen without looking at the data.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

import numpy as np

from privfit.accounting.validation import check_choice
from privfit.mechanisms.blocks import check_part, release_part
from privfit.mechanisms.categories import Categories
from privfit.mechanisms.columns import Column, as_columns
from privfit.mechanisms.domains import Domain, as_domains
from privfit.mechanisms.frames import Table, read_table
from privfit.mechanisms.grid import ROUNDINGS
from privfit.mechanisms.keystream import fresh_master, simulation_master
from privfit.mechanisms.law import Law
from privfit.mechanisms.product import Product
from privfit.mechanisms.selfcheck import check_machine

if TYPE_CHECKING:
    from privfit.mechanisms.guarantee import Guarantee

__all__ = ["Release", "release"]

Parts = list[tuple[tuple[Column, ...], Law, Any]]


@dataclass(frozen=True, eq=False, repr=False)
class Release:
    """A released table and everything an analyst may know about it.

    Attributes
    ----------
    frame : table or ndarray
        The released values, of the kind that came in.
    law : Law
        One law, or a Product.
    domain : Box, Ball, Categories or tuple of them
    columns : tuple of str or int
        Columns with noise, in the order of the table.
    public : tuple of str or int
        Columns published unchanged, which nothing protects.
    n_rows : int
    kind : str
        "numpy", "pandas", "polars" or "pyarrow".
    secure : bool
        False if the noise came from a reproducible source.
    names : tuple of str or int
        All columns, in the order of the table.
    rounding : str
        How values went to the grid: "nearest" or "stochastic".
    """

    frame: Any
    law: Law
    domain: Domain | tuple[Domain, ...]
    columns: tuple[Column, ...]
    public: tuple[Column, ...]
    n_rows: int
    kind: str
    secure: bool = True
    names: tuple[Column, ...] = field(default=())
    rounding: str = "nearest"

    def __repr__(self) -> str:
        state = "" if self.secure else ", secure=False"
        return f"Release({self.n_rows} rows, {self.kind}, law={self.law!r}{state})"

    @property
    def parts(self) -> dict[tuple[Column, ...], Law]:
        """The laws by the columns they released, in the order of the law's coordinates."""
        if isinstance(self.law, Product):
            return self.law.parts
        return {as_domains(self.domain)[0].columns: self.law}

    def guarantee(self) -> Guarantee:
        """Return the guarantee of this release, record and attribute level."""
        return self.law.guarantee(self.domain)

    def report(self) -> str:
        """Return the guarantee and its limits as text; warns when rows are expected to be exact.

        Returns
        -------
        str
        """
        from privfit.mechanisms.report import report

        return report(self)

    def save(self, path: Any, allow_insecure: bool = False) -> None:
        """Write the table as Parquet with the law in the file's metadata.

        Parameters
        ----------
        path : str or path
        allow_insecure : bool
            Write a release whose noise can be reproduced, too; the file says so.

        Raises
        ------
        ValueError
            If the release is not secure and `allow_insecure` is not set.
        """
        from privfit.mechanisms.files import save_release

        save_release(self, path, allow_insecure)


def release(
    data: Any,
    law: Any,
    domain: Any,
    public: Iterable[Column] | None = None,
    rng: Any = None,
    rounding: str = "nearest",
) -> Release:
    """Release every row of a table once.

    Parameters
    ----------
    data : ndarray, or pandas, polars or pyarrow table
        The private table, one row per person. Missing values become the domain's declared fill value, values
        outside are clipped (projected onto a ball), object cells that are no numbers count as missing.
    law : Law or mapping
        A law for all columns of `domain`, or ``{column or tuple of columns: law}``: independent parts.
    domain : Box, Ball, Categories or tuple of them
        Where the columns may lie, declared and public.
    public : iterable of str or int, optional
        Columns to publish unchanged. Nothing protects them.
    rng : int or Generator, optional
        Reproducible noise for simulations only. The release is marked ``secure=False``.
    rounding : {"nearest", "stochastic"}
        How x + noise goes to the grid, whose steps are less than a thousandth of the scale. "nearest" moves a
        row that is released without noise by up to half a step; "stochastic" rounds up with probability the
        fraction, so every value keeps its mean, for up to a quarter of a squared step of variance and one
        more random word per value. The guarantee is the same: both only look at x + noise.

    Returns
    -------
    Release
        Fresh memory, a new row index, columns in the order of `data`; every value on its declared grid.

    Raises
    ------
    TypeError, ValueError
        If parameters and schema do not fit together. Never because of a value of the data.

    Examples
    --------
    >>> from privfit.mechanisms import Box, Gaussian
    >>> out = release(np.array([[30.0], [41.0]]), Gaussian(20.0), Box({"age": (17, 90)}))
    >>> out
    Release(2 rows, numpy, law=Gaussian(scale=20.0))
    """
    check_choice("rounding", rounding, tuple(ROUNDINGS))
    domains = as_domains(domain)
    law = Product(law) if isinstance(law, Mapping) else law
    parts = _plan(law, domains)
    noisy = as_columns("the released columns", tuple(c for columns, _, _ in parts for c in columns))
    open_columns = as_columns("public", public) if public else ()
    as_columns("released and public columns together", noisy + open_columns)
    # An array without integer names has its columns in the order of the declarations.
    declared = tuple(c for d in domains for c in d.columns if c in noisy)
    table = read_table(data, declared + open_columns)
    _check_schema(table, noisy, open_columns)
    check_machine()
    master = fresh_master() if rng is None else simulation_master(rng)
    done: dict[Column, Any] = {column: table.public(column) for column in open_columns}
    for number, (columns, own, part) in enumerate(parts):
        if isinstance(part, Categories):
            codes = np.empty(table.rows, dtype=np.int64)
            release_part(own, part, [table.labels(columns[0])], [codes], master, number, rounding)
            done[columns[0]] = part.decode(codes)
        else:
            out = np.empty((len(columns), table.rows))
            cells = [table.numbers(c) for c in columns]
            release_part(own, part, cells, list(out), master, number, rounding)
            done.update(zip(columns, out, strict=True))
    del master
    names = tuple(name for name in table.names if name in done)
    return Release(
        frame=table.build({name: done[name] for name in names}),
        law=law,
        domain=domains if isinstance(domain, (tuple, list)) and len(domains) > 1 else domains[0],
        columns=tuple(name for name in names if name in noisy),
        public=tuple(name for name in names if name in open_columns),
        n_rows=table.rows,
        kind=table.kind,
        secure=rng is None,
        names=names,
        rounding=rounding,
    )


def _plan(law: Any, domains: tuple[Domain, ...]) -> Parts:
    """Pair every part's columns with its law and its part of the domain."""
    if isinstance(law, Product):
        parts: Parts = [
            (columns, own, part) for (columns, own), (_, part) in zip(law.items, law.resolve(domains), strict=True)
        ]
    elif isinstance(law, Law):
        if len(domains) != 1:
            raise ValueError(
                f"domain has {len(domains)} parts and law is one law: pass {{columns: law}} to say which law "
                "releases which columns."
            )
        parts = [(domains[0].columns, law, domains[0])]
    else:
        raise TypeError(f"law must be a law or a mapping {{columns: law}}, got {type(law).__name__}.")
    for _, own, part in parts:
        check_part(own, part)
    return parts


def _check_schema(table: Table, noisy: tuple[Column, ...], public: tuple[Column, ...]) -> None:
    wanted = noisy + public
    missing = [repr(c) for c in wanted if c not in table.names]
    if missing:
        # the names found are not repeated: in a file read without its header line they are somebody's values
        raise ValueError(
            f"data has no column {', '.join(missing)} among its {len(table.names)}; compare the names with the "
            "domain's, and make sure that the header line was read as one."
        )
    extra = [repr(c) for c in table.names if c not in wanted]
    if extra:
        raise ValueError(
            f"data has columns that no law releases: {', '.join(extra)}. Give them a law and a domain, "
            "list them in public, or drop them."
        )
