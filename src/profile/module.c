/* SPDX-License-Identifier: MIT
 *
 * Where the code of frames lies: modules, how they were mapped, and places in them. Each distinct one is
 * stored once. The numbers that are handed out are from 1, because 0 means unknown.
 */
#include <stdlib.h>
#include <string.h>

#include "module.h"

int incstack__modules_init(struct incstack__modules *modules)
{
	int error = incstack__table_init(&modules->module_table);

	if (!error)
		error = incstack__table_init(&modules->mapping_table);
	return error ? error : incstack__table_init(&modules->place_table);
}

void incstack__modules_free(struct incstack__modules *modules)
{
	free(modules->modules);
	free(modules->module_table.slots);
	free(modules->mappings);
	free(modules->mapping_table.slots);
	free(modules->places);
	free(modules->place_table.slots);
}

/* Makes room for one more element, and inserts its index into the table. */
static int add(void **array, size_t *room, size_t used, size_t element,
	       struct incstack__table *table, uint32_t hash)
{
	int error = used < INCSTACK__NONE - 1 ? incstack__reserve(array, room, used + 1, element)
					      : INCSTACK_ELIMIT;

	return error ? error : incstack__table_insert(table, hash, (uint32_t)used);
}

static int module_intern(struct incstack__modules *all, const struct incstack__module *module,
			 uint32_t *number)
{
	const uint32_t hash = incstack__hash_pair(module->file, module->build_id);
	size_t cursor = hash;
	uint32_t at;
	int error;

	while ((at = incstack__table_probe(&all->module_table, hash, &cursor)) != INCSTACK__NONE)
		if (all->modules[at].file == module->file &&
		    all->modules[at].build_id == module->build_id) {
			*number = at + 1;
			return 0;
		}
	error = add((void **)&all->modules, &all->modules_room, all->modules_used,
		    sizeof(*all->modules), &all->module_table, hash);
	if (error)
		return error;
	all->modules[all->modules_used++] = *module;
	*number = (uint32_t)all->modules_used;
	return 0;
}

/* Makes a string a name. *name is its number + 1; 0 for null and for an empty string. */
static int name_of(struct incstack_profile *profile, const char *text, uint32_t *name)
{
	int error;

	*name = 0;
	if (!text || !*text)
		return 0;
	error = incstack__name_intern(profile, text, strlen(text), name);
	++*name;
	return error;
}

int incstack__module_intern(struct incstack_profile *profile, const char *file,
			    const char *build_id, uint32_t *number)
{
	struct incstack__module module;
	int error = name_of(profile, file, &module.file);

	*number = 0;
	if (!error)
		error = name_of(profile, build_id, &module.build_id);
	if (error || (!module.file && !module.build_id))
		return error;
	return module_intern(&profile->modules, &module, number);
}

static bool mappings_equal(const struct incstack__mapping *a, const struct incstack__mapping *b)
{
	return a->start == b->start && a->limit == b->limit && a->offset == b->offset &&
	       a->module == b->module && a->has == b->has;
}

int incstack__mapping_intern(struct incstack_profile *profile,
			     const struct incstack__mapping *mapping, uint32_t *number)
{
	struct incstack__modules *all = &profile->modules;
	const uint32_t hash = incstack__hash_pair(
		mapping->start + mapping->limit * 0x9e3779b97f4a7c15u,
		mapping->offset +
			((uint64_t)mapping->module << 8 | mapping->has) * 0xc2b2ae3d27d4eb4fu);
	size_t cursor = hash;
	uint32_t at;
	int error;

	while ((at = incstack__table_probe(&all->mapping_table, hash, &cursor)) != INCSTACK__NONE)
		if (mappings_equal(&all->mappings[at], mapping)) {
			*number = at + 1;
			return 0;
		}
	error = add((void **)&all->mappings, &all->mappings_room, all->mappings_used,
		    sizeof(*all->mappings), &all->mapping_table, hash);
	if (error)
		return error;
	all->mappings[all->mappings_used++] = *mapping;
	*number = (uint32_t)all->mappings_used;
	return 0;
}

static bool places_equal(const struct incstack__place *a, const struct incstack__place *b)
{
	return a->address == b->address && a->mapping == b->mapping && a->folded == b->folded;
}

int incstack__place_intern(struct incstack_profile *profile, const struct incstack__place *place,
			   uint32_t *number)
{
	struct incstack__modules *all = &profile->modules;
	const uint32_t hash =
		incstack__hash_pair(place->address, (uint64_t)place->mapping << 1 | place->folded);
	size_t cursor = hash;
	uint32_t at;
	int error;

	while ((at = incstack__table_probe(&all->place_table, hash, &cursor)) != INCSTACK__NONE)
		if (places_equal(&all->places[at], place)) {
			*number = at + 1;
			return 0;
		}
	error = add((void **)&all->places, &all->places_room, all->places_used,
		    sizeof(*all->places), &all->place_table, hash);
	if (error)
		return error;
	all->places[all->places_used++] = *place;
	*number = (uint32_t)all->places_used;
	return 0;
}

int incstack__code_intern(struct incstack_profile *profile, const struct incstack__code *code,
			  struct incstack__frame *frame)
{
	struct incstack__mapping mapping = {0};
	struct incstack__place place = {.address = code->address};
	int error = incstack__module_intern(profile, code->module, code->build_id, &mapping.module);

	frame->module = mapping.module;
	if (error || (!code->address && !mapping.module))
		return error;
	if (mapping.module)
		error = incstack__mapping_intern(profile, &mapping, &place.mapping);
	return error ? error : incstack__place_intern(profile, &place, &frame->place);
}

static const char *text_of(const struct incstack_profile *profile, uint32_t name)
{
	return name ? incstack__text(profile, name - 1) : NULL;
}

void incstack__code_of(const struct incstack_profile *profile, const struct incstack__frame *frame,
		       struct incstack__code *code)
{
	*code = (struct incstack__code){0};
	if (frame->module) {
		const struct incstack__module *m = &profile->modules.modules[frame->module - 1];

		code->module = text_of(profile, m->file);
		code->build_id = text_of(profile, m->build_id);
	}
	if (frame->place)
		code->address = profile->modules.places[frame->place - 1].address;
}

static int module_copy(const struct incstack_profile *from, uint32_t number,
		       struct incstack_profile *into, uint32_t *copy)
{
	const struct incstack__module *module;

	*copy = 0;
	if (!number)
		return 0;
	module = &from->modules.modules[number - 1];
	return incstack__module_intern(into, text_of(from, module->file),
				       text_of(from, module->build_id), copy);
}

static int mapping_copy(const struct incstack_profile *from, uint32_t number,
			struct incstack_profile *into, uint32_t *copy)
{
	struct incstack__mapping mapping;
	int error;

	*copy = 0;
	if (!number)
		return 0;
	mapping = from->modules.mappings[number - 1];
	error = module_copy(from, mapping.module, into, &mapping.module);
	return error ? error : incstack__mapping_intern(into, &mapping, copy);
}

int incstack__code_copy(const struct incstack_profile *from, const struct incstack__frame *frame,
			struct incstack_profile *into, struct incstack__frame *copy)
{
	struct incstack__place place;
	int error = module_copy(from, frame->module, into, &copy->module);

	copy->place = 0;
	if (error || !frame->place)
		return error;
	place = from->modules.places[frame->place - 1];
	error = mapping_copy(from, place.mapping, into, &place.mapping);
	return error ? error : incstack__place_intern(into, &place, &copy->place);
}
