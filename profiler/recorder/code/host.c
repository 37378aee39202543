/* SPDX-License-Identifier: MIT
 *
 * Recognizes runtimes that would not survive a changed return address, by a symbol, a section or
 * the file name of the object that contains them. All loaded objects are checked when recording
 * starts and when the list of modules has changed (unload.c). An object is also checked when a
 * sample meets its code for the first time. Once a runtime is found, mode validate replaces mode
 * patch.
 *
 * To find a section, the object's file must be read. The check of all objects reads only the
 * program's file. The file of a library is read when a sample meets the library's code, which is
 * early enough (D7, D83). But a sample of a CPU profile is taken in a signal handler, which reads
 * no file. So for a CPU profile, and where samples cannot check code (CHECKS_CODE), the check of
 * all objects reads every file. In a CPU profile, a trace ends at code of an object whose file was
 * not read.
 *
 * Go is not among these runtimes. Its runtime copies and scans the stacks of goroutines, but C code
 * runs on the stack of the system thread. Go's own code has no unwind information: a walk goes on by frame
 * pointers or ends there, and no return address that leads into it is changed.
 */
#include <stdatomic.h>
#include <dlfcn.h>
#include <fcntl.h>
#include <link.h>
#include <stdbool.h>
#include <string.h>
#include <unistd.h>

#include "elf/file.h"
#include "elf/symbols.h"
#include "recorder/system/kernel.h"
#include "loaded.h"
#include "recorder/code/code.h"
#include "recorder/output/output.h"
#include "recorder/system/system.h"

static const struct runtime {
	const char *symbol;  /* defined in the object's dynamic symbol table */
	const char *section; /* or present in its file; strip does not remove it */
	const char *file;    /* or the beginning of its file name, without the directory */
	/* or a function in its dynamic symbol table. An object with this function is harmless until
	 * a sample meets code of the function. */
	const char *function;
	enum incstack__tracefile_note note;
} runtimes[] = {
	/* The collectors of these look up return addresses in stack maps. OCaml: */
	{.symbol = "caml_frametable", .note = INCSTACK__NOTE_STACK_MAPS},
	/* GraalVM native image: */
	{.symbol = "graal_create_isolate", .note = INCSTACK__NOTE_STACK_MAPS},
	{.section = ".svm_heap", .note = INCSTACK__NOTE_STACK_MAPS},
	/* .NET NativeAOT, which also replaces return addresses itself: */
	{.symbol = "DotNetRuntimeDebugHeader", .note = INCSTACK__NOTE_STACK_MAPS},
	{.section = "__managedcode", .note = INCSTACK__NOTE_STACK_MAPS},
	{.section = ".managedcode", .note = INCSTACK__NOTE_STACK_MAPS},
	/* These copy stacks away and back. Python's greenlet, also before 1.0: */
	{.file = "_greenlet.", .note = INCSTACK__NOTE_STACK_COPIED},
	{.file = "greenlet.", .note = INCSTACK__NOTE_STACK_COPIED},
	/* PyPy, with its stacklets: */
	{.symbol = "pypy_main_startup", .note = INCSTACK__NOTE_STACK_COPIED},
	/* Ruby, once a program asks for callcc: */
	{.function = "ruby_Init_Continuation_body", .note = INCSTACK__NOTE_STACK_COPIED},
	{.file = "continuation.so", .note = INCSTACK__NOTE_STACK_COPIED},
};
enum { RUNTIMES = sizeof(runtimes) / sizeof(runtimes[0]) };

/* Whether code is checked when a sample meets it. That needs _dl_find_object (glibc 2.35). */
#ifdef DLFO_STRUCT_HAS_EH_DBASE
enum { CHECKS_CODE = 1 };
#else
enum { CHECKS_CODE = 0 };
#endif

/* One loaded object, as the dynamic linker has it. */
struct object {
	const char *path; /* empty: the program */
	uintptr_t bias;
	const ElfW(Dyn) * dynamic;
};

