/* SPDX-License-Identifier: MIT
 *
 * Our functions in front of Python's allocators, one set for each domain.
 *
 * Others also put functions there, and take back what they found when they leave. tracemalloc is one of them:
 *   - It starts after us: its functions call ours, and its stop brings ours back.
 *   - It started before us: its stop would remove our functions. So they go below its own.
 *   - We stop while its functions call ours: ours stay, and only pass on.
 * A thread may be in the middle of a call when functions change, because raw memory needs no lock of Python. So our
 * functions do not use their context, and the context that is stored with them is that of the original
 * functions: any mixture of the two works.
 */
#define _GNU_SOURCE
#include "allocators.h"

#include <dlfcn.h>
#include <stdatomic.h>

#include "recording.h"

enum { DOMAINS = 3 };

static PyMemAllocatorEx original[DOMAINS]; /* by domain */
static PyMemAllocatorEx *below[DOMAINS];   /* of tracemalloc, where our functions are; or null */

/* Python's allocator for objects takes large blocks from that for raw memory: one block, one event. */
static __thread bool is_inside __attribute__((tls_model("initial-exec")));
/* The thread asks whether a call gets here: 1 + the domain, or 0. tracemalloc also calls other domains. */
static __thread int probed __attribute__((tls_model("initial-exec")));
static __thread bool was_called __attribute__((tls_model("initial-exec")));

static inline bool is_seen(void)
{
	return !is_inside && recording_is_on();
}

static inline void *allocate(PyMemAllocatorDomain domain, bool is_zero, size_t count, size_t size)
{
	const PyMemAllocatorEx *o = &original[domain];
	const bool seen = is_seen();
	was_called |= probed == (int)domain + 1;
	is_inside |= seen;
	void *block = is_zero ? o->calloc(o->ctx, count, size) : o->malloc(o->ctx, size);
	if (!seen)
		return block;
	is_inside = false;
	if (block && !probed)
		recording_allocated(block, count * size, domain != PYMEM_DOMAIN_RAW);
	return block;
}

static inline void *resize(PyMemAllocatorDomain domain, void *from, size_t size)
{
	const PyMemAllocatorEx *o = &original[domain];
	struct recording_move move;
	if (!is_seen())
		return o->realloc(o->ctx, from, size);
	recording_moving(from, &move);
	is_inside = true;
	void *to = o->realloc(o->ctx, from, size);
	is_inside = false;
	recording_moved(&move, from, to, size, domain != PYMEM_DOMAIN_RAW);
	return to;
}

static inline void release(PyMemAllocatorDomain domain, void *block)
{
	const PyMemAllocatorEx *o = &original[domain];
	if (!block || !is_seen()) {
		o->free(o->ctx, block);
		return;
	}
	recording_freed(block);
	is_inside = true;
	o->free(o->ctx, block);
	is_inside = false;
}

#define FUNCTIONS(name, domain) \
	static void *name##_malloc(void *context, size_t size) \
	{ \
		return (void)context, allocate(domain, false, 1, size); \
	} \
	static void *name##_calloc(void *context, size_t count, size_t size) \
	{ \
		return (void)context, allocate(domain, true, count, size); \
	} \
	static void *name##_realloc(void *context, void *block, size_t size) \
	{ \
		return (void)context, resize(domain, block, size); \
	} \
	static void name##_free(void *context, void *block) \
	{ \
		(void)context; \
		release(domain, block); \
	}

FUNCTIONS(raw, PYMEM_DOMAIN_RAW)
FUNCTIONS(mem, PYMEM_DOMAIN_MEM)
FUNCTIONS(obj, PYMEM_DOMAIN_OBJ)

static const PyMemAllocatorEx ours[DOMAINS] = {
	[PYMEM_DOMAIN_RAW] = {NULL, raw_malloc, raw_calloc, raw_realloc, raw_free},
	[PYMEM_DOMAIN_MEM] = {NULL, mem_malloc, mem_calloc, mem_realloc, mem_free},
	[PYMEM_DOMAIN_OBJ] = {NULL, obj_malloc, obj_calloc, obj_realloc, obj_free},
};

