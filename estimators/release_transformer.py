r"""A release as a step of a scikit-learn pipeline.

``transform`` is a release: it draws new noise, and two calls on the same records cost two budgets. Nothing is
learnt from the data in ``fit``; domain and law are declared, and only the schema (names, number of columns) is
looked at. Four rules of scikit-learn meet four rules of releasing, and this is how they agree:

* A result must not depend on which rows come together, noise must: the estimator tag ``non_deterministic``.
* Missing and infinite values raise elsewhere; here they become the declared fill value or are clipped, because
  an exception would tell about one person: the tag ``allow_nan``, and ``string`` for cells that are no numbers.
* ``transform`` must not change the state: nothing it computes depends on earlier calls. It notes the last
  release for `release_`, and that is all.
* ``set_output("pandas")`` copies the row labels of the input; they may be names of people: ``keep_index``.
"""

from __future__ import annotations

import threading
import warnings
from collections.abc import Iterable, Mapping
from typing import Any, Self

import numpy as np
from sklearn.base import BaseEstimator, OneToOneFeatureMixin, TransformerMixin
from sklearn.utils.validation import check_is_fitted, validate_data

from privfit.estimators.checks import check_random_state
from privfit.estimators.release_input import dense_table, seeded_source
from privfit.mechanisms import Box, Law, Release, release
from privfit.mechanisms.charging import spending
from privfit.mechanisms.columns import Column
from privfit.mechanisms.domains import Domain, as_domains
from privfit.mechanisms.plan import plan_release

__all__ = ["NewReleaseWarning", "ReleaseTransformer"]

Domains = Domain | tuple[Domain, ...]
_released: set[tuple[Any, ...]] = set()
_mutex = threading.Lock()


class NewReleaseWarning(UserWarning):
    """A table with these columns was released before, by a transformer without a ledger in this process.

    Examples
    --------
    >>> issubclass(NewReleaseWarning, UserWarning)
    True
    """


class _Container(OneToOneFeatureMixin, TransformerMixin, BaseEstimator):  # type: ignore[misc]
    """What `set_output` asks for; scikit-learn can be asked only by giving it something to wrap."""

    def transform(self, X: Any) -> Any:
        return X