/* The functions of the table that were found. The size is stored after the address, with release;
 * runtime_by_function loads the size first, with acquire. */
static struct watched {
	_Atomic uintptr_t low;
	_Atomic uintptr_t bytes;
} watched[RUNTIMES];

/* Stores where the object has functions of the table. In a CPU profile, the function also returns
 * the runtime at once: ticks seldom come while such a function runs, so its existence must
 * suffice. */
static const struct runtime *watch(const struct incstack__elf_symbols *symbols)
{
	const struct runtime *found = NULL;

	for (int i = 0; i < RUNTIMES; i++) {
		const ElfW(Sym) *symbol =
			runtimes[i].function ? incstack__elf_symbol(symbols, runtimes[i].function)
					     : NULL;

		if (!symbol)
			continue;
		atomic_store_explicit(&watched[i].low, symbols->bias + symbol->st_value,
				      memory_order_relaxed);
		atomic_store_explicit(&watched[i].bytes, symbol->st_size, memory_order_release);
		found = &runtimes[i];
	}
	return incstack__kind->samples_in_handlers ? found : NULL;
}

static const struct runtime *runtime_by_function(uintptr_t address)
{
	for (int i = 0; i < RUNTIMES; i++) {
		const uintptr_t bytes =
			atomic_load_explicit(&watched[i].bytes, memory_order_acquire);

		if (address - atomic_load_explicit(&watched[i].low, memory_order_relaxed) < bytes)
			return &runtimes[i];
	}
	return NULL;
}

static const struct runtime *runtime_by_file(const char *path)
{
	const char *slash = strrchr(path, '/');
	const char *name = slash ? slash + 1 : path;

	for (int i = 0; i < RUNTIMES; i++)
		if (runtimes[i].file &&
		    strncmp(name, runtimes[i].file, strlen(runtimes[i].file)) == 0)
			return &runtimes[i];
	return NULL;
}

static const struct runtime *runtime_by_symbol(const struct object *object)
{
	struct incstack__native_pages pages = {0, 0};
	struct incstack__elf_symbols symbols;
	const struct runtime *found;

	if (!incstack__elf_symbols_read(&symbols, incstack__loaded_memory(&pages), object->bias,
					object->dynamic))
		return NULL;
	found = watch(&symbols);
	for (int i = 0; i < RUNTIMES && !found; i++)
		if (runtimes[i].symbol && incstack__elf_symbol(&symbols, runtimes[i].symbol))
			found = &runtimes[i];
	return found;
}

/* ---- sections, read from the file ------------------------------------------------------ */

/* Small, because a sample may meet a library for the first time on a small stack. */
enum { NAMES_BYTES = 1024, HEADERS = 4 };

static bool read_at(int fd, void *to, size_t bytes, uint64_t at)
{
	return incstack__kernel_pread(fd, to, bytes, (off_t)at) == (ssize_t)bytes;
}

static const struct runtime *runtime_of_section(const char *name)
{
	for (int i = 0; i < RUNTIMES; i++)
		if (runtimes[i].section && strcmp(runtimes[i].section, name) == 0)
			return &runtimes[i];
	return NULL;
}

/* Reads the names of sections, ended by a zero. Names that do not fit are ignored. */
static bool read_names(const struct incstack__elf_file *file, char names[NAMES_BYTES])
{
	ElfW(Shdr) header;
	ssize_t got;

	if (!incstack__elf_file_sections(file, file->header.e_shstrndx, 1, &header))
		return false;
	got = incstack__kernel_pread(
		file->fd, names, header.sh_size < NAMES_BYTES ? header.sh_size : NAMES_BYTES - 1,
		(off_t)header.sh_offset);
	if (got <= 0)
		return false;
	memset(names + got, 0, (size_t)(NAMES_BYTES - got));
	return true;
}

