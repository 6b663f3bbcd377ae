"""Noise of another size than stated; a factor of sqrt(1/2) is lambda^2 taken for lambda^2/2."""

from privfit.mechanisms import DiscreteLaplace
from tests.mutants.making import mutant


def other_scale(law, factor):
    def _unit_noise(self, words, rows, dim):
        for column in law._unit_noise(words, rows, dim):
            column *= factor
            yield column

    def _perturb(self, x, words, domain, round_):
        helper = mutant(law, _steps=lambda self, dim: [int(factor * t) for t in law._steps(dim)])
        DiscreteLaplace._perturb(helper, x, words, domain, round_)

    return mutant(law, **({"_perturb": _perturb} if isinstance(law, DiscreteLaplace) else {"_unit_noise": _unit_noise}))
