# libsupervisor: everything but main(), so that unit tests can link it.
noinst_LTLIBRARIES += libsupervisor.la
libsupervisor_la_SOURCES = \
	%D%/lifecycle.c \
	%D%/ready.c %D%/ready.h \
	%D%/reexec.c \
	%D%/reload.c \
	%D%/requests.c \
	%D%/server.h \
	%D%/start.c \
	%D%/run/cgroup.c %D%/run/cgroup.h \
	%D%/run/context.h \
	%D%/run/edgekey.c %D%/run/edgekey.h \
	%D%/run/guard.c %D%/run/guard.h \
	%D%/run/identity.c %D%/run/identity.h \
	%D%/run/journaldir.c %D%/run/journaldir.h \
	%D%/run/keys.c %D%/run/keys.h \
	%D%/run/newaccount.c %D%/run/newaccount.h \
	%D%/run/rundir.c %D%/run/rundir.h \
	%D%/run/token.c %D%/run/token.h \
	%D%/settings/options.c %D%/settings/options.h \
	%D%/settings/settings.c %D%/settings/settings.h \
	%D%/settings/settings_check.c \
	%D%/settings/settings_environment.c \
	%D%/settings/origins.c %D%/settings/origins.h \
	%D%/children/adopt.c %D%/children/adopt.h \
	%D%/children/channel.c %D%/children/channel.h \
	%D%/children/child.c %D%/children/child.h \
	%D%/children/childenv.c %D%/children/childenv.h \
	%D%/children/keeperargs.c %D%/children/keeperargs.h \
	%D%/children/manifest.c %D%/children/manifest.h \
	%D%/children/oldplugins.c %D%/children/oldplugins.h \
	%D%/children/plugin.c %D%/children/plugin.h \
	%D%/children/pluginproc.c %D%/children/pluginproc.h \
	%D%/children/plugins.c %D%/children/plugins.h \
	%D%/children/pool.c %D%/children/pool.h %D%/children/pool_int.h \
	%D%/children/poolover.c \
	%D%/children/poolworker.c \
	%D%/children/readyline.c %D%/children/readyline.h \
	%D%/children/service.c %D%/children/service.h \
	%D%/children/session.c %D%/children/session.h \
	%D%/children/sessions.c %D%/children/sessions.h \
	%D%/children/static_sessions.c %D%/children/static_sessions.h \
	%D%/children/workerproc.c \
	%D%/edge/edge.c %D%/edge/edge.h \
	%D%/edge/barrier.c %D%/edge/barrier.h \
	%D%/edge/listen.c %D%/edge/listen.h \
	%D%/edge/nginx.c %D%/edge/nginx.h \
	%D%/edge/nginxconf.c %D%/edge/nginxconf.h \
	%D%/edge/nginxline.c %D%/edge/nginxline.h \
	%D%/edge/nginxover.c \
	%D%/edge/nginxplugins.c %D%/edge/nginxplugins.h \
	%D%/edge/probe.c %D%/edge/probe.h \
	%D%/edge/viewer.c %D%/edge/viewer.h \
	%D%/resources/alert.c %D%/resources/alert.h \
	%D%/resources/monitor.c %D%/resources/monitor.h \
	%D%/resources/usage.c %D%/resources/usage.h
libsupervisor_la_CPPFLAGS = $(AM_CPPFLAGS) \
	-DHR_SYSCONFDIR='"$(sysconfdir)"' \
	-DHR_PKGLIBEXECDIR='"$(pkglibexecdir)"' \
	-DHR_PKGDATADIR='"$(pkgdatadir)"' \
	-DHR_RUNSTATEDIR='"$(runstatedir)"'
libsupervisor_la_CFLAGS = $(AM_CFLAGS) $(JSONC_CFLAGS) $(MD_CFLAGS)
libsupervisor_la_LIBADD = libkeysum.la libproto.la libloop.la libbase.la $(JSONC_LIBS) $(MD_LIBS)

sbin_PROGRAMS += handraild
handraild_SOURCES = %D%/main.c
handraild_LDADD = libsupervisor.la
