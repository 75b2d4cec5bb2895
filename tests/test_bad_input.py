"""Whatever a new user may type wrongly is refused by name, with what was got and what would be right."""

import dataclasses

import numpy as np
import pytest

import restpoint as rp
from method_cases import cosine, quadratic_problem, tensor, tensor_problem
from restpoint.array import parameter
from restpoint.errors import CapabilityError, DataError, EvaluationError, ShapeError

PROBLEM = quadratic_problem()
TENSOR = tensor_problem(tensor(3, 4, 2), 0.2)
POINT = np.zeros(3)


def refused(words, error, call):
    with pytest.raises(error) as caught:
        call()
    assert words in str(caught.value)


@pytest.mark.parametrize(
    ("words", "error", "more"),
    [
        # eps
        (
            "eps must be a finite number > 0 or restpoint.Relative(...), got 0",
            DataError,
            {"eps": 0},
        ),
        ("got -1.0", DataError, {"eps": -1}),
        ("got nan", DataError, {"eps": np.nan}),
        ("got inf", DataError, {"eps": np.inf}),
        ("got '1e-6'", DataError, {"eps": "1e-6"}),
        ("got None", DataError, {"eps": None}),
        ("got True", DataError, {"eps": True}),
        ("got [0.001]", DataError, {"eps": [1e-3]}),
        ("got 1j", DataError, {"eps": 1j}),
        # starts
        ("starts must be a whole number >= 1, got 0", DataError, {"starts": 0}),
        ("got -1", DataError, {"starts": -1}),
        ("got 2.5", DataError, {"starts": 2.5}),
        ("got True", DataError, {"starts": True}),
        ("got '3'", DataError, {"starts": "3"}),
        ("leave starts out", ShapeError, {"starts": 2, "x0": POINT}),
        # rng
        ("rng must be a whole number", DataError, {"rng": None}),
        ("write rng=0", DataError, {"rng": np.random.default_rng(0)}),
        ("got -1", DataError, {"rng": -1}),
        ("got 1.5", DataError, {"rng": 1.5}),
        ("got 18446744073709551616", DataError, {"rng": 2**64}),
        # x0
        ("x0[0] has shape (4,); expected (3,)", ShapeError, {"x0": np.zeros(4)}),
        ("x0[0] has shape ()", ShapeError, {"x0": 1.0}),
        ("x0[0] has shape (0,)", ShapeError, {"x0": []}),
        ("x0 holds no point", DataError, {"x0": np.zeros((0, 3))}),
        ("x0[0] has dtype <U3", DataError, {"x0": "abc"}),
        ("x0[0] has dtype complex128", DataError, {"x0": 1j * POINT}),
        ("x0[0] has dtype object", DataError, {"x0": np.array([1, None, 2], dtype=object)}),
        ("x0[0] has dtype object", DataError, {"x0": {"x": POINT}}),
        ("convert it to float64 or float32", DataError, {"x0": POINT.astype(np.float16)}),
        ("cannot be read as an array", DataError, {"x0": [[1.0, 2.0], [3.0]]}),
        ("NaN or infinite", DataError, {"x0": np.array([0.0, np.nan, 0.0])}),
        (
            "violation 2, more than 1e-12 of the set's radius; pass x0=problem.project(x0)",
            DataError,
            {"x0": [0, 3, 0]},
        ),
        ("x0 has 2 blocks; the problem has 1", ShapeError, {"x0": (POINT, POINT)}),
        ("give the starts one axis", ShapeError, {"x0": np.zeros((2, 2, 3))}),
        # method
        (
            "the class ConditionalGradient itself; write",
            CapabilityError,
            {"method": rp.ConditionalGradient},
        ),
        ("such as ConditionalGradient(), got str", CapabilityError, {"method": "cg"}),
        ("got Jacobi", CapabilityError, {"method": rp.Jacobi()}),
        # stop
        ("such as Stop(max_iterations=100), got dict", DataError, {"stop": {"max_iterations": 3}}),
        ("the class Stop itself", DataError, {"stop": rp.Stop}),
        ("got int", DataError, {"stop": 100}),
        # observers
        ("write observers=[...]", DataError, {"observers": rp.Progress()}),
        ("observers must be a list of functions, got NoneType", DataError, {"observers": None}),
        ("got generator", DataError, {"observers": (f for f in ())}),
        (
            "observers[0] must be a function of a View, got the class Progress itself",
            DataError,
            {"observers": [rp.Progress]},
        ),
        (
            "observers[1] must be a function of a View, got int",
            DataError,
            {"observers": [print, 3]},
        ),
    ],
)
def test_arguments_of_solve(words, error, more):
    refused(words, error, lambda: rp.solve(PROBLEM, **more))
    refused(words, error, lambda: rp.iterate(PROBLEM, **more))


