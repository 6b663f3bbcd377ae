"""Every coordinate has its own mixing variable W, where the row should share one; or two rows share theirs."""

from privfit.mechanisms.samplers import gamma_rows, keep_rows, normal_coordinates
from tests.mutants.making import mutant


def per_coordinate(law):
    shape = getattr(law, "shape", 1)

    def _unit_noise(self, words, rows, dim):
        keep = keep_rows(words, rows, law.exact_fraction) if law.exact_fraction else 1.0
        for _ in range(dim):
            for column in normal_coordinates(words, rows, 1, gamma_rows(words, rows, shape)):
                yield column * keep

    return mutant(law, _unit_noise=_unit_noise)


def shared_by_two_rows(law):
    shape = law.shape

    def _unit_noise(self, words, rows, dim):
        mixing = gamma_rows(words, rows, shape)
        mixing[1::2] = mixing[: rows - rows % 2 : 2]
        return normal_coordinates(words, rows, dim, mixing)

    return mutant(law, _unit_noise=_unit_noise)
