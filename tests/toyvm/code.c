/* SPDX-License-Identifier: MIT
 *
 * The memory for generated code, and the table that describes the code at each address. Readers
 * take no lock: entries are added in the order of their addresses, and the count publishes them.
 */
#include <stdlib.h>
#include <sys/mman.h>

#include "vm.h"

enum { CODE_BYTES = 64 << 20, BLOBS_MAX = 8192 };

static uint8_t *memory, *next, *first;
static struct blob *blobs[BLOBS_MAX];
static _Atomic int blob_count;

void code_open(void)
{
	if (memory)
		return;
	memory = mmap(NULL, CODE_BYTES, PROT_READ | PROT_WRITE | PROT_EXEC,
		      MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
	if (memory == MAP_FAILED)
		abort();
	next = memory;
	stubs_make();
	first = next;
	listing_add((uintptr_t)memory, (size_t)(first - memory), "[stubs]");
}

uint8_t *code_take(size_t bytes)
{
	uint8_t *code = next;
	if ((size_t)(memory + CODE_BYTES - next) < bytes)
		return NULL;
	next += bytes;
	return code;
}

void code_give_back(uint8_t *from, const uint8_t *end)
{
	if (end == next)
		next = from;
}

/* Forgets all code after a program has ended: none of it runs or will be decoded. */
void code_reset(void)
{
	for (int i = 0; i < blob_count; i++) {
		listing_remove(blobs[i]->listed);
		free(blobs[i]->sites);
		free(blobs[i]->offsets);
		free(blobs[i]->marks);
		free(blobs[i]);
	}
	atomic_store(&blob_count, 0);
	next = first;
}

struct blob *blob_new(void)
{
	if (atomic_load(&blob_count) == BLOBS_MAX)
		return NULL;
	return calloc(1, sizeof(struct blob));
}

void blob_publish(struct blob *b)
{
	b->listed = listing_add(b->code, b->end - b->code, b->method->name);
	blobs[atomic_load(&blob_count)] = b;
	atomic_fetch_add_explicit(&blob_count, 1, memory_order_release); /* pairs with code_find */
}

const struct blob *code_find(uintptr_t address)
{
	int low = 0, high = atomic_load_explicit(&blob_count, memory_order_acquire);
	while (low < high) {
		int middle = (low + high) / 2;
		const struct blob *b = blobs[middle];
		if (address < b->code)
			high = middle;
		else if (address >= b->end)
			low = middle + 1;
		else
			return b;
	}
	return NULL;
}

bool callers_are_compiled(uintptr_t slot)
{
	for (;;) {
		const uintptr_t pc = incstack_slot_read((const uintptr_t *)slot);
		const struct blob *b = code_find(pc - 1);
		if (pc == stubs.base)
			return true;
		if (!b)
			return false;
		slot += 8 + b->bytes;
	}
}

const struct site *blob_site(const struct blob *b, uintptr_t pc)
{
	uint32_t offset = (uint32_t)(pc - b->code);
	int low = 0, high = b->site_count - 1;
	while (low < high) {
		int middle = (low + high) / 2;
		if (b->sites[middle].offset < offset)
			low = middle + 1;
		else
			high = middle;
	}
	if (b->sites[low].offset != offset)
		abort(); /* no frame can be there: the VM is broken */
	return &b->sites[low];
}

const struct mark *blob_mark(const struct blob *b, uintptr_t pc)
{
	const uint32_t offset = (uint32_t)(pc - b->code);
	int low = 0, high = b->mark_count;
	if (!b->mark_count)
		return NULL;
	while (high - low > 1) {
		int middle = (low + high) / 2;
		if (b->marks[middle].offset <= offset)
			low = middle;
		else
			high = middle;
	}
	return &b->marks[low];
}

bool code_contains(uintptr_t pc)
{
	return pc - (uintptr_t)memory < CODE_BYTES;
}

void method_set_interpreted(struct method *m)
{
	atomic_store(&m->calls, 0);
	atomic_store(&m->entry_compiled, m->native ? stubs.native_c2i : stubs.interpreter_c2i);
	atomic_store(&m->entry_interpreted, m->native ? stubs.native : stubs.interpreter);
	atomic_store(&m->blob, NULL);
}
