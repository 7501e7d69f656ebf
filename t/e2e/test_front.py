#!/usr/bin/env python3
"""TLS and the limits of one client, with curl against the real nginx."""

import os
import re
import shutil
import signal
import socket
import subprocess
import sys
import time

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
from lib.certs import RSA, Authority, serial_served  # noqa: E402
from lib.supervised import (  # noqa: E402
    HANDRAILD, PATIENCE, ROOT, Answer, Server, find_program, gate, marker, need, run_tests)
from lib.tap import Skip, equal  # noqa: E402


def curl(s, path, *options, scheme="https"):
    """An Answer; its version is that of HTTP. Status 0: no answer, the body is curl's complaint."""
    if shutil.which("curl") is None:
        raise Skip("needs curl: apt-get install curl")
    done = subprocess.run(
        ("curl", "-sSi", "--max-time", "%d" % PATIENCE) + options +
        ("%s://127.0.0.1:%d%s" % (scheme, s.port, path),), stdout=subprocess.PIPE,
        stderr=subprocess.PIPE)
    if not done.stdout.startswith(b"HTTP/"):
        a = Answer(0, {}, done.stderr)
        a.version = ""
        return a
    head, _, body = done.stdout.partition(b"\r\n\r\n")
    lines = head.decode("latin-1").split("\r\n")
    version, status = lines[0].split(" ")[:2]
    a = Answer(int(status), {k.strip().title(): v.strip() for k, _, v in
                             (line.partition(":") for line in lines[1:])}, body)
    a.version = version
    return a


class Secure(Server):
    """A server whose certificate is made before it starts."""

    def __init__(self, settings=None, **kw):
        super().__init__(ready=None, **kw)
        self.authority = Authority(self.top, "authority")
        self.pem, self.key = self.authority.make("server", 101, "server")
        self.settings = {"tls_certificate": self.pem, "tls_certificate_key": self.key}
        self.settings.update(settings(self) if settings else {})
        self.write_settings(self.settings)
        self.args += ["--config", self.settings_file()]
        self.start()

    def curl(self, path, *options):
        return curl(self, path, "--cacert", self.authority.pem, *options)


# ---- TLS ----

def tls():
    with Secure() as s:
        a = s.curl("/alive")
        equal((a.status, a.body, a.version), (200, b'{"status":"ok"}', "HTTP/2"))
        a = s.curl("/execute_action", "--http1.1", "-H", "Content-Type: application/json", "-d",
                   '{"action":{"action":"run","args":{"command":"echo over $((1 + 1)) TLS"}}}')
        equal((a.status, a.json()["content"], a.version), (200, "over 2 TLS", "HTTP/1.1"))
        equal(s.curl("/alive", "--tls-max", "1.2").status, 200)
        a = s.curl("/alive", "--tls-max", "1.1")
        equal((a.status, b"SSL" in a.body or b"alert" in a.body), (0, True), "TLS 1.1: %r" % a.body)
        a = curl(s, "/alive", scheme="http")
        equal((a.status, a.body, a.headers["Content-Type"]),
              (400, b"This port speaks HTTPS.", "text/plain; charset=utf-8"))
        a = curl(s, "/alive")
        equal((a.status, b"certificate" in a.body), (0, True), "an authority nobody knows")
        s.settings.update(http2=False, tls_min_version="1.3")
        s.write_settings(s.settings)
        s.reload()
        equal(s.curl("/alive").version, "HTTP/1.1", "no HTTP/2")
        equal(s.curl("/alive", "--tls-max", "1.2").status, 0, "only TLS 1.3")


def handshake(s, *options, send=b"Q\n"):
    """What s_client says of it, and "" where there was none."""
    done = subprocess.run(
        ("openssl", "s_client", "-connect", "127.0.0.1:%d" % s.port, "-CAfile", s.authority.pem) + options,
        input=send, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, timeout=PATIENCE)
    text = done.stdout.decode("utf-8", "replace")
    # "SSLv3" is since when there has been such a suite
    return text if re.search(r"^New, (TLSv1\.[23]|TLSv1\.0|SSLv3), Cipher is [A-Z]", text, re.M) else ""


def suites(s, version, option, names):
    """Those of the names that the server takes, each offered alone."""
    return {name for name in names if handshake(s, version, option, name)}


