TESTS =
if HAVE_CMOCKA

check_PROGRAMS += tests/unit/test_path
TESTS += tests/unit/test_path
tests_unit_test_path_SOURCES = tests/unit/test_path.c
tests_unit_test_path_CPPFLAGS = $(AM_CPPFLAGS) $(CMOCKA_CFLAGS)
tests_unit_test_path_LDADD = libbase.la $(CMOCKA_LIBS)

check_PROGRAMS += tests/unit/test_parse
TESTS += tests/unit/test_parse
tests_unit_test_parse_SOURCES = tests/unit/test_parse.c
tests_unit_test_parse_CPPFLAGS = $(AM_CPPFLAGS) $(CMOCKA_CFLAGS)
tests_unit_test_parse_LDADD = libbase.la $(CMOCKA_LIBS) -lm

check_PROGRAMS += tests/unit/test_priv
TESTS += tests/unit/test_priv
tests_unit_test_priv_SOURCES = tests/unit/test_priv.c
tests_unit_test_priv_CPPFLAGS = $(AM_CPPFLAGS) $(CMOCKA_CFLAGS)
tests_unit_test_priv_LDADD = libbase.la $(CMOCKA_LIBS)

check_PROGRAMS += tests/unit/test_remove
TESTS += tests/unit/test_remove
tests_unit_test_remove_SOURCES = tests/unit/test_remove.c
tests_unit_test_remove_CPPFLAGS = $(AM_CPPFLAGS) $(CMOCKA_CFLAGS)
tests_unit_test_remove_LDADD = libtree.la libbase.la $(CMOCKA_LIBS)

check_PROGRAMS += tests/unit/test_range
TESTS += tests/unit/test_range
tests_unit_test_range_SOURCES = tests/unit/test_range.c
tests_unit_test_range_CPPFLAGS = $(AM_CPPFLAGS) $(CMOCKA_CFLAGS)
tests_unit_test_range_LDADD = libcopy.la libbase.la $(CMOCKA_LIBS)

check_PROGRAMS += tests/unit/test_pool
TESTS += tests/unit/test_pool
tests_unit_test_pool_SOURCES = tests/unit/test_pool.c
tests_unit_test_pool_CPPFLAGS = $(AM_CPPFLAGS) $(CMOCKA_CFLAGS)
tests_unit_test_pool_LDADD = libbase.la $(CMOCKA_LIBS)

check_PROGRAMS += tests/unit/test_walk
TESTS += tests/unit/test_walk
tests_unit_test_walk_SOURCES = tests/unit/test_walk.c
tests_unit_test_walk_CPPFLAGS = $(AM_CPPFLAGS) $(CMOCKA_CFLAGS)
tests_unit_test_walk_LDADD = libtree.la libbase.la $(CMOCKA_LIBS)

check_PROGRAMS += tests/unit/test_spec
TESTS += tests/unit/test_spec
tests_unit_test_spec_SOURCES = tests/unit/test_spec.c
tests_unit_test_spec_CPPFLAGS = $(AM_CPPFLAGS) $(CMOCKA_CFLAGS)
tests_unit_test_spec_LDADD = libspec.la libbase.la $(CMOCKA_LIBS)

check_PROGRAMS += tests/unit/test_symbols
TESTS += tests/unit/test_symbols
tests_unit_test_symbols_SOURCES = tests/unit/test_symbols.c
tests_unit_test_symbols_CPPFLAGS = $(AM_CPPFLAGS) $(CMOCKA_CFLAGS)
tests_unit_test_symbols_LDADD = libspec.la libbase.la $(CMOCKA_LIBS)

check_PROGRAMS += tests/unit/test_summary
TESTS += tests/unit/test_summary
tests_unit_test_summary_SOURCES = tests/unit/test_summary.c
tests_unit_test_summary_CPPFLAGS = $(AM_CPPFLAGS) $(CMOCKA_CFLAGS) $(JANSSON_CFLAGS)
tests_unit_test_summary_LDADD = libreport.la libbase.la $(CMOCKA_LIBS) $(JANSSON_LIBS)

