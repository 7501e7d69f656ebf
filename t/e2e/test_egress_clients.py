#!/usr/bin/env python3
"""Clients of TLS in a box whose hosts have rules for requests: each accepts the certificate of the box's own authority,
by the variables and files that the box has (doc/host.md, "The network of a box"), and sends the placeholder of a
credential, for which the server sees the secret. Registries are the test's own."""

import base64
import functools
import gzip
import hashlib
import http.server
import io
import json
import os
import shutil
import subprocess
import sys
import tarfile
import zipfile

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
from lib import process  # noqa: E402
from lib.box import need_launcher  # noqa: E402
from lib.host import BUILD  # noqa: E402
from lib.hostbox import UID, why_none  # noqa: E402
from lib.tap import Skip, Tap, equal, skip_all  # noqa: E402
from test_egress import World  # noqa: E402

PLACES = "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/usr/local/go/bin"
PYTHON = "/usr/lib/python3/dist-packages/"
RUST = "/opt/e2e-rust"  # of a toolchain that the test's account has elsewhere
JAVA = """public class Get { public static void main(String[] a) throws Exception {
java.net.URLConnection c = new java.net.URL(a[0]).openConnection();
c.setRequestProperty("Authorization", a[1]); System.out.println(new String(c.getInputStream().readAllBytes())); } }"""
VALUE = "the-real-value-of-the-test"
BEARER, BASIC = "Bearer " + VALUE, "Basic " + base64.b64encode(b"x:" + VALUE.encode()).decode()
SEEN = {"www": BEARER, "npm": BEARER, "pypi": BASIC, "golang": BASIC, "crates": VALUE, "apt": BASIC}
HELLO = b"hello of the test\n"


def tar(**files):
    out = io.BytesIO()
    with tarfile.open(fileobj=out, mode="w:gz") as t:
        for name, text in files.items():
            info = tarfile.TarInfo(name)
            info.size = len(text)
            t.addfile(info, io.BytesIO(text.encode()))
    return out.getvalue()


def archive(**files):
    out = io.BytesIO()
    with zipfile.ZipFile(out, "w") as z:
        for name, text in files.items():
            z.writestr(name, text)
    return out.getvalue()


@functools.lru_cache(maxsize=None)  # archives have the time in them, and their sums must stay
def registries(port):
    """(host, path) -> the bytes of five registries with one package each."""
    at = "https://%%s.example:%d" % port
    wheel = archive(**{
        "e2epkg.py": "", "e2epkg-1.0.dist-info/METADATA": "Metadata-Version: 2.1\nName: e2epkg\nVersion: 1.0\n",
        "e2epkg-1.0.dist-info/WHEEL": "Wheel-Version: 1.0\nRoot-Is-Purelib: true\nTag: py3-none-any\n",
        "e2epkg-1.0.dist-info/RECORD": ""})
    node = tar(**{"package/package.json": '{"name": "e2epkg", "version": "1.0.0"}'})
    crate = tar(**{"e2epkg-1.0.0/Cargo.toml": '[package]\nname = "e2epkg"\nversion = "1.0.0"\nedition = "2021"\n',
                   "e2epkg-1.0.0/src/lib.rs": ""})
    module = "module e2e.example/pkg\n"
    deb = b"no package, but its bytes"
    return {
        ("www", "/hello"): HELLO,
        ("pypi", "/simple/e2epkg/"): b'<a href="/e2epkg-1.0-py3-none-any.whl">e2epkg-1.0-py3-none-any.whl</a>',
        ("pypi", "/e2epkg-1.0-py3-none-any.whl"): wheel,
        ("npm", "/e2epkg"): json.dumps({"name": "e2epkg", "dist-tags": {"latest": "1.0.0"}, "versions": {"1.0.0": {
            "name": "e2epkg", "version": "1.0.0", "dist": {
                "tarball": at % "npm" + "/e2epkg.tgz",
                "integrity": "sha512-" + base64.b64encode(hashlib.sha512(node).digest()).decode()}}}}).encode(),
        ("npm", "/e2epkg.tgz"): node,
        ("crates", "/index/config.json"): json.dumps({"dl": at % "crates" + "/dl/{crate}/{version}",
                                                      "auth-required": True}).encode(),
        ("crates", "/index/e2/ep/e2epkg"): json.dumps({
            "name": "e2epkg", "vers": "1.0.0", "deps": [], "features": {}, "yanked": False,
            "cksum": hashlib.sha256(crate).hexdigest()}).encode() + b"\n",
        ("crates", "/dl/e2epkg/1.0.0"): crate,
        ("golang", "/e2e.example/pkg/@v/v1.0.0.info"): b'{"Version": "v1.0.0"}',
        ("golang", "/e2e.example/pkg/@v/v1.0.0.mod"): module.encode(),
        ("golang", "/e2e.example/pkg/@v/v1.0.0.zip"): archive(**{"e2e.example/pkg@v1.0.0/go.mod": module}),
        ("apt", "/./Packages.gz"): gzip.compress(
            b"Package: e2e-pkg\nVersion: 1\nArchitecture: all\nMaintainer: a <a@b>\nFilename: ./e2e-pkg.deb\n"
            b"Size: %d\nSHA256: %s\nDescription: x\n" % (len(deb), hashlib.sha256(deb).hexdigest().encode())),
        ("apt", "/./e2e-pkg.deb"): deb,
    }


