"""Ways to break a shell or its terminal, and what the session must make of each.

A wedge is a list of steps; afterwards `echo ok` has to answer. What a command legitimately changes
(a trace, a redirection) is said by `shows` and taken back by `undo`."""

import os
import subprocess

from .tap import Skip


class Step:
    """One request. `going`: the command goes on (the step has a time-out of its own), None: that or it
    has ended; `until`: empty commands follow until this text was seen. `ended`: it may have ended before."""

    def __init__(self, command, code=0, content=None, going=False, until=None, restarted=False,
                 code_any=False, has=None, lacks=None, given_up=False, ended=False, **request):
        self.command, self.code, self.content = command, code, content
        self.going, self.until, self.restarted = going, until, restarted
        self.code_any, self.has, self.lacks, self.given_up = code_any, has, lacks, given_up
        self.ended = ended
        self.request = request
        if going and "timeout" not in request:
            self.request["timeout"] = 0.3


class Wedge:
    """shows: content of `echo ok` afterwards. kept: whether the directory and the exported variable
    are looked at. typed: it is played where commands are typed, too."""

    def __init__(self, name, *steps, shows="ok", undo=(), needs=None, kept=True, seconds=None,
                 code=0, typed=True):
        self.name, self.typed = name, typed
        self.steps = [s if isinstance(s, Step) else Step(s) for s in steps]
        self.shows, self.undo, self.needs = shows, undo, needs
        self.kept, self.seconds, self.code = kept, seconds, code


def dies(command, code, content=None):
    return Step(command, code=code, restarted=True, content=content)


def goes_on(command, **more):
    return Step(command, going=True, **more)


def key(text, **more):
    return Step(text, is_input=True, **more)


def typed(text, **more):
    return Step(text, is_input=True, **more)


def _needs_program(name, package):
    def check(shell):
        for directory in "/usr/local/bin:/usr/bin:/bin:/usr/sbin:/sbin".split(":"):
            if os.access(os.path.join(directory, name), os.X_OK):
                return
        raise Skip("%s is missing: apt-get install %s" % (name, package))
    return check


def _python(code):
    """A command: python3 with the terminal's calls at hand."""
    return "python3 -c 'import array, ctypes, fcntl, os, signal, struct, sys, termios, time\n%s'" % code


def _needs_root(shell):
    if os.geteuid() != 0:
        raise Skip("only root needs no password for su: run the tests as root")


def _needs_mount(shell):
    if os.geteuid() != 0:
        raise Skip("only root may mount: run the tests as root")
    probe = os.path.join(shell.work_dir, "mount-probe")
    os.makedirs(probe, exist_ok=True)
    if subprocess.run(["mount", "-t", "tmpfs", "-o", "size=64k", "e2e", probe],
                      stderr=subprocess.DEVNULL).returncode != 0:
        raise Skip("mounting is not allowed here: run in a container with CAP_SYS_ADMIN")
    subprocess.run(["umount", probe], check=True)


# the shell's pipe to its keeper, as any command may find it
FIFO = r"""f=$(printf %s "$PROMPT_COMMAND" | sed "s/.*'\(.*\)'.*/\1/"); """ \
       r"""f=$(sed -n "s/.*'\([^']*report[^']*\)'.*/\1/p" "$f"); test -p "$f" || exit; """

TERMINAL = [
    Wedge("stty raw", "stty raw"),
    Wedge("stty raw -echo", "stty raw -echo"),
    Wedge("stty -echo", "stty -echo"),
    Wedge("stty -icanon -isig", "stty -icanon -isig"),
    Wedge("stty -opost", "stty -opost"),
    Wedge("stty -icrnl -onlcr", "stty -icrnl -onlcr"),
    Wedge("stty igncr inlcr iuclc olcuc", "stty igncr inlcr iuclc olcuc"),
    Wedge("stty intr and eof moved", "stty intr ^A eof ^B erase ^C lnext ^D", undo=["stty sane"]),
    Wedge("a small window", "stty rows 3 cols 20", undo=["stty rows 1000 cols 1000"]),
    Wedge("no window size", "stty rows 0 cols 0", undo=["stty rows 1000 cols 1000"]),
    Wedge("speed 0", Step("stty 0", code_any=True), undo=["stty 38400"]),
    Wedge("output stopped by ^S", goes_on("sleep 0.5; printf '\\e[?1049l'"), key("C-s", going=True),
          key("C-q")),
    Wedge("the alternate screen left on", "printf '\\e[?1049hfull screen'"),
    Wedge("ESC c", "printf 'gone\\ec'"),
    Wedge("cursor moves", "printf 'top\\n\\e[2;10Hmid\\n\\e[H\\e[999;999H\\e[5A'"),
    Wedge("line drawing, insert mode, no wrap", "printf '\\e(0\\e[4h\\e[?7l\\e[5;6r\\e[?6h'"),
    Wedge("application keys, mouse, paste mode off", "printf '\\e=\\e[?1h\\e[?1000h\\e[?2004l'"),
    Wedge("the marks of a paste", "printf '\\e[?2004h'; printf '\\e[200~x\\e[201~'"),
    Wedge("the mark of a start", "printf '\\e]777;0\\a'; printf '\\e[?2004l\\r\\e]777;0\\a'"),
    Wedge("an OSC without an end", "printf '\\e]0;no end'", shows="ok"),
    Wedge("a DCS without an end", "printf '\\ePno end'", shows="ok"),
    Wedge("questions to the terminal", "printf '\\e[6n\\e[c\\e[>c\\e[5n\\eZ'"),
    Wedge("half a character", "printf '\\xf0\\x9f'"),
    Wedge("binary garbage", Step("head -c 20000 /dev/urandom", content=None)),
    Wedge("every control character",
          "for i in $(seq 0 31); do printf \"\\\\x$(printf %x $i)\"; done"),
    Wedge("the old prompt block",
          r"""printf '\n###PS1JSON###\n{\n"pid":"7","exit_code":"9","working_dir":"/"}\n"""
          r"""###PS1END###\n'"""),
    Wedge("a report of another process", FIFO + "/usr/bin/printf 'hr-prompt-1\\0x\\0%s\\0009\\0007\\0"
          "000\\0/\\0/\\0x\\0h\\0emacs\\0' $$ > \"$f\"; sleep 0.05"),
    Wedge("half a report", FIFO + "printf 'hr-prompt-1\\0half' > \"$f\""),
    Wedge("half a report without its end", FIFO + "printf 'hr-prompt-1\\0' > \"$f\"; printf x > \"$f\""),
    Wedge("other text in the report", FIFO + "printf 'a\\0b\\0\\0\\0c' > \"$f\"; seq 9999 > \"$f\""),
    Wedge("the ack read away", FIFO.replace("report", "ack") + "timeout 0.05 cat \"$f\"; true"),
]

