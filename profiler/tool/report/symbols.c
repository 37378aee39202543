/* SPDX-License-Identifier: MIT
 *
 * Finds the functions of each code of the calling context tree. When a name in a module is needed for the first
 * time, the module's file is opened. Each code is looked up once, and each name is stored once.
 */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/table.h"
#include "tracefile/cct.h"
#include "tracefile/notes.h"
#include "tool/files.h"
#include "tool/names.h"
#include "demangle.h"
#include "jit_names.h"
#include "module_symbols.h"
#include "module_tell.h"
#include "symbols.h"
#include "texts.h"

/* Of a name, and of the path of a source file. */
enum { NAME_MAX_BYTES = 4096 };

struct known_code {
	uint64_t code;
	const struct tool_symbols_frame *frames;
	size_t count;
};

struct tool_symbols {
	const struct incstack__tracefile_reader *reader;
	struct timespec written;
	struct tool_module_symbols modules[INCSTACK__TRACEFILE_MODULES_MAX];
	unsigned module_count;
	struct known_code *codes;
	uint32_t code_count;
	struct incstack__table code_table;
	struct tool_texts texts;
	struct tool_jit_names *jit; /* null: not read yet */
	uint64_t left;              /* see source.h */
};

/* ---- texts --------------------------------------------------------------------------- */

/* Stores a text. Names and paths may be any bytes; a profile has UTF-8. */
static const char *store(struct tool_symbols *symbols, const char *text)
{
	char valid[NAME_MAX_BYTES + 1];

	valid[tool_name_valid(text, valid, NAME_MAX_BYTES)] = 0;
	return tool_text(&symbols->texts, valid);
}

/* The same for a build-id, in hexadecimal digits. */
static const char *store_id(struct tool_symbols *symbols, const struct incstack__identity *identity)
{
	char text[2 * INCSTACK__IDENTITY_MOST + 1] = "";

	for (size_t i = 0; i < identity->length; i++)
		snprintf(text + 2 * i, 3, "%02x", identity->bytes[i]);
	return store(symbols, text);
}

/* ---- modules ---------------------------------------------------------------------- */

static struct tool_module_symbols *module_of(struct tool_symbols *symbols,
					     const struct incstack__tracefile_module_info *info)
{
	struct tool_module_symbols *module;

	for (unsigned i = 0; i < symbols->module_count; i++)
		if (symbols->modules[i].info == info)
			return &symbols->modules[i];
	module = &symbols->modules[symbols->module_count++];
	*module = (struct tool_module_symbols){.info = info, .path = store(symbols, info->path)};
	if (info->identity.kind == INCSTACK__IDENTITY_BUILD_ID)
		module->build_id = store_id(symbols, &info->identity);
	return module;
}

/* ---- names ------------------------------------------------------------------------ */

static const char *demangled(struct tool_symbols *symbols, const char *name)
{
	char text[NAME_MAX_BYTES];

	return store(symbols, tool_demangle(name, text, sizeof(text)) ? text : name);
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
	return store(symbols, text);
}

/* ---- frames ------------------------------------------------------------------------ */

/* A frame with nothing but a name. */
static size_t one(const char *name, struct tool_symbols_frame *frames)
{
	frames[0] = (struct tool_symbols_frame){.name = name};
	return 1;
}

/* Cuts off the version of a symbol: NAME@VERSION. */
static const char *without_version(const char *name, char *text, size_t size)
{
	const size_t length = strcspn(name, "@");

	if (length == 0 || name[length] == 0 || length >= size)
		return name;
	memcpy(text, name, length);
	text[length] = 0;
	return text;
}

/* Names the function that has a pc and is not inlined. The name that the debug information has for it may lack
 * what the linker's name has, for example its parameters. */
static const char *name_function(struct tool_symbols *symbols, struct tool_module_symbols *module,
				 uint64_t pc, const char *source_name)
{
	const char *name = tool_module_symbols_name(module, pc);
	char text[512];

	if (name == NULL)
		name = source_name;
	module->codes++;
	if (name != NULL)
		return demangled(symbols, without_version(name, text, sizeof(text)));
	if (module->info->path[0] != '/')
		return store(symbols, module->path); /* the vdso has no file: one function */
	module->unnamed++;
	snprintf(text, sizeof(text), "%s+0x%" PRIx64, tool_base_name(module->info->path),
		 tool_module_symbols_start(module, pc));
	return store(symbols, text);
}

