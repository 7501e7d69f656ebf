# libproto: no library behind it, so that the keeper and the supervisor can link it.
# libkeysum: for those that check keys or read them.
# libprotojson: JSON, Python texts, events and answers, for the workers.
# libsigninweb: for those two that pages sign in to.
noinst_LTLIBRARIES += libproto.la libprotojson.la libkeysum.la libsigninweb.la
libproto_la_SOURCES = \
	%D%/channel.c %D%/channel.h \
	%D%/actin.c %D%/actin.h \
	%D%/frame.c %D%/frame.h \
	%D%/frame_fields.c %D%/frame_int.h \
	%D%/journal.c %D%/journal.h %D%/journal_int.h \
	%D%/journal_tidy.c \
	%D%/metrics.c %D%/metrics.h \
	%D%/scoreboard.c %D%/scoreboard.h \
	%D%/signin.c %D%/signin.h \
	%D%/unread.c %D%/unread.h \
	%D%/workerargs.c %D%/workerargs.h
libkeysum_la_SOURCES = %D%/auth.c %D%/auth.h %D%/keysum.c %D%/keysum.h
libkeysum_la_CFLAGS = $(AM_CFLAGS) $(MD_CFLAGS)
libkeysum_la_LIBADD = $(MD_LIBS)
libsigninweb_la_SOURCES = %D%/signinweb.c %D%/signinweb.h
libsigninweb_la_CFLAGS = $(AM_CFLAGS) $(JSONC_CFLAGS)
libsigninweb_la_LIBADD = libprotojson.la libkeysum.la libproto.la libbase.la
libprotojson_la_SOURCES = \
	%D%/evclass.c %D%/evclass.h \
	%D%/event.c %D%/event.h \
	%D%/evobs.c \
	%D%/httperr.c %D%/httperr.h \
	%D%/json.c %D%/json.h \
	%D%/jsonout.c \
	%D%/jsonscan.c %D%/jsonscan.h \
	%D%/jsonvalue.c \
	%D%/mcpserver.c %D%/mcpserver.h \
	%D%/obs.c %D%/obs.h \
	%D%/python/escape.c %D%/python/escape.h \
	%D%/python/literal.c %D%/python/literal.h \
	%D%/python/lower.c %D%/python/lower.h \
	%D%/python/repr.c %D%/python/repr.h
libprotojson_la_CFLAGS = $(AM_CFLAGS) $(JSONC_CFLAGS) $(UTF8PROC_CFLAGS)
libprotojson_la_LIBADD = $(JSONC_LIBS) $(UTF8PROC_LIBS) -lm
EXTRA_DIST += %D%/PROTOCOL
