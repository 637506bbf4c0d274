"""Client calls: the request of each method that a client has, as an expression of the method's parameters."""

from __future__ import annotations

_PAGE = 'page_calls.page(namespace, "{name}", after, limit, as_of, filters)'
_CHANGE = 'memory_calls.change(namespace, memory_id, "{name}", {fields})'

#: The call by the name of the method; a method of `Recollect` without one is not a method of a client.
CALLS = {
    **{name: _PAGE.format(name=name) for name in ("episodes", "sessions", "entities", "facts")},
    "list": "page_calls.page(namespace, name, after, limit, as_of, filters)",
    "append": "append_calls.append(namespace, events, expected_version)",
    "append_and_retrieve": "append_calls.append_and_retrieve(namespace, events, expected_version, wait, options)",
    "retrieve": "append_calls.retrieve(namespace, query, wait, options)",
    "add": "append_calls.add(namespace, messages, session_id, occurred_at, metadata)",
    "get": "memory_calls.get(namespace, memory_id, as_of)",
    "update": "memory_calls.update(namespace, memory_id, text, changes)",
    **{name: _CHANGE.format(name=name, fields='{"reason": reason}') for name in ("pin", "unpin")},
    "end": _CHANGE.format(name="end", fields='{"ended_at": ended_at, "reason": reason}'),
    "separate": _CHANGE.format(name="separate", fields='{"alias": alias, "reason": reason}'),
    "forget": "memory_calls.forget(namespace, memory_id, reason)",
    "undo": "memory_calls.undo(namespace, event_id, reason)",
    "quarantine": "memory_calls.quarantine(namespace, status, after, limit)",
    "review": "memory_calls.review(namespace, memory_id, decision, reason)",
    "record_answer": "memory_calls.record_answer(namespace, text, cited, trace_id)",
    "export_subject": "memory_calls.export_subject(namespace, subject)",
    "erase": (
        "memory_calls.erase(namespace, everything=everything, subject=subject, session_id=session_id, "
        "event_ids=event_ids, dry_run=dry_run, reason=reason, requested_by=requested_by)"
    ),
    "receipts": "memory_calls.receipts(namespace)",
    "readmit": "memory_calls.readmit(namespace, subject)",
    "events": "page_calls.events(namespace, after, limit, as_of)",
    "traces": "page_calls.traces(namespace, after, limit)",
    "trace": "page_calls.trace(namespace, trace_id)",
    "fact_history": 'page_calls.history(namespace, "facts", fact_id, as_of)',
    "preference_history": 'page_calls.history(namespace, "preferences", preference_id, as_of)',
    "graph": "page_calls.graph(namespace, entity, depth, as_of)",
    "namespaces": "page_calls.namespaces(after, limit)",
    "version": "page_calls.version(namespace, as_of)",
    "sources": "page_calls.sources(namespace, episode_id)",
    "compact": "page_calls.compact(namespace, now, dry_run)",
    "settle": "page_calls.settle(namespace, timeout_seconds, now)",
    "window": "page_calls.window(namespace, session_id, budget_tokens)",
    "tiers": "page_calls.tiers(namespace)",
    "replay": "page_calls.replay(namespace, parks)",
    "check": "page_calls.check(namespace)",
    "verify": "page_calls.verify(namespace)",
}
#: The end of a docstring, where a method of a client does more or less than that of `Recollect`.
NOTES = {
    "append": """.

        Raises:
            AppendUnknown: no answer came in time, and the events may be recorded; `event_ids` are their ids.
        """,
    "append_and_retrieve": ". When the server is not reached, it raises as `append` does.",
    "retrieve": """.

        When the server does not answer in time, the result is empty, and `degraded` has the reason as ``server: …``;
        with `fails_open` of the client False, an error is raised.
        """,
    "add": "; the errors are those of `append`, too.",
    "compact": ", without progress.",
    "settle": ", on the server.",
}
