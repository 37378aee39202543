/* SPDX-License-Identifier: MIT
 *
 * Writes the functions, locations and mappings of a pprof file. The numbers of the fields are in pprof.h.
 */
#include <stdlib.h>

#include "profile/pprof.h"
#include "pprof_code.h"

int incstack__pprof_code_init(struct incstack__pprof_code *code, struct incstack__pprof_put *put)
{
	int error = incstack__function_set_init(&code->set);

	code->put = put;
	return error ? error : incstack__table_init(&code->chains.table);
}

void incstack__pprof_code_free(struct incstack__pprof_code *code)
{
	incstack__function_set_free(&code->set);
	incstack__pprof_chains_free(&code->chains);
	free(code->ids);
	free(code->message);
}

/* Writes a function. Its identifier is its number + 1. System names stay empty: then pprof takes the name as
 * it is. If both were equal, pprof would drop the template arguments of C++. */
static int put_function(struct incstack__pprof_code *code, uint32_t function)
{
	const struct incstack_profile *profile = code->put->profile;
	uint32_t frame = code->set.functions[function].frame;
	pb_byte_t bytes[6 * INCSTACK__VARINT_MAX];
	pb_ostream_t stream = pb_ostream_from_buffer(bytes, sizeof(bytes));
	char buffer[INCSTACK__FRAME_TEXT];
	size_t length;
	const char *text = incstack__frame_text(profile, frame, buffer, &length);
	uint64_t name, file;
	int error = incstack__pprof_put_string(code->put, text, length, &name);

	if (!error)
		error = incstack__pprof_put_name(code->put, profile->frames[frame].file, &file);
	if (error)
		return error;
	(void)incstack__pprof_put_number(&stream, PPROF_FUNCTION_ID, (uint64_t)function + 1);
	(void)incstack__pprof_put_number(&stream, PPROF_FUNCTION_NAME, name);
	(void)incstack__pprof_put_number(&stream, PPROF_FUNCTION_FILE, file);
	return incstack__pprof_put_field(code->put, PPROF_FUNCTION, bytes, stream.bytes_written);
}

/* Writes a Line: function_id = 1, line = 2. The frame's function was written before. */
static int put_line(struct incstack__pprof_code *code, uint32_t frame, pb_ostream_t *location)
{
	const struct incstack_profile *profile = code->put->profile;
	pb_byte_t line[4 * INCSTACK__VARINT_MAX];
	pb_ostream_t inner = pb_ostream_from_buffer(line, sizeof(line));
	uint32_t function;
	int error = incstack__function_of(&code->set, profile, frame, &function);

	if (error)
		return error;
	(void)incstack__pprof_put_number(&inner, PPROF_LINE_FUNCTION, (uint64_t)function + 1);
	(void)incstack__pprof_put_number(&inner, PPROF_LINE_LINE,
					 (uint64_t)profile->frames[frame].line);
	(void)pb_encode_tag(location, PB_WT_STRING, PPROF_LOCATION_LINE);
	(void)pb_encode_string(location, line, inner.bytes_written);
	return 0;
}

/* Whether a frame is an address without a name. In pprof, its location has no lines. */
static bool is_bare(const struct incstack_profile *profile, const struct incstack__frame *frame)
{
	return frame->name == INCSTACK__NONE && frame->place &&
	       (profile->modules.places[frame->place - 1].address ||
		frame->flags & INCSTACK_OBJECT_RAW);
}

/* Writes where the code lies, as far as that is known. */
static void put_place(const struct incstack_profile *profile, uint32_t place, pb_ostream_t *message)
{
	if (!place)
		return;
	const struct incstack__place *p = &profile->modules.places[place - 1];

	(void)incstack__pprof_put_number(message, PPROF_LOCATION_MAPPING, p->mapping);
	(void)incstack__pprof_put_number(message, PPROF_LOCATION_ADDRESS, p->address);
	(void)incstack__pprof_put_number(message, PPROF_LOCATION_FOLDED, p->folded);
}

/* Writes a Location: id = 1, line = 4, innermost first. All lines but the last are inlined. The outermost
 * frame with a place gives the address: only the caller tells apart where a function is inlined. */
static int put_location(struct incstack__pprof_code *code, uint64_t id)
{
	const struct incstack_profile *profile = code->put->profile;
	uint32_t frame = 0, place = 0, lines = incstack__pprof_chain_lines(&code->chains, id);
	uint64_t rest = id;
	pb_ostream_t message;
	int error =
		incstack__pprof_put_start(&code->message, &code->message_room,
					  ((size_t)lines * 6 + 8) * INCSTACK__VARINT_MAX, &message);

	if (error)
		return error;
	(void)incstack__pprof_put_number(&message, PPROF_LOCATION_ID, id);
	while (rest && !error) {
		rest = incstack__pprof_chain_next(&code->chains, rest, &frame);
		if (profile->frames[frame].place)
			place = profile->frames[frame].place;
		if (!is_bare(profile, &profile->frames[frame]))
			error = put_line(code, frame, &message);
	}
	put_place(profile, place, &message);
	return error ? error
		     : incstack__pprof_put_field(code->put, PPROF_LOCATION, code->message,
						 message.bytes_written);
}

