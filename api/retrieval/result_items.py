"""Result items: turns episodes and knowledge of the read model into items of a result."""

from __future__ import annotations

from collections.abc import Mapping

from recollect.api.retrieval.contract.result import Item
from recollect.api.retrieval.search.search_context import SearchContext
from recollect.events.intake.quarantine import provenance_of
from recollect.projections.queries.knowledge_queries import KnowledgeItem
from recollect.projections.text.sentences import split_sentences


def episode_item(context: SearchContext, version: int, score: float, ranks: Mapping[str, int]) -> Item:
    """Return the episode `version` as an item."""
    episode = context.snapshot.episodes.details(version)
    is_summary = episode.tier != "raw" and episode.summary_id is None
    sources = () if not is_summary else tuple(context.snapshot.episodes.source_ids(version))
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
        provenance="derived"
        if is_summary or episode.role is None
        else provenance_of("message.added", episode.role, episode.id),
        authoritative=episode.role == "user" and _is_statement(episode.text),
    )


def _is_statement(text: str) -> bool:
    """Return whether a text has a sentence that is no question."""
    return any(not sentence.rstrip(_CLOSING).endswith(("?", "？")) for sentence in split_sentences(text[:2_000]))


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
        provenance="document" if knowledge.kind == "document" else provenance_of("fact.stated", event_id=knowledge.id),
        outdated=not knowledge.is_valid_at(context.asked_at_us) or knowledge.replaced_by is not None,
        valid_from_us=knowledge.valid_from_us,
        stated_at_us=stated_at_us,
        unconfirmed_since_us=knowledge.confirmed_at_us if knowledge.status == "stale" else None,
        authoritative=knowledge.source_type in ("authoritative", "corrected", "stated"),
        layer=knowledge.layer,
        replaced_by=None if knowledge.replaced_by is None else knowledge.replaced_by.title,
        contradicted_by=knowledge.contradicted_by,
    )
