"""Settings page: every ``RECOLLECT_*`` variable by group, from the settings' classes and their comments."""

from __future__ import annotations

import re

from pydantic import BaseModel
from schema_tables import Field, entry, fields_of, first_paragraph

from recollect.api.settings import setting_groups


def render() -> str:
    """Return a section for each group, with a list of its variables."""
    sections = [
        f"## {name.replace('_', ' ').capitalize()}\n\n{first_paragraph(group)}\n\n{_list(group)}"
        for name, group in setting_groups().items()
    ]
    return "\n\n".join(sections)


def _list(group: type[BaseModel]) -> str:
    return "\n".join(
        entry(f"`RECOLLECT_{field.name.upper()}`", _details(field), field.description) for field in fields_of(group)
    )


def _details(field: Field) -> str:
    # The description names the fields of an object. In the environment a text has no quotes, unlike those of a list.
    type = re.sub(r"\[\w+\]\(#\w+\)", "object", field.type).replace("short string", "string")
    default = field.default.replace('"', "") if field.default.startswith('`"') else field.default
    return f"{type}, default {default}" if default else type
