# Each target twice: replay_X runs its seeds and mutations of them in make check; fuzz_X is for
# libFuzzer, with configure --enable-fuzzers CC=clang.
FUZZ_REPLAYERS = %D%/replay_door %D%/replay_files %D%/replay_frame %D%/replay_hierarchy %D%/replay_json \
	%D%/replay_report %D%/replay_rex %D%/replay_session %D%/replay_split %D%/replay_term
FUZZ_TARGETS = %D%/fuzz_door %D%/fuzz_files %D%/fuzz_frame %D%/fuzz_hierarchy %D%/fuzz_json \
	%D%/fuzz_report %D%/fuzz_rex %D%/fuzz_session %D%/fuzz_split %D%/fuzz_term
LIBFUZZER = $(AM_LDFLAGS) -fsanitize=fuzzer
check_PROGRAMS += $(FUZZ_REPLAYERS)
TESTS += $(FUZZ_REPLAYERS)
EXTRA_PROGRAMS += $(FUZZ_TARGETS)
if FUZZERS
noinst_PROGRAMS += $(FUZZ_TARGETS)
endif
EXTRA_DIST += %D%/fuzz.h %D%/mkseeds \
	%D%/dict/json.dict %D%/dict/split.dict %D%/dict/term.dict \
	%D%/seeds/door.txt %D%/seeds/files.txt %D%/seeds/frame.txt %D%/seeds/hierarchy.txt %D%/seeds/json.txt %D%/seeds/office.txt \
	%D%/seeds/report.txt %D%/seeds/rex.txt %D%/seeds/session.txt %D%/seeds/split.txt %D%/seeds/term.txt

