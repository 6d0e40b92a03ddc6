# SPDX-License-Identifier: GPL-2.0-or-later
"""Loads of the kind that wallprof is used on: servers with clients, builds, an installation. Each is a class.

A load runs in a folder of its own. Servers listen on Unix sockets or on a free port of 127.0.0.1, and are ended with
the load. A command waits in a shell until its recorder is ready, so that a recorder attaches to either kind by its pid.
"""
import os
import random
import re
import shutil
import signal
import socket
import subprocess
import sys
import time
from pathlib import Path
from typing import NamedTuple

from measure import cpu_seconds, run, waited_for_cpu_seconds
import c_project  # of the tests, to which measure leads

CLIENTS = 8
START_S, STOP_S = 60, 20  # a server that takes longer has failed
PAGE = "x" * 2000

PYTHON_SERVER = f"""
import http.server, sys
class Handler(http.server.BaseHTTPRequestHandler):
    def do_GET(self):
        self.send_response(200)
        self.end_headers()
        self.wfile.write(b"{PAGE}")
    def log_message(self, *_):
        pass
class Server(http.server.ThreadingHTTPServer):
    request_queue_size = 128
Server(("127.0.0.1", int(sys.argv[1])), Handler).serve_forever()
"""
NGINX = """
worker_processes 2; pid {folder}/pid; error_log {folder}/error; daemon off;
events {{ worker_connections 256; }}
http {{
  access_log off; keepalive_timeout 0; client_body_temp_path {folder}/body; proxy_temp_path {folder}/proxy;
  fastcgi_temp_path {folder}/fastcgi; uwsgi_temp_path {folder}/uwsgi; scgi_temp_path {folder}/scgi;
  server {{ listen 127.0.0.1:{port}; root {folder}/pages; }}
}}
"""
JAVA_CLASS = """
import java.util.*;
import java.util.function.*;
public class {name} {{
  private final Map<String, List<Integer>> values = new TreeMap<>();
  interface Step<T extends Comparable<T>> {{ Optional<T> apply(List<? extends T> from); }}
{methods}
}}
"""
JAVA_METHOD = """
  public int method{index}(int limit) {{
    Step<Integer> largest = list -> list.stream().filter(i -> i % {number} != 0).map(i -> i * {number})
        .reduce((a, b) -> a.compareTo(b) > 0 ? a : b).map(Integer::valueOf);
    for (int i = 0; i < limit; i++)
      values.computeIfAbsent("k" + i % {number}, key -> new ArrayList<>()).add(i);
    return values.values().stream().map(largest::apply).flatMap(Optional::stream).mapToInt(Integer::intValue).sum();
  }}
"""
# It runs the command when a line arrives, prints its status, and stays until its input ends.
GATE = 'read -r go || exit; "$@" </dev/null >/dev/null 2>&1; echo $?; read -r go'


class LoadError(Exception):
    """A load did not do its work."""


class Result(NamedTuple):
    """What a load has done: units, units per second, and the CPU time of server and client in seconds."""
    units: float
    rate: float
    cpu: float

    @property
    def cpu_per_unit(self):
        return self.cpu / self.units


def first_missing(*programs):
    """The first of these programs that is not installed, or None."""
    return next((program for program in programs if not shutil.which(program)), None)


def as_user(user, *command):
    """The command as another user, without a process in between."""
    return ["setpriv", "--reuid", user, "--regid", user, "--init-groups", "--", *command]


def end(process, how=signal.SIGTERM):
    """Ends a process that this program has started, and waits for it."""
    if process.poll() is None:
        process.send_signal(how)
    try:
        process.wait(STOP_S)
    except subprocess.TimeoutExpired:
        process.kill()
        process.wait()


def found_number(pattern, text):
    match = re.search(pattern, text, re.M)
    if not match:
        raise LoadError(f"no {pattern!r} in: {text[-500:]}")
    return float(match[1])


