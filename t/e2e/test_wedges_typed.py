#!/usr/bin/env python3
"""The same wedges where bash cannot load handrail-line.so: every command is typed at the terminal."""

import os
import sys

here = os.path.dirname(os.path.abspath(__file__))
keeper = os.path.join(os.environ.get("abs_top_builddir", os.getcwd()), "handrail-session")
os.execv(sys.executable, [sys.executable, os.path.join(here, "test_wedges.py"), "--keeper", keeper,
                          "--typed"])
