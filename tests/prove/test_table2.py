"""Table 2 on other instances: the windows of R6, and what every run must keep."""

import pytest

from restpoint.reproduce import table2
from restpoint.reproduce.table2 import ADMM, ALGORITHM_1, MOMENTUM, PAPER
from restpoint.reproduce.table2_verdicts import INSTANCES, verdicts

pytestmark = pytest.mark.prove


@pytest.mark.parametrize("n", sorted(INSTANCES))
def test_table_2_is_reproduced(n, figures):
    rows = [row for found in table2.run([n], INSTANCES[n], seed=1) for row in found]
    judged = verdicts(rows)
    for verdict in judged:
        figures("Table 2", f"n = {n}: {verdict.what}", found=("largest", verdict.figure))
    assert len(judged) == 4
    assert [verdict for verdict in judged if not verdict.met] == []
    for row in rows:
        if row.method == MOMENTUM:
            assert row.status == "CERTIFIED"
        if row.penalty == PAPER and row.method in {ALGORITHM_1, ADMM}:
            assert row.status != "ITERATION_LIMIT"
