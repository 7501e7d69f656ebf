#!/usr/bin/env python3
"""The door for clients of SWE-ReX (doc/agents.md). Its own test-suite: swerex_suite.py, by hand."""

import io
import json
import os
import re
import signal
import subprocess
import sys
import tempfile
import threading
import zipfile

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
from lib.supervised import ROOT, SRCDIR, Server, gate, kill_together, kill_wait, marker, run_tests  # noqa: E402
from lib.tap import Skip, equal  # noqa: E402

KEY = "a-key-that-nobody-guesses"
CORPUS = os.path.join(SRCDIR, "t", "corpus", "swerex", "swerex.jsonl")
PROMPT = "SHELLPS1PREFIX"


class Rex(Server):
    def __init__(self, prefix=(), **settings):
        super().__init__(env={"SESSION_API_KEY": KEY}, args=["--listen", "127.0.0.1"], prefix=prefix,
                         settings=dict({"swerex": True}, **settings))

    def post(self, path, body=None, id=None, **headers):
        h = {"X-API-Key": KEY, "Content-Type": "application/json"}
        if id:
            h["X-Request-ID"] = id
        h.update({k.replace("_", "-"): v for k, v in headers.items()})
        return self.request("POST", "/swerex/" + path, None if body is None else json.dumps(body),
                            {k: v for k, v in h.items() if v is not None})

    def create(self, session="default", **body):
        a = self.post("create_session", dict(body, session=session, session_type="bash"))
        equal(a.status, 200, a)
        return a.json()["output"]

    def bash(self, command, id=None, **body):
        return self.post("run_in_session", dict(body, command=command, action_type="bash"), id)

    def output(self, command, **body):
        a = self.bash(command, **body)
        equal(a.status, 200, a)
        return a.json()["output"]

    def interrupt(self, **body):
        return self.post("run_in_session", dict(body, action_type="bash_interrupt"))


def raised(answer):
    """(class, message, extra)"""
    equal(answer.status, 511, answer)
    e = answer.json()["swerexception"]
    return e["class_path"].rpartition(".")[2], e["message"], e["extra_info"]


def multipart(**parts):
    """Text, or bytes for the file."""
    body = b""
    for name, value in parts.items():
        body += b'--B\r\nContent-Disposition: form-data; name="%s"' % name.encode()
        body += (b'; filename="f"\r\n\r\n' + value) if isinstance(value, bytes) else b"\r\n\r\n" + value.encode()
        body += b"\r\n"
    return body + b"--B--\r\n"


def recorded():
    """What the original's server (1.4.0) answers; "improved": what we do instead."""
    with Rex() as s:
        with open(os.path.join(s.work_dir, "bin"), "wb") as f:
            f.write(b"a\xff\xe4\xb8\r\nz\r")
        with open(CORPUS) as f:
            cases = [json.loads(line) for line in f]
        for c in cases:
            wanted = c.get("improved", c)
            body = c["body"] if isinstance(c["body"], (str, type(None))) else json.dumps(c["body"])
            key = KEY if c["key"] == "KEY" else c["key"]
            headers = {"Content-Type": "application/json"}
            if key:
                headers["X-API-Key"] = key
            a = s.request(c["method"], "/swerex" + c["path"],
                          body.replace("@DIR@", s.work_dir) if body else body, headers)
            answer = json.loads(a.body.decode().replace(s.work_dir, "@DIR@"))
            equal((a.status, answer), (wanted["status"], wanted["answer"]), (c["path"], c["body"]))


