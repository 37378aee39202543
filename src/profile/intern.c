/* SPDX-License-Identifier: MIT
 *
 * Names and frames: each distinct one is stored once and has a number.
 */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define XXH_INLINE_ALL
#include <xxhash.h>

#include "cct.h"

int incstack__reserve(void **array, size_t *room, size_t need, size_t element)
{
	size_t wanted = *room ? *room * 2 : 64;
	void *grown;

	if (need <= *room)
		return 0;
	if (wanted < need)
		wanted = need;
	if (wanted > SIZE_MAX / element)
		return INCSTACK_ENOMEM;
	grown = realloc(*array, wanted * element);
	if (!grown)
		return INCSTACK_ENOMEM;
	*array = grown;
	*room = wanted;
	return 0;
}

/* Returns how many bytes follow a lead byte of UTF-8, or -1 if it is none. */
static int followers(unsigned char lead)
{
	if (lead < 0x80)
		return lead ? 0 : -1;
	if (lead >= 0xc2 && lead < 0xe0)
		return 1;
	if (lead >= 0xe0 && lead < 0xf0)
		return 2;
	return lead >= 0xf0 && lead < 0xf5 ? 3 : -1;
}

/* Whether the second byte is allowed. This excludes overlong forms, surrogates, and code points
 * beyond U+10FFFF. */
static bool second_allowed(unsigned char lead, unsigned char second)
{
	switch (lead) {
	case 0xe0:
		return second >= 0xa0;
	case 0xed:
		return second < 0xa0;
	case 0xf0:
		return second >= 0x90;
	case 0xf4:
		return second < 0x90;
	default:
		return true;
	}
}

bool incstack__text_valid(const char *text, size_t length)
{
	const unsigned char *byte = (const unsigned char *)text;

	for (size_t i = 0; i < length;) {
		int more = followers(byte[i]);

		if (more < 0 || (size_t)more >= length - i)
			return false;
		if (more && !second_allowed(byte[i], byte[i + 1]))
			return false;
		for (int k = 1; k <= more; k++)
			if ((byte[i + (size_t)k] & 0xc0) != 0x80)
				return false;
		i += (size_t)more + 1;
	}
	return true;
}

bool incstack__string_valid(const char *string)
{
	return !string || incstack__text_valid(string, strlen(string));
}

static uint32_t name_find(const struct incstack_profile *profile, const char *text, size_t length,
			  uint32_t hash)
{
	size_t cursor = hash;
	uint32_t at;

	while ((at = incstack__table_probe(&profile->name_table, hash, &cursor)) !=
	       INCSTACK__NONE) {
		const struct incstack__name *name = &profile->names[at];

		if (name->length == length && !memcmp(profile->texts + name->offset, text, length))
			break;
	}
	return at;
}

static int name_add(struct incstack_profile *profile, const char *text, uint32_t length,
		    uint32_t hash)
{
	int error;

	if (profile->names_used >= INCSTACK__NONE - 1)
		return INCSTACK_ELIMIT;
	error = incstack__reserve((void **)&profile->names, &profile->names_room,
				  profile->names_used + 1, sizeof(*profile->names));
	if (!error)
		error = incstack__reserve((void **)&profile->texts, &profile->texts_room,
					  profile->texts_used + length + 1, 1);
	if (!error)
		error = incstack__table_insert(&profile->name_table, hash,
					       (uint32_t)profile->names_used);
	if (error)
		return error;
	memcpy(profile->texts + profile->texts_used, text, length);
	profile->texts[profile->texts_used + length] =
		0; /* the names of kinds are handed out as strings */
	profile->names[profile->names_used++] = (struct incstack__name){
		.offset = profile->texts_used, .length = length, .hash = hash};
	profile->texts_used += length + 1;
	return 0;
}

int incstack__name_intern(struct incstack_profile *profile, const char *text, size_t length,
			  uint32_t *name)
{
	uint32_t hash = (uint32_t)XXH3_64bits(text, length);
	int error;

	if (length >= UINT32_MAX)
		return INCSTACK_ELIMIT;
	*name = name_find(profile, text, length, hash);
	if (*name != INCSTACK__NONE)
		return 0;
	error = name_add(profile, text, (uint32_t)length, hash);
	if (!error)
		*name = (uint32_t)profile->names_used - 1;
	return error;
}

