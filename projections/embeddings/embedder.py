"""Embedder: turns texts into normalised float32 vectors with an embedding model that loads in the background."""

from __future__ import annotations

import contextlib
import logging
import threading
from collections.abc import Generator, Sequence
from typing import Literal, Protocol
from weakref import WeakValueDictionary

import numpy as np

from recollect.events.errors import StorageError, short_text
from recollect.events.instruments import Counter
from recollect.events.storage.heap import trim_heap
from recollect.projections.embeddings.basis_file import stored_basis
from recollect.projections.embeddings.model_cache import basis_path
from recollect.projections.embeddings.model_files import ModelUnavailable, model_fingerprint
from recollect.projections.embeddings.model_loading import load_runtime
from recollect.projections.embeddings.model_runtime import (
    PendingEmbedding,
    QueryPass,
    Runtime,
    RuntimeName,
    RuntimeRefused,
)
from recollect.projections.embeddings.stretches import Stretch, TokenEmbedding
from recollect.projections.embeddings.token_codes import Vector, principal_directions
from recollect.projections.projection_settings import DEFAULT_MODEL, DeviceChoice, RuntimeChoice

_logger = logging.getLogger(__name__)

EMBEDDED_TEXTS = Counter("recollect_embedded_texts", "Texts that the embedding model has read", ("purpose",))

State = Literal["off", "loading", "ready", "failed"]

#: The setting that turns the embedding model off.
NO_MODEL = "none"
#: Words of the vocabulary that the basis of token codes is fitted to, and the words of each text made of them.
_BASIS_WORDS = 4_096
_BASIS_TEXT_WORDS = 16
#: Held while a model loads. PyTorch has one precision of new tensors for all threads, which a load sets to that of its
#: model: of two at a time one got tensors of two precisions.
_LOADING = threading.Lock()


class Embedder(Protocol):
    """An embedding model. Safe to use from many threads."""

    @property
    def name(self) -> str:
        """Return the name or path that the model is loaded by."""
        ...

    @property
    def fingerprint(self) -> str:
        """Return the identity of the vector space, empty before the model is ready.

        Vectors of two fingerprints are never compared.
        """
        ...

    @property
    def dimensions(self) -> int:
        """Return the number of dimensions of a vector; 0 before the model is ready."""
        ...

    @property
    def state(self) -> State:
        """Return the state: ``off``, ``loading``, ``ready`` or ``failed``."""
        ...

    @property
    def reason(self) -> str:
        """Return why the state is not ``ready`` and what to do about it; empty when it is."""
        ...

    @property
    def runtime(self) -> RuntimeName:
        """Return the name of the model's runtime; ``none`` before the model is ready."""
        ...

    def start(self) -> None:
        """Begin to load the model in the background. A second call does nothing."""
        ...

    def wait_ready(self, timeout_seconds: float) -> bool:
        """Wait until the model is ready or has failed; return whether it is ready."""
        ...

    def embed(self, texts: Sequence[str]) -> Vector:
        """Return the normalised vectors of `texts`, shape (len(texts), dimensions). Queries take precedence."""
        ...

    def embed_tokens(self, stretches: Sequence[Stretch]) -> list[TokenEmbedding]:
        """Return the embedding of the part of each stretch. Queries take precedence."""
        ...

    def embed_query(self, text: str) -> TokenEmbedding:
        """Return the embedding of a query, with the spans of its tokens."""
        ...

    def start_query(self, text: str) -> PendingEmbedding | None:
        """Begin to embed a query in parallel with this thread; None: only `embed_query` can do it."""
        ...

    def basis(self) -> Vector:
        """Return the basis of token codes: principal directions, shape (dimensions, at most `CODE_DIMENSIONS`)."""
        ...


