# The dialect of E2B: processes.
check_PROGRAMS += %D%/unit/test_e2b_nomem %D%/unit/test_envd %D%/unit/test_serve %D%/fuzz/replay_envd
TESTS += %D%/unit/test_e2b_nomem %D%/unit/test_envd %D%/unit/test_serve %D%/fuzz/replay_envd
LONG_TESTS += %D%/e2e/test_e2b_faults.py %D%/e2e/test_e2b_process.py
EXTRA_DIST += %D%/e2e/test_e2b_faults.py %D%/e2e/test_e2b_process.py %D%/fuzz/seeds/envd.txt %D%/fuzz/fuzz_envd.c
t_unit_test_e2b_nomem_SOURCES = %D%/unit/test_e2b_nomem.c %D%/unit/fuse.h %D%/unit/lines.h %D%/unit/scratch.h
t_unit_test_e2b_nomem_CFLAGS = $(AM_CFLAGS) $(CHECK_CFLAGS) $(JSONC_CFLAGS) -fno-builtin
t_unit_test_e2b_nomem_LDADD = libenvd.la $(CHECK_LIBS) $(JSONC_LIBS)
t_unit_test_e2b_nomem_LDFLAGS = $(AM_LDFLAGS) $(nomem_wraps)
t_unit_test_envd_SOURCES = %D%/unit/test_envd.c %D%/unit/scratch.h
t_unit_test_envd_CFLAGS = $(AM_CFLAGS) $(CHECK_CFLAGS) $(JSONC_CFLAGS)
t_unit_test_envd_LDADD = libenvd.la $(CHECK_LIBS) $(JSONC_LIBS)
t_unit_test_serve_SOURCES = %D%/unit/test_serve.c
t_unit_test_serve_CFLAGS = $(AM_CFLAGS) $(CHECK_CFLAGS)
t_unit_test_serve_LDADD = libserve.la libbase.la $(CHECK_LIBS)
t_fuzz_replay_envd_SOURCES = %D%/fuzz/fuzz_envd.c %D%/fuzz/replay_main.c
t_fuzz_replay_envd_CFLAGS = $(AM_CFLAGS) $(JSONC_CFLAGS)
t_fuzz_replay_envd_LDADD = libenvd.la $(JSONC_LIBS)
EXTRA_PROGRAMS += %D%/fuzz/fuzz_envd
if FUZZERS
noinst_PROGRAMS += %D%/fuzz/fuzz_envd
endif
t_fuzz_fuzz_envd_SOURCES = %D%/fuzz/fuzz_envd.c
t_fuzz_fuzz_envd_CFLAGS = $(AM_CFLAGS) $(JSONC_CFLAGS)
t_fuzz_fuzz_envd_LDFLAGS = $(AM_LDFLAGS) -fsanitize=fuzzer
t_fuzz_fuzz_envd_LDADD = libenvd.la $(JSONC_LIBS)
