"""Progress of long work, on standard error: a bar on a terminal, nothing in a pipe."""

from __future__ import annotations

from collections.abc import Generator
from contextlib import contextmanager

from rich.console import Console
from rich.progress import (
    BarColumn,
    MofNCompleteColumn,
    Progress,
    ProgressColumn,
    Task,
    TaskID,
    TextColumn,
    TimeRemainingColumn,
)
from rich.text import Text


class Bars:
    """One bar for each kind of work, made when it is first heard of; those that are done make room for it."""

    def __init__(self, progress: Progress) -> None:
        self._progress = progress
        self._tasks: dict[str, TaskID] = {}

    def show(self, what: str, done: int, total: int | None) -> None:
        """Show that `done` of `total` steps of `what` are done."""
        if what not in self._tasks:
            for task in self._progress.tasks:
                # Where nobody knows how much there was, the next kind of work says that it is over.
                task.visible = task.total is not None and not task.finished
            # What was done before this run does not count for its rate.
            self._tasks[what] = self._progress.add_task(what, total=total, completed=done)
        self._progress.update(self._tasks[what], completed=done, total=total)


class _Rate(ProgressColumn):
    """Steps a second, and nothing before they are known."""

    def render(self, task: Task) -> Text:
        return Text("" if task.speed is None else f"{task.speed:,.0f}/s")


@contextmanager
def bars() -> Generator[Bars]:
    """Lend bars that vanish when the work is done."""
    columns = (TextColumn("{task.description}"), BarColumn(), MofNCompleteColumn(), _Rate(), TimeRemainingColumn())
    console = Console(stderr=True)
    with Progress(*columns, console=console, transient=True, disable=not console.is_terminal) as progress:
        yield Bars(progress)
