"""A release that is in files: where it is, and what everybody may know about it."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from privfit.mechanisms.columns import Column
from privfit.mechanisms.domains import Domain
from privfit.mechanisms.law import Law
from privfit.mechanisms.plan import Plan

if TYPE_CHECKING:
    from privfit.mechanisms.guarantee import Guarantee
    from privfit.mechanisms.releasing import Release

__all__ = ["FileRelease"]


@dataclass(frozen=True)
class FileRelease:
    """A release that is in a file, or a folder of files, and what everybody may know about it.

    Attributes
    ----------
    path : Path
    plan : Plan
    names : tuple of str
        All columns, in the order of the table.
    n_rows : int
    """

    path: Path
    plan: Plan
    names: tuple[Column, ...]
    n_rows: int

    secure = True

    @property
    def law(self) -> Law:
        """One law, or a Product."""
        return self.plan.law

    @property
    def domain(self) -> Domain | tuple[Domain, ...]:
        """The declared domain."""
        return self.plan.domain

    @property
    def columns(self) -> tuple[Column, ...]:
        """Columns with noise, in the order of the table."""
        return tuple(name for name in self.names if name in self.plan.noisy)

    @property
    def public(self) -> tuple[Column, ...]:
        """Columns published unchanged, which nothing protects."""
        return tuple(name for name in self.names if name in self.plan.public)

    @property
    def parts(self) -> dict[tuple[Column, ...], Law]:
        """The laws by the columns they released."""
        return {columns: own for columns, own, _ in self.plan.parts}

    def guarantee(self) -> Guarantee:
        """Return the guarantee of this release, record and attribute level."""
        return self.plan.guarantee()

    def report(self) -> str:
        """Return the guarantee and its limits as text; warns when rows are expected to be exact."""
        from privfit.mechanisms.report import report

        return report(self)

    def load(self, kind: str | None = None) -> Release:
        """Read the release into memory (see `load_release`)."""
        from privfit.mechanisms.files import load_release

        return load_release(self.path, kind)
