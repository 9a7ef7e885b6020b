"""How much memory there is: what the machine has, or what its control group may use, whichever is less."""

import io

import pytest

import discreet as dc
from discreet.summaries import memory
from discreet.summaries.memory import Memory

NEW, OLD = "/sys/fs/cgroup/memory.max", "/sys/fs/cgroup/memory/memory.limit_in_bytes"


@pytest.fixture
def machine(monkeypatch):
    """A machine of 4 GiB, with these files of control groups."""

    def made(files):
        def opened(path, *given, **words):
            if path not in files:
                raise FileNotFoundError(path)
            return io.StringIO(files[path])

        monkeypatch.setattr(memory.os, "sysconf", lambda name: 4096 if name == "SC_PAGE_SIZE" else 2**20)
        monkeypatch.setattr(memory, "open", opened, raising=False)

    return made


@pytest.mark.parametrize(
    ("files", "usable"),
    [
        ({}, 2**32),
        ({NEW: "1000000\n"}, 1_000_000),
        ({NEW: "max\n"}, 2**32),
        ({NEW: str(2**60)}, 2**32),
        ({OLD: "1000000\n"}, 1_000_000),
        ({OLD: "9223372036854771712\n"}, 2**32),
        ({NEW: "max\n", OLD: "2000000"}, 2_000_000),
        ({NEW: "3000000", OLD: "2000000"}, 2_000_000),
        ({NEW: "2000000", OLD: "3000000"}, 2_000_000),
        ({NEW: "", OLD: "what"}, 2**32),
    ],
)
def test_a_control_group_may_have_less_than_the_machine(machine, files, usable):
    machine(files)
    assert memory._memory_of_machine() == usable
    assert Memory().bytes == int(0.8 * usable)  # the rest is for others


def test_a_third_is_for_the_data_where_memory_is_small():
    """A quarter of a gigabyte is for the libraries; of less than that a third can be used all the same."""
    rooms = [(text, Memory(text).room) for text in ("2GB", "1GB", "375MB", "300MB", "30 MB")]
    assert rooms == [
        ("2GB", 1750 * 10**6),
        ("1GB", 750 * 10**6),
        *((t, int(t[:-2]) * 10**6 // 3) for t, _ in rooms[2:]),
    ]


@pytest.mark.parametrize(
    ("text", "size"),
    [("1KB", 1000), ("1KiB", 1024), ("1.5mb", 1_500_000), (" 2 GiB ", 2**31), ("1TB", 10**12), ("0.5TiB", 2**39)],
)
def test_a_size_is_a_number_and_a_unit(text, size):
    assert Memory(text).bytes == size


@pytest.mark.parametrize("text", ["", "2", "GB", "2 G", "-1GB", "1e3MB", "2GB!", "2PB", "1,5GB", 7])
def test_what_is_no_size_is_refused(text):
    with pytest.raises(dc.ParameterError, match="memory must be a size such as 2GB or 512MiB, not"):
        Memory(text)


def test_less_than_the_libraries_take_is_refused():
    assert Memory("160MB", 160 * 10**6).bytes == 160 * 10**6
    with pytest.raises(dc.ParameterError, match="the memory limit of 159MB is too small: this takes at least 160MB"):
        Memory("159MB", 160 * 10**6)
