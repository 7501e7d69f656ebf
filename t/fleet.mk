# fleet
check_PROGRAMS += %D%/unit/test_fleet %D%/unit/test_fleet_build %D%/unit/test_fleet_e2b %D%/unit/test_fleet_link %D%/unit/test_fleet_visits
TESTS += %D%/unit/test_fleet %D%/unit/test_fleet_build %D%/unit/test_fleet_e2b %D%/unit/test_fleet_link %D%/unit/test_fleet_visits
LONG_TESTS += %D%/e2e/test_e2b_control.py %D%/e2e/test_e2b_docker.py %D%/e2e/test_e2b_edge.py %D%/e2e/test_e2b_tables.py %D%/e2e/test_e2b_tls.py %D%/e2e/test_outsider.py %D%/e2e/test_fleet.py %D%/e2e/test_fleet_builds.py %D%/e2e/test_fleet_docker.py %D%/e2e/test_e2b_copies.py \
	%D%/e2e/test_fleet_console.py %D%/e2e/test_fleet_upgrades.py %D%/e2e/test_fleet_kills.py \
	%D%/e2e/test_fleet_once.py %D%/e2e/test_fleet_unread.py %D%/e2e/test_fleet_turns.py %D%/e2e/test_fleet_box.py %D%/e2e/test_fleet_copies.py
EXTRA_DIST += %D%/corpus/fleet/README %D%/corpus/fleet/remote-0.62.jsonl %D%/e2e/lib/fleet.py %D%/e2e/lib/remoteruntime.py %D%/e2e/lib/metrics.py
EXTRA_DIST += %D%/e2e/test_e2b_control.py %D%/e2e/test_e2b_copies.py %D%/e2e/test_e2b_docker.py %D%/e2e/test_e2b_edge.py %D%/e2e/test_e2b_tables.py %D%/e2e/test_e2b_tls.py %D%/e2e/lib/e2bfleet.py %D%/e2e/test_outsider.py %D%/e2e/lib/outsider.py %D%/e2e/test_fleet.py %D%/e2e/test_fleet_builds.py %D%/e2e/test_fleet_docker.py \
	%D%/e2e/test_fleet_console.py %D%/e2e/test_fleet_upgrades.py %D%/e2e/test_fleet_kills.py %D%/e2e/test_fleet_once.py %D%/e2e/test_fleet_unread.py %D%/e2e/test_fleet_turns.py %D%/e2e/test_fleet_box.py %D%/e2e/test_fleet_copies.py %D%/e2e/test_fleet_paths.py
# by hand: clients from PyPI
EXTRA_DIST += %D%/e2e/e2b_cli.py %D%/e2e/e2b_program.mjs %D%/e2e/e2b_program.py %D%/e2e/e2b_sdks.py %D%/e2e/fleet_openhands.py %D%/e2e/fleet_v1_sdk.py
t_unit_test_fleet_SOURCES = %D%/unit/test_fleet.c
t_unit_test_fleet_CFLAGS = $(AM_CFLAGS) $(CHECK_CFLAGS) $(JSONC_CFLAGS)
t_unit_test_fleet_LDADD = libfleet.la $(HOST_PARTS) $(CHECK_LIBS) $(JSONC_LIBS)
t_unit_test_fleet_e2b_SOURCES = %D%/unit/test_fleet_e2b.c
t_unit_test_fleet_e2b_CFLAGS = $(AM_CFLAGS) $(CHECK_CFLAGS) $(JSONC_CFLAGS)
t_unit_test_fleet_e2b_LDADD = libfleet.la $(HOST_PARTS) $(CHECK_LIBS) $(JSONC_LIBS)
t_unit_test_fleet_build_SOURCES = %D%/unit/test_fleet_build.c %D%/unit/lines.h
t_unit_test_fleet_build_CFLAGS = $(AM_CFLAGS) $(CHECK_CFLAGS) $(JSONC_CFLAGS)
t_unit_test_fleet_build_LDADD = libfleet.la $(HOST_PARTS) $(CHECK_LIBS) $(JSONC_LIBS)
t_unit_test_fleet_link_SOURCES = %D%/unit/test_fleet_link.c
t_unit_test_fleet_link_CFLAGS = $(AM_CFLAGS) $(CHECK_CFLAGS) $(JSONC_CFLAGS)
t_unit_test_fleet_link_LDADD = libfleet.la $(HOST_PARTS) $(CHECK_LIBS) $(JSONC_LIBS)
t_unit_test_fleet_visits_SOURCES = %D%/unit/test_fleet_visits.c
t_unit_test_fleet_visits_CFLAGS = $(AM_CFLAGS) $(CHECK_CFLAGS)
t_unit_test_fleet_visits_LDADD = libfleet.la $(HOST_PARTS) $(CHECK_LIBS)
if KUBERNETES
check_PROGRAMS += %D%/unit/test_fleet_kubernetes
# e2e/test_fleet_kubernetes.py is run by hand: it takes more than a minute
TESTS += %D%/unit/test_fleet_kubernetes
t_unit_test_fleet_kubernetes_SOURCES = %D%/unit/test_fleet_kubernetes.c
t_unit_test_fleet_kubernetes_CFLAGS = $(AM_CFLAGS) $(CHECK_CFLAGS) $(JSONC_CFLAGS)
t_unit_test_fleet_kubernetes_LDADD = libfleet.la $(HOST_PARTS) $(CHECK_LIBS) $(JSONC_LIBS)
endif
EXTRA_DIST += %D%/unit/test_fleet_kubernetes.c %D%/e2e/test_fleet_kubernetes.py %D%/e2e/lib/replicas.py \
	%D%/e2e/fleet_cluster.py
