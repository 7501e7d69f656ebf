# The programs of the manifests in conf/plugins. configure checks the requirements of each one, and the
# others are built without them.
if JUPYTER
# everything but main(), so that tests can link it
noinst_LTLIBRARIES += libjupyter.la
libjupyter_la_SOURCES = \
	%D%/jupyter/answer.c %D%/jupyter/answer.h \
	%D%/jupyter/ask.c %D%/jupyter/ask.h \
	%D%/jupyter/cell.c %D%/jupyter/cell.h \
	%D%/jupyter/code.c %D%/jupyter/code.h \
	%D%/jupyter/context.c %D%/jupyter/context.h \
	%D%/jupyter/firstcell.c %D%/jupyter/firstcell.h \
	%D%/jupyter/jupyter.c %D%/jupyter/jupyter.h \
	%D%/jupyter/kernel.c %D%/jupyter/kernel.h \
	%D%/jupyter/line.c %D%/jupyter/line.h \
	%D%/jupyter/recent.c %D%/jupyter/recent.h \
	%D%/jupyter/serve.c %D%/jupyter/serve.h \
	%D%/jupyter/spec.c %D%/jupyter/spec.h \
	%D%/jupyter/wire.c %D%/jupyter/wire.h
libjupyter_la_CFLAGS = $(AM_CFLAGS) $(JSONC_CFLAGS) $(ZMQ_CFLAGS) $(MACS_CFLAGS)
libjupyter_la_LIBADD = libe2b.la libserve.la libprotojson.la libproto.la libloop.la libbase.la $(ZMQ_LIBS) $(MACS_LIBS)

pkglibexec_PROGRAMS += handrail-jupyter
handrail_jupyter_SOURCES = %D%/jupyter/main.c
handrail_jupyter_CFLAGS = $(AM_CFLAGS) $(JSONC_CFLAGS)
handrail_jupyter_LDADD = libjupyter.la
endif

if BROWSER
# the parts of the browser plugin that use no browser
noinst_LTLIBRARIES += libbrowserpage.la
libbrowserpage_la_SOURCES = \
	%D%/browser/page/axjson.c %D%/browser/page/axtext.c \
	%D%/browser/page/axtree.c %D%/browser/page/axtree.h %D%/browser/page/axtree_int.h \
	%D%/browser/program/calls.c %D%/browser/program/calls.h \
	%D%/browser/page/html.c %D%/browser/page/html.h \
	%D%/browser/page/pagemark.c %D%/browser/page/pagemark.h %D%/browser/page/pagemark_int.h \
	%D%/browser/page/pagetags.c \
	%D%/browser/page/pagetext.c %D%/browser/page/pagetext.h \
	%D%/browser/page/pictmark.c %D%/browser/page/picture.c %D%/browser/page/picture.h \
	%D%/browser/program/program.c %D%/browser/program/program.h \
	%D%/browser/page/props.c %D%/browser/page/props.h \
	%D%/browser/program/pychars.c %D%/browser/program/pychars.h \
	%D%/browser/program/pyliterals.c %D%/browser/program/pyliterals.h \
	%D%/browser/page/snapshot.c %D%/browser/page/snapshot.h %D%/browser/page/snapshot_int.h \
	%D%/browser/page/tape.c %D%/browser/page/tape.h %D%/browser/program/tapevalue.c \
	%D%/browser/page/tidy.c \
	%D%/browser/program/value.c %D%/browser/program/value.h
libbrowserpage_la_CFLAGS = $(AM_CFLAGS) $(JSONC_CFLAGS) $(ICU_CFLAGS) $(PNG_CFLAGS) $(UTF8PROC_CFLAGS) $(XML_CFLAGS)
libbrowserpage_la_LIBADD = libprotojson.la libbase.la $(ICU_LIBS) $(PNG_LIBS) $(UTF8PROC_LIBS) $(XML_LIBS) -lm

noinst_LTLIBRARIES += libbrowser.la
libbrowser_la_SOURCES = \
	%D%/browser/act/act.c %D%/browser/act/act.h %D%/browser/act/act_int.h \
	%D%/browser/act/actdrag.c %D%/browser/act/actelement.c %D%/browser/act/actgoto.c \
	%D%/browser/browser.h %D%/browser/browser_int.h \
	%D%/browser/cast.c %D%/browser/cast.h \
	%D%/browser/desk.c \
	%D%/browser/act/element.c %D%/browser/act/element.h \
	%D%/browser/events.c \
	%D%/browser/act/input.c %D%/browser/act/input.h \
	%D%/browser/act/keys.c %D%/browser/act/keys.h \
	%D%/browser/observation.c %D%/browser/observation.h \
	%D%/browser/process.c \
	%D%/browser/scripts.h \
	%D%/browser/serve.c %D%/browser/serve.h \
	%D%/browser/settle.c \
	%D%/browser/step.c %D%/browser/step.h \
	%D%/browser/tabs.c \
	%D%/browser/talk.c \
	%D%/browser/view.c %D%/browser/view.h
