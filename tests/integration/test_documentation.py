"""The documentation: nothing is left out, links lead somewhere, and every block runs as it is written."""

from __future__ import annotations

import doctest
import io
import os
import re
import socket
import subprocess
import sys
from collections.abc import Generator, Iterator
from contextlib import redirect_stdout
from itertools import pairwise
from pathlib import Path
from typing import Any
from unittest.mock import patch

import pytest
import typer
from pydantic import BaseModel
from support.command_server import command_server
from support.openai_server import OpenAiServer, Raw, openai_server, said
from support.page_runner import PageRunner
from support.pages import ROOT, RUN, Block, anchors_of, blocks_of, links_of, name_of, pages
from support.postgres import new_database

from recollect import Recollect
from recollect.api.cli.main import app as cli
from recollect.api.http.app import create_app
from recollect.api.operations.metrics import prometheus_metrics
from recollect.api.settings import load_settings
from recollect.events import errors
from recollect.events.catalogue import EVENT_CLASSES
from recollect.events.errors import RecollectError

REFERENCE = ROOT / "docs" / "reference"
README_WORDS_MAX = 600

#: Pages whose output is what the real model finds. The others run without one, or with a small one of random weights.
REAL_MODEL_PAGES = ("README.md", "docs/tutorial.md")
SMALL_MODEL_PAGES = ("docs/how-to/change-models.md", "docs/how-to/move-in.md")
#: A retrieval that runs out of time searches by keywords alone: on a busy machine a page would print something else.
UNHURRIED = {"RECOLLECT_RETRIEVAL_BUDGET_MS": "60000"}
#: Where the pages' servers are; the tests put their own in these places.
REDIS_URL = "redis://localhost:6379/0"
CHAT_URL = "http://localhost:11434/v1"
POSTGRES_URL = "postgresql://recollect@db.example/recollect"
OTHER_MODEL = "BAAI/bge-small-en-v1.5"

#: What every command imports, so that it is imported once.
PRELOADED = (
    "duckdb",
    "dramatiq.brokers.redis",
    "openai",
    "psycopg_pool",
    "sentence_transformers",
    "uvicorn",
    "recollect.api.cli.main",
    "recollect.api.http.app",
    "recollect.api.http.server",
)


@pytest.fixture(scope="module")
def shims(tmp_path_factory: pytest.TempPathFactory) -> Generator[Path]:
    """The folder of the commands `recollect` and `python` for the pages."""
    # Short: the path of a socket has 107 bytes at most.
    with command_server(tmp_path_factory.mktemp("commands"), PRELOADED) as folder:
        yield folder


@pytest.fixture
def chat_server() -> Generator[OpenAiServer]:
    """A language model that knows what its request says of a cat."""

    def answer(request: dict[str, Any]) -> Raw:
        if "?" not in str(request["messages"][-1]):
            return said("Noted.")
        return said("Your cat is called Biscuit." if "Biscuit" in str(request) else "I do not know.")

    with openai_server() as server:
        server.behaviour = answer
        yield server


@pytest.mark.parametrize(
    "page",
    [pytest.param(name, marks=() if name in REAL_MODEL_PAGES else pytest.mark.long) for name in map(name_of, pages())],
)
def test_every_block_of_a_page_runs(page: str, tmp_path: Path, shims: Path, request: pytest.FixtureRequest) -> None:
    text = (ROOT / page).read_text(encoding="utf-8")
    with socket.create_server(("127.0.0.1", 0)) as free:
        port = str(free.getsockname()[1])
    model = "all-MiniLM-L6-v2" if page in REAL_MODEL_PAGES else "none"
    replaced = {"8787": port}
    if page in SMALL_MODEL_PAGES:
        model = request.getfixturevalue("tiny_model")
        replaced[OTHER_MODEL] = request.getfixturevalue("other_model")
    if REDIS_URL in text:
        replaced[REDIS_URL] = request.getfixturevalue("redis_server").url
    if CHAT_URL in text:
        replaced[CHAT_URL] = request.getfixturevalue("chat_server").url
    if POSTGRES_URL in text:
        replaced[POSTGRES_URL] = new_database(request.getfixturevalue("postgres_url"))
    # PyTorch gives the same vectors as OpenVINO and is loaded once, before the pages.
    environment = {
        "RECOLLECT_PORT": port,
        "RECOLLECT_EMBEDDING_MODEL": model,
        "RECOLLECT_EMBEDDING_RUNTIME": "torch",
        **UNHURRIED,
    }
    PageRunner(ROOT / page, tmp_path, shims=shims, environment=environment, replaced=replaced).run()


