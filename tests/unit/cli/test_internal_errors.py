"""What goes wrong in the program itself: only its kind and its place are shown, since its words might hold items."""

import errno
import os

import pytest
from tests.commands import run_here

from discreet.cli import output


@pytest.fixture
def broken(monkeypatch, tmp_path):
    def fails(*given, **words):
        raise RuntimeError("a secret item")

    monkeypatch.setattr("discreet.cli.publish.publish", fails)
    (tmp_path / "rows.txt").write_text("a\n" * 300)
    return ["count", tmp_path / "rows.txt", "--epsilon", 1]


def test_the_words_of_an_error_are_not_shown(broken):
    done = run_here(*broken)
    assert (done.returncode, done.stdout) == (1, "")
    assert "internal error: RuntimeError at test_internal_errors.py:" in done.stderr
    assert "secret" not in done.stderr


def test_whoever_asks_for_it_sees_all_of_it(broken):
    with pytest.raises(RuntimeError, match="a secret item"):
        run_here(*broken, env={**os.environ, "DISCREET_DEBUG": "1"})


@pytest.mark.parametrize(
    ("number", "code"),
    [
        *((number, 5) for number in (errno.ENOSPC, errno.EDQUOT)),
        *((number, 1) for number in (errno.EFBIG, errno.EIO, errno.EROFS)),
    ],
)
def test_an_output_that_takes_no_more_is_no_bug(monkeypatch, broken, number, code):
    """Whoever writes past the files that a command makes itself (prints, says help) ends with the codes of those."""

    def fails(*given, **words):
        raise OSError(number, os.strerror(number))

    monkeypatch.setattr("discreet.cli.publish.publish", fails)
    done = run_here(*broken)
    assert (done.returncode, done.stdout) == (code, "")
    assert done.stderr == f"discreet: an output cannot be written: {os.strerror(number)}\n"


@pytest.mark.parametrize("more", [(), ("--explain",), ("--format", "json")], ids=str)
def test_who_has_read_enough_makes_no_error(monkeypatch, tmp_path, more):
    """As `discreet count ... | true`."""
    (tmp_path / "rows.txt").write_text("a\n" * 300)
    plain = output.write_standard_output

    def to_nobody(data):
        read, write = os.pipe()
        os.close(read)
        os.dup2(write, 1)
        os.close(write)
        plain(data)

    monkeypatch.setattr("discreet.cli.publish.write_standard_output", to_nobody)
    done = run_here("count", tmp_path / "rows.txt", "--epsilon", 1, *more)
    assert "discreet: " not in done.stderr
    assert done.returncode == 0
