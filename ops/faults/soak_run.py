"""Soak: a server with two processes and bots for as long as asked, whose memory and files must stay flat.

In the first 40 % of the time processes are killed at random. In the rest they live, so that a leak would show. The
number of namespaces is constant: a full one is erased, and a new one takes its place. An erased one leaves its versions
and hashes in the log, keys of receipts, and an empty read model of 140 KiB.
"""

from __future__ import annotations

import os
import random
import signal
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path

import httpx
from parts import Part, free_port
from soak_samples import Sample, growths, processes_of, table, take_sample
from soak_tenants import Clock, Ledger, Server, Tenant, real_texts

sys.path.insert(0, str(Path(__file__).parents[2] / "tests"))

from support.tiny_model import make_tiny_model

TENANTS = 10
BOTS = 2
#: Seconds between two requests of a bot, two operations, two samples, two kills, and of a day of the fast clock.
_BOT_SECONDS = 1.0
_OPERATION_SECONDS = 12.0
_SAMPLE_SECONDS = 30.0
_KILL_SECONDS = 100.0
_DAY_SECONDS = 150.0
#: Seconds between two changes of the embedding model, and between two searches of all files for erased canaries.
_SWAP_SECONDS = 420.0
_FILES_SECONDS = 300.0
#: The part of the time in which processes are killed.
_KILLS_PART = 0.4
#: Seconds after a kill in which requests may fail; those of a busy machine.
_AWAY_SECONDS_MAX = 90.0
_READY_SECONDS_MAX = 120.0
#: Settings that make the life of a memory fit the days of a soak, and caches of open files that are full soon.
_SETTINGS = {
    "OPEN_MODELS_MAX": "16",
    "RAW_EXPIRES_AFTER_DAYS": "2",
    "DISTILL_AFTER_DAYS": "2",
    "COMPRESSED_EXPIRES_AFTER_DAYS": "4",
    "REQUESTS_PER_MINUTE": "0",
    "DENIALS_PER_MINUTE": "0",
}


