"""Outputs that betray their input in their bits: floats off the grid, and -0.0 where the input was below 0."""

import numpy as np

from tests.mutants.making import mutant


def float_output(law):
    def _perturb(self, x, words, domain, round_):
        scales = law.scales(len(x))
        for j, unit in enumerate(law._unit_noise(words, x.shape[1], len(x))):
            x[j] += scales[j] * unit

    return mutant(law, _perturb=_perturb)


def negative_zero(law):
    def _perturb(self, x, words, domain, round_):
        law._perturb(x, words, domain, round_)
        x[x == 0] = -0.0

    return mutant(law, _perturb=_perturb)


def low_bits_of_the_input(law):
    """The grid is kept up to the last bit, where the input is."""

    def _perturb(self, x, words, domain, round_):
        before = x.copy()
        law._perturb(x, words, domain, round_)
        x[:] = np.where(before > domain.lower[:, None], np.nextafter(x, np.inf), x)

    return mutant(law, _perturb=_perturb)
