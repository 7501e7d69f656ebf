# image
check_PROGRAMS += %D%/unit/test_image
TESTS += %D%/unit/test_image
LONG_TESTS += %D%/e2e/test_image_kit.py
EXTRA_DIST += %D%/corpus/image/README %D%/corpus/image/image_tags.jsonl %D%/e2e/test_image_kit.py
t_unit_test_image_SOURCES = %D%/unit/test_image.c %D%/unit/lines.h
t_unit_test_image_CFLAGS = $(AM_CFLAGS) $(CHECK_CFLAGS) $(JSONC_CFLAGS)
t_unit_test_image_LDADD = libimagekit.la libprotojson.la libbase.la $(CHECK_LIBS) $(JSONC_LIBS)

# the broker of boxes
if BOX
check_PROGRAMS += %D%/unit/test_egress_broker %D%/fuzz/replay_egress_proxy
TESTS += %D%/e2e/test_egress_broker.py %D%/unit/test_egress_broker %D%/fuzz/replay_egress_proxy
EXTRA_PROGRAMS += %D%/fuzz/fuzz_egress_proxy
if FUZZERS
noinst_PROGRAMS += %D%/fuzz/fuzz_egress_proxy
endif
t_fuzz_replay_egress_proxy_SOURCES = %D%/fuzz/fuzz_egress_proxy.c %D%/fuzz/replay_main.c
t_fuzz_replay_egress_proxy_LDADD = libegressbroker.la
t_fuzz_fuzz_egress_proxy_SOURCES = %D%/fuzz/fuzz_egress_proxy.c
t_fuzz_fuzz_egress_proxy_LDFLAGS = $(LIBFUZZER)
t_fuzz_fuzz_egress_proxy_LDADD = libegressbroker.la
t_unit_test_egress_broker_SOURCES = %D%/unit/test_egress_broker.c %D%/unit/lines.h %D%/unit/scratch.h
t_unit_test_egress_broker_CFLAGS = $(AM_CFLAGS) $(CHECK_CFLAGS)
t_unit_test_egress_broker_LDADD = libegressbroker.la $(CHECK_LIBS)
endif
EXTRA_DIST += %D%/e2e/test_egress_broker.py %D%/e2e/lib/egressworld.py %D%/fuzz/fuzz_egress_proxy.c %D%/fuzz/seeds/egress_proxy.txt

# the edge of boxes
if BOX
check_PROGRAMS += %D%/e2e/edge_driver %D%/unit/test_egress_edge
TESTS += %D%/e2e/test_egress_edge.py %D%/unit/test_egress_edge
EXTRA_DIST += %D%/e2e/lib/edgeserver.py %D%/e2e/test_egress_edge.py
t_e2e_edge_driver_SOURCES = %D%/e2e/edge_driver.c
t_e2e_edge_driver_CFLAGS = $(AM_CFLAGS) $(JSONC_CFLAGS)
t_e2e_edge_driver_LDADD = libegressauthority.la libegress.la $(JSONC_LIBS)
t_unit_test_egress_edge_SOURCES = %D%/unit/test_egress_edge.c %D%/unit/lines.h %D%/unit/scratch.h
t_unit_test_egress_edge_CFLAGS = $(AM_CFLAGS) $(CHECK_CFLAGS) $(JSONC_CFLAGS)
t_unit_test_egress_edge_LDADD = libegressauthority.la libegress.la $(CHECK_LIBS) $(JSONC_LIBS)
endif

# the launcher of boxes
if BOX
check_PROGRAMS += %D%/unit/test_box %D%/unit/test_box_group %D%/unit/test_box_rest %D%/unit/test_egress_told %D%/fuzz/replay_box %D%/fuzz/replay_ids %D%/fuzz/replay_oci %D%/unit/test_box_layer %D%/unit/test_box_oci
TESTS += %D%/attack/attack_box.py %D%/unit/test_box %D%/unit/test_box_group %D%/unit/test_box_rest %D%/unit/test_egress_told %D%/fuzz/replay_box %D%/fuzz/replay_ids %D%/fuzz/replay_oci %D%/e2e/test_box.py %D%/unit/test_box_layer %D%/unit/test_box_oci \
	%D%/e2e/test_box_kills.py %D%/e2e/test_box_server.py
