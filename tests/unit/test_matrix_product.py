"""Matrix products: what they return, and that they leave the other cores to others."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from recollect.projections.embeddings.matrix_product import product

_sizes = st.integers(1, 300)
#: Prints the processor ticks of the threads that this program has not started, for the products of many queries.
_PROGRAM = """
import os, time
import numpy as np
from recollect.api.retrieval.ranking import choice_inputs as names
from recollect.api.retrieval.ranking.choice_model import chances
from recollect.jobs.extraction.statement_reader import reader_weights

def ticks():
    stats = [open(f"/proc/self/task/{thread}/stat").read().rpartition(")")[2].split()[11:13]
             for thread in os.listdir("/proc/self/task") if int(thread) != os.getpid()]
    return sum(int(number) for of_thread in stats for number in of_thread)

before = ticks()
count = names.CANDIDATES_MAX
features = np.zeros((count, len(names.CANDIDATE_FEATURES)), np.float32)
inputs = names.ChoiceInputs(np.arange(count), features, np.zeros(len(names.QUERY_FEATURES), np.float32))
reader = reader_weights()[1]
vectors = [np.zeros(768, np.float32)] * 40
for _ in range(20):
    time.sleep(0.05)
    chances(inputs)
    reader.probabilities([[1]] * len(vectors), vectors)
print(ticks() - before)
"""


@given(rows=_sizes, shared=_sizes, columns=_sizes, stacked=st.booleans())
def test_a_product_in_blocks_is_the_product(rows: int, shared: int, columns: int, stacked: bool) -> None:
    rng = np.random.default_rng(rows)
    matrices = (2,) if stacked else ()
    left = rng.standard_normal((*matrices, rows, shared)).astype(np.float32)
    right = rng.standard_normal((*matrices, shared, columns)).astype(np.float32)
    np.testing.assert_allclose(product(left, right), left @ right, atol=1e-3)
    if not stacked:
        np.testing.assert_allclose(product(left, right[:, 0]), left @ right[:, 0], atol=1e-3)


@pytest.mark.skipif(not Path("/proc/self/task").exists(), reason="the processor time of threads is read from /proc")
def test_the_products_of_queries_and_of_messages_wake_no_threads() -> None:
    # A woken thread waits in a busy loop of 30 ms or more: in plain products, 20 times 3 ticks or more.
    single = {"OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS"}
    environment = {name: value for name, value in os.environ.items() if name not in single}
    done = subprocess.run([sys.executable, "-c", _PROGRAM], check=True, capture_output=True, text=True, env=environment)
    assert int(done.stdout) < 10
