"""Row 10: files in and out: uploads and downloads beside dd of the same bytes and beside the same bytes
through nginx to a FastCGI program that drops them; a large tree as an archive beside Python's zipfile; a
list; and what the memory of every process does meanwhile."""

import http.client
import json
import os
import random
import shutil
import socket
import subprocess
import tempfile
import time
import urllib.parse
import zipfile

from . import procs
from .report import median, number
from .tools import Failed

MB = 1 << 20
BOUNDARY = "0123456789abcdef0123456789abcdef"
BEFORE = ('--%s\r\nContent-Disposition: form-data; name="file"; filename="up"\r\n'
          "Content-Type: application/octet-stream\r\n\r\n" % BOUNDARY).encode()
AFTER = ("\r\n--%s--\r\n" % BOUNDARY).encode()
IN_MEMORY = "/dev/shm"


def seconds(call):
    began = time.monotonic()
    call()
    return time.monotonic() - began


def answer(connection, drop=False):
    """(the answer's body, seconds to its first byte); drop: only its length."""
    began = time.monotonic()
    response = http.client.HTTPResponse(connection)
    response.begin()
    first = time.monotonic() - began
    room, size = bytearray(MB), 0
    if drop:
        for n in iter(lambda: response.readinto(room), 0):
            size += n
    body = size if drop else response.read()
    if response.status != 200:
        raise Failed("status %d: %s" % (response.status, body))
    return body, first


def post(address, headers, target, source):
    """The file as a form, straight from the page cache."""
    length = len(BEFORE) + os.path.getsize(source) + len(AFTER)
    lines = ["POST %s HTTP/1.1" % target, "Host: bench", "Connection: close", "Content-Length: %d" % length,
             "Content-Type: multipart/form-data; boundary=" + BOUNDARY] + list(headers)
    with socket.create_connection(address, 60) as c, open(source, "rb") as f:
        c.sendall("\r\n".join(lines + ["", ""]).encode() + BEFORE)
        c.sendfile(f)
        c.sendall(AFTER)
        return answer(c)


def get(address, headers, target):
    with socket.create_connection(address, 60) as c:
        lines = ["GET %s HTTP/1.1" % target, "Host: bench", "Connection: close"] + list(headers)
        c.sendall("\r\n".join(lines + ["", ""]).encode())
        return answer(c, drop=True)


def query(location, **args):
    return location + "?" + urllib.parse.urlencode(args)


def same_ratio(ours, other):
    return median([a / b for a, b in zip(ours, other)])


