# SPDX-License-Identifier: GPL-2.0-or-later
"""`wallprof open` serves the profile to the viewer and to no other program."""
import functools
import http.client
import http.server
import json
import os
import re
import signal
import socket
import subprocess
import threading
import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from urllib.parse import unquote

import pytest

from harness import (GIVE_UP_S, WALLPROF, Profile, Viewer, check, expect_failure, needs_command,
                     needs_root, wait_until)
from html_page import Browser

pytestmark = [pytest.mark.untimed, pytest.mark.host_only("it is about no kernel")]

PUBLIC = r"https://profiler\.firefox\.com"
PROFILE_URL = re.compile(r"http://127\.0\.0\.1:(\d+)/([a-z2-7]{32})/(.+)$")
NOBODY = 65534
ALLOWED = "access-control-allow-origin"


class Opened:
    """A server, and what its URL says."""

    def __init__(self, context, path, *options, viewer=PUBLIC, **settings):
        self.process = context.start([WALLPROF, "open", "--no-browser", *map(str, options), str(path)],
                                     stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, **settings)
        self.page = self.process.stdout.readline().strip()
        before, _, after = self.page.partition("/from-url/")
        part, _, api = after.partition("/?symbolServer=")
        check(re.fullmatch(viewer, before) and part, f"the URL is {self.page!r}")
        self.url = unquote(part)
        check(self.url.startswith(unquote(api) + "/") and api, f"the API is at {api}")
        match = PROFILE_URL.match(self.url)
        check(match, f"the profile's URL is {self.url!r}")
        self.port, self.secret, self.name = int(match[1]), match[2], match[3]
        self.path = f"/{self.secret}/{self.name}"

    def ask(self, path=None, method="GET", body=None, **headers):
        connection = http.client.HTTPConnection("127.0.0.1", self.port, timeout=GIVE_UP_S)
        connection.request(method, path or self.path, body, {k.replace("_", "-"): v for k, v in headers.items()})
        answer = connection.getresponse()
        answer.data = answer.read()
        connection.close()
        return answer

    def end(self, number=signal.SIGINT):
        self.process.send_signal(number)
        return self.process.wait(timeout=GIVE_UP_S)


def profile_of(context, name="p.json.gz"):
    path = context.path(name)
    context.wallprof("-q", "--keep-capture", "-o", path, "--", "true")
    return path


def check_answer(answer, status, allowed=True):
    check(answer.status == status, f"status {answer.status}, should be {status}")
    got = answer.getheader(ALLOWED)
    check(got == ("*" if allowed else None), f"{ALLOWED} is {got}")


def test_profile(context):
    for name, encoding in (("p.json.gz", "gzip"), ("a b%.json", None)):
        path = profile_of(context, name)
        opened = Opened(context, path)
        answer = opened.ask()
        check_answer(answer, 200)
        check(answer.data == path.read_bytes(), "the profile is another one")
        check(answer.getheader("content-encoding") == encoding, f"it is encoded as {answer.headers}")
        check(answer.getheader("content-type").startswith("application/json"), str(answer.headers))
        check(unquote(opened.name) == name, f"it is called {opened.name}")
        head = opened.ask(method="HEAD")
        check_answer(head, 200)
        check(int(head.getheader("content-length")) == path.stat().st_size and not head.data, "HEAD")
        path.write_bytes(b"{}")  # as if it were recorded once more
        check(opened.ask().data == b"{}", "an old profile")
        path.unlink()
        check_answer(opened.ask(), 404)
        check(opened.end() == 0, "Ctrl-C is no error")
    expect_failure(check_answer, answer, 201)


def test_others_learn_nothing(context):
    """No page of another origin, no other name, no other machine."""
    opened = Opened(context, profile_of(context))
    other = chr((ord(opened.secret[-1]) - ord("a") + 1) % 26 + ord("a"))
    for path in ("/", "/index.html", f"/{opened.name}", "/" + "a" * 32 + "/" + opened.name,
                 f"/{opened.secret[:-1]}{other}/{opened.name}", f"/{opened.secret[:-1]}/{opened.name}",
                 f"/{opened.secret}x/{opened.name}", f"//{opened.secret}/{opened.name}"):
        check_answer(opened.ask(path), 404, allowed=False)
    for path in (f"/{opened.secret}", f"/{opened.secret}/", f"{opened.path}/", f"/{opened.secret}/../p.json.gz",
                 f"/{opened.secret}/p.capture"):
        check(opened.ask(path).status == 404, f"{path} is something")
    for host in ("example.com", f"example.com:{opened.port}", "127.0.0.1", "127.0.0.1:1", "",
                 f"127.0.0.1:{opened.port}.example.com"):
        check_answer(opened.ask(Host=host), 403, allowed=False)
    for host in (f"localhost:{opened.port}", f"LOCALHOST:{opened.port}"):
        check_answer(opened.ask(Host=host), 200)
    for method in ("PUT", "DELETE"):
        check_answer(opened.ask(method=method, body=b"x" * 100000), 405)
    check_answer(opened.ask(method="POST", body=b"x" * 100000), 404)
    for method in ("POST", "PUT", "DELETE"):
        check_answer(opened.ask("/", method=method, body=b"x"), 405, allowed=False)
    listening = {line.split()[1] for line in Path("/proc/net/tcp").read_text().splitlines()[1:]
                 if line.split()[3] == "0A" and line.split()[1].endswith(f":{opened.port:04X}")}
    check(listening == {f"0100007F:{opened.port:04X}"}, f"it listens on {listening}")
    check_answer(opened.ask(), 200)


