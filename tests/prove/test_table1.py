"""Table 1 with 100 instances: the windows R1 to R5 at the sizes that take minutes, not hours."""

import pytest

from restpoint.reproduce import table1
from restpoint.reproduce.table1_verdicts import verdicts

pytestmark = pytest.mark.prove

INSTANCES = 100


@pytest.mark.parametrize("n", [8, 12])
def test_table_1_is_reproduced(n, figures):
    rows = [row for found in table1.run([n], INSTANCES, seed=1) for row in found]
    judged = verdicts(rows)
    for verdict in judged:
        figures(
            "Table 1", f"{verdict.name} n = {n}: {verdict.what}", found=("largest", verdict.figure)
        )
    assert {verdict.name for verdict in judged} == {"R1", "R2", "R3", "R4", "R5"}
    assert [verdict for verdict in judged if not verdict.met] == []
    sequential = [row for row in rows if row.method in ("BCD Gauss-Seidel", "BCD MBI")]
    assert len(sequential) == 2 * INSTANCES
    assert not any(row.rises or row.value < 0.0 or row.capped for row in sequential)
