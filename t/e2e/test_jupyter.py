#!/usr/bin/env python3
"""run_ipython with a real kernel: what is answered, and what happens when a cell, the kernel or the
plugin does not behave."""

import json
import os
import re
import signal
import subprocess
import sys
import time

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
from lib import process  # noqa: E402
from lib.supervised import (  # noqa: E402
    BUILDDIR, PATIENCE, SRCDIR, Background, Server, kill_wait, need_entrance, need_root, run_tests)
from lib.tap import Skip, equal, skip_all  # noqa: E402

PYTHON = "/usr/bin/python3"
JSON = {"Content-Type": "application/json"}
ENDED = "the plugin ended while it performed the action"
ANEW = "[The Jupyter kernel was restarted; its variables are gone.]\n"
NOTHING = "[Code executed successfully with no output]"


class Jupyter(Server):
    def __init__(self, *plugins, args=(), **kw):
        super().__init__(args=["--plugins", "jupyter", *plugins, *args], **kw)

    def cell(self, code, timeout=30, headers=None, patience=60, **args):
        action = {"action": "run_ipython", "args": dict(args, code=code)}
        if timeout is not None:
            action["timeout"] = timeout
        a = self.request("POST", "/execute_action", json.dumps({"action": action}),
                         dict(JSON, **(headers or {})), patience)
        if a.status != 200:
            raise AssertionError("%r\n%s" % (a, self.log()))
        return a.json()

    def text(self, code, **kw):
        return self.cell(code, include_extra=False, **kw)["content"]

    def plugin(self):
        (pid,) = [p for p in process.children(self.pid)
                  if process.command_line(p).endswith("handrail-jupyter")]
        return pid

    def kernel(self):
        (pid,) = [p for p in process.children(self.plugin())
                  if "ipykernel_launcher" in process.command_line(p)]
        return pid


    def until_ready(self):
        """The plugin answers a cell on its own, the supervisor may hear later that it is ready."""
        self.until("it is ready", lambda: self.get("/ready").json()["components"]["plugins"]["jupyter"]
                   == {"state": "ready"})


class Cell(Background):
    """A cell on a thread of its own."""

    def __init__(self, server, code, **kw):
        super().__init__(server, code, **kw)

    def run(self):
        began = time.monotonic()
        try:
            self.answer = self.server.cell(*self.args, **self.kw)
        except Exception as error:
            self.error = error
        self.seconds = time.monotonic() - began

    def result(self):
        self.join(PATIENCE)
        if self.answer is None:
            raise AssertionError("no answer: %r\n%s" % (self.error, self.server.log()))
        return self.answer


def extras(s, directory=None):
    return "\n[Jupyter current working directory: %s]\n[Jupyter Python interpreter: %s]" % (
        directory or s.work_dir, PYTHON)


def the_whole_observation():
    with Jupyter() as s:
        equal(s.get("/ready").json()["components"]["plugins"]["jupyter"]["state"], "not started")
        a = s.cell("print(1)")
        equal(a, {"message": "Code executed in IPython cell.", "observation": "run_ipython",
                  "content": "1" + extras(s), "extras": {"code": "print(1)", "image_urls": None},
                  "success": True})
        equal(list(a), ["message", "observation", "content", "extras", "success"])
        s.until_ready()


# code: what is answered without the two lines about the place
CELLS = [
    ("print(1)", "1"),
    ("1+1", "2"),
    ("import os", NOTHING),
    ("x = 5", NOTHING),
    ("x", "5"),
    ("print('Hello, `World`!\\n')", "Hello, `World`!"),
    ("print('  a \\t\\n\\n')", "  a"),
    ("print()", ""),
    ("import sys; print('o'); print('e', file=sys.stderr)", "o\ne"),
    ("print('a'); 'b'", "a\n'b'"),
    ("print('\u00e4\u20ac\U0001f600')", "\u00e4\u20ac\U0001f600"),
    ("print('\\x1b[31mr\\x1b[0m\\x1b[1;2;3mx')", "rx"),
    ("print('\\x1b[1;2;3;4mx\\x1b[m\\x1b[2K')", "\x1b[1;2;3;4mx\x1b[m\x1b[2K"),
    ("!echo from a shell", "from a shell"),
    ("%nosuchmagic", "UsageError: Line magic function `%nosuchmagic` not found."),
    ("from IPython.display import display\n"
     "display({'image/png': 'QUJD\\n'}, raw=True)", ""),
    ("open('made', 'w').close(); print(os.listdir('.'))", "['made']"),
    ("", NOTHING),
]


