# SPDX-License-Identifier: GPL-2.0-or-later
"""Idle waits and waits that count, against what real servers report about themselves.

One of the installed servers is drawn by the seed, all with --long. Each is attached to before its load begins, and
until after it has ended, so that all of what the server counts lies in the recording.
"""
import json
import os
import re
import shutil
import signal
import subprocess
import tempfile
import threading
import time
import zlib
from pathlib import Path

import pytest

from harness import (MS, SLOWNESS, WALLPROF, Failure, Recording, Skip, cache_folder, capture_of, check, check_close,
                     expect_failure, is_long, needs_root, wait_until)

# The servers' clocks and wallprof's run at the same time.
pytestmark = [pytest.mark.untimed, pytest.mark.host_only("servers are not installed in the guests")]

SHARE = 0.15
IDLE = ("[idle: ", "[between jobs: ")
ROW_USERS, ROW_ROUNDS = 4, 5
NODE = """
const {performance} = require('perf_hooks'), {pbkdf2} = require('crypto');
const rounds = 12;
let pool = 0, timer = 0, begin, before;
function next(round) {
  if (round == rounds)
    return console.log(JSON.stringify({pool, timer, idle: performance.eventLoopUtilization(before).idle}));
  begin = performance.now();
  pbkdf2('a', 'b', 30000, 64, 'sha512', () => {
    pool += performance.now() - begin;
    begin = performance.now();
    setTimeout(() => { timer += performance.now() - begin; next(round + 1); }, 15);
  });
}
process.stdin.on('data', () => { before = performance.eventLoopUtilization(); next(0); });
console.log('ready');
"""
JAVA = """
import java.lang.management.*;
import java.util.concurrent.*;
public class Pool {
  static final Object lock = new Object();
  public static void main(String[] arguments) throws Exception {
    ThreadMXBean bean = ManagementFactory.getThreadMXBean();
    bean.setThreadContentionMonitoringEnabled(true);
    ThreadPoolExecutor pool = new ThreadPoolExecutor(3, 3, 0, TimeUnit.SECONDS, new LinkedBlockingQueue<>());
    pool.prestartAllCoreThreads();
    System.out.println("ready");
    while (System.in.read() > 0) {
      for (int i = 0; i < 45; i++) {
        pool.submit(() -> { synchronized (lock) { try { Thread.sleep(12); } catch (InterruptedException e) { } } });
        Thread.sleep(6);
      }
      while (pool.getCompletedTaskCount() < 45) Thread.sleep(5);
      for (ThreadInfo thread : bean.getThreadInfo(bean.getAllThreadIds()))
        if (thread.getThreadName().startsWith("pool"))
          System.out.println(thread.getThreadName() + " " + thread.getBlockedTime() + " " + thread.getWaitedTime());
      System.out.println("end");
    }
  }
}
"""
NGINX = """
worker_processes 2; pid {folder}/pid; error_log {folder}/error; daemon off;
events {{ worker_connections 64; }}
http {{
  log_format times "$request_time"; access_log {folder}/times times; client_body_temp_path {folder}/body;
  proxy_temp_path {folder}/proxy; fastcgi_temp_path {folder}/fastcgi; uwsgi_temp_path {folder}/uwsgi;
  scgi_temp_path {folder}/scgi;
  server {{ listen unix:{folder}/http; root {folder}; location /status {{ stub_status; access_log off; }} }}
}}
"""


def run(command, **settings):
    return subprocess.run(list(map(str, command)), check=True, capture_output=True, text=True, **settings).stdout


def made_once(name, make):
    """A folder that takes long to make; make(folder) fills it, and may run as another user."""
    folder = cache_folder() / name
    if not folder.exists():
        with tempfile.TemporaryDirectory() as new:
            os.chmod(new, 0o755)
            make(Path(new))
            cache_folder().mkdir(parents=True, exist_ok=True)
            shutil.rmtree(f"{folder}.new", ignore_errors=True)
            run(["cp", "-a", new, f"{folder}.new"])
        os.rename(f"{folder}.new", folder)
    return folder


def by_reason(recording, pids):
    """{leaf: ns} of the processes' threads."""
    sums = {}
    for thread in recording.report["threads"]:
        if thread["pid"] in pids:
            for leaf, ns in thread["reasons"].items():
                sums[leaf] = sums.get(leaf, 0) + ns
    return sums


def is_idle(leaf):
    return leaf.startswith(IDLE)


