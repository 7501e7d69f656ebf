#!/usr/bin/env python3
"""The way of E2B's clients to a sandbox by handrail-fleetd: headers, host names and signatures, tokens, closed paths,
programs at their ports, and what is answered in the sandbox's name."""

import base64
import contextlib
import hashlib
import http.client
import json
import os
import re
import shlex
import shutil
import signal
import socket
import struct
import sys
import threading
import time
import urllib.parse
from concurrent import futures

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
from lib import process  # noqa: E402
from lib.e2bfleet import DOMAIN, E2b  # noqa: E402
from lib.host import PATIENCE  # noqa: E402
from lib.hostbox import run  # noqa: E402
from lib.tap import equal  # noqa: E402

NOWHERE = {"sandboxID": "0" * 32}
UNAUTHORIZED = {"code": 401, "message": "unauthorized access, please provide a valid access token or method signing "
                                        "if supported"}
STARTS, KILLS = 60, 4
FEW, MORE = 20, 80  # streams: few enough for the connections that nginx of a sandbox has at first
# prints the status of a call at the direct socket with a key, or why there is none
ASK = """
import os, socket, sys
s = socket.socket(socket.AF_UNIX)
try:
    s.connect("/run/handrail/edge/http.sock.envd")
    s.sendall(b"POST /process.Process/List HTTP/1.1\\r\\nHost: a\\r\\nContent-Type: application/json\\r\\n"
              b"Content-Length: 2\\r\\nX-Session-API-Key: %s\\r\\n\\r\\n{}" % sys.argv[1].encode())
    print(s.recv(99).split()[1].decode())
except OSError as why:
    print(os.strerror(why.errno))
"""
# a program at a port, which answers with the request that it got
ECHO = """
import http.server, socket, ssl, sys
class Echo(http.server.BaseHTTPRequestHandler):
    def do_GET(self):
        self.send_response(200)
        self.end_headers()
        self.wfile.write((self.requestline + "\\n" + str(self.headers)).encode())
    do_POST = do_GET
    def log_message(self, *unused): pass
class Server(http.server.ThreadingHTTPServer):
    address_family = socket.AF_INET6 if ":" in sys.argv[1] else socket.AF_INET
s = Server((sys.argv[1], int(sys.argv[2])), Echo)
if len(sys.argv) > 3:
    tls = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    tls.load_cert_chain(sys.argv[3])
    s.socket = tls.wrap_socket(s.socket, server_side=True)
print("up", flush=True)
s.serve_forever()
"""


def not_found(o):
    return 502, {"sandboxId": o["sandboxID"], "message": "The sandbox was not found", "code": 502}


def sign(token, path, operation="read", user="", expiry=None):
    text = "%s:%s:%s:%s" % (path, operation, user, token) + ("" if expiry is None else ":%d" % expiry)
    query = {"path": path, "signature": "v1_" + base64.b64encode(hashlib.sha256(text.encode()).digest()).decode()
             .rstrip("=")}
    if user:
        query["username"] = user
    if expiry is not None:
        query["signature_expiration"] = str(expiry)
    return "/files?" + urllib.parse.urlencode(query)


def of_v0(o):
    """The same sandbox for V0's requests."""
    return {"runtime_id": o["sandboxID"], "session_api_key": o["envdAccessToken"]}


def write(f, o, name, text):
    f.run(of_v0(o), "printf %%s '%s' >%s" % (text, name))


