"""Webhook commands: add, list, remove and retry the webhooks of a data folder."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated

import typer
from msgspec.structs import replace

from recollect.api.cli.follow_commands import KnowledgeOption, TypesOption
from recollect.api.cli.session import open_cli_memory, record_command
from recollect.api.cli.terminal import echo
from recollect.events.counted_nouns import counted
from recollect.events.errors import InvalidInput

if TYPE_CHECKING:
    from recollect.jobs.following.consumers import Consumer
    from recollect.jobs.following.webhook_store import Webhook
    from recollect.jobs.queue.run_store import RunStore

app = typer.Typer(help="Webhooks: programs that get the events of a namespace over HTTP.", no_args_is_help=True)

_Name = Annotated[str, typer.Argument(help="The name of a webhook.")]


@app.command()
def add(
    context: typer.Context,
    namespace: Annotated[str, typer.Argument(help="The namespace: 1 to 200 letters, digits and . _ : @ -")],
    url: Annotated[str, typer.Argument(help="An address of http or https, which gets one POST for each event.")],
    name: Annotated[str | None, typer.Option(help="Its name.", show_default="a random one")] = None,
    types: TypesOption = None,
    knowledge: KnowledgeOption = False,
    from_start: Annotated[
        bool, typer.Option("--from-start", help="Begin with the first event, and not with the next one.")
    ] = False,
    allow_private: Annotated[
        bool, typer.Option("--allow-private", help="Let its address be one of this machine or of a private network.")
    ] = False,
) -> None:
    """Add a webhook, and print the secret that signs what it gets; it is not shown again.

    A server or a worker sends the events in order, each at least once.
    """
    from recollect.events.storage.namespace_folder import folder_name  # noqa: PLC0415
    from recollect.jobs.following.cursor import Cursor  # noqa: PLC0415
    from recollect.jobs.following.webhook_store import WebhookStore  # noqa: PLC0415

    with open_cli_memory(context.obj) as memory:
        parts = memory.parts
        position = 0 if from_start else parts.log.head(namespace).version
        store = WebhookStore(parts.settings.storage.data)
        webhook = store.add(
            namespace, url, name=name, types=tuple(types or ()), knowledge=knowledge, allows_private=allow_private
        )
        parts.run_store.set_cursor(f"webhook {webhook.name}", folder_name(namespace), Cursor(position=position))
    record_command(context, "export")
    echo(webhook.name)
    echo(webhook.secret)


@app.command("list")
def list_webhooks(context: typer.Context) -> None:
    """List the webhooks, how far they are, and why one is parked."""
    from recollect.events.storage.namespace_folder import folder_name  # noqa: PLC0415
    from recollect.jobs.following.webhook_store import WebhookStore  # noqa: PLC0415

    with open_cli_memory(context.obj) as memory:
        store = memory.parts.run_store
        errors = {letter.id: letter.error.strip().splitlines()[-1] for letter in store.dead_letters()}
        for webhook in WebhookStore(memory.parts.settings.storage.data).webhooks().values():
            consumer, key = _consumer(webhook), folder_name(webhook.namespace)
            cursor = store.cursor(consumer.name, key)
            head = memory.parts.log.head(webhook.namespace).version
            position = 0 if cursor is None else cursor.position
            state = f"at {position} of {head}"
            if cursor is not None and consumer.is_parked(cursor):
                state += f", parked: {errors.get(consumer.letter_id(key), 'it failed too often')}"
            elif cursor is not None and cursor.failures:
                state += f", {counted(cursor.failures, 'failure')}"
            echo(f"{webhook.name}: {webhook.namespace} -> {webhook.url}, {state}")


@app.command()
def remove(context: typer.Context, name: _Name) -> None:
    """Remove a webhook; nothing more is sent to it."""
    from recollect.events.storage.namespace_folder import folder_name  # noqa: PLC0415
    from recollect.jobs.following.webhook_store import WebhookStore  # noqa: PLC0415

    with open_cli_memory(context.obj) as memory:
        webhook = WebhookStore(memory.parts.settings.storage.data).remove(name)
        _forget_failure(memory.parts.run_store, webhook)
        memory.parts.run_store.set_cursor(_consumer(webhook).name, folder_name(webhook.namespace), None)
    echo(f"{name} is removed")


@app.command()
def retry(context: typer.Context, name: _Name) -> None:
    """Let a parked webhook go on where it stopped; a server or a worker begins within its next sweep, 30 seconds."""
    from recollect.events.storage.namespace_folder import folder_name  # noqa: PLC0415
    from recollect.jobs.following.feed import is_rewound  # noqa: PLC0415
    from recollect.jobs.following.webhook_store import WebhookStore  # noqa: PLC0415

    with open_cli_memory(context.obj) as memory:
        webhook = WebhookStore(memory.parts.settings.storage.data).get(name)
        store, consumer, key = memory.parts.run_store, _consumer(webhook), folder_name(webhook.namespace)
        cursor = store.cursor(consumer.name, key)
        if cursor is None or not cursor.failures:
            raise InvalidInput("has no failure, so there is nothing to try again", field="name")
        head = memory.parts.log.head(webhook.namespace).version
        if is_rewound(memory.parts.log, webhook.namespace, cursor.position, cursor.hash):
            cursor = replace(cursor, position=head, hash="")
        store.set_cursor(consumer.name, key, replace(cursor, failures=0, retry_at_us=0))
        _forget_failure(store, webhook)
    echo(f"{name} goes on after {cursor.position}")


def _consumer(webhook: Webhook) -> Consumer:
    from recollect.jobs.following.webhook_delivery import WebhookSender  # noqa: PLC0415

    return WebhookSender().consumer(webhook)


def _forget_failure(store: RunStore, webhook: Webhook) -> None:
    """Remove the dead letter of a webhook."""
    from recollect.events.storage.namespace_folder import folder_name  # noqa: PLC0415

    store.pop_dead_letter(_consumer(webhook).letter_id(folder_name(webhook.namespace)))