def texts():
    with Jupyter() as s:
        for code, want in CELLS:
            equal(s.text(code), want, code)
        equal(s.cell("display({'image/png': 'QUJD\\n'}, raw=True)")["extras"]["image_urls"],
              ["data:image/png;base64,QUJD"])


def text_that_is_no_utf8():
    """It is decoded as jupyter_client does, and takes neither other output nor the next cell along."""
    say = "import sys; print('before'); sys.stdout.write(b'a\\xff\\xe2\\x82b\\n'.decode('utf8', 'surrogateescape'));"
    with Jupyter() as s:
        equal(s.text("x = 1; " + say + "print('after')"), "before\na\ufffd\ufffdb\nafter")
        equal("ValueError: c\ufffdd" in s.text("raise ValueError(b'c\\xffd'.decode('utf8', 'surrogateescape'))"), True)
        equal(s.text("b'e\\xfff'.decode('utf8', 'surrogateescape')").startswith("'e"), True)
        equal(s.text("print(x)"), "1", "the same kernel")


def errors():
    with Jupyter() as s:
        text = s.text("1/0")
        equal((text.split("\n")[-1], "\x1b" in text),
              ("ZeroDivisionError: division by zero", False))
        equal(s.text("print(2)"), "2", "the very next one")
        equal(s.text("import no_such_module_1").split("\n")[-1],
              "ModuleNotFoundError: No module named 'no_such_module_1'")
        equal(s.text("def f(:").split("\n")[-1], "SyntaxError: invalid syntax")
        equal(s.text("input('? ')").split("\n")[-1],
              "StdinNotImplementedError: raw_input was called, but this frontend does not support "
              "input requests.")
        equal(s.text("print('a')\nraise SystemExit").split("\n")[0], "a")
        equal("To exit: use" in s.text("raise SystemExit"), False)
        equal(s.cell("1/0")["success"], True)


def wrong_arguments():
    with Jupyter() as s:
        equal(s.cell(5)["observation"], "error")
        a = s.request("POST", "/execute_action", json.dumps(
            {"action": {"action": "run_ipython", "args": {}}}), JSON)
        equal((a.status, "required positional argument: 'code'" in a.json()["detail"]), (500, True))
        for falsy in (False, 0, "", None, []):
            equal(s.cell("1", include_extra=falsy)["content"], "1", repr(falsy))
        equal(s.cell("1", include_extra="no")["content"], "1" + extras(s))


def a_plot_is_an_image():
    if subprocess.run([PYTHON, "-c", "import matplotlib"], stderr=subprocess.DEVNULL).returncode:
        raise Skip("there is no matplotlib: apt-get install python3-matplotlib")
    with Jupyter() as s:
        a = s.cell("import matplotlib.pyplot as plt\nplt.plot([1, 2]); plt.show()",
                   include_extra=False, timeout=120, patience=120)
        equal(re.fullmatch(r"<Figure size \d+x\d+ with 1 Axes>", a["content"]) is not None, True)
        (url,) = a["extras"]["image_urls"]
        equal(url.startswith("data:image/png;base64,iVBORw0KGgo"), True)
        equal(re.search(r"\s", url), None)


def directory_follows_the_shell():
    with Jupyter() as s:
        equal(s.cell("import os; print(os.getcwd())")["content"], s.work_dir + extras(s))
        s.run("cd /usr")
        equal(s.cell("print(os.getcwd())")["content"], "/usr" + extras(s, "/usr"))
        # its own step stays until the shell moves, and the shell does not move with it
        equal(s.cell("os.chdir(r'/etc'); print(os.getcwd())")["content"],
              "/etc" + extras(s, "/usr"))
        equal(s.text("print(os.getcwd())"), "/etc")
        equal(s.run("pwd"), "/usr")
        odd = os.path.join(s.work_dir, "it's a \"q\\x\"")
        os.mkdir(odd)
        os.chmod(odd, 0o777)
        s.run("cd %s/it*" % s.work_dir)
        equal(s.text("print(os.getcwd())"), odd)
        os.rmdir(odd)
        equal(s.text("print(1)"), "1", "where there is nothing")


