# the kinds that providers run: recorded traffic, stand-ins
check_PROGRAMS += %D%/host/cloudplay %D%/fuzz/replay_connect
TESTS += %D%/fuzz/replay_connect %D%/e2e/test_clouds_replay.py %D%/e2e/test_clouds_e2b.py \
	%D%/e2e/test_clouds_others.py
EXTRA_DIST += %D%/corpus/clouds/README %D%/corpus/clouds/e2b.jsonl %D%/corpus/clouds/daytona.jsonl \
	%D%/corpus/clouds/runloop.jsonl %D%/corpus/clouds/modal.jsonl %D%/corpus/clouds/modal_messages.62.json \
	%D%/corpus/clouds/modal_messages.new.json %D%/fuzz/seeds/connect.txt \
	%D%/e2e/lib/clouds.py %D%/e2e/lib/standin.py %D%/e2e/test_clouds_replay.py %D%/e2e/test_clouds_e2b.py \
	%D%/e2e/test_clouds_others.py
CLOUD_TEST_LIBS = libclouds.la $(HOST_PARTS) libdetectload.la libfiles.la libshell.la $(JSONC_LIBS) \
	$(UTF8PROC_LIBS) $(DL_LIBS) -lm
t_host_cloudplay_SOURCES = %D%/host/cloudplay.c %D%/host/cloudplay.h %D%/host/cloudplay_any.c \
	%D%/host/cloudplay_e2b.c
t_host_cloudplay_CPPFLAGS = $(AM_CPPFLAGS) -I$(srcdir)/t/host
t_host_cloudplay_CFLAGS = $(AM_CFLAGS) $(JSONC_CFLAGS)
t_host_cloudplay_LDADD = $(CLOUD_TEST_LIBS)
t_fuzz_replay_connect_SOURCES = %D%/fuzz/fuzz_connect.c %D%/fuzz/replay_main.c
t_fuzz_replay_connect_CFLAGS = $(AM_CFLAGS) $(JSONC_CFLAGS)
t_fuzz_replay_connect_LDADD = $(CLOUD_TEST_LIBS)
EXTRA_PROGRAMS += %D%/fuzz/fuzz_connect
if FUZZERS
noinst_PROGRAMS += %D%/fuzz/fuzz_connect
endif
t_fuzz_fuzz_connect_SOURCES = %D%/fuzz/fuzz_connect.c
t_fuzz_fuzz_connect_CFLAGS = $(AM_CFLAGS) $(JSONC_CFLAGS)
t_fuzz_fuzz_connect_LDFLAGS = $(AM_LDFLAGS) -fsanitize=fuzzer
t_fuzz_fuzz_connect_LDADD = $(CLOUD_TEST_LIBS)
EXTRA_DIST += %D%/fuzz/fuzz_connect.c
