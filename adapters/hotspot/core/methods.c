/* SPDX-License-Identifier: MIT
 *
 * The table of method keys: open addressing, where a key is the number of its place. Places
 * are never used again, so two threads that look for the same method stop at the same place.
 * Methods that are neighbours in memory have neighbouring places, so that few pages are used.
 */
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

#include "methods.h"

enum { GONE = 1, SHIFT = 6, PROBES = 4096 };

struct place {
	uintptr_t method; /* 0: free; GONE */
	struct incstack__method_names *names;
};

struct incstack__methods {
	uint32_t capacity;
	uint64_t keys, refused;
	struct place places[];
};

static size_t bytes(uint32_t capacity)
{
	return sizeof(struct incstack__methods) + capacity * sizeof(struct place);
}

struct incstack__methods *incstack__methods_create(uint32_t capacity)
{
	struct incstack__methods *m = mmap(NULL, bytes(capacity), PROT_READ | PROT_WRITE,
					   MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
	if (m == MAP_FAILED)
		return NULL;
	m->capacity = capacity;
	return m;
}

void incstack__methods_destroy(struct incstack__methods *methods)
{
	if (!methods)
		return;
	for (uint32_t i = 0; methods->keys && i < methods->capacity; i++)
		free(methods->places[i].names);
	munmap(methods, bytes(methods->capacity));
}

/* Looks for the method. Returns its key, or 0; then *end is the free place where the search
 * ended, if any. */
static uint32_t search(const struct incstack__methods *m, uintptr_t method, uint32_t start,
		       uint32_t *end)
{
	for (uint32_t i = start; i < PROBES && i < m->capacity; i++) {
		uint32_t at = (uint32_t)((method >> SHIFT) + i) & (m->capacity - 1);
		uintptr_t found = __atomic_load_n(&m->places[at].method, __ATOMIC_ACQUIRE);
		*end = i;
		if (found == method)
			return at + 1;
		if (!found)
			return 0;
	}
	*end = UINT32_MAX;
	return 0;
}

/* Claims the place for the method, unless another thread was faster. */
static bool claim(struct incstack__methods *m, uintptr_t method, uint32_t i)
{
	uint32_t at = (uint32_t)((method >> SHIFT) + i) & (m->capacity - 1);
	uintptr_t none = 0;
	if (!__atomic_compare_exchange_n(&m->places[at].method, &none, method, false,
					 __ATOMIC_ACQ_REL, __ATOMIC_ACQUIRE))
		return false;
	__atomic_fetch_add(&m->keys, 1, __ATOMIC_RELAXED);
	return true;
}

uint32_t incstack__method_key(struct incstack__methods *methods, uintptr_t method)
{
	uint32_t end = 0, key;
	/* After a claim the search continues at the same place, which now holds this method or
	 * another. */
	while (!(key = search(methods, method, end, &end)) && end != UINT32_MAX)
		claim(methods, method, end);
	if (!key)
		__atomic_fetch_add(&methods->refused, 1, __ATOMIC_RELAXED);
	return key;
}

uint32_t incstack__method_find(const struct incstack__methods *methods, uintptr_t method)
{
	uint32_t end;
	return search(methods, method, 0, &end);
}

uintptr_t incstack__method_of(const struct incstack__methods *methods, uint32_t key,
			      const struct incstack__method_names **names)
{
	*names = NULL;
	if (!key || key > methods->capacity)
		return 0;
	const struct place *p = &methods->places[key - 1];
	uintptr_t method = __atomic_load_n(&p->method, __ATOMIC_ACQUIRE);
	if (method != GONE)
		return method;
	*names = p->names;
	return 0;
}

void incstack__method_gone(struct incstack__methods *methods, uint32_t key,
			   struct incstack__method_names *names)
{
	struct place *p = &methods->places[key - 1];
	p->names = names;
	__atomic_store_n(&p->method, GONE, __ATOMIC_RELEASE);
}

static const char *append(char **at, const char *text)
{
	if (!text)
		return NULL;
	size_t size = strlen(text) + 1;
	char *copy = memcpy(*at, text, size);
	*at += size;
	return copy;
}

struct incstack__method_names *incstack__method_names_copy(const char *class_signature,
							   const char *name, const char *signature,
							   const char *source_file)
{
	size_t size = sizeof(struct incstack__method_names) + strlen(class_signature) +
		      strlen(name) + strlen(signature) + (source_file ? strlen(source_file) : 0) +
		      4;
	struct incstack__method_names *n = malloc(size);
	if (!n)
		return NULL;
	char *at = (char *)(n + 1);
	n->class_signature = append(&at, class_signature);
	n->name = append(&at, name);
	n->signature = append(&at, signature);
	n->source_file = append(&at, source_file);
	return n;
}

void incstack__methods_count(const struct incstack__methods *methods, uint64_t *keys,
			     uint64_t *refused)
{
	*keys = __atomic_load_n(&methods->keys, __ATOMIC_RELAXED);
	*refused = __atomic_load_n(&methods->refused, __ATOMIC_RELAXED);
}
