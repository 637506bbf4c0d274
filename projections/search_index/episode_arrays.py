"""Episode arrays: hold the active episodes of a read model as columns, one row an episode, in order of version."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from functools import cached_property
from typing import Any

import numpy as np
from msgspec import Struct, field
from msgspec.structs import replace
from numpy.typing import NDArray

from recollect.projections.projector.predicates import normalised
from recollect.projections.queries.episode_queries import EpisodeQueries
from recollect.projections.search_index.growing_arrays import GrowingArrays

Ints = NDArray[np.int64]
#: Numbers that fit into fewer bytes, since every episode has them in memory.
SmallInts = NDArray[np.integer[Any]]

#: Value of `EpisodeArrays.text_flags` before ranking has analysed the episode's text.
UNKNOWN = 0

#: Value of `EpisodeArrays.utc_offsets` without a zone: more than a day has minutes.
NO_ZONE = 9_999

#: Codes of the roles; any other role is 0.
ROLES = {"user": 1, "assistant": 2}


class EpisodeArrays(Struct, frozen=True, kw_only=True, dict=True):
    """The active episodes of a read model up to a version. Each array of numbers has the shape (episodes,)."""

    #: Version of each episode, ascending.
    versions: Ints
    #: Time of the episode, in microseconds since 1970.
    occurred_at_us: Ints
    #: Minutes east of UTC of its own zone; `NO_ZONE`: it has none.
    utc_offsets: SmallInts
    #: Position of the episode's session in `session_ids`; without a session, the position of None.
    sessions: SmallInts
    #: Position of the episode's speaker in `speaker_names`.
    speakers: SmallInts
    #: Code of the episode's role (`ROLES`).
    roles: SmallInts
    #: Importance, 1 to 10.
    importances: SmallInts
    #: Bytes of the indexed text: the document length of BM25.
    lengths: SmallInts
    #: Bytes of the indexed text of the episode and of the episode before it in its session.
    window_lengths: SmallInts
    #: 1 for a raw episode, 0 for a summary.
    raw: SmallInts
    #: Flags of the text, written by `ranking.features` on first use (`UNKNOWN` before). Only this array changes.
    text_flags: NDArray[np.int64]
    #: Ids of the sessions.
    session_ids: tuple[str | None, ...]
    #: Names of the speakers.
    speaker_names: tuple[str, ...]
    #: Row of each version from 0 on, -1 for a version that is not an episode. Shared between cuts of the same arrays:
    #: it may hold rows after the last one of these arrays; versions over its length are not episodes.
    row_by_version: NDArray[np.int32]
    #: The last version read from the read model.
    through: int
    #: `removal` of the read model when the arrays were read; a later removal makes them invalid.
    last_removal_version: int
    #: The memory of the arrays above, and that of `row_by_version`: later episodes are appended there.
    columns: GrowingArrays = field(default_factory=GrowingArrays)
    version_rows: GrowingArrays = field(default_factory=GrowingArrays)

    def __len__(self) -> int:
        return len(self.versions)

    @property
    def size_bytes(self) -> int:
        """Return the memory of the arrays, without the room behind them."""
        return self.row_by_version.nbytes + sum(getattr(self, name).nbytes for name in _ARRAYS)

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
        """Return the number of episodes of each of `session_ids`."""
        return np.bincount(self.sessions, minlength=len(self.session_ids))

    @cached_property
    def sessionless(self) -> NDArray[np.bool_]:
        """Return a mask over `session_ids` that is true at None."""
        return np.array([name is None for name in self.session_ids], np.bool_)

    @cached_property
    def has_summaries(self) -> bool:
        """Return whether an episode is a summary."""
        return not self.raw.all()

    @cached_property
    def user_names(self) -> frozenset[str]:
        """Return the speakers of the users' messages, normalised."""
        return self._names(self._is_by_user)

    def user_names_of(self, session_id: str | None) -> frozenset[str]:
        """Return the speakers of the users' messages of a session, normalised; computed once for each session."""
        names = self._names_by_session.get(session_id)
        if names is None:
            position = self.session_ids.index(session_id) if session_id in self.session_ids else -1
            names = self._names(self._is_by_user & (self.sessions == position))
            self._names_by_session[session_id] = names
        return names

    @cached_property
    def _names_by_session(self) -> dict[str | None, frozenset[str]]:
        return {}

    @property
    def _is_by_user(self) -> NDArray[np.bool_]:
        return (self.roles == ROLES["user"]) & (self.raw == 1)

    def _names(self, rows: NDArray[np.bool_]) -> frozenset[str]:
        """Return the speakers of some episodes, normalised."""
        positions = np.flatnonzero(np.bincount(self.speakers[rows]))
        return frozenset(normalised(self.speaker_names[position]) for position in positions)

    @cached_property
    def session_run_starts(self) -> Ints:
        """Return the rows whose session differs from the row before; row 0 is the first of them."""
        return np.flatnonzero(np.diff(self.sessions, prepend=-1))

    @cached_property
    def follows(self) -> NDArray[np.bool_]:
        """Return a mask of the rows after the first: whether each is the next turn of the session of the row before."""
        follows = (np.diff(self.sessions) == 0) & ~self.sessionless[self.sessions[1:]]
        return follows & (self.raw[1:] == 1) & (self.raw[:-1] == 1)

    def live_rows(self, versions: SmallInts) -> tuple[Ints, NDArray[np.bool_]]:
        """Return the rows of the `versions` that are episodes of these arrays, and the mask of those versions.

        Parameters:
            versions: ascending, shape (n,).
        """
        covered = int(np.searchsorted(versions, len(self.row_by_version)))
        rows = self.row_by_version[versions[:covered]]
        live = np.zeros(len(versions), np.bool_)
        live[:covered] = (rows >= 0) & (rows < len(self))
        return rows[live[:covered]].astype(np.int64), live

    def rows_of(self, versions: Ints) -> Ints:
        """Return the rows of the `versions` that are episodes of these arrays, in the order of `versions`."""
        if not len(self.versions):
            return np.empty(0, np.int64)
        rows = np.searchsorted(self.versions, versions)
        rows[rows == len(self.versions)] = 0
        return rows[self.versions[rows] == versions]

    def cut_at(self, version: int) -> EpisodeArrays:
        """Return the arrays cut after `version`, as views without a copy."""
        if version >= self.through:
            return self
        end = int(np.searchsorted(self.versions, version, side="right"))
        cut = {name: getattr(self, name)[:end] for name in _ARRAYS}
        return replace(self, **cut, through=version)

    def extended(self, episodes: EpisodeQueries, through: int) -> EpisodeArrays:
        """Return the arrays extended by the episodes up to the version `through`."""
        rows = episodes.array_rows(self.through, through)
        return self._with_rows(rows, through) if rows else replace(self, through=through)

    def with_turns(
        self, kept: NDArray[np.bool_], turns: Sequence[tuple[Any, ...]], text_flags: Sequence[int]
    ) -> EpisodeArrays:
        """Return arrays of the `kept` episodes and of further turns, in order of version.

        Parameters:
            kept: mask of the episodes, shape (episodes,).
            turns: with the columns of `EpisodeQueries.array_rows`, ascending; no version is that of an episode.
            text_flags: the flags of the texts of `turns`, as far as they are known.
        """
        # An array of the turns alone, which shares the positions of sessions and speakers.
        added = replace(
            empty_episode_arrays(self.last_removal_version),
            session_ids=self.session_ids,
            speaker_names=self.speaker_names,
        )
        added = added._with_rows(turns, self.through) if turns else added
        added = replace(added, text_flags=np.array(text_flags, np.int64))
        columns = {name: np.concatenate([getattr(self, name)[kept], getattr(added, name)]) for name in _ARRAYS}
        order = np.argsort(columns["versions"])
        ordered: dict[str, Any] = {name: column[order] for name, column in columns.items()}
        row_by_version = np.full(self.through + 1, -1, np.int32)
        row_by_version[ordered["versions"]] = np.arange(len(order))
        return replace(
            added,
            **ordered,
            row_by_version=row_by_version,
            through=self.through,
            columns=GrowingArrays(),
            version_rows=GrowingArrays(),
        )

    def _with_rows(self, rows: Sequence[tuple[Any, ...]], through: int) -> EpisodeArrays:
        """Return the arrays with `rows` at the end, with the columns of `EpisodeQueries.array_rows`."""
        versions, times, sessions, roles, speakers, importances, previous, lengths, raw, offsets = zip(
            *rows, strict=True
        )
        session_ids, session_positions = _interned(self.session_ids, sessions)
        speaker_names, speaker_positions = _interned(self.speaker_names, speakers)
        added: dict[str, Any] = {
            "versions": _ints(versions),
            "occurred_at_us": _ints(times),
            "utc_offsets": _ints(NO_ZONE if offset is None else offset for offset in offsets),
            "sessions": session_positions,
            "speakers": speaker_positions,
            "roles": _ints(ROLES.get(role, 0) for role in roles),
            "importances": _ints(importances),
            "lengths": _ints(lengths),
            "raw": _ints(raw),
            "text_flags": np.full(len(rows), UNKNOWN, np.int64),
        }
        # The window lengths are those of the episodes alone until the others can be looked up.
        columns, arrays = self.columns.extended(
            {name: getattr(self, name) for name in _ARRAYS}, added | {"window_lengths": added["lengths"]}
        )
        arrays["window_lengths"][len(self) :] += _lengths_before(arrays["versions"], arrays["lengths"], previous)
        first = len(self.row_by_version)
        new_rows = np.full(through + 1 - first, -1, np.int32)
        new_rows[added["versions"] - first] = np.arange(len(self), len(self) + len(rows))
        version_rows, by_version = self.version_rows.extended({"": self.row_by_version}, {"": new_rows})
        return EpisodeArrays(
            **arrays,
            row_by_version=by_version[""],
            columns=columns,
            version_rows=version_rows,
            session_ids=session_ids,
            speaker_names=speaker_names,
            through=through,
            last_removal_version=self.last_removal_version,
        )


