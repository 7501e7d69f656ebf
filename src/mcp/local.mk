# the door for agents, for the workers
noinst_LTLIBRARIES += libdoor.la
libdoor_la_SOURCES = \
	%D%/call.c %D%/call.h \
	%D%/env.h \
	%D%/list.c \
	%D%/mcp.c %D%/mcp.h \
	%D%/tool_files.c \
	%D%/tool_more.c \
	%D%/tool_read.c \
	%D%/tool_run.c \
	%D%/tool_search.c %D%/tool_sessions.c \
	%D%/tools.c \
	%D%/wait.c
libdoor_la_CFLAGS = $(AM_CFLAGS) $(JSONC_CFLAGS)
libdoor_la_LIBADD = librpc.la libactions.la libsearch.la libterm.la libshell.la

# its messages, for those on the other side, too
noinst_LTLIBRARIES += librpc.la
librpc_la_SOURCES = %D%/rpc.c %D%/rpc.h
librpc_la_CFLAGS = $(AM_CFLAGS) $(JSONC_CFLAGS)
librpc_la_LIBADD = libprotojson.la