def door():
    with Server(env={"SESSION_API_KEY": KEY}) as s:  # closed unless asked for, on loopback as well
        equal(s.get("/swerex/is_alive", X_API_Key=KEY).status, 403)
        equal(s.get("/swerex/is_alive", X_Session_API_Key=KEY).status, 404)
        equal(s.get("/-/swerex", X_API_Key=KEY).status, 403)
    with Rex() as s:
        for path in ("is_alive", "", "/execute", "execute", "upload", "nothing"):
            for method in ("GET", "POST"):
                a = s.request(method, "/swerex/" + path)
                equal((a.status, a.json()), (403, {"detail": "Not authenticated"}), path)
                a = s.request(method, "/swerex/" + path, headers={"X-API-Key": "wrong"})
                equal((a.status, a.json()), (401, {"detail": "Invalid API Key"}), path)
        equal(s.get("/swerex/is_alive", X_Session_API_Key=KEY).json()["is_alive"], True)
        equal(s.get("/swerex/nothing", X_API_Key=KEY).status, 404)
        equal(s.post("execute", {"command": "id", "shell": True}, Origin="http://evil.example").status, 403)
        equal(s.get("/alive", X_API_Key=KEY).status, 200)
        equal(s.request("POST", "/execute_action", "{}", {"X-API-Key": KEY}).status, 403)
        equal(KEY in s.log(), False)