EXTRA_PROGRAMS += %D%/fuzz/fuzz_box %D%/fuzz/fuzz_ids %D%/fuzz/fuzz_oci
if FUZZERS
noinst_PROGRAMS += %D%/fuzz/fuzz_box %D%/fuzz/fuzz_ids %D%/fuzz/fuzz_oci
endif
t_unit_test_box_SOURCES = %D%/unit/test_box.c
t_unit_test_box_CFLAGS = $(AM_CFLAGS) $(CHECK_CFLAGS)
t_unit_test_box_LDFLAGS = $(AM_LDFLAGS) -Wl,--wrap=access,--wrap=box_mount_copy,--wrap=box_mount_flags \
	-Wl,--wrap=box_mount_move,--wrap=box_mount_new,--wrap=hr_random_uuid,--wrap=open
t_unit_test_box_LDADD = libbox.la $(CHECK_LIBS)
t_unit_test_egress_told_SOURCES = %D%/unit/test_egress_told.c
t_unit_test_egress_told_CFLAGS = $(AM_CFLAGS) $(CHECK_CFLAGS)
t_unit_test_egress_told_LDADD = libegressbroker.la $(CHECK_LIBS)
t_unit_test_box_group_SOURCES = %D%/unit/test_box_group.c
t_unit_test_box_group_CFLAGS = $(AM_CFLAGS) $(CHECK_CFLAGS)
t_unit_test_box_group_LDADD = libbox.la $(CHECK_LIBS)
t_unit_test_box_rest_SOURCES = %D%/unit/test_box_rest.c %D%/unit/scratch.h
t_unit_test_box_rest_CFLAGS = $(AM_CFLAGS) $(CHECK_CFLAGS) -pthread
t_unit_test_box_rest_LDADD = libbox.la $(CHECK_LIBS)
t_unit_test_box_layer_SOURCES = %D%/unit/test_box_layer.c
t_unit_test_box_layer_CFLAGS = $(AM_CFLAGS) $(CHECK_CFLAGS)
t_unit_test_box_layer_LDADD = libbox.la $(CHECK_LIBS)
t_fuzz_replay_box_SOURCES = %D%/fuzz/fuzz_box.c %D%/fuzz/replay_main.c
t_fuzz_replay_box_LDADD = libbox.la
t_fuzz_fuzz_box_SOURCES = %D%/fuzz/fuzz_box.c
t_fuzz_fuzz_box_LDFLAGS = $(LIBFUZZER)
t_fuzz_fuzz_box_LDADD = libbox.la
t_fuzz_replay_ids_SOURCES = %D%/fuzz/fuzz_ids.c %D%/fuzz/replay_main.c
t_fuzz_replay_ids_LDADD = libbox.la
t_fuzz_fuzz_ids_SOURCES = %D%/fuzz/fuzz_ids.c
t_fuzz_fuzz_ids_LDFLAGS = $(LIBFUZZER)
t_fuzz_fuzz_ids_LDADD = libbox.la
fuzz_oci_parts = src/box/oci/import.c src/box/oci/oci.h src/box/oci/out.c src/box/oci/pack.c src/box/oci/unpack.c
t_unit_test_box_oci_SOURCES = %D%/unit/test_box_oci.c %D%/unit/lines.h %D%/unit/scratch.h $(fuzz_oci_parts)
t_unit_test_box_oci_CFLAGS = $(handrail_layer_CFLAGS) $(CHECK_CFLAGS)
t_unit_test_box_oci_LDFLAGS = $(AM_LDFLAGS) -Wl,--wrap=hr_fd_next_data
t_unit_test_box_oci_LDADD = $(handrail_layer_LDADD) $(CHECK_LIBS)
t_fuzz_replay_oci_SOURCES = %D%/fuzz/fuzz_oci.c %D%/fuzz/replay_main.c $(fuzz_oci_parts)
t_fuzz_replay_oci_CFLAGS = $(handrail_layer_CFLAGS)
t_fuzz_replay_oci_LDADD = $(handrail_layer_LDADD)
t_fuzz_fuzz_oci_SOURCES = %D%/fuzz/fuzz_oci.c $(fuzz_oci_parts)
t_fuzz_fuzz_oci_CFLAGS = $(handrail_layer_CFLAGS)
t_fuzz_fuzz_oci_LDFLAGS = $(LIBFUZZER)
t_fuzz_fuzz_oci_LDADD = $(handrail_layer_LDADD)
LONG_TESTS += %D%/e2e/test_host_box.py %D%/e2e/test_host_below.py %D%/e2e/test_host_btrfs.py %D%/e2e/test_host_fork.py %D%/e2e/test_host_layer.py %D%/e2e/test_host_snapshot.py %D%/e2e/test_box_url.py %D%/e2e/test_box_sh.py %D%/e2e/test_box_kills_long.py %D%/attack/attack_net.py %D%/attack/attack_shell.py %D%/e2e/test_box_tools.py %D%/e2e/test_egress.py %D%/e2e/test_egress_clients.py %D%/e2e/test_egress_docker.py %D%/e2e/test_egress_git.py %D%/e2e/test_mcp_fork.py %D%/e2e/test_host_stack.py %D%/e2e/test_box_shift.py
endif
EXTRA_DIST += %D%/attack/README %D%/attack/attack_box.py %D%/attack/attack_net.py %D%/e2e/lib/box.py %D%/e2e/lib/hostbox.py %D%/e2e/lib/seat.py %D%/e2e/test_box_sh.py %D%/e2e/test_box_url.py %D%/e2e/test_host_box.py %D%/e2e/test_host_below.py %D%/e2e/test_host_btrfs.py %D%/e2e/test_host_fork.py %D%/e2e/test_host_layer.py %D%/e2e/test_host_snapshot.py %D%/e2e/test_box.py %D%/fuzz/fuzz_box.c %D%/fuzz/seeds/box.txt %D%/fuzz/fuzz_ids.c %D%/fuzz/seeds/ids.txt %D%/fuzz/fuzz_oci.c %D%/fuzz/seeds/oci.txt %D%/e2e/test_box_server.py %D%/e2e/lib/boxed.py %D%/e2e/test_box_kills.py %D%/e2e/test_box_kills_long.py %D%/e2e/lib/killed_at.py %D%/attack/attack_shell.py %D%/e2e/test_box_tools.py %D%/e2e/test_egress.py %D%/e2e/test_egress_clients.py %D%/e2e/test_egress_docker.py %D%/e2e/test_egress_git.py %D%/e2e/test_mcp_fork.py %D%/e2e/test_host_stack.py %D%/e2e/test_box_shift.py

