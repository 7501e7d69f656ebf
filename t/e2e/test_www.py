#!/usr/bin/env python3
"""What the page of a sandbox asks of its server: who may, what is told, what is served (doc/page.md). No browser."""

import base64
import http.client
import json
import os
import re
import signal
import socket
import subprocess
import sys
import tempfile
import urllib.parse

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
from lib import process  # noqa: E402
from lib.supervised import PATIENCE, SRCDIR, Server, gate, need_entrance, run_tests  # noqa: E402
from lib.tap import equal  # noqa: E402
from lib.www import EMPTY_ZIP, KEY, V1, EVIL, Keyed, sign_in  # noqa: E402


def who_may():
    with Keyed() as s:
        cookie, me = sign_in(s)
        equal(cookie.split("; ")[1:], ["Path=/handrail/", "Max-Age=43200", "HttpOnly", "SameSite=Strict"], cookie)
        equal(KEY in cookie, False)
        secure, _ = sign_in(s, secure=True, path="/proxy/7/handrail/")
        equal(secure.split("; ")[1:], [
            "Path=/proxy/7/handrail/", "Max-Age=43200", "HttpOnly", "SameSite=Strict", "Secure"])
        equal(s.request("GET", V1 + "me", headers=me).json()["rights"], "act")
        equal(s.get(V1 + "me").json()["name"], os.environ.get("OPENHANDS_SESSION_ID") or socket.gethostname())
        # either half alone, none, a wrong one, another one's; and the key itself is needed for all else
        _, other = sign_in(s)
        half = [dict(me, **{"X-Handrail-Page": ""}), dict(me, Cookie=""), dict(me, **{"X-Handrail-Page": "0" * 64}),
                dict(me, **{"X-Handrail-Page": other["X-Handrail-Page"]}), {"X-Session-API-Key": ""},
                {"X-Session-API-Key": "wrong"}]
        for headers in half:
            for method, path in (("GET", "me"), ("GET", "events"), ("POST", "signin"), ("POST", "input"),
                                 ("POST", "run")):
                equal(s.request(method, V1 + path, "{}", headers).status, 403, (path, headers))
        for path in ("/ready", "/metrics", "/handrail/v1/../../ready", "//handrail/v1/me", "/handrail/v1/%6de"):
            equal(s.request("GET", path, headers=me).status, 403, path)
        equal(s.action("true", headers=me).status, 403)
        # what is put into the cookie is looked at
        for path in ("/x", "handrail/", "/a;b/handrail/", "/a\r\nX: y/handrail/", "/é/handrail/",
                     "/" + "a" * 600 + "/handrail/"):
            a = s.request("POST", V1 + "signin", json.dumps({"path": path, "port": ""}))
            equal((a.status, "Set-Cookie" in a.headers), (400, False), path)
        equal(s.request("POST", V1 + "signin", json.dumps({"path": "/handrail/", "port": "1; x"})).status, 400)
        # the end: everywhere, and for this one alone
        a = s.request("POST", V1 + "signout", json.dumps({"path": "/handrail/", "port": str(s.port)}), me)
        equal((a.status, "Max-Age=0" in a.headers["Set-Cookie"]), (200, True), a.headers)
        equal(s.request("GET", V1 + "me", headers=me).status, 403)
        equal(s.request("GET", V1 + "me", headers=other).status, 200)
        # 64 of them; the one that would have ended first is pushed out
        for _ in range(64):
            _, last = sign_in(s)
        equal([s.request("GET", V1 + "me", headers=h).status for h in (other, last)], [403, 200])


def stream_of(s, path, headers):
    """An answer without an end, its beginning read."""
    c = http.client.HTTPConnection("127.0.0.1", s.port, timeout=PATIENCE)
    c.request("GET", V1 + path, headers=headers)
    r = c.getresponse()
    equal(r.status, 200, path)
    return c, r