def offered(version):
    """All that this OpenSSL can offer, without those that need more than a certificate."""
    text = subprocess.run(["openssl", "ciphers", "-s", version, "ALL:COMPLEMENTOFALL:@SECLEVEL=0"],
                          stdout=subprocess.PIPE, check=True).stdout.decode()
    return [n for n in text.strip().split(":") if not re.search("PSK|SRP|^TLS_", n)]


def what_is_costly_is_refused():
    aead = ["AES128-GCM-SHA256", "AES256-GCM-SHA384", "CHACHA20-POLY1305"]
    modern = ["TLS_AES_128_GCM_SHA256", "TLS_AES_256_GCM_SHA384", "TLS_CHACHA20_POLY1305_SHA256"]
    with Secure() as s:
        names = offered("-tls1_2")
        # key exchange by RSA, CBC, DHE: all there to be refused
        for name in ("AES128-GCM-SHA256", "AES256-SHA", "ECDHE-RSA-AES128-SHA", "ECDHE-ECDSA-AES256-SHA384",
                     "DHE-RSA-AES256-GCM-SHA384", "ECDHE-ECDSA-AES128-CCM"):
            equal(name in names, True, name)
        weak = [n + ":@SECLEVEL=0" for n in names]
        for kind in ("ECDSA", "RSA"):
            equal(suites(s, "-tls1_2", "-cipher", weak),
                  {"ECDHE-%s-%s:@SECLEVEL=0" % (kind, n) for n in aead}, kind)
            equal(suites(s, "-tls1_3", "-ciphersuites", modern), set(modern))
            # in TLS 1.2 a certificate on P-256 is for clients that name that group
            for version in ("-tls1_3",) if kind == "ECDSA" else ("-tls1_2", "-tls1_3"):
                groups = ["X25519", "P-256", "P-384", "X448", "P-521"]
                groups += ["ffdhe2048", "ffdhe8192"] if version == "-tls1_3" else []
                equal(suites(s, version, "-groups", groups), {"X25519", "P-256", "P-384"}, version)
            # one connection is worth one handshake
            text = handshake(s, "-tls1_2", send=b"R\n")
            equal("no renegotiation" in text or "RENEGOTIATING" in text, True, text)
            equal("verify return" in text.split("RENEGOTIATING")[1], False, text)
            if kind == "ECDSA":
                s.authority.make("server", 103, "server", RSA)
                s.reload()
        # the client's choice among good ones: processors without AES instructions do ChaCha20 better
        want = "ECDHE-RSA-CHACHA20-POLY1305"
        text = handshake(s, "-tls1_2", "-cipher", want + ":ECDHE-RSA-AES128-GCM-SHA256")
        equal("Cipher is " + want in text, True, text)
        s.settings["tls_ciphers"] = "AES128-SHA"
        s.write_settings(s.settings)
        s.reload(2)
        equal(suites(s, "-tls1_2", "-cipher", ["AES128-SHA", want]), {"AES128-SHA"}, "who wants it has it")


def certificate_reload():
    with Secure() as s:
        equal(serial_served(s.port, s.authority), 101)
        began, wait = marker(s)
        door, open_it = gate(s)
        action = subprocess.Popen(
            ["curl", "-sS", "--cacert", s.authority.pem, "-H", "Content-Type: application/json", "-d",
             '{"action":{"action":"run","args":{"command":"%s; %s; echo done"}}}' % (began, door),
             "https://127.0.0.1:%d/execute_action" % s.port], stdout=subprocess.PIPE)
        wait()
        s.authority.make("server", 102, "server")
        equal(serial_served(s.port, s.authority), 101, "before the reload")
        s.reload()
        equal(serial_served(s.port, s.authority), 102, "after it")
        open_it()
        equal(b'"done"' in action.communicate(timeout=PATIENCE)[0].replace(b" ", b""), True,
              "a request under way")
        with open(s.pem, "w") as f:
            f.write("not a certificate\n")
        s.send(signal.SIGHUP)
        if not s.wait_log("reload refused, nothing has changed: nginx refuses its configuration"):
            raise AssertionError(s.log())
        equal(serial_served(s.port, s.authority), 102, "after a bad reload")
        equal(s.curl("/alive").status, 200)


