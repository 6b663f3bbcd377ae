"""Domains that are not enforced, and bounds taken from the table."""

import numpy as np

from privfit.mechanisms import Ball, Box


class UnclippedBox(Box):
    """Fills what is missing and clips nothing."""

    def project(self, x):
        np.copyto(x, np.where(np.isnan(x), np.array(self.fill)[:, None], x))


class UnclippedBall(Ball):
    def project(self, x):
        np.nan_to_num(x, copy=False)


class WiderBox(Box):
    """Clips at bounds a tenth of the range too wide."""

    def project(self, x):
        margin = (0.1 * self.ranges)[:, None]
        np.clip(x, self.lower[:, None] - margin, self.upper[:, None] + margin, out=x)


def data_dependent_bounds(table, n):
    """Sum of a table scaled by its own range, with noise for the declared range 1: an outlier moves everything."""
    x = np.asarray(table, dtype=float)
    scaled = (x - x.min()) / (x.max() - x.min())
    return scaled.sum() + np.random.default_rng().normal(size=n)


def declared_bounds(table, n):
    """The same with the declared range [0, 1], which is right."""
    return np.clip(np.asarray(table, dtype=float), 0.0, 1.0).sum() + np.random.default_rng().normal(size=n)
