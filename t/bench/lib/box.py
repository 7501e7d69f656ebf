"""The back-end box: what isolation costs, beside bare namespaces, bubblewrap and `docker run` in the same turns."""

import json
import os
import shutil
import subprocess
import tempfile
import time
from collections import Counter
from concurrent.futures import ThreadPoolExecutor

from . import procs
from .report import median, number, quartiles
from .tools import PATH, Failed

PLACE = "/mnt/bench"  # of the directory with bench_box, in all that does not see it anyway
AT_ONCE = 10
FLOOR = "floor: namespaces, overlay"
IMAGE = "handrail-bench:%d" % os.getpid()


def said(argv, **more):
    done = subprocess.run(argv, stdout=subprocess.PIPE, stderr=subprocess.PIPE, universal_newlines=True, **more)
    if done.returncode != 0:
        raise Failed("%s: %s" % (" ".join(argv[:4]), done.stderr.strip() or "exit status %d" % done.returncode))
    return done.stdout


def clock_ms(argv, **more):
    """From the start of the command to the clock that bench_box reads first of all, inside."""
    began = time.monotonic_ns()
    return (int(said(argv, **more)) - began) / 1e6


def taken_ms(argv, **more):
    began = time.monotonic()
    said(argv, **more)
    return (time.monotonic() - began) * 1000


class Place:
    """Directories, programs and variables of one user of handrail."""

    def __init__(self, build, source, program):
        self.build, self.bench = build, os.path.dirname(program)
        self.top = tempfile.mkdtemp(prefix="bench-box-")
        # as "handrail up" does for its state directory: ext4 searches past removed files otherwise, 0.1 ms a file
        subprocess.run(["chattr", "+T", self.top], stderr=subprocess.DEVNULL)
        self.handrail = os.path.join(build, "handrail")
        self.launcher = os.path.join(build, "handrail-box")
        self.env = {"PATH": PATH, "LANG": "C.UTF-8", "HANDRAIL_SERVER": os.path.join(build, "handraild"),
                    "HANDRAIL_LIBEXECDIR": build, "HANDRAIL_DATADIR": os.path.join(source, "conf"),
                    "HOME": self.directory("home"), "TMPDIR": self.directory("tmp"),
                    "XDG_RUNTIME_DIR": self.directory("run"),
                    "CACHE_DIR": self.directory("cache"), "HANDRAIL_STATE_DIR": os.path.join(self.top, "state")}

    def directory(self, name):
        path = os.path.join(self.top, name)
        os.mkdir(path, 0o700)
        return path

    def ms(self, *words):
        return taken_ms([self.handrail] + list(words), env=self.env, cwd=self.top)

    def ok(self, *words):
        return said([self.handrail] + list(words), env=self.env, cwd=self.top)

    def box_pid(self, name):
        with open(os.path.join(self.env["HANDRAIL_STATE_DIR"], name + ".json")) as f:
            record = json.load(f)["backend"]
        return (json.loads(record) if isinstance(record, str) else record)["pid"]

    def document(self, storage):
        return json.dumps({"name": os.path.basename(storage), "storage": storage, "argv": [PLACE + "/bench_box", "now"],
                           "env": [], "mounts": [{"source": self.bench, "target": PLACE, "read_only": True}]})

    def end(self):
        subprocess.run([self.handrail, "down", "--all", "-q"], env=self.env, cwd=self.top)
        subprocess.run(["rm", "-rf", self.top])


def docker_image(program):
    """An image of bench_box and its libraries."""
    top = tempfile.mkdtemp(prefix="bench-image-")
    try:
        for path in [w for w in said(["ldd", program]).split() if w.startswith("/")]:
            to = top + path
            os.makedirs(os.path.dirname(to), exist_ok=True)
            shutil.copy2(os.path.realpath(path), to)
        shutil.copy2(program, top)
        tar = subprocess.Popen(["tar", "-C", top, "-c", "."], stdout=subprocess.PIPE)
        said(["docker", "import", "-", IMAGE], stdin=tar.stdout)
        tar.stdout.close()
        tar.wait()
    finally:
        shutil.rmtree(top)


