r"""Does a mechanism keep its promise? Samples of its outputs against the claimed curve, with a stated error rate.

An audit can disprove a promise, never prove one. Every test below says "alarm" about a correct mechanism with
probability at most its share, for every number of samples, and the shares add up to `false_alarm` (Bonferroni):
no normal approximations, no simulated thresholds, rounding to the grid and the sampler's slack inside the null.

    events        {log dQ/dP > t}, 12 thresholds from a pilot, both directions: Clopper-Pearson limits against f
    fit           every marginal, the size of the noise vector, the characteristic function, the number of atoms
    sharing       equal or dependent rows, at a distance of 1 or a block, repeats anywhere, and between two releases
    grid          off-grid values, -0.0, values that are not finite, undeclared labels: impossible, so no share

Half of `false_alarm` goes to the events, half to the rest, evenly. A law of ours is compared with all that it states,
in both directions: less noise is a breach, more of it a mistake in the stated law. Of another mechanism only the
curve is known; it may be more private than claimed. Each module audit_... opens with why its tests have their level.
Audits by events and Clopper-Pearson limits: Jagielski, Ullman & Oprea (2020), Nasr et al. (2023).
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import ArrayLike

from privfit.accounting.validation import check_array, check_choice, check_integer, check_number
from privfit.mechanisms.additive import AdditiveLaw
from privfit.mechanisms.audit_callable import audit_callable
from privfit.mechanisms.audit_draws import Part, draw, parts_of, score
from privfit.mechanisms.audit_events import event_tests
from privfit.mechanisms.audit_noise import Sample, atom_test, fit_tests, joint_tests, sharing_tests
from privfit.mechanisms.audit_release import release_tests
from privfit.mechanisms.audit_report import AuditPoint, AuditReport, AuditTest, run_tests
from privfit.mechanisms.audit_scores import learn_score
from privfit.mechanisms.domain import Box
from privfit.mechanisms.domains import Domain, as_domains
from privfit.mechanisms.grid import ROUNDINGS
from privfit.mechanisms.law import Law, check_protect
from privfit.mechanisms.product import Product

if TYPE_CHECKING:
    from privfit.accounting import TradeOffCurve

__all__ = ["AuditPoint", "AuditReport", "AuditTest", "audit", "audit_noise"]

SAMPLES_MIN, SAMPLES_MAX = 100, 100_000_000


def audit(
    mechanism: Any,
    domain: Any = None,
    *,
    protect: str = "record",
    samples: int = 50_000,
    false_alarm: float = 1e-6,
    rounding: str = "nearest",
    claimed: TradeOffCurve | None = None,
    inputs: tuple[Any, Any] | None = None,
    score: Callable[[Any], Any] | None = None,
    vectorized: bool | None = None,
) -> AuditReport:
    """Test a mechanism: a law of privfit on a domain, or any function that adds noise against the curve it claims.

    Parameters
    ----------
    mechanism : Law, mapping of columns to laws, Release, or callable
        A law is released on this machine, with fresh entropy; of a release, its law on its domain. A callable maps an
        input, any object, to one output: a number, a vector, a label; or, if `vectorized`, ``(input, n)`` to n
        outputs. It must draw new noise each time.
    domain : Box, Ball, Categories or tuple of them
        For a law: the neighbours are two opposite ends of it.
    protect : {"record", "attribute"}
        For a law: neighbours that differ in the whole row, or in the one column that is protected least.
    samples : int
        Outputs drawn of each of the two inputs (a law releases the first one twice as often), from 100. Small
        breaches need many: the default sees a scale that is a tenth too small.
    false_alarm : float
        Probability, at most, that a correct mechanism does not pass, in [1e-12, 0.5].
    rounding : {"nearest", "stochastic"}
        For a law: as in `release`.
    claimed : TradeOffCurve
        For a callable: what it promises for the first input against the second.
    inputs : pair
        For a callable: two neighbouring inputs.
    score : callable, optional
        For a callable: maps an output (or n outputs if `vectorized`) to a number, larger where the second input is
        more likely, best its log-likelihood ratio. By default it is learnt on outputs that are not used again. A poor
        score misses breaches but never accuses wrongly.
    vectorized : bool, optional
        Whether the callable takes ``(input, n)``; by default, whether it has two required parameters.

    Returns
    -------
    AuditReport
        ``report.passed``; prints as a table; ``report.epsilon_lower(delta)`` is what the samples prove.

    Raises
    ------
    TypeError, ValueError
        If the parameters do not fit together, or a callable returns something that cannot be compared.
    RuntimeError
        If the callable raises an exception, which is chained.

    Examples
    --------
    >>> import numpy as np
    >>> from privfit.accounting import laplace
    >>> from privfit.mechanisms import Box, SymmetricLaplace
    >>> audit(SymmetricLaplace(1.0), Box({"x": (0, 1)}), samples=2000).passed
    True
    >>> def noisy_count(count, n):
    ...     return count + np.random.default_rng().laplace(scale=0.5, size=n)
    >>> report = audit(noisy_count, claimed=laplace(1.0), inputs=(10, 11), samples=5000)
    >>> report.passed, report.epsilon_lower(0.0) > 1.0
    (False, True)
    """
    samples = check_integer("samples", samples, SAMPLES_MIN, SAMPLES_MAX)
    false_alarm = check_number("false_alarm", false_alarm, 1e-12, 0.5)
    if domain is None and hasattr(mechanism, "law") and hasattr(mechanism, "domain"):
        mechanism, domain = mechanism.law, mechanism.domain
    law = Product(mechanism) if isinstance(mechanism, Mapping) else mechanism
    if isinstance(law, Law):
        if claimed is not None or inputs is not None or score is not None or vectorized is not None:
            raise TypeError("a law states its curve: claimed, inputs, score and vectorized are for callables.")
        return _audit_law(law, domain, protect, samples, false_alarm, rounding)
    if not callable(mechanism):
        raise TypeError(
            f"mechanism must be a law, a mapping of columns to laws or a callable, got {type(mechanism).__name__}."
        )
    if domain is not None or protect != "record" or rounding != "nearest":
        raise TypeError("domain, protect and rounding are for laws; pass claimed= and inputs= with a callable.")
    return audit_callable(mechanism, claimed, inputs, score, vectorized, samples, false_alarm)


def _audit_law(
    law: Law, domain: Any, protect: str, samples: int, false_alarm: float, rounding: str
) -> AuditReport:
    from privfit.accounting import shifted

    check_protect(protect)
    check_choice("rounding", rounding, tuple(ROUNDINGS))
    declared = tuple(map(_without_encoding, as_domains(domain)))
    where = declared[0] if len(declared) == 1 else declared
    claimed = shifted(law.tradeoff(where, protect), law.slack(where))
    parts = parts_of(law, where, protect)
    stochastic = rounding == "stochastic"
    ahead = max(samples // 10, 1000)
    pilot = [draw(law, where, parts, end, ahead, rounding) for end in (0, 1)]
    drawn = [draw(law, where, parts, end, samples, rounding) for end in (0, 0, 1)]
    scored = [score(parts, own, stochastic) for own in (*pilot, drawn[0], drawn[2])]
    if any(own is None for own in scored):
        rows = [np.concatenate(own, axis=1) for own in (*pilot, drawn[0], drawn[2])]
        # one half of the pilot teaches the score, the other one gives its thresholds
        learnt = learn_score(rows[0][::2], rows[1][::2])
        scored = [learnt(own) for own in (rows[0][1::2], rows[1][1::2], *rows[2:])]
    pilot_p, pilot_q, p, q = (np.asarray(own) for own in scored)
    tests, points = event_tests(p, q, pilot_p, pilot_q, claimed, false_alarm / 2)
    tests += run_tests(release_tests(law, parts, drawn, stochastic), false_alarm / 2)
    return AuditReport(
        subject=str(law),
        neighbours=_neighbours(parts, protect),
        claimed=claimed,
        samples=samples,
        false_alarm=false_alarm,
        tests=tuple(tests),
        points=tuple(points),
    )


def _without_encoding(domain: Domain) -> Domain:
    """The same bounds for numbers: an audit sends numbers, whatever dates or labels they stand for."""
    if type(domain) is not Box:
        return domain
    bounds = dict(zip(domain.columns, domain.intervals, strict=True))
    return Box(bounds, dict(zip(domain.columns, domain.fill, strict=True)))


def _neighbours(parts: list[Part], protect: str) -> str:
    def shown(end: int) -> str:
        cells = []
        for part in parts:
            values = [part.domain.labels[0][int(part.ends[end][0])]] if part.labels else part.ends[end].tolist()
            shown_values = (f"{value:g}" if isinstance(value, float) else str(value) for value in values)
            cells += [f"{c} = {value}" for c, value in zip(part.columns, shown_values, strict=True)]
        return ", ".join(cells[:6]) + (", ..." if len(cells) > 6 else "")

    return f"{protect}: {shown(0)} against {shown(1)}"


def audit_noise(
    noise: ArrayLike | Callable[[int], ArrayLike],
    law: AdditiveLaw,
    *,
    samples: int = 50_000,
    false_alarm: float = 1e-6,
    blur: float | ArrayLike = 0.0,
) -> AuditReport:
    """Test whether a sample of noise comes from a law: marginals, size, joint law, atoms, rows that share noise.

    Parameters
    ----------
    noise : array of shape (n, dim) or (n,), or callable
        Independent rows, at least 100; or a function that returns n new ones, which is called twice.
    law : AdditiveLaw
        For instance ``SymmetricLaplace(sqrt(delta0) * scale)`` for the second noise of a "dr" correction.
    samples : int
        Rows drawn from a callable.
    false_alarm : float
        Probability, at most, that noise of this law does not pass, in [1e-12, 0.5].
    blur : float or array of shape (dim,)
        Bound of the distance between a value of `noise` and the draw that it stands for, for instance half a step of
        a grid.

    Returns
    -------
    AuditReport
        Without a claimed curve and without points.

    Raises
    ------
    TypeError, ValueError
        If `noise` is no finite sample of the right shape, or `law` adds no noise.

    Examples
    --------
    >>> import numpy as np
    >>> from privfit.mechanisms import Gaussian
    >>> z = np.random.default_rng(0).normal(size=(20_000, 2))
    >>> audit_noise(z, Gaussian(1.0)).passed, audit_noise(1.1 * z, Gaussian(1.0)).passed
    (True, False)
    """
    false_alarm = check_number("false_alarm", false_alarm, 1e-12, 0.5)
    samples = check_integer("samples", samples, SAMPLES_MIN, SAMPLES_MAX)
    if not isinstance(law, AdditiveLaw):
        raise TypeError(f"law must add noise, got {type(law).__name__}; audit(...) covers the others.")
    first, again = (_rows(noise(samples)), _rows(noise(samples))) if callable(noise) else (_rows(noise), None)
    dim = first.shape[1]
    law.scales(dim)
    if again is not None and again.shape != first.shape:
        raise ValueError("noise must return as many rows and columns each time it is called.")
    wide = np.broadcast_to(check_array("blur", blur, 0.0, 1e300), (dim,))
    sample = Sample(law, first if again is None else np.concatenate([first, again]), wide, 0.0, "noise")
    planned = fit_tests(sample) + joint_tests(law, law.scales(dim), sample.z, wide, 0.0)
    if law.exact_fraction and not wide.any():
        planned.append(atom_test(sample, int((sample.z == 0).all(axis=1).sum()), 0.0, 0.0))
    planned += sharing_tests(sample, first, again, (1, 2))
    return AuditReport(
        subject=f"noise against {law}",
        neighbours="none: the noise alone",
        claimed=None,
        samples=len(first),
        false_alarm=false_alarm,
        tests=tuple(run_tests(planned, false_alarm)),
    )


def _rows(noise: ArrayLike) -> Any:
    rows = check_array("noise", noise)
    rows = rows[:, None] if rows.ndim == 1 else rows
    if rows.ndim != 2 or len(rows) < SAMPLES_MIN or not np.isfinite(rows).all():
        raise ValueError(f"noise must be finite, of shape (n, dim) with n >= {SAMPLES_MIN}, got shape {rows.shape}.")
    return rows
