"""Residue scan: searches the files of a data folder for what an erasure may have left of its texts.

Windows of the texts are taken before the events are erased, and stay in memory. A window that is found is a residue
unless a kept event of the namespace has the same words.
"""

from __future__ import annotations

import logging
from collections.abc import Iterable
from itertools import chain
from pathlib import Path

from recollect.events.backends.log import EventLog, each_page
from recollect.events.encryption.erasure_ledger import LedgerErasure
from recollect.events.integrity.residue import WINDOW_BYTES, ResidueSearch, search
from recollect.projections.read_models.layout import is_searched, own_files, shared_files
from recollect.projections.read_models.purges import Target

_logger = logging.getLogger(__name__)

#: Kept events that are compared with the windows that were found: about a second.
_KEPT_EVENTS_MAX = 200_000
_OWN = "files of the namespace"
_SHARED = "files that namespaces share, and the log in SQLite"


def scan(log: EventLog, data: Path, erasure: LedgerErasure, windows: frozenset[bytes]) -> list[Target]:
    """Search the files of the data folder and of the log for windows; return the targets of the receipt.

    For retention, which erases from many namespaces in a night, only the files of the namespace are searched.
    """
    if not windows:
        return [{"store": _OWN, "method": "not searched: this run erased no text of 24 bytes", "residue_windows": 0}]
    # The log last: it is the largest file, and a search that is over its limits leaves out the rest.
    of_log = [file for file in log.files() if is_searched(file)]
    others = [file for file in shared_files(data) if file not in of_log]
    own = search(own_files(data, erasure.namespace), windows)
    shared = search([*others, *of_log] if erasure.scope != "retention" else [], windows)
    kept = _kept_windows(log, erasure.namespace, own.hits | shared.hits)
    method = f"searched for windows of {WINDOW_BYTES} bytes of the erased texts"
    targets = [_target(_OWN, method, data, windows, own, kept)]
    if shared.files:
        method += "; a hit may be the same words in another namespace"
        targets.append(_target(_SHARED, method, data, windows, shared, kept))
    return targets


def _target(
    store: str, method: str, data: Path, windows: frozenset[bytes], result: ResidueSearch, kept: set[bytes]
) -> Target:
    """Return the entry of the receipt about one search."""
    hits = len(result.hits - kept)
    target: Target = {
        "store": store,
        "method": method,
        "residue_windows": len(windows),
        "residue_hits": hits,
        "windows_in_kept_events": len(result.hits & kept),
        "files": result.files,
        "bytes": result.bytes,
        "is_complete": result.is_complete,
    }
    if hits:
        files = result.files_with_hits
        names = [str(file.relative_to(data)) if file.is_relative_to(data) else file.name for file in files]
        target["files_with_hits"] = names
        _logger.warning("%d of %d pieces of erased texts are in %s", hits, len(windows), ", ".join(names))
    return target


def _kept_windows(log: EventLog, namespace: str, hits: Iterable[bytes]) -> set[bytes]:
    """Return the windows that kept events of the namespace have, in their payloads or ids."""
    missing, kept = set(hits), set[bytes]()
    for event in chain.from_iterable(each_page(log.read, namespace)):
        if not missing or event.version > _KEPT_EVENTS_MAX:
            break
        # An erased extraction has the ids of its other sources.
        text = event.payload + event.id.encode()
        kept |= {window for window in missing if window in text}
        missing -= kept
    return kept
