"""Files: what is written comes back, what is damaged or something else is refused, and nothing in them is executed."""

import json
import os
import shutil
import threading
import zipfile
from enum import Enum
from pathlib import Path

import numpy as np
import pytest

import restpoint as rp
import smooth_cases
from method_cases import METHODS, quadratic_problem, tensor, tensor_problem
from restpoint.errors import (
    CapabilityError,
    DataError,
    EvaluationError,
    NotCertifiedError,
    StorageError,
)
from restpoint.run import archive, identity
from restpoint.run.identity import Identity, digest
from restpoint.run.tree import Reader, Writer
from resume_cases import Cosines, Notes, Pair, differing

STARTS = 4


# --- trees --------------------------------------------------------------------------------------------


class Colour(Enum):
    RED = 1
    BLUE = 2


def returned(tree, folder):
    """A tree by way of a file."""
    writer = Writer()
    words = writer.words(tree, "the tree")
    archive.write(folder / "tree", "test", words, writer.arrays)
    found = archive.read(folder / "tree", "test")
    return Reader(found.arrays, modules=(__name__, Pair.__module__)).tree(found.words)


def test_numbers_words_and_members_come_back_exactly(tmp_path):
    numbers = [0.1, -0.0, 5e-324, 1.7976931348623157e308, np.inf, -np.inf, 2**70, -3, True, None]
    tree = {"numbers": tuple(numbers), "words": "Grüße \udc80 \n", "empty": ((), [], {})}
    tree |= {"nan": float("nan"), "colours": [Colour.RED, Colour.BLUE], "scalar": np.float32(0.1)}
    back = returned(tree, tmp_path)
    assert np.isnan(tree.pop("nan"))
    assert np.isnan(back.pop("nan"))
    assert back == tree
    assert str(back["numbers"][1]) == "-0.0"
    assert [type(x) for x in back["numbers"]] == [type(x) for x in numbers]
    assert type(back["scalar"]) is np.float32


def arrays():
    rng = np.random.default_rng(0)
    full = rng.standard_normal((4, 5, 6))
    return {
        "plain": full,
        "fortran": np.asfortranarray(full),
        "backward": full[::-1, :, ::-2],
        "transposed": full.transpose(1, 0, 2),
        "column": full[:, 2, :],
        "broadcast": np.broadcast_to(full[0, 0], (3, 6)),
        "one row of many": np.ndarray((1, 6), float, full.tobytes(), 0, (240, 8)),
        "no axes": np.array(2.5),
        "nothing": np.empty((0, 3)),
        "special": np.array([np.nan, np.inf, -0.0]),
        "float32": full.astype(np.float32),
        "truth": full > 0,
        "whole": np.arange(5, dtype=np.uint16),
        "words": np.array(["a", "bcd"]),
        "members": np.array([[Colour.RED], [Colour.BLUE]], dtype=object),
    }


def test_arrays_come_back_with_bits_dtypes_and_strides(tmp_path):
    tree = arrays()
    back = returned(tree, tmp_path)
    for name, array in tree.items():
        again = back[name]
        assert again.dtype == array.dtype, name
        assert again.shape == array.shape, name
        if array.size:
            assert again.strides == array.strides, name
        same = (
            np.array_equal(again, array)
            if array.dtype == object
            else again.tobytes() == array.tobytes()
        )
        assert same, name


def test_one_array_in_two_places_is_one_again(tmp_path):
    x = np.arange(3.0)
    writer = Writer()
    writer.words((x, {"again": x}, x.copy()), "the tree")
    assert len(writer.arrays) == 2
    first, again, other = returned((x, {"again": x}, x.copy()), tmp_path)
    assert again["again"] is first
    assert other is not first


def test_objects_are_known_by_their_fields(tmp_path):
    tree = Notes(np.arange(2.0), (Pair(np.ones(2), "one"), None, Pair(3.0, "two")))
    back = returned(tree, tmp_path)
    assert type(back) is Notes
    assert type(back.pairs[0]) is Pair
    assert np.array_equal(back.constant, tree.constant)
    assert back.pairs[2] == tree.pairs[2]


