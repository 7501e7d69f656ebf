noinst_LTLIBRARIES += libbase.la
libbase_la_SOURCES = \
	%D%/account.c %D%/account.h \
	%D%/err.c %D%/err.h \
	%D%/buf.c %D%/buf.h %D%/clean.h \
	%D%/clock.c %D%/clock.h \
	%D%/dir.c %D%/dir.h \
	%D%/fd.c %D%/fd.h \
	%D%/floatrepr.c %D%/floatrepr.h \
	%D%/grow.c %D%/grow.h \
	%D%/handover.c %D%/handover.h \
	%D%/hash.h \
	%D%/log.c %D%/log.h \
	%D%/loglines.c %D%/loglines.h \
	%D%/module.c %D%/module.h \
	%D%/nearest.c %D%/nearest.h \
	%D%/notify.c %D%/notify.h \
	%D%/path.c %D%/path.h \
	%D%/peer.c %D%/peer.h \
	%D%/percent.c %D%/percent.h \
	%D%/pid.c %D%/pid.h \
	%D%/plain.c %D%/plain.h \
	%D%/quote.c %D%/quote.h \
	%D%/random.c %D%/random.h \
	%D%/tame.c %D%/tame.h \
	%D%/tempfiles.c %D%/tempfiles.h \
	%D%/span.h \
	%D%/spawn.c %D%/spawn.h \
	%D%/strv.c %D%/strv.h \
	%D%/swar.h \
	%D%/template.c %D%/template.h \
	%D%/text.c %D%/text.h \
	%D%/trust.c %D%/trust.h \
	%D%/utf8.c %D%/utf8.h \
	%D%/way.c %D%/way.h
libbase_la_LIBADD = $(DL_LIBS)

# apart: only programs with an event loop need libevent
noinst_LTLIBRARIES += libloop.la
libloop_la_SOURCES = %D%/loop.c %D%/loop.h
libloop_la_CFLAGS = $(AM_CFLAGS) $(EVENT_CFLAGS)
libloop_la_LIBADD = libbase.la $(EVENT_LIBS)