def test_the_start_outside_is_named():
    x0 = np.zeros((4, 3))
    x0[1, 0], x0[2, 1] = 1.1, 3.0
    refused(
        "x0[0] lies outside L2Ball at start 2: violation 2",
        DataError,
        lambda: rp.solve(PROBLEM, x0=x0),
    )
    block = rp.Block(rp.sets.L2Ball(np.array([1.0, 5.0])))
    path = rp.Problem(PROBLEM.smooth, block)
    x0 = np.zeros((2, 4, 3))
    x0[:, 3, 0] = 4.0
    refused("outside L2Ball at start (0, 3): violation 3", DataError, lambda: rp.solve(path, x0=x0))


@pytest.mark.parametrize("call", [rp.solve, rp.iterate, rp.explain])
@pytest.mark.parametrize("problem", [None, "x", np.eye(3), PROBLEM.smooth, rp.Problem])
def test_what_is_no_problem(call, problem):
    refused("problem must be a restpoint.Problem, got", DataError, lambda: call(problem))


@pytest.mark.parametrize(
    ("words", "error", "more"),
    [
        ("the class ProximalGradient itself", CapabilityError, {"method": rp.ProximalGradient}),
        ("eps must be", DataError, {"eps": 0}),
        ('measure must be "max" or "sum"', DataError, {"measure": "mean"}),
        ("x0[0] has shape", ShapeError, {"x0": np.zeros(2)}),
        ("rng must be", DataError, {"rng": None}),
    ],
)
def test_arguments_of_explain(words, error, more):
    refused(words, error, lambda: rp.explain(PROBLEM, **more))


@pytest.mark.parametrize(
    ("words", "x0"),
    [
        ("x0 has 2 blocks; the problem has 3", (np.zeros(3), np.zeros(4))),
        ("x0 has 1 blocks; the problem has 3", np.zeros(3)),
        ("different leading axes", (np.zeros((2, 3)), np.zeros((3, 4)), np.zeros(2))),
        ("x0[1] has shape (3,); expected (4,)", (np.zeros(3), np.zeros(3), np.zeros(2))),
    ],
)
def test_points_of_several_blocks(words, x0):
    refused(words, ShapeError, lambda: rp.solve(TENSOR, x0=x0))


@pytest.mark.parametrize(
    ("words", "rules"),
    [
        ("max_iterations must be a whole number >= 0, got -1", {"max_iterations": -1}),
        ("got '5'", {"max_iterations": "5"}),
        ("got inf", {"max_iterations": np.inf}),
        ("got None", {"max_iterations": None}),
        ("got 2.5", {"max_iterations": 2.5}),
        ("got nan", {"max_iterations": np.nan}),
        ("got True", {"max_iterations": True}),
        ("max_seconds must be a number >= 0, got -1", {"max_seconds": -1}),
        ("got 'x'", {"max_seconds": "x"}),
        ("got nan", {"max_seconds": np.nan}),
        ("max_gradients must be a number >= 0", {"max_gradients": -1}),
        ("max_oracle_calls must be a number >= 0", {"max_oracle_calls": "many"}),
        ("target_value must be a finite number, got 'x'", {"target_value": "x"}),
        ("target_value must be a finite number, got nan", {"target_value": np.nan}),
        ("target_value must be a finite number, got [1]", {"target_value": [1]}),
        ("value_change must be a finite number >= 0, got -1", {"value_change": -1}),
        ("relative_value_change must be a finite number >= 0", {"relative_value_change": "x"}),
        ("patience must be a whole number >= 1, got 0", {"patience": 0}),
        ("patience must be a whole number >= 1, got 2.5", {"patience": 2.5}),
        ('measure must be "max" or "sum", got \'mean\'', {"measure": "mean"}),
        ("feasibility must be a finite number >= 0, got inf", {"feasibility": np.inf}),
    ],
)
def test_stopping_rules(words, rules):
    refused(words, DataError, lambda: rp.Stop(**rules))


def test_stopping_rules_that_are_right_in_another_type_are_taken():
    stop = rp.Stop(max_iterations=np.int64(5), max_seconds=np.inf, target_value=np.array(1.0))
    assert stop.max_iterations == 5
    assert stop.target_value == 1.0
    assert rp.Stop(max_iterations=1e3).max_iterations == 1000
    assert rp.Stop(patience=None).patience is None


