"""Origin guard: refuses requests that name another host, or that a page of another site sends from a browser.

A browser lets any page send requests to servers of the machine it runs on. A page cannot change `Host` and `Origin`,
so that both are compared with the names of this server. Programs send neither `Origin` nor `Sec-Fetch-Site`.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import lru_cache
from ipaddress import ip_address

from starlette.types import ASGIApp, Message, Receive, Scope, Send

from recollect.api.http.routes.problems import error_response
from recollect.events.errors import ForeignHost, ForeignOrigin, RecollectError
from recollect.events.late_pattern import late_pattern

#: The names of the machine itself. `localhost` resolves to loopback only, so no page of another site can use it.
_LOCAL_NAMES = frozenset(("localhost", "127.0.0.1", "::1"))
#: Names that are read once: those of the server, and what strangers send meanwhile.
_NAMES_MAX = 64
#: A name or an address with or without a port (RFC 3986, section 3.2, without user information).
_AUTHORITY = late_pattern(r"(?:\[([0-9a-f:.]{2,45})\]|([^\[\]:@/?#\\\s]{1,253}))(?::\d{0,5})?")
#: Headers of every answer: it is memory, and no page of a browser.
_HEADERS = (
    (b"x-content-type-options", b"nosniff"),
    (b"cache-control", b"no-store"),
    (b"referrer-policy", b"no-referrer"),
    (b"x-frame-options", b"DENY"),
)


class OriginGuard:
    """ASGI middleware with the checks of this module.

    Parameters:
        host: the address or the name that the server listens on.
        allowed_hosts: further names, such as that of a proxy.
    """

    def __init__(self, app: ASGIApp, *, host: str, allowed_hosts: Sequence[str]) -> None:
        self._app = app
        self._hosts = frozenset((*map(_normalised, (host, *allowed_hosts)), *_LOCAL_NAMES))
        self._allowed = frozenset(map(_normalised, allowed_hosts))

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answer a request, or refuse it."""
        if scope["type"] != "http":
            await self._app(scope, receive, send)
            return

        async def send_with_headers(message: Message) -> None:
            if message["type"] == "http.response.start":
                headers = [*message.get("headers", ())]
                names = {name for name, _ in headers}
                # The files of the viewer, which hold no memory, may be kept by a browser.
                message["headers"] = [*headers, *(header for header in _HEADERS if header[0] not in names)]
            await send(message)

        try:
            self._check(scope)
        except RecollectError as error:
            await error_response(error)(scope, receive, send_with_headers)
            return
        await self._app(scope, receive, send_with_headers)

    def _check(self, scope: Scope) -> None:
        hosts = [value for name, value in scope["headers"] if name == b"host"]
        host = hosts[0].decode("latin-1") if len(hosts) == 1 else ""
        name = _host_name(host)
        server: tuple[str, int] | None = scope.get("server")
        # The address that the connection was made to is this server's, too, when it listens on all of them.
        if name not in self._hosts and (server is None or name != _normalised(server[0])):
            raise ForeignHost(
                "the Host of the request is not this server's; use its address, or add the name to "
                "RECOLLECT_ALLOWED_HOSTS"
            )
        headers: dict[bytes, bytes] = dict(scope["headers"])
        origin = headers.get(b"origin")
        if origin is not None and not self._is_own(origin.decode("latin-1"), host):
            raise ForeignOrigin("a page of another site sent this request; add its host to RECOLLECT_ALLOWED_HOSTS")
        if headers.get(b"sec-fetch-site", b"").lower() == b"cross-site" and not _is_visit(scope, headers):
            raise ForeignOrigin("a page of another site sent this request; open the address itself")

    def _is_own(self, origin: str, host: str) -> bool:
        """Return whether a page of `origin` may send requests: one of this server, or of an allowed host."""
        authority = origin.partition("://")[2].lower()
        return authority == host.lower() or _host_name(authority) in self._allowed


def _is_visit(scope: Scope, headers: Mapping[bytes, bytes]) -> bool:
    """Return whether a user follows a link of another site to the page of the viewer, in a tab of its own.

    The page has no memory, its route changes nothing, no frame shows it, and `Cross-Origin-Opener-Policy` takes the tab
    from the other site. What the page then asks for comes from the page itself.
    """
    mode, place = headers.get(b"sec-fetch-mode"), headers.get(b"sec-fetch-dest")
    return (scope["method"], scope["path"], mode, place) == ("GET", "/", b"navigate", b"document")


@lru_cache(_NAMES_MAX)
def _host_name(authority: str) -> str:
    """Return the name or address of an authority; empty when it is not one. The port may be that of a proxy."""
    parts = _AUTHORITY.fullmatch(authority.strip().lower())
    return _normalised(parts[1] or parts[2]) if parts else ""


@lru_cache(_NAMES_MAX)
def _normalised(host: str) -> str:
    """Return a name in lower case without the dot of the root, or an address in its shortest form."""
    name = host.strip().lower().rstrip(".")
    try:
        return str(ip_address(name.partition("%")[0]))
    except ValueError:
        return name