def idle_of(reasons):
    return sum(ns for leaf, ns in reasons.items() if is_idle(leaf))


def runnable_of(reasons):
    return sum(ns for leaf, ns in reasons.items() if leaf.startswith("[runnable"))


def check_wait(what, reasons, leaf, own_ns):
    """A server counts a wait until its thread has a CPU again."""
    got, most = reasons.get(leaf, 0), reasons.get(leaf, 0) + runnable_of(reasons)
    check((1 - SHARE) * got - 10 * MS <= own_ns <= (1 + SHARE) * most + 10 * MS,
          f"{what}: {got / MS:.1f} to {most / MS:.1f} ms of {leaf}, the server says {own_ns / MS:.1f}: {reasons}")


def check_first(reasons, leaf):
    """The largest wait of the summary, other than for a CPU that other programs keep busy."""
    counted = {name: ns for name, ns in reasons.items() if not is_idle(name) and not name.startswith("[runnable")}
    check(max(counted, key=counted.get) == leaf, f"the largest wait is not {leaf}: {counted}")


def as_user(user, *command):
    """Runs it as the user, with no process in between that waits for it."""
    return ["setpriv", "--reuid", user, "--regid", user, "--init-groups", "--", *map(str, command)]


class Server:
    """A server of its own in a folder of the test's."""
    user = None
    end_signal = signal.SIGTERM
    altered = {}  # factors for what the server reports; the check must fail with them

    def __init__(self, context):
        self.context = context
        self.folder = context.path(type(self).__name__)
        self.folder.mkdir()
        if self.user:
            shutil.chown(self.folder, self.user)

    def start(self, command, ready):
        if self.user:
            command = as_user(self.user, *command)
        self.process = self.context.start(command, cwd=self.folder)
        wait_until(lambda: self.process.poll() is not None or ready(), "the server answers")
        check(self.process.poll() is None, f"{command[0]} has ended: status {self.process.returncode}")
        return self.process

    def end(self):
        """With its children."""
        self.process.send_signal(self.end_signal)
        self.process.wait(60 * SLOWNESS)

    def talk(self, command, **settings):
        """A client that reads lines from a pipe."""
        return self.context.start(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True, bufsize=1, **settings)


class Postgres(Server):
    user = "postgres"
    end_signal = signal.SIGQUIT  # at once

    @staticmethod
    def programs():
        return max(Path("/usr/lib/postgresql").glob("*/bin"), key=lambda p: int(p.parent.name), default=Path("/nonexistent"))

    @classmethod
    def missing(cls):
        return None if (cls.programs() / "initdb").exists() and shutil.which("psql") else "postgresql"

    def begin(self):
        programs = self.programs()

        def make(folder):
            shutil.chown(folder, self.user)
            run(as_user(self.user, programs / "initdb", "-D", folder / "data", "-A", "trust", "--no-sync"), cwd="/")

        data = made_once(f"postgresql-{programs.parent.name}", make) / "data"
        run(["cp", "-a", data, self.folder / "data"])
        self.start([programs / "postgres", "-D", self.folder / "data", "-k", self.folder, "-h", "", "-F"],
                   (self.folder / ".s.PGSQL.5432").exists)
        self.psql = ["psql", "-h", self.folder, "-U", "postgres", "-qAt"]
        wait_until(lambda: subprocess.run(self.psql + ["-c", "select 1"], capture_output=True).returncode == 0, "it accepts")
        run(self.psql + ["-c", "create table r (i int primary key, n int); insert into r values (1, 0)"])
        self.idle, self.sampler, *self.users = (self.talk(self.psql) for _ in range(ROW_USERS + 2))
        for client in (self.idle, self.sampler, *self.users):
            client.stdin.write("select pg_backend_pid();\n")
        self.backends = [int(client.stdout.readline()) for client in (self.idle, self.sampler, *self.users)]
        self.main = int((self.folder / "data/postmaster.pid").read_text().split()[0])
        return self.main

    def sample(self, counts):
        self.sampler.stdin.write("select pid, wait_event_type from pg_stat_activity where wait_event_type is not null;"
                                 "select 'end';\n")
        for line in iter(self.sampler.stdout.readline, "end\n"):
            pid, kind = line.strip().split("|")
            key = (int(pid) == self.backends[0], kind)
            counts[key] = counts.get(key, 0) + 1

    def load(self):
        hold = self.context.random.uniform(0.02, 0.04)
        for client in self.users:
            client.stdin.write(f"begin; update r set n = n + 1 where i = 1; select pg_sleep({hold}); commit;\n" * ROW_ROUNDS)
            client.stdin.write("\\echo end\n")
        waiters = [threading.Thread(target=lambda c=client: list(iter(c.stdout.readline, "end\n"))) for client in self.users]
        for waiter in waiters:
            waiter.start()
        counts, samples, begin = {}, 0, time.monotonic_ns()
        while any(waiter.is_alive() for waiter in waiters):
            self.sample(counts)
            samples += 1
            time.sleep(0.008)  # the time between two samples
        each_ns = (time.monotonic_ns() - begin) / samples
        return {"lock": counts.get((False, "Lock"), 0) * each_ns, "pause": counts.get((False, "Timeout"), 0) * each_ns}

    def check(self, recording, own):
        reasons = by_reason(recording, set(self.backends[2:]))
        # The pause of the session that has the row is one of a request.
        check_wait("waits for the row, and pauses", reasons, "[epoll wait]", own["lock"] + own["pause"])
        check_first(by_reason(recording, set(self.backends) | {self.main}), "[epoll wait]")
        others = by_reason(recording, {thread["pid"] for thread in recording.report["threads"]} - set(self.backends[1:]))
        lifetime = sum(thread["lifetime_ns"] for thread in recording.report["threads"]
                       if thread["pid"] not in self.backends[1:])
        check_close("idle are the idle session, the main process and its daemons", idle_of(others), lifetime, 0.1, 10 * MS)

    altered = {"lock": 2.5}


