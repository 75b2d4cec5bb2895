"""The study of rates at full length: the exponents of the theorems up to 3 %, with every bound kept."""

import pytest

from restpoint.reproduce import rates

pytestmark = pytest.mark.prove


def test_exponents_are_those_of_the_theorems(figures):
    rows = [row for found in rates.run(2000) for row in found]
    lines = rates.summaries(rows)
    for line in lines:
        figures("rates", f"{line.method}, {line.of}, {line.problem}", found=("largest", line.slope))
    resisting = [line for line in lines if line.problem == rates.RESISTING]
    assert len(resisting) == len(rates.CASES)
    assert [line for line in resisting if not line.fits] == []
    assert all(line.proved for line in lines)
    assert max(line.slope - line.exponent for line in lines) <= 0.05
