# libhandrail: the only library that is installed. Tests link libhost, which exports everything.
noinst_LTLIBRARIES += libhost.la
libhost_la_SOURCES = \
	%D%/action.c %D%/archives.c %D%/archives.h %D%/backends.c %D%/build.c \
	%D%/client.c %D%/client.h \
	%D%/clone.c \
	%D%/command.c %D%/command.h \
	%D%/docker.c %D%/docker_int.h %D%/dockermake.c %D%/dockerspec.c %D%/dockerspec.h \
	%D%/doctor.c \
	%D%/dotenv.c %D%/dotenv.h \
	%D%/engine.c %D%/engine.h \
	%D%/envquote.c %D%/envquote.h \
	%D%/error.c %D%/error.h \
	%D%/events.c \
	%D%/finish.c %D%/gitrepo.c %D%/gitrepo.h %D%/gitview.c %D%/images.c %D%/load.c %D%/local.c %D%/local_int.h %D%/localmake.c \
	%D%/logfile.c %D%/logfile.h \
	%D%/logstream.c %D%/logstream.h \
	%D%/mcp.c %D%/mcpconf.c %D%/mcpconf.h \
	%D%/microagents.c \
	%D%/module.c %D%/module.h \
	%D%/namelock.c %D%/namelock.h \
	%D%/pool.c %D%/pool.h \
	%D%/portlock.c %D%/portlock.h \
	%D%/proc.c %D%/proc.h \
	%D%/record.c %D%/repo.c %D%/sandbox.c %D%/sandbox.h \
	%D%/schema.c %D%/schema.h \
	%D%/sessionid.c \
	%D%/settings.c %D%/settings.h \
	%D%/setup.c \
	%D%/strv.c %D%/strv.h \
	%D%/tarfile.h \
	%D%/tasks.c %D%/tasks.h \
	%D%/tokens.c %D%/tokens.h \
	%D%/toml.c %D%/toml.h %D%/toml_int.h %D%/tomlvalue.c \
	%D%/transfer.c \
	%D%/urls.c \
	%D%/volumes.c %D%/volumes.h \
	%D%/zip.h
libhost_la_CPPFLAGS = $(AM_CPPFLAGS) -DHR_SBINDIR='"$(sbindir)"' -DHR_BACKENDDIR='"$(pkglibdir)/backends"' \
	-DHR_IMAGE_KIT='"$(pkgdatadir)/image"' -DHR_LIBEXECDIR='"$(pkglibexecdir)"'
libhost_la_CFLAGS = $(AM_CFLAGS) $(JSONC_CFLAGS)
libhost_la_LIBADD = $(JSONC_LIBS) $(DL_LIBS)
# with all that it is made of: a library of libraries would be linked twice
HOST_PARTS = libhost.la libimagekit.la libhttp.la libshell.la libprotojson.la libbase.la

# what needs libarchive: a module, for the few commands that need it
modules_LTLIBRARIES += handrail-archives.la
handrail_archives_la_SOURCES = %D%/archives.h %D%/arcput.c %D%/arctar.c %D%/arczip.c %D%/error.c
handrail_archives_la_CFLAGS = $(AM_CFLAGS) $(ARCHIVE_CFLAGS)
handrail_archives_la_LDFLAGS = $(module_flags) '^hr_archives_module$$'
handrail_archives_la_LIBADD = libbase.la $(ARCHIVE_LIBS)
# where programs that run from the build tree look for it
noinst_DATA += handrail-archives.so
handrail-archives.so: handrail-archives.la
	$(AM_V_GEN)cp -f .libs/handrail-archives.so $@
CLEANFILES += handrail-archives.so

# the kind "cli": a module, because of the editor and what it needs
modules_LTLIBRARIES += handrail-cli.la
handrail_cli_la_SOURCES = \
	%D%/archives.c %D%/archives.h \
	%D%/cli.c %D%/cli_int.h %D%/clicopy.c %D%/clifile.c %D%/clipath.c %D%/clirun.c \
	%D%/error.c %D%/mcpconf.c %D%/module.c %D%/schema.c %D%/settings.c %D%/strv.c
handrail_cli_la_CPPFLAGS = $(AM_CPPFLAGS) -DHR_LIBEXECDIR='"$(pkglibexecdir)"'
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
	$(AM_V_GEN)cp -f .libs/handrail-cli.so $@
CLEANFILES += handrail-cli.so

include_HEADERS = %D%/handrail.h %D%/handrail-backend.h
lib_LTLIBRARIES = libhandrail.la
libhandrail_la_SOURCES =
libhandrail_la_LIBADD = $(HOST_PARTS)
libhandrail_la_LDFLAGS = $(AM_LDFLAGS) -version-info 0:0:0 -no-undefined \
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
