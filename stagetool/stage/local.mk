noinst_LTLIBRARIES += libstage.la
libstage_la_SOURCES = \
	stagetool/stage/changes.c stagetool/stage/changes.h \
	stagetool/stage/check.c stagetool/stage/check.h stagetool/stage/check_private.h \
	stagetool/stage/check_reader.c \
	stagetool/stage/delta.c stagetool/stage/delta.h \
	stagetool/stage/estimate.c stagetool/stage/estimate.h \
	stagetool/stage/incomplete.c \
	stagetool/stage/inside.c stagetool/stage/inside.h \
	stagetool/stage/item_filter.c stagetool/stage/item_filter.h \
	stagetool/stage/manifest.c stagetool/stage/manifest.h stagetool/stage/manifest_private.h \
	stagetool/stage/manifest_buffer.c \
	stagetool/stage/manifest_codec.c \
	stagetool/stage/manifest_dirs.c \
	stagetool/stage/manifest_guard.c stagetool/stage/manifest_guard.h \
	stagetool/stage/manifest_map.c \
	stagetool/stage/manifest_open.c \
	stagetool/stage/manifest_pairs.c \
	stagetool/stage/manifest_read.c \
	stagetool/stage/plan.c stagetool/stage/plan.h stagetool/stage/plan_private.h \
	stagetool/stage/plan_in.c \
	stagetool/stage/plan_measure.c \
	stagetool/stage/plan_out.c \
	stagetool/stage/plan_resolve.c \
	stagetool/stage/views.c stagetool/stage/views.h \
	stagetool/stage/receipt.c \
	stagetool/stage/records.c stagetool/stage/records.h \
	stagetool/stage/stage_in.c stagetool/stage/stage_in.h \
	stagetool/stage/stage_in_replaced.c \
	stagetool/stage/stage_in_target.c \
	stagetool/stage/stage_in_undo.c \
	stagetool/stage/stage_in_unpack.c \
	stagetool/stage/stage_out.c stagetool/stage/stage_out.h \
	stagetool/stage/stage_out_delete.c \
	stagetool/stage/stage_out_pack.c \
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
	stagetool/stage/project.c stagetool/stage/project.h \
	stagetool/stage/quota.c stagetool/stage/quota.h \
	stagetool/stage/record.c stagetool/stage/record.h \
	stagetool/stage/record_json.c \
	stagetool/stage/stage.c stagetool/stage/stage.h \
	stagetool/stage/state.c stagetool/stage/state.h \
	stagetool/stage/tier.c stagetool/stage/tier.h \
	stagetool/stage/worker.c stagetool/stage/worker.h \
	stagetool/stage/worker_child.c stagetool/stage/worker_child.h
libstage_la_SOURCES += \
	stagetool/stage/node.c stagetool/stage/node.h \
	stagetool/stage/node_bring.c \
	stagetool/stage/node_end.c stagetool/stage/node_end.h \
	stagetool/stage/node_notice.c \
	stagetool/stage/node_orphans.c \
	stagetool/stage/node_reap.c stagetool/stage/node_reap.h \
	stagetool/stage/node_resume.c stagetool/stage/node_resume.h \
	stagetool/stage/node_return.c stagetool/stage/node_return.h \
	stagetool/stage/node_settle.c stagetool/stage/node_settle.h \
	stagetool/stage/node_start.c stagetool/stage/node_start.h stagetool/stage/node_start_private.h \
	stagetool/stage/node_supersede.c stagetool/stage/node_supersede.h \
	stagetool/stage/notice.c stagetool/stage/notice.h \
	stagetool/stage/rest.c stagetool/stage/rest.h \
	stagetool/stage/status.c stagetool/stage/status.h \
	stagetool/stage/status_list.c \
	stagetool/stage/status_text.c \
	stagetool/stage/task.c stagetool/stage/task.h
