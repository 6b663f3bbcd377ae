"""The atom comes twice as often, or every coordinate has its own."""

from privfit.mechanisms import ZeroInflatedLaplace
from privfit.mechanisms.samplers import gamma_rows, keep_rows, normal_coordinates
from tests.mutants.making import mutant


def doubled(law):
    twice = ZeroInflatedLaplace(law.scale, 2 * law.delta0)
    return mutant(law, _unit_noise=lambda self, words, rows, dim: twice._unit_noise(words, rows, dim))


def per_coordinate(law):
    def _unit_noise(self, words, rows, dim):
        for column in normal_coordinates(words, rows, dim, gamma_rows(words, rows, 1)):
            yield column * keep_rows(words, rows, law.delta0)

    return mutant(law, _unit_noise=_unit_noise)
