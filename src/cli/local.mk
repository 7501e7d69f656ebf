# linked with the library's parts, not the shared object: the command also uses its buffers and quoting
bin_PROGRAMS += handrail
handrail_SOURCES = \
	%D%/answer.c %D%/answer.h \
	%D%/choose.c %D%/cli.h %D%/main.c \
	%D%/cmd_act.c %D%/cmd_build.c %D%/cmd_clone.c %D%/cmd_completion.c %D%/cmd_edit.c %D%/cmd_events.c %D%/cmd_file.c %D%/cmd_fleet.c %D%/cmd_fleet_net.c %D%/cmd_git.c %D%/cmd_host.c \
	%D%/cmd_fork.c %D%/cmd_life.c %D%/cmd_mcp.c %D%/cmd_misc.c %D%/cmd_net.c %D%/cmd_pool.c %D%/cmd_ps.c %D%/cmd_secret.c %D%/cmd_snapshot.c %D%/cmd_url.c %D%/cmd_watch.c \
	%D%/commands.c %D%/commands.h \
	%D%/direct.c \
	%D%/fleet.h \
	%D%/live.c %D%/live.h \
	%D%/mcp.h %D%/mcp_branches.c %D%/mcp_branches.h %D%/mcp_config.c \
	%D%/observation.c %D%/observation.h \
	%D%/options.c %D%/options.h \
	%D%/progress.c %D%/progress.h \
	%D%/say.c \
	%D%/shown.c %D%/shown.h \
	%D%/stdin.c %D%/stdin.h \
	%D%/terminal.c %D%/terminal.h \
	%D%/watched.c %D%/watched.h \
	%D%/words.c
handrail_CPPFLAGS = $(AM_CPPFLAGS) -DHR_SBINDIR='"$(sbindir)"'
handrail_CFLAGS = $(AM_CFLAGS) $(JSONC_CFLAGS)
handrail_LDADD = librpc.la libdetectload.la libfiles.la $(HOST_PARTS)

# functions that shells load at the first use; the program has the tables. Debian's zsh loads those of packages from
# zsh/vendor-completions (debian/rules)
bashcompletiondir = $(datadir)/bash-completion/completions
dist_bashcompletion_DATA = %D%/completion/handrail
zshcompletiondir = $(datadir)/zsh/site-functions
dist_zshcompletion_DATA = %D%/completion/_handrail
fishcompletiondir = $(datadir)/fish/vendor_completions.d
dist_fishcompletion_DATA = %D%/completion/handrail.fish
