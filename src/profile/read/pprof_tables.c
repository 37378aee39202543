/* SPDX-License-Identifier: MIT
 *
 * Collects the tables of a pprof file: strings, functions, locations with their lines, mappings,
 * sample types and comments. pprof_read.c passes the fields of the file, in its first pass. Then
 * incstack__pprof_profile() makes a profile with a frame for each line, but without samples.
 * pprof_read.c adds the samples in its second pass.
 *
 * A fault of the file sets *why to a sentence. A detail that the profile does not keep is noted as
 * a loss. The arrays `numbers` are indexed by the numbers of the fields, so element 0 is not used.
 */
#include <stdlib.h>
#include <string.h>

#include "profile/pprof.h"
#include "pprof_tables.h"

/* The limits of the tables. A file that exceeds them is not a profile but a decompression bomb. */
#define TABLE_BYTES_MAX ((size_t)1 << 30)
#define TABLE_ENTRIES_MAX ((size_t)1 << 26)

int incstack__pprof_tables_init(struct incstack__pprof_tables *tables)
{
	int error = incstack__table_init(&tables->function_table);

	if (!error)
		error = incstack__table_init(&tables->mapping_table);
	return error ? error : incstack__table_init(&tables->location_table);
}

void incstack__pprof_tables_free(struct incstack__pprof_tables *tables)
{
	free(tables->bytes);
	free(tables->texts);
	free(tables->functions);
	free(tables->function_table.slots);
	free(tables->locations);
	free(tables->location_table.slots);
	free(tables->mappings);
	free(tables->mapping_table.slots);
	free(tables->lines);
	free(tables->comments);
}

static int add_string(struct incstack__pprof_tables *tables, pb_istream_t *bytes, const char **why)
{
	size_t length = bytes->bytes_left;
	int error;

	if (tables->bytes_used + length > TABLE_BYTES_MAX ||
	    tables->texts_used >= TABLE_ENTRIES_MAX) {
		*why = "the string table is too large";
		return INCSTACK_EFORMAT;
	}
	error = incstack__reserve((void **)&tables->bytes, &tables->bytes_room,
				  tables->bytes_used + length + 1, 1);
	if (!error)
		error = incstack__reserve((void **)&tables->texts, &tables->texts_room,
					  tables->texts_used + 1, sizeof(*tables->texts));
	if (error)
		return error;
	if (!pb_read(bytes, (pb_byte_t *)tables->bytes + tables->bytes_used, length))
		return incstack__pprof_damaged(why);
	tables->texts[tables->texts_used++] = (struct incstack__pprof_text){
		.offset = tables->bytes_used, .length = (uint32_t)length};
	tables->bytes_used += length;
	tables->bytes[tables->bytes_used++] = 0;
	return 0;
}

static int add_kind(struct incstack__pprof_tables *tables, pb_istream_t *bytes, const char **why)
{
	uint64_t numbers[3] = {0};
	int error = incstack__pprof_numbers(bytes, numbers, 3, why);

	if (error)
		return error;
	if (tables->kinds_used >= INCSTACK_PROFILE_KINDS_MAX) {
		*why = "more sample types than a profile can have";
		return INCSTACK_EFORMAT;
	}
	tables->kinds[tables->kinds_used][0] = numbers[1];
	tables->kinds[tables->kinds_used++][1] = numbers[2];
	return 0;
}

static uint32_t hash_of(uint64_t id)
{
	return incstack__hash_pair(id, 0);
}

static const struct incstack__pprof_function *
find_function(const struct incstack__pprof_tables *tables, uint64_t id)
{
	size_t cursor = hash_of(id);
	uint32_t at;

	while ((at = incstack__table_probe(&tables->function_table, hash_of(id), &cursor)) !=
	       INCSTACK__NONE)
		if (tables->functions[at].id == id)
			return &tables->functions[at];
	return NULL;
}

const struct incstack__pprof_location *
incstack__pprof_location(const struct incstack__pprof_tables *tables, uint64_t id)
{
	size_t cursor = hash_of(id);
	uint32_t at;

	while ((at = incstack__table_probe(&tables->location_table, hash_of(id), &cursor)) !=
	       INCSTACK__NONE)
		if (tables->locations[at].id == id)
			return &tables->locations[at];
	return NULL;
}

