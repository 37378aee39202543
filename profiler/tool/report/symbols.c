/* SPDX-License-Identifier: MIT
 *
 * Finds the name of each code of the calling context tree with libdwfl. When a name in a module is
 * needed for the first time, the module's file is opened and given to libdwfl (a session), with the
 * bias that the module had in the recorded process. Each module has a session of its own, because
 * two modules may have had the same addresses at different times. Each code is looked up once, and
 * each text is stored once.
 */
#include <dlfcn.h>
#include <elfutils/libdwfl.h>
#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/table.h"
#include "tracefile/cct.h"
#include "tracefile/notes.h"
#include "tool/files.h"
#include "tool/module_file.h"
#include "tool/names.h"
#include "debug_file.h"
#include "function_start.h"
#include "jit_names.h"
#include "symbols.h"

typedef char *demangle_fn(const char *name, char *buffer, size_t *length, int *status);

static demangle_fn *demangle; /* null: names stay mangled */

struct session {
	const struct incstack__tracefile_module_info *info;
	Dwfl *dwfl;
	Dwfl_Module *module;
	const char *why; /* not null: why its names cannot be read */
	bool is_newer;   /* the file has the recorded build-id, but is newer than the trace file */
};

struct known_code {
	uint64_t code;
	const char *name;
};

struct tool_symbols {
	const struct incstack__tracefile_reader *reader;
	struct timespec written;
	struct session sessions[INCSTACK__TRACEFILE_MODULES_MAX];
	unsigned session_count;
	struct known_code *codes;
	uint32_t code_count;
	struct incstack__table code_table;
	char **texts; /* each different name once */
	uint32_t text_count;
	struct incstack__table text_table;
	struct tool_jit_names *jit; /* null: not read yet */
};

/* libdwfl need not find the file of a module, because session_open() gives it the open file. */
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

static const char no_memory[] = "[out of memory]";

/* Returns the array with room for one more element. The array grows when its count is 0 or a power
 * of two. Returns null if there is no memory. The array stays as it was then. */
static void *with_room(void *array, uint32_t count, size_t element)
{
	if ((count & (count - 1)) != 0)
		return array;
	return realloc(array, (count == 0 ? 1 : 2 * (size_t)count) * element);
}

/* ---- each name once ------------------------------------------------------------- */

static uint32_t text_hash(const char *text)
{
	uint64_t hash = 0xcbf29ce484222325ull;

	for (; *text != 0; text++)
		hash = (hash ^ (unsigned char)*text) * 0x100000001b3ull;
	return incstack__hash_pair(hash, 0);
}

static int add_text(struct tool_symbols *symbols, char *text, uint32_t hash)
{
	char **texts = with_room(symbols->texts, symbols->text_count, sizeof(*texts));

	if (texts == NULL)
		return 0;
	symbols->texts = texts;
	if (incstack__table_insert(&symbols->text_table, hash, symbols->text_count) != 0)
		return 0;
	texts[symbols->text_count++] = text;
	return 1;
}

/* Returns the only copy of the text, or no_memory. */
static const char *intern(struct tool_symbols *symbols, const char *text)
{
	const uint32_t hash = text_hash(text);
	size_t cursor = hash;
	uint32_t at;
	char *copy;

	while ((at = incstack__table_probe(&symbols->text_table, hash, &cursor)) != INCSTACK__NONE)
		if (strcmp(symbols->texts[at], text) == 0)
			return symbols->texts[at];
	copy = strdup(text);
	if (copy != NULL && add_text(symbols, copy, hash))
		return copy;
	free(copy);
	return no_memory;
}

/* ---- modules ---------------------------------------------------------------------- */

static const char *base_name(const char *path)
{
	const char *slash = strrchr(path, '/');

	return slash == NULL ? path : slash + 1;
}

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

/* Whether a file with the recorded build-id is newer than the trace file. It may be another build,
 * because some makers give all builds one id. The test uses the time of the last change (ctime),
 * because anybody can set back the time of the last write. */
static bool is_newer(int fd, const struct incstack__tracefile_module_info *info,
		     const struct timespec *written)
{
	struct stat status;

	return info->identity.kind == INCSTACK__IDENTITY_BUILD_ID && fstat(fd, &status) == 0 &&
	       (status.st_ctim.tv_sec > written->tv_sec ||
		(status.st_ctim.tv_sec == written->tv_sec &&
		 status.st_ctim.tv_nsec > written->tv_nsec));
}

