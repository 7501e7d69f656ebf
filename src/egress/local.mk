# The way of boxes to the network. The first library makes no system call; libhandrail has it, too.
noinst_LTLIBRARIES += libegress.la
# a line for each module, so that additions do not meet
libegress_la_SOURCES = $(EGRESS_SOURCES)
EGRESS_SOURCES = \
	%D%/edge.c %D%/edge.h \
	%D%/edge_text.c %D%/edge_text.h \
	%D%/policy.c %D%/policy.h %D%/policy_int.h \
	%D%/policy_proxy.c \
	%D%/policy_read.c \
	%D%/policy_show.c \
	%D%/policy_table.c \
	%D%/policy_target.c \
	%D%/policy_within.c \
	%D%/wire.c %D%/wire.h
libegress_la_CFLAGS = $(AM_CFLAGS) $(JSONC_CFLAGS)
libegress_la_LIBADD = libprotojson.la libbase.la
if BOX
# The authority of a box is apart, so that nothing else loads libcrypto.
noinst_LTLIBRARIES += libegressauthority.la
libegressauthority_la_SOURCES = %D%/authority.c
libegressauthority_la_CFLAGS = $(AM_CFLAGS) $(CRYPTO_CFLAGS)
libegressauthority_la_LIBADD = libegress.la $(CRYPTO_LIBS)

# Tests link the parts of the broker that decide nothing.
noinst_LTLIBRARIES += libegressbroker.la
libegressbroker_la_SOURCES = \
	%D%/dial.c %D%/dial.h \
	%D%/event.h \
	%D%/log.c %D%/log.h \
	%D%/names.c %D%/names.h \
	%D%/proxy.c %D%/proxy.h \
	%D%/resolve.c %D%/resolve.h \
	%D%/told.c %D%/told.h
libegressbroker_la_CFLAGS = $(AM_CFLAGS) $(JSONC_CFLAGS) $(CARES_CFLAGS)
libegressbroker_la_LIBADD = libegress.la libloop.la $(CARES_LIBS)
pkglibexec_PROGRAMS += handrail-egress
handrail_egress_SOURCES = \
	%D%/broker.c %D%/broker.h %D%/broker_int.h \
	%D%/conn.c \
	%D%/control.c \
	%D%/dns.c \
	%D%/held.h \
	%D%/inspect.c \
	%D%/keeper.c %D%/keeper.h \
	%D%/listen.c %D%/listen.h \
	%D%/main.c
handrail_egress_CFLAGS = $(AM_CFLAGS) $(JSONC_CFLAGS) -DHR_PKGDATADIR='"$(pkgdatadir)"'
handrail_egress_LDADD = libegressauthority.la libegressbroker.la
endif