t_fuzz_replay_door_SOURCES = %D%/fuzz_door.c %D%/replay_main.c
t_fuzz_replay_door_CFLAGS = $(AM_CFLAGS) $(JSONC_CFLAGS)
t_fuzz_replay_door_LDADD = libworker.la libdetect.la libbase.la
t_fuzz_fuzz_door_SOURCES = %D%/fuzz_door.c
t_fuzz_fuzz_door_CFLAGS = $(AM_CFLAGS) $(JSONC_CFLAGS)
t_fuzz_fuzz_door_LDFLAGS = $(LIBFUZZER)
t_fuzz_fuzz_door_LDADD = libworker.la libdetect.la libbase.la
t_fuzz_replay_rex_SOURCES = %D%/fuzz_rex.c %D%/replay_main.c
t_fuzz_replay_rex_CFLAGS = $(AM_CFLAGS) $(JSONC_CFLAGS)
t_fuzz_replay_rex_LDADD = libworker.la libdetect.la libbase.la
t_fuzz_fuzz_rex_SOURCES = %D%/fuzz_rex.c
t_fuzz_fuzz_rex_CFLAGS = $(AM_CFLAGS) $(JSONC_CFLAGS)
t_fuzz_fuzz_rex_LDFLAGS = $(LIBFUZZER)
t_fuzz_fuzz_rex_LDADD = libworker.la libdetect.la libbase.la
t_fuzz_replay_files_SOURCES = %D%/fuzz_files.c %D%/replay_main.c
t_fuzz_replay_files_CFLAGS = $(AM_CFLAGS) $(JSONC_CFLAGS)
t_fuzz_replay_files_LDADD = libfiles.la libdetect.la
t_fuzz_fuzz_files_SOURCES = %D%/fuzz_files.c
t_fuzz_fuzz_files_CFLAGS = $(AM_CFLAGS) $(JSONC_CFLAGS)
t_fuzz_fuzz_files_LDFLAGS = $(LIBFUZZER)
t_fuzz_fuzz_files_LDADD = libfiles.la libdetect.la
t_fuzz_replay_frame_SOURCES = %D%/fuzz_frame.c %D%/replay_main.c
t_fuzz_replay_frame_LDADD = libproto.la libbase.la
t_fuzz_fuzz_frame_SOURCES = %D%/fuzz_frame.c
t_fuzz_fuzz_frame_LDFLAGS = $(LIBFUZZER)
t_fuzz_fuzz_frame_LDADD = libproto.la libbase.la
t_fuzz_replay_hierarchy_SOURCES = %D%/fuzz_hierarchy.c %D%/replay_main.c
t_fuzz_replay_hierarchy_LDADD = libbase.la
t_fuzz_fuzz_hierarchy_SOURCES = %D%/fuzz_hierarchy.c
t_fuzz_fuzz_hierarchy_LDFLAGS = $(LIBFUZZER)
t_fuzz_fuzz_hierarchy_LDADD = libbase.la
t_fuzz_replay_json_SOURCES = %D%/fuzz_json.c %D%/replay_main.c
t_fuzz_replay_json_LDADD = libworker.la libdetect.la libbase.la
t_fuzz_fuzz_json_SOURCES = %D%/fuzz_json.c
t_fuzz_fuzz_json_LDFLAGS = $(LIBFUZZER)
t_fuzz_fuzz_json_LDADD = libworker.la libdetect.la libbase.la
t_fuzz_replay_json_CFLAGS = $(AM_CFLAGS) $(JSONC_CFLAGS)
t_fuzz_fuzz_json_CFLAGS = $(AM_CFLAGS) $(JSONC_CFLAGS)
t_fuzz_replay_report_SOURCES = %D%/fuzz_report.c %D%/replay_main.c
t_fuzz_replay_report_LDADD = libsession.la libbase.la
t_fuzz_fuzz_report_SOURCES = %D%/fuzz_report.c
t_fuzz_fuzz_report_LDFLAGS = $(LIBFUZZER)
t_fuzz_fuzz_report_LDADD = libsession.la libbase.la
fuzz_session_parts = t/unit/core_play.c t/unit/core_play.h t/unit/core_fake.c t/unit/core_fake.h
t_fuzz_replay_session_SOURCES = %D%/fuzz_session.c %D%/replay_main.c $(fuzz_session_parts)
t_fuzz_replay_session_LDADD = libsession.la libbase.la
t_fuzz_fuzz_session_SOURCES = %D%/fuzz_session.c $(fuzz_session_parts)
t_fuzz_fuzz_session_LDFLAGS = $(LIBFUZZER)
t_fuzz_fuzz_session_LDADD = libsession.la libbase.la
t_fuzz_replay_split_SOURCES = %D%/fuzz_split.c %D%/replay_main.c
t_fuzz_replay_split_LDADD = libshell.la libbase.la
t_fuzz_fuzz_split_SOURCES = %D%/fuzz_split.c
t_fuzz_fuzz_split_LDFLAGS = $(LIBFUZZER)
t_fuzz_fuzz_split_LDADD = libshell.la libbase.la
t_fuzz_replay_term_SOURCES = %D%/fuzz_term.c %D%/replay_main.c
t_fuzz_replay_term_LDADD = libterm.la libbase.la
t_fuzz_fuzz_term_SOURCES = %D%/fuzz_term.c
t_fuzz_fuzz_term_LDFLAGS = $(LIBFUZZER)
t_fuzz_fuzz_term_LDADD = libterm.la libbase.la

# office documents
if OFFICE
check_PROGRAMS += %D%/replay_office
TESTS += %D%/replay_office
EXTRA_PROGRAMS += %D%/fuzz_office
if FUZZERS
noinst_PROGRAMS += %D%/fuzz_office
endif
t_fuzz_replay_office_SOURCES = %D%/fuzz_office.c %D%/replay_main.c t/unit/office_pack.h
t_fuzz_replay_office_CFLAGS = $(AM_CFLAGS) $(ARCHIVE_CFLAGS)
t_fuzz_replay_office_LDADD = liboffice.la libprotojson.la libbase.la
t_fuzz_fuzz_office_SOURCES = %D%/fuzz_office.c t/unit/office_pack.h
t_fuzz_fuzz_office_CFLAGS = $(AM_CFLAGS) $(ARCHIVE_CFLAGS)
t_fuzz_fuzz_office_LDFLAGS = $(LIBFUZZER)
t_fuzz_fuzz_office_LDADD = liboffice.la libprotojson.la libbase.la
endif