def test_long_lists_are_few_arrays(tmp_path):
    rows = [(k, 0.5 * k, np.full(3, k)) for k in range(1000)]
    writer = Writer()
    writer.words(rows, "rows")
    assert len(writer.arrays) == 3
    back = returned({"rows": rows, "mixed": [1, 2.0, "x"]}, tmp_path)
    assert back["mixed"] == [1, 2.0, "x"]
    for (k, half, array), row in zip(back["rows"], rows, strict=True):
        assert (k, half) == row[:2]
        assert type(k) is int
        assert np.array_equal(array, row[2])


@pytest.mark.parametrize(
    ("value", "kind"),
    [
        (len, "builtin_function_or_method"),
        (lambda: 0, "function"),
        (threading.Lock(), "lock"),
        (np.random.default_rng(0), "Generator"),
        ({1, 2}, "set"),
        (os, "module"),
        (float, "type"),
        (1j, "complex"),
    ],
)
def test_what_is_more_than_its_fields_is_named(value, kind):
    with pytest.raises(CapabilityError, match=rf"the tree\.a\[1\] is a {kind}, which cannot be"):
        Writer().words({"a": (0, value)}, "the tree")


def test_arrays_of_objects_and_local_classes_are_named():
    with pytest.raises(CapabilityError, match="the tree is an array of objects"):
        Writer().words(np.array([1, "a"], dtype=object), "the tree")

    class Local(Enum):
        ONE = 1

    with pytest.raises(CapabilityError, match="a class made inside a function"):
        Writer().words(Local.ONE, "the tree")


def test_a_cause_is_remembered_in_words(tmp_path):
    back = returned((ValueError("wrong"), EvaluationError("your function f raised")), tmp_path)
    assert [str(error) for error in back] == ["ValueError: wrong", "your function f raised"]
    again = returned(back, tmp_path)
    assert [str(error) for error in again] == [str(error) for error in back]


# --- files that are damaged, or something else --------------------------------------------------------


@pytest.fixture(scope="module")
def saved(tmp_path_factory):
    """A result, and the file it is saved in."""
    path = tmp_path_factory.mktemp("saved") / "result"
    result = rp.solve(tensor_problem(tensor(3, 4, 2, seed=6), 0.2), starts=STARTS)
    result.save(path)
    return result, path


@pytest.fixture
def file(saved, tmp_path):
    """A copy of it that a test may damage."""
    return Path(shutil.copy(saved[1], tmp_path / "file"))


def test_whatever_is_cut_off_is_noticed(saved, file):
    content = saved[1].read_bytes()
    for size in [*range(0, len(content), 97), len(content) - 1]:
        file.write_bytes(content[:size])
        with pytest.raises(StorageError, match="truncated, damaged or something else"):
            rp.load(file)


def test_a_changed_byte_is_noticed_or_changes_nothing(saved, file):
    """The archive's own tables hold bytes that mean nothing, such as times."""
    result, content = saved[0], bytearray(saved[1].read_bytes())
    rng, noticed, tried = np.random.default_rng(1), 0, 400
    for place in rng.integers(len(content), size=tried):
        changed = content.copy()
        changed[place] ^= 1 << int(rng.integers(8))
        file.write_bytes(changed)
        try:
            loaded = rp.load(file)
        except StorageError:
            noticed += 1
        else:
            assert differing(loaded, result) == []
    assert noticed > 0.7 * tried


def rewritten(path, change):
    """The same archive with other members: ``change`` gets their bytes by name."""
    with zipfile.ZipFile(path) as old:
        members = {info.filename: old.read(info) for info in old.infolist()}
    change(members)
    with zipfile.ZipFile(path, "w") as new:
        for name, content in members.items():
            new.writestr(name, content)


def other_words(**changes):
    def change(members):
        header = json.loads(members["words.json"])
        header.update(changes)
        members["words.json"] = json.dumps(header).encode()

    return change


def test_a_file_that_somebody_edited_is_refused(file):
    rewritten(file, other_words(kind="result", comment="harmless"))
    with pytest.raises(StorageError, match="it was changed after it was written"):
        rp.load(file)


def test_a_missing_or_exchanged_member_is_noticed(saved, file):
    rewritten(file, lambda members: members.pop("a3.npy"))
    with pytest.raises(StorageError, match="it was changed after it was written"):
        rp.load(file)
    shutil.copy(saved[1], file)

    def exchange(members):
        members["a0.npy"], members["a1.npy"] = members["a1.npy"], members["a0.npy"]

    rewritten(file, exchange)
    with pytest.raises(StorageError, match="it was changed after it was written"):
        rp.load(file)


