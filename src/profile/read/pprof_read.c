/* SPDX-License-Identifier: MIT
 *
 * Reads pprof files, in two passes: first the tables, which may come after the samples, then the
 * samples one by one. pprof_tables.c handles the content of the tables.
 */
#include <stdlib.h>
#include <string.h>

#include <pb_decode.h>

#include "profile/gzip.h"
#include "profile/pprof.h"
#include "pprof_tables.h"

/* No real field is longer. One that claims to be is damaged or hostile. */
#define FIELD_MAX (64u << 20)

/* What a file may become in memory: a constant, and a number for each of its bytes as they are stored,
 * compressed or not (D113). */
enum { NODES_LEAST = 1 << 21, NODES_EACH = 16 };
enum { ENTRIES_LEAST = 1 << 16, ENTRIES_EACH = 16 };
enum { TEXT_LEAST = 1 << 22, TEXT_EACH = 64 };
/* And how many frames of all samples together are looked up, for each byte that is not compressed. */
enum { FRAMES_LEAST = 1 << 24, FRAMES_EACH = 16 };

struct pprof_reader {
	struct incstack__reader *reader;
	struct incstack__inflater inflater;
	struct incstack__pprof_tables tables;
	unsigned char *field; /* the bytes of one field of the outermost message */
	size_t field_room;
	uint32_t *path; /* of a sample: frames, innermost first */
	size_t path_room, depth;
	uint32_t *labels; /* of a sample: their frames */
	size_t labels_room, labels_used;
	uint64_t values[INCSTACK_PROFILE_KINDS_MAX];
	uint32_t values_used;
	uint64_t frames; /* of all samples so far */
};

static bool source(pb_istream_t *stream, pb_byte_t *bytes, size_t count)
{
	struct pprof_reader *pprof = stream->state;

	if (!incstack__inflater_read(&pprof->inflater, bytes, count))
		return true;
	stream->bytes_left = 0; /* tells nanopb that the stream has ended */
	return false;
}

static int refuse(struct pprof_reader *pprof, const char *why)
{
	if (ferror(pprof->reader->stream))
		return INCSTACK_EIO;
	return incstack__refuse(pprof->reader, pprof->inflater.why ? pprof->inflater.why : why);
}

static uint64_t nodes_most(const struct pprof_reader *pprof)
{
	const struct incstack_profile *profile = pprof->reader->profile;
	const uint64_t kinds = profile && profile->kinds ? profile->kinds : 1;

	return NODES_LEAST / kinds + pprof->inflater.read * NODES_EACH;
}

static int refuse_nodes(struct pprof_reader *pprof)
{
	return refuse(pprof, "more contexts than a file of this size can have; it may be a bomb");
}

static int read_bytes(struct pprof_reader *pprof, pb_istream_t *top, uint32_t *size)
{
	int error;

	if (!pb_decode_varint32(top, size))
		return refuse(pprof, "a field without length");
	if (*size > FIELD_MAX)
		return refuse(pprof, "a field of more than 64 MiB");
	error = incstack__reserve((void **)&pprof->field, &pprof->field_room, *size + 1u, 1);
	if (error)
		return error;
	return pb_read(top, pprof->field, *size) ? 0 : refuse(pprof, "the message is cut off");
}

typedef int field_fn(struct pprof_reader *pprof, uint32_t field, pb_istream_t *bytes);
typedef int number_fn(struct pprof_reader *pprof, uint32_t field, uint64_t number);

/* Reads one field of the outermost message. */
static int read_field(struct pprof_reader *pprof, pb_istream_t *top, field_fn *on_field,
		      number_fn *on_number, bool *over)
{
	pb_wire_type_t type;
	uint32_t field, size;
	uint64_t number;

	pprof->reader->at.offset = pprof->inflater.inflated;
	if (!pb_decode_tag(top, &type, &field, over))
		return *over && !pprof->inflater.why &&
				       pprof->reader->at.offset == pprof->inflater.inflated
			       ? 0
			       : refuse(pprof, "a field without a valid tag");
	if (!field)
		return refuse(pprof, "a field without a valid tag");
	if (type == PB_WT_STRING) {
		pb_istream_t bytes;
		int error = read_bytes(pprof, top, &size);

		if (error)
			return error;
		bytes = pb_istream_from_buffer(pprof->field, size);
		return on_field(pprof, field, &bytes);
	}
	if (type != PB_WT_VARINT)
		return pb_skip_field(top, type) ? 0 : refuse(pprof, "a field that is no field");
	if (!pb_decode_varint(top, &number))
		return refuse(pprof, "a number that is cut off or too long");
	return on_number ? on_number(pprof, field, number) : 0;
}