static const struct runtime *runtime_in_file(int fd)
{
	struct incstack__elf_file file = {.read = read_at, .fd = fd};
	const struct runtime *found = NULL;
	ElfW(Shdr) headers[HEADERS];
	char names[NAMES_BYTES];

	if (!incstack__elf_file_open(&file) || !read_names(&file, names))
		return NULL;
	for (unsigned i = 0; i < file.header.e_shnum && !found; i += HEADERS) {
		const unsigned left = file.header.e_shnum - i;
		const unsigned count = left < HEADERS ? left : HEADERS;

		if (!incstack__elf_file_sections(&file, i, count, headers))
			return NULL;
		for (unsigned k = 0; k < count && !found; k++)
			if (headers[k].sh_name < NAMES_BYTES)
				found = runtime_of_section(names + headers[k].sh_name);
	}
	return found;
}

static const struct runtime *runtime_by_section(const struct object *object)
{
	const char *path = *object->path != '\0' ? object->path : "/proc/self/exe";
	const struct runtime *found;
	int fd = -1;

	if (strchr(path, '/')) /* the vDSO has no file */
		fd = incstack__kernel_open(path, O_RDONLY | O_CLOEXEC | O_NOCTTY | O_NONBLOCK, 0);
	if (fd < 0)
		return NULL;
	found = runtime_in_file(fd);
	incstack__kernel_close(fd);
	return found;
}

/* ---- the fallback ---------------------------------------------------------------------- */

void incstack__record_fall_back(enum incstack__tracefile_note note)
{
	struct incstack__recording *r = &incstack__recording;

	incstack__record_note_for_good(note);
	if (atomic_exchange_explicit(&r->mode, INCSTACK_MODE_VALIDATE, memory_order_relaxed) !=
	    INCSTACK_MODE_PATCH)
		return;
	if (!r->runtime) /* it will be created in that mode */
		return;
	/* release, here and below: see struct incstack__recording. */
	atomic_store_explicit(&r->mode_changed, 1, memory_order_release);
	atomic_fetch_add_explicit(&r->changes, 1, memory_order_release);
}

/* ---- objects --------------------------------------------------------------------------- */

/* A set of harmless objects, by the address of their dynamic section. It is a hash table with open
 * addressing. relaxed suffices, because an entry is only an address that is compared. */
enum { OBJECTS_BITS = 10 };
typedef const ElfW(Dyn) * _Atomic object_table[1u << OBJECTS_BITS];

static object_table met;                 /* checked by file name and by symbols */
static object_table searched;            /* also checked by sections */
static const ElfW(Dyn) * _Atomic newest; /* the object that a sample has met last */

static size_t first_place(const ElfW(Dyn) * object)
{
	return ((uintptr_t)object >> 4) * 0x9e3779b97f4a7c15u >> (64 - OBJECTS_BITS);
}

/* A full table takes no more objects. */
static void add(object_table table, const ElfW(Dyn) * object)
{
	const size_t mask = (1u << OBJECTS_BITS) - 1;
	const size_t first = first_place(object);

	for (size_t i = 0; i <= mask; i++) {
		const ElfW(Dyn) *_Atomic *at = &table[(first + i) & mask];
		const ElfW(Dyn) *there = NULL;

		if (atomic_compare_exchange_strong_explicit(
			    at, &there, object, memory_order_relaxed, memory_order_relaxed) ||
		    there == object)
			return;
	}
}

static bool is_in(object_table table, const ElfW(Dyn) * object)
{
	const size_t mask = (1u << OBJECTS_BITS) - 1;
	const size_t first = first_place(object);
	const ElfW(Dyn) *there = object;

	for (size_t i = 0; i <= mask && there; i++) {
		there = atomic_load_explicit(&table[(first + i) & mask], memory_order_relaxed);
		if (there == object)
			return true;
	}
	return false;
}

void incstack__record_host_clear(void)
{
	memset(met, 0, sizeof(met));
	memset(searched, 0, sizeof(searched));
	for (int i = 0; i < RUNTIMES; i++)
		atomic_store_explicit(&watched[i].bytes, 0, memory_order_relaxed);
	atomic_store_explicit(&newest, NULL, memory_order_relaxed);
}

