"""Standing memories: items of a turn that do not depend on its message (`000` session start, `002`).

Every turn gets standing instructions and pinned memories. The first turn of a session also gets who the user is, unless
memory does not help with it, and if it is a greeting, the open tasks and plans and what the last sessions were about.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Sequence
from itertools import islice

from msgspec.structs import replace

from recollect.api.retrieval.answer.prompt_context import CERTAIN_RULE_MIN
from recollect.api.retrieval.contract.result import Item
from recollect.api.retrieval.knowledge_search import profile_items
from recollect.api.retrieval.profile import is_about, is_shown_unasked, who_is, without_repetition
from recollect.api.retrieval.restricted_memories import without_hidden
from recollect.api.retrieval.result_items import episode_item, knowledge_item, later_of
from recollect.api.retrieval.search.search_context import SearchContext
from recollect.api.retrieval.turn_context import ConversationState
from recollect.api.retrieval.whose_words import Speakers, speakers_of, users_of
from recollect.events.catalogue.knowledge_events import SAYS
from recollect.events.intake.quarantine import TRUST
from recollect.jobs.extraction.author_text import own_part
from recollect.projections.projector.predicates import normalised
from recollect.projections.queries.knowledge_items import KnowledgeItem
from recollect.projections.queries.queried_episodes import EpisodeRow
from recollect.projections.queries.session_queries import RecentSession
from recollect.projections.text.sentences import split_sentences
from recollect.projections.text.tokens import cut_at_word, estimate_tokens
from recollect.projections.text.words import content_words

#: Facts and preferences at the start of a session.
_RECENT_MEMORIES_MAX = 10
#: Sessions before this one that are summed up at its start.
_RECENT_SESSIONS_MAX = 3
#: Probability under which what was read as a standing instruction is in no turn. Of held-out lines, 105 of 143 from
#: here to `CERTAIN_RULE_MIN` are instructions, and 88 of 159 below (read by words alone 85 of 113, and 116 of 174).
_RULE_MIN = 0.7
#: Statements of who the user is that come before the open tasks, one of each topic; those for a message with content.
_WHO_MIN = 6
_WHO_FOR_MESSAGE_MAX = 4
#: Open tasks at the start of a session.
_TASKS_MAX = 4
#: Tokens of the lines of facts and of sessions at the start of a session; with the frame 475.
_FACTS_TOKENS, _SESSIONS_TOKENS = 280, 110
#: Tokens of a line besides the text of its item: its mark, its day.
_LINE_TOKENS = 22
#: Kinds of statements of which the newest are shown besides: what a caller states has none. What has happened, or was
#: read as nothing in particular (`dress is finish`), is found when a message is about it.
_COMING = frozenset((None, "plan", "decision"))
#: Pinned episodes in the profile, newest first.
_PINNED_EPISODES_MAX = 10
#: A fact of the profile has this confidence, at least.
_CONFIDENCE_MIN = 0.6
#: A preference of the profile is this strong, at least: the strength of one that is stated without it.
_STRENGTH_MIN = 0.5
#: Messages of a session before this one that are read, most important first, and that are chosen.
_MESSAGES_READ = 40
_MESSAGES_CHOSEN = 2
#: Content words of a message that counts, at least, and the number from which more add nothing.
_CONTENT_WORDS_MIN = 3
_CONTENT_WORDS_MAX = 12
#: Characters of a message that are read.
_OWN_CHARS_MAX = 4_000
#: Importance that a message loses by being a question: a session is about what its user said.
_QUESTION_COST = 3
#: Tokens of one sentence, at most.
_SENTENCE_TOKENS = 40
#: Speakers that are not persons.
_ROLES = frozenset(("assistant", "system"))


def standing_items(context: SearchContext, state: ConversationState, *, helps: bool) -> list[Item]:
    """Return the items of a turn that do not depend on its message; the first turn of a session gets more.

    Parameters:
        helps: whether memory helps with the message: what thanks, or is about something else, needs nothing.
    """
    kinds, request = context.request.kinds, context.request
    greets = state.greets or not request.query.strip()
    starts = state.trigger == "session start" and (helps or greets)
    speakers = speakers_of(context)
    profile = [
        item
        for item in profile_items(context.index.knowledge, context.asked_at_us)
        if (starts or item.standing or item.pinned) and _holds_for(item, speakers, context)
    ]
    items = [knowledge_item(context, item, 1.0, _profile_ranks(item)) for item in profile]
    pinned = context.snapshot.episodes.pinned_versions(context.snapshot.version, limit=_PINNED_EPISODES_MAX)
    items += [episode_item(context, version, 1.0, {"profile": 1}) for version in pinned if version not in state.visible]
    if starts:
        items += _first_items(context, {item.id for item in profile}, greets=greets)
    return [
        item
        for item in without_hidden(items, context.hidden)
        if (kinds is None or item.kind in kinds)
        and not _is_doubtful(item)
        and request.includes(item.occurred_at_us)
        and item.trust >= request.min_trust
        and context.passes_metadata(item.kind, item.id)
    ]


def _is_doubtful(item: Item) -> bool:
    """Return whether an item is hardly an instruction, or perhaps not one and perhaps withdrawn. A search finds it."""
    rule_min = _RULE_MIN if item.later is None else CERTAIN_RULE_MIN
    return item.is_read_rule and item.confidence < rule_min


def _first_items(context: SearchContext, chosen: Collection[str], *, greets: bool) -> list[Item]:
    """Return what the first turn of a session gets besides: who the user is, and before anything is said, what is new.

    A message with content is a search query; of ten new conversations, 7 of 83 statements and 1 of 30 lines of earlier
    sessions that were added to one mattered, and 43 were false or out of date.

    Parameters:
        chosen: ids of the items that the turn has.
    """
    facts = [item for item in (_facts(context) if greets else _plain_facts(context)) if item.id not in chosen]
    stated = [item for _, item in without_repetition(context, facts)]
    recent = [
        replace(item, ranks={"recent": rank}, matched_by=("recent",)) for rank, item in enumerate(stated, start=1)
    ]
    items = [*_within(recent, _FACTS_TOKENS)]
    if greets:
        items += _within(_session_items(context, {id for item in items for id in item.source_events}), _SESSIONS_TOKENS)
    return items


def _within(items: Iterable[Item], tokens_max: int) -> Iterator[Item]:
    """Yield the first items whose lines fit together in `tokens_max`; longer ones are left out."""
    for item in items:
        tokens = estimate_tokens(item.text) + _LINE_TOKENS
        if tokens <= tokens_max:
            tokens_max -= tokens
            yield item


def _profile_ranks(item: KnowledgeItem) -> dict[str, int]:
    """Return the ranks of an item of the profile; `standing` marks the items of every turn."""
    return {"profile": 1, "standing": 1} if item.standing or item.pinned else {"profile": 1}


def _holds_for(item: KnowledgeItem, speakers: Speakers, context: SearchContext) -> bool:
    """Return whether a memory of the profile is meant for the asker's turn."""
    if item.pinned or (item.standing and context.request.shared_rules):
        return True
    return item.kind != "preference" or speakers.may_rule(item)