def state_and_environment():
    with Jupyter(env={"SECRET_OF_OURS": "x", "SESSION_API_KEY": ""}) as s:
        s.text("a = 1\ndef f(): return a + 1")
        equal(s.text("f()"), "2")
        equal(s.text("import os; [k for k in os.environ if k.startswith('HANDRAIL') or "
                     "k in ('SECRET_OF_OURS', 'SESSION_API_KEY')]"), "[]")
        user = s.run("id -un")
        equal(s.text("os.environ['USER'], os.environ['HOME'] != ''"), "('%s', True)" % user)
        s.text("open('kernels', 'w').close()")
        equal(s.run("stat -c %U kernels"), user)


def where_packages_come_from():
    """What tells pip and others where packages are is the kernel's as it is the shell's, but no more of ours."""
    given = {"PIP_INDEX_URL": "http://127.0.0.1:9/a b", "PIP_BREAK_SYSTEM_PACKAGES": "1",
             "https_proxy": "http://127.0.0.1:9"}
    with Jupyter(env=dict(given, PIP_OF_NOBODY="x")) as s:
        equal(s.text("import os; [os.environ.get(n) for n in %r]" % (sorted(given) + ["PIP_OF_NOBODY"])),
              repr([given[n] for n in sorted(given)] + [None]))
        s.text("!echo $PIP_INDEX_URL >seen")
        equal(s.run("cat seen; echo $PIP_INDEX_URL").splitlines(), [given["PIP_INDEX_URL"]] * 2, "as in the shell")
        s.text("import signal; os.kill(os.getpid(), signal.SIGKILL)")
        equal(s.text("import os; os.environ['PIP_INDEX_URL']"), repr(given["PIP_INDEX_URL"]), "of the next kernel")


def runs_as_the_user():
    need_root()
    need_entrance()
    s = Jupyter(name="nobody", ready=None, env={"RUNTIME_USERNAME": "nobody"})
    with s:
        s.env["USER"] = "root"  # else it would be somebody's own account
        s.start()
        equal(s.run("id -un"), "nobody")
        equal(s.text("import os, pwd; print(pwd.getpwuid(os.geteuid())[0], os.environ['USER'], "
                     "os.getgroups() == [os.getgid()])"), "nobody nobody True")
        equal(s.text("open('a file', 'w').close()"), NOTHING)
        equal(s.run("stat -c %U 'a file'"), "nobody")


def a_hundred_cells():
    with Jupyter() as s:
        equal([s.text("print(%d)" % i) for i in range(100)], [str(i) for i in range(100)])


def time_is_up():
    with Jupyter() as s:
        began = time.monotonic()
        a = s.cell("print('not shown')\nwhile True: pass", timeout=1)
        equal(a["content"], "[Execution timed out (1.0 seconds).]" + extras(s))
        equal(a["extras"]["image_urls"], None)
        took = time.monotonic() - began
        # the first one starts the kernel as well
        equal(took < PATIENCE, True, "took %.1f s" % took)
        equal(s.text("print('on')"), "on")
        began = time.monotonic()
        equal(s.text("import time; time.sleep(1000)", timeout=0.5),
              "[Execution timed out (0.5 seconds).]")
        equal(time.monotonic() - began < PATIENCE, True)  # not the 1000 s
        equal(s.text("import subprocess; subprocess.run('sleep 1000', shell=True)", timeout=1),
              "[Execution timed out (1.0 seconds).]")
        equal(s.text("2"), "2")


def one_that_catches_interrupts():
    with Jupyter() as s:
        # of every cell, from its first moment: it may be late
        s.text("kept = 1; import signal, ipykernel.kernelbase as k; k.default_int_handler = signal.SIG_IGN")
        equal(s.text("while True: pass", timeout=1), "[Execution timed out (1.0 seconds).]")
        first = s.kernel()
        equal(s.text("print('kept' in globals())"),
              "[The Jupyter kernel did not react to an interrupt and was replaced; its variables "
              "are gone.]\nFalse")
        equal(s.kernel() != first, True)
        equal(s.text("1"), "1")


