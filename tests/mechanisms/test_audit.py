"""Black-box audit: samples of both neighbours against the claimed curve; every broken mechanism is caught.

Events {log-likelihood ratio > t} at 12 thresholds from a pilot, both directions; an alarm is raised if
one-sided Clopper-Pearson bounds contradict the claimed trade-off curve, at total false-alarm rate 1e-6.
"""

import math
from dataclasses import dataclass

import numpy as np
import pytest
from scipy import special, stats

from privfit.mechanisms import (
    Box,
    DiscreteLaplace,
    Gaussian,
    RandomizedResponse,
    SymmetricLaplace,
    ZeroInflatedLaplace,
    release,
)
from privfit.mechanisms.samplers import gamma_rows, keep_rows, normal_coordinates

N, THRESHOLDS, ALARM = 50_000, 12, 1e-6
LEVEL = ALARM / (2 * 2 * THRESHOLDS)


def audit(p, q, pilot, claimed):
    """Whether log-ratios under P and Q contradict a symmetric trade-off curve."""
    cuts = np.quantile(pilot[np.isfinite(pilot)], np.linspace(0.02, 0.98, THRESHOLDS - 1))
    for _ in range(2):
        for t in [*cuts, np.inf]:
            # The last event is certain disclosure: a value only one of the two can give.
            hits = [int(((s >= t) if t == np.inf else (s > t)).sum()) for s in (p, q)]
            false_alarm = stats.beta.ppf(1 - LEVEL, hits[0] + 1, N - hits[0]) if hits[0] < N else 1.0
            found = stats.beta.ppf(LEVEL, hits[1], N - hits[1] + 1) if hits[1] > 0 else 0.0
            if 1 - found < claimed.curve(float(false_alarm)):
                return True
        p, q, cuts = -q, -p, -cuts[::-1]
    return False


def log_density(law, z):
    """Log density of the noise, up to a constant, straight from textbook formulas."""
    if isinstance(law, DiscreteLaplace):
        return -np.abs(z).sum(axis=1) / law.scale
    r = np.linalg.norm(z, axis=1) / law.scale
    if isinstance(law, Gaussian):
        return -(r**2) / 2
    k = getattr(law, "shape", 1)
    v, r = k - z.shape[1] / 2, np.maximum(r, 1e-12)
    return v * np.log(r) + np.log(special.kve(abs(v), math.sqrt(2 * k) * r)) - math.sqrt(2 * k) * r


def log_ratio(law, y, x, other):
    with np.errstate(all="ignore"):
        ratio = log_density(law, y - other) - log_density(law, y - x)
    if isinstance(law, ZeroInflatedLaplace):
        near = 2.0**-11
        ratio = np.where((np.abs(y - other) < near).all(axis=1), np.inf, ratio)
        ratio = np.where((np.abs(y - x) < near).all(axis=1), -np.inf, ratio)
    return ratio


def alarm(honest, used, dim=2, key=0, domain=None):
    """Audit the law `used` against the curve that `honest` claims on [0, 1]^dim, corner against corner."""
    box = domain or Box(dict.fromkeys(range(dim), (0, 1)))
    x, other = np.zeros(dim), box.upper
    draw = lambda point, k, n: release(np.tile(point, (n, 1)), used, box, rng=k).frame  # noqa: E731
    claimed = honest.tradeoff(Box(dict.fromkeys(range(dim), (0, 1))))
    pilot = log_ratio(honest, draw(other, key + 3, 4000), x, other)
    p = log_ratio(honest, draw(x, key + 1, N), x, other)
    q = log_ratio(honest, draw(other, key + 2, N), x, other)
    return audit(p, q, pilot, claimed)


HONEST = [
    (Gaussian(1.4), 2),
    (DiscreteLaplace(1.0), 1),
    (SymmetricLaplace(1.0), 1),
    (SymmetricLaplace(1.5), 2),
    (SymmetricLaplace(1.5, shape=3), 3),
    (ZeroInflatedLaplace(1.0, 0.05), 1),
    (ZeroInflatedLaplace(1.5, 0.05), 2),
]
honest_laws = pytest.mark.parametrize(("law", "dim"), HONEST, ids=repr)


@honest_laws
def test_correct_mechanisms_raise_no_alarm(law, dim):
    assert not any(alarm(law, law, dim, key=100 * i) for i in range(3))


@pytest.mark.slow
@honest_laws
def test_correct_mechanisms_raise_no_alarm_in_many_runs(law, dim):
    assert not any(alarm(law, law, dim, key=1000 + 100 * i) for i in range(50))


@honest_laws
def test_mutant_scale_nine_tenths_is_caught(law, dim):
    if isinstance(law, Gaussian):
        assert alarm(law, Gaussian(0.9 * law.scale), dim)
    # Heavy tails hide a tenth of the scale from events; the goodness-of-fit test below sees it.
    assert ill_fitting(law, 0.9 * noise(law, dim))


@honest_laws
def test_mutant_sensitivity_halved_is_caught(law, dim):
    # Ranges believed to be half of what they are: the true corners are twice as far apart.
    assert alarm(law, law, dim, domain=Box(dict.fromkeys(range(dim), (0, 2))))


@honest_laws
def test_mutant_half_the_variance_is_caught(law, dim):
    from dataclasses import replace

    assert alarm(law, replace(law, scale=law.scale / math.sqrt(2)), dim)


