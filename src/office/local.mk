if OFFICE
# Office documents as text: a program, so that what they need is in no worker. Tests link its parts.
noinst_LTLIBRARIES += liboffice.la
liboffice_la_SOURCES = \
	%D%/docx.c \
	%D%/docxstyle.c \
	%D%/markdown.c \
	%D%/office.h %D%/office_int.h \
	%D%/ooparts.c \
	%D%/oorels.c \
	%D%/ooxml.c \
	%D%/pptx.c \
	%D%/xlsx.c \
	%D%/xlvalue.c %D%/xlvalue.h
liboffice_la_CFLAGS = $(AM_CFLAGS) $(ARCHIVE_CFLAGS) $(EXPAT_CFLAGS)
liboffice_la_LIBADD = libbase.la $(ARCHIVE_LIBS) $(EXPAT_LIBS) -lm
pkglibexec_PROGRAMS += handrail-office
handrail_office_SOURCES = %D%/main.c
handrail_office_LDADD = liboffice.la libbase.la
endif