def refusals(f):
    o = f.create()
    equal(f.edge("GET", "/health", o)[0], 204)
    equal(f.edge("POST", "/process.Process/List", o), (401, UNAUTHORIZED))
    equal(f.edge("POST", "/process.Process/List", o, X_Access_Token="x" * 64), (401, UNAUTHORIZED))
    equal(f.edge("GET", "/health", NOWHERE), not_found(NOWHERE))
    equal(f.edge("GET", "/health", {"sandboxID": "ioldone"}), not_found({"sandboxID": "ioldone"}))
    for name, port in (("A_b", "49983"), ("", "49983"), (o["sandboxID"], "x"), (o["sandboxID"], "0"),
                       (o["sandboxID"], "65536"), (o["sandboxID"], "")):
        status, text = f.edge("GET", "/health", E2b_Sandbox_Id=name, E2b_Sandbox_Port=port)
        equal((status, "must be" in text), (400, True), text)
    for path in ("/process.Process/Start", "/filesystem.Filesystem/Stat", "/files?path=x"):
        status, text = f.edge("POST", path, body="{}")
        equal((status, "E2b-Sandbox-" in text), (400, True), text)
    for path in ("/init", "/freeze", "/unfreeze", "/collapse", "/fsfreeze", "/fsthaw", "/upgrade", "//init", "/%69nit",
                 "/./init", "/init/", "/INIT"):
        status, answer = f.edge("POST", path, o, X_Access_Token=o["envdAccessToken"])
        equal((status, answer["code"], answer["path"]), (404, 404, path))
    for path in ("/../execute_action", "/%2e%2e/execute_action", "/health/..", "/x/%2E./../../server_info"):
        for port in (49983, 49999, 3000):
            equal(f.edge("GET", path, o, port)[0], 400, path)
    equal(f.edge("OPTIONS", "/process.Process/Start", o)[0], 204)
    equal([f.head["Access-Control-" + n] for n in ("Allow-Origin", "Allow-Methods", "Allow-Headers", "Max-Age")],
          ["*", "*", "*", "7200"])
    for headers, allowed in (({}, None), ({"Origin": "http://a.test"}, ["*"])):
        equal((f.edge("GET", "/health", o, **headers)[0], f.head.get_all("Access-Control-Allow-Origin")),
              (204, allowed))
        equal((f.edge("GET", "/files", o, **headers)[0], f.head.get_all("Access-Control-Allow-Origin")),
              (401, allowed))
    equal(f.api("DELETE", "/sandboxes/" + o["sandboxID"])[0], 204)
    equal(f.edge("GET", "/health", o), not_found(o))


def signatures(f):
    o, p = f.create(), f.create()
    for s, text in ((o, "of o"), (p, "of p")):
        write(f, s, "/tmp/f", text)
    future = int(time.time()) + 1000
    for s, text in ((o, "of o"), (p, "of p")):
        for expiry in (None, future):
            url = sign(s["envdAccessToken"], "/tmp/f", expiry=expiry)
            equal(f.edge("GET", url, s), (200, text))
            equal(f.edge("GET", url), (200, text), "the signature alone names the sandbox")
            equal(f.edge("GET", url, host="49983-%s.%s" % (s["sandboxID"], DOMAIN)), (200, text))
    good = sign(o["envdAccessToken"], "/tmp/f")
    for url, message in ((sign(o["envdAccessToken"], "/tmp/f", expiry=1), "signature is already expired"),
                         (sign(p["envdAccessToken"], "/tmp/f"), "invalid signature"),
                         (sign(o["envdAccessToken"], "/tmp/f", "write"), "invalid signature"),
                         (good.replace("%2Ff&", "%2Fg&"), "invalid signature"),
                         ("/files?path=/tmp/f", "missing signature query parameter")):
        equal(f.edge("GET", url, o), (401, {"code": 401, "message": message}))
    equal(f.edge("GET", good, o, X_Access_Token="bad"),
          (401, {"code": 401, "message": "access token present in header but does not match"}))
    equal(f.edge("GET", sign("nobody's", "/tmp/f"))[0], 401)
    # the sandbox would take the last value of a name, however it is spelled
    for more in ("&p%61th=/etc/hostname", "&usern%61me=root"):
        equal(f.edge("GET", good + more, o)[0], 401, more)
        equal(f.edge("GET", good + more)[0], 400, more)
    status, answer = f.edge("POST", sign(o["envdAccessToken"], "/tmp/w", "write"), body=b"written",
                            Content_Type="application/octet-stream")
    equal((status, answer[0]["path"]), (200, "/tmp/w"))
    equal(f.run(of_v0(o), "cat /tmp/w"), "written")


