"""Every pair of the catalogue that has a rule, with every law, single precision and batches, at several sizes."""

import numpy as np
import pytest

from restpoint.errors import CapabilityError
from restpoint.oracles import find
from restpoint.testing import PENALTIES, SETS, Draw, check_oracle

pytestmark = pytest.mark.prove
DTYPES = {"float64": np.float64, "float32": np.float32}


def _oracle(pair, rng, shape, batch=()):
    draw = Draw(rng, shape, batch)
    try:
        return find(pair[0].make(draw), pair[1].make(draw))
    except CapabilityError:
        return None


PAIRS = [
    pair
    for pair in ((a, b) for a in SETS for b in PENALTIES if a.shape == b.shape)
    if _oracle(pair, np.random.default_rng(0), pair[0].shape) is not None
]


@pytest.mark.parametrize("seed", range(3))
@pytest.mark.parametrize("batch", [(), (3,)], ids=str)
@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("pair", PAIRS, ids=lambda pair: f"{pair[0].name} x {pair[1].name}")
def test_laws(pair, dtype, batch, seed):
    rng = np.random.default_rng(100 + seed)
    shape = pair[0].shape if seed == 0 else tuple(n + 2 * seed for n in pair[0].shape)
    oracle = _oracle(pair, rng, shape, batch)
    check_oracle(oracle, shape, rng=rng, like=np.zeros((), DTYPES[dtype]))
