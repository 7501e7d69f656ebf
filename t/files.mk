# Files: the actions read, write and edit, and what they are made of.
check_PROGRAMS += %D%/unit/test_atomic
TESTS += %D%/unit/test_atomic
t_unit_test_atomic_SOURCES = %D%/unit/test_atomic.c %D%/unit/attributes.h %D%/unit/lines.h
t_unit_test_atomic_CFLAGS = $(AM_CFLAGS) $(CHECK_CFLAGS)
t_unit_test_atomic_LDADD = libfiles.la libdetect.la $(CHECK_LIBS)

# the recorded cases; needs python3 only
check_PROGRAMS += %D%/unit/files_play %D%/unit/test_readwrite
TESTS += %D%/unit/test_readwrite
t_unit_test_readwrite_SOURCES = %D%/unit/test_readwrite.c %D%/unit/lines.h %D%/unit/scratch.h
t_unit_test_readwrite_CFLAGS = $(AM_CFLAGS) $(CHECK_CFLAGS)
t_unit_test_readwrite_LDADD = libfiles.la libdetect.la libbase.la $(CHECK_LIBS)
t_unit_test_readwrite_LDFLAGS = $(AM_LDFLAGS) -Wl,--wrap=stat
TESTS += %D%/unit/test_files_corpus.py
EXTRA_DIST += %D%/valgrind.supp %D%/lsan.supp %D%/unit/test_files_corpus.py %D%/corpus/files/README \
	%D%/corpus/files/binary.jsonl %D%/corpus/files/diff.jsonl \
	%D%/corpus/files/documents.jsonl %D%/corpus/files/editor.jsonl \
	%D%/corpus/files/exceptions.txt %D%/corpus/files/lines.jsonl \
	%D%/corpus/files/readwrite.jsonl
t_unit_files_play_SOURCES = %D%/unit/files_play.c
t_unit_files_play_CFLAGS = $(AM_CFLAGS) $(JSONC_CFLAGS)
t_unit_files_play_LDADD = libworker.la libdetect.la

if OFFICE
check_PROGRAMS += %D%/unit/test_office
TESTS += %D%/unit/test_office
endif
t_unit_test_office_SOURCES = %D%/unit/test_office.c %D%/unit/lines.h %D%/unit/office_pack.h
t_unit_test_office_CFLAGS = $(AM_CFLAGS) $(ARCHIVE_CFLAGS) $(CHECK_CFLAGS)
t_unit_test_office_LDADD = liboffice.la libprotojson.la libbase.la $(CHECK_LIBS)

# read, write and edit through the whole server; some need root and mount
EXTRA_DIST += %D%/e2e/test_files.py

check_PROGRAMS += %D%/unit/test_charset %D%/unit/test_history %D%/unit/test_pdftext %D%/unit/test_picture %D%/unit/test_purepath
TESTS += %D%/unit/test_charset %D%/unit/test_history %D%/unit/test_pdftext %D%/unit/test_picture %D%/unit/test_purepath
t_unit_test_pdftext_SOURCES = %D%/unit/test_pdftext.c %D%/unit/lines.h
t_unit_test_pdftext_CFLAGS = $(AM_CFLAGS) $(CHECK_CFLAGS)
t_unit_test_pdftext_LDADD = libfiles.la libdetect.la $(CHECK_LIBS)
t_unit_test_charset_SOURCES = %D%/unit/test_charset.c %D%/unit/lines.h
t_unit_test_charset_CFLAGS = $(AM_CFLAGS) $(CHECK_CFLAGS)
t_unit_test_charset_LDADD = libfiles.la libdetect.la $(CHECK_LIBS)
t_unit_test_history_SOURCES = %D%/unit/test_history.c %D%/unit/lines.h
t_unit_test_history_CFLAGS = $(AM_CFLAGS) $(CHECK_CFLAGS)
t_unit_test_history_LDADD = libfiles.la libdetect.la $(CHECK_LIBS)
t_unit_test_picture_SOURCES = %D%/unit/test_picture.c %D%/unit/lines.h
t_unit_test_picture_CFLAGS = $(AM_CFLAGS) $(CHECK_CFLAGS)
t_unit_test_picture_LDADD = libfiles.la libdetect.la $(CHECK_LIBS)
t_unit_test_purepath_SOURCES = %D%/unit/test_purepath.c %D%/unit/lines.h
t_unit_test_purepath_CFLAGS = $(AM_CFLAGS) $(CHECK_CFLAGS)
t_unit_test_purepath_LDADD = libfiles.la libdetect.la $(CHECK_LIBS)

# the tools of the door for agents that show and change files
LONG_TESTS += %D%/e2e/test_door_beside.py %D%/e2e/test_door_files.py %D%/e2e/test_door_search.py
EXTRA_DIST += %D%/e2e/test_door_beside.py %D%/e2e/test_door_files.py %D%/e2e/test_door_search.py
check_PROGRAMS += %D%/fuzz/replay_revise
TESTS += %D%/fuzz/replay_revise
EXTRA_PROGRAMS += %D%/fuzz/fuzz_revise
EXTRA_DIST += %D%/fuzz/seeds/revise.txt
t_fuzz_replay_revise_SOURCES = %D%/fuzz/fuzz_revise.c %D%/fuzz/replay_main.c
t_fuzz_replay_revise_LDADD = libfiles.la libdetect.la
t_fuzz_fuzz_revise_SOURCES = %D%/fuzz/fuzz_revise.c
t_fuzz_fuzz_revise_LDFLAGS = $(AM_LDFLAGS) -fsanitize=fuzzer
t_fuzz_fuzz_revise_LDADD = libfiles.la libdetect.la
