man_pages = man/stagetool.1 man/stagetool.conf.5 man/stage.so.8
dist_man_MANS += $(man_pages)
EXTRA_DIST += man/stagetool.1.md man/stagetool.conf.5.md man/stage.so.8.md
MAINTAINERCLEANFILES += $(man_pages)

# The pages are in the release tarball, so a build from there needs no converter.
$(man_pages): %: %.md
	$(AM_V_GEN)$(MKDIR_P) man && $(MD2MAN) -in $< -out $@.part && mv $@.part $@