#: Types of the fields with small numbers: 47 bytes an episode in all, instead of 92.
_TYPES: dict[str, type[np.integer[Any]]] = {
    "utc_offsets": np.int16,
    "sessions": np.int32,
    "speakers": np.int32,
    "roles": np.int8,
    "importances": np.int8,
    "lengths": np.int32,
    "window_lengths": np.int32,
    "raw": np.int8,
}
#: Fields with one number an episode.
_ARRAYS = (
    "versions",
    "occurred_at_us",
    "utc_offsets",
    "sessions",
    "speakers",
    "roles",
    "importances",
    "lengths",
    "window_lengths",
    "raw",
    "text_flags",
)


def empty_episode_arrays(last_removal_version: int) -> EpisodeArrays:
    """Return arrays without episodes, to be extended."""
    arrays: dict[str, Any] = {name: np.empty(0, _TYPES.get(name, np.int64)) for name in _ARRAYS}
    return EpisodeArrays(
        **arrays,
        row_by_version=np.empty(0, np.int32),
        session_ids=(),
        speaker_names=(),
        through=0,
        last_removal_version=last_removal_version,
    )


def mean(values: NDArray[Any]) -> float:
    """Return the mean of `values`, at least 1: callers divide by it."""
    return max(float(values.mean()), 1.0) if len(values) else 1.0


#: Names that are searched for one by one.
_FEW_VALUES = 4


def _ints(values: Iterable[int]) -> Ints:
    return np.fromiter(values, np.int64)


def _interned(names: tuple[Any, ...], values: tuple[Any, ...]) -> tuple[tuple[Any, ...], Ints]:
    """Return `names` extended by the new ones of `values`, and the position of each value in them."""
    if len(values) <= _FEW_VALUES:
        # A live message, mostly of the newest session: a dictionary of all names takes longer than a search.
        positions = {value: names.index(value) for value in set(values) if value in names}
        if len(positions) == len(set(values)):
            return names, _ints(positions[value] for value in values)
    position_of = {name: position for position, name in enumerate(names)}
    positions = _ints(position_of.setdefault(value, len(position_of)) for value in values)
    return (names if len(position_of) == len(names) else tuple(position_of)), positions


def _lengths_before(versions: Ints, lengths: Ints, previous: tuple[int | None, ...]) -> Ints:
    """Return the length of each episode of `previous`; 0 when it is None or was removed."""
    previous_versions = _ints(version or 0 for version in previous)
    rows = np.minimum(np.searchsorted(versions, previous_versions), len(versions) - 1)
    return np.where(versions[rows] == previous_versions, lengths[rows], 0)
