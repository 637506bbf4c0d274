"""Memory rereading: the method of `Recollect` that reads a namespace again with a language model."""

from __future__ import annotations

from contextlib import closing

from recollect.api.assembly.memory_parts import MemoryParts
from recollect.events.limits import check_namespace
from recollect.events.progress import OnPartProgress, no_progress
from recollect.jobs.llm.model_client import LlmClient
from recollect.jobs.llm_reading.llm_rereading import Rereading, read_again


class MemoryRereading:
    """Reads again what a language model has read."""

    parts: MemoryParts

    def read_again(
        self,
        namespace: str,
        *,
        model: str | None = None,
        switch: bool = False,
        on_progress: OnPartProgress = no_progress,
    ) -> Rereading:
        """Read all messages of a namespace again with a language model; return the difference from earlier readings.

        What rules or users stated stays, and what users corrected, pinned, ended or forgot. One request for eight
        messages is sent; a reading that fails or is cancelled leaves nothing.

        Parameters:
            model: such as `openai:gpt-5-mini`, or a name on the server of `RECOLLECT_LLM_BASE_URL`; that of
                `RECOLLECT_LLM` when None.
            switch: append the events that make it the current reading; otherwise nothing is stored.
            on_progress: called with ("messages", messages read, None) after each request.

        Raises:
            InvalidInput: no model is configured, or it gave no answer.
        """
        check_namespace(namespace)
        settings = self.parts.settings.llm
        configured = self.parts.job_context.llm
        if configured is not None and model in (None, configured.name):
            return read_again(self.parts.job_context, configured, namespace, switch=switch, on_progress=on_progress)
        named = settings.model_copy(update={} if model is None else {"llm": model})
        with closing(LlmClient(named, self.parts.settings.storage.data)) as llm:
            return read_again(self.parts.job_context, llm, namespace, switch=switch, on_progress=on_progress)
