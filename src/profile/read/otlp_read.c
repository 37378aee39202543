/* SPDX-License-Identifier: MIT
 *
 * Reads profiles of OpenTelemetry (OTLP). A file is turned into a pprof file in memory, whose reader has all limits
 * and checks. The profiles of the file, each with one kind of weight, become kinds of one profile.
 */
#include <stdlib.h>
#include <string.h>

#include "otlp_read.h"
#include "profile/pprof.h"

/* The limits of a file, and of what may be made of it: a constant, and a number for each of its bytes. A stack
 * that many samples share is repeated there. */
#define FILE_MOST ((size_t)1 << 30)
enum { MADE_LEAST = 1 << 24, MADE_EACH = 32 };

typedef void profile_fn(struct incstack__otlp *otlp, struct incstack__otlp_span profile);
typedef void scope_fn(struct incstack__otlp *otlp, struct incstack__otlp_span scope);

/* ---- kinds and meta data ------------------------------------------------------------------- */

/* Returns the number of a profile's kind; the number of kinds if it is new. Profiles of one type are of one kind
 * if they are of different scopes. Those of one scope are of kinds with one name, while there is room. */
static uint32_t kind_of(struct incstack__otlp *otlp, const uint64_t *type)
{
	uint32_t same = otlp->kinds_used;

	for (uint32_t k = otlp->kinds_used; k-- > 0;)
		if (otlp->kinds[k][0] == type[OTLP_TYPE_NAME] &&
		    otlp->kinds[k][1] == type[OTLP_TYPE_UNIT] &&
		    (!otlp->taken[k] || otlp->kinds_used == INCSTACK_PROFILE_KINDS_MAX))
			same = k;
	if (same < INCSTACK_PROFILE_KINDS_MAX)
		otlp->taken[same] = true;
	return same;
}

/* Reads the type of a profile. */
static void type_of(struct incstack__otlp *otlp, struct incstack__otlp_span profile,
		    uint64_t type[OTLP_TYPE_UNIT + 1])
{
	struct incstack__otlp_field field;

	memset(type, 0, (OTLP_TYPE_UNIT + 1) * sizeof(*type));
	while (incstack__otlp_next(otlp, &profile, &field))
		if (field.number == OTLP_PROFILE_TYPE && field.is_bytes)
			incstack__otlp_numbers(otlp, field.bytes, type, OTLP_TYPE_UNIT + 1);
}

static void put_type(struct incstack__otlp *otlp, uint32_t field, const uint64_t *type)
{
	incstack__bytes_number(&otlp->message, 1, type[OTLP_TYPE_NAME]);
	incstack__bytes_number(&otlp->message, 2, type[OTLP_TYPE_UNIT]);
	incstack__bytes_message(&otlp->pprof, field, &otlp->message);
}

/* Gives the time, the duration and the period of the first profile to the file. */
static void put_meta(struct incstack__otlp *otlp, struct incstack__otlp_span profile)
{
	static const uint32_t of_pprof[] = {[OTLP_PROFILE_TIME] = PPROF_TIME,
					    [OTLP_PROFILE_DURATION] = PPROF_DURATION,
					    [OTLP_PROFILE_PERIOD] = PPROF_PERIOD};
	struct incstack__otlp_field field;

	while (incstack__otlp_next(otlp, &profile, &field)) {
		uint64_t type[OTLP_TYPE_UNIT + 1] = {0};

		if (field.number == OTLP_PROFILE_PERIOD_TYPE && field.is_bytes) {
			incstack__otlp_numbers(otlp, field.bytes, type, OTLP_TYPE_UNIT + 1);
			put_type(otlp, PPROF_PERIOD_TYPE, type);
		} else if (field.number <= OTLP_PROFILE_PERIOD && !field.is_bytes &&
			   of_pprof[field.number]) {
			incstack__bytes_number(&otlp->pprof, of_pprof[field.number], field.value);
		}
	}
}

