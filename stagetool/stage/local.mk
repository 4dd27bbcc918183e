noinst_LTLIBRARIES += libstage.la
libstage_la_SOURCES = \
	stagetool/stage/delta.c stagetool/stage/delta.h \
	stagetool/stage/inside.c stagetool/stage/inside.h \
	stagetool/stage/item_filter.c stagetool/stage/item_filter.h \
	stagetool/stage/manifest.c stagetool/stage/manifest.h stagetool/stage/manifest_private.h \
	stagetool/stage/manifest_buffer.c \
	stagetool/stage/manifest_codec.c \
	stagetool/stage/manifest_dirs.c \
	stagetool/stage/manifest_map.c \
	stagetool/stage/manifest_open.c \
	stagetool/stage/manifest_pairs.c \
	stagetool/stage/manifest_read.c \
	stagetool/stage/plan.c stagetool/stage/plan.h stagetool/stage/plan_private.h \
	stagetool/stage/plan_in.c \
	stagetool/stage/plan_measure.c \
	stagetool/stage/plan_out.c \
	stagetool/stage/plan_resolve.c \
	stagetool/stage/receipt.c \
	stagetool/stage/records.c stagetool/stage/records.h \
	stagetool/stage/stage_in.c stagetool/stage/stage_in.h \
	stagetool/stage/stage_in_target.c \
	stagetool/stage/stage_in_undo.c \
	stagetool/stage/stage_out.c stagetool/stage/stage_out.h \
	stagetool/stage/stage_out_delete.c \
	stagetool/stage/transfer.c stagetool/stage/transfer.h stagetool/stage/transfer_private.h \
	stagetool/stage/transfer_in.c \
	stagetool/stage/transfer_live.c stagetool/stage/transfer_live.h \
	stagetool/stage/transfer_out.c
libstage_la_CPPFLAGS = $(AM_CPPFLAGS) $(LMDB_CFLAGS) $(XXHASH_CFLAGS)

# jobs on a node
libstage_la_CPPFLAGS += $(JANSSON_CFLAGS)
libstage_la_SOURCES += \
	stagetool/stage/fields.c stagetool/stage/fields.h \
	stagetool/stage/ledger.c stagetool/stage/ledger.h \
	stagetool/stage/outcome.c stagetool/stage/outcome.h \
	stagetool/stage/record.c stagetool/stage/record.h \
	stagetool/stage/record_json.c \
	stagetool/stage/stage.c stagetool/stage/stage.h \
	stagetool/stage/state.c stagetool/stage/state.h \
	stagetool/stage/tier.c stagetool/stage/tier.h \
	stagetool/stage/worker.c stagetool/stage/worker.h \
	stagetool/stage/worker_child.c stagetool/stage/worker_child.h
