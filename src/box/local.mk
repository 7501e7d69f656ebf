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
	%D%/spec.c %D%/spec.h \
	%D%/start.c %D%/start.h \
	%D%/view.c %D%/view.h
libbox_la_CFLAGS = $(AM_CFLAGS) $(JSONC_CFLAGS) $(SECCOMP_CFLAGS) $(CAP_CFLAGS)
libbox_la_LIBADD = libprotojson.la libbase.la $(SECCOMP_LIBS) $(CAP_LIBS)
pkglibexec_PROGRAMS += handrail-box handrail-forward
handrail_box_SOURCES = %D%/main.c
handrail_box_LDADD = libbox.la
handrail_forward_SOURCES = %D%/forward.c %D%/peer.c %D%/peer.h
handrail_forward_LDADD = libloop.la libbase.la
endif
