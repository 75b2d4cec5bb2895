"""What ``explain`` says beforehand is what runs are held to."""

import numpy as np
import pytest

import restpoint as rp
from method_cases import cosine, quadratic_problem, tensor, tensor_problem


def problems():
    concave = rp.smooth.Quadratic(-np.diag([2.0, 1.0, 0.5]), [0.1, 0.0, 0.2])
    hoelder = rp.smooth.PowerSum(1.5, np.array([1.0, -2.0, 0.5]))
    return {
        "quadratic": quadratic_problem(0.1),
        "concave": rp.Problem(concave, rp.Block(rp.sets.L2Ball())),
        "hoelder": rp.Problem(hoelder, rp.Block(rp.sets.Box(-1.0, 2.0))),
        "tensor": tensor_problem(tensor(3, 4, 2, seed=8), 0.2),
        "user code": rp.Problem(cosine(3, lower_bound=-3.0), rp.Block(rp.sets.L2Ball(2.0))),
        "inexact": rp.Problem(
            rp.smooth.Inexact(rp.smooth.Quadratic(np.diag([1.0, -1.0])), 1e-4),
            rp.Block(rp.sets.L2Ball()),
        ),
    }


@pytest.mark.parametrize("name", problems())
@pytest.mark.parametrize("eps", [0.3, rp.Relative(0.05)])
def test_every_row_is_the_bound_of_a_run(name, eps):
    problem = problems()[name]
    explained = rp.explain(problem, eps=eps, rng=3)
    assert len(explained.others) >= (0 if name == "concave" else 2)  # concave f needs nothing else
    for covered in ((explained.method, explained.bound), *explained.others):
        method, bound = covered
        result = rp.solve(problem, method, eps=eps, rng=3)
        assert bound.count == result.bound.count or result.bound.withdrawn
        assert bound.statement == result.bound.statement
        assert result.bound.withdrawn is None
        assert result.status is rp.Status.CERTIFIED
        assert result.used <= bound.count


def test_the_table_has_a_line_for_every_bound():
    problem = problems()["tensor"]
    explained = rp.explain(problem, eps=0.3)
    lines = str(explained).splitlines()
    table = lines[lines.index("bounds of the methods that theory covers here") + 1 :]
    assert table[0].split() == ["step", "order", "curvature", "at", "most", "paper", "rate", "by"]
    assert len(table) == 2 + len(explained.others)
    assert table[1].startswith("  *  ConditionalGradient  GaussSeidel")
    assert [line for line in table if line.startswith("  *")] == [table[1]]
    assert any("Theorem 5.2, Jacobi" in line for line in table)
    assert all("Theorem 3." not in line for line in table)


def test_one_block_needs_no_column_for_orders_and_unknown_numbers_are_named():
    f = rp.smooth.Function(lambda x: float(-x @ x), lambda x: -2.0 * x, shapes=3)
    text = str(rp.explain(rp.Problem(f, rp.Block(rp.sets.L2Ball())), eps=0.1))
    assert "GaussSeidel  " not in text
    assert "unknown" in text
    assert "Armijo steps (theory A3): a lower bound on Phi; the constant lambda" in text


def test_a_method_of_ones_own_is_the_marked_one():
    method = rp.ProximalGradient(rp.Jacobi(), rp.Majorant(40.0))
    explained = rp.explain(problems()["tensor"], method, eps=0.3)
    assert explained.method == method
    marked = [line for line in str(explained).splitlines() if line.startswith("  *")]
    assert len(marked) == 1
    assert "Theorem 5.3" in marked[0]
    momentum = rp.explain(problems()["tensor"], rp.Momentum(method), eps=0.3)
    assert "Theorem 5.3" in momentum.bound.statement
    assert float(momentum.bound.count) <= 2.0 * float(explained.bound.count) - 1.0