def start_echo(f, o, *ways):
    write(f, o, "/tmp/echo.py", ECHO.replace("'", '"'))
    for way in ways:
        equal(f.run(of_v0(o), "python3 /tmp/echo.py %s >/tmp/echo.out & until grep -q up /tmp/echo.out; do sleep 0.05; "
                              "done; rm /tmp/echo.out; echo up" % way).splitlines()[-1], "up")


def ingress(f):
    """Programs see the host that the client has named, and are asked by TLS at the ports that it has named."""
    network = {"maskRequestHost": "${PORT}-a.${PORT}.test:8${PORT}", "httpsPorts": [3001, 3002, 3001]}
    o = f.create(network=network)
    equal(f.info(o)[1]["network"], network)
    f.run(of_v0(o), "openssl req -x509 -newkey rsa:2048 -nodes -subj /CN=a -days 9 -keyout /tmp/key -out /tmp/crt; "
                    "cat /tmp/key /tmp/crt >/tmp/pem")
    start_echo(f, o, "127.0.0.1 3000", "127.0.0.1 3001 /tmp/pem", "::1 3002 /tmp/pem")
    for port in (3000, 3001, 3002):
        for host in (None, "%d-%s.%s" % (port, o["sandboxID"], DOMAIN)):
            for method, body in (("GET", None), ("POST", b"x")):
                status, text = f.edge(method, "/a", o, port=port, host=host, body=body, X_Handrail_Scheme="http")
                seen = [line for line in text.splitlines() if line.startswith(("Host", method, "X-Handrail-S"))]
                equal((status, seen),
                      (200, [method + " /a HTTP/1.1", "Host: %d-a.%d.test:8%d" % (port, port, port)]))
    equal(f.edge("GET", "/health", o)[0], 204)
    p = f.create()
    start_echo(f, p, "127.0.0.1 3000")
    status, text = f.edge("GET", "/", p, port=3000, X_Handrail_Scheme="https", X_Handrail_Host="other.test")
    equal((status, "Host: 127.0.0.1:%d" % f.port in text), (200, True), text)


def programs(f):
    o = f.create()
    closed = (502, {"sandboxId": o["sandboxID"], "message": "The sandbox is running but port is not open",
                    "port": 3000, "code": 502})
    host = "3000-%s.%s" % (o["sandboxID"], DOMAIN)
    equal(f.edge("GET", "/", o, 3000), closed)
    equal((f.edge("GET", "/", host=host), f.head["Server"]), (closed, "nginx"), "without its version")
    start_echo(f, o, "127.0.0.1 3000", "::1 3001")
    for way in ({"o": o, "port": 3000}, {"host": host}, {"host": host.replace(".", "-client.", 1)}):
        status, text = f.edge("GET", "/a%20b?c", X_Access_Token="t", **way)
        equal((status, text.splitlines()[0]), (200, "GET /a%20b?c HTTP/1.1"))
        equal([n for n in ("X-Access-Token", "E2b-", "X-Session-API-Key") if n.lower() in text.lower()], [])
    # the other listens on IPv6 alone
    for method, body in (("GET", None), ("POST", b"x"), ("POST", b"x" * 100000)):
        status, text = f.edge(method, "/a", host=host.replace("3000", "3001"), body=body)
        equal((status, text.splitlines()[0]), (200, method + " /a HTTP/1.1"))
    # only clients with the token of the traffic get to the ports of this one
    p = f.create(network={"allowPublicTraffic": False})
    equal(f.info(p)[1].get("trafficAccessToken"), None)
    status, answer = f.edge("GET", "/", p, 3000)
    equal((status, answer["code"]), (403, 403))
    equal(f.edge("GET", "/", p, 3000, E2b_Traffic_Access_Token="wrong")[0], 403)
    equal(f.edge("GET", "/", p, 3000, E2b_Traffic_Access_Token=p["trafficAccessToken"])[0], 502)
    equal(f.edge("GET", "/", host="3000-%s.%s" % (p["sandboxID"], DOMAIN))[0], 403)
    equal(f.edge("GET", "/health", p)[0], 204, "the API's own port has its own token")
    for path in ("/execute", "/contexts", "/contexts/x/restart"):
        equal(f.edge("POST", path, p, 49999, body="{}")[0], 403, path)
    equal(f.edge("GET", "/contexts", o, 49999)[0] in (401, 403), False, "the SDKs send no token here")
    for path in ("/execute", "/%65xecute", "/execute%3f", "/./execute", "//execute", "/execute/"):
        equal(f.edge("POST", path, o, 49999, body="{}"), (401, UNAUTHORIZED), path)


