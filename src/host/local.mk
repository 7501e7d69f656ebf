# libhandrail: the only library that is installed. Tests link libhost, which exports everything.
noinst_LTLIBRARIES += libhost.la
# a line for each module, so that additions do not meet
libhost_la_SOURCES = \
	%D%/life/action.c %D%/life/action.h \
	%D%/backends.c %D%/backends.h \
	%D%/box/box.c %D%/box/box_int.h %D%/box/branch.c %D%/box/branch.h %D%/box/copy.c %D%/box/copy.h %D%/box/crew.c %D%/box/crew.h %D%/box/doctor.c %D%/box/fork.c %D%/box/fork.h %D%/box/group.c \
	%D%/box/layers.c %D%/box/layers.h %D%/box/look.c %D%/box/look.h %D%/box/shells.c %D%/box/shells.h \
	%D%/../box/table.c %D%/box/make.c %D%/box/snapshot.c %D%/box/snapshot.h %D%/box/spec.c %D%/box/store.c %D%/box/store.h \
	%D%/sidecar/egress.c %D%/sidecar/egress.h %D%/sidecar/place.c %D%/sidecar/sidecar.c \
	%D%/sidecar/sidecar.h %D%/sidecar/tokens.c \
	%D%/client/client.c %D%/client/client.h \
	%D%/command.c %D%/command.h \
	%D%/doctor.c \
	%D%/life/end.c \
	%D%/records/events.c %D%/life/found.c \
	%D%/handle.h \
	%D%/kind.c %D%/kind.h \
	%D%/life/logstream.c %D%/life/logstream.h \
	%D%/mask.c %D%/mask.h \
	%D%/life/mcp.c \
	%D%/life/network.c \
	%D%/records/namelock.c %D%/records/namelock.h \
	%D%/life/pool.c %D%/life/pool.h \
	%D%/records/portlock.c %D%/records/portlock.h \
	%D%/records/record.c %D%/records/record.h \
	%D%/records/secret.c %D%/records/secret.h \
	%D%/report.c %D%/report.h \
	%D%/client/rest.c %D%/client/rest.h %D%/client/resttry.c %D%/client/restwait.c \
	%D%/life/sandbox.c \
	%D%/records/sessionid.c \
	%D%/life/setup.c %D%/life/setup.h \
	%D%/life/snapshot.c \
	%D%/life/tasks.c %D%/life/tasks.h \
	%D%/life/tokens.c %D%/life/tokens.h \
	%D%/life/urls.c %D%/life/urls.h \
	%D%/common/envquote.c %D%/common/envquote.h \
	%D%/common/exam.c %D%/common/exam.h \
	%D%/common/kindfile.c %D%/common/kindfile.h \
	%D%/common/lock.c %D%/common/lock.h \
	%D%/common/logfile.c %D%/common/logfile.h \
	%D%/common/module.c %D%/common/module.h \
	%D%/common/owner.c %D%/common/owner.h \
	%D%/common/payload.c %D%/common/payload.h \
	%D%/common/proc.c %D%/common/proc.h \
	%D%/common/ready.c %D%/common/ready.h \
	%D%/common/recordtext.c %D%/common/recordtext.h \
	%D%/common/statedir.c %D%/common/statedir.h \
	%D%/config/dotenv.c %D%/config/dotenv.h \
	%D%/config/finish.c \
	%D%/config/load.c \
	%D%/config/mcpconf.c %D%/config/mcpconf.h \
	%D%/config/own.c \
	%D%/config/rules.c %D%/config/rules.h \
	%D%/config/schema.c %D%/config/schema.h \
	%D%/config/settings.c %D%/config/settings.h \
	%D%/config/size.c %D%/config/size.h \
	%D%/config/toml.c %D%/config/toml.h \
	%D%/config/toml_int.h \
	%D%/config/tomlvalue.c \
	%D%/config/volumes.c %D%/config/volumes.h \
	%D%/docker/build.c \
	%D%/docker/commit.c \
	%D%/docker/progress.c %D%/docker/progress.h \
	%D%/docker/docker.c \
	%D%/docker/docker_int.h \
	%D%/docker/engine.c %D%/docker/engine.h \
	%D%/docker/found.c \
	%D%/docker/images.c \
	%D%/docker/inside.c \
	%D%/docker/look.c \
	%D%/docker/make.c \
	%D%/docker/preflight.c \
	%D%/docker/pull.c \
	%D%/docker/rules.c \
	%D%/docker/snapshots.h \
	%D%/docker/spec.c %D%/docker/spec.h \
	%D%/git/clone.c \
	%D%/git/gitrepo.c %D%/git/gitrepo.h \
	%D%/git/gitview.c \
	%D%/git/microagents.c \
	%D%/git/repo.c \
	%D%/local/local.c \
	%D%/local/local_int.h \
	%D%/local/make.c \
	%D%/local/person.c \
	%D%/remote/api.c %D%/remote/build.c %D%/remote/remote.c %D%/remote/remote_int.h \
	%D%/transfer/archives.c %D%/transfer/archives.h \
	%D%/transfer/cp.c %D%/transfer/cp.h \
	%D%/transfer/list.c %D%/transfer/list.h \
	%D%/transfer/tarfile.h \
	%D%/transfer/transfer.c %D%/transfer/transfer.h \
	%D%/transfer/tree.c %D%/transfer/tree.h %D%/transfer/what.h \
	%D%/transfer/zip.h \
	$(EGRESS_SOURCES)