/* Writes what a new frame needs: its function, and its location unless it is inlined. */
static int put_frame(struct incstack__pprof_code *code, uint32_t number)
{
	const struct incstack_profile *profile = code->put->profile;
	const struct incstack__frame *frame = &profile->frames[number];
	uint32_t function;
	int error = 0;

	if (frame->flags & INCSTACK_PROFILE_LABEL)
		return 0;
	if (!is_bare(profile, frame)) {
		error = incstack__function_of(&code->set, profile, number, &function);
		if (!error && function == code->functions)
			error = put_function(code, (uint32_t)code->functions++);
	}
	if (!error && !(frame->flags & INCSTACK_OBJECT_VIRTUAL))
		error = put_location(code, incstack__pprof_chain_single(number));
	return error;
}

/* Finds the bits that tell what the frames of each module have, by the module's number + 1. The caller frees
 * them. */
static int find_has(const struct incstack_profile *profile, uint32_t **found)
{
	uint32_t *has = calloc(profile->modules.modules_used + 1, sizeof(*has));

	*found = has;
	for (size_t i = 0; has && i < profile->frames_used; i++) {
		const struct incstack__frame *f = &profile->frames[i];

		has[f->module] |= (f->name != INCSTACK__NONE ? PPROF_HAS_FUNCTIONS : 0) |
				  (f->file ? PPROF_HAS_FILES : 0) |
				  (f->line ? PPROF_HAS_LINES : 0) |
				  (f->flags & INCSTACK_OBJECT_VIRTUAL ? PPROF_HAS_INLINING : 0);
	}
	return has ? 0 : INCSTACK_ENOMEM;
}

/* A mapping that was read has its own bits. A pprof that is told less than there is looks for symbols itself. */
static uint32_t has_of(const uint32_t *has, const struct incstack__mapping *mapping)
{
	return mapping->has || mapping->limit || !mapping->module ? mapping->has
								  : has[mapping->module];
}

/* Writes a mapping. Its identifier is its number + 1. */
static int put_mapping(struct incstack__pprof_code *code, size_t number,
		       const uint32_t *has_by_module)
{
	const struct incstack__modules *all = &code->put->profile->modules;
	const struct incstack__mapping *mapping = &all->mappings[number];
	const struct incstack__module unknown = {0},
				      *module = mapping->module ? &all->modules[mapping->module - 1]
								: &unknown;
	pb_byte_t bytes[2 * PPROF_MAPPING_FIELDS * INCSTACK__VARINT_MAX];
	pb_ostream_t stream = pb_ostream_from_buffer(bytes, sizeof(bytes));
	const uint32_t has = has_of(has_by_module, mapping);
	uint64_t file, build_id = 0;
	int error = incstack__pprof_put_name(code->put, module->file, &file);

	if (!error)
		error = incstack__pprof_put_name(code->put, module->build_id, &build_id);
	if (error)
		return error;
	(void)incstack__pprof_put_number(&stream, PPROF_MAPPING_ID, number + 1);
	(void)incstack__pprof_put_number(&stream, PPROF_MAPPING_START, mapping->start);
	(void)incstack__pprof_put_number(&stream, PPROF_MAPPING_LIMIT, mapping->limit);
	(void)incstack__pprof_put_number(&stream, PPROF_MAPPING_OFFSET, mapping->offset);
	(void)incstack__pprof_put_number(&stream, PPROF_MAPPING_FILE, file);
	(void)incstack__pprof_put_number(&stream, PPROF_MAPPING_BUILD_ID, build_id);
	for (uint32_t i = PPROF_MAPPING_HAS; i < PPROF_MAPPING_FIELDS; i++)
		(void)incstack__pprof_put_number(&stream, i, has >> (i - PPROF_MAPPING_HAS) & 1);
	return incstack__pprof_put_field(code->put, PPROF_MAPPING, bytes, stream.bytes_written);
}

int incstack__pprof_code_tables(struct incstack__pprof_code *code)
{
	const struct incstack_profile *profile = code->put->profile;
	uint32_t *has = NULL;
	int error = 0;

	if (code->mappings < profile->modules.mappings_used)
		error = find_has(profile, &has);
	for (; code->mappings < profile->modules.mappings_used && !error; code->mappings++)
		error = put_mapping(code, code->mappings, has);
	free(has);
	for (; code->frames < profile->frames_used && !error; code->frames++)
		error = put_frame(code, (uint32_t)code->frames);
	return error;
}

/* An inlined frame is in the location of its caller. */
int incstack__pprof_code_path(struct incstack__pprof_code *code, const uint32_t *path, size_t depth,
			      size_t *first)
{
	const struct incstack__frame *frames = code->put->profile->frames;
	int error =
		incstack__reserve((void **)&code->ids, &code->ids_room, depth, sizeof(*code->ids));
	uint64_t id = 0;

	*first = depth;
	for (size_t i = depth; i > 0 && !error; i--) {
		if (frames[path[i - 1]].flags & INCSTACK_OBJECT_VIRTUAL)
			error = incstack__pprof_chain(&code->chains, id, path[i - 1], &id);
		else
			id = incstack__pprof_chain_single(path[i - 1]);
		if (i > 1 && frames[path[i - 2]].flags & INCSTACK_OBJECT_VIRTUAL)
			continue;
		code->ids[--*first] = id;
		if (!error && incstack__pprof_chain_claim(&code->chains, id))
			error = put_location(code, id);
	}
	return error;
}
