/* SPDX-License-Identifier: MIT
 *
 * Opens the file of a module and gives it to libdwfl, with the bias that the module had in the recorded
 * process. Each module has a session of libdwfl of its own, because two modules may have had the same
 * addresses at different times.
 */
#include "module_symbols.h"

#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "tool/files.h"
#include "tool/module_file.h"
#include "tool/names.h"
#include "function_start.h"

/* libdwfl need not find the file of a module, because report_module() gives it the open file. */
static int find_no_elf(Dwfl_Module *module, void **data, const char *name, Dwarf_Addr base,
		       char **file, Elf **elf)
{
	(void)module;
	(void)data;
	(void)name;
	(void)base;
	(void)file;
	(void)elf;
	return -1;
}

static const Dwfl_Callbacks callbacks = {
	.find_elf = find_no_elf,
	.find_debuginfo = tool_debug_file_find,
	.section_address = dwfl_offline_section_address,
};

/* Opens the file from which the names of a module can be read. If there is no such file, it returns
 * -1 and sets *why to the reason, as the end of a sentence whose subject is the file. */
static int open_module(const struct incstack__tracefile_module_info *info, const char **why)
{
	const int fd = tool_files_module(info->path);

	if (fd < 0)
		*why = errno == ENOENT    ? "no longer exists"
		       : errno == EINVAL  ? "is no longer a file"
		       : errno == ENOEXEC ? "is no longer a complete program or library"
					  : "cannot be read";
	else
		*why = tool_module_file_doubt(info, fd);
	if (fd < 0 || *why == NULL)
		return fd;
	close(fd);
	return -1;
}

static bool is_later(const struct statx_timestamp *time, const struct timespec *written)
{
	return time->tv_sec > written->tv_sec ||
	       (time->tv_sec == written->tv_sec && (long)time->tv_nsec > written->tv_nsec);
}

/* Whether a file with the recorded build-id was written or made after the trace file. It may be another build,
 * because some makers give all builds one id. A copy may get an old time of its last write, but is a file that was
 * made later. A link to the file or a new name changes only the time of the last change (ctime), which counts where the
 * file system does not know when the file was made. */
static bool is_newer(int fd, const struct incstack__tracefile_module_info *info,
		     const struct timespec *written)
{
	struct statx status;

	if (info->identity.kind != INCSTACK__IDENTITY_BUILD_ID ||
	    statx(fd, "", AT_EMPTY_PATH, STATX_BASIC_STATS | STATX_BTIME, &status) != 0)
		return false;
	return is_later(&status.stx_mtime, written) ||
	       is_later(status.stx_mask & STATX_BTIME ? &status.stx_btime : &status.stx_ctime,
			written);
}

/* Opens the file of the module. Where it is not the one that was recorded, the file with the symbols of that
 * build will do. */
static int open_file(struct tool_module_symbols *symbols, const struct timespec *written)
{
	const struct incstack__identity *identity = &symbols->info->identity;
	const int fd = open_module(symbols->info, &symbols->why);
	int other = -1;

	if (fd >= 0)
		symbols->is_newer = is_newer(fd, symbols->info, written);
	else if (identity->kind == INCSTACK__IDENTITY_BUILD_ID)
		other = tool_debug_file_open(&symbols->files, identity->bytes, identity->length);
	symbols->has_only_symbols = other >= 0;
	if (other >= 0)
		symbols->why = NULL;
	return fd >= 0 ? fd : other;
}

/* Gives the file to libdwfl, which then finds the others. */
static bool report_module(struct tool_module_symbols *symbols, int fd)
{
	const struct incstack__tracefile_module_info *info = symbols->info;
	void **data = NULL;

	symbols->dwfl = dwfl_begin(&callbacks);
	if (symbols->dwfl != NULL)
		symbols->module = dwfl_report_elf(symbols->dwfl, tool_base_name(info->path),
						  info->path, fd, info->bias, true);
	if (symbols->module == NULL)
		close(fd);
	if (symbols->dwfl != NULL)
		dwfl_report_end(symbols->dwfl, NULL, NULL);
	if (symbols->module != NULL)
		dwfl_module_info(symbols->module, &data, NULL, NULL, NULL, NULL, NULL, NULL);
	if (data != NULL)
		*data = &symbols->files;
	return data != NULL;
}

/* Whether a file has debug information that libdw does not take. */
static bool has_bad_source(Dwfl_Module *module)
{
	GElf_Addr bias;
	Elf *elf = dwfl_module_getelf(module, &bias);
	Elf_Scn *section = NULL;
	size_t names;
	GElf_Shdr header;

	if (elf == NULL || elf_getshdrstrndx(elf, &names) != 0)
		return false;
	while ((section = elf_nextscn(elf, section)) != NULL) {
		const char *name = gelf_getshdr(section, &header) != NULL
					   ? elf_strptr(elf, names, header.sh_name)
					   : NULL;

		if (name != NULL && strcmp(name, ".debug_info") == 0)
			return true;
	}
	return false;
}

void tool_module_symbols_open(struct tool_module_symbols *symbols, const struct timespec *written,
			      uint64_t *left)
{
	const struct incstack__tracefile_module_info *info = symbols->info;
	Dwarf *dwarf;
	int fd;

	symbols->is_open = true;
	if (info->path[0] != '/')
		return; /* for example the vdso has no file */
	fd = open_file(symbols, written);
	if (fd < 0 || !report_module(symbols, fd))
		return;
	dwarf = dwfl_module_getdwarf(symbols->module, &symbols->source_bias);
	if (dwarf != NULL) {
		tool_debug_file_share(&symbols->files, dwarf, info->path);
		symbols->source = tool_source_make(dwarf, left);
	} else {
		symbols->has_bad_source = has_bad_source(symbols->module);
	}
	symbols->table = tool_symbol_table_make(symbols->module);
}

void tool_module_symbols_close(struct tool_module_symbols *symbols)
{
	tool_source_free(symbols->source);
	tool_symbol_table_free(symbols->table);
	if (symbols->dwfl != NULL)
		dwfl_end(symbols->dwfl);
	tool_debug_file_free(&symbols->files);
}

bool tool_module_symbols_is_damaged(const struct tool_module_symbols *symbols)
{
	return symbols->has_bad_source ||
	       (symbols->source != NULL && tool_source_is_damaged(symbols->source));
}

const char *tool_module_symbols_name(const struct tool_module_symbols *symbols, uint64_t pc)
{
	return symbols->table != NULL ? tool_symbol_table_find(symbols->table, pc) : NULL;
}

size_t tool_module_symbols_source(const struct tool_module_symbols *symbols, uint64_t pc,
				  struct tool_source_frame frames[TOOL_SOURCE_FRAMES_MOST])
{
	return symbols->source != NULL
		       ? tool_source_find(symbols->source, pc - symbols->source_bias, frames)
		       : 0;
}

uint64_t tool_module_symbols_start(const struct tool_module_symbols *symbols, uint64_t pc)
{
	GElf_Addr bias;
	Elf *elf = symbols->module != NULL && !symbols->has_only_symbols
			   ? dwfl_module_getelf(symbols->module, &bias)
			   : NULL;

	return tool_function_start(elf, pc - symbols->info->bias);
}