# the kind "kubernetes"
if KUBERNETES
check_PROGRAMS += %D%/replay_kubernetes
TESTS += %D%/replay_kubernetes
EXTRA_PROGRAMS += %D%/fuzz_kubernetes
if FUZZERS
noinst_PROGRAMS += %D%/fuzz_kubernetes
endif
t_fuzz_replay_kubernetes_SOURCES = %D%/fuzz_kubernetes.c %D%/replay_main.c
t_fuzz_replay_kubernetes_CFLAGS = $(AM_CFLAGS) $(JSONC_CFLAGS)
t_fuzz_replay_kubernetes_LDADD = $(KUBERNETES_TESTED)
t_fuzz_fuzz_kubernetes_SOURCES = %D%/fuzz_kubernetes.c
t_fuzz_fuzz_kubernetes_CFLAGS = $(AM_CFLAGS) $(JSONC_CFLAGS)
t_fuzz_fuzz_kubernetes_LDFLAGS = $(LIBFUZZER)
t_fuzz_fuzz_kubernetes_LDADD = $(KUBERNETES_TESTED)
endif
EXTRA_DIST += %D%/fuzz_kubernetes.c %D%/dict/kubernetes.dict %D%/seeds/kubernetes.txt

# the host side: its configuration, and what others answer it
if HOST
FUZZ_HOST_REPLAYERS = %D%/replay_answer %D%/replay_engine %D%/replay_hostlines %D%/replay_rest %D%/replay_sandbox %D%/replay_toml
FUZZ_HOST_TARGETS = %D%/fuzz_answer %D%/fuzz_engine %D%/fuzz_hostlines %D%/fuzz_rest %D%/fuzz_sandbox %D%/fuzz_toml
check_PROGRAMS += $(FUZZ_HOST_REPLAYERS)
TESTS += $(FUZZ_HOST_REPLAYERS)
EXTRA_PROGRAMS += $(FUZZ_HOST_TARGETS)
if FUZZERS
noinst_PROGRAMS += $(FUZZ_HOST_TARGETS)
endif
# answers come from the input, not over HTTP
FUZZ_ANSWERED = libhost.la libhttp.la libimagekit.la libshell.la libprotojson.la libbase.la
fuzz_answers = %D%/fake_http.c %D%/fake_http.h
t_fuzz_replay_answer_SOURCES = %D%/fuzz_answer.c %D%/replay_main.c
t_fuzz_replay_answer_LDADD = libhttp.la libbase.la
t_fuzz_fuzz_answer_SOURCES = %D%/fuzz_answer.c
t_fuzz_fuzz_answer_LDFLAGS = $(LIBFUZZER)
t_fuzz_fuzz_answer_LDADD = libhttp.la libbase.la
t_fuzz_replay_engine_SOURCES = %D%/fuzz_engine.c %D%/replay_main.c $(fuzz_answers)
t_fuzz_replay_engine_CFLAGS = $(AM_CFLAGS) $(JSONC_CFLAGS)
t_fuzz_replay_engine_LDADD = $(FUZZ_ANSWERED)
t_fuzz_fuzz_engine_SOURCES = %D%/fuzz_engine.c $(fuzz_answers)
t_fuzz_fuzz_engine_CFLAGS = $(AM_CFLAGS) $(JSONC_CFLAGS)
t_fuzz_fuzz_engine_LDFLAGS = $(LIBFUZZER)
t_fuzz_fuzz_engine_LDADD = $(FUZZ_ANSWERED)
t_fuzz_replay_hostlines_SOURCES = %D%/fuzz_hostlines.c %D%/replay_main.c $(fuzz_answers)
t_fuzz_replay_hostlines_CFLAGS = $(AM_CFLAGS) $(JSONC_CFLAGS)
t_fuzz_replay_hostlines_LDADD = $(FUZZ_ANSWERED)
t_fuzz_fuzz_hostlines_SOURCES = %D%/fuzz_hostlines.c $(fuzz_answers)
t_fuzz_fuzz_hostlines_CFLAGS = $(AM_CFLAGS) $(JSONC_CFLAGS)
t_fuzz_fuzz_hostlines_LDFLAGS = $(LIBFUZZER)
t_fuzz_fuzz_hostlines_LDADD = $(FUZZ_ANSWERED)
t_fuzz_replay_rest_SOURCES = %D%/fuzz_rest.c %D%/replay_main.c $(fuzz_answers)
t_fuzz_replay_rest_CFLAGS = $(AM_CFLAGS) $(JSONC_CFLAGS)
t_fuzz_replay_rest_LDADD = $(FUZZ_ANSWERED)
t_fuzz_fuzz_rest_SOURCES = %D%/fuzz_rest.c $(fuzz_answers)
t_fuzz_fuzz_rest_CFLAGS = $(AM_CFLAGS) $(JSONC_CFLAGS)
t_fuzz_fuzz_rest_LDFLAGS = $(LIBFUZZER)
t_fuzz_fuzz_rest_LDADD = $(FUZZ_ANSWERED)
t_fuzz_replay_sandbox_SOURCES = %D%/fuzz_sandbox.c %D%/replay_main.c $(fuzz_answers)
t_fuzz_replay_sandbox_CFLAGS = $(AM_CFLAGS) $(JSONC_CFLAGS)
t_fuzz_replay_sandbox_LDADD = $(FUZZ_ANSWERED)
t_fuzz_fuzz_sandbox_SOURCES = %D%/fuzz_sandbox.c $(fuzz_answers)
t_fuzz_fuzz_sandbox_CFLAGS = $(AM_CFLAGS) $(JSONC_CFLAGS)
t_fuzz_fuzz_sandbox_LDFLAGS = $(LIBFUZZER)
t_fuzz_fuzz_sandbox_LDADD = $(FUZZ_ANSWERED)
t_fuzz_replay_toml_SOURCES = %D%/fuzz_toml.c %D%/replay_main.c
t_fuzz_replay_toml_CFLAGS = $(AM_CFLAGS) $(JSONC_CFLAGS)
t_fuzz_replay_toml_LDADD = $(HOST_PARTS)
t_fuzz_fuzz_toml_SOURCES = %D%/fuzz_toml.c
t_fuzz_fuzz_toml_CFLAGS = $(AM_CFLAGS) $(JSONC_CFLAGS)
t_fuzz_fuzz_toml_LDFLAGS = $(LIBFUZZER)
t_fuzz_fuzz_toml_LDADD = $(HOST_PARTS)
endif
EXTRA_DIST += %D%/fuzz_answer.c %D%/seeds/answer.txt %D%/fuzz_engine.c %D%/fuzz_hostlines.c %D%/fuzz_rest.c %D%/fuzz_sandbox.c %D%/fuzz_toml.c \
	%D%/fake_http.c %D%/fake_http.h \
	%D%/dict/engine.dict %D%/dict/hostlines.dict %D%/dict/sandbox.dict \
	%D%/seeds/engine.txt %D%/seeds/hostlines.txt %D%/seeds/rest.txt %D%/seeds/sandbox.txt %D%/seeds/toml.txt

