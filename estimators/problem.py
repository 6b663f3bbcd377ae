"""From released records to a corrected risk in standard coordinates, with its box of parameters."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from functools import partial, reduce
from typing import Any

import numpy as np
from numpy.typing import NDArray

from privfit.accounting.validation import check_array
from privfit.estimators.corrections import Term, correction_terms, draw_second_noise
from privfit.estimators.errors import CapabilityError
from privfit.estimators.losses import SquaredLoss
from privfit.estimators.losses.base import IndexLoss
from privfit.estimators.noise import NoiseModel
from privfit.estimators.risk import Risk
from privfit.estimators.standardise import Coordinates, Spreads
from privfit.estimators.strata import Chunk, Design, Held, IndexNoise, Read, Records, Spread, Stratum
from privfit.estimators.symbols import Identity

__all__ = ["Problem", "Sample", "build_problem", "index_noise", "pose"]

Floats = NDArray[np.float64]
Tables = Sequence[tuple[Floats, Floats]]
_INTERCEPT_BOUND = 20.0


@dataclass(frozen=True)
class Sample:
    """Records that share their noise, released once or several times.

    Attributes
    ----------
    models : tuple of NoiseModel
        Noise of each release of these records.
    n : int
        Number of records.
    read : callable
        Returns an iterator over consecutive pieces of the records: for each release the columns, shape (m, d), and
        the response, shape (m,): numbers, or unbiased labels.
    held : bool
        The records are in memory, in one piece.
    run : callable, optional
        The records are elsewhere: runs a task, which takes an iterator over pieces and the number of the first record,
        on every partition and returns the results in their order.

    Examples
    --------
    >>> from privfit.estimators.noise import resolve_noise
    >>> Sample.of(np.ones((3, 1)), np.ones(3), resolve_noise(None, ["a"])).n
    3
    """

    models: tuple[NoiseModel, ...]
    n: int
    read: Callable[[], Iterator[Tables]]
    held: bool
    run: Callable[[Callable[[Iterator[Tables], int], Any]], list[Any]] | None = None

    def each(self, task: Callable[[Iterator[Tables], int], Any]) -> list[Any]:
        """Pass over the records once: the results of consecutive groups of them."""
        return self.run(task) if self.run is not None else [task(self.read(), 0)]

    @classmethod
    def of(cls, x: Floats, response: Floats, model: NoiseModel) -> Sample:
        """Return a sample in memory, released once."""
        return cls.repeated([(x, response)], [model])

    @classmethod
    def repeated(cls, tables: Tables, models: Sequence[NoiseModel]) -> Sample:
        """Return a sample in memory, released several times."""
        return cls(tuple(models), len(tables[0][0]), lambda: iter([tables]), True)


@dataclass(frozen=True)
class Problem:
    """A corrected risk, its naive counterpart, coordinates and bounds.

    Examples
    --------
    >>> Problem.__name__
    'Problem'
    """

    risk: Risk
    naive: Risk
    coordinates: Coordinates
    bound: Floats
    bound_text: str

    @property
    def lead(self) -> int:
        """Number of leading coordinates that are not slopes (1 with an intercept)."""
        return int(self.coordinates.intercept)

    @property
    def flat(self) -> NDArray[np.bool_]:
        """Coordinates whose column does not vary (beside an intercept)."""
        return np.concatenate([np.zeros(self.lead, bool), self.coordinates.flat])

    @property
    def collinear(self) -> bool:
        """Whether the varying released columns are collinear, or more than the records."""
        if self.naive.n <= self.naive.size:
            return True
        gram = self.naive.gram() + np.diag(self.flat)
        values = np.linalg.eigvalsh(gram)
        return bool(values[0] <= 1e-11 * values[-1])

    def penalised(self, penalty: Floats) -> Problem:
        """Return the problem with a ridge added to the corrected risk."""
        return replace(self, risk=self.risk.with_(penalty=self.risk.penalty + penalty))

    def with_loss(self, loss: IndexLoss) -> Problem:
        """Return the problem with another loss."""
        return replace(self, risk=self.risk.with_(loss=loss), naive=self.naive.with_(loss=loss))

    def mark_flat(self, covariance: Floats) -> Floats:
        """Give coefficients of constant columns an infinite variance."""
        flat = self.flat
        covariance[flat, :] = 0.0
        covariance[:, flat] = 0.0
        covariance[flat, flat] = np.inf
        return covariance


def build_problem(
    samples: Sequence[Sample],
    *,
    correction: str,
    draws: int,
    label: bool,
    intercept: bool,
    bound: Any,
    default_bound: float,
    random_state: Any,
) -> Problem:
    """Build the corrected and the naive risk, with a squared loss until `Problem.with_loss`.

    Parameters
    ----------
    samples : sequence of Sample
        Disjoint records.
    correction : str
    draws : int
        Number of second randomisations, where the correction uses any.
    label : bool
        The response enters linearly (logistic) instead of through the residual.
    intercept : bool
    bound : None, float or array_like, shape (d,)
        Limit of each coefficient's absolute value.
    default_bound : float
        Limit in standard coordinates where `bound` is None.
    random_state : int, Generator or None
        For the second randomisation.

    Examples
    --------
    >>> build_problem.__name__
    'build_problem'
    """
    spreads = [own for sample in samples for own in sample.each(partial(_spreads, label))]
    columns = reduce(Spreads.plus, [own for own, _ in spreads if own is not None])
    response = None if label else reduce(Spreads.plus, [own for _, own in spreads if own is not None])
    coordinates = Coordinates.of_spreads(columns, response, intercept)
    rng = np.random.default_rng(random_state)
    strata = [_stratum(sample, coordinates, correction, draws, label, rng) for sample in samples if sample.n]
    return pose(strata, coordinates, bound, default_bound, {})


def pose(
    strata: Sequence[Stratum], coordinates: Coordinates, bound: Any, default_bound: float, memo: dict[str, Any]
) -> Problem:
    """Pose the problem of strata in standard coordinates; `memo` is what is known of their records (see `Risk`).

    Examples
    --------
    >>> pose.__name__
    'pose'
    """
    lead = int(coordinates.intercept)
    # A column that does not vary has an all-zero row: a unit penalty keeps its coefficient at zero.
    penalty = np.concatenate([np.zeros(lead), coordinates.flat.astype(float)])
    risk = Risk(SquaredLoss(), strata, penalty.size, penalty, memo)
    limits, text = _limits(bound, coordinates, lead, default_bound)
    return Problem(risk, risk.naive(), coordinates, limits, text)


def _spreads(label: bool, pieces: Iterator[Tables], first: int) -> tuple[Spreads | None, Spreads | None]:
    """Spreads of columns and response of all releases; the same for records that follow `first` or none."""
    columns: Spreads | None = None
    answers: Spreads | None = None
    for tables in pieces:
        for x, response in tables:
            own = Spreads.of([x])
            columns = own if columns is None or own is None else columns.plus(own)
            if not label:
                own = Spreads.of([response[:, None]])
                answers = own if answers is None or own is None else answers.plus(own)
    return columns, answers


def _stratum(
    sample: Sample, coordinates: Coordinates, correction: str, draws: int, label: bool, rng: np.random.Generator
) -> Stratum:
    """Records of one sample in standard coordinates, with their noise."""
    models = [model.of_columns() for model in sample.models] if label else list(sample.models)
    noise = index_noise(sample.models, coordinates, correction, draws, label)
    seconds = max(term.design for term in noise.terms) - len(models) + 1
    sign, lead = 1.0 if label else -1.0, int(coordinates.intercept)

    def chunk(tables: Tables) -> Chunk:
        designs = []
        for x, response in tables:
            matrix = coordinates.design(x, sign)
            designs.append(Design(matrix, None if label else coordinates.response(response)))
        for second in range(seconds):
            place = second // draws
            first = designs[place]
            drawn = draw_second_noise(models[place].parts, first.matrix.shape[1], rng)
            moved = first.matrix.copy()
            moved[lead:] += sign * drawn[:-1] / coordinates.scale[:, None]
            offset = None if first.offset is None else first.offset + drawn[-1] / coordinates.response_scale
            designs.append(Design(moved, offset))
        labels = np.mean([response for _, response in tables], axis=0) if label else None
        return Chunk(tuple(designs), labels)

    if sample.held:
        return Stratum(noise, Held(chunk(next(sample.read()))))
    if seconds > 0:
        raise CapabilityError(
            f"correction={correction!r} draws a second noise, which a fit in pieces would draw anew in every pass. "
            "Use correction='exact', which draws none, or load the release."
        )
    run = sample.run

    def spread(task: Callable[[Iterator[Chunk], int], Any]) -> list[Any]:
        assert run is not None
        return run(lambda pieces, first: task(map(chunk, pieces), first))

    def read() -> Iterator[Chunk]:
        return map(chunk, sample.read())

    records: Records = Read(sample.n, read) if run is None else Spread(sample.n, read, spread)
    return Stratum(noise, records)


def index_noise(
    models: Sequence[NoiseModel], coordinates: Coordinates, correction: str, draws: int, label: bool
) -> IndexNoise:
    """Noise of records in standard coordinates, one model for each release of them.

    Examples
    --------
    >>> index_noise.__name__
    'index_noise'
    """
    # A label enters linearly: its noise has mean 0 and is uncorrelated with that of the columns, so it needs none.
    models = [model.of_columns() for model in models] if label else list(models)
    parts = [part for model in models for part in model.parts]
    lead = int(coordinates.intercept)
    variances = np.zeros((len(parts), coordinates.scale.size + lead))
    for p, part in enumerate(parts):
        variances[p, lead:] = part.variances[:-1] / coordinates.scale**2
    constants = np.array([part.variances[-1] / coordinates.response_scale**2 for part in parts])
    reach = None if correction == "naive" else np.array([part.factor.reach for part in parts])
    shares = np.array([part.share for part in parts])
    return IndexNoise(tuple(_terms(models, correction, draws)), variances, constants, reach, len(models), shares)


def _terms(models: Sequence[NoiseModel], correction: str, draws: int) -> list[Term]:
    """Terms of several releases of the same records: the mean of their corrected losses."""
    counts = [len(model.parts) for model in models]
    out: list[Term] = []
    for place, model in enumerate(models):
        before, after = sum(counts[:place]), sum(counts[place + 1 :])
        for term in correction_terms(correction, model.parts, draws):
            factors = (*[Identity()] * before, *term.factors, *[Identity()] * after)
            design = place if term.design == 0 else len(models) + place * draws + term.design - 1
            out.append(Term(term.weight / len(models), design, factors))
    return out


def _limits(bound: Any, coordinates: Coordinates, lead: int, default: float) -> tuple[Floats, str]:
    size = coordinates.scale.size
    if bound is None:
        return np.full(size + lead, default), f"default: each standardised coefficient within {default:g}"
    hint = "It limits the absolute value of each coefficient."
    given = check_array("bound", bound, 0.0, hint=hint)
    if given.ndim > 1 or (given.ndim == 1 and given.size != size) or not (given > 0).all():
        raise ValueError(
            f"bound must be one positive number or {size} of them, got shape {given.shape} with minimum "
            f"{given.min(initial=np.inf):g}. {hint}"
        )
    limits = np.full(size + lead, max(_INTERCEPT_BOUND, default))
    limits[lead:] = given * coordinates.scale / coordinates.response_scale
    return limits, "the given bound"