def isolations(bench, program):
    """What starts a program isolated, as (name, command); what is missing is printed."""
    found = []
    root = [] if os.geteuid() == 0 else ["-r"]
    if shutil.which("unshare"):
        found.append(("unshare, namespaces alone", ["unshare", "-mpinuC", "--fork", "--mount-proc"] + root +
                      [program, "now"]))
    if shutil.which("bwrap"):
        found.append(("bwrap, binds of /", ["bwrap", "--unshare-all", "--die-with-parent", "--ro-bind", "/", "/",
                                            "--dev", "/dev", "--proc", "/proc", "--tmpfs", "/tmp", program, "now"]))
    else:
        bench.report.text("  bwrap is not measured: apt-get install bubblewrap")
    if shutil.which("docker") and subprocess.run(["docker", "version"], stdout=subprocess.DEVNULL,
                                                 stderr=subprocess.DEVNULL).returncode == 0:
        docker_image(program)
        found.append(("docker run", ["docker", "run", "--rm", "--network", "none", IMAGE, "/bench_box", "now"]))
    else:
        bench.report.text("  docker run is not measured: no Engine answers; --docker starts one, as root")
    return found


def isolation(bench, place, program, rows):
    """Each turn starts all of them once, each turn with another one first: what one leaves to the kernel delays the
    next. Storages stay, since their removal would, too."""
    others = [(name, argv, None) for name, argv in isolations(bench, program)]
    used = place.document(place.directory("used"))
    clock_ms([place.launcher], input=used)
    for i in range(bench.box_rounds):
        fresh, floor = place.document(place.directory("storage%d" % i)), place.directory("floor%d" % i)
        todo = [("exec alone", [program, "now"], None), (FLOOR, [program, "floor", floor], None),
                ("handrail-box, new storage", [place.launcher], fresh),
                ("handrail-box, same storage", [place.launcher], used)] + others
        turn = dict.fromkeys(name for name, _, _ in todo)
        for name, argv, text in todo[i % len(todo):] + todo[:i % len(todo)]:
            turn[name] = clock_ms(argv, input=text)
        rows.append(turn)


def sandboxes(bench, place, rows):
    """A life of a box and of a sandbox that is not isolated, by turns."""
    pauses = True
    for i in range(bench.box_rounds):
        turn = {}
        for kind in ("local", "box") if i % 2 else ("box", "local"):
            name = "%s%d" % (kind, i)
            turn["up --run true, " + kind] = place.ms("up", "-q", "-r", kind, "-n", name, "--run", "true")
            turn["run true, " + kind] = place.ms("run", "-n", name, "true")
            if kind == "box" and pauses:
                try:
                    turn["pause, box"], turn["resume, box"] = (place.ms(word, "-q", name) for word in (
                        "pause", "resume"))
                except Failed as e:
                    pauses = False
                    bench.report.text("  pause is not measured: %s" % e)
            turn["down, " + kind] = place.ms("down", "-q", name)
        place.ok("pool", "-q", "-r", "box", "1")
        turn["up --run true, box of the pool"] = place.ms("up", "-q", "-r", "box", "-n", "taken", "--run", "true")
        place.ok("pool", "-q", "-r", "box", "0")
        place.ok("down", "-q", "taken")
        rows.append(turn)


def show(bench, title, rows, floor, section="box"):
    """A line for each name: quartiles, and the median of the turns' ratios to the floor."""
    lines, found = [], {}
    for name in rows[0] if rows else ():
        values = [turn[name] for turn in rows]
        ratio = median([turn[name] / turn[floor] for turn in rows])
        found[name] = (median(values), ratio)
        low, mid, high = quartiles(values)
        lines.append([name] + [number(v) for v in (low, mid, high)] + [number(ratio)])
        bench.report.record(section=section, row=name, ms=mid, quartiles_ms=[low, high], ratio=ratio, floor=floor,
                            rounds_ms=values)
    bench.report.table([title, "q1", "median", "q3", "x floor"], lines)
    return found


def resting(pids, seconds):
    """CPU time in us while nothing is asked, and the context switches of each program, as {name: switches}, of all
    that do not end meanwhile."""
    cpu, switches = procs.cpu_us(pids), procs.switches(pids)
    time.sleep(seconds)
    pids = [pid for pid in pids if os.path.exists("/proc/%d" % pid)]
    used, woken = sum(procs.spent(cpu, procs.cpu_us(pids)).values()), Counter()
    for pid, n in procs.spent(switches, procs.switches(pids)).items():
        if n > 0:
            woken[procs.name(pid)] += n
    return used, woken


