#!/usr/bin/env python3
"""The plugin vscode: a VS Code server, its token, and the way to it through nginx. All but the last
with t/e2e/vscode_server.py in the place of the server; the last with a real one and a browser."""

import json
import os
import pwd
import re
import shutil
import socket
import sys

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
from lib import process  # noqa: E402
from lib.browser import Browser  # noqa: E402
from lib.supervised import (  # noqa: E402
    BUILDDIR, PATIENCE, ROOT, SRCDIR, Server, free_port, kill_wait, need_entrance, need_root,
    run_tests)
from lib.tap import Skip, equal  # noqa: E402
from lib.webdriver import Window  # noqa: E402
from lib.www import KEY as WWW_KEY, enter, live, need_browser  # noqa: E402

STAND_IN = os.path.join(SRCDIR, "t", "e2e", "vscode_server.py")
KEY = {"X-Session-API-Key": "k1"}
UUID = r"[0-9a-f]{8}-[0-9a-f]{4}-4[0-9a-f]{3}-[0-9a-f]{4}-[0-9a-f]{12}"


class Editor(Server):
    """A server with the plugin and a stand-in that tells how it was started."""

    def __init__(self, plugins=("vscode",), env=None, program=None, start=True, prepare=None,
                 args=(), **kw):
        name = kw.setdefault("name", None if ROOT else pwd.getpwuid(os.geteuid()).pw_name)
        super().__init__(args=["--plugins", *plugins, *args] if plugins else list(args), ready=None,
                         **kw)
        self.vscode_port = free_port()
        self.report = os.path.join(self.top, "report", "seen")
        os.mkdir(os.path.dirname(self.report))
        os.chmod(os.path.dirname(self.report), 0o777)
        self.program = os.path.join(self.top, "code", "bin", "server")
        os.makedirs(os.path.dirname(self.program))
        self.write_program(program or 'env python3 "%s" "%s" "$@"\nexit $?\n' % (STAND_IN, self.report))
        self.env.update({"VSCODE_PORT": str(self.vscode_port), "HANDRAIL_VSCODE_SERVER": self.program})
        if name not in (None, "root"):
            self.env["RUNTIME_USERNAME"] = name
        if not ROOT:
            self.env["SU_TO_USER"] = "false"  # to one's own account
        self.env.update(env or {})
        if prepare is not None:
            prepare(self)
        if start:
            self.start()

    def write_program(self, text):
        with open(self.program + ".new", "w") as f:
            f.write("#!/bin/sh\n" + text)
        os.chmod(self.program + ".new", 0o755)
        os.rename(self.program + ".new", self.program)

    def state(self):
        return self.request("GET", "/ready", headers=KEY).json()["components"]["plugins"]["vscode"]

    def up(self):
        self.until("the editor is ready", lambda: self.state() == {"state": "ready"})
        with open(self.report) as f:
            return json.load(f)

    def up_with_token(self, **headers):
        seen = self.up()
        token = self.token(**headers)
        equal(re.fullmatch(UUID, str(token)) is not None, True, token)
        return seen, token

    def token(self, **headers):
        a = self.request("GET", "/vscode/connection_token", headers=headers)
        equal((a.status, a.headers["Content-Type"], list(a.json())),
              (200, "application/json", ["token"]))
        return a.json()["token"]

    def visit(self, path, token=None, **headers):
        if token is not None:
            headers["Cookie"] = "vscode-tkn=" + token
        return self.request("GET", path, headers=headers)


