# Tests of whole programs that `make check` runs: one of each kind. LONG_TESTS has the others, for `make check-all`.
# The server: its wire, edge, workers and upgrades; files; the shell; plugins; the protocols of other clients. Those that
# take the longest begin first.
TESTS += %D%/e2e/test_e2b_code.py %D%/e2e/test_jupyter.py %D%/e2e/test_v1.py
if HOST
# The command and the fleet, with sandboxes of this machine and of services that the tests stand in for.
TESTS += %D%/e2e/test_host_remote.py %D%/e2e/test_host_local.py %D%/e2e/test_clouds_replay.py %D%/e2e/test_fleet_paths.py
if KUBERNETES
TESTS += %D%/e2e/test_host_kubernetes_api.py
endif
endif
TESTS += %D%/e2e/test_conversations.py %D%/e2e/test_edge.py %D%/e2e/test_service.py %D%/e2e/test_once.py \
	%D%/e2e/test_files.py %D%/e2e/test_transfer.py %D%/e2e/test_git.py %D%/e2e/test_viewer.py %D%/e2e/test_www.py \
	%D%/e2e/test_keeper.py %D%/e2e/test_plugins.py \
	%D%/e2e/test_door.py %D%/e2e/test_mcp.py %D%/e2e/test_swerex.py %D%/e2e/test_v1_replay.py %D%/e2e/test_v1_sockets.py

# base
check_PROGRAMS += %D%/unit/test_fd %D%/unit/test_hierarchy %D%/unit/test_log %D%/unit/test_loop %D%/unit/test_path \
	%D%/unit/test_percent %D%/unit/test_tempfiles %D%/unit/test_spawn %D%/unit/test_trust %D%/unit/test_tunnel \
	%D%/unit/test_way %D%/unit/test_words
TESTS += %D%/unit/test_again.py %D%/unit/test_limit.py %D%/unit/test_mutate.py %D%/unit/test_quickstart.py
EXTRA_DIST += %D%/again %D%/flaky.log %D%/limit %D%/mutants.log %D%/mutate %D%/unit/test_again.py \
	%D%/unit/test_limit.py %D%/unit/test_mutate.py %D%/unit/test_quickstart.py
TESTS += %D%/unit/test_fd %D%/unit/test_hierarchy %D%/unit/test_log %D%/unit/test_loop %D%/unit/test_path \
	%D%/unit/test_percent %D%/unit/test_tempfiles %D%/unit/test_spawn %D%/unit/test_trust %D%/unit/test_tunnel \
	%D%/unit/test_way %D%/unit/test_words
