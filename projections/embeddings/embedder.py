"""The embedding model: texts in, normalised float32 vectors out. It loads in the background while others work."""

from __future__ import annotations

import contextlib
import logging
import threading
from collections.abc import Generator, Sequence
from typing import Any, Literal, Protocol

import numpy as np

from recollect.events.errors import short_text
from recollect.projections.embeddings.model_files import model_fingerprint
from recollect.projections.embeddings.model_runtime import (
    Runtime,
    RuntimeName,
    RuntimeRefused,
    TokenEmbedding,
    load_runtime,
)
from recollect.projections.embeddings.token_codes import Vector, principal_directions
from recollect.projections.projection_settings import DEFAULT_MODEL, RuntimeChoice

_logger = logging.getLogger(__name__)

State = Literal["off", "loading", "ready", "failed"]

#: The name that means no model.
NO_MODEL = "none"
#: Words of the vocabulary that the basis for token codes is fitted to, and how many make one text.
_BASIS_WORDS = 4_096
_BASIS_TEXT_WORDS = 16
#: Texts that are embedded at once. A query waits for one batch at most: about 50 ms.
_BATCH_TEXTS = 32


class Embedder(Protocol):
    """What turns text into vectors. Safe to use from many threads."""

    @property
    def name(self) -> str:
        """Return what the model is loaded by: a name or a path."""
        ...

    @property
    def fingerprint(self) -> str:
        """Name the vector space; vectors of two tags are never compared. Empty before the model is ready."""
        ...

    @property
    def dimensions(self) -> int:
        """Return the length of a vector; 0 before the model is ready."""
        ...

    @property
    def state(self) -> State:
        """Tell whether vectors can be had: ``off``, ``loading``, ``ready`` or ``failed``."""
        ...

    @property
    def reason(self) -> str:
        """Say why the state is not ``ready``, and what to do about it."""
        ...

    @property
    def runtime(self) -> RuntimeName:
        """Return what runs the model; ``none`` before it is ready."""
        ...

    def start(self) -> None:
        """Begin to load, in the background. A second call does nothing."""
        ...

    def wait_ready(self, timeout_seconds: float) -> bool:
        """Wait until the model is ready or has failed; return whether it is ready."""
        ...

    def embed(self, texts: Sequence[str]) -> Vector:
        """Return one normalised row a text, shape (len(texts), dimensions). Queries go first meanwhile."""
        ...

    def embed_tokens(self, texts: Sequence[str]) -> list[TokenEmbedding]:
        """Return an embedding a text. Queries go first meanwhile."""
        ...

    def embed_query(self, text: str) -> TokenEmbedding:
        """Return the embedding of a query, with the places of its pieces."""
        ...

    def basis(self) -> Vector:
        """Return `CODE_DIMENSIONS` directions that token vectors differ most in, shape (dimensions, at most those)."""
        ...


class NoEmbedder:
    """No model: retrieval is by keywords alone."""

    name = NO_MODEL
    fingerprint = NO_MODEL
    dimensions = 0
    state: State = "off"
    reason = "turned off; name a model in RECOLLECT_EMBEDDING_MODEL"
    runtime: RuntimeName = "none"

    def start(self) -> None:
        """Do nothing."""

    def wait_ready(self, timeout_seconds: float) -> bool:  # noqa: ARG002 -- the protocol's
        """Return False at once."""
        return False

    def embed(self, texts: Sequence[str]) -> Vector:
        """Refuse: there is no model."""
        raise RuntimeError(f"cannot embed {len(texts)} texts: {self.reason}")

    def embed_tokens(self, texts: Sequence[str]) -> list[TokenEmbedding]:
        """Refuse: there is no model."""
        raise RuntimeError(f"cannot embed {len(texts)} texts: {self.reason}")

    def embed_query(self, text: str) -> TokenEmbedding:
        """Refuse: there is no model."""
        return self.embed_tokens([text])[0]

    def basis(self) -> Vector:
        """Refuse: there is no model."""
        raise RuntimeError(f"there is no basis: {self.reason}")