@pytest.mark.parametrize("eps", [0, 1, -1, np.nan, "1e-6", None, True, 2.0])
def test_a_relative_eps_is_a_number_between_0_and_1(eps):
    refused("eps of Relative must be a number in (0, 1), got", DataError, lambda: rp.Relative(eps))


@pytest.mark.parametrize(
    "constant", ["2", -1, np.nan, np.inf, 1j, True, (), "x", [[1]], [1, -1], [1, "2"]]
)
def test_constants_are_numbers(constant):
    refused("constant must be a finite number >= 0", DataError, lambda: rp.Majorant(constant))


@pytest.mark.parametrize("p", [1, 0.5, 0, -2, np.nan, np.inf, "2", None, True, [2]])
def test_powers_are_numbers_above_1(p):
    refused("p must be", DataError, lambda: rp.Majorant(1.0, p))


def test_constants_are_taken_from_any_plain_container():
    assert rp.Majorant([1, 2]) == rp.Majorant((1.0, 2.0)) == rp.Majorant(np.array([1.0, 2.0]))
    assert rp.Majorant(np.array(2.0)) == rp.Majorant(2) == rp.Majorant(np.float32(2.0))
    two = rp.ProximalGradient(smoothness=rp.Majorant((1.0, 2.0)))
    refused("2 entries; the problem has 3 blocks", DataError, lambda: rp.solve(TENSOR, two))
    refused("constant must be", DataError, lambda: rp.Majorant.from_gradient_constant("3"))
    refused("p must be", DataError, lambda: rp.Majorant.from_gradient_constant(3.0, "2"))


@pytest.mark.parametrize(
    ("words", "choices"),
    [
        ("order must be one of Jacobi(), GaussSeidel()", {"order": "jacobi"}),
        ("got the class Jacobi itself; write Jacobi(...)", {"order": rp.Jacobi}),
        (
            "FullStep(), Armijo(), Doubling() or Universal(), got float",
            {"smoothness": 3.0},
        ),
        (
            "gradient must be one of Exact(), MiniBatch(m) or Smoothed(radius, m), got int",
            {"gradient": 3},
        ),
        ("order must be one of", {"order": rp.Majorant(1.0)}),
        ("order must be one of", {"order": None}),
    ],
)
@pytest.mark.parametrize("step", [rp.ConditionalGradient, rp.ProximalGradient])
def test_choices_of_a_method(step, words, choices):
    refused(words, CapabilityError, lambda: step(**choices))


@pytest.mark.parametrize(
    "method",
    [None, rp.ConditionalGradient, rp.Jacobi(), rp.WithoutGuarantee(rp.ProximalGradient())],
)
def test_without_guarantee_wraps_a_step(method):
    refused(
        "method must be ConditionalGradient(...) or",
        CapabilityError,
        lambda: rp.WithoutGuarantee(method),
    )


def test_rules_of_orders():
    refused(
        'rule must be "gap" or "decrease", got \'best\'',
        DataError,
        lambda: rp.MaxImprovement("best"),
    )
    refused('first must be "largest-gap" or "cyclic", got 1', DataError, lambda: rp.GaussSeidel(1))


@pytest.mark.parametrize("m", [0, -1, 2.5, "3", None, True])
def test_sample_counts(m):
    refused("m must be a whole number >= 1", DataError, lambda: rp.MiniBatch(m))
    refused("m must be a whole number >= 1", DataError, lambda: rp.Smoothed(0.1, m))


@pytest.mark.parametrize("radius", [0, -1, np.nan, np.inf, "a", None, True])
def test_smoothing_radii(radius):
    refused("radius must be a finite number > 0", DataError, lambda: rp.Smoothed(radius, 3))


@pytest.mark.parametrize("radius", [0.0, -1.0, np.nan, np.array([1.0, 0.0])])
def test_empty_and_degenerate_balls(radius):
    refused("radius", DataError, lambda: rp.sets.L2Ball(radius))
    refused("total", DataError, lambda: rp.sets.Simplex(radius))


@dataclasses.dataclass(frozen=True)
class Unchecked(rp.penalties.Zero):
    """A stranger's penalty, which has no door of its own."""

    weight: np.ndarray = parameter(1.0)


def test_empty_boxes_and_empty_batches():
    refused("the box is empty", DataError, lambda: rp.sets.Box(1.0, 0.0))
    block = rp.Block(rp.sets.L2Ball(), Unchecked(weight=np.zeros(0)))
    refused("no problem at all", DataError, lambda: rp.solve(rp.Problem(PROBLEM.smooth, block)))


