"""Releasing a table once: declared domain, fresh key, grid values, and the law that comes with them.

Every error and warning depends on parameters and on the table's schema alone; what a cell holds can change
neither. The domain is public and chosen without looking at the data.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any

from privfit.mechanisms.charging import spending
from privfit.mechanisms.columns import Column
from privfit.mechanisms.domains import Domain, as_domains
from privfit.mechanisms.frames import read_table
from privfit.mechanisms.keystream import fresh_master, simulation_master
from privfit.mechanisms.law import Law
from privfit.mechanisms.plan import plan_release
from privfit.mechanisms.product import Product
from privfit.mechanisms.rows import choose_rows
from privfit.mechanisms.selfcheck import check_machine

if TYPE_CHECKING:
    from privfit.accounting import Ledger
    from privfit.mechanisms.guarantee import Guarantee

__all__ = ["Release", "release"]


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

    def subset(self, rows: Any) -> Release:
        """Some rows of the release with its law, to fit a model to a group of persons.

        Choose them by public columns, or at random. Rows chosen by a column with noise are chosen by its noise too,
        and no correction knows of that.

        Parameters
        ----------
        rows : array of bool, shape (n_rows,)
            Which rows to keep; a Series of any library will do.

        Returns
        -------
        Release
            Without the old row index.

        Raises
        ------
        TypeError, ValueError
            If `rows` is no mask over all rows; a row cannot be taken twice, for it would count as two persons.

        Examples
        --------
        >>> import numpy as np
        >>> from privfit.mechanisms import Box, Laplace
        >>> out = release(np.arange(6.0).reshape(3, 2), Laplace(3.0), Box({0: (0, 5)}), public=[1])
        >>> out.subset(out.frame[:, 1] > 2.0)
        Release(2 rows, numpy, law=Laplace(scale=3.0))
        """
        frame, kept = choose_rows(self.frame, rows, self.n_rows)
        return replace(self, frame=frame, n_rows=kept)

    def save(self, path: Any, allow_insecure: bool = False, overwrite: bool = False) -> None:
        """Write the table with its law; the ending of the name decides the format.

        Parameters
        ----------
        path : str or path
            ``.parquet``, ``.arrow``, or ``.csv``, whose law lies beside it in ``name.csv.law.json``; without an ending,
            a folder of Parquet parts.
        allow_insecure : bool
            Write a release whose noise can be reproduced, too; the file says so.
        overwrite : bool
            Replace an existing file, as a whole. It may be the private table, or a release that somebody has.

        Raises
        ------
        ValueError
            If the release is not secure and `allow_insecure` is not set, or the ending is unknown.
        FileExistsError
            If there is a file of that name and `overwrite` is not set, or a folder that holds something.
        """
        from privfit.mechanisms.files import save_release

        save_release(self, path, allow_insecure, overwrite)


def release(
    data: Any,
    law: Any,
    domain: Any,
    public: Iterable[Column] | None = None,
    rng: Any = None,
    rounding: str = "nearest",
    *,
    ledger: Ledger | None = None,
    label: str = "",
    part: str | None = None,
    protect: str = "record",
) -> Release:
    """Release every row of a table once.

    Parameters
    ----------
    data : ndarray, or pandas, polars or pyarrow table
        The private table, one row per person. Missing values become the domain's declared fill value, values
        outside are clipped (projected onto a ball). Columns are read by their types: a data frame's column of
        objects is refused where numbers or dates are wanted; in an array of objects, cells that are none count as
        missing, and a warning says so.
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
    ledger : Ledger, optional
        Writes down what the release promises, slack included, before any noise is drawn, or refuses it.
    label, part : str, optional
        Name of the ledger's entry, and the group of records it is about (disjoint groups do not add up).
    protect : {"record", "attribute"}
        The level at which `ledger` counts.

    Returns
    -------
    Release
        Fresh memory, a new row index, columns in the order of `data`; every value on its declared grid.

    Raises
    ------
    TypeError, ValueError
        If parameters and schema do not fit together. Never because of a value of the data.
    BudgetExceeded
        If the ledger refuses; nothing has been released then.

    Examples
    --------
    >>> import numpy as np
    >>> from privfit.mechanisms import Box, Gaussian
    >>> out = release(np.array([[30.0], [41.0]]), Gaussian(20.0), Box({"age": (17, 90)}))
    >>> out
    Release(2 rows, numpy, law=Gaussian(scale=20.0))
    """
    plan = plan_release(law, domain, public, rounding)
    spend = spending(plan, ledger, label, part, protect, rng)
    # An array without integer names has its columns in the order of the declarations.
    table = read_table(data, plan.columns)
    names = plan.check_schema(table)
    check_machine()
    # before anything is spent: their cells may be of any kind, and copying them may fail
    public_columns = plan.public_columns(table)
    with spend:
        master = fresh_master() if rng is None else simulation_master(rng)
        done = plan.release_rows(table, master, public=public_columns)
        del master
        return Release(
            frame=table.build(done),
            law=plan.law,
            domain=plan.domain,
            columns=tuple(name for name in names if name in plan.noisy),
            public=tuple(name for name in names if name in plan.public),
            n_rows=table.rows,
            kind=table.kind,
            secure=rng is None,
            names=names,
            rounding=rounding,
        )

