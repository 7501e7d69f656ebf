#!/usr/bin/env python3
"""read, write and edit through nginx and the workers: what no single process can show. The texts are
t/unit/test_files_corpus.py's."""

import base64
import json
import os
import stat
import subprocess
import sys
import tempfile
import threading

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
from lib import process  # noqa: E402
from lib.supervised import (  # noqa: E402
    BUILDDIR, ROOT, SRCDIR, Libexec, Server, beside, gate, kill_wait, marker, need, need_root, run_tests)
from lib.tap import Skip, equal  # noqa: E402


def act(s, action, **args):
    a = s.request("POST", "/execute_action", json.dumps({"action": {"action": action, "args": args}}),
                  {"Content-Type": "application/json"})
    return a.status, a.json()


def content(s, action, **args):
    status, seen = act(s, action, **args)
    if status != 200 or seen["observation"] != action:
        raise AssertionError("%s %r: %d %r\n%s" % (action, args, status, seen, s.log()))
    return seen["content"]


def path(s, name):
    return os.path.join(s.work_dir, name)


def put(s, name, text, mode=0o644):
    with open(path(s, name), "w") as f:
        f.write(text)
    os.chmod(path(s, name), mode)
    return path(s, name)


def get(name):
    with open(name) as f:
        return f.read()


# ---- several workers, one editor ----

def undo_meets_another_worker():
    with Server() as s:
        p = path(s, "a.txt")
        content(s, "edit", command="create", path=p, file_text="0\n")
        for n in range(5):
            content(s, "edit", command="str_replace", path=p, old_str="%d" % n, new_str="%d" % (n + 1))
            for pid in s.workers("action"):
                kill_wait(pid)
        for n in reversed(range(5)):
            equal(content(s, "edit", command="undo_edit", path=p).startswith(
                "Last edit to %s undone successfully." % p), True, "undo")
            equal(get(p), "%d\n" % n)


def undo_survives_the_supervisor():
    run = None
    with Server() as s:
        p = put(s, "a.txt", "old\n")
        content(s, "edit", command="str_replace", path=p, old_str="old", new_str="new")
        run = os.path.join(s.run_dir, "undo")
        equal(stat.S_IMODE(os.stat(run).st_mode), 0o700, "the history is nobody else's")
        s.popen.kill()
        s.wait()
        s.start()
        content(s, "edit", command="undo_edit", path=p)
        equal(get(p), "old\n")
        s.stop()
        equal(os.path.exists(run), False, "the history ends with the server")
        s.start()
        equal(content(s, "edit", command="undo_edit", path=p), "ERROR:\nNo edit history found for %s." % p)


def concurrent_edits_lose_nothing():
    with Server() as s:
        p = put(s, "a.txt", "")
        wrong = []

        def insert(me):
            for n in range(20):
                seen = content(s, "edit", command="insert", path=p, insert_line=0,
                               new_str="%d-%d" % (me, n))
                if not seen.startswith("The file"):
                    wrong.append(seen)

        threads = [threading.Thread(target=insert, args=(me,)) for me in range(6)]
        for t in threads:
            t.start()
        for t in threads:
            t.join()
        equal(wrong, [])
        equal(sorted(get(p).split()), sorted("%d-%d" % (m, n) for m in range(6) for n in range(20)))


def concurrent_writes_are_whole():
    """A reader beside the writers only ever sees one of the texts, and so it is when workers are
    killed."""
    texts = [c * 300000 + "\n" for c in "abc"]
    with Server() as s:
        p = put(s, "a.txt", texts[0])
        torn = []

        def look():
            seen = get(p)
            if seen not in texts:
                torn.append((len(seen), set(seen)))

        def writer(text):
            return lambda: act(s, "write", path=p, content=text[:-1])

        with beside(look, *map(writer, texts)):
            for _ in range(10):
                for pid in s.workers("action")[:1]:
                    kill_wait(pid)
                equal(act(s, "read", path=p)[0], 200)
        equal(torn, [])
        s.until("temporary files are gone",
                lambda: not [n for n in os.listdir(s.work_dir) if n.startswith(".handrail-")])