def a_stream_ends_with_its_sign_in():
    """What is printed afterwards is told to nobody who has signed out; the key's own streams go on."""
    with Keyed() as s:
        _, me = sign_in(s)
        s.action("echo before")  # so that there is something to begin with
        mark = "said-after-the-end"
        events = {"Accept": "text/event-stream"}
        open_ = [stream_of(s, "events", me), stream_of(s, "output?follow=true", me),
                 stream_of(s, "output?encoding=text", dict(me, **events))]
        kept = stream_of(s, "output?follow=true&offset=0", {"X-Session-API-Key": KEY})
        for _, r in open_:
            equal(len(r.read1(65536)) > 0, True)
        a = s.request("POST", V1 + "signout", json.dumps({"path": "/handrail/", "port": ""}), me)
        equal(a.status, 200, a)
        s.action("echo " + mark)
        for (c, r), what in zip(open_, ("events", "bytes", "text")):
            data = b""
            while mark.encode() not in decoded(data):
                more = r.read1(65536)
                if not more:
                    break
                data += more
            equal((mark.encode() in decoded(data), r.isclosed()), (False, True), what)
            c.close()
        data = b""
        while mark.encode() not in data:
            data += kept[1].read1(65536)
        kept[0].close()


def decoded(data):
    """With what events have of it in base64."""
    return data + b"".join(base64.b64decode(x) for x in re.findall(rb'"base64":"([^"]*)"', data))


def what_was_before():
    """Of a long log a page is told the last 4 MB, and that there was more."""
    with Keyed(settings={"output_log_bytes": 16 << 20}) as s:
        s.action("head -c 6000000 /dev/zero | tr '\\0' x | fold -w 99")
        end = s.get(V1 + "session").json()["output"]["end"]
        c, r = stream_of(s, "events?offset=0", {"X-Session-API-Key": KEY})
        data, want = b"", b'"from":0,"to":%d}' % (end - (4 << 20))
        while b"event: output" not in data:
            data += r.read1(65536)
        equal(want in data, True, data[:200])
        c.close()


def moved_while_it_is_fetched():
    """nginx names a request's parameters anew where a worker has to send the file: who has signed in is among them. By
    the text, since the moment between the two cannot be met."""
    with open(os.path.join(SRCDIR, "conf", "handrail-locations.conf.in")) as f:
        direct = f.read().split("location @handrail_direct {")[1].split("\n}")[0]
    for name, value in (("HTTP_COOKIE", "$handrail_cookie"), ("HTTP_X_HANDRAIL_PAGE", "$http_x_handrail_page")):
        equal("fastcgi_param %s %s if_not_empty;" % (name, value) in direct, True, direct)


def looking_on():
    """The two rights: asked for at the sign-in, and ruled by the settings."""
    with Keyed(settings={"page_rights": "act"}) as s:
        _, me = sign_in(s, look=True)
        equal(s.request("GET", V1 + "me", headers=me).json()["rights"], "look")
        for path in ("session", "commands", "output", "ready", "metrics", "alerts", "sessions"):
            equal(s.request("GET", V1 + path, headers=me).status, 200, path)
        for path in ("input", "keys", "signal", "resize", "create", "run", "kill", "upload"):
            equal(s.request("POST", V1 + path, "{}", me).status, 403, path)
        _, act = sign_in(s)
        s.write_settings({"page_rights": "look"})
        s.args += ["--config", s.settings_file()]
        s.send(signal.SIGHUP)
        s.until("it is reloaded", lambda: s.request("POST", V1 + "input", "{}", act).status == 403)
        equal(s.request("GET", V1 + "session", headers=act).status, 200)
        s.write_settings({"page_rights": "none"})
        s.send(signal.SIGHUP)
        none = {"X-Session-API-Key": ""}
        s.until("there is no page", lambda: s.request("GET", "/handrail/", headers=none).status == 403)
        html = {"Accept": "text/html"}
        s.until("a browser is led nowhere", lambda: s.request("GET", "/", headers=html).status == 404)
        # another pool answers that, whose workers are replaced by themselves
        s.until("nobody looks on", lambda: s.request("GET", V1 + "session", headers=act).status == 403)


