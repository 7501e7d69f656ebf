# the kinds that providers run: recorded traffic, stand-ins
check_PROGRAMS += %D%/host/cloudplay %D%/fuzz/replay_connect %D%/fuzz/replay_modal
# programs as back-ends
check_PROGRAMS += %D%/unit/test_program %D%/fuzz/replay_program
TESTS += %D%/unit/test_program %D%/fuzz/replay_program
LONG_TESTS += %D%/e2e/test_programs.py
EXTRA_DIST += %D%/e2e/test_programs.py %D%/e2e/lib/playback.py %D%/fuzz/seeds/program.txt %D%/fuzz/fuzz_program.c
t_unit_test_program_SOURCES = %D%/unit/test_program.c
t_unit_test_program_CFLAGS = $(AM_CFLAGS) $(CHECK_CFLAGS) $(JSONC_CFLAGS)
t_unit_test_program_LDADD = $(CLOUD_TEST_LIBS) $(CHECK_LIBS)
t_fuzz_replay_program_SOURCES = %D%/fuzz/fuzz_program.c %D%/fuzz/replay_main.c
t_fuzz_replay_program_CFLAGS = $(AM_CFLAGS) $(JSONC_CFLAGS)
t_fuzz_replay_program_LDADD = $(CLOUD_TEST_LIBS)
t_fuzz_fuzz_program_SOURCES = %D%/fuzz/fuzz_program.c
t_fuzz_fuzz_program_CFLAGS = $(AM_CFLAGS) $(JSONC_CFLAGS)
t_fuzz_fuzz_program_LDFLAGS = $(AM_LDFLAGS) -fsanitize=fuzzer
t_fuzz_fuzz_program_LDADD = $(CLOUD_TEST_LIBS)
TESTS += %D%/fuzz/replay_connect %D%/fuzz/replay_modal
LONG_TESTS += %D%/e2e/test_clouds_e2b.py %D%/e2e/test_clouds_others.py %D%/e2e/test_clouds_modal.py \
	%D%/e2e/test_clouds_scenarios.py %D%/e2e/test_clouds_server.py %D%/e2e/test_clouds_faults.py \
	%D%/e2e/test_clouds_names.py
EXTRA_DIST += %D%/corpus/clouds/README %D%/corpus/clouds/e2b.jsonl %D%/corpus/clouds/daytona.jsonl \
	%D%/corpus/clouds/runloop.jsonl %D%/corpus/clouds/modal.jsonl %D%/corpus/clouds/modal_messages.62.json \
	%D%/corpus/clouds/modal_messages.new.json %D%/fuzz/seeds/connect.txt \
	%D%/e2e/lib/clouds.py %D%/e2e/lib/standin.py %D%/e2e/test_clouds_replay.py %D%/e2e/test_clouds_e2b.py \
	%D%/e2e/test_clouds_others.py %D%/e2e/test_clouds_modal.py %D%/e2e/test_clouds_scenarios.py \
	%D%/e2e/test_clouds_server.py %D%/e2e/test_clouds_faults.py %D%/e2e/test_clouds_names.py \
	%D%/e2e/lib/grpcserver.py \
	%D%/e2e/lib/modalservice.py %D%/e2e/lib/protobuf.py
CLOUD_TEST_LIBS = libclouds.la $(PROTOBUFC_LIBS) $(HOST_PARTS) libdetectload.la libfiles.la libshell.la $(JSONC_LIBS) \
	$(UTF8PROC_LIBS) $(DL_LIBS) -lm
check_PROGRAMS += %D%/unit/test_cloud
TESTS += %D%/unit/test_cloud
t_unit_test_cloud_SOURCES = %D%/unit/test_cloud.c
t_unit_test_cloud_CFLAGS = $(AM_CFLAGS) $(CHECK_CFLAGS) $(JSONC_CFLAGS)
t_unit_test_cloud_LDADD = $(CLOUD_TEST_LIBS) $(CHECK_LIBS)
t_host_cloudplay_SOURCES = %D%/host/cloudplay.c %D%/host/cloudplay.h %D%/host/cloudplay_any.c \
	%D%/host/cloudplay_e2b.c
t_host_cloudplay_CPPFLAGS = $(MODAL_TEST_CPPFLAGS) -I$(srcdir)/t/host
t_host_cloudplay_CFLAGS = $(AM_CFLAGS) $(JSONC_CFLAGS)
t_host_cloudplay_LDADD = $(CLOUD_TEST_LIBS)
t_fuzz_replay_connect_SOURCES = %D%/fuzz/fuzz_connect.c %D%/fuzz/replay_main.c
t_fuzz_replay_connect_CFLAGS = $(AM_CFLAGS) $(JSONC_CFLAGS)
t_fuzz_replay_connect_LDADD = $(CLOUD_TEST_LIBS)
MODAL_TEST_CPPFLAGS = $(AM_CPPFLAGS) -I$(top_builddir)/src $(PROTOBUFC_CFLAGS)
t_fuzz_replay_modal_SOURCES = %D%/fuzz/fuzz_modal.c %D%/fuzz/replay_main.c
t_fuzz_replay_modal_CPPFLAGS = $(MODAL_TEST_CPPFLAGS)
t_fuzz_replay_modal_CFLAGS = $(AM_CFLAGS) $(JSONC_CFLAGS)
t_fuzz_replay_modal_LDADD = $(CLOUD_TEST_LIBS)
EXTRA_PROGRAMS += %D%/fuzz/fuzz_connect %D%/fuzz/fuzz_modal %D%/fuzz/fuzz_program
if FUZZERS
noinst_PROGRAMS += %D%/fuzz/fuzz_connect %D%/fuzz/fuzz_modal %D%/fuzz/fuzz_program
endif
t_fuzz_fuzz_connect_SOURCES = %D%/fuzz/fuzz_connect.c
t_fuzz_fuzz_connect_CFLAGS = $(AM_CFLAGS) $(JSONC_CFLAGS)
t_fuzz_fuzz_connect_LDFLAGS = $(AM_LDFLAGS) -fsanitize=fuzzer
t_fuzz_fuzz_connect_LDADD = $(CLOUD_TEST_LIBS)
EXTRA_DIST += %D%/fuzz/fuzz_connect.c
t_fuzz_fuzz_modal_SOURCES = %D%/fuzz/fuzz_modal.c
t_fuzz_fuzz_modal_CPPFLAGS = $(MODAL_TEST_CPPFLAGS)
t_fuzz_fuzz_modal_CFLAGS = $(AM_CFLAGS) $(JSONC_CFLAGS)
t_fuzz_fuzz_modal_LDFLAGS = $(AM_LDFLAGS) -fsanitize=fuzzer
t_fuzz_fuzz_modal_LDADD = $(CLOUD_TEST_LIBS)
EXTRA_DIST += %D%/fuzz/fuzz_modal.c %D%/fuzz/seeds/modal.txt