def test_files_of_other_versions_and_kinds_say_which(saved, file, tmp_path):
    rewritten(file, other_words(number=2, **{"written by": "restpoint 9.1"}))
    with pytest.raises(StorageError, match=r"by restpoint 9\.1 in format 2; .* reads format 1"):
        rp.load(file)
    with pytest.raises(StorageError, match=r"holds a result, not a checkpoint; read it with load"):
        rp.resume(saved[1], quadratic_problem())
    rp.solve(quadratic_problem(), observers=[rp.Checkpoint(tmp_path / "run")])
    with pytest.raises(StorageError, match=r"holds a checkpoint, not a result; go on with resume"):
        rp.load(tmp_path / "run")


def test_what_is_no_file_of_ours_is_refused(tmp_path):
    things = {"text": b"hello", "empty": b""}
    for name, content in things.items():
        (tmp_path / name).write_bytes(content)
    np.save(tmp_path / "array.npy", np.ones(3))
    np.savez(tmp_path / "arrays.npz", a=np.ones(3))
    np.savez(tmp_path / "objects.npz", a=np.array([{}], dtype=object))
    with zipfile.ZipFile(tmp_path / "json.zip", "w") as other:
        other.writestr("words.json", json.dumps([1, 2]))
    for name in (*things, "array.npy", "arrays.npz", "objects.npz", "json.zip"):
        with pytest.raises(StorageError, match="cannot be read as a file of restpoint"):
            rp.load(tmp_path / name)
    with pytest.raises(StorageError, match=r"there is no file .*nowhere"):
        rp.load(tmp_path / "nowhere")
    with pytest.raises(StorageError, match="cannot be read: Is a directory"):
        rp.load(tmp_path)
    with pytest.raises(DataError, match="path must be the name of a file, got int"):
        rp.load(7)


def test_arrays_of_objects_are_never_unpickled(tmp_path, monkeypatch):
    """Even where the digest is right."""
    monkeypatch.setattr(
        np.lib.format,
        "write_array",
        lambda file, array, allow_pickle, write=np.lib.format.write_array: write(
            file, array, allow_pickle=True
        ),
    )
    objects = np.array([{"a": 1}], dtype=object)
    archive.write(tmp_path / "file", "result", {}, {"a0": objects})
    with pytest.raises(StorageError, match="Object arrays cannot be loaded"):
        archive.read(tmp_path / "file", "result")


@pytest.mark.parametrize(
    "name",
    [
        "os:system",
        "builtins:dict",
        "subprocess:Popen",
        "restpoint.run.archive:os.PathLike",
        "restpoint.run.archive:Path",
        "restpoint.run.archive:write",
        "restpoint.nowhere:Class",
        "restpoint.run.tree:Nothing",
        "resume_cases:Notes",
    ],
)
def test_classes_of_other_modules_are_not_looked_for(name):
    words = {"is": "object", "class": name, "of": {}}
    with pytest.raises(StorageError, match="which is not known here"):
        Reader({}).tree(words)
    with pytest.raises(StorageError, match="speaks of 'code', which is not known"):
        Reader({}).tree({"is": "code", "of": name})


def test_an_object_with_other_fields_is_of_another_version():
    name = "restpoint.methods.state:Work"
    words = {"is": "object", "class": name, "of": {"gradients": 1.0, "hours": 2.0}}
    with pytest.raises(StorageError, match=r"holds a Work of gradients, hours; here it has"):
        Reader({}).tree(words)


# --- results ------------------------------------------------------------------------------------------


def results():
    rng = np.random.default_rng(0)
    f = rp.smooth.LeastSquares(rng.standard_normal((9, 3)), rng.standard_normal(9))
    least_squares = rp.Problem(f, rp.Block(rp.sets.L2Ball()))
    weights = rp.penalties.L1(np.array([0.0, 0.1, 0.5]))
    path = rp.Problem(
        rp.smooth.Quadratic(np.diag([1.0, -2.0])), rp.Block(rp.sets.L2Ball(), weights)
    )
    sampled, few = rp.paper.algorithm(3, 40.0, m=3), rp.Stop(max_iterations=9)
    x32 = np.ones((2, 3), np.float32) / 2
    return {
        "one start": (quadratic_problem(), None, {}),
        "starts": (tensor_problem(tensor(3, 4, 2, seed=6), 0.2), METHODS[7], {"starts": STARTS}),
        "path": (path, None, {"starts": 3}),
        "sampled": (least_squares, sampled, {"starts": 3, "stop": few}),
        "float32": (quadratic_problem(), None, {"x0": x32, "eps": 1e-3}),
        "sum": (tensor_problem(tensor(3, 4)), None, {"stop": rp.Stop(measure="sum")}),
        "withdrawn": (quadratic_problem(), rp.ProximalGradient(smoothness=rp.Majorant(0.1)), {}),
    }


