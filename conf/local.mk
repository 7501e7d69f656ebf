# Templates that handraild fills at run time.
pkgdata_DATA = \
	%D%/nginx.conf.in \
	%D%/handrail-http.conf.in \
	%D%/handrail-site.conf.in \
	%D%/handrail-locations.conf.in \
	%D%/handrail-mcp.conf.in \
	%D%/handrail-ports.conf.in \
	%D%/handrail-swerex.conf.in \
	%D%/handrail-v1.conf.in \
	%D%/handrail-viewer.conf.in \
	%D%/handrail-www.conf.in
if HOST
pkgdata_DATA += %D%/handrail-fleet.conf.in %D%/handrail-fleet-http.conf.in %D%/handrail-fleet-server.conf.in \
	%D%/handrail-fleet-routes.conf.in %D%/handrail-fleet-console.conf.in
endif

# Objects of a cluster: doc/kubernetes.md.
if KUBERNETES
kubernetesdir = $(pkgdatadir)/kubernetes
dist_kubernetes_DATA = \
	%D%/kubernetes/Dockerfile %D%/kubernetes/deployment.yaml %D%/kubernetes/disruption.yaml %D%/kubernetes/kustomization.yaml \
	%D%/kubernetes/namespace.yaml %D%/kubernetes/network.yaml %D%/kubernetes/rbac.yaml \
	%D%/kubernetes/sandboxes-role.yaml %D%/kubernetes/service.yaml
endif

# What the shipped plugins say of themselves, read at run time: handrail-plugin(5).
plugins_jupyterdir = $(pkgdatadir)/plugins/jupyter
dist_plugins_jupyter_DATA = %D%/plugins/jupyter/plugin.json
plugins_agentdir = $(pkgdatadir)/plugins/agent-server
dist_plugins_agent_DATA = %D%/plugins/agent-server/plugin.json %D%/plugins/agent-server/serve.py
plugins_bash_eventsdir = $(pkgdatadir)/plugins/bash-events
dist_plugins_bash_events_DATA = %D%/plugins/bash-events/plugin.json
plugins_envddir = $(pkgdatadir)/plugins/envd
dist_plugins_envd_DATA = %D%/plugins/envd/plugin.json
plugins_mcpdir = $(pkgdatadir)/plugins/mcp
dist_plugins_mcp_DATA = %D%/plugins/mcp/plugin.json
if BROWSER
plugins_browserdir = $(pkgdatadir)/plugins/browser
dist_plugins_browser_DATA = %D%/plugins/browser/plugin.json
endif
plugins_agent_skillsdir = $(pkgdatadir)/plugins/agent_skills
dist_plugins_agent_skills_DATA = %D%/plugins/agent_skills/plugin.json
skillsdir = $(pkgdatadir)/plugins/agent_skills/python
dist_skills_DATA = \
	%D%/plugins/agent_skills/python/agentskills.py \
	%D%/plugins/agent_skills/python/handrail_skills.py
skills_originaldir = $(skillsdir)/openhands/runtime/plugins/agent_skills
dist_skills_original_DATA = \
	%D%/plugins/agent_skills/python/openhands/runtime/plugins/agent_skills/agentskills.py
plugins_vscodedir = $(pkgdatadir)/plugins/vscode
dist_plugins_vscode_DATA = %D%/plugins/vscode/plugin.json %D%/plugins/vscode/settings.json

# Presets of a box's network: handrail-egress(8).
networkdir = $(pkgdatadir)/network
dist_network_DATA = \
	%D%/network/crates.json %D%/network/debian.json %D%/network/github.json \
	%D%/network/golang.json %D%/network/npm.json %D%/network/pypi.json

# Filled at build time; $(do_subst) is used for the manual as well.
do_subst = $(SED) \
	-e 's|[@]sbindir[@]|$(sbindir)|g' \
	-e 's|[@]sysconfdir[@]|$(sysconfdir)|g' \
	-e 's|[@]pkgdatadir[@]|$(pkgdatadir)|g' \
	-e 's|[@]runstatedir[@]|$(runstatedir)|g' \
	-e 's|[@]NGINX_PATH[@]|$(NGINX_PATH)|g'

exampledir = $(docdir)/examples
nodist_example_DATA = %D%/handrail.conf.json
dist_example_DATA = %D%/handrail.logrotate %D%/monitoring/handrail-dashboard.json %D%/monitoring/handrail.rules.yml
if HOST
dist_example_DATA += %D%/handrail-fleet.nginx %D%/handrail-fleetd.logrotate doc/examples/run.c doc/examples/visit.c
endif
nodist_systemdsystemunit_DATA = %D%/handraild.service
systemduserunitdir = $(prefix)/lib/systemd/user
nodist_systemduserunit_DATA = %D%/user/handraild.service
if HOST
nodist_systemdsystemunit_DATA += %D%/handrail-fleetd.service
endif

%D%/handrail.conf.json: %D%/handrail.conf.json.in Makefile
	$(AM_V_GEN)$(MKDIR_P) %D% && $(do_subst) $(srcdir)/%D%/handrail.conf.json.in >$@
%D%/handrail-fleetd.service: %D%/handrail-fleetd.service.in Makefile
	$(AM_V_GEN)$(MKDIR_P) %D% && $(do_subst) $(srcdir)/%D%/handrail-fleetd.service.in >$@
%D%/handraild.service: %D%/handraild.service.in Makefile
	$(AM_V_GEN)$(MKDIR_P) %D% && $(do_subst) $(srcdir)/%D%/handraild.service.in >$@
%D%/user/handraild.service: %D%/user/handraild.service.in Makefile
	$(AM_V_GEN)$(MKDIR_P) %D%/user && $(do_subst) $(srcdir)/%D%/user/handraild.service.in >$@

CLEANFILES += %D%/user/handraild.service %D%/handrail.conf.json %D%/handraild.service %D%/handrail-fleetd.service
EXTRA_DIST += %D%/handrail-fleet.nginx %D%/handrail-fleetd.logrotate \
	%D%/handrail-fleet.conf.in %D%/handrail-fleet-http.conf.in %D%/handrail-fleet-server.conf.in \
	%D%/handrail-fleet-routes.conf.in %D%/handrail-fleet-console.conf.in %D%/handrail-fleetd.service.in \
	%D%/nginx.conf.in %D%/handrail-http.conf.in %D%/handrail-locations.conf.in \
	%D%/handrail-site.conf.in %D%/handrail-viewer.conf.in %D%/handrail-mcp.conf.in %D%/handrail-ports.conf.in %D%/handrail-swerex.conf.in %D%/handrail-v1.conf.in %D%/handrail-www.conf.in \
	%D%/handrail.conf.json.in %D%/handraild.service.in %D%/user/handraild.service.in

dist_doc_DATA = doc/actions.md doc/actions.svg doc/agents.md doc/architecture.md doc/backends.md doc/choose.md doc/clouds.md doc/console.png doc/e2b.md doc/figures.md doc/files.md doc/fleet.md doc/fleet.openapi.json doc/host.md doc/http.md doc/images.md doc/install.md \
	doc/isolation.md doc/kubernetes.md \
	doc/live.md doc/live.openapi.json doc/openhands.md doc/operators.md doc/page.md doc/page.png doc/processes.svg doc/programs.md doc/recipe-1000.md doc/shell.md doc/terminal.svg doc/troubleshooting.md doc/tutorial.md
if HOST
# a back-end to begin with
examplesdir = $(docdir)/examples
dist_examples_SCRIPTS = contrib/e2b-certificate contrib/handrail-backend-ssh
endif
