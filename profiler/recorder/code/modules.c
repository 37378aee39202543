/* SPDX-License-Identifier: MIT
 *
 * Collects lists of modules from the dynamic linker, compares them, and writes them.
 */
#include <link.h>
#include <string.h>
#include <unistd.h>

#include "recorder/system/kernel.h"
#include "loaded.h"
#include "modules.h"
#include "recorder/output/output.h"
#include "recorder/system/system.h"

enum { FIRST_BYTES = 1 << 16 };
enum { HEADS = sizeof(struct incstack__tracefile_block) + 2 * sizeof(uint32_t) };

bool incstack__record_list_next(const struct incstack__record_list *list, size_t *offset,
				struct incstack__record_entry *entry)
{
	const size_t at = *offset != 0 ? *offset : HEADS;

	if (at >= list->block.used)
		return false;
	entry->at = list->block.data + at;
	memcpy(&entry->module, entry->at, sizeof(entry->module));
	entry->bytes =
		sizeof(entry->module) + entry->module.path_length + entry->module.identity_length;
	*offset = at + entry->bytes;
	return true;
}

bool incstack__record_list_same(const struct incstack__record_entry *a,
				const struct incstack__record_entry *b)
{
	return a->bytes == b->bytes && memcmp(a->at, b->at, a->bytes) == 0;
}

/* Makes room for so many more bytes. Returns non-zero if there is no memory. */
static int make_room(struct incstack__record_list *list, size_t bytes)
{
	struct incstack__tracefile_modules *block = &list->block;
	size_t size = block->size != 0 ? block->size : FIRST_BYTES;
	void *memory;

	while (size - block->used < bytes + HEADS)
		size *= 2;
	if (size == block->size)
		return 0;
	if (block->data) {
		memory = incstack__record_remap(block->data, block->size, size);
		if (!memory)
			return INCSTACK_ENOMEM;
		block->data = memory;
		block->size = size;
		return 0;
	}
	memory = incstack__record_map(size);
	if (!memory)
		return INCSTACK_ENOMEM;
	return incstack__tracefile_modules_begin(block, memory, size, 0);
}

int incstack__record_list_add(struct incstack__record_list *list,
			      const struct incstack__record_entry *entry)
{
	if (make_room(list, entry->bytes) != 0)
		return INCSTACK_ENOMEM;
	memcpy(list->block.data + list->block.used, entry->at, entry->bytes);
	list->block.used += entry->bytes;
	list->block.count++;
	return 0;
}

void incstack__record_list_free(struct incstack__record_list *list)
{
	incstack__record_unmap(list->block.data, list->block.size);
	memset(list, 0, sizeof(*list));
}

void incstack__record_list_write(struct incstack__record_list *list, uint32_t epoch)
{
	int64_t used;

	list->block.epoch = epoch;
	used = incstack__tracefile_modules_finish(&list->block, 0);
	if (used > 0)
		incstack__record_write(list->block.data, (size_t)used);
}

/* ---- asking the dynamic linker ------------------------------------------------------ */

struct collection {
	struct incstack__record_list *list;
	struct incstack__record_counts known;
	int result;
};

/* Returns the module's name if it is an absolute path, else the path that the kernel knows. The
 * dynamic linker has no name for the program. A relative path is useless once the program has
 * changed its directory. */
static const char *name_of(const struct dl_phdr_info *info, uint64_t low, char *path, size_t size)
{
	const char *name = info->dlpi_name;

	if (!name || *name == '\0') {
		const ssize_t got = incstack__kernel_readlink("/proc/self/exe", path, size - 1);

		path[got > 0 ? got : 0] = '\0';
		incstack__record_cut_deleted(path);
		return path;
	}
	if (*name != '/' && strchr(name, '/') && incstack__record_path(low, path, size))
		return path;
	return name;
}

static int add_module(struct incstack__record_list *list, const struct dl_phdr_info *info)
{
	const struct incstack__elf_layout layout = incstack__loaded_layout(info);
	struct incstack__identity identity;
	char path[4096];
	const char *name;

	if (layout.low >= layout.high)
		return 0;
	name = name_of(info, layout.low, path, sizeof(path));
	incstack__record_identity(info, &identity);
	if (make_room(list, sizeof(struct incstack__tracefile_module) + strlen(name) +
				    sizeof(identity.bytes)) != 0)
		return INCSTACK_ENOMEM;
	return incstack__tracefile_modules_add(&list->block, name, info->dlpi_addr, layout.low,
					       layout.high, &identity);
}

/* All calls of one iteration get equal counts, because the linker's lock is held. */
static int collect_module(struct dl_phdr_info *info, size_t size, void *context)
{
	const struct incstack__record_counts counts = {info->dlpi_adds, info->dlpi_subs};
	struct collection *collection = context;

	(void)size;
	if (collection->result == 0)
		incstack__record_linker_compare(counts);
	if (counts.adds == collection->known.adds && counts.subs == collection->known.subs)
		return 1;
	collection->result = 1;
	collection->list->counts = counts;
	if (add_module(collection->list, info) == 0)
		return 0;
	collection->result = -1;
	return 1;
}

int incstack__record_list_collect(struct incstack__record_list *list,
				  struct incstack__record_counts known)
{
	struct collection collection = {.list = list, .known = known};

	dl_iterate_phdr(collect_module, &collection);
	if (collection.result < 0)
		incstack__record_list_free(list);
	return collection.result;
}
