"""The self-check passes here, catches coarse arithmetic and wrong ciphers, and notes nothing but a pass."""

import hashlib

import numpy as np
import pytest
from cryptography.hazmat.primitives.ciphers import Cipher, algorithms, modes

from privfit.mechanisms import Box, DiscreteLaplace, Gaussian, keystream, release, samplers, selfcheck
from privfit.mechanisms.continuous import SLACK_PER_VALUE
from privfit.mechanisms.selfcheck import check_ciphers, check_machine, sampling_errors

AES = algorithms.AES
BOX = Box({"x": (0, 1)})


@pytest.fixture
def fresh_check(monkeypatch):
    """A process that has not checked yet, without a cache folder."""
    monkeypatch.setenv("PRIVFIT_CACHE", "")
    check_machine.cache_clear()
    yield
    check_machine.cache_clear()


def count_checks(monkeypatch):
    """Count the checks, of a few values, and return the counter."""
    calls = []
    honest = selfcheck.sampling_errors
    monkeypatch.setattr(selfcheck, "_LENGTHS", (1, 2, 3))
    monkeypatch.setattr(selfcheck, "_SHAPES", (1, 2, 8))
    monkeypatch.setattr(selfcheck, "sampling_errors", lambda: calls.append(1) or honest())
    return calls


@pytest.fixture
def cached_check(fresh_check, monkeypatch, tmp_path):
    """A process that has not checked yet, with an empty cache folder; yields the folder and counts checks."""
    calls = count_checks(monkeypatch)
    monkeypatch.setenv("PRIVFIT_CACHE", str(tmp_path / "cache"))
    return tmp_path / "cache", calls


def test_this_machine_is_within_its_bounds():
    errors, bounds = sampling_errors()
    assert len(errors) == len(bounds) == 4000
    assert (errors <= bounds).all()
    # The slack charged per value covers the mean error more than eight times, and even every bound's mean.
    assert errors.mean() < SLACK_PER_VALUE / 8 and bounds.mean() < SLACK_PER_VALUE


def test_every_remainder_of_a_vector_is_checked_as_a_short_array_and_long_ones_are_too():
    lengths = selfcheck._LENGTHS
    assert set(range(1, 17)) <= set(lengths) and len({n % 16 for n in lengths if n > 64}) > 2
    assert max(selfcheck._SHAPES) > 4 * samplers.FACTORS and set(selfcheck._SHAPES) >= {1, 2, 8, 9}


def coarse(function, bits):
    """The same function with its result rounded to fewer bits."""

    def rounded(x, out=None):
        value = function(x)
        mantissa, exponent = np.frexp(value)
        value = np.ldexp(np.rint(np.ldexp(mantissa, bits)), exponent - bits)
        if out is None:
            return value
        out[:] = value
        return out

    return rounded


class Coarse:
    """numpy with one function good to 44 bits, for arrays of some lengths."""

    def __init__(self, name, lengths):
        self.name, self.lengths = name, lengths

    def __getattr__(self, attribute):
        honest = getattr(np, attribute)
        if attribute != self.name:
            return honest
        lower = coarse(honest, 44)
        return lambda x, out=None: (lower if self.lengths(len(x)) else honest)(x, out=out)


@pytest.mark.parametrize("name", ["log", "cos", "sin", "sqrt"])
def test_coarse_functions_are_caught_and_nothing_is_released(name, fresh_check, monkeypatch):
    monkeypatch.setattr(samplers, "np", Coarse(name, lambda n: True))
    with pytest.raises(RuntimeError, match="too coarse for a safe release"):
        release(np.zeros((2, 1)), Gaussian(1.0), BOX)


@pytest.mark.parametrize("length", [1, 8, 13, 100])
def test_functions_that_are_coarse_at_one_length_are_caught(length, fresh_check, monkeypatch):
    monkeypatch.setattr(selfcheck, "_LENGTHS", selfcheck._LENGTHS[:-2])
    monkeypatch.setattr(selfcheck, "_SHAPES", selfcheck._SHAPES[:-2])
    monkeypatch.setattr(samplers, "np", Coarse("log", lambda n: n == length))
    with pytest.raises(RuntimeError, match="too coarse"):
        check_machine()


