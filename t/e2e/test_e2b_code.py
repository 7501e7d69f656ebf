#!/usr/bin/env python3
"""The code interpreter of the E2B dialect with a real kernel: what is answered, and what happens when
a client, a kernel or the plugin does not behave."""

import http.client
import json
import os
import re
import shutil
import signal
import socket
import subprocess
import sys
import threading
import time

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
from lib import process  # noqa: E402
from lib.supervised import BUILDDIR, PATIENCE, Server, kill_wait, run_tests  # noqa: E402
from lib.tap import Skip, equal, skip_all  # noqa: E402

PYTHON = os.environ.get("HANDRAIL_JUPYTER_PYTHON", "/usr/bin/python3")
PREFIX = "/handrail/e2b/code"
END = {"type": "end_of_execution"}
KEEPALIVE = {"type": "keepalive"}
RESTARTING = {"type": "error", "name": "ContextRestarting", "value": "Context was restarted", "traceback": ""}


class Code(Server):
    def __init__(self, **kw):
        super().__init__(args=["--plugins", "jupyter"], **kw)

    def open(self, method, path, body=None, patience=PATIENCE):
        c = http.client.HTTPConnection("127.0.0.1", self.port, timeout=patience)
        if body is not None and not isinstance(body, bytes):
            body = json.dumps(body).encode()
        c.request(method, PREFIX + path, body, {"Content-Type": "application/json"})
        return c

    def ask(self, method, path, body=None, **kw):
        """Returns the status, the type and the text of an answer."""
        c = self.open(method, path, body, **kw)
        r = c.getresponse()
        text = r.read().decode()
        c.close()
        return r.status, r.getheader("Content-Type"), text

    def json(self, method, path, body=None):
        status, kind, text = self.ask(method, path, body)
        equal((status, kind), (200, "application/json"), text)
        return json.loads(text)

    def run(self, code, **more):
        """The lines of an execution without their times."""
        status, kind, text = self.ask("POST", "/execute", dict(more, code=code))
        equal((status, kind), (200, None), text)
        return lines(text)

    def text(self, code, **more):
        """The text of the main result, or what went wrong."""
        for line in self.run(code, **more):
            if line["type"] == "error" or line.get("is_main_result"):
                return line.get("text") or "%(name)s: %(value)s" % line
        return None

    def main(self):
        (pid,) = [p for p in process.children(self.pid) if process.command_line(p).endswith("handrail-jupyter")]
        return pid

    def interpreter(self):
        (pid,) = [p for p in process.children(self.main()) if "--code" in process.command_line(p)]
        return pid

    def kernels(self):
        return [p for p in process.children(self.interpreter()) if "ipykernel" in process.command_line(p)]

    def cell(self, code):
        """run_ipython, in the kernel of its own."""
        action = {"action": "run_ipython", "args": {"code": code, "include_extra": False}, "timeout": 60}
        a = self.request("POST", "/execute_action", json.dumps({"action": action}),
                         {"Content-Type": "application/json"}, 120)
        return a.json()["content"]


def lines(text):
    """The lines without their times, and without those that come after five seconds of silence."""
    found = [line for line in map(json.loads, text.splitlines()) if line != KEEPALIVE]
    for line in found:
        if line["type"] in ("stdout", "stderr"):
            equal(re.fullmatch(r"[-0-9]{10}T[0-9:]{8}\.\d+(Z|\+00:00)", line.pop("timestamp")) is not None, True)
        if line.get("traceback"):
            equal("\x1b" in line["traceback"], False)
            line["traceback"] = "some"
    return found


class Stream:
    """An execution whose lines are read one by one."""

    def __init__(self, s, code, **more):
        self.c = s.open("POST", "/execute", dict(more, code=code))
        self.r = None

    def line(self):
        self.r = self.r or self.c.getresponse()
        return json.loads(self.r.readline())

    def rest(self):
        self.r = self.r or self.c.getresponse()
        return lines(self.r.read().decode())

    def leave(self):
        self.c.sock.shutdown(socket.SHUT_RDWR)
        self.c.close()


def number(n):
    return {"type": "number_of_executions", "execution_count": n}


def result(text, main=True, **more):
    return dict({"type": "result", "is_main_result": main, "text": text, "extra": {}}, **more)