PYTHON = _needs_program("python3", "python3")
TAKES = "os.tcsetpgrp(0, os.getpgrp())"  # the terminal, for its own group
TERMINAL += [
    Wedge("output stopped by tcflow", _python("termios.tcflow(0, termios.TCOOFF)"), needs=PYTHON),
    Wedge("output stopped by tcflow, with a long command",
          Step(_python("termios.tcflow(0, termios.TCOOFF)") + "; echo held", going=None), Step("", has="held",
          code_any=True, ended=True), needs=PYTHON),
    Wedge("output stopped by tcflow again and again", _python(
          "termios.tcflow(0, termios.TCOOFF)") + "; (for i in 1 2 3 4; do sleep 0.05; " +
          _python("termios.tcflow(0, termios.TCOOFF)") + "; done) & disown; sleep 0.6", needs=PYTHON),
    Wedge("input stopped by tcflow", _python("termios.tcflow(0, termios.TCIOFF)"), needs=PYTHON),
    Wedge("output stopped by ^S, and the command gone", goes_on("cat"), key("C-s", going=True), key("C-d")),
    Wedge("output stopped by a typed ^S", Step(_python(
          "try: fcntl.ioctl(0, termios.TIOCSTI, bytes([19]))\nexcept OSError: pass")), needs=PYTHON),
    Wedge("the terminal for one alone", _python("fcntl.ioctl(0, termios.TIOCEXCL)"),
          "[ $UID = 0 ] || : >/dev/tty", needs=PYTHON),
    Wedge("another line discipline", Step(_python("fcntl.ioctl(0, termios.TIOCSETD, struct.pack(\"i\", 27))"),
          code_any=True), needs=PYTHON),
    Wedge("text put into the terminal", _python(
          "try:\n for c in b\"exit 9\\n\": fcntl.ioctl(0, termios.TIOCSTI, bytes([c]))\nexcept OSError: pass"),
          needs=PYTHON),
    Wedge("a hang-up of the terminal", dies(_python("ctypes.CDLL(None).vhangup()"), 129), needs=_needs_root),
    Wedge("a hang-up of the terminal, ignored", "trap \"\" HUP", Step(_python(
          "ctypes.CDLL(None).vhangup()"), code_any=True, restarted=None), kept=False, needs=_needs_root),
    Wedge("the terminal of another session", Step("setsid -w " + _python(
          "fcntl.ioctl(0, termios.TIOCSCTTY, 1)"), code_any=True, restarted=None), needs=_needs_root, undo=["exit"]),
    Wedge("a background job that takes the terminal again and again", Step(_python(
          "signal.signal(signal.SIGTTOU, signal.SIG_IGN)\nfor i in range(200):\n " + TAKES + "\n time.sleep(0.005)") +
          " & disown; sleep 0.3", code_any=True, restarted=None), needs=PYTHON, kept=False),
    Wedge("stty -cread", Step("stty -cread", code_any=True)),
    Wedge("stty min 0 time 1 raw", "stty raw -echo min 0 time 1"),
    Wedge("stty min 255", "stty raw min 255 time 0"),
    Wedge("special characters that are letters",
          "stty intr e quit c susp h eof o erase k kill x start y stop z lnext w", undo=["stty sane"]),
    Wedge("no special characters", "stty intr undef quit undef susp undef eof undef eol undef start undef stop undef",
          undo=["stty sane"]),
    Wedge("ends of lines that are letters", "stty eol o eol2 k", undo=["stty sane"]),
    Wedge("tostop and noflsh", "stty tostop noflsh; sleep 0.01 & echo x; wait"),
    Wedge("stty cs5 parenb", Step("stty cs5 parenb", code_any=True)),
    Wedge("extproc", Step("stty extproc", code_any=True)),
    Wedge("packet mode asked for", Step(_python("fcntl.ioctl(0, termios.TIOCPKT, struct.pack(\"i\", 1))"),
          code_any=True), needs=PYTHON),
    Wedge("a window of odd sizes", _python(
          "fcntl.ioctl(0, termios.TIOCSWINSZ, struct.pack(\"HHHH\", 65535, 1, 0, 0))"), needs=PYTHON,
          undo=["stty rows 1000 cols 1000"]),
    Wedge("a full-screen program killed", goes_on(_python(
          "import tty\ntty.setraw(0)\nos.write(1, b\"\\033[?1049h\\033[?1h\\033[?1000h\\033[Hits screen\")\n"
          "time.sleep(0.7)\nos.kill(os.getpid(), 9)"), until="its screen"),
          Step("", timeout=5, code=137, lacks="its screen", ended=True), needs=PYTHON),
]

