/* SPDX-License-Identifier: MIT
 *
 * Makes the dictionary of an OTLP file. It is one message. The elements of all its tables are mixed there: an
 * element's number is its rank among those of its own table.
 */
#include "otlp_dictionary.h"

#include <stdlib.h>
#include <string.h>

/* Ends an element, and gives it a number. */
static int end_element(struct incstack__otlp_dictionary *d, uint32_t table, uint32_t *number)
{
	incstack__bytes_message(&d->message, table, &d->element);
	if (!d->message.error && d->used[table] == INT32_MAX)
		d->message.error = INCSTACK_ELIMIT;
	*number = d->used[table]++;
	return d->message.error;
}

int incstack__otlp_open(struct incstack__otlp_dictionary *d, const struct incstack_profile *profile)
{
	uint32_t none;
	int error = incstack__function_set_init(&d->functions);

	d->profile = profile;
	if (!error)
		error = incstack__table_init(&d->chains.table);
	if (!error)
		error = incstack__table_init(&d->location_table);
	for (uint32_t table = OTLP_MAPPINGS; table < OTLP_TABLES && !error; table++)
		error = end_element(d, table, &none);
	return error;
}

void incstack__otlp_close(struct incstack__otlp_dictionary *d)
{
	incstack__function_set_free(&d->functions);
	incstack__pprof_chains_free(&d->chains);
	incstack__bytes_free(&d->message);
	incstack__bytes_free(&d->element);
	incstack__bytes_free(&d->inner);
	incstack__bytes_free(&d->packed);
	free(d->location_table.slots);
	free(d->locations);
	free(d->strings_of);
	free(d->attributes_of);
	free(d->threads_of);
}

/* ---- strings ----------------------------------------------------------------------------- */

int incstack__otlp_string(struct incstack__otlp_dictionary *d, const char *text, size_t length,
			  uint32_t *number)
{
	incstack__bytes_add(&d->element, text, length);
	return end_element(d, OTLP_STRINGS, number);
}

/* Makes room for `need` numbers. New ones are 0. */
static int reserve_numbers(uint32_t **numbers, size_t *used, size_t *room, size_t need)
{
	int error = incstack__reserve((void **)numbers, room, need, sizeof(**numbers));

	while (!error && *used < need)
		(*numbers)[(*used)++] = 0;
	return error;
}

int incstack__otlp_name(struct incstack__otlp_dictionary *d, uint32_t name, uint32_t *number)
{
	const char *text;
	int error;

	*number = 0;
	if (!name)
		return 0;
	error = reserve_numbers(&d->strings_of, &d->names, &d->strings_room,
				d->profile->names_used);
	if (error)
		return error;
	*number = d->strings_of[name - 1];
	if (*number)
		return 0;
	text = incstack__text(d->profile, name - 1);
	error = incstack__otlp_string(d, text, strlen(text), number);
	d->strings_of[name - 1] = *number;
	return error;
}

/* ---- attributes -------------------------------------------------------------------------- */

/* Adds an attribute with a text, or with a number if the text is null. */
static int add_attribute(struct incstack__otlp_dictionary *d, uint32_t key, const char *text,
			 uint64_t value, uint32_t unit, uint32_t *number)
{
	if (text) {
		incstack__bytes_field(&d->inner, OTLP_ANY_STRING, text, strlen(text));
	} else {
		incstack__bytes_varint(&d->inner, OTLP_ANY_NUMBER << 3); /* also a 0 is a value */
		incstack__bytes_varint(&d->inner, value);
	}
	incstack__bytes_number(&d->element, OTLP_ATTRIBUTE_KEY, key);
	incstack__bytes_message(&d->element, OTLP_ATTRIBUTE_VALUE, &d->inner);
	incstack__bytes_number(&d->element, OTLP_ATTRIBUTE_UNIT, unit);
	return end_element(d, OTLP_ATTRIBUTES, number);
}

