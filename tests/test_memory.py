"""What needs more memory than there is, is refused before the attempt."""

import numpy as np
import pytest

import restpoint as rp
from method_cases import quadratic_problem
from restpoint.array import _memory, require_memory
from restpoint.errors import DataError


@pytest.fixture
def machine(tmp_path, monkeypatch):
    """A machine of files: 8 GB to be had, in a control group if the test makes one."""
    proc, groups = tmp_path / "proc", tmp_path / "cgroup"
    (proc / "self").mkdir(parents=True)
    groups.mkdir()
    (proc / "meminfo").write_text(
        "MemTotal:  16000000 kB\nMemAvailable:  8000000 kB\nHugePages: 0\n"
    )
    monkeypatch.setattr(_memory, "PROC", proc)
    monkeypatch.setattr(_memory, "GROUPS", groups)
    return tmp_path


def test_what_the_machine_says(machine):
    assert _memory.available_memory() == 8_192_000_000
    require_memory(8_192_000_000, "this")
    with pytest.raises(DataError) as caught:
        require_memory(9_000_000_000, "a tensor of 9 GB")
    assert "a tensor of 9 GB needs 9,000,000,000 bytes (9 GB) of memory" in str(caught.value)
    assert "but 8,192,000,000 bytes (8.19 GB) can be had; ask for less" in str(caught.value)


def test_every_control_group_above_counts(machine):
    (machine / "proc" / "self" / "cgroup").write_text("0::/user/job\n")
    place = machine / "cgroup" / "user"
    (place / "job").mkdir(parents=True)
    (place / "job" / "memory.max").write_text("max\n")
    (place / "job" / "memory.current").write_text("7\n")
    assert _memory.available_memory() == 8_192_000_000
    (place / "memory.max").write_text("1000000\n")
    (place / "memory.current").write_text("900000\n")
    (place / "memory.stat").write_text("anon 5\ninactive_file 300000\n")
    assert _memory.available_memory() == 400_000


def test_control_groups_of_the_first_version(machine):
    (machine / "proc" / "self" / "cgroup").write_text("5:cpu:/x\n4:memory:/docker/abc\n")
    place = machine / "cgroup" / "memory"  # the container sees its own group at the root
    place.mkdir()
    (place / "memory.limit_in_bytes").write_text("500000\n")
    (place / "memory.usage_in_bytes").write_text("600000\n")
    assert _memory.available_memory() == 0


def test_machines_without_such_files(monkeypatch, tmp_path):
    monkeypatch.setattr(_memory, "PROC", tmp_path)
    monkeypatch.setattr(
        _memory.os, "sysconf", {"SC_PAGE_SIZE": 4096, "SC_PHYS_PAGES": 10}.__getitem__
    )
    assert _memory.available_memory() == 40960

    def unknown(name):
        raise ValueError(name)

    monkeypatch.setattr(_memory.os, "sysconf", unknown)
    assert _memory.available_memory() is None
    require_memory(10**30, "whatever")


@pytest.mark.parametrize("starts", [10**15, np.int64(10**15)])
def test_more_starts_than_fit_are_refused(starts):
    with pytest.raises(DataError, match=r"a run from 1,000,000,000,000,000 starts needs .* bytes"):
        rp.solve(quadratic_problem(), starts=starts)


def test_the_check_for_finite_data_makes_no_array_of_their_size():
    import tracemalloc

    data = np.ones((1000, 1000))
    tracemalloc.start()
    rp.smooth.Multilinear(data)
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert peak < 100_000  # a mask of the entries would be ten times that
