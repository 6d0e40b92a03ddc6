# SPDX-License-Identifier: GPL-2.0-or-later
"""Programs as the distribution has them, stripped and without frame pointers, at work."""
import shutil
import subprocess

from harness import WORKLOADS, needs_command
from object_files import run

THREADS = """
import hashlib, threading, time
def work(seed):
    text = bytes([seed]) * 100000
    for _ in range({rounds}):
        text = hashlib.sha256(text).digest() * 3000
        sorted(str(i) for i in range(3000))
        time.sleep(0.002)
threads = [threading.Thread(target=work, args=(i,)) for i in range(4)]
[t.start() for t in threads]
[t.join() for t in threads]
"""

SQL = """
create table t(id integer primary key, a text, b integer);
with recursive n(i) as (select 1 union all select i + 1 from n where i < {rows})
  insert into t select i, hex(randomblob(20)), i * 7919 % 10007 from n;
create index by_b on t(b);
select b, count(*), max(a) from t group by b order by 2 desc, 1 limit 5;
select count(*) from t x join t y on x.b = y.b where x.id < 2000;
"""

NODE = """
const fs = require("fs"), crypto = require("crypto"), zlib = require("zlib");
function fib(n) { return n < 2 ? n : fib(n - 1) + fib(n - 2); }
async function main() {
    for (let i = 0; i < %d; i++) {
        fib(22);
        crypto.pbkdf2Sync("a", "b", 2000, 32, "sha256");
        zlib.deflateSync(Buffer.alloc(200000, i));
        await fs.promises.readFile("/etc/passwd").then(b => b.length);
        await new Promise(resolve => setTimeout(resolve, 2));
    }
}
main();
"""


def python_threads(context):
    return ["/usr/bin/python3", "-c", THREADS.format(rounds=context.random.randint(40, 60))]


def openssl_speed(_context):
    needs_command("openssl")
    return ["openssl", "speed", "-seconds", "1", "-bytes", "4096", "rsa2048", "aes-256-cbc",
            "sha256"]


def _import_stream(rng, commits):
    """Returns the input of git fast-import: a history of some files."""
    lines = []
    for number in range(commits):
        lines += ["commit refs/heads/main", f"committer T <t@localhost> {1700000000 + number} +0000",
                  "data 4", f"c{number % 1000:03d}"]
        for _ in range(5):
            text = "\n".join(str(rng.random()) for _ in range(50))
            lines += [f"M 100644 inline f{rng.randrange(40)}", f"data {len(text)}", text]
    return "\n".join(lines) + "\n"


def git_clone_and_log(context):
    needs_command("git")
    source, script = context.path("source"), context.path("script")
    shutil.rmtree(source, ignore_errors=True)
    run("git", "init", "-q", "-b", "main", source)
    subprocess.run(["git", "fast-import", "--quiet"], cwd=source, check=True, text=True,
                   input=_import_stream(context.random, 300))
    script.write_text(f'rm -rf "{context.path("clone")}"\n'
                      f'git clone -q --no-local "{source}" "{context.path("clone")}"\n'
                      f'git -C "{context.path("clone")}" log -p --stat >/dev/null\n'
                      f'git -C "{context.path("clone")}" repack -qadf\n')
    return ["sh", script]


def sqlite(context):
    needs_command("sqlite3")
    context.path("base.db").unlink(missing_ok=True)
    return ["sqlite3", context.path("base.db"),
            SQL.format(rows=context.random.randint(150000, 200000))]


def gcc_compile(context):
    needs_command("gcc")
    source = context.path("source.c")
    source.write_text("#include <stdio.h>\n" + "\n".join(
        f"int f{i}(int n, int *a) {{ int s = 0; for (int i = 0; i < n; i++) s += a[i] * {i} + "
        f"(a[i] >> {i % 31}); printf(\"%d\", s); return s; }}" for i in range(800)))
    return ["gcc", "-O2", "-g", "-c", source, "-o", context.path("source.o")]


def node(context):
    needs_command("node")
    return ["node", "-e", NODE % context.random.randint(60, 90)]


def gdb_batch(context):
    """A debugger, and the program that it stops: not by a breakpoint, behind which the program
    counter is one further than the program is."""
    needs_command("gdb")
    return ["env", f"WALLPROF_ANNOUNCE={context.path('reported')}", "gdb", "-q", "-batch", "-nx",
            "-ex", "set debuginfod enabled off", "-ex", "info functions", "-ex", "info types",
            "-ex", "catch syscall clock_nanosleep", "-ex", "run", "-ex", "bt full", "-ex", "info line main",
            "-ex", "disassemble /s main", "-ex", "kill", "--args", WORKLOADS / "unwind-calls",
            "recursion", "1", "50"]


ALL = {"python3": python_threads, "openssl": openssl_speed, "git": git_clone_and_log,
       "sqlite3": sqlite, "gcc": gcc_compile, "node": node, "gdb": gdb_batch}
