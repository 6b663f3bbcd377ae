"""Every estimator passes scikit-learn's own contract."""

import warnings

import pytest
from sklearn.utils.estimator_checks import check_estimator

from privfit.estimators import LinearRegression, LogisticRegression, Mean, Quantile, QuantileRegression

MODELS = [LogisticRegression, LinearRegression, QuantileRegression, Mean, Quantile]


@pytest.mark.parametrize("model", MODELS)
def test_check_estimator(model):
    with warnings.catch_warnings():
        # scikit-learn fits constant, collinear and tiny tables on purpose; our warnings about them are right
        warnings.simplefilter("ignore", UserWarning)
        results = check_estimator(model(), on_fail=None, on_skip=None)
    failed = {r["check_name"]: str(r["exception"]) for r in results if r["status"] == "failed"}
    assert not failed
    assert sum(r["status"] == "passed" for r in results) > 35


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
