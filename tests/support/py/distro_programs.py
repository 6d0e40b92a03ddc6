# SPDX-License-Identifier: GPL-2.0-or-later
"""Programs as the distribution has them, stripped and without frame pointers, at work; and code of each kind whose
callers are hard to find."""
import shutil
import subprocess
from collections import namedtuple

from harness import WORKLOADS, Skip, needs_command
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


RUBY = """
walk = Enumerator.new { |y| n = 0; loop { y << (n += 1) } }
rest = Fiber.new { loop { 2000.times { |i| Math.sqrt(i) }; Fiber.yield } }
%d.times { walk.next; rest.resume }
"""
PHP = "function f($n) { return $n < 2 ? $n : f($n - 1) + f($n - 2); } for ($i = 0; $i < %d; $i++) f(20);"
PERL = "sub f { my $n = shift; $n < 2 ? $n : f($n - 1) + f($n - 2) } f(17) for 1..%d;"


def speed(*what):
    def command(_context):
        needs_command("openssl")
        return ["openssl", "speed", "-seconds", "1", "-bytes", "16384", *what]
    return command


def gnutls(_context):
    needs_command("gnutls-cli")
    return ["timeout", "2", "gnutls-cli", "--benchmark-ciphers"]


def script(interpreter, option, text, rounds):
    def command(_context):
        needs_command(interpreter)
        return [interpreter, option, text % rounds]
    return command


def x264(context):
    needs_command("x264")
    video = context.path("video.yuv")
    video.write_bytes(context.random.randbytes(320 * 240 * 3 // 2) * 40)
    return ["x264", "--quiet", "--threads", "1", "--input-res", "320x240", "-o", "/dev/null", video]


def multiply(context):
    """bc has its own numbers; php's gmp_mul() and gcc's constants use libgmp only in passing."""
    needs_command("gcc")
    source, program = context.path("multiply.c"), context.path("multiply")
    source.write_text("#include <gmp.h>\n#include <stdlib.h>\nint main(int c, char **v) { mpz_t a, b; (void)c; "
                      "mpz_init(a); mpz_init(b); mpz_ui_pow_ui(a, 7, 4000); "
                      "for (int i = atoi(v[1]); i--;) mpz_mul(b, a, a); return mpz_sgn(b) - 1; }\n")
    if subprocess.run(["gcc", "-O2", source, "-o", program, "-lgmp"], check=False, capture_output=True).returncode:
        raise Skip("libgmp-dev is not installed")
    return [program, "40000"]


def hard(kind, program="hard"):
    return lambda context: [WORKLOADS / program, kind, context.random.randint(350, 450)]


# least: the percentage of whole stacks that must be; it holds today, and is raised when more are. chain: functions that
# must be in each stack, in this order and one below the other, the first of them outermost but for where threads begin;
# of a coroutine, whatever is above the first. None: the stacks have to begin where threads do.
# may_guess: nothing but frame pointers or the code itself says who called, so frames that are guessed count. begins: the
# functions that remain on the stack when that of a coroutine has returned. fibers: its stacks also begin where gdb says
# that fibers begin.
Hard = namedtuple("Hard", "command least chain what may_guess begins fibers", defaults=(False, (), False))
OWN = ("main", "outer", "middle")
HARD = {
    "plain": Hard(hard("plain"), 99, (*OWN, "plain"), "compiled C"),
    "scratch": Hard(hard("scratch"), 99, (*OWN, "hard_scratch", "hard_scratch_inner"),
                    "a frame that call frame information finds by rax, below a call"),
    "expression": Hard(hard("expression"), 99, (*OWN, "hard_expression"),
                       "a frame found by an expression of two registers"),
    "no-cfi": Hard(hard("no-cfi"), 99, (*OWN, "hard_no_cfi"), "assembly without call frame information"),
    "aligned": Hard(hard("aligned"), 99, (*OWN, "hard_aligned_sp", "hard_aligned"),
                    "the same, with a stack that is aligned and found by a word of it"),
    "context": Hard(hard("context"), 97, ("in_coroutine", "plain"), "a coroutine of makecontext()",
                    begins=("__start_context",)),
    "zero": Hard(hard("zero"), 96, ("hard_zero_body", "plain"), "a coroutine whose caller is 0"),
    "planted": Hard(hard("planted"), 96, ("hard_begins", "hard_zero_body", "plain"),
                    "a coroutine whose caller is assembly without call frame information"),
    "anonymous": Hard(hard("anonymous"), 95, (*OWN, "hard_moved"), "anonymous memory over a file's code"),
    "raw-file": Hard(hard("raw-file"), 95, (*OWN, None), "code in a file that is not ELF", may_guess=True),
    "frame-pointers": Hard(hard("plain", "hard-frame-pointers"), 99, (*OWN, "plain"),
                           "a program with frame pointers and without call frame information"),
    "aes-gcm": Hard(speed("-evp", "aes-256-gcm"), 99, None, "OpenSSL's AES-GCM"),
    "ecdsa-p384": Hard(speed("ecdsap384"), 99, None, "OpenSSL's Montgomery multiplication"),
    "gnutls": Hard(gnutls, 99, None, "GnuTLS's ciphers"),
    "gmp": Hard(multiply, 95, None, "libgmp", may_guess=True),
    "x264": Hard(x264, 97, None, "x264, written in nasm"),
    "ruby-fiber": Hard(script("ruby", "-e", RUBY, 1500), 99, None, "Ruby's fibers", fibers=True),
    "php": Hard(script("php", "-r", PHP, 60), 99, None, "PHP's interpreter"),
    "perl": Hard(script("perl", "-e", PERL, 100), 99, None, "Perl"),
}
