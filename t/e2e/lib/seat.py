"""The handrail command at a terminal."""

import fcntl
import os
import pty
import select
import struct
import subprocess
import termios
import threading

from .host import BUILD, PATIENCE
from .tap import equal


class Seat:
    """A command at a terminal of its own, that interrupts it; of the user of a lib.hostbox.Boxes, if h is one."""

    def __init__(self, h, *argv, **env):
        self.master, slave = pty.openpty()
        fcntl.ioctl(slave, termios.TIOCSWINSZ, struct.pack("HHHH", 33, 77, 0, 0))

        def sit():
            os.setsid()
            fcntl.ioctl(slave, termios.TIOCSCTTY, 0)
        self.p = subprocess.Popen([os.path.join(BUILD, "handrail")] + list(argv), env=dict(h.env, **env),
                                  cwd=h.path("cwd"), stdin=slave, stdout=slave, stderr=slave, preexec_fn=sit,
                                  **getattr(h, "change", {}))
        os.close(slave)
        self.seen = ""

    def read(self):
        if not select.select([self.master], [], [], PATIENCE)[0]:
            raise AssertionError("nothing more came behind %r" % self.seen)
        try:
            piece = os.read(self.master, 65536).decode("utf-8", "replace")
        except OSError:  # nobody has the other end any more
            piece = ""
        self.seen += piece
        return piece

    def until(self, text):
        while text not in self.seen:
            equal(self.read() != "", True, "%r comes, not %r" % (text, self.seen))
        return self

    def until_mode(self, flag):
        """Nothing reports a change of the terminal's mode."""
        pause = threading.Event()
        for _ in range(int(PATIENCE * 20)):
            if termios.tcgetattr(self.master)[3] & flag:
                return
            pause.wait(0.05)
        raise AssertionError("the terminal's mode stays")

    def type(self, keys):
        os.write(self.master, keys.encode())
        return self

    def interrupt(self):
        return self.type("\x03")

    def end(self, status):
        while self.read():
            pass
        os.close(self.master)
        equal(self.p.wait(PATIENCE), status, self.seen)
        return self.seen
