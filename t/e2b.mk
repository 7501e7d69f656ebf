# The dialect of E2B, as far as it is inside of a sandbox: recordings and their replay, accounts, paths, entries, files.
check_PROGRAMS += %D%/unit/test_e2b %D%/unit/test_e2b_files_nomem %D%/fuzz/replay_e2b
TESTS += %D%/unit/test_e2b %D%/unit/test_e2b_files_nomem %D%/fuzz/replay_e2b %D%/e2e/test_e2b_files.py
t_unit_test_e2b_SOURCES = %D%/unit/test_e2b.c %D%/unit/lines.h %D%/unit/scratch.h
t_unit_test_e2b_CFLAGS = $(AM_CFLAGS) $(CHECK_CFLAGS) $(JSONC_CFLAGS)
t_unit_test_e2b_LDADD = libe2b.la $(CHECK_LIBS) $(JSONC_LIBS)
t_unit_test_e2b_files_nomem_SOURCES = %D%/unit/test_e2b_files_nomem.c %D%/unit/fuse.h %D%/unit/lines.h \
	%D%/unit/request.h %D%/unit/scratch.h
t_unit_test_e2b_files_nomem_CFLAGS = $(AM_CFLAGS) $(CHECK_CFLAGS) $(JSONC_CFLAGS) -fno-builtin
t_unit_test_e2b_files_nomem_LDADD = libworker.la libdetect.la $(CHECK_LIBS)
t_unit_test_e2b_files_nomem_LDFLAGS = $(AM_LDFLAGS) $(nomem_wraps) -Wl,--wrap=hr_dir_next
t_fuzz_replay_e2b_SOURCES = %D%/fuzz/fuzz_e2b.c %D%/fuzz/replay_main.c
t_fuzz_replay_e2b_CFLAGS = $(AM_CFLAGS) $(JSONC_CFLAGS)
t_fuzz_replay_e2b_LDADD = libworker.la libdetect.la libbase.la
EXTRA_PROGRAMS += %D%/fuzz/fuzz_e2b
if FUZZERS
noinst_PROGRAMS += %D%/fuzz/fuzz_e2b
endif
t_fuzz_fuzz_e2b_SOURCES = %D%/fuzz/fuzz_e2b.c
t_fuzz_fuzz_e2b_CFLAGS = $(AM_CFLAGS) $(JSONC_CFLAGS)
t_fuzz_fuzz_e2b_LDFLAGS = $(AM_LDFLAGS) -fsanitize=fuzzer
t_fuzz_fuzz_e2b_LDADD = libworker.la libdetect.la libbase.la
LONG_TESTS += %D%/e2e/test_e2b_watch.py %D%/e2e/test_e2b_code_replay.py
EXTRA_DIST += %D%/fuzz/seeds/e2b.txt %D%/e2e/test_e2b_files.py %D%/e2e/test_e2b_watch.py %D%/e2e/lib/e2breplay.py %D%/e2e/lib/e2bworld.py \
	%D%/corpus/e2b/README %D%/corpus/e2b/e2b_oracle.jsonl %D%/corpus/e2b/e2b_oracle_cmd.jsonl %D%/corpus/e2b/explained
