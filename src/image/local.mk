# names and ingredients of images; uses no engine
noinst_LTLIBRARIES += libimagekit.la
libimagekit_la_SOURCES = \
	%D%/digest.c %D%/digest.h \
	%D%/dirhash.c %D%/dirhash.h \
	%D%/dockerfile.c %D%/dockerfile.h \
	%D%/kit.c %D%/kit.h \
	%D%/plan.c %D%/plan.h \
	%D%/tags.c %D%/tags.h
libimagekit_la_CFLAGS = $(AM_CFLAGS) $(MD_CFLAGS) $(UTF8PROC_CFLAGS) $(JSONC_CFLAGS)
libimagekit_la_LIBADD = $(MD_LIBS)
