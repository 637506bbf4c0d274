"""Pydantic AI capability: `MemoryCapability` gives an agent its memories as instructions, and records its runs."""

from __future__ import annotations

import copy
from collections.abc import Callable, Mapping, Sequence
from typing import Any, Unpack

from pydantic_ai.agent import AgentRunResult
from pydantic_ai.capabilities import AbstractCapability
from pydantic_ai.messages import TextContent, UserContent
from pydantic_ai.tools import RunContext
from pydantic_ai.toolsets import FunctionToolset
from pydantic_core import to_json

from recollect.api.integrations.conversation_scope import check_session
from recollect.api.integrations.threaded_memory import asynchronous
from recollect.api.memory.memory_protocols import AsyncMemory, SyncMemory, check_memory
from recollect.api.memory.turn import AsyncTurn, TurnFields
from recollect.api.retrieval.contract.options import ConversationOptions, check_options
from recollect.events.limits import check_namespace

#: A text, or a function of the run that returns it, such as ``lambda ctx: ctx.deps.user_id``.
OfRun = str | Callable[[RunContext[Any]], str]


class MemoryCapability(AbstractCapability[Any]):
    """Memory for an agent: ``Agent(model, capabilities=[MemoryCapability(memory, namespace="ann")])``.

    Before the first request of a run, the prompt is recorded and the memories for it become instructions; the output is
    recorded when the run ends. A failed run leaves the prompt alone. When the memory fails, the run goes on without it.

    Parameters:
        memory: a `Recollect`, an `AsyncRecollect` or a client of a server.
        namespace: whose memory it is; a function of the run for agents of many users.
        session: the conversation; that of the messages of the run (`conversation_id`) when None.
        tools: whether the agent has a tool, `search_memory`, besides.
        user_name: the name of the user.
        assistant_name: the name of the agent.
        metadata: labels of the prompt and of the output.
        options: other fields of `RetrieveRequest`, such as ``budget_tokens=800``.

    Raises:
        InvalidInput: the memory, an option or the session is wrong. InvalidNamespace: the name.
    """

    def __init__(
        self,
        memory: SyncMemory | AsyncMemory,
        *,
        namespace: OfRun,
        session: OfRun | None = None,
        tools: bool = False,
        user_name: str | None = None,
        assistant_name: str | None = None,
        metadata: Mapping[str, Any] | None = None,
        **options: Unpack[ConversationOptions],
    ) -> None:
        check_options(options, ("namespace", "session", "tools", "user_name", "assistant_name", "metadata"))
        check_memory(memory, SyncMemory)
        if not callable(namespace):
            check_namespace(namespace)
        if not callable(session):
            check_session(session)
        self._memory = asynchronous(memory)
        self._namespace = namespace
        self._session = session
        self._has_tools = tools
        self._fields = TurnFields(user_name=user_name, assistant_name=assistant_name, metadata=metadata) | TurnFields(
            **options
        )
        #: The turn of the run; None in the capability of the agent, and in a run without a prompt.
        self._turn: AsyncTurn | None = None

    async def for_run(self, ctx: RunContext[Any]) -> MemoryCapability:
        """Return the capability of one run."""
        run = copy.copy(self)
        text = prompt_text(ctx.prompt)
        if text:
            session = ctx.conversation_id if self._session is None else _of_run(self._session, ctx)
            run._turn = AsyncTurn(
                self._memory,
                _of_run(self._namespace, ctx),
                session,
                text,
                **self._fields,
            )
        return run

    async def wrap_run(
        self,
        ctx: RunContext[Any],  # noqa: ARG002
        *,
        handler: Callable[[], Any],
    ) -> AgentRunResult[Any]:
        """Run the agent within its turn."""
        if self._turn is None:
            return await handler()
        async with self._turn as turn:
            result: AgentRunResult[Any] = await handler()
            output: object = result.output
            turn.reply = output if isinstance(output, str) else to_json(output, fallback=str).decode()
        return result

    def get_instructions(self) -> Callable[[RunContext[Any]], str | None]:
        """Return the function that returns the context."""

        def recalled(_: RunContext[Any]) -> str | None:
            # A graph that is driven by hand may ask for instructions outside the turn.
            retrieval = None if self._turn is None else self._turn.retrieval
            return None if retrieval is None else retrieval.context or None

        return recalled

    def get_toolset(self) -> FunctionToolset[Any] | None:
        """Return the tool `search_memory`, if the agent is to have it."""
        if not self._has_tools:
            return None

        async def search_memory(ctx: RunContext[Any], query: str) -> str:
            """Use this when the answer depends on an earlier conversation and is not in the instructions.

            Args:
                query: a question in plain words, such as "Where does Ann's sister live?".
            """
            result = await self._memory.retrieve(_of_run(self._namespace, ctx), query)
            return result.context or "The memory has nothing about this."

        toolset: FunctionToolset[Any] = FunctionToolset()
        toolset.add_function(search_memory, takes_ctx=True)
        return toolset


def prompt_text(prompt: str | Sequence[UserContent] | None) -> str:
    """Return the text of a prompt; empty without one."""
    if prompt is None or isinstance(prompt, str):
        return prompt or ""
    texts = (part.content if isinstance(part, TextContent) else part for part in prompt)
    return "\n".join(text for text in texts if isinstance(text, str))


def _of_run(value: OfRun, ctx: RunContext[Any]) -> str:
    return value if isinstance(value, str) else value(ctx)
