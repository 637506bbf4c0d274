"""Anchors: store the heads of a log in a file, which later proves that no event up to them was removed or rewritten.

The hash chain alone cannot prove this: a log whose last events and heads were removed together has a valid chain.
"""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path
from typing import Any, NamedTuple, cast

import orjson

from recollect.events.backends.log import EventLog
from recollect.events.envelope import Head
from recollect.events.errors import InvalidInput
from recollect.events.integrity.verify import ChainProblem, VerifyResult
from recollect.events.storage.atomic_file import write_atomically


class Anchor(NamedTuple):
    """The heads of one log at one time."""

    log_id: str
    #: By namespace.
    heads: dict[str, Head]

    def find_problem(self, log: EventLog, namespace: str) -> ChainProblem | None:
        """Return the difference between the anchor and the log: the anchored event is missing or was rewritten."""
        anchored = self.heads.get(namespace)
        if anchored is None:
            return None
        events = log.read(namespace, after=anchored.version - 1, limit=1)
        if not events or events[0].version != anchored.version:
            message = f"removed: the anchor has version {anchored.version}, which the log does not have"
        elif events[0].hash != anchored.hash:
            message = f"rewritten: the hash at version {anchored.version} is not the anchor's"
        else:
            return None
        return ChainProblem(version=anchored.version, message=message)


def write_anchor(path: Path, log_id: str, results: Iterable[VerifyResult]) -> None:
    """Write the heads of verified chains to `path` atomically.

    Raises:
        InvalidInput: the file cannot be written.
    """
    heads = {result.namespace: {"version": result.version, "hash": result.hash.hex()} for result in results}
    content = orjson.dumps({"log_id": log_id, "heads": heads}, option=orjson.OPT_INDENT_2 | orjson.OPT_SORT_KEYS)
    try:
        write_atomically(path, content)
    except OSError as error:
        raise InvalidInput(f"cannot be written: {error.strerror}", field=str(path)) from error


def read_anchor(path: Path, log: EventLog) -> Anchor:
    """Return the anchor in `path`.

    Raises:
        InvalidInput: the file cannot be read, is not an anchor, or is the anchor of another log.
    """
    try:
        content = orjson.loads(path.read_bytes())
        entries = cast(dict[str, dict[str, Any]], content["heads"])
        heads = {name: Head(name, int(head["version"]), bytes.fromhex(head["hash"])) for name, head in entries.items()}
        log_id = str(content["log_id"])
    except OSError as error:
        raise InvalidInput(f"cannot be read: {error.strerror}", field=str(path)) from error
    except (ValueError, KeyError, TypeError, AttributeError) as error:
        raise InvalidInput(
            f"is not an anchor ({error}); `recollect verify --save-anchor FILE` writes an anchor", field=str(path)
        ) from error
    if log_id != log.log_id:
        raise InvalidInput(f"is an anchor of another log, {log_id}; this log is {log.log_id}", field=str(path))
    return Anchor(log_id, heads)
