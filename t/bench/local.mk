# The benchmarks: built by `make bench`, never by `make check`.
BENCH_TOOLS = %D%/bench_box %D%/bench_load %D%/bench_pty %D%/bench_start %D%/bench_fcgi %D%/bench_files \
	%D%/bench_fleetd %D%/bench_frame %D%/bench_journal
EXTRA_PROGRAMS += $(BENCH_TOOLS)
CLEANFILES += $(BENCH_TOOLS)

if JUPYTER
BENCH_TOOLS += %D%/bench_jupyter
endif
t_bench_bench_jupyter_SOURCES = %D%/bench_jupyter.c
t_bench_bench_jupyter_CFLAGS = $(AM_CFLAGS) $(JSONC_CFLAGS) $(ZMQ_CFLAGS)
t_bench_bench_jupyter_LDADD = libjupyter.la $(ZMQ_LIBS)
t_bench_bench_box_SOURCES = %D%/bench_box.c
t_bench_bench_load_SOURCES = %D%/bench_load.c %D%/http.c %D%/http.h %D%/lat.c %D%/lat.h
t_bench_bench_pty_SOURCES = %D%/bench_pty.c %D%/lat.c %D%/lat.h
t_bench_bench_pty_LDADD = -lutil
t_bench_bench_start_SOURCES = %D%/bench_start.c %D%/http.c %D%/http.h %D%/lat.c %D%/lat.h
t_bench_bench_fcgi_SOURCES = %D%/bench_fcgi.c
t_bench_bench_fcgi_CFLAGS = $(AM_CFLAGS) $(FCGI_CFLAGS)
t_bench_bench_fcgi_LDADD = $(FCGI_LIBS)
t_bench_bench_files_SOURCES = %D%/bench_files.c %D%/lat.c %D%/lat.h
t_bench_bench_files_CFLAGS = $(AM_CFLAGS) $(JSONC_CFLAGS)
t_bench_bench_files_LDADD = libfiles.la libdetect.la
# the service with an engine of its own, in place of src/fleet/backing.c
t_bench_bench_fleetd_SOURCES = %D%/bench_fleetd.c $(handrail_fleetd_SOURCES)
t_bench_bench_fleetd_CPPFLAGS = $(handrail_fleetd_CPPFLAGS)
t_bench_bench_fleetd_CFLAGS = $(handrail_fleetd_CFLAGS)
t_bench_bench_fleetd_LDADD = $(handrail_fleetd_LDADD)
t_bench_bench_frame_SOURCES = %D%/bench_frame.c %D%/lat.c %D%/lat.h
t_bench_bench_frame_LDADD = libproto.la libbase.la
t_bench_bench_journal_SOURCES = %D%/bench_journal.c
t_bench_bench_journal_LDADD = libproto.la libbase.la

EXTRA_DIST += %D%/README %D%/actions.py %D%/browser.py %D%/doors.py %D%/cluster %D%/e2b %D%/edge %D%/egress %D%/fleet %D%/host %D%/plot.py %D%/run doc/record.py %D%/lib/__init__.py %D%/lib/box.py %D%/lib/cells.py %D%/lib/costs.py \
	%D%/lib/e2b.py %D%/lib/egress.py %D%/lib/files.py %D%/lib/fork.py %D%/lib/latency.py %D%/lib/procs.py \
	%D%/lib/report.py %D%/lib/servers.py %D%/lib/standing.py %D%/lib/syscalls.py %D%/lib/tools.py \
	%D%/lib/transfer.py %D%/lib/volume.py

# make bench BENCH_ARGS='--quick --json result.jsonl'
.PHONY: bench bench-tools
bench-tools: $(BENCH_TOOLS)
bench: all bench-tools
	$(PYTHON3) $(srcdir)/%D%/run --build $(abs_top_builddir) $(BENCH_ARGS)
