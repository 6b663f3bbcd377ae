"""Composition beside dp-accounting's privacy-loss distributions: many releases, sampled steps, a loop of calls."""

from __future__ import annotations

from collections.abc import Callable

from harness import Row, duration, installed, medians, row

from privfit.accounting import gaussian, laplace, symmetric_laplace_limit

EXACT_LAPLACE = 4.69266742  # both of our bounds agree on these digits; dp-accounting at its finest gives 4.692667
STEPS, RATE = 1000, 0.01


def beside(
    ours: Callable[[], float], theirs: Callable[[], float], what: str, quick: bool, repeats: int
) -> tuple[float, str, float | None]:
    """Seconds of ours, the peer's cell, and the ratio; without the peer its cell says so."""
    if not installed("dp_accounting"):
        return medians(ours, quick=quick, repeats=repeats)[0], "dp-accounting is not installed", None
    mine, peer = medians(ours, theirs, quick=quick, repeats=repeats)
    return mine, f"{duration(peer)} ({what} {theirs():+.1e})", mine / peer


def interval(curve: object, delta: float) -> tuple[float, float]:
    return curve.epsilon(delta, bound="lower"), curve.epsilon(delta)  # type: ignore[attr-defined]


@row
def hundred_laplace(quick: bool) -> Row:
    def ours() -> float:
        low, high = interval(laplace(0.1).self_compose(100), 1e-6)
        return high - low

    def theirs() -> float:
        from dp_accounting.pld import privacy_loss_distribution as pld

        single = pld.from_laplace_mechanism(10.0, value_discretization_interval=1e-4)
        return single.self_compose(100).get_epsilon_for_delta(1e-6) - EXACT_LAPLACE

    mine, peer, ratio = beside(ours, theirs, "dp-accounting, upper bound only, off by", quick, 5)
    return Row(
        "100 Laplace releases (0.1), epsilon at 1e-6, both bounds",
        f"{duration(mine)} (interval {ours():.1e} wide)",
        peer,
        ratio,
        "0.3 s, 1e-6",
        mine <= 0.3 and ours() < 1e-6,
    )


@row
def sampled_steps(quick: bool) -> Row:
    steps = 50 if quick else STEPS

    def ours() -> float:
        low, high = interval(gaussian(1.0).subsample(RATE).self_compose(steps), 1e-5)
        return high - low

    high = gaussian(1.0).subsample(RATE).self_compose(steps).epsilon(1e-5)

    def theirs() -> float:
        from dp_accounting.pld import privacy_loss_distribution as pld

        single = pld.from_gaussian_mechanism(1.0, sampling_prob=RATE, value_discretization_interval=1e-4)
        return single.self_compose(steps).get_epsilon_for_delta(1e-5) - high

    mine, peer, ratio = beside(ours, theirs, "dp-accounting, upper bound only, above ours by", quick, 3)
    return Row(
        f"{steps:,} Poisson-sampled Gaussian steps (rate 0.01, sigma 1), epsilon at 1e-5, both bounds",
        f"{duration(mine)} (interval {ours():.1e} wide)",
        peer,
        ratio,
        "1e-6",
        ours() < 1e-6,
    )


@row
def thousand_calls(quick: bool) -> Row:
    calls, few = (20, 2) if quick else (1000, 20)

    def ours() -> float:
        curve = laplace(0.01)
        for _ in range(calls - 1):
            curve = curve.compose(laplace(0.01))
        return curve.epsilon(1e-6)

    def theirs() -> float:
        from dp_accounting.pld import privacy_loss_distribution as pld

        single = pld.from_laplace_mechanism(100.0, value_discretization_interval=1e-4)
        total = single
        for _ in range(few - 1):
            total = total.compose(single)
        return total.get_epsilon_for_delta(1e-6)

    mine, peer, ratio = beside(ours, theirs, f"dp-accounting, {few} of the calls: epsilon", quick, 3)
    return Row(f"{calls:,} separate compose calls and one epsilon", duration(mine), peer, ratio, "2 s", mine <= 2.0)


@row
def limits_in_closed_form(quick: bool) -> Row:
    (mine,) = medians(lambda: symmetric_laplace_limit(0.2).self_compose(10).epsilon(1e-2), quick=quick, repeats=5)
    return Row("10 limits of symmetric Laplace noise, epsilon at 1e-2", duration(mine), "nobody", None, "", None)