class NoEmbedder:
    """The embedder without a model: retrieval uses keywords only."""

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
        """Raise RuntimeError."""
        raise RuntimeError(f"cannot embed {len(texts)} texts: {self.reason}")

    def embed_tokens(self, stretches: Sequence[Stretch]) -> list[TokenEmbedding]:
        """Raise RuntimeError."""
        raise RuntimeError(f"cannot embed {len(stretches)} texts: {self.reason}")

    def embed_query(self, text: str) -> TokenEmbedding:
        """Raise RuntimeError."""
        return self.embed_tokens([Stretch(text)])[0]

    def start_query(self, text: str) -> None:
        """Return None."""

    def basis(self) -> Vector:
        """Raise RuntimeError."""
        raise RuntimeError(f"cannot compute the basis of token codes: {self.reason}")


class SentenceEmbedder:
    """The embedder of a sentence-transformers model.

    Weights are int8 where the processor has AVX-512 VNNI and no AMX (OpenVINO only, within 0.01 of float32's vectors by
    cosine); bfloat16 where it multiplies that in hardware (AMX: 4 times the texts a second; AVX-512: 1.7 times; within
    0.0002); float32 elsewhere.

    Parameters:
        model: `DEFAULT_MODEL`, any name on the model hub, or the path of a folder.
        runtime: the runtime of the model.
        device: the device that the runtime uses.
    """

    def __init__(
        self, model: str = DEFAULT_MODEL, runtime: RuntimeChoice = "auto", device: DeviceChoice = "auto"
    ) -> None:
        self.name = model
        self._choice: RuntimeChoice = runtime
        self._device: DeviceChoice = device
        self._runtime: Runtime | None = None
        self._model_lock = _PriorityLock()
        #: Set when the model is ready or has failed.
        self._loaded = threading.Event()
        self._start_lock = threading.Lock()
        self._thread: threading.Thread | None = None
        self.fingerprint = ""
        self.dimensions = 0
        self.state: State = "loading"
        self.reason = "model loading"
        self.runtime: RuntimeName = "none"

    def start(self) -> None:
        """Begin to load the model in the background."""
        with self._start_lock:
            if self._thread is None:
                # The end of the program waits for it: a daemon that Python ends inside OpenVINO or PyTorch ends the
                # process with a signal.
                self._thread = threading.Thread(target=self._load, name="recollect-model-loader", daemon=False)
                self._thread.start()

    def wait_ready(self, timeout_seconds: float) -> bool:
        """Wait until the model is ready or has failed; return whether it is ready."""
        self._loaded.wait(timeout_seconds)
        return self.state == "ready"

    def embed(self, texts: Sequence[str]) -> Vector:
        """Return the normalised vectors of `texts`, shape (len(texts), dimensions)."""
        vectors = np.empty((len(texts), self.dimensions), np.float32)
        for row, embedding in enumerate(self.embed_tokens([Stretch(text) for text in texts])):
            vectors[row] = embedding.vector
        return vectors

    def embed_tokens(self, stretches: Sequence[Stretch]) -> list[TokenEmbedding]:
        """Return the embedding of the part of each stretch. A query waits for the end of one batch at most."""
        distinct = [*dict.fromkeys(stretches)]
        embeddings = dict(zip(distinct, self._ready().encode(distinct, self._model_lock.bulk), strict=True))
        EMBEDDED_TEXTS.add("memory", amount=len(distinct))
        return [embeddings[stretch] for stretch in stretches]

    def embed_query(self, text: str) -> TokenEmbedding:
        """Return the embedding of a query, with the spans of its tokens."""
        [embedding] = self._ready().encode([Stretch(text)], self._model_lock.query, "query")
        EMBEDDED_TEXTS.add("query")
        return embedding

    def start_query(self, text: str) -> PendingEmbedding | None:
        """Begin to embed a query in parallel with this thread; None: `embed_query` has to wait for another text."""
        if not self._model_lock.is_free:
            return None
        started = self._ready().query_pass(Stretch(text))
        if started is None or not self._model_lock.begin(started):
            return None
        EMBEDDED_TEXTS.add("query")
        return started

    def basis(self) -> Vector:
        """Return the principal directions of the token vectors of texts made of the model's own vocabulary.

        The vocabulary gives the same texts on every machine, and the basis contains nothing of the users' texts.
        """
        try:
            return stored_basis(basis_path(self.fingerprint), self._fitted_basis)
        except StorageError as error:
            _logger.info("the basis of token codes is not kept in the cache: %s", error)
            return self._fitted_basis()

    def _fitted_basis(self) -> Vector:
        # Without the marks with which some tokenizers begin a word.
        pieces = {piece.lstrip("▁Ġ") for piece in self._ready().tokenizer.get_vocab()}
        words = sorted(word for word in pieces if word.isalpha() and len(word) > 2)
        step = max(1, len(words) // _BASIS_WORDS)
        chosen = words[::step]
        # Alphabetical neighbours are related words, so each text takes words at a distance.
        count = max(1, len(chosen) // _BASIS_TEXT_WORDS)
        texts = [Stretch(" ".join(chosen[start::count])) for start in range(count)]
        tokens = np.concatenate([embedding.tokens for embedding in self.embed_tokens(texts)])
        return principal_directions(tokens)

    def _ready(self) -> Runtime:
        if self._runtime is None:
            raise RuntimeError(f"cannot embed: {self.reason}")
        return self._runtime

    def _load(self) -> None:
        try:
            with _LOADING:
                self._runtime = load_runtime(self.name, self._choice, self._device)
                self.dimensions = len(self._runtime.encode([Stretch("warm up")])[0].vector)
            self.fingerprint = model_fingerprint(self.name)
        except (RuntimeRefused, ModelUnavailable) as error:
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
            self._loaded.set()
            # What was compiled and checked leaves some MB.
            trim_heap()

    def _fail(self, reason: str) -> None:
        self.reason = reason
        self.state = "failed"
        if threading.main_thread().is_alive():
            # At the end of a program Python refuses new threads, of which torch needs some.
            _logger.warning("embeddings: %s", reason)
        _logger.debug("the embedding model %r", self.name, exc_info=True)


class _PriorityLock:
    """A lock whose waiting queries take precedence over bulk work.

    The forward pass that `begin` has begun holds it until it is over; who comes next waits for it.
    """

    def __init__(self) -> None:
        self._condition = threading.Condition()
        self._busy = False
        self._queries = 0
        self._begun: QueryPass | None = None

    @property
    def is_free(self) -> bool:
        """Return whether no thread holds the lock or waits for it."""
        begun = self._begun
        return not self._busy and not self._queries and (begun is None or begun.is_over)

    def begin(self, query: QueryPass) -> bool:
        """Begin the forward pass of a query and return True; False unless the lock is free."""
        with self._condition:
            if not self.is_free:
                return False
            query.begin()
            self._begun = query
            return True

    @contextlib.contextmanager
    def query(self) -> Generator[None]:
        """Hold the lock for a query."""
        with self._condition:
            self._queries += 1
            self._condition.wait_for(lambda: not self._busy)
            self._queries -= 1
            self._busy = True
        yield from self._hold()

    @contextlib.contextmanager
    def bulk(self) -> Generator[None]:
        """Hold the lock for a batch of bulk work."""
        with self._condition:
            self._condition.wait_for(lambda: not self._busy and not self._queries)
            self._busy = True
        yield from self._hold()

    def _hold(self) -> Generator[None]:
        try:
            begun, self._begun = self._begun, None
            if begun is not None:
                begun.wait()
            yield
        finally:
            with self._condition:
                self._busy = False
                self._condition.notify_all()


#: The embedders of the default model, whose files never change: the memories of a process share its weights.
_default_embedders: WeakValueDictionary[tuple[RuntimeChoice, DeviceChoice], SentenceEmbedder] = WeakValueDictionary()
_default_lock = threading.Lock()


def open_embedder(model: str, runtime: RuntimeChoice = "auto", device: DeviceChoice = "auto") -> Embedder:
    """Return the embedder of the setting `model`: ``none``, a model's name or its path."""
    if model == NO_MODEL:
        return NoEmbedder()
    if model != DEFAULT_MODEL:
        return SentenceEmbedder(model, runtime, device)
    with _default_lock:
        embedder = _default_embedders.get((runtime, device))
        # One that has failed is loaded again, since its cause may be over.
        if embedder is None or embedder.state == "failed":
            embedder = _default_embedders[runtime, device] = SentenceEmbedder(model, runtime, device)
        return embedder
