# linked with the library's parts, not the shared object: it uses its buffers and quoting as well
bin_PROGRAMS += handrail
handrail_SOURCES = \
	%D%/answer.c %D%/answer.h \
	%D%/cli.h %D%/main.c \
	%D%/cmd_act.c %D%/cmd_build.c %D%/cmd_clone.c %D%/cmd_events.c %D%/cmd_file.c %D%/cmd_fleet.c %D%/cmd_git.c %D%/cmd_host.c \
	%D%/cmd_life.c %D%/cmd_mcp.c %D%/cmd_misc.c %D%/cmd_pool.c %D%/cmd_url.c %D%/cmd_watch.c \
	%D%/commands.c %D%/commands.h \
	%D%/mcp.h %D%/mcp_config.c \
	%D%/observation.c %D%/observation.h \
	%D%/progress.c %D%/progress.h
handrail_CPPFLAGS = $(AM_CPPFLAGS) -DHR_SBINDIR='"$(sbindir)"'
handrail_CFLAGS = $(AM_CFLAGS) $(JSONC_CFLAGS)
handrail_LDADD = librpc.la $(HOST_PARTS)

# what bash-completion loads at the first use: the table is the program's own
bashcompletiondir = $(datadir)/bash-completion/completions
dist_bashcompletion_DATA = %D%/completion/handrail
