# The supervisor: units, what it writes for others, and the whole with real processes.
check_PROGRAMS += %D%/unit/test_alert %D%/unit/test_barrier %D%/unit/test_identity %D%/unit/test_manifest %D%/unit/test_monitor %D%/unit/test_nginx_conf %D%/unit/test_options \
	%D%/unit/test_rundir %D%/unit/test_settings %D%/unit/test_supervisor
TESTS += %D%/unit/test_alert %D%/unit/test_barrier %D%/unit/test_identity %D%/unit/test_manifest %D%/unit/test_monitor %D%/unit/test_nginx_conf %D%/unit/test_options \
	%D%/unit/test_rundir %D%/unit/test_settings %D%/unit/test_supervisor
t_unit_test_alert_SOURCES = %D%/unit/test_alert.c
t_unit_test_alert_CFLAGS = $(AM_CFLAGS) $(CHECK_CFLAGS)
t_unit_test_alert_LDADD = libsupervisor.la $(CHECK_LIBS)
check_PROGRAMS += %D%/unit/test_service
TESTS += %D%/unit/test_service
t_unit_test_service_SOURCES = %D%/unit/test_service.c
t_unit_test_service_CFLAGS = $(AM_CFLAGS) $(CHECK_CFLAGS)
t_unit_test_service_LDADD = libsupervisor.la $(CHECK_LIBS)

check_PROGRAMS += %D%/unit/test_workerargs
TESTS += %D%/unit/test_workerargs
t_unit_test_workerargs_SOURCES = %D%/unit/test_workerargs.c
t_unit_test_workerargs_CFLAGS = $(AM_CFLAGS) $(CHECK_CFLAGS)
t_unit_test_workerargs_LDADD = libproto.la libbase.la $(CHECK_LIBS)

check_PROGRAMS += %D%/unit/test_handover
TESTS += %D%/unit/test_handover
t_unit_test_handover_SOURCES = %D%/unit/test_handover.c
t_unit_test_handover_CFLAGS = $(AM_CFLAGS) $(CHECK_CFLAGS)
t_unit_test_handover_LDADD = libsupervisor.la $(CHECK_LIBS)
t_unit_test_identity_SOURCES = %D%/unit/test_identity.c
t_unit_test_identity_CFLAGS = $(AM_CFLAGS) $(CHECK_CFLAGS)
t_unit_test_identity_LDFLAGS = $(AM_LDFLAGS) -Wl,--wrap=getgrnam
t_unit_test_identity_LDADD = libsupervisor.la $(CHECK_LIBS)
t_unit_test_manifest_SOURCES = %D%/unit/test_manifest.c
t_unit_test_manifest_CFLAGS = $(AM_CFLAGS) $(CHECK_CFLAGS)
t_unit_test_manifest_LDADD = libsupervisor.la $(CHECK_LIBS)
t_unit_test_monitor_SOURCES = %D%/unit/test_monitor.c
t_unit_test_monitor_CFLAGS = $(AM_CFLAGS) $(CHECK_CFLAGS)
t_unit_test_monitor_LDADD = libsupervisor.la $(CHECK_LIBS)
t_unit_test_barrier_SOURCES = %D%/unit/test_barrier.c
t_unit_test_barrier_CFLAGS = $(AM_CFLAGS) $(CHECK_CFLAGS)
t_unit_test_barrier_LDADD = libsupervisor.la $(CHECK_LIBS)
t_unit_test_nginx_conf_SOURCES = %D%/unit/test_nginx_conf.c
t_unit_test_nginx_conf_CFLAGS = $(AM_CFLAGS) $(CHECK_CFLAGS)
t_unit_test_nginx_conf_LDADD = libsupervisor.la $(CHECK_LIBS)
t_unit_test_options_SOURCES = %D%/unit/test_options.c
t_unit_test_options_CFLAGS = $(AM_CFLAGS) $(CHECK_CFLAGS)
t_unit_test_options_LDADD = libsupervisor.la $(CHECK_LIBS)
t_unit_test_rundir_SOURCES = %D%/unit/test_rundir.c
t_unit_test_rundir_CFLAGS = $(AM_CFLAGS) $(CHECK_CFLAGS)
t_unit_test_rundir_LDADD = libsupervisor.la $(CHECK_LIBS)
t_unit_test_settings_SOURCES = %D%/unit/test_settings.c
t_unit_test_settings_CFLAGS = $(AM_CFLAGS) $(CHECK_CFLAGS)
t_unit_test_settings_LDADD = libsupervisor.la $(CHECK_LIBS)
t_unit_test_supervisor_SOURCES = %D%/unit/test_supervisor.c
t_unit_test_supervisor_CFLAGS = $(AM_CFLAGS) $(CHECK_CFLAGS)
t_unit_test_supervisor_LDADD = libsupervisor.la $(CHECK_LIBS)

# They run what was built, from the build tree.
EXTRA_DIST += %D%/lint/conf %D%/e2e/test_edge.py %D%/e2e/test_front.py %D%/e2e/test_unkeyed.py \
	%D%/e2e/lib/attacker.py %D%/e2e/lib/certs.py %D%/e2e/test_alerts.py %D%/e2e/test_attacks.py %D%/e2e/lib/newborn.py %D%/e2e/test_secrets.py %D%/e2e/test_reach.py \
	%D%/e2e/test_held.py %D%/e2e/test_metrics.py %D%/e2e/test_service.py \
	%D%/e2e/test_supervisor.py %D%/e2e/lib/supervised.py %D%/e2e/lib/fcgi_echo.py