static int add_function(struct incstack__pprof_tables *tables, pb_istream_t *bytes,
			const char **why)
{
	uint64_t numbers[6] = {0};
	int error = incstack__pprof_numbers(bytes, numbers, 6, why);

	if (error)
		return error;
	/* Most writers give every function a system name, which usually equals its name. */
	if (numbers[PPROF_FUNCTION_START_LINE] ||
	    (numbers[PPROF_FUNCTION_SYSTEM_NAME] &&
	     numbers[PPROF_FUNCTION_SYSTEM_NAME] != numbers[PPROF_FUNCTION_NAME]))
		tables->losses |= INCSTACK__LOSS_FUNCTIONS;
	if (find_function(tables, numbers[1]) || tables->functions_used >= TABLE_ENTRIES_MAX) {
		*why = "two functions with one identifier, or too many";
		return INCSTACK_EFORMAT;
	}
	error = incstack__reserve((void **)&tables->functions, &tables->functions_room,
				  tables->functions_used + 1, sizeof(*tables->functions));
	if (!error)
		error = incstack__table_insert(&tables->function_table, hash_of(numbers[1]),
					       (uint32_t)tables->functions_used);
	if (!error)
		tables->functions[tables->functions_used++] =
			(struct incstack__pprof_function){.id = numbers[PPROF_FUNCTION_ID],
							  .name = numbers[PPROF_FUNCTION_NAME],
							  .file = numbers[PPROF_FUNCTION_FILE]};
	return error;
}

static int add_line(struct incstack__pprof_tables *tables, pb_istream_t *bytes, const char **why)
{
	uint64_t numbers[4] = {0};
	uint64_t line;
	int error = incstack__pprof_numbers(bytes, numbers, 4, why);

	if (!error && tables->lines_used > tables->entries_most)
		error = incstack__pprof_damaged(why);
	if (!error)
		error = incstack__reserve((void **)&tables->lines, &tables->lines_room,
					  tables->lines_used + 1, sizeof(*tables->lines));
	if (error)
		return error;
	line = numbers[PPROF_LINE_LINE];
	if (line > INT32_MAX)
		tables->losses |= INCSTACK__LOSS_LINES;
	if (numbers[PPROF_LINE_COLUMN])
		tables->losses |= INCSTACK__LOSS_FUNCTIONS;
	tables->lines[tables->lines_used++] =
		(struct incstack__pprof_line){.function = numbers[PPROF_LINE_FUNCTION],
					      .line = line <= INT32_MAX ? (int32_t)line : 0};
	return 0;
}

static int read_location_field(struct incstack__pprof_tables *tables, pb_istream_t *bytes,
			       struct incstack__pprof_location *location, const char **why)
{
	pb_istream_t line;
	pb_wire_type_t type;
	uint32_t field;
	uint64_t ignored, *number = &ignored;
	bool over;
	int error;

	if (!pb_decode_tag(bytes, &type, &field, &over))
		return incstack__pprof_damaged(why);
	if (type == PB_WT_VARINT) {
		if (field == PPROF_LOCATION_ID)
			number = &location->id;
		else if (field == PPROF_LOCATION_ADDRESS)
			number = &location->address;
		else if (field == PPROF_LOCATION_MAPPING)
			number = &location->mapping;
		else if (field == PPROF_LOCATION_FOLDED)
			number = &location->folded;
		return pb_decode_varint(bytes, number) ? 0 : incstack__pprof_damaged(why);
	}
	if (type != PB_WT_STRING || field != PPROF_LOCATION_LINE)
		return pb_skip_field(bytes, type) ? 0 : incstack__pprof_damaged(why);
	if (!pb_make_string_substream(bytes, &line))
		return incstack__pprof_damaged(why);
	error = add_line(tables, &line, why);
	location->count++;
	return !error && !pb_close_string_substream(bytes, &line) ? incstack__pprof_damaged(why)
								  : error;
}

