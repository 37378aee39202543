/* SPDX-License-Identifier: MIT
 *
 * Makes the tables of a pprof file of the dictionary of an OTLP file. Where pprof has identifiers, OTLP has the
 * number of an element in its table.
 */
#include <string.h>

#include "otlp_read.h"
#include "profile/pprof.h"

/* ---- fields ------------------------------------------------------------------------------ */

static bool fail(struct incstack__otlp *otlp)
{
	if (!otlp->reader->at.why)
		(void)incstack__refuse(otlp->reader, "a damaged message");
	return false;
}

bool incstack__otlp_next(struct incstack__otlp *otlp, struct incstack__otlp_span *message,
			 struct incstack__otlp_field *field)
{
	pb_istream_t stream = pb_istream_from_buffer(message->at, message->size);
	pb_wire_type_t type;
	uint32_t size;
	bool over, valid;

	*field = (struct incstack__otlp_field){0};
	if (!message->size || incstack__otlp_failed(otlp))
		return false;
	if (!pb_decode_tag(&stream, &type, &field->number, &over) || !field->number)
		return fail(otlp);
	if (type == PB_WT_STRING) {
		if (!pb_decode_varint32(&stream, &size) || size > stream.bytes_left)
			return fail(otlp);
		field->is_bytes = true;
		field->bytes = (struct incstack__otlp_span){
			message->at + message->size - stream.bytes_left, size};
		valid = pb_read(&stream, NULL, size);
	} else if (type == PB_WT_64BIT) {
		valid = pb_decode_fixed64(&stream, &field->value);
	} else {
		valid = type == PB_WT_VARINT ? pb_decode_varint(&stream, &field->value)
					     : pb_skip_field(&stream, type);
	}
	message->at += message->size - stream.bytes_left;
	message->size = (uint32_t)stream.bytes_left;
	return valid || fail(otlp);
}

void incstack__otlp_numbers(struct incstack__otlp *otlp, struct incstack__otlp_span message,
			    uint64_t *numbers, uint32_t count)
{
	struct incstack__otlp_field field;

	while (incstack__otlp_next(otlp, &message, &field))
		if (!field.is_bytes && field.number < count)
			numbers[field.number] = field.value;
}

bool incstack__otlp_packed(struct incstack__otlp *otlp, struct incstack__otlp_span *bytes,
			   uint64_t *number)
{
	pb_istream_t stream = pb_istream_from_buffer(bytes->at, bytes->size);

	if (!bytes->size || incstack__otlp_failed(otlp))
		return false;
	if (!pb_decode_varint(&stream, number))
		return fail(otlp);
	bytes->at += bytes->size - stream.bytes_left;
	bytes->size = (uint32_t)stream.bytes_left;
	return true;
}

/* ---- the tables --------------------------------------------------------------------------- */

struct incstack__otlp_span incstack__otlp_element(const struct incstack__otlp *otlp, uint32_t table,
						  uint64_t number)
{
	const struct incstack__otlp_table *from = &otlp->tables[table];

	return number < from->used ? from->elements[number] : (struct incstack__otlp_span){0};
}

int incstack__otlp_dictionary(struct incstack__otlp *otlp, struct incstack__otlp_span message)
{
	struct incstack__otlp_field field;

	while (incstack__otlp_next(otlp, &message, &field)) {
		struct incstack__otlp_table *table;
		int error;

		if (!field.is_bytes || field.number >= OTLP_TABLES)
			continue;
		table = &otlp->tables[field.number];
		error = incstack__reserve((void **)&table->elements, &table->room, table->used + 1,
					  sizeof(*table->elements));
		if (error)
			return error;
		table->elements[table->used++] = field.bytes;
	}
	return 0;
}

uint64_t incstack__otlp_new_string(struct incstack__otlp *otlp, struct incstack__otlp_span text)
{
	incstack__bytes_field(&otlp->pprof, PPROF_STRING, text.at, text.size);
	return otlp->strings++;
}

static void put_strings(struct incstack__otlp *otlp)
{
	const struct incstack__otlp_table *strings = &otlp->tables[OTLP_STRINGS];

	for (size_t i = 0; i < strings->used; i++)
		(void)incstack__otlp_new_string(otlp, strings->elements[i]);
	if (!strings->used)
		(void)incstack__otlp_new_string(otlp, (struct incstack__otlp_span){0});
}