class Registry(http.server.BaseHTTPRequestHandler):
    def do_GET(self):
        host = self.headers["Host"].split(".")[0]
        self.server.seen.append((host, self.headers.get("Authorization")))
        path = self.path if self.path.startswith("/./") or host != "apt" else "/." + self.path
        body = registries(self.server.server_address[1]).get((host, path))
        known = self.headers.get("Authorization") is not None  # go and cargo send what they have only if they are asked
        if not known:
            body = None
        self.send_response(401 if not known else 404 if body is None else 200)
        self.send_header("WWW-Authenticate", "Basic realm=\"e2e\"")
        self.send_header("Content-Type", "text/html" if path.startswith("/simple/") else "application/octet-stream")
        self.send_header("Content-Length", str(len(body or b"")))
        self.end_headers()
        self.wfile.write(body or b"")

    def log_message(self, *unused):
        pass


# The rows: name, {program or file: package}, host, script; $AT is the server with its port.
FETCH = 'https://www.example:$AT/hello "Bearer $API_TOKEN"'
HEADER = '-%s "Authorization: Bearer $API_TOKEN" https://www.example:$AT/hello'
APT = ("mkdir -p lists/partial cache/archives/partial; "
       "echo \"deb [trusted=yes] https://apt.example:$AT/ ./\" >sources; "
       "apt-get() { command apt-get -qq -o Dir::Etc::SourceList=$PWD/sources -o Dir::Etc::SourceParts=/dev/null "
       "-o Dir::State::Lists=$PWD/lists -o Dir::Cache=$PWD/cache -o APT::Sandbox::User= "
       "-o Acquire::Languages=none -o Dir::Etc::netrc=$PWD/auth.conf \"$@\"; }; "
       "echo \"machine apt.example:$AT login x password $API_TOKEN\" >auth.conf; ")
# go compares the port, too, and pip does not
NETRC = ("for at in %s.example{,:$AT}; do echo \"machine $at login x password $API_TOKEN\"; done >netrc; "
         "export NETRC=$PWD/netrc; ")
PIP = ("/usr/bin/pip3 -q download --no-deps --index-url https://%spypi.example:$AT/simple/ e2epkg; "
       "test -s e2epkg-1.0-py3-none-any.whl")
GO = ("printf 'module x\\n' >go.mod; GOFLAGS=-modcacherw GOMODCACHE=$PWD/mod GOTOOLCHAIN=local GOSUMDB=off "
      "GOPROXY=https://%sgolang.example:$AT go mod download e2e.example/pkg@v1.0.0; "
      "ls mod/e2e.example/pkg@v1.0.0/go.mod")