static bool frame_equal(const struct incstack__frame *a, const struct incstack__frame *b,
			bool places_apart)
{
	return a->function == b->function && a->position == b->position && a->line == b->line &&
	       a->kind == b->kind && a->flags == b->flags && a->key == b->key &&
	       a->file == b->file && a->module == b->module &&
	       (a->place == b->place || !places_apart);
}

static bool has_address(const struct incstack_profile *profile, uint32_t place)
{
	return place && profile->modules.places[place - 1].address;
}

/* Most frames are there already. So this is a function of its own, whose registers a search does not
 * save. */
__attribute__((noinline)) static int frame_add(struct incstack_profile *profile,
					       const struct incstack__frame *key, uint32_t hash,
					       uint32_t *frame)
{
	int error;

	if (profile->frames_used >= INCSTACK__NONE - 1)
		return INCSTACK_ELIMIT;
	error = incstack__reserve((void **)&profile->frames, &profile->frames_room,
				  profile->frames_used + 1, sizeof(*profile->frames));
	if (!error)
		error = incstack__table_insert(&profile->frame_table, hash,
					       (uint32_t)profile->frames_used);
	if (error)
		return error;
	*frame = (uint32_t)profile->frames_used++;
	profile->frames[*frame] = *key;
	profile->frames[*frame].name = key->key;
	return 0;
}

static uint32_t frame_hash(const struct incstack_profile *profile,
			   const struct incstack__frame *key)
{
	const uint32_t place = profile->places_apart ? key->place : 0;
	uint64_t at = (uint32_t)key->position ^ (uint64_t)(uint32_t)key->line << 32;
	uint64_t how = key->flags ^ (uint64_t)key->kind << 32;

	return incstack__hash_pair(
		key->function + key->key * 0x9e3779b97f4a7c15u + key->file * 0xc2b2ae3d27d4eb4fu +
			key->module * 0x27d4eb2f165667c5u + place * 0x165667b19e3779f9u,
		at * 0x9fb21c651e98df25u + how);
}

/* Rebuilds the table. If several frames have the same key, a search finds the first one. */
int incstack__frame_table_renew(struct incstack_profile *profile)
{
	struct incstack__table *table = &profile->frame_table;
	int error = 0;

	memset(profile->seen, 0, sizeof(profile->seen));
	free(table->slots);
	error = incstack__table_init(table);
	for (size_t i = 0; i < profile->frames_used && !error; i++)
		error = incstack__table_insert(table, frame_hash(profile, &profile->frames[i]),
					       (uint32_t)i);
	return error;
}

int incstack__frame_intern(struct incstack_profile *profile, const struct incstack__frame *key,
			   uint32_t *frame)
{
	uint32_t hash = frame_hash(profile, key);
	size_t cursor = hash;

	while ((*frame = incstack__table_probe(&profile->frame_table, hash, &cursor)) !=
	       INCSTACK__NONE)
		if (frame_equal(&profile->frames[*frame], key, profile->places_apart)) {
			if (key->place && !has_address(profile, profile->frames[*frame].place))
				profile->frames[*frame].place = key->place;
			return 0;
		}
	return frame_add(profile, key, hash, frame);
}

int incstack__frame_named(struct incstack_profile *profile, const char *text, size_t length,
			  uint32_t *frame)
{
	return incstack__frame_at(profile, text, length, NULL, &(struct incstack__frame){0}, frame);
}

int incstack__frame_at(struct incstack_profile *profile, const char *text, size_t length,
		       const char *file, const struct incstack__frame *rest, uint32_t *frame)
{
	struct incstack__frame key = {.position = -1,
				      .line = rest->line,
				      .kind = rest->kind,
				      .flags = rest->flags,
				      .module = rest->module,
				      .place = rest->place};
	int error = incstack__name_intern(profile, text, length, &key.key);

	if (!error && file) {
		error = incstack__name_intern(profile, file, strlen(file), &key.file);
		key.file++;
	}
	return error ? error : incstack__frame_intern(profile, &key, frame);
}

const char *incstack__frame_text(const struct incstack_profile *profile, uint32_t frame,
				 char buffer[INCSTACK__FRAME_TEXT], size_t *length)
{
	const struct incstack__frame *f = &profile->frames[frame];

	if (f->name == INCSTACK__NONE) {
		*length = (size_t)snprintf(buffer, INCSTACK__FRAME_TEXT, "0x%" PRIx64, f->function);
		return buffer;
	}
	*length = profile->names[f->name].length;
	return profile->texts + profile->names[f->name].offset;
}
