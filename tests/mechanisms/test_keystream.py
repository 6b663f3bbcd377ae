"""The keystream is AES-256-CTR under BLAKE2b keys: checked against published vectors and by position."""

import hashlib
import pickle

import numpy as np
import pytest
from cryptography.hazmat.primitives.ciphers import Cipher, algorithms, modes

from privfit.mechanisms import keystream
from privfit.mechanisms.keystream import block_words, fresh_master, simulation_master


def test_words_are_the_counter_blocks_encrypted_one_by_one():
    master = bytes(range(32))
    words = block_words(master, 3, 7)
    got = np.concatenate([words(5), words(1), words(100_000)])
    label = (3).to_bytes(8, "little") + (7).to_bytes(8, "little")
    key = hashlib.blake2b(label, key=master, digest_size=32, person=b"privfit-block").digest()
    ecb = Cipher(algorithms.AES(key), modes.ECB()).encryptor()
    counters = b"".join(i.to_bytes(16, "big") for i in range(100_006 // 2))
    np.testing.assert_array_equal(got, np.frombuffer(ecb.update(counters), dtype=np.uint64))


def test_aes_256_counter_mode_known_answer():
    # NIST SP 800-38A, F.5.5, first block: the cipher the keystream is built on is the standard's.
    key = bytes.fromhex("603deb1015ca71be2b73aef0857d77811f352c073b6108d72d9810a30914dff4")
    counter = bytes.fromhex("f0f1f2f3f4f5f6f7f8f9fafbfcfdfeff")
    plain = bytes.fromhex("6bc1bee22e409f96e93d7e117393172a")
    out = Cipher(algorithms.AES(key), modes.CTR(counter)).encryptor().update(plain)
    assert out.hex() == "601ec313775789a5b7a7f504bbf3d228"


def test_parts_blocks_and_masters_differ():
    streams = {
        block_words(master, part, block)(4).tobytes()
        for master in (bytes(32), bytes([1] + [0] * 31))
        for part in (0, 1)
        for block in (0, 1, 2**40)
    }
    assert len(streams) == 12


def test_words_own_writable_memory_and_are_never_repeated():
    words = block_words(bytes(32), 0, 0)
    first, second = words(64), words(64)
    assert first.flags.writeable and not np.shares_memory(first, second)
    assert not set(first.tolist()) & set(second.tolist())


def test_bits_are_balanced():
    words = block_words(bytes(32), 0, 0)(100_000)
    ones = np.array([int(((words >> np.uint64(b)) & np.uint64(1)).sum()) for b in range(64)])
    assert np.abs(ones - 50_000).max() < 5 * np.sqrt(25_000)


def test_masters_come_fresh_from_the_operating_system(monkeypatch):
    assert len({fresh_master() for _ in range(100)}) == 100
    asked = []
    monkeypatch.setattr(keystream.os, "urandom", lambda n: asked.append(n) or bytes(n))
    assert fresh_master() == bytes(32) and asked == [32]


def test_simulation_masters():
    assert simulation_master(3) == simulation_master(3) != simulation_master(4)
    rng = np.random.default_rng(3)
    assert simulation_master(rng) != simulation_master(rng)
    with pytest.raises((TypeError, ValueError)):
        simulation_master("seed")


def test_no_text_shows_a_master_key():
    key = fresh_master()
    shown = f"{key} {key!r} {key:>40} {str(key)} %s {[key]}" % key  # noqa: RUF010
    assert bytes(key).hex() not in shown and repr(bytes(key)) not in shown
    assert shown.count("<master key>") == 6
    again = pickle.loads(pickle.dumps(key))
    assert again == key and repr(again) == "<master key>"
