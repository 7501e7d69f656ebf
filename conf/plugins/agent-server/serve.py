"""Runs OpenHands' own agent server on the socket that handraild gives to a plugin: handrail-plugin(5).

nginx checks the session key of all requests but WebSockets, which may carry it in their first message. The server has a
key of its own, which is made here and which no other process gets. The Gate exchanges the client's key for this one.
Without session keys it refuses web pages of other origins, which could run commands, as a worker does."""

import ctypes
import hashlib
import hmac
import json
import os
import re
import secrets
import struct
import sys
import urllib.parse

READY, HTTP, SUMS = 3, 5, 6
HEAD = struct.Struct("=32sII")  # salt, number of sums, length of the longest key
NAME, HEADER, CHECKED = "session_api_key", b"x-session-api-key", b"x-handrail-checked"
ALLOWED, FRONT = b"x-handrail-cors", b"x-handrail-front"
HERE = re.compile(r"(localhost|127\.0\.0\.1|\[::1\])(:[0-9]*)?(/.*)?", re.I | re.S)
PR_SET_DUMPABLE = 4


def say(word):
    try:
        os.write(READY, word.encode() + b"\n")
        os.close(READY)
    except OSError:
        pass  # has already been said


def sums():
    """Returns the salt and the sums of the session keys; None while they are written. No sums: no key is needed."""
    data = os.pread(SUMS, 4 << 20, 0)
    if len(data) < HEAD.size:
        return None
    salt, count, _ = HEAD.unpack_from(data)
    if len(data) != HEAD.size + 32 * count:
        return None
    return salt, [data[at:at + 32] for at in range(HEAD.size, len(data), 32)]


def known(key):
    have = sums()
    if have is None or not isinstance(key, str):
        return False
    digest = hashlib.sha256(have[0] + key.encode("utf-8", "surrogatepass")).digest()
    # compares with all of them, so that the time says nothing
    return sum([hmac.compare_digest(digest, one) for one in have[1]]) > 0


def is_key(key, front):
    """Returns true for a session key, and for the key of which `front` is the sum."""
    return known(key) or (front is not None and isinstance(key, str) and hmac.compare_digest(
        hashlib.sha256(key.encode("utf-8", "surrogatepass")).hexdigest(), front))


def needless():
    have = sums()
    return have is not None and not have[1]


def from_here(headers):
    """Returns false for a request of a web page of another origin, which the settings do not allow either.
    hr_request_from_here() has the same rules."""
    if ALLOWED in headers:  # nginx sets this header, or removes it
        return True
    origin, host, scheme = (headers.get(name, b"").decode("latin1").lower()
                            for name in (b"origin", b"host", b"x-forwarded-proto"))
    kind, _, at = origin.partition("://")
    return not origin or bool(HERE.fullmatch(at)) or (kind == scheme == "https" and at == host)


async def refuse(scope, send):
    if scope["type"] == "websocket":
        return await send({"type": "websocket.close", "code": 1008})
    await send({"type": "http.response.start", "status": 403, "headers": [(b"content-type", b"application/json")]})
    await send({"type": "http.response.body", "body": b'{"detail":"This origin is not allowed"}'})


