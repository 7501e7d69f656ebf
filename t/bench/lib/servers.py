"""The servers that are compared: handrail, the floors, a reference. Each knows its processes."""

import http.client
import os
import select
import shutil
import signal
import socket
import subprocess
import tempfile
import time
import urllib.parse

from . import procs
from .tools import PATH, Failed

START_SECONDS = 60

FLOOR_CONF = """daemon off;
worker_processes 1;
pid {dir}/nginx.pid;
error_log stderr error;
events {{ worker_connections 4096; }}
http {{
	access_log off;
	client_body_temp_path {dir}/body;
	fastcgi_temp_path {dir}/fastcgi;
	proxy_temp_path {dir}/proxy;
	scgi_temp_path {dir}/scgi;
	uwsgi_temp_path {dir}/uwsgi;
	keepalive_requests 1000000;
	server {{
		listen {host}:{port} backlog=4096;
		default_type application/json;
		location = /return {{ return 200 '{{"status":"ok"}}'; }}
		location = /fcgi {{
			fastcgi_keep_conn off;
			fastcgi_pass_request_headers off;
			fastcgi_param REQUEST_METHOD $request_method;
			fastcgi_param REQUEST_URI $request_uri;
			fastcgi_param CONTENT_TYPE $content_type;
			fastcgi_param CONTENT_LENGTH $content_length;
			fastcgi_pass unix:{dir}/fcgi.sock;
		}}
		location = /drop {{
			client_max_body_size 0;
			client_body_buffer_size 128k;
			fastcgi_request_buffering off;
			fastcgi_keep_conn off;
			fastcgi_pass_request_headers off;
			fastcgi_param REQUEST_METHOD $request_method;
			fastcgi_param CONTENT_LENGTH $content_length;
			fastcgi_pass unix:{dir}/fcgi.sock;
		}}
	}}
}}
"""


def free_port():
    with socket.socket() as s:
        s.bind(("127.0.0.1", 0))
        return s.getsockname()[1]


def wait_port(address, process, log):
    """Until the port is open. A benchmark may look every few milliseconds; the product does not."""
    end = time.monotonic() + START_SECONDS
    while True:
        try:
            socket.create_connection(address, 1).close()
            return
        except OSError:
            if process.poll() is not None or time.monotonic() > end:
                with open(log, errors="replace") as f:
                    raise Failed("%s does not listen:\n%s" % (process.args[0], f.read()[-3000:]))
            time.sleep(0.01)


def settle(server):
    """Until the number of processes has stood still for 2.5 s: the last workers start two seconds after readiness."""
    last, same = -1, 0
    while same < 50:
        time.sleep(0.05)
        now = len(server.pids())
        same = same + 1 if now == last else 0
        last = now


def _spawn(args, log, **more):
    with open(log, "ab") as out:
        return subprocess.Popen(args, stdin=subprocess.DEVNULL, stdout=out, stderr=out, **more)


def _stop(process):
    if process is None:
        return
    if process.poll() is None:
        process.send_signal(signal.SIGTERM)
    try:
        process.wait(20)
    except subprocess.TimeoutExpired:
        process.kill()
        process.wait()


class Floors:
    """One nginx: /return answers by itself, /fcgi asks an empty libfcgi program."""

    who = "floor"

    def __init__(self, tools, nginx):
        self.tools, self.nginx_path = tools, nginx
        self.dir = tempfile.mkdtemp(prefix="bench-floor-")
        os.chmod(self.dir, 0o755)
        self.address = ("127.0.0.1", free_port())
        self.log = os.path.join(self.dir, "log")
        self.nginx = self.fcgi = None
        self.conf = self._write_conf(self.dir, self.address[1])

    @staticmethod
    def _write_conf(directory, port):
        path = os.path.join(directory, "nginx.conf")
        with open(path, "w") as f:
            f.write(FLOOR_CONF.format(dir=directory, host="127.0.0.1", port=port))
        return path

    def start(self):
        path = os.path.join(self.dir, "fcgi.sock")
        self.fcgi = subprocess.Popen([self.tools.path("bench_fcgi"), path, "2"],
                                     stdin=subprocess.DEVNULL, stdout=subprocess.PIPE)
        if self.fcgi.stdout.readline() != b"listening\n":
            raise Failed("bench_fcgi does not listen")
        os.chmod(path, 0o666)  # nginx's workers are not root
        self.nginx = _spawn(self.nginx_args(), self.log)
        wait_port(self.address, self.nginx, self.log)

    def nginx_args(self):
        return [self.nginx_path, "-c", self.conf, "-p", self.dir]

    def pids(self):
        return procs.tree(self.nginx.pid, self.fcgi.pid)

    def stop(self):
        _stop(self.nginx)
        _stop(self.fcgi)
        if self.fcgi is not None:
            self.fcgi.stdout.close()
        shutil.rmtree(self.dir, ignore_errors=True)