def ids(f):
    """Programs find the ids in files, too, also those of a sandbox that stopped and was started again."""
    o = f.create(templateID="code-interpreter-v1")
    show = "cd /run/e2b && for i in .E2B_*; do echo $i $(cat $i); done"
    shown = [".E2B_SANDBOX true", ".E2B_SANDBOX_ID " + o["sandboxID"], ".E2B_TEMPLATE_ID code-interpreter-v1"]
    equal(f.run(of_v0(o), show).splitlines(), shown)
    # a link leads to no other file
    equal(f.run(of_v0(o), "rm -r /run/e2b; ln -s /tmp /run/e2b; echo done"), "done")
    if f.pauses(o):
        path = "/sandboxes/" + o["sandboxID"]
        equal(f.api("POST", path + "/pause", {})[0], 204)
        equal(f.api("POST", "/v2" + path + "/connect", {"timeout": 60})[0], 201)
        equal(f.run(of_v0(o), "ls -a /tmp | grep -c E2B"), "0")


def start(f, o, script, **headers):
    """The events of a command as a text; "" if the stream broke."""
    text = json.dumps({"process": {"cmd": "/bin/bash", "args": ["-c", script]}}).encode()
    try:
        return f.edge("POST", "/process.Process/Start", o, body=struct.pack(">BI", 0, len(text)) + text,
                      X_Access_Token=o["envdAccessToken"], Content_Type="application/connect+json", **headers)[1]
    except (OSError, http.client.HTTPException):
        return ""


def signals(f):
    """A command that signals all processes of its account ends no sandbox: the server is started again."""
    o = f.create()
    equal("exit status 0" in start(f, o, "true"), True)
    start(f, o, "kill -9 -1; kill -9 0")
    f.until(lambda: start(f, o, "echo again"), lambda text: "YWdhaW4K" in text)
    equal(f.info(o)[1]["state"], "running")
    equal(f.api("DELETE", "/sandboxes/" + o["sandboxID"])[0], 204)
    equal(f.edge("GET", "/health", o), not_found(o))


class Open:
    """The stream of a command that runs."""

    def __init__(self, f, o, script, call="Start", **message):
        text = json.dumps(message or {"process": {"cmd": "/bin/bash", "args": ["-c", script]}, "stdin": True}).encode()
        self.sock = socket.create_connection(("127.0.0.1", f.port), PATIENCE)
        self.sock.sendall(("POST /process.Process/" + call + " HTTP/1.1\r\nHost: a\r\nE2b-Sandbox-Id: %s\r\n"
                           "E2b-Sandbox-Port: 49983\r\nX-Access-Token: %s\r\nContent-Type: application/connect+json"
                           "\r\nContent-Length: %d\r\n\r\n" % (o["sandboxID"], o["envdAccessToken"],
                                                              5 + len(text))).encode() +
                          struct.pack(">BI", 0, len(text)) + text)
        self.got = b""
        self.until(b'"start"')

    def until(self, wanted):
        while wanted not in self.got:
            more = self.sock.recv(65536)
            equal(more != b"", True, "the stream ended with a close: %r" % self.got)
            self.got += more

    def pid(self):
        return int(re.search(rb'"pid": ?(\d+)', self.got)[1])

    def is_reset(self):
        try:
            self.until(b"no such text")
        except ConnectionResetError:
            return True


def framed(**message):
    text = json.dumps(message).encode()
    frame = struct.pack(">BI", 0, len(text)) + text
    return b"%x\r\n%s\r\n" % (len(frame), frame)