static void add_kind(struct incstack__otlp *otlp, struct incstack__otlp_span profile)
{
	uint64_t type[OTLP_TYPE_UNIT + 1];

	type_of(otlp, profile, type);
	if (!otlp->has_meta)
		put_meta(otlp, profile);
	otlp->has_meta = true;
	if (kind_of(otlp, type) < otlp->kinds_used)
		return;
	if (otlp->kinds_used == INCSTACK_PROFILE_KINDS_MAX) {
		(void)incstack__refuse(otlp->reader, "more types than a profile can have");
		return;
	}
	otlp->kinds[otlp->kinds_used][0] = type[OTLP_TYPE_NAME];
	otlp->kinds[otlp->kinds_used++][1] = type[OTLP_TYPE_UNIT];
	put_type(otlp, PPROF_SAMPLE_TYPE, type);
}

/* Makes a comment of an attribute of our own scope, which pprof_meta.c understands. */
static void put_comment(struct incstack__otlp *otlp, struct incstack__otlp_span pair)
{
	struct incstack__otlp_span key = {0}, value = {0}, text;
	struct incstack__otlp_field field;
	char digits[24];

	while (incstack__otlp_next(otlp, &pair, &field))
		if (field.is_bytes)
			*(field.number == OTLP_KEY ? &key : &value) = field.bytes;
	while (incstack__otlp_next(otlp, &value, &field)) {
		text = field.bytes;
		if (!field.is_bytes)
			text = (struct incstack__otlp_span){
				(unsigned char *)digits,
				(uint32_t)snprintf(digits, sizeof(digits), "%llu",
						   (unsigned long long)field.value)};
		incstack__bytes_add(&otlp->message, "incstack.", 9);
		incstack__bytes_add(&otlp->message, key.at, key.size);
		incstack__bytes_add(&otlp->message, "=", 1);
		incstack__bytes_add(&otlp->message, text.at, text.size);
		incstack__bytes_message(&otlp->pprof, PPROF_STRING, &otlp->message);
		incstack__bytes_number(&otlp->pprof, PPROF_COMMENT, otlp->strings++);
	}
}

static void read_scope(struct incstack__otlp *otlp, struct incstack__otlp_span scope)
{
	struct incstack__otlp_span rest = scope;
	struct incstack__otlp_field field;
	bool ours = false;

	while (incstack__otlp_next(otlp, &rest, &field))
		if (field.number == OTLP_SCOPE_NAME && field.is_bytes)
			ours = field.bytes.size == 8 && !memcmp(field.bytes.at, "incstack", 8);
	while (ours && incstack__otlp_next(otlp, &scope, &field))
		if (field.number == OTLP_SCOPE_ATTRIBUTES && field.is_bytes)
			put_comment(otlp, field.bytes);
}

/* ---- samples ------------------------------------------------------------------------------ */

/* Adds the label of an attribute to the sample that is being made. */
static void put_label(struct incstack__otlp *otlp, uint64_t attribute)
{
	struct incstack__otlp_span message =
		incstack__otlp_element(otlp, OTLP_ATTRIBUTES, attribute);
	struct incstack__otlp_span value = {0};
	struct incstack__otlp_field field;

	while (incstack__otlp_next(otlp, &message, &field))
		if (field.number == OTLP_ATTRIBUTE_KEY && !field.is_bytes)
			incstack__bytes_number(&otlp->inner, PPROF_LABEL_KEY, field.value);
		else if (field.number == OTLP_ATTRIBUTE_UNIT && !field.is_bytes)
			incstack__bytes_number(&otlp->inner, PPROF_LABEL_UNIT, field.value);
		else if (field.number == OTLP_ATTRIBUTE_VALUE && field.is_bytes)
			value = field.bytes;
	while (incstack__otlp_next(otlp, &value, &field))
		if (field.number == OTLP_ANY_STRING && field.is_bytes)
			incstack__bytes_number(&otlp->inner, PPROF_LABEL_TEXT,
					       incstack__otlp_new_string(otlp, field.bytes));
		else if (field.number == OTLP_ANY_NUMBER && !field.is_bytes)
			incstack__bytes_number(&otlp->inner, PPROF_LABEL_NUMBER, field.value);
	if (attribute)
		incstack__bytes_message(&otlp->message, PPROF_SAMPLE_LABEL, &otlp->inner);
}

