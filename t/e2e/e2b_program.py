"""A user's program with a Python SDK of E2B, of any version; e2b_sdks.py runs it. It prints a line for each feature:
pass, fail with the reason, or "-" where the SDK has no such call."""

import asyncio
import datetime
import importlib.metadata
import inspect
import os
import sys
import threading
import time
import traceback
import urllib.request

import e2b

try:
    from e2b_code_interpreter import AsyncSandbox, Sandbox
    CODE = True
except ModuleNotFoundError:
    from e2b import AsyncSandbox, Sandbox
    CODE = False


# the features that the service has not
WITHOUT = os.environ.get("E2B_WITHOUT", "").split()


class Lacking(Exception):
    pass


def has(condition):
    if not condition:
        raise Lacking


def equal(a, b, what=""):
    assert a == b, "%s %r is not %r" % (what, a, b)


def raises(kind, call, *args, **more):
    try:
        call(*args, **more)
    except kind as e:
        return e
    raise AssertionError("it raises no " + kind.__name__)


def create(**more):
    make = Sandbox.create if hasattr(Sandbox, "create") else Sandbox
    return make(**dict({"timeout": 300}, **more))


def until(call):
    end = time.monotonic() + 60
    while not call():
        assert time.monotonic() < end, "it never comes"
        time.sleep(0.1)


def items(query):
    return Sandbox.list(query=query).next_items()


def run(s):
    r = s.commands.run("echo out; echo err >&2; pwd; id -un")
    equal((r.stdout, r.stderr, r.exit_code), ("out\n/home/user\nuser\n", "err\n", 0))
    equal(s.commands.run("id -u", user="root").stdout, "0\n")
    equal(s.commands.run("pwd", cwd="/tmp").stdout, "/tmp\n")
    e = raises(e2b.CommandExitException, s.commands.run, "echo x; exit 3")
    equal((e.exit_code, e.stdout), (3, "x\n"))
    raises(e2b.TimeoutException, s.commands.run, "sleep 60", timeout=1)
    text = "a" * 8191 + "\\xe2"
    equal(s.commands.run('printf "%s"' % text).stdout, "a" * 8191 + "\ufffd")


def stream(s):
    got = []
    r = s.commands.run("for i in 1 2 3; do echo $i; sleep 0.2; done", on_stdout=lambda d: got.append((d, time.time())))
    equal(("".join(d for d, _ in got), r.exit_code), ("1\n2\n3\n", 0))
    assert got[-1][1] - got[0][1] > 0.2, "not as it came"
    h = s.commands.run("sleep 60", background=True)
    equal(h.pid in [p.pid for p in s.commands.list()], True)
    equal((s.commands.kill(h.pid), s.commands.kill(h.pid + 100000)), (True, False))
    raises(e2b.CommandExitException, h.wait)
    h = s.commands.run("sleep 1; echo later", background=True)
    h.disconnect()
    equal(s.commands.connect(h.pid).wait().stdout, "later\n")


def stdin(s):
    more = {"stdin": True} if "stdin" in inspect.signature(s.commands.run).parameters else {}
    h = s.commands.run("cat", background=True, **more)
    s.commands.send_stdin(h.pid, "Hello,\nWorld!")
    for out, _, _ in h:
        equal(out, "Hello,\nWorld!")
        break
    s.commands.kill(h.pid)


def envs(s):
    equal(s.commands.run("echo $FOO $BAR", envs={"BAR": "b"}).stdout, "f b\n")
    equal(s.commands.run("echo $E2B_SANDBOX_ID").stdout.strip(), s.sandbox_id)
    equal(s.commands.run("echo $E2B_SANDBOX$E2B_SANDBOX_ID$E2B_TEMPLATE_ID").stdout.strip(),
          s.commands.run("cd /run/e2b && cat .E2B_SANDBOX .E2B_SANDBOX_ID .E2B_TEMPLATE_ID").stdout)