def test_a_block_that_is_not_run_has_no_commands_or_says_why() -> None:
    for page in pages():
        for block in blocks_of(page):
            is_known = block.language in (*RUN, "text", "json", "") or block.not_run is not None
            assert is_known, f"{page}, line {block.line}: {block.language}"
            if block.language not in RUN and block.not_run is None:
                commands = re.findall(r"^(?:\$ )?(?:recollect|curl|make|pip|python) .*", block.text, re.MULTILINE)
                assert not commands, f"{page}, line {block.line}: mark the block as bash, console or python"


#: What asks the memory in an example.
_ASKS = re.compile(r"recollect retrieve\b|/retrieve\b|retrieve=true|\.retrieve\(")
#: Examples that ask only to have a trace, whose id they go on with.
_ASKS_FOR_THE_TRACE = "trace=$("


def test_every_example_that_asks_the_memory_shows_the_answer() -> None:
    asking = 0
    for page in pages():
        blocks = blocks_of(page)
        for block, following in pairwise([*blocks, Block(language="", text="", line=0, not_run=None)]):
            if block.language not in RUN or block.not_run is not None or not _ASKS.search(block.text):
                continue
            if _ASKS_FOR_THE_TRACE in block.text:
                continue
            asking += 1
            answer = block.text if block.language == "console" else following.text
            where = f"{name_of(page)}, line {block.line}"
            assert block.language == "console" or following.language == "text", f"{where}: say what it answers"
            assert re.search(r"\w{3}", answer), f"{where}: the answer says nothing"
    assert asking > 5


def test_the_example_of_the_class_prints_what_was_told(tmp_path: Path) -> None:
    [example] = doctest.DocTestFinder(recurse=False).find(Recollect, "Recollect", globs={"Recollect": Recollect})
    program = "".join(part.source for part in example.examples).replace("./recollect-data", str(tmp_path))
    printed = io.StringIO()
    environment = {"RECOLLECT_EMBEDDING_MODEL": "all-MiniLM-L6-v2", **UNHURRIED}
    with patch.dict(os.environ, environment), redirect_stdout(printed):
        exec(compile(program, "example", "exec"), {"Recollect": Recollect})
    assert "I love tea" in printed.getvalue()


