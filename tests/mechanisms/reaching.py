"""The inverse of every sampler: words that lead from any record to any output, the proof that none is excluded."""

import numpy as np

from privfit.mechanisms import Categories, DiscreteLaplace, Gaussian, Laplace, RandomizedResponse, ZeroInflatedLaplace
from privfit.mechanisms.blocks import block_rows
from privfit.mechanisms.integers import words_per_value

TOP = 2**64 - 1
MIDDLE = 2**63
"""The rounding word that rounds to the nearest grid point."""


def word_of(uniform, bits):
    """The `bits`-bit word whose (word + 1/2) 2^-bits is next to `uniform`, but for the last, which float64 has not."""
    return np.clip(uniform * 2.0**bits - 0.5, 0, 2.0**bits - 2.0 ** (bits - 53)).astype(np.uint64)


def laplace_word(move):
    return (word_of(np.exp(-np.abs(move)), 63) << np.uint64(1)) | (move < 0).astype(np.uint64)


def pair_words(first, second, mixing):
    """Radius and angle of two normal coordinates."""
    quarter = word_of(np.arctan2(np.abs(second), np.abs(first)) * (2 / np.pi), 62)
    signs = (first < 0).astype(np.uint64) | ((second < 0).astype(np.uint64) << np.uint64(1))
    radius = word_of(np.exp(-(first**2 + second**2) / (2 * mixing)), 64)
    return [radius, (quarter << np.uint64(2)) | signs]


def noise_words(law, move, rounding):
    """Arrays of words, in the order in which the sampler asks, for unit noise `move`, shape (dim, rows)."""
    dim, rows = move.shape
    round_ = [np.full(rows, MIDDLE, dtype=np.uint64)] if rounding == "stochastic" else []
    out = [np.full(rows, TOP, dtype=np.uint64)] if isinstance(law, ZeroInflatedLaplace) else []
    shape = getattr(law, "shape", 1)
    if isinstance(law, Laplace) or (dim == 1 and shape == 1 and not isinstance(law, Gaussian)):
        unit = 1.0 if isinstance(law, Laplace) else 2**0.5
        for row in move:
            out += [laplace_word(unit * row), *round_]
        return out
    mixing = np.ones(rows)
    if not isinstance(law, Gaussian):
        # All exponentials of a row are equal, hence also their mean, and large where the row is far out.
        word = word_of(np.exp(-1 - np.abs(move).max(axis=0) ** 2 / 16), 64)
        out += [word] * shape
        mixing = -np.log((word + 0.5) * 2.0**-64)
    for j in range(0, dim, 2):
        second = move[j + 1] if j + 1 < dim else np.zeros(rows)
        out += pair_words(move[j], second, mixing) + round_ * min(2, dim - j)
    return out


def integer_words(steps, scale, rounding):
    """Words for discrete Laplace noise of `steps`: one decision per binary digit, 0 for yes and the top word for no."""
    number = np.where(steps > 0, 2 * (steps - 1) + 1, -2 * steps).astype(np.uint64)
    digits = number[:, None] >> np.arange(words_per_value(scale), dtype=np.uint64)
    assert not (digits[:, -1] & np.uint64(1)).any()
    round_ = [np.full(len(steps), MIDDLE, dtype=np.uint64)] if rounding == "stochastic" else []
    return [*round_, np.where(digits & np.uint64(1), 0, TOP).astype(np.uint64)]


def label_words(law, truth, answer):
    """Words for randomised response from codes `truth` to codes `answer`."""
    step = (answer - truth) % law.categories
    lies = [0] + [-(-(s * 2**64) // (law.categories - 1)) for s in range(law.categories - 1)]
    keep = np.where(step == 0, law.threshold() - 1, TOP).astype(np.uint64)
    return [keep, np.array(lies, dtype=np.uint64)[step]]


def words_between(own, domain, columns, outputs, rounding):
    """Words under which one part of a plan releases `outputs` from the records `columns`."""
    if isinstance(own, RandomizedResponse):
        assert isinstance(domain, Categories)
        return label_words(own, domain.encode(columns[0]), domain.encode(outputs[0]))
    x = np.array(columns, dtype=np.float64)
    with np.errstate(all="ignore"):
        domain.project(x)
    scales, grid = own.scales(domain.dim)[:, None], own.grid(domain.dim)[:, None]
    y = np.array(outputs, dtype=np.float64)
    if not isinstance(own, DiscreteLaplace):
        return noise_words(own, (y - x) / scales, rounding)
    # With the middle word both roundings go to the nearest point; the domains of these tests end on the grid.
    moves = np.rint(y / grid - np.rint(x / grid)).astype(np.int64)
    return [w for j, row in enumerate(moves) for w in integer_words(row, int(scales[j, 0] / grid[j, 0]), rounding)]


def source_of(scripts, dims):
    """A stand-in for `block_words` that deals `scripts`, by part, block by block; other rows get top words."""

    def whole(cut, size):
        spare = [(0, size - len(cut))] + [(0, 0)] * (cut.ndim - 1)
        return np.pad(cut, spare, constant_values=TOP).ravel()

    def block_words(master, part, block):
        size = block_rows(dims[part])
        cuts = [words[block * size : (block + 1) * size] for words in scripts[part]]
        stream = np.concatenate([whole(cut, size) for cut in cuts])
        served = 0

        def words(count):
            nonlocal served
            served += count
            assert served <= len(stream)
            return stream[served - count : served].copy()

        return words

    return block_words
