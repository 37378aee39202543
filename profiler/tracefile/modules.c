/* SPDX-License-Identifier: MIT
 *
 * Reads the MODULES blocks of a trace file, and names code by module and offset. So an address
 * that belonged first to one library and later to another has two codes.
 */
#include <stdlib.h>

#include "internal.h"

#define CODE_OFFSET_BITS 47
#define CODE_OFFSET ((1ull << CODE_OFFSET_BITS) - 1)
#define CODE_EXACT (1ull << CODE_OFFSET_BITS)
#define CODE_MODULE_SHIFT 48

const char incstack__tracefile_no_memory[] = "out of memory";
const char incstack__tracefile_too_many[] =
	"too many different modules; the names of some are missing";

/* A module that was replaced at its place by another build of itself is another module. */
static bool same_module(const struct incstack__tracefile_module_info *have,
			const struct incstack__tracefile_module *want, const unsigned char *path,
			const struct incstack__identity *identity)
{
	return have->low == want->low && have->high == want->high && have->bias == want->bias &&
	       strlen(have->path) == want->path_length &&
	       memcmp(have->path, path, want->path_length) == 0 &&
	       incstack__identity_same(&have->identity, identity);
}

/* Takes the identity that follows the path. */
static struct incstack__identity identity_of(const struct incstack__tracefile_module *module,
					     const unsigned char *path)
{
	struct incstack__identity identity = {.kind = module->identity,
					      .length = module->identity_length};

	memcpy(identity.bytes, path + module->path_length, identity.length);
	return identity;
}

static uint32_t hash_of(const struct incstack__tracefile_module *module)
{
	return incstack__hash_pair(module->low, module->high ^ module->path_length);
}

/* Makes room for one more module, and the index for the first. */
static int grow(struct incstack__tracefile_modules_table *table)
{
	const uint32_t room = table->room != 0 ? 2 * table->room : 64;
	struct incstack__tracefile_module_info *modules;

	if (!table->index.slots && incstack__table_init(&table->index) != 0)
		return INCSTACK_ENOMEM;
	if (table->count < table->room)
		return 0;
	modules = realloc(table->modules, room * sizeof(*modules));
	if (!modules)
		return INCSTACK_ENOMEM;
	table->modules = modules;
	table->room = room;
	return 0;
}

/* Finds the module, or adds it. Its path and its identity follow each other. */
static const char *add_module(struct incstack__tracefile_modules_table *table,
			      const struct incstack__tracefile_module *module,
			      const unsigned char *path, uint32_t *index)
{
	const struct incstack__identity identity = identity_of(module, path);
	const uint32_t hash = hash_of(module);
	size_t cursor = hash;
	char *copy;

	if (grow(table) != 0)
		return incstack__tracefile_no_memory;
	while ((*index = incstack__table_probe(&table->index, hash, &cursor)) != INCSTACK__NONE)
		if (same_module(&table->modules[*index], module, path, &identity))
			return NULL;
	if (table->count == INCSTACK__TRACEFILE_MODULES_MAX)
		return incstack__tracefile_too_many;
	copy = calloc(1, (size_t)module->path_length + 1);
	if (!copy || incstack__table_insert(&table->index, hash, table->count) != 0) {
		free(copy);
		return incstack__tracefile_no_memory;
	}
	memcpy(copy, path, module->path_length);
	table->modules[table->count] =
		(struct incstack__tracefile_module_info){.bias = module->bias,
							 .low = module->low,
							 .high = module->high,
							 .path = copy,
							 .identity = identity};
	*index = table->count++;
	return NULL;
}

static int by_low(const void *a, const void *b)
{
	const struct incstack__tracefile_span *left = a;
	const struct incstack__tracefile_span *right = b;

	return left->low < right->low ? -1 : left->low > right->low;
}

static const char *read_spans(struct incstack__tracefile_modules_table *table,
			      struct incstack__tracefile_epoch *epoch, const unsigned char *at,
			      const unsigned char *end)
{
	const uint32_t claimed = epoch->count;
	struct incstack__tracefile_module module;
	const char *told = NULL;

	epoch->count = 0;
	for (uint32_t i = 0; i < claimed; i++) {
		struct incstack__tracefile_span *span = &epoch->spans[epoch->count];
		const char *problem;

		if ((size_t)(end - at) < sizeof(module))
			return "a list of modules ends early";
		memcpy(&module, at, sizeof(module));
		at += sizeof(module);
		if ((size_t)(end - at) < module.path_length || memchr(at, 0, module.path_length))
			return "the path of a module is malformed";
		if ((size_t)(end - at) - module.path_length < module.identity_length ||
		    module.identity_length > INCSTACK__IDENTITY_MOST ||
		    module.identity >= INCSTACK__IDENTITY_KINDS)
			return "the identity of a module is malformed";
		if (module.low >= module.high || module.high - module.low > CODE_OFFSET)
			return "the address range of a module is malformed";
		problem = add_module(table, &module, at, &span->module);
		at += module.path_length + module.identity_length;
		if (problem == incstack__tracefile_too_many) {
			told = problem;
			continue;
		}
		if (problem)
			return problem;
		span->low = module.low;
		span->high = module.high;
		epoch->count++;
	}
	return at == end ? told : "bytes are left behind a list of modules";
}

