"""Protobuf messages without their definitions: lists of [number, value]. A value is an int (varint), bytes, or a tuple
("f", number) or ("d", number) for a float or a double."""

import struct


def varint(n):
    n &= (1 << 64) - 1
    out = bytearray()
    while n > 0x7f:
        out.append(n & 0x7f | 0x80)
        n >>= 7
    out.append(n)
    return bytes(out)


def encode(fields):
    """Texts and lists of fields become bytes; None is left out."""
    out = b""
    for number, v in fields:
        if v is None:
            continue
        if isinstance(v, bool) or isinstance(v, int):
            out += varint(number << 3) + varint(int(v))
        elif isinstance(v, tuple):
            kind = 5 if v[0] == "f" else 1
            out += varint(number << 3 | kind) + struct.pack("<" + v[0], v[1])
        else:
            b = encode(v) if isinstance(v, list) else v.encode() if isinstance(v, str) else v
            out += varint(number << 3 | 2) + varint(len(b)) + b
    return out


def take_varint(b, at):
    n = shift = 0
    while True:
        c = b[at]
        at += 1
        n |= (c & 0x7f) << shift
        shift += 7
        if c < 0x80:
            return n, at


def decode(b):
    at, found = 0, []
    while at < len(b):
        tag, at = take_varint(b, at)
        kind = tag & 7
        if kind == 0:
            v, at = take_varint(b, at)
        elif kind == 2:
            n, at = take_varint(b, at)
            if at + n > len(b):
                raise ValueError("cut")
            v, at = b[at:at + n], at + n
        elif kind in (1, 5):
            letter, n = ("d", 8) if kind == 1 else ("f", 4)
            v, at = (letter, struct.unpack("<" + letter, b[at:at + n])[0]), at + n
        else:
            raise ValueError("wire type %d" % kind)
        found.append([tag >> 3, v])
    return found


def get(b, number, otherwise=None):
    for n, v in decode(b):
        if n == number:
            return v
    return otherwise


def text(b, number):
    return get(b, number, b"").decode()


def every(b, number):
    return [v for n, v in decode(b) if n == number]


def pairs(entries):
    return {text(e, 1): text(e, 2) for e in entries}