def error(name, value):
    return {"type": "error", "name": name, "value": value, "traceback": "some"}


def nothing_runs_before_it_is_needed():
    with Code() as s:
        equal(s.ask("GET", "/health"), (200, "application/json", '"OK"'))
        (context,) = s.json("GET", "/contexts")
        equal([context["language"], sorted(context)], ["python", ["cwd", "id", "language"]])
        equal(s.kernels(), [])
        equal([p for p in process.children(s.main()) if "ipykernel" in process.command_line(p)], [])
        equal(s.text("1+1"), "2")
        equal(len(s.kernels()), 1)
        equal(s.text("2+2", context_id=context["id"]), "4")
        equal(len(s.kernels()), 1, "the default context")
        # run_ipython has a kernel of its own
        equal(s.cell("x = 5; print(x)"), "5")
        equal(s.text("x"), "NameError: name 'x' is not defined")
        equal(s.cell("print(x)"), "5")


def executions():
    with Code() as s:
        for n, (code, want) in enumerate([
                ("1+1", [result("2")]),
                ("x = 1", []),
                ("x", [result("1")]),
                ("print('a'); print('b')", [{"type": "stdout", "text": "a\nb\n"}]),
                ("import sys; print('e', file=sys.stderr)", [{"type": "stderr", "text": "e\n"}]),
                ("'it'", [result("it")]),
                ("'\\'it\\''", [result('"\'it\'"')]),
                ("None", []),
                ("{'a': 1, 'b': [1, 2]}", [result("{'a': 1, 'b': [1, 2]}", json={"a": 1, "b": [1, 2]})]),
                ("[1, 'x', None, float('nan')]", [result("[1, 'x', None, nan]", json=[1, "x", None, None])]),
                ("{1: {2}}", [result("{1: {2}}")]),
                ("from IPython.display import HTML, SVG, display; display(1); display('two'); HTML('<b>')",
                 [result("1", False), result("two", False),
                  result("<IPython.core.display.HTML object>", html="<b>")]),
                ("display({'text/plain': 'p', 'a/b': 1, 'image/png': 'QUJD'}, raw=True)",
                 [result("p", False, png="QUJD", extra={"a/b": 1})]),
                ("!echo hi", [{"type": "stdout", "text": "hi\r\n"}]),
                ("1/0", [error("ZeroDivisionError", "division by zero")]),
                ("print('\u017elu\u0165 \U0001f40e', end='')",
                 [{"type": "stdout", "text": "\u017elu\u0165 \U0001f40e"}]),
                ("import sys; sys.stdout.write(b'\\xff'.decode('utf8', 'surrogateescape')); None",
                 [{"type": "stdout", "text": "\ufffd"}]),
                ("%%capture\nprint(1)", [])], 1):
            equal(s.run(code), [number(n)] + want + [END], code)
        got = s.run("def f(:")
        equal([got[0]["name"], got[1:]], ["SyntaxError", [number(19), END]])
        equal(s.run(""), [number(20), END])
        equal([line["type"] for line in s.run("input('? ')")], ["number_of_executions", "error", "end_of_execution"])
        equal(s.text("'still there', x"), "('still there', 1)")


def a_plot_is_a_picture():
    if subprocess.run([PYTHON, "-c", "import matplotlib"], stderr=subprocess.DEVNULL).returncode:
        raise Skip("there is no matplotlib (package python3-matplotlib)")
    with Code() as s:
        got = s.run("import matplotlib.pyplot as plt; plt.bar(['a', 'b'], [1, 2]); plt.show()")
        (picture,) = [line for line in got if line["type"] == "result"]
        equal([picture["png"][:11], picture["is_main_result"]], ["iVBORw0KGgo", False])


# stand-ins for both packages; the chart of the second figure cannot be made
FIGURES = """
import sys, types
for name in ("matplotlib", "matplotlib.figure", "e2b_charts"):
    sys.modules[name] = types.ModuleType(name)
class Figure:
    def __repr__(self):
        return "F"
sys.modules["matplotlib.figure"].Figure = Figure
sys.modules["e2b_charts"].chart_figure_to_dict = lambda f: {"type": "bar", "elements": [f.x, float("nan")]}
display(Figure())
f = Figure()
f.x = 1
f
"""