check_PROGRAMS += tests/unit/test_progress
TESTS += tests/unit/test_progress
tests_unit_test_progress_SOURCES = tests/unit/test_progress.c
tests_unit_test_progress_CPPFLAGS = $(AM_CPPFLAGS) $(CMOCKA_CFLAGS) $(JANSSON_CFLAGS)
tests_unit_test_progress_LDADD = libreport.la libbase.la $(CMOCKA_LIBS) $(JANSSON_LIBS)

check_PROGRAMS += tests/unit/test_manifest
TESTS += tests/unit/test_manifest
tests_unit_test_manifest_SOURCES = tests/unit/test_manifest.c
tests_unit_test_manifest_CPPFLAGS = $(AM_CPPFLAGS) $(CMOCKA_CFLAGS) $(LMDB_CFLAGS)
tests_unit_test_manifest_LDADD = libstage.la libbase.la $(CMOCKA_LIBS) $(LMDB_LIBS) $(XXHASH_LIBS)

check_PROGRAMS += tests/unit/test_publish
TESTS += tests/unit/test_publish
tests_unit_test_publish_SOURCES = tests/unit/test_publish.c
tests_unit_test_publish_CPPFLAGS = $(AM_CPPFLAGS) $(CMOCKA_CFLAGS)
tests_unit_test_publish_LDADD = libcopy.la libtree.la libbase.la $(CMOCKA_LIBS)

check_PROGRAMS += tests/unit/test_conf
TESTS += tests/unit/test_conf
tests_unit_test_conf_SOURCES = tests/unit/test_conf.c
tests_unit_test_conf_CPPFLAGS = $(AM_CPPFLAGS) $(CMOCKA_CFLAGS) \
	-DEXAMPLE='"$(abs_top_srcdir)/etc/stagetool.conf"'
tests_unit_test_conf_LDADD = libspec.la libbase.la $(CMOCKA_LIBS)

check_PROGRAMS += tests/unit/test_granularity
TESTS += tests/unit/test_granularity
tests_unit_test_granularity_SOURCES = tests/unit/test_granularity.c
tests_unit_test_granularity_CPPFLAGS = $(AM_CPPFLAGS) $(CMOCKA_CFLAGS)
tests_unit_test_granularity_LDADD = libcopy.la libtree.la libbase.la $(CMOCKA_LIBS)

check_PROGRAMS += tests/unit/test_meta
TESTS += tests/unit/test_meta
tests_unit_test_meta_SOURCES = tests/unit/test_meta.c
tests_unit_test_meta_CPPFLAGS = $(AM_CPPFLAGS) $(CMOCKA_CFLAGS)
tests_unit_test_meta_LDADD = libtree.la libbase.la $(CMOCKA_LIBS)

check_PROGRAMS += tests/unit/test_filter
TESTS += tests/unit/test_filter
tests_unit_test_filter_SOURCES = tests/unit/test_filter.c
tests_unit_test_filter_CPPFLAGS = $(AM_CPPFLAGS) $(CMOCKA_CFLAGS)
tests_unit_test_filter_LDADD = libtree.la libbase.la $(CMOCKA_LIBS)

check_PROGRAMS += tests/unit/test_glob
TESTS += tests/unit/test_glob
tests_unit_test_glob_SOURCES = tests/unit/test_glob.c
tests_unit_test_glob_CPPFLAGS = $(AM_CPPFLAGS) $(CMOCKA_CFLAGS)
tests_unit_test_glob_LDADD = libtree.la libbase.la $(CMOCKA_LIBS)

check_PROGRAMS += tests/unit/test_outcome
TESTS += tests/unit/test_outcome
tests_unit_test_outcome_SOURCES = tests/unit/test_outcome.c
tests_unit_test_outcome_CPPFLAGS = $(AM_CPPFLAGS) $(CMOCKA_CFLAGS) $(JANSSON_CFLAGS)
tests_unit_test_outcome_LDADD = libstage.la libreport.la libcopy.la libtree.la libspec.la libbase.la \
	$(CMOCKA_LIBS) $(JANSSON_LIBS) $(LMDB_LIBS) $(XXHASH_LIBS)

