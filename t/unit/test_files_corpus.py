#!/usr/bin/env python3
"""Every recorded case of the file editor, of read, write and edit actions, of the binary test, the
diff and line slices (t/corpus/files), played through t/unit/files_play. What deliberately differs is
named in t/corpus/files/exceptions.txt, each with its reason and with the answer of ours."""

import base64
import fcntl
import json
import os
import shutil
import socket
import struct
import subprocess
import sys
import tempfile
import threading

SRCDIR = os.environ.get("abs_top_srcdir") or os.path.abspath(os.path.join(os.path.dirname(__file__), "../.."))
BUILDDIR = os.environ.get("abs_top_builddir") or os.getcwd()
sys.path.insert(0, os.path.join(SRCDIR, "t", "e2e"))
from lib.tap import Skip, Tap, equal  # noqa: E402

OGG_LISTED = os.path.exists("/etc/mime.types") and \
    any("ogg" in line.split()[1:] for line in open("/etc/mime.types", encoding="utf-8"))
CORPUS = os.path.join(SRCDIR, "t", "corpus", "files")
PLAY = [os.path.join(BUILDDIR, "t", "unit", "files_play")]
if os.environ.get("FILES_PLAY_WRAPPER"):
    PLAY = os.environ["FILES_PLAY_WRAPPER"].split() + PLAY


def load(name):
    with open(os.path.join(CORPUS, name), encoding="ascii") as f:
        return [json.loads(line) for line in f if line.strip()]


def exceptions():
    """{case: what ours answers instead}; see the file's head."""
    with open(os.path.join(CORPUS, "exceptions.txt"), encoding="utf-8") as f:
        return dict(line.rstrip("\n").split("\t", 1) for line in f if line.strip() and line[0] != "#")


class Play:
    def __init__(self, cwd=None, env=None):
        self.p = subprocess.Popen(PLAY, stdin=subprocess.PIPE, stdout=subprocess.PIPE, cwd=cwd,
                                  umask=0o022, env=env)

    def __call__(self, **request):
        self.p.stdin.write(json.dumps(request).encode() + b"\n")
        self.p.stdin.flush()
        line = self.p.stdout.readline()
        if not line:
            raise AssertionError("files_play ended: %r" % request)
        return json.loads(line)

    def close(self):
        self.p.stdin.close()
        equal(self.p.wait(), 0, "exit status of files_play")
        self.p.stdout.close()


def content(spec, fill):
    if isinstance(spec, str):
        return fill(spec).encode("utf-8", "surrogatepass")
    if "b64" in spec:
        return base64.b64decode(spec["b64"])
    if "repeat" in spec:
        return (spec["repeat"] * spec["times"] + spec.get("then", "")).encode()
    return "".join(spec["numbered"].replace("{n}", str(n))
                   for n in range(spec["from"], spec["to"] + 1)).encode()


def remove(path):
    if os.path.isdir(path) and not os.path.islink(path):
        shutil.rmtree(path)
    elif os.path.lexists(path):
        os.unlink(path)


def make(root, files, fill):
    for name, spec in files.items():
        path = os.path.join(root, name)
        if spec is None:
            remove(path)
            continue
        os.makedirs(os.path.dirname(path), exist_ok=True)
        if isinstance(spec, dict) and spec.get("dir"):
            os.makedirs(path, exist_ok=True)
        elif isinstance(spec, dict) and "symlink" in spec:
            os.symlink(fill(spec["symlink"]), path)
        else:
            with open(path, "wb") as f:
                f.write(content(spec, fill))


def check_files(root, files, fill):
    for name, spec in files.items():
        path = os.path.join(root, name)
        if spec is None:
            equal(os.path.lexists(path), False, "%s exists" % name)
            continue
        with open(path, "rb") as f:
            equal(f.read(), content(spec, fill), name)


class Root:
    """A fresh directory for @ROOT@, or the fixed one that a case needs (one at a time over all
    runs of this test on the machine)."""

    def __init__(self, fixed=None):
        self.fixed = fixed

    def __enter__(self):
        if self.fixed is None:
            self.path = tempfile.mkdtemp(prefix="files-corpus-")
            os.chmod(self.path, 0o755)
            return self.path
        while True:
            self.lock = open(self.fixed + ".lock", "w")
            fcntl.flock(self.lock, fcntl.LOCK_EX)
            if self._is_the_one():
                break
            self.lock.close()
        remove(self.fixed)
        os.mkdir(self.fixed, 0o755)
        self.path = self.fixed
        return self.path

    def _is_the_one(self):
        """Whoever had it has unlinked it, and others may have another one."""
        try:
            return os.path.samestat(os.fstat(self.lock.fileno()), os.stat(self.lock.name))
        except FileNotFoundError:
            return False

    def __exit__(self, *_):
        shutil.rmtree(self.path)
        if self.fixed is not None:
            os.unlink(self.fixed + ".lock")
            self.lock.close()


