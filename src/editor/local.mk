# one call of the editor, for the agents' functions in the kernel
pkglibexec_PROGRAMS += handrail-editor
handrail_editor_SOURCES = %D%/main.c
handrail_editor_CFLAGS = $(AM_CFLAGS) $(JSONC_CFLAGS)
handrail_editor_LDADD = libdetectload.la libfiles.la libprotojson.la libbase.la $(JSONC_LIBS)