static int add_location(struct incstack__pprof_tables *tables, pb_istream_t *bytes,
			const char **why)
{
	struct incstack__pprof_location location = {.first = (uint32_t)tables->lines_used};
	int error = 0;

	while (bytes->bytes_left && !error)
		error = read_location_field(tables, bytes, &location, why);
	if (error)
		return error;
	if (incstack__pprof_location(tables, location.id) ||
	    tables->locations_used >= TABLE_ENTRIES_MAX) {
		*why = "two locations with one identifier, or too many";
		return INCSTACK_EFORMAT;
	}
	error = incstack__reserve((void **)&tables->locations, &tables->locations_room,
				  tables->locations_used + 1, sizeof(*tables->locations));
	if (!error)
		error = incstack__table_insert(&tables->location_table, hash_of(location.id),
					       (uint32_t)tables->locations_used);
	if (!error)
		tables->locations[tables->locations_used++] = location;
	return error;
}

/* Far more comments than anyone writes. Further comments are skipped. */
enum { COMMENTS_MAX = 4096 };

static int add_comment(struct incstack__pprof_tables *tables, uint64_t string)
{
	int error =
		tables->comments_used >= COMMENTS_MAX
			? 0
			: incstack__reserve((void **)&tables->comments, &tables->comments_room,
					    tables->comments_used + 1, sizeof(*tables->comments));

	if (!error && tables->comments_used < COMMENTS_MAX)
		tables->comments[tables->comments_used++] = string;
	return error;
}

/* Adds comments, which may be packed like any repeated number. */
static int add_comments(struct incstack__pprof_tables *tables, pb_istream_t *bytes,
			const char **why)
{
	int error = 0;

	while (bytes->bytes_left && !error) {
		uint64_t string;

		error = pb_decode_varint(bytes, &string) ? add_comment(tables, string)
							 : incstack__pprof_damaged(why);
	}
	return error;
}

static int add_period_type(struct incstack__pprof_tables *tables, pb_istream_t *bytes,
			   const char **why)
{
	uint64_t numbers[3] = {0};
	int error = incstack__pprof_numbers(bytes, numbers, 3, why);

	tables->period_type[0] = numbers[1];
	tables->period_type[1] = numbers[2];
	return error;
}

int incstack__pprof_table(struct incstack__pprof_tables *tables, uint32_t field,
			  pb_istream_t *bytes, const char **why)
{
	switch (field) {
	case PPROF_MAPPING:
		return incstack__pprof_add_mapping(tables, bytes, why);
	case PPROF_PERIOD_TYPE:
		return add_period_type(tables, bytes, why);
	case PPROF_SAMPLE_TYPE:
		return add_kind(tables, bytes, why);
	case PPROF_LOCATION:
		return add_location(tables, bytes, why);
	case PPROF_FUNCTION:
		return add_function(tables, bytes, why);
	case PPROF_STRING:
		return add_string(tables, bytes, why);
	case PPROF_COMMENT:
		return add_comments(tables, bytes, why);
	default:
		return 0;
	}
}

int incstack__pprof_number(struct incstack__pprof_tables *tables, uint32_t field, uint64_t number)
{
	if (field == PPROF_TIME && number <= INT64_MAX)
		tables->time_ns = number;
	if (field == PPROF_DURATION && number <= INT64_MAX)
		tables->duration_ns = number;
	if (field == PPROF_PERIOD)
		tables->period = number;
	if (field == PPROF_DEFAULT_TYPE)
		tables->default_kind = number;
	if (field == PPROF_DROP_FRAMES || field == PPROF_KEEP_FRAMES || field == PPROF_DOC_URL)
		tables->losses |= number ? INCSTACK__LOSS_FUNCTIONS : 0;
	return field == PPROF_COMMENT ? add_comment(tables, number) : 0;
}

