"""The live episodes of one read model as arrays in memory, in the order of versions: what ranking adds up over."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray

from recollect.projections.queries.episode_queries import EpisodeQueries

Ints = NDArray[np.int64]

#: What `Roster.traits` holds of an episode that nobody has looked at.
UNKNOWN = 0

#: Roles as numbers; any other role is 0.
ROLES = {"user": 1, "assistant": 2}


@dataclass(frozen=True, kw_only=True)
class EpisodeArrays:
    """The episodes that are there and active, up to a version. All arrays have one number an episode."""

    #: Rising.
    versions: Ints
    occurred_at_us: Ints
    #: Place in `session_ids`; of what has no session, the place of None.
    sessions: Ints
    #: Place in `speaker_names`.
    speakers: Ints
    #: See `ROLES`.
    roles: Ints
    #: 1 to 10.
    importances: Ints
    #: Bytes of what an episode is found by.
    lengths: Ints
    #: The same with those of the episode before it.
    window_lengths: Ints
    #: 1: what was said or done; 0: a summary.
    raw: Ints
    #: What its text is like, looked up when it is needed (`UNKNOWN` until then). The one array that changes.
    text_flags: NDArray[np.int32]
    session_ids: tuple[str | None, ...]
    speaker_names: tuple[str, ...]
    #: The place of each version from 0 on, -1 of what is no episode here; it may know later ones, and fewer versions.
    row_by_version: NDArray[np.int32]
    #: The last version looked at.
    through: int
    #: The model's mark of the last removal; with another one the roster is read anew.
    last_removal_version: int

    def __len__(self) -> int:
        return len(self.versions)

    @cached_property
    def mean_length(self) -> float:
        """Return the mean of `lengths`, never under 1."""
        return mean(self.lengths)

    @cached_property
    def mean_window_length(self) -> float:
        """Return the mean of `window_lengths`, never under 1."""
        return mean(self.window_lengths)

    @cached_property
    def session_lengths(self) -> NDArray[np.float64]:
        """Return the length of each of `session_ids`."""
        lengths: Any = np.bincount(self.sessions, self.lengths, minlength=len(self.session_ids))
        return lengths

    @cached_property
    def session_sizes(self) -> Ints:
        """Return how many episodes each of `session_ids` has."""
        return np.bincount(self.sessions, minlength=len(self.session_ids))

    @cached_property
    def sessionless(self) -> NDArray[np.bool_]:
        """Return which of `session_ids` stands for having no session."""
        return np.array([name is None for name in self.session_ids], np.bool_)

    @cached_property
    def runs(self) -> Ints:
        """Return where another session than that of the episode before begins; the first place is one."""
        return np.flatnonzero(np.diff(self.sessions, prepend=-1))

    def live(self, versions: Ints) -> tuple[Ints, NDArray[np.bool_]]:
        """Return the places of those of `versions` that are here, and which those are; `versions` rise."""
        known = int(np.searchsorted(versions, len(self.row_by_version)))
        rows = self.row_by_version[versions[:known]]
        here = np.zeros(len(versions), np.bool_)
        here[:known] = (rows >= 0) & (rows < len(self))
        return rows[here[:known]].astype(np.int64), here

    def rows_of(self, versions: Ints) -> Ints:
        """Return the places of those of `versions` that are here, in their order."""
        if not len(self.versions):
            return np.empty(0, np.int64)
        rows = np.searchsorted(self.versions, versions)
        rows[rows == len(self.versions)] = 0
        return rows[self.versions[rows] == versions]

    def until(self, version: int) -> EpisodeArrays:
        """Return the roster as it was at `version`, without a copy."""
        if version >= self.through:
            return self
        end = int(np.searchsorted(self.versions, version, side="right"))
        cut = {name: getattr(self, name)[:end] for name in _ARRAYS}
        return replace(self, **cut, through=version)

    def extended(self, episodes: EpisodeQueries, through: int) -> EpisodeArrays:
        """Return the roster with the episodes up to the version `through`."""
        rows = episodes.array_rows(self.through, through)
        if not rows:
            return replace(self, through=through)
        versions, times, sessions, roles, speakers, importances, previous, lengths, raw = zip(*rows, strict=True)
        session_ids, session_places = _interned(self.session_ids, sessions)
        speaker_names, speaker_places = _interned(self.speaker_names, speakers)
        added = {
            "versions": _ints(versions),
            "occurred_at_us": _ints(times),
            "sessions": session_places,
            "speakers": speaker_places,
            "roles": _ints(ROLES.get(role, 0) for role in roles),
            "importances": _ints(importances),
            "lengths": _ints(lengths),
            "raw": _ints(raw),
            "text_flags": np.full(len(rows), UNKNOWN, np.int32),
        }
        whole: dict[str, Any] = {name: np.concatenate([getattr(self, name), array]) for name, array in added.items()}
        before = _lengths_before(whole["versions"], whole["lengths"], previous)
        whole["window_lengths"] = np.concatenate([self.window_lengths, added["lengths"] + before])
        known = np.full(max(0, through + 1 - len(self.row_by_version)), -1, np.int32)
        places = np.concatenate([self.row_by_version, known])
        places[added["versions"]] = np.arange(len(self), len(whole["versions"]))
        return EpisodeArrays(
            **whole,
            row_by_version=places,
            session_ids=session_ids,
            speaker_names=speaker_names,
            through=through,
            last_removal_version=self.last_removal_version,
        )


_ARRAYS = (
    "versions",
    "occurred_at_us",
    "sessions",
    "speakers",
    "roles",
    "importances",
    "lengths",
    "window_lengths",
    "raw",
    "text_flags",
)


def empty_episode_arrays(removal: int) -> EpisodeArrays:
    """Return the roster of a model before its first episode."""
    none = np.empty(0, np.int64)
    arrays: dict[str, Any] = dict.fromkeys(_ARRAYS, none) | {"text_flags": np.empty(0, np.int32)}
    places = np.empty(0, np.int32)
    return EpisodeArrays(
        **arrays, row_by_version=places, session_ids=(), speaker_names=(), through=0, last_removal_version=removal
    )


def mean(values: NDArray[Any]) -> float:
    """Return the mean of `values`, never under 1, so that it can be divided by."""
    return max(float(values.mean()), 1.0) if len(values) else 1.0


def _ints(values: Iterable[int]) -> Ints:
    return np.fromiter(values, np.int64)


def _interned(known: tuple[Any, ...], values: tuple[Any, ...]) -> tuple[tuple[Any, ...], Ints]:
    """Return `known` with what is new in `values`, and the place of each value."""
    places = {value: place for place, value in enumerate(known)}
    found = _ints(places.setdefault(value, len(places)) for value in values)
    return (known if len(places) == len(known) else tuple(places)), found


def _lengths_before(versions: Ints, lengths: Ints, previous: tuple[int | None, ...]) -> Ints:
    """Return the length of the episode before each; 0 where there is none any more."""
    wanted = _ints(version or 0 for version in previous)
    rows = np.minimum(np.searchsorted(versions, wanted), len(versions) - 1)
    return np.where(versions[rows] == wanted, lengths[rows], 0)
