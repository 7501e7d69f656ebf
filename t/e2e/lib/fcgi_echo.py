"""A FastCGI worker for tests: answers with the variables it got, as JSON; with "die" it ends instead of
answering anything but /alive. Listens on descriptor 0."""

import json
import os
import socket
import struct
import sys

BEGIN, END, PARAMS, STDIN, STDOUT = 1, 3, 4, 5, 6


def exactly(c, n):
    data = b""
    while len(data) < n:
        more = c.recv(n - len(data))
        if not more:
            raise EOFError
        data += more
    return data


def record(kind, request, data):
    return struct.pack(">BBHHBB", 1, kind, request, len(data), 0, 0) + data


def variables(data):
    at, found = 0, {}
    while at < len(data):
        sizes = []
        for _ in range(2):
            n = data[at]
            if n >> 7:
                n = struct.unpack_from(">I", data, at)[0] & 0x7FFFFFFF
                at += 3
            at += 1
            sizes.append(n)
        name = data[at:at + sizes[0]].decode()
        found[name] = data[at + sizes[0]:at + sum(sizes)].decode()
        at += sum(sizes)
    return found


def serve(c, die):
    params = body = b""
    while True:
        _, kind, request, length, padding, _ = struct.unpack(">BBHHBB", exactly(c, 8))
        data = exactly(c, length + padding)[:length]
        if kind == PARAMS:
            params += data
        elif kind == STDIN and data:
            body += data
        elif kind == STDIN:
            break
    got = variables(params)
    if got["REQUEST_URI"] == "/alive":
        text = b'{"status":"ok"}'
    elif die:
        os._exit(1)
    else:
        text = json.dumps(dict(got, body=body.decode())).encode()
    c.sendall(record(STDOUT, request, b"Content-Type: application/json\r\n\r\n" + text) +
              record(STDOUT, request, b"") + record(END, request, bytes(8)))


def main():
    listener = socket.socket(fileno=0)
    listener.setblocking(True)
    while True:
        c, _ = listener.accept()
        with c:
            try:
                serve(c, sys.argv[1:] == ["die"])
            except EOFError:
                pass


main()
