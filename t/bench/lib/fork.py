"""Forks and snapshots of a box with few files and with many, beside `cp -a` of its files and `docker commit`."""

import os
import subprocess

from .box import IMAGE, Place, docker_image, said, show, taken_ms
from .report import number
from .tools import Failed

MANY = "mkdir -p /workspace/many && cd /workspace/many && for d in {1..%d}; do mkdir $d && for f in {1..100}; do " \
       "head -c 2048 /dev/urandom >$d/$f || exit; done; done"
AGAIN = "find /workspace -type f -exec touch {} +"  # what became a layer is changed again, in the box's top
FEW = "few files"
FLOOR = "cp -a of the storage"


def has_engine():
    return subprocess.run(["docker", "version"], stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL).returncode == 0


def storage_of(place):
    return os.path.join(place.env["HANDRAIL_STATE_DIR"], "parent.own", "storage")


def docker_commit(container):
    """ms of a commit of a container that runs, which the Engine pauses meanwhile."""
    tag = IMAGE + "-commit"
    try:
        return taken_ms(["docker", "commit", container, tag])
    finally:
        subprocess.run(["docker", "rmi", "-f", tag], stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)


def one_turn(place, container, i):
    """One of each; the branch and the copies are removed between, not timed."""
    copy = os.path.join(place.top, "copy")
    turn, todo = {}, ["fork", "snapshot", "cp"] + (["docker"] if container else [])
    for word in todo[i % len(todo):] + todo[:i % len(todo)]:
        place.ok("run", "-n", "parent", AGAIN)
        if word == "fork":
            turn["fork"] = place.ms("fork", "-q", "parent", "branch")
            place.ok("down", "-q", "branch")
        elif word == "snapshot":
            turn["snapshot"] = place.ms("snapshot", "-q", "parent", "tag")
            place.ok("snapshot", "rm", "-q", "tag")
        elif word == "cp":
            turn[FLOOR] = taken_ms(["cp", "-a", storage_of(place), copy])
            said(["rm", "-rf", copy])
        else:
            turn["docker commit"] = docker_commit(container)
    return turn


def container_like(place):
    """A container with the files of the box's root in its layer, for `docker commit`; None without an Engine."""
    if not has_engine():
        return None
    name = "handrail-bench-fork-%d" % os.getpid()
    said(["docker", "create", "--name", name, IMAGE, "/bench_box", "now"])
    place.ok("run", "-n", "parent", AGAIN)
    said(["docker", "cp", storage_of(place) + "/root/workspace/.", name + ":/files"])  # no files with whiteouts
    return name


def measure(bench, place, title, figures):
    rows, container = [], container_like(place)
    try:
        for i in range(bench.fork_rounds):
            turn = one_turn(place, container, i)
            rows.append({"%s, %s" % (name, title): turn[name] for name in sorted(turn)})
    finally:
        if container:
            subprocess.run(["docker", "rm", "-f", container], stdout=subprocess.DEVNULL)
    figures.update(show(bench, title, rows, "%s, %s" % (FLOOR, title), "fork"))


def at_once(bench, place, n):
    """ms of a fork with so many branches."""
    try:
        took = place.ms("fork", "-q", "parent", "branch", "--count", str(n))
    finally:
        subprocess.run([place.handrail, "down", "-q"] + ["branch-%d" % i for i in range(1, n + 1)], env=place.env,
                       stderr=subprocess.DEVNULL)
    bench.report.text("  %d branches of few files at once: %s ms, %s a second" % (n, number(took), number(
        n / took * 1000)))
    bench.report.record(section="fork", row="%d at once, %s" % (n, FEW), ms=took)
    return took


def forks(bench, build, source):
    """Sets bench.fork: a row, or a number of branches at once -> figure, for the aims."""
    report, program = bench.report, bench.tools.path("bench_box")
    report.section("Forks of a box", "as %s, all cores, ms; %d turns" % (
        "root" if os.geteuid() == 0 else "an ordinary user", bench.fork_rounds))
    if not os.access(os.path.join(build, "handrail-box"), os.X_OK):
        report.text("  not measured: handrail-box is not built (libseccomp-dev)")
        return
    bench.pin(False)
    place, figures, engine = Place(build, source, program), {}, has_engine()
    if not engine:
        report.text("  docker commit is not measured: no Engine answers; --docker starts one, as root")
    try:
        if engine:
            docker_image(program)
        place.ok("up", "-q", "-r", "box", "-n", "parent", "--run", "true")
        measure(bench, place, FEW, figures)
        figures.update((n, at_once(bench, place, n)) for n in bench.forks)
        place.ok("run", "-n", "parent", "(%s)" % (MANY % (bench.fork_files // 100)))
        measure(bench, place, "%d files" % bench.fork_files, figures)
    except (Failed, OSError) as e:
        report.failure("fork", e)
    finally:
        place.end()
        if engine:
            subprocess.run(["docker", "rmi", "-f", IMAGE], stdout=subprocess.DEVNULL)
    bench.fork = figures
