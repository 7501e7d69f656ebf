# session
check_PROGRAMS += %D%/unit/test_core %D%/unit/test_core_content %D%/unit/test_core_given \
	%D%/unit/test_core_model \
	%D%/unit/test_core_nomem %D%/unit/test_core_shell %D%/unit/test_core_silent \
	%D%/unit/test_environ %D%/unit/test_hook %D%/unit/test_netlog %D%/unit/test_python %D%/unit/test_report \
	%D%/unit/test_shellproc %D%/unit/test_statedir %D%/unit/test_view
TESTS += %D%/unit/test_core %D%/unit/test_core_content %D%/unit/test_core_given \
	%D%/unit/test_core_model \
	%D%/unit/test_core_nomem %D%/unit/test_core_shell %D%/unit/test_core_silent \
	%D%/unit/test_environ %D%/unit/test_hook %D%/unit/test_netlog %D%/unit/test_python %D%/unit/test_report \
	%D%/unit/test_shellproc %D%/unit/test_statedir %D%/unit/test_view
session_fake = %D%/unit/core_check.c %D%/unit/core_check.h %D%/unit/core_fake.c %D%/unit/core_fake.h
t_unit_test_core_SOURCES = %D%/unit/test_core.c $(session_fake)
t_unit_test_core_CFLAGS = $(AM_CFLAGS) $(CHECK_CFLAGS)
t_unit_test_core_LDADD = libsession.la $(CHECK_LIBS)
t_unit_test_core_content_SOURCES = %D%/unit/test_core_content.c $(session_fake)
t_unit_test_core_content_CFLAGS = $(AM_CFLAGS) $(CHECK_CFLAGS)
t_unit_test_core_content_LDADD = libsession.la $(CHECK_LIBS)
t_unit_test_core_given_SOURCES = %D%/unit/test_core_given.c $(session_fake)
t_unit_test_core_given_CFLAGS = $(AM_CFLAGS) $(CHECK_CFLAGS)
t_unit_test_core_given_LDADD = libsession.la $(CHECK_LIBS)
t_unit_test_core_model_SOURCES = %D%/unit/test_core_model.c %D%/unit/core_play.c \
	%D%/unit/core_play.h $(session_fake)
t_unit_test_core_model_CFLAGS = $(AM_CFLAGS) $(CHECK_CFLAGS)
t_unit_test_core_model_LDADD = libsession.la $(CHECK_LIBS)
t_unit_test_core_shell_SOURCES = %D%/unit/test_core_shell.c $(session_fake)
t_unit_test_core_shell_CFLAGS = $(AM_CFLAGS) $(CHECK_CFLAGS)
t_unit_test_core_shell_LDADD = libsession.la $(CHECK_LIBS)
t_unit_test_environ_SOURCES = %D%/unit/test_environ.c
t_unit_test_environ_CFLAGS = $(AM_CFLAGS) $(CHECK_CFLAGS)
t_unit_test_environ_LDADD = libkeeper.la $(CHECK_LIBS)
t_unit_test_hook_SOURCES = %D%/unit/test_hook.c %D%/unit/scratch.h
t_unit_test_hook_CFLAGS = $(AM_CFLAGS) $(CHECK_CFLAGS)
t_unit_test_hook_LDADD = libsession.la $(CHECK_LIBS)
t_unit_test_netlog_SOURCES = %D%/unit/test_netlog.c
t_unit_test_netlog_CFLAGS = $(AM_CFLAGS) $(CHECK_CFLAGS)
t_unit_test_netlog_LDADD = libkeeper.la $(CHECK_LIBS)
t_unit_test_python_SOURCES = %D%/unit/test_python.c
t_unit_test_python_CFLAGS = $(AM_CFLAGS) $(CHECK_CFLAGS)
t_unit_test_python_LDADD = libkeeper.la $(CHECK_LIBS)
t_unit_test_shellproc_SOURCES = %D%/unit/test_shellproc.c
t_unit_test_shellproc_CFLAGS = $(AM_CFLAGS) $(CHECK_CFLAGS)
t_unit_test_shellproc_LDADD = libkeeper.la $(CHECK_LIBS)
t_unit_test_statedir_SOURCES = %D%/unit/test_statedir.c
t_unit_test_statedir_CFLAGS = $(AM_CFLAGS) $(CHECK_CFLAGS)
t_unit_test_statedir_LDADD = libkeeper.la $(CHECK_LIBS)
t_unit_test_core_silent_SOURCES = %D%/unit/test_core_silent.c $(session_fake)
t_unit_test_core_silent_CFLAGS = $(AM_CFLAGS) $(CHECK_CFLAGS)
t_unit_test_core_silent_LDADD = libsession.la $(CHECK_LIBS)
t_unit_test_report_SOURCES = %D%/unit/test_report.c
t_unit_test_report_CFLAGS = $(AM_CFLAGS) $(CHECK_CFLAGS)
t_unit_test_report_LDADD = libsession.la $(CHECK_LIBS)
t_unit_test_view_SOURCES = %D%/unit/test_view.c
t_unit_test_view_CFLAGS = $(AM_CFLAGS) $(CHECK_CFLAGS)
t_unit_test_view_LDADD = libsession.la $(CHECK_LIBS)
t_unit_test_core_nomem_SOURCES = %D%/unit/test_core_nomem.c $(session_fake)
t_unit_test_core_nomem_CFLAGS = $(AM_CFLAGS) $(CHECK_CFLAGS) -fno-builtin
t_unit_test_core_nomem_LDFLAGS = $(AM_LDFLAGS) \
	-Wl,--wrap=malloc -Wl,--wrap=calloc -Wl,--wrap=realloc
