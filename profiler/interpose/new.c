/* SPDX-License-Identifier: MIT
 *
 * Interposes the operators new and delete of C++. The operators of the C++ runtimes call malloc and
 * free, which are interposed, so a call is passed on to them by a jump and has no frame here. The
 * operators of jemalloc, tcmalloc, mimalloc or the program's libraries may not call malloc. Their
 * blocks are recorded here, unless malloc has recorded the same block in the meantime.
 *
 * If the real operator throws, nothing has to be undone. The frame here has unwind information, so
 * an exception passes through it.
 */
#include <stdatomic.h>
#include <dlfcn.h>
#include <link.h>
#include <malloc.h>
#include <stdlib.h>
#include <string.h>

#include "stub.h"

/* The number and the name of each operator. Those from DELETES on are operators delete. */
#define OPERATORS(X) \
	X(0, "_Znwm") \
	X(1, "_Znam") \
	X(2, "_ZnwmRKSt9nothrow_t") \
	X(3, "_ZnamRKSt9nothrow_t") \
	X(4, "_ZnwmSt11align_val_t") \
	X(5, "_ZnamSt11align_val_t") \
	X(6, "_ZnwmSt11align_val_tRKSt9nothrow_t") \
	X(7, "_ZnamSt11align_val_tRKSt9nothrow_t") \
	X(8, "_ZdlPv") \
	X(9, "_ZdaPv") \
	X(10, "_ZdlPvm") \
	X(11, "_ZdaPvm") \
	X(12, "_ZdlPvRKSt9nothrow_t") \
	X(13, "_ZdaPvRKSt9nothrow_t") \
	X(14, "_ZdlPvSt11align_val_t") \
	X(15, "_ZdaPvSt11align_val_t") \
	X(16, "_ZdlPvmSt11align_val_t") \
	X(17, "_ZdaPvmSt11align_val_t") \
	X(18, "_ZdlPvSt11align_val_tRKSt9nothrow_t") \
	X(19, "_ZdaPvSt11align_val_tRKSt9nothrow_t")
INCSTACK__REAL(dl_iterate_phdr)

enum { ALIGNED = 4, DELETES = 8, OPERATORS_COUNT = 20 };

#define NAME(number, name) [number] = (name),
static const char *const names[OPERATORS_COUNT] = {OPERATORS(NAME)};

/* An operator has at most three arguments, all of them words. The first is the size or the block.
 * One function type serves all, with the operator's number as the fourth argument. */
typedef uintptr_t operator_fn(uintptr_t first, uintptr_t second, uintptr_t third, unsigned which);

/* The report takes the caller of a function with such a name for the function that wanted the
 * memory. */
static operator_fn by_caller __asm__("_Znwm.by_caller");
static operator_fn record __asm__("_Znwm.recorded");

/* The target of each operator: the real operator, or one of the two functions above. */
#define TARGET(number, name) [number] = by_caller,
__attribute__((visibility("hidden")))
operator_fn *_Atomic incstack__new_targets[OPERATORS_COUNT] = {OPERATORS(TARGET)};

#define ENTRY(number, name) \
	__asm__(".pushsection .text\n" \
		".globl " name "\n" \
		".type " name ", @function\n" \
		".p2align 4\n" name ":\n" \
		".cfi_startproc\n" \
		"movl $" #number ", %ecx\n" \
		"jmp *incstack__new_targets+8*" #number "(%rip)\n" \
		".cfi_endproc\n" \
		".size " name ", . - " name "\n" \
		".popsection\n");
OPERATORS(ENTRY)

/* The next definitions in the global scope. They are null in a program without C++. */
static operator_fn *next[OPERATORS_COUNT];

/* ---- recording ------------------------------------------------------------------------ */

/* Calls the real operator and records the block. `caller` is the frame that called the entry. */
static inline uintptr_t call(operator_fn *real, uintptr_t first, uintptr_t second, uintptr_t third,
			     unsigned which, struct incstack__caller caller)
{
	const struct incstack__recorder *recorder = incstack__stub_recorder_get();
	uint64_t position;
	uintptr_t block;

	if (!recorder)
		return real(first, second, third, which);
	if (which >= DELETES) {
		if (first != 0)
			recorder->on_free((const void *)first);
		return real(first, second, third, which);
	}
	position = recorder->position();
	block = real(first, second, third, which);
	if (block != 0)
		recorder->on_new((const void *)block, first, caller, position);
	return block;
}

INCSTACK__ALIGNED static uintptr_t record(uintptr_t first, uintptr_t second, uintptr_t third,
					  unsigned which)
{
	INCSTACK__CALLER(caller);

	return call(next[which], first, second, third, which, caller);
}

/* ---- which operator is the real one ----------------------------------------------------- */

/* The C++ runtimes' own operators call malloc. */
static bool calls_malloc(const void *function)
{
	static const char *const runtimes[] = {"libstdc++.so", "libc++.so", "libc++abi.so"};
	const char *name;
	Dl_info info;

	if (dladdr(function, &info) == 0 || !info.dli_fname)
		return false;
	name = strrchr(info.dli_fname, '/');
	name = name ? name + 1 : info.dli_fname;
	for (size_t i = 0; i < sizeof(runtimes) / sizeof(runtimes[0]); i++)
		if (strncmp(name, runtimes[i], strlen(runtimes[i])) == 0)
			return true;
	return false;
}

