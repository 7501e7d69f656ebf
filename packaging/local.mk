# What makes packages; none of it is installed.
EXTRA_DIST += \
	debian/changelog debian/control debian/copyright debian/handrail-doc.docs debian/handrail-doc.install \
	debian/handrail-runtime.dirs debian/handrail-runtime.install debian/handrail-runtime.postinst \
	debian/handrail-runtime.postrm debian/handrail-runtime.sysusers debian/handrail-runtime.tmpfiles \
	debian/handrail.install debian/handrail.postrm debian/libhandrail-dev.install debian/libhandrail1.install \
	debian/rules debian/source/format debian/tests/control debian/tests/sandbox \
	%D%/check %D%/handrail.spec %D%/payload %D%/payload-start.sh.in %D%/upgrade

# The same sources, the same bytes: sorted, of nobody, and as old as the last commit or as the release they come from.
am__tar = epoch=$${SOURCE_DATE_EPOCH-`cd $(srcdir) && git log -1 --format=%ct 2>/dev/null || stat -c %Y configure.ac`}; \
	tar --format=ustar --sort=name --owner=0 --group=0 --numeric-owner --mode=u+rwX,go+rX,go-w \
		--mtime="@$$epoch" -chf - "$$tardir"