t_unit_test_fd_SOURCES = %D%/unit/test_fd.c
t_unit_test_fd_CFLAGS = $(AM_CFLAGS) $(CHECK_CFLAGS)
t_unit_test_fd_LDADD = libbase.la $(CHECK_LIBS)
t_unit_test_hierarchy_SOURCES = %D%/unit/test_hierarchy.c %D%/unit/scratch.h
t_unit_test_hierarchy_CFLAGS = $(AM_CFLAGS) $(CHECK_CFLAGS)
t_unit_test_hierarchy_LDADD = libbase.la $(CHECK_LIBS)
t_unit_test_log_SOURCES = %D%/unit/test_log.c
t_unit_test_log_CFLAGS = $(AM_CFLAGS) $(CHECK_CFLAGS)
t_unit_test_log_LDADD = libbase.la $(CHECK_LIBS)
t_unit_test_loop_SOURCES = %D%/unit/test_loop.c
t_unit_test_loop_CFLAGS = $(AM_CFLAGS) $(CHECK_CFLAGS)
t_unit_test_loop_LDADD = libloop.la libbase.la $(CHECK_LIBS)
t_unit_test_path_SOURCES = %D%/unit/test_path.c
t_unit_test_path_CFLAGS = $(AM_CFLAGS) $(CHECK_CFLAGS)
t_unit_test_path_LDADD = libbase.la $(CHECK_LIBS)
t_unit_test_tempfiles_SOURCES = %D%/unit/test_tempfiles.c
t_unit_test_tempfiles_CFLAGS = $(AM_CFLAGS) $(CHECK_CFLAGS)
t_unit_test_tempfiles_LDADD = libbase.la $(CHECK_LIBS)
t_unit_test_percent_SOURCES = %D%/unit/test_percent.c
t_unit_test_percent_CFLAGS = $(AM_CFLAGS) $(CHECK_CFLAGS)
t_unit_test_percent_LDADD = libbase.la $(CHECK_LIBS)
t_unit_test_way_SOURCES = %D%/unit/test_way.c %D%/unit/scratch.h
t_unit_test_way_CFLAGS = $(AM_CFLAGS) $(CHECK_CFLAGS)
t_unit_test_way_LDADD = libbase.la $(CHECK_LIBS)
t_unit_test_words_SOURCES = %D%/unit/test_words.c
t_unit_test_words_CFLAGS = $(AM_CFLAGS) $(CHECK_CFLAGS)
t_unit_test_words_LDADD = libbase.la $(CHECK_LIBS)
t_unit_test_spawn_SOURCES = %D%/unit/test_spawn.c
t_unit_test_spawn_CFLAGS = $(AM_CFLAGS) $(CHECK_CFLAGS)
t_unit_test_spawn_LDADD = libbase.la $(CHECK_LIBS) -lpthread
t_unit_test_tunnel_SOURCES = %D%/unit/test_tunnel.c
t_unit_test_tunnel_CFLAGS = $(AM_CFLAGS) $(CHECK_CFLAGS)
t_unit_test_tunnel_LDADD = libloop.la libbase.la $(CHECK_LIBS)
t_unit_test_trust_SOURCES = %D%/unit/test_trust.c %D%/unit/scratch.h
t_unit_test_trust_CFLAGS = $(AM_CFLAGS) $(CHECK_CFLAGS)
t_unit_test_trust_LDADD = libbase.la $(CHECK_LIBS)

# proto and worker
check_PROGRAMS += %D%/unit/test_act_run %D%/unit/test_dirpage %D%/unit/test_event %D%/unit/test_frame \
	%D%/unit/test_handle %D%/unit/test_hub %D%/unit/test_journal %D%/unit/test_journal_dead %D%/unit/test_json \
	%D%/unit/test_obs %D%/unit/test_pyrepr %D%/unit/test_repeat
TESTS += %D%/unit/test_act_run %D%/unit/test_dirpage %D%/unit/test_event %D%/unit/test_frame \
	%D%/unit/test_handle %D%/unit/test_hub %D%/unit/test_journal %D%/unit/test_journal_dead %D%/unit/test_json \
	%D%/unit/test_obs %D%/unit/test_pyrepr %D%/unit/test_repeat
EXTRA_DIST += %D%/corpus/http/requests.jsonl %D%/corpus/json/decode.txt \
	%D%/corpus/json/literal.txt
