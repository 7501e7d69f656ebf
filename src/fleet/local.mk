# handrail-fleetd: sandboxes as a service
sbin_PROGRAMS += handrail-fleetd
noinst_LTLIBRARIES += libfleet.la
libfleet_la_SOURCES = \
	%D%/alerts.c \
	%D%/api/api.c %D%/api/api.h %D%/api/api_int.h \
	%D%/ask.c \
	%D%/backing.c \
	%D%/build/build.c %D%/build/build.h %D%/build/build_int.h \
	%D%/build/buildform.c %D%/build/buildform.h \
	%D%/build/buildname.c \
	%D%/build/buildrecord.c \
	%D%/api/calls.c %D%/api/copies.c %D%/api/list.c %D%/turns.c \
	%D%/clock.c %D%/copies.c %D%/copies.h \
	%D%/api/console.c \
	%D%/e2b/begin.c %D%/e2b/control.c %D%/e2b/copies.c %D%/e2b/create.c %D%/e2b/e2b.h \
	%D%/e2b/edge.c %D%/e2b/list.c %D%/e2b/object.c %D%/e2b/sandbox.c \
	%D%/e2b/template.c %D%/e2b/text.c \
	%D%/doctor.c %D%/doctor.h \
	%D%/edge.c %D%/edge.h \
	%D%/engine.h \
	%D%/api/events.c \
	%D%/fleet.c %D%/fleet.h %D%/fleet_int.h %D%/jobs.c \
	%D%/helper.c %D%/helper.h \
	%D%/history.c \
	%D%/local/local.c %D%/local/local_int.h \
	%D%/local/localconfig.c \
	%D%/local/localcopies.c \
	%D%/local/localimage.c \
	%D%/local/locallog.c \
	%D%/local/localrules.c \
	%D%/local/localstray.c \
	%D%/local/localwork.c %D%/local/localwork.h \
	%D%/network.c %D%/network.h \
	%D%/api/network.c \
	%D%/api/object.c \
	%D%/api/operator.c \
	%D%/pool.c \
	%D%/recover.c \
	%D%/request.c %D%/request.h \
	%D%/api/route.c \
	%D%/store/sqlite.c %D%/store/sqlite.h %D%/store/sqlite_int.h \
	%D%/store/sqlite_rows.c \
	%D%/store/store.c %D%/store/store.h \
	%D%/times.c \
	%D%/visits.c %D%/visits.h
libfleet_la_CFLAGS = $(AM_CFLAGS) $(JSONC_CFLAGS) $(SQLITE_CFLAGS) $(CRYPTO_CFLAGS)
libfleet_la_LIBADD = libsigninweb.la libfiles.la $(SQLITE_LIBS) $(CRYPTO_LIBS) $(JSONC_LIBS)
handrail_fleetd_SOURCES = %D%/main.c %D%/options.c %D%/options.h %D%/serve.c %D%/serve.h %D%/upgrade.c %D%/upgrade.h
handrail_fleetd_CPPFLAGS = $(AM_CPPFLAGS) -DHR_DATADIR='"$(pkgdatadir)"'
handrail_fleetd_CFLAGS = $(AM_CFLAGS) $(FCGI_CFLAGS) $(JSONC_CFLAGS)
handrail_fleetd_LDADD = libfleet.la $(HOST_PARTS) $(FCGI_LIBS)

# the engine "kubernetes"
if KUBERNETES
libfleet_la_SOURCES += \
	%D%/kubernetes/cache.c %D%/kubernetes/cache.h \
	%D%/kubernetes/engine.c \
	%D%/kubernetes/events.c \
	%D%/kubernetes/far.c \
	%D%/kubernetes/objects.c %D%/kubernetes/objects.h \
	%D%/kubernetes/reserve.c \
	%D%/kubernetes/rows.c \
	%D%/kubernetes/store.c %D%/kubernetes/store.h %D%/kubernetes/store_int.h \
	%D%/kubernetes/uses.c
libfleet_la_LIBADD += libkubernetes.la libws.la $(YAML_LIBS) $(MD_LIBS)
endif