check_PROGRAMS += tests/unit/test_record
TESTS += tests/unit/test_record
tests_unit_test_record_SOURCES = tests/unit/test_record.c
tests_unit_test_record_CPPFLAGS = $(AM_CPPFLAGS) $(CMOCKA_CFLAGS) $(JANSSON_CFLAGS)
tests_unit_test_record_LDADD = libstage.la libreport.la libtree.la libbase.la $(CMOCKA_LIBS) $(JANSSON_LIBS)

check_PROGRAMS += tests/unit/test_ledger
TESTS += tests/unit/test_ledger
tests_unit_test_ledger_SOURCES = tests/unit/test_ledger.c
tests_unit_test_ledger_CPPFLAGS = $(AM_CPPFLAGS) $(CMOCKA_CFLAGS) $(JANSSON_CFLAGS)
tests_unit_test_ledger_LDADD = libstage.la libreport.la libtree.la libbase.la $(CMOCKA_LIBS) $(JANSSON_LIBS)

check_PROGRAMS += tests/unit/test_project
TESTS += tests/unit/test_project
tests_unit_test_project_SOURCES = tests/unit/test_project.c
tests_unit_test_project_CPPFLAGS = $(AM_CPPFLAGS) $(CMOCKA_CFLAGS) $(JANSSON_CFLAGS)
tests_unit_test_project_LDADD = libstage.la libreport.la libtree.la libbase.la $(CMOCKA_LIBS) $(JANSSON_LIBS)

check_PROGRAMS += tests/unit/test_worker
TESTS += tests/unit/test_worker
tests_unit_test_worker_SOURCES = tests/unit/test_worker.c
tests_unit_test_worker_CPPFLAGS = $(AM_CPPFLAGS) $(CMOCKA_CFLAGS) $(JANSSON_CFLAGS)
tests_unit_test_worker_LDADD = libstage.la libreport.la libtree.la libbase.la $(CMOCKA_LIBS) $(JANSSON_LIBS)

check_PROGRAMS += tests/unit/test_links
TESTS += tests/unit/test_links
tests_unit_test_links_SOURCES = tests/unit/test_links.c
tests_unit_test_links_CPPFLAGS = $(AM_CPPFLAGS) $(CMOCKA_CFLAGS)
tests_unit_test_links_LDADD = libtree.la libbase.la $(CMOCKA_LIBS)

check_PROGRAMS += tests/unit/test_handoff
TESTS += tests/unit/test_handoff
tests_unit_test_handoff_SOURCES = tests/unit/test_handoff.c
tests_unit_test_handoff_CPPFLAGS = $(AM_CPPFLAGS) $(CMOCKA_CFLAGS)
tests_unit_test_handoff_LDADD = libspec.la libbase.la $(CMOCKA_LIBS)

check_PROGRAMS += tests/unit/test_copy_links
TESTS += tests/unit/test_copy_links
tests_unit_test_copy_links_SOURCES = tests/unit/test_copy_links.c
tests_unit_test_copy_links_CPPFLAGS = $(AM_CPPFLAGS) $(CMOCKA_CFLAGS)
tests_unit_test_copy_links_LDADD = libcopy.la libtree.la libbase.la $(CMOCKA_LIBS)

check_PROGRAMS += tests/unit/test_delta
TESTS += tests/unit/test_delta
tests_unit_test_delta_SOURCES = tests/unit/test_delta.c
tests_unit_test_delta_CPPFLAGS = $(AM_CPPFLAGS) $(CMOCKA_CFLAGS)
tests_unit_test_delta_LDADD = libstage.la libbase.la $(CMOCKA_LIBS) $(LMDB_LIBS) $(XXHASH_LIBS)

check_PROGRAMS += tests/unit/test_estimate
TESTS += tests/unit/test_estimate
tests_unit_test_estimate_SOURCES = tests/unit/test_estimate.c
tests_unit_test_estimate_CPPFLAGS = $(AM_CPPFLAGS) $(CMOCKA_CFLAGS)
tests_unit_test_estimate_LDADD = libstage.la libtree.la libspec.la libbase.la $(CMOCKA_LIBS) \
	$(LMDB_LIBS) $(XXHASH_LIBS)

