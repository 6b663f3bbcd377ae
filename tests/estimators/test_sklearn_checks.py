"""Every estimator passes scikit-learn's own contract."""

import warnings
from functools import partial

import pytest
from sklearn.utils.estimator_checks import check_estimator, estimator_checks_generator

from privfit.estimators import LinearRegression, LogisticRegression, Mean, Quantile, QuantileRegression
from privfit.estimators.huber_regression import HuberRegression
from privfit.estimators.linear_svc import LinearSVC
from privfit.estimators.losses import HuberLoss
from privfit.estimators.m_estimator import MEstimator
from privfit.estimators.poisson_regression import PoissonRegression
from privfit.estimators.principal_components import PrincipalComponents
from privfit.estimators.ridge import Ridge
from privfit.mechanisms import Gaussian, SymmetricLaplace, ZeroInflatedLaplace

MOMENTS = {  # every additive law is exact
    "LinearRegression": LinearRegression,
    "Ridge": Ridge,
    "PoissonRegression": PoissonRegression,
    "PrincipalComponents": PrincipalComponents,
    "Mean": Mean,
}
LAPLACE = {  # an exact inverse, or one of a smoothed loss, under Laplace noise of every kind
    "LogisticRegression": LogisticRegression,
    "QuantileRegression": QuantileRegression,
    "HuberRegression": HuberRegression,
    "LinearSVC": LinearSVC,
    "LinearSVC hinge": partial(LinearSVC, "hinge"),
    "Quantile": Quantile,
    "MEstimator": partial(MEstimator, HuberLoss(1.345)),
}
MODELS = MOMENTS | LAPLACE


def failures(model):
    with warnings.catch_warnings():
        # scikit-learn fits constant, collinear and tiny tables on purpose; our warnings about them are right
        warnings.simplefilter("ignore", UserWarning)
        results = check_estimator(model, on_fail=None, on_skip=None)
    assert sum(r["status"] == "passed" for r in results) > 35
    return {r["check_name"]: str(r["exception"]) for r in results if r["status"] == "failed"}


@pytest.mark.parametrize("model", MODELS.values(), ids=MODELS)
def test_check_estimator(model):
    assert not failures(model())


UNDER_NOISE = {"check_estimators_nan_inf", "check_fit2d_1sample", "check_n_features_in"}  # what noise may change


SEARCHES = ("Quantile", "QuantileRegression")  # one record has many minima


@pytest.mark.parametrize(
    "model", [pytest.param(m, id=k, marks=pytest.mark.slow if k in SEARCHES else ()) for k, m in MODELS.items()]
)
def test_the_checks_that_noise_may_change(model):
    """Under one law; all checks under every law are in the long run."""
    seen = set()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", UserWarning)
        for estimator, check in estimator_checks_generator(model(noise=ZeroInflatedLaplace(0.05, 0.3))):
            name = check.func.__name__
            if name in UNDER_NOISE:
                check(estimator)
                seen.add(name)
    assert seen == UNDER_NOISE


@pytest.mark.slow
@pytest.mark.parametrize("law", [ZeroInflatedLaplace(0.05, 0.3), SymmetricLaplace(0.05, shape=2)], ids=str)
@pytest.mark.parametrize("model", MODELS.values(), ids=MODELS)
def test_check_estimator_under_laplace_noise(model, law):
    """A law of one scale covers the columns of every table that scikit-learn tries."""
    assert not failures(model(noise=law))


@pytest.mark.slow
@pytest.mark.parametrize("model", MOMENTS.values(), ids=MOMENTS)
def test_check_estimator_under_gaussian_noise(model):
    assert not failures(model(noise=Gaussian(0.05)))


def test_works_in_a_pipeline_and_a_grid_search():
    import numpy as np
    from sklearn.model_selection import GridSearchCV
    from sklearn.pipeline import make_pipeline
    from sklearn.preprocessing import StandardScaler

    rng = np.random.default_rng(0)
    x = rng.normal(size=(120, 2))
    y = x @ [1.0, 2.0] + 0.1 * rng.normal(size=120)
    search = GridSearchCV(make_pipeline(StandardScaler(), LinearRegression()), {"linearregression__alpha": [0.0, 10.0]})
    assert search.fit(x, y).best_params_ == {"linearregression__alpha": 0.0}