def client_certificates():
    def settings(s):
        s.clients, s.others = Authority(s.top, "clients"), Authority(s.top, "others")
        return {"tls_client_ca": s.clients.pem}

    with Secure(settings) as s:
        # whoever has no certificate gets no further, so there need be no key
        if not s.wait_log("listening on 0.0.0.0:", 1):
            raise AssertionError(s.log())
        good, bad = s.clients.make("good", 1), s.clients.make("bad", 2)
        stranger = s.others.make("good", 1, "stranger")
        for options in ((), ("--cert", stranger[0], "--key", stranger[1])):
            for path in ("/alive", "/vscode/connection_token", "/nowhere"):
                a = s.curl(path, *options)
                equal((a.status, a.body), (403, b'{"detail":"Invalid client certificate"}'), path)
        for pem, key in (good, bad):
            equal(s.curl("/ready", "--cert", pem, "--key", key).status, 200, pem)
        # no page of another name gets so far
        equal(s.curl("/ready", "--cert", good[0], "--key", good[1], "-H", "Host: box.example.com").status, 200)
        s.settings["tls_client_crl"] = s.clients.revoke(bad[0])
        s.write_settings(s.settings)
        s.reload()
        equal(s.curl("/ready", "--cert", bad[0], "--key", bad[1]).status, 403, "a withdrawn one")
        equal(s.curl("/ready", "--cert", good[0], "--key", good[1]).status, 200)
        del s.settings["tls_client_crl"], s.settings["tls_client_ca"]
        s.write_settings(s.settings)
        s.send(signal.SIGHUP)
        if not s.wait_log("reload refused, nothing has changed: .* no session key"):
            raise AssertionError(s.log())
        equal(s.curl("/ready").status, 403, "a reload that would open the server to all")


# ---- keys ----

def key_rotation():
    s = Server(ready=None)
    with s:
        path = os.path.join(s.top, "keys")

        def keys(*words):
            with open(path + ".new", "w") as f:
                f.write("".join(w + "\n" for w in words))
            os.chmod(path + ".new", 0o600)
            os.rename(path + ".new", path)

        def status(key):
            return curl(s, "/ready", "-H", "X-Session-API-Key: " + key, scheme="http").status

        keys("old-key-0123456789")
        s.write_settings({"session_api_key_file": path})
        s.args += ["--config", s.settings_file()]
        s.start()
        equal([status(k) for k in ("old-key-0123456789", "new-key-0123456789", "")], [200, 403, 403])
        keys("new-key-0123456789", "", "old-key-0123456789")
        s.reload()
        s.until("both are accepted",
                lambda: [status("old-key-0123456789"), status("new-key-0123456789")] == [200, 200])
        keys("new-key-0123456789")
        s.reload(2)
        s.until("the old one is refused",
                lambda: [status("old-key-0123456789"), status("new-key-0123456789")] == [403, 200])
        keys()
        s.send(signal.SIGHUP)
        if not s.wait_log("reload refused, nothing has changed: .* has no key"):
            raise AssertionError(s.log())
        s.write_settings({})
        s.send(signal.SIGHUP)
        if not s.wait_log("reload refused, nothing has changed: .* no session key"):
            raise AssertionError(s.log())
        # nginx refuses: the keys of that moment must not be taken over either
        keys("third-key-0123456789")
        s.write_settings({"session_api_key_file": path, "tls_certificate": "/nonexistent/a",
                          "tls_certificate_key": "/nonexistent/b"})
        s.send(signal.SIGHUP)
        if not s.wait_log("reload refused, nothing has changed: nginx refuses"):
            raise AssertionError(s.log())
        for pid in s.workers("control"):
            os.kill(pid, signal.SIGTERM)  # their successors get the keys of today
        s.until("new workers", lambda: status("new-key-0123456789") == 200)
        equal([status(k) for k in ("new-key-0123456789", "third-key-0123456789", "old-key-0123456789")],
              [200, 403, 403])
        equal("key-0123456789" in s.log(), False, "a key in the log")


def readable_secrets_are_named():
    s = Server(ready=None)
    with s:
        path = os.path.join(s.top, "keys")
        with open(path, "w") as f:
            f.write("a-key\n")
        os.chmod(path, 0o644)
        s.write_settings({"session_api_key_file": path})
        s.args += ["--config", s.settings_file(), "--listen", "127.0.0.1"]
        s.start()
        if not s.wait_log("session_api_key_file: every account can read ", 1):
            raise AssertionError(s.log())


# ---- how much ----

def many(a):
    equal((a.status, a.headers.get("Retry-After"), a.headers.get("Content-Type"), a.body),
          (429, "1", "application/json", b'{"detail":"Too Many Requests"}'))