PROMPT = [
    Wedge("PS1 changed", "PS1='$ '", undo=["PS1="]),
    Wedge("PS1 exported", "export PS1='(venv) \\u@\\h:\\w\\$ '", undo=["PS1="]),
    Wedge("PS1 of several lines", "PS1='a\nb\n$(false)> '", undo=["PS1="]),
    Wedge("PS1 unset", "unset PS1"),
    Wedge("PS1 read-only", "readonly PS1"),
    Wedge("PS1 and PS2 unset and read-only", "unset PS1 PS2; readonly PS1 PS2"),
    Wedge("PS0 changed", "PS0='started\\n'"),
    Wedge("PS0 unset", "unset PS0"),
    Wedge("PS0 read-only", "PS0=; readonly PS0"),
    Wedge("PROMPT_COMMAND empty", Step("PROMPT_COMMAND=''; false", code=1)),
    Wedge("PROMPT_COMMAND unset", Step("unset PROMPT_COMMAND; (exit 3)", code=3)),
    Wedge("PROMPT_COMMAND unset, another directory",
          Step("cd /; unset PROMPT_COMMAND"), "cd \"$OLDPWD\""),
    Wedge("PROMPT_COMMAND read-only", "readonly PROMPT_COMMAND"),
    Wedge("PROMPT_COMMAND empty and read-only",
          Step("PROMPT_COMMAND=; readonly PROMPT_COMMAND; (exit 3)", code=3, restarted=None)),
    Wedge("PROMPT_COMMAND an array", "PROMPT_COMMAND=(true 'echo from-array')",
          undo=["unset PROMPT_COMMAND"]),
    Wedge("PROMPT_COMMAND changed by a function",
          "f() { PROMPT_COMMAND=\"true; $PROMPT_COMMAND\"; PS0=x; }", "f", Step("false", code=1),
          "f", Step("(exit 3)", code=3), "echo ok", undo=["unset -f f"]),
    Wedge("PROMPT_COMMAND of one's own", "PROMPT_COMMAND='printf \"\\033]0;title\\007\"'"),
    Wedge("PROMPT_COMMAND that fails", "PROMPT_COMMAND='no_such_command_at_all 2>/dev/null'"),
    Wedge("PROMPT_COMMAND that exits", Step("PROMPT_COMMAND='exit 5'", code_any=True, restarted=None)),
    Wedge("both unset", "unset PROMPT_COMMAND PS1"),
    Wedge("both unset, PS1 set", "unset PROMPT_COMMAND; PS1='$ '", undo=["PS1="]),
    Wedge("all prompt variables read-only and empty",
          Step("PROMPT_COMMAND= PS1= PS2= PS0=; readonly PROMPT_COMMAND PS1 PS2 PS0", restarted=None)),
    Wedge("something behind the hook that does not end", "PROMPT_COMMAND+=('read x </dev/tty')",
          undo=["unset PROMPT_COMMAND"], seconds=3.5),
    Wedge("promptvars off", "shopt -u promptvars", undo=["shopt -s promptvars"]),
    Wedge("bind -r C-m", "bind -r '\\C-m'; bind -r '\\C-j'"),
    Wedge("C-m bound to abort", "bind '\"\\C-m\": abort'"),
    Wedge("C-m bound to a macro", "bind '\"\\C-m\": \"x\"'"),
    Wedge("C-m bound to a command", "bind -x '\"\\C-m\": echo bound'"),
    Wedge("paste mark bound to abort", "bind '\"\\e[200~\": abort'"),
    Wedge("self-insert taken away", "bind '\"o\": \"\"'; bind '\"e\": abort'"),
    Wedge("paste mode off", "bind 'set enable-bracketed-paste off'"),
    Wedge("readline variables", "bind 'set horizontal-scroll-mode on'; bind 'set show-mode-in-"
          "prompt on'; bind 'set disable-completion on'; bind 'set convert-meta on'; bind 'set "
          "echo-control-characters off'; bind 'set enable-active-region off'"),
    Wedge("set -o vi", "set -o vi", undo=["set -o emacs"]),
    Wedge("vi keymap without insert", "set -o vi; bind 'set keymap vi-command'",
          undo=["set -o emacs"]),
    Wedge("set +o emacs", "set +o emacs"),
    Wedge("set +o emacs +o vi", "set -o vi; set +o vi"),
    Wedge("INPUTRC that breaks lines",
          "printf 'set editing-mode vi\\nset enable-bracketed-paste off\\nRETURN: abort\\n' > irc; "
          "export INPUTRC=$PWD/irc; bind -f irc", dies("exit", 0), undo=["unset INPUTRC"]),
    Wedge("TERM=dumb", "export TERM=dumb", undo=["export TERM=$E2E_TERM"]),
    Wedge("TERM unknown", "export TERM=nonsense", undo=["export TERM=$E2E_TERM"]),
    Wedge("TERM unknown, a new shell", "export TERM=nonsense", dies("exit", 0),
          undo=["export TERM=$E2E_TERM"]),
    Wedge("TERM unset", "unset TERM", undo=["export TERM=$E2E_TERM"]),
    Wedge("TERM=dumb, PROMPT_COMMAND unset", Step("export TERM=dumb; unset PROMPT_COMMAND; (exit 3)", code=3),
          undo=["export TERM=$E2E_TERM"]),
    Wedge("TERM=dumb, PROMPT_COMMAND unset, another prompt",
          "export TERM=dumb; unset PROMPT_COMMAND; PS1='$ '", undo=["PS1= TERM=$E2E_TERM"]),
    Wedge("no paste mode, PROMPT_COMMAND unset",
          "bind 'set enable-bracketed-paste off'; unset PROMPT_COMMAND"),
    Wedge("no line editing, PROMPT_COMMAND unset", Step("set +o emacs; unset PROMPT_COMMAND; (exit 3)", code=3)),
    Wedge("a terminal that is dumb, an unfinished quote", "export TERM=dumb", goes_on("echo \"not ended"),
          typed("it is\"", content=None), undo=["export TERM=$E2E_TERM"]),
    Wedge("a line read by readline", goes_on("read -re x"), typed("y"), Step("echo $x", content="y")),
    Wedge("a line read by readline, PROMPT_COMMAND unset",
          goes_on("TERM=dumb; unset PROMPT_COMMAND; read -re x"), key("C-c", code=130),
          undo=["export TERM=$E2E_TERM"]),
    Wedge("one key read, PROMPT_COMMAND unset",
          goes_on("TERM=dumb; unset PROMPT_COMMAND; read -n1 x; read x"), typed("ab"),
          undo=["export TERM=$E2E_TERM"]),
    Wedge("a wait in raw mode", goes_on("stty raw -echo; unset PROMPT_COMMAND; sleep 0.6"), Step("", timeout=5,
          ended=True)),
    # the session waits 2.93 s before it starts another shell: test_core_shell, a_trace_that_never_ends
    Wedge("a prompt that does not end", "PS4='$(sleep 1000)'; set -x", seconds=6, typed=False),
]