class Soak:
    """One soak in a temporary folder."""

    def __init__(self, seconds: float, seed: int, folder: Path) -> None:
        self._seconds, self._seed = seconds, seed
        self.data = folder / "data"
        self._chance = random.Random(seed)
        self._models = [str(make_tiny_model(folder / f"model-{number}", seed=number)) for number in (1, 2)]
        port = free_port()
        self._base = f"http://127.0.0.1:{port}"
        settings = _SETTINGS | {"DATA": str(self.data), "PORT": str(port), "EMBEDDING_MODEL": self._models[0]}
        self._environment = os.environ | {f"RECOLLECT_{name}": value for name, value in settings.items()}
        self.part = Part("server", ["serve", "--processes", "2"], self._environment, folder / "server.log")
        self.ledger = Ledger()
        self.samples: list[Sample] = []
        self._clock = Clock(_DAY_SECONDS)
        self._stop = threading.Event()
        self._texts = real_texts(seed)
        #: Until when requests may fail, in monotonic seconds, and since when nothing is killed any more.
        self._away_until = float("inf")
        self.calm_minute = _KILLS_PART * seconds / 60
        self._began_at = time.monotonic()
        self._numbers = iter(range(1_000_000))
        self._tenants: list[Tenant] = []

    def run(self) -> None:
        """Run the bots and all disturbances for the time, then check everything."""
        self.part.start()
        self._wait_ready()
        self._tenants = [self._new_tenant() for _ in range(TENANTS)]
        loops = [self._bot] * BOTS + [self._operate, self._sample]
        threads = [threading.Thread(target=self._guarded, args=(loop,), name=loop.__name__) for loop in loops]
        self._began_at = time.monotonic()
        for thread in threads:
            thread.start()
        try:
            self._disturb()
        finally:
            self._stop.set()
            for thread in threads:
                thread.join(300)
        self._check_end()

    @property
    def _elapsed(self) -> float:
        return time.monotonic() - self._began_at

    def _guarded(self, loop: Callable[[], None]) -> None:
        try:
            loop()
        except Exception as error:
            self.ledger.violate(f"{loop.__name__}: {error!r}")

    def _server(self) -> Server:
        return Server(self._base, self.ledger, lambda: time.monotonic() < self._away_until)

    def _new_tenant(self, name: str | None = None) -> Tenant:
        name = name or f"user-{next(self._numbers)}"
        return Tenant(name, self._texts, self._server(), self.ledger, self._seed)

    def _bot(self) -> None:
        """Append and retrieve for random namespaces; replace those that are full."""
        chance = random.Random(f"{self._seed} {threading.get_ident()}")
        while not self._stop.wait(_BOT_SECONDS):
            place = chance.randrange(TENANTS)
            tenant = self._tenants[place]
            if not tenant.lock.acquire(blocking=False):
                continue
            try:
                if tenant is not self._tenants[place]:
                    continue
                if tenant.is_full:
                    self._replace(place, chance)
                elif chance.random() < 0.6:
                    tenant.append(self._clock)
                else:
                    tenant.retrieve()
            finally:
                tenant.lock.release()

    def _replace(self, place: int, chance: random.Random) -> None:
        """Check a full namespace, erase it, and let a new one take its place, at times an import of another one."""
        old = self._tenants[place]
        old.check()
        fresh = self._new_tenant()
        if chance.random() < 0.4:
            fresh.import_from(old)
        old.erase("namespace", kept=fresh.canaries())
        old.require_erased()
        self._tenants[place] = fresh

    def _operate(self) -> None:
        """Do one of the rarer things to a namespace, again and again; each night to all."""
        chance = random.Random(self._seed + 1)
        night, night_at = 0, 0.0
        while not self._stop.wait(_OPERATION_SECONDS):
            if self._elapsed - night_at > _DAY_SECONDS:
                night, night_at = night + 1, self._elapsed
                for tenant in list(self._tenants):
                    self._on(tenant, lambda it: it.compact(self._clock))
            what = chance.choice(("subject", "session", "session", "replay", "check", "export", "as_of", "settle"))
            tenant = chance.choice(self._tenants)
            if what in ("subject", "session"):
                self._on(tenant, lambda it, scope=what: it.erase(scope))
            elif what == "replay":
                self._on(tenant, Tenant.replay)
            elif what == "check":
                self._on(tenant, Tenant.check)
            elif what == "export":
                self._on(tenant, Tenant.export_subject)
            elif what == "as_of":
                self._on(tenant, lambda it: it.retrieve(as_of=max(1, it.head() // 2)) if it.head() else None)

    def _on(self, tenant: Tenant, act: Callable[[Tenant], None]) -> None:
        with tenant.lock:
            if tenant in self._tenants:
                act(tenant)

    def _sample(self) -> None:
        while not self._stop.wait(_SAMPLE_SECONDS):
            with self.ledger.lock:
                appends, self.ledger.append_seconds[:] = list(self.ledger.append_seconds), []
                retrievals, self.ledger.retrieve_seconds[:] = list(self.ledger.retrieve_seconds), []
                messages = self.ledger.counts["messages acknowledged"]
            processes = processes_of(self.part.pid)
            taken = take_sample(self._elapsed / 60, processes, self.data, self._base, messages, appends, retrievals)
            self.samples.append(taken)
            print(table([taken], 1).splitlines()[-1], flush=True)

    def _disturb(self) -> None:
        """Kill processes, change the model and search the files, each in its turn, until the time is over."""
        next_kill, next_swap, next_files = _KILL_SECONDS, _SWAP_SECONDS / 2, _FILES_SECONDS
        while self._elapsed < self._seconds:
            time.sleep(1)
            if self._elapsed > next_kill and self._elapsed < _KILLS_PART * self._seconds:
                next_kill = self._elapsed + _KILL_SECONDS * self._chance.uniform(0.5, 1.5)
                self._kill()
            elif self._elapsed > next_swap:
                next_swap = self._elapsed + _SWAP_SECONDS
                self._swap()
            elif self._elapsed > next_files:
                next_files = self._elapsed + _FILES_SECONDS
                self._search_files()

    def _kill(self) -> None:
        """Kill a child, or the first process, or restart the server in an orderly way."""
        self._away_until = float("inf")
        what = self._chance.choice(("child", "child", "child", "server", "restart"))
        family = processes_of(self.part.pid)
        if what == "child":
            with suppress(ProcessLookupError):
                os.kill(self._chance.choice(family[1:]), signal.SIGKILL)
        elif what == "server":
            self.part.kill()
            self._require_ended(family)
            self.part.start()
        else:
            code = self.part.stop()
            if code != 0:
                self.ledger.violate(f"the server ended with {code} after SIGTERM")
            self._require_ended(family)
            self.part.start()
        self.ledger.count(f"kills: {what}")
        self._wait_ready()
        self._away_until = time.monotonic() + _AWAY_SECONDS_MAX

    def _require_ended(self, family: list[int]) -> None:
        """Record a violation when a process goes on without the first one."""
        deadline = time.monotonic() + 30
        while alive := [pid for pid in family if Path(f"/proc/{pid}").exists()]:
            if time.monotonic() > deadline:
                self.ledger.violate(f"processes outlive the server: {alive}")
                return
            time.sleep(0.2)

    def _swap(self) -> None:
        """Change the embedding model while the server serves."""
        self._models.reverse()
        done = self._command("embed", "--model", self._models[0])
        if done.returncode:
            self.ledger.violate(f"embed --model: {done.stdout}{done.stderr}"[:600])
        self.ledger.count("changes of the model")

    def _search_files(self) -> None:
        """Record a violation for each file that has a canary whose erasure was acknowledged."""
        with self.ledger.lock:
            erased = [canary.encode() for canary in self.ledger.erased]
        if not erased:
            return
        files = [it for it in self.data.rglob("*") if it.is_file()]
        for file in files:
            with suppress(OSError):
                content = file.read_bytes()
                left = [canary for canary in erased if canary in content]
                if left:
                    at = content.index(left[0])
                    where = content[max(0, at - 200) : at + 20]
                    self.ledger.violate(f"{file.relative_to(self.data)} has {len(left)} erased canaries: {where}")
        self.ledger.count("searches of all files")

    def _command(self, *arguments: str) -> subprocess.CompletedProcess[str]:
        command = [sys.executable, "-c", "from recollect.api.cli.main import run; run()", *arguments]
        return subprocess.run(command, env=self._environment, check=False, capture_output=True, text=True, timeout=600)

    def _wait_ready(self) -> None:
        deadline = time.monotonic() + _READY_SECONDS_MAX
        while time.monotonic() < deadline:
            with suppress(httpx.HTTPError):
                if httpx.get(f"{self._base}/health/ready", timeout=5).status_code == 200:
                    return
            time.sleep(0.2)
        raise SystemExit(f"the server is not ready: {self.part.errors.read_text()[-2_000:]}")

    def _check_end(self) -> None:
        """Check what is only known when nothing is under way any more."""
        for tenant in self._tenants:
            tenant.check()
        health = self._server().ask("GET", "/health").json()
        failures = self._server().ask("GET", "/v1/failures").json()
        if health["parked"] or health["dead_letters"]:
            self.ledger.violate(f"failures are left: {failures}"[:800])
        lag = {name: health["lag"][name] for name in ("read_models", "embeddings", "extraction")}
        if any(lag.values()):
            self.ledger.violate(f"the server is behind after settling: {lag}")
        code = self.part.stop()
        if code != 0:
            self.ledger.violate(f"the server ended with {code} after SIGTERM")
        for arguments in (("verify",), ("replay", "--check")):
            done = self._command(*arguments)
            if done.returncode:
                self.ledger.violate(f"{arguments}: {done.stdout}{done.stderr}"[:800])
        self._search_files()
        for error, number in self.part.tracebacks().items():
            self.ledger.count(f"tracebacks: {error} ({number})")
        calm = [it for it in self.samples if it.minute > self.calm_minute + 3]
        for growth in growths(calm):
            self.ledger.violate(growth)


def run_soak(seconds: float, seed: int) -> bool:
    """Soak for `seconds` and print a report; return whether there was no violation."""
    os.nice(10)
    with tempfile.TemporaryDirectory(prefix="recollect-soak-") as folder:
        soak = Soak(seconds, seed, Path(folder))
        try:
            soak.run()
        finally:
            soak.part.kill()
        print(table(soak.samples))
    for name, number in sorted(soak.ledger.counts.items()):
        print(f"{name}: {number}")
    print(f"violations {len(soak.ledger.violations)}")
    for violation in soak.ledger.violations[:20]:
        print(f"  {violation}")
    return not soak.ledger.violations
