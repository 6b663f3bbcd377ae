"""One curve of every family, for tests that hold for all of them."""

from functools import cache

import numpy as np
import pytest

import privfit.accounting as pa
from privfit.accounting.discrete_noise import discrete_gaussian, discrete_laplace
from privfit.accounting.exponential_mechanism import exponential_mechanism
from privfit.accounting.generalized_gaussian import generalized_gaussian
from privfit.accounting.group import group
from privfit.accounting.renyi_conversion import from_rdp, from_zcdp
from privfit.accounting.shuffling import shuffled
from privfit.accounting.subsampling import subsample
from privfit.accounting.symmetrized import symmetrized
from privfit.accounting.unary_encoding import optimized_unary_encoding

CURVES = {
    "gaussian": pa.gaussian(1.2),
    "laplace": pa.laplace(1.5),
    "laplace small": pa.laplace(0.01),
    "randomized response": pa.randomized_response(1.0),
    "randomized response, 5 categories": pa.randomized_response(1.0, 5),
    "(eps, delta)": pa.approximate_dp(0.7, 0.02),
    "points": pa.from_points([0.1, 0.3, 0.6], [0.6, 0.3, 0.1]),
    "profile": pa.from_profile([0.2, 1.0, 2.0], [0.3, 0.1, 0.05]),
    "limit": pa.symmetric_laplace_limit(0.7),
    "limit, shape 3": pa.symmetric_laplace_limit(0.7, 3),
    "symmetric Laplace, d = 2": pa.symmetric_laplace(2, 0.8),
    "symmetric Laplace, d = 6": pa.symmetric_laplace(6, 0.8),
    "generalised Laplace, pure DP": pa.symmetric_laplace(3, 0.6, 2),
    "generalised Laplace, bounded": pa.symmetric_laplace(4, 0.6, 2.25),
    "generalised Laplace, large shape": pa.symmetric_laplace(2, 0.9, 12),
    "zero inflated": pa.zil(3, 1.0, 0.05),
    "slack": pa.shifted(pa.gaussian(1.0), 1e-6),
    "worst of two": pa.minimum(pa.gaussian(1.0), pa.laplace(1.2)),
    "symmetrised": symmetrized(pa.from_points([0.1, 0.4], [0.6, 0.2])),
    "subsampled": subsample(pa.gaussian(1.5), 0.3),
    "sampled without replacement": subsample(pa.laplace(1.5), 0.3, "without_replacement"),
    "shuffled": shuffled(1.5, 20),
    "discrete Laplace": discrete_laplace(1.1, 4),
    "discrete Gaussian": discrete_gaussian(1.7, 2),
    "discrete Gaussian, wide": discrete_gaussian(90.0, 100),
    "unary encoding": optimized_unary_encoding(1.0),
    "bounded range": exponential_mechanism(1.3),
    "generalised Gaussian": generalized_gaussian(0.9, 1.4),
    "group of 2": group(pa.zero_inflated(pa.gaussian(0.6), 0.02), 2),
    "implied by RDP": from_rdp([1.5, 4.0, 16.0], [0.4, 1.0, 4.5]),
    "implied by zCDP": from_zcdp(0.3),
    "mixture with atoms": pa.gaussian(0.8).compose(pa.randomized_response(0.5)),
    "limits composed": pa.symmetric_laplace_limit(0.4).self_compose(2).compose(pa.gaussian(0.5)),
    "composed": pa.compose(pa.laplace(0.6), pa.symmetric_laplace(3, 0.4), pa.gaussian(0.3)),
    "subsampled steps": subsample(pa.gaussian(1.0), 0.2).self_compose(8),
}

SYMMETRIC = {name: curve for name, curve in CURVES.items() if name != "points"}
ALPHAS = np.concatenate([[0.0, 1e-12, 1e-6, 1e-3], np.linspace(0.01, 0.99, 41), [1 - 1e-6, 1.0]])
THRESHOLDS = np.array([-5.0, -1.5, -0.7, -0.3, -1e-3, 0.0, 1e-3, 0.3, 0.7, 1.0, 1.5, 5.0, 20.0])

# families whose numbers cost many milliseconds each: most points are compared in the long run only
COSTLY = {
    "limit, shape 3",
    "symmetric Laplace, d = 2",
    "subsampled",
    "shuffled",
    "group of 2",
    "implied by RDP",
    "implied by zCDP",
    "limits composed",
    "subsampled steps",
}
quick_and_full = [
    *(pytest.param(name, name not in COSTLY, id=name) for name in CURVES),
    *(pytest.param(name, True, id=f"{name}, every point", marks=pytest.mark.slow) for name in COSTLY),
]


@cache
def at_levels(name, bound):
    """The curve of a family at all levels, which several tests look at."""
    values = CURVES[name].curve(ALPHAS, bound=bound)
    values.setflags(write=False)
    return values

