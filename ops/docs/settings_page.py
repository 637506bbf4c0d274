"""Settings page: every ``RECOLLECT_*`` variable by group, from the settings' classes and their comments."""

from __future__ import annotations

import re

from pydantic import BaseModel
from schema_tables import fields_of, first_paragraph, table

from recollect.api.settings import setting_groups


def render() -> str:
    """Return a section for each group, with a table of its variables."""
    sections = [
        f"## {name.replace('_', ' ').capitalize()}\n\n{first_paragraph(group)}\n\n{_table(group)}"
        for name, group in setting_groups().items()
    ]
    return "\n\n".join(sections)


def _table(group: type[BaseModel]) -> str:
    rows = [
        # In the environment a text has no quotes, unlike the texts of a list or an object.
        (f"`RECOLLECT_{field.name.upper()}`", _unquoted(field.default), _unlinked(field.type), field.description)
        for field in fields_of(group)
    ]
    return table(("variable", "default", "type", ""), rows)


def _unlinked(type: str) -> str:
    """Return the type of a field without links: the description names the fields of an object."""
    return re.sub(r"\[\w+\]\(#\w+\)", "object", type)


def _unquoted(default: str) -> str:
    plain = default.replace('"', "") if default.startswith('`"') else default
    return plain.replace("``", "") or "not set"