/* A frame without its name. The module may be null. */
static struct tool_symbols_frame place_of(struct tool_symbols *symbols,
					  const struct tool_module_symbols *module, uint64_t pc,
					  const char *file, int line)
{
	struct tool_symbols_frame frame = {.file = file ? store(symbols, file) : NULL,
					   .line = line};

	if (module) {
		frame.module = module->path;
		frame.build_id = module->build_id;
		frame.address = pc - module->info->bias;
	}
	return frame;
}

static size_t find_in_module(struct tool_symbols *symbols, struct tool_module_symbols *module,
			     uint64_t pc, struct tool_symbols_frame *frames)
{
	struct tool_source_frame source[TOOL_SOURCE_FRAMES_MOST];
	size_t count;

	if (!module->is_open)
		tool_module_symbols_open(module, &symbols->written, &symbols->left);
	count = tool_module_symbols_source(module, pc, source);
	if (count == 0)
		source[count++] = (struct tool_source_frame){0};
	for (size_t i = 0; i < count; i++) {
		const struct tool_source_frame *from = &source[i];

		frames[i] = place_of(symbols, module, pc, from->file, from->line);
		if (i + 1 == count)
			frames[i].name = name_function(symbols, module, pc, from->name);
		else
			frames[i].name =
				from->name != NULL ? demangled(symbols, from->name) : "[inlined]";
	}
	return count;
}

/* Takes the frames that the trace file has for a code. Returns their number, 0 if it has none. */
static size_t find_resolved(struct tool_symbols *symbols, uint64_t code,
			    struct tool_symbols_frame *frames)
{
	const struct incstack__resolved *resolved =
		incstack__tracefile_reader_resolved(symbols->reader);
	const struct incstack__tracefile_module_info *info;
	uint32_t first;
	uint32_t count = incstack__resolved_find(resolved, code, &first);
	uint64_t pc = 0;
	int exact = 1;

	if (count > TOOL_SOURCE_FRAMES_MOST)
		count = TOOL_SOURCE_FRAMES_MOST;
	info = count > 0 ? incstack__tracefile_code_module(symbols->reader, code, &pc, &exact)
			 : NULL;
	for (uint32_t i = 0; i < count; i++) {
		const struct incstack__resolved_frame from =
			incstack__resolved_frame(resolved, first + i);

		frames[i] = place_of(symbols, info ? module_of(symbols, info) : NULL,
				     pc - (exact ? 0 : 1), from.file[0] ? from.file : NULL,
				     (int)from.line);
		frames[i].name = store(symbols, from.name);
	}
	return count;
}

/* Names a code that stands for no pc. Returns 0 if it stands for one. */
static size_t find_special(struct tool_symbols *symbols, uint64_t code,
			   struct tool_symbols_frame *frames)
{
	if (code == INCSTACK__CCT_TRUNCATED)
		return one("[callers unknown]", frames);
	if (code == INCSTACK__CCT_POINTER)
		return one("[callers unknown: frame pointer]", frames);
	if (code == INCSTACK__CCT_NO_TRACE)
		return one("[no trace]", frames);
	if (code == INCSTACK__CCT_NO_THREAD)
		return one("[unknown thread]", frames);
	if (code >= INCSTACK__CCT_THREADS)
		return one(store(symbols, incstack__tracefile_reader_name(
						  symbols->reader, code - INCSTACK__CCT_THREADS)),
			   frames);
	return 0;
}

/* Looks up a code in its module. */
static size_t look_up(struct tool_symbols *symbols, uint64_t code,
		      struct tool_symbols_frame *frames)
{
	const struct incstack__tracefile_module_info *info;
	uint64_t pc;
	int exact;

	info = incstack__tracefile_code_module(symbols->reader, code, &pc, &exact);
	/* A return address may be the first address of the next function, so 1 is subtracted. */
	pc -= exact ? 0 : 1;
	if (info == NULL && !exact && pc == INCSTACK__TRACEFILE_GAP_PC - 1)
		return one("[callers not yet walked]", frames);
	if (info == NULL)
		return one(name_outside(symbols, pc), frames);
	return find_in_module(symbols, module_of(symbols, info), pc, frames);
}

static size_t find_frames(struct tool_symbols *symbols, uint64_t code,
			  struct tool_symbols_frame *frames)
{
	size_t count = find_special(symbols, code, frames);

