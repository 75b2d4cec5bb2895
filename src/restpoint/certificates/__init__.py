"""Proofs of stationarity, recomputed at the point they speak of."""

from restpoint.certificates.certificate import Certificate, certify

__all__ = ["Certificate", "certify"]
