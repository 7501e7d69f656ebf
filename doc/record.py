#!/usr/bin/env python3
"""Makes doc/terminal.svg: a real run of the commands below, as a picture. By hand, after `make install`:

    doc/record.py BIN_DIRECTORY PICTURE.svg

The commands are typed at a terminal, in a fresh directory and with a fresh state directory. While one runs, the
server's processes are killed on purpose. What differs from run to run (ports, process ids) is shown by a fixed word, so
that two runs make the same picture. The run fails where a command does not print what it must."""

import html
import os
import pty
import re
import select
import shutil
import subprocess
import sys
import tempfile

COLUMNS = 92
# the typed command, and a pattern that its output must match
TYPED = (
    ("handrail up -r box", r"^default unix:"),
    ("handrail run 'cd /tmp && NAME=reader'", r"^$"),
    ("handrail run 'echo \"Hello $NAME, from $PWD\"'", r"^Hello reader, from /tmp$"),
    ("# kill -9 of nginx, all workers and the shell's keeper, while a command runs:", r"^$"),
    ("handrail run 'sleep 3; echo \"$NAME is still here\"' & sleep 1", r"^\[1\] 4242$"),
    ("pkill -9 -P $(pgrep -n handraild)", r"^$"),
    ("wait", r"^reader is still here$"),
    ("handrail rm default", r"ended \"default\""),
)
HIDDEN = ((r"^\[1\] \d+", "[1] 4242"), (r"unix:\S+", "unix:/home/reader/.../http.sock"),
          (r"box default-\w+", "box default-..."), (r"\x1b\[[0-9;?]*[A-Za-z]|\r", ""))


def until(fd, mark):
    """Returns what is printed before the mark."""
    text = b""
    while mark not in text:
        if not select.select([fd], [], [], 60)[0]:
            sys.exit("no end of: %s" % text.decode(errors="replace"))
        text += os.read(fd, 65536)
    return text[:text.index(mark)].decode("utf-8", "replace")


def recorded(programs):
    """[(command, output)]"""
    top = tempfile.mkdtemp(prefix="handrail-record-")
    os.chmod(top, 0o755)
    env = {"PATH": programs + ":/usr/sbin:/usr/bin:/sbin:/bin", "HOME": top, "TERM": "dumb", "LC_ALL": "C.UTF-8",
           "XDG_STATE_HOME": os.path.join(top, "state"), "TMPDIR": top, "COLUMNS": str(COLUMNS)}
    pid, fd = pty.fork()
    if pid == 0:
        os.chdir(top)
        os.execve("/bin/bash", ["bash", "--norc", "--noprofile"], env)
    try:
        os.write(fd, b"stty -echo cols %d; set +m; PS1= PS2=; echo re''ady\n" % COLUMNS)
        until(fd, b"ready\r\n")
        found = []
        for n, (command, wanted) in enumerate(TYPED):
            # the newest server of the machine may be another's
            real = command.replace("pgrep -n handraild",
                                   "sed 's/.*\"pid\":\\([0-9]*\\).*/\\1/' state/handrail/default.json")
            os.write(fd, (real + "\necho e''nd%d\n" % n).encode())
            text = until(fd, b"end%d\r\n" % n)
            for pattern, word in HIDDEN:
                text = re.sub(pattern, word, text)
            text = text.strip("\n")
            if not re.search(wanted, text, re.M):
                sys.exit("%s printed %r" % (command, text))
            found.append((command, text))
        return found
    finally:
        os.close(fd)
        os.waitpid(pid, 0)
        subprocess.run([os.path.join(programs, "handrail"), "rm", "-q", "--all"], env=env, stdin=subprocess.DEVNULL,
                       stderr=subprocess.DEVNULL)
        shutil.rmtree(top)


def picture(found):
    lines = []
    for command, text in found:
        comment = command.startswith("#")
        lines.append(("c" if comment else "p", command if comment else "$ " + command))
        for line in text.split("\n") if text else ():
            lines += [("o", line[i:i + COLUMNS]) for i in range(0, len(line), COLUMNS)]
    height = 18 * len(lines) + 62
    svg = ['<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 %d %d" role="img">' % (8 * COLUMNS + 40, height),
           "<title>A terminal: a sandbox starts, keeps its state, and survives kill -9</title>",
           "<style>text { font: 13.3px ui-monospace, 'DejaVu Sans Mono', monospace; white-space: pre }",
           ".p { fill: #f0f0f0; font-weight: bold } .o { fill: #b8c4ce } .c { fill: #8fbf7f }</style>",
           '<rect width="100%" height="100%" rx="8" fill="#16202a"/>',
           "".join('<circle cx="%d" cy="20" r="6" fill="%s"/>' % (22 + 20 * i, c)
                   for i, c in enumerate(("#e0655b", "#e0b04b", "#67b361")))]
    for n, (kind, text) in enumerate(lines):
        svg.append('<text class="%s" x="20" y="%d">%s</text>' % (kind, 56 + 18 * n, html.escape(text)))
    return "\n".join(svg) + "\n</svg>\n"


def main():
    if len(sys.argv) != 3:
        sys.exit(__doc__)
    found = recorded(os.path.abspath(sys.argv[1]))
    with open(sys.argv[2], "w", encoding="utf-8") as f:
        f.write(picture(found))


if __name__ == "__main__":
    main()
