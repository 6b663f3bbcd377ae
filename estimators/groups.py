r"""Groups of released records and what they make together: the samples of a fit, and the noise of a report.

A group is one or several releases of the same records, and is a stratum of the risk. The response enters a risk as
numbers that are known only when all groups have been seen: a label as one number per class (and per law, as unbiased
labels are), a count over its mean. `label_numbers` and `scaled` are those maps; they are functions of a piece alone.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from functools import partial
from typing import Any

import numpy as np
from numpy.typing import NDArray

from privfit.estimators.errors import CapabilityError
from privfit.estimators.noise import NoiseModel
from privfit.estimators.operators import Part
from privfit.estimators.problem import Sample, Tables
from privfit.estimators.reading import Passes, Piece, Source

__all__ = ["check_groups", "column_of", "label_numbers", "labels_of", "level_of", "make_samples", "scaled", "together"]

Floats = NDArray[np.float64]
Converter = Callable[[Any], Floats]


def label_numbers(classes: NDArray[Any], numbers: Floats, y: Any) -> Floats:
    """Return the number of each label's class.

    Examples
    --------
    >>> label_numbers(np.array(["no", "yes"]), np.array([-0.5, 1.5]), ["yes", "no"])
    array([ 1.5, -0.5])
    """
    labels = np.asarray(y)
    places = np.minimum(np.searchsorted(classes, labels), classes.size - 1)
    if not (classes[places] == labels).all():
        raise ValueError(f"y must hold the {classes.size} labels of the release only. Check the target column.")
    return np.asarray(numbers[places], float)


def scaled(unit: float, y: Any) -> Floats:
    """Return numbers over their unit.

    Examples
    --------
    >>> scaled(2.0, [4, 5])
    array([2. , 2.5])
    """
    return np.asarray(y, float) / unit


def labels_of(pieces: Iterator[Piece], first: int) -> NDArray[Any]:
    """Return the labels that occur; those of records that follow `first` are the same.

    Examples
    --------
    >>> labels_of(iter([(np.ones((2, 1)), np.array(["b", "a"]))]), 0)
    array(['a', 'b'], dtype='<U1')
    """
    found = [np.unique(np.asarray(y)) for _, y in pieces]
    return np.unique(np.concatenate(found)) if found else np.array([], dtype=object)


def level_of(pieces: Iterator[Piece], first: int) -> tuple[int, float, float]:
    """Return number, sum and minimum of the response.

    Examples
    --------
    >>> level_of(iter([(np.ones((2, 1)), np.array([2.0, 4.0]))]), 0)
    (2, 6.0, 2.0)
    """
    n, total, least = 0, 0.0, np.inf
    for _, y in pieces:
        n, total, least = n + len(y), total + float(np.sum(y)), min(least, float(np.min(y)))
    return n, total, least


def make_samples(
    groups: Sequence[Sequence[Source]], converters: Sequence[Sequence[Converter]], passes: Passes
) -> list[Sample]:
    """Turn groups into samples, with the response as numbers.

    Parameters
    ----------
    groups : sequence of sequence of Source
        Disjoint records; within a group, releases of the same records.
    converters : sequence of sequence of callable
        Maps from the response of a piece to numbers, shaped like `groups`.
    passes : Passes

    Examples
    --------
    >>> make_samples([], [], Passes())
    []
    """
    return [
        _sample(group, own, passes, int(place == 0))
        for place, (group, own) in enumerate(zip(groups, converters, strict=True))
    ]


def _sample(group: Sequence[Source], converters: Sequence[Converter], passes: Passes, first: int) -> Sample:
    models = tuple(source.model for source in group)
    if all(source.held for source in group):
        held = [next(source.pieces()) for source in group]
        tables = [(x, convert(y)) for (x, y), convert in zip(held, converters, strict=True)]
        return Sample.repeated(tables, models)

    def read() -> Iterator[Tables]:
        rows = zip(*(source.pieces() for source in group), strict=True)
        for pieces in passes.over(map(_first_length, rows), first):
            yield [(x, convert(y)) for (x, y), convert in zip(pieces[1], converters, strict=True)]

    run = group[0].run
    if run is None:
        return Sample(models, group[0].n, read, False)
    elsewhere, convert = run, converters[0]

    def spread(task: Callable[[Iterator[Tables], int], Any]) -> list[Any]:
        passes.count += first
        return elsewhere(partial(_converted, task, convert))

    return Sample(models, group[0].n, read, False, spread)


def _first_length(pieces: tuple[Piece, ...]) -> tuple[Floats, tuple[Piece, ...]]:
    if len({len(x) for x, _ in pieces}) > 1:
        raise ValueError("release must be releases of the same rows, but they have different numbers of them.")
    return pieces[0][0], pieces


def _converted(task: Callable[..., Any], convert: Converter, pieces: Iterator[Piece], first: int) -> Any:
    return task(([(x, convert(y))] for x, y in pieces), first)


def together(groups: Sequence[Sequence[Source]]) -> NoiseModel:
    """Return the noise of all groups as one model, for reports: its variances are means over the records.

    Examples
    --------
    >>> from privfit.estimators.noise import resolve_noise
    >>> from privfit.mechanisms import Laplace
    >>> models = [resolve_noise(Laplace(b), ["a"]) for b in (1.0, 2.0)]
    >>> together([[Source(m, 5, iter)] for m in models]).variances
    array([5., 0.])
    """
    models = [source.model for group in groups for source in group]
    if len(models) == 1:
        return models[0]
    n = sum(group[0].n for group in groups)
    parts: list[Part] = []
    laws: list[tuple[str, str]] = []
    for group in groups:
        for number, source in enumerate(group, 1):
            share = source.n / n / len(group)
            parts += [replace(part, variances=part.variances * share) for part in source.model.parts]
            where = f" ({source.n:,} records)" if len(groups) > 1 else f" (release {number} of {len(group)})"
            laws += [(columns + where, law) for columns, law in source.model.laws]
    return NoiseModel(tuple(parts), min(model.keep for model in models), tuple(laws), models[0].dim)


def check_groups(groups: Sequence[Sequence[Source]], name: str, *, signs: bool) -> None:
    """Refuse groups that one model cannot take together.

    Parameters
    ----------
    groups : sequence of sequence of Source
    name : str
        Of the estimator.
    signs : bool
        The label enters as a sign of the rows.

    Raises
    ------
    CapabilityError

    Examples
    --------
    >>> check_groups([], "LogisticRegression", signs=False)
    """
    models = [source.model for group in groups for source in group]
    if any(model.categories != 2 for model in models):
        raise CapabilityError(
            f"{name} takes several releases, or one in pieces, for two classes only. Load one release for more classes."
        )
    if signs and (any(len(group) > 1 for group in groups) or len({model.keep for model in models}) > 1):
        raise CapabilityError(
            f"{name} needs one law of the labels, and one release of each row: a label enters as the sign of its row. "
            "Use LogisticRegression, or one of the releases."
        )


def column_of(source: Source, j: int) -> Source:
    """Return one column as the response of a model without columns, with its noise.

    Examples
    --------
    >>> from privfit.estimators.noise import resolve_noise
    >>> from privfit.mechanisms import Laplace
    >>> table = Source(resolve_noise(Laplace((1.0, 2.0)), ["a", "b"]), 3, lambda: iter([(np.ones((3, 2)), None)]))
    >>> column_of(table, 1).model.variances
    array([8.])
    """
    parts = tuple(replace(p, variances=p.variances[j : j + 1]) for p in source.model.parts if p.variances[j] > 0)
    run = source.run

    def pieces() -> Iterator[Piece]:
        return _pick(j, source.pieces())

    def spread(task: Any) -> list[Any]:
        assert run is not None
        return run(lambda own, first: task(_pick(j, own), first))

    model = NoiseModel(parts, 1.0, source.model.laws, 0)
    return Source(model, source.n, pieces, source.held, run=None if run is None else spread)


def _pick(j: int, pieces: Iterator[Piece]) -> Iterator[Piece]:
    return ((np.empty((len(x), 0)), x[:, j]) for x, _ in pieces)