CLIENTS = [
    ("curl", {"curl": "curl"}, "www", "curl -sSf %s >got" % HEADER % "H"),
    ("wget", {"wget": "wget"}, "www", "wget -qO got %s" % HEADER % "-header"),
    ("python urllib", {"/usr/bin/python3": "python3"}, "www",
     "/usr/bin/python3 -c 'import sys, urllib.request as u; print(u.urlopen(u.Request(sys.argv[1], headers={"
     "\"Authorization\": sys.argv[2]})).read().decode())' %s >got" % FETCH),
    ("python requests", {PYTHON + "requests": "python3-requests"}, "www",
     "/usr/bin/python3 -c 'import requests as r, sys; print(r.get(sys.argv[1], headers={"
     "\"Authorization\": sys.argv[2]}).text)' %s >got" % FETCH),
    ("python httpx", {PYTHON + "httpx": "python3-httpx"}, "www",
     "/usr/bin/python3 -c 'import httpx as r, sys; print(r.get(sys.argv[1], headers={"
     "\"Authorization\": sys.argv[2]}).text)' %s >got" % FETCH),
    ("node fetch", {"node": "nodejs"}, "www",
     "node -e 'fetch(process.argv[1], {headers: {Authorization: process.argv[2]}}).then(r => r.text())"
     ".then(t => process.stdout.write(t))' %s >got" % FETCH),
    ("java", {"java": "default-jdk-headless", "javac": "default-jdk-headless", "keytool": "default-jdk-headless"},
     "www", "cat >Get.java <<'E'\n%s\nE\nif java Get.java %s >got 2>err; then exit 9; fi; grep -q PKIX err; "
     "keytool -importcert -noprompt -alias handrail -file /etc/ssl/handrail-ca.crt -keystore keys -storepass changeit "
     "2>err; "
     "java -Djavax.net.ssl.trustStore=keys -Djavax.net.ssl.trustStorePassword=changeit Get.java %s >got"
     % (JAVA, FETCH, FETCH)),
    ("pip", {"/usr/bin/pip3": "python3-pip"}, "pypi", PIP % "x:$API_TOKEN@"),
    ("pip with netrc", {"/usr/bin/pip3": "python3-pip"}, "pypi", NETRC % "pypi" + PIP % ""),
    ("npm", {"npm": "npm"}, "npm",
     "npm init -y >/dev/null; echo \"//npm.example:$AT/:_authToken=$API_TOKEN\" >.npmrc; "
     "npm install --no-audit --no-fund --registry https://npm.example:$AT/ e2epkg; "
     "test -s node_modules/e2epkg/package.json"),
    ("cargo", {"cargo": "cargo"}, "crates",
     "mkdir .cargo src; touch src/lib.rs; export CARGO_HOME=$PWD/home CARGO_REGISTRIES_E_TOKEN=$API_TOKEN; "
     "printf '[registries.e]\\nindex = \"sparse+https://crates.example:%s/index/\"\\n"
     "[registry]\\nglobal-credential-providers = [\"cargo:token\"]\\n' $AT >.cargo/config.toml; "
     "printf '[package]\\nname = \"x\"\\nversion = \"1.0.0\"\\nedition = \"2021\"\\n' >Cargo.toml; "
     "printf '[dependencies]\\ne2epkg = { version = \"1\", registry = \"e\" }\\n' >>Cargo.toml; cargo fetch -q; "
     "ls home/registry/src/*/e2epkg-1.0.0/Cargo.toml"),
    ("go", {"go": "golang-go"}, "golang", GO % "x:$API_TOKEN@"),
    ("go with netrc", {"go": "golang-go"}, "golang", NETRC % "golang" + GO % ""),
    ("apt", {"apt-get": "apt"}, "apt", APT + "apt-get update; apt-get download e2e-pkg; test -s e2e-pkg_1_all.deb"),
]


def toolchain():
    """Where cargo is that the box does not see by itself; None: nowhere."""
    if shutil.which("cargo", path=PLACES) or not shutil.which("rustc"):
        return None
    done = subprocess.run(["rustc", "--print", "sysroot"], stdout=subprocess.PIPE, universal_newlines=True)
    return done.stdout.strip() or None


def missing(h, programs):
    for program, package in programs.items():
        found = os.path.exists(program) or shutil.which(program, path=PLACES)
        if not found and not (program == "cargo" and "SANDBOX_VOLUMES" in h.env):
            raise Skip("there is no %s (package %s)" % (os.path.basename(program), package))


def client(h, row):
    name, programs, host, script = row
    missing(h, programs)
    h.seen.clear()
    done = h("run", "export AT=%d PATH=$PATH:/usr/local/go/bin:%s/bin; cd $(mktemp -d) && (set -e; %s; "
             "if [ -e got ]; then cat got; fi) </dev/null" % (h.port, RUST, script))
    equal((done.returncode, (host, SEEN[host]) in h.seen), (0, True), (done.stdout + done.stderr, h.seen))
    if host == "www":
        equal(done.stdout.strip(), HELLO.decode().strip())


def clients(h, tap):
    """Each client, in one box of that account."""
    names = ("www", "pypi", "npm", "crates", "golang", "apt")
    h.port = h.secure(*[n + ".example" for n in names], handler=Registry)
    place = toolchain() if h.uid == os.geteuid() else None
    if place:
        h.env["SANDBOX_VOLUMES"] = "%s:%s:ro" % (place, RUST)
    h.ok("secret", "set", "api", input=VALUE)
    h.up(h.rules(rules={n + ".example": [{"methods": ["GET", "HEAD"], "ports": [h.port]}] for n in names},
                 credentials={"API_TOKEN": {"secret": "api", "hosts": ["%s.example:%d" % (n, h.port) for n in names]}}))
    for row in CLIENTS:
        if len(sys.argv) < 2 or row[0] in sys.argv[1:]:
            tap.run("%s, %s" % (row[0], "root" if h.uid == 0 else "another account"), client, h, row)


def main():
    if not os.access(os.path.join(BUILD, "handrail-egress"), os.X_OK):
        skip_all("handrail-egress is not built: apt-get install libc-ares-dev libssl-dev, and configure again")
    need_launcher()
    process.become_subreaper()
    tap = Tap()
    for uid in (0, UID) if os.geteuid() == 0 else (os.geteuid(),):
        why = why_none(uid)
        if why:
            tap.skip("clients", why)
            continue
        with World(uid) as h:
            clients(h, tap)
    return tap.done()


if __name__ == "__main__":
    sys.exit(main())
