"""Zero-variance discriminant analysis."""

from restpoint.models.discriminant.cv import ZeroVarianceDiscriminantCV
from restpoint.models.discriminant.estimator import ZeroVarianceDiscriminant

__all__ = ["ZeroVarianceDiscriminant", "ZeroVarianceDiscriminantCV"]
