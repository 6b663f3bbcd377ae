r"""Fits of a regression beyond one table in memory: releases on disk, several releases, laws by row, growing data.

All of them are samples of one risk (`problem.Sample`) and go through the same search and inference as `fit`.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial
from typing import Any, Self

import numpy as np
from numpy.typing import NDArray

from privfit.estimators.checks import named_columns
from privfit.estimators.clusters import released_clusters
from privfit.estimators.errors import CapabilityError
from privfit.estimators.groups import check_groups, label_numbers, labels_of, level_of, make_samples, scaled, together
from privfit.estimators.growing import grown
from privfit.estimators.noise import resolve_noise
from privfit.estimators.reading import Passes, Source, once, open_source
from privfit.estimators.released import check_roles, declared_range, read_release
from privfit.estimators.row_noise import RowNoise
from privfit.estimators.sources import is_plain, learn_names, open_sources, released_sources, row_sources

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
    _grown: Any = None
    _target: Any
    noise: Any

    def fit_release(
        self,
        release: Any,
        target: Any = None,
        features: Any = None,
        *,
        same_rows: bool = False,
        progress: Any = False,
        clusters: Any = None,
        keep_records: bool = False,
    ) -> Self:
        """Fit to a release, or to several; their laws replace the ``noise=`` parameter.

        A release on disk is read in pieces, several times (``diagnostics_["passes"]``), in memory that does not grow
        with its rows. Corrections that draw a second noise need it in memory.

        Parameters
        ----------
        release : Release, ReleaseReader, path, or list of these
            From `privfit.release` or `load_release`, in memory; from `open_release`, or a path, on disk. A list is of
            releases of different records, each corrected for its own law.
        target : str or int
            Column to model; it must be given.
        features : str, int or sequence of these, optional
            Columns to use; all others if left out.
        same_rows : bool
            The listed releases are of the same records in the same order, with new noise each: losses are averaged
            over the releases of a record.
        progress : bool or callable, optional
            True or False; a function ``(rows, rows of a pass)``; None for a bar where stderr is a terminal.
        clusters, keep_records
            As for `fit`; `clusters` may name a column that was released as it is. One release in memory only.

        Returns
        -------
        self

        Raises
        ------
        ValueError, TypeError
            If `release` is not a release or does not have these columns, `target` is missing, a feature is a
            released label, the target is a label for a regression or a noised number for a classifier, and as
            in `fit`.
        """
        self._check_parameters()  # type: ignore[attr-defined]
        if target is None:
            listed = [*getattr(release, "columns", ()), *getattr(release, "public", ())]
            known = f", one of {listed[:12]}" if listed else ""
            raise TypeError(f"{type(self).__name__}.fit_release needs target=, the column to model{known}.")
        if not is_plain(release):
            if clusters is not None:
                raise CapabilityError("clusters need one release in memory. Use load_release, or leave them out.")
            return self._fit_releases(release, target, features, same_rows, progress, keep_records)
        self._grown = None
        clusters, features = released_clusters(release, clusters, target, features)
        frame, response, names, laws = read_release(release, target, features)
        check_roles(target, names, laws, label=self._is_label)
        self._target, self._range = target, declared_range(release, target)
        with named_columns(names):
            X, y = self._validate(frame, response)  # type: ignore[attr-defined]
        self._inference(clusters, keep_records, len(X))  # type: ignore[attr-defined]
        model = resolve_noise(laws, names, target, label=self._is_label, strict=False)
        return self._fit(X, y, model, names)  # type: ignore[attr-defined]

    def fit_dask(self, frame: Any, target: Any, features: Any = None, *, keep_records: bool = False) -> Self:
        """Fit to a Dask DataFrame of released columns, or to a release in files, where the partitions are.

        Every pass is one task per partition, which returns sums over its records; ``diagnostics_["passes"]`` of them
        are made, and one that counts records. How the records are partitioned changes the result by rounding errors
        only.

        Parameters
        ----------
        frame : dask.dataframe.DataFrame, ReleaseReader, FileRelease or path
            Columns as released, with their law in ``noise=`` ("y", or its name, for the target); or a release in
            files, with its own law, which workers read from a file system that they share.
        target : str or int
            Column to model.
        features : str, int or sequence of these, optional
            Columns to use; all others if left out.
        keep_records : bool
            See `fit`: keeps how to read the records.

        Returns
        -------
        self

        Raises
        ------
        ModuleNotFoundError
            If Dask is not installed.
        ValueError, TypeError
            As in `fit`, and for missing columns.
        CapabilityError
            As in `fit`, and for corrections that draw a second noise.
        """
        from privfit.estimators.dask_fit import dask_source

        self._check_parameters()  # type: ignore[attr-defined]
        self._grown = None
        names, source = dask_source(frame, target, features, self.noise, label=self._is_label)
        self._target, self._range = target, declared_range(open_source(frame), target)
        learn_names(self, names, [])
        return self._fit_groups([[source]], names, Passes(False, source.n), keep_records)

    def partial_fit(self, X: Any, y: Any, *, classes: Any = None) -> Self:
        """Add records: afterwards the fit is that of all records so far, exactly.

        The released records are kept (d + 1 numbers each, twice that while it runs), and every call fits all of them;
        `LinearRegression` keeps sums instead. What an earlier `fit` saw is no part of it.

        Parameters
        ----------
        X : array_like or data frame, shape (m, d)
            The columns of the earlier records, under the law in ``noise=``, which may have been changed since.
        y : array_like, shape (m,)
        classes : array_like, optional
            Both labels of a classifier, where the first records need not have both.

        Returns
        -------
        self

        Raises
        ------
        ValueError, TypeError, CapabilityError
            As in `fit`, and for other columns than before.
        """
        self._check_parameters()  # type: ignore[attr-defined]
        self._target, self._range = getattr(y, "name", None), None
        X, y = self._validate(X, y, reset=self._grown is None)  # type: ignore[attr-defined]
        names = list(getattr(self, "feature_names_in_", range(X.shape[1])))
        if isinstance(self.noise, RowNoise):
            raise CapabilityError("partial_fit takes one law for the records of a call. Call it once for each group.")
        model = resolve_noise(self.noise, names, "y", label=self._is_label)
        known = None if classes is None else np.unique(np.asarray(classes))
        source = Source(model, len(X), partial(once, (X, y)), held=True, classes=known)
        return self._fit_grown(names, [[source]], Passes())

    def partial_fit_release(self, release: Any, target: Any, features: Any = None, *, progress: Any = False) -> Self:
        """Add the records of a release, or of several, with their own law.

        Of a release on disk nothing is kept but where it is: the file must stay.

        Parameters
        ----------
        release, target, features, progress
            See `fit_release`.

        Returns
        -------
        self

        Raises
        ------
        ValueError, TypeError, CapabilityError
            As in `fit_release`, and for other columns than before.
        """
        self._check_parameters()  # type: ignore[attr-defined]
        opened = open_sources(release)
        names, groups = released_sources(opened, target, features, label=self._is_label, same_rows=False)
        self._target, self._range = target, declared_range(opened[0], target)
        learn_names(self, names, opened)
        return self._fit_grown(names, groups, Passes(progress, sum(group[0].n for group in groups)))

    def _fit_grown(self, names: Sequence[Any], groups: Sequence[Sequence[Source]], passes: Passes) -> Self:
        """Fit to the records so far and these."""
        together = grown(self._grown, names, groups)
        (first, *others), *more = together.groups
        if self._is_label and first.held and not (others or more):
            (x, y) = next(first.pieces())
            if np.unique(np.asarray(y)).size > 2:  # more classes are fitted in memory, from records released once
                self._fit(x, y, first.model, names)  # type: ignore[attr-defined]
                self._grown = together
                return self
        self._fit_groups(together.groups, names, passes)
        self._grown = together
        return self

    def _fit_releases(
        self, releases: Any, target: Any, features: Any, same_rows: bool, progress: Any, keep_records: bool
    ) -> Self:
        """Fit to releases that are on disk or several."""
        self._grown = None
        opened = open_sources(releases)
        names, groups = released_sources(opened, target, features, label=self._is_label, same_rows=same_rows)
        self._target, self._range = target, declared_range(opened[0], target)
        learn_names(self, names, opened)
        passes = Passes(progress, sum(group[0].n for group in groups))
        return self._fit_groups(groups, names, passes, keep_records)

    def _fit_rows(self, X: Floats, y: Any, noise: RowNoise, names: Sequence[Any], keep_records: bool) -> Self:
        """Fit to rows that were released under laws of their own."""
        groups = row_sources(noise, X, y, names, "y", label=self._is_label)
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