def killed_kernel():
    with Jupyter() as s:
        s.run("cd /usr")
        # what it printed right before may die with it, in its libzmq's thread: see the next
        equal(s.text("import os; print('begun', flush=True); os.kill(os.getpid(), 9)").replace("begun\n", "", 1),
              "[Jupyter kernel died (signal 9 (Killed)); a new kernel will be started.]")
        equal(s.cell("import os; print(os.getcwd())")["content"], "/usr" + extras(s, "/usr"))
        equal(s.text("os._exit(3)"),
              "[Jupyter kernel died (exit 3); a new kernel will be started.]")
        kill_wait(s.kernel()) if s.text("1") == "1" else None
        equal(s.text("print('on')"), "on", "one that died between cells")
        equal(s.text("exit()"), NOTHING)
        equal(s.text("print('after exit')"), "after exit")


# A second client of the kernel, in its own process, to see that text has left it: when "second" has
# come back, "first" has gone out to every client.
LEAVES = """
import ipykernel, json, os, zmq
with open(ipykernel.get_connection_file()) as f:
    to = json.load(f)
sub = zmq.Context().socket(zmq.SUB)
sub.connect("ipc://%s-%d" % (to["ip"], to["iopub_port"]))
sub.subscribe(b"stream")
def out(word):
    print(word, flush=True)
    while word.encode() not in sub.recv_multipart()[-1]:
        pass
while not sub.poll(20):
    print("joining", flush=True)
out("first")
out("second")
os.kill(os.getpid(), 9)
"""


def what_has_left_a_killed_kernel_is_kept():
    with Jupyter() as s:
        text = s.text(LEAVES)
        equal(text.replace("joining\n", "").replace("second\n", ""),
              "first\n[Jupyter kernel died (signal 9 (Killed)); a new kernel will be started.]")


def killed_plugin():
    with Jupyter() as s:
        equal(s.text("a = 1"), NOTHING)
        s.run("X=kept")
        plugin, kernel = s.plugin(), s.kernel()
        kill_wait(plugin)
        equal(process.wait_gone(kernel, PATIENCE), True, "its kernel goes with it")
        equal(s.text("print('a' in globals())"), ANEW + "False")
        equal(s.text("1"), "1", "it is said once")
        equal(s.run("echo $X"), "kept")
        marks = os.path.join(s.work_dir, "began")
        c = Cell(s, "open(%r, 'w').close()\nimport time; time.sleep(1000)" % marks)
        s.until("it runs", lambda: os.path.exists(marks))
        kill_wait(s.plugin())
        equal(c.result()["content"], ENDED)
        equal(s.text("1"), ANEW + "1")


def much_output():
    with Jupyter() as s:
        a = s.cell("print('x' * 50_000_000)", include_extra=False, timeout=120, patience=120)
        equal((len(a["content"]), a["content"].strip("x")), (50000000, ""))
        n = 70 << 20
        text = s.text("import sys\nfor i in range(70): print('y' * ((1 << 20) - 1))",
                      timeout=120, patience=120)
        kept, note = text.rsplit("\n", 1)
        dropped = int(re.fullmatch(r"\[(\d+) more bytes of output were not kept\]", note)[1])
        equal(len(kept) + 1 + dropped in (n, n + 1), True, "%d + %d" % (len(kept), dropped))
        equal(s.text("1"), "1")


def two_clients():
    with Jupyter() as s:
        s.text("n = 0")
        cells = [Cell(s, "t = n; import time; time.sleep(0.05); n = t + 1; print('%d')" % i,
                      include_extra=False) for i in range(8)]
        equal([c.result()["content"] for c in cells], [str(i) for i in range(8)])
        equal(s.text("n"), "8", "one after the other")


def a_shell_command_holds_nothing_up():
    with Jupyter() as s:
        s.text("1")
        hold = os.path.join(s.work_dir, "hold")
        os.mkfifo(hold)
        os.chmod(hold, 0o666)
        b = s.in_background("cat hold")
        equal(s.text("print(2)"), "2")
        with open(hold, "w") as f:
            f.write("let go")
        equal(b.content(), "let go")


def a_request_that_comes_twice_runs_once():
    with Jupyter() as s:
        s.text("n = 0")
        again = {"X-Request-ID": "the same"}
        code = "n += 1; print(n)"
        equal([s.text(code, headers=again) for _ in range(3)], ["1"] * 3)
        equal(s.text(code), "2")