t_unit_test_act_run_SOURCES = %D%/unit/test_act_run.c %D%/unit/handle.h %D%/unit/request.h %D%/unit/keysums.h %D%/unit/lines.h
t_unit_test_act_run_CFLAGS = $(AM_CFLAGS) $(CHECK_CFLAGS) $(JSONC_CFLAGS)
t_unit_test_act_run_LDADD = libworker.la libdetect.la $(CHECK_LIBS) -lpthread
t_unit_test_dirpage_SOURCES = %D%/unit/test_dirpage.c %D%/unit/scratch.h
t_unit_test_dirpage_CFLAGS = $(AM_CFLAGS) $(CHECK_CFLAGS)
t_unit_test_dirpage_LDADD = libfiles.la libbase.la $(CHECK_LIBS)
t_unit_test_event_SOURCES = %D%/unit/test_event.c %D%/unit/lines.h
t_unit_test_event_CFLAGS = $(AM_CFLAGS) $(CHECK_CFLAGS) $(JSONC_CFLAGS)
t_unit_test_event_LDADD = libprotojson.la libbase.la $(CHECK_LIBS)
t_unit_test_frame_SOURCES = %D%/unit/test_frame.c %D%/unit/lines.h
t_unit_test_frame_CFLAGS = $(AM_CFLAGS) $(CHECK_CFLAGS)
t_unit_test_frame_LDADD = libproto.la libbase.la $(CHECK_LIBS)
t_unit_test_handle_SOURCES = %D%/unit/test_handle.c %D%/unit/handle.h %D%/unit/request.h %D%/unit/keysums.h %D%/unit/lines.h
t_unit_test_handle_CFLAGS = $(AM_CFLAGS) $(CHECK_CFLAGS) $(JSONC_CFLAGS)
t_unit_test_handle_LDADD = libworker.la libdetect.la $(CHECK_LIBS)
check_PROGRAMS += %D%/unit/test_e2b_worker %D%/unit/test_mcp_wait %D%/unit/test_v1
TESTS += %D%/unit/test_e2b_worker %D%/unit/test_mcp_wait %D%/unit/test_v1
t_unit_test_e2b_worker_SOURCES = %D%/unit/test_e2b_worker.c %D%/unit/lines.h %D%/unit/request.h
t_unit_test_e2b_worker_CFLAGS = $(AM_CFLAGS) $(CHECK_CFLAGS) $(JSONC_CFLAGS)
t_unit_test_e2b_worker_LDADD = libworker.la libdetect.la $(CHECK_LIBS)
t_unit_test_mcp_wait_SOURCES = %D%/unit/test_mcp_wait.c %D%/unit/lines.h
t_unit_test_mcp_wait_CFLAGS = $(AM_CFLAGS) $(CHECK_CFLAGS) $(JSONC_CFLAGS)
t_unit_test_mcp_wait_LDADD = libworker.la libdetect.la $(CHECK_LIBS)
t_unit_test_v1_SOURCES = %D%/unit/test_v1.c %D%/unit/lines.h %D%/unit/request.h %D%/unit/scratch.h
t_unit_test_v1_CFLAGS = $(AM_CFLAGS) $(CHECK_CFLAGS) $(JSONC_CFLAGS)
t_unit_test_v1_LDADD = libworker.la libdetect.la $(CHECK_LIBS)
t_unit_test_repeat_SOURCES = %D%/unit/test_repeat.c %D%/unit/connection.h %D%/unit/handle.h %D%/unit/request.h %D%/unit/keysums.h %D%/unit/lines.h
t_unit_test_repeat_CFLAGS = $(AM_CFLAGS) $(CHECK_CFLAGS) $(JSONC_CFLAGS)
t_unit_test_repeat_LDADD = libworker.la libdetect.la $(CHECK_LIBS)
t_unit_test_hub_SOURCES = %D%/unit/test_hub.c
t_unit_test_hub_CFLAGS = $(AM_CFLAGS) $(CHECK_CFLAGS)
t_unit_test_hub_LDADD = libworker.la libdetect.la $(CHECK_LIBS)
t_unit_test_journal_SOURCES = %D%/unit/test_journal.c %D%/unit/lines.h
t_unit_test_journal_CFLAGS = $(AM_CFLAGS) $(CHECK_CFLAGS)
t_unit_test_journal_LDADD = libproto.la libbase.la $(CHECK_LIBS)
t_unit_test_journal_dead_SOURCES = %D%/unit/test_journal_dead.c %D%/unit/lines.h
t_unit_test_journal_dead_CFLAGS = $(AM_CFLAGS) $(CHECK_CFLAGS)
t_unit_test_journal_dead_LDADD = libproto.la libbase.la $(CHECK_LIBS)
t_unit_test_json_SOURCES = %D%/unit/test_json.c %D%/unit/lines.h
t_unit_test_json_CFLAGS = $(AM_CFLAGS) $(CHECK_CFLAGS) $(JSONC_CFLAGS)
t_unit_test_json_LDADD = libprotojson.la libbase.la $(CHECK_LIBS)
t_unit_test_obs_SOURCES = %D%/unit/test_obs.c %D%/unit/lines.h
t_unit_test_obs_CFLAGS = $(AM_CFLAGS) $(CHECK_CFLAGS) $(JSONC_CFLAGS)
t_unit_test_obs_LDADD = libprotojson.la libbase.la $(CHECK_LIBS)
t_unit_test_pyrepr_SOURCES = %D%/unit/test_pyrepr.c %D%/unit/lines.h
t_unit_test_pyrepr_CFLAGS = $(AM_CFLAGS) $(CHECK_CFLAGS) $(JSONC_CFLAGS)
t_unit_test_pyrepr_LDADD = libprotojson.la libbase.la $(CHECK_LIBS)

