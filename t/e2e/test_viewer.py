#!/usr/bin/env python3
"""The file viewer: its port and the file that names it, its pages, and whose rights count."""

import base64
import grp
import html.parser
import http.client
import os
import pwd
import re
import shutil
import socket
import sys
import tempfile
import urllib.parse

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
from lib.supervised import PATIENCE, Server, need_root, run_tests  # noqa: E402
from lib.tap import equal  # noqa: E402

PNG = base64.b64decode("iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNk+M9QDwADhgGA"
                       "WjR9awAAAABJRU5ErkJggg==")
HTML = "text/html; charset=utf-8"
PDFJS = "/usr/share/javascript/pdf/build/pdf.js"  # of Debian's libjs-pdf
NET = "https://cdnjs.cloudflare.com/ajax/libs/pdf.js/3.11.174/"
EXTENSIONS = "Supported extensions are: .pdf, .png, .jpg, .jpeg, .gif"


def url_file(s):
    return os.path.join(s.top, "viewer-url")


def address(s):
    """Port and secret path."""
    with open(url_file(s)) as f:
        port, base = re.fullmatch(r"http://localhost:(\d+)(/[0-9a-f-]{36})", f.read()).groups()
    return int(port), base


def port_of(s):
    return address(s)[0]


def ask(s, target, method="GET", source="127.0.0.1", headers=None, base=None):
    port, secret = address(s)
    c = http.client.HTTPConnection("127.0.0.1", port, timeout=PATIENCE, source_address=(source, 0))
    c.request(method, (secret if base is None else base) + target, headers=headers or {})
    r = c.getresponse()
    body = r.read()
    c.close()
    return r.status, dict((k.lower(), v) for k, v in r.getheaders()), body


def view(s, path):
    status, headers, body = ask(s, "/view?path=" + urllib.parse.quote(os.fsencode(path)))
    equal(headers["content-type"], HTML, path)
    return status, body.decode()


def put(s, name, data=b"x"):
    path = os.path.join(s.work_dir, name)
    with open(path, "wb") as f:
        f.write(data)
    return path


class Page(html.parser.HTMLParser):
    """Title, images, scripts by id, and every tag's name."""

    def __init__(self, text):
        super().__init__()
        self.title, self.images, self.scripts, self.sources, self.tags = "", [], {}, [], []
        self.inside = None
        self.feed(text)
        self.close()

    def handle_starttag(self, tag, attrs):
        attrs = dict(attrs)
        self.tags.append(tag)
        self.inside = (tag, attrs.get("id"))
        if tag == "img":
            self.images.append(attrs)
        if tag == "script" and "src" in attrs:
            self.sources.append(attrs["src"])

    def handle_endtag(self, tag):
        self.inside = None

    def handle_data(self, data):
        if self.inside and self.inside[0] == "title":
            self.title += data
        if self.inside and self.inside[0] == "script" and self.inside[1]:
            self.scripts[self.inside[1]] = self.scripts.get(self.inside[1], "") + data


def port_and_file():
    with Server(env={"SESSION_API_KEY": "k"}) as s:
        port = port_of(s)
        equal(s.port < port <= min(s.port + 1024, 65535), True, port)
        st = os.stat(url_file(s))
        equal((st.st_mode & 0o777, st.st_uid), (0o600, os.geteuid()))
        # on loopback alone, and without the key
        status, headers, body = ask(s, "/")
        equal((status, headers["content-type"], body),
              (200, "application/json", b'{"status":"File viewer server is running"}'))
        with socket.socket() as other:
            other.settimeout(PATIENCE)
            equal(other.connect_ex(("127.0.0.2", port)) != 0, True, "listens on 127.0.0.1 alone")
        # the main port has none of it
        equal(s.request("GET", "/view?path=/x.png", headers={"X-Session-API-Key": "k"}).status, 404)
        equal(s.request("GET", "/", headers={"X-Session-API-Key": "k"}).status, 404)
        equal(s.request("GET", "/view?path=/x.png").status, 403)
        # nor does the viewer answer what the main port does
        equal(ask(s, "/alive", headers={"X-Session-API-Key": "k"})[0], 404)
        name = url_file(s)
        s.stop()
        equal(os.path.lexists(name), False, "it is removed at the end")


