dist_doc_DATA = etc/stagetool.conf

# Where an administrator finds them; systemd's own directory is the package's business.
systemddir = $(docdir)/systemd
systemd_DATA = etc/systemd/stagetool-reap.service
dist_systemd_DATA = etc/systemd/stagetool-reap.timer
etc/systemd/stagetool-reap.service: etc/systemd/stagetool-reap.service.in Makefile
	$(AM_V_GEN)$(MKDIR_P) etc/systemd && \
		sed -e 's|@bindir[@]|$(bindir)|; s|@sysconfdir[@]|$(sysconfdir)|' \
		$(srcdir)/etc/systemd/stagetool-reap.service.in >$@.tmp && mv $@.tmp $@
EXTRA_DIST += etc/systemd/stagetool-reap.service.in
CLEANFILES += etc/systemd/stagetool-reap.service

bashcompletiondir = $(datadir)/bash-completion/completions
dist_bashcompletion_DATA = etc/completion/stagetool