def fetched_by(opened, **settings):
    """Returns the answer to another process: a status, or nothing."""
    status = subprocess.run(["curl", "-s", "-m", "20", "-o", "/dev/null", "-w", "%{http_code}",
                             f"http://127.0.0.1:{opened.port}{opened.path}"], capture_output=True, text=True,
                            **settings).stdout.strip()
    return "" if status == "000" else status


def test_other_users(context):
    """Another user who reads the URL in a browser's arguments gets no answer."""
    needs_root()
    needs_command("curl")
    opened = Opened(context, profile_of(context))
    nobody = {"user": NOBODY, "group": NOBODY, "extra_groups": []}
    check(fetched_by(opened) == "200", "wallprof's own user is refused")
    check(fetched_by(opened, **nobody) == "", "another user is answered")
    context.path("p.json.gz").chmod(0o644)
    theirs = Opened(context, context.path("p.json.gz"),
                    env={**os.environ, "SUDO_UID": str(NOBODY), "SUDO_GID": str(NOBODY)})
    status = Path(f"/proc/{theirs.process.pid}/status").read_text()
    for name, wanted in (("Uid", f"{NOBODY}"), ("Gid", f"{NOBODY}"), ("CapEff", "0" * 16), ("CapPrm", "0" * 16)):
        values = set(re.search(rf"^{name}:\s(.*)$", status, re.M)[1].split())
        check(values == {wanted}, f"under sudo its {name} is {values}")
    check(fetched_by(theirs, **nobody) == "200", "the user who called sudo is refused")
    context.path("p.json.gz").chmod(0o600)
    check(fetched_by(theirs, **nobody) == "404", "it reads what that user may not")


def test_preflight(context):
    """The preflight requests of the Fetch standard and of Private Network Access are answered."""
    opened = Opened(context, profile_of(context))
    answer = opened.ask(method="OPTIONS", Origin="https://profiler.firefox.com",
                        Access_Control_Request_Method="GET", Access_Control_Request_Headers="user-agent, x-y",
                        Access_Control_Request_Private_Network="true")
    check_answer(answer, 204)
    for name, wanted in (("allow-headers", "user-agent, x-y"), ("allow-private-network", "true")):
        got = answer.getheader(f"access-control-{name}")
        check(got == wanted, f"{name} is {got}")
    check("GET" in answer.getheader("access-control-allow-methods"), str(answer.headers))
    plain = opened.ask(method="OPTIONS")
    check_answer(plain, 204)
    check(plain.getheader("access-control-allow-headers") is None and "GET" in plain.getheader("allow"),
          str(plain.headers))
    check_answer(opened.ask("/", method="OPTIONS", Access_Control_Request_Method="GET"), 405, allowed=False)


def send(opened, data, timeout=5):
    """Returns what comes back of bytes that may be no request."""
    with socket.create_connection(("127.0.0.1", opened.port), timeout=timeout) as connection:
        try:
            connection.sendall(data)
            connection.shutdown(socket.SHUT_WR)
            return connection.recv(1 << 16)
        except OSError:
            return b""


def test_hostile_requests(context):
    opened, rng = Opened(context, profile_of(context)), context.random
    host = b"Host: 127.0.0.1:%d\r\n" % opened.port
    path = opened.path.encode()
    requests = (b"", b"\r\n" * 1000, b"\0" * 1000, b"GET\r\n\r\n", b"GET / HTTP/9.9\r\n\r\n",
                 b"GET " + b"/a" * 100000 + b" HTTP/1.1\r\n" + host + b"\r\n",
                 b"GET " + path + b" HTTP/1.1\r\n" + host + b"X: y\r\n" * 20000 + b"\r\n",
                 b"GET " + path + b" HTTP/1.1\r\n\r\n", b"GET " + path + b" HTTP/1.0\r\n\r\n",
                 b"POST " + path + b" HTTP/1.1\r\n" + host + b"Content-Length: 99999999999999999999\r\n\r\n",
                 b"POST " + path + b" HTTP/1.1\r\n" + host + b"Content-Length: -1\r\n\r\n",
                 b"POST " + path + b" HTTP/1.1\r\n" + host + b"Transfer-Encoding: chunked\r\n\r\nfffffffffffffffff\r\n",
                 b"GET http://example.com" + path + b" HTTP/1.1\r\nHost: example.com\r\n\r\n",
                 *(rng.randbytes(rng.randint(1, 3000)) for _ in range(100)),
                 *(bytes(rng.choice(b"GET /HTP1.\r\n:%0a") for _ in range(200)) for _ in range(100)))
    with ThreadPoolExecutor(16) as senders:  # some of them keep their sender waiting
        answers = list(senders.map(lambda data: send(opened, data), requests))
    for data, got in zip(requests, answers):
        check(not re.match(rb"HTTP/1\.\d 2", got), f"{data[:80]!r} gets {got[:80]!r}")
    check_answer(opened.ask(), 200)
    # More than it takes, which say nothing: they do not keep it from its end.
    idle = [socket.create_connection(("127.0.0.1", opened.port)) for _ in range(50)]
    check(opened.process.poll() is None, "the server is gone")
    check(opened.end(signal.SIGTERM) == 0, "SIGTERM is no error")
    for connection in idle:
        connection.close()