def only_below_the_secret():
    """Whoever finds the port by looking for it sees no file, and not whether there is one."""
    with Server() as s:
        there = urllib.parse.quote(put(s, "a.png", PNG))
        base = address(s)[1]
        equal(ask(s, "/view?path=" + there)[0], 200)
        refusals = set()
        for path in (there, there + "x", "/etc/passwd", "/"):
            for wrong in ("", "/" + base[1:][::-1], base[:-1], base + "x", "/" + base, base + "/..",
                          "/view" + base):
                status, _, body = ask(s, "/view?path=" + path, base=wrong)
                equal(status in (403, 404), True, "%s %s: %d" % (wrong, path, status))
                equal(b"base64" in body, False)
                refusals.add((wrong, status, body))
        equal(len(refusals), 7, "the answer depends on no file")
        equal(ask(s, "/view?path=" + there, base="")[0], 403)
        equal(ask(s, "/", base="")[2], b'{"status":"File viewer server is running"}')
        equal(s.run("cat " + url_file(s)).endswith(base), True, "the shell reads it")


def secret_in_no_log():
    """Neither errors of nginx, which quote the request, nor its access log name the secret."""
    s = Server(ready=None)
    with s:
        access = os.path.join(s.top, "access.log")
        s.write_settings({"access_log": access})
        s.args += ["--config", s.settings_file()]
        s.start()
        secret = address(s)[1].strip("/")
        path = urllib.parse.quote(put(s, "a.png", PNG))
        port = port_of(s)
        for target, method in (("/view?path=" + path, "GET"), ("/view", "GET"), ("/view", "PUT"), ("/other", "GET")):
            ask(s, target, method)
        with socket.create_connection(("127.0.0.1", port), PATIENCE) as c:
            c.sendall(("POST /%s/view HTTP/1.1\r\nHost: localhost:%d\r\nReferer: http://localhost/%s/view\r\n"
                       "Content-Length: 1000\r\n\r\n" % (secret, port, secret)).encode())
            equal(b" 413 " in c.recv(65536), True)
        equal(s.get("/alive").status, 200)
        s.until("it is logged", lambda: '"/alive"' in open(access).read())
        s.until("nginx reports it", lambda: "too large body" in s.log())
        with open(access) as f:
            equal((secret in f.read(), secret in s.log()), (False, False), s.log())


def its_usual_place():
    """Without a setting its address is in the run directory, which goes at the end; /tmp has none of it."""
    s = Server(ready=None)
    del s.env["HANDRAIL_VIEWER_URL_FILE"]
    with s:
        s.start()
        name = os.path.join(s.run_dir, "viewer-url")
        equal(os.stat(name).st_mode & 0o777, 0o600)
        equal(s.run("cat " + name).startswith("http://localhost:"), True)
        with open(name) as f:
            mine = f.read()
        equal(s.run("cat /tmp/oh-server-url 2>/dev/null") != mine, True)


def another_file_stays():
    """What was put in the place of its file is not removed with it."""
    with Server() as s:
        os.unlink(url_file(s))
        with open(url_file(s), "w") as f:
            f.write("other")
        s.stop()
        with open(url_file(s)) as f:
            equal(f.read(), "other")


def a_link_in_the_files_place():
    """What somebody else put there is replaced, not written through."""
    s = Server(ready=None)
    victim = os.path.join(s.top, "victim")
    with open(victim, "w") as f:
        f.write("mine")
    os.symlink(victim, url_file(s))
    with s:
        s.start()
        equal(os.path.islink(url_file(s)), False)
        with open(victim) as f:
            equal(f.read(), "mine")
        equal(ask(s, "/")[0], 200)