def pty(s):
    size = getattr(e2b, "PtySize", None)
    if size is None:
        from e2b.sandbox.commands.command_handle import PtySize as size
    out = []
    t = s.pty.create(size(rows=24, cols=80), envs={"ABC": "123"}, cwd="/")
    s.pty.resize(t.pid, size(rows=24, cols=100))
    s.pty.send_stdin(t.pid, b"echo $ABC; stty size; pwd\nexit\n")
    equal(t.wait(on_pty=lambda d: out.append(d)).exit_code, 0)
    text = b"".join(out).decode()
    assert "123" in text and "24 100" in text and "\n/\r" in text, text
    t = s.pty.create(size(rows=24, cols=80))
    equal((s.pty.kill(t.pid), s.pty.kill(t.pid + 100000)), (True, False))


def files(s):
    f = s.files
    equal(f.write("d/a.txt", "text").path, "/home/user/d/a.txt")
    equal((f.read("d/a.txt"), bytes(f.read("d/a.txt", format="bytes"))), ("text", b"text"))
    equal(b"".join(f.read("d/a.txt", format="stream")), b"text")
    many = getattr(f, "write_files", f.write)
    made = many([{"path": "d/%d" % i, "data": b"\0\xff" * i} for i in range(3)])
    equal([m.path for m in made], ["/home/user/d/%d" % i for i in range(3)])
    equal(bytes(f.read("d/2", format="bytes")), b"\0\xff" * 2)
    equal([e.name for e in f.list("d")], ["0", "1", "2", "a.txt"])
    equal((f.make_dir("e/f"), f.make_dir("e/f"), f.exists("e/f"), f.exists("e/g")), (True, False, True, False))
    i = f.get_info("d/a.txt")
    equal((i.size, i.mode, i.permissions, i.owner, i.group), (4, 0o644, "-rw-r--r--", "user", "user"))
    equal(f.rename("d/a.txt", "e/b").path, "/home/user/e/b")
    f.remove("d")
    equal(f.exists("d"), False)
    raises(e2b.NotFoundException, f.read, "none")
    equal("depth should be at least 1" in str(raises(Exception, f.list, "e", depth=-1)), True)
    f.write("/etc/written", "by root")
    equal(s.commands.run("cat /etc/written").stdout, "by root")


def watch(s):
    kinds = e2b.FilesystemEventType
    s.files.make_dir("w/sub")
    h = s.files.watch_dir("w", recursive=True)
    s.files.write("w/sub/new", "1")
    equal([(e.name, e.type) for e in h.get_new_events()],
          [("sub/new", kind) for kind in (kinds.CREATE, kinds.CHMOD, kinds.WRITE)])
    s.files.write("w/sub/new", "2")
    equal(h.get_new_events()[0].type, kinds.WRITE)
    s.files.make_dir("w/x")
    s.files.write("w/x/y", "3")
    found = [(e.name, e.type) for e in h.get_new_events()]
    equal([p in found for p in (("x", kinds.CREATE), ("x/y", kinds.WRITE))], [True, True])
    s.files.remove("w/x")
    equal(("x", kinds.REMOVE) in [(e.name, e.type) for e in h.get_new_events()], True)
    h.stop()
    raises(e2b.NotFoundException, s.files.watch_dir, "none")
    raises(e2b.SandboxException, s.files.watch_dir, "w/sub/new")


def fetch(url, body=None, **headers):
    try:
        with urllib.request.urlopen(urllib.request.Request(url, body, headers), timeout=30) as r:
            return r.status, r.read()
    except urllib.error.HTTPError as e:
        return e.code, e.read()


def urls(s):
    boundary = "x1"
    body = ('--%s\r\nContent-Disposition: form-data; name="file"; filename="u"\r\n\r\nup\r\n--%s--\r\n' % (
        boundary, boundary)).encode()
    url = s.upload_url("up.txt", user="user", use_signature_expiration=60)
    equal(fetch(url, body, **{"Content-Type": "multipart/form-data; boundary=" + boundary})[0], 200)
    equal(s.files.read("up.txt"), "up")
    equal(fetch(s.download_url("up.txt", user="user")), (200, b"up"))
    equal(fetch(s.download_url("up.txt", user="user", use_signature_expiration=-60))[0], 401)


