"""Networks: far closer to the truth than the naive one; the tests that train need torch."""

import pickle
import sys

import numpy as np
import pytest
from simulations import zil_noise

from privfit.estimators import CapabilityError
from privfit.estimators.relu_network import ReluNetworkClassifier, ReluNetworkRegressor
from privfit.mechanisms import Laplace, RandomizedResponse, ZeroInflatedLaplace

LAW = ZeroInflatedLaplace(0.5, 0.5)


@pytest.mark.parametrize("model", [ReluNetworkRegressor, ReluNetworkClassifier])
def test_without_torch_the_error_names_the_extra(monkeypatch, model):
    monkeypatch.setitem(sys.modules, "torch", None)
    with pytest.raises(ModuleNotFoundError, match=r'pip install "privfit\[torch\]"'):
        model().fit(np.zeros((4, 1)), [0, 1, 0, 1])


@pytest.mark.parametrize(
    ("options", "match"),
    [
        ({"hidden": 0}, "hidden"),
        ({"draws": 0}, "draws"),
        ({"alpha": -1.0}, "alpha"),
        ({"correction": "exact"}, "correction"),
    ],
)
def test_parameters_are_checked_before_training(monkeypatch, options, match):
    monkeypatch.setitem(sys.modules, "torch", object())
    with pytest.raises(ValueError, match=match):
        ReluNetworkRegressor(**options).fit(np.zeros((4, 1)), np.zeros(4))


def truth(x):
    return 2 * np.abs(x[:, 0]) + np.maximum(x[:, 1], 0)


def error(model, seed):
    t = np.random.default_rng(seed + 100).uniform(-1, 1, (4000, 2))
    return float(np.sqrt(np.mean((model.predict(t) - truth(t)) ** 2)))


@pytest.mark.slow
@pytest.mark.parametrize("seed", [0, 1])
def test_second_draws_undo_the_noise(seed):
    """RMSE against the truth: naive above 0.2, corrected below a third of it, raw data best; two seeds."""
    pytest.importorskip("torch")
    rng = np.random.default_rng(seed)
    x = rng.uniform(-1, 1, (10_000, 2))
    y = truth(x) + 0.2 * rng.normal(size=len(x))
    z = x + zil_noise(rng, len(x), 2, 0.5, 0.5)
    options = {"hidden": 16, "epochs": 30, "random_state": 0}
    oracle = error(ReluNetworkRegressor(**options).fit(x, y), seed)
    naive = error(ReluNetworkRegressor(noise=LAW, correction="naive", **options).fit(z, y), seed)
    model = ReluNetworkRegressor(noise=LAW, draws=5, **options).fit(z, y)
    assert oracle < error(model, seed) < naive / 3
    assert naive > 0.2
    assert not model.diagnostics_["at_bound"]
    again = pickle.loads(pickle.dumps(model))
    np.testing.assert_array_equal(again.predict(x[:9]), model.predict(x[:9]))


@pytest.mark.slow
def test_a_classifier_with_a_randomised_label():
    pytest.importorskip("torch")
    rng = np.random.default_rng(0)
    x = rng.uniform(-1, 1, (20_000, 2))
    p = 1 / (1 + np.exp(-(6 * np.abs(x[:, 0]) - 3)))
    y = rng.random(len(x)) < p
    flipped = np.where(rng.random(len(x)) < 0.2, ~y, y)
    z = x + zil_noise(rng, len(x), 2, 0.3, 0.5)
    noise = {(0, 1): ZeroInflatedLaplace(0.3, 0.5), "y": RandomizedResponse(float(np.log(4.0)))}
    options = {"hidden": 16, "epochs": 30, "random_state": 0}
    model = ReluNetworkClassifier(noise=noise, **options).fit(z, flipped)
    naive = ReluNetworkClassifier(noise=noise, correction="naive", **options).fit(z, flipped)
    gaps = [np.sqrt(np.mean((m.predict_proba(x)[:, 1] - p) ** 2)) for m in (model, naive)]
    assert gaps[0] < 0.5 * gaps[1]
    assert list(model.classes_) == [False, True]


@pytest.mark.slow
def test_other_noise_and_other_modules():
    torch = pytest.importorskip("torch")
    x, y = np.random.default_rng(0).normal(size=(200, 2)), np.arange(200.0)
    with pytest.raises(CapabilityError, match="exactly one ZeroInflatedLaplace"):
        ReluNetworkRegressor(noise=Laplace(0.1)).fit(x, y)
    own = ReluNetworkRegressor(module=lambda d: torch.nn.Linear(d, 1), epochs=2).fit(x, y)
    assert own.predict(x).shape == (200,)
    with pytest.raises(ValueError, match="two classes"):
        ReluNetworkClassifier(epochs=1).fit(x, np.arange(200) % 3)