def a_figure_is_a_chart():
    with Code() as s:
        got = [line for line in s.run(FIGURES) if line["type"] == "result"]
        equal(got, [result("F", False), result("F", chart={"type": "bar", "elements": [1, None]})])
        equal(s.run("sys.modules['e2b_charts'] = None; f")[1], result("F"))


# a stand-in for Pillow
PILLOW = """
class Image:
    def _repr_png_(self):
        return b"ABC"
    def __repr__(self):
        return "I"
    def save(self, fp, format=None):
        (open(fp, "w") if isinstance(fp, str) else fp).write("saved as " + format)
    def show(self, title=None):
        raise OSError("no viewer")
"""


def picture():
    """The result of a cell that shows a picture of PILLOW."""
    # jupyter_client 8 encodes bytes without the line feed at the end
    encode = "from jupyter_client.jsonutil import json_default; print(end=json_default(b'ABC'))"
    png = subprocess.run([PYTHON, "-c", encode], check=True, stdout=subprocess.PIPE, text=True).stdout
    equal(png.rstrip("\n"), "QUJD")
    return [result("I", False, png=png), END]


def a_picture_that_is_shown_or_saved():
    with Code() as s:
        lib, saved = os.path.join(s.work_dir, "lib"), os.path.join(s.work_dir, "saved")
        os.makedirs(lib + "/PIL")
        for name, text in (("__init__.py", ""), ("Image.py", PILLOW)):
            with open(os.path.join(lib, "PIL", name), "w") as f:
                f.write(text)
        s.run("import sys; sys.path.insert(0, %r); before = list(sys.modules)" % lib)
        equal(s.text("'PIL' in before"), "False", "nothing loads it before a cell does")
        equal(s.run("from PIL import Image; Image.Image().show('title')")[1:], picture())
        equal(s.run("Image.Image().save(%r, format='x')" % saved)[1:], picture())
        with open(saved) as f:
            equal(f.read(), "saved as x")
        equal(s.run("Image.Image().save(sys.stdout, 'y')")[1], {"type": "stdout", "text": "saved as y"})


def a_picture_after_a_failed_import():
    with Code() as s:
        lib = os.path.join(s.work_dir, "lib")
        os.makedirs(lib + "/PIL")
        for name, text in (("__init__.py", ""), ("Image.py", "import missing_library\n" + PILLOW)):
            with open(os.path.join(lib, "PIL", name), "w") as f:
                f.write(text)
        s.run("import sys; sys.path.insert(0, %r); sys.dont_write_bytecode = True" % lib)
        for _ in range(2):
            equal(s.text("from PIL import Image"), "ModuleNotFoundError: No module named 'missing_library'")
        with open(lib + "/missing_library.py", "w"):
            pass
        s.run("import importlib; importlib.invalidate_caches()")
        equal(s.run("from PIL import Image; Image.Image().show()")[1:], picture())
        s.run("del sys.modules['PIL.Image']")
        equal(s.run("from PIL import Image; Image.Image().show()")[1:], picture())


def a_table_is_data():
    if subprocess.run([PYTHON, "-c", "import pandas"], stderr=subprocess.DEVNULL).returncode:
        raise Skip("there is no pandas (package python3-pandas)")
    with Code() as s:
        got = s.run("import pandas; pandas.DataFrame({'a': [1, 2], 't': pandas.to_datetime(['2026-01-02'] * 2)})")
        equal(got[1]["data"], {"a": [1, 2], "t": ["2026-01-02T00:00:00"] * 2})
        equal(got[1]["html"].startswith("<div>"), True)
        got = s.run("pandas.DataFrame({'a': [1.5, None], 't': [pandas.Timestamp('2026-01-02'), None], "
                    "'d': [pandas.Timedelta('1s'), None], 'o': [[float('nan')], {1}], 1: [True, False]})")
        equal(got[1]["data"], {"a": [1.5, None], "t": ["2026-01-02T00:00:00", None], "d": ["P0DT0H0M1S", None],
                               "o": [[None], "{1}"], "1": [True, False]})


