"""Randomised response with twice its epsilon, or whose lie may be the truth."""

import numpy as np

from privfit.mechanisms import RandomizedResponse
from tests.mutants.making import mutant


def twice_epsilon(law):
    other = RandomizedResponse(2 * law.epsilon, law.categories)
    return mutant(law, threshold=lambda self: other.threshold())


def lie_may_be_the_truth(law):
    def randomize(self, codes, words):
        lie = words(len(codes)) >= np.uint64(law.threshold())
        label = (words(len(codes)) % np.uint64(law.categories)).astype(np.int64)
        return np.where(lie, label, codes)

    return mutant(law, randomize=randomize)


def next_label_as_lie(law):
    """The lie is always the label that follows the truth."""

    def randomize(self, codes, words):
        lie = words(len(codes)) >= np.uint64(law.threshold())
        return (codes + lie) % law.categories

    return mutant(law, randomize=randomize)
