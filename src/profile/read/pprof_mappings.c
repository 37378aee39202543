/* SPDX-License-Identifier: MIT
 *
 * Reads the mappings of a pprof file, and the places of its locations in them.
 */
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
	if (!(tables->keep & INCSTACK_KEEP_MAPPINGS) || !n[PPROF_MAPPING_ID] ||
	    find(tables, n[PPROF_MAPPING_ID]) != INCSTACK__NONE ||
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
		const struct incstack__pprof_mapping *from)
{
	struct incstack__extra *extra = &profile->extra;
	struct incstack__mapping mapping = {.start = from->start,
					    .limit = from->limit,
					    .offset = from->offset,
					    .has = from->has};
	bool file_valid = true, id_valid = true;
	int error = incstack__pprof_name(tables, from->file, profile, &mapping.file, &file_valid);

	if (!error)
		error = incstack__pprof_name(tables, from->build_id, profile, &mapping.build_id,
					     &id_valid);
	if (!error)
		error = incstack__reserve((void **)&extra->mappings, &extra->mappings_room,
					  extra->mappings_used + 1, sizeof(*extra->mappings));
	if (error)
		return error;
	if (!file_valid || !id_valid)
		tables->losses |= INCSTACK__LOSS_MAPPINGS;
	extra->mappings[extra->mappings_used++] = mapping;
	return 0;
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
			  const struct incstack__pprof_location *location, uint32_t *place)
{
	struct incstack__place key = {.address = location->address,
				      .folded = location->folded ? 1 : 0};
	uint32_t at;

	*place = 0;
	if (!location->address && !location->mapping && !location->folded)
		return 0;
	if (!(tables->keep & INCSTACK_KEEP_MAPPINGS)) {
		tables->losses |= INCSTACK__LOSS_MAPPINGS;
		return 0;
	}
	at = location->mapping ? find(tables, location->mapping) : INCSTACK__NONE;
	if (location->mapping && at == INCSTACK__NONE)
		tables->losses |= INCSTACK__LOSS_MAPPINGS;
	key.mapping = at == INCSTACK__NONE ? 0 : at + 1;
	return incstack__place_intern(profile, &key, place);
}