libhost_la_CPPFLAGS = $(AM_CPPFLAGS) -DHR_SBINDIR='"$(sbindir)"' -DHR_BACKENDDIR='"$(pkglibdir)/backends"' -DHR_PAYLOADDIR='"$(pkglibdir)/payload"' \
	-DHR_IMAGE_KIT='"$(pkgdatadir)/image"' -DHR_LIBEXECDIR='"$(pkglibexecdir)"' \
	-DHR_RUNSTATEDIR='"$(runstatedir)"' -DHR_PKGDATADIR='"$(pkgdatadir)"'
libhost_la_CFLAGS = $(AM_CFLAGS) $(JSONC_CFLAGS)
libhost_la_LIBADD = $(JSONC_LIBS) $(DL_LIBS)
# with all that it is made of: a library of libraries would be linked twice
HOST_PARTS = libhost.la libimagekit.la libhttp.la libshell.la libprotojson.la libbase.la

# what needs libarchive: a module, for the few commands that need it
modules_LTLIBRARIES += handrail-archives.la
handrail_archives_la_SOURCES = \
	%D%/transfer/archives.h %D%/transfer/arcput.c %D%/transfer/arczip.c
handrail_archives_la_CFLAGS = $(AM_CFLAGS) $(ARCHIVE_CFLAGS) $(JSONC_CFLAGS)
handrail_archives_la_LDFLAGS = $(module_flags) '^hr_archives_module$$'
handrail_archives_la_LIBADD = libarchives.la libplace.la
# where programs that run from the build tree look for it
noinst_DATA += handrail-archives.so
handrail-archives.so: handrail-archives.la
	$(AM_V_GEN)$(copy_module)
CLEANFILES += handrail-archives.so

# the kind "cli": a module, because of the editor and what it needs
modules_LTLIBRARIES += handrail-cli.la
handrail_cli_la_SOURCES = \
	%D%/transfer/archives.c %D%/transfer/archives.h \
	%D%/direct/direct.c %D%/direct/direct_int.h %D%/direct/copy.c %D%/direct/file.c %D%/direct/path.c %D%/direct/run.c %D%/direct/said.c \
	%D%/common/exam.c %D%/common/kindfile.c %D%/common/module.c %D%/common/recordtext.c \
	%D%/config/mcpconf.c %D%/config/schema.c %D%/config/settings.c
handrail_cli_la_CPPFLAGS = $(AM_CPPFLAGS) -DHR_BACKENDDIR='"$(pkglibdir)/backends"' -DHR_LIBEXECDIR='"$(pkglibexecdir)"'
handrail_cli_la_CFLAGS = $(AM_CFLAGS) $(JSONC_CFLAGS)
# Only what is used of these: libtool would put all of each in, and what several hold more than once.
CLI_PARTS = libdetectload.la libfiles.la libshell.la
CLI_LIBS = $(JSONC_LIBS) $(UTF8PROC_LIBS) $(DL_LIBS) -lm
handrail_cli_la_LDFLAGS = $(module_flags) '^hr_backend_entry$$' \
	$(CLI_PARTS:%.la=-Wl,.libs/%.a) $(CLI_LIBS:%=-Wl,%)