def test_ends_by_itself(context):
    """The server ends when no request with the secret comes."""
    opened = Opened(context, profile_of(context), "--idle-timeout", "2s")
    end = time.monotonic() + 3
    while time.monotonic() < end:
        check_answer(opened.ask(), 200)
        time.sleep(0.2)  # requests come more often than the timeout
    check(opened.process.poll() is None, "it ended though it was asked")
    while opened.process.poll() is None and time.monotonic() < end + 20:
        try:
            opened.ask("/")
        except OSError:
            break
        time.sleep(0.2)  # requests without the secret, as often as the others
    check(opened.process.wait(timeout=GIVE_UP_S) == 0, "silence is no error")
    check(end + 1 < time.monotonic() < end + 13, "it ended too early, or went on without requests")


def test_slow_reader(context):
    """A request that is being answered counts as activity, however long it takes."""
    path = context.path("large.json")
    path.write_text("[" + "1," * (20 << 20) + "1]")  # more than the sockets' buffers
    opened, got = Opened(context, path, "--silence", "2s"), 0  # the old name of --idle-timeout
    with socket.create_connection(("127.0.0.1", opened.port), timeout=GIVE_UP_S) as connection:
        connection.sendall(f"GET {opened.path} HTTP/1.1\r\nHost: 127.0.0.1:{opened.port}\r\nConnection: close\r\n\r\n"
                           .encode())
        got = len(connection.recv(1000))
        time.sleep(4)  # longer than the timeout
        check(opened.process.poll() is None, "it ended while it was read")
        while data := connection.recv(1 << 20):
            got += len(data)
    check(got > path.stat().st_size, f"{got} bytes have come of {path.stat().st_size}")
    begin = time.monotonic()
    check(opened.process.wait(timeout=GIVE_UP_S) == 0 and time.monotonic() - begin > 1,
          "the end of the answer does not count")


def test_half_open_connections(context):
    """A thousand connections that ask nothing, of this user and of another one, keep it from answering for seconds."""
    needs_root()
    opened = Opened(context, profile_of(context))
    hold = ("import socket, sys, time\n"
            "held = []\n"
            "for _ in range(500):\n"
            "    held.append(socket.create_connection(('127.0.0.1', int(sys.argv[1]))))\n"
            "print('held', flush=True)\n"
            "time.sleep(1000)\n")
    nobody = {"user": NOBODY, "group": NOBODY, "extra_groups": []}
    for settings in ({}, nobody, {}):
        holder = context.start(["/usr/bin/python3", "-c", hold, str(opened.port)], stdout=subprocess.PIPE, text=True,
                               **settings)
        check(holder.stdout.readline() == "held\n", "the connections were not made")
    begin = time.monotonic()
    check_answer(opened.ask(), 200)
    took = time.monotonic() - begin
    check(took < 20, f"it answered after {took:.1f} s")
    begin = time.monotonic()
    check_answer(opened.ask(), 200)
    check(time.monotonic() - begin < 20, "the second answer took longer")
    check(fetched_by(opened, **nobody) == "", "another user is answered")


CLIENT = """import socket, sys
family, address, port, path, closes = sys.argv[1:]
connection = socket.socket(getattr(socket, family))
connection.settimeout(20)
connection.connect((address, int(port)))
connection.sendall(f"GET {path} HTTP/1.1\\r\\nHost: 127.0.0.1:{port}\\r\\n\\r\\n".encode())
if closes == "no":
    print(connection.recv(12).decode())
"""


def asked_by(opened, family, address, closes, **settings):
    done = subprocess.run(["/usr/bin/python3", "-c", CLIENT, family, address, str(opened.port), opened.path, closes],
                          capture_output=True, text=True, **settings)
    return done.stdout.strip()


def test_connection_owner(context):
    """Another user's connection gets no answer, by any kind of socket, also after the socket is closed."""
    needs_root()
    path = profile_of(context)
    opened, nobody = Opened(context, path), {"user": NOBODY, "group": NOBODY, "extra_groups": []}
    for family, address in (("AF_INET", "127.0.0.1"), ("AF_INET6", "::ffff:127.0.0.1")):
        got = asked_by(opened, family, address, "no")
        check(got == "HTTP/1.1 200", f"wallprof's own user by {address}: {got!r}")
        got = asked_by(opened, family, address, "no", **nobody)
        check(got == "", f"another user by {address}: {got!r}")
    path.unlink()  # which is reported for each accepted request
    opened.process.send_signal(signal.SIGSTOP)
    asked_by(opened, "AF_INET", "127.0.0.1", "yes", **nobody)
    wait_until(lambda: not re.search(rf":{opened.port:04X} .* {NOBODY} ", Path("/proc/net/tcp").read_text()),
               "the socket has no owner any more")
    opened.process.send_signal(signal.SIGCONT)
    # The client's end is closed, so the server's is in CLOSE_WAIT (8) until it is closed.
    wait_until(lambda: not re.search(rf":{opened.port:04X} [0-9A-F]+:[0-9A-F]+ 08 ", Path("/proc/net/tcp").read_text()),
               "the server has closed the connection")
    opened.end()
    said = opened.process.stderr.read()
    check("reading" not in said, f"the user of a closed connection was taken for root: {said}")


