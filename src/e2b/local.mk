# The dialect of E2B's sandboxes: what its server parts share.
noinst_LTLIBRARIES += libe2b.la
libe2b_la_SOURCES = \
	%D%/entry.c %D%/entry.h \
	%D%/gzip.c %D%/gzip.h \
	%D%/message.c %D%/message.h \
	%D%/path.c %D%/path.h \
	%D%/setup.c %D%/setup.h \
	%D%/who.c %D%/who.h
# also for its clients, so without a library behind it
noinst_LTLIBRARIES += libconnect.la
libconnect_la_SOURCES = %D%/connect.c %D%/connect.h
libe2b_la_CFLAGS = $(AM_CFLAGS) $(JSONC_CFLAGS) $(ZLIB_CFLAGS)
libe2b_la_LIBADD = libconnect.la libprotojson.la libproto.la libbase.la $(ZLIB_LIBS)
