#include "base/known.h"

#include <stddef.h>

enum { SLOT_FREE, SLOT_TAKEN, SLOT_READY };

static unsigned known_slot(dev_t a, dev_t b)
{
	unsigned long long mixed = (unsigned long long)a * 0x9e3779b97f4a7c15ull + b;

	return (unsigned)((mixed * 0x9e3779b97f4a7c15ull) >> 32) % KNOWN_PAIRS;
}

/* The slot of the pair, or where it is not there and make is set a new one; NULL where there is
 * none. Two threads that make the same pair at once use two slots: the second's flags are learned
 * again. */
static struct known_pair *known_find(struct known *known, dev_t a, dev_t b, int make)
{
	unsigned start = known_slot(a, b);

	for (unsigned i = 0; i < KNOWN_PAIRS; i++) {
		struct known_pair *pair = &known->pairs[(start + i) % KNOWN_PAIRS];
		unsigned state = atomic_load_explicit(&pair->state, memory_order_acquire);

		if (state == SLOT_READY && pair->a == a && pair->b == b)
			return pair;
		if (state != SLOT_FREE)
			continue;
		if (!make)
			return NULL;
		if (!atomic_compare_exchange_strong(&pair->state, &state, SLOT_TAKEN))
			continue;
		pair->a = a;
		pair->b = b;
		atomic_store_explicit(&pair->state, SLOT_READY, memory_order_release);
		return pair;
	}
	return NULL;
}

unsigned known_flags(struct known *known, dev_t a, dev_t b)
{
	struct known_pair *pair = known_find(known, a, b, 0);

	return pair ? atomic_load_explicit(&pair->flags, memory_order_relaxed) : 0;
}

void known_note(struct known *known, dev_t a, dev_t b, unsigned flags)
{
	struct known_pair *pair = known_find(known, a, b, 1);

	if (pair)
		atomic_fetch_or_explicit(&pair->flags, flags, memory_order_relaxed);
}