def _facts(context: SearchContext) -> list[KnowledgeItem]:
    """Return the facts at the start of a session: who the user is, open tasks, then the newest plans."""
    newest = _newest(context)
    identity = _identity(context, newest)[:_RECENT_MEMORIES_MAX]
    tasks = [item for item in newest if item.memory_type == "task"]
    others = [item for item in newest if item.kind == "preference" or item.statement_kind in _COMING]
    who, more = identity[:_WHO_MIN], identity[_WHO_MIN:]
    chosen = dict.fromkeys([*who, *tasks[:_TASKS_MAX], *more])
    for item in others:
        if len(chosen) >= _RECENT_MEMORIES_MAX:
            break
        chosen.setdefault(item)
    return list(chosen)


def _plain_facts(context: SearchContext) -> list[KnowledgeItem]:
    """Return who the user is as plain facts, such as name, home and work, and the open tasks."""
    newest = _newest(context)
    tasks = [item for item in newest if item.memory_type == "task"]
    plain = [item for item in newest if item.kind == "fact" and item.predicate != SAYS and item not in tasks]
    return [*_identity(context, plain)[:_WHO_FOR_MESSAGE_MAX], *tasks[:_TASKS_MAX]]


def _newest(context: SearchContext) -> list[KnowledgeItem]:
    """Return the memories that are valid for the asker, the newest first."""
    asker = _asker(context)
    valid = [
        item
        for item in context.index.knowledge.items
        if item.kind in ("fact", "preference", "relationship")
        and (asker is None or _is_of(item, asker))
        and item.status == "active"
        and item.confidence >= (_STRENGTH_MIN if item.kind == "preference" else _CONFIDENCE_MIN)
        and is_shown_unasked(item)
        and item.is_valid_at(context.asked_at_us)
        and context.request.includes(item.occurred_at_us)
    ]
    return sorted(valid, key=lambda item: (-item.occurred_at_us, item.id))


def _identity(context: SearchContext, items: Iterable[KnowledgeItem]) -> list[KnowledgeItem]:
    """Return the items that describe the asker, best first; where one user speaks, then those about other people."""
    asker = _asker(context)
    if asker is not None:
        return who_is(item for item in items if is_about(item, asker))
    names = {*users_of(context), "user"}
    own, others = list[KnowledgeItem](), list[KnowledgeItem]()
    for item in items:
        is_own = item.kind == "preference" or item.predicate == SAYS or any(is_about(item, name) for name in names)
        (own if is_own else others).append(item)
    return [*who_is(own), *who_is(others)]