# term
check_PROGRAMS += %D%/unit/term_render %D%/unit/test_term %D%/unit/test_term_corpus
TESTS += %D%/unit/test_term %D%/unit/test_term_corpus
TESTS += %D%/lint/term-vs-tmux
EXTRA_DIST += %D%/corpus/term/README %D%/corpus/term/exceptions.txt \
	%D%/corpus/term/render.jsonl %D%/corpus/term/screen.jsonl \
	%D%/lint/term-vs-tmux
t_unit_term_render_SOURCES = %D%/unit/term_render.c %D%/unit/term_history.h
t_unit_term_render_LDADD = libterm.la libbase.la
t_unit_test_term_SOURCES = %D%/unit/test_term.c %D%/unit/term_history.h %D%/unit/lines.h
t_unit_test_term_CFLAGS = $(AM_CFLAGS) $(CHECK_CFLAGS)
t_unit_test_term_LDFLAGS = $(AM_LDFLAGS) -Wl,--wrap=realloc
t_unit_test_term_LDADD = libterm.la libbase.la $(CHECK_LIBS)
t_unit_test_term_corpus_SOURCES = %D%/unit/test_term_corpus.c %D%/unit/term_history.h %D%/unit/lines.h
t_unit_test_term_corpus_CFLAGS = $(AM_CFLAGS) $(CHECK_CFLAGS) $(JSONC_CFLAGS)
t_unit_test_term_corpus_LDADD = libterm.la libbase.la $(CHECK_LIBS) $(JSONC_LIBS)
EXTRA_PROGRAMS += %D%/bench/bench_term
t_bench_bench_term_SOURCES = %D%/bench/bench_term.c
t_bench_bench_term_LDADD = libterm.la libbase.la

# shell
check_PROGRAMS += %D%/unit/test_keys \
	%D%/unit/test_shell_nomem %D%/unit/test_split %D%/unit/test_text
TESTS += %D%/unit/test_keys \
	%D%/unit/test_shell_nomem %D%/unit/test_split %D%/unit/test_text
EXTRA_DIST += %D%/corpus/shell/README \
	%D%/corpus/shell/split_commands.jsonl %D%/corpus/shell/split_extra.jsonl \
	%D%/corpus/shell/split_hazards.jsonl %D%/corpus/shell/split_table.jsonl
t_unit_test_keys_SOURCES = %D%/unit/test_keys.c %D%/unit/lines.h
t_unit_test_keys_CFLAGS = $(AM_CFLAGS) $(CHECK_CFLAGS)
t_unit_test_keys_LDADD = libshell.la libbase.la $(CHECK_LIBS)
# of fuse.h
nomem_wraps = -Wl,--wrap=malloc,--wrap=calloc,--wrap=realloc,--wrap=reallocarray \
	-Wl,--wrap=strdup,--wrap=strndup,--wrap=vasprintf
