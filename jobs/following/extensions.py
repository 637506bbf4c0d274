"""Extensions: the projections and jobs of other packages, which are found by their entry points.

An entry point of the group `recollect.projections` or `recollect.jobs` names a module; what `@recollect.projection` and
`@recollect.job` declare in it is installed with its package.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterator, Mapping, Sequence
from datetime import datetime
from functools import cache
from importlib.metadata import entry_points
from typing import Any, TypeVar

from msgspec import Struct

from recollect.events.errors import InvalidInput, short_text
from recollect.events.late_pattern import late_pattern
from recollect.events.validation import producer_drafts
from recollect.jobs.derivation.job_context import JobContext
from recollect.jobs.following.feed import Feed, check_types

_logger = logging.getLogger(__name__)

#: Names of projections and jobs, which are parts of keys and of file names.
_NAME = late_pattern(r"[a-z0-9-]{1,40}")

#: Applies items of a feed, in order, to what a projection holds of a namespace.
Apply = Callable[[str, Sequence[Mapping[str, Any]]], None]
Declared = TypeVar("Declared")


class Projection(Struct, frozen=True, kw_only=True):
    """A read model of another package; see `projection`."""

    name: str
    apply: Apply
    #: Removes what it holds of a namespace.
    reset: Callable[[str], None]
    #: The types of the events that it applies; all when empty.
    types: tuple[str, ...] = ()
    #: Whether it applies changes of knowledge in place of events.
    knowledge: bool = False


class JobRun:
    """One run of a job of another package in one namespace.

    Parameters:
        now: when the run began, in UTC.
    """

    def __init__(self, context: JobContext, namespace: str, now: datetime) -> None:
        #: The namespace.
        self.namespace = namespace
        #: When the run began, in UTC.
        self.now = now
        self._context = context
        #: Number of events that `append` has recorded.
        self.appended = 0

    def follow(self, *, after: int = 0, types: Sequence[str] = (), knowledge: bool = False) -> Iterator[dict[str, Any]]:
        """Yield the events up to now, or changes of knowledge, as `Recollect.follow` does; it waits for no others."""
        feed = Feed(self._context.log, self._context.read_models, self.namespace, types=types, knowledge=knowledge)
        position = feed.check_position(after)
        while (page := feed.page(position)).through > position:
            yield from (item for _, item in page.items)
            position = page.through

    def append(self, events: Sequence[Mapping[str, Any]]) -> None:
        """Append events as `Recollect.append` does; with ids that a second run repeats, that one adds nothing."""
        screened = self._context.screen(self.namespace, producer_drafts(events))
        recorded = self._context.log.append(self.namespace, screened)
        self.appended += sum(not event.duplicate for event in recorded)


class OwnJob(Struct, frozen=True, kw_only=True):
    """A scheduled job of another package; see `job`."""

    name: str
    #: A cron expression in the zone of the settings.
    cron: str
    work: Callable[[JobRun], object]


def projection(
    name: str, *, reset: Callable[[str], None], types: Sequence[str] = (), knowledge: bool = False
) -> Callable[[Apply], Projection]:
    """Declare a function that applies events to a read model of its own, in a database of its own.

    The function is called with a namespace and the next items, in order: `Recollect.follow` says what they are. It is
    called again with the same ones after a crash. When it fails four times, it is parked in this namespace: a dead
    letter says why, and `recollect jobs requeue` tries again. `recollect replay` calls `reset`, and then the function
    with all items; so does an erasure.

    Parameters:
        name: 1 to 40 lower case letters, digits and -, by which its position is stored.
        reset: called with a namespace, removes what the read model holds of it.
        types: the types of the events; all when empty.
        knowledge: changes of facts, preferences and tasks in place of events.

    Raises:
        InvalidInput: the name or a type is wrong.
    """
    check_types(types, knowledge=knowledge)
    _check_name(name)
    return lambda apply: Projection(name=name, apply=apply, reset=reset, types=tuple(types), knowledge=knowledge)


def job(name: str, *, cron: str = "0 3 * * *") -> Callable[[Callable[[JobRun], object]], OwnJob]:
    """Declare a function that the scheduler runs, with a `JobRun`, in each namespace with events since its last run.

    Parameters:
        name: 1 to 40 lower case letters, digits and -.
        cron: the times in the zone of the settings; each night at 3:00.

    Raises:
        InvalidInput: the name is wrong.
    """
    _check_name(name)
    return lambda work: OwnJob(name=name, cron=cron, work=work)


@cache
def installed_projections() -> dict[str, Projection]:
    """Return the projections of the packages that are installed, by name."""
    return {declared.name: declared for declared in _declared("recollect.projections", Projection)}


@cache
def installed_jobs() -> dict[str, OwnJob]:
    """Return the jobs of the packages that are installed, by name."""
    return {declared.name: declared for declared in _declared("recollect.jobs", OwnJob)}


def _declared(group: str, kind: type[Declared]) -> Iterator[Declared]:
    """Yield what the modules of a group of entry points declare; none of a module that cannot be loaded."""
    for entry in entry_points(group=group):
        try:
            members: dict[str, Any] = entry.load().__dict__
        except Exception as error:  # The code of another package may raise anything.
            _logger.warning("the entry point %s of %s cannot be loaded: %s", entry.name, group, short_text(error))
            continue
        yield from (value for value in members.values() if isinstance(value, kind))


def _check_name(name: str) -> None:
    if not _NAME.fullmatch(name):
        raise InvalidInput("give 1 to 40 lower case letters, digits and -", field="name")