/* ---- how they get there ----------------------------------------------------------------- */

/* Whether a call of the domain's functions gets to ours. */
static bool is_called(PyMemAllocatorDomain domain)
{
	PyMemAllocatorEx now;
	PyMem_GetAllocator(domain, &now);
	was_called = false;
	probed = (int)domain + 1;
	void *block = now.malloc(now.ctx, 16);
	probed = 0;
	now.free(now.ctx, block);
	return was_called;
}

bool allocators_are_called(void)
{
	return is_called(PYMEM_DOMAIN_RAW) && is_called(PYMEM_DOMAIN_MEM) &&
	       is_called(PYMEM_DOMAIN_OBJ);
}

static void *object_of(const void *address)
{
	Dl_info info;
	return dladdr(address, &info) ? info.dli_fbase : NULL;
}

/* The allocators that tracemalloc calls lie in its own data, and its context points to them. Returns null if
 * what is found there does not look like them. */
static PyMemAllocatorEx *find_below(const PyMemAllocatorEx *tracing)
{
	PyMemAllocatorEx *at = tracing->ctx;
	void *const object = object_of((const void *)(uintptr_t)tracing->malloc);
	void *const python = object_of((const void *)(uintptr_t)PyMem_GetAllocator);
	if (!at || !object || object_of(at) != object)
		return NULL;
	const uintptr_t functions[] = {(uintptr_t)at->malloc, (uintptr_t)at->calloc,
				       (uintptr_t)at->realloc, (uintptr_t)at->free};
	for (size_t i = 0; i < sizeof(functions) / sizeof(functions[0]); i++)
		if (object_of((const void *)functions[i]) != python)
			return NULL;
	return at;
}

/* Replaces the functions one by one. */
static void replace(PyMemAllocatorEx *at, const PyMemAllocatorEx *by)
{
	__atomic_store_n(&at->free, by->free, __ATOMIC_RELEASE);
	__atomic_store_n(&at->realloc, by->realloc, __ATOMIC_RELEASE);
	__atomic_store_n(&at->calloc, by->calloc, __ATOMIC_RELEASE);
	__atomic_store_n(&at->malloc, by->malloc, __ATOMIC_RELEASE);
}

static bool install(PyMemAllocatorDomain domain, bool is_traced)
{
	PyMemAllocatorEx now, mine = ours[domain];
	PyMem_GetAllocator(domain, &now);
	below[domain] = is_traced ? find_below(&now) : NULL;
	if (is_traced && !below[domain])
		return false;
	if (is_traced) {
		original[domain] = *below[domain];
		replace(below[domain], &mine);
		return true;
	}
	original[domain] = now;
	mine.ctx = now.ctx;
	PyMem_SetAllocator(domain, &mine);
	return true;
}

/* Puts our functions where calls come by. Returns false if tracemalloc is at work and cannot be recognized. */
bool allocators_install(bool is_traced)
{
	for (PyMemAllocatorDomain d = PYMEM_DOMAIN_RAW; d <= PYMEM_DOMAIN_OBJ; d++)
		if (!is_called(d) && !install(d, is_traced))
			return false;
	return true;
}

static void take_back(PyMemAllocatorDomain domain)
{
	PyMemAllocatorEx now;
	PyMem_GetAllocator(domain, &now);
	if (now.malloc == ours[domain].malloc)
		PyMem_SetAllocator(domain, &original[domain]);
	else if (below[domain] && now.ctx == below[domain] &&
		 below[domain]->malloc == ours[domain].malloc)
		replace(below[domain], &original[domain]);
}

/* Takes our functions out, except where those of others call them: there they stay and only pass on. */
void allocators_remove(void)
{
	for (PyMemAllocatorDomain d = PYMEM_DOMAIN_RAW; d <= PYMEM_DOMAIN_OBJ; d++)
		take_back(d);
}