def as_the_contract_says():
    with Editor() as s:
        seen, token = s.up_with_token()
        equal(seen["argv"], ["--host", "0.0.0.0", "--connection-token", token, "--port",
                             str(s.vscode_port), "--disable-workspace-trust"])
        equal(seen["cwd"], os.path.realpath(s.work_dir))
        equal({k for k in seen["env"] if k.startswith(("HANDRAIL", "PYTHON", "VSCODE", "SESSION"))},
              set())
        equal(seen["env"]["HOME"] != "", True)
        path = os.path.join(s.work_dir, ".vscode", "settings.json")
        with open(path) as f:
            equal(json.load(f), {"workbench.colorTheme": "Default Dark Modern",
                                 "workbench.startupEditor": "none",
                                 "chat.commandCenter.enabled": False})
        equal(os.stat(path).st_mode & 0o777, 0o666)
        equal(s.token(), token, "the same again")
        equal(token in s.log(), False)
        equal(s.wait_log(r"Web UI available at .*tkn=\.\.\.") is not None, True)


def base_path(want, **env):
    with Editor(env=env) as s:
        equal(s.up()["argv"][7:], want)


def the_base_path():
    base_path(["--server-base-path", "/rid/vscode"], RUNTIME_URL="http://h/rid/x", RUNTIME_ID="rid")
    base_path([], RUNTIME_URL="http://rid/x/rid", RUNTIME_ID="rid")
    base_path(["--server-base-path", "/a/b"], OPENVSCODE_SERVER_BASE_PATH="a/b//",
              RUNTIME_URL="http://h/rid/", RUNTIME_ID="rid")


def directories_of_the_contract():
    def prepare(s):
        s.env["WORKSPACE_BASE"] = os.path.join(s.top, "report", "base")
        s.env["WORKSPACE_MOUNT_PATH_IN_SANDBOX"] = os.path.join(s.top, "report")
    with Editor(prepare=prepare) as s:
        equal(s.up()["cwd"], os.path.realpath(os.path.join(s.top, "report")))
        equal(os.path.exists(os.path.join(s.top, "report", "base", ".vscode", "settings.json")), True)
        equal(os.path.exists(os.path.join(s.work_dir, ".vscode")), False)


def through_nginx():
    with Editor(env={"SESSION_API_KEY": "k1"}, args=["--listen", "127.0.0.1"]) as s:
        _, token = s.up_with_token(**KEY)
        a = s.visit("/vscode?tkn=x&folder=/w")
        equal((a.status, a.headers["Location"]), (301, "vscode/?tkn=x&folder=/w"))
        a = s.visit("/vscode/?folder=/w")
        equal((a.status, a.body), (403, b"Forbidden."), "no token")
        equal(s.visit("/vscode/?tkn=" + token[::-1]).status, 403, "a wrong one")
        equal(s.visit("/vscode/x", token[::-1]).status, 403)
        equal(s.visit("/vscode/", **KEY).status, 403, "the session key is none")
        a = s.visit("/vscode/?folder=/w&tkn=" + token)
        equal((a.status, a.headers["Location"], a.headers["Set-Cookie"]),
              (302, ".", "vscode-tkn=" + token))
        seen = s.visit("/vscode/a%20b/c?d=%2F", token, Authorization="Bearer x", **KEY).json()
        equal(seen["path"], "/a%20b/c?d=%2F")
        equal(seen["headers"]["x-forwarded-prefix"], "/vscode")
        equal(seen["headers"]["host"], "127.0.0.1:%d" % s.port)
        equal([h for h in seen["headers"] if h in ("x-session-api-key", "authorization")], [])
        seen = s.request("GET", "/vscode/", headers={"Cookie": "vscode-tkn=" + token,
                                                     "X-Forwarded-Prefix": "/r/1"}).json()
        equal(seen["headers"]["x-forwarded-prefix"], "/r/1/vscode")
        equal(s.visit("/vscode/connection_token").status, 403, "needs the key as ever")


def upgrade(port, path, token):
    c = socket.create_connection(("127.0.0.1", port), PATIENCE)
    c.settimeout(PATIENCE)
    c.sendall(("GET %s HTTP/1.1\r\nHost: x\r\nUpgrade: websocket\r\nConnection: Upgrade\r\n"
               "Sec-WebSocket-Version: 13\r\nSec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==\r\n"
               "Cookie: vscode-tkn=%s\r\n\r\n" % (path, token)).encode())
    head = b""
    while b"\r\n\r\n" not in head:
        chunk = c.recv(1)
        if not chunk:
            break
        head += chunk
    return c, head.decode()