def host(s):
    h = s.commands.run("exec python3 -m http.server 8001", background=True, cwd="/etc")
    url = "https://%s/hostname" % s.get_host(8001)
    until(lambda: fetch(url)[0] == 200)
    equal(fetch(url)[1].decode(), s.files.read("/etc/hostname"))
    status, text = fetch("https://" + s.get_host(3009))
    equal((status, b"port is not open" in text), (502, True))
    s.commands.kill(h.pid)


def metadata(s):
    one = {"test": "x y&\u017e"}
    query = e2b.SandboxQuery(metadata=one)
    p = create(metadata=one)
    try:
        equal([(i.sandbox_id, i.metadata) for i in items(query)], [(p.sandbox_id, one)])
        assert s.sandbox_id in [i.sandbox_id for i in items(None)]
        pages = Sandbox.list(limit=1)
        found = []
        while pages.has_next:
            found += [i.sandbox_id for i in pages.next_items()]
        equal((p.sandbox_id in found, s.sandbox_id in found), (True, True))
    finally:
        p.kill()


def timeout(s):
    i = s.get_info()
    assert isinstance(i.end_at, datetime.datetime) and i.end_at > i.started_at
    p = create(timeout=30)
    p.set_timeout(600)
    assert p.get_info().end_at - p.get_info().started_at > datetime.timedelta(seconds=500)
    p.set_timeout(1)
    time.sleep(2.5)
    equal(p.is_running(), False)
    raises(e2b.SandboxException, p.get_info)


def connect(s):
    s.files.write("kept", "here")
    t = Sandbox.connect(s.sandbox_id)
    equal((t.files.read("kept"), t.is_running()), ("here", True))
    end = s.get_info().end_at
    Sandbox.connect(s.sandbox_id, timeout=10)
    if importlib.metadata.version("e2b") != "2.0.0":
        equal(s.get_info().end_at, end, "it is not shortened")
    s.set_timeout(300)


def pause(s):
    call = getattr(s, "pause", None) or getattr(s, "beta_pause", None)
    has(call)
    p = create(envs={"A": "1"})
    try:
        h = p.commands.run("sleep 600", background=True)
        (getattr(p, "pause", None) or p.beta_pause)()
        equal(p.is_running(), False)
        equal(str(p.get_info().state).lower().endswith("paused"), True)
        q = p.connect() if not isinstance(inspect.getattr_static(Sandbox, "connect"), (classmethod, staticmethod)) \
            else Sandbox.connect(p.sandbox_id)
        equal((q.is_running(), h.pid in [i.pid for i in q.commands.list()]), (True, True))
    finally:
        equal(p.kill(), True)


def network(s):
    has(hasattr(s, "update_network") and "network" not in WITHOUT)
    p = create(network={"allow_out": ["1.1.1.1"], "deny_out": ["0.0.0.0/0"], "allow_public_traffic": False})
    try:
        url = "https://" + p.get_host(8001)
        equal((fetch(url)[0], fetch(url, **{"E2b-Traffic-Access-Token": p.traffic_access_token})[0]), (403, 502))
        equal(p.get_info().network["allow_out"], ["1.1.1.1"])
        p.update_network({"deny_out": ["0.0.0.0/0"]})
        equal(p.get_info().network.get("allow_out") or [], [], "an update replaces the rules")
        equal((p.get_info().network["deny_out"], fetch(url)[0]), (["0.0.0.0/0"], 403))
        raises(e2b.CommandExitException, p.commands.run, "exec 3<>/dev/tcp/1.1.1.1/80; echo >&3; read <&3")
    finally:
        p.kill()
    raises(e2b.SandboxException, create, network={"allow_out": ["10.0.0.1"], "deny_out": ["0.0.0.0/0"]})


def copies(s):
    has(hasattr(s, "fork") and "copies" not in WITHOUT)
    s.files.write("copied", "first")
    forks = s.fork(count=2, timeout=60)
    made = s.create_snapshot(name="copy")
    try:
        forks[0].files.write("copied", "other")
        equal([p.files.read("copied") for p in forks + [s]], ["other", "first", "first"])
        equal([(i.snapshot_id, "copy" in i.names[0]) for i in
               Sandbox.list_snapshots(sandbox_id=s.sandbox_id).next_items()], [(made.snapshot_id, True)])
        forks.append(Sandbox.create(made.snapshot_id, timeout=60))
        equal(forks[2].commands.run("cat copied; pwd; id -un").stdout, "first/home/user\nuser\n")
    finally:
        equal([p.kill() for p in forks], [True] * len(forks))
        equal([Sandbox.delete_snapshot(made.snapshot_id) for _ in range(2)], [True, False])