def contexts():
    with Code() as s:
        default = s.json("GET", "/contexts")
        made = s.json("POST", "/contexts", {"cwd": "/tmp"})
        equal([made["language"], made["cwd"]], ["python", "/tmp"])
        equal(re.fullmatch(r"[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}", made["id"]) is not None, True)
        equal(len(s.kernels()), 1, "only its own")
        equal(s.run("import os; os.getcwd()", context_id=made["id"]), [number(1), result("/tmp"), END])
        equal(s.run("v = 5", context_id=made["id"]), [number(2), END])
        equal(s.text("v"), "NameError: name 'v' is not defined", "the default context")
        equal(s.json("GET", "/contexts"), default + [made])
        missing = s.json("POST", "/contexts", {"cwd": "/no/such", "language": None})
        equal(s.text("import os; os.path.isdir(os.getcwd())", context_id=missing["id"]), "True")
        equal(s.json("POST", "/contexts/%s/restart" % made["id"]), None)
        equal(s.run("v", context_id=made["id"]), [number(1), error("NameError", "name 'v' is not defined"), END])
        equal(s.json("DELETE", "/contexts/" + made["id"]), None)
        equal(s.json("GET", "/contexts"), default + [missing])
        equal(len(s.kernels()), 2)
        text = "text/plain; charset=utf-8"
        gone = (404, text, "Context %s not found" % made["id"])
        equal(s.ask("POST", "/execute", {"code": "1", "context_id": made["id"]}), gone)
        equal(s.ask("DELETE", "/contexts/" + made["id"]), gone)
        equal(s.ask("POST", "/contexts/%s/restart" % made["id"]), gone)
        equal(s.ask("POST", "/execute", {"code": "1", "context_id": missing["id"], "language": "python"}),
              (400, text, "Only one of context_id or language can be provided"))
        unknown = (500, text, "Failed to create context: " + json.dumps({
            "message": "The 'cobol' kernel is not available. Please pick another suitable kernel instead, or install "
                       "that kernel.",
            "short_message": "cobol not found"}))
        equal(s.ask("POST", "/execute", {"code": "1", "language": "cobol"}), unknown)
        equal(s.ask("POST", "/contexts", {"language": " COBOL "}), unknown)
        equal(s.text("2*4", language=" Python "), "8")
        # its running execution ends with it
        running = Stream(s, "import time; time.sleep(60)", context_id=missing["id"])
        running.line()
        equal(s.json("POST", "/contexts/%s/restart" % missing["id"]), None)
        equal(running.rest(), [RESTARTING, END])
        running = Stream(s, "import time; time.sleep(60)", context_id=missing["id"])
        running.line()
        waiting = Stream(s, "1", context_id=missing["id"])
        equal(waiting.line(), KEEPALIVE, "it has arrived, and waits")
        equal(s.json("DELETE", "/contexts/" + missing["id"]), None)
        equal([line["type"] for line in running.rest() + waiting.rest()], ["error", "end_of_execution"] * 2)


def variables():
    with Code() as s:
        equal(s.text("import os; print(os.environ['FOO']) or os.environ['FOO']", env_vars={"FOO": "b'a"}), '"b\'a"')
        equal(s.text("str(os.environ.get('FOO'))"), "None")
        path = s.text("os.environ['PATH']")
        equal(s.text("os.environ['PATH']", env_vars={"PATH": "/x"}), "/x")
        equal(s.text("os.environ['PATH']"), path)
        equal(s.text("1/0", env_vars={"FOO": "1"}), "ZeroDivisionError: division by zero")
        equal(s.text("str(os.environ.get('FOO'))"), "None", "after an error")
        equal(s.run("%%time\nNone", env_vars={"FOO": "1"})[1]["type"], "stdout", "a magic of the whole cell")
        got = s.run("print(1)", env_vars={"A=B": "", "FOO": "1"})
        equal([line["type"] for line in got], ["error", "end_of_execution"])
        equal(s.text("str(os.environ.get('FOO'))"), "None", "after a wrong name")
        leaving = Stream(s, "import time; time.sleep(60)", env_vars={"FOO": "1"})
        leaving.line()
        leaving.leave()
        equal(s.text("str(os.environ.get('FOO'))"), "None", "after its client has left")