TESTS += %D%/lint/conf
LONG_TESTS += %D%/e2e/test_alerts.py %D%/e2e/test_attacks.py %D%/e2e/test_secrets.py %D%/e2e/test_reach.py \
	%D%/e2e/test_front.py %D%/e2e/test_unkeyed.py %D%/e2e/test_held.py %D%/e2e/test_metrics.py \
	%D%/e2e/test_supervisor.py

# See fuzz/local.mk.
check_PROGRAMS += %D%/fuzz/replay_supervisor
TESTS += %D%/fuzz/replay_supervisor
EXTRA_PROGRAMS += %D%/fuzz/fuzz_supervisor
EXTRA_DIST += %D%/fuzz/seeds/supervisor.txt
if FUZZERS
noinst_PROGRAMS += %D%/fuzz/fuzz_supervisor
endif
t_fuzz_replay_supervisor_SOURCES = %D%/fuzz/fuzz_supervisor.c %D%/fuzz/replay_main.c
t_fuzz_replay_supervisor_LDADD = libsupervisor.la
t_fuzz_fuzz_supervisor_SOURCES = %D%/fuzz/fuzz_supervisor.c
t_fuzz_fuzz_supervisor_LDFLAGS = $(AM_LDFLAGS) -fsanitize=fuzzer
t_fuzz_fuzz_supervisor_LDADD = libsupervisor.la

check_PROGRAMS += %D%/unit/test_metrics
TESTS += %D%/unit/test_metrics
t_unit_test_metrics_SOURCES = %D%/unit/test_metrics.c
t_unit_test_metrics_CFLAGS = $(AM_CFLAGS) $(CHECK_CFLAGS) $(JSONC_CFLAGS)
t_unit_test_metrics_LDADD = libworker.la libdetect.la $(CHECK_LIBS)

check_PROGRAMS += %D%/unit/test_ready
TESTS += %D%/unit/test_ready
t_unit_test_ready_SOURCES = %D%/unit/test_ready.c
t_unit_test_ready_CFLAGS = $(AM_CFLAGS) $(CHECK_CFLAGS) $(JSONC_CFLAGS)
t_unit_test_ready_LDADD = libworker.la libdetect.la $(CHECK_LIBS)

check_PROGRAMS += %D%/unit/test_unread
TESTS += %D%/unit/test_unread
t_unit_test_unread_SOURCES = %D%/unit/test_unread.c %D%/unit/connection.h %D%/unit/lines.h
t_unit_test_unread_CFLAGS = $(AM_CFLAGS) $(CHECK_CFLAGS)
t_unit_test_unread_LDFLAGS = $(AM_LDFLAGS) -Wl,--wrap=socket
t_unit_test_unread_LDADD = libproto.la libbase.la $(CHECK_LIBS)
check_PROGRAMS += %D%/unit/test_once
TESTS += %D%/unit/test_once
t_unit_test_once_SOURCES = %D%/unit/test_once.c
t_unit_test_once_CFLAGS = $(AM_CFLAGS) $(CHECK_CFLAGS) $(JSONC_CFLAGS)
t_unit_test_once_LDADD = libworker.la libdetect.la $(CHECK_LIBS)

check_PROGRAMS += %D%/unit/test_cgroup
TESTS += %D%/unit/test_cgroup
t_unit_test_cgroup_SOURCES = %D%/unit/test_cgroup.c
t_unit_test_cgroup_CFLAGS = $(AM_CFLAGS) $(CHECK_CFLAGS)
t_unit_test_cgroup_LDADD = libsupervisor.la libkeeper.la $(CHECK_LIBS)

EXTRA_DIST += %D%/e2e/test_limits.py
LONG_TESTS += %D%/e2e/test_limits.py

check_PROGRAMS += %D%/unit/test_commands
TESTS += %D%/unit/test_commands
t_unit_test_commands_SOURCES = %D%/unit/test_commands.c
t_unit_test_commands_CFLAGS = $(AM_CFLAGS) $(CHECK_CFLAGS)
t_unit_test_commands_LDADD = libkeeper.la $(CHECK_LIBS)
check_PROGRAMS += %D%/unit/test_kept
TESTS += %D%/unit/test_kept
t_unit_test_kept_SOURCES = %D%/unit/test_kept.c
t_unit_test_kept_CFLAGS = $(AM_CFLAGS) $(CHECK_CFLAGS)
t_unit_test_kept_LDADD = libkeeper.la $(CHECK_LIBS)

check_PROGRAMS += %D%/unit/test_outlog
TESTS += %D%/unit/test_outlog
t_unit_test_outlog_SOURCES = %D%/unit/test_outlog.c %D%/unit/scratch.h
t_unit_test_outlog_CFLAGS = $(AM_CFLAGS) $(CHECK_CFLAGS)
t_unit_test_outlog_LDADD = libkeeper.la $(CHECK_LIBS)

EXTRA_DIST += %D%/e2e/test_door.py %D%/e2e/test_exchange.py %D%/e2e/test_live.py %D%/e2e/test_output.py %D%/e2e/test_scarce.py %D%/e2e/test_sessions.py \
	%D%/e2e/test_succession.py %D%/e2e/test_stops.py
LONG_TESTS += %D%/e2e/test_exchange.py %D%/e2e/test_live.py %D%/e2e/test_output.py %D%/e2e/test_scarce.py %D%/e2e/test_sessions.py \
	%D%/e2e/test_succession.py %D%/e2e/test_stops.py