@pytest.mark.parametrize("dim", [1, 2])
def test_mutant_zero_inflation_doubled_is_caught(dim):
    assert alarm(ZeroInflatedLaplace(1.5, 0.05), ZeroInflatedLaplace(1.5, 0.1), dim)


def noise(law, dim, rows=N, key=7):
    box = Box(dict.fromkeys(range(dim), (0, 1)))
    return release(np.zeros((rows, dim)), law, box, rng=key).frame


def ill_fitting(law, z):
    """Whether noise fails its law: variance, characteristic function at 3 points, atom count; 1e-6 each."""
    bound = stats.norm.isf(1e-6)
    values = [(z[:, 0] ** 2, float(np.max(law.variance)))]
    for size in (0.3, 0.8, 2.0):
        t = np.full(z.shape[1], size / law.scale)
        values.append((np.cos(z @ t), law.characteristic_function(t)))
    if law.exact_fraction:
        # One noisy coordinate rounds to 0 with probability 1 - exp(-sqrt(2) (g/2)/scale), two hardly ever.
        rounded = -math.expm1(-(2.0**-10) / (law.scale * math.sqrt(2))) if z.shape[1] == 1 else 0.0
        atom = law.exact_fraction + (1 - law.exact_fraction) * rounded
        values.append(((z == 0).all(axis=1) * 1.0, atom))
    return any(abs(v.mean() - mean) > bound * v.std() / math.sqrt(len(v)) for v, mean in values)


@honest_laws
def test_correct_noise_fits_and_mutant_scale_eleven_tenths_is_caught(law, dim):
    assert not any(ill_fitting(law, noise(law, dim, key=k)) for k in range(20))
    assert ill_fitting(law, 1.1 * noise(law, dim))


@dataclass(frozen=True)
class AtomPerCoordinate(ZeroInflatedLaplace):
    def _unit_noise(self, words, rows, dim):
        for column in normal_coordinates(words, rows, dim, gamma_rows(words, rows, 1)):
            yield column * keep_rows(words, rows, self.delta0)


@dataclass(frozen=True)
class RadiusPerCoordinate(SymmetricLaplace):
    def _unit_noise(self, words, rows, dim):
        for _ in range(dim):
            yield from normal_coordinates(words, rows, 1, gamma_rows(words, rows, self.shape))


@dataclass(frozen=True)
class SameNoiseInTwoRows(Gaussian):
    def _unit_noise(self, words, rows, dim):
        for column in super()._unit_noise(words, rows, dim):
            column[1::2] = column[0 : rows - rows % 2 : 2]
            yield column


def test_mutant_atom_per_coordinate_is_caught():
    assert ill_fitting(ZeroInflatedLaplace(1.5, 0.05), noise(AtomPerCoordinate(1.5, 0.05), 2))


@pytest.mark.parametrize("shape", [1, 3])
def test_mutant_radius_per_coordinate_is_caught(shape):
    assert ill_fitting(SymmetricLaplace(1.5, shape=shape), noise(RadiusPerCoordinate(1.5, shape=shape), 2))


def repeated_rows(z):
    """Largest number of times that a pair of noise values occurs."""
    return np.unique(z, axis=0, return_counts=True)[1].max()


def test_mutant_same_noise_in_two_rows_is_caught():
    # Two equal pairs among 2000 rows on a grid of a thousandth: chance far below 1e-3.
    assert repeated_rows(noise(Gaussian(1.0), 3, rows=2000)) == 1
    assert repeated_rows(noise(SameNoiseInTwoRows(1.0), 3, rows=2000)) >= 2


def test_mutant_constant_seed_is_caught():
    def fresh(**options):
        x, box = np.zeros((50, 2)), Box({0: (0, 1), 1: (0, 1)})
        return [release(x, Gaussian(1.0), box, **options).frame.tobytes() for _ in range(2)]

    assert len(set(fresh())) == 2
    assert len(set(fresh(rng=1))) == 1


@dataclass(frozen=True)
class TwiceTheEpsilon(RandomizedResponse):
    def threshold(self):
        return RandomizedResponse(2 * self.epsilon, self.categories).threshold()


@dataclass(frozen=True)
class LieMayBeTheTruth(RandomizedResponse):
    def randomize(self, codes, words):
        lie = words(len(codes)) >= np.uint64(self.threshold())
        any_label = (words(len(codes)) % np.uint64(self.categories)).astype(np.int64)
        return np.where(lie, any_label, codes)


def wrong_labels(law, honest, key=1):
    """Whether label frequencies fail the honest law's, at 1e-6."""
    from privfit.mechanisms import Categories

    labels = [str(i) for i in range(honest.categories)]
    x = np.full((N, 1), "1", dtype=object)
    out = release(x, law, Categories({"l": labels}), rng=key).frame.ravel()
    counts = np.array([(out == label).sum() for label in labels])
    p = honest.keep_probability
    wanted = np.full(len(labels), (1 - p) / (len(labels) - 1))
    wanted[1] = p
    return stats.chisquare(counts, N * wanted).pvalue < 1e-6


@pytest.mark.parametrize("categories", [2, 3, 5])
def test_randomised_response_mutants_are_caught(categories):
    honest = RandomizedResponse(0.5, categories)
    assert not any(wrong_labels(honest, honest, key) for key in range(10))
    assert wrong_labels(TwiceTheEpsilon(0.5, categories), honest)
    assert wrong_labels(LieMayBeTheTruth(0.5, categories), honest)
