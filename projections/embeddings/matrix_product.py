"""Matrix product: multiplies in blocks that the linear algebra library computes on one thread.

From 460,800 multiplications on, or 262,144 where a matrix is not in the order of its rows, OpenBLAS wakes a thread for
every core, and these wait in a busy loop for 25 to 100 ms after the product. The products of a retrieval are so small
that this takes longer than the product itself, and the cores are lost to other retrievals: 31 ms of processor time a
retrieval instead of 9 on two cores (2026-11-22).
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

#: Multiplications of one block, for which OpenBLAS uses one thread in either order.
_BLOCK_PRODUCTS_MAX = 1 << 18
_BLOCK_ROWS_MIN = 8


def block_rows(shared: int, columns: int) -> int:
    """Return the rows of one block of a product with `columns` columns, over `shared` multiplications a number."""
    return max(_BLOCK_ROWS_MIN, _BLOCK_PRODUCTS_MAX // max(1, shared * columns))


def product(left: NDArray[np.float32], right: NDArray[np.float32]) -> NDArray[np.float32]:
    """Return `left @ right`.

    Parameters:
        left: shape (rows, n), or stacked (matrices, rows, n).
        right: shape (n,) or (n, columns), or stacked (matrices, n, columns).
    """
    rows, count = block_rows(left.shape[-1], right.shape[-1] if right.ndim > 1 else 1), left.shape[-2]
    if count <= rows:
        return left @ right
    blocks = [left[..., start : start + rows, :] @ right for start in range(0, count, rows)]
    return np.concatenate(blocks, axis=-2 if right.ndim > 1 else -1)