def test_ports(context):
    path = profile_of(context)
    first = Opened(context, path)
    second = Opened(context, path, "--port", f"{first.port}-{first.port + 20}")
    check(first.port < second.port <= first.port + 20, f"ports {first.port} and {second.port}")
    check(first.secret != second.secret, "both have one secret")
    done = context.wallprof("open", "--no-browser", "--port", first.port, path, status=1)
    check(str(first.port) in done.stderr and "--port" in done.stderr, done.stderr)
    for port in ("0", "65536", "9-8", "x", "1-", "-1"):
        context.wallprof("open", f"--port={port}", path, status=125)


def test_no_profile(context):
    path = profile_of(context)
    context.path("text").write_text("no profile\n")
    for name, word in ((context.path("text"), "not a profile"),
                       (context.path("gone"), "No such file"), (context.folder, "directory")):
        done = context.wallprof("open", "--no-browser", name, status=1)
        check(word in done.stderr and not done.stdout, f"{name}: {done.stderr}")
    path.rename(context.path("alone.json.gz"))
    for verb in ("report", "export"):
        done = context.wallprof(verb, context.path("alone.json.gz"), status=1)
        check("reading the capture of" in done.stderr and "alone.capture" in done.stderr, f"{verb}: {done.stderr}")
    context.wallprof("open", "a", "b", status=125)


def test_browser(context):
    """$BROWSER is started with the page, and is not killed; without it only the URL is printed."""
    path, script, seen = profile_of(context), context.path("browser"), context.path("seen")
    script.write_text(f'#!/bin/sh\necho noise\necho "$1 $(cut -d" " -f5 /proc/$$/stat)" >{seen}\n')
    script.chmod(0o755)
    environment = {k: v for k, v in os.environ.items() if k not in ("DISPLAY", "WAYLAND_DISPLAY", "BROWSER")}
    process = context.start([WALLPROF, "open", path], stdout=subprocess.PIPE, text=True,
                            env={**environment, "BROWSER": f"no-such-browser:{script}"})
    page = process.stdout.readline().strip()
    wait_until(lambda: seen.exists() and seen.read_text().endswith("\n"), "the browser is started")
    given, group = seen.read_text().split()
    check(given == page, f"it is given {given!r}, not {page!r}")
    check(int(group) != os.getpgid(process.pid), "Ctrl-C would end the browser")
    process.send_signal(signal.SIGINT)
    check(process.wait(timeout=GIVE_UP_S) == 0 and process.stdout.read() == "", "the browser's words are on stdout")
    seen.unlink()
    for options, browser in ((["--no-browser"], {"BROWSER": str(script)}), ([], {}),
                             ([], {"BROWSER": "", "DISPLAY": ":0"})):
        process = context.start([WALLPROF, "open", *options, path], stdout=subprocess.PIPE,
                                stderr=subprocess.PIPE, text=True, env={**environment, **browser})
        process.stdout.readline()
        time.sleep(0.5)  # a browser would be started now
        children = Path(f"/proc/{process.pid}/task/{process.pid}/children").read_text().split()
        check(not children and not seen.exists(), f"a browser all the same: {options} {browser}")
        process.send_signal(signal.SIGINT)
        check(process.wait(timeout=GIVE_UP_S) == 0, process.stderr.read())


def test_browser_fails(context):
    """The browser's status is that of xdg-open without a desktop."""
    path, script = profile_of(context), context.path("browser")
    for status, words in ((0, ""), (3, "status 3"), (126, "starting a browser failed")):
        script.write_text(f"#!/bin/sh\nexit {status}\n")
        script.chmod(0o755)
        process = context.start([WALLPROF, "open", "--idle-timeout", "2s", path], stderr=subprocess.PIPE, text=True,
                                env={**os.environ, "BROWSER": str(script)})
        check(process.wait(timeout=GIVE_UP_S) == 0, f"status {process.returncode}")
        said = process.stderr.read()
        check(words in said and ("URL yourself" in said) == bool(words), f"of status {status}: {said}")


def test_url_is_lost(context):
    with open("/dev/full", "w") as full:
        process = context.start([WALLPROF, "open", profile_of(context)], stdout=full, stderr=subprocess.PIPE, text=True)
        check(process.wait(timeout=GIVE_UP_S) == 1, f"status {process.returncode}")
    check("No space left" in process.stderr.read(), "the reason is not reported")


