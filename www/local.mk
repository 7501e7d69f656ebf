# The page of a sandbox: installed as it is, and compressed beside it for nginx's gzip_static.
www_files = \
	%D%/console.html %D%/index.html %D%/page.css \
	%D%/js/fleet/capacity.js %D%/js/fleet/events.js %D%/js/fleet/keys.js %D%/js/fleet/main.js \
	%D%/js/fleet/network.js %D%/js/fleet/pools.js %D%/js/fleet/sandboxes.js %D%/js/fleet/table.js \
	%D%/js/alerts.js %D%/js/api.js %D%/js/browser.js %D%/js/cells.js %D%/js/commands.js %D%/js/confirm.js %D%/js/editor.js %D%/js/csp.js %D%/js/dom.js %D%/js/files.js \
	%D%/js/log.js %D%/js/main.js %D%/js/metrics.js %D%/js/network.js %D%/js/plots.js %D%/js/plugins.js %D%/js/shells.js %D%/js/signin.js \
	%D%/js/stream.js %D%/js/tabs.js %D%/js/terminal.js %D%/js/theme.js %D%/js/tree.js \
	%D%/vendor/uplot/uPlot.esm.js %D%/vendor/uplot/uPlot.min.css \
	%D%/vendor/xterm/xterm.css %D%/vendor/xterm/xterm.mjs
www_notes = %D%/vendor/README %D%/vendor/uplot/LICENSE %D%/vendor/xterm/LICENSE
EXTRA_DIST += $(www_files) $(www_notes)

if WWW
# nobase: below a folder of that name
page_datadir = $(pkgdatadir)
nobase_page_data_DATA = $(www_files) $(www_notes)
install-data-hook:
	cd '$(DESTDIR)$(pkgdatadir)' && for f in $(www_files); do gzip -9 -n -c $$f >$$f.gz && touch -r $$f $$f.gz || exit 1; done
uninstall-hook:
	cd '$(DESTDIR)$(pkgdatadir)' 2>/dev/null || exit 0; for f in $(www_files); do rm -f $$f.gz; done; \
	find www -depth -type d -empty -exec rmdir {} \; 2>/dev/null || true
endif
