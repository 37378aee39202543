/* SPDX-License-Identifier: MIT
 *
 * Finds the build-id of a module, or computes its checksum. Segments and notes may be malformed. So
 * no byte outside of a segment is read, and no more than a fixed number of bytes.
 */
#include "identity.h"

#include <string.h>

#include "elf/elf_layout.h"
#include "format.h"

enum { NOTE_BYTES_MOST = 1 << 16, CHUNK = 1024, PIECES = 1024, TABLE_MOST = 1 << 20 };

typedef struct incstack__identity_source source_t;

static bool copy(const source_t *source, uint64_t address, void *to, uint64_t bytes)
{
	return incstack__elf_segment_of(source->segments, source->count, address, bytes) &&
	       source->copy(source->context, address, to, (size_t)bytes);
}

static uint64_t align(uint64_t bytes, uint64_t to)
{
	return (bytes + to - 1) & ~(to - 1);
}

/* Searches the notes of a segment. */
static bool search_notes(const source_t *source, const Elf64_Phdr *notes,
			 struct incstack__identity *identity)
{
	const uint64_t to = notes->p_align == 8 ? 8 : 4;
	const uint64_t size = notes->p_filesz < NOTE_BYTES_MOST ? notes->p_filesz : NOTE_BYTES_MOST;
	Elf64_Nhdr note;

	for (uint64_t at = 0; at < size && size - at >= sizeof(note);) {
		const uint64_t name = notes->p_vaddr + at + sizeof(note);
		char owner[sizeof(ELF_NOTE_GNU)];
		uint64_t before;

		if (!copy(source, notes->p_vaddr + at, &note, sizeof(note)))
			return false;
		before = align(sizeof(note) + note.n_namesz, to);
		if (note.n_type == NT_GNU_BUILD_ID && note.n_namesz == sizeof(owner) &&
		    note.n_descsz > 0 && copy(source, name, owner, sizeof(owner)) &&
		    memcmp(owner, ELF_NOTE_GNU, sizeof(owner)) == 0) {
			identity->kind = INCSTACK__IDENTITY_BUILD_ID;
			identity->length = note.n_descsz < INCSTACK__IDENTITY_MOST
						   ? (uint16_t)note.n_descsz
						   : INCSTACK__IDENTITY_MOST;
			return copy(source, notes->p_vaddr + at + before, identity->bytes,
				    identity->length);
		}
		at += before + align(note.n_descsz, to);
	}
	return false;
}

bool incstack__identity_build_id(const struct incstack__identity_source *source,
				 struct incstack__identity *identity)
{
	*identity = (struct incstack__identity){0};
	for (unsigned i = 0; i < source->count; i++)
		if (source->segments[i].p_type == PT_NOTE &&
		    search_notes(source, &source->segments[i], identity))
			return true;
	*identity = (struct incstack__identity){0};
	return false;
}

/* Adds a range to the checksum. */
static bool add_range(const source_t *source, uint64_t address, uint64_t bytes, uint64_t *sum)
{
	unsigned char chunk[CHUNK];

	for (uint64_t at = 0; at < bytes; at += CHUNK) {
		const uint64_t part = bytes - at < CHUNK ? bytes - at : CHUNK;

		if (!copy(source, address + at, chunk, part))
			return false;
		*sum = incstack__tracefile_sum(*sum, chunk, (size_t)part);
	}
	return true;
}

/* Adds a segment. Of a large segment it takes pieces at equal distances. The header of the file is
 * left out, because it says where the file has its sections, which stripping changes. */
static bool add_segment(const source_t *source, const Elf64_Phdr *s, uint64_t *sum)
{
	const uint64_t header = s->p_offset == 0 ? sizeof(Elf64_Ehdr) : 0;
	const uint64_t bytes = s->p_filesz > header ? s->p_filesz - header : 0;
	const uint64_t step = bytes / PIECES;

	if (step <= CHUNK)
		return add_range(source, s->p_vaddr + header, bytes, sum);
	for (uint64_t i = 0; i < PIECES; i++)
		if (!add_range(source, s->p_vaddr + header + i * step, CHUNK, sum))
			return false;
	return true;
}

/* The search table of the unwind information has the start of each function, so it is added as a
 * whole. */
static bool add_part(const source_t *source, const Elf64_Phdr *s, uint64_t *sum)
{
	const uint64_t table = s->p_filesz < TABLE_MOST ? s->p_filesz : TABLE_MOST;

	if (s->p_type == PT_GNU_EH_FRAME)
		return add_range(source, s->p_vaddr, table, sum);
	if (s->p_type != PT_LOAD || !(s->p_flags & PF_R) || s->p_flags & PF_W)
		return true;
	*sum = incstack__tracefile_sum_step(*sum, s->p_vaddr);
	*sum = incstack__tracefile_sum_step(*sum, s->p_filesz);
	return add_segment(source, s, sum);
}

bool incstack__identity_content(const struct incstack__identity_source *source,
				struct incstack__identity *identity)
{
	uint64_t sum = 0;

	*identity = (struct incstack__identity){0};
	for (unsigned i = 0; i < source->count; i++)
		if (!add_part(source, &source->segments[i], &sum))
			return false;
	identity->kind = INCSTACK__IDENTITY_CONTENT;
	identity->length = sizeof(sum);
	memcpy(identity->bytes, &sum, sizeof(sum));
	return true;
}

bool incstack__identity_same(const struct incstack__identity *a, const struct incstack__identity *b)
{
	return a->kind == b->kind && a->length == b->length &&
	       memcmp(a->bytes, b->bytes, a->length) == 0;
}
