/* SPDX-License-Identifier: MIT
 *
 * Chooses which allocations are recorded if not all of them are recorded. It samples by bytes, and
 * remembers the addresses of the sampled blocks.
 */
#include <stdatomic.h>
#include <math.h>
#include <string.h>
#include <sys/auxv.h>

#include "recorder/code/code.h"
#include "recorder/log/check.h"
#include "recorder/log/log.h"
#include "recorder/output/output.h"
#include "recorder/system/system.h"

/* Returns the number of bytes until the next sample. It is exponentially distributed, so each byte
 * is sampled with the same probability whatever came before, and no pattern of the program can be
 * in step with the samples. */
static uint64_t next_gap(struct incstack__record *record)
{
	uint64_t x = record->random;

	x ^= x << 13;
	x ^= x >> 7;
	x ^= x << 17;
	record->random = x;
	return 1 + (uint64_t)(-log((double)((x >> 11) + 1) * 0x1p-53) *
			      (double)incstack__recording.interval);
}

/* Returns the seed that the user has chosen. Otherwise no two processes have equal seeds (D98). The
 * time-stamp counter is not used, because the program may have forbidden the instruction that reads
 * it. */
static uint64_t seed(void)
{
	const struct incstack__recording *r = &incstack__recording;
	const void *random = (const void *)getauxval(AT_RANDOM); /* of this process image */
	uint64_t number = 0;

	if (r->seed != 0)
		return r->seed;
	if (random)
		memcpy(&number, random, sizeof(number));
	return ((uint64_t)r->pid << 40) ^ number;
}

/* Spreads the bits of x (the last steps of splitmix64). Never 0, from which next_gap() could not go
 * on. */
static uint64_t mixed(uint64_t x)
{
	x = (x ^ (x >> 30)) * 0xbf58476d1ce4e5b9u;
	x = (x ^ (x >> 27)) * 0x94d049bb133111ebu;
	return (x ^ (x >> 31)) | 1;
}

void incstack__record_seed(struct incstack__record *record)
{
	record->random = mixed(seed() + record->number * 0x9e3779b97f4a7c15u);
	record->countdown = 0;
	for (int i = 0; i < 8; i++)
		record->countdown = next_gap(record);
}

bool incstack__record_is_sampled(struct incstack__record *record, size_t bytes)
{
	const uint64_t count = bytes != 0 ? bytes : 1;

	if (incstack__recording.interval <= 1)
		return true;
	if (count < record->countdown) {
		record->countdown -= count;
		return false;
	}
	record->countdown = next_gap(record);
	return true;
}

/* Most deallocated blocks were not recorded. Each recorded address sets a bit, which is never
 * cleared. So an address without its bit was not recorded. relaxed: the program itself orders the
 * allocation of a block before its deallocation. */
enum { SEEN_BITS = 1 << 22 };
static _Atomic uint64_t seen[SEEN_BITS / 64];

static _Atomic uint64_t *seen_word(const void *block, uint64_t *bit)
{
	const uint64_t hash = ((uintptr_t)block >> 4) * 0x9e3779b97f4a7c15u >> 42;

	*bit = 1ull << (hash & 63);
	return &seen[hash / 64];
}

void incstack__record_mark(const void *block)
{
	uint64_t bit;
	_Atomic uint64_t *word = seen_word(block, &bit);

	if (incstack__recording.interval > 1)
		atomic_fetch_or_explicit(word, bit, memory_order_relaxed);
}

bool incstack__record_is_marked(const void *block)
{
	uint64_t bit;
	const _Atomic uint64_t *word = seen_word(block, &bit);

	return incstack__recording.interval <= 1 ||
	       (atomic_load_explicit(word, memory_order_relaxed) & bit) != 0;
}