def inputs(f):
    """The messages of StreamInput reach the process as they are sent."""
    o = f.create()
    one = Open(f, o, "exec cat")
    sock = socket.create_connection(("127.0.0.1", f.port), PATIENCE)
    sock.sendall(("POST /process.Process/StreamInput HTTP/1.1\r\nHost: a\r\nE2b-Sandbox-Id: %s\r\n"
                  "E2b-Sandbox-Port: 49983\r\nX-Access-Token: %s\r\nContent-Type: application/connect+json\r\n"
                  "Transfer-Encoding: chunked\r\n\r\n" % (o["sandboxID"], o["envdAccessToken"])).encode() +
                 framed(start={"process": {"pid": one.pid()}}))
    for text in (b"first", b"second"):
        text = base64.b64encode(text)
        sock.sendall(framed(data={"input": {"stdin": text.decode()}}))
        one.until(text)
    sock.sendall(b"0\r\n\r\n")
    got = b"".join(iter(lambda: sock.recv(65536), b""))
    equal((got.split()[1], got.count(b"{}")), (b"200", 2), got)
    for s in (sock, one.sock):
        s.close()


def memory_of_nginx(pids):
    """Anonymous memory (PSS) of those that are nginx, in KB."""
    total = 0
    for pid in pids:
        with contextlib.suppress(OSError), open("/proc/%d/comm" % pid) as comm:
            if comm.read() == "nginx\n":
                with open("/proc/%d/smaps_rollup" % pid) as rollup:
                    total += next(int(line.split()[1]) for line in rollup if line.startswith("Pss_Anon:"))
    return total


def memory(f):
    """An open stream takes little memory of nginx of the service and none of the sandbox's, though its body comes in
    chunks, as the SDKs send it, and after the head."""
    o = f.create()
    call = framed(process={"cmd": "/bin/sleep", "args": ["1000"]}, stdin=False)
    head = ("POST /process.Process/Start HTTP/1.1\r\nHost: a\r\nE2b-Sandbox-Id: %s\r\nE2b-Sandbox-Port: 49983\r\n"
            "X-Access-Token: %s\r\nContent-Type: application/connect+json\r\nTransfer-Encoding: chunked\r\n"
            "Expect: 100-continue\r\n\r\n" % (o["sandboxID"], o["envdAccessToken"])).encode()

    def used():
        box = f.box(of_v0(o))["pid"]
        inside = {box, *process.descendants(box)}
        return memory_of_nginx(set(process.descendants(f.process.pid)) - inside), memory_of_nginx(inside)

    with contextlib.ExitStack() as stack:
        for n in range(FEW + MORE):
            if n == FEW:
                before = used()
            sock = stack.enter_context(socket.create_connection(("127.0.0.1", f.port), PATIENCE))
            for data, wanted in ((head, b" 100 "), (call + b"0\r\n\r\n", b'"start"')):
                sock.sendall(data)
                got = b""
                while wanted not in got:
                    part = sock.recv(65536)
                    equal(part != b"", True, got)
                    got += part
        service, sandbox = ((after - first) / MORE for first, after in zip(before, used()))
    equal(29 > service > 1, True, "%.1f KB of the service's" % service)
    equal(sandbox < 0.5, True, "%.1f KB of the sandbox's" % sandbox)


def direct_link(f, o):
    return f.path("fleet", "run", "sockets", o["sandboxID"]) + ".envd"


def listener(path):
    """A socket in the place of handrail-envd's."""
    sock = socket.socket(socket.AF_UNIX)
    sock.settimeout(PATIENCE)
    sock.bind(path + ".new")
    sock.listen()
    os.chmod(path + ".new", 0o666)
    os.rename(path + ".new", path)
    return sock


def other_ways(f):
    """Calls go by the sandbox's nginx where no server listens at the direct socket, each once."""
    o = f.create()
    link, out = direct_link(f, o), "/tmp/other-ways"
    equal("exit status 0" in start(f, o, "echo a >>" + out), True)
    listener(link).close()
    equal("exit status 0" in start(f, o, "echo b >>" + out), True)
    os.unlink(link)
    equal("exit status 0" in start(f, o, "echo c >>" + out), True)
    equal(f.run(of_v0(o), "cat " + out).split(), ["a", "b", "c"])