static void session_open(struct session *session, const struct timespec *written,
			 const struct incstack__tracefile_module_info *info)
{
	int fd;

	session->info = info;
	if (info->path[0] != '/')
		return; /* for example the vdso has no file */
	fd = open_module(info, &session->why);
	if (fd < 0)
		return;
	session->is_newer = is_newer(fd, info, written);
	session->dwfl = dwfl_begin(&callbacks);
	if (session->dwfl != NULL)
		session->module = dwfl_report_elf(session->dwfl, base_name(info->path), info->path,
						  fd, info->bias, true);
	if (session->module == NULL)
		close(fd);
	if (session->dwfl != NULL)
		dwfl_report_end(session->dwfl, NULL, NULL);
}

static struct session *session_of(struct tool_symbols *symbols,
				  const struct incstack__tracefile_module_info *info)
{
	for (unsigned i = 0; i < symbols->session_count; i++)
		if (symbols->sessions[i].info == info)
			return &symbols->sessions[i];
	session_open(&symbols->sessions[symbols->session_count], &symbols->written, info);
	return &symbols->sessions[symbols->session_count++];
}

/* ---- names ------------------------------------------------------------------------ */

static const char *demangled(struct tool_symbols *symbols, const char *name)
{
	const char *result;
	char *text = NULL;
	int status = 0;

	if (demangle != NULL && strncmp(name, "_Z", 2) == 0)
		text = demangle(name, NULL, NULL, &status);
	result = intern(symbols, text != NULL ? text : name);
	free(text);
	return result;
}

static FILE *open_jit(enum tool_files_jit which, uint64_t pid, uint64_t since_ns, uint32_t owner)
{
	const int fd = tool_files_jit(which, pid, since_ns, owner);
	FILE *stream = fd < 0 ? NULL : fdopen(fd, "r");

	if (fd >= 0 && !stream)
		close(fd);
	return stream;
}

/* Reads the names that a JIT compiler has written for the process `pid`. Files that were last
 * written before `since_ns` belong to an earlier process with the same pid. */
static struct tool_jit_names *read_jit(uint64_t pid, uint64_t since_ns, uint32_t owner)
{
	FILE *map = open_jit(TOOL_FILES_JIT_MAP, pid, since_ns, owner);
	FILE *dump = open_jit(TOOL_FILES_JIT_DUMP, pid, since_ns, owner);
	struct tool_jit_names *names = tool_jit_names_of(map, dump);

	if (map != NULL)
		fclose(map);
	if (dump != NULL)
		fclose(dump);
	return names;
}

/* Names code that is in no module, by the files of a JIT compiler or else by its address. If the
 * process ran before it was sampled, these files may be older than the profile. */
static const char *name_outside(struct tool_symbols *symbols, uint64_t pc)
{
	const struct incstack__tracefile_header *header =
		incstack__tracefile_reader_header(symbols->reader);
	const struct incstack__tracefile_totals *totals =
		incstack__tracefile_reader_totals(symbols->reader);
	const int ran_before = incstack__tracefile_has_note(totals, INCSTACK__NOTE_ATTACHED) ||
			       incstack__tracefile_has_note(totals, INCSTACK__NOTE_OUTSIDE);
	const char *name;
	char text[32];

	if (symbols->jit == NULL)
		symbols->jit =
			read_jit(header->pid, ran_before ? 0 : header->start_ns, header->owner);
	name = tool_jit_names_find(symbols->jit, pc);
	if (name != NULL)
		return demangled(symbols, name);
	snprintf(text, sizeof(text), "0x%" PRIx64, pc);
	return intern(symbols, text);
}

static const char *find_name(struct tool_symbols *symbols, uint64_t code)
{
	const struct incstack__tracefile_module_info *info;
	const struct session *session;
	const char *name = NULL;
	Elf *elf = NULL;
	GElf_Addr bias;
	char text[512];
	uint64_t pc;
	int exact;

	if (code == INCSTACK__CCT_TRUNCATED)
		return "[callers unknown]";
	if (code == INCSTACK__CCT_NO_TRACE)
		return "[no trace]";
	if (code == INCSTACK__CCT_NO_THREAD)
		return "[unknown thread]";
	if (code >= INCSTACK__CCT_THREADS)
		return intern(symbols, incstack__tracefile_reader_name(
					       symbols->reader, code - INCSTACK__CCT_THREADS));
	info = incstack__tracefile_code_module(symbols->reader, code, &pc, &exact);
	/* A return address may be the first address of the next function, so 1 is subtracted. */
	pc -= exact ? 0 : 1;
	if (info == NULL && !exact && pc == INCSTACK__TRACEFILE_GAP_PC - 1)
		return "[callers not yet walked]";
	if (info == NULL)
		return name_outside(symbols, pc);
	session = session_of(symbols, info);
	if (session->module != NULL)
		name = dwfl_module_addrname(session->module, pc);
	if (name != NULL)
		return demangled(symbols, name);
	if (session->module != NULL)
		elf = dwfl_module_getelf(session->module, &bias);
	snprintf(text, sizeof(text), "%s+0x%" PRIx64, base_name(info->path),
		 tool_function_start(elf, pc - info->bias));
	return intern(symbols, text);
}