def websockets_pass():
    with Editor() as s:
        _, token = s.up_with_token()
        for port, path in ((s.vscode_port, "/s"), (s.port, "/vscode/s?reconnectionToken=1")):
            c, head = upgrade(port, path, token)
            with c:
                equal(head.split("\r\n")[0], "HTTP/1.1 101 Switching Protocols", head)
                equal("Sec-WebSocket-Accept: s3pPLMBiTxaQ9kYGzzhZRbK+xOo=" in head, True, head)
                for data in (b"\x81\x05hello", os.urandom(100000)):
                    c.sendall(data)
                    got = b""
                    while len(got) < len(data):
                        chunk = c.recv(65536)
                        if not chunk:
                            raise AssertionError("cut off after %d bytes" % len(got))
                        got += chunk
                    equal(got == data, True, "%d bytes" % len(data))
        c, head = upgrade(s.port, "/vscode/s", "wrong")
        c.close()
        equal(head.split("\r\n")[0], "HTTP/1.1 403 Forbidden")
        c, head = upgrade(s.port, "/vscode/s", token)
        with c:  # a stream does not hold up the end, and the server ends with it
            pid = json.load(open(s.report))["pid"]
            s.stop()
            equal(process.has_ended(pid), True, "server")


def it_comes_back():
    with Editor() as s:
        first, token = s.up_with_token()
        s.run("X=kept")
        kill_wait(first["pid"])
        s.until("another one", lambda: json.load(open(s.report))["pid"] != first["pid"])
        again = s.up()
        equal(again["argv"], first["argv"], "the same token and port")
        equal(s.visit("/vscode/", token).status, 200)
        (plugin,) = [p for p in process.children(s.pid) if "handrail-vscode" in process.command_line(p)]
        kill_wait(plugin)
        s.until("a third", lambda: json.load(open(s.report))["pid"] != again["pid"])
        equal(process.wait_gone(again["pid"], PATIENCE), True, "it ended with the plugin")
        equal(s.up_with_token()[1], token)
        equal(s.run("echo $X"), "kept")


def no_token_before_it_is_ready():
    """Until then nobody knows whose server is at the port."""
    def prepare(s):
        s.gate = os.path.join(s.top, "report", "gate")
        os.mkfifo(s.gate)
        os.chmod(s.gate, 0o666)
        s.write_program('read x <"%s"\nenv python3 "%s" "%s" "$@"\nexit $?\n'
                        % (s.gate, STAND_IN, s.report))
    with Editor(prepare=prepare) as s:
        s.until("it starts", lambda: s.state() == {"state": "starting"})
        equal(s.token(), None)
        with open(s.gate, "w") as f:
            f.write("go\n")
        _, token = s.up_with_token()
        # between two servers neither, and a killed handraild finds it all the same
        s.kill_and_start()
        s.until("it starts", lambda: s.state() == {"state": "starting"})
        equal(s.token(), None)
        s.kill_and_start()
        with open(s.gate, "w") as f:
            f.write("go\n")
        equal(s.up_with_token()[1], token)


def the_token_outlives_an_upgrade():
    with Editor() as s:
        seen, token = s.up_with_token()
        old = seen["pid"]
        s.upgrade()
        equal(process.wait_gone(old, PATIENCE), True, "the server of before")
        again(s, token, old)


def again(s, token, old):
    s.until("another one", lambda: json.load(open(s.report))["pid"] != old)
    equal(s.up_with_token()[1], token)
    equal(s.visit("/vscode/", token).status, 200)


def the_token_outlives_a_kill():
    with Editor() as s:
        seen, token = s.up_with_token()
        old = seen["pid"]
        s.kill_and_start()
        again(s, token, old)