check_PROGRAMS += tests/unit/test_plan
TESTS += tests/unit/test_plan
tests_unit_test_plan_SOURCES = tests/unit/test_plan.c
tests_unit_test_plan_CPPFLAGS = $(AM_CPPFLAGS) $(CMOCKA_CFLAGS)
tests_unit_test_plan_LDADD = libstage.la libtree.la libspec.la libbase.la $(CMOCKA_LIBS) \
	$(LMDB_LIBS) $(XXHASH_LIBS)

check_PROGRAMS += tests/unit/test_spec_list
TESTS += tests/unit/test_spec_list
tests_unit_test_spec_list_SOURCES = tests/unit/test_spec_list.c
tests_unit_test_spec_list_CPPFLAGS = $(AM_CPPFLAGS) $(CMOCKA_CFLAGS)
tests_unit_test_spec_list_LDADD = libspec.la libbase.la $(CMOCKA_LIBS)

check_PROGRAMS += tests/unit/test_engine
TESTS += tests/unit/test_engine
tests_unit_test_engine_SOURCES = tests/unit/test_engine.c tests/unit/scratch.h
tests_unit_test_engine_CPPFLAGS = $(AM_CPPFLAGS) $(CMOCKA_CFLAGS)
tests_unit_test_engine_LDADD = libcopy.la libtree.la libspec.la libbase.la $(CMOCKA_LIBS) $(XXHASH_LIBS) -lm

check_PROGRAMS += tests/unit/test_copy_width
TESTS += tests/unit/test_copy_width
tests_unit_test_copy_width_SOURCES = tests/unit/test_copy_width.c
tests_unit_test_copy_width_CPPFLAGS = $(AM_CPPFLAGS) $(CMOCKA_CFLAGS)
tests_unit_test_copy_width_LDADD = libcopy.la libtree.la libbase.la $(CMOCKA_LIBS)

check_PROGRAMS += tests/unit/test_known
TESTS += tests/unit/test_known
tests_unit_test_known_SOURCES = tests/unit/test_known.c
tests_unit_test_known_CPPFLAGS = $(AM_CPPFLAGS) $(CMOCKA_CFLAGS)
tests_unit_test_known_LDADD = libbase.la $(CMOCKA_LIBS)

check_PROGRAMS += tests/unit/test_plugin
TESTS += tests/unit/test_plugin
tests_unit_test_plugin_SOURCES = tests/unit/test_plugin.c spank/child.c spank/plugin.c \
	spank/verdict.c
tests_unit_test_plugin_CPPFLAGS = $(AM_CPPFLAGS) -I$(top_srcdir) $(CMOCKA_CFLAGS)
tests_unit_test_plugin_LDADD = libbase.la $(CMOCKA_LIBS)

check_PROGRAMS += tests/unit/test_view
TESTS += tests/unit/test_view
tests_unit_test_view_SOURCES = tests/unit/test_view.c spank/view.c
tests_unit_test_view_CPPFLAGS = $(AM_CPPFLAGS) -I$(top_srcdir) $(CMOCKA_CFLAGS)
tests_unit_test_view_LDADD = libspec.la libbase.la $(CMOCKA_LIBS) $(INIH_LIBS)

check_PROGRAMS += tests/unit/test_transfer
TESTS += tests/unit/test_transfer
tests_unit_test_transfer_SOURCES = tests/unit/test_transfer.c
tests_unit_test_transfer_CPPFLAGS = $(AM_CPPFLAGS) $(CMOCKA_CFLAGS) $(LMDB_CFLAGS) $(JANSSON_CFLAGS)
tests_unit_test_transfer_LDADD = libstage.la libreport.la libarchives.la libcopy.la libtree.la libspec.la libbase.la \
	$(CMOCKA_LIBS) $(LMDB_LIBS) $(JANSSON_LIBS) $(XXHASH_LIBS) $(ZLIB_LIBS) $(LZ4_LIBS) $(ZSTD_LIBS) -lm

endif