# ---- a command that runs ----

def nothing_waits_for_a_command():
    with Server() as s:
        os.mkdir(path(s, "sub"))
        s.run("cd sub")
        p = put(s, "sub/a.txt", "text\n")
        began, wait = marker(s)
        hold, go = gate(s)
        b = s.in_background("cd ..; %s; %s; echo done" % (began, hold), timeout=60)
        wait()
        equal(content(s, "read", path="a.txt"), "text\n", "relative to where the shell stood last")
        equal(content(s, "read", path=p), "text\n")
        equal(content(s, "read", path=p, impl_source="oh_aci").endswith("\ttext\n     2\t\n"), True)
        content(s, "write", path="b.txt", content="new")
        content(s, "edit", command="str_replace", path=p, old_str="text", new_str="other")
        equal((get(p), get(path(s, "sub/b.txt"))), ("other\n", "new\n"))
        equal(act(s, "read", path="none")[1]["content"],
              "File not found: %s. Your current working directory is %s." % (
                  path(s, "sub/none"), path(s, "sub")))
        equal(b.is_alive(), True, "the command still runs")
        go()
        equal(b.content(), "done")
        equal(act(s, "read", path="a.txt")[1]["observation"], "error")


def nothing_waits_for_output():
    with Server() as s:
        p = put(s, "a.txt", "text\n")
        began, wait = marker(s)
        stop = path(s, "stop")
        b = s.in_background("%s; while [ ! -e %s ]; do echo %s; done; echo end" % (
            began, stop, "x" * 500), timeout=60)
        wait()
        for _ in range(50):
            equal(content(s, "read", path=p), "text\n")
            equal(content(s, "read", path="a.txt"), "text\n", "the keeper is asked")
        equal(b.is_alive(), True, "the command still runs")
        put(s, "stop", "")
        b.content()


# ---- what a file is ----

def metadata_stays():
    with Server() as s:
        p, link, name = put(s, "a.txt", "one\n", 0o640), path(s, "link"), path(s, "hard")
        other = put(s, "b.txt", "one\n", 0o751)
        os.symlink("a.txt", link)
        os.link(other, name)
        if ROOT:
            os.chown(p, 1234, 4321)
            os.chown(other, 1234, 4321)
        for i, (command, args) in enumerate((
                ("str_replace", {"old_str": "one", "new_str": "two"}),
                ("insert", {"insert_line": 0, "new_str": "top"}), ("undo_edit", {}))):
            content(s, "edit", command=command, path=link, **args)
            content(s, "edit", command=command, path=name, **args)
            for f, mode in ((p, 0o640), (other, 0o751)):
                st = os.stat(f)
                equal(stat.S_IMODE(st.st_mode), mode, "%s: mode" % command)
                if ROOT:
                    equal((st.st_uid, st.st_gid), (1234, 4321), "%s: owner" % command)
                equal(get(f), ["two\n", "top\ntwo\n", "two\n"][i])
        equal((os.path.islink(link), os.stat(other).st_nlink, os.stat(name).st_ino),
              (True, 2, os.stat(other).st_ino))
        content(s, "write", path=link, content="three")
        equal((get(p), os.path.islink(link)), ("three\n", True))


def new_files_belong_to_the_user():
    need_root()
    with Server(args=["--username", "nobody"]) as s:
        content(s, "write", path="d/a.txt", content="x")
        st = os.stat(path(s, "d/a.txt"))
        uid = int(subprocess.check_output(["id", "-u", "nobody"], text=True))
        equal((stat.S_IMODE(st.st_mode), st.st_uid, st.st_gid), (0o664, uid, uid))