def filler(root):
    def fill(v):
        if isinstance(v, str):
            return v.replace("@ROOT@", root)
        if isinstance(v, list):
            return [fill(x) for x in v]
        if isinstance(v, dict):
            return {fill(k): fill(x) for k, x in v.items()}
        return v
    return fill


# ---- editor.jsonl, documents.jsonl ----

def step_wanted(step, fill):
    if step.get("raises"):
        return "raised", fill(step["raises"]).split(": ", 1)[1], ""
    if step["error"] is not None:
        return "error", fill(step["error"]), fill(step["diff"])
    return "done", fill(step["output"]), fill(step["diff"])


def editor_case(case, ours=None):
    """ours: the steps that differ on purpose, from exceptions.txt."""
    if case["name"].startswith("doc_pdf") and not shutil.which("pdftohtml"):
        raise Skip("pdftohtml is missing: install poppler-utils")
    if case["name"].startswith(("doc_docx", "doc_pptx", "doc_xlsx")) and not os.path.exists(
            os.path.join(BUILDDIR, "handrail-office")):
        raise Skip("there is no handrail-office: configure --enable-office, with libexpat1-dev")
    ours = json.loads(ours) if ours else {}
    with Root(case.get("fixed_root")) as root, tempfile.TemporaryDirectory() as state:
        fill = filler(root)
        make(root, case["files"], fill)
        play = Play()
        for number, step in enumerate(case["steps"], 1):
            if "set_files" in step:
                make(root, step["set_files"], fill)
                continue
            got = play(do="edit", root=root, history=os.path.join(state, "undo"),
                       office=os.path.join(BUILDDIR, "handrail-office"), args=fill(step["args"]))
            want, files = step_wanted(step, fill), step["files_after"]
            other = ours.get(str(number))
            if other:
                want = tuple(fill(other["want"]))
                files = other.get("files_after", {})
            equal((got["result"], got["text"], got["diff"]), want, "step %d" % number)
            check_files(root, files, fill)
        play.close()


# ---- readers of PDF that fail, which no file brings about ----

SHOWN = "Here's the content of the file @ROOT@/a.pdf displayed in Markdown format:\n%s\n"
FAILED = "Error in converting file to Markdown: %s. Please use Python code to read @ROOT@/a.pdf"
ONE = """echo '<page height="900" width="900"><text width="9" height="9" font="0">one</text>'
"""
ENDLESS = ONE + """exec yes "<b $(printf %01000d 0)>"
"""
READERS = [
    ("a damaged file", "exit 1", "done", SHOWN % "%PDF-1.4\nhi\n"),
    ("a status that is not the file's", "echo 'no memory' >&2; exit 99", "error",
     FAILED % "pdftohtml failed (exit 99): no memory"),
    ("a signal", "kill -9 $$", "error", FAILED % "pdftohtml failed (signal 9 (Killed))"),
    ("messages without end", "yes | head -c 300000 >&2; exit 3", "error", FAILED % "pdftohtml failed (exit 3): y"),
    ("more messages than a pipe holds", "head -c 300000 /dev/zero >&2 || exit 4\n" + ONE, "done", SHOWN % "one\n\n"),
    ("options that it lacks", "echo 'version 0.1\nUsage: pdftohtml' >&2; exit 1", "done", SHOWN % "plain\n"),
    ("a text without end", ENDLESS, "done", SHOWN % "one\n\n[the text is cut: the document is too long]\n"),
]


def reader_case(script, result, text):
    with Root() as root:
        fill = filler(root)
        make(root, {"a.pdf": "%PDF-1.4\nhi\n", "bin/pdftohtml": "#!/bin/sh\n" + script + "\n",
                    "bin/pdftotext": "#!/bin/sh\necho plain\n"}, fill)
        for name in ("pdftohtml", "pdftotext"):
            os.chmod(os.path.join(root, "bin", name), 0o755)
        path = os.path.join(root, "bin") + ":" + os.environ["PATH"]
        play = Play(env=dict(os.environ, PATH=path))
        got = play(do="edit", root=root, history=os.path.join(root, "undo"), office="",
                   args={"command": "view", "path": os.path.join(root, "a.pdf")})
        equal((got["result"], got["text"]), (result, fill(text)))
        play.close()


# ---- readwrite.jsonl ----

class Keeper(threading.Thread):
    """Says where the shell is, as its keeper does (src/proto/frame.h)."""

    def __init__(self, run_dir, cwd):
        super().__init__(daemon=True)
        self.cwd = cwd
        self.s = socket.socket(socket.AF_UNIX)
        self.s.bind(os.path.join(run_dir, "session.sock"))
        self.s.listen()

    def run(self):
        from lib.keeper import STATE, field, frame
        while True:
            try:
                c, _ = self.s.accept()
            except OSError:
                return
            with c:
                c.recv(4096)
                c.sendall(frame(STATE, field("ready", b"\1") + field("running", b"\0") +
                                field("working_dir", self.cwd.encode()) + field("reason", b"")))

    def close(self):
        self.s.shutdown(socket.SHUT_RDWR)
        self.s.close()
        self.join()


