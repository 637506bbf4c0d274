"""Memory parts: the components that work on one data folder, opened and closed together."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from datetime import UTC, datetime
from functools import partial
from typing import TYPE_CHECKING, NoReturn, Self, cast

from msgspec import Struct

from recollect.api.assembly.erasure_listeners import ErasureListeners, last_erasure_us
from recollect.api.assembly.local_catch_up import LocalCatchUp
from recollect.api.assembly.recall_echoes import RecallEchoes
from recollect.api.assembly.tracing_setup import start_tracing
from recollect.api.retrieval.answer.fence_names import read_fence_key
from recollect.api.retrieval.answer.trace_store import TraceStore, traces_of
from recollect.api.retrieval.ranking.reranker import Reranker
from recollect.api.retrieval.retriever import Retriever
from recollect.api.retrieval.understanding.query import utc_now
from recollect.api.settings import PrivacySettings, Settings
from recollect.events.backends.log import EventLog
from recollect.events.backends.open_log import sqlite_path
from recollect.events.envelope import EventDraft
from recollect.events.errors import MemoryClosed
from recollect.events.intake.quarantine import with_quarantine
from recollect.events.intake.screening import screen_all
from recollect.events.integrity.log_identity import open_log_of_folder
from recollect.events.local_time import zone_named
from recollect.jobs.derivation.job_context import JobContext
from recollect.jobs.erasure.eraser import Eraser
from recollect.jobs.forgetting.forget_events import with_forgettings
from recollect.jobs.llm.model_client import LlmClient
from recollect.jobs.queue.backlog import BacklogMonitor
from recollect.jobs.queue.broker import open_run_store
from recollect.jobs.queue.run_store import RunStore
from recollect.projections.embeddings.active_model import ActiveModel
from recollect.projections.embeddings.vectors import Vectors
from recollect.projections.read_models.history import History
from recollect.projections.read_models.read_models import ReadModels
from recollect.projections.search_index.index_cache import IndexCache

if TYPE_CHECKING:
    from recollect.jobs.queue.workers import Workers
    from recollect.projections.embeddings.shared_vectors import SharedVectors


class MemoryParts(Struct, frozen=True, kw_only=True):
    """The open parts of a data folder; see `open_parts`."""

    settings: Settings
    log: EventLog
    #: The read models of all namespaces.
    read_models: ReadModels
    #: The in-memory indexes of read models.
    indexes: IndexCache
    #: The embedding model in use, and its vectors.
    active_model: ActiveModel
    #: The read models of past versions.
    history: History
    #: The cross-encoder; None when none is set.
    reranker: Reranker | None
    retriever: Retriever
    #: Projects what retrievals lacked on this machine; None where workers of this data folder do that.
    local_catch_up: LocalCatchUp | None
    trace_store: TraceStore
    #: What was recalled lately in each session.
    recall_echoes: RecallEchoes
    #: Erases events, and has the receipts.
    eraser: Eraser
    #: The parts that jobs use.
    job_context: JobContext
    #: How far the projections are behind the log.
    backlog: BacklogMonitor
    #: Runs, attempts and dead letters of the jobs of all processes.
    run_store: RunStore
    #: Worker and scheduler threads of this process, or the sender of messages to other processes; None without either.
    workers: Workers | None

    @property
    def vectors(self) -> Vectors:
        """Return the vectors of the embedding model in use, which this or another process may have changed."""
        return self.active_model.vectors()

    def screened(self, namespace: str, drafts: Sequence[EventDraft]) -> list[EventDraft]:
        """Return events without private sections, their secrets treated by the policies of the namespace."""
        return screen_all(drafts, self.settings.privacy.policies(namespace))

    def prepared(self, namespace: str, screened: Sequence[EventDraft]) -> list[EventDraft]:
        """Return screened events as they are appended, and after them those by which the server holds some back."""
        echoed = self.recall_echoes.with_echoes(namespace, with_quarantine(screened))
        return with_forgettings(self.job_context, namespace, echoed)

    def close(self) -> None:
        """Finish running work, and release the files."""
        # For those who follow a namespace.
        self.job_context.stop.set()
        if self.workers is not None:
            self.workers.stop()
        self.retriever.close()
        if self.local_catch_up is not None:
            self.local_catch_up.close()
        self.trace_store.close()
        if self.job_context.llm is not None:
            self.job_context.llm.close()
        self.run_store.close()
        self.history.close()
        self.active_model.close()
        self.read_models.close()
        self.log.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()


class ClosedParts:
    """The parts of a closed memory, which raise `MemoryClosed` when they are used."""

    def close(self) -> None:
        """Do nothing: they are closed."""

    def __getattr__(self, name: str) -> NoReturn:
        raise MemoryClosed("this memory is closed; open it again with recollect.Recollect")


def closed_parts(parts: MemoryParts) -> MemoryParts:
    """Close the parts of a memory; return what takes their place, which raises `MemoryClosed` when it is used."""
    parts.close()
    return cast("MemoryParts", ClosedParts())


def open_parts(
    settings: Settings,
    *,
    workers: bool = True,
    schedule: bool | None = None,
    clock: Callable[[], datetime] = utc_now,
) -> MemoryParts:
    """Open the parts of the data folder of `settings`.

    Parameters:
        workers: run worker threads.
        schedule: run the scheduler; with the workers when None.
        clock: the present time of retrievals that give none.

    Raises:
        InvalidInput: `tracing` is set and OpenTelemetry is not installed.
        StorageError: the folder or the log cannot be used; `LogMissing` when the log that the folder was derived
            from is missing.
    """
    if settings.logging.tracing:
        start_tracing()
    data, limits = settings.storage.data, settings.read_models
    log = open_log_of_folder(data, settings.storage.log_url, settings.storage.key_options)
    read_models = ReadModels(
        data,
        log,
        open_files_max=limits.open_models_max,
        disk_bytes_max=limits.read_models_bytes_max,
        default_zone=zone_named(settings.queue.timezone) or UTC,
    )
    indexes = IndexCache()
    active_model = _open_active_model(settings, read_models, indexes)
    history = History(data, log, read_models, bytes_max=limits.as_of_bytes_max)
    # Workers have other data folders, or do not look at a namespace again whose work is done.
    is_cache = bool(limits.read_models_bytes_max) or sqlite_path(settings.storage.log_url) is None
    local_catch_up = LocalCatchUp(read_models, active_model.vectors) if is_cache else None
    reranker = Reranker(settings.retrieval.reranker) if settings.retrieval.reranker else None
    job_context = _job_context(settings, log, read_models, active_model)
    if job_context.llm is not None and workers:
        job_context.llm.start_check()
    run_store = open_run_store(settings.queue.broker, data)
    backlog = BacklogMonitor(log, read_models, active_model.vectors, run_store)
    # On another broker the workers are other processes, which have to be notified.
    active = workers or schedule or settings.queue.broker != "memory://"
    trace_store = _open_trace_store(settings, log)
    recall_echoes = RecallEchoes()
    eraser = _open_eraser(job_context, ErasureListeners(data, log, trace_store, run_store), recall_echoes)
    return MemoryParts(
        settings=settings,
        log=log,
        read_models=read_models,
        indexes=indexes,
        active_model=active_model,
        history=history,
        reranker=reranker,
        retriever=_open_retriever(
            settings, read_models, history, active_model, reranker, clock, local_catch_up, indexes
        ),
        local_catch_up=local_catch_up,
        recall_echoes=recall_echoes,
        trace_store=trace_store,
        eraser=eraser,
        job_context=job_context,
        backlog=backlog,
        run_store=run_store,
        workers=_start_workers(job_context, run_store, backlog, settings, work=workers, schedule=schedule)
        if active
        else None,
    )


def _job_context(settings: Settings, log: EventLog, read_models: ReadModels, active_model: ActiveModel) -> JobContext:
    """Return the parts that jobs use."""
    return JobContext(
        log=log,
        read_models=read_models,
        vectors=active_model.vectors,
        settings=settings,
        llm=LlmClient(settings.llm, settings.storage.data) if settings.llm.llm else None,
        screen=partial(_screened, settings.privacy),
    )


def _screened(privacy: PrivacySettings, namespace: str, drafts: Sequence[EventDraft]) -> list[EventDraft]:
    return with_quarantine(screen_all(drafts, privacy.policies(namespace)))


def _open_trace_store(settings: Settings, log: EventLog) -> TraceStore:
    storage = settings.storage
    return TraceStore(
        storage.data / "traces",
        bytes_max=storage.traces_bytes_max,
        days_max=storage.traces_days_max,
        erased_us=partial(last_erasure_us, log),
    )


def _open_eraser(job_context: JobContext, listeners: ErasureListeners, recall_echoes: RecallEchoes) -> Eraser:
    """Notify all parts with words of events about erasures; complete an interrupted erasure, if any."""
    purges = job_context.read_models.purges
    purges.listen(folder=listeners.purge, process=recall_echoes.drop)
    if job_context.llm is not None:
        purges.listen(process=job_context.llm.forget_answers)
    traces = job_context.read_models.data / "traces"
    eraser = Eraser(job_context.log, job_context.read_models, partial(traces_of, traces))
    # Before the first reader: an erasure that was interrupted, or that a restored log has lost.
    eraser.resume()
    return eraser


def _open_active_model(settings: Settings, read_models: ReadModels, indexes: IndexCache) -> ActiveModel:
    embedding = settings.embedding
    return ActiveModel(
        settings.storage.data,
        read_models,
        embedding.embedding_model,
        runtime=embedding.embedding_runtime,
        device=embedding.embedding_device,
        shared=_open_shared_vectors(settings, read_models.log),
        indexes=indexes,
    )


def _open_shared_vectors(settings: Settings, log: EventLog) -> SharedVectors | None:
    """Return the vectors that the machines of a log in PostgreSQL share; None for a log in SQLite."""
    url = settings.storage.log_url
    if sqlite_path(url) is not None:
        return None
    # Imported here: it loads a driver that most installations do not use.
    from recollect.projections.embeddings.shared_vectors import SharedVectors  # noqa: PLC0415

    limits = settings.embedding
    return SharedVectors(
        url, log.keys, bytes_max=limits.shared_vectors_bytes_max, days_max=limits.shared_vectors_days_max
    )


def _open_retriever(
    settings: Settings,
    read_models: ReadModels,
    history: History,
    active_model: ActiveModel,
    reranker: Reranker | None,
    clock: Callable[[], datetime],
    local_catch_up: LocalCatchUp | None,
    indexes: IndexCache,
) -> Retriever:
    retrieval = settings.retrieval
    return Retriever(
        read_models,
        history,
        active_model.vectors,
        settings=retrieval,
        budget_ms=retrieval.retrieval_budget_ms,
        privacy=settings.privacy,
        fence_key=read_fence_key(settings.storage.data),
        reranker=reranker,
        clock=clock,
        on_degraded=None if local_catch_up is None else local_catch_up.request,
        indexes=indexes,
    )


def _start_workers(
    job_context: JobContext,
    run_store: RunStore,
    backlog: BacklogMonitor,
    settings: Settings,
    *,
    work: bool,
    schedule: bool | None,
) -> Workers:
    if work:
        job_context.vectors().embedder.start()
    # Imported here, while the model loads: what only reads needs neither jobs nor their libraries.
    from recollect.jobs.queue.workers import Workers  # noqa: PLC0415

    started = Workers(
        job_context,
        run_store,
        backlog,
        work=work,
        schedule=work if schedule is None else schedule,
        open_parts=partial(open_parts, settings, workers=False),
    )
    job_context.log.on_append(started.notify)
    started.start()
    return started