OPTIONS = [
    Wedge("trap DEBUG that prints", "trap 'echo dbg' DEBUG", shows="dbg\nok",
          undo=["trap - DEBUG"]),
    Wedge("trap DEBUG that fails under extdebug",
          dies("shopt -s extdebug; trap false DEBUG", 137)),
    Wedge("trap DEBUG that returns 2 under extdebug",
          dies("two() { return 2; }; shopt -s extdebug; trap two DEBUG", 137)),
    Wedge("trap DEBUG that exits", Step("trap 'exit 6' DEBUG", code_any=True, restarted=None),
          Step("echo it goes", code_any=True, restarted=None)),
    Wedge("trap '' INT", "trap '' INT", undo=["trap - INT"]),
    Wedge("traps of everything",
          "trap '' HUP INT QUIT TERM TSTP TTIN TTOU USR1 USR2 ALRM CHLD WINCH CONT",
          undo=["trap - HUP INT QUIT TERM TSTP TTIN TTOU USR1 USR2 ALRM CHLD WINCH CONT"]),
    Wedge("trap EXIT", "trap 'echo bye' EXIT", dies("exit 4", 4, content="exit\nbye")),
    Wedge("trap EXIT that does not end", "trap 'sleep 1000' EXIT", goes_on("exit 4"),
          key("C-c", code_any=True, restarted=None), seconds=8),
    Wedge("trap ERR and RETURN", "trap 'echo err' ERR; trap 'echo ret' RETURN",
          undo=["trap - ERR RETURN"]),
    Wedge("set -e, then false", "set -e", dies("false", 1)),
    Wedge("set -e and a failing pipeline at once", dies("set -eo pipefail; false | true", 1)),
    Wedge("set -u", "set -u", undo=["set +u"]),
    Wedge("set -u and an unset variable",
          Step("set -u; echo $never_set_at_all", code=1, has="unbound variable"),
          undo=["set +u"]),
    Wedge("set -euo pipefail", "set -euo pipefail", undo=["set +euo pipefail"]),
    Wedge("set -euo pipefail, then an unset variable", "set -euo pipefail",
          dies("echo $never_set_at_all", 1)),
    Wedge("set -x", "set -x", shows="+ echo ok\nok", undo=["set +x"]),
    Wedge("set -x with BASH_XTRACEFD", "exec 7>trace; BASH_XTRACEFD=7; set -x",
          undo=["set +x; unset BASH_XTRACEFD"]),
    Wedge("set -x with a PS4 that runs something", "PS4='$(echo p4)'; set -x",
          shows="p4echo ok\nok", undo=["set +x; unset PS4"]),
    Wedge("set -v", "set -v", shows="echo ok\nok", undo=["set +v"]),
    Wedge("set -xv", "set -xv", shows="echo ok\n+ echo ok\nok", undo=["set +xv"]),
    Wedge("set -n", "set -n"),
    Wedge("set -f, set -k, set -p", "set -f; set -k; set -p", undo=["set +f; set +k; set +p"]),
    Wedge("set -m off", "set +m", undo=["set -m"]),
    Wedge("set -o posix", "set -o posix", undo=["set +o posix"]),
    Wedge("POSIXLY_CORRECT", "export POSIXLY_CORRECT=1", undo=["unset POSIXLY_CORRECT"]),
    Wedge("set -a", "set -a", undo=["set +a"]),
    Wedge("set -C", "set -C", undo=["set +C"]),
    Wedge("set -b, set -h off", "set -b; set +h"),
    Wedge("set +B, set -H", "set +B -H", undo=["set -B +H"]),
    Wedge("set -t", Step("set -t", code_any=True, restarted=None)),
    Wedge("history off, HISTFILE strange", "set +o history; HISTFILE=/nonexistent/x HISTSIZE=0"),
    Wedge("shopt all on", "shopt -s lastpipe failglob nullglob nocasematch execfail dotglob "
          "globstar huponexit xpg_echo compat32 localvar_inherit 2>/dev/null; true",
          undo=["shopt -u failglob nullglob xpg_echo nocasematch compat32"]),
    Wedge("shopt cmdhist off, lithist on", "shopt -u cmdhist; shopt -s lithist"),
    Wedge("set -o ignoreeof", "set -o ignoreeof"),
    Wedge("positional parameters", "set -- -x -e -v"),
    Wedge("TMOUT=1", "export TMOUT=1", undo=["unset TMOUT"]),
    Wedge("MAILCHECK at every prompt", "MAILCHECK=0 MAILPATH=$PWD/mail'?mail!'; echo > mail",
          undo=["unset MAILPATH"]),
    Wedge("a timed out shell", "TMOUT=1; sleep 1.2", undo=["unset TMOUT"]),
]