def routes():
    with Server() as s:
        for target in ("/none", "/view/x", "/docs", "/openapi.json", "/upload_file"):
            status, headers, body = ask(s, target)
            equal((status, headers["content-type"], body), (404, "application/json", b'{"detail":"Not Found"}'), target)
        for target in ("/", "/view", "/view?path=/x.png"):
            for method in ("POST", "PUT", "DELETE", "OPTIONS"):
                status, headers, body = ask(s, target, method)
                equal((status, headers.get("allow"), body), (405, "GET", b'{"detail":"Method Not Allowed"}'), method)
            status, headers, _ = ask(s, target, "HEAD")
            equal((status, headers.get("allow")), (405, "GET"))
        status, headers, body = ask(s, "/view")
        equal((status, headers["content-type"]), (422, "application/json"))
        equal(body, b'{"detail":[{"type":"missing","loc":["query","path"],"msg":"Field required","input":null}]}')
        status, headers, _ = ask(s, "/view/?path=/x.png")
        equal((status, headers["location"]), (307, "http://127.0.0.1:%d%s/view?path=/x.png" % address(s)))


def refusals():
    with Server() as s:
        work = s.work_dir
        for path, status, want in (
                ("", 400, "<h1>Error: Path must be absolute</h1><p></p>"),
                ("a.png", 400, "<h1>Error: Path must be absolute</h1><p>a.png</p>"),
                ("/no/such.png", 404, "<h1>Error: File not found</h1><p>/no/such.png</p>"),
                ("/no/such.txt", 404, "<h1>Error: File not found</h1><p>/no/such.txt</p>"),
                ("/" + "x" * 5000 + ".png", 404, None),
                (work, 400, "<h1>Error: Path is a directory</h1><p>%s</p>" % work)):
            got, text = view(s, path)
            equal(got, status, path)
            if want is not None:
                equal(text, want)
        os.mkdir(work + "/d.png")
        equal(view(s, work + "/d.png")[0], 400)
        for name, ext in (("a.txt", ".txt"), ("b.BMP", ".bmp"), ("none", ""), (".png", ""), ("c.tar.GZ", ".gz"),
                          ("dot.", ".")):
            path = put(s, name)
            equal(view(s, path), (500, "<h1>Error viewing file</h1><p>%s</p><p>Unsupported file extension: %s. %s</p>"
                                  % (path, ext, EXTENSIONS)))
        os.symlink("gone.png", work + "/broken.png")
        equal(view(s, work + "/broken.png")[0], 404)
        os.mkfifo(work + "/fifo.png")
        equal(view(s, work + "/fifo.png"),
              (500, "<h1>Error viewing file</h1><p>%s/fifo.png</p><p>Not a regular file</p>" % work))
        equal(ask(s, "/view?path=%2Fa%00.png")[0], 404)
        # the last one counts; from an address of this machine that is not the one
        equal(ask(s, "/view?path=/x.png&path=x.png")[0], 400)
        status, headers, body = ask(s, "/view?path=/x.png", source="127.0.0.3")
        equal((status, headers["content-type"], body), (
            403, HTML, b"<h1>Access Denied</h1><p>This endpoint is only accessible from localhost</p>"))
        equal(ask(s, "/", source="127.0.0.3")[0], 200)


def images():
    with Server() as s:
        for name in ("a.png", "b.JPG", "c.jpeg", "d e.gif", "\u00fc.Png"):
            for data, kind in ((PNG, "png"), (PNG[:8], "png"), (PNG + os.urandom(100003), "png"),
                               (b"\xff\xd8\xff\xe0x", "jpeg"), (b"GIF89a", "gif"), (b"GIF87a.", "gif")):
                status, text = view(s, put(s, name, data))
                page = Page(text)
                equal((status, page.title, page.sources), (200, "File Viewer - " + name, []))
                equal([(i["alt"], i["src"]) for i in page.images],
                      [(name, "data:image/%s;base64,%s" % (kind, base64.b64encode(data).decode()))])
                equal(text.startswith("<!DOCTYPE html>"), True)