static void put_location_number(struct incstack__otlp *otlp, uint64_t number)
{
	if (number)
		incstack__bytes_number(&otlp->message, PPROF_SAMPLE_LOCATION, number);
}

static void put_stack(struct incstack__otlp *otlp, uint64_t stack)
{
	struct incstack__otlp_span message = incstack__otlp_element(otlp, OTLP_STACKS, stack);
	struct incstack__otlp_field field;
	uint64_t number;

	if (stack && stack >= otlp->tables[OTLP_STACKS].used)
		(void)incstack__refuse(otlp->reader, "a sample with a stack that does not exist");
	while (incstack__otlp_next(otlp, &message, &field)) {
		if (field.number != 1)
			continue;
		if (!field.is_bytes)
			put_location_number(otlp, field.value);
		while (incstack__otlp_packed(otlp, &field.bytes, &number))
			put_location_number(otlp, number);
	}
}

/* What a sample weighs: its values, or without values one for each time. */
struct weight {
	uint64_t sum, times;
	bool has_values;
};

static void add_value(struct incstack__otlp *otlp, struct weight *weight, uint64_t value)
{
	weight->has_values = true;
	if (value > INT64_MAX - weight->sum)
		(void)incstack__refuse(otlp->reader, "a weight that is negative or too large");
	weight->sum += value;
}

/* Adds the labels of a sample, and finds its stack and its weight. */
static struct weight read_sample(struct incstack__otlp *otlp, struct incstack__otlp_span sample,
				 uint64_t *stack)
{
	struct weight weight = {0};
	struct incstack__otlp_field field;
	uint64_t number;

	while (incstack__otlp_next(otlp, &sample, &field)) {
		if (field.number == OTLP_SAMPLE_STACK && !field.is_bytes)
			*stack = field.value;
		if (field.number == OTLP_SAMPLE_TIMESTAMPS)
			weight.times += field.is_bytes ? field.bytes.size / 8 : 1;
		if (field.number == OTLP_SAMPLE_VALUES && !field.is_bytes)
			add_value(otlp, &weight, field.value);
		if (field.number == OTLP_SAMPLE_ATTRIBUTES && !field.is_bytes)
			put_label(otlp, field.value);
		if (field.number != OTLP_SAMPLE_VALUES && field.number != OTLP_SAMPLE_ATTRIBUTES)
			continue;
		while (incstack__otlp_packed(otlp, &field.bytes, &number))
			if (field.number == OTLP_SAMPLE_VALUES)
				add_value(otlp, &weight, number);
			else
				put_label(otlp, number);
	}
	return weight;
}

static void put_sample(struct incstack__otlp *otlp, struct incstack__otlp_span sample,
		       uint32_t kind)
{
	uint64_t stack = 0;
	const struct weight weight = read_sample(otlp, sample, &stack);

	put_stack(otlp, stack);
	for (uint32_t k = 0; k < otlp->kinds_used; k++)
		incstack__bytes_varint(&otlp->packed, k != kind           ? 0
						      : weight.has_values ? weight.sum
									  : weight.times);
	incstack__bytes_message(&otlp->message, PPROF_SAMPLE_VALUE, &otlp->packed);
	incstack__bytes_message(&otlp->pprof, PPROF_SAMPLE, &otlp->message);
	if (otlp->pprof.used > MADE_LEAST + otlp->file.used * MADE_EACH)
		(void)incstack__refuse(
			otlp->reader,
			"more frames than a file of this size can have; it may be a bomb");
}

static void put_samples(struct incstack__otlp *otlp, struct incstack__otlp_span profile)
{
	struct incstack__otlp_field field;
	uint64_t type[OTLP_TYPE_UNIT + 1];
	uint32_t kind;

	type_of(otlp, profile, type);
	kind = kind_of(otlp, type);
	while (incstack__otlp_next(otlp, &profile, &field))
		if (field.number == OTLP_PROFILE_SAMPLES && field.is_bytes)
			put_sample(otlp, field.bytes, kind);
}

/* ---- the file ------------------------------------------------------------------------------ */