def other_kernels():
    top = os.path.join("/tmp", "handrail-kernels-%d" % os.getpid())
    try:
        for name, argv in (("javascript", [PYTHON, "-m", "ipykernel_launcher", "-f", "{connection_file}"]),
                           ("ending", ["/bin/false"]), ("absent", ["/no/such/program"])):
            os.makedirs(os.path.join(top, "kernels", name))
            with open(os.path.join(top, "kernels", name, "kernel.json"), "w") as f:
                json.dump({"argv": argv, "language": name, "env": {"KERNEL_OF": name}}, f)
        os.chmod(top, 0o755)
        with Code(env={"JUPYTER_PATH": top}) as s:
            equal([c["language"] for c in s.json("GET", "/contexts")], ["python", "javascript"])
            equal(s.text("import os; os.environ['KERNEL_OF']", language="JS"), "javascript")
            equal(s.text("os", language="python"), "NameError: name 'os' is not defined")
            for name, why in (("ending", "ended at once"), ("absent", "No such file")):
                for method in ("/contexts", "/execute"):
                    status, _, text = s.ask("POST", method, {"code": "1", "language": name})
                    equal((status, text.startswith("Failed to create context: "), why in text), (500, True, True), text)
            equal("ending" in [c["language"] for c in s.json("GET", "/contexts")][2:], True)
    finally:
        shutil.rmtree(top)


def a_client_that_leaves_interrupts():
    with Code() as s:
        s.run("n = 0")
        leaving = Stream(s, "import time; time.sleep(600); n = 1")
        equal(leaving.line()["type"], "number_of_executions")
        queued = Stream(s, "n = 2")
        queued.leave()
        began = time.monotonic()
        leaving.leave()
        equal(s.text("n"), "0", "neither has run to its end")
        equal(time.monotonic() - began < 10, True)
        # a cell that catches interrupts costs its kernel
        leaving = Stream(s, "while True:\n try: time.sleep(600)\n except KeyboardInterrupt: pass")
        leaving.line()
        leaving.leave()
        equal(s.text("n"), "NameError: name 'n' is not defined")


def endless_output_of_nobody():
    with Code() as s:
        made = s.json("POST", "/contexts", {})
        leaving = Stream(s, "while True:\n try: print('x' * 1000)\n except BaseException: pass", context_id=made["id"])
        for _ in range(3):
            leaving.line()
        leaving.leave()
        equal(s.text("1"), "1", "another context")
        equal(s.text("1", context_id=made["id"]), "1")


def a_line_every_five_seconds():
    with Code() as s:
        s.run("import time")
        long = Stream(s, "time.sleep(600)")
        equal(long.line()["type"], "number_of_executions")
        waiting = Stream(s, "2")
        equal(waiting.line(), KEEPALIVE)
        equal([long.line(), long.line()], [KEEPALIVE] * 2)
        long.leave()
        equal(waiting.rest()[1:], [result("2"), END])


def killed_kernel():
    with Code() as s:
        equal(s.run("import os; os._exit(1)"), [RESTARTING, END])
        equal(s.run("1"), [number(1), result("1"), END])
        running = Stream(s, "import time; time.sleep(60)")
        running.line()
        os.kill(s.kernels()[0], signal.SIGKILL)
        equal(running.rest(), [RESTARTING, END])
        s.run("v = 1")
        (kernel,) = s.kernels()
        kill_wait(kernel)
        equal(s.text("v"), "NameError: name 'v' is not defined")
        equal(s.run("exit()")[1:], [END])
        equal(s.text("v"), "NameError: name 'v' is not defined")


# a child of a kernel writes to the socket of output until the other side has closed it, or for some time
HELD = r"""
import os, socket, time
def held(fd):
    s = socket.socket(fileno=os.dup(fd))
    try:
        return s.family == socket.AF_UNIX and str(s.getsockname()).endswith("/k-2") and s.getpeername() is not None
    except OSError:
        return False
    finally:
        s.close()
if os.fork():
    os._exit(1)
fds, end = [], time.monotonic() + 30
for fd in range(3, 200):
    try:
        fds += [fd] if held(fd) else []
    except OSError:
        pass
count = len(fds)
while fds and time.monotonic() < end:
    for fd in list(fds):
        try:
            os.write(fd, b"\0\1x")
        except BlockingIOError:
            pass
        except OSError:
            fds.remove(fd)
    time.sleep(0.1)
with open("%s", "w") as f:
    f.write("closed" if count and not fds else "open")
os._exit(0)
"""


