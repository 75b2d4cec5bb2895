"""Proofs of stationarity, recomputed at the point they speak of."""

from restpoint.certificates.certificate import PER_START, Certificate, certify, unproved
from restpoint.certificates.stationarity import Inequality, Measures, measures

__all__ = [
    "PER_START",
    "Certificate",
    "Inequality",
    "Measures",
    "certify",
    "measures",
    "unproved",
]
