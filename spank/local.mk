if WITH_SLURM
plugin_LTLIBRARIES = stage.la
stage_la_SOURCES = \
	spank/stage.c \
	spank/child.c spank/child.h \
	spank/job.c spank/job.h \
	spank/node.c spank/node.h \
	spank/plugin.c spank/plugin.h \
	spank/step.c spank/step.h \
	spank/submit.c spank/submit.h \
	spank/tool.c spank/tool.h \
	spank/verdict.c spank/verdict.h \
	spank/view.c spank/view.h
stage_la_CPPFLAGS = $(AM_CPPFLAGS) -I$(top_srcdir)
# Slurm's own symbols are those of the program that loads the plugin, found when they are called; ours stay
# hidden from it.
stage_la_LDFLAGS = -module -avoid-version -shared -Wl,-z,lazy \
	-export-symbols-regex '^(slurm_spank_.*|plugin_name|plugin_type|plugin_version|spank_plugin_version)$$'
stage_la_LIBADD = libspec.la libbase.la $(INIH_LIBS)

# Slurm opens stage.so; libtool's description of it is of no use there.
install-data-hook:
	rm -f $(DESTDIR)$(plugindir)/stage.la
uninstall-hook:
	rm -f $(DESTDIR)$(plugindir)/stage.so
endif
