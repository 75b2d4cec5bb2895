"""Proofs of stationarity, recomputed at the point they speak of."""

from restpoint.certificates.certificate import PER_START, Certificate, certify, unproved

__all__ = ["PER_START", "Certificate", "certify", "unproved"]
