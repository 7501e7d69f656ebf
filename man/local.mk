dist_man_MANS += %D%/handrail-browser.8 %D%/handrail-envd.8 %D%/handrail-jupyter.8 %D%/handrail-mcp.8 %D%/handrail-session.8 \
	%D%/handrail-vscode.8 %D%/handrail-worker.8
if HOST
dist_man_MANS += %D%/handrail.1 %D%/handrail-fleetd.8 %D%/libhandrail.3
else
EXTRA_DIST += %D%/handrail.1 %D%/handrail-fleetd.8 %D%/libhandrail.3
endif
if BOX
dist_man_MANS += %D%/handrail-box.8 %D%/handrail-egress.8
else
EXTRA_DIST += %D%/handrail-box.8 %D%/handrail-egress.8
endif
man_MANS += %D%/handrail-plugin.5 %D%/handraild.8 %D%/handrail.conf.5

%D%/handrail-plugin.5: %D%/handrail-plugin.5.in Makefile
	$(AM_V_GEN)$(MKDIR_P) %D% && $(do_subst) $(srcdir)/%D%/handrail-plugin.5.in >$@
%D%/handraild.8: %D%/handraild.8.in Makefile
	$(AM_V_GEN)$(MKDIR_P) %D% && $(do_subst) $(srcdir)/%D%/handraild.8.in >$@
%D%/handrail.conf.5: %D%/handrail.conf.5.in Makefile
	$(AM_V_GEN)$(MKDIR_P) %D% && $(do_subst) $(srcdir)/%D%/handrail.conf.5.in >$@

CLEANFILES += %D%/handrail-plugin.5 %D%/handraild.8 %D%/handrail.conf.5
EXTRA_DIST += %D%/handrail-plugin.5.in %D%/handraild.8.in %D%/handrail.conf.5.in
