"""Noise laws, declared domains and safe release.

A law is a frozen dataclass free of data; a domain says where records may lie; `release` adds the noise once,
on a grid, from operating-system entropy, and returns the table together with its law.
"""

from privfit.mechanisms.categories import Categories
from privfit.mechanisms.discrete_laplace import DiscreteLaplace
from privfit.mechanisms.domain import Ball, Box
from privfit.mechanisms.files import load_release
from privfit.mechanisms.gaussian import Gaussian
from privfit.mechanisms.guarantee import Guarantee
from privfit.mechanisms.laplace import Laplace
from privfit.mechanisms.law import REGISTRY, Law
from privfit.mechanisms.product import Product
from privfit.mechanisms.randomized_response import RandomizedResponse
from privfit.mechanisms.releasing import Release, release
from privfit.mechanisms.splitting import calibrate_parts, remaining_budget, variance_inflation
from privfit.mechanisms.symmetric_laplace import SymmetricLaplace
from privfit.mechanisms.zero_inflated import ZeroInflatedLaplace
from privfit.mechanisms.zero_inflated_calibration import ZilRegion, zil_region

__all__ = [
    "REGISTRY",
    "Ball",
    "Box",
    "Categories",
    "DiscreteLaplace",
    "Gaussian",
    "Guarantee",
    "Laplace",
    "Law",
    "Product",
    "RandomizedResponse",
    "Release",
    "SymmetricLaplace",
    "ZeroInflatedLaplace",
    "ZilRegion",
    "calibrate_parts",
    "load_release",
    "release",
    "remaining_budget",
    "variance_inflation",
    "zil_region",
]