@pytest.mark.parametrize("name", results())
def test_a_loaded_result_says_what_the_saved_one_said(tmp_path, name):
    problem, method, more = results()[name]
    result = rp.solve(problem, method, **more)
    result.save(tmp_path / "file")
    for loaded in (rp.load(tmp_path / "file"), rp.load(tmp_path / "file", problem)):
        assert differing(loaded, result) == []
        assert repr(loaded.method) == repr(result.method)
        assert loaded.seconds == result.seconds
        assert repr(loaded) == repr(result)
        assert loaded.engine == result.engine
        lines = [line for line in str(loaded).splitlines() if "loaded" not in line]
        assert lines == str(result).splitlines()
        assert f"loaded     from {tmp_path / 'file'}, written by restpoint" in str(loaded)
        proved = rp.certify(problem, loaded.xs)
        assert np.array_equal(proved.per_block, rp.certify(problem, result.xs).per_block)
        assert differing(loaded.best(), result.best()) == []
        assert loaded.to_dataframe().equals(result.to_dataframe())
        loaded.save(tmp_path / "again")
        assert differing(rp.load(tmp_path / "again", problem), result) == []


def test_a_loaded_result_has_its_problem_if_it_is_given(saved):
    result, path = saved
    alone = rp.load(path)
    with pytest.raises(CapabilityError, match=r"without its problem; give it: .*load\(path, prob"):
        _ = alone.problem.smooth
    with pytest.raises(CapabilityError, match="the name alone is known; make it anew: Conditional"):
        rp.solve(result.problem, alone.method)
    assert rp.load(path, result.problem).problem is result.problem
    with pytest.raises(DataError, match=r"weight is 0\.3, but was 0\.2.*leave it out to read"):
        rp.load(path, tensor_problem(tensor(3, 4, 2, seed=6), 0.3))
    with pytest.raises(DataError, match="problem must be a restpoint"):
        rp.load(path, tensor(3, 4))


def test_a_loaded_result_of_a_path_gives_its_best_with_the_problem_of_it(tmp_path):
    problem, _, more = results()["path"]
    rp.solve(problem, **more).save(tmp_path / "file")
    best = rp.load(tmp_path / "file", problem).best()
    assert best.problem.batch_shape == ()
    assert best.problem.value(best.x) == best.value
    assert rp.load(tmp_path / "file").best().value == best.value


def test_an_error_is_kept_in_words(tmp_path):
    class Failing(Cosines):
        def gradient(self, x):
            self.calls += 1
            if self.calls > 9:
                raise ZeroDivisionError("no such luck")
            return super().gradient(x)

    result = rp.solve(Failing().problem())
    result.save(tmp_path / "file")
    loaded = rp.load(tmp_path / "file")
    assert "no such luck" in str(loaded.error)
    with pytest.raises(NotCertifiedError, match="ORACLE_FAILED"):
        loaded.raise_for_status()


@pytest.mark.backends
def test_results_of_other_libraries_are_loaded_as_numpy_arrays(tmp_path, xp):
    problem = tensor_problem(xp.asarray(tensor(3, 4)), 0.2)
    result = rp.solve(problem, starts=2)
    result.save(tmp_path / "file")
    loaded = rp.load(tmp_path / "file", problem)
    assert type(loaded.xs[0]) is np.ndarray
    assert differing(loaded, result) == []


