# SPDX-License-Identifier: GPL-2.0-or-later
"""Builds and runs in the roots of other releases, from the release tarball."""
import re
import shlex
import subprocess

from debian_roots import ROOT

# name: compiler, build type, meson options. All from one tarball, by an ordinary user who has no network.
OPTIONAL_PARTS = "-Dopen=enabled -Dexample=enabled"
ALL = f"-Dtests=enabled {OPTIONAL_PARTS}"
BUILDS = {
    "gcc_release": ("gcc", "release", ALL),
    "gcc_debug": ("gcc", "debug", "-Dtests=disabled"),
    "clang_release": ("clang", "release", ALL),
    "clang_debug": ("clang", "debug", ""),
}
TESTED = "gcc_release"  # what the suites run
# What a short run builds. The compilers of 13 lie between those of Debian 12 and sid, and no code depends on the type of
# build but what a test by gcc and one by clang see.
SHORT_BUILDS = {"13": ("gcc_release", "clang_debug"), "sid": ("gcc_release", "clang_release")}
WITHOUT_PARTS = "clang_debug"  # configured as if the libraries of all parts were missing
PARTS = ("cmocka", "liburing", "libmicrohttpd", "jansson", "capstone")
# Suites whose result the compiler, libc, libbpf, libdw or a tool of the release can change; each has a test.
SUITES = ("unit.", "cli.", "record.", "symbols.", "unwind.", "places.")
# On sid a short run has of these what depends on libdw, libelf or the code that compilers make.
SHORT_SUITES = {"sid": ("unit.dwarf_", "unit.elf_", "unit.object_names", "unit.debug_", "unit.unwind_", "cli.", "symbols.",
                        "unwind.", "places.")}
# These run only if --test names them. The first ones take seconds of CPU time each, and what they are about is neither the
# compiler nor a library: processes, memory and files of ours. The others compare times or count the kernel's BPF programs,
# which other tests disturb.
OMITTED = ("unit.spill.", "unit.table_service.", "unit.table_cache.", "unit.symbol_cache.", "unit.sideband.",
           "unit.elf_identifier.", "unit.debuginfod.", "unit.pclntab.", "unit.symbol_jobs.", "unit.address_space.",
           "record.window_is_on_time", "record.duration_with_a_command", "record.interrupt_ends_attaching",
           "record.two_interrupts", "record.request_of_several_signals", "record.second_request",
           "record.same_program_leaves_no_trace")
PKG_CONFIG = f"""#!/bin/sh
case " $* " in *" {'"* | *" '.join(PARTS)} "*) exit 1 ;; esac
exec pkg-config "$@"
"""
# Only what it is called by differs from build to build, so that a build that changes nothing costs little.
SCRIPT = """set -eu
export PATH=/usr/lib/ccache:$PATH CCACHE_DIR=/ccache CCACHE_MAXSIZE=2G HOME=/tmp
mkdir /tmp/bin
printf %s {pkg_config} >/tmp/bin/pkg-config-without-parts
chmod +x /tmp/bin/pkg-config-without-parts
cd /wallprof
tar xzf /in/wallprof.tar.gz --strip-components=1
build() { # NAME COMPILER TYPE OPTIONS…
	name=$1 compiler=$2 type=$3
	shift 3
	begin=$(date +%s)
	if {
		CC=$compiler meson setup "/build/$name" -Dwerror=true "-Dbuildtype=$type" "$@" &&
			ninja -C "/build/$name"
	} >"/tmp/$name.log" 2>&1; then
		echo "built $name $(($(date +%s) - begin))"
	else
		echo "broken $name"
		grep -v '^\\[' "/tmp/$name.log" | tail -n 60 | sed 's/^/    /'
	fi
}
"""
RESULT = re.compile(r"^(ok|not ok|skip) ([\w.-]+)(?:: (.*)| \((.*)\))?$")


def tarball(folder):
    """Returns the tarball that `meson dist` makes of the last commit."""
    done = subprocess.run(["meson", "dist", "-C", ROOT / "build", "--no-tests", "--formats", "gztar",
                           "--allow-dirty"], capture_output=True, text=True)
    if done.returncode != 0:
        raise subprocess.SubprocessError(f"meson dist: {(done.stdout + done.stderr).strip()[-1000:]}")
    (made,) = (ROOT / "build" / "meson-dist").glob("*.tar.gz")
    return made.rename(folder / "wallprof.tar.gz")


