r"""Fits of a regression beyond one table in memory: releases on disk, several releases, laws by row, growing data.

All of them are samples of one risk (`problem.Sample`) and go through the same search and inference as `fit`.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial
from typing import Any, Self

import numpy as np
from numpy.typing import NDArray

from privfit.estimators.errors import CapabilityError
from privfit.estimators.groups import check_groups, label_numbers, labels_of, level_of, make_samples, scaled, together
from privfit.estimators.noise import resolve_noise
from privfit.estimators.reading import Passes, Source
from privfit.estimators.released import declared_range
from privfit.estimators.row_noise import RowNoise
from privfit.estimators.sources import open_sources, released_sources

__all__ = ["PiecesMixin"]

Floats = NDArray[np.float64]


class PiecesMixin:
    """Fits to more than one table in memory; see `IndexRegression`.

    Examples
    --------
    >>> PiecesMixin.__name__
    'PiecesMixin'
    """

    _is_label = False
    _signs = False  # the label enters as the sign of the rows
    _needs_level = False  # the response enters over its mean
    _range: float | None
    _target: Any

    def _fit_releases(
        self, releases: Any, target: Any, features: Any, same_rows: bool, progress: Any, keep_records: bool
    ) -> Self:
        """Fit to releases that are on disk or several."""
        opened = open_sources(releases)
        names, groups = released_sources(opened, target, features, label=self._is_label, same_rows=same_rows)
        self._target, self._range = target, declared_range(opened[0], target)
        self._name_features(names, [str(getattr(own, "kind", "numpy")) for own in opened])
        passes = Passes(progress, sum(group[0].n for group in groups))
        return self._fit_groups(groups, names, passes, keep_records)

    def _fit_rows(self, X: Floats, y: Any, noise: RowNoise, names: Sequence[Any], keep_records: bool) -> Self:
        """Fit to rows that were released under laws of their own."""
        groups = []
        for rows, law in noise.split(len(X)):
            model = resolve_noise(law, names, "y", label=self._is_label)
            piece = (X[rows], np.asarray(y)[rows])
            groups.append([Source(model, rows.size, partial(_once, piece), held=True)])
        return self._fit_groups(groups, names, Passes(), keep_records)

    def _fit_groups(
        self, groups: Sequence[Sequence[Source]], names: Sequence[Any], passes: Passes, keep_records: bool = False
    ) -> Self:
        """Learn how the response enters, then fit; says how many passes were made over records on disk."""
        check_groups(groups, type(self).__name__, signs=self._signs)
        for group in groups:
            for source in group:
                self._check_law(source.model)  # type: ignore[attr-defined]
        self._inference(None, keep_records, sum(group[0].n for group in groups))  # type: ignore[attr-defined]
        samples = make_samples(groups, self._converters(groups, passes), passes)
        self._fit_samples(samples, together(groups), names)  # type: ignore[attr-defined]
        if passes.count:
            self.diagnostics_["passes"] = passes.count  # type: ignore[attr-defined]
        return self

    def _converters(self, groups: Sequence[Sequence[Source]], passes: Passes) -> list[list[Any]]:
        """For each source, the map from its response to numbers."""
        sources = [source for group in groups for source in group]
        read = any(not source.held for source in sources)
        if self._is_label:
            if any(source.classes is None for source in sources):
                passes.count += int(read)
                found = [own for source in sources for own in source.each(labels_of)]
            else:
                found = [np.asarray(source.classes) for source in sources]
            classes = np.unique(np.concatenate([own for own in found if own.size]))
            if classes.size > 2:
                raise CapabilityError(
                    f"{type(self).__name__} takes several releases, or one in pieces, for two classes only, got "
                    f"{classes.size}. Load one release for more classes."
                )
            return [
                [
                    partial(label_numbers, classes, self._read_response(classes, source.model))  # type: ignore[attr-defined]
                    for source in group
                ]
                for group in groups
            ]
        unit = 1.0
        if self._needs_level:
            passes.count += int(read)
            levels = [(s.model, *own) for s in sources for own in s.each(level_of)]
            mean = sum(total for _, _, total, _ in levels) / sum(n for _, n, _, _ in levels)
            least = min((own[3] for own in levels if own[0].variances[-1] == 0.0), default=np.inf)
            unit = self._learn_level(mean, least)  # type: ignore[attr-defined]
        return [[partial(scaled, unit) for _ in group] for group in groups]

    def _name_features(self, names: Sequence[Any], kinds: Sequence[str]) -> None:
        """Learn names as scikit-learn does from a table."""
        self.n_features_in_ = len(names)
        if "numpy" not in kinds and all(isinstance(name, str) for name in names):
            self.feature_names_in_ = np.asarray(names, dtype=object)
        elif hasattr(self, "feature_names_in_"):
            del self.feature_names_in_


def _once(piece: Any) -> Any:
    return iter([piece])
