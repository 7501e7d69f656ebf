#!/usr/bin/env python3
"""The wedges that an agent's commands bring about most, of those in lib/wedges.py. All of them:
t/e2e/wedge.py, by hand on a quiet machine, since some depend on how fast a program starts."""

import os
import sys

WEDGES = """stty raw|stty raw -echo|stty -echo|stty -icanon -isig|the alternate screen left on|binary garbage
PS1 changed|PS1 unset|PROMPT_COMMAND empty|PROMPT_COMMAND unset|PROMPT_COMMAND changed by a function
both unset|bind -r C-m|C-m bound to abort
paste mode off|set -o vi|TERM=dumb|trap DEBUG that prints|trap '' INT|set -e, then false|set -u|set -euo pipefail
set -x|exec >/dev/null|exec 2>/dev/null|all of 3 to 254 closed|exec 1>&- 2>&-|ulimit -f 0|exit|exit 3|exec sleep
exec ls|exec bash|kill -9 $$|a stopped job|the directory removed|a background printer|PATH empty
built-ins are functions|bash inside bash|an unfinished quote, then C-c|a line of 64 KB|a here-document of 200 KB
NULs|enable -n printf|enable -n of built-ins|our builtin disabled|our builtin deleted|our builtin used by hand
output stopped by tcflow|output stopped by tcflow, with a long command|input stopped by tcflow
output stopped by a typed ^S|the terminal for one alone|another line discipline|text put into the terminal
special characters that are letters|ends of lines that are letters|a full-screen program killed
TERM=dumb, PROMPT_COMMAND unset|no line editing, PROMPT_COMMAND unset|a line read by readline|a prompt that does not end
exec env -i bash|exec env -i bash without readline|trap DEBUG that fails under extdebug"""

wedge = os.path.join(os.path.dirname(os.path.abspath(__file__)), "wedge.py")
names = [name for line in WEDGES.split("\n") for name in line.split("|")]
os.execv(sys.executable, [sys.executable, wedge] + sys.argv[1:] + names)
