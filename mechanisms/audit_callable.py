r"""A mechanism of the user: outputs of any kind, and whether calls repeat each other.

An output is turned into numbers and a key: the numbers if they are all finite, and a key that says which entries
are nan or infinite, how long the output is, or what it is if it is no number at all. So nothing that may disclose
an input is dropped. Two calls with the same input share noise if equal outputs are more frequent at equal positions
of the two calls than among outputs of one call: Fisher's exact test, given how many pairs are equal in all.
"""

from __future__ import annotations

import inspect
import math
from collections.abc import Callable, Hashable
from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from privfit.accounting.base import check_curve
from privfit.mechanisms.audit_events import event_tests
from privfit.mechanisms.audit_report import AuditReport, Planned, run_tests
from privfit.mechanisms.audit_scores import learn_keys, learn_score
from privfit.mechanisms.audit_statistics import Finding

if TYPE_CHECKING:
    from privfit.accounting import TradeOffCurve

__all__ = ["Outcomes", "audit_callable", "read_outputs"]

Floats = NDArray[np.float64]
WIDEST = 10_000


@dataclass(frozen=True)
class Outcomes:
    """Outputs as numbers, shape (n, width), nan where there is none, and as keys of what is no finite number."""

    values: Floats
    keys: list[Hashable]

    @property
    def finite(self) -> NDArray[np.bool_]:
        """Rows that are finite numbers throughout."""
        return np.asarray(np.isfinite(self.values).all(axis=1) & (self.values.shape[1] > 0), dtype=np.bool_)

    def rows(self) -> list[Hashable]:
        """One hashable per output, equal for equal outputs."""
        return [(key, row.tobytes()) for key, row in zip(self.keys, self.values, strict=True)]


def _numbers(output: Any) -> Floats | None:
    """The output as a flat array of numbers, or None."""
    if isinstance(output, (str, bytes)) or output is None:
        return None
    try:
        array = np.asarray(output)
    except ValueError:
        return None
    return array.astype(np.float64).ravel() if array.dtype.kind in "biuf" else None


def _beyond(numbers: NDArray[Any]) -> NDArray[np.intp]:
    """Rows of an array of shape (n, width) with whole numbers that floats do not tell from others."""
    if numbers.dtype.kind not in "iu" or numbers.dtype.itemsize < 8:
        return np.zeros(0, dtype=np.intp)
    below = numbers < -(2**53) if numbers.dtype.kind == "i" else np.zeros(numbers.shape, dtype=np.bool_)
    return np.flatnonzero(((numbers > 2**53) | below).any(axis=1))


def _key(output: Any, numbers: Floats | None) -> Hashable:
    if numbers is None:
        return _label(output)
    whole = np.asarray(output).reshape(1, -1)
    return (whole.size, whole.tobytes()) if len(_beyond(whole)) else _pattern(numbers)


def _label(output: Any) -> Hashable:
    try:
        hash(output)
    except TypeError:
        return "unhashable", repr(output)
    return type(output).__name__, output


def read_outputs(outputs: Any, width: int | None = None) -> Outcomes:
    """Turn outputs into numbers and keys.

    Parameters
    ----------
    outputs : ndarray or sequence
        One entry per output.
    width : int, optional
        Numbers kept of each output; those of the longest one by default.

    Examples
    --------
    >>> read_outputs([1.0, float("nan"), "no answer"]).finite
    array([ True, False, False])
    """
    if isinstance(outputs, np.ndarray) and outputs.dtype.kind in "biuf":
        values = outputs.astype(np.float64).reshape(len(outputs), -1)
        keys: list[Hashable] = [(values.shape[1], b"")] * len(values)
        for odd in np.flatnonzero(~np.isfinite(values).all(axis=1)).tolist():
            keys[odd] = _pattern(values[odd])
        for odd in _beyond(outputs.reshape(len(outputs), -1)).tolist():
            keys[odd] = (values.shape[1], outputs[odd].tobytes())
        room = 0 if width is None else max(width - values.shape[1], 0)
        return Outcomes(np.pad(values, ((0, 0), (0, room)), constant_values=np.nan)[:, : width or WIDEST], keys)
    found = [_numbers(output) for output in outputs]
    keys = [_key(out, own) for out, own in zip(outputs, found, strict=True)]
    longest = max((own.size for own in found if own is not None), default=0)
    width = min(longest, WIDEST) if width is None else width
    values = np.full((len(found), width), np.nan)
    for i, own in enumerate(found):
        if own is not None:
            kept = own[:width]
            values[i, : kept.size] = kept
    return Outcomes(values, keys)