def check_workers(opened):
    """The viewer's service worker is not given away, because it would stay in the browser for whatever has this port."""
    for url in ("/sw.js", "/assets/a.js", "/no/such/worker"):
        answer = opened.ask(url, Service_Worker="script", Accept="*/*")
        check_answer(answer, 200, allowed=False)
        check(answer.getheader("content-type").startswith("text/javascript") and b"unregister()" in answer.data
              and answer.getheader("cache-control") == "no-store", f"{url}: {answer.data!r} {answer.headers}")
    check(b"unregister" not in opened.ask("/assets/a.js").data, "no worker is asked for")
    check_answer(opened.ask("/sw.js", Service_Worker="script", Host="example.org"), 403, allowed=False)
    check_answer(opened.ask("/sw.js", "POST", b"", Service_Worker="script"), 405, allowed=False)


def test_own_viewer(context):
    """A folder with a viewer's files is served beside the profile, and nothing outside of it."""
    folder, path = context.path("viewer"), profile_of(context)
    (folder / "assets").mkdir(parents=True)
    (folder / "index.html").write_text("<!doctype html>viewer\n")
    (folder / "assets" / "a.js").write_text("1;\n")
    (folder / "assets" / "a.jpg").write_bytes(b"\xff\xd8\xff")
    (folder / "assets" / "a.ftl").write_text("a = A\n")
    context.path("outside").write_text("not for you\n")
    (folder / "link").symlink_to(context.path("outside"))
    (folder / "up").symlink_to("..")
    opened = Opened(context, path, "--viewer", folder, viewer=r"http://127\.0\.0\.1:\d+")
    page = opened_page(opened)
    for url, text, kind in (("/", "viewer", "text/html"), (page, "viewer", "text/html"),
                            ("/assets/a.js", "1;", "text/javascript"), ("/assets/a.jpg", "", "image/jpeg"),
                            ("/assets/a.ftl", "a = A", "text/plain"), ("/no/such/page", "viewer", "text/html")):
        answer = opened.ask(url, Accept="text/html,*/*;q=0.8")
        check_answer(answer, 200, allowed=False)
        check(text in answer.data.decode(errors="replace") and answer.getheader("content-type").startswith(kind),
              f"{url}: {answer.data!r} {answer.headers}")
    for url in ("/link", "/up/outside", "/../outside", "/assets/../../outside", "/%2e%2e/outside",
                "/up/" + path.name):
        check(b"not for you" not in opened.ask(url).data and opened.ask(url).data[:1] != b"\x1f", f"{url} leads out")
    for url in ("/assets/none.js", "/no/such/page"):  # as a script asks
        check_answer(opened.ask(url, Accept="*/*"), 404, allowed=False)
    check_answer(opened.ask(), 200)
    check_workers(opened)
    (folder / "index.html").unlink()
    done = context.wallprof("open", "--no-browser", "--viewer", folder, path, status=1)
    check(str(folder) in done.stderr, done.stderr)
    context.wallprof("open", "--no-browser", "--viewer", context.path("no-folder"), path, status=1)
    own = Opened(context, path, "--viewer", "http://viewer.example/", viewer=r"http://viewer\.example")
    check_answer(own.ask(), 200)


WORKER = """self.addEventListener('fetch', (event) => event.respondWith(new Response('the worker')));"""
# Registers it, and returns what is left of it.
REGISTER = """(async () => {
    await navigator.serviceWorker.register('/sw.js');
    let left = [];
    for (let i = 0; i < 60; i++) {
        left = await navigator.serviceWorker.getRegistrations();
        if (!left.length)
            break;
        await new Promise((resolve) => setTimeout(resolve, 50));
    }
    return left.map((registration) => registration.scope);
})()"""


class Plain(http.server.SimpleHTTPRequestHandler):
    """Another server of the same files."""

    def log_message(self, *_):
        pass


def check_no_worker(seen):
    check(seen["results"] == [[]] and not seen["errors"], f"a worker stays: {seen}")


def test_no_worker_stays(context):
    """In a browser: the viewer's worker would answer for whatever has this port later."""
    browser, folder = Browser(), context.path("viewer")
    folder.mkdir()
    (folder / "index.html").write_text("<!doctype html><link rel=icon href=data:,>viewer\n")
    (folder / "sw.js").write_text(WORKER)
    opened = Opened(context, profile_of(context), "--viewer", folder, viewer=r"http://127\.0\.0\.1:\d+")
    check_no_worker(browser.open(f"http://127.0.0.1:{opened.port}/", {"evaluate": REGISTER}))
    with http.server.ThreadingHTTPServer(("127.0.0.1", 0), functools.partial(Plain, directory=folder)) as other:
        threading.Thread(target=other.serve_forever, daemon=True).start()
        expect_failure(check_no_worker, browser.open(f"http://127.0.0.1:{other.server_port}/", {"evaluate": REGISTER}))
        other.shutdown()


def first_line(context, *arguments, **settings):
    """Starts `wallprof open` with the arguments. Returns what it prints first, and the process."""
    process = context.start([WALLPROF, "open", "--no-browser", *map(str, arguments)], stdout=subprocess.PIPE,
                            stderr=subprocess.PIPE, text=True, **settings)
    return process.stdout.readline().strip(), process