handrail_cli_la_LIBADD =
EXTRA_handrail_cli_la_DEPENDENCIES = $(CLI_PARTS)
noinst_DATA += handrail-cli.so
handrail-cli.so: handrail-cli.la
	$(AM_V_GEN)$(copy_module)
CLEANFILES += handrail-cli.so

# the kinds that providers run: a module, because of the editor as well; tests link libclouds
noinst_LTLIBRARIES += libclouds.la
libclouds_la_SOURCES = \
	%D%/cloud/actions.c %D%/cloud/actions_int.h %D%/cloud/api.c %D%/cloud/api.h %D%/cloud/cloud.c %D%/cloud/cloud.h \
	%D%/cloud/copies.c %D%/cloud/help.c %D%/cloud/serve.c %D%/cloud/shared.c \
	%D%/direct/direct_int.h %D%/direct/file.c %D%/direct/path.c %D%/direct/said.c \
	%D%/e2b/api.c %D%/e2b/code.c %D%/e2b/e2b.h %D%/e2b/envd.c %D%/e2b/files.c %D%/e2b/kind.c \
	%D%/daytona/daytona.c %D%/runloop/exec.c %D%/runloop/runloop.c %D%/runloop/runloop.h \
	%D%/modal/api.c %D%/modal/grpc.c %D%/modal/grpc.h %D%/modal/image.c %D%/modal/kind.c %D%/modal/life.c %D%/modal/modal.h \
	%D%/modal/pb.c %D%/modal/pb.h %D%/modal/task.c \
	%D%/program/answer.c %D%/program/answer.h %D%/program/child.c %D%/program/child.h \
	%D%/program/program.c %D%/program/program.h %D%/program/program_int.h %D%/program/use.c
nodist_libclouds_la_SOURCES = %D%/modal/modal.pb-c.c %D%/modal/modal.pb-c.h
libclouds_la_CPPFLAGS = $(AM_CPPFLAGS) -I$(top_builddir)/src $(PROTOBUFC_CFLAGS)
libclouds_la_CFLAGS = $(AM_CFLAGS) $(JSONC_CFLAGS)
libclouds_la_LIBADD = libconnect.la
modules_LTLIBRARIES += handrail-clouds.la
handrail_clouds_la_SOURCES = \
	%D%/command.c %D%/common/exam.c %D%/common/kindfile.c %D%/common/module.c %D%/common/owner.c %D%/common/payload.c \
	%D%/config/mcpconf.c %D%/config/schema.c %D%/config/settings.c %D%/client/rest.c %D%/client/resttry.c %D%/client/restwait.c \
	%D%/transfer/archives.c
handrail_clouds_la_CPPFLAGS = $(AM_CPPFLAGS) -DHR_BACKENDDIR='"$(pkglibdir)/backends"' -DHR_LIBEXECDIR='"$(pkglibexecdir)"' -DHR_PAYLOADDIR='"$(pkglibdir)/payload"'
handrail_clouds_la_CFLAGS = $(AM_CFLAGS) $(JSONC_CFLAGS)
CLOUD_PARTS = $(CLI_PARTS) libhttp.la
handrail_clouds_la_LDFLAGS = $(module_flags) '^hr_[a-z0-9]*_entry$$' \
	$(CLOUD_PARTS:%.la=-Wl,.libs/%.a) $(CLI_LIBS:%=-Wl,%) $(PROTOBUFC_LIBS:%=-Wl,%)
handrail_clouds_la_LIBADD = libclouds.la
EXTRA_handrail_clouds_la_DEPENDENCIES = $(CLOUD_PARTS)
# Modal's messages, of our own definition
EXTRA_DIST += %D%/modal/modal.proto
BUILT_SOURCES += %D%/modal/modal.pb-c.h
CLEANFILES += %D%/modal/modal.pb-c.c %D%/modal/modal.pb-c.h
%D%/modal/modal.pb-c.c: %D%/modal/modal.proto
	$(AM_V_GEN)$(MKDIR_P) %D%/modal && $(PROTOC_C) -I$(srcdir)/%D%/modal --c_out=%D%/modal $(srcdir)/%D%/modal/modal.proto