t_unit_test_shell_nomem_SOURCES = %D%/unit/test_shell_nomem.c %D%/unit/fuse.h %D%/unit/lines.h
t_unit_test_shell_nomem_CFLAGS = $(AM_CFLAGS) $(CHECK_CFLAGS) -fno-builtin
t_unit_test_shell_nomem_LDFLAGS = $(AM_LDFLAGS) $(nomem_wraps)
t_unit_test_shell_nomem_LDADD = libshell.la libbase.la $(CHECK_LIBS)
t_unit_test_split_SOURCES = %D%/unit/test_split.c %D%/unit/lines.h
t_unit_test_split_CFLAGS = $(AM_CFLAGS) $(CHECK_CFLAGS) $(JSONC_CFLAGS)
t_unit_test_split_LDADD = libshell.la libbase.la $(CHECK_LIBS) $(JSONC_LIBS)
check_PROGRAMS += %D%/unit/test_search
TESTS += %D%/unit/test_search
t_unit_test_search_SOURCES = %D%/unit/test_search.c %D%/unit/scratch.h
t_unit_test_search_CFLAGS = $(AM_CFLAGS) $(CHECK_CFLAGS)
t_unit_test_search_LDADD = libsearch.la libfiles.la libdetect.la libbase.la $(CHECK_LIBS)
t_unit_test_text_SOURCES = %D%/unit/test_text.c %D%/unit/lines.h
t_unit_test_text_CFLAGS = $(AM_CFLAGS) $(CHECK_CFLAGS)
t_unit_test_text_LDADD = libshell.la libbase.la $(CHECK_LIBS)

include %D%/bench/local.mk
include %D%/supervisor.mk
include %D%/session.mk
include %D%/transfer.mk
include %D%/www.mk
include %D%/files.mk
include %D%/fuzz/local.mk
include %D%/fault/local.mk

# the server of WebSockets
check_PROGRAMS += %D%/unit/test_wsserve
TESTS += %D%/unit/test_wsserve
t_unit_test_wsserve_SOURCES = %D%/unit/test_wsserve.c %D%/unit/lines.h
t_unit_test_wsserve_CFLAGS = $(AM_CFLAGS) $(CHECK_CFLAGS)
t_unit_test_wsserve_LDADD = libwsserve.la libws.la libloop.la libbase.la $(CHECK_LIBS)

# the recorded conversations, against the whole server
EXTRA_DIST += %D%/e2e/test_conversations.py %D%/corpus/actions/actions.jsonl

# what the black-box tests share, and those that are started by hand
EXTRA_DIST += %D%/corpus/actions/README %D%/e2e/lib/__init__.py %D%/e2e/lib/compare.py \
	%D%/e2e/lib/contents.py %D%/e2e/lib/keeper.py %D%/e2e/lib/observation.py \
	%D%/e2e/lib/process.py %D%/e2e/lib/scenario.py %D%/e2e/lib/shells.py %D%/e2e/lib/tap.py \
	%D%/e2e/lib/wedges.py

# the session keeper alone
LONG_TESTS += %D%/e2e/test_reports.py %D%/e2e/test_ladder.py
EXTRA_DIST += %D%/e2e/test_keeper.py %D%/e2e/test_reports.py %D%/e2e/test_ladder.py

# whatever a command does to its shell, the next one is answered
LONG_TESTS += %D%/e2e/test_wedges.py %D%/e2e/test_wedges_typed.py
EXTRA_DIST += %D%/e2e/test_wedges.py %D%/e2e/test_wedges_typed.py %D%/e2e/wedge.py

