# Pure functions on text; needs no library but libbase.
noinst_LTLIBRARIES += libshell.la
libshell_la_SOURCES = \
	%D%/comsub.c \
	%D%/expand.c \
	%D%/exports.c %D%/exports.h \
	%D%/heredoc.c %D%/heredoc.h \
	%D%/keys.c %D%/keys.h \
	%D%/lex.c %D%/lex.h \
	%D%/parse.c %D%/parse.h \
	%D%/quote.c %D%/quote.h \
	%D%/split.c %D%/split.h \
	%D%/text.c %D%/text.h \
	%D%/word.c %D%/word.h
