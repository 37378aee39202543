/* SPDX-License-Identifier: MIT
 *
 * The identity of a module says which build of the module was loaded, so that its names are not looked up
 * in the file of another build. It is the build-id. For a module without a build-id, it is a checksum of
 * what is loaded and cannot be written: code, constants, tables.
 *
 * The recorder finds the identity in the process's memory, the tool finds it in a file.
 */
#ifndef INCSTACK_TRACEFILE_IDENTITY_H
#define INCSTACK_TRACEFILE_IDENTITY_H

#include <elf.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum incstack__identity_kind {
	INCSTACK__IDENTITY_NONE, /* unknown */
	INCSTACK__IDENTITY_BUILD_ID,
	INCSTACK__IDENTITY_CONTENT, /* a checksum */
	INCSTACK__IDENTITY_KINDS,
};

#define INCSTACK__IDENTITY_MOST 64u /* bytes; of a longer build-id, these many are used */

struct incstack__identity {
	uint16_t kind; /* enum incstack__identity_kind */
	uint16_t length;
	unsigned char bytes[INCSTACK__IDENTITY_MOST];
};

/* A module, in memory or in a file. */
struct incstack__identity_source {
	const Elf64_Phdr *segments;
	unsigned count;
	/* Copies bytes from an address, as in the program headers. They lie in what the file has of
	 * a segment that can be read. Returns false if that fails. */
	bool (*copy)(const void *context, uint64_t address, void *to, size_t bytes);
	const void *context;
};

/* Finds the build-id. Returns false if there is none. It reads some hundred bytes. */
bool incstack__identity_build_id(const struct incstack__identity_source *source,
				 struct incstack__identity *identity);
/* Computes the checksum. It reads up to some megabytes. Returns false if a part cannot be read. */
bool incstack__identity_content(const struct incstack__identity_source *source,
				struct incstack__identity *identity);
bool incstack__identity_same(const struct incstack__identity *a,
			     const struct incstack__identity *b);

#endif
