#include "stage/manifest_private.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/cleanup.h"

static void note_key(uint64_t number, struct manifest_key *key)
{
	unsigned char name[8];

	for (unsigned i = 0; i < 8; i++)
		name[i] = (unsigned char)(number >> (8 * (7 - i)));
	manifest_key_make(MANIFEST_META, META_NOTES, name, sizeof(name), key, NULL);
}

int manifest_note(struct manifest *manifest, const char *text, struct error *err)
{
	struct manifest_key key;

	note_key(atomic_fetch_add(&manifest->next_note, 1), &key);
	return manifest_put_value(manifest, &key, text, strlen(text), err);
}

struct each_note {
	struct manifest *manifest;
	int (*each)(void *ctx, const char *text, struct error *err);
	void *ctx;
};

static int take_note(void *ctx, const char *name, size_t name_size, const void *value, size_t size,
	struct error *err)
{
	const struct each_note *call = ctx;
	autofree char *text = strndup(value, size);
	struct manifest_key key;
	int rc = manifest_key_make(MANIFEST_META, META_NOTES, name, name_size, &key, err);

	if (!text)
		return error_sys(err, -ENOMEM, "manifest");
	if (rc == 0)
		rc = manifest_put_value(call->manifest, &key, NULL, 0, err);
	if (rc == 0 && call->each)
		rc = call->each(call->ctx, text, err);
	return rc;
}

int manifest_take_notes(struct manifest *manifest,
	int (*each)(void *ctx, const char *text, struct error *err), void *ctx, struct error *err)
{
	struct each_note call = { manifest, each, ctx };

	return manifest_each_value(manifest, MANIFEST_META, META_NOTES, take_note, &call, err);
}
