#!/usr/bin/env python3
"""test_box_kills.py with 300 kills for each account."""

import os
import sys

program = os.path.join(os.path.dirname(os.path.abspath(__file__)), "test_box_kills.py")
os.execv(sys.executable, [sys.executable, program, "300"] + sys.argv[1:])
