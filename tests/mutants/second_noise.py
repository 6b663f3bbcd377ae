"""The second noise of the doubly random corrections, drawn wrongly; the right one is SL(sqrt(delta0) lambda)."""

import numpy as np

from privfit.estimators.corrections import draw_second_noise


def drawn(parts, rows, rng, factor=1.0):
    """Second noise of the estimators times a factor, shape (rows, dim), without the response."""
    return factor * draw_second_noise(parts, rows, rng)[:-1].T


def tenth_too_large(parts, rows, rng, delta0):
    return drawn(parts, rows, rng, 1.1)


def omitted(parts, rows, rng, delta0):
    return drawn(parts, rows, rng, 0.0)


def delta0_instead_of_its_root(parts, rows, rng, delta0):
    return drawn(parts, rows, rng, np.sqrt(delta0))


def radius_per_coordinate(parts, rows, rng, delta0):
    return np.column_stack([drawn(parts, rows, rng)[:, j] for j in range(drawn(parts, 1, rng).shape[1])])


def one_draw_for_all(parts, rows, rng, delta0):
    """The same draw whenever it is asked for: no second of several draws would be new."""
    return drawn(parts, rows, np.random.default_rng(3))


MUTANTS = (tenth_too_large, omitted, delta0_instead_of_its_root, radius_per_coordinate, one_draw_for_all)
