"""A provider of git repositories on this machine: what it is asked for by the API of each, and git
itself over HTTP, for those that know the token. It notes what it saw."""

import base64
import gzip
import http.server
import json
import os
import subprocess
import threading
import urllib.parse

from . import process


def make_repository(path, branch="main", other="other"):
    """A bare one, with a file, and another branch with another file."""
    work = path + ".work"
    git = ["git", "-c", "user.name=a", "-c", "user.email=b", "-C", work]
    env = dict(os.environ, GIT_CONFIG_GLOBAL="/dev/null", GIT_CONFIG_SYSTEM="/dev/null")
    subprocess.run(["git", "init", "-q", "-b", branch, work], env=env, check=True)
    for name, on in (("file", branch), ("more", other)):
        with open(os.path.join(work, name), "w") as f:
            f.write("in %s\n" % on)
        subprocess.run(git + ["add", "."], env=env, check=True)
        subprocess.run(git + ["commit", "-qm", name], env=env, check=True)
        if on == branch:
            subprocess.run(git + ["checkout", "-q", "-b", other], env=env, check=True)
    subprocess.run(git + ["checkout", "-q", branch], env=env, check=True)
    subprocess.run(["git", "clone", "-q", "--bare", work, path], env=env, check=True)
    # enough for a server that only hands out files
    subprocess.run(["git", "-C", path, "update-server-info"], env=env, check=True)


class GitServer:
    """tokens: {user of git: token}; new_token: what /api/refresh-tokens gives; smart: it packs, which a
    shallow clone needs, and does not only hand out files."""

    def __init__(self, top, tokens, new_token=None, smart=False):
        self.smart = smart
        self.tokens, self.seen, self.shown, self.refreshed = tokens, [], [], []
        outer = self

        class Handler(http.server.SimpleHTTPRequestHandler):
            def __init__(self, *argv):
                super().__init__(*argv, directory=top)

            def log_message(self, *unused):
                pass

            def answer(self, status, value=None, **headers):
                # descriptions of others need not be UTF-8
                body = b"" if value is None else json.dumps(value, ensure_ascii=False).encode("latin-1")
                self.send_response(status)
                for name, text in headers.items():
                    self.send_header(name.replace("_", "-"), text)
                self.send_header("Content-Length", str(len(body)))
                self.end_headers()
                self.wfile.write(body)

            def upload_pack(self, name, kind, before, *options, **more):
                """git's own half of a smart server."""
                done = subprocess.run(["git", "upload-pack", "--stateless-rpc", *options, top + name],
                                      stdout=subprocess.PIPE, **more)
                self.send_response(404 if done.returncode and not done.stdout else 200)
                self.send_header("Content-Type", "application/x-git-upload-pack-" + kind)
                self.send_header("Content-Length", str(len(before + done.stdout)))
                self.end_headers()
                self.wfile.write(before + done.stdout)

            def do_POST(self):
                outer.seen.append(self.path)
                body = self.rfile.read(int(self.headers["Content-Length"]))
                if self.headers.get("Content-Encoding") == "gzip":
                    body = gzip.decompress(body)
                self.upload_pack(self.path[:-len("/git-upload-pack")], "result", b"", input=body)

            def do_GET(self):
                outer.seen.append(self.path)
                given = self.headers.get("Authorization", "")
                if self.path.startswith("/api/refresh-tokens?"):
                    outer.refreshed.append((self.path, self.headers.get("X-Session-API-Key")))
                    self.answer(200, {"token": new_token, "by": "caf\xe9"})
                elif self.path.startswith(("/api/", "/2.0/")):
                    outer.api(self, given)
                elif given not in outer.basic():
                    self.answer(401, WWW_Authenticate='Basic realm="git"')
                elif self.path.endswith("/info/refs?service=git-upload-pack") and outer.smart:
                    self.upload_pack(self.path[:-len("/info/refs?service=git-upload-pack")], "advertisement",
                                     b"001e# service=git-upload-pack\n0000", "--advertise-refs")
                else:
                    # whoever asks is waiting: its command line can be seen
                    outer.shown += [line for line in map(process.command_line, process.all_pids())
                                    if any(t in line for t in outer.tokens.values())]
                    super().do_GET()

        self.http = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self.url = "http://127.0.0.1:%d" % self.http.server_address[1]
        self.thread = threading.Thread(target=self.http.serve_forever)

    def basic(self):
        return ["Basic " + base64.b64encode(("%s:%s" % pair).encode()).decode() for pair in self.tokens.items()]

    def api(self, handler, given):
        """The repositories that are there, for a token that is known."""
        path = urllib.parse.unquote(handler.path)
        known = given in ["Bearer " + t for t in self.tokens.values()] + self.basic()
        for prefix, member in (("/api/v3/repos/", "full_name"), ("/api/v4/projects/", "path_with_namespace"),
                               ("/2.0/repositories/", "full_name")):
            name = path[len(prefix):]
            if known and path.startswith(prefix) and os.path.isdir(os.path.join(handler.directory, name + ".git")):
                handler.answer(200, {member: name, "description": "caf\xe9"})
                return
        handler.answer(404 if known else 401, {"message": "no"})

    def __enter__(self):
        self.thread.start()
        return self

    def __exit__(self, *unused):
        self.http.shutdown()
        self.thread.join()
        self.http.server_close()