def ask_url(url):
    match = PROFILE_URL.fullmatch(url)
    check(match, f"no URL of a file: {url!r}")
    connection = http.client.HTTPConnection("127.0.0.1", int(match[1]), timeout=GIVE_UP_S)
    connection.request("GET", f"/{match[2]}/{match[3]}")
    answer = connection.getresponse()
    answer.data = answer.read()
    connection.close()
    return answer


def check_page(answer, page):
    check(answer.status == 200 and answer.getheader("content-type").startswith("text/html"),
          f"{answer.status} {answer.headers}")
    check(answer.data == page.read_bytes(), "it is another page")


def test_offline(context):
    """Without an installed viewer the page is served, which is made once; with one, that viewer is used."""
    path, page = profile_of(context, "p.json"), context.path("p.html")
    nowhere = {**os.environ, "XDG_DATA_HOME": str(context.path("data"))}
    url, process = first_line(context, "--offline", path, env=nowhere)
    answer = ask_url(url)
    check_page(answer, page)
    made = page.stat().st_mtime_ns
    process.send_signal(signal.SIGINT)
    check(process.wait(timeout=GIVE_UP_S) == 0, process.stderr.read())
    url, _ = first_line(context, "--offline", context.path("p.capture"), env=nowhere)
    check_page(ask_url(url), page)
    check(page.stat().st_mtime_ns == made, "the page was made again")
    viewer = context.path("data") / "wallprof" / "viewer"
    viewer.mkdir(parents=True)
    (viewer / "index.html").write_text("<!doctype html>viewer\n")
    url, _ = first_line(context, "--offline", path, env=nowhere)
    check(re.match(r"http://127\.0\.0\.1:\d+/from-url/", url), f"the viewer is not used: {url}")
    page.write_text("<p>changed")
    expect_failure(check_page, answer, page)


def test_unreachable(context):
    """Where the viewer's site is not reached, a warning says so. Where a proxy is set, nothing is tried."""
    needs_root()
    needs_command("ip")
    path, lonely = profile_of(context), "ip link set lo up && exec \"$@\""
    clean = {name: value for name, value in os.environ.items() if not name.lower().endswith("_proxy")}

    def said(**proxy):
        log = context.path("stderr")
        with log.open("w") as stderr:
            process = context.start(["unshare", "--net", "sh", "-c", lonely, "sh", WALLPROF, "open", "--no-browser", path],
                                    stdout=subprocess.PIPE, stderr=stderr, text=True, env={**clean, **proxy})
        process.stdout.readline()
        if proxy:
            time.sleep(2)  # it would be printed now
        else:
            wait_until(lambda: "--offline" in log.read_text(), "there is a warning")
        process.send_signal(signal.SIGINT)
        check(process.wait(timeout=GIVE_UP_S) == 0, log.read_text())
        return log.read_text()

    check("this machine cannot reach https://profiler.firefox.com" in said(), context.path("stderr").read_text())
    check("cannot reach" not in said(https_proxy="http://127.0.0.1:1"), context.path("stderr").read_text())


def opened_page(opened):
    """The page's path, as the browser asks for it."""
    return "/from-url/" + opened.page.split("/from-url/", 1)[1]


# ---- names, sources, assembly --------------------------------------------------------------------


def post(opened, call, question):
    body = question if isinstance(question, bytes) else json.dumps(question).encode()
    answer = opened.ask(f"/{opened.secret}/{call}", "POST", body)
    check_answer(answer, 200)
    return json.loads(answer.data)


class Program:
    """A recorded program with inlined calls, as the profile names it."""

    def __init__(self, context):
        needs_command("gcc")
        needs_command("addr2line")
        self.source, self.binary = context.path("work.c"), context.path("work")
        self.source.write_text(WORK)
        subprocess.run(["gcc", "-O2", "-g", "-o", self.binary, self.source], check=True)
        self.profile = context.path("p.json")
        context.wallprof("-q", "--keep-capture", "-o", self.profile, "--", self.binary)
        libs = json.loads(self.profile.read_text())["libs"]
        (self.lib,) = [lib for lib in libs if lib["path"] == str(self.binary)]
        symbols = subprocess.run(["nm", "-S", self.binary], check=True, capture_output=True, text=True).stdout
        (self.start, self.size), = [(int(line.split()[0], 16), int(line.split()[1], 16))
                                    for line in symbols.splitlines() if line.endswith(" hot")]

    def asked(self, **more):
        return {"debugName": self.lib["debugName"], "debugId": self.lib["breakpadId"], **more}

    def addresses(self):
        """Compares the function's instructions with objdump's."""
        done = subprocess.run(["objdump", "-d", "--no-show-raw-insn", f"--start-address={self.start}",
                               f"--stop-address={self.start + self.size}", self.binary],
                              check=True, capture_output=True, text=True).stdout
        return [int(m[1], 16) for m in re.finditer(r"^ *([0-9a-f]+):\t", done, re.M)]

    def addr2line(self, address):
        """[(function, file, line)], innermost first."""
        done = subprocess.run(["addr2line", "-f", "-i", "-e", self.binary, hex(address)], check=True,
                              capture_output=True, text=True).stdout.splitlines()
        places = [place.split(" ")[0].rsplit(":", 1) for place in done[1::2]]
        return [(name, file, int(line) if line.isdigit() else 0)
                for name, (file, line) in zip(done[::2], places)]