def test_the_generated_parts_are_what_the_generator_makes() -> None:
    done = subprocess.run(
        [sys.executable, ROOT / "ops" / "docs", "--check"], capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stdout + done.stderr


def test_links_between_pages_resolve() -> None:
    for page in [*pages(), ROOT / "CONTRIBUTING.md"]:
        for link in links_of(page):
            if re.match(r"[a-z]+:", link):
                continue
            path, _, anchor = link.partition("#")
            target = (page.parent / path).resolve() if path else page
            assert target.exists(), f"{name_of(page)}: {link}"
            if anchor:
                assert anchor in anchors_of(target), f"{name_of(page)}: {link}"


def test_every_page_is_reached_from_the_readme() -> None:
    reached: set[Path] = set()
    waiting = [ROOT / "README.md"]
    while waiting:
        page = waiting.pop()
        if page not in reached and page.suffix == ".md" and page.exists():
            reached.add(page)
            waiting += [(page.parent / link.partition("#")[0]).resolve() for link in links_of(page) if link[0] != "#"]
    assert set(pages()) <= reached


def test_the_readme_is_short_and_begins_with_the_two_commands() -> None:
    readme = (ROOT / "README.md").read_text(encoding="utf-8")
    assert len(readme.split()) <= README_WORDS_MAX
    first = blocks_of(ROOT / "README.md")[0].text
    assert re.search(r"^make run\b", first, re.MULTILINE)
    assert re.search(r"^make test\b", first, re.MULTILINE)


def test_every_command_and_option_is_in_the_reference() -> None:
    text = (REFERENCE / "cli.md").read_text(encoding="utf-8")
    for path, command in commands(typer.main.get_command(cli), "recollect"):
        assert f"## {path}\n" in text
        section = text.partition(f"## {path}\n")[2].partition("\n## ")[0]
        for parameter in command.params:
            for option in parameter.opts:
                # The page says once that every command has `--data`.
                assert option in ("--help", "--data") or option.upper() in section.upper(), f"{path} {option}"


def commands(command: Any, path: str) -> Iterator[tuple[str, Any]]:
    yield path, command
    for name, child in getattr(command, "commands", {}).items():
        yield from commands(child, f"{path} {name}")


def test_every_route_is_in_the_reference(tmp_path: Path) -> None:
    text = (REFERENCE / "http.md").read_text(encoding="utf-8")
    with Recollect(settings=load_settings(data=tmp_path), workers=False) as memory:
        for path, methods in create_app(memory).openapi()["paths"].items():
            for method in methods:
                assert f"`{method.upper()} {path}`" in text


def test_every_setting_is_in_the_reference() -> None:
    text = (REFERENCE / "settings.md").read_text(encoding="utf-8")
    names = re.findall(r"`(RECOLLECT_[A-Z_]+)`", text)
    assert len(set(names)) > 50
    for name in setting_names(load_settings()):
        assert f"\n- `RECOLLECT_{name.upper()}` " in text, name


def setting_names(settings: BaseModel) -> Iterator[str]:
    """Yield the names of all settings, those of groups included."""
    for name in type(settings).model_fields:
        value = getattr(settings, name)
        if isinstance(value, BaseModel):
            yield from setting_names(value)
        else:
            yield name


def test_every_event_type_is_in_the_reference() -> None:
    text = (REFERENCE / "events.md").read_text(encoding="utf-8")
    for name, event in EVENT_CLASSES.items():
        payload: Any = event.model_fields["payload"].annotation
        section = text.partition(f"### {name}\n")[2].partition("\n### ")[0]
        if (same := re.search(r"Payload: that of \[([\w.]+)\]", section)) is not None:
            assert EVENT_CLASSES[same.group(1)].model_fields["payload"].annotation is payload, name
            section = text.partition(f"### {same.group(1)}\n")[2].partition("\n### ")[0]
        rows = [line for line in text.splitlines() if line.startswith(f"| `{name}` |")]
        for field in payload.model_fields:
            documented = f"\n- `{field}` " in section or any(f"`{field}`" in row for row in rows)
            assert documented, f"{name}: {field}"


def test_every_error_is_in_the_reference() -> None:
    text = (REFERENCE / "errors.md").read_text(encoding="utf-8")
    for name, value in vars(errors).items():
        if isinstance(value, type) and issubclass(value, RecollectError):
            assert f"| `{name}` |" in text


def test_every_method_is_in_the_reference() -> None:
    text = (REFERENCE / "python.md").read_text(encoding="utf-8")
    for name in dir(Recollect):
        assert name.startswith("_") or f"### {name}\n" in text


def test_every_metric_is_in_the_reference(tmp_path: Path) -> None:
    text = (REFERENCE / "metrics.md").read_text(encoding="utf-8")
    with Recollect(settings=load_settings(data=tmp_path), workers=False) as memory:
        names = re.findall(r"^# HELP (\w+)", prometheus_metrics(memory.parts).decode(), re.MULTILINE)
    assert len(names) > 10
    for name in (*names, "recollect_llm_tokens_today"):
        assert f"| `{name}` |" in text


def test_every_guarantee_names_tests_that_exist() -> None:
    text = (ROOT / "docs" / "explanation" / "guarantees.md").read_text(encoding="utf-8")
    rows = [line for line in text.splitlines() if re.match(r"[|-] ", line) and not line.startswith("| guarantee |")]
    assert len(rows) > 90
    for row in rows:
        shown = row.strip("| ").rpartition(" | ")[2]
        named = [one for one in re.findall(r"`([^`]+)`", shown) if not one.startswith("ops/")]
        assert named, f"no test shows: {row}"
        for path, _, test in (one.partition("::") for one in named):
            assert path.startswith("tests/"), f"{path}: give the path from the root of the repository"
            assert (ROOT / path).exists(), path
            assert f"def {test or 'test_'}" in (ROOT / path).read_text(encoding="utf-8"), f"{path}::{test}"