DESCRIPTORS = [
    Wedge("exec >/dev/null", "exec >/dev/null", shows="", undo=["exec >/dev/tty"]),
    Wedge("exec 2>/dev/null", "exec 2>/dev/null", undo=["exec 2>/dev/tty"]),
    Wedge("exec >file 2>&1", "exec >o.txt 2>&1", shows="", undo=["exec >/dev/tty 2>&1"]),
    Wedge("exec 0<&-", Step("exec 0<&-", restarted=None, code_any=True)),
    Wedge("exec 0</dev/null", Step("exec 0</dev/null", restarted=None, code_any=True)),
    Wedge("exec <file", Step("echo 'echo from file' > f.sh; exec <f.sh", restarted=None,
                             code_any=True)),
    Wedge("exec 1>&- 2>&-", "exec 1>&- 2>&-", shows=None, code=None,
          undo=["exec >/dev/tty 2>&1"]),
    Wedge("exec 2>&-", "exec 2>&-", undo=["exec 2>/dev/tty"]),
    Wedge("all of 3 to 254 closed", "for i in $(seq 3 254); do eval \"exec $i>&-\"; done"),
    Wedge("255 closed", Step("exec 255>&-; exec 255<&-", code_any=True, restarted=None)),
    Wedge("all descriptors in use",
          "ulimit -S -n 64; for i in $(seq 10 60); do eval \"exec $i</dev/null\"; done",
          undo=["exit"]),
    Wedge("ulimit -n 3", Step("ulimit -n 3", code_any=True, restarted=None), shows=None, code=None,
          undo=["exit"]),
    Wedge("ulimit -f 0", "ulimit -f 0", undo=["exit"]),
    Wedge("ulimit -v small", "ulimit -v 20000", undo=["exit"]),
    Wedge("ulimit -t 1", "ulimit -t 1", undo=["exit"]),
    Wedge("ulimit -u 0", "ulimit -u 0", undo=["exit"]),
    Wedge("a coprocess", "coproc cat"),
    Wedge("a full TMPDIR",
          "mkdir -p full && mount -t tmpfs -o size=64k e2e full; "
          "dd if=/dev/zero of=full/fill bs=1k 2>/dev/null; export TMPDIR=$PWD/full", needs=_needs_mount,
          undo=["umount full; unset TMPDIR"]),
    Wedge("TMPDIR gone", "export TMPDIR=/nonexistent", undo=["unset TMPDIR"]),
    Wedge("a here-document with TMPDIR gone", "export TMPDIR=/nonexistent",
          Step("cat <<E\n%s\nE" % ("x" * 70000), code_any=True), undo=["unset TMPDIR"]),
]