def files_of_the_page():
    """What is served to anybody, and how: nothing of it can be framed, sniffed or joined by another script."""
    need_entrance()  # of nginx's account, which reads these files
    with Keyed() as s:
        none = {"X-Session-API-Key": ""}
        a = s.request("GET", "/handrail", headers=none)
        equal((a.status, a.headers["Location"]), (301, "handrail/"))
        # a browser is led from the address of the sandbox to its page; to other clients that is no path
        html = "text/html,application/xhtml+xml,application/xml;q=0.9,*/*;q=0.8"
        a = s.request("GET", "/", headers=dict(none, Accept=html))
        equal((a.status, a.headers["Location"]), (302, "handrail/"))
        for method, accept, key, want in (
                ("GET", "*/*", KEY, (404, b'{"detail":"Not Found"}')),
                ("POST", html, KEY, (404, b'{"detail":"Not Found"}')),
                ("GET", "application/json", "", (403, b'{"detail":"Invalid API Key"}'))):
            a = s.request(method, "/", headers={"Accept": accept, "X-Session-API-Key": key})
            equal((a.status, a.body), want, (method, accept))
        for path, kind in (("", "text/html; charset=utf-8"), ("page.css", "text/css; charset=utf-8"),
                           ("js/main.js", "text/javascript; charset=utf-8"),
                           ("vendor/xterm/xterm.mjs", "text/javascript; charset=utf-8")):
            a = s.request("GET", "/handrail/" + path, headers=none)
            equal((a.status, a.headers["Content-Type"], a.headers["X-Frame-Options"],
                   a.headers["X-Content-Type-Options"]),
                  (200, kind, "DENY", "nosniff"))
            policy = a.headers["Content-Security-Policy"]
            equal([x in policy for x in ("frame-ancestors 'none'", "default-src 'none'", "unsafe")],
                  [True, True, False], policy)
        for path in ("../etc/passwd", "%2e%2e/conf/local.mk", "js/", "nothing", "v1/me"):
            equal(s.request("GET", "/handrail/" + path, headers=none).status in (400, 403, 404), True, path)
        equal(s.request("POST", "/handrail/", "x", none).status >= 400, True)


def many_pages():
    """Fifty of them are held by one worker, which reads the shell's output once."""
    with Keyed() as s:
        pages = []
        for _ in range(50):
            c = http.client.HTTPConnection("127.0.0.1", s.port, timeout=PATIENCE)
            c.request("GET", V1 + "events?tail=0", headers={"X-Session-API-Key": KEY})
            pages.append((c, c.getresponse()))
        equal({r.status for _, r in pages}, {200})
        # one that is refused is told why, and does not make their worker one that rests
        a = s.get(V1 + "events?offset=x")
        equal((a.status, a.body), (400, b'{"detail":"offset is not a number"}'))
        equal(s.get(V1 + "ready").json()["components"]["pool_page"]["busy"], 1)
        s.action("printf 'seen-%d-end\\n' $((40 + 2)); seq 1 20000")
        want = s.get(V1 + "session").json()["output"]["end"]
        for _, r in pages:
            data = b""
            while b"id: %d\n" % want not in data[-70000:]:
                data += r.read1(65536)
        worker = s.pids("handrail-worker")
        worker = [p for p in worker if " --pool page " in process.command_line(p)]
        equal(len(worker), 1)
        if os.geteuid() == 0:  # they hide their descriptors from others
            keeper = set(socket_inodes(s.keeper()[0]))
            equal(len([i for i in socket_inodes(worker[0]) if peer_in(i, keeper)]), 1, "connections to the keeper")
        for c, r in pages:
            r.close()
            c.close()
        s.until("nobody looks on", lambda: s.get(V1 + "ready").json()["components"]["pool_page"]["busy"] == 0)


