"""The paper's six algorithms are six points of the grid."""

import numpy as np
import pytest

import restpoint as rp
from method_cases import quadratic_problem, tensor, tensor_problem
from restpoint.errors import DataError


@pytest.mark.parametrize(
    ("arguments", "expected"),
    [
        ({"k": 1}, rp.ConditionalGradient(rp.Jacobi())),
        ({"k": 2, "constant": 3.0}, rp.ProximalGradient(rp.Jacobi(), rp.Majorant(3.0))),
        (
            {"k": 3, "constant": 3.0, "p": 1.5, "m": 7},
            rp.ProximalGradient(rp.Jacobi(), rp.Majorant(3.0, 1.5), rp.MiniBatch(7)),
        ),
        (
            {"k": 4, "m": 7, "radius": 0.5},
            rp.ConditionalGradient(rp.Jacobi(), gradient=rp.Smoothed(0.5, 7)),
        ),
        ({"k": 5, "constant": 20.0}, rp.ConditionalGradient(rp.Jacobi(), rp.Majorant(20.0))),
        ({"k": 6, "constant": 20.0}, rp.ProximalGradient(rp.Jacobi(), rp.Majorant(20.0))),
        ({"k": 5, "order": "mbi"}, rp.ConditionalGradient(rp.MaxImprovement("gap"))),
        ({"k": 6, "order": "mbi"}, rp.ProximalGradient(rp.MaxImprovement("decrease"))),
    ],
)
def test_algorithm_k_is_the_point_of_the_grid_that_the_paper_prints(arguments, expected):
    assert rp.paper.algorithm(**arguments) == expected


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        ({"k": 0}, "k must be one of 1, 2, 3, 4, 5, 6, got 0"),
        ({"k": "5"}, "got '5'"),
        ({"k": None}, "got None"),
        ({"k": True}, "got True"),
        ({"k": np.array([1, 2])}, "got array([1, 2])"),
        ({"k": 5, "order": "cyclic"}, 'order must be "jacobi" or "mbi"'),
        ({"k": 2, "order": "mbi"}, "belongs to algorithms 5 and 6"),
        ({"k": 3}, "m, the number of samples, belongs to algorithms 3 and 4"),
        ({"k": 2, "m": 3}, "m, the number of samples, belongs to algorithms 3 and 4"),
        ({"k": 4, "m": 3}, "radius belongs to algorithm 4"),
        ({"k": 3, "m": 3, "radius": 1.0}, "radius belongs to algorithm 4"),
        ({"k": 3, "m": 0}, "m must be a whole number >= 1"),
        ({"k": 4, "m": 1, "radius": -1.0}, "radius must be a finite number > 0"),
        ({"k": 1, "constant": -1.0}, "constant must be a finite number >= 0"),
        ({"k": 1, "p": 0.5}, "p must be in (1, 2]"),
    ],
)
def test_arguments_that_do_not_belong_together_are_refused(arguments, words):
    with pytest.raises(DataError) as caught:
        rp.paper.algorithm(**arguments)
    assert words in str(caught.value)


@pytest.mark.parametrize("k", [1, 2])
def test_one_block_algorithms_carry_the_theorem_of_the_paper(k):
    result = rp.solve(quadratic_problem(), rp.paper.algorithm(k), eps=1e-3)
    theorem = {1: "Theorem 3.1", 2: "Theorem 3.3"}[k]
    assert result.bound.statement.startswith(theorem)
    assert result.certified
    assert result.used <= result.bound.count <= result.bound.paper_bound


@pytest.mark.parametrize("k", [5, 6])
@pytest.mark.parametrize("order", ["jacobi", "mbi"])
def test_block_algorithms_carry_the_theorem_of_the_paper(k, order):
    problem = tensor_problem(tensor(3, 4, 2), 0.2)
    constant = float(max(problem.facts().joint.constants))
    result = rp.solve(problem, rp.paper.algorithm(k, constant, order=order), eps=1e-3, starts=3)
    assert result.bound.statement.startswith({5: "Theorem 5.2", 6: "Theorem 5.3"}[k])
    assert result.certified.all()
    assert np.all(result.used <= result.bound.count)
    assert np.all(result.bound.count <= result.bound.paper_bound * (1 + 1e-7) + 1)
