"""The site of the recorded scenarios: files of t/corpus/browser/pages.jsonl and of further
directories, and answers that no file can give."""

import base64
import html
import json
import os
import socket
import struct
import threading
import urllib.parse
from http.server import BaseHTTPRequestHandler

HTML = "text/html; charset=utf-8"
TYPES = {".html": HTML, ".txt": "text/plain; charset=utf-8", ".png": "image/png", ".pdf": "application/pdf",
         ".svg": "image/svg+xml", ".js": "text/javascript", ".css": "text/css", ".json": "application/json",
         ".xml": "application/xml", ".gif": "image/gif", ".latin1": "text/html; charset=iso-8859-1"}
INDEX = ("<!doctype html><title>Index</title><h1>Test site</h1><ul><li><a href=\"/links.html\">links</a></li>"
         "<li><a href=\"/form.html\">form</a></li></ul>")


def load_pages(path):
    pages = {}
    with open(path) as f:
        for line in f:
            page = json.loads(line)
            pages[page["name"]] = (base64.b64decode(page["base64"]) if "base64" in page
                                   else page["text"].encode())
    return pages


class Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    pages, directories = {}, ()
    ended = threading.Event()  # of the tests: for answers that never come
    posted = ""

    def log_message(self, *args):
        pass

    def out(self, body, kind=HTML, code=200, **headers):
        if isinstance(body, str):
            body = body.encode()
        self.send_response(code)
        self.send_header("Content-Type", kind)
        self.send_header("Content-Length", str(len(body)))
        self.send_header("Cache-Control", "no-store")
        for name, values in headers.items():
            for value in values if isinstance(values, list) else [values]:
                self.send_header(name.replace("_", "-"), value)
        self.end_headers()
        if self.command != "HEAD":
            self.wfile.write(body)

    def page(self, title, body, **kw):
        self.out("<!doctype html><html lang=en><head><title>%s</title></head><body>%s</body></html>"
                 % (title, body), **kw)

    def do_HEAD(self):
        self.do_GET()

    def do_POST(self):
        self.posted = self.rfile.read(int(self.headers.get("Content-Length") or 0)).decode("utf-8", "replace")
        self.do_GET()

    def find(self, name):
        if name in self.pages:
            return self.pages[name]
        for directory in self.directories:
            path = os.path.join(directory, os.path.basename(name))
            if os.path.isfile(path):
                with open(path, "rb") as f:
                    return f.read()
        return None

    def do_GET(self):
        url = urllib.parse.urlsplit(self.path)
        query = dict(urllib.parse.parse_qsl(url.query, keep_blank_values=True))
        special = getattr(self, "x_" + url.path.strip("/").replace("/", "_").replace("-", "_"), None)
        name = urllib.parse.unquote(url.path).lstrip("/")
        try:
            if special:
                special(query)
            elif self.find(name) is not None:
                self.out(self.find(name), TYPES.get(os.path.splitext(name)[1], "application/octet-stream"))
            elif name == "":
                self.out(INDEX)
            else:
                self.out("<!doctype html><title>Not found</title><h1>404</h1><p>No such page: %s</p>"
                         % html.escape(url.path), code=404)
        except (BrokenPipeError, ConnectionResetError):
            pass

    # ---- by path ----

    def x_favicon_ico(self, q):
        self.out(b"", "image/x-icon", 204)

    def x_redirect(self, q):
        self.out("", code=int(q.get("code", 302)), Location=q["to"])

    def x_loop(self, q):
        self.out("", code=302, Location="/loop")

    def x_hops(self, q):
        n = int(q.get("n", 3))
        if n:
            self.out("", code=302, Location="/hops?n=%d" % (n - 1))
        else:
            self.page("Landed", "<h1>Landed</h1>")

    def x_status(self, q):
        code = int(q["code"])
        if code == 204:
            self.send_response(204)
            self.end_headers()
        else:
            self.page("Status %d" % code, "<h1>Status %d</h1><p>Body of %d</p>" % (code, code), code=code)

    def x_empty(self, q):
        self.out("", code=int(q.get("code", 200)))

    def x_slow(self, q):
        self.ended.wait(float(q.get("s", 1)))
        self.page("Slow", "<h1>Slow page</h1><p>waited %s s</p>" % q.get("s", 1))

    def x_endless(self, q):
        self.send_response(200)
        self.send_header("Content-Type", "application/octet-stream")
        self.send_header("Content-Disposition", "attachment")
        self.end_headers()
        try:
            while not self.ended.is_set():
                self.wfile.write(bytes(65536))
        finally:
            self.broken_off.release()

    def x_hang(self, q):
        self.ended.wait(600)

    def x_hang_body(self, q):
        self.send_response(200)
        self.send_header("Content-Type", "text/html")
        self.send_header("Content-Length", "100000")
        self.end_headers()
        self.wfile.write(b"<!doctype html><title>Half</title><h1>First half</h1><p>the rest never comes")
        self.wfile.flush()
        self.ended.wait(600)

    def x_reset(self, q):
        self.connection.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
        self.close_connection = True
        self.connection.close()

    def x_close(self, q):
        self.close_connection = True
        self.connection.shutdown(2)

    def x_auth(self, q):
        if self.headers.get("Authorization") == "Basic " + base64.b64encode(b"user:pass").decode():
            self.page("Auth ok", "<h1>Welcome user</h1>")
        else:
            self.page("Auth", "<h1>401</h1><p>Authorization needed</p>", code=401,
                      WWW_Authenticate='Basic realm="test"')

    def x_download(self, q):
        self.out(b"col1,col2\n1,2\n", q.get("type", "text/csv"),
                 Content_Disposition='attachment; filename="%s"' % q.get("name", "data.csv"))

    def x_octet(self, q):
        self.out(b"\x00\x01\x02", "application/octet-stream")

    def x_zip(self, q):
        self.out(b"PK\x05\x06" + b"\0" * 18, "application/zip")

    def x_echo(self, q):
        query = urllib.parse.urlsplit(self.path).query
        self.page("Echo", "<h1>Echo</h1><p>method %s</p><pre>%s</pre><pre>%s</pre>"
                  % (self.command, html.escape(query), html.escape(self.posted)))

    def x_ua(self, q):
        self.page("Agent", "<p>%s</p><p>%s</p>" % (html.escape(self.headers.get("User-Agent", "")),
                                                   html.escape(self.headers.get("Accept-Language", ""))))

    def x_setcookie(self, q):
        self.page("Cookie set", "<p>set</p>", Set_Cookie=["k=v; Path=/", "s=1; Path=/; HttpOnly"])

    def x_cookie(self, q):
        self.page("Cookie", "<p>cookie: %s</p>" % html.escape(self.headers.get("Cookie", "none")))

    def x_csp(self, q):
        self.page("CSP", "<h1>Strict</h1><script>document.title=\"ran\"</script>"
                  "<button id=b onclick=\"document.title=1\">b</button>",
                  Content_Security_Policy="default-src 'none'; script-src 'none'")

    def x_xframe(self, q):
        self.page("Denied", "<h1>denied content</h1>", X_Frame_Options="DENY")

    def x_plain(self, q):
        self.out("plain <b>text</b>\nline two\n\tline three \u00e9\n", "text/plain; charset=utf-8")

    def x_json(self, q):
        self.out('{"a": [1, 2, {"b": "<x>"}], "s": "\u00e9"}', "application/json")

    def x_xml(self, q):
        self.out('<?xml version="1.0"?><root a="1"><item>one</item><item>two &amp; three</item></root>',
                 "application/xml")

    def x_latin1(self, q):
        self.out("<!doctype html><title>L1</title><p>caf\u00e9 \u00fc</p>".encode("latin-1"),
                 "text/html; charset=iso-8859-1")

    def x_nocharset(self, q):
        self.out("<!doctype html><title>NC</title><p>caf\u00e9</p>".encode(), "text/html")

    def x_refresh_header(self, q):
        self.page("R", "<p>wait</p>", Refresh="0; url=/links.html")