ENDS = [
    Wedge("exit", dies("exit", 0)),
    Wedge("exit 3", dies("exit 3", 3, content="exit")),
    Wedge("exit after a failure", Step("false", code=1), dies("exit", 1)),
    Wedge("exit in a subshell", Step("(exit 3)", code=3)),
    Wedge("logout", Step("logout", code=1, has="logout: not login shell")),
    Wedge("C-d at the prompt", dies("C-d", 0)),
    Wedge("exit with a stopped job", goes_on("sleep 1000"), key("C-z", code=148),
          Step("exit", code=1, has="stopped jobs"), dies("exit", 1)),
    Wedge("exec sleep", dies("exec sleep 0.2", 0)),
    Wedge("exec ls", dies("exec ls /", 0)),
    Wedge("exec false", dies("exec false", 1)),
    Wedge("exec of what is not there", Step("exec /nonexistent/program", code=127)),
    Wedge("exec bash", "exec bash"),
    Wedge("exec bash --norc", "exec bash --norc"),
    Wedge("exec env -i bash", "export -p >env.sh", "exec env -i bash --norc -i", undo=[". ./env.sh"]),
    Wedge("exec env -i bash without readline", "export -p >env.sh",
          "exec env -i bash --norc --noediting -i", undo=[". ./env.sh"]),
    Wedge("exec bash without its hook", "unset PROMPT_COMMAND; TERM=dumb exec bash --norc -i",
          undo=["export TERM=$E2E_TERM"]),
    Wedge("exec of another program that edits lines", goes_on("exec python3 -q", until=">>>", restarted=None),
          typed("1 + 1", going=True, has="2"), key("C-d", restarted=True), needs=_needs_program("python3", "python3")),
    Wedge("exec sh", goes_on("exec sh -i", restarted=None), typed("exit 5", code=5, restarted=True)),
    Wedge("exec cat", goes_on("exec cat"), typed("x", going=True, content="x"),
          key("C-d", code=0, restarted=True)),
    Wedge("kill -9 $$", dies("kill -9 $$", 137)),
    Wedge("kill -HUP $$", dies("kill -HUP $$", 129)),
    Wedge("kill -TERM $$", "kill -TERM $$"),
    Wedge("kill -INT $$", Step("kill -INT $$", code_any=True)),
    Wedge("kill -SEGV $$", dies("kill -SEGV $$", 139)),
    Wedge("kill -STOP $$", Step("kill -STOP $$")),
    Wedge("kill -TSTP $$", "kill -TSTP $$"),
    Wedge("suspend", Step("suspend -f", code_any=True)),
    Wedge("kill 0", Step("kill 0", code_any=True)),
    Wedge("kill -9 of the group", dies("kill -9 -$$", 137)),
    # it is in the foreground when it tells: bash itself would not be stopped
    Wedge("a stopped job", goes_on("(echo began; exec sleep 1000)", until="began"), key("C-z", code=148),
          undo=["kill -9 %1", "wait", "jobs"]),
    Wedge("a job that reads the terminal", "cat & sleep 0.05", undo=["kill -9 %1", "wait", "jobs"]),
    Wedge("the directory removed",
          "mkdir gone && cd gone && rmdir ../gone", kept=False, undo=["cd .."]),
    Wedge("the directory removed, then exit", "mkdir gone && cd gone && rmdir ../gone",
          dies("exit 0", 0)),
    Wedge("a background printer", "while :; do echo noise; sleep 0.01; done & disown; N=$!",
          shows=None, undo=["kill -9 $N; sleep 0.05"]),
    Wedge("a fast background printer", "yes & disown; N=$!", shows=None,
          undo=["kill -9 $N; sleep 0.05"]),
    Wedge("a foreground process that was killed raw",
          "bash -c 'stty raw -echo; kill -9 $$'; true"),
    Wedge("the terminal given away",
          Step("python3 -c 'import os,signal; signal.signal(signal.SIGTTOU, signal.SIG_IGN);"
               " p=os.fork()\nif p==0:\n os.setpgid(0,0); os.tcsetpgrp(0,os.getpgrp()); "
               "os._exit(0)\nos.waitpid(p,0)'", code_any=True),
          needs=_needs_program("python3", "python3")),
    Wedge("the shell stopped again and again",
          "(for i in $(seq 100); do kill -STOP $$; sleep 0.01; done) & disown; sleep 0.2", seconds=6),
    Wedge("the shell traced for a moment", Step("(" + _python(
          "c = ctypes.CDLL(None)\nc.ptrace(16, int(sys.argv[1]), 0, 0)\ntime.sleep(0.3)") + " $$ & disown); sleep 0.1",
          code_any=True), needs=_needs_program("python3", "python3"), seconds=4),
]

