"""What processes cost: CPU, context switches, memory, from /proc. Linux only."""

import os


def _read(path):
    """The file's text; "" when its process has gone."""
    try:
        with open(path, errors="replace") as f:
            return f.read()
    except (FileNotFoundError, ProcessLookupError, PermissionError):
        return ""


def name(pid):
    """The program's name; the kernel keeps only 15 bytes of it, the command line all."""
    comm = _read("/proc/%d/comm" % pid).strip()
    if len(comm) == 15:
        full = os.path.basename(_read("/proc/%d/cmdline" % pid).split("\0")[0])
        if full.startswith(comm):
            return full
    return comm


def tree(*roots):
    """The roots that live and all their descendants."""
    children = {}
    for entry in os.listdir("/proc"):
        if entry.isdigit():
            stat = _read("/proc/%s/stat" % entry)
            if stat:
                # the name may hold blanks and brackets
                children.setdefault(int(stat.rpartition(")")[2].split()[1]), []).append(int(entry))
    found, todo = [], [pid for pid in roots if pid and os.path.exists("/proc/%d" % pid)]
    while todo:
        pid = todo.pop(0)
        if pid not in found:
            found.append(pid)
            todo += children.get(pid, [])
    return found


def _tasks(pid):
    try:
        return os.listdir("/proc/%d/task" % pid)
    except (FileNotFoundError, ProcessLookupError):
        return []


def cpu_us(pids):
    """CPU time in microseconds by process. Threads and processes that have ended are not in it."""
    used = {}
    for pid in pids:
        tasks = _tasks(pid)
        total = 0
        for task in tasks:
            text = _read("/proc/%d/task/%s/schedstat" % (pid, task))
            total += int(text.split()[0]) if text else 0
        if tasks:
            used[pid] = total / 1000
    return used


def spent(before, after):
    """What was used between two cpu_us() or switches(); new processes count from nothing."""
    return {pid: value - before.get(pid, 0) for pid, value in after.items()}


def switches(pids):
    """Context switches, wanted and unwanted, by process: a process that sleeps on has none."""
    counted = {}
    for pid in pids:
        tasks = _tasks(pid)
        total = 0
        for task in tasks:
            for line in _read("/proc/%d/task/%s/status" % (pid, task)).splitlines():
                if "ctxt_switches" in line:
                    total += int(line.split()[1])
        if tasks:
            counted[pid] = total
    return counted


def memory(pids):
    """[(pid, name, anonymous kB, PSS kB)]: the process's share of memory that no file is behind,
    and of all. Pages that a fork left shared count once, as a cgroup counts them."""
    rows = []
    for pid in pids:
        fields = {}
        for line in _read("/proc/%d/smaps_rollup" % pid).splitlines()[1:]:
            key, value = line.split(":", 1)
            fields[key] = int(value.split()[0])
        if fields:
            own = fields.get("Pss_Anon", fields.get("Anonymous", 0))  # Linux 5.9
            rows.append((pid, name(pid), own, fields.get("Pss", 0)))
    return rows


def peak(pids):
    """(kB that each process has had at most, kB of mapped files in it now). The second is no cost of
    the process: programs and libraries, which the page cache has once for all, and may drop."""
    found = {}
    for pid in pids:
        fields = dict(line.split(":", 1) for line in _read("/proc/%d/status" % pid).splitlines()
                      if ":" in line)
        if "VmHWM" in fields:
            found[pid] = tuple(int(fields[f].split()[0]) for f in ("VmHWM", "RssFile"))
    return found


def _tmpfs():
    """The devices of all that are mounted."""
    found = set()
    for line in _read("/proc/self/mountinfo").splitlines():
        fields = line.split(" ")
        if fields[fields.index("-") + 1] == "tmpfs":
            found.add(os.makedev(*map(int, fields[2].split(":"))))
    return found


def memory_files(pids, *dirs):
    """kB held by files that exist in memory only: memfds of the processes and what they have open on
    a tmpfs without a name, and the given directories (they may lie on one). smaps_rollup does not
    show them."""
    tmpfs = _tmpfs()
    seen, total = set(), 0
    for pid in pids:
        try:
            fds = os.listdir("/proc/%d/fd" % pid)
        except (FileNotFoundError, ProcessLookupError, PermissionError):
            continue
        for fd in fds:
            path = "/proc/%d/fd/%s" % (pid, fd)
            try:
                link = os.readlink(path)
                if link.startswith("/") and link.endswith(" (deleted)"):  # a memfd's, too
                    st = os.stat(path)
                    if not link.startswith("/memfd:") and st.st_dev not in tmpfs:
                        continue
                    if (st.st_dev, st.st_ino) not in seen:
                        seen.add((st.st_dev, st.st_ino))
                        total += st.st_blocks * 512
            except OSError:
                continue
    for top in dirs:
        for base, _, files in os.walk(top):
            for file in files:
                try:
                    total += os.lstat(os.path.join(base, file)).st_blocks * 512
                except OSError:
                    continue
    return total // 1024


def pin(pids, cpus):
    """Lets every thread of the processes run on these processors only."""
    for pid in pids:
        for task in _tasks(pid):
            try:
                os.sched_setaffinity(int(task), cpus)
            except (ProcessLookupError, PermissionError):
                continue