def direct(f):
    """handrail-envd gets what it reads of a request, the server's key and the name of a user. nginx sends the request
    once, to it alone, and refuses long bodies."""
    o = f.create()
    key, link = f.box(of_v0(o))["key"], direct_link(f, o)
    token = {"X_Access_Token": o["envdAccessToken"], "Content_Type": "application/json"}
    user = "Basic " + base64.b64encode(b"root:").decode()
    os.rename(link, link + ".kept")
    with listener(link) as sock, futures.ThreadPoolExecutor(1) as pool:
        for given, passed in ((user, user), ("Bearer " + key, None), ("Digest username=root", None),
                              ("Basic " + base64.b64encode(b":x").decode(), None)):
            asked = pool.submit(f.edge, "POST", "/process.Process/List", o, body="{}", Authorization=given,
                                X_API_Key=f.e2b_key, X_Session_API_Key="other", X_Forwarded_For="1.2.3.4",
                                X_HTTP_Method_Override="PUT", Cookie="a=b", Origin="http://a",
                                Connect_Timeout_Ms="9000", Keepalive_Ping_Interval="50", **token)
            connection = sock.accept()[0]
            got = b""
            while not got.endswith(b"{}"):
                part = connection.recv(65536)
                equal(part != b"", True, got)
                got += part
            connection.close()
            lines = got.decode().split("\r\n")
            equal(lines[0], "POST /handrail/e2b/process.Process/List HTTP/1.1")
            head = dict(line.split(": ", 1) for line in lines[1:lines.index("")])
            head.pop("Accept-Encoding", None)
            wanted = {"Host": "127.0.0.1:%d" % f.port, "Connection": "close", "Content-Length": "2",
                      "X-Session-API-Key": key, "Authorization": passed, "Content-Type": "application/json",
                      "Connect-Timeout-Ms": "9000", "Keepalive-Ping-Interval": "50"}
            equal(head, {name: value for name, value in wanted.items() if value is not None})
            equal((asked.result(), f.head["Retry-After"]), ((503, {"detail": "Service Unavailable"}), "1"))
        sock.setblocking(False)
        with contextlib.suppress(BlockingIOError):
            raise AssertionError("the request was sent again: %r" % (sock.accept(),))
    os.rename(link + ".kept", link)
    for body in (iter([b"x" * (1 << 20)] * 33), b"x" * (33 << 20)):
        c = http.client.HTTPConnection("127.0.0.1", f.port, timeout=PATIENCE)
        with contextlib.suppress(BrokenPipeError, ConnectionResetError):
            c.request("POST", "/process.Process/List", body,
                      {"E2b-Sandbox-Id": o["sandboxID"], "E2b-Sandbox-Port": "49983",
                       **{k.replace("_", "-"): v for k, v in token.items()}})
        answer = c.getresponse()
        equal((answer.status, json.loads(answer.read())), (413, {"detail": "Request Entity Too Large"}))
        c.close()
    equal(f.edge("POST", "/process.Process/List", o, body="{}", **token), (200, {}))


def direct_alone(f):
    """No process of the sandbox uses its direct socket without the key, and its nginx is not on the way."""
    o = f.create()
    equal("exit status 0" in start(f, o, "true"), True)
    key = f.box(of_v0(o))["key"]

    def ask(user, given):
        command = "python3 -c %s %s 2>&1" % (shlex.quote(ASK), shlex.quote(given))
        return start(f, o, command, Authorization="Basic " + base64.b64encode(user + b":").decode())

    def says(text):
        return base64.b64encode(text + b"\n").decode()

    if f.uid == 0:  # other boxes have one account
        equal(says(b"Permission denied") in ask(b"user", key), True)
    for given, status in (("", b"403"), ("0" * len(key), b"403"), (key, b"200")):
        equal(says(status) in ask(b"root", given), True, given)
    first = f.box(of_v0(o))["pid"]
    nginx = [pid for pid in process.descendants(first) if process.command_line(pid).startswith("nginx")]
    equal(len(nginx) > 1, True)
    for pid in nginx:
        os.kill(pid, signal.SIGSTOP)
    try:
        equal("exit status 0" in start(f, o, "true"), True)
    finally:
        for pid in nginx:
            os.kill(pid, signal.SIGCONT)