WORK = """#include <stdlib.h>
#include <time.h>
static inline __attribute__((always_inline)) unsigned step(unsigned x)
{
	return x * 1664525 + 1013904223;
}
static inline __attribute__((always_inline)) unsigned steps(unsigned x)
{
	for (int i = 0; i < 100; i++)
		x = step(x) ^ x >> 3;
	return x;
}
__attribute__((noinline)) unsigned hot(unsigned x)
{
	for (int i = 0; i < 1000; i++)
		x += steps(x);
	return x;
}
int main(void)
{
	unsigned x = 1;
	clock_t end = clock() + CLOCKS_PER_SEC / 20;

	while (clock() < end)
		x = hot(x);
	return x == 7;
}
"""


def frames_of(frame):
    """[(function, file, line)] of an answer, innermost first."""
    return [(f["function"], f.get("file"), f.get("line", 0)) for f in [*frame.get("inlines", []), frame]]


def check_symbols(answer, program, addresses):
    (result,) = answer["results"]
    key = f"{program.lib['debugName']}/{program.lib['breakpadId']}"
    check(result["found_modules"] == {key: True} and not result["module_errors"], str(result)[:500])
    (stack,) = result["stacks"]
    check(len(stack) == len(addresses), f"{len(stack)} frames")
    for number, (frame, address) in enumerate(zip(stack, addresses)):
        check(frame["frame"] == number and int(frame["module_offset"], 16) == address
              and frame["module"] == program.lib["debugName"], str(frame))
        check(int(frame["function_offset"], 16) == address - program.start
              and int(frame["function_size"], 16) == program.size, str(frame))
        check(frames_of(frame) == program.addr2line(address),
              f"{address:#x}: {frames_of(frame)}, addr2line has {program.addr2line(address)}")


def test_symbolicate(context):
    program = Program(context)
    opened, addresses = Opened(context, program.profile), program.addresses()
    check(len(addresses) > 5, f"{len(addresses)} instructions")
    question = {"jobs": [{"memoryMap": [[program.lib["debugName"], program.lib["breakpadId"]]],
                          "stacks": [[[0, a] for a in addresses]]}]}
    for _ in range(2):  # the second time they are remembered
        check_symbols(post(opened, "symbolicate/v5", question), program, addresses)
    check(any(len(program.addr2line(a)) == 3 for a in addresses), "nothing is inlined in what is inlined")
    expect_failure(check_symbols, post(opened, "symbolicate/v5", question), program,
                   [addresses[0], *addresses[:-1]])
    unknown = {"jobs": [{"memoryMap": [["libfoo.so", "0" * 33]], "stacks": [[[0, 1]], []]}]}
    (result,) = post(opened, "symbolicate/v5", unknown)["results"]
    check(result["found_modules"] == {"libfoo.so/" + "0" * 33: False} and len(result["stacks"]) == 2
          and "function" not in result["stacks"][0][0], str(result))
    subprocess.run(["gcc", "-O0", "-o", program.binary, program.source], check=True)
    (result,) = post(opened, "symbolicate/v5", question)["results"]
    check(set(result["found_modules"].values()) == {False} and "recorded" in str(result["module_errors"]),
          f"names of another file: {str(result)[:300]}")


def test_source(context):
    """Only of files that the debug information names."""
    program = Program(context)
    opened, address = Opened(context, program.profile), hex(program.start)
    answer = post(opened, "source/v1", program.asked(moduleOffset=address, file=str(program.source)))
    check(answer.get("source") == WORK and answer["file"] == str(program.source), str(answer)[:300])
    for path in ("/etc/passwd", str(program.binary), f"{context.folder}/./work.c", "work.c", ""):
        answer = post(opened, "source/v1", program.asked(moduleOffset=address, file=path))
        check("source" not in answer and answer["error"], f"{path} is given away: {str(answer)[:200]}")
    for asked in ({}, {"moduleOffset": "0x0"}, program.asked(file=str(program.source)),
                  program.asked(moduleOffset="1", file="x"), program.asked(moduleOffset="0x", file="x"),
                  program.asked(moduleOffset="0x-1", file="x"),
                  {**program.asked(moduleOffset=address, file=str(program.source)), "debugId": "0" * 33},
                  program.asked(moduleOffset="0xfffffffffff", file=str(program.source))):
        check("error" in post(opened, "source/v1", asked), f"{asked} is answered")


