"""Progress bars of long commands on standard error: shown on a terminal, not in a pipe."""

from __future__ import annotations

from collections.abc import Generator
from contextlib import contextmanager
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from rich.progress import Progress, TaskID


class ProgressBars:
    """One bar for each kind of work. A new bar hides the completed ones."""

    def __init__(self, progress: Progress) -> None:
        self._progress = progress
        self._tasks: dict[str, TaskID] = {}

    def show(self, name: str, done: int, total: int | None) -> None:
        """Show that `done` of `total` steps of the work `name` are done; `total` is None when unknown."""
        if name not in self._tasks:
            for task in self._progress.tasks:
                # Work without a known total is over when the next kind of work begins.
                task.visible = task.total is not None and not task.finished
            # The steps of earlier runs do not count for the rate.
            self._tasks[name] = self._progress.add_task(name, total=total, completed=done, rate="")
        id = self._tasks[name]
        self._progress.update(id, completed=done, total=total)
        speed = next((task.speed for task in self._progress.tasks if task.id == id), None)
        self._progress.update(id, rate="" if speed is None else f"{speed:,.0f}/s")


@contextmanager
def progress_bars() -> Generator[ProgressBars]:
    """Show progress bars, and remove them at the end."""
    # Here: rich takes as long to load as a tenth of a short command.
    from rich.console import Console  # noqa: PLC0415
    from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeRemainingColumn  # noqa: PLC0415

    columns = (
        TextColumn("{task.description}"),
        BarColumn(),
        MofNCompleteColumn(),
        TextColumn("{task.fields[rate]}"),
        TimeRemainingColumn(),
    )
    console = Console(stderr=True)
    with Progress(*columns, console=console, transient=True, disable=not console.is_terminal) as progress:
        yield ProgressBars(progress)
