/* SPDX-License-Identifier: MIT
 *
 * An OTLP file in memory, and the pprof file that is made of it.
 */
#ifndef INCSTACK_PROFILE_OTLP_READ_H
#define INCSTACK_PROFILE_OTLP_READ_H

#include <pb_decode.h>

#include "profile/bytes.h"
#include "profile/otlp.h"
#include "reader.h"

/* An element of a table of the dictionary: where its message lies. */
struct incstack__otlp_span {
	const unsigned char *at;
	uint32_t size;
};

struct incstack__otlp_table {
	struct incstack__otlp_span *elements;
	size_t used, room;
};

struct incstack__otlp {
	struct incstack__reader *reader;
	struct incstack__bytes file, pprof;
	struct incstack__otlp_table tables[OTLP_TABLES];
	uint64_t strings;                              /* that the pprof file has so far */
	struct incstack__bytes message, inner, packed; /* that are being made */
	uint64_t kinds[INCSTACK_PROFILE_KINDS_MAX][2]; /* name and unit, in the string table */
	uint32_t kinds_used;
	bool taken[INCSTACK_PROFILE_KINDS_MAX]; /* by a profile of the current scope */
	bool has_meta;                          /* of the first profile */
};

/* A field of a message: a number, or bytes. */
struct incstack__otlp_field {
	uint32_t number;
	bool is_bytes;
	uint64_t value; /* of a number */
	struct incstack__otlp_span bytes;
};

/* Reads the next field. Returns false at the end, and after an error, which sets reader->at.why. */
bool incstack__otlp_next(struct incstack__otlp *otlp, struct incstack__otlp_span *message,
			 struct incstack__otlp_field *field);
/* Reads the numbers of a message by field, up to `count` fields. */
void incstack__otlp_numbers(struct incstack__otlp *otlp, struct incstack__otlp_span message,
			    uint64_t *numbers, uint32_t count);
/* Reads the next of packed numbers. */
bool incstack__otlp_packed(struct incstack__otlp *otlp, struct incstack__otlp_span *bytes,
			   uint64_t *number);
/* Returns an element of a table; an empty message if there is none. */
struct incstack__otlp_span incstack__otlp_element(const struct incstack__otlp *otlp, uint32_t table,
						  uint64_t number);
/* Adds a string that the dictionary does not have as a string, and returns its number. */
uint64_t incstack__otlp_new_string(struct incstack__otlp *otlp, struct incstack__otlp_span text);

/* Whether an error was found. */
static inline bool incstack__otlp_failed(const struct incstack__otlp *otlp)
{
	return otlp->reader->at.why || otlp->pprof.error;
}

/* otlp_dictionary_read.c: reads the dictionary, and adds its strings, functions, mappings and locations. */
int incstack__otlp_dictionary(struct incstack__otlp *otlp, struct incstack__otlp_span message);
void incstack__otlp_put_tables(struct incstack__otlp *otlp);

#endif