def pause_files(s):
    call = getattr(s, "pause", None)
    has(call and "keep_memory" in inspect.signature(call).parameters)
    p = create(envs={"A": "1"})
    try:
        for turn in "12":
            p.commands.run("mkdir -p d; echo %s >>d/kept; chmod 700 d" % turn)
            h = p.commands.run("sleep 600", background=True)
            equal(p.pause(keep_memory=False), True)
            equal((p.is_running(), str(p.get_info().state).lower().endswith("paused")), (False, True))
            p = Sandbox.connect(p.sandbox_id)
            equal((p.is_running(), h.pid in [i.pid for i in p.commands.list()]), (True, False))
        equal(p.commands.run("cat d/kept; stat -c %a d; echo $A").stdout, "1\n2\n700\n1\n")
    finally:
        equal(p.kill(), True)


def chain(s):
    """Each snapshot lies on the one before, and outlives it and its sandbox."""
    has(hasattr(s, "fork") and "copies" not in WITHOUT)
    made, p = [], create()
    try:
        p.commands.run("mkdir -p d/e; echo 0 >d/e/list; echo gone >d/gone; ln -s list d/e/link; echo 0 >/srv/0",
                       user="root")
        for i in range(1, 4):
            made.append(p.create_snapshot(name="chain%d" % i).snapshot_id)
            p.kill()
            p = Sandbox.create(made[-1], timeout=120)
            p.commands.run("rm -f d/gone; mv d d%d; cp -a d%d d; rm -r d%d; echo %d >>d/e/link; echo %d >/srv/%d" % (
                (i,) * 6), user="root")
            if i > 1:
                equal(Sandbox.delete_snapshot(made.pop(0)), True)
        cmd = p.commands.run("exec 3<>d/open; echo held >&3; read -r line <&3; sleep 600", background=True, user="root")
        branches = p.fork(count=3, timeout=60)
        try:
            for b in branches + [p]:
                equal(b.commands.run("cd d && cat e/list; cat open; ls /srv; find /home/user | sort").stdout,
                      "0\n1\n2\n3\nheld\n0\n1\n2\n3\n" +
                      "".join("/home/user%s\n" % n for n in ("", "/.bash_logout", "/.bashrc", "/.profile", "/d", "/d/e",
                                                            "/d/e/link", "/d/e/list", "/d/open")))
            equal([cmd.pid in [i.pid for i in b.commands.list()] for b in branches + [p]], [False] * 3 + [True])
        finally:
            equal([b.kill() for b in branches], [True] * 3)
    finally:
        p.kill()
        for snapshot in made:
            Sandbox.delete_snapshot(snapshot)


def git(s):
    has(hasattr(s, "git"))
    g = s.git
    g.init("r", initial_branch="main")
    s.files.write("r/a", "1")
    equal([(f.name, f.status) for f in g.status("r").file_status], [("a", "untracked")])
    g.add("r")
    g.commit("r", "one\ntwo", author_name="n", author_email="n@e.example")
    g.create_branch("r", "other")
    equal((g.branches("r").current_branch, sorted(g.branches("r").branches)), ("other", ["main", "other"]))
    h = s.commands.run("exec git daemon --reuseaddr --base-path=. --export-all --enable=receive-pack --port=9419 "
                       "--listen=127.0.0.1", background=True)
    until(lambda: s.commands.run("(exec 3<>/dev/tcp/127.0.0.1/9419) && echo up || :").stdout == "up\n")
    s.commands.run("git clone -q --bare r remote.git")
    g.clone("git://127.0.0.1:9419/remote.git", path="c", branch="main")
    g.configure_user("n", "n@e.example")
    s.files.write("c/new", "2")
    g.add("c", files=["new"])
    g.commit("c", "new")
    equal(g.status("c").ahead, 1)
    g.push("c")
    equal((g.status("c").ahead, g.status("c").is_clean), (0, True))
    equal(s.commands.run("git -C remote.git log --format=%s main").stdout, "new\none two\n")
    g.remote_add("r", "up", "git://127.0.0.1:9419/remote.git")
    g.checkout_branch("r", "main")
    g.pull("r", remote="up", branch="main")
    equal(s.files.read("r/new"), "2")
    raises(Exception, g.clone, "git://127.0.0.1:9419/none.git", path="d")
    h.kill()