@pytest.mark.parametrize("data", [np.array([[np.nan]]), np.array([[np.inf]])])
def test_data_that_are_not_finite(data):
    refused("NaN or infinite", DataError, lambda: rp.smooth.Quadratic(data))
    refused("NaN or infinite", DataError, lambda: rp.smooth.Multilinear(data))
    refused("NaN or infinite", DataError, lambda: rp.smooth.LeastSquares(data, [1.0]))


def test_methods_that_lack_what_they_need_say_what_would_fit():
    no_prox = rp.Block.from_oracle(lambda g: -np.sign(g), diameter=4.0)
    problem = rp.Problem(rp.smooth.Quadratic(np.eye(3)), no_prox)
    refused(
        "use ConditionalGradient", CapabilityError, lambda: rp.solve(problem, rp.ProximalGradient())
    )
    sampled = rp.ProximalGradient(gradient=rp.MiniBatch(3))
    refused("is not; use Exact()", CapabilityError, lambda: rp.solve(PROBLEM, sampled))
    unknown = rp.smooth.Function(lambda x: 0.0, lambda x: 0 * x, shapes=3)
    problem = rp.Problem(unknown, rp.Block(rp.sets.L2Ball()))
    for method in (rp.ProximalGradient(), rp.WithoutGuarantee(rp.ProximalGradient())):
        refused(
            "give Majorant(constant)",
            CapabilityError,
            lambda method=method: rp.solve(problem, method),
        )
    full = rp.ConditionalGradient(smoothness=rp.FullStep())
    problem = rp.Problem(cosine(3), rp.Block(rp.sets.L2Ball()))
    refused("f does not declare itself concave", CapabilityError, lambda: rp.solve(problem, full))


def test_nothing_that_was_given_is_changed_by_a_refusal():
    x0 = np.array([0.0, 3.0, 0.0])
    with pytest.raises(DataError):
        rp.solve(PROBLEM, x0=x0)
    assert np.array_equal(x0, [0.0, 3.0, 0.0])
    assert rp.solve(PROBLEM, x0=PROBLEM.project(x0)).certified


def test_masked_entries_are_not_silently_used():
    masked = np.ma.array([0.1, 0.2, 0.3], mask=[0, 1, 0])
    refused("masked entries; fill them first", DataError, lambda: rp.solve(PROBLEM, x0=masked))
    assert rp.solve(PROBLEM, x0=np.ma.array([0.1, 0.2, 0.3])).certified


def test_declarations_have_the_right_type():
    refused("joint must be True or False", DataError, lambda: rp.Majorant(1.0, joint="yes"))
    refused(
        "linear must be a function of g, got NoneType",
        CapabilityError,
        lambda: rp.Block.from_oracle(None, diameter=1.0),
    )
    assert rp.Majorant(1.0, joint=np.True_).joint is True


# --- functions of the user ------------------------------------------------------------------------------


def cube(**declared):
    """The square [-1, 1]^2 as an oracle."""
    return rp.Block.from_oracle(**({"linear": lambda g: -np.sign(g), "diameter": 4.0} | declared))


@pytest.mark.parametrize(
    ("name", "arguments"),
    [
        ("linear", "g"),
        ("prox", "(g, z, weight, p)"),
        ("violation", "x"),
        ("lower_bound", "g"),
        ("value", "x"),
        ("sample", "(rng, shape)"),
        ("project", "x"),
    ],
)
@pytest.mark.parametrize("wrong", [3, "x", [1.0]])
def test_declared_functions_are_functions(name, arguments, wrong):
    words = f"{name} must be a function of {arguments}, got {type(wrong).__name__}"
    refused(words, CapabilityError, lambda: cube(**{name: wrong}))


def test_other_declarations_of_an_oracle():
    words = "Block.from_oracle has no argument 'radius'; it takes linear, prox, diameter, violation"
    refused(words, CapabilityError, lambda: cube(radius=1.0))
    refused("batched must be True or False, got 'no'", DataError, lambda: cube(batched="no"))
    refused("event_ndim must be a whole number >= 1", DataError, lambda: cube(event_ndim=0))
    for wrong in (None, "x", [1], 1j, True, -1.0):
        words = "diameter must be a finite number >= 0 or a function of p, got"
        refused(words, DataError, lambda wrong=wrong: cube(diameter=wrong))
    assert cube(diameter=np.float32(4.0), batched=np.False_).oracle.set.diameter_of == 4.0