int incstack__otlp_label(struct incstack__otlp_dictionary *d, uint32_t label, uint32_t *number)
{
	const struct incstack__label *from = &d->profile->extra.labels[label];
	uint32_t key, unit;
	int error = reserve_numbers(&d->attributes_of, &d->labels, &d->attributes_room,
				    d->profile->extra.labels_used);

	if (error)
		return error;
	*number = d->attributes_of[label];
	if (*number)
		return 0;
	error = incstack__otlp_name(d, from->key, &key);
	if (!error)
		error = incstack__otlp_name(d, from->unit, &unit);
	if (!error)
		error = add_attribute(
			d, key, from->text ? incstack__text(d->profile, from->text - 1) : NULL,
			from->number, unit, number);
	d->attributes_of[label] = *number;
	return error;
}

static int add_key(struct incstack__otlp_dictionary *d, const char *key, const char *text,
		   uint64_t value, uint32_t *number)
{
	uint32_t string;
	int error = incstack__otlp_string(d, key, strlen(key), &string);

	return error ? error : add_attribute(d, string, text, value, 0, number);
}

int incstack__otlp_thread(struct incstack__otlp_dictionary *d, uint32_t thread,
			  const uint32_t **numbers)
{
	const struct incstack__timeline_thread *from = &d->profile->timeline->threads[thread];
	const char *name = incstack__text(d->profile, from->name);
	int error = reserve_numbers(&d->threads_of, &d->threads, &d->threads_room,
				    2 * ((size_t)thread + 1));
	uint32_t *found;

	if (error)
		return error;
	found = &d->threads_of[2 * (size_t)thread];
	*numbers = found;
	if (!found[0] && *name)
		error = add_key(d, INCSTACK__OTLP_THREAD_NAME, name, 0, &found[0]);
	if (!error && !found[1] && from->id)
		error = add_key(d, INCSTACK__OTLP_THREAD_ID, NULL, from->id, &found[1]);
	return error;
}

/* ---- code -------------------------------------------------------------------------------- */

static int add_mapping(struct incstack__otlp_dictionary *d, const struct incstack__mapping *mapping)
{
	static const struct incstack__module unknown;
	const struct incstack__module *module =
		mapping->module ? &d->profile->modules.modules[mapping->module - 1] : &unknown;
	uint32_t file, attribute = 0, number;
	int error = incstack__otlp_name(d, module->file, &file);

	if (!error && module->build_id)
		error = add_key(d, INCSTACK__OTLP_BUILD_ID,
				incstack__text(d->profile, module->build_id - 1), 0, &attribute);
	if (error)
		return error;
	incstack__bytes_number(&d->element, OTLP_MAPPING_START, mapping->start);
	incstack__bytes_number(&d->element, OTLP_MAPPING_LIMIT, mapping->limit);
	incstack__bytes_number(&d->element, OTLP_MAPPING_OFFSET, mapping->offset);
	incstack__bytes_number(&d->element, OTLP_MAPPING_FILE, file);
	incstack__bytes_number(&d->element, OTLP_MAPPING_ATTRIBUTES, attribute);
	return end_element(d, OTLP_MAPPINGS, &number);
}

/* The number of a mapping is that of the profile, which also begins at 1. */
int incstack__otlp_mappings(struct incstack__otlp_dictionary *d)
{
	const struct incstack__modules *all = &d->profile->modules;
	int error = 0;

	while (!error && d->used[OTLP_MAPPINGS] <= all->mappings_used)
		error = add_mapping(d, &all->mappings[d->used[OTLP_MAPPINGS] - 1]);
	return error;
}

/* Finds the number of a frame's function, which is its number in the set + 1. */
static int find_function(struct incstack__otlp_dictionary *d, uint32_t frame, uint32_t *number)
{
	char buffer[INCSTACK__FRAME_TEXT];
	const char *text;
	size_t length;
	uint32_t function, name, file;
	int error = incstack__function_of(&d->functions, d->profile, frame, &function);

	*number = function + 1;
	if (error || function + 1 < d->used[OTLP_FUNCTIONS])
		return error;
	text = incstack__frame_text(d->profile, frame, buffer, &length);
	error = incstack__otlp_string(d, text, length, &name);
	if (!error)
		error = incstack__otlp_name(d, d->profile->frames[frame].file, &file);
	if (error)
		return error;
	incstack__bytes_number(&d->element, OTLP_FUNCTION_NAME, name);
	incstack__bytes_number(&d->element, OTLP_FUNCTION_FILE, file);
	return end_element(d, OTLP_FUNCTIONS, number);
}