/* Makes the frame of a line. `rest` has the members of the frame that do not come from the line. */
static int name_line(struct incstack__pprof_tables *tables, struct incstack_profile *profile,
		     struct incstack__pprof_line *line, struct incstack__frame *rest,
		     const char **why)
{
	const struct incstack__pprof_function *function = find_function(tables, line->function);
	const char *name = function ? incstack__pprof_string(tables, function->name) : NULL, *file;

	if (!name) {
		*why = "a function without a name that is UTF-8";
		return INCSTACK_EFORMAT;
	}
	if (!*name)
		name = "[unknown]";
	file = incstack__pprof_string(tables, function->file);
	if (!file)
		tables->losses |= INCSTACK__LOSS_FILES;
	rest->line = line->line;
	return incstack__frame_at(profile, name, strlen(name), file && *file ? file : NULL, rest,
				  &line->frame);
}

/* Gives a line to a location that has none, and makes its frame, which represents the address. */
static int name_address(struct incstack__pprof_tables *tables, struct incstack_profile *profile,
			struct incstack__pprof_location *location,
			const struct incstack__frame *code)
{
	struct incstack__frame key = {.function = location->address,
				      .position = -1,
				      .flags = INCSTACK_OBJECT_RAW,
				      .key = INCSTACK__NONE,
				      .module = code->module,
				      .place = code->place};
	int error = incstack__reserve((void **)&tables->lines, &tables->lines_room,
				      tables->lines_used + 1, sizeof(*tables->lines));

	if (error)
		return error;
	location->first = (uint32_t)tables->lines_used++;
	location->count = 1;
	return incstack__frame_intern(profile, &key, &tables->lines[location->first].frame);
}

/* Notes as a loss that the frame has the address of another location. */
static void note_address(struct incstack__pprof_tables *tables,
			 const struct incstack_profile *profile, uint32_t frame, uint32_t place)
{
	if (place && profile->frames[frame].place != place)
		tables->losses |= INCSTACK__LOSS_MAPPINGS;
}

/* Makes the frames of a location. All lines but the last line are inlined. */
static int name_location(struct incstack__pprof_tables *tables, struct incstack_profile *profile,
			 struct incstack__pprof_location *location, const char **why)
{
	struct incstack__frame code = {0};
	int error = incstack__pprof_place(tables, profile, location, &code);

	if (!error && !location->count)
		return name_address(tables, profile, location, &code);
	for (uint32_t i = 0; i < location->count && !error; i++) {
		struct incstack__pprof_line *line = &tables->lines[location->first + i];
		struct incstack__frame rest = code;

		rest.flags = i + 1 < location->count ? INCSTACK_OBJECT_VIRTUAL : 0;
		error = name_line(tables, profile, line, &rest, why);
		if (!error)
			note_address(tables, profile, line->frame, code.place);
	}
	return error;
}

static int make_profile(const struct incstack__pprof_tables *tables,
			struct incstack_profile **profile, const char **why)
{
	struct incstack_profile_kind kinds[INCSTACK_PROFILE_KINDS_MAX];

	if (!tables->kinds_used)
		*why = "no sample types: this is not a pprof file";
	for (uint32_t k = 0; k < tables->kinds_used; k++) {
		kinds[k].name = incstack__pprof_string(tables, tables->kinds[k][0]);
		kinds[k].unit = incstack__pprof_string(tables, tables->kinds[k][1]);
		if (!kinds[k].name || !kinds[k].unit)
			*why = "a sample type without a name that is UTF-8";
	}
	return *why ? INCSTACK_EFORMAT
		    : incstack_profile_create(kinds, tables->kinds_used, profile);
}

int incstack__pprof_profile(struct incstack__pprof_tables *tables,
			    struct incstack_profile **profile, const char **why)
{
	int error = make_profile(tables, profile, why);

	if (!error) {
		(*profile)->places_apart = (tables->keep & INCSTACK_KEEP_MAPPINGS) != 0;
		error = incstack__pprof_mappings(tables, *profile);
	}
	for (size_t i = 0; i < tables->locations_used && !error; i++)
		error = name_location(tables, *profile, &tables->locations[i], why);
	if (!error)
		error = incstack__pprof_meta(tables, *profile);
	if (!error)
		(*profile)->losses |= tables->losses;
	return error;
}