	if (count == 0)
		count = find_resolved(symbols, code, frames);
	if (count == 0)
		count = look_up(symbols, code, frames);
	for (size_t i = 0; i + 1 < count; i++)
		frames[i].is_inlined = true;
	return count;
}

/* Remembers the frames of a code. Without memory, all codes that are new have one frame. */
static struct known_code add_code(struct tool_symbols *symbols, uint64_t code, uint32_t hash)
{
	static const struct tool_symbols_frame no_memory = {.name = TOOL_NO_MEMORY};
	struct tool_symbols_frame frames[TOOL_SOURCE_FRAMES_MOST];
	const size_t count = find_frames(symbols, code, frames);
	struct tool_symbols_frame *copy = malloc(count * sizeof(*copy));
	struct known_code *codes =
		tool_with_room(symbols->codes, symbols->code_count, sizeof(*codes));

	if (codes != NULL)
		symbols->codes = codes;
	if (copy == NULL || codes == NULL ||
	    incstack__table_insert(&symbols->code_table, hash, symbols->code_count) != 0) {
		free(copy);
		return (struct known_code){code, &no_memory, 1};
	}
	memcpy(copy, frames, count * sizeof(*copy));
	return codes[symbols->code_count++] = (struct known_code){code, copy, count};
}

const struct tool_symbols_frame *tool_symbols_frames(struct tool_symbols *symbols, uint64_t code,
						     size_t *count)
{
	const uint32_t hash = incstack__hash_pair(code, 0);
	struct known_code known;
	size_t cursor = hash;
	uint32_t at;

	while ((at = incstack__table_probe(&symbols->code_table, hash, &cursor)) != INCSTACK__NONE)
		if (symbols->codes[at].code == code)
			break;
	known = at != INCSTACK__NONE ? symbols->codes[at] : add_code(symbols, code, hash);
	*count = known.count;
	return known.frames;
}

const char *tool_symbols_name(struct tool_symbols *symbols, uint64_t code)
{
	size_t count;

	return tool_symbols_frames(symbols, code, &count)->name;
}

const char *tool_symbols_module(struct tool_symbols *symbols, uint64_t code)
{
	const struct incstack__tracefile_module_info *info;
	uint64_t pc;
	int exact;

	info = incstack__tracefile_code_module(symbols->reader, code, &pc, &exact);
	return info == NULL ? "" : tool_base_name(info->path);
}

const struct tool_symbols_frame *tool_symbols_known(const struct tool_symbols *symbols,
						    uint32_t number, uint64_t *code, size_t *count)
{
	const struct known_code *known = &symbols->codes[number];

	if (number >= symbols->code_count)
		return NULL;
	*code = known->code;
	*count = known->count;
	return known->frames;
}

/* Prints what was said about the modules when the names were written into the trace file. */
static void tell_remarks(const char *text, const char *before, FILE *out)
{
	while (*text != 0) {
		const size_t length = strcspn(text, "\n");

		fputs(before, out);
		tool_name_put(text, length, out);
		fputc('\n', out);
		text += length + (text[length] != 0);
	}
}

void tool_symbols_tell(const struct tool_symbols *symbols, const char *before, FILE *out)
{
	tell_remarks(
		incstack__resolved_remarks(incstack__tracefile_reader_resolved(symbols->reader)),
		before, out);
	tool_modules_tell(symbols->modules, symbols->module_count, before, out);
}

struct tool_symbols *tool_symbols_open(const struct incstack__tracefile_reader *reader,
				       const struct timespec *written)
{
	struct tool_symbols *symbols = calloc(1, sizeof(*symbols));

	if (symbols == NULL)
		return NULL;
	symbols->reader = reader;
	symbols->written = *written;
	symbols->left = TOOL_SOURCE_WORK;
	if (incstack__table_init(&symbols->code_table) == 0 &&
	    tool_texts_init(&symbols->texts) == 0)
		return symbols;
	tool_symbols_close(symbols);
	return NULL;
}

void tool_symbols_close(struct tool_symbols *symbols)
{
	if (symbols == NULL)
		return;
	for (unsigned i = 0; i < symbols->module_count; i++)
		tool_module_symbols_close(&symbols->modules[i]);
	tool_jit_names_free(symbols->jit);
	tool_texts_free(&symbols->texts);
	for (uint32_t i = 0; i < symbols->code_count; i++)
		free((void *)(uintptr_t)symbols->codes[i].frames);
	free(symbols->codes);
	free(symbols->code_table.slots);
	free(symbols);
}
