"""A stand-in for OpenHands' agent server: the names that the plugin changes, its checks of the key, and its HTTP and
WebSockets over a given socket. test_agent_server.py installs it as openhands.agent_server.__main__."""

import asyncio
import ctypes
import json
import os
import socket
import struct
import sys
import urllib.parse

OWN = os.environ.get("OH_SESSION_API_KEYS_0", "")
SECRET = os.environ.get("OH_SECRET_KEY", "")


async def api(scope, receive, send):
    headers = {k.decode(): v.decode() for k, v in scope["headers"]}
    if scope["type"] == "http":
        good = headers.get("x-session-api-key") == OWN
        body = {"detail": "Unauthorized"}
        if good:
            query = scope["query_string"].decode()
            body = {"path": scope["path"], "query": query, "headers": sorted(headers), "environ": dict(os.environ),
                    "secret": len(SECRET), "argv": sys.argv, "cwd": os.getcwd(), "pid": os.getpid(),
                    "dumpable": ctypes.CDLL(None).prctl(3, 0, 0, 0, 0), "body": (await receive())["body"].decode()}
        # pages of any origin may read it, as the original lets them read files of a workspace
        cors = [(b"Access-Control-Allow-Origin", headers.get("origin", "*").encode())]
        await send({"type": "http.response.start", "status": 200 if good else 401, "headers": cors})
        return await send({"type": "http.response.body", "body": json.dumps(body).encode()})
    query = dict(urllib.parse.parse_qsl(scope["query_string"].decode()))
    key = headers.get("x-session-api-key") or query.get("session_api_key")
    await receive()
    await send({"type": "websocket.accept"})
    if key is None:
        key = json.loads((await receive())["text"]).get("session_api_key")
    await send({"type": "websocket.send", "text": "open" if key == OWN else "refused"})
    while key == OWN:
        message = await receive()
        if message["type"] == "websocket.disconnect":
            break
        await send({"type": "websocket.send", "text": message["text"]})


class Config:
    def __init__(self, app, fd=None, **words):
        self.app, self.fd = app, fd


class LoggingServer:
    def __init__(self, config):
        self.config, self.started = config, False

    async def startup(self):
        os.environ["OH_SESSION_API_KEYS_0"] = OWN  # as the original does it
        listener = socket.socket(fileno=self.config.fd)
        self.server = await asyncio.start_unix_server(self.client, sock=listener)
        self.started = True

    def run(self):
        async def forever():
            await self.startup()
            await self.server.serve_forever()
        asyncio.run(forever())

    async def client(self, reader, writer):
        try:
            await self.request(reader, writer)
        except (asyncio.IncompleteReadError, ConnectionError):
            pass
        writer.close()

    async def request(self, reader, writer):
        lines = (await reader.readuntil(b"\r\n\r\n")).decode("latin1").split("\r\n")
        method, target, _ = lines[0].split(" ")
        headers = [tuple(x.strip().encode("latin1") for x in line.split(":", 1)) for line in lines[1:] if line]
        headers = [(k.lower(), v) for k, v in headers]
        path, _, query = target.partition("?")
        ws = dict(headers).get(b"upgrade") == b"websocket"
        scope = {"type": "websocket" if ws else "http", "method": method, "path": urllib.parse.unquote(path),
                 "query_string": query.encode(), "headers": headers}
        began = []
        # also without a receive(): the rest of a body that is not read would cut the answer off
        body = await reader.readexactly(int(dict(headers).get(b"content-length", 0)))

        async def receive():
            if not ws:
                return {"type": "http.request", "body": body}
            if not began:
                began.append(True)
                return {"type": "websocket.connect"}
            first, size = await reader.readexactly(2)
            size &= 127
            if size == 126:
                size, = struct.unpack(">H", await reader.readexactly(2))
            mask, data = await reader.readexactly(4), await reader.readexactly(size)
            text = bytes(b ^ mask[i % 4] for i, b in enumerate(data)).decode()
            return {"type": "websocket.disconnect"} if first & 15 == 8 else {"type": "websocket.receive", "text": text}

        async def send(message):
            if message["type"] == "http.response.start":
                head = [b"HTTP/1.1 %d x" % message["status"], b"Connection: close"]
                writer.write(b"\r\n".join(head + [b"%s: %s" % h for h in message["headers"]] + [b"", b""]))
            elif message["type"] == "websocket.close":
                writer.write(b"HTTP/1.1 403 x\r\nConnection: close\r\n\r\n")
            elif message["type"] == "http.response.body":
                writer.write(message["body"])
            elif message["type"] == "websocket.accept":
                writer.write(b"HTTP/1.1 101 x\r\nUpgrade: websocket\r\nConnection: Upgrade\r\n\r\n")
            else:
                data = message["text"].encode()
                writer.write(b"\x81" + bytes([len(data)]) + data)
            await writer.drain()

        await self.config.app(scope, receive, send)


def main():
    if "broken" in os.environ.get("OH_STAND_IN", ""):
        raise RuntimeError("this one is broken")
    server = LoggingServer(Config("openhands.agent_server.api:api", host="127.0.0.1", port=8000, ws="wsproto"))
    server.run()
