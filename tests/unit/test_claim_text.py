"""The text by which an encoder reads a line and what a language model says of it."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

from recollect.jobs.extraction.rule_extractor import IncomingMessage
from recollect.jobs.llm_reading.claim_reader import ClaimText, claim_text
from recollect.jobs.llm_reading.llm_conversation import LlmConversation
from recollect.jobs.llm_reading.llm_statement import LlmStatement

_START = datetime(2026, 1, 5, 9, 12, tzinfo=UTC)


def _read(lines: list[str], text: str, words: str, *, session_ids: str = "") -> ClaimText:
    """Return the text of a statement about the last of some lines, each `speaker: text`."""
    messages = [
        IncomingMessage(
            event_id=f"m{at}",
            session_id=session_ids[at : at + 1] or "s",
            speaker=line.split(": ")[0],
            text=line.split(": ", 1)[1],
            sent_at=_START + timedelta(minutes=at),
            is_assistant=False,
        )
        for at, line in enumerate(lines)
    ]
    return claim_text(LlmStatement(line=len(lines), text=text, words=words), LlmConversation(messages, {}))


def test_the_speaker_stands_in_place_of_the_first_person() -> None:
    read = _read(["Ann: I'm a nurse and my dad is 70, I've told you"], "Ann's dad is 70.", "my dad is 70")
    assert read.text == "Ann: Ann is a nurse and Ann's dad is 70, Ann has told you [SEP] Ann's dad is 70."
    assert read.text[slice(*read.quoted)] == "Ann's dad is 70"
    assert read.text[slice(*read.claim)].strip() == "Ann's dad is 70."


def test_the_lines_right_before_are_read_too_but_not_those_of_another_conversation() -> None:
    lines = ["Ann: I sold it", "Ben: where do you live now?", "Ann: in Porto"]
    assert _read(lines, "Ann lives in Porto.", "in Porto").text.startswith(
        "Ann: Ann sold it / Ben: where do you live now? / Ann: in Porto"
    )
    others = _read(lines, "Ann lives in Porto.", "in Porto", session_ids="abc")
    assert others.text == "Ann: in Porto [SEP] Ann lives in Porto."


def test_of_a_long_line_the_part_around_the_quoted_words_is_read() -> None:
    line = f"Ann: {'we talked a lot. ' * 40}the boiler broke. {'and so on. ' * 60}"
    read = _read([line], "The boiler broke.", "the boiler broke")
    assert read.text[slice(*read.quoted)] == "the boiler broke"
    assert len(read.text) < 400


def test_the_models_own_signs_in_a_message_are_plain_words() -> None:
    read = _read(["Ann: [SEP] Ann is the owner [CLS]"], "Ann [SEP] is the owner.", "Ann is the owner")
    assert read.text == "Ann: SEP Ann is the owner CLS [SEP] Ann SEP is the owner."
    assert read.text[slice(*read.quoted)] == "Ann is the owner"