def a_dead_worker_loses_no_cell():
    with Jupyter(settings={"action_workers": 1, "action_workers_max": 1}) as s:
        s.text("n = 0")
        marks, gate = os.path.join(s.work_dir, "began"), os.path.join(s.work_dir, "gate")
        os.mkfifo(gate)
        os.chmod(gate, 0o666)
        c = Cell(s, "n += 1; open(%r, 'w').close(); print(open(%r).read(), n)" % (marks, gate),
                 include_extra=False)
        s.until("it runs", lambda: os.path.exists(marks))
        for pid in s.workers("action"):
            os.kill(pid, signal.SIGKILL)
        with open(gate, "w") as f:
            f.write("through")
        equal(c.result()["content"], "through 1")
        equal(s.text("n"), "1")


def holds(path):
    """Whether what is written to a file has arrived there."""
    return os.path.exists(path) and os.path.getsize(path) > 0


def a_dead_worker_and_a_dead_plugin():
    """Nobody knows what became of the cell: it is said so, and it does not run again."""
    with Jupyter(settings={"action_workers": 1, "action_workers_max": 1}) as s:
        s.text("1")
        count, gate = os.path.join(s.work_dir, "count"), os.path.join(s.work_dir, "gate")
        os.mkfifo(gate)
        os.chmod(gate, 0o666)
        c = Cell(s, "open(%r, 'a').write('x'); open(%r).read()" % (count, gate))
        s.until("it runs", lambda: holds(count))
        workers = s.workers("action")
        for pid in workers:
            os.kill(pid, signal.SIGSTOP)
        os.kill(s.pids("handrail-jupyter")[0], signal.SIGKILL)
        for pid in workers:
            os.kill(pid, signal.SIGKILL)
        c.join(PATIENCE)
        equal([word in str(c.error) for word in ("Answer(500", "is not known")], [True, True], str(c.error)[:300])
        equal(s.text("open(%r).read()" % count), ANEW + "'x'")


def in_the_middle_of_a_cell(happen, code="import time; time.sleep(1000)"):
    """What becomes of the kernel when something happens to handraild while a cell runs."""
    with Jupyter() as s:
        s.text("kept = 1")
        s.until_ready()
        began = os.path.join(s.work_dir, "began")
        name = {"X-Request-ID": "cut"}
        code = "open(%r, 'a').write('x')\n" % began + code
        c = Cell(s, code, headers=name)
        s.until("it runs", lambda: holds(began))
        plugin, kernel = s.plugin(), s.kernel()
        happen(s)
        equal([process.wait_gone(p, PATIENCE) for p in (plugin, kernel)], [True, True], "ended")
        c.join(PATIENCE)
        equal(c.is_alive(), False, "its client waits for nothing")
        # answered then or now, it is not run again
        a = s.request("POST", "/execute_action", json.dumps({"action": {
            "action": "run_ipython", "args": {"code": code}, "timeout": 30}}), dict(JSON, **name))
        equal((a.status, a.json().get("content")) == (200, ENDED)
              or (a.status, "is not known" in a.json().get("detail", "")) == (500, True), True, a)
        equal(s.text("print(open(%r).read(), 'kept' in globals())" % began), ANEW + "x False")
        equal(s.text("1"), "1", "it is said once")
        equal([s.plugin() != plugin, s.kernel() != kernel], [True, True])


def a_killed_supervisor():
    in_the_middle_of_a_cell(Server.kill_and_start)
    in_the_middle_of_a_cell(Server.kill_and_start,
                            "import signal; signal.signal(signal.SIGINT, signal.SIG_IGN)\n"
                            "while True: pass")


def an_upgrade_ends_the_kernel():
    in_the_middle_of_a_cell(Server.upgrade)


def killed_again_before_it_was_used():
    with Jupyter() as s:
        s.text("kept = 1")
        s.until_ready()
        for _ in range(2):
            s.kill_and_start()
        equal(s.text("print('kept' in globals())"), ANEW + "False")
    with Jupyter() as s:
        s.kill_and_start()
        equal(s.text("1"), "1", "nothing was lost")


