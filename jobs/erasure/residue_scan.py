"""Residue scan: searches the files of a data folder for what an erasure may have left of its texts.

Windows of the texts are taken before the events are erased, and stay in memory. A window that is found is a residue
unless something that stays has the same words: a kept event of the namespace, or a text of after the erasure.
"""

from __future__ import annotations

import logging
from collections.abc import Iterable
from itertools import chain
from pathlib import Path

from msgspec import Struct

from recollect.events.backends.log import EventLog, each_page
from recollect.events.encryption.erasure_ledger import LedgerErasure
from recollect.events.integrity.residue import WINDOW_BYTES, ResidueSearch, search
from recollect.projections.read_models.layout import is_searched, own_files, shared_files
from recollect.projections.read_models.purges import Target

_logger = logging.getLogger(__name__)

#: Kept events that are compared with the windows that were found: about a second.
_KEPT_EVENTS_MAX = 200_000
#: Files with residue that a receipt names.
_NAMED_FILES_MAX = 10
_OWN = "files of the namespace"
_SHARED = "files that namespaces share, and the log in SQLite"


class _Kept(Struct, frozen=True, kw_only=True):
    """The windows that were found in what stays."""

    #: In kept events of the namespace.
    in_events: set[bytes]
    #: In no kept event, but in texts that were written after the erasure.
    in_later_texts: set[bytes]


def scan(
    log: EventLog, data: Path, erasure: LedgerErasure, windows: frozenset[bytes], later_texts: Iterable[bytes] = ()
) -> list[Target]:
    """Search the files of the data folder and of the log for windows; return the targets of the receipt.

    For retention, which erases from many namespaces in a night, only the files of the namespace are searched.

    Parameters:
        later_texts: what the searched files have of texts that were written after the erasure, from what it left.
    """
    if not windows:
        return [{"store": _OWN, "method": "not searched: this run erased no text of 24 bytes", "residue_windows": 0}]
    # The log last: it is the largest file, and a search that is over its limits leaves out the rest.
    of_log = [file for file in log.files() if is_searched(file)]
    others = [file for file in shared_files(data) if file not in of_log]
    own = search(own_files(data, erasure.namespace), windows)
    shared = search([*others, *of_log] if erasure.scope != "retention" else [], windows)
    hits = own.hits | shared.hits
    in_events = _kept_windows(log, erasure.namespace, hits)
    missing = hits - in_events
    later = {window for text in (later_texts if missing else ()) for window in missing if window in text}
    kept = _Kept(in_events=in_events, in_later_texts=later)
    method = f"searched for windows of {WINDOW_BYTES} bytes of the erased texts"
    targets = [_target(_OWN, method, data, windows, own, kept)]
    if shared.files:
        method += "; a hit may be the same words in another namespace"
        targets.append(_target(_SHARED, method, data, windows, shared, kept))
    return targets


def _target(
    store: str, method: str, data: Path, windows: frozenset[bytes], result: ResidueSearch, kept: _Kept
) -> Target:
    """Return the entry of the receipt about one search."""
    residue = result.hits - kept.in_events - kept.in_later_texts
    target: Target = {
        "store": store,
        "method": method,
        "residue_windows": len(windows),
        "residue_hits": len(residue),
        "windows_in_kept_events": len(result.hits & kept.in_events),
        "windows_in_later_texts": len(result.hits & kept.in_later_texts),
        "files": result.files,
        "bytes": result.bytes,
        "is_complete": result.is_complete,
    }
    if residue:
        files = [file for file, hits in result.hits_by_file.items() if hits & residue][:_NAMED_FILES_MAX]
        names = [str(file.relative_to(data)) if file.is_relative_to(data) else file.name for file in files]
        target["files_with_hits"] = names
        _logger.warning("%d of %d pieces of erased texts are in %s", len(residue), len(windows), ", ".join(names))
    return target


def _kept_windows(log: EventLog, namespace: str, hits: Iterable[bytes]) -> set[bytes]:
    """Return the windows that kept events of the namespace have, in their payloads or headers."""
    missing, kept = set(hits), set[bytes]()
    for event in chain.from_iterable(each_page(log.read, namespace)):
        if not missing or event.version > _KEPT_EVENTS_MAX:
            break
        # An erased extraction has the ids, sessions and speakers of its other sources.
        headers = (event.id, event.session_id, event.actor)
        text = b"\0".join((event.payload, *(header.encode() for header in headers if header)))
        kept |= {window for window in missing if window in text}
        missing -= kept
    return kept
