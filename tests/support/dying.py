"""A program that dies at any write one chooses, and a disk that forgets what was not synced.

`python -c "from support.dying import main; main()"` reads orders, one JSON object a line, and forks a child for each:
it works through the steps of `script` with the product as it is, and dies at the write that the order names. Writes are
seen where they leave the product: a VFS around SQLite's own, and `os.link`, `rename`, `unlink` and `fsync`. What
DuckDB writes to a segment is seen when it is synced and renamed.

Two deaths: *kill -9* leaves every write but the last, which may be cut short. A *power cut* leaves what was synced; of
the writes since, any may be missing or torn at a sector, and the last changes to folders may be undone.
"""

from __future__ import annotations

import json
import os
import random
import stat
import subprocess
import sys
import traceback
from collections import defaultdict
from collections.abc import Callable, Generator
from contextlib import contextmanager
from functools import partial
from pathlib import Path
from typing import Any, Literal, NamedTuple

import apsw
from msgspec import Struct
from support.events import PAYLOADS, Event, message

from recollect.events.backends import sqlite_log
from recollect.events.backends.sqlite_log import SqliteLog
from recollect.events.envelope import EventDraft
from recollect.events.validation import drafts
from recollect.projections.read_models.read_models import ReadModels

Death = Literal["kill -9", "power cut"]
NAMESPACES = ("a", "b")

_KILLED = 137
_SECTOR = 512
#: WAL pages before SQLite copies them into the log's file: few, so that a short life sees it happen.
_CHECKPOINT_PAGES = 24
#: Events that are pruned in one transaction, and events in a segment: few, so that a short life sees several.
_PRUNED_EVENTS = 8
_SEGMENT_EVENTS = 16


class Step(NamedTuple):
    what: Literal["append", "fold", "replay", "seal", "prune", "reopen"]
    namespace: str = ""
    drafts: tuple[EventDraft, ...] = ()


def script(seed: int) -> list[Step]:
    """Return what the program does with its life. Ids are <step>.<place>.<size of the batch>."""
    chance = random.Random(seed)
    steps: list[Step] = []
    for number in range(14):
        namespace = chance.choice(NAMESPACES)
        size = chance.choice([1, 2, 5, 25])
        batch = [_event(chance) | {"id": f"{number}.{place}.{size}"} for place in range(size)]
        steps.append(Step("append", namespace, tuple(drafts(batch))))
        steps += [Step("fold", chance.choice(NAMESPACES)) for _ in range(chance.choice([0, 1, 1]))]
        if number % 5 == 3:
            steps.append(Step("replay", namespace))
        if number % 4 == 2:
            steps.append(Step("seal", namespace))
        if number % 8 == 6:
            steps.append(Step("prune", namespace))
        if number % 6 == 5:
            steps.append(Step("reopen"))
    return steps


def _event(chance: random.Random) -> Event:
    if chance.random() < 0.6:
        text = " ".join(chance.choices(["Ann", "Bob", "met", "tea", "São Paulo", "李明"], k=chance.choice([3, 80])))
        return message(text, session_id=chance.choice(["s", "t", None]))
    kind = chance.choice(sorted(PAYLOADS))
    return {"type": kind, "payload": PAYLOADS[kind], "session_id": "s"}


class Life(Struct, frozen=True):
    """How one child ended."""

    #: Whether it died; False when it came to the end of its steps.
    died: bool
    #: Step → versions, as they were acknowledged.
    told: dict[int, list[int]]
    #: Write points it came to.
    points: int


@contextmanager
def program() -> Generator[Callable[..., Life]]:
    """Start the program that forks the children, and lend a function that lets one of them live."""
    tests = str(Path(__file__).parents[1])
    process = subprocess.Popen(
        [sys.executable, "-c", "from support.dying import main; main()"],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
        env=os.environ | {"PYTHONPATH": os.pathsep.join([tests, os.environ.get("PYTHONPATH", "")])},
    )

    def live(folder: Path, *, seed: int, point: int = 0, death: Death = "kill -9", careless: bool = False) -> Life:
        assert process.stdin is not None
        assert process.stdout is not None
        order = {"folder": str(folder), "seed": seed, "point": point, "death": death, "careless": careless}
        process.stdin.write(json.dumps(order) + "\n")
        process.stdin.flush()
        answer = json.loads(process.stdout.readline())
        assert answer["status"] in (0, _KILLED), f"the child failed by itself, see above: {order}"
        told = {line["step"]: line["versions"] for line in answer["lines"] if "step" in line}
        points = [line["points"] for line in answer["lines"] if "points" in line]
        return Life(answer["status"] == _KILLED, told, points[0] if points else point)

    with process:
        try:
            yield live
        finally:
            process.kill()


