"""Result items: turns episodes and knowledge of the read model into items of a result."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from contextlib import suppress

from recollect.api.retrieval.contract.result import Item
from recollect.api.retrieval.search.search_context import SearchContext
from recollect.events.errors import StorageError
from recollect.events.intake.quarantine import TRUST, Provenance, is_imported, least_trust, provenance_of
from recollect.projections.queries.episode_writers import Writer, writer_of
from recollect.projections.queries.knowledge_queries import KnowledgeItem
from recollect.projections.text.sentences import iterate_sentences


def episode_item(context: SearchContext, version: int, score: float, ranks: Mapping[str, int]) -> Item:
    """Return the episode `version` as an item."""
    episode = context.snapshot.episodes.details(version)
    is_summary = episode.tier != "raw" and episode.summary_id is None
    sources = () if not is_summary else tuple(context.snapshot.episodes.source_ids(version))
    provenance = "derived" if is_summary else _provenance(writer_of(episode.type, episode.role, episode.id))
    return Item(
        id=episode.id,
        kind="episode",
        namespace=context.namespace,
        text=f"{episode.text} ({episode.caption})" if episode.caption else episode.text,
        score=score,
        matched_by=tuple(sorted(ranks, key=lambda name: (ranks[name], name))),
        ranks=dict(ranks),
        source_events=sources or (episode.id,),
        occurred_at_us=episode.occurred_at_us,
        session_id=episode.session_id,
        speaker=episode.speaker,
        tier=episode.tier,
        summary_id=episode.summary_id,
        short=episode.short,
        outdated=episode.id in context.index.knowledge.outdated,
        provenance=provenance,
        trust=trust_of_sources(context, sources) if is_summary else TRUST[provenance],
        authoritative=episode.role == "user" and _is_statement(episode.text),
    )


def trust_of_sources(context: SearchContext, episode_ids: Sequence[str]) -> int:
    """Return the trust of what was derived from these episodes: that of the least trusted one."""
    return least_trust(map(_provenance, context.snapshot.episodes.writers(episode_ids)))


def less_trusted_versions(context: SearchContext) -> list[int]:
    """Return the versions of the episodes below the trust that the request asks for; summaries are not among them."""
    episodes = context.snapshot.episodes
    return [
        version
        for writer in episodes.all_writers()
        if TRUST[_provenance(writer)] < context.request.min_trust
        for version in episodes.versions_written_by(writer)
    ]


def _provenance(writer: Writer) -> Provenance:
    """Return who wrote an episode that is no summary."""
    return provenance_of(_EVENT_TYPES[writer.type], writer.role, imported=writer.imported)


#: The event types of the types of episodes.
_EVENT_TYPES = {
    "conversation": "message.added",
    "action": "action.recorded",
    "observation": "observation.recorded",
}


def _is_statement(text: str) -> bool:
    """Return whether a text has a sentence that is no question."""
    beginning = text[:_STATEMENT_CHARS]
    if "?" not in beginning and "？" not in beginning:
        return bool(beginning.strip())
    return any(not sentence.rstrip(_CLOSING).endswith(("?", "？")) for sentence in iterate_sentences(beginning))


#: Characters of a text that are searched for a statement.
_STATEMENT_CHARS = 2_000
#: Characters that may follow the question mark of a sentence.
_CLOSING = " \"'”’)]"


def knowledge_item(context: SearchContext, knowledge: KnowledgeItem, score: float, ranks: Mapping[str, int]) -> Item:
    """Return a knowledge item as an item of the result."""
    sources = knowledge.source_events
    stated_at_us = None
    if knowledge.kind == "fact" and sources:
        # The messages may have expired.
        stated_at_us = context.snapshot.episodes.first_time(sources) or context.snapshot.facts.first_stated(
            knowledge.id
        )
    if not sources and knowledge.version:
        # An item without its source is better than none while the log cannot be read.
        with suppress(StorageError):
            events = context.log.read(context.namespace, after=knowledge.version - 1, limit=1)
            sources = tuple(event.id for event in events)
    return Item(
        id=knowledge.id,
        kind=knowledge.kind,
        namespace=context.namespace,
        text=knowledge.line,
        score=score,
        matched_by=tuple(sorted(ranks, key=lambda name: (ranks[name], name))),
        ranks=dict(ranks),
        source_events=sources,
        occurred_at_us=knowledge.occurred_at_us,
        confidence=knowledge.confidence,
        provenance=provenance_of(
            "document.added" if knowledge.kind == "document" else "fact.stated", imported=is_imported(knowledge.id)
        ),
        trust=TRUST["document"] if knowledge.kind == "document" else trust_of_sources(context, sources),
        outdated=not knowledge.is_valid_at(context.asked_at_us) or knowledge.replaced_by is not None,
        valid_from_us=knowledge.valid_from_us,
        valid_until_us=knowledge.valid_until_us,
        stated_at_us=stated_at_us,
        unconfirmed_since_us=knowledge.confirmed_at_us if knowledge.status == "stale" else None,
        authoritative=knowledge.source_type in ("authoritative", "corrected", "stated"),
        layer=knowledge.layer,
        replaced_by=None if knowledge.replaced_by is None else knowledge.replaced_by.title,
        contradicted_by=knowledge.contradicted_by,
    )