class ReleaseTransformer(_Container):
    """Release the columns of X under a law: every call of `transform` is a new release.

    For simulations pass `random_state`. For a real table call `privfit.release` once and keep the result: a
    pipeline transforms again at every ``predict``, a search over parameters at every fold, and each time the
    same people pay. Where a pipeline must do it, `ledger` makes every call spend, and refuses the one that does
    not fit.

    Parameters
    ----------
    law : Law, Product or mapping
        As for `privfit.release`.
    domain : Box, Ball, Categories, tuple of them, or pair of floats
        Where the columns may lie, declared; ``(lower, upper)`` declares one interval for every column that is
        not public. It must be given: bounds computed from the data would tell about the most extreme people.
    public : iterable of str or int, optional
        Columns to publish unchanged. Nothing protects them.
    rounding : {"nearest", "stochastic"}
        As for `privfit.release`.
    keep_index : bool
        Whether a pandas table keeps its row labels, which publishes them unchanged; by default rows are
        numbered anew. `ColumnTransformer` with pandas output joins its parts by their labels: set it there, or
        number the rows before.
    random_state : int, Generator or None
        None: fresh entropy of the operating system at every call. Otherwise reproducible noise, for simulations
        only, and `release_` says ``secure=False``. With an integer, the noise is a function of it and of the
        table: the same table gets the same noise again, another one (test rows, a fold) independent noise.
    ledger : Ledger, optional
        Every call reserves its guarantee at record level there before any noise is drawn. `clone`, and with it
        cross-validation, needs a ledger with a path: one in memory refuses to be copied.
    label, part : str, optional
        Name of the ledger's entries, and the group of records they are about.
    protect : {"record", "attribute"}
        The level at which `ledger` counts.

    Attributes
    ----------
    law_ : Law or Product
    domain_ : Box, Ball, Categories or tuple of them
    n_features_in_ : int
    feature_names_in_ : ndarray of str
        If X had names.
    release_ : Release
        The last one, with law, guarantee and released table: for ``fit_release`` of the estimators.

    Warns
    -----
    NewReleaseWarning
        At a secure call without a ledger, if this process made one before for the same columns. Not the first
        time, because one release is what the class is for; across objects, because searches work on clones;
        not with `random_state`, whose releases protect nobody; not with a ledger, which counts.

    Examples
    --------
    A simulation: which accuracy does a scale buy? The estimator must know the law, so both are searched together.

    >>> from sklearn.model_selection import GridSearchCV
    >>> from sklearn.pipeline import make_pipeline
    >>> from privfit.estimators import LogisticRegression
    >>> from privfit.mechanisms import SymmetricLaplace
    >>> rng = np.random.default_rng(0)
    >>> x = rng.uniform(-1, 1, (2000, 2))
    >>> y = rng.random(2000) < 1 / (1 + np.exp(-3 * x.sum(axis=1)))
    >>> laws = [SymmetricLaplace(scale) for scale in (0.1, 0.4)]
    >>> steps = make_pipeline(ReleaseTransformer(laws[0], (-1, 1), random_state=0), LogisticRegression(noise=laws[0]))
    >>> grid = [{"releasetransformer__law": [law], "logisticregression__noise": [law]} for law in laws]
    >>> search = GridSearchCV(steps, grid, cv=2).fit(x, y)
    >>> search.best_params_["releasetransformer__law"]
    SymmetricLaplace(scale=0.1, shape=1)
    >>> search.best_estimator_[0].release_
    Release(2000 rows, numpy, law=SymmetricLaplace(scale=0.1, shape=1), secure=False)
    """

    def __init__(
        self,
        law: Law | Mapping[Any, Law],
        domain: Any = None,
        *,
        public: Iterable[Column] | None = None,
        rounding: str = "nearest",
        keep_index: bool = False,
        random_state: int | np.random.Generator | None = None,
        ledger: Any = None,
        label: str = "",
        part: str | None = None,
        protect: str = "record",
    ) -> None:
        self.law = law
        self.domain = domain
        self.public = public
        self.rounding = rounding
        self.keep_index = keep_index
        self.random_state = random_state
        self.ledger = ledger
        self.label = label
        self.part = part
        self.protect = protect

    def __sklearn_tags__(self) -> Any:
        """Tags for scikit-learn: noise differs from call to call, every cell is taken."""
        tags = super().__sklearn_tags__()
        tags.non_deterministic = True
        tags.input_tags.allow_nan = True
        tags.input_tags.string = True
        return tags

    def fit(self, X: Any, y: Any = None) -> Self:
        """Check that law, domain and the columns of X go together; no cell is looked at.

        Parameters
        ----------
        X : array_like, or pandas, polars or pyarrow table, shape (n, d)
        y : ignored

        Returns
        -------
        self

        Raises
        ------
        TypeError, ValueError
            If parameters and schema do not fit together.
        """
        check_random_state(self.random_state)
        if not isinstance(self.keep_index, (bool, np.bool_)):
            raise TypeError(f"keep_index must be True or False, got {type(self.keep_index).__name__}.")
        table = self._read(X, reset=True)
        plan = plan_release(self.law, self._domain(table), self.public, self.rounding)
        spending(plan, self.ledger, self.label, self.part, self.protect, self.random_state)
        # a release of no rows: it costs nothing, and finds everything else that can be wrong
        release(table[:0], plan.law, plan.domain, plan.public, rng=0)
        self.law_, self.domain_ = plan.law, plan.domain
        self._log: list[Release] = []
        return self

    def transform(self, X: Any) -> Any:
        """Release the rows of X.

        Parameters
        ----------
        X : array_like, or pandas, polars or pyarrow table, shape (n, d)

        Returns
        -------
        ndarray or table, shape (n, d)
            The released values: an array for an array, a table of the same kind for a table, unless
            ``set_output`` asks for another.

        Raises
        ------
        BudgetExceeded
            If the ledger has no room; nothing is drawn.
        TypeError, ValueError
            If the columns are not those of the fit.
        """
        check_is_fitted(self)
        table = self._read(X, reset=False)
        domain = self._domain(table)
        wanted = super().transform(np.zeros((1, self.n_features_in_)))  # before anything is spent: it may not be there
        rng = self._simulation(table, domain)
        if rng is None and self.ledger is None:
            self._warn()
        spend = {"ledger": self.ledger, "label": self.label, "part": self.part, "protect": self.protect}
        done = release(table, self.law_, domain, self.public, rng, self.rounding, **spend)
        if self.keep_index and done.kind == "pandas":
            done.frame.index = table.index
        self._log[:] = [done]
        return self._as_asked(done, wanted)

    @property
    def release_(self) -> Release:
        """The last release; AttributeError before the first."""
        log = getattr(self, "_log", [])
        if not log:
            raise AttributeError("release_ is there after the first transform or fit_transform.")
        return log[-1]

    def _read(self, X: Any, *, reset: bool) -> Any:
        table = dense_table(X)
        validate_data(self, table, reset=reset, skip_check_array=True)
        return table

    def _names(self, table: Any) -> tuple[Column, ...]:
        if not isinstance(table, np.ndarray):
            import narwhals as nw

            return tuple(nw.from_native(table, eager_only=True).columns)
        return tuple(getattr(self, "feature_names_in_", range(table.shape[1])))

    def _domain(self, table: Any) -> Domains:
        """The declared domain; a pair of numbers becomes a box over the columns that are not public."""
        if self.domain is None:
            raise ValueError(
                "domain must be declared, as a Box, a Ball, Categories or one pair (lower, upper) for all columns: "
                "bounds are never computed from the data, since they would tell about its most extreme people."
            )
        if not _is_pair(self.domain):
            as_domains(self.domain)
            domain: Domains = self.domain
            return domain
        open_columns = set(self.public or ())
        return Box({name: self.domain for name in self._names(table) if name not in open_columns})

    def _as_asked(self, done: Release, wanted: Any) -> Any:
        """The released table in the container of `set_output`, under the names of `get_feature_names_out`."""
        import narwhals as nw

        if done.kind == "numpy":
            return done.frame
        frame = nw.from_native(done.frame, eager_only=True)
        if not hasattr(self, "feature_names_in_") and all(isinstance(name, str) for name in frame.columns):
            frame = frame.rename(dict(zip(frame.columns, self.get_feature_names_out(), strict=True)))
        if nw.dependencies.is_pandas_dataframe(wanted):
            return frame.to_pandas()
        return frame.to_polars() if nw.dependencies.is_polars_dataframe(wanted) else frame.to_native()

    def _simulation(self, table: Any, domain: Domains) -> np.random.Generator | None:
        """The reproducible source, if one is asked for: simulations only."""
        if self.random_state is None or isinstance(self.random_state, np.random.Generator):
            return self.random_state
        plan = plan_release(self.law_, domain, self.public, self.rounding)
        return seeded_source(int(self.random_state), table, plan)

    def _warn(self) -> None:
        key = tuple(getattr(self, "feature_names_in_", range(self.n_features_in_)))
        with _mutex:
            again = key in _released
            _released.add(key)
        if again:
            warnings.warn(
                "every call of transform is a new release: records that were in an earlier call are now protected "
                "by the two together. Keep the first output, pass ledger= to count, or random_state= to simulate.",
                NewReleaseWarning,
                stacklevel=4,
            )


def _is_pair(domain: Any) -> bool:
    plain = isinstance(domain, (tuple, list)) and len(domain) == 2
    return plain and all(isinstance(end, (int, float, np.integer, np.floating)) for end in domain)