/* Remembers the name of a code. Without memory, the code is looked up again next time. */
static void add_code(struct tool_symbols *symbols, struct known_code code, uint32_t hash)
{
	struct known_code *codes = with_room(symbols->codes, symbols->code_count, sizeof(*codes));

	if (codes == NULL)
		return;
	symbols->codes = codes;
	if (incstack__table_insert(&symbols->code_table, hash, symbols->code_count) == 0)
		codes[symbols->code_count++] = code;
}

const char *tool_symbols_name(struct tool_symbols *symbols, uint64_t code)
{
	const uint32_t hash = incstack__hash_pair(code, 0);
	size_t cursor = hash;
	const char *name;
	uint32_t at;

	while ((at = incstack__table_probe(&symbols->code_table, hash, &cursor)) != INCSTACK__NONE)
		if (symbols->codes[at].code == code)
			return symbols->codes[at].name;
	name = find_name(symbols, code);
	add_code(symbols, (struct known_code){code, name}, hash);
	return name;
}

const char *tool_symbols_module(struct tool_symbols *symbols, uint64_t code)
{
	const struct incstack__tracefile_module_info *info;
	uint64_t pc;
	int exact;

	info = incstack__tracefile_code_module(symbols->reader, code, &pc, &exact);
	return info == NULL ? "" : base_name(info->path);
}

enum { FILES_TOLD = 10 };

static void tell_session(const struct session *session, const char *before, FILE *out)
{
	fprintf(out, "%s%s", before, session->why != NULL ? "" : "the file ");
	tool_name_clip(session->info->path, SIZE_MAX, '>', out);
	if (session->why != NULL)
		fprintf(out,
			" %s, so its functions are shown as addresses; restore the file that ran, "
			"or record again\n",
			session->why);
	else
		fputs(" was replaced or changed after the recording, but has the recorded "
		      "build-id, so its names are used\n",
		      out);
}

void tool_symbols_tell(const struct tool_symbols *symbols, const char *before, FILE *out)
{
	unsigned count = 0;

	for (unsigned i = 0; i < symbols->session_count; i++) {
		const struct session *session = &symbols->sessions[i];

		if ((session->why == NULL && !session->is_newer) || ++count > FILES_TOLD)
			continue;
		tell_session(session, before, out);
	}
	if (count > FILES_TOLD)
		fprintf(out, "%s%u more files are missing or changed\n", before,
			count - FILES_TOLD);
}

/* Finds the demangler of libstdc++, if libstdc++ is installed. Users who profile C++ programs have
 * libstdc++; others do not need it. It stays loaded. */
void tool_symbols_prepare(void)
{
	void *library = dlopen("libstdc++.so.6", RTLD_NOW | RTLD_LOCAL);
	void *symbol = library == NULL ? NULL : dlsym(library, "__cxa_demangle");

	memcpy(&demangle, &symbol, sizeof(demangle));
}

struct tool_symbols *tool_symbols_open(const struct incstack__tracefile_reader *reader,
				       const struct timespec *written)
{
	struct tool_symbols *symbols = calloc(1, sizeof(*symbols));

	if (symbols == NULL)
		return NULL;
	symbols->reader = reader;
	symbols->written = *written;
	if (incstack__table_init(&symbols->code_table) == 0 &&
	    incstack__table_init(&symbols->text_table) == 0)
		return symbols;
	tool_symbols_close(symbols);
	return NULL;
}

void tool_symbols_close(struct tool_symbols *symbols)
{
	if (symbols == NULL)
		return;
	for (unsigned i = 0; i < symbols->session_count; i++)
		if (symbols->sessions[i].dwfl != NULL)
			dwfl_end(symbols->sessions[i].dwfl);
	tool_jit_names_free(symbols->jit);
	for (uint32_t i = 0; i < symbols->text_count; i++)
		free(symbols->texts[i]);
	free(symbols->texts);
	free(symbols->text_table.slots);
	free(symbols->codes);
	free(symbols->code_table.slots);
	free(symbols);
}
