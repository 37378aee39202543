/* SPDX-License-Identifier: MIT
 *
 * The code objects that were seen, by their addresses while they live and by their numbers for ever.
 */
#include "codes.h"

#include <stdlib.h>
#include <string.h>

struct place {
	const void *object; /* null: free */
	uint32_t number;
};

uint64_t codes_bits[CODES_BITS / 64];

static struct place *places; /* a hash table with linear probing */
static size_t place_count, place_used;
static struct code *codes;
static uint32_t code_count, code_room;
static uint32_t bits_set;

/* ---- names ------------------------------------------------------------------------------ */

static size_t put(char *to, Py_UCS4 c)
{
	const size_t length = c < 0x80 ? 1 : c < 0x800 ? 2 : c < 0x10000 ? 3 : 4;
	static const unsigned char first[] = {0, 0, 0xc0, 0xe0, 0xf0};
	for (size_t i = length; --i > 0; c >>= 6)
		to[i] = (char)(0x80 | (c & 0x3f));
	to[0] = (char)(first[length] | c);
	return length;
}

/* Copies a string of Python as UTF-8. Python's own function would allocate with Python's allocator. */
static char *copy_text(PyObject *text)
{
	const bool is_text = text && PyUnicode_Check(text);
	const Py_ssize_t length = is_text ? PyUnicode_GET_LENGTH(text) : 0;
	char *copy = malloc(4 * (size_t)length + 2), *end = copy;
	if (!copy)
		return NULL;
	for (Py_ssize_t i = 0; i < length; i++) {
		Py_UCS4 c = PyUnicode_READ(PyUnicode_KIND(text), PyUnicode_DATA(text), i);
		end += put(end, c >= 0xd800 && c < 0xe000 ? 0xfffd : c ? c : '?');
	}
	if (end == copy)
		*end++ = '?';
	*end++ = 0;
	char *small = realloc(copy, (size_t)(end - copy));
	return small ? small : copy;
}

/* ---- the table of addresses ------------------------------------------------------------- */

static size_t home(const void *object)
{
	return codes_hash(object) & (place_count - 1);
}

static struct place *find(const void *object)
{
	size_t i = home(object);
	while (places[i].object && places[i].object != object)
		i = (i + 1) & (place_count - 1);
	return &places[i];
}

static void set_bit(const void *object)
{
	const uint32_t bit = codes_hash(object) % CODES_BITS;
	codes_bits[bit / 64] |= UINT64_C(1) << bit % 64;
	bits_set++;
}

static bool grow_places(void)
{
	struct place *old = places;
	const size_t count = place_count;
	struct place *more = calloc(count ? 2 * count : 1024, sizeof(*more));
	if (!more)
		return false;
	places = more;
	place_count = count ? 2 * count : 1024;
	for (size_t i = 0; i < count; i++)
		if (old[i].object)
			*find(old[i].object) = old[i];
	free(old);
	return true;
}

static bool grow_codes(void)
{
	const uint32_t room = code_room ? 2 * code_room : 512;
	struct code *more = realloc(codes, room * sizeof(*codes));
	if (!more)
		return false;
	codes = more;
	code_room = room;
	if (!code_count)
		codes[code_count++] = (struct code){"?", "?"};
	return true;
}

/* Returns the number of a code object, from 1 on; 0 if there is no memory. */
uint32_t codes_number(const PyCodeObject *object)
{
	if (2 * place_used >= place_count && !grow_places())
		return 0;
	struct place *at = find(object);
	if (at->object)
		return at->number;
	if (code_count == code_room && !grow_codes())
		return 0;
	struct code code = {copy_text(object->co_qualname), copy_text(object->co_filename)};
	if (!code.name || !code.file) {
		free(code.name);
		free(code.file);
		return 0;
	}
	codes[code_count] = code;
	*at = (struct place){object, code_count};
	place_used++;
	set_bit(object);
	return code_count++;
}

const struct code *codes_at(uint32_t number)
{
	static const struct code unknown = {"?", "?"};
	return number < code_count ? &codes[number] : &unknown;
}

/* Closes the gap in the table at place i. */
static void remove_place(size_t i)
{
	const size_t mask = place_count - 1;
	for (size_t j = (i + 1) & mask; places[j].object; j = (j + 1) & mask)
		if (((j - home(places[j].object)) & mask) >= ((j - i) & mask)) {
			places[i] = places[j];
			i = j;
		}
	places[i].object = NULL;
	place_used--;
}

/* After many code objects have died, most bits say nothing. */
static void renew_bits(void)
{
	memset(codes_bits, 0, sizeof(codes_bits));
	bits_set = 0;
	for (size_t i = 0; i < place_count; i++)
		if (places[i].object)
			set_bit(places[i].object);
}

bool codes_forget(const void *memory)
{
	struct place *at = places ? find(memory) : NULL;
	if (!at || !at->object)
		return false;
	remove_place((size_t)(at - places));
	if (bits_set > 2 * place_used + 4096)
		renew_bits();
	return true;
}

void codes_free(void)
{
	for (uint32_t i = 1; i < code_count; i++) {
		free(codes[i].name);
		free(codes[i].file);
	}
	free(codes);
	free(places);
	codes = NULL;
	places = NULL;
	place_count = place_used = 0;
	code_count = code_room = bits_set = 0;
	memset(codes_bits, 0, sizeof(codes_bits));
}