# plugins: the mechanism with the example and with broken ones
LONG_TESTS += %D%/e2e/test_agent_server.py %D%/e2e/test_vscode.py
check_PROGRAMS += %D%/unit/test_mcp
TESTS += %D%/unit/test_mcp
LONG_TESTS += %D%/e2e/test_mcp_npm.py
t_unit_test_mcp_SOURCES = %D%/unit/test_mcp.c
t_unit_test_mcp_CFLAGS = $(AM_CFLAGS) $(CHECK_CFLAGS) $(JSONC_CFLAGS)
t_unit_test_mcp_LDADD = libmcp.la $(CHECK_LIBS) $(JSONC_LIBS)
EXTRA_DIST += %D%/e2e/test_mcp.py %D%/e2e/mcp_server.py %D%/e2e/test_mcp_npm.py %D%/e2e/mcp_client.js
EXTRA_DIST += %D%/e2e/test_agent_server.py %D%/e2e/agent_server.py %D%/e2e/test_vscode.py %D%/e2e/vscode_server.py %D%/e2e/lib/browser.py
EXTRA_DIST += %D%/e2e/test_plugins.py %D%/example-plugin/greeter/plugin.json \
	%D%/example-plugin/greeter/greeter

# what several parts do together, where no other test has it
LONG_TESTS += %D%/e2e/test_together.py
EXTRA_DIST += %D%/e2e/test_together.py

# browser: what asks no browser
if BROWSER
check_PROGRAMS += %D%/unit/test_browser_cast %D%/unit/test_browser_page \
	%D%/unit/test_browser_picture %D%/unit/test_browser_program
TESTS += %D%/unit/test_browser_cast %D%/unit/test_browser_page %D%/unit/test_browser_picture \
	%D%/unit/test_browser_program
t_unit_test_browser_cast_SOURCES = %D%/unit/test_browser_cast.c
t_unit_test_browser_cast_CFLAGS = $(AM_CFLAGS) $(CHECK_CFLAGS)
t_unit_test_browser_cast_LDADD = libbrowser.la $(CHECK_LIBS)
t_unit_test_browser_picture_SOURCES = %D%/unit/test_browser_picture.c %D%/unit/lines.h
t_unit_test_browser_picture_CFLAGS = $(AM_CFLAGS) $(CHECK_CFLAGS)
t_unit_test_browser_picture_LDADD = libbrowserpage.la $(CHECK_LIBS)
t_unit_test_browser_page_SOURCES = %D%/unit/test_browser_page.c %D%/unit/lines.h
t_unit_test_browser_page_CFLAGS = $(AM_CFLAGS) $(CHECK_CFLAGS)
t_unit_test_browser_page_LDADD = libbrowserpage.la $(CHECK_LIBS) -lm
t_unit_test_browser_program_SOURCES = %D%/unit/test_browser_program.c %D%/unit/found.h %D%/unit/lines.h
t_unit_test_browser_program_CFLAGS = $(AM_CFLAGS) $(CHECK_CFLAGS) $(JSONC_CFLAGS)
t_unit_test_browser_program_LDADD = libbrowserpage.la $(CHECK_LIBS)
endif
EXTRA_DIST += %D%/unit/test_browser_cast.c %D%/unit/test_browser_page.c %D%/unit/test_browser_picture.c \
	%D%/unit/test_browser_program.c \
	%D%/corpus/browser/axtree.jsonl %D%/corpus/browser/axtree_2.jsonl \
	%D%/corpus/browser/browse_program.jsonl %D%/corpus/browser/extract.jsonl \
	%D%/corpus/browser/html_more.jsonl %D%/corpus/browser/program_more.jsonl

# and with one (skipped where there is none)
EXTRA_DIST += %D%/e2e/test_browser.py %D%/e2e/lib/browsing.py %D%/e2e/lib/browsersite.py \
	%D%/corpus/browser/browse.jsonl %D%/corpus/browser/pages.jsonl \
	%D%/e2e/pages/hostile/alerts.html %D%/e2e/pages/hostile/colours.html \
	%D%/e2e/pages/hostile/large.html \
	%D%/e2e/pages/hostile/loop.html %D%/e2e/pages/hostile/nested.html \
	%D%/e2e/pages/hostile/nested_deep.html %D%/e2e/pages/hostile/nested_in.html \
	%D%/e2e/pages/hostile/opens.html %D%/e2e/pages/hostile/overwritten.html \
	%D%/e2e/pages/hostile/reach.html \
	%D%/e2e/pages/hostile/downloads.html %D%/e2e/pages/hostile/storm.html %D%/e2e/pages/hostile/vanish.html