def _asker(context: SearchContext) -> str | None:
    """Return the asker, normalised, where several users speak: a session starts with memories about the asker."""
    speakers = speakers_of(context)
    return speakers.asker if speakers.several else None


def _is_of(item: KnowledgeItem, asker: str) -> bool:
    """Return whether a user stated something, or it is about this user and not stated by another one."""
    return normalised(item.stated_by) == asker if item.stated_by else is_about(item, asker)


def _session_items(context: SearchContext, covered: Collection[str]) -> list[Item]:
    """Return one item for each of the last sessions, the newest first: its summary, or what its users said.

    Parameters:
        covered: ids of the messages whose statements are in the context.
    """
    sessions = context.snapshot.sessions.recent(running=context.request.session_id, limit=_RECENT_SESSIONS_MAX)
    items = (_session_item(context, session, rank, covered) for rank, session in enumerate(sessions, start=1))
    return [item for item in items if item is not None]


def _session_item(context: SearchContext, session: RecentSession, rank: int, covered: Collection[str]) -> Item | None:
    """Return what a session was about; None when its users wrote only fillers."""
    episodes = context.snapshot.episodes
    hidden = context.hidden
    # A message with an ended statement, such as a rule that was withdrawn, is not about the present.
    left_out = hidden.ids | context.index.knowledge.outdated
    turns = [
        row
        for row in episodes.session_user_turns(session.id, limit=_MESSAGES_READ)
        if row.id not in covered and row.id not in left_out
    ]
    rows = _representative(turns, context)
    if session.id in hidden.sessions:
        session = replace(session, summary=None)
    if not rows:
        summaries = [row for row in episodes.session_summaries(session.id) if row.id not in hidden.ids]
        return episode_item(context, summaries[-1].version, 0.5, {"session": rank}) if summaries else None
    text = session.summary or " … ".join(_sentences(rows))
    return Item(
        id=rows[0].id,
        kind="episode",
        namespace=context.namespace,
        text=text,
        score=0.5,
        matched_by=("session",),
        ranks={"session": rank},
        source_events=tuple(row.id for row in rows),
        occurred_at_us=rows[0].occurred_at_us,
        utc_offset=rows[0].utc_offset or 0,
        session_id=session.id,
        speaker=rows[0].speaker if session.summary is None else "summary",
        outdated=any(row.id in context.index.knowledge.outdated for row in rows),
        later=later_of(context, [row.id for row in rows], rows[-1].occurred_at_us),
        trust=TRUST["user"] if session.summary is None else TRUST["derived"],
        authoritative=session.summary is None,
    )


def _representative(rows: Iterable[EpisodeRow], context: SearchContext) -> list[EpisodeRow]:
    """Return the messages that represent a session best, in its order: of the asker, where several users speak."""
    asker = _asker(context)
    spoken = [
        row
        for row in rows
        if context.request.includes(row.occurred_at_us)
        and len(content_words(row.text)) >= _CONTENT_WORDS_MIN
        and (asker is None or normalised(row.speaker) == asker)
    ]
    best_first = sorted(spoken, key=lambda row: (-_weight(row), row.version))
    # What is pasted takes long to find, and few messages have to be read for two.
    own = (row for row in best_first if len(content_words(_own(row))) >= _CONTENT_WORDS_MIN)
    return sorted(islice(own, _MESSAGES_CHOSEN), key=lambda row: row.version)


def _own(row: EpisodeRow) -> str:
    """Return what its speaker wrote in a message: not the mail or the chat that is pasted into it."""
    return own_part(row.text[:_OWN_CHARS_MAX], row.speaker)


def _weight(row: EpisodeRow) -> float:
    """Return how well a message represents its session: its importance, its content, less for a question."""
    content = min(len(content_words(row.text)), _CONTENT_WORDS_MAX) / 2
    return row.importance + content - _QUESTION_COST * row.text.rstrip().endswith("?")


def _sentences(rows: Sequence[EpisodeRow]) -> Iterator[str]:
    """Yield a sentence of each message, with its speaker where the speaker changes."""
    for before, row in zip((rows[0], *rows), rows, strict=False):
        sentence = _sentence(_own(row))
        yield sentence if row.speaker == before.speaker else f"{row.speaker}: {sentence}"


def _sentence(text: str) -> str:
    """Return the sentence of a message with most content, shortened to a line."""
    sentences: Sequence[str] = split_sentences(text)
    statements = [sentence for sentence in sentences if not sentence.endswith("?")] or sentences or [text]
    best = max(statements, key=lambda sentence: len(content_words(sentence)))
    return best if estimate_tokens(best) <= _SENTENCE_TOKENS else f"{cut_at_word(best, _SENTENCE_TOKENS)} …"