class SentenceEmbedder:
    """A sentence-transformers model by name or path.

    Weights are bfloat16 where the processor multiplies those in hardware (AMX): 4 times the texts a second, vectors
    within 0.0002 of float32's by cosine. They are float32 elsewhere.

    Parameters:
        model: `DEFAULT_MODEL`, any name on the model hub, or a folder.
        runtime: what shall run it.
    """

    def __init__(self, model: str = DEFAULT_MODEL, runtime: RuntimeChoice = "auto") -> None:
        self.name = model
        self._choice: RuntimeChoice = runtime
        self._runtime: Runtime | None = None
        self._gate = _Gate()
        self._settled = threading.Event()
        self._starting = threading.Lock()
        self._thread: threading.Thread | None = None
        self.fingerprint = ""
        self.dimensions = 0
        self.state: State = "loading"
        self.reason = "model loading"
        self.runtime: RuntimeName = "none"

    def start(self) -> None:
        """Begin to load, in the background."""
        with self._starting:
            if self._thread is None:
                self._thread = threading.Thread(target=self._load, name="recollect-model-loader", daemon=True)
                self._thread.start()

    def wait_ready(self, timeout_seconds: float) -> bool:
        """Wait until the model is ready or has failed; return whether it is ready."""
        self._settled.wait(timeout_seconds)
        return self.state == "ready"

    def embed(self, texts: Sequence[str]) -> Vector:
        """Return one normalised row a text."""
        vectors = np.empty((len(texts), self.dimensions), np.float32)
        for at, embedding in enumerate(self.embed_tokens(texts)):
            vectors[at] = embedding.vector
        return vectors

    def embed_tokens(self, texts: Sequence[str]) -> list[TokenEmbedding]:
        """Return an embedding a text; longest texts together, since a batch is as slow as its longest text."""
        found: dict[int, TokenEmbedding] = {}
        order = sorted(range(len(texts)), key=lambda at: len(texts[at]), reverse=True)
        for start in range(0, len(order), _BATCH_TEXTS):
            batch = order[start : start + _BATCH_TEXTS]
            with self._gate.bulk():
                found |= zip(batch, self._ready().encode([texts[at] for at in batch]), strict=True)
        return [found[at] for at in range(len(texts))]

    def embed_query(self, text: str) -> TokenEmbedding:
        """Return the embedding of a query, with the places of its pieces."""
        runtime = self._ready()
        with self._gate.query():
            found = runtime.encode([text])[0]
            # Here as well: a tokenizer that two threads use with other settings fails.
            spans = token_spans(runtime.tokenizer, text, runtime.pieces_max)
        # A model that puts a prompt before the text reads more than its pieces.
        return found._replace(spans=spans) if len(spans) == len(found.tokens) else found

    def basis(self) -> Vector:
        """Return the first principal directions of the tokens of texts made of the model's own vocabulary.

        So the same model gives the same basis, and nothing of what users said is in it.
        """
        words = sorted(word for word in self._ready().tokenizer.get_vocab() if word.isalpha() and len(word) > 2)
        step = max(1, len(words) // _BASIS_WORDS)
        chosen = words[::step]
        # Neighbours in the alphabet are alike: deal them out.
        count = max(1, len(chosen) // _BASIS_TEXT_WORDS)
        texts = [" ".join(chosen[start::count]) for start in range(count)]
        tokens = np.concatenate([embedding.tokens for embedding in self.embed_tokens(texts)])
        return principal_directions(tokens)

    def _ready(self) -> Runtime:
        if self._runtime is None:
            raise RuntimeError(f"cannot embed: {self.reason}")
        return self._runtime

    def _load(self) -> None:
        try:
            self._runtime = load_runtime(self.name, self._choice)
            self.dimensions = len(self._runtime.encode(["warm up"])[0].vector)
            self.fingerprint = model_fingerprint(self.name)
        except RuntimeRefused as error:
            self._fail(str(error))
        except Exception as error:
            cause = short_text(error)
            self._fail(
                f"model {self.name!r} could not be loaded ({cause}); check the "
                "network and its name or path, in RECOLLECT_EMBEDDING_MODEL or in --model of `recollect embed`"
            )
        else:
            self.runtime = self._runtime.name
            self.reason = ""
            self.state = "ready"
            _logger.info("embedding model %r: runs on %s", self.name, self.runtime)
        finally:
            self._settled.set()

    def _fail(self, reason: str) -> None:
        self.reason = reason
        self.state = "failed"
        _logger.warning("embeddings: %s", reason)
        _logger.debug("the embedding model %r", self.name, exc_info=True)


def token_spans(tokenizer: Any, text: str, pieces_max: int | None) -> tuple[tuple[int, int], ...]:
    """Return where the pieces of `text` stand that the model reads; nothing when its tokenizer cannot tell."""
    if not getattr(tokenizer, "is_fast", False):
        return ()
    read: Any = tokenizer(
        text,
        truncation=True,
        max_length=pieces_max,
        return_offsets_mapping=True,
        return_special_tokens_mask=True,
    )
    marks: list[int] = read["special_tokens_mask"]
    spans: list[tuple[int, int]] = read["offset_mapping"]
    return tuple((start, end) for mark, (start, end) in zip(marks, spans, strict=True) if not mark)


class _Gate:
    """Lets one through at a time, queries before bulk work."""

    def __init__(self) -> None:
        self._condition = threading.Condition()
        self._busy = False
        self._queries = 0

    @contextlib.contextmanager
    def query(self) -> Generator[None]:
        with self._condition:
            self._queries += 1
            self._condition.wait_for(lambda: not self._busy)
            self._queries -= 1
            self._busy = True
        yield from self._pass()

    @contextlib.contextmanager
    def bulk(self) -> Generator[None]:
        with self._condition:
            self._condition.wait_for(lambda: not self._busy and not self._queries)
            self._busy = True
        yield from self._pass()

    def _pass(self) -> Generator[None]:
        try:
            yield
        finally:
            with self._condition:
                self._busy = False
                self._condition.notify_all()


def open_embedder(model: str, runtime: RuntimeChoice = "auto") -> Embedder:
    """Return the embedder that the setting `model` names: ``none``, a name or a path."""
    return NoEmbedder() if model == NO_MODEL else SentenceEmbedder(model, runtime)
