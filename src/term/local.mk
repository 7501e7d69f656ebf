noinst_LTLIBRARIES += libterm.la
libterm_la_SOURCES = \
	%D%/term.c %D%/term.h %D%/term_int.h \
	%D%/change.c \
	%D%/csi.c \
	%D%/flood.c \
	%D%/grid.c \
	%D%/history.c \
	%D%/parser.c \
	%D%/put.c \
	%D%/row.c \
	%D%/screen.c \
	%D%/sgr.c \
	%D%/text.c \
	%D%/width.c %D%/width_table.h
libterm_la_LIBADD = libbase.la

EXTRA_DIST += %D%/mkwidth.c
