"""Whether an answer is the recorded one: strict JSON comparison with placeholders
(t/corpus/actions/README, 5)."""

import json
import re

from .tap import short

TEXT = {"PID": r"-?[0-9]+", "INT": r"-?[0-9]+", "TS": r"[0-9A-Za-z_.:+-]+",
        "FLOAT": r"-?[0-9]+(?:\.[0-9]+)?(?:[eE][-+]?[0-9]+)?", "ANY": r"(?s:.*)",
        "HOST": r'[^\s"]+', "USER": r'[^\s"]+', "PY": r'[^\s"]*'}
FIXED = {"HOST", "USER", "PY"}  # the first value found holds for the rest of the run
TOKEN = re.compile("@(%s)@" % "|".join(TEXT))


class Compare:
    """One run: remembers what the fixed placeholders stood for."""

    def __init__(self):
        self.fixed = {}

    def text(self, got, want):
        """Whether a string matches; learns fixed placeholders."""
        if "@" not in want:
            return got == want
        pattern, at, groups = "", 0, {}
        for token in TOKEN.finditer(want):
            name = token.group(1)
            pattern += re.escape(want[at:token.start()])
            at = token.end()
            if name not in FIXED:
                pattern += "(?:%s)" % TEXT[name]
            elif name in self.fixed:
                pattern += re.escape(self.fixed[name])
            elif name in groups:
                pattern += "(?P=%s)" % name
            else:
                groups[name] = True
                pattern += "(?P<%s>%s)" % (name, TEXT[name])
        pattern += re.escape(want[at:])
        match = re.fullmatch(pattern, got)
        if match is None:
            return False
        self.fixed.update(match.groupdict())
        return True

    def _whole(self, got, want):
        """A placeholder that stands for a value that is no string. None: it is not one."""
        if want == "@ANY@":
            return True
        if want in ("@PID@", "@INT@") and not isinstance(got, str):
            return isinstance(got, int) and not isinstance(got, bool)
        if want == "@FLOAT@" and not isinstance(got, str):
            return isinstance(got, float)
        return None

    def value(self, got, want, where="body"):
        """A list of differences."""
        if isinstance(want, str):
            whole = self._whole(got, want)
            if whole is None:
                whole = isinstance(got, str) and self.text(got, want)
            return [] if whole else ["%s: %s, not %s" % (where, short(got), short(want))]
        if type(got) is not type(want):
            return ["%s: %s, not %s" % (where, short(got), short(want))]
        if isinstance(want, dict):
            wrong = ["%s: %s %r" % (where, "lacks" if key in want else "has a surplus", key)
                     for key in sorted(set(got) ^ set(want))]
            for key in want:
                if key in got:
                    wrong += self.value(got[key], want[key], "%s.%s" % (where, key))
            return wrong
        if isinstance(want, list):
            if len(got) != len(want):
                return ["%s: %d elements, not %d: %s" % (where, len(got), len(want), short(got))]
            return [line for i, (a, b) in enumerate(zip(got, want))
                    for line in self.value(a, b, "%s[%d]" % (where, i))]
        return [] if got == want else ["%s: %r, not %r" % (where, got, want)]

    def json_text(self, body, want):
        try:
            got = json.loads(body)
        except ValueError as error:
            return ["body is no JSON: %s: %r" % (error, body[:300])]
        return self.value(got, want)
