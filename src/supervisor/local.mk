# libsupervisor: everything but main(), so that unit tests can link it.
noinst_LTLIBRARIES += libsupervisor.la
libsupervisor_la_SOURCES = \
	%D%/adopt.c %D%/adopt.h \
	%D%/alert.c %D%/alert.h \
	%D%/channel.c %D%/channel.h \
	%D%/child.c %D%/child.h \
	%D%/childenv.c %D%/childenv.h \
	%D%/handover.c %D%/handover.h \
	%D%/identity.c %D%/identity.h \
	%D%/image.c %D%/image.h \
	%D%/keeperargs.c %D%/keeperargs.h \
	%D%/keys.c %D%/keys.h \
	%D%/lifecycle.c \
	%D%/listen.c %D%/listen.h \
	%D%/cgroup.c %D%/cgroup.h \
	%D%/edge.c %D%/edge.h %D%/edgekey.c %D%/edgekey.h %D%/hold.c %D%/hold.h \
	%D%/manifest.c %D%/manifest.h \
	%D%/monitor.c %D%/monitor.h \
	%D%/nginx.c %D%/nginx.h %D%/nginxline.c %D%/nginxline.h \
	%D%/nginxover.c \
	%D%/notify.c %D%/notify.h \
	%D%/oldnginx.c %D%/oldnginx.h \
	%D%/oldplugins.c %D%/oldplugins.h \
	%D%/options.c %D%/options.h \
	%D%/plugin.c %D%/plugin.h \
	%D%/pluginproc.c %D%/pluginproc.h \
	%D%/plugins.c %D%/plugins.h \
	%D%/pool.c %D%/pool.h %D%/poolover.c \
	%D%/probe.c %D%/probe.h \
	%D%/ready.c %D%/ready.h \
	%D%/readyline.c %D%/readyline.h \
	%D%/reexec.c %D%/reexec.h \
	%D%/reload.c \
	%D%/rundir.c %D%/rundir.h \
	%D%/server.h \
	%D%/session.c %D%/session.h \
	%D%/sessions.c %D%/sessions.h \
	%D%/settings.c %D%/settings.h %D%/settings_check.c %D%/settings_environment.c \
	%D%/start.c \
	%D%/statics.c %D%/statics.h \
	%D%/template.c %D%/template.h \
	%D%/token.c %D%/token.h \
	%D%/usage.c %D%/usage.h \
	%D%/viewer.c %D%/viewer.h
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