def a_child_that_holds_the_sockets():
    path = "/tmp/handrail-held-%d" % os.getpid()
    with Code() as s:
        equal(s.text("1"), "1")
        s.run(HELD % path)
        equal(s.text("2"), "2")
        s.until("the child has ended", lambda: os.path.exists(path) and os.path.getsize(path) > 0)
        with open(path) as f:
            equal(f.read(), "closed")
        os.unlink(path)


def killed_interpreter():
    with Code() as s:
        s.run("v = 1")
        equal(s.cell("w = 1; print(w)"), "1")
        running = Stream(s, "import time; time.sleep(600)")
        running.line()
        (kernel,) = s.kernels()
        kill_wait(s.interpreter())
        try:
            raise AssertionError("a whole stream: %r" % running.rest())
        except (http.client.IncompleteRead, ConnectionError):
            pass
        equal(process.wait_gone(kernel, PATIENCE), True)
        equal(s.text("v"), "NameError: name 'v' is not defined")
        equal(s.cell("print(w)"), "1", "the kernel of run_ipython is another")
        (kernel,) = s.kernels()
        kill_wait(s.main())
        equal(process.wait_gone(kernel, PATIENCE), True)
        equal(s.text("2"), "2")


def a_slow_reader_holds_its_kernel():
    size = 300 << 20
    code = "for i in range(300): _ = sys.stdout.write('x' * (1 << 20)), sys.stdout.flush()"
    with Code() as s:
        s.run("import sys")
        slow = Stream(s, code)
        slow.line()
        (kernel,) = s.kernels()
        s.until("the kernel is stopped", lambda: process.stat_fields(kernel)[0] == b"T")
        with open("/proc/%d/status" % s.interpreter()) as f:
            kilobytes = int(re.search(r"VmRSS:\s*(\d+)", f.read()).group(1))
        equal(kilobytes < 150 << 10, True, kilobytes)
        made = s.json("POST", "/contexts", {})
        equal(s.text("1", context_id=made["id"]), "1", "another context is free")
        got = slow.rest()
        equal([line for line in got[:-1] if line["type"] != "stdout" or line["text"].strip("x")], [], "other lines")
        equal([sum(len(line.get("text", "")) for line in got), got[-1]], [size, END])
        # one that reads nothing and leaves
        slow = Stream(s, code)
        slow.line()
        s.until("the kernel is stopped", lambda: process.stat_fields(kernel)[0] == b"T")
        slow.leave()
        equal(s.text("1"), "1")
        # in one write, unlike print: the kernel may send what it has after each
        equal([line["text"] for line in s.run("_ = sys.stdout.write('x' * (65 << 20))")[1:-1]],
              ["[an output of more than 64 MiB was not kept]\n"])


def a_continued_kernel():
    """A command continues a kernel that is held for a slow reader."""
    code = "for i in range(200): _ = sys.stdout.write('\\x01' * (1 << 20)), sys.stdout.flush()"
    with Code() as s:
        s.run("import sys")
        slow = Stream(s, code)
        slow.line()
        (kernel,) = s.kernels()
        s.until("the kernel is stopped", lambda: process.stat_fields(kernel)[0] == b"T")
        os.killpg(kernel, signal.SIGCONT)
        s.until("the kernel is stopped again", lambda: process.stat_fields(kernel)[0] == b"T")

        def cut():
            os.killpg(kernel, signal.SIGCONT)
            return "left 512 MiB unread" in s.log()
        # the programs compute for some 10 seconds until then, which a busy machine stretches
        s.until("the stream is cut", cut, patience=4 * PATIENCE)
        try:
            raise AssertionError("a whole stream: %r" % slow.rest()[-1:])
        except (http.client.IncompleteRead, ConnectionError):
            pass
        equal(s.text("1"), "1")


def a_hundred_wait():
    with Code() as s:
        s.run("n = 0; import time")
        first = Stream(s, "time.sleep(1)")
        first.line()
        answers = []

        def one():
            answers.append(s.text("n += 1; n"))
        threads = [threading.Thread(target=one) for _ in range(100)]
        for t in threads:
            t.start()
        for t in threads:
            t.join(PATIENCE)
        equal(sorted(map(int, answers)), list(range(1, 101)))


