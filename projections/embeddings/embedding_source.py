"""Embedding source: returns embeddings of texts that another machine of the log has made, and makes the others."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import partial
from hashlib import sha256
from pathlib import Path
from typing import TYPE_CHECKING

from recollect.events.backends.log import EventLog
from recollect.events.instruments import Counter
from recollect.projections.embeddings.basis_file import stored_basis
from recollect.projections.embeddings.embedder import Embedder
from recollect.projections.embeddings.stretches import Stretch
from recollect.projections.embeddings.token_codes import Vector
from recollect.projections.embeddings.vector_schema import vectors_version
from recollect.projections.embeddings.vector_store import StoredEmbedding

if TYPE_CHECKING:
    # It loads the driver of PostgreSQL, which most installations do not use.
    from recollect.projections.embeddings.shared_vectors import SharedKey, SharedVectors

_OBTAINED = Counter("recollect_embeddings_obtained", "Embeddings computed here or elsewhere", ("source",))

#: Texts by the digests under which their vectors are stored.
Stretches = Mapping[bytes, Stretch]
#: Returns the embeddings of texts, which the model computes or another machine has made.
Obtain = Callable[[Stretches], dict[bytes, StoredEmbedding]]


class EmbeddingSource:
    """The embeddings of one model. Safe to use from many threads.

    Parameters:
        data: the data folder.
        shared: the vectors of all machines of the log; None: all are computed here.
    """

    def __init__(self, data: Path, embedder: Embedder, log: EventLog, shared: SharedVectors | None) -> None:
        self._data = data
        self._embedder = embedder
        self._log = log
        self._shared = shared
        self._basis: Vector | None = None

    def erasure_version(self, namespace: str) -> int | None:
        """Return the version of the last erasure; None when no machine shares vectors.

        It is read before the texts, so that vectors of texts that are erased in between are not shared.
        """
        return None if self._shared is None else self._log.head(namespace).erasure_version

    def obtain(
        self, namespace: str, stretches: Stretches, compute: Obtain, erasure_version: int | None, *, with_codes: bool
    ) -> dict[bytes, StoredEmbedding]:
        """Return the embeddings of `stretches`, by their digests.

        Parameters:
            compute: called with those that no other machine has made.
            erasure_version: of the last erasure; None: nothing is shared.
            with_codes: whether the embeddings have token codes.
        """
        shared = self._shared
        if shared is None or erasure_version is None or not stretches:
            _OBTAINED.add("model", amount=len(stretches))
            return compute(stretches)
        key = self._shared_key()
        stored = shared.read(namespace, key, stretches.keys(), with_codes=with_codes)
        if missing := _without(stretches, stored):
            with shared.embedding(namespace):
                # Another machine may have embedded them while this one waited.
                stored |= shared.read(namespace, key, missing.keys(), with_codes=with_codes)
                missing = _without(missing, stored)
                new = compute(missing)
                shared.write(namespace, key, new, erasure_version=erasure_version)
                stored |= new
        _OBTAINED.add("model", amount=len(missing))
        _OBTAINED.add("shared", amount=len(stretches) - len(missing))
        return stored

    def basis(self) -> Vector:
        """Return the basis of the model's token codes, shape (dimensions, at most 64), stored in the data folder.

        Two processes must use the same basis bit for bit, and two computations differ in the last bits. So the first
        basis computed is stored, and every process reads the stored one; a new machine gets that of the others.
        """
        basis = self._basis
        if basis is None:
            fingerprint, compute = self._embedder.fingerprint, self._embedder.basis
            if self._shared is not None:
                compute = partial(self._shared.basis, fingerprint, compute)
            basis = self._basis = stored_basis(self._data / f"basis-{fingerprint}.npy", compute)
        return basis

    def _shared_key(self) -> SharedKey:
        """Return what vectors are shared under: machines with another model, format or basis do not read them."""
        from recollect.projections.embeddings.shared_vectors import SharedKey  # noqa: PLC0415

        basis = sha256(self.basis().tobytes()).hexdigest()
        return SharedKey(f"{self._embedder.fingerprint} {vectors_version()} {basis}", self._embedder.dimensions)


def _without(stretches: Stretches, stored: Mapping[bytes, StoredEmbedding]) -> dict[bytes, Stretch]:
    return {digest: stretch for digest, stretch in stretches.items() if digest not in stored}