def false_suffixes():
    """The content decides: no text, key or program is shown because of its name."""
    with Server() as s:
        for name in ("k.png", "k.jpg", "k.gif", "k.pdf"):
            for data in (b"", b"1", b"root:*:20228:0:99999:7:::\n", b"-----BEGIN OPENSSH PRIVATE KEY-----\n",
                         b'{"url":"http://127.0.0.1:1","key":"x"}', b"\x7fELF\x02", b" " + PNG, PNG[:7],
                         b"<svg xmlns='http://www.w3.org/2000/svg'/>", b"%!PS-Adobe", b"GIF90a"):
                path = put(s, name, data)
                equal(view(s, path), (500, "<h1>Error viewing file</h1><p>%s</p><p>The content is none of these: "
                                      "PDF, PNG, JPEG, GIF</p>" % path), data)


def pdf():
    with Server() as s:
        data = b"%PDF-1.4 </script><script>" + os.urandom(70000)
        path = put(s, "A.pdf", data)
        status, headers, body = ask(s, "/view?path=" + path)
        page = Page(body.decode())
        equal((status, page.title, page.images), (200, "File Viewer - A.pdf", []))
        equal(int(headers["content-length"]), len(body))
        equal(base64.b64decode(page.scripts["file"], validate=True), data)
        scripts = [NET + "pdf.min.js"]
        if os.path.exists(PDFJS):
            scripts = ["/pdf.js/pdf.js", "/pdf.js/pdf.worker.js"]
            for url in scripts:
                status, headers, script = ask(s, url, base="")
                with open(os.path.join(os.path.dirname(PDFJS), os.path.basename(url)), "rb") as f:
                    equal((status, headers["content-type"], script == f.read()), (200, "text/javascript", True), url)
        equal(page.sources, scripts)
        for part in ("scale: 1.5", 'className = "page"', "Error loading file", "isEvalSupported: false"):
            equal(part in body.decode(), True, part)


def names_are_text():
    """What HTML would make of a name happens nowhere: title, attribute, errors."""
    with Server() as s:
        name = "\"'><img src=x onerror=alert(1)>&amp;<b>.png"
        path = put(s, name, PNG)
        status, text = view(s, path)
        page = Page(text)
        equal((status, page.title), (200, "File Viewer - " + name))
        equal([i["alt"] for i in page.images], [name])
        for path, want in ((s.work_dir + "/<script>x.png", 404), ("<script>", 400), (put(s, "<u>.txt"), 500),
                           (put(s, "x.<i>"), 500)):
            status, text = view(s, path)
            equal(status, want)
            equal(sorted(set(Page(text).tags)), ["h1", "p"])
            equal(path.replace("<", "&lt;").replace(">", "&gt;") in text, True, text)


def rights_of_the_shell():
    """A root worker opens files as the shell's account, with all of its groups."""
    need_root()
    secret = tempfile.mkdtemp(prefix="e2e-viewer-")  # 0700, root's
    try:
        for name in ("s.png", "d.txt"):
            with open(os.path.join(secret, name), "wb") as f:
                f.write(PNG)
        nobody, root = pwd.getpwnam("nobody"), grp.getgrgid(0)
        with Server(name="nobody", env={"RUNTIME_USERNAME": "nobody"}) as s:
            work = s.work_dir
            equal(s.run("id -un"), "nobody")
            hidden = put(s, "hidden.png", PNG)
            os.chmod(hidden, 0o600)
            os.chown(hidden, 0, root.gr_gid)
            refused = "<h1>Error viewing file</h1><p>%s</p><p>[Errno 13] Permission denied: '%s'</p>"
            equal(view(s, hidden), (500, refused % (hidden, hidden)))
            os.symlink("hidden.png", work + "/link.png")
            equal(view(s, work + "/link.png"), (500, refused % ((work + "/link.png",) * 2)))
            # not even whether something exists where the shell cannot look
            os.symlink(os.path.join(secret, "s.png"), work + "/far.png")
            for path in (work + "/far.png", secret + "/s.png", secret + "/d.txt", secret + "/none.png"):
                equal(view(s, path), (404, "<h1>Error: File not found</h1><p>%s</p>" % path))
            mine = put(s, "mine.png", PNG)
            os.chmod(mine, 0o400)
            os.chown(mine, nobody.pw_uid, nobody.pw_gid)
            equal(view(s, mine)[0], 200)
            ours = put(s, "ours.png", PNG)
            os.chmod(ours, 0o040)
            os.chown(ours, 0, nobody.pw_gid)
            equal(view(s, ours)[0], 200)
            # and the worker is itself again: it may do what only root may
            made = s.request("GET", "/download_file?path=" + secret + "/s.png")
            equal((made.status, made.body), (200, PNG))
            for pid in s.pids("handrail-worker"):
                with open("/proc/%d/status" % pid) as f:
                    text = f.read()
                equal(re.search(r"Uid:\s+(.*)", text).group(1).split(), ["0"] * 4)
                equal(re.search(r"Gid:\s+(.*)", text).group(1).split(), [str(os.getgid())] * 4)
    finally:
        for name in os.listdir(secret):
            os.unlink(os.path.join(secret, name))
        os.rmdir(secret)