def socket_inodes(pid):
    out = []
    for fd in os.listdir("/proc/%d/fd" % pid):
        try:
            to = os.readlink("/proc/%d/fd/%s" % (pid, fd))
        except FileNotFoundError:
            continue
        if to.startswith("socket:["):
            out.append(int(to[8:-1]))
    return out


def peer_in(inode, others):
    """Whether a socket's peer is among those: by ss, as no file of /proc tells."""
    if not hasattr(peer_in, "peers"):
        peer_in.peers = {}
        for line in subprocess.run(["ss", "-xpnH"], stdout=subprocess.PIPE, text=True, check=True).stdout.splitlines():
            words = line.split()
            if len(words) >= 8 and words[5].isdigit() and words[7].isdigit():
                peer_in.peers[int(words[5])] = int(words[7])
    return peer_in.peers.get(inode) in others


def files_by_name(s, path, headers=None, **query):
    q = urllib.parse.urlencode(dict(query, path=path))
    return s.request("GET", V1 + "files?" + q, headers=headers)


ZIP_FORM = (b'--b\r\nContent-Disposition: form-data; name="file"; filename="a.zip"\r\n\r\n' +
            base64.b64decode(EMPTY_ZIP) + b"\r\n--b--\r\n")


def files_and_log():
    """Directories in pages and files as downloads, whatever they are called; the lines of the log."""
    with Keyed() as s:
        _, me = sign_in(s, look=True)
        top = os.path.join(s.work_dir, "tree")
        os.makedirs(os.path.join(top, "sub"))
        names = [EVIL.replace("/", "_"), "a\nb", "\u202egnp.exe", "x.html", "é"]
        for name in names:
            with open(os.path.join(top, name), "w") as f:
                f.write("<script>document.hit=1</script>")
        os.mkfifo(os.path.join(top, "fifo"))
        os.symlink("/proc/self/environ", os.path.join(top, "env"))
        os.symlink("loop", os.path.join(top, "loop"))
        with open(os.path.join(top, "huge"), "wb") as f:
            f.truncate(1 << 40)
        a = files_by_name(s, top, me).json()
        equal([e["name"] for e in a["entries"]], ["sub/"] + sorted(names + ["fifo", "env", "loop", "huge"]))
        kinds = {e["name"]: (e["type"], e["size"]) for e in a["entries"]}
        equal([kinds["fifo"][0], kinds["env"][0], kinds["huge"], kinds["x.html"]],
              ["other", "link", ("file", 1 << 40), ("file", 31)])
        seen, after = [], ""
        while after is not None:
            page = files_by_name(s, top, me, after=after, limit=2).json()
            equal(len(page["entries"]) <= 2, True)
            seen += page["entries"]
            after = page["next"]
        equal(seen, a["entries"])
        # what is refused, and that what is no file neither holds a worker nor shows what is behind it
        for path, status in ((top + "/none", 404), (top + "/x.html", 404), (top + "/loop", 404), ("tree", 400),
                             (top + "\0", 404), ("/proc/%d/fd" % s.popen.pid, 403), ("/" + "x" * 5000, 404)):
            equal(files_by_name(s, path).status, status, path)
        for limit in ("0", "10001", "-1", "x", "1x", ""):
            equal(files_by_name(s, top, limit=limit).status, 400, limit)
        for name in ("fifo", "env", "loop", "sub"):
            a = s.request("GET", V1 + "download?" + urllib.parse.urlencode({"path": top + "/" + name}), headers=me)
            equal((a.status, KEY in a.body.decode()), (500, False), name)
        # a file is never a page of ours, and of a large one a part can be had
        for name in names + ["huge"]:
            a = s.request("GET", V1 + "download?" + urllib.parse.urlencode({"path": top + "/" + name}),
                          headers=dict(me, Range="bytes=0-9"))
            equal((a.status, len(a.body), a.headers["Content-Type"], a.headers["X-Content-Type-Options"],
                   a.headers["Content-Disposition"].startswith("attachment; "),
                   a.headers["Content-Security-Policy"]),
                  (206, 10, "application/octet-stream", "nosniff", True, "default-src 'none'; sandbox"), name)
        # who only looks on changes nothing, and without either half nothing is seen
        equal(s.request("POST", V1 + "upload?destination=" + top, "", me).status, 403)
        for path in ("files?path=/", "log", "download?path=/etc/passwd"):
            equal(s.request("GET", V1 + path, headers={"X-Session-API-Key": ""}).status, 403, path)
            equal(s.request("GET", V1 + path, headers=dict(me, Cookie="")).status, 403, path)
        # an archive is unpacked, or kept where that is asked for by the page's own name of it
        for path, status, kept in (("/upload_file?unpack=false&", 200, False), (V1 + "upload?", 200, False),
                                   (V1 + "upload?unpack=x&", 400, False),
                                   (V1 + "upload?unpack=0&recursive=1&", 400, False),
                                   (V1 + "upload?unpack=false&", 200, True)):
            a = s.request("POST", path + "destination=" + top, ZIP_FORM,
                          {"Content-Type": "multipart/form-data; boundary=b"})
            equal((a.status, os.path.exists(top + "/a.zip")), (status, kept), path)
        # and nothing is replaced where that is asked for, not even a link that leads nowhere
        os.symlink("nowhere", top + "/b.zip")
        for name, query, status in (("a.zip", "unpack=false&replace=false&", 409),
                                    ("b.zip", "unpack=0&replace=0&", 500),
                                    ("c.zip", "unpack=false&replace=false&", 200), ("c.zip", "unpack=false&", 200),
                                    ("d.zip", "replace=false&", 400), ("d.zip", "unpack=0&replace=x&", 400)):
            before = os.listdir(top)
            a = s.request("POST", V1 + "upload?" + query + "destination=" + top,
                          ZIP_FORM.replace(b"a.zip", name.encode()),
                          {"Content-Type": "multipart/form-data; boundary=b"})
            equal((a.status, os.path.exists(top + "/nowhere")), (status, False), (name, query, a))
            new = set(os.listdir(top)) - set(before)
            equal(new, {name} if status == 200 and name not in before else set())
            if status == 409:
                equal(a.json()["detail"], "[Errno 17] File exists: '%s/%s'" % (top, name))
        # the log: numbered, and only what is new
        a = s.request("GET", V1 + "log", headers=me).json()
        equal((a["first"], a["next"] - a["first"]), (1, len(a["lines"])))
        equal({"time", "level", "module", "pid", "message"}, set(a["lines"][0]))
        equal(s.get(V1 + "log").json()["epoch"], a["epoch"], "the same count")
        s.send(signal.SIGHUP)
        new = "log?after=%d" % a["next"]
        s.until("a line of the reload", lambda: s.get(V1 + new).json()["lines"])
        equal(s.get(V1 + new).json()["first"], a["next"])
        equal(s.get(V1 + "log?after=x").status, 400)