def special_files():
    """No worker waits for a FIFO, and a device that has no end is refused."""
    with Server() as s:
        fifo = path(s, "fifo")
        os.mkfifo(fifo)
        for _ in range(4):
            equal(content(s, "read", path=fifo), "")
            equal(act(s, "write", path=fifo, content="x")[0], 500)
        status, seen = act(s, "read", path="/dev/zero")
        equal((status, seen["content"]), (200, "ERROR_BINARY_FILE"))
        equal(content(s, "edit", command="view", path="/dev/zero").startswith("ERROR:\n"), True)
        equal(s.pool("action")["busy"] <= 1, True, "nobody hangs")


def limits():
    with Server() as s:
        p = path(s, "a.txt")
        with open(p, "w") as f:
            f.write("x" * (10 * 1024 * 1024 - 1) + "\n")
        content(s, "edit", command="insert", path=p, insert_line=1, new_str="y")
        equal(content(s, "edit", command="view", path=p),
              "ERROR:\nFile validation failed for %s: File is too large (10.0MB). Maximum allowed size "
              "is 10MB." % p)
        equal(len(content(s, "read", path=p)), 10 * 1024 * 1024 + 2, "read has no such limit")
        os.truncate(p, 257 << 20)
        equal(act(s, "read", path=p, start=0, end=1),
              (500, {"detail": "Internal server error: [Errno 27] File too large"}))


def documents():
    """What cannot be shown is named."""
    with Server() as s:
        for name in ("a.pdf", "a.docx"):
            with open(path(s, name), "wb") as f:
                f.write(b"\x89PNG\r\n\x1a\n\0\0\0\rIHDR\0\0\0\x10\0\0\0\x10\b\2\0\0\0\x90\x91h6")
            seen = content(s, "edit", command="view", path=path(s, name))
            equal(seen.startswith("ERROR:\nError in converting file to Markdown: it is neither such a "
                                  "document nor text but PNG image data, 16 x 16"), True, seen)
            equal(seen.endswith(". Please use Python code to read " + path(s, name)), True, seen)
        text = put(s, "b.pdf", "plain\n")
        equal(content(s, "read", path=text, impl_source="oh_aci"),
              "Here's the content of the file %s displayed in Markdown format:\nplain\n\n" % text)
        if not os.path.exists(os.path.join(BUILDDIR, "handrail-office")):
            raise Skip("there is no handrail-office: configure --enable-office, with libexpat1-dev")
        with open(os.path.join(SRCDIR, "t/corpus/files/documents.jsonl"), encoding="ascii") as f:
            case = next(c for c in map(json.loads, f) if c["name"] == "doc_xlsx")
        name = path(s, "a.xlsx")
        with open(name, "wb") as f:
            f.write(base64.b64decode(case["files"]["a.xlsx"]["b64"]))
        equal(content(s, "edit", command="view", path=name),
              case["steps"][0]["output"].replace("@ROOT@/a.xlsx", name))
        os.truncate(name, 2000)
        seen = content(s, "edit", command="view", path=name)
        equal(seen.startswith("ERROR:\nError in converting file to Markdown: the document "), True, seen)


def office_converter():
    """The setting names the program that reads office documents; one that is not there is named."""
    with tempfile.TemporaryDirectory() as top:
        os.chmod(top, 0o755)
        program = os.path.join(top, "converter")
        with open(program, "w") as f:
            f.write("#!/bin/sh\nread -r line\n[ \"$line\" = PK$(printf '\\003\\004')good ] || "
                    "{ echo \"no $1 at all\"; exit 1; }\necho \"# $1\"\n")
        os.chmod(program, 0o755)
        with Server(settings={"office_converter": program}) as s:
            for name, text in (("a.docx", "# docx\n"), ("b.XLSX", "# xlsx\n"), ("c.pptx", "# pptx\n")):
                with open(path(s, name), "wb") as f:
                    f.write(b"PK\3\4good\n")
                equal(content(s, "edit", command="view", path=path(s, name)),
                      "Here's the content of the file %s displayed in Markdown format:\n%s\n" % (path(s, name), text))
            with open(path(s, "a.docx"), "wb") as f:
                f.write(b"PK\3\4bad\n")
            seen = content(s, "edit", command="view", path=path(s, "a.docx"))
            equal(seen.startswith("ERROR:\nError in converting file to Markdown: no docx at all"), True, seen)
            os.unlink(program)
            seen = content(s, "edit", command="view", path=path(s, "a.docx"))
            equal(seen.startswith("ERROR:\nError in converting file to Markdown: %s, which reads office "
                                  "documents, is not installed" % program), True, seen)


