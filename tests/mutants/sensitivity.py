"""The curve is stated for records half as far apart as the domain allows."""

from privfit.mechanisms import Ball, Box
from tests.mutants.making import mutant


def halved_sensitivity(law):
    def tradeoff(self, domain, protect="record"):
        if isinstance(domain, Ball):
            return law.tradeoff(Ball(domain.radius / 2, domain.dim, domain.columns), protect)
        ends = zip(domain.columns, domain.lower, domain.ranges, strict=True)
        return law.tradeoff(Box({column: (low, low + length / 2) for column, low, length in ends}), protect)

    return mutant(law, tradeoff=tradeoff)