def test_single_precision_is_caught(fresh_check, monkeypatch):
    monkeypatch.setattr(selfcheck, "gamma_rows", lambda *a: samplers.gamma_rows(*a).astype(np.float32).astype(float))
    with pytest.raises(RuntimeError, match="too coarse"):
        check_machine()


def test_not_a_number_is_caught(fresh_check, monkeypatch):
    monkeypatch.setattr(selfcheck, "sampling_errors", lambda: (np.array([np.nan]), np.array([1.0])))
    with pytest.raises(RuntimeError, match="too coarse"):
        check_machine()


def weak_aes(key):
    """AES with a key of which the first byte does not count."""
    return AES(b"\0" + key[1:])


def test_a_wrong_cipher_is_caught_even_after_a_noted_pass(cached_check, monkeypatch):
    check_machine()
    check_machine.cache_clear()
    monkeypatch.setattr("cryptography.hazmat.primitives.ciphers.algorithms.AES", weak_aes)
    with pytest.raises(RuntimeError, match="AES-256-CTR does not give the published answers"):
        release(np.zeros((2, 1)), DiscreteLaplace(1.0), BOX)


def test_a_wrong_hash_is_caught(fresh_check, monkeypatch):
    class Hashes:
        blake2b = staticmethod(lambda *a, **k: hashlib.blake2b(*a, **k | {"salt": b"1"}))

    monkeypatch.setattr(selfcheck, "hashlib", Hashes)
    with pytest.raises(RuntimeError, match="BLAKE2b does not give"):
        check_machine()


@pytest.mark.parametrize("at", [0, 130, 513])
def test_a_cipher_that_is_wrong_in_long_draws_only_is_caught(at, fresh_check, monkeypatch):
    def torn(*key):
        words = keystream.block_words(*key)

        def draw(count):
            out = words(count)
            if count > 500:
                out[at] ^= np.uint64(1)
            return out

        return draw

    monkeypatch.setattr(selfcheck, "block_words", torn)
    with pytest.raises(RuntimeError, match="many blocks"):
        check_ciphers()


def test_the_published_answers_are_another_routes_too():
    """SP 800-38A's counter mode is its block cipher on successive counters."""
    ecb = Cipher(algorithms.AES(bytes.fromhex(selfcheck._AES_KEY)), modes.ECB()).encryptor()
    start = int(selfcheck._AES_COUNTER, 16)
    stream = ecb.update(b"".join((start + i).to_bytes(16, "big") for i in range(4)))
    answer = int.from_bytes(stream) ^ int(selfcheck._AES_PLAIN, 16)
    assert answer == int(selfcheck._AES_ANSWER, 16)


def test_the_check_runs_once_per_process(fresh_check, monkeypatch):
    calls = count_checks(monkeypatch)
    for _ in range(3):
        release(np.zeros((2, 1)), Gaussian(1.0), BOX)
    assert len(calls) == 1


def test_a_pass_is_noted_once_and_serves_the_next_process(cached_check):
    folder, calls = cached_check
    for _ in range(3):
        check_machine()
        check_machine.cache_clear()
    assert len(calls) == 1 and len(list(folder.iterdir())) == 1


def test_a_failure_is_never_noted_and_refuses_each_time(cached_check, monkeypatch):
    folder, _ = cached_check
    monkeypatch.setattr(samplers, "np", Coarse("log", lambda n: True))
    for _ in range(2):
        with pytest.raises(RuntimeError, match="too coarse"):
            release(np.zeros((2, 1)), Gaussian(1.0), BOX)
    assert not folder.exists()


def test_another_numpy_is_checked_anew(cached_check, monkeypatch):
    _, calls = cached_check
    check_machine()
    check_machine.cache_clear()
    monkeypatch.setattr(np, "__version__", "9.9")
    check_machine()
    assert len(calls) == 2
