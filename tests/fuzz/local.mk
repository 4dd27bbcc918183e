# Fuzz targets: linked with libFuzzer after configure --enable-fuzzing, else with a driver of our own that
# runs the corpus.
EXTRA_DIST += tests/fuzz/corpus

fuzz_programs = \
	tests/fuzz/fuzz_conf tests/fuzz/fuzz_filter tests/fuzz/fuzz_glob tests/fuzz/fuzz_handoff \
	tests/fuzz/fuzz_manifest tests/fuzz/fuzz_record tests/fuzz/fuzz_spec \
	tests/fuzz/fuzz_unpack
check_PROGRAMS += $(fuzz_programs)
fuzz_common = tests/fuzz/fuzz.h tests/fuzz/scratch.c
fuzz_cppflags = $(AM_CPPFLAGS) -I$(top_srcdir)/tests \
	-DCORPUS='"$(abs_top_srcdir)/tests/fuzz/corpus"'

if FUZZING
fuzz_driver =
fuzz_ldflags = -fsanitize=fuzzer
else
TESTS += $(fuzz_programs)
fuzz_driver = tests/fuzz/replay.c
fuzz_ldflags =
endif

fuzz-programs: $(fuzz_programs)
.PHONY: fuzz-programs

tests_fuzz_fuzz_conf_SOURCES = tests/fuzz/fuzz_conf.c $(fuzz_common) $(fuzz_driver)
tests_fuzz_fuzz_conf_CPPFLAGS = $(fuzz_cppflags) -DTARGET='"conf"'
tests_fuzz_fuzz_conf_LDFLAGS = $(fuzz_ldflags)
tests_fuzz_fuzz_conf_LDADD = libspec.la libtree.la libbase.la

tests_fuzz_fuzz_filter_SOURCES = tests/fuzz/fuzz_filter.c $(fuzz_common) $(fuzz_driver)
tests_fuzz_fuzz_filter_CPPFLAGS = $(fuzz_cppflags) -DTARGET='"filter"'
tests_fuzz_fuzz_filter_LDFLAGS = $(fuzz_ldflags)
tests_fuzz_fuzz_filter_LDADD = libtree.la libspec.la libbase.la

tests_fuzz_fuzz_glob_SOURCES = tests/fuzz/fuzz_glob.c $(fuzz_common) $(fuzz_driver)
tests_fuzz_fuzz_glob_CPPFLAGS = $(fuzz_cppflags) -DTARGET='"glob"'
tests_fuzz_fuzz_glob_LDFLAGS = $(fuzz_ldflags)
tests_fuzz_fuzz_glob_LDADD = libtree.la libbase.la

tests_fuzz_fuzz_handoff_SOURCES = tests/fuzz/fuzz_handoff.c $(fuzz_common) $(fuzz_driver)
tests_fuzz_fuzz_handoff_CPPFLAGS = $(fuzz_cppflags) -DTARGET='"handoff"'
tests_fuzz_fuzz_handoff_LDFLAGS = $(fuzz_ldflags)
tests_fuzz_fuzz_handoff_LDADD = libspec.la libtree.la libbase.la

tests_fuzz_fuzz_manifest_SOURCES = tests/fuzz/fuzz_manifest.c $(fuzz_common) $(fuzz_driver)
tests_fuzz_fuzz_manifest_CPPFLAGS = $(fuzz_cppflags) -DTARGET='"manifest"' $(LMDB_CFLAGS)
tests_fuzz_fuzz_manifest_LDFLAGS = $(fuzz_ldflags)
tests_fuzz_fuzz_manifest_LDADD = libstage.la libtree.la libbase.la $(LMDB_LIBS) $(XXHASH_LIBS)

tests_fuzz_fuzz_record_SOURCES = tests/fuzz/fuzz_record.c $(fuzz_common) $(fuzz_driver)
tests_fuzz_fuzz_record_CPPFLAGS = $(fuzz_cppflags) -DTARGET='"record"' $(JANSSON_CFLAGS)
tests_fuzz_fuzz_record_LDFLAGS = $(fuzz_ldflags)
tests_fuzz_fuzz_record_LDADD = libstage.la libreport.la libtree.la libbase.la $(JANSSON_LIBS)

tests_fuzz_fuzz_spec_SOURCES = tests/fuzz/fuzz_spec.c $(fuzz_common) $(fuzz_driver)
tests_fuzz_fuzz_spec_CPPFLAGS = $(fuzz_cppflags) -DTARGET='"spec"'
tests_fuzz_fuzz_spec_LDFLAGS = $(fuzz_ldflags)
tests_fuzz_fuzz_spec_LDADD = libspec.la libtree.la libbase.la

tests_fuzz_fuzz_unpack_SOURCES = tests/fuzz/fuzz_unpack.c $(fuzz_common) $(fuzz_driver)
tests_fuzz_fuzz_unpack_CPPFLAGS = $(fuzz_cppflags) -DTARGET='"unpack"'
tests_fuzz_fuzz_unpack_LDFLAGS = $(fuzz_ldflags)
tests_fuzz_fuzz_unpack_LDADD = libarchives.la libcopy.la libtree.la libspec.la libbase.la \
	$(ZLIB_LIBS) $(LZ4_LIBS) $(ZSTD_LIBS)
