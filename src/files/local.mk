# operations on the user's files, for the actions and the workers
noinst_LTLIBRARIES += libfiles.la
libfiles_la_SOURCES = \
	%D%/place/atomic.c %D%/place/atomic.h \
	%D%/binary.c %D%/binary.h \
	%D%/charset/charset.c %D%/charset/charset.h \
	%D%/charset/charsetname.c \
	%D%/charset/detect.h \
	%D%/diff.c %D%/diff.h \
	%D%/dirpage.c %D%/dirpage.h \
	%D%/document.c %D%/document.h \
	%D%/editor/edchange.c \
	%D%/editor/eddir.c \
	%D%/editor/edfile.c \
	%D%/editor/editor.c %D%/editor/editor.h %D%/editor/editor_int.h \
	%D%/editor/edview.c \
	%D%/charset/encoding.c %D%/charset/encoding.h \
	%D%/byteparts.c %D%/byteparts.h \
	%D%/filebody.c %D%/filebody.h \
	%D%/charset/guess.c %D%/charset/guess.h \
	%D%/history.c %D%/history.h \
	%D%/place/commit.h \
	%D%/multipart.c %D%/multipart.h \
	%D%/params.c %D%/params.h \
	%D%/pdfpage.c %D%/pdfpage.h \
	%D%/pdftext.c %D%/pdftext.h \
	%D%/picture.c %D%/picture.h \
	%D%/purepath.c %D%/purepath.h \
	%D%/pytext.c %D%/pytext.h \
	%D%/readwrite.c %D%/readwrite.h \
	%D%/revise/change.c %D%/revise/file.c %D%/revise/revise.h \
	%D%/revise/plaintext.c %D%/revise/plaintext.h \
	%D%/textfile.c %D%/textfile.h \
	%D%/viewpage.c %D%/viewpage.h \
	%D%/archive/zip.c %D%/archive/zip.h
libfiles_la_CFLAGS = $(AM_CFLAGS) $(JSONC_CFLAGS)
libfiles_la_LIBADD = libplace.la libprotojson.la libbase.la $(DL_LIBS)

# searches in trees, for the MCP endpoint
noinst_LTLIBRARIES += libsearch.la
libsearch_la_SOURCES = \
	%D%/search/above.c \
	%D%/search/globs.c \
	%D%/search/grep.c \
	%D%/search/ignore.c \
	%D%/search/search.h \
	%D%/search/walk.c
libsearch_la_CFLAGS = $(AM_CFLAGS) $(PCRE2_CFLAGS)
libsearch_la_LIBADD = libplace.la libbase.la $(PCRE2_LIBS)

# places of files and their replacement: everything that the module below uses
noinst_LTLIBRARIES += libplace.la
libplace_la_SOURCES = \
	%D%/place/beneath.c %D%/place/beneath.h \
	%D%/place/oserror.c %D%/place/oserror.h \
	%D%/place/reach.c %D%/place/reach.h \
	%D%/place/spool.c %D%/place/spool.h \
	%D%/place/target.c %D%/place/target.h \
	%D%/place/whole.c %D%/place/whole.h
libplace_la_CFLAGS = $(AM_CFLAGS) $(JSONC_CFLAGS)
libplace_la_LIBADD = libprotojson.la libbase.la

# The code that uses libarchive: a module, for the few workers that need it. Tests link its parts.
noinst_LTLIBRARIES += libarchives.la
libarchives_la_SOURCES = \
	%D%/archive/merge.c \
	%D%/archive/pack.c %D%/archive/pack.h \
	%D%/archive/tree.h %D%/archive/treepack.c %D%/archive/treeunpack.c \
	%D%/archive/unpack.c %D%/archive/unpack.h %D%/archive/unpack_int.h
libarchives_la_CFLAGS = $(AM_CFLAGS) $(ARCHIVE_CFLAGS) $(JSONC_CFLAGS)
libarchives_la_LIBADD = $(ARCHIVE_LIBS)

# The queries of libuchardet and libmagic: modules in the workers, linked directly in the tests.
noinst_LTLIBRARIES += libdetect.la libdetectload.la
libdetect_la_SOURCES = %D%/charset/detectcharset.c %D%/charset/detectkind.c
libdetect_la_CFLAGS = $(AM_CFLAGS) $(MAGIC_CFLAGS) $(UCHARDET_CFLAGS)
libdetect_la_LIBADD = libbase.la $(MAGIC_LIBS) $(UCHARDET_LIBS)
libdetectload_la_SOURCES = %D%/charset/detectload.c

module_flags = -module -avoid-version -shared $(SHARED_LDFLAGS) $(SAN_CFLAGS) -export-symbols-regex
modules_LTLIBRARIES += handrail-charset.la handrail-kind.la handrail-zip.la
handrail_charset_la_SOURCES = %D%/charset/charset_module.c %D%/charset/detectcharset.c
handrail_charset_la_CFLAGS = $(AM_CFLAGS) $(UCHARDET_CFLAGS)
handrail_charset_la_LDFLAGS = $(module_flags) '^hr_charset_module$$'
handrail_charset_la_LIBADD = libbase.la $(UCHARDET_LIBS)
handrail_kind_la_SOURCES = %D%/charset/kind_module.c %D%/charset/detectkind.c
handrail_kind_la_CFLAGS = $(AM_CFLAGS) $(MAGIC_CFLAGS)
handrail_kind_la_LDFLAGS = $(module_flags) '^hr_kind_module$$'
handrail_kind_la_LIBADD = libbase.la $(MAGIC_LIBS)
handrail_zip_la_SOURCES = %D%/archive/zip_module.c
handrail_zip_la_LDFLAGS = $(module_flags) '^hr_zip_module$$'
handrail_zip_la_LIBADD = libarchives.la libplace.la

# programs that run from the build tree load them from here
MODULES = handrail-charset.so handrail-kind.so handrail-zip.so
noinst_DATA += $(MODULES)
handrail-charset.so: handrail-charset.la
	$(AM_V_GEN)$(copy_module)
handrail-kind.so: handrail-kind.la
	$(AM_V_GEN)$(copy_module)
handrail-zip.so: handrail-zip.la
	$(AM_V_GEN)$(copy_module)
CLEANFILES += $(MODULES)