def having(s, library, without=None):
    """How many workers have it, and not the other."""
    count = 0
    for pid in s.pids("handrail-worker"):
        try:
            with open("/proc/%d/maps" % pid) as f:
                maps = f.read()
        except (FileNotFoundError, ProcessLookupError):
            continue  # it has ended since
        count += library in maps and (without is None or without not in maps)
    return count


def detectors_by_need():
    """libuchardet and libmagic are in no worker but those that had a question for them; without
    their modules all else is answered, and the log says what is missing."""
    process.need_hidden()
    text = "Привет, это простой текст на русском языке.\n" * 2
    one = {"action_workers": 1, "action_workers_max": 1}

    def legacy(s):
        name = path(s, "cyrillic.txt")
        with open(name, "wb") as f:
            f.write(text.encode("cp1251"))
        return content(s, "edit", command="view", path=name)

    def picture(s):
        name = path(s, "picture.pdf")
        with open(name, "wb") as f:
            f.write(b"\x89PNG\r\n\x1a\n\0\0\0\rIHDR\0\0\0\x10\0\0\0\x10\b\2\0\0\0\x90\x91h6")
        return content(s, "edit", command="view", path=name)

    with Server(settings=one) as s:
        plain = put(s, "plain.txt", "plain, naïve\n")
        equal("naïve" in content(s, "edit", command="view", path=plain), True)
        # a sanitizer brings the library of C++, too: after its own, while some workers still begin
        equal((having(s, "libuchardet"), having(s, "libmagic"), having(s, "libstdc++", "libasan")), (0, 0, 0))
        equal("простой текст" in legacy(s), True)
        equal((having(s, "libuchardet"), having(s, "libmagic")), (1, 0))
        equal("PNG image data" in picture(s), True)
        equal((having(s, "libuchardet"), having(s, "libmagic")), (1, 1))
    with Libexec() as lib:
        for module in ("handrail-charset.so", "handrail-kind.so"):
            os.unlink(os.path.join(lib, module))
        with Server(libexec=lib, settings=one) as s:
            plain = put(s, "plain.txt", "plain, naïve\n")
            equal("naïve" in content(s, "edit", command="view", path=plain), True)
            equal("простой текст" in legacy(s), False)
            equal(picture(s).startswith("ERROR:\nError in converting file to Markdown: it is neither such "
                                        "a document nor text."), True)
            for what in ("only Unicode and Western text is recognised: %s/handrail-charset.so: " % lib,
                         "files that cannot be shown are not described: %s/handrail-kind.so: " % lib):
                equal(s.wait_log(what) is not None, True, what)


# ---- what goes wrong ----

class Disk:
    """A file system of 256 KB, in the work directory."""

    def __init__(self, s):
        need_root()
        self.top = path(s, "disk")
        os.mkdir(self.top)
        r = subprocess.run([need("mount"), "-t", "tmpfs", "-o", "size=256k", "none", self.top],
                           stderr=subprocess.PIPE, text=True)
        if r.returncode != 0:
            raise Skip("no file system may be mounted here: " + r.stderr.strip())

    def __enter__(self):
        return self.top

    def __exit__(self, *_):
        subprocess.run([need("umount"), "-l", self.top], check=True)