class Handrail:
    """A handraild of our own with everything it starts, below a directory of its own."""

    who = "handrail"
    headers = ()

    def __init__(self, program, libexecdir=None, datadir=None, options=()):
        self.program, self.options = program, list(options)
        self.dir = tempfile.mkdtemp(prefix="bench-handrail-")
        os.chmod(self.dir, 0o755)
        self.work_dir = os.path.join(self.dir, "work")
        os.mkdir(self.work_dir)
        self.run_dir = os.path.join(self.dir, "run")
        self.log = os.path.join(self.dir, "log")
        self.address = ("127.0.0.1", free_port())
        self.process = None
        # No start-up files, whoever runs this: they would be all that is measured.
        self.env = {"PATH": PATH, "HOME": "/nonexistent", "LANG": "C.UTF-8",
                    "HANDRAIL_VIEWER_URL_FILE": ""}
        self.user = "bench"
        if os.geteuid() == 0:
            self.env["RUNTIME_USERNAME"] = self.user = "nobody"
        else:
            self.env["USER"] = self.user
        if libexecdir:
            self.env["HANDRAIL_LIBEXECDIR"] = libexecdir
        if datadir:
            self.env["HANDRAIL_DATADIR"] = datadir

    def args(self):
        return [self.program, str(self.address[1]), "--working-dir", self.work_dir,
                "--username", self.user, "--no-enable-browser",
                "--listen", self.address[0], "--run-dir", self.run_dir,
                "--state-dir", os.path.join(self.dir, "state")] + self.options

    def start(self):
        path = os.path.join(self.dir, "notify")
        with socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM) as told:
            told.bind(path)
            self.process = _spawn(self.args(), self.log, env=dict(self.env, NOTIFY_SOCKET=path), cwd="/")
            self._until_ready(told)
        settle(self)

    def _until_ready(self, told):
        """Or until it has ended."""
        end, ended = time.monotonic() + START_SECONDS, os.pidfd_open(self.process.pid)
        try:
            while told in select.select([told, ended], [], [], max(0, end - time.monotonic()))[0]:
                if b"READY=1" in told.recv(4096).split(b"\n"):
                    return
        finally:
            os.close(ended)
        raise Failed("it does not become ready:\n" + self.log_tail())

    def pids(self):
        return procs.tree(self.process.pid)

    def session_socket(self):
        """None: not there, or not where this build has it."""
        path = os.path.join(self.run_dir, "session.sock")
        return path if os.path.exists(path) else None

    def log_tail(self):
        with open(self.log, errors="replace") as f:
            return f.read()[-2000:]

    def stop(self):
        _stop(self.process)
        shutil.rmtree(self.dir, ignore_errors=True)


class Remote:
    """A server somebody else has started: the reference, or a handrail given by its address."""

    session_socket_path = None

    def __init__(self, who, url, key=None, pid=None):
        parts = urllib.parse.urlsplit(url)
        if parts.scheme != "http" or not parts.hostname:
            raise Failed("not an http:// address: %s" % url)
        self.who, self.pid = who, pid
        self.address = (socket.gethostbyname(parts.hostname), parts.port or 80)
        self.headers = ("X-Session-API-Key: " + key,) if key else ()
        self.work_dir = self.run_dir = None
        connection = http.client.HTTPConnection(*self.address, timeout=30)
        connection.request("GET", "/alive")
        status = connection.getresponse().status
        connection.close()
        if status != 200:
            raise Failed("%s/alive answers %d" % (url, status))

    def start(self):
        pass

    def pids(self):
        return procs.tree(self.pid) if self.pid else []

    def session_socket(self):
        return None

    def stop(self):
        pass