def resets(f):
    """Streams of a killed sandbox end by a reset, when the sandbox is not found already; others continue."""
    o, p = f.create(), f.create()
    one, two, other = Open(f, o, "read x"), Open(f, o, "read x"), Open(f, p, "read x; echo went on")
    # a connection whose latest request is none for the sandbox
    api = http.client.HTTPConnection("127.0.0.1", f.port, timeout=PATIENCE)
    for method, path, status in (("GET", "/v2/sandboxes", 200), ("DELETE", "/sandboxes/" + o["sandboxID"], 204),
                                 ("GET", "/v2/sandboxes", 200)):
        api.request(method, path, headers={"X-API-KEY": f.e2b_key})
        r = api.getresponse()
        r.read()
        equal(r.status, status)
    equal((one.is_reset(), two.is_reset(), f.edge("GET", "/health", o)), (True, True, not_found(o)))
    give_line(f, p, other.pid())
    other.until(base64.b64encode(b"went on\n"))
    # its time is over, and no client asks
    last = Open(f, p, "read x")
    equal(f.api("POST", "/sandboxes/%s/timeout" % p["sandboxID"], {"timeout": 0})[0], 204)
    equal((last.is_reset(), f.edge("GET", "/health", p)), (True, not_found(p)))


def is_cut(stream):
    """Whether it ends without its last frame."""
    try:
        while True:
            more = stream.sock.recv(65536)
            stream.got += more
            if not more:
                return b'"end"' not in stream.got and b"0\r\n\r\n" not in stream.got
    except ConnectionResetError:
        return True


def give_line(f, o, pid):
    f.edge("POST", "/process.Process/SendInput", o, X_Access_Token=o["envdAccessToken"],
           Content_Type="application/json", body=json.dumps({"process": {"pid": pid}, "input": {"stdin": "Cg=="}}))


def answers(f, o):
    """Until the sandbox can be reached again."""
    def ask():
        try:
            return f.edge("GET", "/health", o)[0]
        except (OSError, http.client.HTTPException):
            return None
    f.until(ask, lambda status: status == 204)


def killed_nginx(f):
    """Streams break without a last frame, commands go on, and the next nginx leads to them and resets them."""
    o = f.create()
    one = Open(f, o, "read x; echo went on")
    for master in [pid for pid in process.all_pids() if f.dir + "/run/nginx.conf" in process.command_line(pid)]:
        for pid in [master] + process.children(master):
            os.kill(pid, signal.SIGKILL)
    equal(is_cut(one), True)
    answers(f, o)
    again = Open(f, o, None, "Connect", process={"pid": one.pid()})
    give_line(f, o, one.pid())
    again.until(base64.b64encode(b"went on\n"))
    last = Open(f, o, "read x")
    equal(f.api("DELETE", "/sandboxes/" + o["sandboxID"])[0], 204)
    equal(last.is_reset(), True)


def killed_server(f):
    """The server of commands is killed while clients start some: none runs twice, and each whose end arrived ran."""
    o, out = f.create(), "/tmp/starts"
    equal("exit status 0" in start(f, o, "true"), True)
    first, went = f.box(of_v0(o))["pid"], []

    def servers():
        return [pid for pid in process.descendants(first)
                if re.match(r"\S*/handrail-envd$", process.command_line(pid).strip())]

    def starts():
        for n in range(STARTS):
            went.append(start(f, o, "echo %d >>%s" % (n, out)))

    thread = threading.Thread(target=starts)
    thread.start()
    for _ in range(KILLS):
        before = len(went)
        f.until(lambda: len(went) > before + 2 or not thread.is_alive(), bool)
        for pid in f.until(servers, bool):
            os.kill(pid, signal.SIGKILL)
            equal(process.wait_gone(pid, PATIENCE), True)
    thread.join()
    f.until(lambda: f.edge("POST", "/process.Process/List", o, body="{}", X_Access_Token=o["envdAccessToken"],
                           Content_Type="application/json"), lambda answer: answer == (200, {}))
    ran = [int(n) for n in f.run(of_v0(o), "cat " + out).split()]
    equal(len(ran), len(set(ran)), "none ran twice")
    whole = [n for n, text in enumerate(went) if "exit status 0" in text]
    equal([n for n in whole if n not in ran], [], "each that was reported ran")
    equal(len(whole) >= STARTS - 3 * KILLS, True, went)