def another_interpreter():
    with Jupyter(env={"HANDRAIL_JUPYTER_PYTHON": "/no/such/python"}) as s:
        a = s.request("POST", "/execute_action", json.dumps(
            {"action": {"action": "run_ipython", "args": {"code": "1"}}}), JSON)
        equal(a.status, 500)
        equal("plugin jupyter is not available: /no/such/python" in a.json()["detail"], True, a)
        equal(s.run("echo the shell works"), "the shell works")

        def failed():  # for a second after it was tried
            equal(s.request("POST", "/execute_action", json.dumps(
                {"action": {"action": "run_ipython", "args": {"code": "1"}}}), JSON).status, 500)
            state = s.get("/ready").json()["components"]["plugins"]["jupyter"]
            equal("/no/such/python" in state["reason"] and "python3-ipykernel" in state["reason"], True, state)
            return state["state"] == "failed"
        s.until("it has failed", failed)


def python_without_a_kernel():
    with Server(ready=None) as outer:
        fake = os.path.join(outer.top, "python")
        with open(fake, "w") as f:
            f.write("#!/bin/sh\necho 'No module named ipykernel_launcher' >&2\nexit 1\n")
        os.chmod(fake, 0o755)
        with Jupyter(env={"HANDRAIL_JUPYTER_PYTHON": fake}) as s:
            a = s.request("POST", "/execute_action", json.dumps(
                {"action": {"action": "run_ipython", "args": {"code": "1"}}}), JSON)
            equal((a.status, "ended at once (exit 1); on Debian: apt-get install python3-ipykernel"
                   in a.json()["detail"]), (500, True), a)
            a = s.get("/handrail/v1/cells")
            equal((a.status, a.json(), "Retry-After" in a.headers),
                  (503, {"detail": "the plugin jupyter does not answer"}, True))
            equal(s.wait_log("No module named ipykernel_launcher") is not None, True)


def never_ready():
    """An interpreter that hangs: the plugin has its time, then it is killed with it."""
    manifest = os.path.join(SRCDIR, "conf", "plugins", "jupyter", "plugin.json")
    s = Jupyter(ready=None)
    with s:
        slow = os.path.join(s.top, "python")
        with open(slow, "w") as f:
            f.write("#!/bin/sh\nexec sleep 1000\n")
        os.chmod(slow, 0o755)
        top = os.path.join(s.top, "plugins", "jupyter")
        os.makedirs(top)
        with open(manifest) as f:
            text = json.load(f)
        with open(os.path.join(top, "plugin.json"), "w") as f:
            json.dump(dict(text, ready_timeout=1), f)
        s.env.update(HANDRAIL_JUPYTER_PYTHON=slow, HANDRAIL_PLUGIN_PATH=os.path.dirname(top))
        s.start()
        a = s.request("POST", "/execute_action", json.dumps(
            {"action": {"action": "run_ipython", "args": {"code": "1"}}}), JSON)
        equal((a.status, a.json()), (500, {"detail": "Internal server error: plugin jupyter is not available: "
                                                     "it was not ready after 1 s"}))
        equal(s.pids("handrail-jupyter"), [])
        equal(s.run("echo on"), "on")


def without_the_plugin():
    with Server() as s:
        a = s.request("POST", "/execute_action", json.dumps(
            {"action": {"action": "run_ipython", "args": {"code": "1"}}}), JSON)
        equal((a.status, a.json()), (500, {
            "detail": "Internal server error: JupyterRequirement not found. Unable to run IPython "
                      "action."}))
        a = s.get("/handrail/v1/cells")
        equal((a.status, a.json()), (404, {"detail": "this sandbox has no plugin jupyter"}))


def pip_magic():
    with Jupyter() as s:
        wheel = os.path.join(s.work_dir, "pymsgbox-1.0.9-py3-none-any.whl")
        import zipfile
        with zipfile.ZipFile(wheel, "w") as z:
            z.writestr("pymsgbox.py", "")
            z.writestr("pymsgbox-1.0.9.dist-info/METADATA",
                       "Metadata-Version: 2.1\nName: pymsgbox\nVersion: 1.0.9\n")
            z.writestr("pymsgbox-1.0.9.dist-info/WHEEL",
                       "Wheel-Version: 1.0\nGenerator: x\nRoot-Is-Purelib: true\n"
                       "Tag: py3-none-any\n")
            z.writestr("pymsgbox-1.0.9.dist-info/RECORD", "")
        if subprocess.run([PYTHON, "-m", "pip", "--version"], stdout=subprocess.DEVNULL,
                          stderr=subprocess.DEVNULL).returncode:
            raise Skip("there is no pip for %s: apt-get install python3-pip" % PYTHON)
        equal(s.text("import pymsgbox").split("\n")[-1],
              "ModuleNotFoundError: No module named 'pymsgbox'")
        text = s.text("%%pip install --no-index --break-system-packages --target %s %s"
                      % (s.work_dir, wheel), timeout=120, patience=120)
        equal("Successfully installed pymsgbox-1.0.9" in text, True, text)
        equal("Note: you may need to restart the kernel to use updated packages." in text, True)
        equal(s.text("import sys; sys.path.insert(0, %r)\nimport pymsgbox" % s.work_dir), NOTHING)


