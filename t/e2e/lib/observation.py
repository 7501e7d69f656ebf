"""What a `run` action came back as, the same over HTTP and over the keeper's socket."""

NO_CHANGE = "[The command has no new output after "
TIMED_OUT = "[The command timed out after "
REFUSED = "is NOT executed. The previous command is still running"
RESTARTED = "[The shell exited and has been restarted in "
NOTHING_RUNS = "ERROR: No previous running command"


class Observation:
    """exit_code is -1 while the command goes on. seconds: from sending to the whole answer."""

    def __init__(self, content="", exit_code=-1, pid=-1, working_dir=None, prefix="", suffix="",
                 command="", username=None, hostname=None, py_path=None, hidden=False,
                 is_error=False, seconds=0.0):
        self.content, self.exit_code, self.pid = content, exit_code, pid
        self.working_dir, self.prefix, self.suffix = working_dir, prefix, suffix
        self.command, self.username, self.hostname = command, username, hostname
        self.py_path, self.hidden, self.is_error = py_path, hidden, is_error
        self.seconds = seconds

    @property
    def completed(self):
        return not self.is_error and "\n[The command completed with exit code " in self.suffix

    @property
    def no_change(self):
        return NO_CHANGE in self.suffix

    @property
    def timed_out(self):
        return TIMED_OUT in self.suffix

    @property
    def refused(self):
        return REFUSED in self.suffix

    @property
    def restarted(self):
        return RESTARTED in self.suffix

    @property
    def going_on(self):
        return self.no_change or self.timed_out or self.refused

    def __repr__(self):
        content = self.content if len(self.content) <= 400 else \
            self.content[:200] + "[...]" + self.content[-200:]
        return "<%s exit=%d content=%r prefix=%r suffix=%r dir=%r %.3fs>" % (
            "error" if self.is_error else "run", self.exit_code, content, self.prefix,
            self.suffix[:90], self.working_dir, self.seconds)