def unpack(archive, folder):
    folder.mkdir()
    subprocess.run(["tar", "xzf", archive, "--strip-components=1", "-C", folder], check=True)
    return folder


def builds_of(release, long):
    """The names of what is built there."""
    return tuple(BUILDS) if long else SHORT_BUILDS[release]


def suites_of(release, long):
    return SUITES if long else SHORT_SUITES.get(release, SUITES)


def build_script(names):
    """Prints `built NAME SECONDS`, or `broken NAME` and the end of what was said, for each of BUILDS."""
    text = SCRIPT.replace("{pkg_config}", shlex.quote(PKG_CONFIG))
    for name in names:
        compiler, kind, options = BUILDS[name]
        without = "PKG_CONFIG=/tmp/bin/pkg-config-without-parts " if name == WITHOUT_PARTS else ""
        text += f"{without}build {name} {compiler} {kind} {options}\n"
    return text


def test_script(seed, names, suites):
    """Go's results for its own library are cached beside those of the compilers."""
    omitted = [] if names else [f"--without={name}" for name in OMITTED]
    return (f"cd /wallprof && ln -s /build/{TESTED} build && cd tests && "
            f"WALLPROF_SEED={seed} GOCACHE=/ccache/go-build exec python3 -B -m pytest --root {' '.join([*omitted, *(names or suites)])}\n")


# Each build must record, too; and optional parts must be absent where they should be.
RECORD = """for name in {names}; do
	said=$(/build/$name/wallprof -q -o /tmp/recorded.json -- true 2>&1) && [ -s /tmp/recorded.json ] &&
		echo "recorded $name" || printf 'broken %s_records\\n    %s\\n' "$name" "$said"
	rm -f /tmp/recorded.json
done
"""
LACKS_PARTS = """said=$(/build/{without_parts}/wallprof open /tmp/no.json 2>&1 || true)
case $said in
*"built without"*) echo "built without_parts 0" ;;
*) printf 'broken without_parts\\n    open says: %s\\n' "$said" ;;
esac
"""


def whole_script(release, seed, names, long):
    """The user `nobody` builds, without a network; then root records with each build, and runs the suites."""
    built = builds_of(release, long)
    return ("chmod 777 /wallprof /build /ccache\n"
            "unshare --net setpriv --reuid 65534 --regid 65534 --clear-groups "
            f"/bin/sh -c {shlex.quote(build_script(built))} &&\n{RECORD.format(names=' '.join(built))}"
            f"{LACKS_PARTS.format(without_parts=WITHOUT_PARTS) if WITHOUT_PARTS in built else ''}"
            f"{test_script(seed, names, suites_of(release, long))}")


def not_heard_of(release, long, seen):
    """Of the results that must come of a release: a build or a suite that got another name must not be lost."""
    built = builds_of(release, long)
    wanted = {f"build.{name}{suffix}" for name in built for suffix in ("", "_records")}
    wanted |= {"build.without_parts"} if WITHOUT_PARTS in built else set()
    return wanted - seen


def not_run(release, long, seen):
    """Those of the suites in which no test ran: a test that got another name must not be lost."""
    return [name for name in suites_of(release, long) if not any(test.startswith(name) for test in seen)]


def results(lines):
    """(name, ok | not ok | skip | note, why) of what the whole script prints, as it comes."""
    failed = None
    for line in map(str.rstrip, lines):
        if failed and (line.startswith("    ") or not line):
            failed[1].append(line[4:])
            continue
        if failed:
            yield failed[0], "not ok", "\n".join(failed[1])
            failed = None
        words, match = line.split(), RESULT.match(line)
        if words[:1] == ["built"]:
            yield f"build.{words[1]}", "ok", f"{words[2]} s"
        elif words[:1] == ["recorded"]:
            yield f"build.{words[1]}_records", "ok", ""
        elif words[:1] == ["broken"]:
            failed = (f"build.{words[1]}", [])
        elif match and match[1] == "not ok":
            failed = (match[2], [])
        elif match:
            yield match[2], match[1], match[3] or match[4] or ""
        elif line.startswith("#"):
            yield None, "note", line[1:].strip()
    if failed:
        yield failed[0], "not ok", "\n".join(failed[1])
