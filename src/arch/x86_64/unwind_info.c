/* SPDX-License-Identifier: MIT
 *
 * Unwind information for a copy of the trampoline. It is made from the information that the
 * assembler wrote for the first pool, which is found in this object's .eh_frame, with the
 * addresses replaced. So there is only one description of the thunks.
 */
#include <link.h>
#include <string.h>

#include "elf/elf_layout.h"
#include "elf/unwind_index.h"
#include "unwind_info.h"

/* The pointer encodings of the Linux Standard Base that occur here. */
enum { ABSOLUTE = 0x00, OMITTED = 0xff };

static uint64_t uleb(const uint8_t **at)
{
	uint64_t value = 0;
	for (int shift = 0;; shift += 7) {
		uint8_t byte = *(*at)++;
		value |= (uint64_t)(byte & 0x7f) << shift;
		if (!(byte & 0x80))
			return value;
	}
}

static size_t encoded_bytes(uint8_t encoding)
{
	static const uint8_t bytes[8] = {8, 0, 2, 4, 8, 0, 0, 0};
	return encoding == OMITTED ? 0 : bytes[encoding & 7];
}

static uint32_t word_at(const uint8_t *at)
{
	uint32_t word;
	memcpy(&word, at, sizeof(word));
	return word;
}

/* ---- finding ---------------------------------------------------------------- */

/* Returns the FDE that begins at pc, or null if the linker made no table of FDEs. */
static const uint8_t *find_fde(uintptr_t pc)
{
	struct incstack__elf_search search = {.address = pc};
	if (dl_iterate_phdr(incstack__elf_contains, &search) == 0)
		return NULL;
	const struct incstack__elf_unwind_index *index = (const void *)search.layout.unwind_index;
	if (!index || !incstack__elf_unwind_index_is_usual(index))
		return NULL;
	const uint8_t *here = (const uint8_t *)index;
	const uint32_t i = incstack__elf_unwind_index_find(index, (int64_t)(pc - (uintptr_t)here));
	return (uintptr_t)(here + index->table[i].low) == pc ? here + index->table[i].fde : NULL;
}

/* ---- writing ---------------------------------------------------------------- */

/* The bytes of a CIE or an FDE after its length and the word that follows the length. */
struct record {
	const uint8_t *at, *end;
};

static struct record record_at(const uint8_t *start)
{
	return (struct record){start + 8, start + 4 + word_at(start)};
}

struct common {
	const uint8_t *factors; /* alignment factors and return column */
	size_t factors_bytes;
	uint8_t pointer_encoding;
	bool personality;
	struct record instructions;
};

/* Reads a CIE with augmentation "zR" or "zPR"; false for any other. */
static bool read_common(struct record cie, struct common *c)
{
	const uint8_t *at = cie.at + 1;
	c->personality = !strcmp((const char *)at, "zPR");
	if (cie.at[0] != 1 || (!c->personality && strcmp((const char *)at, "zR") != 0))
		return false;
	at += strlen((const char *)at) + 1;
	c->factors = at;
	uleb(&at);
	uleb(&at); /* an sleb128, but it is skipped the same way */
	at++;
	c->factors_bytes = (size_t)(at - c->factors);
	uint64_t augmentation = uleb(&at);
	c->pointer_encoding = at[augmentation - 1];
	c->instructions = (struct record){at + augmentation, cie.end};
	return true;
}

static void put(uint8_t **out, const void *bytes, size_t count)
{
	memcpy(*out, bytes, count);
	*out += count;
}

/* Pads with DW_CFA_nop and fills in the length. */
static void finish(uint8_t **out, uint8_t *start)
{
	while ((*out - start) % 8 != 4)
		*(*out)++ = 0;
	uint32_t bytes = (uint32_t)(*out - start - 4);
	memcpy(start, &bytes, sizeof(bytes));
}

static void put_cie(uint8_t **out, const struct common *c, uintptr_t personality)
{
	static const uint8_t plain[] = {1, 'z', 'R', 0}, with[] = {1, 'z', 'P', 'R', 0};
	static const uint8_t no_id[4];
	uint8_t *start = *out;
	*out += 4;
	put(out, no_id, sizeof(no_id));
	put(out, c->personality ? with : plain, c->personality ? sizeof(with) : sizeof(plain));
	put(out, c->factors, c->factors_bytes);
	*(*out)++ = c->personality ? 10 : 1;
	if (c->personality) {
		*(*out)++ = ABSOLUTE;
		put(out, &personality, sizeof(personality));
	}
	*(*out)++ = ABSOLUTE;
	put(out, c->instructions.at, (size_t)(c->instructions.end - c->instructions.at));
	finish(out, start);
}

uint8_t *incstack__unwind_info_copy(uint8_t *out, uintptr_t from, uintptr_t bytes, uintptr_t to,
				    uintptr_t personality)
{
	const uint8_t *fde = find_fde(from);
	struct common c;
	if (!fde || !read_common(record_at(fde + 4 - word_at(fde + 4)), &c))
		return NULL;
	struct record r = record_at(fde);
	r.at += 2 * encoded_bytes(c.pointer_encoding);
	uint64_t augmentation = uleb(&r.at);
	r.at += augmentation;
	uint8_t *cie = out;
	put_cie(&out, &c, personality);
	uint8_t *start = out;
	uint32_t back = (uint32_t)(start + 4 - cie);
	out += 4;
	put(&out, &back, sizeof(back));
	put(&out, &to, sizeof(to));
	put(&out, &bytes, sizeof(bytes));
	*out++ = 0; /* no augmentation data */
	put(&out, r.at, (size_t)(r.end - r.at));
	finish(&out, start);
	return out;
}