NAMES = [
    Wedge("PATH empty", "PATH=", undo=["export PATH=$E2E_PATH"]),
    Wedge("PATH unset", "unset PATH", undo=["export PATH=$E2E_PATH"]),
    Wedge("PATH empty, a new shell", "export PATH=", dies("exit", 0),
          undo=["export PATH=$E2E_PATH"]),
    Wedge("HOME unset", "unset HOME", undo=["export HOME=$E2E_HOME"]),
    Wedge("HOME unset, a new shell", "unset HOME", dies("exit", 0), undo=["export HOME=$E2E_HOME"]),
    Wedge("PWD changed", "PWD=/nonexistent", undo=["cd ."]),
    Wedge("PWD unset", "unset PWD", undo=["cd ."]),
    Wedge("SHELL and BASH odd", "export SHELL=/bin/false BASH_ENV=/nonexistent ENV=/nonexistent",
          undo=["export SHELL=/bin/bash; unset BASH_ENV ENV"]),
    Wedge("built-ins are functions",
          "builtin() { :; }; printf() { :; }; read() { :; }; eval() { :; }; export() { :; }; "
          "trap() { :; }; set() { :; }; unset() { :; }; [() { :; }; declare() { :; }; "
          "exec() { :; }; command() { :; }; bind() { :; }; source() { :; }; .() { :; }; "
          "test() { :; }; :() { false; }", undo=["\\exit 2>/dev/null; kill -9 $$"]),
    Wedge("functions named as other words", "test() { false; }; history() { false; }; true() { "
          "false; }; shopt() { :; }", undo=["unset -f test history true shopt"]),
    Wedge("functions that print", "printf() { echo P; }; read() { echo R; }",
          undo=["unset -f printf read"]),
    Wedge("exported functions, a new shell",
          "read() { :; }; printf() { :; }; export -f read printf", dies("exit", 0),
          undo=["unset -f read printf"]),
    Wedge("an alias for everything",
          "alias printf='echo P' read='echo R' builtin='echo B' eval='echo E' export='echo X' "
          "unset='echo U' set='echo S' bind='echo b' test='echo T' :='echo C' .='echo D'",
          undo=["\\unalias -a"]),
    Wedge("an alias for a reserved word", Step("alias {='echo {'", code_any=True, restarted=None),
          undo=["\\unalias -a"]),
    Wedge("a command alias that does not end", "alias true='while :'", undo=["unalias -a"]),
    Wedge("enable -n of built-ins", "enable -n printf read eval bind export", undo=[
        "enable printf read eval bind export"]),
    Wedge("enable -n printf", "enable -n printf", undo=["enable printf"]),
    Wedge("enable -n of builtin", "enable -n builtin", undo=["exit"]),
    Wedge("enable -n of everything", "enable -n -a 2>/dev/null; enable -n $(enable -p | sed "
          "'s/^enable //;/^enable$/d;/^echo$/d;/^cd$/d')", undo=["kill -9 $$", ]),
    Wedge("IFS odd", "IFS=1234567890abcdefhr", undo=["unset IFS"]),
    Wedge("IFS empty", "IFS=", undo=["unset IFS"]),
    Wedge("IFS read-only", "IFS=x; readonly IFS", undo=["exit"]),
    Wedge("LANG=C", "export LANG=C LC_ALL=C", undo=["unset LC_ALL; export LANG=C.UTF-8"]),
    Wedge("LC_ALL unknown", "export LC_ALL=nonsense 2>/dev/null", undo=["unset LC_ALL"]),
    Wedge("LC_ALL unknown, a new shell", "export LC_ALL=nonsense 2>/dev/null", dies("exit", 0),
          undo=["unset LC_ALL"]),
    Wedge("our variables unset", "unset __hr_n __hr_a __hr_b __hr_s"),
    Wedge("our builtin disabled", "enable -n __hr_line 2>/dev/null; true",
          undo=["enable __hr_line 2>/dev/null; true"]),
    Wedge("our builtin deleted", "enable -d __hr_line 2>/dev/null; true", undo=["exit"]),
    Wedge("our builtin used by hand",
          "__hr_line - /dev/null 2>/dev/null; __hr_line 2>/dev/null; true"),
    Wedge("our builtin deleted, and its name read-only",
          "enable -d __hr_line 2>/dev/null; readonly __hr_b", undo=["exit"]),
    Wedge("our builtin under another name", "__hr_b=(:)"),
    Wedge("our builtin under no name", Step("__hr_b=; (exit 3)", code=3)),
    Wedge("our builtin's name exported", "export __hr_b=__hr_line"),
    Wedge("our builtin's name for another", "unset __hr_b; declare -n __hr_b=PATH 2>/dev/null; true",
          undo=["unset -n __hr_b"]),
    Wedge("our nonce changed", "__hr_n=x"),
    Wedge("our nonce exported", "export __hr_n"),
    Wedge("our variables read-only", "readonly __hr_n __hr_a __hr_b __hr_s", undo=["exit"]),
    Wedge("our variables read-only and wrong",
          "unset __hr_n; __hr_n=x; readonly __hr_n __hr_a", undo=["exit"]),
    Wedge("our variables integers and arrays",
          "unset __hr_a; declare -a __hr_a; declare -i __hr_s", undo=["unset __hr_a __hr_s"]),
    Wedge("a name reference", "declare -n __hr_a=PATH 2>/dev/null; true",
          undo=["unset -n __hr_a; PATH=$E2E_PATH"]),
    Wedge("readonly of common words", "readonly PATH HOME TERM PWD OLDPWD EUID REPLY", undo=["exit"]),
    Wedge("BASHPID and EUID unset", "unset BASHPID; unset RANDOM; unset LINENO; unset DIRSTACK"),
    Wedge("COLUMNS and LINES odd", "export COLUMNS=1 LINES=1", undo=["unset COLUMNS LINES"]),
    Wedge("a very large environment variable",
          "export BIG=$(head -c 120000 /dev/zero | tr '\\0' x)", undo=["unset BIG"]),
    Wedge("an exported variable with newlines and quotes, a new shell",
          "export ODD=$'a\\nb\\'\"$(false)\\001\\e[31m'", dies("exit", 0),
          Step("printf %q \"$ODD\"", content="$'a\\nb\\'\"$(false)\\001\\E[31m'"),
          undo=["unset ODD"]),
]