static const struct runtime *runtime_by_names(const struct object *object)
{
	const struct runtime *found;

	if (!object->dynamic || is_in(met, object->dynamic))
		return NULL;
	found = runtime_by_file(object->path);
	if (!found)
		found = runtime_by_symbol(object);
	if (!found)
		add(met, object->dynamic);
	return found;
}

/* Also checks the sections in the object's file, which takes several system calls. An object is
 * added to a table, or becomes the newest object, only after the checks and only if it is harmless.
 * Otherwise another thread would take it for harmless during the checks. */
static const struct runtime *runtime_of(const struct object *object)
{
	const struct runtime *found = runtime_by_names(object);

	if (found || !object->dynamic || is_in(searched, object->dynamic))
		return found;
	found = runtime_by_section(object);
	if (!found)
		add(searched, object->dynamic);
	return found;
}

static int look_at(struct dl_phdr_info *info, size_t size, void *context)
{
	const struct object object = {info->dlpi_name, info->dlpi_addr,
				      (const void *)incstack__loaded_layout(info).dynamic};
	const struct runtime **found = context;

	(void)size;
	if (CHECKS_CODE && *object.path != '\0' && !incstack__kind->samples_in_handlers)
		*found = runtime_by_names(&object);
	else
		*found = runtime_of(&object);
	return *found != NULL;
}

bool incstack__record_host_look(void)
{
	const struct runtime *found = NULL;

	if (incstack__recording.mode != INCSTACK_MODE_PATCH)
		return false;
	if (!incstack__recording.runtime && incstack__shadow_stack_on()) {
		incstack__record_fall_back(INCSTACK__NOTE_SHADOW_STACK);
		return true;
	}
	dl_iterate_phdr(look_at, &found);
	if (found)
		incstack__record_fall_back(found->note);
	return found != NULL;
}

#ifdef DLFO_STRUCT_HAS_EH_DBASE

/* Called when a sample meets code of a runtime. Each thread changes its mode only before
 * its next event. So all rules that are given out until then forbid barriers (rule.c). */
static bool forbid_barriers(const struct runtime *runtime)
{
	atomic_store_explicit(&incstack__recording.barriers_forbidden, 1, memory_order_release);
	incstack__record_fall_back(runtime->note);
	return true;
}

static __attribute__((noinline)) bool first_look(const struct link_map *map)
{
	const struct object object = {map->l_name, map->l_addr, map->l_ld};
	const struct runtime *found;
	struct incstack__protection before;

	incstack__record_protect(&before);
	found = runtime_of(&object);
	if (found)
		forbid_barriers(found);
	incstack__record_unprotect(&before);
	return found != NULL;
}

bool incstack__record_host_forbids_barriers(uintptr_t address)
{
	const struct runtime *runtime;
	struct dl_find_object object;

	if (incstack__recording.mode != INCSTACK_MODE_PATCH)
		return false;
	runtime = runtime_by_function(address);
	if (runtime)
		return forbid_barriers(runtime);
	if (_dl_find_object((void *)address, &object) != 0 ||
	    atomic_load_explicit(&newest, memory_order_relaxed) == object.dlfo_link_map->l_ld ||
	    incstack__record_local.handling)
		return false;
	if (first_look(object.dlfo_link_map))
		return true;
	atomic_store_explicit(&newest, object.dlfo_link_map->l_ld, memory_order_relaxed);
	return false;
}

bool incstack__record_host_knows(uintptr_t address)
{
	struct dl_find_object object;

	return incstack__recording.mode != INCSTACK_MODE_PATCH ||
	       _dl_find_object((void *)address, &object) != 0 ||
	       is_in(searched, object.dlfo_link_map->l_ld);
}

#else

bool incstack__record_host_forbids_barriers(uintptr_t address)
{
	(void)address;
	return false;
}

bool incstack__record_host_knows(uintptr_t address)
{
	(void)address;
	return true;
}

#endif
