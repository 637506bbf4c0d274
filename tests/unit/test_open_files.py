"""Open files of namespaces."""

from __future__ import annotations

from functools import partial

import pytest

from recollect.projections.read_models.open_files import OpenFiles


class _File:
    def __init__(self, name: str, opened: list[str]) -> None:
        self.name = name
        self.current = True
        self.closed = False
        opened.append(name)

    def close(self) -> None:
        assert not self.closed
        self.closed = True


def test_the_least_recently_used_file_that_is_not_in_use_is_closed_first() -> None:
    opened: list[str] = []
    files: OpenFiles[_File] = OpenFiles(2)
    with files.using("a", partial(_File, "a", opened)) as a:
        with files.using("b", partial(_File, "b", opened)) as b:
            pass
        with files.using("c", partial(_File, "c", opened)):
            assert b.closed
            assert not a.closed
    with files.using("a", partial(_File, "a", opened)) as again:
        assert again is a
    assert opened == ["a", "b", "c"]


def test_a_file_that_is_dropped_while_it_is_used_is_closed_by_its_last_user() -> None:
    opened: list[str] = []
    files: OpenFiles[_File] = OpenFiles(2)
    with files.using("a", partial(_File, "a", opened)) as first:
        with files.using("a", partial(_File, "a", opened)) as second:
            files.drop("a")
            assert first is second
        assert not first.closed
        with files.using("a", partial(_File, "a", opened)) as anew:
            assert anew is not first
    assert first.closed
    assert not anew.closed
    files.drop_all()
    assert anew.closed


def test_a_file_that_is_no_longer_the_current_one_is_opened_anew() -> None:
    opened: list[str] = []
    files: OpenFiles[_File] = OpenFiles(2, is_current=lambda file: file.current)
    with files.using("a", partial(_File, "a", opened)) as file:
        file.current = False
    with files.using("a", partial(_File, "a", opened)) as anew:
        assert file.closed
        assert files.files() == [anew]


def test_a_file_that_cannot_be_opened_leaves_nothing_behind() -> None:
    files: OpenFiles[_File] = OpenFiles(2)

    def fail() -> _File:
        raise OSError("no such file")

    with pytest.raises(OSError, match="no such file"), files.using("a", fail):
        pass
    assert files.files() == []