class MariaDB(Server):
    user = "mysql"

    @staticmethod
    def missing():
        return None if all(map(shutil.which, ("mariadbd", "mariadb-install-db", "mariadb"))) else "mariadb-server"

    def begin(self):
        def make(folder):
            shutil.chown(folder, self.user)
            run(as_user(self.user, "mariadb-install-db", "--no-defaults", f"--datadir={folder}/data", "--skip-test-db",
                        "--auth-root-authentication-method=normal", "--innodb-log-file-size=8M"), cwd="/")

        version = re.search(r"Ver ([\d.]+)", run(["mariadbd", "--version"]))[1]
        run(["cp", "-a", made_once(f"mariadb-{version}", make) / "data", self.folder / "data"])
        self.start(["mariadbd", "--no-defaults", f"--datadir={self.folder}/data", f"--socket={self.folder}/s",
                    "--skip-networking", f"--pid-file={self.folder}/pid", "--performance-schema=ON",
                    "--innodb-log-file-size=8M"], (self.folder / "pid").exists)
        self.client = ["mariadb", "--no-defaults", "-u", "root", f"--socket={self.folder}/s", "-N", "-B", "--unbuffered"]
        wait_until(lambda: subprocess.run(self.client + ["-e", "select 1"], capture_output=True).returncode == 0, "it accepts")
        run(self.client + ["-e", "create database t; create table t.r (i int primary key, n int) engine=innodb; "
                                 "insert into t.r values (1, 0)"])
        self.idle, self.asker, *self.users = (self.talk([*self.client, "mysql"]) for _ in range(ROW_USERS + 2))
        self.tids = [int(self.ask(client, "select thread_os_id from performance_schema.threads "
                                          "where processlist_id = connection_id()"))
                     for client in (self.idle, self.asker, *self.users)]
        return int((self.folder / "pid").read_text())

    @staticmethod
    def ask(client, query):
        client.stdin.write(f"{query};\n")
        return client.stdout.readline()

    def row_lock_ms(self):
        return int(self.ask(self.asker, "show global status like 'innodb_row_lock_time'").split()[1])

    def load(self):
        hold = self.context.random.uniform(0.02, 0.04)
        before = self.row_lock_ms()
        for client in self.users:
            client.stdin.write(f"begin; update t.r set n = n + 1 where i = 1; do sleep({hold}); commit;\n" * ROW_ROUNDS)
            client.stdin.write("select 'end';\n")
        for client in self.users:
            client.stdout.readline()
        state = self.ask(self.asker, "select command from information_schema.processlist where id = "
                                     f"(select processlist_id from performance_schema.threads where thread_os_id = {self.tids[0]})")
        return {"lock": (self.row_lock_ms() - before) * MS, "pause": len(self.users) * ROW_ROUNDS * hold * 1000 * MS,
                "idle command": state.strip()}

    def check(self, recording, own):
        check(own["idle command"] == "Sleep", f"the idle connection's command is {own['idle command']}")
        users = {}
        for tid in self.tids[2:]:
            for leaf, ns in recording.ledger(tid)["reasons"].items():
                users[leaf] = users.get(leaf, 0) + ns
        # Waits for a row are rounded to milliseconds.
        check_wait("waits for the row, and pauses", users, "[condition variable wait]", own["lock"] + own["pause"])
        everything = by_reason(recording, {thread["pid"] for thread in recording.report["threads"]})
        check_first(everything, "[condition variable wait]")
        check_close("condition variables of the connections and of all", everything["[condition variable wait]"],
                    users["[condition variable wait]"], SHARE, 30 * MS)
        idle = recording.ledger(self.tids[0])
        check_close("the idle connection", idle_of(idle["reasons"]), idle["lifetime_ns"], 0.05, 0)

    altered = {"lock": 2.5}