def changes_of_files():
    """Renames and removals replace nothing, follow no link, and reach nothing by a link of the agent's."""
    with Keyed() as s:
        top = s.work_dir

        def ask(what, headers=None, **body):
            a = s.request("POST", V1 + what, json.dumps(body), headers)
            return a.status if a.status == 200 else (a.status, a.json()["detail"])

        def there():
            return sorted(os.path.relpath(os.path.join(at, name), top) for at, dirs, files in os.walk(top)
                          for name in dirs + files)

        for d in ("a/deep", "kept"):
            os.makedirs(os.path.join(top, d))
        for f in ("a/deep/file", "kept/file", "one", "two"):
            with open(os.path.join(top, f), "w") as out:
                out.write(f)
        os.symlink("kept", top + "/link")
        os.symlink("../kept", top + "/a/link")
        equal(ask("rename", path=top + "/one", to=top + "/two"),
              (409, "[Errno 17] File exists: '%s/two'" % top))
        with open(top + "/two") as f:
            equal(f.read(), "two")
        equal([ask("rename", path=top + "/one", to=top + "/a/n\u00e9w \"<b>"), ask("rename", path=top + "/a/deep",
              to=top + "/moved"), ask("rename", path=top + "/link", to=top + "/link2")], [200, 200, 200])
        equal(there(), sorted(["a", "kept", "a/link", "kept/file", "a/n\u00e9w \"<b>", "moved", "moved/file", "link2",
                               "two"]))
        equal(ask("rename", path=top + "/a", to=top + "/a/a")[0], 409)
        for what in ("rename", "remove"):
            equal([ask(what, path=p, to=top + "/x")[0] for p in (
                "/", "two", "", top + "/", top + "/.", top + "/..", top + "/two\0", top + "/none", top + "/two/x")],
                  7 * [400] + 2 * [404], what)
            equal(ask(what), (400, "path must be absolute and end with the name of an entry"))
            equal(s.get(V1 + what).status, 405)
            equal(ask(what, {"X-Session-API-Key": ""}, path=top + "/two", to=top + "/x"), (403, "Invalid API Key"))
            equal(ask(what, sign_in(s, look=True)[1], path=top + "/two", to=top + "/x")[0], 403)
        equal(ask("rename", path=top + "/two", to="x"), (400, "to must be absolute and end with the name of an entry"))
        equal([ask("remove", path=top + "/" + name) for name in ("link2", "a", "two")], 3 * [200])
        equal(there(), ["kept", "kept/file", "moved", "moved/file"])
        equal(ask("remove", sign_in(s)[1], path=top + "/moved"), 200)
        equal(there(), ["kept", "kept/file"])
    if os.geteuid() != 0:
        return
    with Keyed(name="nobody", env={"RUNTIME_USERNAME": "nobody", "USER": "root"}) as s:
        own = os.path.join(s.top, "own")
        os.mkdir(own, 0o755)
        open(own + "/file", "w").close()
        os.symlink(own, s.work_dir + "/way")
        os.lchown(s.work_dir + "/way", 65534, 65534)
        open(s.work_dir + "/mine", "w").close()
        for what, body in (("remove", {"path": s.work_dir + "/way/file"}),
                           ("rename", {"path": s.work_dir + "/way/file", "to": s.work_dir + "/taken"}),
                           ("rename", {"path": s.work_dir + "/mine", "to": s.work_dir + "/way/given"})):
            equal(s.request("POST", V1 + what, json.dumps(body)).status, 403, (what, body))
        equal((os.listdir(own), sorted(os.listdir(s.work_dir))), (["file"], ["mine", "way"]))
        # where everybody may write, and what only its owner may change there
        os.chmod(own, 0o1777)
        os.mkdir(own + "/tree")
        open(own + "/tree/file", "w").close()
        for what, body in (("remove", {"path": s.work_dir + "/way/file"}),
                           ("remove", {"path": s.work_dir + "/way/tree"}),
                           ("rename", {"path": s.work_dir + "/way/file", "to": s.work_dir + "/way/taken"})):
            equal(s.request("POST", V1 + what, json.dumps(body)).status, 403, (what, body))
        equal((sorted(os.listdir(own)), os.listdir(own + "/tree")), (["file", "tree"], ["file"]))
        os.chmod(own, 0o777)
        equal(s.request("POST", V1 + "remove", json.dumps({"path": s.work_dir + "/way/file"})).status, 200)
    with tempfile.TemporaryDirectory() as below:
        key = os.path.join(below, "key")
        with open(os.open(key, os.O_CREAT | os.O_WRONLY, 0o600), "w") as f:
            f.write(KEY + "\n")
        with Server(settings={"session_api_key_file": key}, args=["--listen", "127.0.0.1"]) as s:
            # the server hides its key, so no directory above it is renamed or removed
            for what, body in (("rename", {"path": below, "to": s.work_dir + "/taken"}), ("remove", {"path": below})):
                equal(s.request("POST", V1 + what, json.dumps(body), {"X-Session-API-Key": KEY}).status, 403, what)
            equal(os.path.exists(key), True)
            # nor is anything in the directory by which its processes find each other, or put there
            session, mine = s.run_dir + "/session.sock", s.work_dir + "/mine"
            open(mine, "w").close()
            for what, body in (("remove", {"path": session}), ("remove", {"path": s.run_dir}),
                               ("rename", {"path": session, "to": s.work_dir + "/taken"}),
                               ("rename", {"path": mine, "to": s.run_dir + "/given"})):
                equal(s.request("POST", V1 + what, json.dumps(body), {"X-Session-API-Key": KEY}).status, 403, body)
            equal((os.path.exists(session), os.listdir(s.work_dir)), (True, ["mine"]))