# the rules of a box's network, and what a box sends first
check_PROGRAMS += %D%/unit/test_egress_nomem %D%/unit/test_egress_policy %D%/unit/test_egress_wire %D%/unit/test_egress_within %D%/fuzz/replay_egress_policy %D%/fuzz/replay_egress_wire
TESTS += %D%/unit/test_egress_nomem %D%/unit/test_egress_policy %D%/unit/test_egress_wire %D%/unit/test_egress_within %D%/fuzz/replay_egress_policy %D%/fuzz/replay_egress_wire
EXTRA_PROGRAMS += %D%/fuzz/fuzz_egress_policy %D%/fuzz/fuzz_egress_wire
if FUZZERS
noinst_PROGRAMS += %D%/fuzz/fuzz_egress_policy %D%/fuzz/fuzz_egress_wire
endif
EXTRA_DIST += %D%/corpus/egress/README %D%/corpus/egress/decisions.jsonl %D%/fuzz/seeds/egress_policy.txt \
	%D%/fuzz/seeds/egress_wire.txt
t_unit_test_egress_nomem_SOURCES = %D%/unit/test_egress_nomem.c %D%/unit/fuse.h %D%/unit/lines.h
t_unit_test_egress_nomem_CFLAGS = $(AM_CFLAGS) $(CHECK_CFLAGS) $(JSONC_CFLAGS)
t_unit_test_egress_nomem_LDADD = libegress.la $(CHECK_LIBS)
t_unit_test_egress_nomem_LDFLAGS = $(AM_LDFLAGS) $(nomem_wraps)
t_unit_test_egress_policy_SOURCES = %D%/unit/test_egress_policy.c %D%/unit/lines.h %D%/unit/scratch.h
t_unit_test_egress_policy_CFLAGS = $(AM_CFLAGS) $(CHECK_CFLAGS) $(JSONC_CFLAGS)
t_unit_test_egress_policy_LDADD = libegress.la $(CHECK_LIBS)
t_unit_test_egress_wire_SOURCES = %D%/unit/test_egress_wire.c %D%/unit/lines.h
t_unit_test_egress_wire_CFLAGS = $(AM_CFLAGS) $(CHECK_CFLAGS)
t_unit_test_egress_wire_LDADD = libegress.la $(CHECK_LIBS)
t_unit_test_egress_within_SOURCES = %D%/unit/test_egress_within.c
t_unit_test_egress_within_CFLAGS = $(AM_CFLAGS) $(CHECK_CFLAGS) $(JSONC_CFLAGS)
t_unit_test_egress_within_LDADD = libegress.la $(CHECK_LIBS)
t_fuzz_replay_egress_policy_SOURCES = %D%/fuzz/fuzz_egress_policy.c %D%/fuzz/replay_main.c
t_fuzz_replay_egress_policy_CFLAGS = $(AM_CFLAGS) $(JSONC_CFLAGS)
t_fuzz_replay_egress_policy_LDADD = libegress.la
t_fuzz_fuzz_egress_policy_SOURCES = %D%/fuzz/fuzz_egress_policy.c
t_fuzz_fuzz_egress_policy_CFLAGS = $(AM_CFLAGS) $(JSONC_CFLAGS)
t_fuzz_fuzz_egress_policy_LDFLAGS = $(LIBFUZZER)
t_fuzz_fuzz_egress_policy_LDADD = libegress.la
t_fuzz_replay_egress_wire_SOURCES = %D%/fuzz/fuzz_egress_wire.c %D%/fuzz/replay_main.c
t_fuzz_replay_egress_wire_LDADD = libegress.la
t_fuzz_fuzz_egress_wire_SOURCES = %D%/fuzz/fuzz_egress_wire.c
t_fuzz_fuzz_egress_wire_LDFLAGS = $(LIBFUZZER)
t_fuzz_fuzz_egress_wire_LDADD = libegress.la

