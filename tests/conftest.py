# SPDX-License-Identifier: GPL-2.0-or-later
"""The names of tests and which of them are wanted; and what a test may ask for: its context, and the machine.

Suites: unit (cmocka, each of its tests on its own), unit-asan (the same under the sanitizers), vm (the kernel matrix),
roots (other releases of Debian), fuzz (fuzz.py), and one for each e2e/*/test_*.py.
In a guest of the kernel matrix (--guest) only the last ones, as far as they need a kernel. In a root of another release
(--root) the unit tests without sanitizers, and those suites that are named.
"""
import os
import random
from collections import defaultdict

import pytest

import busy
import harness

pytest_plugins = ("scheduler", "cmocka", "other_machines")
ORDER = {"roots": -1, "fuzz": 1, "busy": 2}  # of suites; all others are in between


def pytest_addoption(parser):
    group = parser.getgroup("wallprof")
    group.addoption("--long", action="store_true", help="every suite on every kernel; print a page of the results at the end")
    group.addoption("--without", action="append", default=[], metavar="NAME", help="omit tests with NAME in their SUITE.TEST")
    group.addoption("--guest", action="store_true", help="this is a guest of the kernel matrix")
    group.addoption("--root", action="store_true", help="this is a root of another release")


def pytest_configure(config):
    option = config.option
    if option.help:
        return
    config.seed = int(os.environ.get("WALLPROF_SEED") or random.randrange(1 << 31))
    # The arguments are names, and no paths.
    config.names = config.args if config.args_source is config.ArgsSource.ARGS else []
    config.args = [str(path) for name in config.getini("testpaths") if (path := config.rootpath / name).exists()]
    if option.long:
        os.environ["WALLPROF_LONG"] = "1"
    # Go's standard library is compiled once, not by each test that builds a program.
    os.environ.setdefault("GOCACHE", str(harness.cache_folder() / "go-build"))
    config.busy_suites = busy_suites(config)


def busy_suites(config):
    """All of them, one drawn by the seed, or those with a requested test."""
    if config.names or config.option.root:
        return busy.SUITES if any(name.startswith("busy.") for name in config.names) else ()
    if config.option.long or config.option.guest:
        return busy.SUITES
    return (random.Random(config.seed).choice(busy.SUITES),)


def pytest_ignore_collect(collection_path, config):
    """To import suites of which no test can be meant would take a guest seconds."""
    suite = collection_path.stem.removeprefix("test_")
    parts = [name.removeprefix("busy.").partition(".") for name in config.names]
    if collection_path.suffix == ".py" and parts and all(dot and not suite.endswith(of) for of, dot, _ in parts):
        return True
    return None


def pytest_itemcollected(item):
    """The suite, the name SUITE.TEST, and whether nothing may run beside it. A parameter is the name of a test, but for a
    busy machine."""
    item.full_name, item.keeps_files = item.name, False
    if isinstance(item, pytest.Function):
        suite, test = item.path.stem.removeprefix("test_"), item.originalname.removeprefix("test_")
        parameter = item.callspec.id if hasattr(item, "callspec") else "idle"
        name = test if parameter in ("idle", "busy") else parameter
        item.full_name = f"busy.{suite}.{name}" if parameter == "busy" else f"{suite}.{name}"
    item.suite = item.full_name.split(".")[0]
    item.runs_alone = item.suite == "busy" or not item.get_closest_marker("untimed")
    item.extra_keyword_matches.add(item.full_name)


@pytest.hookimpl(hookwrapper=True)
def pytest_runtest_makereport(item, call):
    report, error = (yield).get_result(), call.excinfo and call.excinfo.value
    report.nodeid, report.late = item.full_name, ""
    if isinstance(error, harness.TimingFailure):
        report.late = str(error).split("\n", 1)[0]
    if isinstance(error, (harness.Skip, harness.HostBusy)):
        why = f"its host was too busy: {report.late}" if report.late else str(error)
        report.outcome, report.longrepr = "skipped", (str(item.path), 0, why)
    elif report.failed:
        context = getattr(item, "funcargs", {}).get("context")
        why = error if isinstance(error, harness.Failure) else report.longrepr
        report.longrepr = f"{why}\n(files: {context.folder})" if context else str(why)
    item.keeps_files |= report.failed or bool(report.late)


def is_wanted(item, names, without):
    def is_meant_by(word):
        return word in item.full_name

    return (not any(map(is_meant_by, without))
            and (not names or any(map(getattr(item, "is_meant_by", is_meant_by), names))))


def name_apart(items):
    """Of tests with one name, a suite having several with that parameter, each gets its own name as well."""
    named = defaultdict(list)
    for item in items:
        named[item.full_name].append(item)
    for same in named.values():
        for item in same if len(same) > 1 else ():
            if not hasattr(item, "callspec"):  # two files with one name
                raise pytest.UsageError(f"two tests are called {item.full_name}")
            test = item.originalname.removeprefix("test_")
            item.full_name = item.full_name.replace(item.callspec.id, f"{test}_{item.callspec.id}")
            item.extra_keyword_matches.add(item.full_name)


@pytest.hookimpl(trylast=True)
def pytest_collection_modifyitems(config, items):
    name_apart(items)
    if config.option.guest:
        left = defaultdict(list)
        for item in items:
            mark = item.get_closest_marker("host_only")
            left[mark and mark.args[0]].append(item)
        items[:] = left.pop(None, [])
        for why, omitted in left.items():
            count = sum(item.suite != "busy" for item in omitted)
            print(f"# left to the host, {count} tests: {why}", flush=True)
    items[:] = sorted((item for item in items if is_wanted(item, config.names, config.option.without)),
                      key=lambda item: (ORDER.get(item.suite, 0), item.suite))


def pytest_generate_tests(metafunc):
    if metafunc.module.__name__ in metafunc.config.busy_suites:
        metafunc.parametrize("machine", ("idle", "busy"), indirect=True, scope="session")


@pytest.fixture
def context(request):
    """A folder of the test's own, its random numbers, and wallprof. The folder of a test that fails stays."""
    made = harness.Context(request.config.seed, request.node.full_name)
    yield made
    made.close(keep=request.node.keeps_files)


@pytest.fixture(autouse=True, scope="session")
def machine(request):
    """The tests busy.SUITE.TEST have it busy, and one after the other the same."""
    if getattr(request, "param", "idle") == "idle":
        yield
        return
    with busy.BusyMachine():
        yield
