"""Noise that comes twice: in the next row, in every block and release (a constant seed), or in every release."""

import numpy as np

from privfit.mechanisms import RandomizedResponse
from privfit.mechanisms.keystream import block_words
from tests.mutants.making import mutant


def same_noise_in_two_rows(law):
    """Rows 2i and 2i + 1; the rows of an audit lie at one point of the domain."""

    def _perturb(self, x, words, domain, round_):
        law._perturb(x, words, domain, round_)
        x[:, 1::2] = x[:, : x.shape[1] - x.shape[1] % 2 : 2]

    return mutant(law, _perturb=_perturb)


def same_answer_in_two_rows(law):
    def randomize(self, codes, words):
        step = law.randomize(np.zeros_like(codes), words)
        step[1::2] = step[: len(step) - len(step) % 2 : 2]
        return (codes + step) % law.categories

    return mutant(law, randomize=randomize)


def constant_seed(law):
    def words_again():
        return block_words(bytes(32), 0, 0)

    if isinstance(law, RandomizedResponse):
        return mutant(law, randomize=lambda self, codes, words: law.randomize(codes, words_again()))
    return mutant(law, _perturb=lambda self, x, words, domain, round_: law._perturb(x, words_again(), domain, round_))


def one_master_key(patch):
    """Every release has the same master key: its rows are new, its releases are not."""
    patch.setattr("privfit.mechanisms.releasing.fresh_master", lambda: bytes(32))


def one_key_for_all_blocks(patch):
    patch.setattr("privfit.mechanisms.blocks.block_words", lambda master, part, block: block_words(master, part, 0))


def one_key_for_all_parts(patch):
    patch.setattr("privfit.mechanisms.blocks.block_words", lambda master, part, block: block_words(master, 0, block))


class ReplayedCalls:
    """A function of the user that draws from a generator with the same seed in every call."""

    def __call__(self, x, n):
        return x + np.random.default_rng(5).normal(size=n)