# host
check_PROGRAMS += %D%/unit/test_config %D%/unit/test_host %D%/host/branch %D%/host/program %D%/host/streamer
TESTS += %D%/unit/test_config %D%/unit/test_host
LONG_TESTS += %D%/e2e/test_host_cli.py %D%/e2e/test_host_command.py %D%/e2e/test_host_copies.py \
	%D%/e2e/test_host_git.py %D%/e2e/test_host_gitview.py %D%/e2e/test_host_live.py \
	%D%/e2e/test_host_microagents.py %D%/e2e/test_host_pool.py %D%/e2e/test_host_commit.py %D%/e2e/test_host_docker.py \
	%D%/e2e/test_host_hostile.py %D%/e2e/test_host_sent.py %D%/e2e/test_host_strays.py %D%/e2e/test_host_trust.py \
	%D%/e2e/test_quickstart.py %D%/e2e/test_quickstart_docker.py %D%/e2e/test_stranger.py
EXTRA_DIST += %D%/e2e/docker-engine %D%/e2e/lib/dockerhost.py %D%/e2e/lib/gitserver.py %D%/e2e/lib/host.py %D%/e2e/test_host_cli.py %D%/e2e/test_host_command.py \
	%D%/e2e/test_host_commit.py %D%/e2e/test_host_docker.py %D%/e2e/test_host_copies.py %D%/e2e/test_host_git.py %D%/e2e/test_host_gitview.py %D%/e2e/test_host_live.py %D%/e2e/test_host_local.py %D%/e2e/test_host_microagents.py %D%/e2e/test_host_pool.py %D%/e2e/test_host_remote.py \
	%D%/e2e/test_host_hostile.py %D%/e2e/test_host_sent.py %D%/e2e/test_host_strays.py %D%/e2e/test_host_trust.py %D%/e2e/test_quickstart.py %D%/e2e/test_quickstart_docker.py %D%/e2e/test_stranger.py