def look(root, step, fill):
    for path, (mode, uid, gid) in step.get("stat_after", {}).items():
        st = os.stat(fill(path))
        if os.geteuid() != 0:
            uid, gid = st.st_uid, st.st_gid  # nobody else can give files away
        equal(("%o" % (st.st_mode & 0o7777), st.st_uid, st.st_gid), (mode, uid, gid), path)


def readwrite_case(case):
    with Root() as root, tempfile.TemporaryDirectory() as run_dir:
        fill = filler(root)
        for name in ("ws", "srv", case.get("bash_cwd", "ws")):
            os.makedirs(os.path.join(root, name), exist_ok=True)
        make(root, case["files"], fill)
        for path, mode in case.get("chmod", {}).items():
            set_mode(root, path, mode, fill)
        keeper = Keeper(run_dir, os.path.join(root, case.get("bash_cwd", "ws")))
        keeper.start()
        play = Play(os.path.join(root, "srv"))
        user = case.get("user_id", 1000) if os.geteuid() == 0 else os.geteuid()
        for number, step in enumerate(case["steps"], 1):
            if "set_files" in step:
                make(root, step["set_files"], fill)
                continue
            got = play(do="action", run_dir=run_dir, work_dir=os.path.join(root, "ws"), user_id=user,
                       action={"action": step["action"], "args": fill(step["args"])})
            if step.get("observation") is not None:
                want = fill(step["observation"])
                if OGG_LISTED and want["content"].startswith("data:video/mp4;base64,T2dnUw"):
                    # recorded where the system's table did not have it (the contract allows both)
                    want["content"] = want["content"].replace("video/mp4", "audio/ogg")
                equal((got["status"], json.loads(got["body"])), (200, want), "step %d" % number)
            else:
                equal((got["status"], json.loads(got["body"])),
                      (500, {"detail": fill(step["http_500_detail"])}), "step %d" % number)
            check_files(root, step["files_after"], fill)
            look(root, step, fill)
        play.close()
        keeper.close()


def set_mode(root, path, spec, fill):
    path = os.path.join(root, fill(path))
    mode, uid, gid = spec if isinstance(spec, list) else (spec, -1, -1)
    if os.geteuid() == 0:
        os.chown(path, uid, gid)
    os.chmod(path, int(mode, 8) if isinstance(mode, str) else mode)


# ---- the others ----

def binary_case(case, play):
    with Root() as root:
        path = os.path.join(root, case["path"])
        if case.get("create", "").startswith("path is a directory"):
            os.mkdir(path)
        elif "dangling" in case.get("create", ""):
            os.symlink("nowhere", path)
        elif "create" not in case:
            with open(path, "wb") as f:
                f.write(base64.b64decode(case.get("b64", case.get("b64_first_1100"))))
        equal(play(do="binary", path=path)["is"], case["is_binary"], "verdict")


def diff_case(case, play):
    got = play(do="diff", old=case["old"], new=case["new"], path=case["path"])
    equal(got["diff"], case["diff"], "diff")


def lines_case(case, play):
    if case["fn"] == "read_lines":
        got = play(do="read_lines", text="".join(case["all_lines"]), start=case["start"],
                   end=case["end"])
    else:
        to_insert = case["to_insert"]
        got = play(do="insert_lines", content="\n".join(to_insert),
                   original="".join(case["original"]), start=case["start"], end=case["end"])
    equal(got["text"], "".join(case["result"]), "lines")


def main():
    out, known = Tap(), exceptions()
    used = set()
    for name in ("editor.jsonl", "documents.jsonl"):
        for case in load(name):
            used.add(case["name"])
            out.run("%s: %s (%s)" % (name, case["name"], case["tier"]), editor_case, case,
                    known.get(case["name"]))
    for name, *case in READERS:
        out.run("a reader of PDF: %s" % name, reader_case, *case)
    for case in load("readwrite.jsonl"):
        out.run("readwrite.jsonl: %s" % case["name"], readwrite_case, case)
    play = Play()
    for case in load("binary.jsonl"):
        out.run("binary.jsonl: %s (%s)" % (case["name"], case["tier"]), binary_case, case, play)
    for case in load("diff.jsonl"):
        out.run("diff.jsonl: %s" % case["name"], diff_case, case, play)
    for number, case in enumerate(load("lines.jsonl"), 1):
        out.run("lines.jsonl: %d %s" % (number, case["fn"]), lines_case, case, play)
    play.close()
    out.ok(not set(known) - used, "every exception has its case", sorted(set(known) - used))
    return out.done()


if __name__ == "__main__":
    sys.exit(main())
