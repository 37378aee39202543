/* SPDX-License-Identifier: MIT
 *
 * Reads the mappings of a pprof file, and the places of its locations in them.
 */
#include "profile/module.h"
#include "profile/pprof.h"
#include "pprof_tables.h"

/* No process can have more. */
#define MAPPINGS_MAX ((size_t)1 << 26)

static uint32_t find(const struct incstack__pprof_tables *tables, uint64_t id)
{
	uint32_t at, hash = incstack__hash_pair(id, 0);
	size_t cursor = hash;

	while ((at = incstack__table_probe(&tables->mapping_table, hash, &cursor)) !=
	       INCSTACK__NONE)
		if (tables->mappings[at].id == id)
			break;
	return at;
}

static uint32_t has_bits(const uint64_t *numbers)
{
	uint32_t bits = 0;

	for (uint32_t i = PPROF_MAPPING_HAS; i < PPROF_MAPPING_FIELDS; i++)
		bits |= numbers[i] ? 1u << (i - PPROF_MAPPING_HAS) : 0;
	return bits;
}

int incstack__pprof_add_mapping(struct incstack__pprof_tables *tables, pb_istream_t *bytes,
				const char **why)
{
	uint64_t n[PPROF_MAPPING_FIELDS] = {0};
	int error = incstack__pprof_numbers(bytes, n, PPROF_MAPPING_FIELDS, why);

	if (error)
		return error;
	if (!n[PPROF_MAPPING_ID] || find(tables, n[PPROF_MAPPING_ID]) != INCSTACK__NONE ||
	    tables->mappings_used >= MAPPINGS_MAX) {
		tables->losses |= INCSTACK__LOSS_MAPPINGS;
		return 0;
	}
	error = incstack__reserve((void **)&tables->mappings, &tables->mappings_room,
				  tables->mappings_used + 1, sizeof(*tables->mappings));
	if (!error)
		error = incstack__table_insert(&tables->mapping_table,
					       incstack__hash_pair(n[PPROF_MAPPING_ID], 0),
					       (uint32_t)tables->mappings_used);
	if (!error)
		tables->mappings[tables->mappings_used++] =
			(struct incstack__pprof_mapping){.id = n[PPROF_MAPPING_ID],
							 .start = n[PPROF_MAPPING_START],
							 .limit = n[PPROF_MAPPING_LIMIT],
							 .offset = n[PPROF_MAPPING_OFFSET],
							 .file = n[PPROF_MAPPING_FILE],
							 .build_id = n[PPROF_MAPPING_BUILD_ID],
							 .has = has_bits(n)};
	return error;
}

static int give(struct incstack__pprof_tables *tables, struct incstack_profile *profile,
		struct incstack__pprof_mapping *from)
{
	const char *file = incstack__pprof_string(tables, from->file);
	const char *build_id = incstack__pprof_string(tables, from->build_id);
	struct incstack__mapping mapping = {.start = from->start,
					    .limit = from->limit,
					    .offset = from->offset,
					    .has = from->has};
	int error = incstack__module_intern(profile, file, build_id, &mapping.module);

	if ((!file && from->file) || (!build_id && from->build_id))
		tables->losses |= INCSTACK__LOSS_MAPPINGS;
	return error ? error : incstack__mapping_intern(profile, &mapping, &from->number);
}

int incstack__pprof_mappings(struct incstack__pprof_tables *tables,
			     struct incstack_profile *profile)
{
	int error = 0;

	for (size_t i = 0; i < tables->mappings_used && !error; i++)
		error = give(tables, profile, &tables->mappings[i]);
	return error;
}

int incstack__pprof_place(struct incstack__pprof_tables *tables, struct incstack_profile *profile,
			  const struct incstack__pprof_location *location,
			  struct incstack__frame *frame)
{
	struct incstack__place key = {.address = location->address,
				      .folded = location->folded ? 1 : 0};
	uint32_t at = location->mapping ? find(tables, location->mapping) : INCSTACK__NONE;

	if (location->mapping && at == INCSTACK__NONE)
		tables->losses |= INCSTACK__LOSS_MAPPINGS;
	if (at != INCSTACK__NONE) {
		key.mapping = tables->mappings[at].number;
		frame->module = profile->modules.mappings[key.mapping - 1].module;
	}
	if (!key.address && !key.mapping && !key.folded)
		return 0;
	return incstack__place_intern(profile, &key, &frame->place);
}
