/* SPDX-License-Identifier: MIT
 *
 * Finds the functions by which a running process allocates memory. As the dynamic linker does, it takes
 * each from the first object that exports one of its name.
 */
#include <stdlib.h>
#include <string.h>

#include "ask.h"
#include "entry.h"
#include "functions.h"
#include "objects.h"
#include "process.h"

static const struct name {
	const char *name;
	enum tool_attach_function function;
} names[] = {
	{"malloc", TOOL_ATTACH_MALLOC},
	{"calloc", TOOL_ATTACH_CALLOC},
	{"realloc", TOOL_ATTACH_REALLOC},
	{"aligned_alloc", TOOL_ATTACH_ALIGNED},
	{"memalign", TOOL_ATTACH_ALIGNED},
	{"posix_memalign", TOOL_ATTACH_POSIX_MEMALIGN},
	{"valloc", TOOL_ATTACH_MALLOC},
	{"pvalloc", TOOL_ATTACH_MALLOC},
	{"_Znwm", TOOL_ATTACH_NEW},
	{"_Znam", TOOL_ATTACH_NEW},
	{"_ZnwmRKSt9nothrow_t", TOOL_ATTACH_NEW},
	{"_ZnamRKSt9nothrow_t", TOOL_ATTACH_NEW},
	{"_ZnwmSt11align_val_t", TOOL_ATTACH_NEW},
	{"_ZnamSt11align_val_t", TOOL_ATTACH_NEW},
	{"_ZnwmSt11align_val_tRKSt9nothrow_t", TOOL_ATTACH_NEW},
	{"_ZnamSt11align_val_tRKSt9nothrow_t", TOOL_ATTACH_NEW},
	{"free", TOOL_ATTACH_DEALLOCATE},
	{"cfree", TOOL_ATTACH_DEALLOCATE},
	{"free_sized", TOOL_ATTACH_DEALLOCATE},
	{"free_aligned_sized", TOOL_ATTACH_DEALLOCATE},
};
enum { NAMES = sizeof(names) / sizeof(names[0]) };
_Static_assert(2 * NAMES <= TOOL_ATTACH_PROBES, "a call and a return of each");

struct search {
	struct tool_attach_wanted *wanted;
	size_t count;
	bool found[NAMES];
};

/* ---- what to probe ------------------------------------------------------------------------- */

static int add_probe(struct search *search, const struct tool_attach_object *object,
		     uint64_t offset, enum tool_attach_function function,
		     enum tool_attach_hit_kind kind)
{
	struct tool_attach_wanted *more;

	for (size_t i = 0; i < search->count; i++) /* an alias */
		if (search->wanted[i].offset == offset && search->wanted[i].kind == kind &&
		    search->wanted[i].module->copy == object->module->copy)
			return 0;
	more = reallocarray(search->wanted, search->count + 1, sizeof(*more));
	if (!more)
		return -1;
	search->wanted = more;
	more[search->count++] = (struct tool_attach_wanted){object->module, offset, function, kind};
	return 0;
}

static const char *name_of(const char *path)
{
	const char *slash = strrchr(path, '/');

	return slash ? slash + 1 : path;
}

/* The libraries whose operator new calls malloc. */
static bool is_language(const char *path)
{
	const char *name = name_of(path);

	return strncmp(name, "libstdc++.", 10) == 0 || strncmp(name, "libc++", 6) == 0;
}

/* Operator new may throw, and the unwinder cannot pass a return address that the kernel has
 * replaced. So its return is not probed. */
static int add_function(struct search *search, const struct tool_attach_object *object,
			const struct name *name, uint64_t address)
{
	uint64_t offset;

	if (name->function != TOOL_ATTACH_POSIX_MEMALIGN) /* which has a third argument */
		address = tool_attach_entry(object, address);
	if (tool_attach_object_offset(object, address, &offset) != 0)
		return 0;
	if (name->function == TOOL_ATTACH_DEALLOCATE)
		return add_probe(search, object, offset, name->function, TOOL_ATTACH_FREE);
	if (name->function == TOOL_ATTACH_NEW && is_language(object->module->path))
		return 0;
	if (add_probe(search, object, offset, name->function, TOOL_ATTACH_ENTRY) != 0)
		return -1;
	return name->function == TOOL_ATTACH_NEW
		       ? 0
		       : add_probe(search, object, offset, name->function, TOOL_ATTACH_RETURN);
}

/* ---- the search ------------------------------------------------------------------------------ */

static int take_symbol(void *context, const struct tool_attach_object *object, const char *symbol,
		       uint64_t address)
{
	struct search *search = context;
	int error = 0;

	for (int i = 0; i < NAMES && error == 0; i++)
		if (!search->found[i] && strcmp(names[i].name, symbol) == 0) {
			search->found[i] = true;
			error = add_function(search, object, &names[i], address);
		}
	return error;
}

static bool has(const struct search *search, enum tool_attach_function function)
{
	for (size_t i = 0; i < search->count; i++)
		if (search->wanted[i].number == function)
			return true;
	return false;
}

/* Whether the recorder is loaded. */
static bool is_recorded(const struct tool_attach_space *space)
{
	size_t count;
	const struct tool_attach_module *modules = tool_attach_space_modules(space, &count);

	for (size_t i = 0; i < count; i++)
		if (strncmp(name_of(modules[i].path), "libincstack_recorder.so", 23) == 0)
			return true;
	return false;
}

int tool_attach_functions_find(pid_t pid, const struct tool_attach_space *space,
			       struct tool_attach_wanted **wanted, size_t *count)
{
	struct search search = {.wanted = NULL};
	int error;

	*wanted = NULL;
	*count = 0;
	if (is_recorded(space))
		return tool_attach_refuse(pid, "record",
					  "incstack heap has started it and records it already");
	error = tool_attach_objects_search(space, take_symbol, &search);

	*wanted = search.wanted;
	*count = search.count;
	if (error != 0)
		return tool_attach_refuse(pid, "record", "out of memory");
	if (!has(&search, TOOL_ATTACH_MALLOC) || !has(&search, TOOL_ATTACH_DEALLOCATE))
		return tool_attach_refuse(
			pid, "record",
			tool_attach_ask_has_ended()
				? "it has ended"
				: "its functions malloc and free are not found; a static program "
				  "needs its symbols, another one must have loaded its libraries");
	return 0;
}