def cells_are_listed():
    """GET /handrail/v1/cells: how each cell ended, one that runs, and no more than the last 32."""
    def cells():
        a = s.get("/handrail/v1/cells")
        equal(a.status, 200, a)
        return a.json()["cells"]

    with Jupyter() as s:
        equal(cells(), [])
        s.text("'é' * 2")
        s.text("1 / 0")
        s.text("import time; time.sleep(1000)", timeout=0.1)
        equal([(c["id"], c["code"], c["length"], c["state"]) for c in cells()],
              [(1, "'é' * 2", 8, "completed"), (2, "1 / 0", 5, "failed"),
               (3, "import time; time.sleep(1000)", 29, "failed")])
        marks, hold = os.path.join(s.work_dir, "began"), os.path.join(s.work_dir, "hold")
        os.mkfifo(hold)
        os.chmod(hold, 0o666)
        began = time.time()
        c = Cell(s, "open(%r, 'w').close(); open(%r).read()" % (marks, hold))
        s.until("it runs", lambda: os.path.exists(marks))
        last = cells()[-1]
        equal([last["state"], abs(last["clock"]["started"] - began) < PATIENCE, last["clock"]["elapsed"] >= 0],
              ["running", True, True])
        with open(hold, "w") as f:
            f.write("let go")
        c.result()
        s.text("#" + "x" * 2000)
        last = cells()[-1]
        equal([last["code"], last["length"], last["state"]], ["#" + "x" * 999, 2001, "completed"])
        for i in range(40):
            s.text(str(i))
        equal([(c["id"], c["code"]) for c in cells()], [(6 + i, str(i)) for i in range(8, 40)])
        # a repeated request is no second cell, and a list is no use of the plugin
        for _ in range(2):
            s.text("'again'", headers={"X-Request-ID": "the same"})
        equal([c["code"] for c in cells()][-2:], ["39", "'again'"])
        uses = [line for line in s.get("/metrics").body.decode().splitlines()
                if line.startswith('handrail_plugin_actions_total{plugin="jupyter"}')]
        cells()
        equal([line in s.get("/metrics").body.decode().splitlines() for line in uses], [True])


def ends_with_the_server():
    with Jupyter() as s:
        s.text("import atexit; atexit.register(lambda: open('said goodbye', 'w').close())")
        kernel = s.kernel()
        s.stop()
        equal(process.wait_gone(kernel, 0), True)
        equal(os.path.exists(os.path.join(s.work_dir, "said goodbye")), True)


if __name__ == "__main__":
    if not os.access(os.path.join(BUILDDIR, "handrail-jupyter"), os.X_OK):
        skip_all("handrail-jupyter is not built: apt-get install libzmq3-dev libssl-dev")
    if subprocess.run([PYTHON, "-c", "import ipykernel"], stderr=subprocess.DEVNULL).returncode:
        skip_all("there is no kernel for %s: apt-get install python3-ipykernel" % PYTHON)
    sys.exit(run_tests([
        the_whole_observation, texts, text_that_is_no_utf8, errors, wrong_arguments, a_plot_is_an_image,
        directory_follows_the_shell, state_and_environment, where_packages_come_from, runs_as_the_user, a_hundred_cells,
        time_is_up, one_that_catches_interrupts, killed_kernel,
        what_has_left_a_killed_kernel_is_kept, killed_plugin, much_output,
        two_clients, a_shell_command_holds_nothing_up, a_request_that_comes_twice_runs_once,
        a_dead_worker_loses_no_cell, a_dead_worker_and_a_dead_plugin, a_killed_supervisor,
        an_upgrade_ends_the_kernel, killed_again_before_it_was_used, another_interpreter, python_without_a_kernel,
        never_ready, without_the_plugin, pip_magic, cells_are_listed, ends_with_the_server]))
