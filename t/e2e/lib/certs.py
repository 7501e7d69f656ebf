"""Certificates of a test, made by openssl: authorities, servers, clients, lists of withdrawn ones."""

import os
import shutil
import subprocess

from .tap import Skip

EC = ("ec", "-pkeyopt", "ec_paramgen_curve:prime256v1")
RSA = ("rsa:2048",)

CONFIG = """
[ca]
default_ca = it
[it]
database = %(dir)s/%(name)s.index
serial = %(dir)s/%(name)s.serial
crlnumber = %(dir)s/%(name)s.crlnumber
default_md = sha256
default_crl_days = 2
"""


def run(*words):
    done = subprocess.run(("openssl",) + words, stdout=subprocess.PIPE, stderr=subprocess.STDOUT)
    if done.returncode != 0:
        raise AssertionError("openssl %s\n%s" % (" ".join(words), done.stdout.decode("utf-8", "replace")))
    return done.stdout.decode("utf-8", "replace")


class Authority:
    """Its own certificate is .pem; make() gives (certificate, key), both file names."""

    def __init__(self, directory, name):
        if shutil.which("openssl") is None:
            raise Skip("needs openssl: apt-get install openssl")
        self.dir, self.name = directory, name
        self.pem, self.key = self.path(name + ".pem"), self.path(name + ".key")
        run("req", "-x509", "-newkey", *EC, "-nodes",
            "-days", "2", "-subj", "/CN=" + name, "-keyout", self.key, "-out", self.pem)
        for suffix, text in ((".index", ""), (".serial", "01\n"), (".crlnumber", "01\n"),
                             (".cnf", CONFIG % {"dir": directory, "name": name})):
            with open(self.path(name + suffix), "w") as f:
                f.write(text)

    def path(self, name):
        return os.path.join(self.dir, name)

    def make(self, name, serial, file=None, kind=EC, names="IP:127.0.0.1"):
        file = file or "%s-%d" % (name, serial)
        pem, key, request = self.path(file + ".pem"), self.path(file + ".key"), self.path(file + ".csr")
        run("req", "-newkey", *kind, "-nodes",
            "-subj", "/CN=" + name, "-addext", "subjectAltName=" + names, "-keyout", key, "-out", request)
        run("x509", "-req", "-in", request, "-CA", self.pem, "-CAkey", self.key, "-days", "2",
            "-set_serial", str(serial), "-copy_extensions", "copy", "-out", pem + ".new")
        os.chmod(key, 0o600)
        os.rename(pem + ".new", pem)
        return pem, key

    def revoke(self, pem):
        """The list of what this authority has withdrawn, a file name."""
        common = ("-config", self.path(self.name + ".cnf"), "-cert", self.pem, "-keyfile", self.key)
        run("ca", *common, "-revoke", pem)
        run("ca", *common, "-gencrl", "-out", self.path(self.name + ".crl"))
        return self.path(self.name + ".crl")


def serial_served(port, authority):
    """The serial number of the certificate that a port shows."""
    said = subprocess.run(
        ["openssl", "s_client", "-connect", "127.0.0.1:%d" % port, "-CAfile", authority.pem,
         "-verify_return_error"], stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL).stdout
    text = subprocess.run(["openssl", "x509", "-noout", "-serial"], input=said,
                          stdout=subprocess.PIPE, stderr=subprocess.PIPE).stdout.decode()
    return int(text.partition("=")[2] or "0", 16)