# the client of contrib/python; its harnesses by hand
LONG_TESTS += %D%/e2e/test_host_python.py
EXTRA_DIST += %D%/e2e/test_host_python.py %D%/e2e/harbor_check.py %D%/e2e/inspect_check.py \
	contrib/python/README contrib/python/pyproject.toml contrib/python/handrail_env/__init__.py \
	contrib/python/handrail_env/client.py contrib/python/handrail_env/harbor.py \
	contrib/python/handrail_env/inspect_sandbox.py contrib/python/handrail_env/openhands.py \
	%D%/e2e/openhands_app_server.py %D%/e2e/openhands_tools.py %D%/e2e/openhands_v1.py
t_unit_test_config_SOURCES = %D%/unit/test_config.c %D%/unit/lines.h
t_unit_test_config_CFLAGS = $(AM_CFLAGS) $(CHECK_CFLAGS) $(JSONC_CFLAGS)
t_unit_test_config_LDADD = $(HOST_PARTS) $(CHECK_LIBS) $(JSONC_LIBS)
t_unit_test_host_SOURCES = %D%/unit/test_host.c %D%/unit/lines.h %D%/unit/scratch.h
t_unit_test_host_CFLAGS = $(AM_CFLAGS) $(CHECK_CFLAGS) $(JSONC_CFLAGS)
t_unit_test_host_LDADD = $(HOST_PARTS) $(CHECK_LIBS) $(JSONC_LIBS)
check_PROGRAMS += %D%/unit/test_cp
TESTS += %D%/unit/test_cp
t_unit_test_cp_SOURCES = %D%/unit/test_cp.c %D%/unit/lines.h %D%/unit/scratch.h
t_unit_test_cp_CFLAGS = $(AM_CFLAGS) $(CHECK_CFLAGS) $(JSONC_CFLAGS)
t_unit_test_cp_LDADD = $(HOST_PARTS) $(CHECK_LIBS) $(JSONC_LIBS)
check_PROGRAMS += %D%/unit/test_rest
TESTS += %D%/unit/test_rest
t_unit_test_rest_SOURCES = %D%/unit/test_rest.c
t_unit_test_rest_CFLAGS = $(AM_CFLAGS) $(CHECK_CFLAGS) $(JSONC_CFLAGS)
t_unit_test_rest_LDADD = $(HOST_PARTS) $(CHECK_LIBS) $(JSONC_LIBS)
check_PROGRAMS += %D%/unit/test_docker
TESTS += %D%/unit/test_docker
t_unit_test_docker_SOURCES = %D%/unit/test_docker.c %D%/unit/lines.h %D%/unit/scratch.h %D%/fuzz/fake_http.c %D%/fuzz/fake_http.h
t_unit_test_docker_CFLAGS = $(AM_CFLAGS) $(CHECK_CFLAGS) $(JSONC_CFLAGS)
t_unit_test_docker_LDFLAGS = $(AM_LDFLAGS) -Wl,--wrap=hr_now_ms
t_unit_test_docker_LDADD = $(FUZZ_ANSWERED) $(CHECK_LIBS) $(JSONC_LIBS)
check_PROGRAMS += %D%/unit/test_secret
TESTS += %D%/unit/test_secret
t_unit_test_secret_SOURCES = %D%/unit/test_secret.c %D%/unit/lines.h
t_unit_test_secret_CFLAGS = $(AM_CFLAGS) $(CHECK_CFLAGS) $(JSONC_CFLAGS)
t_unit_test_secret_LDADD = $(HOST_PARTS) $(CHECK_LIBS) $(JSONC_LIBS)
check_PROGRAMS += %D%/unit/test_near
TESTS += %D%/unit/test_near
t_unit_test_near_SOURCES = %D%/unit/test_near.c
t_unit_test_near_CFLAGS = $(AM_CFLAGS) $(CHECK_CFLAGS)
t_unit_test_near_LDFLAGS = $(AM_LDFLAGS) -Wl,--wrap=hr_now_ms
t_unit_test_near_LDADD = libhttp.la libbase.la $(CHECK_LIBS) -lpthread
if KUBERNETES
check_PROGRAMS += %D%/unit/test_kube
TESTS += %D%/unit/test_kube
t_unit_test_kube_SOURCES = %D%/unit/test_kube.c %D%/unit/lines.h %D%/unit/scratch.h
t_unit_test_kube_CFLAGS = $(AM_CFLAGS) $(CHECK_CFLAGS) $(JSONC_CFLAGS)
t_unit_test_kube_LDFLAGS = $(AM_LDFLAGS) -Wl,--wrap=hr_rest_call
t_unit_test_kube_LDADD = $(KUBERNETES_TESTED) $(CHECK_LIBS) $(JSONC_LIBS)
check_PROGRAMS += %D%/unit/test_kubernetes
TESTS += %D%/unit/test_kubernetes
LONG_TESTS += %D%/e2e/test_host_kubernetes.py %D%/e2e/test_host_kubernetes_faults.py
t_unit_test_kubernetes_SOURCES = %D%/unit/test_kubernetes.c
t_unit_test_kubernetes_CFLAGS = $(AM_CFLAGS) $(CHECK_CFLAGS) $(JSONC_CFLAGS)
t_unit_test_kubernetes_LDADD = $(KUBERNETES_TESTED) $(CHECK_LIBS) $(JSONC_LIBS)
endif
EXTRA_DIST += %D%/unit/test_kube.c %D%/unit/test_kubernetes.c %D%/e2e/lib/apiserver.py %D%/e2e/test_host_kubernetes.py \
	%D%/e2e/test_host_kubernetes_api.py %D%/e2e/test_host_kubernetes_faults.py %D%/e2e/lib/cluster.py \
	%D%/e2e/kubernetes_openhands.py