/* The fields of pprof have numbers that are one larger, because the identifier comes first. */
static void put_functions(struct incstack__otlp *otlp)
{
	const struct incstack__otlp_table *functions = &otlp->tables[OTLP_FUNCTIONS];

	for (size_t i = 1; i < functions->used; i++) {
		uint64_t numbers[OTLP_FUNCTION_START_LINE + 1] = {0};

		incstack__otlp_numbers(otlp, functions->elements[i], numbers,
				       OTLP_FUNCTION_START_LINE + 1);
		incstack__bytes_number(&otlp->message, PPROF_FUNCTION_ID, i);
		for (uint32_t f = OTLP_FUNCTION_NAME; f <= OTLP_FUNCTION_START_LINE; f++)
			incstack__bytes_number(&otlp->message, f + 1, numbers[f]);
		incstack__bytes_message(&otlp->pprof, PPROF_FUNCTION, &otlp->message);
	}
}

/* Returns the text of an attribute if it is the build-id, as a new string; otherwise 0. */
static uint64_t build_id_of(struct incstack__otlp *otlp, uint64_t attribute)
{
	static const char name[] = INCSTACK__OTLP_BUILD_ID;
	struct incstack__otlp_span message =
		incstack__otlp_element(otlp, OTLP_ATTRIBUTES, attribute);
	struct incstack__otlp_span value = {0}, key = {0};
	struct incstack__otlp_field field;

	while (incstack__otlp_next(otlp, &message, &field)) {
		if (field.number == OTLP_ATTRIBUTE_KEY && !field.is_bytes)
			key = incstack__otlp_element(otlp, OTLP_STRINGS, field.value);
		if (field.number == OTLP_ATTRIBUTE_VALUE && field.is_bytes)
			value = field.bytes;
	}
	if (key.size != sizeof(name) - 1 || memcmp(key.at, name, key.size) != 0)
		return 0;
	while (incstack__otlp_next(otlp, &value, &field))
		if (field.number == OTLP_ANY_STRING && field.is_bytes)
			return incstack__otlp_new_string(otlp, field.bytes);
	return 0;
}

static void put_mapping(struct incstack__otlp *otlp, size_t number)
{
	struct incstack__otlp_span message = otlp->tables[OTLP_MAPPINGS].elements[number];
	struct incstack__otlp_field field;
	uint64_t build_id = 0, attribute;

	incstack__bytes_number(&otlp->message, PPROF_MAPPING_ID, number);
	while (incstack__otlp_next(otlp, &message, &field)) {
		if (!field.is_bytes && field.number <= OTLP_MAPPING_FILE)
			incstack__bytes_number(&otlp->message, field.number + 1, field.value);
		if (field.number != OTLP_MAPPING_ATTRIBUTES || build_id)
			continue;
		if (!field.is_bytes)
			build_id = build_id_of(otlp, field.value);
		while (!build_id && incstack__otlp_packed(otlp, &field.bytes, &attribute))
			build_id = build_id_of(otlp, attribute);
	}
	incstack__bytes_number(&otlp->message, PPROF_MAPPING_BUILD_ID, build_id);
	incstack__bytes_message(&otlp->pprof, PPROF_MAPPING, &otlp->message);
}

/* A line has the same fields in both formats. One without a function says nothing. */
static void put_line(struct incstack__otlp *otlp, struct incstack__otlp_span line)
{
	uint64_t numbers[OTLP_LINE_FUNCTION + 1] = {0};

	incstack__otlp_numbers(otlp, line, numbers, OTLP_LINE_FUNCTION + 1);
	if (numbers[OTLP_LINE_FUNCTION])
		incstack__bytes_field(&otlp->message, PPROF_LOCATION_LINE, line.at, line.size);
}

static void put_location(struct incstack__otlp *otlp, size_t number)
{
	struct incstack__otlp_span message = otlp->tables[OTLP_LOCATIONS].elements[number];
	struct incstack__otlp_field field;

	incstack__bytes_number(&otlp->message, PPROF_LOCATION_ID, number);
	while (incstack__otlp_next(otlp, &message, &field))
		if (field.number == OTLP_LOCATION_LINES && field.is_bytes)
			put_line(otlp, field.bytes);
		else if (field.number <= OTLP_LOCATION_ADDRESS && !field.is_bytes)
			incstack__bytes_number(&otlp->message, field.number + 1, field.value);
	incstack__bytes_message(&otlp->pprof, PPROF_LOCATION, &otlp->message);
}

void incstack__otlp_put_tables(struct incstack__otlp *otlp)
{
	put_strings(otlp);
	put_functions(otlp);
	for (size_t i = 1; i < otlp->tables[OTLP_MAPPINGS].used; i++)
		put_mapping(otlp, i);
	for (size_t i = 1; i < otlp->tables[OTLP_LOCATIONS].used; i++)
		put_location(otlp, i);
}