def killed_keeper(f):
    """The keeper of commands: all of its commands end and their streams break, and the next commands find another."""
    o = f.create()
    one = Open(f, o, "read x")
    # a child of the keeper has its command line until it executes the program
    keepers = process.without_children([pid for pid in process.descendants(f.box(of_v0(o))["pid"])
                                        if process.command_line(pid).endswith("--keeper")])
    os.kill(keepers[0], signal.SIGKILL)
    equal(is_cut(one), True)
    f.until(lambda: start(f, o, "echo again"), lambda text: "YWdhaW4K" in text)
    equal(f.edge("POST", "/process.Process/List", o, body="{}", X_Access_Token=o["envdAccessToken"],
                 Content_Type="application/json"), (200, {}))
    equal((f.info(o)[1]["state"], f.edge("GET", "/health", o)[0]), ("running", 204))


def named(f):
    """By the domain: the API gives it to those who came by it, and to no others."""
    host = "api.%s:%d" % (DOMAIN, f.port)
    o = f.api("POST", "/v2/sandboxes", {"templateID": "base"}, Host="%s:%d" % (DOMAIN, f.port))[1]
    equal(o["domain"], "%s:%d" % (DOMAIN, f.port))
    equal(f.edge("GET", "/health", host="49983-%s.%s" % (o["sandboxID"], o["domain"]))[0], 204)
    equal(f.api("GET", "/v2/sandboxes", Host=host)[0], 200)
    equal(f.edge("GET", "/health", host="49983-%s.%s" % (NOWHERE["sandboxID"], DOMAIN)), not_found(NOWHERE))
    # a sandbox of another API has the same edge
    v0 = f.up("a")
    equal(f.edge("GET", "/health", {"sandboxID": v0["runtime_id"]})[0], 204)
    equal(f.edge("GET", "/files?path=/etc/hostname", {"sandboxID": v0["runtime_id"]},
                 X_Access_Token=v0["session_api_key"])[0], 200)


def each(case):
    def one(uid):
        with E2b(uid) as f:
            case(f)
    one.__name__ = case.__name__
    return one


def slow_bodies(uid):
    """A call that sends nothing of its body for a while ends; here the while is 2 seconds."""
    f = E2b(uid)
    conf, name = f.path("conf"), "handrail-fleet-routes.conf.in"
    shutil.copytree(f.env["HANDRAIL_DATADIR"], conf)
    with open(os.path.join(conf, name)) as routes:
        text = routes.read()
    equal(text.count("client_body_timeout 60s;"), 1)
    with open(os.path.join(conf, name), "w") as routes:
        routes.write(text.replace("client_body_timeout 60s;", "client_body_timeout 2s;"))
    f.env["HANDRAIL_DATADIR"] = conf
    with f:
        o = f.create()
        head = ("POST /process.Process/SendInput HTTP/1.1\r\nHost: a\r\nE2b-Sandbox-Id: %s\r\n"
                "E2b-Sandbox-Port: 49983\r\nX-Access-Token: %s\r\n"
                "Content-Type: application/json\r\nContent-Length: 2\r\n\r\n{" %
                (o["sandboxID"], o["envdAccessToken"])).encode()
        for rest, answers in ((b"}", (b"HTTP/1.1 501",)), (b"", (b"", b"HTTP/1.1 408"))):
            with socket.create_connection(("127.0.0.1", f.port), PATIENCE) as sock:
                began = time.monotonic()
                sock.sendall(head + rest)
                equal(sock.recv(4096)[:12] in answers, True)
                equal(rest == b"" and time.monotonic() - began < 1.5, False)


CASES = [each(c) for c in (refusals, signatures, programs, ingress, ids, signals, inputs, memory, other_ways,
                           direct, direct_alone, resets, killed_nginx, killed_keeper, killed_server, named)]
CASES.append(slow_bodies)

if __name__ == "__main__":
    sys.exit(run(CASES, made=contextlib.nullcontext))
