# The dialect of E2B, as far as it is inside of a sandbox: recordings and their replay, accounts, paths, entries, files.
check_PROGRAMS += %D%/unit/test_e2b
TESTS += %D%/unit/test_e2b %D%/e2e/test_e2b_files.py
t_unit_test_e2b_SOURCES = %D%/unit/test_e2b.c %D%/unit/lines.h %D%/unit/scratch.h
t_unit_test_e2b_CFLAGS = $(AM_CFLAGS) $(CHECK_CFLAGS) $(JSONC_CFLAGS)
t_unit_test_e2b_LDADD = libe2b.la $(CHECK_LIBS) $(JSONC_LIBS)
LONG_TESTS += %D%/e2e/test_e2b_watch.py
EXTRA_DIST += %D%/e2e/test_e2b_files.py %D%/e2e/test_e2b_watch.py %D%/e2e/lib/e2breplay.py %D%/e2e/lib/e2bworld.py \
	%D%/corpus/e2b/README %D%/corpus/e2b/e2b_oracle.jsonl %D%/corpus/e2b/e2b_oracle_cmd.jsonl %D%/corpus/e2b/explained