nodist_libbrowser_la_SOURCES = %D%/browser/scripts.c
libbrowser_la_CFLAGS = $(AM_CFLAGS) $(JSONC_CFLAGS)
libbrowser_la_LIBADD = libbrowserpage.la libprotojson.la libproto.la libloop.la \
	libbase.la -lm

pkglibexec_PROGRAMS += handrail-browser
handrail_browser_SOURCES = %D%/browser/main.c
handrail_browser_CFLAGS = $(AM_CFLAGS) $(JSONC_CFLAGS)
handrail_browser_LDADD = libbrowser.la

# Scripts for pages, embedded as strings without their comments.
browser_scripts = %D%/browser/page.js %D%/browser/world.js
EXTRA_DIST += $(browser_scripts)
CLEANFILES += %D%/browser/scripts.c
%D%/browser/scripts.c: $(browser_scripts) Makefile
	$(AM_V_GEN)$(MKDIR_P) %D%/browser && { \
	echo '#include "plugins/browser/scripts.h"'; \
	for name in page world; do \
		echo "const char br_$${name}_js[] ="; \
		$(SED) -e '/^ *\/\//d' -e 's/\\/\\\\/g' -e 's/"/\\"/g' -e 's/^ */"/' \
			-e 's/$$/\\n"/' $(srcdir)/%D%/browser/$$name.js; \
		echo ';'; \
	done; } >$@.tmp && mv $@.tmp $@
endif

# everything but HTTP, which tests replace
noinst_LTLIBRARIES += libmcp.la
libmcp_la_SOURCES = \
	%D%/mcp/child.c \
	%D%/mcp/ending.c \
	%D%/mcp/hub.h \
	%D%/mcp/list.c \
	%D%/mcp/rpc.c %D%/mcp/rpc_int.h \
	%D%/mcp/session.c \
	%D%/mcp/update.c
libmcp_la_CFLAGS = $(AM_CFLAGS) $(JSONC_CFLAGS) $(EVENT_CFLAGS)
libmcp_la_LIBADD = libprotojson.la libproto.la libloop.la libbase.la

pkglibexec_PROGRAMS += handrail-mcp
handrail_mcp_SOURCES = %D%/mcp/http.c %D%/mcp/main.c
handrail_mcp_CFLAGS = $(AM_CFLAGS) $(JSONC_CFLAGS)
handrail_mcp_LDADD = libmcp.la libserve.la

# the HTTP server of plugins, also where src/http is not built
noinst_LTLIBRARIES += libserve.la
libserve_la_SOURCES = src/http/answer.c src/http/answer.h src/http/request.h src/http/serve.c src/http/serve.h
libserve_la_CFLAGS = $(AM_CFLAGS) $(EVHTTP_CFLAGS)
libserve_la_LIBADD = libloop.la $(EVHTTP_LIBS)
# ... and their WebSockets
noinst_LTLIBRARIES += libwsframe.la libwsserve.la
libwsframe_la_SOURCES = src/http/wsframe.c src/http/wsframe.h
libwsframe_la_CFLAGS = $(AM_CFLAGS) $(MD_CFLAGS)
libwsframe_la_LIBADD = $(MD_LIBS)
libwsserve_la_SOURCES = src/http/wsserve.c src/http/wsserve.h
libwsserve_la_LIBADD = libwsframe.la libloop.la libbase.la

# everything but main(), so that tests can link it
noinst_LTLIBRARIES += libenvd.la
libenvd_la_SOURCES = \
	%D%/envd/calls.c %D%/envd/calls.h \
	%D%/envd/child.c \
	%D%/envd/input.c \
	%D%/envd/keep.c %D%/envd/keep.h \
	%D%/envd/messages.c \
	%D%/envd/packet.c \
	%D%/envd/process.c \
	%D%/envd/record.c %D%/envd/record.h \
	%D%/envd/rpc.c %D%/envd/rpc.h \
	%D%/envd/table.c %D%/envd/table.h %D%/envd/table_int.h \
	%D%/envd/watch.c %D%/envd/watch.h \
	%D%/envd/watchcalls.c
libenvd_la_CFLAGS = $(AM_CFLAGS) $(JSONC_CFLAGS)
libenvd_la_LIBADD = libserve.la libe2b.la

pkglibexec_PROGRAMS += handrail-envd
handrail_envd_SOURCES = %D%/envd/main.c
handrail_envd_CFLAGS = $(AM_CFLAGS) $(JSONC_CFLAGS)
handrail_envd_LDADD = libenvd.la libkeysum.la libproto.la

pkglibexec_PROGRAMS += handrail-agent-server
handrail_agent_server_SOURCES = %D%/agent/main.c
handrail_agent_server_LDADD = libserve.la libloop.la libbase.la

noinst_LTLIBRARIES += libvscode.la
libvscode_la_SOURCES = %D%/vscode/words.c %D%/vscode/words.h
libvscode_la_LIBADD = libbase.la

pkglibexec_PROGRAMS += handrail-vscode
handrail_vscode_SOURCES = %D%/vscode/main.c
handrail_vscode_LDADD = libvscode.la libloop.la libbase.la