class Redis(Server):
    @staticmethod
    def missing():
        return None if shutil.which("redis-server") and shutil.which("redis-benchmark") else "redis"

    def begin(self):
        socket = self.folder / "s"
        process = self.start(["redis-server", "--port", "0", "--unixsocket", socket, "--appendonly", "yes", "--appendfsync",
                              "everysec", "--save", "", "--dir", self.folder], socket.exists)
        self.client = ["redis-cli", "-s", socket]
        self.benchmark = ["redis-benchmark", "-s", socket, "-q", "-t", "set", "-c", "4", "-n", "20000"]
        wait_until(lambda: subprocess.run(self.client + ["ping"], capture_output=True).returncode == 0, "it answers")
        return process.pid

    def cpu_ns(self):
        text = run(self.client + ["info", "cpu"])
        return sum(float(seconds) * 1e9 for seconds in re.findall(r"used_cpu_(?:sys|user)_main_thread:([\d.]+)", text))

    def load(self):
        before = self.cpu_ns()
        run(self.benchmark)
        run(self.client + ["bgrewriteaof"])
        wait_until(lambda: "aof_rewrite_in_progress:0" in run(self.client + ["info", "persistence"]), "the file is rewritten")
        return {"cpu": self.cpu_ns() - before}

    def check(self, recording, own):
        main, *others = sorted((t for t in recording.report["threads"] if t["process"] == "redis-server"
                                and t["pid"] == recording.pid), key=lambda t: t["tid"] != t["pid"])
        check_close("the main thread's CPU time", main["states"]["running"], own["cpu"], 0.25, 10 * MS)
        blocked = {leaf: ns for leaf, ns in main["reasons"].items() if leaf.startswith("[") and "runnable" not in leaf}
        waited = sum(ns for leaf, ns in blocked.items() if "poll" in leaf)
        check_close("the main thread waits for clients: idle", idle_of(blocked), waited, 0.01, 0)
        # jemalloc's thread is woken too rarely to decide what for.
        for thread in (t for t in others if t["name"].startswith("bio_")):
            counted = sum(ns for leaf, ns in thread["reasons"].items() if "condition variable" in leaf and not is_idle(leaf))
            check(counted <= 0.05 * thread["lifetime_ns"], f"{thread['name']} waits for jobs: {thread['reasons']}")

    altered = {"cpu": 2}


class Nginx(Server):
    @staticmethod
    def missing():
        return None if shutil.which("nginx") and shutil.which("curl") else "nginx or curl"

    def begin(self):
        (self.folder / "file").write_bytes(os.urandom(200000))
        (self.folder / "conf").write_text(NGINX.format(folder=self.folder))
        self.folder.chmod(0o755)
        process = self.start(["nginx", "-p", self.folder, "-c", self.folder / "conf"], (self.folder / "http").exists)
        self.get = ["curl", "-s", "--unix-socket", self.folder / "http"]
        check("Active connections: 1" in run(self.get + ["http://x/status"]), "no status page")
        return process.pid

    def load(self):
        for _ in range(8):
            run(self.get + ["-o", "/dev/null", "http://x/file"] * 10)
            time.sleep(0.02)  # the server is idle
        times = (self.folder / "times").read_text().split()
        check(len(times) == 80, f"{len(times)} requests, should be 80")
        # Times are rounded to milliseconds.
        return {"requests": sum(map(float, times)) * 1e9 + len(times) * MS}

    def check(self, recording, own):
        threads = [t for t in recording.report["threads"] if t["process"] == "nginx"]
        check(len(threads) == 3, f"{len(threads)} threads, should be a master and two workers")
        reasons = by_reason(recording, {t["pid"] for t in threads})
        # nginx does not know of a request before it has a CPU.
        lifetime = sum(t["lifetime_ns"] for t in threads) - runnable_of(reasons)
        check_close("nginx is idle but for its requests", idle_of(reasons), lifetime - own["requests"], 0,
                    0.05 * lifetime + 80 * MS)

    altered = {"requests": 10}


