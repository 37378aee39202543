/* SPDX-License-Identifier: MIT
 *
 * Reads what all messages of a pprof file consist of: numbered fields, and references to strings.
 */
#include <string.h>

#include "pprof_tables.h"

int incstack__pprof_damaged(const char **why)
{
	*why = "a damaged message";
	return INCSTACK_EFORMAT;
}

int incstack__pprof_numbers(pb_istream_t *bytes, uint64_t *numbers, uint32_t count,
			    const char **why)
{
	while (bytes->bytes_left) {
		pb_wire_type_t type;
		uint32_t field;
		uint64_t ignored;
		bool over;

		if (!pb_decode_tag(bytes, &type, &field, &over))
			return incstack__pprof_damaged(why);
		if (type != PB_WT_VARINT) {
			if (!pb_skip_field(bytes, type))
				return incstack__pprof_damaged(why);
		} else if (!pb_decode_varint(bytes, field < count ? &numbers[field] : &ignored)) {
			return incstack__pprof_damaged(why);
		}
	}
	return 0;
}

static const struct incstack__pprof_text *text_of(const struct incstack__pprof_tables *tables,
						  uint64_t string)
{
	return string < tables->texts_used ? &tables->texts[string] : NULL;
}

const char *incstack__pprof_string(const struct incstack__pprof_tables *tables, uint64_t string)
{
	const struct incstack__pprof_text *text = text_of(tables, string);

	if (!text || !incstack__text_valid(tables->bytes + text->offset, text->length))
		return NULL;
	return tables->bytes + text->offset;
}

int incstack__pprof_name(const struct incstack__pprof_tables *tables, uint64_t string,
			 struct incstack_profile *profile, uint32_t *name, bool *valid)
{
	const char *text = incstack__pprof_string(tables, string);
	int error;

	*name = 0;
	*valid = text || !string;
	if (!text || !*text)
		return 0;
	error = incstack__name_intern(profile, text, strlen(text), name);
	++*name;
	return error;
}
