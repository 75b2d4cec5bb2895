"""The laws that every public piece obeys, as functions that anybody can call on theirs."""

from restpoint.testing._oracle_laws import check_oracle
from restpoint.testing._penalty_laws import check_penalty
from restpoint.testing._report import LawBroken
from restpoint.testing._set_laws import check_set
from restpoint.testing._smooth_laws import check_smooth

__all__ = ["LawBroken", "check_oracle", "check_penalty", "check_set", "check_smooth"]
