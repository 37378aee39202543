/* SPDX-License-Identifier: MIT
 *
 * Finds out which build of a module the dynamic linker has loaded. It reads the process's memory,
 * because the file may have been replaced since the module was loaded.
 *
 * The checksum of a module without a build-id costs time. So it is kept until a module is removed,
 * because another build can only come to the same place after that.
 */
#include <stdatomic.h>
#include <string.h>

#include "modules.h"
#include "native/native.h"

enum { KEPT = 256 };

/* Only used in a callback of dl_iterate_phdr, during which the linker holds its lock. `key` is
 * stored last, because a signal handler or a fork may come between the stores. */
static struct {
	_Atomic uint64_t key; /* 0: empty */
	struct incstack__identity identity;
} kept[KEPT];

static bool copy(const void *context, uint64_t address, void *to, size_t bytes)
{
	const struct dl_phdr_info *info = context;
	const uintptr_t from = (uintptr_t)(info->dlpi_addr + address);

	if (!incstack__native_readable_once(from, bytes))
		return false;
	memcpy(to, (const void *)from, bytes);
	return true;
}

static uint64_t key_of(const struct dl_phdr_info *info)
{
	const uint64_t place[] = {info->dlpi_addr, (uintptr_t)info->dlpi_phdr, info->dlpi_subs};
	const uint64_t sum = incstack__tracefile_sum(0, place, sizeof(place));

	return incstack__tracefile_sum(sum, info->dlpi_phdr,
				       info->dlpi_phnum * sizeof(*info->dlpi_phdr)) |
	       1;
}

void incstack__record_identity(const struct dl_phdr_info *info, struct incstack__identity *identity)
{
	const struct incstack__identity_source source = {.segments = info->dlpi_phdr,
							 .count = info->dlpi_phnum,
							 .copy = copy,
							 .context = info};
	const uint64_t key = key_of(info);
	const size_t at = key >> 32 & (KEPT - 1);

	if (incstack__identity_build_id(&source, identity))
		return;
	if (atomic_load_explicit(&kept[at].key, memory_order_acquire) == key) {
		*identity = kept[at].identity;
		return;
	}
	(void)incstack__identity_content(&source, identity);
	atomic_store_explicit(&kept[at].key, 0, memory_order_seq_cst);
	kept[at].identity = *identity;
	atomic_store_explicit(&kept[at].key, key, memory_order_release);
}