def commands():
    with Rex() as s:
        equal(raised(s.bash("echo a"))[0], "SessionDoesNotExistError")
        with open(os.path.join(s.work_dir, "rc"), "w") as f:
            f.write("PS1='> '; PS2=odd; export FROM_RC=yes; echo read\n")
        equal(s.create(startup_source=[s.work_dir + "/rc"]), "read\n")
        equal(raised(s.post("create_session", {"session_type": "bash"}))[0], "SessionExistsError")
        equal(s.output("echo $FROM_RC"), "yes\n")
        equal(s.output("cat <<'EOF'\n  a\n\nb\nEOF\necho c"), "  a\n\nb\nc\n")
        equal(s.output("cat <<A; cat <<B\na\nA\nb\nB"), "a\nb\n")
        equal(s.output("printf '  x'"), "  x")
        for text in ("for i in 1 2\r\ndo\r\n  echo $i\r\ndone\r\n", "cat <<E\r\n1\r\n2\r\nE\r\n"):
            equal(s.output(text), "1\n2\n")
        equal(s.output("echo SHELLPS1PREFIX; echo UNIQUESTRING29234; echo EXITCODESTART0EXITCODEEND"),
              "SHELLPS1PREFIX\nUNIQUESTRING29234\nEXITCODESTART0EXITCODEEND\n")
        equal(s.output("seq 100000"), "".join("%d\n" % i for i in range(1, 100001)))
        # nothing of a text with a mistake in its last line is run
        kind, message, extra = raised(s.bash("touch ran\n(a"))
        equal((kind, "syntax error" in extra["bash_stderr"]), ("BashIncorrectSyntaxError", True), message)
        equal(os.path.exists(os.path.join(s.work_dir, "ran")), False)
        equal(raised(s.bash("echo a\ncat <<EOF\nb"))[0], "BashIncorrectSyntaxError")
        equal(s.output("x=$(cat <<A\na\nA)\necho $x")[-3:], "\na\n")
        for text in ("echo a; echo b \\", "echo a\necho b \\"):
            equal(s.output(text, timeout=30), "a\nb\n")
        equal(s.output("true; cat <<EOF\n$x\nEOF"), "a\n")
        # a shell that ends is replaced
        equal(s.bash("echo last; exit 7", check="silent").json()["exit_code"], 7)
        equal(s.output("echo next"), "next\n")
        equal(raised(s.bash("echo x; exit 3"))[0], "NonZeroExitCodeError")
        equal(s.post("close_session", {"session_type": "bash"}).status, 200)
        equal(raised(s.bash("echo a"))[0], "SessionDoesNotExistError")
        s.create("a name with blanks, too long for a shell of ours: it has more than 32 letters")
        s.create("b")
        a = s.request("POST", "/handrail/v1/create", json.dumps({"name": "swerexes"}),
                      {"X-Session-API-Key": KEY, "Content-Type": "application/json"})
        equal(a.status // 100, 2, a)
        equal(s.post("close").json(), {})
        equal(raised(s.bash("echo a", session="b"))[0], "SessionDoesNotExistError")
        equal(b'"swerexes"' in s.get("/handrail/v1/sessions", X_Session_API_Key=KEY).body, True)


def waiting():
    with Rex() as s:
        s.create()
        for limit in (1, 5, 30):  # in which a slow machine prints it
            kind, message, extra = raised(s.bash("echo before; sleep 1000", timeout=limit))
            if extra["output"] or limit == 30:
                break
            s.interrupt(timeout=30)
        equal((kind, extra["output"]), ("CommandTimeoutError", "before\n"), message)
        kind, message, _ = raised(s.bash("touch second"))
        equal((kind, "was not run" in message), ("CommandTimeoutError", True))
        a = s.interrupt(timeout=5).json()
        equal((a["expect_string"], a["output"][:6]), (PROMPT, "before"), a)
        equal(os.path.exists(os.path.join(s.work_dir, "second")), False)
        equal(s.output("echo after"), "after\n")
        # one that no C-c ends
        a = s.bash("bash -c 'trap \"\" INT; echo up; exec sleep 1000'", is_interactive_command=True,
                   expect=["up"], timeout=30)
        equal(a.json()["expect_string"], "up", a)
        equal(s.interrupt(n_retry=1).status, 200)
        equal(s.output("echo after")[-6:], "after\n")
        # programs that talk
        a = s.bash("bash -c 'while read -p \"name? \" x; do echo \"<$x>\"; done; echo over'",
                   is_interactive_command=True, expect=["na[m]e\\? $"], timeout=30).json()
        equal((a["expect_string"], a["exit_code"]), ("na[m]e\\? $", 0))
        a = s.bash("Ann", is_interactive_command=True, expect=["name\\? ", "never"], timeout=30).json()
        equal(a["output"], "<Ann>")
        a = s.bash("Bob\r\nEve", is_interactive_command=True, expect=["<Eve>"], timeout=30).json()
        equal(("<Bob>" in a["output"], "<>" in a["output"]), (True, False), a)
        a = s.bash("\x04", is_interactive_quit=True, timeout=30).json()
        equal((a["expect_string"], "over" in a["output"]), (PROMPT, True), a)
        equal(raised(s.bash("true", expect=["("]))[0], "error")
        # whatever an expression takes, the worker is not lost to it
        kind, message, _ = raised(s.bash("printf '%0.sa' {1..3000}; echo", expect=["(a*)*[bc]"] * 32, timeout=30))
        equal((kind, "too many steps" in message), ("RuntimeError", True), message)
        s.interrupt(timeout=30)
        kind, message, _ = raised(s.bash("head -c 4000000 /dev/zero | tr '\\0' a; echo", expect=["[^yz]*[yz]"],
                                         timeout=30))
        equal((kind, "too many steps" in message), ("RuntimeError", True), "of one step each: " + message)


def cut():
    """Of output that is longer than what is kept, the end."""
    with Rex(output_log_bytes=65536) as s:
        s.create()
        out = s.output("seq 30000")
        wanted = "".join("%d\n" % i for i in range(1, 30001))
        equal((wanted.endswith(out), len(out) > 30000), (True, True), len(out))


def interrupted():
    """One that ends by itself where others stop: nothing else of the user's is killed for it."""
    with Rex() as s:
        s.create()
        s.output("sleep 1000 & server=$!")
        program = ("import signal\nsignal.signal(signal.SIGINT, signal.SIG_IGN)\n"
                   "signal.signal(signal.SIGTSTP, lambda *a: exit(0))\nprint('up', flush=True)\nsignal.pause()")
        a = s.bash("python3 -c \"%s\"" % program, is_interactive_command=True, expect=["up\n|up\r"], timeout=30)
        equal(a.status, 200, a)
        equal(s.interrupt(n_retry=1).json()["expect_string"], PROMPT)
        equal(s.output("kill -0 $server && echo alive"), "alive\n")
        # one that stops itself when it is told to, as pagers do, is killed all the same
        pager = program.replace("lambda *a: exit(0)", "lambda *a: os.kill(os.getpid(), signal.SIGSTOP)").replace(
            "import signal", "import os, signal").replace("signal.pause()", "while True: signal.pause()")
        a = s.bash("echo | python3 -c \"%s\"" % pager, is_interactive_command=True, expect=["up\n|up\r"], timeout=30)
        equal(a.status, 200, a)
        equal(s.interrupt(n_retry=1).status, 200)
        equal("Stopped" in s.output("jobs"), False)
        equal(s.output("kill -0 $server && echo alive"), "alive\n")
        equal(s.interrupt(n_retry=-1e300).status, 200)
        # a shell that has ended the program and is slow afterwards keeps its variables
        os.mkfifo(os.path.join(s.work_dir, "never"))
        a = s.bash("python3 -c \"%s\"; read -t 2 <>never" % program, is_interactive_command=True,
                   expect=["up\n|up\r"], timeout=30)
        equal(a.status, 200, a)
        equal(s.interrupt(n_retry=1).status, 200)
        equal(s.output("kill -0 $server && echo alive"), "alive\n")
        # one that never comes back is replaced
        a = s.bash("trap '' INT TSTP; echo up; read <>never", is_interactive_command=True, expect=["up\n|up\r"],
                   timeout=30)
        equal(a.status, 200, a)
        equal(s.interrupt(n_retry=1).status, 200)
        equal(s.output("echo ${server:-none}"), "none\n")


def slow_start():
    """Programs that talk wait for a shell that is still at its start-up files."""
    with Rex() as s:
        with open(os.path.join(s.work_dir, ".bashrc"), "w") as f:
            f.write("sleep 0.7\n")
        s.create()
        equal(s.bash("exit 0").status, 200)  # another shell takes its place
        a = s.bash("read -p 'name? ' x", is_interactive_command=True, expect=["name\\? "], timeout=30)
        equal((a.status, a.json().get("expect_string")), (200, "name\\? "), a)
        # the limit of a program begins with it
        a = s.post("execute", {"command": "echo x", "shell": True, "timeout": 0.5})
        equal(a.json().get("stdout"), "x\n", a)
        s.stop()


def once():
    with Rex() as s:
        s.create()
        for _ in range(3):
            equal(s.bash("echo x >>ran; echo done", id="one").json()["output"], "done\n")
            equal(s.post("execute", {"command": "echo y >>ran; echo done", "shell": True}, id="two").json()["stdout"],
                  "done\n")
            equal(s.post("create_session", {"session": "c", "session_type": "bash"}, id="three").status, 200)
        with open(os.path.join(s.work_dir, "ran")) as f:
            equal(f.read(), "x\ny\n")
        # what was typed for a program is no command when the program has ended
        equal(s.bash("read -p 'say ' x", is_interactive_command=True, expect=["say "], timeout=30).status, 200)
        first, again = (s.bash("touch twice", id="typed", is_interactive_command=True, timeout=30) for _ in range(2))
        equal((first.status, first.body, os.path.exists(s.work_dir + "/twice")), (200, again.body, False), again)
        equal(s.output("echo $x"), "touch twice\n")
        # the workers die while the command waits: nginx asks another one, which joins
        began, wait = marker(s)
        door, open_it = gate(s)
        answers = []
        t = threading.Thread(
            target=lambda: answers.append(s.bash("echo z >>ran; %s; %s; echo late" % (began, door))))
        t.start()
        wait()
        kill_together(s.workers("action"))
        open_it()
        t.join()
        equal((answers[0].status, answers[0].json().get("output")), (200, "late\n"), answers)
        with open(os.path.join(s.work_dir, "ran")) as f:
            equal(f.read(), "x\ny\nz\n")


def execute():
    with Rex() as s:
        def ex(command, **body):
            return s.post("execute", dict(body, command=command))

        a = ex("echo o; echo e >&2; exit 3", shell=True).json()
        equal(a, {"stdout": "o\n", "stderr": "e\n", "exit_code": 3})
        equal(ex(["printf", "%s|", "a b", "", "'", "$HOME", "\n"]).json()["stdout"], "a b||'|$HOME|\n|")
        equal(ex(["A=b"]).json()["exit_code"], 127)
        # what is there has been started, whatever it did not find
        equal(ex(["env", "no-such-program"]).json()["exit_code"], 127)
        with open(os.path.join(s.work_dir, "odd"), "w") as f:
            f.write("#!/no/such/interpreter\n")
            os.fchmod(f.fileno(), 0o755)
        equal(ex(["./odd"]).json()["exit_code"], 127)
        for command in (["no-such-program"], ["./no-such-program"]):
            equal(raised(ex(command))[0], "FileNotFoundError")
        equal(ex("echo $A", shell=True, env={"A": "it's"}).json()["stdout"], "it's\n")
        equal(ex("pwd", shell=True, cwd="/usr").json()["stdout"], "/usr\n")
        equal(raised(ex("true", shell=True, cwd="/dev/null"))[0], "NotADirectoryError")
        equal(raised(ex(["a\0b"]))[:2], ("ValueError", "embedded null byte"))
        equal(raised(ex(["true"], env={"a=b": "c"}))[0], "ValueError")
        equal(raised(ex(["sleep", "1000"], timeout=0.5))[:2],
              ("CommandTimeoutError", "Timeout (0.5s) exceeded while running command"))
        equal(len(ex("head -c 300000 /dev/zero | tr '\\0' x", shell=True).json()["stdout"]), 300000)
        # whoever puts a link in the place of the output's file does not have the worker follow it
        a = ex("f=$(readlink /proc/$$/fd/1); rm -f $f; ln -s /etc/hostname $f; echo $f", shell=True)
        name = a.json()["stdout"].strip().replace(" (deleted)", "")
        equal(bool(re.match(r"/tmp/\.handrail-", name)), True, a)
        equal(os.path.lexists(name), False)


def undone():
    """What was refused for now was not begun: the same name is free, and does it later."""
    with Rex(action_workers=1, action_workers_max=1) as s:
        s.create("first")
        os.kill(s.pid, signal.SIGSTOP)  # who makes shells says nothing any more, and then is gone
        got = []
        body = {"session": "x", "session_type": "bash"}
        t = threading.Thread(target=lambda: got.append(s.post("create_session", body, id="again")))
        t.start()
        s.until("a worker has it", lambda: b'handrail_requests_in_flight{pool="action"} 1\n' in
                s.get("/metrics", X_Session_API_Key=KEY).body)
        kill_wait(s.pid)
        s.wait()
        t.join()
        equal((got[0].status, got[0].headers.get("Retry-After")), (503, "1"), got[0])
        s.start()
        for _ in range(2):
            a = s.post("create_session", body, id="again")
            equal((a.status, a.body), (200, b'{"output":"","session_type":"bash"}'), a)


def noclobber():
    """Of a shell that overwrites no file the output is had all the same, here and at the door for V1."""
    rc = "/etc/bash.bashrc"
    if not ROOT:
        raise Skip("needs root, to put a file over %s for the server alone: run it by sudo" % rc)
    with tempfile.NamedTemporaryFile("w", prefix="e2e-rc-") as f:
        f.write("set -o noclobber\n")
        f.flush()
        prefix = ["unshare", "-m", "sh", "-c", 'mount --bind "$0" "$1" && shift && exec "$@"', f.name, rc]
        if subprocess.run([*prefix, "true"], stderr=subprocess.DEVNULL).returncode != 0:
            raise Skip("nothing can be mounted here")
        with Rex(prefix, openhands_v1=True) as s:
            s.create()
            equal(s.output("echo x >f; echo y >f || echo kept; cat f").split()[-2:], ["kept", "x"])
            a = s.post("execute", {"command": "echo o; echo e >&2", "shell": True})
            equal(a.json(), {"stdout": "o\n", "stderr": "e\n", "exit_code": 0}, a)
            a = s.post("execute", {"command": "echo o; echo e >&2", "shell": True, "merge_output_streams": True})
            equal(a.json()["stdout"], "o\ne\n", a)
            a = s.request("POST", "/api/bash/execute_bash_command", json.dumps({"command": "echo o; echo e >&2"}),
                          {"X-Session-API-Key": KEY, "Content-Type": "application/json"}).json()
            equal((a["exit_code"], a["stdout"], a["stderr"]), (0, "o\n", "e\n"), a)


def files():
    with Rex() as s:
        def read(path, **body):
            return s.post("read_file", dict(body, path=path))

        def upload(path, content, **more):
            return s.request("POST", "/swerex/upload", multipart(file=content, target_path=path, **more),
                             {"X-API-Key": KEY, "Content-Type": "multipart/form-data; boundary=B"})

        at = os.path.join(s.work_dir, "deep", "er", "f")
        equal(upload(at, b"one\r\n\xff").json(), {})
        with open(at, "rb") as f:
            equal(f.read(), b"one\r\n\xff")
        equal(read("deep/er/f", errors="backslashreplace").json()["content"], "one\n\\xff")
        # by no link of the shell's to where only the server may write
        planted = "/root/planted-%d" % os.getpid() if ROOT else os.path.join(s.top, "planted")
        equal(s.post("execute", {"command": ["ln", "-s", planted, s.work_dir + "/out"]}).json()["exit_code"], 0)
        equal(raised(upload(s.work_dir + "/out", b"x"))[0], "OSError")
        equal(os.path.lexists(planted), False)
        # one whose body ends too soon is none
        a = s.request("POST", "/swerex/upload", multipart(target_path=s.work_dir + "/half", file=b"whole")[:-9],
                      {"X-API-Key": KEY, "Content-Type": "multipart/form-data; boundary=B"})
        equal((a.status, os.path.exists(s.work_dir + "/half")), (422, False), a)
        z = io.BytesIO()
        with zipfile.ZipFile(z, "w") as archive:
            archive.writestr("a/b", "zipped")
            archive.writestr("../../escaped", "no")
        equal(upload(s.work_dir + "/z", z.getvalue(), unzip="true").status, 200)
        equal(read("z/a/b").json()["content"], "zipped")
        equal(os.path.exists(os.path.join(os.path.dirname(s.work_dir), "escaped")), False)
        equal(raised(upload(s.work_dir + "/z2", b"no zip", unzip="true"))[0], "BadZipFile")
        equal(s.post("write_file", {"path": "new/f", "content": "no line end"}).json(), {})
        equal(read("new/f").json()["content"], "no line end")
        equal(s.post("write_file", {"path": "a\udcff", "content": "x"}).json(), {})
        equal(os.path.exists(os.fsencode(s.work_dir) + b"/a\xff"), True)
        kind, message, _ = raised(read("new/f", encoding="cp1252", errors="replace"))
        equal((kind, "errors=" in message), ("LookupError", True), message)
        # of the server's own processes nothing is read
        for path in ("/proc/%d/environ" % s.pid, "/proc/self/environ", "/proc/self/mem", "/proc/self/fd/0"):
            equal(raised(read(path))[0] in ("PermissionError", "FileNotFoundError", "OSError"), True, path)


if __name__ == "__main__":
    sys.exit(run_tests([recorded, door, commands, waiting, cut, interrupted, slow_start, once, undone,
                        execute, noclobber, files]))
