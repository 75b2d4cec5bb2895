"""Arrays of any namespace: the only room that knows array_api_compat and array_api_extra.

Conventions used everywhere below ``run``: a block has shape ``(*batch, *event)``, a number per start
has shape ``batch``; reductions run over the trailing event axes only, so any leading axes work.
"""

from restpoint.array._batch import take, where
from restpoint.array._labels import check_group_scales, check_labels, group_labels
from restpoint.array._memory import require_memory
from restpoint.array._namespace import (
    Array,
    asarray,
    convert,
    from_host,
    is_array,
    library,
    namespace,
    own,
    read,
    to_host,
)
from restpoint.array._parameters import Parametric, parameter, parameter_value
from restpoint.array._profile import sorted_profile
from restpoint.array._random import generator
from restpoint.array._reductions import (
    event_max,
    event_sum,
    expand,
    first_largest,
    flatten_event,
    inner,
    norm,
    power_sum,
    scaled_norm,
    signed_power,
)
from restpoint.array._rounding import UNIT_ROUNDOFF, gamma, product_up, unit_roundoff
from restpoint.array._scalars import real_number, truth, whole_number

__all__ = [
    "UNIT_ROUNDOFF",
    "Array",
    "Parametric",
    "asarray",
    "check_group_scales",
    "check_labels",
    "convert",
    "event_max",
    "event_sum",
    "expand",
    "first_largest",
    "flatten_event",
    "from_host",
    "gamma",
    "generator",
    "group_labels",
    "inner",
    "is_array",
    "library",
    "namespace",
    "norm",
    "own",
    "parameter",
    "parameter_value",
    "power_sum",
    "product_up",
    "read",
    "real_number",
    "require_memory",
    "scaled_norm",
    "signed_power",
    "sorted_profile",
    "take",
    "to_host",
    "truth",
    "unit_roundoff",
    "where",
    "whole_number",
]
