"""Access control: admits a request or refuses it: by its token, the right of its route, its namespace and its rate."""

from __future__ import annotations

import hmac
import secrets
from functools import lru_cache
from ipaddress import ip_address

from msgspec import Struct, field

from recollect.api.access.audit_log import AuditEntry, AuditLog
from recollect.api.access.callers import LOCAL_CALLER, Caller, Right
from recollect.api.access.rate_limits import RateLimits
from recollect.api.access.token_store import TokenStore
from recollect.events.errors import InvalidNamespace, ScopeMissing, Unauthenticated
from recollect.events.limits import check_namespace

_BEARER = "bearer "


class Arrival(Struct, frozen=True, kw_only=True):
    """What the access control knows of a request before it is admitted."""

    #: The `Authorization` header; None without one.
    authorization: str | None
    #: The address of the other end of the connection; None for one within the process.
    peer: str | None
    #: Whether a proxy says that it forwards the request for another machine.
    is_forwarded: bool
    #: The namespace of the path; None for routes without one.
    namespace: str | None


def new_local_secret() -> str:
    """Return a new secret for the commands of the data folder."""
    return secrets.token_urlsafe(32)


class AccessControl(Struct, frozen=True, kw_only=True):
    """The access control of one server.

    While no token was ever created, programs of this machine need none. With the first token, every request needs one.
    """

    tokens: TokenStore
    rates: RateLimits
    audit: AuditLog
    #: The secret of the commands of the data folder, which read it from the server's lock file.
    local_secret: str = field(default_factory=new_local_secret)

    def authenticate(self, arrival: Arrival, right: Right) -> Caller:
        """Return the caller of a request for a route that needs `right`.

        Raises:
            Unauthenticated: it needs a token. TooManyRequests: too many wrong ones came from the same address.
        """
        if right.extent == "public":
            return LOCAL_CALLER
        try:
            return self._authenticated(arrival)
        except Unauthenticated:
            self.rates.count_denial(arrival.peer or "")
            raise

    def check(self, caller: Caller, arrival: Arrival, right: Right) -> None:
        """Refuse a caller without the right.

        Raises:
            NotFound: the namespace is out of the caller's reach. ScopeMissing: the caller lacks a scope, or a route
            about the whole server needs one for all namespaces. TooManyRequests: the token is over its rate.
        """
        if caller is not LOCAL_CALLER:
            self.rates.count_request(caller.id, right.cost)
        self.check_scopes(caller, arrival, right)

    def check_scopes(self, caller: Caller, arrival: Arrival, right: Right) -> None:
        """Refuse a caller without the right, as `check` does, and count no request."""
        if right.extent in ("public", "any"):
            return
        if right.extent == "namespace":
            caller.require_namespace(arrival.namespace or "")
        caller.require_scopes(right.scopes)
        if right.extent == "server" and not caller.covers_all:
            raise ScopeMissing(
                "this route is about all namespaces; use a token whose namespaces are *, such as one for monitoring"
            )

    def record(
        self, caller: Caller | None, right: Right, arrival: Arrival, *, route: str, status: int, count: int | None
    ) -> None:
        """Write a line of the audit log."""
        self.audit.record(
            AuditEntry(
                token_id="-" if caller is None else caller.id,
                # A path may hold any text where a name should be.
                namespace=arrival.namespace if is_namespace(arrival.namespace) else None,
                route=route,
                scopes=tuple(sorted(right.scopes)),
                status=status,
                count=count,
            )
        )

    def _authenticated(self, arrival: Arrival) -> Caller:
        header = arrival.authorization
        if header is None:
            return self._without_token(arrival)
        if header[: len(_BEARER)].lower() != _BEARER:
            raise Unauthenticated("send the token as: Authorization: Bearer rcl_…")
        text = header[len(_BEARER) :].strip()
        if hmac.compare_digest(text.encode(errors="replace"), self.local_secret.encode()) and is_local(arrival.peer):
            return LOCAL_CALLER
        return self.tokens.authenticate(text)

    def _without_token(self, arrival: Arrival) -> Caller:
        if not self.tokens.is_empty():
            raise Unauthenticated("this server needs a token: send Authorization: Bearer rcl_…")
        if not is_local(arrival.peer) or arrival.is_forwarded:
            raise Unauthenticated(
                "without a token only programs of this machine are answered; the operator creates one with "
                "recollect token create"
            )
        return LOCAL_CALLER


def is_namespace(name: str | None) -> bool:
    """Return whether `name` is allowed as the name of a namespace."""
    try:
        return name is not None and bool(check_namespace(name))
    except InvalidNamespace:
        return False


@lru_cache(256)
def is_local(peer: str | None) -> bool:
    """Return whether the other end of a connection is on this machine: loopback, or within the process."""
    if peer is None:
        return True
    try:
        return ip_address(peer).is_loopback
    except ValueError:
        return False
