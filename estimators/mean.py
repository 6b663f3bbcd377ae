r"""Means of released columns: the noise has mean zero, so they need no correction.

``mean(x~) -> E x`` with covariance ``Cov(x~) / n``; the raw-data covariance is ``(Cov(x~) - Sigma) / n``. The
mean of a label column is the share of its positive labels, by way of unbiased indicators (`label_share`). All of this
is a function of sums over records (`mean_sums`), which come in one pass, in pieces, and as the data grow.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from functools import reduce
from typing import Any, Self

import numpy as np
from numpy.typing import NDArray
from sklearn.base import BaseEstimator

from privfit.estimators.checks import named_columns, read_columns
from privfit.estimators.clusters import mean_covariance, read_clusters
from privfit.estimators.efficiency import compare, unchanged
from privfit.estimators.errors import CapabilityError
from privfit.estimators.label_share import LabelColumn, columns_of, labels_to_indicators, split_labels
from privfit.estimators.mean_sums import MeanSums, averaged
from privfit.estimators.noise import NoiseModel, resolve_noise
from privfit.estimators.reading import Passes, fixed_chunks, open_source
from privfit.estimators.released import chosen_columns, declared_labels, read_release
from privfit.estimators.results import ResultsMixin
from privfit.estimators.row_noise import RowNoise
from privfit.estimators.sources import open_sources, warn_of_twins
from privfit.mechanisms import RandomizedResponse

__all__ = ["Mean"]

Floats = NDArray[np.float64]


class Mean(ResultsMixin, BaseEstimator):  # type: ignore[misc]
    """Mean of one or several released columns; of a label column, the share of the positive labels.

    Parameters
    ----------
    noise : Law, Product, mapping or None
        Law of the columns (all, in order), or ``{column or tuple of columns: law}``. A column with a
        `RandomizedResponse` holds labels, and its mean is the share of the positive ones.
    positive : label, list of labels, or mapping of columns to these, optional
        Labels that count as one, by column if there are several label columns. Default: of two labels the second
        declared (`fit_release`) or sorted (`fit`).

    Attributes
    ----------
    mean_ : ndarray, shape (d,)
    cov_params_ : ndarray, shape (d, d)
    efficiency_ : Efficiency

    Examples
    --------
    >>> from privfit.mechanisms import Laplace
    >>> Mean(noise=Laplace(0.1)).fit([[1.0], [2.0], [3.0]]).mean_
    array([2.])
    >>> from privfit.mechanisms import RandomizedResponse
    >>> Mean(noise=RandomizedResponse(np.log(3.0))).fit([["yes"], ["no"], ["yes"], ["yes"]]).mean_
    array([1.])
    """

    _grown: tuple[MeanSums, list[Any]] | None = None

    def __init__(self, *, noise: Any = None, positive: Any = None) -> None:
        self.noise = noise
        self.positive = positive

    def fit(self, X: Any, y: Any = None, *, clusters: Any = None) -> Self:
        """Estimate the means of the columns of X (`y` is ignored).

        Parameters
        ----------
        X : array_like, shape (n, d)
        clusters : array_like, shape (n,), optional
            Labels of rows that depend on each other (of one person), for cluster-robust standard errors.

        Returns
        -------
        self

        Raises
        ------
        ValueError, TypeError
            For missing or infinite values, wrong shapes, a column in `noise` that X does not have, or labels
            that do not fit their law or `positive`.
        """
        if isinstance(self.noise, RowNoise):
            X, sums, names = self._rows(X, self.noise)
        else:
            X, model, names, labels = self._table(X, reset=True)
            sums = MeanSums.table(X).under(model, labels)
        codes = None if clusters is None else read_clusters(clusters, len(X))
        own = None if codes is None else mean_covariance((X - sums.mean).T, codes)
        return self._store(sums, names, own, None if codes is None else int(codes.max()) + 1)

    def partial_fit(self, X: Any, y: Any = None) -> Self:
        """Add records: afterwards the fit is that of all records so far, exactly.

        Sums are kept and the records are not: d^2 numbers, and one pass over the new records.

        Parameters
        ----------
        X : array_like, shape (m, d)
            The columns of the earlier records, under the law in ``noise=``, which may have been changed since.

        Returns
        -------
        self

        Raises
        ------
        ValueError, TypeError
            As in `fit`, for other columns than before, and where labels need `positive` to be given.
        """
        if self.positive is None and split_labels(self.noise, columns_of(X))[1]:
            raise ValueError(
                "positive must be given for partial_fit on labels, since not all of them need occur in the first "
                "records. Or use partial_fit_release, which knows them."
            )
        X, model, names, labels = self._table(X, reset=self._grown is None)
        return self._store(*self._add(MeanSums.table(X).under(model, labels), names))

    def fit_release(
        self, release: Any, features: Any = None, *, same_rows: bool = False, progress: Any = False
    ) -> Self:
        """Estimate the means of columns of a release, or of several (all columns if `features` is left out).

        Parameters
        ----------
        release : Release, ReleaseReader, path, or list of these
            In memory, or on disk: read once, in pieces. A list is of releases of different records.
        features : str, int or sequence of these, optional
        same_rows : bool
            The listed releases are of the same records in the same order, with new noise each.
        progress : bool or callable, optional
            See `LinearRegression.fit_release`.

        Returns
        -------
        self

        Raises
        ------
        ValueError, TypeError
            As in `fit`, and if columns or rows do not fit together.
        """
        self._grown = None
        return self._store(*self._release_sums(release, features, same_rows, progress))

    def partial_fit_release(self, release: Any, features: Any = None, *, progress: Any = False) -> Self:
        """Add the records of a release, or of several, with their own law; see `partial_fit` and `fit_release`."""
        sums, names = self._release_sums(release, features, False, progress)
        return self._store(*self._add(sums, names))

    def fit_dask(self, frame: Any, features: Any = None) -> Self:
        """Estimate the means of columns of a Dask DataFrame, or of a release in files; see `LinearRegression.fit_dask`.

        Labels are not read here: `fit_release` reads them, in memory or in pieces from disk.

        Raises
        ------
        CapabilityError
            For columns of labels, and for `RowNoise`.
        """
        from privfit.estimators.dask_fit import dask_source

        opened = open_source(frame)
        declared = declared_labels(opened) if hasattr(opened, "law") else {}
        labelled = declared and declared.keys() & set(chosen_columns(opened, None, features)[1])
        if labelled or split_labels(self.noise, list(getattr(frame, "columns", ())))[1]:
            raise CapabilityError(
                "fit_dask reads no labels. Leave their columns out by features=, or use fit_release, which takes a "
                "release in memory or in pieces from disk."
            )
        names, source = dask_source(frame, None, features, self.noise, label=False)
        found = [own for own in source.each(MeanSums.of_pieces) if own is not None]
        self.n_features_in_ = len(names)
        self._grown = None
        return self._store(reduce(MeanSums.plus, found).under(source.model, {}), list(names))

    def _table(self, X: Any, *, reset: bool) -> tuple[Floats, NoiseModel, list[Any], dict[Any, LabelColumn]]:
        """Columns of a table, labels as indicators, with the noise in ``noise=``."""
        noise, laws = split_labels(self.noise, columns_of(X))
        X, labels = self._indicators(X, laws, {})
        X = read_columns(self, X, reset=reset)
        if reset:
            self._grown = None
        names = list(getattr(self, "feature_names_in_", range(X.shape[1])))
        return X, resolve_noise(noise, names, None), names, labels

    def _rows(self, X: Any, noise: RowNoise) -> tuple[Floats, MeanSums, list[Any]]:
        """Columns of a table, and their sums group by group, each under its law."""
        X, self._grown = read_columns(self, self._indicators(X, {}, {})[0], reset=True), None
        names = list(getattr(self, "feature_names_in_", range(X.shape[1])))
        found = [
            MeanSums.table(X[rows]).under(resolve_noise(law, names, None), {}) for rows, law in noise.split(len(X))
        ]
        return X, reduce(MeanSums.plus, found), names

    def _release_sums(self, release: Any, features: Any, same_rows: bool, progress: Any) -> tuple[MeanSums, list[Any]]:
        """Sums of one or several releases, in one pass."""
        opened = open_sources(release)
        chosen = [chosen_columns(own, None, features) for own in opened]
        names = chosen[0][1]
        if any(own[1] != names for own in chosen):
            raise ValueError("features must be the same in all releases. Name them by features=.")
        rows = {own.n_rows for own in opened}
        if same_rows and len(rows) > 1:
            raise ValueError(f"release must be releases of the same rows with same_rows=True, got {sorted(rows)} rows.")
        passes = Passes(progress, max(rows) if same_rows else sum(own.n_rows for own in opened))
        found = []
        for own, (_, _, laws) in zip(opened, chosen, strict=True):
            additive = {key: law for key, law in laws.items() if not isinstance(law, RandomizedResponse)}
            labelled = {k[0]: law for k, law in laws.items() if isinstance(law, RandomizedResponse) and k[0] in names}
            labels: dict[Any, LabelColumn] = {}
            tables = self._release_tables(own, names, labelled, labels)
            found.append((tables, resolve_noise(additive, names, None, strict=False), labels))
        if not same_rows:
            warn_of_twins(opened)
            total: MeanSums | None = None
            for tables, model, labels in found:
                sums = MeanSums.of(x for x, _ in passes.over(((x, None) for x in tables), 0))
                if sums is not None:
                    total = sums.under(model, labels) if total is None else total.plus(sums.under(model, labels))
        else:
            total = MeanSums.of(x for x, _ in passes.over(((x, None) for x in averaged([t for t, _, _ in found])), 1))
            if total is not None:
                apart = [MeanSums(len(names)) for _ in found]
                for own_sums, (_, model, labels) in zip(apart, found, strict=True):
                    own_sums.n = total.n
                    own_sums.under(model, labels)
                total.shared(apart)
        if total is None:
            raise ValueError("release must have at least one row, got none.")
        return total, list(names)

    def _release_tables(
        self, release: Any, names: Sequence[Any], laws: Mapping[Any, Any], labels: dict[Any, LabelColumn]
    ) -> Iterator[Floats]:
        """Yield the columns of a release, labels as indicators, in pieces of one length; `labels` is filled."""
        declared = declared_labels(release)
        parts = [release] if hasattr(release, "frame") else release

        def pieces() -> Iterator[Any]:
            for part in parts:
                X, _, _, _ = read_release(part, None, names)
                X, found = self._indicators(X, laws, declared, names)
                labels.update(found)
                if part.n_rows:
                    with named_columns(names):
                        X = read_columns(self, X)
                    yield X, None

        yield from (x for x, _ in fixed_chunks(pieces()))

    def _add(self, sums: MeanSums, names: list[Any]) -> tuple[MeanSums, list[Any]]:
        """Add sums to those of earlier calls of partial_fit."""
        if self._grown is None:
            self._grown = sums, names
            return sums, names
        if self._grown[1] != names:
            raise ValueError(f"X must have the columns of the earlier records, {self._grown[1][:8]}, got {names[:8]}.")
        together = self._grown[0].plus(sums)
        self._grown = together, names
        return together, names

    def _indicators(self, X: Any, laws: Any, declared: Any, names: Any = None) -> tuple[Any, dict[Any, LabelColumn]]:
        if not laws:
            if self.positive is not None:
                raise ValueError("positive must be None where no column has a RandomizedResponse. Name it in noise=.")
            return X, {}
        return labels_to_indicators(X, laws, self.positive, declared, names)

    def _store(
        self, sums: MeanSums, names: list[Any], clustered: Floats | None = None, groups: int | None = None
    ) -> Self:
        self._groups = groups
        n, size = sums.n, sums.mean.size
        labels = {name: column for own in sums.lawful for name, column in own.labels.items()}
        self.noise_, self._n_records = sums.model(names), n
        self._names = [
            f"{name} = {', '.join(map(str, labels[name].positive))}" if name in labels else str(name) for name in names
        ]
        self.mean_ = self.params_ = sums.mean.copy()
        if n > 1:
            self.cov_params_ = sums.products / (n - 1) / n if clustered is None else clustered
            spread = n * self.cov_params_
        else:
            spread = np.zeros((size, size))
            self.cov_params_ = np.diag(np.full(size, np.inf))
        raw = (spread - np.diag(sums.noise(names))) / n
        said = "covariance of the release minus that of the noise"
        self.efficiency_ = compare(self.cov_params_, raw, n, said) if self.noise_.noisy else unchanged(size, n)
        self.converged_ = True
        self.diagnostics_ = {"converged": True, "n_needed": None}
        return self