def address_rate():
    """One request a minute: what comes beyond the burst is refused, however slow this machine is."""
    with Server(settings={"address_requests_per_minute": 1, "address_burst": 4}) as s:
        # the server's own question at the start was the first of these five
        for path in ("/alive", "/server_info", "/nowhere", "/vscode/connection_token"):
            equal(curl(s, path, scheme="http").status in (200, 404), True, path)
        for path in ("/alive", "/server_info", "/execute_action", "/vscode/connection_token", "/nowhere"):
            many(curl(s, path, scheme="http"))
        equal(curl(s, "/alive", "--interface", "127.0.0.2", scheme="http").status, 200, "another address")
        s.write_settings({})
        s.reload()
        equal(curl(s, "/alive", scheme="http").status, 200, "no limit any more")


def key_rate():
    with Server(settings={"key_requests_per_minute": 1, "key_burst": 2}) as s:
        one, two = ("-H", "X-Session-API-Key: one"), ("-H", "X-Session-API-Key: two")
        equal([curl(s, "/alive", *one, scheme="http").status for _ in range(3)], [200] * 3)
        many(curl(s, "/alive", *one, scheme="http"))
        many(curl(s, "/alive", "--interface", "127.0.0.3", *one, scheme="http"))
        equal(curl(s, "/alive", *two, scheme="http").status, 200, "another key")
        equal([curl(s, "/alive", scheme="http").status for _ in range(5)], [200] * 5, "no key")


def connections(setting, mine, other):
    need("curl")
    with Server(settings={setting: 2}) as s:
        held = []
        for i in range(2):
            began, wait = marker(s, "began%d" % i)
            door, open_it = gate(s, "gate%d" % i)
            held.append((subprocess.Popen(
                ("curl", "-sS", "-H", "Content-Type: application/json", "-d",
                 '{"action":{"action":"run","args":{"command":"%s; %s; echo ok","is_static":true}}}'
                 % (began, door)) + mine + ("http://127.0.0.1:%d/execute_action" % s.port,),
                stdout=subprocess.PIPE), open_it))
            wait()
        for path in ("/alive", "/execute_action"):
            many(curl(s, path, *mine, scheme="http"))
        equal(curl(s, "/alive", *other, scheme="http").status, 200)
        for client, open_it in held:
            open_it()
            equal(b'"ok"' in client.communicate(timeout=PATIENCE)[0].replace(b" ", b""), True)
        s.until("there is room again", lambda: curl(s, "/alive", *mine, scheme="http").status == 200)


def address_connections():
    connections("address_connections", (), ("--interface", "127.0.0.2"))


def key_connections():
    connections("key_connections", ("-H", "X-Session-API-Key: one"), ("-H", "X-Session-API-Key: two"))


def full_pool_with_limits():
    """What all together ask for too much is 503, what one client does is 429."""
    need("curl")
    with Server(settings={"action_workers_max": 3, "address_connections": 2}) as s:
        def act(*options):
            return curl(s, "/execute_action", "-H", "Content-Type: application/json", "-d",
                        '{"action":{"action":"run","args":{"command":"echo ok"}}}', *options, scheme="http")

        held = []
        for i, address in enumerate(("127.0.0.2", "127.0.0.3", "127.0.0.3")):
            began, wait = marker(s, "began%d" % i)
            door, open_it = gate(s, "gate%d" % i)
            held.append((subprocess.Popen(
                ("curl", "-sS", "--interface", address, "-H", "Content-Type: application/json", "-d",
                 '{"action":{"action":"run","args":{"command":"%s; %s; echo ok","is_static":true}}}'
                 % (began, door), "http://127.0.0.1:%d/execute_action" % s.port),
                stdout=subprocess.PIPE), open_it))
            wait()
        for options in ((), ("--interface", "127.0.0.3")):
            a = act(*options)
            equal((a.status, a.headers["Retry-After"], a.body),
                  (503, "1", b'{"detail":"Service Unavailable"}'), options)
        many(curl(s, "/alive", "--interface", "127.0.0.3", scheme="http"))
        # nobody waits for the body of what is refused
        with socket.create_connection(("127.0.0.1", s.port), PATIENCE, ("127.0.0.3", 0)) as c:
            c.sendall(b"POST /execute_action HTTP/1.1\r\nHost: x\r\nContent-Type: application/json\r\n"
                      b"Content-Length: 1000000\r\n\r\n")
            equal(c.recv(100).split(b"\r\n")[0], b"HTTP/1.1 503 Service Temporarily Unavailable")
        equal(curl(s, "/-/refused", scheme="http").status, 404)
        held[0][1]()
        equal(b'"ok"' in held[0][0].communicate(timeout=PATIENCE)[0].replace(b" ", b""), True)
        s.until("there is room again", lambda: act().status == 200)
        many(act("--interface", "127.0.0.3"))
        for client, open_it in held[1:]:
            open_it()
            equal(b'"ok"' in client.communicate(timeout=PATIENCE)[0].replace(b" ", b""), True)