def metrics(s):
    has(hasattr(s, "get_metrics"))
    m = s.get_metrics()
    assert len(m) > 0 and m[0].cpu_count > 0 and m[0].mem_total > 0, m


def kill(s):
    p = create()
    cmd = p.commands.run("sleep 60", background=True)
    ended = []

    def wait():
        try:
            cmd.wait()
        except Exception as e:
            ended.append(e)
    t = threading.Thread(target=wait, daemon=True)
    t.start()
    time.sleep(0.5)
    equal((p.kill(), p.kill(), p.is_running()), (True, False, False))
    t.join(30)
    equal([isinstance(e, Exception) for e in ended], [True])


def run_code(s):
    has(CODE)
    s.run_code("x = 40")
    equal(s.run_code("x + 2").text, "42")
    out = []
    r = s.run_code("import sys; print('o'); print('e', file=sys.stderr)", on_stdout=lambda m: out.append(m.line))
    equal((r.logs.stdout, r.logs.stderr, out), (["o\n"], ["e\n"], ["o\n"]))
    equal(s.run_code("1/0").error.name, "ZeroDivisionError")
    c = s.create_code_context(cwd="/tmp")
    equal(s.run_code("import os; os.getcwd()", context=c).text, "/tmp")
    equal(s.run_code("import os; os.environ['Q']", envs={"Q": "q"}).text, "q")
    raises(e2b.TimeoutException, s.run_code, "import time; time.sleep(60)", timeout=2)
    equal(s.run_code("x").text, "40")


async def aio():
    s = await AsyncSandbox.create(timeout=300, envs={"FOO": "f"}, metadata={"a": "b"})
    try:
        equal((await s.commands.run("echo $FOO")).stdout, "f\n")
        got = []
        await s.commands.run("echo 1; sleep 0.3; echo 2", on_stdout=got.append)
        equal("".join(got), "1\n2\n")
        await s.files.write("d/a", "text")
        equal(await s.files.read("d/a"), "text")
        equal([e.name for e in await s.files.list("d")], ["a"])
        seen = asyncio.Event()
        h = await s.files.watch_dir("d", on_event=lambda e: seen.set() if e.name == "b" else None)
        await s.files.write("d/b", "b")
        await asyncio.wait_for(seen.wait(), 30)
        await h.stop()
        h = await s.commands.run("read a; echo $a", background=True, **(
            {"stdin": True} if "stdin" in inspect.signature(s.commands.run).parameters else {}))
        await s.commands.send_stdin(h.pid, "x\n")
        equal((await h.wait()).stdout, "x\n")
        results = await asyncio.gather(*[s.commands.run("echo %d" % i) for i in range(20)])
        equal([r.stdout for r in results], ["%d\n" % i for i in range(20)])
        equal(await s.is_running(), True)
        if CODE:
            equal((await s.run_code("1 + 1")).text, "2")
    finally:
        equal(await s.kill(), True)
    equal(await s.is_running(), False)


def asynchronous(s):
    asyncio.run(aio())


def main():
    bad = False
    s = create(envs={"FOO": "f"})
    print("pass create", flush=True)
    try:
        for case in (run, stream, stdin, envs, pty, files, watch, urls, host, metadata, timeout, connect, pause,
                     pause_files, network, copies, chain, git, metrics, kill, run_code, asynchronous):
            name = "async" if case is asynchronous else case.__name__
            try:
                case(s)
                print("pass", name, flush=True)
            except Lacking:
                print("-", name, flush=True)
            except Exception as e:
                bad = True
                traceback.print_exc()
                print("fail %s %s" % (name, (str(e) or repr(e)).split("\n")[0][:200]), flush=True)
    finally:
        s.kill()
    return bad


if __name__ == "__main__":
    sys.exit(main())
