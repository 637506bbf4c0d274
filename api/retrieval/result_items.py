"""Result items: turns episodes and knowledge of the read model into items of a result."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from contextlib import suppress

from recollect.api.retrieval.answer.prompt_context import DATED_SOURCES_MAX
from recollect.api.retrieval.contract.result import Item, Later
from recollect.api.retrieval.search.search_context import SearchContext
from recollect.api.retrieval.whose_words import speakers_of
from recollect.events.catalogue.knowledge_events import SAYS
from recollect.events.errors import StorageError
from recollect.events.intake.quarantine import TRUST, Provenance, is_imported, least_trust, provenance_of
from recollect.projections.queries.episode_writers import Writer, writer_of
from recollect.projections.queries.knowledge_items import KnowledgeItem
from recollect.projections.queries.later_statements import LaterStatement
from recollect.projections.queries.queried_episodes import NamedDate
from recollect.projections.text.sentences import iterate_sentences, sentence_bounds, split_sentences
from recollect.projections.text.stems import content_stems
from recollect.projections.text.words import content_words


def named_dates(context: SearchContext, items: Sequence[Item]) -> dict[tuple[str, str], list[NamedDate]]:
    """Return the dates that the messages behind the items of the namespace name, by namespace and id of the message."""
    own = [item.source_events[:DATED_SOURCES_MAX] for item in items if item.namespace == context.namespace]
    through = context.snapshot.progress.job_cursor("extraction")
    if not through:
        return {}
    ids = [*{id for sources in own for id in sources}]
    return {(context.namespace, id): dates for id, dates in context.snapshot.dates.named(ids, through=through).items()}


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
        utc_offset=episode.utc_offset,
        session_id=episode.session_id,
        speaker=episode.speaker,
        tier=episode.tier,
        summary_id=episode.summary_id,
        short=episode.short,
        outdated=episode.id in context.index.knowledge.outdated,
        later=later_of(context, (episode.id,), episode.occurred_at_us),
        provenance=provenance,
        trust=trust_of_sources(context, sources) if is_summary else TRUST[provenance],
        authoritative=episode.role == "user" and _is_statement(episode.text),
    )


def _quoted(context: SearchContext, knowledge: KnowledgeItem) -> tuple[str, str] | None:
    """Return who states a fact and the words of the message, when the fact is kept in words."""
    if knowledge.kind != "fact" or knowledge.predicate != SAYS or not knowledge.source_events:
        return None
    version = context.snapshot.episodes.version_of(knowledge.source_events[0])
    if version is None or context.snapshot.episodes.said(knowledge.source_events[0]) is None:
        return None
    message = context.snapshot.episodes.details(version)
    if knowledge.object in message.text:
        return message.speaker, in_context(message.text, knowledge.object)
    # A changed value may be kept in words that no message has.
    return message.speaker, closest_sentence(message.text, knowledge.object)


def in_context(text: str, words: str) -> str:
    """Return words of a message and the sentences around them, up to a question or a line of text.

    `theyre making a splint, 340 euros` means little without the sentence before it.
    """
    start = text.find(words)
    if start < 0:
        return words
    end = start + len(words)
    bounds = [*sentence_bounds(text[:_STATEMENT_CHARS])]
    for first, last in reversed([bound for bound in bounds if bound[0] < start]):
        is_apart = last <= start
        if end - first > QUOTE_CHARS_MAX or not _is_statement(text[first:last]):
            break
        if is_apart and _is_interjection(text[first:last]):
            break
        start = first
    for first, last in [bound for bound in bounds if bound[1] > end]:
        if last - start > QUOTE_CHARS_MAX or not _is_statement(text[first:last]):
            break
        if first >= end and _is_interjection(text[first:last]):
            break
        end = last
    return " ".join(text[start:end].split())


def _is_interjection(sentence: str) -> bool:
    """Return whether a sentence has no content of its own: `it is.`, `crazy.`, `one thing.`."""
    return len(content_words(sentence)) < _STATEMENT_WORDS_MIN


def later_of(context: SearchContext, event_ids: Sequence[str], said_us: int) -> Later | None:
    """Return the newest statement that ended or replaced what one of these events said at `said_us`."""
    statements = {id: statement for id in event_ids if (statement := context.index.knowledge.later.get(id)) is not None}
    if not statements:
        return None
    quoted = [
        _as_said(context, statement)
        for id, statement in statements.items()
        if not statement.names or statement.names & content_stems((context.snapshot.episodes.said(id) or (0, ""))[1])
    ]
    later = [
        said for said in quoted if said is not None and said.at_us > said_us and context.request.includes(said.at_us)
    ]
    return max(later, key=lambda said: said.at_us, default=None)


def _as_said(context: SearchContext, statement: LaterStatement) -> Later | None:
    """Return the sentence that states what was said later; None when its message may not be shown."""
    message = context.snapshot.episodes.said(statement.source_event)
    if message is None and not statement.line:
        return None
    # A correction of a producer is not a message; the message of an ending may have expired.
    at_us, text = message or (statement.at_us, statement.line)
    first = context.snapshot.episodes.first_time([statement.source_event])
    return Later(
        at_us=at_us,
        text=statement.line if message is None else closest_sentence(text, statement.about),
        source_event=statement.source_event,
        utc_offset=context.snapshot.days.offset(at_us, None if first is None else first[1]),
    )


def closest_sentence(text: str, about: str) -> str:
    """Return the sentence of a message that shares most words with `about`, shortened to one line.

    Without `about`, its beginning.
    """
    words = content_stems(about)
    beginning = text[:_STATEMENT_CHARS]
    sentence = max(
        (split_sentences(beginning) if about else ()) or [beginning],
        key=lambda sentence: (len(words & content_stems(sentence)), len(content_stems(sentence))),
    )
    line = " ".join(sentence.split())
    return (
        line
        if len(line) <= QUOTE_CHARS_MAX
        else f"{line[:QUOTE_CHARS_MAX].rpartition(' ')[0] or line[:QUOTE_CHARS_MAX]} …"
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
    """Return who wrote an episode that is not a summary."""
    return provenance_of(_EVENT_TYPES[writer.type], writer.role, imported=writer.imported)


#: The event types of the types of episodes.
_EVENT_TYPES = {
    "conversation": "message.added",
    "action": "action.recorded",
    "observation": "observation.recorded",
}


def _is_statement(text: str) -> bool:
    """Return whether a text has a sentence that is not a question."""
    beginning = text[:_STATEMENT_CHARS]
    last = beginning.rstrip()[-1:]
    if ("?" not in beginning and "？" not in beginning) or (last and last not in f"?？{_CLOSING}"):
        # Without a question mark, or the last sentence is no question.
        return bool(last)
    return any(not sentence.rstrip(_CLOSING).endswith(("?", "？")) for sentence in iterate_sentences(beginning))


#: Content words of a sentence that is shown with the words of a fact.
_STATEMENT_WORDS_MIN = 2
#: Characters of the sentence that is shown with what it ends, and of the sentences around words that a fact keeps.
QUOTE_CHARS_MAX = 120
#: Characters of a text that are searched for a statement.
_STATEMENT_CHARS = 2_000
#: Characters that may follow the question mark of a sentence.
_CLOSING = " \"'”’)]"


def knowledge_item(context: SearchContext, knowledge: KnowledgeItem, score: float, ranks: Mapping[str, int]) -> Item:
    """Return a knowledge item as an item of the result."""
    sources = knowledge.source_events
    first = context.snapshot.episodes.first_time(sources) if sources else None
    utc_offset = context.snapshot.days.offset(knowledge.occurred_at_us, None) if first is None else first[1]
    stated_at_us = None
    # An imported fact without a date is inferred, one with a date observed.
    is_undated = is_imported(knowledge.id) and knowledge.source_type == "inferred"
    speakers = speakers_of(context)
    is_dated = knowledge.kind == "fact" or (knowledge.kind == "preference" and speakers.several)
    if is_dated and sources and not is_undated:
        # The messages may have expired.
        stated_at_us = context.snapshot.facts.first_stated(knowledge.id) if first is None else first[0]
    if not sources and knowledge.version:
        # An item without its source is better than none while the log cannot be read.
        with suppress(StorageError):
            events = context.log.read(context.namespace, after=knowledge.version - 1, limit=1)
            sources = tuple(event.id for event in events)
    quoted = _quoted(context, knowledge)
    return Item(
        id=knowledge.id,
        kind=knowledge.kind,
        namespace=context.namespace,
        text=speakers.attributed(knowledge) if quoted is None else f"{quoted[0]} said: {quoted[1]}",
        score=score,
        matched_by=tuple(sorted(ranks, key=lambda name: (ranks[name], name))),
        ranks=dict(ranks),
        source_events=sources,
        occurred_at_us=knowledge.occurred_at_us,
        utc_offset=utc_offset,
        speaker=None if quoted is None else quoted[0],
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
        is_read_rule=knowledge.standing and knowledge.source_type == "observed" and not knowledge.pinned,
        layer=knowledge.layer,
        replaced_by=None if knowledge.replaced_by is None else knowledge.replaced_by.title,
        contradicted_by=knowledge.contradicted_by,
        later=later_of(context, [knowledge.id], knowledge.occurred_at_us),
    )