def heads_and_bodies():
    with Server(settings={"client_max_body_bytes": 1000, "client_max_header_bytes": 2048}) as s:
        equal(curl(s, "/alive", "-H", "X-Long: " + "a" * 2000, scheme="http").status, 200)
        a = curl(s, "/alive", "-H", "X-Long: " + "a" * 2100, scheme="http")
        equal((a.status, a.body), (400, b"Invalid HTTP request received."))
        equal(curl(s, "/" + "a" * 3000, scheme="http").status, 400)
        a = curl(s, "/list_files", "-d", "x" * 1001, scheme="http")
        equal((a.status, a.body), (413, b'{"detail":"Request Entity Too Large"}'))
        a = curl(s, "/list_files", "-H", "Transfer-Encoding: chunked", "-d", "x" * 1001, scheme="http")
        equal(a.status, 413, "chunked")


def closed_after(s, data, least):
    """Sends, then nothing more; how it ends, and that it took its time."""
    began = time.monotonic()
    with socket.create_connection(("127.0.0.1", s.port), PATIENCE) as c:
        c.sendall(data)
        c.settimeout(PATIENCE)
        try:
            said = c.recv(65536)
        except ConnectionResetError:
            said = b""
    equal(said, b"", "a slow client gets an end, not an answer")
    if not least <= time.monotonic() - began < PATIENCE - 1:
        raise AssertionError("closed after %.1f s" % (time.monotonic() - began))


def slow_clients():
    with Server(settings={"client_header_timeout": 1, "client_body_timeout": 2, "client_send_timeout": 1,
                          "keepalive_timeout": 1}) as s:
        closed_after(s, b"", 0.9)
        closed_after(s, b"GET /alive HTTP/1.1\r\nHost: x\r\nX-Slow", 0.9)
        closed_after(s, b"POST /execute_action HTTP/1.1\r\nHost: x\r\nContent-Length: 100\r\n\r\nabc", 1.9)
        # a client that asks and asks and reads nothing: it is cut when its window has been shut so long
        with socket.socket() as c:
            c.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)
            c.connect(("127.0.0.1", s.port))
            c.settimeout(PATIENCE)
            request = b"GET /server_info HTTP/1.1\r\nHost: x\r\n\r\n" * 1000
            try:
                while True:
                    c.sendall(request)
            except (ConnectionResetError, BrokenPipeError):
                pass
        equal(s.get("/alive").status, 200)


def half_closed():
    """A client that has sent all it wants to send, and says so, gets the answer of whatever it asked."""
    with Server() as s:
        with open(os.path.join(s.top, "big"), "wb") as f:
            f.write(b"x" * 3000000)
        action = b'{"action":{"action":"run","args":{"command":"echo done"}}}'
        for line, body, version in (
                ("GET /alive", b"", 1), ("GET /alive", b"", 0), ("GET /server_info", b"", 1), ("GET /ready", b"", 0),
                ("POST /list_files", b"{}", 1), ("POST /execute_action", action, 1),
                ("GET /download_file?path=" + os.path.join(s.top, "big"), b"", 1)):
            with socket.create_connection(("127.0.0.1", s.port), PATIENCE) as c:
                c.sendall(("%s HTTP/1.%d\r\nHost: h\r\nConnection: close\r\nContent-Type: application/json\r\n"
                           "Content-Length: %d\r\n\r\n" % (line, version, len(body))).encode() + body)
                c.shutdown(socket.SHUT_WR)
                got = bytearray()
                while part := c.recv(65536):
                    got += part
            head, _, rest = bytes(got).partition(b"\r\n\r\n")
            equal(head[:12][9:], b"200", "%s: %r" % (line, head[:100]))
            if "download" in line:
                equal(len(rest), 3000000, "all of it")