# jupyter: the cells alone, and the whole with a real kernel (skipped where there is none)
if JUPYTER
check_PROGRAMS += %D%/unit/test_jupyter_cell %D%/unit/test_jupyter_code
TESTS += %D%/unit/test_jupyter_cell %D%/unit/test_jupyter_code
t_unit_test_jupyter_cell_SOURCES = %D%/unit/test_jupyter_cell.c
t_unit_test_jupyter_cell_CFLAGS = $(AM_CFLAGS) $(CHECK_CFLAGS) $(JSONC_CFLAGS)
t_unit_test_jupyter_cell_LDADD = libjupyter.la $(CHECK_LIBS)
t_unit_test_jupyter_code_SOURCES = %D%/unit/test_jupyter_code.c
t_unit_test_jupyter_code_CFLAGS = $(AM_CFLAGS) $(CHECK_CFLAGS) $(JSONC_CFLAGS)
t_unit_test_jupyter_code_LDADD = libjupyter.la $(CHECK_LIBS)
endif
EXTRA_DIST += %D%/e2e/test_e2b_code.py %D%/e2e/test_e2b_code_replay.py %D%/e2e/test_jupyter.py
LONG_TESTS += %D%/e2e/test_skills.py
EXTRA_DIST += %D%/e2e/test_skills.py %D%/corpus/skills/file_ops.jsonl

# at most once, whatever dies or is replaced
LONG_TESTS += %D%/e2e/test_kills.py %D%/e2e/test_listen_unix.py %D%/e2e/test_port_paths.py \
	%D%/e2e/test_reloads.py %D%/e2e/test_upgrades.py
EXTRA_DIST += %D%/e2e/test_kills.py %D%/e2e/test_listen_unix.py %D%/e2e/test_port_paths.py \
	%D%/e2e/test_once.py %D%/e2e/test_reloads.py \
	%D%/e2e/test_upgrades.py

# vscode
check_PROGRAMS += %D%/unit/test_vscode
TESTS += %D%/unit/test_vscode
t_unit_test_vscode_SOURCES = %D%/unit/test_vscode.c
t_unit_test_vscode_CFLAGS = $(AM_CFLAGS) $(CHECK_CFLAGS)
t_unit_test_vscode_LDADD = libvscode.la $(CHECK_LIBS)

EXTRA_DIST += %D%/real/run
EXTRA_DIST += %D%/e2e/mcp_agents.py %D%/e2e/mcp_clients.py %D%/e2e/mcp_conformance.py %D%/e2e/mcp_cuts.py \
	%D%/e2e/test_v1.py %D%/e2e/test_v1_replay.py %D%/e2e/test_v1_sockets.py %D%/e2e/v1_sdk.py
EXTRA_PROGRAMS += %D%/e2e/mcp_worker
t_e2e_mcp_worker_SOURCES = %D%/e2e/mcp_worker.c src/worker/accept.c src/worker/harden.c src/worker/main.c src/worker/request/reply.c
t_e2e_mcp_worker_CFLAGS = $(handrail_worker_CFLAGS)
t_e2e_mcp_worker_LDADD = $(handrail_worker_LDADD)
EXTRA_DIST += %D%/e2e/test_swerex.py %D%/e2e/swerex_suite.py %D%/corpus/swerex/swerex.jsonl \
	%D%/corpus/v1/README %D%/corpus/v1/archive.jsonl %D%/corpus/v1/bash.jsonl %D%/corpus/v1/sockets.jsonl \
	%D%/corpus/v1/changes.jsonl %D%/corpus/v1/commits.jsonl %D%/corpus/v1/cors.jsonl \
	%D%/corpus/v1/directories.jsonl %D%/corpus/v1/git.jsonl %D%/corpus/v1/routes %D%/corpus/v1/transfer.jsonl \
	%D%/corpus/v1/errors.jsonl %D%/corpus/v1/ranges.jsonl
