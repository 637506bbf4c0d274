"""Palette PNG: pictures of a page with at most 256 colours, a third of the bytes of full colour."""

from __future__ import annotations

import base64
import struct
import zlib
from typing import Any

import numpy as np
from numpy.typing import NDArray
from playwright.sync_api import BrowserContext

_COLOURS_MAX = 256
#: Colours that differ less are one when the palette is chosen: 8 of 256 steps.
_BITS_DROPPED = 3
#: Decodes a PNG; returns its size and its pixels.
_PIXELS = """async (png) => {
    const image = await createImageBitmap(await (await fetch(`data:image/png;base64,${png}`)).blob());
    const canvas = new OffscreenCanvas(image.width, image.height);
    canvas.getContext('2d').drawImage(image, 0, 0);
    const data = canvas.getContext('2d').getImageData(0, 0, image.width, image.height).data;
    let text = '';
    for (let at = 0; at < data.length; at += 32768) text += String.fromCharCode(...data.subarray(at, at + 32768));
    return [image.width, image.height, btoa(text)];
}"""


def with_palette(context: BrowserContext, png: bytes) -> bytes:
    """Return a PNG with its most frequent colours; each other colour becomes the nearest of them."""
    page = context.new_page()
    width, height, text = page.evaluate(_PIXELS, base64.b64encode(png).decode())
    page.close()
    pixels = np.frombuffer(base64.b64decode(text), np.uint8).reshape(-1, 4)[:, :3].astype(np.int32)
    packed = pixels[:, 0] << 16 | pixels[:, 1] << 8 | pixels[:, 2]
    colours, inverse, counts = np.unique(packed, return_inverse=True, return_counts=True)
    channels = np.stack([colours >> 16, colours >> 8 & 255, colours & 255], axis=1)
    palette = _palette(channels, counts)
    indexes = _nearest(channels, palette)[inverse].astype(np.uint8).reshape(height, width)
    # Filter 0 on every line: neighbouring indexes are not alike, so differences of them compress worse.
    lines = np.hstack([np.zeros((height, 1), np.uint8), indexes])
    header = struct.pack(">IIBBBBB", width, height, 8, 3, 0, 0, 0)
    return b"".join(
        (
            b"\x89PNG\r\n\x1a\n",
            _chunk(b"IHDR", header),
            _chunk(b"PLTE", palette.astype(np.uint8).tobytes()),
            _chunk(b"IDAT", zlib.compress(lines.tobytes(), 9)),
            _chunk(b"IEND", b""),
        )
    )


def _palette(channels: NDArray[Any], counts: NDArray[Any]) -> NDArray[Any]:
    """Return up to 256 colours, shape (colours, 3): the most frequent one of each of the most frequent groups."""
    groups = channels >> _BITS_DROPPED
    keys = groups[:, 0] << 16 | groups[:, 1] << 8 | groups[:, 2]
    order = np.lexsort((-counts, keys))
    _, firsts = np.unique(keys[order], return_index=True)
    totals = np.add.reduceat(counts[order], firsts)
    chosen = order[firsts[np.argsort(-totals, kind="stable")[:_COLOURS_MAX]]]
    return channels[chosen]


def _nearest(channels: NDArray[Any], palette: NDArray[Any]) -> NDArray[Any]:
    """Return the index of the nearest colour of the palette for each colour."""
    distances = ((channels[:, None, :] - palette[None, :, :]) ** 2).sum(axis=2)
    return distances.argmin(axis=1)


def _chunk(kind: bytes, data: bytes) -> bytes:
    return struct.pack(">I", len(data)) + kind + data + struct.pack(">I", zlib.crc32(kind + data))