%D%/modal/modal.pb-c.h: %D%/modal/modal.pb-c.c
noinst_DATA += handrail-clouds.so
handrail-clouds.so: handrail-clouds.la
	$(AM_V_GEN)$(copy_module)
CLEANFILES += handrail-clouds.so

# the kind "kubernetes": a module, because of libyaml
if KUBERNETES
noinst_LTLIBRARIES += libkubernetes.la
libkubernetes_la_SOURCES = \
	%D%/kubernetes/agents.c %D%/kubernetes/agents.h \
	%D%/kubernetes/exec.c \
	%D%/kubernetes/execcred.c %D%/kubernetes/execcred.h \
	%D%/kubernetes/forward.c %D%/kubernetes/forward.h \
	%D%/kubernetes/kube.c %D%/kubernetes/kube.h \
	%D%/kubernetes/kubernetes_int.h \
	%D%/kubernetes/login.c %D%/kubernetes/login.h \
	%D%/kubernetes/look.c \
	%D%/kubernetes/make.c \
	%D%/kubernetes/pause.c \
	%D%/kubernetes/quantity.c %D%/kubernetes/quantity.h \
	%D%/kubernetes/reach.c \
	%D%/kubernetes/rules.c %D%/kubernetes/rules.h \
	%D%/kubernetes/spec.c \
	%D%/kubernetes/status.c %D%/kubernetes/status.h \
	%D%/kubernetes/wait.c \
	%D%/kubernetes/why.c %D%/kubernetes/why.h \
	%D%/kubernetes/yaml.c %D%/kubernetes/yaml.h
libkubernetes_la_CFLAGS = $(AM_CFLAGS) $(JSONC_CFLAGS) $(YAML_CFLAGS)
KUBERNETES_TESTED = libkubernetes.la libws.la $(HOST_PARTS) $(YAML_LIBS) $(MD_LIBS)
modules_LTLIBRARIES += handrail-kubernetes.la
handrail_kubernetes_la_SOURCES = %D%/kubernetes/kubernetes.c
handrail_kubernetes_la_CFLAGS = $(AM_CFLAGS) $(JSONC_CFLAGS)
KUBERNETES_PARTS = libkubernetes.la libhost.la libws.la libhttp.la libshell.la libprotojson.la libbase.la
KUBERNETES_LIBS = $(JSONC_LIBS) $(YAML_LIBS) $(MD_LIBS) $(DL_LIBS) -lm
handrail_kubernetes_la_LDFLAGS = $(module_flags) '^hr_backend_entry$$' \
	$(KUBERNETES_PARTS:%.la=-Wl,.libs/%.a) $(KUBERNETES_LIBS:%=-Wl,%)
handrail_kubernetes_la_LIBADD =
EXTRA_handrail_kubernetes_la_DEPENDENCIES = $(KUBERNETES_PARTS)
noinst_DATA += handrail-kubernetes.so
handrail-kubernetes.so: handrail-kubernetes.la
	$(AM_V_GEN)$(copy_module)
CLEANFILES += handrail-kubernetes.so
endif

include_HEADERS = %D%/handrail.h %D%/handrail-backend.h src/base/handrail-error.h
lib_LTLIBRARIES = libhandrail.la
libhandrail_la_SOURCES =
libhandrail_la_LIBADD = $(HOST_PARTS)
libhandrail_la_LDFLAGS = $(AM_LDFLAGS) -version-info 1:0:0 -no-undefined \
	-Wl,--version-script=$(srcdir)/%D%/libhandrail.map
EXTRA_libhandrail_la_DEPENDENCIES = %D%/libhandrail.map
pkgconfigdir = $(libdir)/pkgconfig
nodist_pkgconfig_DATA = %D%/handrail.pc
%D%/handrail.pc: %D%/handrail.pc.in Makefile
	$(AM_V_GEN)$(MKDIR_P) %D% && $(SED) -e 's|[@]prefix[@]|$(prefix)|g' -e 's|[@]libdir[@]|$(libdir)|g' \
		-e 's|[@]includedir[@]|$(includedir)|g' -e 's|[@]VERSION[@]|$(VERSION)|g' \
		-e 's|[@]pkglibdir[@]|$(pkglibdir)|g' $(srcdir)/%D%/handrail.pc.in >$@
CLEANFILES += %D%/handrail.pc
EXTRA_DIST += %D%/libhandrail.map %D%/handrail.pc.in
