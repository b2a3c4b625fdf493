"""What frozen layers give for a training document never changes: read it once, keep it on disk, and learn from there.

Kept is as little as the rest of the network needs: a vector a document where nothing of the encoder learns and the heads
read one; a vector a token where they read them all, or where layers above still learn. Training is handed pieces whose
tokens are the numbers of kept rows, and knows nothing of all this: batches and what is learnt are the same but for rounding.
"""

import hashlib
import time
import zlib
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, cast

import numpy as np
import torch

from xbert.artifacts.arrays import Array
from xbert.artifacts.store import PIECES
from xbert.stages.base import Work
from xbert.stages.neural.devices import Arithmetic
from xbert.stages.neural.frozen_parts import NotKept, Part, part_of
from xbert.stages.neural.names import BF16
from xbert.stages.neural.network import Network
from xbert.stages.neural.ranks import Ranks
from xbert.stages.neural.row_file import RowFile
from xbert.stages.neural.states import Batch, States, make_batch
from xbert.stages.neural.tokens import Pieces

if TYPE_CHECKING:
    from xbert.stages.neural.encoders.transformer import Transformer

_NAME = "frozen"
_BLOCK = 65_536  # tokens of a block: lost at most when interrupted
_TOKENS = 8192  # of a batch
_PROBE = 8  # documents on which both ways are compared
_NEAR, _NEAR_BF16 = 0.01, 0.05  # how far apart they may be, relative: half precision costs about 0.001
_SPOILT = 2**40  # in place of a checksum: a block that half precision cannot hold
_SECONDS_BETWEEN = 60.0
_ODD = (AttributeError, IndexError, KeyError, RuntimeError, TypeError, ValueError)  # what an unforeseen architecture may cause


@contextmanager
def remembered(
    network: Network, pieces: Pieces, device: torch.device, arithmetic: Arithmetic, work: Work, ranks: Ranks
) -> Iterator[Pieces]:
    """Inside, what learns is fed with what the frozen layers once made of the pieces; yields what stands for the pieces."""
    encoder = cast("Transformer", network.encoder)
    network.eval()
    try:
        reader = _Reader(_agreed_part(network, pieces, device, arithmetic, ranks), pieces, device, arithmetic)
        memory = reader.memory(_fill(reader, work, ranks))
    except NotKept as why:
        work.say(f"the frozen layers are read anew in every epoch: {why}")
        yield pieces
        return
    encoder.remembered = memory
    network.train()  # an answering network reads tokens, a learning one rows
    try:
        yield reader.rows
    finally:
        encoder.remembered = None


@dataclass(frozen=True)
class _Rows(Pieces):
    """Rows in place of tokens; as long as the documents they stand for, so that batches are made up as of those."""

    longest: Array

    def lengths(self) -> Array:
        return self.longest

    @classmethod
    def of(cls, pieces: Pieces, per_token: bool) -> "_Rows":
        n_rows = len(pieces.ids) if per_token else pieces.n_docs
        ids = np.arange(n_rows, dtype=np.int32 if n_rows < 2**31 else np.int64)
        if per_token:
            return cls(pieces.indptr, ids, pieces.first, pieces.lengths())
        each = np.arange(n_rows + 1)
        return cls(each, ids, each, pieces.lengths())


@dataclass(frozen=True)
class Memory:
    """Turns a batch of row numbers into the encoder's states."""

    part: Part
    tokens: Array  # of every row
    kept: Array  # (rows, H)

    def __call__(self, batch: Batch) -> States:
        """The states, from what was kept."""
        filled = batch.mask.cpu().numpy() > 0
        rows = np.where(filled, batch.ids.cpu().numpy(), 0)  # padding is masked everywhere: any row will do there
        given = torch.from_numpy(self.kept[rows]).to(batch.ids.device, non_blocking=True)
        if self.part.per_token:
            ids = np.where(filled, self.tokens[rows], self.part.encoder.tokenizer.padding).astype(np.int64)
            batch = replace(batch, ids=torch.from_numpy(ids).to(batch.ids.device, non_blocking=True))
        return self.part.go_on(batch, given)


