include src/actions/local.mk
include src/mcp/local.mk

# everything but the edge to libfcgi, so that tests and fuzzers need no server
noinst_LTLIBRARIES += libworker.la
libworker_la_SOURCES = \
	%D%/request/body.c %D%/request/body.h \
	%D%/beside.h \
	%D%/door.c \
	%D%/e2b/compose.c \
	%D%/e2b/download.c \
	%D%/e2b/e2b.h \
	%D%/e2b/filesystem.c \
	%D%/e2b/metrics.c \
	%D%/e2b/mime.c %D%/e2b/mime.h \
	%D%/e2b/place.c \
	%D%/e2b/route.c \
	%D%/e2b/upload.c \
	%D%/e2b/write.c %D%/e2b/write.h \
	%D%/events.c \
	%D%/v0/execute.c \
	%D%/v0/files.c \
	%D%/hub.c %D%/hub.h \
	%D%/hub_page.c %D%/hub_page.h \
	%D%/hub_source.c %D%/hub_source.h \
	%D%/v0/download.c \
	%D%/request/nginxaccount.c %D%/request/nginxaccount.h \
	%D%/info.c \
	%D%/request/invalid.c %D%/request/invalid.h \
	%D%/request/key.c %D%/request/key.h \
	%D%/v0/list.c \
	%D%/live.c %D%/live.h \
	%D%/live_browser.c \
	%D%/live_cells.c \
	%D%/live_network.c \
	%D%/live_output.c \
	%D%/live_sessions.c \
	%D%/mcp.c \
	%D%/metrics.c %D%/metrics.h \
	%D%/once.c %D%/once.h \
	%D%/page.c %D%/page.h \
	%D%/port.c \
	%D%/ready.c %D%/ready.h \
	%D%/repeat.c %D%/repeat.h \
	%D%/request/request.h \
	%D%/rex/execute.c \
	%D%/rex/expect.c %D%/rex/expect.h \
	%D%/rex/files.c \
	%D%/rex/model.c \
	%D%/rex/rex.c %D%/rex/rex.h \
	%D%/rex/run.c \
	%D%/rex/session.c \
	%D%/rex/syntax.c \
	%D%/rex/talk.c \
	%D%/route.c \
	%D%/v0/simple.c \
	%D%/stats.c %D%/stats.h \
	%D%/stay.c %D%/stay.h \
	%D%/request/trace.c %D%/request/trace.h \
	%D%/v0/upload.c \
	%D%/v1/archive.c \
	%D%/v1/bash.c \
	%D%/v1/beside.c \
	%D%/v1/command.c %D%/v1/command.h \
	%D%/v1/dirs.c \
	%D%/v1/download.c \
	%D%/v1/events.c \
	%D%/v1/invalid.c \
	%D%/v1/query.c \
	%D%/v1/v1.c %D%/v1/v1.h \
	%D%/v0/tree.c \
	%D%/v0/view.c \
	%D%/worker.c %D%/worker.h
libworker_la_CFLAGS = $(AM_CFLAGS) $(FCGI_CFLAGS) $(JSONC_CFLAGS) $(PCRE2_CFLAGS) $(ZLIB_CFLAGS)
libworker_la_LIBADD = \
	libdoor.la libactions.la libe2b.la libsearch.la libsigninweb.la libfiles.la libprotojson.la libkeysum.la libproto.la libterm.la libshell.la libbase.la

pkglibexec_PROGRAMS += handrail-worker handrail-bound handrail-bash-events
handrail_bash_events_SOURCES = %D%/harden.c %D%/harden.h %D%/v1/follow.c %D%/v1/follow.h %D%/v1/socket.c
handrail_bash_events_CFLAGS = $(AM_CFLAGS) $(JSONC_CFLAGS)
handrail_bash_events_LDADD = libworker.la libdetectload.la libwsserve.la libloop.la libbase.la
handrail_bound_SOURCES = %D%/v1/bound.c %D%/v1/bound.h
handrail_bound_LDADD = libbase.la
handrail_worker_SOURCES = \
	%D%/accept.c %D%/request/fcgi.h \
	%D%/harden.c %D%/harden.h \
	%D%/main.c \
	%D%/request/reply.c %D%/request/reply.h
handrail_worker_CFLAGS = $(AM_CFLAGS) $(FCGI_CFLAGS) $(JSONC_CFLAGS)
handrail_worker_LDADD = libworker.la libdetectload.la $(FCGI_LIBS)