def test_saving_replaces_a_file_as_a_whole_or_not_at_all(saved, file, tmp_path, monkeypatch):
    result, path = saved
    before = file.read_bytes()
    with pytest.raises(StorageError, match="cannot be written: No such file or directory"):
        result.save(tmp_path / "missing" / "file")

    def broken(*args, **more):
        raise OSError(28, "No space left on device")

    with monkeypatch.context() as patched:
        patched.setattr(np.lib.format, "write_array", broken)
        with pytest.raises(StorageError, match="No space left on device; what was there before"):
            result.best().save(file)
    with monkeypatch.context() as patched:
        patched.setattr(
            archive.os, "fsync", lambda handle: (_ for _ in ()).throw(KeyboardInterrupt)
        )
        with pytest.raises(KeyboardInterrupt):
            result.best().save(file)
    assert file.read_bytes() == before
    assert [p.name for p in tmp_path.iterdir()] == ["file"]
    result.best().save(file)
    assert rp.load(file).status is rp.Status.CERTIFIED
    assert path.read_bytes() == before


def test_equal_results_make_equal_files_and_links_are_followed(saved, tmp_path):
    result, path = saved
    rp.load(path).save(tmp_path / "other")
    (tmp_path / "link").symlink_to(tmp_path / "other")
    result.save(tmp_path / "link")
    assert (tmp_path / "link").is_symlink()
    assert (tmp_path / "other").read_bytes() == path.read_bytes()


# --- identities ---------------------------------------------------------------------------------------


def test_digests_are_of_entries_and_not_of_their_order_in_memory(monkeypatch):
    A = tensor(7, 11, 5)
    expected = digest(A)
    for piece in (1 << 24, 1000, 100, 8):
        monkeypatch.setattr(identity, "PIECE", piece)
        for same in (
            A,
            np.asfortranarray(A),
            A[::-1].copy()[::-1],
            A.transpose(2, 0, 1).copy().transpose(1, 2, 0),
        ):
            assert digest(same) == expected
    other = A.copy()
    other[6, 10, 4] += 1e-15
    assert digest(other) != expected
    assert digest(np.empty((0, 3))) == digest(np.empty(0))
    assert digest(np.array(1.0)) != digest(np.array(2.0))


@pytest.mark.parametrize("name", smooth_cases.cases())
def test_what_a_function_computes_later_is_no_part_of_what_it_is(name):
    case = smooth_cases.cases()[name]

    def identified():
        f = case.smooth()
        problem = rp.Problem(f, [rp.Block(s) for s in case.sets])
        return f, problem, Identity(problem).parts

    f, problem, before = identified()
    xs = case.points(np.random.default_rng(0), 2)
    f.facts(case.sets)
    rp.certify(problem, xs)
    assert Identity(problem).parts == before == identified()[2]


@pytest.mark.parametrize("cumulant", [True, False])
def test_what_a_kernel_computes_later_is_no_part_of_what_it_is(cumulant, monkeypatch):
    X = np.random.default_rng(0).standard_normal((30, 4))
    f = rp.smooth.MomentTensor(X, 4, cumulant=cumulant, whiten=True)
    problem = rp.Problem(f, [rp.Block(rp.sets.L2Ball())] * 4)
    before = Identity(problem).parts
    assert any("#" in word for word in before.values())
    rp.solve(problem, starts=2, stop=rp.Stop(max_iterations=3))
    assert Identity(problem).parts == before
    monkeypatch.setenv("RESTPOINT_KERNEL", "reference")
    problem = tensor_problem(tensor(3, 4))
    before = Identity(problem).parts
    rp.solve(problem, stop=rp.Stop(max_iterations=3))
    assert Identity(problem).parts == before


def test_every_parameter_has_its_place():
    from functools import partial

    class Own(rp.smooth.Smooth):
        """A stranger's function with data in odd places."""

        _computed = ("late",)

        def __init__(self):
            self.shapes = ((2,),)
            self.table = {"a": np.ones(2), "b": [1, "x", None]}
            self.code = partial(max, 3, key=abs)
            self.late = None
            self.path = Path("data") / "file"
            self.odd = threading.Lock()

        def value(self, xs):
            return 0.0 * xs[0][..., 0]

        def value_and_gradient(self, xs):
            return self.value(xs), (0.0 * xs[0],)

    parts = Identity(rp.Problem(Own(), rp.Block(rp.sets.L2Ball()))).parts
    assert parts["smooth"].endswith("Own")
    assert parts["smooth.table['a']"].startswith("float64 (2,) #")
    assert parts["smooth.table['b'][1]"] == "'x'"
    assert parts["smooth.code[0]"] == "max"
    assert parts["smooth.code[1][0]"] == "3"
    assert parts["smooth.odd"] == "lock"
    assert "smooth.late" not in parts
    assert not any(".oracle.set" in place for place in parts)  # the set has its place already