static struct incstack__tracefile_epoch *new_epoch(uint32_t number, uint32_t count)
{
	struct incstack__tracefile_epoch *epoch = calloc(1, sizeof(*epoch));

	if (!epoch)
		return NULL;
	epoch->number = number;
	epoch->count = count;
	epoch->spans = calloc((size_t)count + 1, sizeof(*epoch->spans));
	if (epoch->spans)
		return epoch;
	free(epoch);
	return NULL;
}

static void free_epoch(struct incstack__tracefile_epoch *epoch)
{
	free(epoch->spans);
	free(epoch);
}

static const char *add_epoch(struct incstack__tracefile_modules_table *table,
			     struct incstack__tracefile_epoch *epoch)
{
	const uint32_t count = table->epoch_count;
	struct incstack__tracefile_epoch **grown = table->epochs;

	if ((count & (count - 1)) == 0)
		grown = realloc(grown, (count == 0 ? 1 : 2 * (size_t)count) * sizeof(*grown));
	if (!grown)
		return incstack__tracefile_no_memory;
	table->epochs = grown;
	table->epochs[table->epoch_count++] = epoch;
	return NULL;
}

const char *incstack__tracefile_modules_read(struct incstack__tracefile_modules_table *table,
					     const unsigned char *payload, size_t length)
{
	struct incstack__tracefile_epoch *epoch;
	const char *problem;
	uint32_t words[2];

	if (length < sizeof(words))
		return "a list of modules is too short";
	memcpy(words, payload, sizeof(words));
	if (words[1] > (length - sizeof(words)) / sizeof(struct incstack__tracefile_module))
		return "a list of modules claims more than it holds";
	epoch = new_epoch(words[0], words[1]);
	if (!epoch)
		return incstack__tracefile_no_memory;
	problem = read_spans(table, epoch, payload + sizeof(words), payload + length);
	if (!problem || problem == incstack__tracefile_too_many) {
		const char *const told = problem;

		qsort(epoch->spans, epoch->count, sizeof(*epoch->spans), by_low);
		problem = add_epoch(table, epoch);
		if (!problem)
			return told;
	}
	free_epoch(epoch);
	return problem;
}

void incstack__tracefile_modules_free(struct incstack__tracefile_modules_table *table)
{
	for (uint32_t i = 0; i < table->epoch_count; i++)
		free_epoch(table->epochs[i]);
	for (uint32_t i = 0; i < table->count; i++)
		free(table->modules[i].path);
	free(table->epochs);
	free(table->index.slots);
	free(table->modules);
}

static const struct incstack__tracefile_span *
find_span(const struct incstack__tracefile_epoch *epoch, uint64_t pc)
{
	uint32_t low = 0;
	uint32_t high = epoch->count;

	while (low < high) {
		const uint32_t middle = low + (high - low) / 2;

		if (epoch->spans[middle].low <= pc)
			low = middle + 1;
		else
			high = middle;
	}
	if (low == 0 || pc >= epoch->spans[low - 1].high)
		return NULL;
	return &epoch->spans[low - 1];
}

uint64_t incstack__tracefile_code(const struct incstack__tracefile_chunk *chunk, uint32_t object)
{
	const uint64_t pc = chunk->pc[object];
	const uint64_t exact = chunk->flags[object] & INCSTACK__TRACEFILE_EXACT ? CODE_EXACT : 0;
	const struct incstack__tracefile_span *span = NULL;

	/* A return address may lie right behind its module. */
	if (chunk->epoch)
		span = find_span(chunk->epoch, exact ? pc : pc - 1);
	if (!span)
		return exact | (pc & CODE_OFFSET);
	return (uint64_t)(span->module + 1) << CODE_MODULE_SHIFT | exact |
	       ((pc - span->low) & CODE_OFFSET);
}

const struct incstack__tracefile_module_info *
incstack__tracefile_modules_of(const struct incstack__tracefile_modules_table *table, uint64_t code,
			       uint64_t *pc, int *exact)
{
	const uint64_t module = code >> CODE_MODULE_SHIFT;

	*exact = (code & CODE_EXACT) != 0;
	*pc = code & CODE_OFFSET;
	if (module == 0 || module > table->count)
		return NULL;
	*pc += table->modules[module - 1].low;
	return &table->modules[module - 1];
}
