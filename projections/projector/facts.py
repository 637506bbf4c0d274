"""Facts: adds facts, corrections, retractions and endings to the timelines of their groups."""

from __future__ import annotations

import apsw

from recollect.events.envelope import RecordedEvent, parse_rfc3339
from recollect.projections.projector.fact_endings import Ending, FactEndings
from recollect.projections.projector.fact_rows import FACT_TABLE
from recollect.projections.projector.predicates import counted_noun, normalised
from recollect.projections.projector.stated_fact import StatedMemory, group_of, in_voice, voice_of_topic
from recollect.projections.projector.value_timelines import ValueTimelines


class Facts(ValueTimelines):
    """The table `facts`."""

    def __init__(self, connection: apsw.Connection, endings: FactEndings) -> None:
        super().__init__(connection, FACT_TABLE, endings.of_fact)
        self._endings = endings

    def reject(self, event: RecordedEvent, fact: StatedMemory) -> None:
        """Add a fact that failed the quality gate, unless the table has it already."""
        if not self.rows.select("topic = ? AND value = ?", fact.topic, fact.value):
            self.rows.insert(event, fact, "rejected")

    def correct(self, event: RecordedEvent, fact: StatedMemory) -> None:
        """Add a correction, which supersedes what was said before it; what is said later supersedes the correction."""
        fact = self._in_voice_of_topic(fact)
        wrong = self._wrong_group(fact)
        self.rows.record_change("corrected", fact.id)
        self.add(event, fact, "correct", None)
        self.refresh(event, fact.group, fact.topic, fact)
        correct_id = self.statements.fact_id(fact.group, fact.id) or fact.id
        until_us = parse_rfc3339(fact.payload.get("valid_from")) or fact.said_us
        if wrong is not None:
            topic, value, group = wrong
            if group != fact.group:
                self.add_act(group, fact.id, "end", until_us, value, correct_id)
                self.refresh(event, group, topic)
        elif fact.conflict_key is None:
            # Every other fact of the topic is wrong, also one that was said earlier and arrives later.
            self.add_act(fact.topic, fact.id, "correct", until_us, fact.value, correct_id)
            for row in self.rows.select("topic = ? AND status IN ('active', 'stale')", fact.topic):
                if row.id != correct_id:
                    self.refresh(event, row.group, row.topic)

    def supersede(self, event: RecordedEvent, fact_id: str, by: str, until_us: int | None) -> None:
        """End a fact that the fact `by` replaces.

        Parameters:
            until_us: end of validity unless the fact has one; None: the time of the event.
        """
        for row in self.rows.select("id = ? AND id <> ?", fact_id, by):
            self.add_act(row.group, event.id, "end", until_us or event.occurred_at_us, row.value, by)
            self.refresh(event, row.group, row.topic)
            if row.status in ("active", "stale"):
                until_us = until_us or row.valid_until_us or event.occurred_at_us
                self.rows.close(event, row, "superseded", by, until_us)

    def end(self, event: RecordedEvent, ending: Ending) -> None:
        """End what an ending speaks of, also the facts that were said earlier and arrive later."""
        groups: dict[str, str] = {}
        for row in self._endings.matching_facts(ending):
            group = group_of(row.topic, row.value, row.conflict_key)
            spared = ending.spares(row.predicate, self.statements.sources_at(group, ending.at_us))
            # Before what its own message states.
            at_us = ending.at_us - 1 if spared else ending.at_us
            self.add_act(group, ending.id, ending.kind, at_us, ending.value_of(row.value))
            groups[group] = row.topic
        for group, topic in groups.items():
            self.refresh(event, group, topic)

    def decay(self, event: RecordedEvent, fact_id: str, confidence: float) -> None:
        """Set the decayed confidence of a fact."""
        self.rows.decay(event, fact_id, confidence)

    def upsert(self, event: RecordedEvent, fact: StatedMemory) -> None:
        """Add a fact, or strengthen the same one; what a producer states belongs to the only voice of its topic."""
        super().upsert(event, self._in_voice_of_topic(fact))

    def _in_voice_of_topic(self, fact: StatedMemory) -> StatedMemory:
        """Return a fact of a producer in the voice of the fact that it corrects, or in the only voice of its topic."""
        if fact.extracted or voice_of_topic(fact.topic):
            return fact
        corrected: str | None = fact.payload.get("corrects")
        rows = self.rows.select("id = ?", corrected) if corrected else []
        rows = rows or self.rows.select("topic >= ? AND topic < ?", fact.topic, f"{fact.topic}\x1f")
        voices = {voice_of_topic(row.topic) for row in rows if row.topic.partition("\x1e")[0] == fact.topic}
        return in_voice(fact, voices.pop()) if len(voices) == 1 and "" not in voices else fact

    def _wrong_group(self, fact: StatedMemory) -> tuple[str, str, str] | None:
        """Return topic, value and group of the fact that a correction names; None: it corrects the whole topic."""
        named = self.rows.select("id = ?", fact.payload["corrects"]) if fact.payload.get("corrects") else []
        if named:
            return named[0].topic, named[0].value, named[0].group
        wrong: str | None = fact.payload.get("corrects_object")
        if wrong is None or fact.conflict_key == fact.topic:
            return None
        value = normalised(wrong)
        counted = counted_noun(value)
        return fact.topic, value, group_of(fact.topic, value, f"{fact.topic}|{counted}" if counted else None)
