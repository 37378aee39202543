/* SPDX-License-Identifier: MIT
 *
 * Prints a line for each file whose names were needed and could not be read, or are doubtful.
 */
#include "module_tell.h"

#include <stdbool.h>
#include <stdint.h>
#include <stdlib.h>

#include "tool/files.h"
#include "tool/names.h"

enum { FILES_TOLD = 10 };

static void put(const char *path, FILE *out)
{
	tool_name_clip(path, SIZE_MAX, '>', out);
}

/* Begins a line about a module. */
static void begin(const char *before, const char *what, const struct tool_module_symbols *module,
		  FILE *out)
{
	fprintf(out, "%s%s", before, what);
	put(module->info->path, out);
}

/* Returns whether it has said something. */
static bool tell_file(const struct tool_module_symbols *module, const char *before, FILE *out)
{
	if (module->why == NULL)
		return false;
	begin(before, "", module, out);
	fprintf(out,
		" %s, so its functions are shown as addresses; restore the file that ran, "
		"or record again\n",
		module->why);
	return true;
}

/* Prints one line about all files that are newer than the trace file. */
static void tell_newer(const struct tool_module_symbols *modules, unsigned count,
		       const char *before, FILE *out)
{
	const struct tool_module_symbols *first = NULL;
	unsigned more = 0;

	for (unsigned i = 0; i < count; i++) {
		more += first != NULL && modules[i].is_newer;
		if (first == NULL && modules[i].is_newer)
			first = &modules[i];
	}
	if (first == NULL)
		return;
	begin(before, "the file ", first, out);
	if (more == 0)
		fputs(" was replaced or changed after the recording, but has the recorded "
		      "build-id, so its names are used\n",
		      out);
	else
		fprintf(out,
			" and %u more were replaced or changed after the recording, but have the "
			"recorded build-ids, so their names are used\n",
			more);
}

static bool tell_source(const struct tool_module_symbols *module, const char *before, FILE *out)
{
	const bool is_damaged = tool_module_symbols_is_damaged(module);

	if (is_damaged) {
		begin(before, "the debug information of ", module, out);
		fputs(" is damaged, so lines and inlined functions are missing; build or install "
		      "it again\n",
		      out);
	} else if (module->files.refused != NULL && module->files.path == NULL) {
		begin(before, "the symbols of ", module, out);
		fputs(" are missing, because ", out);
		put(module->files.refused, out);
		fputs(" is damaged or of another build\n", out);
	} else if (module->files.shared != NULL) {
		begin(before, "parts of the debug information of ", module, out);
		fputs(" are missing with the file ", out);
		put(module->files.shared, out);
		fputs("; install the package with the debug information again\n", out);
	} else if (module->source != NULL && tool_source_missing(module->source) != NULL) {
		begin(before, "inlined functions of ", module, out);
		fputs(" are missing with the file ", out);
		put(tool_source_missing(module->source), out);
		fputs(", which the compiler wrote; build the program again and keep its .dwo "
		      "files, "
		      "because .dwp files are not read\n",
		      out);
	} else {
		return false;
	}
	return true;
}

/* ---- packages ------------------------------------------------------------------------------- */

/* The module whose functions have no names at the most addresses, or null. */
static const struct tool_module_symbols *most_unnamed(const struct tool_module_symbols *modules,
						      unsigned count)
{
	enum { SHARE = 20 }; /* of all addresses */
	const struct tool_module_symbols *most = NULL;
	uint64_t all = 0;

	for (unsigned i = 0; i < count; i++) {
		const struct tool_module_symbols *module = &modules[i];

		all += module->codes;
		if (module->why == NULL && 2 * (uint64_t)module->unnamed > module->codes &&
		    (most == NULL || module->unnamed > most->unnamed))
			most = module;
	}
	return most != NULL && SHARE * (uint64_t)most->unnamed >= all ? most : NULL;
}

static void tell_package(const struct tool_module_symbols *modules, unsigned count,
			 const char *before, FILE *out)
{
	const struct tool_module_symbols *module = most_unnamed(modules, count);
	char *package = module != NULL ? tool_files_package(module->info->path) : NULL;

	if (package == NULL)
		return;
	begin(before, "most functions of ", module, out);
	fputs(" have no names; the Debian package ", out);
	put(package, out);
	fputs(" has them\n", out);
	free(package);
}

void tool_modules_tell(const struct tool_module_symbols *modules, unsigned count,
		       const char *before, FILE *out)
{
	unsigned changed = 0;
	unsigned damaged = 0;

	for (unsigned i = 0; i < count; i++)
		if (changed < FILES_TOLD)
			changed += tell_file(&modules[i], before, out);
		else
			changed += modules[i].why != NULL;
	if (changed > FILES_TOLD)
		fprintf(out, "%s%u more files are missing or changed\n", before,
			changed - FILES_TOLD);
	tell_newer(modules, count, before, out);
	for (unsigned i = 0; i < count && damaged < FILES_TOLD; i++)
		damaged += tell_source(&modules[i], before, out);
	tell_package(modules, count, before, out);
}