def main() -> None:
    """Fork a child for each order on standard input; print how it ended and what it told."""
    for line in sys.stdin:
        order = json.loads(line)
        reading, writing = os.pipe()
        child = os.fork()
        if not child:
            _be_born(order, writing)
        os.close(writing)
        with os.fdopen(reading) as pipe:
            lines = [json.loads(told) for told in pipe]
        status = os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])
        print(json.dumps({"status": status, "lines": lines}), flush=True)


def _be_born(order: dict[str, Any], writing: int) -> None:
    try:
        folder = Path(order["folder"])
        graveyard = folder.parent / f"{folder.name}.graveyard"
        graveyard.mkdir()
        power_cut = order["death"] == "power cut"
        disk = Disk(order["point"], random.Random(f"{order['seed']} {order['point']}"), graveyard, power_cut=power_cut)
        vfs = _put_before(disk)
        if order["careless"]:
            # A bug in the product, which the simulation must find.
            setattr(sqlite_log, "connect", _connect_carelessly)  # noqa: B010

        def tell(**what: Any) -> None:
            os.write(writing, json.dumps(what).encode() + b"\n")

        _live(folder, script(order["seed"]), tell, disk)
        del vfs
        os._exit(0)
    except BaseException:
        traceback.print_exc(limit=-10)
        sys.stderr.flush()
        os._exit(1)


def _open_log(folder: Path) -> SqliteLog:
    return SqliteLog(
        folder / "log.db",
        segment_events_max=_SEGMENT_EVENTS,
        pruned_events=_PRUNED_EVENTS,
        checkpoint_pages=_CHECKPOINT_PAGES,
    )


def _live(folder: Path, steps: list[Step], tell: Callable[..., object], disk: Disk) -> None:
    log = _open_log(folder)
    models = ReadModels(folder, log)
    for number, step in enumerate(steps):
        match step.what:
            case "append":
                recorded = log.append(step.namespace, step.drafts)
                tell(step=number, versions=[one.version for one in recorded])
            case "fold":
                models.catch_up(step.namespace)
            case "replay":
                models.replay(step.namespace)
            case "seal":
                log.archive.seal(log, step.namespace)
            case "prune":
                log.prune(step.namespace)
                log.shrink()
            case "reopen":
                models.close()
                log.close()
                log = _open_log(folder)
                models = ReadModels(folder, log)
    disk.reach()
    tell(points=disk.points)


def _connect_carelessly(path: Path, **how: Any) -> apsw.Connection:
    """Connect as a log would that forgets to sync before it answers."""
    from recollect.events.storage.database import connect  # noqa: PLC0415

    how["synchronous"] = "NORMAL"
    return connect(path, **how)


class _Change(Struct, frozen=True):
    """A change to a file, or to a folder, that is not on disk for good yet."""

    undo: Callable[[], object]
    #: Make it again, or only a part of it.
    redo: Callable[[int], object]
    size: int


