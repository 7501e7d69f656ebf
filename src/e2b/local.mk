# The dialect of E2B's sandboxes: what its server parts share.
noinst_LTLIBRARIES += libe2b.la
libe2b_la_SOURCES = \
	%D%/entry.c %D%/entry.h \
	%D%/path.c %D%/path.h \
	%D%/setup.c %D%/setup.h \
	%D%/who.c %D%/who.h
libe2b_la_CFLAGS = $(AM_CFLAGS) $(JSONC_CFLAGS)
libe2b_la_LIBADD = libprotojson.la libproto.la libbase.la
