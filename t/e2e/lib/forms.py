"""Uploads as a client sends them, and archives that no honest one would."""

import io
import struct
import urllib.parse
import zipfile
import zlib

BOUNDARY = "----e2e-5f1c7e0a93b24d68"


def part(name, data, filename=None, extra=""):
    head = 'Content-Disposition: form-data; name="%s"' % name
    if filename is not None:
        head += '; filename="%s"' % filename.replace("\\", "\\\\").replace('"', '\\"')
    return b"--%s\r\n%s%s\r\n\r\n%s\r\n" % (
        BOUNDARY.encode(), head.encode("utf-8", "surrogateescape"), extra.encode(), data)


def upload(server, destination, filename, data, recursive=None, headers=None, more=b""):
    """One file in one request."""
    query = {"destination": destination}
    if recursive is not None:
        query["recursive"] = recursive
    body = more + part("file", data, filename) + b"--%s--\r\n" % BOUNDARY.encode()
    return server.request(
        "POST", "/upload_file?" + urllib.parse.urlencode(query), body,
        dict({"Content-Type": "multipart/form-data; boundary=" + BOUNDARY}, **(headers or {})))


def download(server, path, where="/download_files", **headers):
    return server.request("GET", where + "?" + urllib.parse.urlencode({"path": path}),
                          headers={k.replace("_", "-"): v for k, v in headers.items()})


def archive(*members, **kw):
    """A zip of (name, content[, mode]) written by Python's zipfile, which takes any name."""
    out = io.BytesIO()
    with zipfile.ZipFile(out, "w", kw.get("method", zipfile.ZIP_STORED)) as z:
        for name, data, *mode in members:
            info = zipfile.ZipInfo(name)
            info.compress_type = kw.get("method", zipfile.ZIP_STORED)
            info.external_attr = (mode[0] if mode else 0o100644) << 16
            z.writestr(info, data)
    return out.getvalue()


def raw_archive(*members, utf8=True):
    """A zip of (name as bytes, content), by hand: for names that zipfile changes or refuses. The
    name in the central directory may be another one: (name, content, central name)."""
    body, central = b"", b""
    for name, data, *other in members:
        flags, crc = 0x800 if utf8 else 0, zlib.crc32(data)
        head = struct.pack("<HHHHHIIIHH", 20, flags, 0, 0, 0x5822, crc, len(data), len(data), len(name), 0)
        second = other[0] if other else name
        central += b"PK\1\2" + struct.pack("<H", 0x314) + struct.pack(
            "<HHHHHIIIHH", 20, flags, 0, 0, 0x5822, crc, len(data), len(data), len(second), 0) + \
            struct.pack("<HHHII", 0, 0, 0, 0o100644 << 16, len(body)) + second
        body += b"PK\3\4" + head + name + data
    return body + central + b"PK\5\6" + struct.pack(
        "<HHHHIIH", 0, 0, len(members), len(members), len(central), len(body), 0)