class Load:
    """`seconds` is how long it runs, about. prepare(), run() and finish() are called once per run, in this order; `pid`
    is valid between prepare() and finish(). stop() is always called, also if start() has failed."""
    name = unit = None
    programs = ()  # that must be installed
    package = None

    def __init__(self, folder, seconds):
        self.folder, self.seconds, self.pid, self.process = folder, seconds, None, None

    @classmethod
    def missing(cls):
        """What is not installed, or None."""
        program = first_missing(*cls.programs)
        return program and f"{program} is not installed ({cls.package})"

    def start(self):
        """Makes what all runs share."""

    def prepare(self):
        """Makes what one run needs. A recorder attaches to `pid` after this."""

    def work(self):
        """Does the work; returns the units done, and units per second."""
        raise NotImplementedError

    def run(self):
        before = cpu_seconds(self.pid) + waited_for_cpu_seconds()
        units, rate = self.work()
        if units <= 0:
            raise LoadError(f"{self.name} did nothing")
        return Result(units, rate, cpu_seconds(self.pid) + waited_for_cpu_seconds() - before)

    def finish(self):
        """Ends what prepare() has begun."""

    def stop(self):
        """Ends all that was started."""
        if self.process:
            end(self.process)


class Server(Load):
    """A server that runs until stop(), and a client."""
    user = None
    end_signal = signal.SIGTERM

    def serve(self, *command, is_ready):
        """Starts it. is_ready() returns whether it answers."""
        if self.user:
            command = as_user(self.user, *command)
        with open(self.folder / "log", "wb") as log:
            self.process = subprocess.Popen(list(map(str, command)), stdin=subprocess.DEVNULL, stdout=log, stderr=log,
                                            cwd=self.folder)
        self.pid = self.process.pid
        deadline = time.monotonic() + START_S
        while not is_ready():
            if self.process.poll() is not None or time.monotonic() > deadline:
                raise LoadError(f"{command[0]} does not answer: {(self.folder / 'log').read_text()[-500:]}")
            time.sleep(0.1)

    def stop(self):
        if self.process:
            end(self.process, self.end_signal)


def succeeds(*command):
    return subprocess.run(list(map(str, command)), stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL,
                          check=False).returncode == 0


class Pgbench(Server):
    name, unit = "pgbench", "transactions"
    user, end_signal = "postgres", signal.SIGQUIT  # at once
    package = "postgresql"
    scale, options = 10, ("-F",)  # without fsync

    @staticmethod
    def folder_of_programs():
        return max(Path("/usr/lib/postgresql").glob("*/bin"), key=lambda p: int(p.parent.name),
                   default=Path("/nonexistent"))

    @classmethod
    def missing(cls):
        program = first_missing(*(str(cls.folder_of_programs() / name) for name in ("initdb", "postgres", "pgbench")))
        return program and "PostgreSQL is not installed (postgresql)"

    def start(self):
        programs = self.folder_of_programs()
        shutil.chown(self.folder, self.user)
        run(as_user(self.user, programs / "initdb", "-D", self.folder / "data", "-A", "trust", "--no-sync"), cwd="/")
        self.client = [programs / "pgbench", "-h", self.folder, "-U", self.user]
        self.serve(programs / "postgres", "-D", self.folder / "data", "-k", self.folder, "-h", "", *self.options,
                   is_ready=lambda: succeeds("psql", "-h", self.folder, "-U", self.user, "-c", "select 1"))
        run([*self.client, "-i", "-q", "-s", self.scale, "postgres"])

    def work(self):
        text = run([*self.client, "-c", CLIENTS, "-j", 2, "-T", self.seconds, "postgres"])
        return (found_number(r"^number of transactions actually processed: (\d+)", text),
                found_number(r"^tps = ([\d.]+) \(without", text))


class PgbenchFsync(Pgbench):
    name, options = "pgbench-fsync", ()


