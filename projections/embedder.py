"""The embedding model: texts in, normalised float32 vectors out. It loads in the background while others work."""

from __future__ import annotations

import contextlib
import logging
import threading
from collections.abc import Generator, Sequence
from typing import TYPE_CHECKING, Any, Literal, Protocol

import numpy as np
from numpy.typing import NDArray

from recollect.projections.weights import DEFAULT_MODEL, model_source, model_tag

if TYPE_CHECKING:
    from sentence_transformers import SentenceTransformer

_logger = logging.getLogger(__name__)

Vector = NDArray[np.float32]
State = Literal["off", "loading", "ready", "failed"]

#: The name that means no model.
NO_MODEL = "none"
#: Texts that are embedded at once. A query waits for one batch at most: about 50 ms.
_BATCH_TEXTS = 32


class Embedder(Protocol):
    """What turns text into vectors. Safe to use from many threads."""

    @property
    def name(self) -> str:
        """Return what the model is loaded by: a name or a path."""
        ...

    @property
    def model_tag(self) -> str:
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

    def start(self) -> None:
        """Begin to load, in the background. A second call does nothing."""
        ...

    def wait_ready(self, timeout_seconds: float) -> bool:
        """Wait until the model is ready or has failed; return whether it is ready."""
        ...

    def embed(self, texts: Sequence[str]) -> Vector:
        """Return one normalised row a text, shape (len(texts), dimensions). Queries go first meanwhile."""
        ...

    def embed_query(self, text: str) -> Vector:
        """Return the normalised vector of a query, shape (dimensions,)."""
        ...


class NoEmbedder:
    """No model: retrieval is by keywords alone."""

    name = NO_MODEL
    model_tag = NO_MODEL
    dimensions = 0
    state: State = "off"
    reason = "turned off; name a model in RECOLLECT_EMBEDDING_MODEL"

    def start(self) -> None:
        """Do nothing."""

    def wait_ready(self, timeout_seconds: float) -> bool:  # noqa: ARG002 -- the protocol's
        """Return False at once."""
        return False

    def embed(self, texts: Sequence[str]) -> Vector:
        """Refuse: there is no model."""
        raise RuntimeError(f"cannot embed {len(texts)} texts: {self.reason}")

    def embed_query(self, text: str) -> Vector:
        """Refuse: there is no model."""
        return self.embed([text])[0]


class SentenceEmbedder:
    """A sentence-transformers model by name or path.

    Weights are bfloat16 where the processor multiplies those in hardware (AMX): 4 times the texts a second, vectors
    within 0.0002 of float32's by cosine. They are float32 elsewhere.

    Parameters:
        model: `DEFAULT_MODEL`, any name on the model hub, or a folder.
    """

    def __init__(self, model: str = DEFAULT_MODEL) -> None:
        self.name = model
        #: A SentenceTransformer; its methods are typed too loosely to be of use.
        self._model: Any = None
        self._gate = _Gate()
        self._settled = threading.Event()
        self._starting = threading.Lock()
        self._thread: threading.Thread | None = None
        self.model_tag = ""
        self.dimensions = 0
        self.state: State = "loading"
        self.reason = "model loading"

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
        """Return one normalised row a text; longest texts together, since a batch is as slow as its longest text."""
        vectors = np.empty((len(texts), self.dimensions), np.float32)
        order = sorted(range(len(texts)), key=lambda at: len(texts[at]), reverse=True)
        for start in range(0, len(order), _BATCH_TEXTS):
            batch = order[start : start + _BATCH_TEXTS]
            with self._gate.bulk():
                vectors[batch] = self._encode([texts[at] for at in batch])
        return vectors

    def embed_query(self, text: str) -> Vector:
        """Return the normalised vector of a query."""
        with self._gate.query():
            return self._encode([text])[0]

    def _encode(self, texts: list[str]) -> Vector:
        if self._model is None:
            raise RuntimeError(f"cannot embed: {self.reason}")
        encoded: Any = self._model.encode(texts, show_progress_bar=False, batch_size=len(texts))
        vectors: Vector = np.asarray(encoded, np.float32)
        # Normalised here, in float32: in bfloat16 lengths are off by up to 0.4 %.
        return vectors / np.maximum(np.linalg.norm(vectors, axis=1, keepdims=True), 1e-12)

    def _load(self) -> None:
        try:
            self._model = _load_model(self.name)
            self.dimensions = self._encode(["warm up"]).shape[1]
            self.model_tag = model_tag(self.name)
        except Exception as error:
            cause = f"{type(error).__name__}: {' '.join(str(error).split())[:200]}"
            self.reason = (
                f"model {self.name!r} could not be loaded ({cause}); check the "
                "network and its name or path, in RECOLLECT_EMBEDDING_MODEL or in --model of `recollect embed`"
            )
            self.state = "failed"
            _logger.warning("the %s", self.reason)
            _logger.debug("the embedding model %r", self.name, exc_info=True)
        else:
            self.reason = ""
            self.state = "ready"
        finally:
            self._settled.set()


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


def open_embedder(model: str) -> Embedder:
    """Return the embedder that the setting `model` names: ``none``, a name or a path."""
    return NoEmbedder() if model == NO_MODEL else SentenceEmbedder(model)


def _load_model(name: str) -> SentenceTransformer:
    # The import takes seconds, which is why it stands here and this runs in the background.
    import torch  # noqa: PLC0415
    from sentence_transformers import SentenceTransformer  # noqa: PLC0415
    from transformers.utils import logging as transformers_logging  # noqa: PLC0415

    transformers_logging.disable_progress_bar()
    has_amx: Any = getattr(torch.cpu, "_is_amx_tile_supported", lambda: False)
    dtype = torch.bfloat16 if has_amx() and not torch.cuda.is_available() else torch.float32
    return SentenceTransformer(model_source(name), model_kwargs={"dtype": dtype})
