# transfer: uploads, downloads, archives
check_PROGRAMS += %D%/unit/test_multipart %D%/unit/test_transfer
TESTS += %D%/unit/test_multipart %D%/unit/test_transfer
t_unit_test_multipart_SOURCES = %D%/unit/test_multipart.c
t_unit_test_multipart_CFLAGS = $(AM_CFLAGS) $(CHECK_CFLAGS)
t_unit_test_multipart_LDADD = libfiles.la libdetect.la $(CHECK_LIBS)
t_unit_test_transfer_SOURCES = %D%/unit/test_transfer.c %D%/unit/attributes.h
t_unit_test_transfer_CFLAGS = $(AM_CFLAGS) $(CHECK_CFLAGS) $(ARCHIVE_CFLAGS)
t_unit_test_transfer_LDADD = libarchives.la libfiles.la libdetect.la $(CHECK_LIBS)
check_PROGRAMS += %D%/unit/test_tree
TESTS += %D%/unit/test_tree
t_unit_test_tree_SOURCES = %D%/unit/test_tree.c %D%/unit/lines.h %D%/unit/scratch.h
t_unit_test_tree_CFLAGS = $(AM_CFLAGS) $(CHECK_CFLAGS) $(ARCHIVE_CFLAGS)
t_unit_test_tree_LDADD = libarchives.la libfiles.la libdetect.la $(CHECK_LIBS)
t_unit_test_tree_LDFLAGS = $(AM_LDFLAGS) \
	-Wl,--wrap=read,--wrap=readdir,--wrap=lseek,--wrap=mkdirat,--wrap=symlinkat
EXTRA_DIST += %D%/e2e/test_transfer.py %D%/e2e/lib/forms.py
EXTRA_DIST += %D%/e2e/test_git.py

# see fuzz/local.mk
check_PROGRAMS += %D%/fuzz/replay_multipart
TESTS += %D%/fuzz/replay_multipart
EXTRA_PROGRAMS += %D%/fuzz/fuzz_multipart
EXTRA_DIST += %D%/fuzz/seeds/multipart.txt
t_fuzz_replay_multipart_SOURCES = %D%/fuzz/fuzz_multipart.c %D%/fuzz/replay_main.c
t_fuzz_replay_multipart_LDADD = libfiles.la libdetect.la
t_fuzz_fuzz_multipart_SOURCES = %D%/fuzz/fuzz_multipart.c
t_fuzz_fuzz_multipart_LDFLAGS = $(AM_LDFLAGS) -fsanitize=fuzzer
t_fuzz_fuzz_multipart_LDADD = libfiles.la libdetect.la
check_PROGRAMS += %D%/fuzz/replay_zipname
TESTS += %D%/fuzz/replay_zipname
EXTRA_PROGRAMS += %D%/fuzz/fuzz_zipname
EXTRA_DIST += %D%/fuzz/seeds/zipname.txt
t_fuzz_replay_zipname_SOURCES = %D%/fuzz/fuzz_zipname.c %D%/fuzz/replay_main.c
t_fuzz_replay_zipname_LDADD = libarchives.la libfiles.la libdetect.la
t_fuzz_fuzz_zipname_SOURCES = %D%/fuzz/fuzz_zipname.c
t_fuzz_fuzz_zipname_LDFLAGS = $(AM_LDFLAGS) -fsanitize=fuzzer
t_fuzz_fuzz_zipname_LDADD = libarchives.la libfiles.la libdetect.la
if FUZZERS
noinst_PROGRAMS += %D%/fuzz/fuzz_multipart %D%/fuzz/fuzz_zipname
endif
check_PROGRAMS += %D%/unit/test_filebody
TESTS += %D%/unit/test_filebody
t_unit_test_filebody_SOURCES = %D%/unit/test_filebody.c
t_unit_test_filebody_CFLAGS = $(AM_CFLAGS) $(CHECK_CFLAGS)
t_unit_test_filebody_LDADD = libfiles.la libdetect.la $(CHECK_LIBS)
LONG_TESTS += %D%/e2e/test_accounts.py
EXTRA_DIST += %D%/e2e/test_viewer.py %D%/e2e/test_accounts.py
