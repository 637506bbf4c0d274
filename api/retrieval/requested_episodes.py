"""Requested episodes: the mask of the episodes that the filters of a request let pass."""

from __future__ import annotations

import numpy as np

from recollect.api.retrieval.ranking.candidates import Mask
from recollect.api.retrieval.result_items import less_trusted_versions
from recollect.api.retrieval.search.search_context import SearchContext
from recollect.events.envelope import microseconds


def requested_episodes(context: SearchContext, *, summaries: bool = False) -> Mask:
    """Return the mask of the episodes within the times, session, metadata and trust of a request, shape (episodes,).

    Parameters:
        summaries: whether to compare the metadata of the sources of summaries; summaries have none of their own.
    """
    episodes, request = context.episodes, context.request
    mask = np.ones(len(episodes), np.bool_)
    for selection in request.metadata_selections():
        versions = context.snapshot.pages.episodes_with_metadata(selection, summaries=summaries)
        labelled = np.zeros(len(episodes), np.bool_)
        labelled[episodes.rows_of(np.array(versions, np.int64))] = True
        mask &= labelled
    if request.since is not None:
        mask &= episodes.occurred_at_us >= microseconds(request.since)
    if request.until is not None:
        mask &= episodes.occurred_at_us < microseconds(request.until)
    if not summaries and context.hidden.versions:
        # A summary of hidden messages and of others leads to the others, in whose place it is never shown.
        mask[episodes.rows_of(np.array(context.hidden.versions, np.int64))] = False
    if request.min_trust:
        mask[episodes.rows_of(np.array(less_trusted_versions(context), np.int64))] = False
    if request.session_id is not None and request.mode == "active":
        session_indexes = [index for index, name in enumerate(episodes.session_ids) if name == request.session_id]
        mask &= np.isin(episodes.sessions, session_indexes)
    return mask