def hostile_bodies():
    deep = b'{"code": ' + b"[" * 100000
    with Code() as s:
        equal(s.ask("POST", "/execute", b"{")[:2], (422, "application/json"))
        equal(json.loads(s.ask("POST", "/execute", {})[2]),
              {"detail": [{"type": "missing", "loc": ["body", "code"], "msg": "Field required", "input": {}}]})
        equal([s.ask("POST", "/execute", b)[0] for b in (
            b"", b"null", b"[]", b'{"code": 1}', b'{"code": null}', b'{"code": "1", "env_vars": {"A": 1}}',
            b'{"code": "1", "context_id": 7}')], [422] * 7)
        equal(s.ask("POST", "/execute", deep)[0] in (400, 422), True)
        equal(s.ask("POST", "/execute", b"\xff\xfe\xff")[0] in (400, 422), True)
        equal(s.ask("POST", "/contexts", b'{"cwd": 1}')[0], 422)
        equal(s.ask("POST", "/execute", {"code": "#" * (17 << 20)})[0], 413)
        # nginx refuses it by its length, so the program never closes while nginx sends
        with socket.create_connection(("127.0.0.1", s.port), PATIENCE) as c:
            c.sendall(b"POST %s/execute HTTP/1.1\r\nHost: a\r\nContent-Length: %d\r\n\r\n"
                      % (PREFIX.encode(), (16 << 20) + 1))
            equal(c.makefile("rb").readline().split()[1], b"413")
        equal(s.ask("POST", "/execute", {"code": "1", "language": "../../etc"})[0], 500)
        equal(s.ask("POST", "/execute", {"code": "1", "language": "x\x00y\n'\"" * 1000})[0], 500)
        equal(s.ask("POST", "/execute", {"code": "1", "context_id": "x" * 100000})[0], 404)
        equal(s.ask("DELETE", "/contexts/")[0], 404)
        equal(s.ask("POST", "/contexts/a/b/restart")[0], 404)
        equal(s.ask("PUT", "/contexts")[0], 405)
        equal(s.text("len('" + "x" * 1000000 + "')"), "1000000")
        equal(s.text("print('a\\x00b') or 7"), "7")
        equal(s.run("'\x00'")[-1], END)
        equal(s.text("1"), "1")


def too_many_variables():
    with Code() as s:
        many = json.dumps({"envVars": {"A%d" % i: "" for i in range(20000)}})
        equal(s.request("POST", "/handrail/e2b/init", many, {"Content-Type": "application/json"}).status, 204)
        status, _, text = s.ask("POST", "/execute", {"code": "1"})
        equal("the sandbox has more than 16384 variables" in text, True, (status, text))


def without_a_kernel():
    with Code(env={"HANDRAIL_JUPYTER_PYTHON": "/bin/false"}) as s:
        equal(s.ask("GET", "/health")[0], 200)
        for path in ("/execute", "/contexts"):
            status, _, text = s.ask("POST", path, {"code": "1"})
            equal((status, "apt-get install python3-ipykernel" in text), (500, True), text)


if __name__ == "__main__":
    if not os.access(os.path.join(BUILDDIR, "handrail-jupyter"), os.X_OK):
        skip_all("handrail-jupyter is not built: apt-get install libzmq3-dev libssl-dev")
    if subprocess.run([PYTHON, "-c", "import ipykernel"], stderr=subprocess.DEVNULL).returncode:
        skip_all("there is no kernel for %s: apt-get install python3-ipykernel" % PYTHON)
    sys.exit(run_tests([
        nothing_runs_before_it_is_needed, executions, a_plot_is_a_picture, a_figure_is_a_chart,
        a_picture_that_is_shown_or_saved, a_picture_after_a_failed_import, a_table_is_data, contexts, variables,
        other_kernels, a_client_that_leaves_interrupts, endless_output_of_nobody, a_line_every_five_seconds,
        killed_kernel, a_child_that_holds_the_sockets,
        killed_interpreter, a_slow_reader_holds_its_kernel, a_continued_kernel, a_hundred_wait, hostile_bodies,
        too_many_variables, without_a_kernel]))