def one_include():
    """The site in Debian's own nginx.conf, with all that the settings can ask for."""
    stock = "/etc/nginx/nginx.conf"
    if not os.path.exists(stock):
        raise Skip("needs %s: apt-get install nginx" % stock)
    key = "a-key"
    s = Server(ready=None, env={"SESSION_API_KEY": key}, args=["--no-nginx", "--listen", "127.0.0.1"])
    with s:
        authority = Authority(s.top, "authority")
        pem, private = authority.make("server", 1)
        s.write_settings({"tls_certificate": pem, "tls_certificate_key": private, "tls_ciphers": "HIGH",
                          "access_log": os.path.join(s.top, "access.log"), "address_connections": 5,
                          "address_requests_per_minute": 100000, "key_requests_per_minute": 100000,
                          "key_connections": 5, "client_max_body_bytes": 1000})
        s.args += ["--config", s.settings_file()]
        s.start()
        os.mkdir(os.path.join(s.top, "conf.d"))
        with open(os.path.join(s.top, "conf.d", "handrail.conf"), "w") as f:
            subprocess.run([HANDRAILD, "--print-nginx", "site"] + s.args, env=s.env, stdout=f, check=True)
        with open(stock) as f:
            text = f.read()
        for old, new in (("/etc/nginx/conf.d", s.top + "/conf.d"), ("/var/log/nginx", s.top),
                         ("/run/nginx.pid", s.top + "/pid"), ("include /etc/nginx/sites-enabled/*;", ""),
                         ("include /etc/nginx/modules-enabled/*.conf;", "")):
            equal(old in text, True, "Debian's nginx.conf has " + old)
            text = text.replace(old, new)
        if not ROOT:
            text = re.sub(r"^user .*;\n", "", text, flags=re.M)  # nginx warns of it where it cannot be kept
            with open(os.path.join(s.top, "conf.d", "temporary.conf"), "w") as f:  # /var/lib/nginx is root's
                for what in ("client_body", "proxy", "fastcgi", "uwsgi", "scgi"):
                    f.write("%s_temp_path %s/%s;\n" % (what, s.top, what))
        conf = os.path.join(s.top, "nginx.conf")
        with open(conf, "w") as f:
            f.write(text)
        words = [find_program("nginx"), "-e", os.path.join(s.top, "error.log"), "-c", conf]
        done = subprocess.run(words + ["-t"], stderr=subprocess.PIPE)
        equal((done.returncode, b"warn" in done.stderr), (0, False), done.stderr)
        front = subprocess.Popen(words + ["-g", "daemon off;"], start_new_session=True)
        try:
            s.until("their nginx listens", lambda: not s.refused() or front.poll() is not None)
            a = curl(s, "/ready", "--cacert", authority.pem, "-H", "X-Session-API-Key: " + key)
            equal((a.status, a.version), (200, "HTTP/2"))
            equal(curl(s, "/ready", "--cacert", authority.pem).status, 403)
            equal(curl(s, "/list_files", "--cacert", authority.pem, "-d", "x" * 1001).status, 413)
        finally:
            front.send_signal(signal.SIGQUIT)
            front.wait(PATIENCE)
        with open(os.path.join(s.top, "access.log")) as f:
            equal('"path":"/ready","status":200' in f.read(), True)


def bad_settings_are_refused():
    for settings, words in [
            ({"tls_certificate": "/a"}, "set both tls_certificate and tls_certificate_key"),
            ({"tls_client_ca": "/a"}, "tls_client_ca needs TLS"),
            ({"tls_certificate": "/a", "tls_certificate_key": "/b", "tls_client_crl": "/c"}, "needs tls_client_ca"),
            ({"tls_min_version": "1.1"}, "must be 1.2 or 1.3"),
            ({"tls_certificate": "/a b", "tls_certificate_key": "/c"}, "tls_certificate: .*holds a character"),
            ({"tls_certificate": "/a", "tls_certificate_key": "/c", "tls_ciphers": "a;b"}, "tls_ciphers: "),
            ({"address_requests_per_minute": -1}, "address_requests_per_minute: -1"),
            ({"client_max_header_bytes": 10}, "client_max_header_bytes: 10")]:
        s = Server(settings=settings, ready=None)
        with s:
            s.start(ready=False)
            equal(s.wait() in (2, 3), True, settings)
            if not re.search(words, s.log()):
                raise AssertionError("%r: %s" % (settings, s.log()))


TESTS = [tls, what_is_costly_is_refused, certificate_reload, client_certificates, key_rotation,
         readable_secrets_are_named,
         address_rate, key_rate, address_connections, key_connections, full_pool_with_limits,
         heads_and_bodies, slow_clients, half_closed, one_include, bad_settings_are_refused]

if __name__ == "__main__":
    sys.exit(run_tests(TESTS))