PROGRAMS = [
    Wedge("bash inside bash", "bash", Step("echo in", content="in"), Step("exit 7", code=7)),
    Wedge("bash --norc --noediting", "bash --norc --noediting", Step("exit 7", code=7)),
    Wedge("env -i bash", goes_on("env -i bash --norc"), typed("exit 7", code=7)),
    Wedge("bash --posix", "bash --posix --norc", Step("exit 0")),
    Wedge("sh", goes_on("sh -i"), typed("exit 6", code=6)),
    Wedge("dash", goes_on("dash -i"), key("C-d", code_any=True),
          needs=_needs_program("dash", "dash")),
    Wedge("the Python prompt", goes_on("python3 -q", until=">>>"), key("C-d"),
          needs=_needs_program("python3", "python3")),
    # -p: with our HOME, so without what root's own start-up files may do
    Wedge("su", Step("su -p root"), Step("exit 4", code=4), needs=_needs_root),
    Wedge("su in a login shell", goes_on("su - root", until="#"), key("C-d", code_any=True),
          needs=_needs_root),
    Wedge("script", goes_on("SHELL=/bin/bash script -q /dev/null", code_any=True),
          typed("exit 0", code_any=True), needs=_needs_program("script", "bsdutils")),
    Wedge("cat, then C-d", goes_on("cat"), key("C-d")),
    Wedge("cat, then C-c", goes_on("cat"), key("C-c", code=130)),
    Wedge("C-\\", goes_on("sleep 1000"), key("C-\\", code=131)),
    Wedge("read -s, then C-c", goes_on("read -s x"), key("C-c", code=130)),
    Wedge("read -e, then a line", goes_on("read -e x"), typed("y")),
    Wedge("read -t of nothing", Step("read -t 0.1 x", code=142)),
    Wedge("an unfinished quote, then C-c", goes_on("echo \"not ended"), key("C-c", code=130)),
    Wedge("an unfinished here-document, then C-c", goes_on("cat <<EOF"), key("C-c", code=130)),
    Wedge("an unfinished loop, then its end", goes_on("for i in 1 2; do"), typed("true; done")),
    Wedge("a pipe without end, then C-c", goes_on("echo x |"), key("C-c", code=130)),
    Wedge("yes, then C-c", goes_on("yes"), key("C-c", code=130)),
    Wedge("yes in binary, then C-c", goes_on("cat /dev/urandom"), key("C-c", code=130)),
    Wedge("a loop, then C-c", goes_on("while :; do :; done"), key("C-c", code=130)),
    Wedge("select, then C-d", goes_on("select x in a b; do break; done", until="#?"),
          key("C-d", code_any=True)),
    Wedge("less", goes_on("seq 5000 | less"), typed("q", code_any=True),
          needs=_needs_program("less", "less")),
    Wedge("vi", goes_on("vi -u NONE file"), typed(":q!", code_any=True),
          needs=_needs_program("vi", "vim-tiny")),
    Wedge("vi killed", goes_on("vi -u NONE file", until="~"), key("C-z", code=148),
          Step("kill -9 %1", code_any=True), "jobs", "jobs", needs=_needs_program("vi", "vim-tiny")),
    Wedge("input longer than a line of the terminal", goes_on("cat > /dev/null"),
          typed("x" * 9000, going=True), key("C-c", code=130)),
]

# blocking: typing so much takes readline a second and more on a busy machine
SIZES = [
    Wedge("a line of 4095 bytes", Step(": " + "x" * 4093)),
    Wedge("a line of 4096 bytes", Step(": " + "x" * 4094)),
    Wedge("a line of 64 KB", Step(": " + "x" * 65536, blocking=True)),
    Wedge("a here-document of 200 KB",
          Step("wc -c <<'EOF'\n%sEOF" % ("0123456789abcdef\n" * 12000), content="204000",
               blocking=True)),
    Wedge("tabs, marks and control characters", Step("printf %s 'a\tb\x01\x03\x04\x16\x1b[201~c' "
                                                    "| od -An -tx1",
                                                    content="61 09 62 01 03 04 16 1b 5b 32 30 31 7e 63")),
    Wedge("a command of 3000 lines", Step("{\n%s}" % (":\n" * 3000), blocking=True)),
    Wedge("10 MB in one line", Step("head -c 10000000 /dev/zero | tr '\\0' x", blocking=True),
          seconds=20),
    Wedge("NULs", Step("head -c 100000 /dev/zero")),
    Wedge("a million short lines", Step("seq 1 1000000"), seconds=20),
    Wedge("20 000 escape sequences", Step("for i in $(seq 20000); do printf '\\e[31m\\e[H\\e[K'; "
                                          "done")),
]

# none of these is a command; after some bash waits for more
SYNTAX = [Wedge("syntax: " + text, Step(text, given_up=True, timeout=0.3)) for text in r"""
[[() { :; }~[[ a b ]]~[[ -f x && ]]~[[ ( a ]]~[[ a =~ ( ]]~[[ ! ]]~[[ ]]~[[ -z~[[ a && b
if then~fi~done~for~for x in; }~case x in esac)~case x in~while~select~if true; then [[
((~(( 1 + ))~$((1+~echo $(~echo ${a~${~${x!}~echo ${x@Z}~${a[}~a[=1~((x~for ((i=0;i<~let 1+
{ echo~}~)~a)~echo )~echo a | | b~;;~echo a ;; b~echo <<~echo >~a=(1 2~a=(1 (2~declare -A x=([a
function~function f~f() echo~coproc {~time (~! !~"~`~`a~$(case x in a) )~<(~echo `(`~test (~echo !(
""".replace("\n", "~").split("~") if text]

GROUPS = {"syntax": SYNTAX, "terminal": TERMINAL, "prompt": PROMPT, "options": OPTIONS, "descriptors": DESCRIPTORS,
          "ends": ENDS, "names": NAMES, "programs": PROGRAMS, "sizes": SIZES}