def unavailable(reason, shown=False, **kw):
    with Editor(**kw) as s:
        s.until("it has said so", lambda: s.state()["state"] not in ("starting", "not started"))
        equal(s.state(), {"state": "unavailable", "reason": reason(s)})
        equal(s.token(), None)
        a = s.visit("/vscode/")
        equal((a.status, a.json(), a.headers["Retry-After"]),
              (503, {"detail": "Service Unavailable"}, "1"))
        equal(os.path.exists(os.path.join(s.work_dir, ".vscode", "settings.json")), shown)
        equal(s.run("echo works"), "works")


def cannot_be_had():
    port = "VSCODE_PORT environment variable not set or invalid. VSCode plugin will be disabled."
    for value in ("", "no", "70000"):
        unavailable(lambda s: port, True, env={"VSCODE_PORT": value})
    unavailable(lambda s: "the program /nonexistent/server does not exist", True,
                env={"HANDRAIL_VSCODE_SERVER": "/nonexistent/server"})


def other_users():
    reason = ("VSCodePlugin is only supported for root or openhands user. It is not yet supported for "
              "other users (i.e., when running LocalRuntime).")
    if ROOT:
        unavailable(lambda s: reason, name="nobody", env={"RUNTIME_USERNAME": "", "USER": "root"})
    else:
        unavailable(lambda s: reason, env={"RUNTIME_USERNAME": ""})


def without_the_plugin():
    for plugins in ((), ("agent_skills", "jupyter")):
        with Editor(plugins=plugins) as s:
            equal(s.token(), None)
            equal("vscode" in s.get("/ready").json()["components"]["plugins"], False)
            equal(s.visit("/vscode/").status, 404)
            equal(s.visit("/vscode").status, 404)


def beside_the_others():
    """The list of an unmodified client that is not headless."""
    with Editor(plugins=("agent_skills", "jupyter", "vscode")) as s:
        seen, _ = s.up_with_token()
        equal("PYTHONPATH" in seen["env"], False, "of the kernel alone")
        browser = ["browser"] if os.path.exists(os.path.join(BUILDDIR, "handrail-browser")) else []
        equal(sorted(s.get("/ready").json()["components"]["plugins"]),
              ["agent_skills", "bash-events"] + browser + ["envd", "jupyter", "mcp", "vscode"])


def a_taken_port():
    with socket.socket() as other:
        port = free_port()  # also when it is let go
        other.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        other.bind(("0.0.0.0", port))
        other.listen()
        with Editor(env={"VSCODE_PORT": str(port)}) as s:
            s.until("it has failed", lambda: s.state()["state"] == "failed")
            equal(s.wait_log("Port %d is not available. VSCode plugin will be disabled." % port)
                  is not None, True)
            equal(s.token(), None)
            other.close()
            s.up_with_token()


def one_that_ends_at_once():
    with Editor(program="echo no luck today\nexit 7\n") as s:
        s.until("it has failed", lambda: s.state()["state"] == "failed")
        equal(s.wait_log(r"the server ended \(exit 7\): no luck today") is not None, True)
        equal(s.run("echo works"), "works")


def one_that_is_never_ready():
    manifest = os.path.join(SRCDIR, "conf", "plugins", "vscode", "plugin.json")

    def prepare(s):
        top = os.path.join(s.top, "plugins", "vscode")
        os.makedirs(top)
        with open(manifest) as f:
            text = json.load(f)
        with open(os.path.join(top, "plugin.json"), "w") as f:
            json.dump(dict(text, ready_timeout=1), f)
        s.env["HANDRAIL_PLUGIN_PATH"] = os.path.dirname(top)
    with Editor(program="echo soon\nexec sleep 1000\n", prepare=prepare) as s:
        s.until("it has failed", lambda: s.state() == {"state": "failed",
                                                       "reason": "it was not ready after 1 s"})
        equal(s.token(), None)
        equal(s.run("echo works"), "works")