static int read_pass(struct pprof_reader *pprof, field_fn *on_field, number_fn *on_number)
{
	pb_istream_t top = {.callback = source, .state = pprof, .bytes_left = SIZE_MAX};
	int error = incstack__inflater_open(&pprof->inflater, pprof->reader->stream);
	bool over = false;

	for (uint64_t i = 0; !error && !over; i++) {
		error = read_field(pprof, &top, on_field, on_number, &over);
		top.bytes_left = SIZE_MAX;
		if (i % 65536 == 0)
			incstack__progress(pprof->reader, pprof->inflater.read / 2);
	}
	incstack__inflater_close(&pprof->inflater);
	return error;
}

static int on_table(struct pprof_reader *pprof, uint32_t field, pb_istream_t *bytes)
{
	const char *why = NULL;
	int error;

	pprof->tables.entries_most = ENTRIES_LEAST + pprof->inflater.read * ENTRIES_EACH;
	error = incstack__pprof_table(&pprof->tables, field, bytes, &why);
	if (incstack__pprof_entries(&pprof->tables) > pprof->tables.entries_most ||
	    pprof->tables.bytes_used > TEXT_LEAST + pprof->inflater.read * TEXT_EACH)
		why = "larger tables than a file of this size can have; it may be a bomb";
	return why ? refuse(pprof, why) : error;
}

static int on_number(struct pprof_reader *pprof, uint32_t field, uint64_t number)
{
	return incstack__pprof_number(&pprof->tables, field, number);
}

static int push_location(struct pprof_reader *pprof, uint64_t id)
{
	const struct incstack__pprof_location *location =
		incstack__pprof_location(&pprof->tables, id);
	int error;

	if (!location)
		return refuse(pprof, "a sample with a location that does not exist");
	pprof->frames += location->count;
	if (pprof->depth + location->count > nodes_most(pprof) ||
	    pprof->frames > FRAMES_LEAST + pprof->inflater.inflated * FRAMES_EACH)
		return refuse_nodes(pprof);
	error = incstack__reserve((void **)&pprof->path, &pprof->path_room,
				  pprof->depth + location->count, sizeof(*pprof->path));
	for (uint32_t i = 0; i < location->count && !error; i++)
		pprof->path[pprof->depth++] = pprof->tables.lines[location->first + i].frame;
	return error;
}

static int push_value(struct pprof_reader *pprof, uint64_t value)
{
	if (pprof->values_used >= pprof->reader->profile->kinds)
		return refuse(pprof, "a sample with more values than there are sample types");
	if (value > INT64_MAX)
		return refuse(pprof, "a negative weight");
	pprof->values[pprof->values_used++] = value;
	return 0;
}

static int push_number(struct pprof_reader *pprof, uint32_t field, pb_istream_t *bytes)
{
	uint64_t number;

	if (!pb_decode_varint(bytes, &number))
		return refuse(pprof, "a number that is cut off or too long");
	if (field == PPROF_SAMPLE_LOCATION)
		return push_location(pprof, number);
	return field == PPROF_SAMPLE_VALUE ? push_value(pprof, number) : 0;
}

static int push_label(struct pprof_reader *pprof, pb_istream_t *bytes)
{
	struct incstack_profile *profile = pprof->reader->profile;
	uint64_t numbers[PPROF_LABEL_UNIT + 1] = {0};
	struct incstack__label label = {0};
	uint32_t *const names[] = {[PPROF_LABEL_KEY] = &label.key,
				   [PPROF_LABEL_TEXT] = &label.text,
				   [PPROF_LABEL_UNIT] = &label.unit};
	const char *why = NULL;
	int error = incstack__pprof_numbers(bytes, numbers, PPROF_LABEL_UNIT + 1, &why);

	for (uint32_t i = PPROF_LABEL_KEY; i <= PPROF_LABEL_UNIT && !error; i++) {
		bool valid = true;

		if (i != PPROF_LABEL_NUMBER)
			error = incstack__pprof_name(&pprof->tables, numbers[i], profile, names[i],
						     &valid);
		profile->losses |= valid ? 0 : INCSTACK__LOSS_LABELS;
	}
	if (why)
		return refuse(pprof, why);
	if (!error)
		error = incstack__reserve((void **)&pprof->labels, &pprof->labels_room,
					  pprof->labels_used + 1, sizeof(*pprof->labels));
	label.number = numbers[PPROF_LABEL_NUMBER];
	return error ? error
		     : incstack__label_frame(profile, &label, &pprof->labels[pprof->labels_used++]);
}

static int read_label(struct pprof_reader *pprof, pb_istream_t *bytes)
{
	pb_istream_t label;
	int error;

	if (!(pprof->reader->input->keep & INCSTACK_KEEP_LABELS)) {
		pprof->reader->profile->losses |= INCSTACK__LOSS_LABELS;
		return pb_skip_field(bytes, PB_WT_STRING) ? 0 : refuse(pprof, "a damaged sample");
	}
	if (!pb_make_string_substream(bytes, &label))
		return refuse(pprof, "a damaged sample");
	error = push_label(pprof, &label);
	if (!error && !pb_close_string_substream(bytes, &label))
		error = refuse(pprof, "a damaged sample");
	return error;
}

