"""A gRPC server on loopback, over python3-h2, whose answers can go wrong in every way. A method is a function
(server, request) that yields messages; it may raise Status. Without the package `missing` says so."""

import re
import socket
import struct
import threading

try:
    import h2.config
    import h2.connection
    import h2.events
    import h2.exceptions
    missing = None
except ImportError:
    missing = "python3-h2 is missing: apt-get install python3-h2"


class Status(Exception):
    def __init__(self, code, message=""):
        super().__init__(message)
        self.code, self.message = code, message


class Fault:
    """Of the next `times` requests whose path matches. kind: "status" (code, message) as trailers alone, "http"
    (status,
    headers), "drop" (the connection), "goaway", "reset": before it is carried out, or after it where `after` is set;
    "cut": after so many messages; "nostatus", "huge", "compressed", "garbage", "twice"."""

    def __init__(self, path, kind, times=1, **more):
        self.path, self.kind, self.times = re.compile(path), kind, times
        self.after, self.more = more.pop("after", False), more


class Request:
    def __init__(self, stream, headers):
        self.stream, self.headers, self.body = stream, headers, bytearray()
        self.path = headers.get(":path", "")

    def message(self):
        if len(self.body) < 5:
            return b""
        flags, n = struct.unpack(">BI", self.body[:5])
        assert flags == 0 and len(self.body) == 5 + n, "one whole message"
        return bytes(self.body[5:])


class Connection:
    def __init__(self, server, sock):
        self.server, self.sock, self.lock = server, sock, threading.Condition()
        self.h2 = h2.connection.H2Connection(h2.config.H2Configuration(client_side=False, header_encoding="utf-8"))
        self.requests, self.open = {}, True
        threading.Thread(target=self.run, daemon=True).start()

    def flush(self):
        try:
            self.sock.sendall(self.h2.data_to_send())
        except OSError:
            self.open = False

    def close(self):
        self.open = False
        try:
            self.sock.shutdown(socket.SHUT_RDWR)
        except OSError:
            pass

    def run(self):
        try:
            with self.lock:
                self.h2.initiate_connection()
                self.flush()
            while self.open:
                data = self.sock.recv(65536)
                if not data:
                    break
                with self.lock:
                    for e in self.h2.receive_data(data):
                        self.on(e)
                    self.flush()
                    self.lock.notify_all()
        except (OSError, h2.exceptions.ProtocolError):
            pass
        with self.lock:
            self.open = False
            self.lock.notify_all()
        self.sock.close()

    def on(self, e):
        if isinstance(e, h2.events.RequestReceived):
            self.requests[e.stream_id] = Request(e.stream_id, dict(e.headers))
        elif isinstance(e, h2.events.DataReceived):
            self.requests[e.stream_id].body += e.data
            self.h2.acknowledge_received_data(e.flow_controlled_length, e.stream_id)
        elif isinstance(e, h2.events.StreamEnded):
            r = self.requests[e.stream_id]
            threading.Thread(target=self.server.one, args=(self, r), daemon=True).start()
        elif isinstance(e, h2.events.StreamReset):
            self.requests.pop(e.stream_id, None)

    def alive(self, r):
        return self.open and r.stream in self.requests

    def headers(self, r, headers, end=False):
        with self.lock:
            if self.alive(r):
                self.h2.send_headers(r.stream, headers, end_stream=end)
                self.flush()

    def data(self, r, b):
        """Waits for room; False: nobody reads any more."""
        with self.lock:
            while b:
                if not self.alive(r):
                    return False
                room = min(self.h2.local_flow_control_window(r.stream), self.h2.max_outbound_frame_size)
                if room <= 0:
                    self.lock.wait()
                    continue
                self.h2.send_data(r.stream, bytes(b[:room]))
                b = b[room:]
                self.flush()
        return True

    def reset(self, r):
        with self.lock:
            if self.alive(r):
                self.h2.reset_stream(r.stream, 2)
                self.flush()

    def goaway(self):
        with self.lock:
            self.h2.close_connection(0)
            self.flush()
        self.close()


def frame(b, flags=0):
    return struct.pack(">BI", flags, len(b)) + b


class Server:
    def __init__(self):
        self.methods, self.faults, self.seen, self.lock = {}, [], [], threading.RLock()
        self.listening = socket.create_server(("127.0.0.1", 0))
        self.url = "http://127.0.0.1:%d" % self.listening.getsockname()[1]
        self.connections = []
        threading.Thread(target=self.accept, daemon=True).start()

    def __enter__(self):
        return self

    def __exit__(self, *unused):
        try:
            self.listening.shutdown(socket.SHUT_RDWR)
        except OSError:
            pass
        self.listening.close()
        for c in self.connections:
            c.close()

    def accept(self):
        while True:
            try:
                sock, _ = self.listening.accept()
            except OSError:
                return
            self.connections.append(Connection(self, sock))

    def fault(self, *args, **more):
        self.faults.append(Fault(*args, **more))

    def take_fault(self, r):
        with self.lock:
            self.seen.append((r.path.rsplit("/", 1)[1], r.headers, r.message()))
            for f in self.faults:
                if f.times > 0 and f.path.search(r.path):
                    f.times -= 1
                    return f
        return None

    def count(self, name):
        return sum(1 for s in self.seen if s[0] == name)

    def status(self, c, r, code, message="", begun=False):
        trailers = [("grpc-status", str(code))] + ([("grpc-message", message)] if message else [])
        if not begun:
            trailers = [(":status", "200"), ("content-type", "application/grpc")] + trailers
        c.headers(r, trailers, True)

    def one(self, c, r):
        f = self.take_fault(r)
        if f is not None and not f.after and self.early(c, r, f):
            return
        try:
            self.answer(c, r, f)
        except h2.exceptions.ProtocolError:
            pass

    def early(self, c, r, f):
        if f.kind == "status":
            self.status(c, r, f.more["code"], f.more.get("message", "injected"))
        elif f.kind == "http":
            c.headers(r, [(":status", str(f.more["status"]))] + list(f.more.get("headers", {}).items()), True)
        elif f.kind == "drop":
            c.close()
        elif f.kind == "goaway":
            c.goaway()
        elif f.kind == "reset":
            c.reset(r)
        else:
            return False
        return True

    def answer(self, c, r, f):
        begun, n = False, 0
        kind = f.kind if f is not None else None
        flags = 1 if kind == "compressed" else 0
        try:
            method = self.methods.get(r.path.rsplit("/", 1)[1])
            if method is None:
                raise Status(12, "unknown method")
            for m in method(r):
                if kind == "cut" and n >= f.more["messages"]:
                    # in the middle of a message
                    c.data(r, frame(m)[:7])
                    return c.reset(r)
                n += 1
                if f is not None and f.after:
                    continue
                if not begun:
                    c.headers(r, [(":status", "200"), ("content-type", "application/grpc")])
                    begun = True
                if kind == "huge":
                    m = struct.pack(">BI", 0, 0xfffffff0) + m
                elif kind == "garbage":
                    m = frame(b"\xff\xff\xff")
                else:
                    m = frame(m, flags) * (2 if kind == "twice" else 1)
                if not c.data(r, m):
                    return None
        except Status as s:
            return self.status(c, r, s.code, s.message, begun)
        if f is not None and f.after:
            return self.early(c, r, f)
        if kind == "nostatus":
            return c.headers(r, [("x-nothing", "1")], True)
        if kind == "cut":
            return c.reset(r)
        return self.status(c, r, 0, begun=begun)
