# the state machine and what it is made of, without descriptors: unit tests link it
noinst_LTLIBRARIES += libsession.la
libsession_la_SOURCES = \
	%D%/answer.c \
	%D%/clocks.c \
	%D%/core.c %D%/core.h %D%/core_int.h \
	%D%/core_kept.c \
	%D%/view/echo.c %D%/view/echo.h \
	%D%/prompt/fields.h \
	%D%/prompt/hook.c %D%/prompt/hook.h \
	%D%/prompt/report.c %D%/prompt/report.h \
	%D%/typing.c \
	%D%/view/view.c %D%/view/view.h %D%/view/view_int.h %D%/view/view_take.c \
	%D%/watch.c
libsession_la_LIBADD = libterm.la libshell.la libbase.la

noinst_LTLIBRARIES += libkeeper.la
libkeeper_la_SOURCES = \
	%D%/claims.c \
	%D%/client.c \
	%D%/commands.c %D%/commands.h \
	%D%/confine.c %D%/confine.h \
	%D%/netlog.c %D%/netlog.h \
	%D%/environ.c %D%/environ.h \
	%D%/exec.c %D%/exec_work.c %D%/exec_work.h \
	%D%/files.c \
	%D%/follow.c \
	%D%/keeper.c %D%/keeper.h %D%/keeper_int.h \
	%D%/kept.c %D%/kept.h \
	%D%/look.c \
	%D%/outlog.c %D%/outlog.h \
	%D%/prompt.c \
	%D%/python.c %D%/python.h \
	%D%/resume.c \
	%D%/shell.c %D%/shell_ack.c \
	%D%/shellproc.c %D%/shellproc.h \
	%D%/statedir.c %D%/statedir.h
libkeeper_la_LIBADD = libsession.la libproto.la libloop.la -lutil

pkglibexec_PROGRAMS += handrail-session
handrail_session_SOURCES = %D%/main.c
handrail_session_LDADD = libkeeper.la

# Loaded by bash, which has no sanitizer; never unloaded, as readline keeps pointers into it.
modules_LTLIBRARIES += handrail-line.la
handrail_line_la_SOURCES = %D%/prompt/line_int.h %D%/prompt/mount.h %D%/prompt/line_module.c \
	%D%/prompt/line_place.c %D%/prompt/line_prompt.c
handrail_line_la_CFLAGS = $(WARN_CFLAGS) $(HARDEN_CFLAGS)
handrail_line_la_LDFLAGS = -module -avoid-version -shared -export-symbols-regex '^__hr_line_struct$$' \
	-Wl,-z,nodelete $(SHARED_LDFLAGS)
handrail_line_la_LIBADD = $(DL_LIBS)
noinst_DATA += handrail-line.so
handrail-line.so: handrail-line.la
	$(AM_V_GEN)$(copy_module)
CLEANFILES += handrail-line.so