/* Reads a field of a sample. A repeated number may be packed or not. */
static int read_sample_field(struct pprof_reader *pprof, pb_istream_t *bytes, uint32_t field,
			     pb_wire_type_t type)
{
	pb_istream_t packed;
	int error = 0;

	if (type == PB_WT_VARINT)
		return push_number(pprof, field, bytes);
	if (field == PPROF_SAMPLE_LABEL && type == PB_WT_STRING)
		return read_label(pprof, bytes);
	if (type != PB_WT_STRING || field > PPROF_SAMPLE_VALUE)
		return pb_skip_field(bytes, type) ? 0 : refuse(pprof, "a damaged sample");
	if (!pb_make_string_substream(bytes, &packed))
		return refuse(pprof, "a damaged sample");
	while (packed.bytes_left && !error)
		error = push_number(pprof, field, &packed);
	if (!error && !pb_close_string_substream(bytes, &packed))
		error = refuse(pprof, "a damaged sample");
	return error;
}

static int add_sample(struct pprof_reader *pprof)
{
	struct incstack__reader *reader = pprof->reader;
	uint32_t node = INCSTACK_PROFILE_ROOT;
	int error = 0;

	if (pprof->values_used != reader->profile->kinds)
		return refuse(pprof, "a sample with fewer values than there are sample types");
	while (pprof->depth && !error) {
		error = incstack__node_child(reader->profile, node, pprof->path[--pprof->depth],
					     &node);
		if (!error && reader->profile->nodes_used > nodes_most(pprof))
			return refuse_nodes(pprof);
	}
	if (!error && node == INCSTACK_PROFILE_ROOT && pprof->labels_used)
		error = incstack__unknown_node(reader->profile, &node);
	for (size_t i = 0; i < pprof->labels_used && !error; i++)
		error = incstack__node_child(reader->profile, node, pprof->labels[i], &node);
	for (uint32_t k = 0; k < pprof->values_used && !error; k++)
		error = incstack__weigh(reader, node, k, pprof->values[k]);
	return error ? error : incstack__room(reader, (uint32_t)(nodes_most(pprof) / 2));
}

static int on_sample(struct pprof_reader *pprof, uint32_t field, pb_istream_t *bytes)
{
	int error = 0;

	if (field != PPROF_SAMPLE)
		return 0;
	pprof->depth = 0;
	pprof->labels_used = 0;
	pprof->values_used = 0;
	while (bytes->bytes_left && !error) {
		pb_wire_type_t type;
		uint32_t inner;
		bool over;

		if (!pb_decode_tag(bytes, &type, &inner, &over))
			return refuse(pprof, "a damaged sample");
		error = read_sample_field(pprof, bytes, inner, type);
	}
	return error ? error : add_sample(pprof);
}

static int read_twice(struct pprof_reader *pprof)
{
	struct incstack__reader *reader = pprof->reader;
	long start = ftell(reader->stream);
	const char *why = NULL;
	int error = start < 0 ? INCSTACK_EIO : read_pass(pprof, on_table, on_number);

	if (!error)
		error = incstack__pprof_profile(&pprof->tables, &reader->profile, &why);
	if (why)
		return refuse(pprof, why);
	if (!error && fseek(reader->stream, start, SEEK_SET))
		error = INCSTACK_EIO;
	return error ? error : read_pass(pprof, on_sample, NULL);
}

/* Copies the stream to a file that can be read twice. */
static int copy_stream(FILE *from, FILE **copy)
{
	char buffer[1 << 15];
	size_t got;

	*copy = tmpfile();
	if (!*copy)
		return INCSTACK_EIO;
	while ((got = fread(buffer, 1, sizeof(buffer), from)) > 0)
		fwrite(buffer, 1, got, *copy);
	if (ferror(from) || ferror(*copy) || fflush(*copy) || fseek(*copy, 0, SEEK_SET)) {
		fclose(*copy);
		return INCSTACK_EIO;
	}
	return 0;
}

int incstack__read_pprof(struct incstack__reader *reader)
{
	struct pprof_reader *pprof = calloc(1, sizeof(*pprof));
	FILE *given = reader->stream, *copy = NULL;
	int error = 0;

	if (!pprof)
		return INCSTACK_ENOMEM;
	pprof->reader = reader;
	pprof->tables.keep = reader->input->keep;
	if (fseek(given, 0, SEEK_CUR)) {
		error = copy_stream(given, &copy);
		reader->stream = copy;
	}
	if (!error)
		error = incstack__pprof_tables_init(&pprof->tables);
	if (!error)
		error = read_twice(pprof);
	if (copy)
		fclose(copy);
	reader->stream = given;
	incstack__pprof_tables_free(&pprof->tables);
	free(pprof->field);
	free(pprof->path);
	free(pprof->labels);
	free(pprof);
	return error;
}