class Disk:
    """What is between the program and its files: counts writes, and ends the program at the chosen one.

    Parameters:
        point: the write to die at; 0 for none.
        chance: what of the last write, and of what was not synced, is left.
        graveyard: a folder on the same file system that keeps removed files, since a power cut may bring them back.
    """

    def __init__(self, point: int, chance: random.Random, graveyard: Path, *, power_cut: bool) -> None:
        self._point = point
        self._chance = chance
        self._graveyard = graveyard
        self._power_cut = power_cut
        self.points = 0
        #: By inode, since a file has two names while it is put in place. Never closed: that would end SQLite's locks.
        self._descriptors: dict[int, int] = {}
        self._unsynced: defaultdict[int, list[_Change]] = defaultdict(list)
        self._folders: list[_Change] = []

    def reach(self, last_write: Callable[[int], None] | None = None, size: int = 0) -> None:
        """Reach the next write point; die when it is the chosen one. `last_write` makes a part of the write."""
        self.points += 1
        if self.points != self._point:
            return
        if last_write is not None:
            last_write(self._chance.choice([0, size // 2, self._chance.randint(0, size)]))
        if self._power_cut:
            self._cut_power()
        os._exit(_KILLED)

    def opened(self, path: str) -> int:
        """Return the inode of a file that SQLite works with."""
        inode = os.stat(path).st_ino  # noqa: PTH116
        if inode not in self._descriptors and os.access(path, os.W_OK):
            self._descriptors[inode] = os.open(path, os.O_RDWR)
        return inode

    def write(self, inode: int, data: bytes, offset: int) -> None:
        def write_part(size: int) -> None:
            file = self._descriptors[inode]
            length = os.fstat(file).st_size
            before = os.pread(file, size, offset)

            def undo() -> None:
                os.pwrite(file, before, offset)
                os.ftruncate(file, length)

            if self._power_cut:
                change = _Change(undo, lambda part: os.pwrite(file, data[: min(part, size)], offset), size)
                self._unsynced[inode].append(change)
            os.pwrite(file, data[:size], offset)

        self.reach(write_part, len(data))
        write_part(len(data))

    def truncate(self, inode: int, length: int) -> None:
        self.reach()
        file = self._descriptors[inode]
        cut_off = os.pread(file, os.fstat(file).st_size, length)
        if self._power_cut:
            undo = partial(os.pwrite, file, cut_off, length)
            self._unsynced[inode].append(_Change(undo, lambda _: os.ftruncate(file, length), 0))
        os.ftruncate(file, length)

    def sync(self, inode: int, *, with_folder: bool = False) -> None:
        """Put a file on the disk for good. The real sync is left out: nobody cuts this machine's power."""
        self.reach()
        self._unsynced.pop(inode, None)
        if with_folder:
            self._folders.clear()

    def link(self, link: Callable[..., None], source: Path, target: Path) -> None:
        self.reach()
        link(source, target)
        self._folders.append(_Change(partial(_unlink, target), lambda _: None, 0))

    def rename(self, source: Path, target: Path) -> None:
        self.reach()
        before = None
        if self._power_cut and Path(target).exists():
            before = self._graveyard / str(self.points)
            _link(target, before)
        _rename(source, target)
        self._folders.append(_Change(partial(_rename_back, source, target, before), lambda _: None, 0))

    def unlink(self, unlink: Callable[..., None], path: Path | str) -> None:
        self.reach()
        if self._power_cut and Path(path).exists():
            grave = self._graveyard / str(self.points)
            _link(path, grave)
            self._folders.append(_Change(partial(_dig_up, grave, path), lambda _: None, 0))
        unlink(path)

    def _cut_power(self) -> None:
        """Leave on the disk what a power cut may leave: what was synced, and of the rest what chance wills."""
        for changes in self._unsynced.values():
            for change in reversed(changes):
                change.undo()
            fate = self._chance.choice(["nothing", "everything", "the first ones", "some", "some, torn"])
            until = self._chance.randint(0, len(changes))
            for number, change in enumerate(changes):
                if fate == "everything" or (fate == "the first ones" and number < until):
                    change.redo(change.size)
                elif fate.startswith("some") and self._chance.random() < 0.5:
                    torn = self._chance.randrange(0, change.size + 1, _SECTOR) if fate == "some, torn" else change.size
                    change.redo(torn)
        # File systems keep the order of changes to folders, so the last ones are missing.
        for change in reversed(self._folders[self._chance.randint(0, len(self._folders)) :]):
            change.undo()


#: What is under the disk.
_SYSTEM = apsw.vfs_names()[0]
_link, _rename, _unlink = os.link, os.rename, os.unlink


def _rename_back(source: Path, target: Path, before: Path | None) -> None:
    _rename(target, source)
    if before is not None:
        _link(before, target)


def _dig_up(grave: Path, path: Path | str) -> None:
    if Path(path).exists():
        _unlink(path)
    _link(grave, path)


class _File(apsw.VFSFile):
    def __init__(self, disk: Disk, name: str | apsw.URIFilename, flags: list[int]) -> None:
        super().__init__(_SYSTEM, name, flags)
        self._disk = disk
        self._inode = disk.opened(name if isinstance(name, str) else name.filename())
        # SQLite syncs the folder of a new WAL together with it, the first time.
        self._new_wal = bool(flags[0] & apsw.SQLITE_OPEN_WAL)

    def xWrite(self, data: Any, offset: int) -> None:  # noqa: N802
        self._disk.write(self._inode, bytes(data), offset)

    def xTruncate(self, newsize: int) -> None:  # noqa: N802
        self._disk.truncate(self._inode, newsize)

    def xSync(self, flags: int) -> None:  # noqa: N802
        self._disk.sync(self._inode, with_folder=self._new_wal)
        self._new_wal = False


class _Vfs(apsw.VFS):
    def __init__(self, disk: Disk) -> None:
        super().__init__("dying", _SYSTEM, makedefault=True)
        self._disk = disk

    def xOpen(self, name: str | apsw.URIFilename | None, flags: list[int]) -> apsw.VFSFile:  # noqa: N802
        return apsw.VFSFile(_SYSTEM, name, flags) if name is None else _File(self._disk, name, flags)

    def xDelete(self, filename: str, syncdir: bool) -> None:  # noqa: N802
        delete = super().xDelete

        def unlink(path: Path | str) -> None:
            delete(str(path), syncdir)

        self._disk.unlink(unlink, filename)


def _put_before(disk: Disk) -> _Vfs:
    """Send everything that this process writes through `disk`."""

    def link(source: Path, target: Path, **_: Any) -> None:
        disk.link(_link, source, target)

    def unlink(path: Path, **_: Any) -> None:
        disk.unlink(_unlink, path)

    def fsync(descriptor: int) -> None:
        status = os.fstat(descriptor)
        disk.sync(status.st_ino, with_folder=stat.S_ISDIR(status.st_mode))

    for name, ours in {
        "link": link,
        "rename": disk.rename,
        "replace": disk.rename,
        "unlink": unlink,
        "fsync": fsync,
    }.items():
        setattr(os, name, ours)
    return _Vfs(disk)