@pytest.mark.parametrize(
    "wrong", [lambda p: None, lambda p: "x", lambda p: np.nan, lambda p: -1.0, lambda p: p / 0]
)
def test_a_function_for_the_diameter_is_checked_when_it_is_called(wrong):
    with pytest.raises(EvaluationError, match="your function diameter"):
        rp.Problem(rp.smooth.Quadratic(np.eye(2)), cube(diameter=wrong))
    only_2 = cube(diameter=lambda p: 3.0 if p == 2.0 else wrong(p))
    problem = rp.Problem(rp.smooth.PowerSum(1.5, shape=2), only_2)
    with pytest.raises(EvaluationError, match="your function diameter"):
        rp.solve(problem, rp.ConditionalGradient(), x0=np.array([0.5, -0.3]))


@pytest.mark.parametrize(
    ("wrong", "words"),
    [
        (lambda rng, shape: 1 / 0, "your function sample raised ZeroDivisionError"),
        (
            lambda rng, shape: None,
            "your function sample returned no point: the answer has dtype object",
        ),
        (lambda rng, shape: "here", "your function sample returned no point"),
        (lambda rng, shape: np.nan * np.ones(shape), "NaN or infinite"),
        (lambda rng, shape: np.zeros(3), "shape (3,) and dtype float64; expected shape (2,)"),
        (lambda rng: rng, "your function sample raised TypeError"),
    ],
)
def test_a_function_for_samples_is_checked_when_it_is_called(wrong, words):
    problem = rp.Problem(rp.smooth.Quadratic(np.eye(2)), cube(sample=wrong))
    refused(words, EvaluationError, lambda: rp.solve(problem))


def test_samples_may_come_in_any_container():
    problem = rp.Problem(rp.smooth.Quadratic(np.eye(2)), cube(sample=lambda rng, shape: [0, 1]))
    start = rp.solve(problem, stop=rp.Stop(max_iterations=0)).last[0]
    assert np.array_equal(start, [0.0, 1.0])


@pytest.mark.parametrize("kind", [bool, np.bool_, np.float32, np.int64, float])
def test_numbers_of_every_kind_are_numbers(kind):
    f = rp.smooth.Quadratic(-np.eye(2))
    inside = cube(violation=lambda x: kind(np.max(np.abs(x)) > 1.0))
    result = rp.solve(rp.Problem(f, inside), x0=np.array([0.5, 0.5]))
    assert result.certified
    outside = rp.certify(result.problem, np.array([2.0, 0.0]))
    assert outside.violation == 1.0


def test_a_lower_bound_above_a_value_is_disproved():
    """Cut at the value it would pass for a dual bound."""
    problem = rp.Problem(rp.smooth.Quadratic(-np.eye(2)), cube(lower_bound=lambda g: 1e9))
    words = "which is below lower_bound(g) = 1e+09: the bound is too high, or the point is outside of the set"
    refused(words, EvaluationError, lambda: rp.certify(problem, np.array([0.5, 0.5])))
    refused(words, EvaluationError, lambda: rp.solve(problem))
    exact = cube(lower_bound=lambda g: -np.sum(np.abs(g)) * (1.0 - 1e-9))
    point = np.array([1.0, 1.0])
    assert rp.certify(rp.Problem(problem.smooth, exact), point).max < 1e-8


@pytest.mark.parametrize("name", ["concave", "convex", "differentiable", "batched"])
@pytest.mark.parametrize("wrong", ["no", 0, None, [True]])
def test_flags_are_true_or_false(name, wrong):
    def make(flag):
        more = {"concave": True} if name == "differentiable" else {}
        return rp.smooth.Function(np.sum, np.ones_like, shapes=2, **(more | {name: flag}))

    refused(f"{name} must be True or False, got", DataError, lambda: make(wrong))
    make(np.True_)
    if name in ("concave", "convex"):
        refused(
            f"{name} must be True or False",
            DataError,
            lambda: rp.smooth.Quadratic(np.eye(2), **{name: wrong}),
        )


def test_terms_of_a_function():
    def make(**terms):
        return rp.smooth.Function(np.sum, np.ones_like, shapes=2, constant=1.0, **terms)

    refused(
        "terms_gradient is 7; expected a function",
        DataError,
        lambda: make(terms=3, terms_gradient=7),
    )
    refused("come together", DataError, lambda: make(terms=3))


def test_the_power_of_a_gradient_constant():
    for p in (0, 1, -1.0):
        refused(
            "p must be in (1, 2]", DataError, lambda p=p: rp.Majorant.from_gradient_constant(1, p)
        )
