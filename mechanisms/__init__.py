"""Noise laws, declared domains and safe release.

A law is a frozen dataclass free of data; a domain says where records may lie; `release` adds the noise once,
on a grid, from operating-system entropy, and returns the table together with its law. `release_file` and
`release_dask` do so for tables larger than memory, `release_new` for tables that grow; `audit` tests a mechanism
against its claim.
"""

from typing import TYPE_CHECKING

from privfit.mechanisms.categories import Categories
from privfit.mechanisms.days import days_to_datetimes
from privfit.mechanisms.discrete_laplace import DiscreteLaplace
from privfit.mechanisms.domain import Ball, Box
from privfit.mechanisms.encoding import Dates, Labels, Numbers
from privfit.mechanisms.files import load_release
from privfit.mechanisms.gaussian import Gaussian
from privfit.mechanisms.guarantee import Guarantee
from privfit.mechanisms.laplace import Laplace
from privfit.mechanisms.law import REGISTRY, Law
from privfit.mechanisms.product import Product
from privfit.mechanisms.randomized_response import RandomizedResponse
from privfit.mechanisms.reader import ReleaseReader, open_release
from privfit.mechanisms.releasing import Release, release
from privfit.mechanisms.splitting import calibrate_parts, remaining_budget, variance_inflation
from privfit.mechanisms.symmetric_laplace import SymmetricLaplace
from privfit.mechanisms.when_asked import when_asked
from privfit.mechanisms.zero_inflated import ZeroInflatedLaplace
from privfit.mechanisms.zero_inflated_calibration import ZilRegion, zil_region

if TYPE_CHECKING:
    from privfit.mechanisms.audit_report import AuditReport as AuditReport
    from privfit.mechanisms.auditing import audit as audit
    from privfit.mechanisms.auditing import audit_noise as audit_noise
    from privfit.mechanisms.dask_release import release_dask as release_dask
    from privfit.mechanisms.file_release import FileRelease as FileRelease
    from privfit.mechanisms.incremental import NothingNewWarning as NothingNewWarning
    from privfit.mechanisms.incremental import release_new as release_new
    from privfit.mechanisms.record_book import RecordBook as RecordBook
    from privfit.mechanisms.streaming import release_file as release_file

__all__ = [
    "REGISTRY",
    "AuditReport",
    "Ball",
    "Box",
    "Categories",
    "Dates",
    "DiscreteLaplace",
    "FileRelease",
    "Gaussian",
    "Guarantee",
    "Labels",
    "Laplace",
    "Law",
    "NothingNewWarning",
    "Numbers",
    "Product",
    "RandomizedResponse",
    "RecordBook",
    "Release",
    "ReleaseReader",
    "SymmetricLaplace",
    "ZeroInflatedLaplace",
    "ZilRegion",
    "audit",
    "audit_noise",
    "calibrate_parts",
    "days_to_datetimes",
    "load_release",
    "open_release",
    "release",
    "release_dask",
    "release_file",
    "release_new",
    "remaining_budget",
    "variance_inflation",
    "zil_region",
]

__getattr__, __dir__ = when_asked(
    __name__,
    {
        "AuditReport": "audit_report",
        "FileRelease": "file_release",
        "NothingNewWarning": "incremental",
        "RecordBook": "record_book",
        "audit": "auditing",
        "audit_noise": "auditing",
        "release_dask": "dask_release",
        "release_file": "streaming",
        "release_new": "incremental",
    },
)