def in_and_out(bench, top, where):
    server, floors = bench.server, bench.floors
    size = max(1, int(512 * bench.scale)) * MB
    source, copy, up = (os.path.join(top, n) for n in ("source", "copy", "up"))
    block = os.urandom(MB)
    with open(source, "wb") as f:
        for _ in range(size // MB):
            f.write(block)
    times = {"dd": [], "drop": [], "upload": [], "download": []}

    def uploaded():
        post(server.address, server.headers, query("/upload_file", destination=top), source)
        if os.path.getsize(up) != size:
            raise Failed("%d bytes of %d were uploaded" % (os.path.getsize(up), size))

    def downloaded():
        got, _ = get(server.address, server.headers, query("/download_file", path=source))
        if got != size:
            raise Failed("%d bytes of %d were downloaded" % (got, size))

    for n in range(bench.output_rounds + 1):
        one = {"dd": seconds(lambda: subprocess.run(
            ["dd", "if=" + source, "of=" + copy, "bs=1M", "status=none"], check=True))}
        os.unlink(copy)
        one["drop"] = seconds(lambda: post(floors.address, (), "/drop", source))
        one["upload"] = seconds(uploaded)
        os.unlink(up)
        one["download"] = seconds(downloaded)
        for name in times if n > 0 else ():  # the first finds everything cold
            times[name].append(one[name])
    os.unlink(source)
    rows = []
    for name in ("upload", "download"):
        to_dd = same_ratio(times[name], times["dd"])
        to_drop = same_ratio(times[name], times["drop"]) if name == "upload" else None
        rows.append(["%s, %s" % (name, where), number(size / MB / median(times[name])), number(to_dd),
                     number(to_drop)])
        bench.report.record(section="transfer", row=name, where=where, bytes=size, dd_ratio=to_dd,
                            drop_ratio=to_drop, rounds_s=times[name])
        bench.transfer["%s / dd, %s" % (name, where)] = to_dd
    rows.append(["dd, " + where, number(size / MB / median(times["dd"])), "", ""])
    rows.append(["dropped, " + where, number(size / MB / median(times["drop"])),
                 number(same_ratio(times["drop"], times["dd"])), ""])
    return rows


def make_tree(top, files):
    data, r = os.urandom(MB), random.Random(1)
    for d in range(1000):
        os.makedirs("%s/%02d/%02d" % (top, d % 40, d // 40), exist_ok=True)
    for n in range(files):
        d = n % 1000
        with open("%s/%02d/%02d/f%d.txt" % (top, d % 40, d // 40, n), "wb") as f:
            f.write(data[n % 1000:][:int(r.expovariate(1 / 10000))])


def zipped(top, path):
    with zipfile.ZipFile(path, "w") as z:
        for root, _, files in os.walk(top):
            for name in files:
                full = os.path.join(root, name)
                z.write(full, os.path.relpath(full, top))


def archive(bench, scratch):
    server, files = bench.server, max(100, int(20000 * bench.scale))
    top, path = os.path.join(scratch, "tree"), os.path.join(scratch, "python.zip")
    make_tree(top, files)
    python, ours, first = [], [], []

    def packed():
        first.append(get(server.address, server.headers, query("/download_files", path=top))[1])

    for _ in range(bench.output_rounds):
        python.append(seconds(lambda: zipped(top, path)))
        ours.append(seconds(packed))
    times, ms = same_ratio(python, ours), 1000 * median(first)
    bench.report.text("  an archive of %d files, %d MB: %s s, %s times as fast as Python's zipfile; first "
                      "byte after %s ms" % (files, os.path.getsize(path) // MB, number(median(ours)),
                                            number(times), number(ms)))
    bench.report.record(section="transfer", row="archive", files=files, zipfile_ratio=times, first_ms=ms,
                        rounds_s=ours)
    bench.archive = times


def listing(bench, scratch):
    top = os.path.join(scratch, "list")
    os.mkdir(top)
    for n in range(1000):
        with open("%s/entry %d" % (top, n), "w"):
            pass
    request = json.dumps({"path": top})
    headers = dict(h.split(": ", 1) for h in bench.server.headers)
    c, times = http.client.HTTPConnection(*bench.server.address), []

    def asked():
        c.request("POST", "/list_files", request, headers)
        if len(json.loads(c.getresponse().read())) != 1000:
            raise Failed("the list is not whole")

    for _ in range(max(20, int(200 * bench.scale))):
        times.append(seconds(asked) * 1e6)
    c.close()
    bench.report.text("  a list of 1,000 entries: p50 %s us" % number(median(times)))
    bench.report.record(section="transfer", row="list", p50_us=median(times))


def transfer(bench):
    server, report = bench.server, bench.report
    if not server.work_dir or not bench.floors:
        return
    bench.pin(False)
    report.section("10. Files in and out", "all cores; dropped: the same upload, to a FastCGI program that "
                   "reads and drops it: what nginx and libfcgi alone need")
    places = [("work directory", server.work_dir)]
    if os.access(IN_MEMORY, os.W_OK):
        places.append(("tmpfs", IN_MEMORY))
    before = procs.peak(server.pids())
    rows = []
    for where, directory in places:
        top = tempfile.mkdtemp(prefix="bench-transfer-", dir=directory)
        try:
            os.chmod(top, 0o755)
            rows += in_and_out(bench, top, where)
            if directory == server.work_dir:
                archive(bench, top)
                listing(bench, top)
        except (OSError, http.client.HTTPException, Failed) as e:
            report.failure("transfer, " + where, e)
        finally:
            shutil.rmtree(top)
    report.table(["", "MB/s", "time / dd", "time / dropped"], rows)
    after = procs.peak(server.pids())
    grown = [tuple(b - a for a, b in zip(before[pid], after[pid])) for pid in after if pid in before]
    own, files = max((size - files, files) for size, files in grown)
    bench.transfer_growth = own / 1000
    report.text("  growth of the process that grew most: %s MB of its own at most; beside it %s MB of files "
                "that it has mapped" % (number(own / 1000), number(files / 1000)))
    report.record(section="transfer", row="growth", mb=bench.transfer_growth, files_mb=files / 1000)