class MariaDB(Server):
    name, unit = "mariadb", "transactions"
    user = "mysql"
    programs, package = ("mariadbd", "mariadb-install-db", "mariadb-admin", "sysbench"), "mariadb-server, sysbench"

    def start(self):
        shutil.chown(self.folder, self.user)
        run(as_user(self.user, "mariadb-install-db", "--no-defaults", f"--datadir={self.folder}/data", "--skip-test-db",
                    "--auth-root-authentication-method=normal"), cwd="/")
        socket_path = self.folder / "s"
        admin = ["mariadb-admin", "--no-defaults", "-u", "root", f"--socket={socket_path}"]
        self.serve("mariadbd", "--no-defaults", f"--datadir={self.folder}/data", f"--socket={socket_path}",
                   "--skip-networking", f"--pid-file={self.folder}/pid",
                   is_ready=lambda: succeeds(*admin, "status"))
        run([*admin, "create", "sbtest"])
        self.client = ["sysbench", "oltp_read_write", f"--mysql-socket={socket_path}", "--mysql-user=root",
                       "--tables=4", "--table-size=10000", f"--threads={CLIENTS}"]
        run([*self.client, "prepare"])

    def work(self):
        text = run([*self.client, f"--time={self.seconds}", "run"])
        return (found_number(r"^ +transactions: +(\d+)", text),
                found_number(r"^ +transactions: +\d+ +\(([\d.]+) per sec", text))


class WebServer(Server):
    """Each request has a connection of its own."""
    unit = "requests"

    def serve_on_port(self, *command):
        self.serve(*command, is_ready=lambda: self.answers(self.port))

    def choose_port(self):
        with socket.socket() as free:
            free.bind(("127.0.0.1", 0))
            self.port = free.getsockname()[1]

    @staticmethod
    def answers(port):
        try:
            socket.create_connection(("127.0.0.1", port), 1).close()
            return True
        except OSError:
            return False

    def work(self):
        # -n is the bound, and behind -t, which would set it to 50,000.
        text = run(["ab", "-q", "-c", CLIENTS, "-t", self.seconds, "-n", 1000000, f"http://127.0.0.1:{self.port}/page"])
        if found_number(r"^Failed requests: +(\d+)", text) or "Non-2xx" in text:
            raise LoadError(f"{self.name} did not answer all requests: {text[-500:]}")
        return (found_number(r"^Complete requests: +(\d+)", text),
                found_number(r"^Requests per second: +([\d.]+)", text))


class Nginx(WebServer):
    name = "nginx"
    programs, package = ("nginx", "ab"), "nginx, apache2-utils"

    def start(self):
        self.choose_port()
        (self.folder / "pages").mkdir()
        (self.folder / "pages" / "page").write_text(PAGE)
        (self.folder / "nginx.conf").write_text(NGINX.format(folder=self.folder, port=self.port))
        self.serve_on_port("nginx", "-c", self.folder / "nginx.conf", "-p", self.folder)


class PythonServer(WebServer):
    name = "python"
    programs, package = ("ab",), "apache2-utils"

    def start(self):
        self.choose_port()
        self.serve_on_port(sys.executable, "-c", PYTHON_SERVER, self.port)


class Redis(Server):
    name, unit = "redis", "requests"
    programs, package = ("redis-server", "redis-benchmark", "redis-cli"), "redis"
    first_count = 20000

    def start(self):
        socket_path = self.folder / "s"
        self.serve("redis-server", "--port", "0", "--unixsocket", socket_path, "--appendonly", "no", "--save", "",
                   "--dir", self.folder, is_ready=lambda: succeeds("redis-cli", "-s", socket_path, "ping"))
        self.client = ["redis-benchmark", "-s", socket_path, "--csv", "-c", 50, "-t", "get"]
        # redis-benchmark has no limit in time.
        self.count = max(self.first_count, int(self.rate(self.first_count) * self.seconds))

    def rate(self, count):
        return found_number(r'^"GET","([\d.]+)"', run([*self.client, "-n", count]))

    def work(self):
        return self.count, self.rate(self.count)