# what clients of the fleet ask
if HOST
check_PROGRAMS += %D%/replay_fleet
TESTS += %D%/replay_fleet
EXTRA_PROGRAMS += %D%/fuzz_fleet
if FUZZERS
noinst_PROGRAMS += %D%/fuzz_fleet
endif
t_fuzz_replay_fleet_SOURCES = %D%/fuzz_fleet.c %D%/replay_main.c
t_fuzz_replay_fleet_CFLAGS = $(AM_CFLAGS) $(JSONC_CFLAGS)
t_fuzz_replay_fleet_LDADD = libfleet.la $(HOST_PARTS)
t_fuzz_fuzz_fleet_SOURCES = %D%/fuzz_fleet.c
t_fuzz_fuzz_fleet_CFLAGS = $(AM_CFLAGS) $(JSONC_CFLAGS)
t_fuzz_fuzz_fleet_LDFLAGS = $(LIBFUZZER)
t_fuzz_fuzz_fleet_LDADD = libfleet.la $(HOST_PARTS)
endif
EXTRA_DIST += %D%/fuzz_fleet.c %D%/seeds/fleet.txt

# the browser plugin: programs of clients, and what the browser answers
if BROWSER
FUZZ_BROWSER_REPLAYERS = %D%/replay_browser_events %D%/replay_browser_page %D%/replay_browser_program
FUZZ_BROWSER_TARGETS = %D%/fuzz_browser_events %D%/fuzz_browser_page %D%/fuzz_browser_program
check_PROGRAMS += $(FUZZ_BROWSER_REPLAYERS)
TESTS += $(FUZZ_BROWSER_REPLAYERS)
EXTRA_PROGRAMS += $(FUZZ_BROWSER_TARGETS)
if FUZZERS
noinst_PROGRAMS += $(FUZZ_BROWSER_TARGETS)
endif
t_fuzz_replay_browser_events_SOURCES = %D%/fuzz_browser_events.c %D%/replay_main.c
t_fuzz_replay_browser_events_CFLAGS = $(AM_CFLAGS) $(JSONC_CFLAGS)
t_fuzz_replay_browser_events_LDADD = libbrowser.la
t_fuzz_fuzz_browser_events_SOURCES = %D%/fuzz_browser_events.c
t_fuzz_fuzz_browser_events_CFLAGS = $(AM_CFLAGS) $(JSONC_CFLAGS)
t_fuzz_fuzz_browser_events_LDFLAGS = $(LIBFUZZER)
t_fuzz_fuzz_browser_events_LDADD = libbrowser.la
t_fuzz_replay_browser_page_SOURCES = %D%/fuzz_browser_page.c %D%/replay_main.c
t_fuzz_replay_browser_page_LDADD = libbrowserpage.la
t_fuzz_fuzz_browser_page_SOURCES = %D%/fuzz_browser_page.c
t_fuzz_fuzz_browser_page_LDFLAGS = $(LIBFUZZER)
t_fuzz_fuzz_browser_page_LDADD = libbrowserpage.la
t_fuzz_replay_browser_program_SOURCES = %D%/fuzz_browser_program.c %D%/replay_main.c
t_fuzz_replay_browser_program_LDADD = libbrowserpage.la
t_fuzz_fuzz_browser_program_SOURCES = %D%/fuzz_browser_program.c
t_fuzz_fuzz_browser_program_LDFLAGS = $(LIBFUZZER)
t_fuzz_fuzz_browser_program_LDADD = libbrowserpage.la
endif
EXTRA_DIST += %D%/fuzz_browser_events.c %D%/fuzz_browser_page.c %D%/fuzz_browser_program.c \
	%D%/seeds/browser_events.txt %D%/seeds/browser_page.txt %D%/seeds/browser_program.txt