def next_event(r):
    name, data = None, None
    for line in r:
        if line.startswith(b"event: "):
            name = line[7:-1].decode()
        elif line.startswith(b"data: "):
            data = json.loads(line[6:])
        elif line == b"\n" and name is not None:
            return name, data
    raise AssertionError("the stream ended")


def ends_that_print_nothing():
    """A command that outlived its time, or whose client has gone, is told as over when it is, also where nothing is
    printed then."""
    with Keyed(env={"NO_CHANGE_TIMEOUT_SECONDS": "1"}) as s:
        c, r = stream_of(s, "events?tail=0", {"X-Session-API-Key": KEY})

        def until(running, state):
            while True:
                kind, data = next_event(r)
                if kind != "shell" or not data["commands"]:
                    continue
                last = data["commands"][-1]
                if (data["session"]["running"], last["state"]) == (running, state):
                    return last
        held, let_go = gate(s)
        equal(s.action(held + " >/dev/null").json()["extras"]["metadata"]["exit_code"], -1)
        until(True, "running")
        let_go()
        equal(until(False, "completed")["exit_code"], 0)
        c.close()


def pages_of_sessions():
    """Each page shows the shell of its own session, also while one worker has pages of several."""
    with Keyed() as s:
        equal(s.request("POST", V1 + "create", '{"name": "two"}').status, 201)
        key = {"X-Session-API-Key": KEY}
        streams = [stream_of(s, "events?tail=0" + more, key) for more in ("", "&session=two", "", "&session=two")]
        for name, command in (("default", "one"), ("two", "two")):
            body = {"action": {"action": "run", "args": {"command": "echo of_" + command}}}
            equal(s.request("POST", V1 + "run?session=" + name, json.dumps(body)).status, 200)
        for i, (c, r) in enumerate(streams):
            kind, data = None, {"commands": []}
            while kind != "shell" or [x["state"] for x in data["commands"]][-1:] != ["completed"]:
                kind, data = next_event(r)
            equal([x["command"] for x in data["commands"] if "of_" in x["command"]],
                  ["echo of_" + ("one", "two")[i % 2]])
            c.close()


def lines_are_said_as_they_are_logged():
    """Not with the next look at the server, every 10 s: what tells of a line comes before the next sample does, but
    where ten seconds are just over."""
    with Keyed() as s:
        c, r = stream_of(s, "events?tail=0", {"X-Session-API-Key": KEY})
        known, told = 0, []
        for _ in range(3):
            while known < s.get(V1 + "log").json()["next"]:
                name, data = next_event(r)
                known = data["next"] if name == "log" else known
            equal(s.get(V1 + "download?path=" + s.work_dir).status, 500)  # which is logged
            seen = []
            while seen[-1:] != ["log"]:
                name, data = next_event(r)
                seen.append(name)
            equal(data["next"] > known, True)
            known = data["next"]
            told.append("sample" not in seen)
        equal(any(told), True)
        c.close()


TESTS = [who_may, changes_of_files, ends_that_print_nothing, pages_of_sessions,
         a_stream_ends_with_its_sign_in, what_was_before, moved_while_it_is_fetched, looking_on,
         files_of_the_page, files_and_log, lines_are_said_as_they_are_logged, many_pages]

if __name__ == "__main__":
    sys.exit(run_tests(TESTS))