def full_disk():
    with Server() as s, Disk(s) as top:
        old = "old " * 10000
        p, hard, new = (os.path.join(top, n) for n in ("a.txt", "hard.txt", "new.txt"))
        for name in (p, hard):
            with open(name, "w") as f:
                f.write(old)
        os.link(hard, os.path.join(top, "other"))
        with open(os.path.join(top, "fill"), "wb", buffering=0) as f:
            try:
                while f.write(b"x" * 4096) > 0:
                    pass
            except OSError:
                pass
        before = sorted(os.listdir(top))
        full = "[Errno 28] No space left on device"
        for name in (p, hard):
            equal(act(s, "write", path=name, content="new" * 30000),
                  (500, {"detail": "Internal server error: " + full}))
            equal(content(s, "edit", command="insert", path=name, insert_line=0, new_str="n" * 90000),
                  "ERROR:\nRan into %s while trying to write to %s" % (full, name))
            equal(content(s, "edit", command="undo_edit", path=name),
                  "ERROR:\nNo edit history found for %s." % name, "what failed is not remembered")
            equal(get(name), old, "the old content")
        equal(content(s, "edit", command="create", path=new, file_text="x" * 90000),
              "ERROR:\nRan into %s while trying to write to %s" % (full, new))
        equal(act(s, "write", path=os.path.join(top, "w"), content="x" * 90000)[0], 500)
        equal(sorted(os.listdir(top)), before, "nothing is left behind")


def no_permission():
    need_root()
    with Server(user="nobody") as s:
        p = put(s, "a.txt", "old\n", 0o600)  # root's
        readable = put(s, "b.txt", "old\n", 0o644)
        equal(act(s, "read", path=p),
              (500, {"detail": "Internal server error: [Errno 13] Permission denied: '%s'" % p}))
        equal(act(s, "write", path=readable, content="new"),
              (500, {"detail": "Internal server error: [Errno 13] Permission denied: '%s'" % readable}))
        equal(content(s, "edit", command="str_replace", path=readable, old_str="old", new_str="new"),
              "ERROR:\nRan into [Errno 13] Permission denied: '%s' while trying to write to %s" % (
                  readable, readable))
        equal((get(p), get(readable)), ("old\n", "old\n"))
        equal(content(s, "edit", command="create", path="/usr/x.txt", file_text="x"),
              "ERROR:\nRan into [Errno 13] Permission denied: '/usr/x.txt' while trying to write to "
              "/usr/x.txt")
        mine = path(s, "mine.txt")
        content(s, "edit", command="create", path=mine, file_text="x")
        equal(os.stat(mine).st_uid, os.stat(s.work_dir).st_uid)
        given = path(s, "given.txt")
        equal(act(s, "write", path=given, content="x")[1]["content"],
              "File %s written, but failed to change ownership and permissions: [Errno 1] Operation not "
              "permitted: '%s'" % (given, given), "it belongs to user 1000 by the contract")
        equal(get(given), "x\n")


def read_only_file_system():
    with Server() as s, Disk(s) as top:
        p = os.path.join(top, "a.txt")
        with open(p, "w") as f:
            f.write("old\n")
        subprocess.run([need("mount"), "-o", "remount,ro", top], check=True)
        equal(act(s, "write", path=p, content="new"),
              (500, {"detail": "Internal server error: [Errno 30] Read-only file system: '%s'" % p}))
        equal(content(s, "edit", command="str_replace", path=p, old_str="old", new_str="new"),
              "ERROR:\nRan into [Errno 30] Read-only file system: '%s' while trying to write to %s" % (p, p))
        equal(get(p), "old\n")


TESTS = [
    undo_meets_another_worker, undo_survives_the_supervisor, concurrent_edits_lose_nothing,
    concurrent_writes_are_whole, nothing_waits_for_a_command, nothing_waits_for_output,
    metadata_stays, new_files_belong_to_the_user, special_files, limits, documents, office_converter,
    detectors_by_need, full_disk, no_permission, read_only_file_system,
]

if __name__ == "__main__":
    sys.exit(run_tests(TESTS))