class Gate:
    def __init__(self, app, own):
        self.app, self.own = app, own

    def with_own(self, scope):
        headers = [h for h in scope["headers"] if h[0] not in (HEADER, CHECKED)]
        return dict(scope, headers=headers + [(HEADER, self.own.encode())])

    def take_front(self, scope):
        """Returns the sum of the key that a fleet's clients have in place of the session key, and the scope without it.
        Only the fleet knows the session key, and so can name that sum."""
        headers, front = [], None
        for name, value in scope["headers"]:
            if name == FRONT:
                key, _, digest = value.decode("latin1").partition(" ")
                front = digest if known(key) else None
            elif name != ALLOWED:
                headers.append((name, value))
        return front, dict(scope, headers=headers)

    def given(self, scope):
        for name, value in scope["headers"]:
            if name == HEADER:
                return value.decode("utf-8", "replace")
        query = urllib.parse.parse_qs(scope["query_string"].decode("latin1"), keep_blank_values=True)
        return query.get(NAME, [None])[-1]

    def without_query(self, scope):
        pairs = urllib.parse.parse_qsl(scope["query_string"].decode("latin1"), keep_blank_values=True)
        query = urllib.parse.urlencode([p for p in pairs if p[0] != NAME])
        return dict(scope, query_string=query.encode("latin1"))

    def first_message(self, receive, front):
        state = {"first": True}

        async def changed():
            message = await receive()
            if message["type"] != "websocket.receive" or not state["first"]:
                return message
            state["first"] = False
            try:
                data = json.loads(message.get("text") or "")
            except (ValueError, RecursionError):
                return message
            if isinstance(data, dict) and data.get("type") == "auth" and is_key(data.get(NAME), front):
                message = dict(message, text=json.dumps(dict(data, **{NAME: self.own})))
            return message
        return changed

    async def __call__(self, scope, receive, send):
        if scope["type"] in ("http", "websocket") and needless() and not from_here(dict(scope["headers"])):
            return await refuse(scope, send)
        if scope["type"] in ("http", "websocket"):
            front, scope = self.take_front(scope)
        if scope["type"] in ("http", "websocket") and (CHECKED, b"1") in scope["headers"]:
            scope = self.with_own(scope)
        elif scope["type"] == "websocket":
            key = self.given(scope)
            if needless() or (key is not None and is_key(key, front)):
                scope = self.with_own(self.without_query(scope))
            elif key is None:
                receive = self.first_message(receive, front)
        await self.app(scope, receive, send)


def secret():
    """Returns the secret with which the server encrypts what it stores. It lasts as long as the sandbox's server."""
    path = os.path.join(os.environ["HANDRAIL_STATE_DIR"], "secret")
    try:
        with open(path) as f:
            return f.read()
    except FileNotFoundError:
        made = secrets.token_hex(32)
        with open(os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600), "w") as f:
            f.write(made)
        return made


def set_variables(own):
    workspace = os.environ.get("HANDRAIL_WORKSPACE", ".")
    for name, value in (("OH_CONVERSATIONS_PATH", "conversations"), ("OH_WORKSPACE_PATH", "project"),
                        ("OH_BASH_EVENTS_DIR", "bash_events")):
        os.environ.setdefault(name, os.path.join(workspace, value))
    os.environ.setdefault("OH_ENABLE_VSCODE", "false")
    if not os.environ.get("OH_SECRET_KEY"):
        os.environ["OH_SECRET_KEY"] = secret()
    for name in [n for n in os.environ if n.startswith(("OH_SESSION_API_KEYS", "HANDRAIL_"))]:
        del os.environ[name]
    os.environ["OH_SESSION_API_KEYS_0"] = own


def hide():
    """Keeps the keys from the server's children: the first shell's tmux would show them to all commands."""
    for name in ("OH_SECRET_KEY", "OH_SESSION_API_KEYS_0"):
        os.environ.pop(name, None)


def serve():
    # other processes of the account, among them the agent's commands, cannot read this one's memory and environment
    if ctypes.CDLL(None, use_errno=True).prctl(PR_SET_DUMPABLE, 0, 0, 0, 0) != 0:
        raise OSError(ctypes.get_errno(), "PR_SET_DUMPABLE")
    for fd in (READY, HTTP, SUMS):
        os.set_inheritable(fd, False)
    modules = os.environ.get("HANDRAIL_AGENT_SERVER_MODULES")
    own = secrets.token_hex(32)
    set_variables(own)
    sys.argv = ["agent-server", "--host", "127.0.0.1"] + (["--import-modules", modules] if modules else [])
    from openhands.agent_server import __main__ as original
    config, server = original.Config, original.LoggingServer

    def on_socket(app, host=None, port=None, **words):
        from openhands.agent_server.api import api
        hide()  # the server has read its configuration
        return config(Gate(api, own), fd=HTTP, **words)

    class Server(server):
        async def startup(self, *args, **words):
            await super().startup(*args, **words)
            hide()  # the server has set its variable again
            if self.started:
                say("ready")

    original.Config, original.LoggingServer = on_socket, Server
    original.main()


if __name__ == "__main__":
    try:
        serve()
    except BaseException as e:
        say("failed %s: %s" % (type(e).__name__, " ".join(str(e).split())[:180]))
        raise