# what documents show: the commands, the programs, the metrics
LONG_TESTS += %D%/e2e/test_documents.py %D%/e2e/test_examples.py %D%/e2e/test_monitoring.py
EXTRA_DIST += %D%/e2e/test_documents.py %D%/e2e/test_examples.py %D%/e2e/test_monitoring.py
check_PROGRAMS += doc/examples/run doc/examples/visit
doc_examples_run_SOURCES = doc/examples/run.c
doc_examples_run_CPPFLAGS = -I$(srcdir)/src/host -iquote $(srcdir)/src/base
doc_examples_run_CFLAGS = $(AM_CFLAGS) $(JSONC_CFLAGS)
doc_examples_run_LDADD = libhandrail.la $(JSONC_LIBS)
doc_examples_visit_SOURCES = doc/examples/visit.c
doc_examples_visit_CPPFLAGS = -I$(srcdir)/src/host -iquote $(srcdir)/src/base
doc_examples_visit_LDADD = libhandrail.la
# a program and a backend of somebody else's: the public headers, and the shared object as installed
t_host_branch_SOURCES = %D%/host/branch.c
t_host_branch_CPPFLAGS = -I$(srcdir)/src/host -iquote $(srcdir)/src/base
t_host_branch_LDADD = libhandrail.la
t_host_program_SOURCES = %D%/host/program.c
t_host_program_CPPFLAGS = -I$(srcdir)/src/host -iquote $(srcdir)/src/base
t_host_program_LDADD = libhandrail.la
t_host_streamer_SOURCES = %D%/host/streamer.c
t_host_streamer_CPPFLAGS = -I$(srcdir)/src/host -iquote $(srcdir)/src/base
t_host_streamer_LDADD = libhandrail.la
check_LTLIBRARIES += %D%/host/libhandrail-backend-example.la
t_host_libhandrail_backend_example_la_SOURCES = %D%/host/example_backend.c
t_host_libhandrail_backend_example_la_CPPFLAGS = -I$(srcdir)/src/host -iquote $(srcdir)/src/base
t_host_libhandrail_backend_example_la_LDFLAGS = $(AM_LDFLAGS) -module -avoid-version -shared \
	-rpath /nowhere