class Command(Load):
    """A command that does a fixed amount of work, at `count_per_second` a second or about so."""
    count_per_second = 1

    @property
    def count(self):
        return max(1, int(self.seconds * self.count_per_second))

    def command(self):
        raise NotImplementedError

    def prepare(self):
        self.clean()
        self.process = subprocess.Popen(["/bin/sh", "-c", GATE, "gate", *map(str, self.command())],
                                        stdin=subprocess.PIPE, stdout=subprocess.PIPE, cwd=self.folder,
                                        env=dict(os.environ, HOME=str(self.folder)), process_group=0)
        self.pid = self.process.pid

    def clean(self):
        """Removes what an earlier run has made."""

    def work(self):
        begin = time.monotonic()
        self.process.stdin.write(b"\n")
        self.process.stdin.flush()
        status = self.process.stdout.readline().decode().strip()
        if status != "0":
            raise LoadError(f"{' '.join(map(str, self.command()))[:200]} failed: status {status or 'unknown'}")
        return self.count, self.count / (time.monotonic() - begin)

    def finish(self):
        self.process.stdin.close()
        self.process.wait(STOP_S)
        self.process.stdout.close()

    def stop(self):
        if self.process and self.process.poll() is None:
            os.killpg(self.process.pid, signal.SIGTERM)  # the shell and the command
        super().stop()


class Make(Command):
    name, unit = "make", "files"
    programs, package = ("make", "gcc", "bash"), "make, gcc, bash"
    count_per_second = 25

    def start(self):
        c_project.write_project(random.Random(1), self.folder / "project", self.count, 0)

    def command(self):
        return ["make", "-s", "-B", "-j8", "-C", self.folder / "project"]

    def clean(self):
        (self.folder / "project" / "log").unlink(missing_ok=True)


class Javac(Command):
    name, unit = "javac", "classes"
    programs, package = ("javac",), "default-jdk-headless"
    count_per_second = 30
    methods = 12

    def start(self):
        rng = random.Random(1)
        for index in range(self.count):
            methods = "".join(JAVA_METHOD.format(index=i, number=rng.randrange(2, 99)) for i in range(self.methods))
            (self.folder / f"C{index}.java").write_text(JAVA_CLASS.format(name=f"C{index}", methods=methods))

    def command(self):
        return ["javac", "-nowarn", "-d", self.folder / "classes", *sorted(self.folder.glob("*.java"))]

    def clean(self):
        shutil.rmtree(self.folder / "classes", ignore_errors=True)


class Npm(Command):
    """From folders, so that no network is needed."""
    name, unit = "npm", "packages"
    programs, package = ("npm", "node"), "npm"
    count_per_second = 6
    files = 60

    def start(self):
        for index in range(self.count):
            library = self.folder / f"library{index}"
            library.mkdir()
            (library / "package.json").write_text(f'{{"name": "library{index}", "version": "1.0.0"}}')
            for number in range(self.files):
                (library / f"m{number}.js").write_text("module.exports = 1;\n" * 100)

    def command(self):
        return ["npm", "install", "--prefix", self.folder / "program", "--cache", self.folder / "cache", "--offline",
                "--no-audit", "--no-fund", "--install-links",
                *(self.folder / f"library{index}" for index in range(self.count))]

    def clean(self):
        for name in ("program", "cache"):
            shutil.rmtree(self.folder / name, ignore_errors=True)
        (self.folder / "program").mkdir()
        (self.folder / "program" / "package.json").write_text('{"name": "program", "version": "1.0.0"}')


LOADS = {load.name: load for load in (Pgbench, PgbenchFsync, MariaDB, Nginx, Redis, PythonServer, Javac, Make, Npm)}