/* Calls the functions for each scope and each profile of scope profiles. */
static void each_profile(struct incstack__otlp *otlp, struct incstack__otlp_span scopes,
			 scope_fn *on_scope, profile_fn *on_profile)
{
	struct incstack__otlp_field field;

	memset(otlp->taken, 0, sizeof(otlp->taken));
	while (incstack__otlp_next(otlp, &scopes, &field))
		if (field.number == OTLP_PROFILES && field.is_bytes)
			on_profile(otlp, field.bytes);
		else if (field.number == OTLP_SCOPE && field.is_bytes && on_scope)
			on_scope(otlp, field.bytes);
}

/* Calls the functions for all of the file. */
static void each_resource(struct incstack__otlp *otlp, scope_fn *on_scope, profile_fn *on_profile)
{
	struct incstack__otlp_span file = {otlp->file.at, (uint32_t)otlp->file.used};
	struct incstack__otlp_field field, inner;

	while (incstack__otlp_next(otlp, &file, &field))
		while (field.number == OTLP_RESOURCE_PROFILES &&
		       incstack__otlp_next(otlp, &field.bytes, &inner))
			if (inner.number == OTLP_SCOPE_PROFILES && inner.is_bytes)
				each_profile(otlp, inner.bytes, on_scope, on_profile);
}

static int read_dictionaries(struct incstack__otlp *otlp)
{
	struct incstack__otlp_span file = {otlp->file.at, (uint32_t)otlp->file.used};
	struct incstack__otlp_field field;
	int error = 0;

	while (!error && incstack__otlp_next(otlp, &file, &field))
		if (field.number == OTLP_DICTIONARY && field.is_bytes)
			error = incstack__otlp_dictionary(otlp, field.bytes);
	return error;
}

/* Makes the pprof file. */
static int convert(struct incstack__otlp *otlp)
{
	int error = read_dictionaries(otlp);

	if (error)
		return error;
	incstack__otlp_put_tables(otlp);
	each_resource(otlp, read_scope, add_kind);
	if (!otlp->kinds_used && !incstack__otlp_failed(otlp))
		(void)incstack__refuse(otlp->reader, "no profiles: this is not an OTLP file");
	each_resource(otlp, NULL, put_samples);
	return otlp->reader->at.why ? INCSTACK_EFORMAT : otlp->pprof.error;
}

static int load(struct incstack__otlp *otlp)
{
	unsigned char buffer[1 << 15];
	size_t got;

	while ((got = fread(buffer, 1, sizeof(buffer), otlp->reader->stream)) > 0) {
		incstack__bytes_add(&otlp->file, buffer, got);
		if (otlp->file.used > FILE_MOST)
			return incstack__refuse(otlp->reader, "a file of more than 1 GiB");
	}
	return ferror(otlp->reader->stream) ? INCSTACK_EIO : otlp->file.error;
}

static int read_pprof(struct incstack__otlp *otlp)
{
	struct incstack__reader *reader = otlp->reader;
	FILE *given = reader->stream;
	int error;

	incstack__bytes_free(&otlp->file);
	reader->stream = fmemopen(otlp->pprof.at, otlp->pprof.used, "r");
	error = reader->stream ? incstack__read_pprof(reader) : INCSTACK_ENOMEM;
	if (reader->stream)
		fclose(reader->stream);
	reader->stream = given;
	reader->at.offset = 0; /* it was one of the pprof file */
	return error;
}

int incstack__read_otlp(struct incstack__reader *reader)
{
	struct incstack__otlp *otlp = calloc(1, sizeof(*otlp));
	int error;

	if (!otlp)
		return INCSTACK_ENOMEM;
	otlp->reader = reader;
	error = load(otlp);
	if (!error)
		error = convert(otlp);
	if (!error)
		error = read_pprof(otlp);
	for (int i = 0; i < OTLP_TABLES; i++)
		free(otlp->tables[i].elements);
	incstack__bytes_free(&otlp->file);
	incstack__bytes_free(&otlp->pprof);
	incstack__bytes_free(&otlp->message);
	incstack__bytes_free(&otlp->inner);
	incstack__bytes_free(&otlp->packed);
	free(otlp);
	return error;
}