__attribute__((constructor(101))) static void find_operators(void)
{
	for (int i = 0; i < OPERATORS_COUNT; i++) {
		void *found = (void *)incstack__stub_next_function(names[i]);

		if (i == 0 && !found)
			return;
		if (!found)
			continue;
		next[i] = (operator_fn *)found;
		atomic_store_explicit(&incstack__new_targets[i],
				      calls_malloc(found) ? (operator_fn *)found : record,
				      memory_order_release);
	}
}

/* For a program in C that loads code in C++ outside the global scope. Without the stub, the dynamic
 * linker would then search the caller's own libraries, so the stub does. The result is kept for
 * each calling object. */
enum { SCOPES_MAX = 64 };
static struct scope {
	const struct link_map *_Atomic map;
	uintptr_t bias; /* another object may have the link_map of an unloaded object */
	struct {
		operator_fn *_Atomic real;
		int calls_malloc;
	} found[OPERATORS_COUNT];
} scopes[SCOPES_MAX];
static _Atomic unsigned scopes_used;

/* Returns the scope of an object, or null if all entries are taken. */
static struct scope *scope_of(const struct link_map *map)
{
	unsigned i;

	for (i = 0; i < SCOPES_MAX; i++)
		if (atomic_load_explicit(&scopes[i].map, memory_order_acquire) == map &&
		    scopes[i].bias == map->l_addr)
			return &scopes[i];
	if (atomic_load_explicit(&scopes_used, memory_order_relaxed) >= SCOPES_MAX)
		return NULL;
	i = atomic_fetch_add_explicit(&scopes_used, 1, memory_order_relaxed);
	if (i >= SCOPES_MAX)
		return NULL;
	scopes[i].bias = map->l_addr;
	atomic_store_explicit(&scopes[i].map, map, memory_order_release);
	return &scopes[i];
}

/* Returns the object that contains an address. It takes no lock if libc has _dl_find_object. It
 * calls the real function, because the recorder would take the stub for an unwinder. */
static const struct link_map *object_at(const void *address)
{
#ifdef DLFO_STRUCT_HAS_EH_DBASE /* _dl_find_object: glibc 2.35 */
	static void *_Atomic cache;
	void *find = atomic_load_explicit(&cache, memory_order_relaxed);
	struct dl_find_object object;

	if (!find)
		find = incstack__stub_find(&cache, "_dl_find_object");
	if (find && ((__typeof__(&_dl_find_object))find)((void *)(uintptr_t)address, &object) == 0)
		return object.dlfo_link_map;
#endif
	return incstack__stub_object((uintptr_t)address);
}

/* Replaces an operator that no library of the caller defines. It cannot throw an exception. */
static uintptr_t without_runtime(uintptr_t first, uintptr_t second, unsigned which)
{
	if (which >= DELETES) {
		free((void *)first);
		return 0;
	}
	if (which >= ALIGNED)
		return (uintptr_t)memalign(second, first);
	return (uintptr_t)malloc(first != 0 ? first : 1);
}

struct search {
	const struct link_map *map;
	const char *name;
	uintptr_t found;
};

/* Called while the linker's lock is held, so that no object is unloaded in the meantime. */
static int find_in_libraries(struct dl_phdr_info *info, size_t size, void *data)
{
	enum { DEPTH = 3 };
	struct search *search = data;

	(void)info;
	(void)size;
	search->found = incstack__stub_function_for(search->map, search->name, DEPTH);
	return 1;
}

/* Finds the operator that the caller would use: searches the global scope, then the caller's own
 * libraries. */
static operator_fn *find(const struct link_map *map, const char *name)
{
	struct search search = {map, name, incstack__stub_next_function(name)};

	if (search.found == 0)
		dl_iterate_phdr_next()(find_in_libraries, &search);
	return (operator_fn *)search.found;
}

static operator_fn *search(const struct link_map *map, unsigned which, int *through)
{
	struct scope *scope = scope_of(map);
	operator_fn *real =
		scope ? atomic_load_explicit(&scope->found[which].real, memory_order_acquire)
		      : NULL;

	if (real) {
		*through = scope->found[which].calls_malloc;
		return real;
	}
	real = find(map, names[which]);
	*through = real && calls_malloc((const void *)real);
	if (scope && real) {
		scope->found[which].calls_malloc = *through;
		atomic_store_explicit(&scope->found[which].real, real, memory_order_release);
	}
	return real;
}

INCSTACK__ALIGNED static uintptr_t by_caller(uintptr_t first, uintptr_t second, uintptr_t third,
					     unsigned which)
{
	const struct link_map *map = object_at(__builtin_return_address(0));
	operator_fn *real = NULL;
	int through = 0;
	INCSTACK__CALLER(caller);

	if (map)
		real = search(map, which, &through);
	if (!real)
		return without_runtime(first, second, which);
	if (through)
		return real(first, second, third, which);
	return call(real, first, second, third, which, caller);
}