# the plugins mcp and jupyter: their clients, their servers and their kernels
check_PROGRAMS += %D%/replay_jupyter %D%/replay_mcp
TESTS += %D%/replay_jupyter %D%/replay_mcp
EXTRA_PROGRAMS += %D%/fuzz_jupyter %D%/fuzz_mcp
if FUZZERS
noinst_PROGRAMS += %D%/fuzz_jupyter %D%/fuzz_mcp
endif
t_fuzz_replay_jupyter_SOURCES = %D%/fuzz_jupyter.c %D%/replay_main.c
t_fuzz_replay_jupyter_CFLAGS = $(AM_CFLAGS) $(JSONC_CFLAGS)
t_fuzz_replay_jupyter_LDADD = libjupyter.la
t_fuzz_fuzz_jupyter_SOURCES = %D%/fuzz_jupyter.c
t_fuzz_fuzz_jupyter_CFLAGS = $(AM_CFLAGS) $(JSONC_CFLAGS)
t_fuzz_fuzz_jupyter_LDFLAGS = $(LIBFUZZER)
t_fuzz_fuzz_jupyter_LDADD = libjupyter.la
t_fuzz_replay_mcp_SOURCES = %D%/fuzz_mcp.c %D%/replay_main.c
t_fuzz_replay_mcp_CFLAGS = $(AM_CFLAGS) $(JSONC_CFLAGS)
t_fuzz_replay_mcp_LDADD = libmcp.la $(JSONC_LIBS)
t_fuzz_fuzz_mcp_SOURCES = %D%/fuzz_mcp.c
t_fuzz_fuzz_mcp_CFLAGS = $(AM_CFLAGS) $(JSONC_CFLAGS)
t_fuzz_fuzz_mcp_LDFLAGS = $(LIBFUZZER)
t_fuzz_fuzz_mcp_LDADD = libmcp.la $(JSONC_LIBS)
EXTRA_DIST += %D%/seeds/jupyter.txt %D%/seeds/mcp.txt