t_unit_test_core_nomem_LDADD = libsession.la $(CHECK_LIBS)

# the same, with another core after each event
check_PROGRAMS += \
	%D%/unit/test_core_resumed \
	%D%/unit/test_core_content_resumed \
	%D%/unit/test_core_given_resumed \
	%D%/unit/test_core_shell_resumed \
	%D%/unit/test_core_silent_resumed
TESTS += \
	%D%/unit/test_core_resumed \
	%D%/unit/test_core_content_resumed \
	%D%/unit/test_core_given_resumed \
	%D%/unit/test_core_shell_resumed \
	%D%/unit/test_core_silent_resumed
t_unit_test_core_resumed_SOURCES = %D%/unit/test_core.c $(session_fake)
t_unit_test_core_resumed_CFLAGS = $(AM_CFLAGS) $(CHECK_CFLAGS) -DFAKE_RESUMES
t_unit_test_core_resumed_LDADD = libsession.la $(CHECK_LIBS)
t_unit_test_core_content_resumed_SOURCES = %D%/unit/test_core_content.c $(session_fake)
t_unit_test_core_content_resumed_CFLAGS = $(AM_CFLAGS) $(CHECK_CFLAGS) -DFAKE_RESUMES
t_unit_test_core_content_resumed_LDADD = libsession.la $(CHECK_LIBS)
t_unit_test_core_given_resumed_SOURCES = %D%/unit/test_core_given.c $(session_fake)
t_unit_test_core_given_resumed_CFLAGS = $(AM_CFLAGS) $(CHECK_CFLAGS) -DFAKE_RESUMES
t_unit_test_core_given_resumed_LDADD = libsession.la $(CHECK_LIBS)
t_unit_test_core_shell_resumed_SOURCES = %D%/unit/test_core_shell.c $(session_fake)
t_unit_test_core_shell_resumed_CFLAGS = $(AM_CFLAGS) $(CHECK_CFLAGS) -DFAKE_RESUMES
t_unit_test_core_shell_resumed_LDADD = libsession.la $(CHECK_LIBS)
t_unit_test_core_silent_resumed_SOURCES = %D%/unit/test_core_silent.c $(session_fake)
t_unit_test_core_silent_resumed_CFLAGS = $(AM_CFLAGS) $(CHECK_CFLAGS) -DFAKE_RESUMES
t_unit_test_core_silent_resumed_LDADD = libsession.la $(CHECK_LIBS)
