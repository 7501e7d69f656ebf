noinst_LTLIBRARIES += libbase.la
libbase_la_SOURCES = \
	%D%/account.c %D%/account.h \
	%D%/err.c %D%/err.h \
	%D%/buf.c %D%/buf.h %D%/clean.h \
	%D%/clock.c %D%/clock.h \
	%D%/dir.c %D%/dir.h \
	%D%/fd.c %D%/fd.h \
	%D%/flush.c %D%/flush.h \
	%D%/text/floatrepr.c %D%/text/floatrepr.h \
	%D%/grow.c %D%/grow.h \
	%D%/process/handover.c %D%/process/handover.h \
	%D%/hash.h \
	%D%/process/hierarchy.c %D%/process/hierarchy.h \
	%D%/process/image.c %D%/process/image.h \
	%D%/log.c %D%/log.h \
	%D%/loglines.c %D%/loglines.h \
	%D%/loopback.c %D%/loopback.h \
	%D%/module.c %D%/module.h \
	%D%/text/nearest.c %D%/text/nearest.h \
	%D%/process/notify.c %D%/process/notify.h \
	%D%/path.c %D%/path.h %D%/pathtree.c \
	%D%/peer.c %D%/peer.h \
	%D%/text/percent.c %D%/text/percent.h \
	%D%/process/pid.c %D%/process/pid.h \
	%D%/plain.c %D%/plain.h \
	%D%/text/quote.c %D%/text/quote.h \
	%D%/random.c %D%/random.h \
	%D%/text/tame.c %D%/text/tame.h \
	%D%/tempfiles.c %D%/tempfiles.h \
	%D%/span.h \
	%D%/process/spawn.c %D%/process/spawn.h \
	%D%/strv.c %D%/strv.h \
	%D%/text/swar.h \
	%D%/text/template.c %D%/text/template.h \
	%D%/text/text.c %D%/text/text.h \
	%D%/trust.c %D%/trust.h \
	%D%/text/utf8.c %D%/text/utf8.h \
	%D%/volume.c %D%/volume.h \
	%D%/way.c %D%/way.h
libbase_la_LIBADD = $(DL_LIBS)

# apart: only programs with an event loop need libevent
noinst_LTLIBRARIES += libloop.la
libloop_la_SOURCES = %D%/loop.c %D%/loop.h %D%/tunnel.c %D%/tunnel.h
libloop_la_CFLAGS = $(AM_CFLAGS) $(EVENT_CFLAGS)
libloop_la_LIBADD = libbase.la $(EVENT_LIBS)
