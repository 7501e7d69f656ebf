"""Row 2: how fast output is taken, beside a bare reader of the same terminal."""

import os

from .report import median, number, ratio
from .tools import Failed, Pty

MB = 1000000


def seq_bytes(last):
    """What `seq 1 LAST` prints."""
    total, low = 0, 1
    while low <= last:
        high = min(last, low * 10 - 1)
        total += (high - low + 1) * (len(str(low)) + 1)
        low *= 10
    return total


def write_repeated(path, line, size):
    """A file of about `size` bytes of the line; its exact size."""
    block = line * (65536 // len(line))
    with open(path, "wb") as f:
        for _ in range(size // len(block)):
            f.write(block)
    os.chmod(path, 0o644)
    return os.path.getsize(path)


def commands(directory, scale):
    """(name, command, bytes that the command prints)"""
    lines = os.path.join(directory, "lines.txt")
    colours = os.path.join(directory, "colours.txt")
    small, last = int(20 * MB * scale), int(2000000 * scale)
    plain = b"the quick brown fox jumps over the lazy dog and then sits down to have some tea\n"
    ansi = (b"\033[0m\033[01;34mbin\033[0m  \033[01;32mconfigure\033[0m  README  "
            b"\033[38;5;208msrc\033[0m/\033[1;36mlink\033[m -> there\n")
    lines_size = write_repeated(lines, plain, int(100 * MB * scale))
    colours_size = write_repeated(colours, ansi, small)
    return [("yes", "yes | head -c %d" % small, small),
            ("seq 1 %d" % last, "seq 1 %d" % last, seq_bytes(last)),
            ("cat, 79-column lines", "cat '%s'" % lines, lines_size),
            ("cat, coloured", "cat '%s'" % colours, colours_size)]


def terminal_of(bench, server):
    """The modes and the size that a command finds: the bare reader gets the same."""
    out = os.path.join(server.work_dir, "terminal")
    request = bench.tools.run_request("{ stty -g; stty size; } > '%s'" % out, server.headers)
    bench.tools.load(server.address, request, requests=1, warm=0)
    with open(out) as f:
        modes, size = f.read().split("\n")[:2]
    rows, columns = size.split()
    return ["--termios", modes, "--rows", rows, "--columns", columns]


def by_server(bench, server, command):
    request = bench.tools.run_request(command, server.headers, timeout=3600, blocking=True)
    return bench.tools.load(server.address, request, requests=1, warm=0)["p50"] / 1e6


def by_reader(reader, command):
    result = reader.order("read " + command)
    if result["status"] != 0:
        raise Failed("%s: status %d" % (command, result["status"]))
    return result["seconds"]


def measure(bench, name, command, size, reader):
    """MB/s of both sides, each a list; every ratio is of one round."""
    server, sides = bench.server, {"floor": [], "handrail": []}
    for _ in range(bench.output_rounds):
        sides["floor"].append(size / MB / by_reader(reader, command))
        sides["handrail"].append(size / MB / by_server(bench, server, command))
    if bench.reference:
        try:
            sides["reference"] = [size / MB / by_server(bench, bench.reference, command)]
        except Failed as e:
            bench.report.failure("output: reference " + name, e)
    return sides


def output(bench):
    report, server = bench.report, bench.server
    if not server.work_dir:
        return
    try:
        options = terminal_of(bench, server)
    except (Failed, OSError, ValueError) as e:
        report.failure("output: the terminal's modes", e)
        return
    reader = Pty(bench.tools, *options)
    work = commands(server.work_dir, bench.scale)
    for pinned in (True, False):
        bench.pin(pinned, reader.process.pid)
        where = "one core" if pinned else "all cores"
        report.section("2. Output, %s" % where,
                       "MB/s of what the command prints; reader: same terminal, bash -c COMMAND")
        rows = []
        for name, command, size in work:
            try:
                sides = measure(bench, name, command, size, reader)
            except Failed as e:
                report.failure("output: " + name, e)
                continue
            to_floor = median([ratio(a, b) for a, b in zip(sides["handrail"], sides["floor"])])
            rates = {who: median(values) for who, values in sides.items()}
            rows.append([name, number(rates["floor"]), number(rates["handrail"]),
                         number(to_floor), number(rates.get("reference"))])
            report.record(section="output", row=name, cores=where, mb=size / MB,
                          mb_per_second=rates, ratio_to_floor=to_floor, rounds=sides,
                          terminal=options)
            if pinned:
                bench.output[name] = to_floor
        report.table(["", "reader", "handrail", "x reader", "reference"], rows)
    reader.stop()