def test_assembly(context):
    """The same instructions as objdump's."""
    program = Program(context)
    opened = Opened(context, program.profile)
    asked = program.asked(name="hot", codeId=program.lib["codeId"], startAddress=hex(program.start))
    for size, whole in ((program.size, False), (1, True)):
        answer = post(opened, "asm/v1", {**asked, "size": hex(size), "continueUntilFunctionEnd": whole})
        check(answer.get("arch") == "x86_64" and int(answer["size"], 16) == program.size
              and int(answer["startAddress"], 16) == program.start, str(answer)[:300])
        offsets = [program.start + offset for offset, _ in answer["instructions"]]
        check(offsets == program.addresses(), f"instructions at {offsets}, objdump's at {program.addresses()}")
    texts = [text for _, text in answer["instructions"]]
    check(any(text.startswith("imul") for text in texts) and texts[-1] == "ret", f"they are {texts}")
    targets = [int(m[1], 16) for text in texts if (m := re.match(r"j\w+ 0x([0-9a-f]+)$", text))]
    check(targets and set(targets) <= set(program.addresses()), f"they jump to {targets}")
    for changes in ({"startAddress": "0xffffffffff"}, {"debugId": "0" * 33}, {"size": "x"}, {"startAddress": None}):
        check("error" in post(opened, "asm/v1", {**asked, "size": "0x10", **changes}), f"{changes} is answered")
    large = post(opened, "asm/v1", {**asked, "size": "0x7fffffffffffffff"})
    check(int(large["size"], 16) <= 1 << 20, "all that is asked for is taken apart")


def test_hostile_questions(context):
    """The reader of questions, with what no viewer asks."""
    program, rng = Program(context), context.random
    opened = Opened(context, program.profile)
    module = [program.lib["debugName"], program.lib["breakpadId"]]
    for question in (b"", b"{", b"[]", b"null", b"\xff\xfe", b"{" * 100000, b"[" * 4000000, b"{\"jobs\":1}",
                     {"jobs": [1]}, {"jobs": [{}] * 100}, {"jobs": [{"memoryMap": [module], "stacks": 1}]},
                     {"jobs": [{"memoryMap": [module], "stacks": [[[1, 1]]]}]},
                     {"jobs": [{"memoryMap": [module], "stacks": [[[-1, 1]]]}]},
                     {"jobs": [{"memoryMap": [module], "stacks": [[[0, -1]]]}]},
                     {"jobs": [{"memoryMap": [module], "stacks": [[[0, 1.5]]]}]},
                     {"jobs": [{"memoryMap": [module], "stacks": [[[0]]]}]},
                     {"jobs": [{"memoryMap": [[1, 2]], "stacks": []}]},
                     {"jobs": [{"memoryMap": [module], "stacks": [[[0, a] for a in range(50001)]]}]}):
        for call in ("symbolicate/v5", "source/v1", "asm/v1"):
            check("error" in post(opened, call, question), f"{call} answers {str(question)[:80]}")
    good = json.dumps({"jobs": [{"memoryMap": [module], "stacks": [[[0, program.start]]]}]}).encode()
    for _ in range(200):
        broken = bytearray(good)
        for _ in range(rng.randint(1, 4)):
            broken[rng.randrange(len(broken))] = rng.randrange(256)
        post(opened, rng.choice(["symbolicate/v5", "source/v1", "asm/v1"]), bytes(broken))
    check(opened.ask(f"/{opened.secret}/symbolicate/v5", "POST", b" " * (5 << 20)).status == 413,
          "there is no bound")
    check_answer(opened.ask(f"/{opened.secret}/symbolicate/v6", "POST", b"{}"), 404)
    check("results" in post(opened, "symbolicate/v5", good), "it answers no more")


def test_viewer_reads_it(context):
    """The independent reader, over HTTP; the same as from the file."""
    path = profile_of(context)
    opened = Opened(context, path)
    with Viewer() as viewer:
        viewer.load(opened.url)
        from_url = viewer.thread_handles()
    with Viewer() as viewer:
        viewer.load(path)
        check(viewer.thread_handles() == from_url and from_url, f"{from_url} from the URL")


def test_viewer_shows_assembly(context):
    """By the page's own URL, as a browser opens it: each instruction with its time."""
    program = Program(context)
    opened = Opened(context, program.profile)
    with Viewer() as viewer:
        viewer.load(opened.page)
        (main,) = [t.tid for t in Profile.load(program.profile).threads if t.name == "work"]
        thread = viewer.thread_handles()[main]
        viewer.query("thread", "select", thread)
        functions = viewer.query("thread", "functions", "--thread", thread, "--limit", 0)["functions"]
        (hot,) = [f for f in functions if f["name"] == "hot"]
        answer = viewer.query("function", "annotate", hot["functionHandle"], "--mode", "asm", "--context", "file")
    (shown,) = answer["asmAnnotations"]
    check(shown["functionSize"] == program.size and not shown["fetchError"], str(shown)[:300])
    addresses = [i["address"] for i in shown["instructions"]]
    check(addresses == program.addresses(), f"instructions at {addresses}, objdump's at {program.addresses()}")
    # Less what it waited for a CPU, which is no instruction's; what is inlined in it is a function of its own there.
    of_all = sum(f["selfSamples"] for f in functions if f["name"] in ("hot", "steps", "step"))
    total = sum(i["selfSamples"] for i in shown["instructions"])
    check(total > 20 and abs(total - of_all) < 0.1 * of_all + 3, f"{total} ms at its instructions, {of_all} in all")
