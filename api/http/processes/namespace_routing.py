"""Namespace routing: the process of a request, by the namespace in its first bytes.

Every process can answer every request, so that one whose namespace is not recognised is answered where it arrived.
Routing is what keeps a namespace in the memory of one process.
"""

from __future__ import annotations

import zlib
from urllib.parse import unquote_to_bytes

from recollect.api.access.token_store import TokenStore
from recollect.api.http.processes.process_table import ProcessTable
from recollect.events.errors import RecollectError

#: Bytes of a request in which its target ends; a longer one is answered where it arrived.
_TARGET_BYTES_MAX = 4_096
_BY_PATH = (b"/v1/namespaces/", b"/mcp/")
#: Paths whose namespace is that of a header or a token.
_BY_HEADER = (b"/mcp", b"/tools/")
_HEADER = b"\r\nx-recollect-namespace:"
_TOKEN = b"\r\nauthorization: bearer "
#: Paths of what one process knows: the one of the background work. Probes are not among them: each process is asked for
#: itself, and answers while the others do not.
_BY_OPERATOR = frozenset((b"/health", b"/metrics", b"/v1/dead-letters"))
_OPERATOR_PREFIX = b"/v1/dead-letters/"


def process_of(namespace: bytes, servers: int) -> int:
    """Return the number of the process of a namespace. All processes, and all starts, compute the same one."""
    return zlib.crc32(namespace) % servers


class NamespaceRouting:
    """Finds the process of a request.

    Parameters:
        tokens: the tokens, some of which are for one namespace.
    """

    def __init__(self, table: ProcessTable, tokens: TokenStore) -> None:
        self._table = table
        self._tokens = tokens

    def process(self, data: bytes) -> int | None:
        """Return the number of the process for a request that begins with `data`; None when any process will do."""
        start = data.find(b" ", 0, 16) + 1
        end = data.find(b" ", start, _TARGET_BYTES_MAX)
        if start == 0 or end < 0:
            return None
        path = data[start:end].partition(b"?")[0]
        if path in _BY_OPERATOR or path.startswith(_OPERATOR_PREFIX):
            return self._table.operator
        namespace = self._namespace(path, data)
        return process_of(namespace, self._table.servers) if namespace else None

    def _namespace(self, path: bytes, data: bytes) -> bytes:
        """Return the name of the namespace; empty without one."""
        for prefix in _BY_PATH:
            if path.startswith(prefix) and len(path) > len(prefix):
                return unquote_to_bytes(path[len(prefix) :].partition(b"/")[0])
        return self._own_namespace(data) if path.startswith(_BY_HEADER) else b""

    def _own_namespace(self, data: bytes) -> bytes:
        """Return the namespace of the header, or the only one of the token; empty without one."""
        head = data.partition(b"\r\n\r\n")[0]
        lowered = head.lower()
        start = lowered.find(_HEADER)
        if start >= 0:
            return head[start + len(_HEADER) :].partition(b"\r\n")[0].strip()
        start = lowered.find(_TOKEN)
        if start < 0:
            return b""
        text = head[start + len(_TOKEN) :].partition(b"\r\n")[0].strip().decode("latin-1")
        try:
            patterns = self._tokens.authenticate(text).patterns
        except RecollectError:
            # The process where it arrived refuses it.
            return b""
        return patterns[0].encode() if len(patterns) == 1 and not patterns[0].endswith("*") else b""