def links_of_others():
    """Another account's links lead nowhere; the shell's own and root's do."""
    need_root()
    other = 40000 + os.getpid() % 20000  # an account that nothing else has
    there = tempfile.mkdtemp(prefix="e2e-viewer-")
    try:
        os.chown(there, other, other)
        os.chmod(there, 0o755)
        with Server() as s:  # root's, as its shell
            mine = put(s, "mine.png", PNG)
            for name, target in (("a.png", mine), ("dir", s.work_dir)):
                os.symlink(target, os.path.join(there, name))
                os.lchown(os.path.join(there, name), other, other)
            os.symlink(there + "/a.png", s.work_dir + "/chain.png")  # by way of the other one's
            for path in (there + "/a.png", there + "/dir/mine.png", s.work_dir + "/chain.png"):
                equal(view(s, path)[0], 404, path)
            for path, target in (("own.png", mine), ("there", s.work_dir)):
                os.symlink(target, os.path.join(s.work_dir, path))
            equal(view(s, s.work_dir + "/own.png")[0], 200)
            equal(view(s, s.work_dir + "/there/mine.png")[0], 200)
            # what lies elsewhere is shown where it is the shell's account's
            for owner, status in ((0, 200), (other, 500)):
                path = os.path.join(there, "%d.png" % owner)
                with open(path, "wb") as f:
                    f.write(PNG)
                os.chown(path, owner, owner)
                equal(view(s, path)[0], status, path)
    finally:
        shutil.rmtree(there)


def large_file():
    """The page is made while it is sent: no worker grows by a quarter of the file (a sanitizer keeps some
    MB of what was freed)."""
    def own(s):
        found = {}
        for pid in s.pids("handrail-worker"):
            with open("/proc/%d/status" % pid) as f:  # everybody may read that one
                found[pid] = int(re.search(r"RssAnon:\s+(\d+)", f.read()).group(1))
        return found
    with Server(settings={"files_workers": 1, "files_workers_max": 1}) as s:
        equal(view(s, put(s, "small.png", PNG))[0], 200)
        before = own(s)
        size = 64 << 20
        path = put(s, "big.png", PNG[:8])
        os.truncate(path, size)
        status, headers, body = ask(s, "/view?path=" + path)
        equal((status, int(headers["content-length"])), (200, len(body)))
        equal(body.count(b"A" * 4096) >= size // 3 * 4 // 4096 - 1, True)
        equal({p: n for p, n in own(s).items() if p in before and n - before[p] > size >> 12}, {})


def after_a_death_and_a_reload():
    """nginx's successor and a new configuration have the viewer still."""
    with Server(settings={}) as s:
        port = port_of(s)
        os.kill(s.pids("nginx")[0], 9)
        equal(ask(s, "/")[0], 200)
        s.send(1)
        equal(s.wait_log("reloaded") is not None, True)
        equal((ask(s, "/")[0], port_of(s)), (200, port))


TESTS = [port_and_file, only_below_the_secret, secret_in_no_log, its_usual_place, another_file_stays,
         a_link_in_the_files_place, routes, refusals, images, false_suffixes, pdf, names_are_text,
         rights_of_the_shell, links_of_others, large_file, after_a_death_and_a_reload]

if __name__ == "__main__":
    sys.exit(run_tests(TESTS))
