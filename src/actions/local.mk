noinst_LTLIBRARIES += libactions.la
libactions_la_SOURCES = \
	%D%/act_files.c \
	%D%/act_plugins.c \
	%D%/act_run.c \
	%D%/action.h \
	%D%/command.c %D%/command.h \
	%D%/plugin.c %D%/plugin.h \
	%D%/shell.c %D%/shell.h \
	%D%/table.c
libactions_la_CFLAGS = $(AM_CFLAGS) $(JSONC_CFLAGS)