def _pattern(numbers: Floats) -> Hashable:
    """How many numbers there are, and which of them are nan or infinite."""
    finite = np.isfinite(numbers)
    if finite.all():
        return numbers.size, b""
    kinds = np.isnan(numbers) + 2 * np.isposinf(numbers) + 3 * np.isneginf(numbers)
    return numbers.size, kinds.astype(np.uint8).tobytes()


def audit_callable(
    mechanism: Callable[..., Any],
    claimed: TradeOffCurve | None,
    inputs: Any,
    score: Callable[[Any], Any] | None,
    vectorized: bool | None,
    samples: int,
    false_alarm: float,
) -> AuditReport:
    """Audit a function against a curve (see `privfit.mechanisms.audit`)."""
    if claimed is None or inputs is None:
        raise TypeError(
            "a callable needs claimed=, the curve that it promises, and inputs=(x, neighbour of x); "
            "for instance audit(f, claimed=gaussian(1.0), inputs=(0.0, 1.0))."
        )
    check_curve(claimed)
    if not isinstance(inputs, (tuple, list)) or len(inputs) != 2:
        raise TypeError(f"inputs must be a pair of neighbouring inputs, got {type(inputs).__name__}.")
    if score is not None and not callable(score):
        raise TypeError(f"score must be a callable that maps an output to a number, got {type(score).__name__}.")
    several = _takes_count(mechanism) if vectorized is None else vectorized
    if several not in (True, False):
        raise TypeError(f"vectorized must be True, False or None, got {type(vectorized).__name__}.")
    ahead = max(samples // 5, 500)

    def run(place: int, count: int) -> Any:
        return _outputs(mechanism, inputs[place], f"inputs[{place}]", count, several)

    lesson, pilot, drawn = ([run(place, count) for place in (0, 1)] for count in (ahead, ahead, samples))
    judge = _learnt(lesson) if score is None else _given(score, several, lesson)
    p, q, pilot_p, pilot_q = (judge(own) for own in (*drawn, *pilot))
    tests, points = event_tests(p, q, pilot_p, pilot_q, claimed, false_alarm / 2)
    tests += run_tests(_repeats(lesson[0], pilot[0]), false_alarm / 2)
    name = getattr(mechanism, "__qualname__", type(mechanism).__name__)
    return AuditReport(
        subject=str(name),
        neighbours="inputs[0] against inputs[1]",
        claimed=claimed,
        samples=samples,
        false_alarm=false_alarm,
        tests=tuple(tests),
        points=tuple(points),
    )


def _takes_count(mechanism: Callable[..., Any]) -> bool:
    """Whether a function has two required positional parameters."""
    try:
        parameters = inspect.signature(mechanism).parameters.values()
    except (TypeError, ValueError):
        return False
    plain = (inspect.Parameter.POSITIONAL_ONLY, inspect.Parameter.POSITIONAL_OR_KEYWORD)
    return sum(p.kind in plain and p.default is p.empty for p in parameters) == 2


def _outputs(mechanism: Callable[..., Any], x: Any, name: str, count: int, several: bool) -> Any:
    try:
        found = mechanism(x, count) if several else [mechanism(x) for _ in range(count)]
    except Exception as error:
        raise RuntimeError(
            f"mechanism raised {type(error).__name__} for {name}; an exception is an output, too: catch it and "
            "return a value for it, or correct the mechanism."
        ) from error
    if not isinstance(found, np.ndarray):
        try:
            found = list(found)
        except TypeError:
            raise TypeError(
                f"mechanism(input, n) must return n outputs, got {type(found).__name__}; pass vectorized=False if "
                "its second parameter is something else."
            ) from None
    if np.ndim(found) == 0 if isinstance(found, np.ndarray) else False:
        raise TypeError("mechanism(input, n) must return n outputs, got one number.")
    if len(found) != count:
        raise ValueError(f"mechanism(input, n) must return n outputs, got {len(found)} for n = {count} at {name}.")
    return found


def _learnt(lesson: list[Any]) -> Callable[[Any], Floats]:
    """The default score: keys, and within finite outputs of one length their numbers."""
    width = max(read_outputs(own).values.shape[1] for own in lesson)
    p, q = (read_outputs(own, width) for own in lesson)
    by_key = learn_keys(p.keys, q.keys)
    enough = min(p.finite.sum(), q.finite.sum()) >= 50
    by_value = learn_score(p.values[p.finite], q.values[q.finite]) if width and enough else None

    def judge(outputs: Any) -> Floats:
        seen = read_outputs(outputs, width)
        total = by_key(seen.keys)
        if by_value is not None and seen.finite.any():
            total[seen.finite] += by_value(seen.values[seen.finite])
        return total

    return judge


def _given(score: Callable[[Any], Any], several: bool, lesson: list[Any]) -> Callable[[Any], Floats]:
    """The user's score; nan is an outcome of its own, at the end of the scale that a pilot chooses."""

    def raw(outputs: Any) -> Floats:
        try:
            found = score(outputs) if several else [score(output) for output in outputs]
            values = np.asarray(found, dtype=np.float64)
        except Exception as error:
            raise RuntimeError(f"score raised {type(error).__name__}; it must map every output to a number.") from error
        if values.shape != (len(outputs),):
            raise ValueError(f"score must return one number per output, got shape {values.shape}.")
        return values

    of_p, of_q = (np.isnan(raw(own)).mean() for own in lesson)
    missing = np.inf if of_q >= of_p else -np.inf

    def judge(outputs: Any) -> Floats:
        values = raw(outputs)
        return np.where(np.isnan(values), missing, values)

    return judge


def _repeats(first: Any, again: Any) -> list[Planned]:
    """Tests that two calls, and outputs next to each other, do not share noise."""
    width = max(read_outputs(own).values.shape[1] for own in (first, again))
    a, b = (read_outputs(own, width).rows() for own in (first, again))
    half = len(a) // 2
    calls = [x == y for x, y in zip(a[:half], b[:half], strict=True)]
    inside = [x == y for x, y in zip(a[half::2], a[half + 1 :: 2], strict=False)]
    # outputs of the second call's other half: neighbours against outputs that are far apart
    rest = b[half:]
    quarter = len(rest) // 2
    near = [x == y for x, y in zip(rest[:quarter:2], rest[1:quarter:2], strict=False)]
    far = [x == y for x, y in zip(rest[quarter : quarter + quarter // 2], rest[quarter + quarter // 2 :], strict=False)]
    return [
        Planned("equal outputs of two calls", "calls repeat each other's noise", partial(_fisher, calls, inside)),
        Planned("equal outputs in a row", "outputs next to each other share noise", partial(_fisher, near, far)),
    ]


def _fisher(tried: list[bool], control: list[bool], level: float) -> Finding:
    """Exact test that pairs in `tried` are not equal more often than pairs in `control`."""
    from scipy.stats import hypergeom

    equal, others = sum(tried), sum(control)
    chance = float(hypergeom.sf(equal - 1, len(tried) + len(control), equal + others, len(tried)))
    # on a scale where more is worse, as for the other tests
    return Finding(-math.log10(max(chance, 1e-300)), -math.log10(level), chance <= level)