class Node(Server):
    @staticmethod
    def missing():
        return None if shutil.which("node") else "node"

    def begin(self):
        self.process = self.node = self.talk(["node", "-e", NODE])
        wait_until(lambda: len(os.listdir(f"/proc/{self.node.pid}/task")) > 5, "node has its threads")
        check(self.node.stdout.readline() == "ready\n", "node has ended")
        return self.node.pid

    def load(self):
        self.node.stdin.write("go\n")
        own = json.loads(self.node.stdout.readline())
        return {name: own[name] * MS for name in own}

    def check(self, recording, own):
        main = recording.ledger(recording.pid)["reasons"]
        check_wait("waits for the pool", main, "[epoll wait]", own["pool"])
        # Timers, and nothing to do before the load and after it.
        check(idle_of(main) >= (1 - SHARE) * own["timer"] - runnable_of(main), f"timers: {own}, {main}")
        waits = main.get("[epoll wait]", 0)
        check(own["idle"] <= (1 + SHARE) * (waits + idle_of(main) + runnable_of(main)), f"the loop: {own}, {main}")

    altered = {"pool": 2}


class Java(Server):
    @staticmethod
    def missing():
        return None if shutil.which("java") and shutil.which("javac") else "java and javac"

    def begin(self):
        def make(folder):
            (folder / "Pool.java").write_text(JAVA)
            run(["javac", "-d", folder, folder / "Pool.java"])

        version = re.search(r"[\d.]+", run(["javac", "-version"]))[0]
        self.process = self.java = self.talk(["java", "-Xshare:auto", "-cp", made_once(f"java-{version}-{zlib.crc32(JAVA.encode()):08x}", make), "Pool"])
        wait_until(lambda: self.thread_names().count("pool-1-thread-") == 3, "the pool is there")
        check(self.java.stdout.readline() == "ready\n", "java has ended")
        return self.java.pid

    def thread_names(self):
        names = [path.read_text() for path in Path(f"/proc/{self.java.pid}/task").glob("*/comm")]
        return [name.strip()[:14] for name in names]

    def load(self):
        self.java.stdin.write("go\n")
        own = {"blocked": 0}
        for line in iter(self.java.stdout.readline, "end\n"):
            own["blocked"] += int(line.split()[1]) * MS
        return own

    def check(self, recording, own):
        reasons = {}
        for thread in recording.report["threads"]:
            if thread["name"].startswith("pool-1-thread"):
                for leaf, ns in thread["reasons"].items():
                    reasons[leaf] = reasons.get(leaf, 0) + ns
        check_wait("waits for the monitor", reasons, "[JVM monitor wait]", own["blocked"])
        check_first(by_reason(recording, {recording.pid}), "[JVM monitor wait]")

    altered = {"blocked": 2}


SERVERS = (Postgres, MariaDB, Redis, Nginx, Node, Java)


def hold_against(context, server_class):
    """Checks the recording against the server's own account, and that an altered account fails."""
    server, output = server_class(context), context.path(f"{server_class.__name__}.json.gz")
    pid = server.begin()
    recorder = context.start([WALLPROF, "-q", "--keep-capture", "-o", output, "-p", pid], stderr=subprocess.PIPE)
    wait_until(lambda: recorder.poll() is not None or capture_of(output).exists(), "the recording begins")
    own = server.load()
    recorder.send_signal(signal.SIGINT)
    check(recorder.wait(60 * SLOWNESS) in (0, 130), f"wallprof: {recorder.stderr.read()}")
    server.end()
    recording = Recording(context, output)
    recording.pid = pid
    server.check(recording, own)
    altered = {name: value * server.altered.get(name, 1) if name in server.altered else value for name, value in own.items()}
    expect_failure(server.check, recording, altered)


def test_own_account(context):
    needs_root()
    missing = {server: server.missing() for server in SERVERS}
    installed = [server for server in SERVERS if not missing[server]]
    if not installed:
        raise Skip(f"not installed: {', '.join(missing.values())}")
    for server in installed if is_long() else [context.random.choice(installed)]:
        try:
            hold_against(context, server)
        except Failure as failure:
            raise Failure(f"{server.__name__}: {failure}") from failure