def pss_mb(pids):
    return sum(row[3] for row in procs.memory(pids)) / 1000


def memory(bench, place):
    """MB of an idle box more than a local sandbox has."""
    place.ok("up", "-q", "-r", "box", "-n", "one")
    place.ok("up", "-q", "-r", "local", "-n", "two")
    try:
        time.sleep(3)  # the pools of workers have grown
        box = pss_mb(procs.tree(place.box_pid("one")))
        local = pss_mb(procs.tree(place.box_pid("two")))
    finally:
        place.ok("down", "-q", "one", "two")
    bench.report.text("  idle, PSS: box %s MB, local %s MB" % (number(box), number(local)))
    bench.report.record(section="box", row="idle", box_pss_mb=box, local_pss_mb=local)
    return box - local


def density(bench, place):
    """Many boxes at once: (boxes a second, MB of each, CPU us of all while idle, wake-ups)."""
    names = ["many%d" % i for i in range(bench.boxes)]
    free = available_mb()
    began = time.monotonic()
    with ThreadPoolExecutor(AT_ONCE) as pool:
        list(pool.map(lambda name: place.ok("up", "-q", "-r", "box", "-n", name, "--run", "true"), names))
    rate = len(names) / (time.monotonic() - began)
    time.sleep(35)  # workers of the busy start have ended, which takes worker_idle_timeout: 30 s
    pids = procs.tree(*[place.box_pid(name) for name in names])
    used, woken = resting(pids, bench.idle_seconds)
    total = sum(woken.values())
    pss, less = pss_mb(pids) / len(names), (free - available_mb()) / len(names)
    began = time.monotonic()
    place.ok("down", "--all", "-q")
    gone = len(names) / (time.monotonic() - began)
    left = staying(pids)
    bench.report.text("  %d boxes, %d at once: %s a second up, %s down; each PSS %s MB, of all memory %s MB" % (
        len(names), AT_ONCE, number(rate), number(gone), number(pss), number(less)))
    bench.report.text("  all %d processes idle for %g s: CPU %s ms, switches %d%s; left over after down: %d" % (
        len(pids), bench.idle_seconds, number(used / 1000), total,
        "".join(", %s %d" % row for row in woken.most_common()), len(left)))
    bench.report.record(section="box", row="density", boxes=len(names), at_once=AT_ONCE, up_per_second=rate,
                        down_per_second=gone, pss_mb=pss, machine_mb=less, processes=len(pids), cpu_us=used,
                        switches=total, woken=woken, left=len(left))
    return total


def staying(pids, seconds=10):
    """Those that have not ended after that time."""
    end = time.monotonic() + seconds
    while pids and time.monotonic() < end:
        time.sleep(0.1)
        pids = [pid for pid in pids if os.path.exists("/proc/%d" % pid)]
    return pids


def available_mb():
    with open("/proc/meminfo") as f:
        return [int(line.split()[1]) / 1000 for line in f if line.startswith("MemAvailable:")][0]


def boxes(bench, build, source):
    """Sets bench.box: name -> figure, for the aims."""
    report, program = bench.report, bench.tools.path("bench_box")
    report.section("Box", "as %s, all cores, ms; %d turns; a program's start: to its first line" % (
        "root" if os.geteuid() == 0 else "an ordinary user", bench.box_rounds))
    if not os.access(os.path.join(build, "handrail-box"), os.X_OK):
        report.text("  not measured: handrail-box is not built (libseccomp-dev)")
        return
    bench.pin(False)
    place, starts, lives, figures = Place(build, source, program), [], [], {}
    try:
        isolation(bench, place, program, starts)
        floor = show(bench, "start", starts, FLOOR)[FLOOR][0]
        sandboxes(bench, place, lives)
        rows = show(bench, "handrail", lives, "up --run true, local")
        figures.update(up=rows["up --run true, box"], pool=rows["up --run true, box of the pool"])
        figures["more"] = (figures["up"][0] - rows["up --run true, local"][0]) / floor
        figures["memory"] = memory(bench, place)
        figures["woken"] = density(bench, place)
    except (Failed, OSError) as e:
        report.failure("box", e)
    finally:
        place.end()
        if any("docker run" in turn for turn in starts):
            subprocess.run(["docker", "rmi", "-f", IMAGE], stdout=subprocess.DEVNULL)
    bench.box = figures
