# Installs the kit from which the host side builds images, in PKGDATADIR/image.
EXTRA_DIST += \
	%D%/Dockerfile.in %D%/agent-server.sh.in %D%/deps.conf %D%/deps.lock %D%/install-deps.sh %D%/install-python.sh %D%/install-shims.sh \
	%D%/git-helper.py.in %D%/micromamba.sh.in %D%/mkkit %D%/mklock %D%/poetry.sh.in \
	%D%/preflight.sh %D%/python.sh.in %D%/python3.sh.in %D%/recipe %D%/start.sh.in

.PHONY: kit deps-lock
kit:
	$(AM_V_GEN)$(SHELL) $(srcdir)/%D%/mkkit $(srcdir) kit
# Run this on the Debian release that images are tested with.
deps-lock:
	cd $(srcdir)/%D% && ./mklock >deps.lock.new && mv deps.lock.new deps.lock

if HOST
install-data-local:
	$(MKDIR_P) '$(DESTDIR)$(pkgdatadir)'
	$(SHELL) $(srcdir)/%D%/mkkit $(srcdir) '$(DESTDIR)$(pkgdatadir)/image'
uninstall-local:
	rm -rf '$(DESTDIR)$(pkgdatadir)/image'
endif
clean-local:
	rm -rf kit