def as_the_user():
    need_root()
    need_entrance()
    with Editor(name="nobody", start=False) as s:
        s.env["USER"] = "root"
        s.start()
        uid = int(s.run("id -u"))
        equal((s.up()["uid"], uid != 0), (uid, True))
        equal(os.stat(os.path.join(s.work_dir, ".vscode", "settings.json")).st_uid, uid)
        equal(s.run("cat %s/www/connection_token 2>&1 | tail -c 18" % s.run_dir),
              "Permission denied")


# A program of the sandbox in the editor's place: its page is after the sign-in to the sandbox's page.
HOSTILE = r"""
import http.server, sys
class H(http.server.BaseHTTPRequestHandler):
    def do_GET(self):
        self.send_response(200)
        self.send_header("Content-Type", "text/javascript" if self.path.endswith(".js") else "text/html")
        self.send_header("Service-Worker-Allowed", "/")
        self.end_headers()
        self.wfile.write(PAGE.encode())
    def log_message(self, *unused):
        pass
PAGE = '''<!DOCTYPE html><title>wait</title><p id="seen"></p><script>
(async () => {
    const seen = {origin: self.origin};
    try { seen.stored = Object.values(localStorage).join(); } catch (e) { seen.stored = ""; }
    const home = "http://" + location.hostname + ":" + (new URLSearchParams(location.search).get("home"));
    const token = (seen.stored.match(/[0-9a-f]{64}/) || [""])[0];
    for (const base of [home, location.origin])
        for (const credentials of ["include", "omit"])
            try {
                const r = await fetch(base + "/handrail/v1/me", {credentials, headers: {"X-Handrail-Page": token}});
                seen[base + credentials] = r.status + await r.text();
            } catch (e) { }
    try { await navigator.serviceWorker.register("x.js", {scope: "/"}); seen.worker = 1; } catch (e) { }
    document.querySelector("#seen").textContent = JSON.stringify(seen);
})();
</script>'''
http.server.ThreadingHTTPServer(("0.0.0.0", int(sys.argv[sys.argv.index("--port") + 1])), H).serve_forever()
"""


def a_hostile_program():
    """What stands at the editor's port is not of the page's origin, whichever way it is opened, and takes nothing of
    who has signed in there."""
    need_browser()
    with Editor(env={"SESSION_API_KEY": WWW_KEY}, args=["--listen", "127.0.0.1"], start=False) as s, Window() as w:
        path = os.path.join(s.top, "code", "hostile.py")
        with open(path, "w") as f:
            f.write(HOSTILE)
        s.write_program('echo Web UI available at x; exec env python3 "%s" "$@"\n' % path)
        s.start()
        key = {"X-Session-API-Key": WWW_KEY}
        s.until("it is there", lambda: s.request("GET", "/ready", headers=key).json()["components"]["plugins"]["vscode"]
                == {"state": "ready"} and s.visit("/vscode/").status == 200)
        s.page = lambda: "http://127.0.0.1:%d/handrail/" % s.port
        enter(w, s)
        stored = w.js("return Object.values(localStorage).join()")
        equal(re.search("[0-9a-f]{64}", stored) is not None, True, "the page's half of the sign-in is there")
        for path in ("/vscode/?home=%d" % s.port, "/vscode/a%%2fb/evil.html?home=%d" % s.port):
            w.open("http://127.0.0.1:%d%s" % (s.port, path))
            seen = json.loads(w.until("it has tried", "return document.querySelector('#seen').textContent"))
            equal((seen["origin"], seen["stored"]), ("http://127.0.0.1:%d" % s.vscode_port, ""))
            equal([k for k in seen if k.startswith("http://127.0.0.1:%d" % s.port)], [],
                  "no answer of the sandbox")
        equal(s.visit("/vscode/x").headers["Content-Security-Policy"],
              "sandbox allow-scripts allow-forms allow-popups allow-modals allow-downloads")
        w.open(s.page())
        live(w)


