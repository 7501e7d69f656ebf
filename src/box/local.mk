if BOX
# The launcher of boxes. Tests link its parts.
noinst_LTLIBRARIES += libbox.la
libbox_la_SOURCES = \
	%D%/copy.c %D%/copy.h \
	%D%/fence.c %D%/fence.h \
	%D%/group.c %D%/group.h \
	%D%/guard.c %D%/guard.h \
	%D%/ids.c %D%/ids.h \
	%D%/layer.c %D%/layer.h \
	%D%/mask.c %D%/mask.h \
	%D%/mount.c %D%/mount.h \
	%D%/overlay.c %D%/overlay.h \
	%D%/rest.c %D%/rest.h \
	%D%/shift.c %D%/shift.h \
	%D%/size.c %D%/size.h \
	%D%/skeleton.c %D%/skeleton.h \
	%D%/snapshot.c %D%/snapshot.h \
	%D%/spec.c %D%/spec.h \
	%D%/start.c %D%/start.h \
	%D%/table.c %D%/table.h \
	%D%/view.c %D%/view.h
nodist_libbox_la_SOURCES = %D%/filter.h
libbox_la_CPPFLAGS = $(AM_CPPFLAGS) -I$(top_builddir)/src
libbox_la_CFLAGS = $(AM_CFLAGS) $(JSONC_CFLAGS)
libbox_la_LIBADD = libprotojson.la libbase.la
# the filter of system calls, for this processor
noinst_PROGRAMS += %D%/mkfilter
%C%_mkfilter_SOURCES = %D%/mkfilter.c
%C%_mkfilter_CFLAGS = $(AM_CFLAGS) $(SECCOMP_CFLAGS)
%C%_mkfilter_LDADD = $(SECCOMP_LIBS)
%D%/filter.h: %D%/mkfilter$(EXEEXT)
	$(AM_V_GEN)%D%/mkfilter$(EXEEXT) >$@~ && mv $@~ $@
$(libbox_la_OBJECTS): %D%/filter.h
BUILT_SOURCES += %D%/filter.h
CLEANFILES += %D%/filter.h
pkglibexec_PROGRAMS += handrail-box handrail-forward
handrail_box_SOURCES = %D%/main.c
handrail_box_LDADD = libbox.la
# "handrail snapshot export" and "import": apart, so that no box loads libarchive
pkglibexec_PROGRAMS += handrail-layer
handrail_layer_SOURCES = %D%/oci/export.c %D%/oci/import.c %D%/oci/main.c %D%/oci/oci.h %D%/oci/out.c %D%/oci/pack.c %D%/oci/unpack.c
handrail_layer_CFLAGS = $(AM_CFLAGS) $(ARCHIVE_CFLAGS) $(JSONC_CFLAGS) $(MD_CFLAGS)
handrail_layer_LDADD = libbox.la $(ARCHIVE_LIBS) $(MD_LIBS)
handrail_forward_SOURCES = %D%/forward.c
handrail_forward_LDADD = libloop.la libbase.la
endif