class _Reader:
    """Reads documents with the frozen part."""

    def __init__(self, part: Part, pieces: Pieces, device: torch.device, arithmetic: Arithmetic) -> None:
        self.part, self.pieces, self.device, self.arithmetic = part, pieces, device, arithmetic
        self.rows = _Rows.of(pieces, part.per_token)
        self.ends = self.rows.indptr[self.rows.first]  # where each document's rows begin
        self.width = part.encoder.width
        self._padding = part.encoder.tokenizer.padding

    def memory(self, kept: Array) -> Memory:
        """The memory of these pieces."""
        return Memory(self.part, self.pieces.ids, kept)

    def read(self, start: int, stop: int) -> Array:
        """The rows of the documents from `start` to `stop`, in batches of similar length."""
        found = np.empty((self.ends[stop] - self.ends[start], self.width), self.part.dtype)
        lengths = self.rows.lengths()[start:stop] * np.diff(self.pieces.first[start : stop + 1])
        order = start + np.argsort(-lengths, kind="stable")
        size = max(_TOKENS // int(lengths.max(initial=1)), 1)
        for some in (order[at : at + size] for at in range(0, len(order), size)):
            batch = make_batch(self.pieces, some, self._padding, self.device)
            places = make_batch(self.rows, some, 0, torch.device("cpu"))
            with torch.inference_mode(), self.arithmetic.context(self.device):
                given = self.part.give(batch).to("cpu", torch.from_numpy(found).dtype)
            filled = places.mask > 0
            found[places.ids[filled].numpy() - self.ends[start]] = given[filled].numpy()
        return found

    def blocks(self) -> Array:
        """The documents at which blocks of about as many tokens begin, and the end."""
        before = self.pieces.indptr[self.pieces.first[:-1]]
        return np.append(np.flatnonzero(np.diff(before // _BLOCK, prepend=-1)), self.pieces.n_docs)

    def distance(self) -> float:
        """How far its states are from those of the usual way, relative: each document read alone, then all at once."""
        kept = np.concatenate([self.read(at, at + 1) for at in range(self.pieces.n_docs)])
        every = np.arange(self.pieces.n_docs)
        rows = make_batch(self.rows, every, self._padding, self.device)
        with torch.inference_mode(), self.arithmetic.context(self.device):
            found = self.memory(kept)(rows).last
            wanted = self.part.whole(make_batch(self.pieces, every, self._padding, self.device))
        found, wanted = found[rows.mask > 0].double(), wanted[rows.mask > 0].double()
        return float((found - wanted).norm() / wanted.norm())


def _agreed_part(network: Network, pieces: Pieces, device: torch.device, arithmetic: Arithmetic, ranks: Ranks) -> Part:
    """What can be kept, found to give the same as the usual way, in all processes."""
    why, part = "", None
    try:
        part = part_of(network, device, arithmetic)
        spread = np.linspace(0, pieces.n_docs - 1, min(_PROBE, pieces.n_docs)).astype(np.int64)
        some = np.argsort(pieces.lengths(), kind="stable")[spread]  # short and long: what padding does must show
        distance = _Reader(part, pieces.take(some), device, arithmetic).distance()
        if not distance < (_NEAR_BF16 if arithmetic.precision == BF16 else _NEAR):
            why = f"started from what they gave, the rest of the encoder comes to something else (by {distance:.0%})"
    except NotKept as error:
        why = str(error)
    except _ODD as error:
        why = f"{type(network.encoder).__name__} cannot start from what they gave ({type(error).__name__}: {error})"
    if ranks.total(float(bool(why))) or part is None:
        raise NotKept(why or "another process cannot start from what they gave")
    return part


def _fill(reader: _Reader, work: Work, ranks: Ranks) -> Array:
    """All rows: those an interrupted run left, and the missing ones, each process reading its share of the blocks."""
    path = Path(ranks.tell(str(work.folder / PIECES / f"{_NAME}.npy")))
    file = RowFile(path, len(reader.rows.ids), reader.width, reader.part.dtype)
    key, blocks = _key(reader), reader.blocks()
    sums = _begin(file, key, blocks, reader.ends, work, ranks)
    missing, saved = np.flatnonzero(sums < 0), time.monotonic()
    n_docs = np.diff(blocks)
    with work.progress("reading with the frozen layers, once", reader.pieces.n_docs, "documents") as bar:
        bar.advance(int(n_docs.sum() - n_docs[missing].sum()))
        for group in (missing[at : at + ranks.world] for at in range(0, len(missing), ranks.world)):
            own = [_make_block(reader, file, *blocks[block : block + 2]) for block in group[ranks.rank : ranks.rank + 1]]
            for place, block in enumerate(group):
                sums[block] = int(ranks.total(float(own[0]) if place == ranks.rank else 0.0))
            if (sums[group] >= _SPOILT).any():
                path.unlink(missing_ok=True)
                raise NotKept("half precision cannot hold what they give")
            bar.advance(int(n_docs[group].sum()))
            if time.monotonic() - saved > _SECONDS_BETWEEN or group[-1] == missing[-1]:
                saved = time.monotonic()
                if ranks.leads:
                    work.keep(_NAME, {"key": key, "sums": sums})
    return file.open()


def _begin(file: RowFile, key: Array, blocks: Array, ends: Array, work: Work, ranks: Ranks) -> Array:
    """The file, and the checksums of the blocks that are whole in it; -1 for those to be read."""
    sums, why = np.full(len(blocks) - 1, -1, np.int64), ""
    if ranks.leads:
        try:
            file.path.parent.mkdir(parents=True, exist_ok=True)
            file.make()
        except NotKept as error:
            why = str(error)
        found = work.recall(_NAME) or {}
        if not why and np.array_equal(found.get("key", ()), key) and len(found["sums"]) == len(sums):
            spans = zip(ends[blocks[:-1]], ends[blocks[1:]], strict=True)
            there = np.array([file.checksum(int(first), int(last)) for first, last in spans], np.int64)
            sums = np.where(there == found["sums"], there, -1)
    why, told = ranks.tell([why, sums.tolist()])
    if not why and ranks.total(float(file.path.exists())) < ranks.world:
        why = f"not all processes can read {file.path}"
    if why:
        raise NotKept(why)
    return np.array(told, np.int64)


def _make_block(reader: _Reader, file: RowFile, start: int, stop: int) -> int:
    """Read and write the rows of some documents; gives their checksum."""
    rows = reader.read(start, stop)
    if not np.isfinite(rows).all():
        return _SPOILT
    file.write(int(reader.ends[start]), rows)
    return zlib.crc32(rows.view(np.uint8).data)


def _key(reader: _Reader) -> Array:
    """What the rows depend on: the text as tokens, the frozen weights, and how they are multiplied."""
    kind = f"{type(reader.part).__name__}/{getattr(reader.part, 'pooling', '')}"
    digest = hashlib.sha256(f"{kind}/{reader.arithmetic}".encode())
    for array in (reader.pieces.indptr, reader.pieces.ids, reader.pieces.first):
        digest.update(np.ascontiguousarray(array).data)
    for name, parameter in reader.part.encoder.named_parameters():
        if not parameter.requires_grad:
            digest.update(name.encode())
            digest.update(parameter.detach().cpu().contiguous().view(-1).numpy().data)
    return np.frombuffer(digest.digest(), np.uint8)