def navigations_go_to_its_port():
    """Where there is a page; requests of programs, WebSockets and what comes by a path of others stay."""
    html = {"Accept": "text/html,application/xhtml+xml,*/*;q=0.8"}
    with Editor() as s:
        _, token = s.up_with_token()
        for path, want in (("/vscode/?tkn=a&folder=/w%20x", "/?tkn=a&folder=/w%20x"), ("/vscode/", "/"),
                           ("/vscode/a%2Fb/c;d", "/a%2Fb/c;d")):
            a = s.visit(path, **html)
            equal((a.status, a.headers["Location"]), (302, "http://127.0.0.1:%d%s" % (s.vscode_port, want)))
        for host in ("localhost", "[::1]"):
            a = s.visit("/vscode/", **dict(html, Host="%s:%d" % (host, s.port)))
            equal(a.headers["Location"], "http://%s:%d/" % (host, s.vscode_port))
        a = s.request("GET", "/vscode/", headers=dict(html, **{"X-Forwarded-Prefix": "/r", "Cookie":
                                                               "vscode-tkn=" + token}))
        equal((a.status, "sandbox" in a.headers["Content-Security-Policy"]), (200, True))
        a = s.visit("/x/../vscode/", token, **html)
        equal((a.status, "sandbox" in a.headers["Content-Security-Policy"]), (200, True), "a path in another form")
        a = s.visit("/vscode/", token)
        equal((a.status, "allow-same-origin" in a.headers["Content-Security-Policy"]), (200, False))
    with Editor(settings={"page_rights": "none"}) as s:
        _, token = s.up_with_token()
        a = s.visit("/vscode/", token, **html)
        equal((a.status, "Content-Security-Policy" in a.headers), (200, False), "there is no page to protect")


HOW = ("npm install --ignore-scripts code-server@4.99.4; in node_modules/code-server/lib/vscode "
       "npm install --omit=dev --ignore-scripts, there and in extensions, and npm rebuild; then set "
       "HANDRAIL_TEST_CODE_SERVER to that lib/vscode")


def a_real_one_in_a_browser():
    top = os.environ.get("HANDRAIL_TEST_CODE_SERVER")
    if not top:
        raise Skip("no VS Code server: " + HOW)
    chromium = shutil.which("chromium")
    if chromium is None or shutil.which("node") is None:
        raise Skip("needs chromium and node: apt-get install chromium nodejs")
    program = ('exec node "%s/out/server-main.js" "$@" --accept-server-license-terms '
               '--server-data-dir "$HOME/.vs"\n' % top)
    with Editor(program=program) as s:
        shot = os.environ.get("HANDRAIL_TEST_SCREENSHOT")
        s.run("echo hello >readme.txt")
        s.until("the editor is ready", lambda: s.state() == {"state": "ready"})
        token = s.token()
        for name, base in (("port", "http://127.0.0.1:%d/" % s.vscode_port),
                           ("nginx", "http://127.0.0.1:%d/vscode/" % s.port)):
            with Browser(chromium, os.path.join(s.top, "profile-" + name)) as b:
                b.visit("%s?tkn=%s&folder=%s" % (base, "wrong", s.work_dir))
                equal(b.wait_text("Forbidden."), True)
                b.visit("%s?tkn=%s&folder=%s" % (base, token, s.work_dir))
                # by way of a WebSocket and the server
                equal(b.wait_text("readme.txt"), True)
                # the settings of the workspace come later than its files
                equal(b.wait_selector(".monaco-workbench.vs-dark"), True)
                if shot:
                    b.screenshot("%s-%s.png" % (shot, name))


if __name__ == "__main__":
    sys.exit(run_tests([
        as_the_contract_says, a_hostile_program, navigations_go_to_its_port,
        the_base_path, directories_of_the_contract, through_nginx,
        websockets_pass, it_comes_back, no_token_before_it_is_ready, the_token_outlives_an_upgrade,
        the_token_outlives_a_kill, cannot_be_had, other_users,
        without_the_plugin, beside_the_others, a_taken_port, one_that_ends_at_once,
        one_that_is_never_ready, as_the_user,
        a_real_one_in_a_browser]))