/* Whether a frame is an address without a name: its location has no lines. */
static bool is_bare(const struct incstack_profile *profile, const struct incstack__frame *frame)
{
	return frame->name == INCSTACK__NONE && frame->place &&
	       (profile->modules.places[frame->place - 1].address ||
		frame->flags & INCSTACK_OBJECT_RAW);
}

/* Adds a location, innermost frame first. All but the last are inlined. */
static int add_location(struct incstack__otlp_dictionary *d, uint64_t id, uint32_t *number)
{
	const struct incstack__frame *frames = d->profile->frames;
	uint32_t frame, function = 0, place = 0;
	struct incstack__place where = {0};
	uint64_t rest = id;
	int error = 0;

	d->packed.used = 0;
	while (rest && !error) {
		rest = incstack__pprof_chain_next(&d->chains, rest, &frame);
		if (frames[frame].place)
			place = frames[frame].place;
		if (is_bare(d->profile, &frames[frame]))
			continue;
		error = find_function(d, frame, &function);
		incstack__bytes_number(&d->inner, OTLP_LINE_FUNCTION, function);
		incstack__bytes_number(&d->inner, OTLP_LINE_LINE, (uint64_t)frames[frame].line);
		incstack__bytes_message(&d->packed, OTLP_LOCATION_LINES, &d->inner);
	}
	if (error)
		return error;
	if (place)
		where = d->profile->modules.places[place - 1];
	incstack__bytes_number(&d->element, OTLP_LOCATION_MAPPING, where.mapping);
	incstack__bytes_number(&d->element, OTLP_LOCATION_ADDRESS, where.address);
	incstack__bytes_add(&d->element, d->packed.at, d->packed.used);
	return d->packed.error ? d->packed.error : end_element(d, OTLP_LOCATIONS, number);
}

static int find_location(struct incstack__otlp_dictionary *d, uint64_t id, uint32_t *number)
{
	const uint32_t hash = incstack__hash_pair(id, 0), used = d->used[OTLP_LOCATIONS];
	size_t cursor = hash;
	uint32_t at;
	int error;

	while ((at = incstack__table_probe(&d->location_table, hash, &cursor)) != INCSTACK__NONE)
		if (d->locations[at] == id) {
			*number = at;
			return 0;
		}
	error = incstack__reserve((void **)&d->locations, &d->locations_room, used + (size_t)1,
				  sizeof(*d->locations));
	if (!error)
		error = add_location(d, id, number);
	if (!error)
		d->locations[used] = id;
	return error ? error : incstack__table_insert(&d->location_table, hash, used);
}

/* ---- stacks ------------------------------------------------------------------------------ */

/* Finds the locations of a path, outermost first. An inlined frame is in the location of its caller. */
static int find_locations(struct incstack__otlp_dictionary *d, const uint32_t *path, size_t depth,
			  uint32_t *numbers, size_t *count)
{
	const struct incstack__frame *frames = d->profile->frames;
	uint64_t id = 0;
	int error = 0;

	*count = 0;
	for (size_t i = depth; i > 0 && !error; i--) {
		if (frames[path[i - 1]].flags & INCSTACK_OBJECT_VIRTUAL)
			error = incstack__pprof_chain(&d->chains, id, path[i - 1], &id);
		else
			id = incstack__pprof_chain_single(path[i - 1]);
		if (i > 1 && frames[path[i - 2]].flags & INCSTACK_OBJECT_VIRTUAL)
			continue;
		if (!error)
			error = find_location(d, id, &numbers[(*count)++]);
	}
	return error;
}

int incstack__otlp_stack(struct incstack__otlp_dictionary *d, const uint32_t *path, size_t depth,
			 uint32_t *number)
{
	uint32_t *numbers;
	size_t count;
	int error;

	*number = 0;
	if (!depth)
		return 0;
	numbers = malloc(depth * sizeof(*numbers));
	error = numbers ? find_locations(d, path, depth, numbers, &count) : INCSTACK_ENOMEM;
	d->packed.used = 0;
	for (size_t i = error ? 0 : count; i > 0; i--)
		incstack__bytes_varint(&d->packed, numbers[i - 1]);
	free(numbers);
	if (error)
		return error;
	incstack__bytes_message(&d->element, 1, &d->packed);
	return end_element(d, OTLP_STACKS, number);
}
