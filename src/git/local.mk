# the "changes" view of a client; run by commands of the sandbox
pkglibexec_PROGRAMS += handrail-git
handrail_git_SOURCES = \
	%D%/archive.c %D%/archive.h \
	%D%/changes.c \
	%D%/commits.c \
	%D%/diff.c \
	%D%/git.c %D%/git.h %D%/git_int.h \
	%D%/gitrun.c %D%/gitrun.h \
	%D%/main.c \
	%D%/v1.c
handrail_git_CFLAGS = $(AM_CFLAGS) $(JSONC_CFLAGS)
handrail_git_LDADD = libfiles.la libprotojson.la libbase.la
