/* SPDX-License-Identifier: MIT
 *
 * Copies of the objects of another process: of those parts that are asked for. Nobody knows what is in
 * the files, or what happens to them, so nothing of them is mapped, and all copies together are limited.
 */
#ifndef INCSTACK_TOOL_ATTACH_COPY_H
#define INCSTACK_TOOL_ATTACH_COPY_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#include "mapping.h"
#include "tracefile/identity.h"

/* What is there in the file of [low, high) of the object. */
struct tool_attach_part {
	uint64_t low, high;
	uint64_t offset; /* in the file */
	bool is_code;
};

enum { TOOL_ATTACH_PARTS = 64 };

struct tool_attach_copy {
	struct tool_attach_copies *all;
	unsigned users;                     /* modules */
	struct tool_attach_mapping mapping; /* one of its code, with a path of its own */
	char *path;                         /* a name by which the tool can open the file */
	struct incstack__identity identity;
	uint64_t base;   /* what the program headers call the beginning of the object */
	uint64_t span;   /* of the object in the memory of a process */
	uint64_t header; /* where .eh_frame_hdr is; 0: nowhere */
	int fd;          /* -1: closed, to be opened again */
	bool failed;
	unsigned char *memory; /* of the object from address 0 on */
	uint64_t size;
	unsigned char *copied; /* a bit for each block; null: all are */
	struct tool_attach_part parts[TOOL_ATTACH_PARTS];
	unsigned count;
	struct tool_attach_copy *newer, *older; /* of those that have a descriptor */
};

/* What all copies share. */
struct tool_attach_copies {
	struct tool_attach_copy *last; /* the one that was made last; null: it is gone */
	struct tool_attach_copy *newest, *oldest;
	size_t open_count, open_most;
	uint64_t reserved, bytes;
	uint64_t refused; /* requests beyond the limits */
};

void tool_attach_copies_init(struct tool_attach_copies *all);

/* Makes a copy of which nothing was asked for yet, and that has no part and one user. The descriptor
 * becomes its own. Returns null if there is no memory, or if the limits forbid it. */
struct tool_attach_copy *tool_attach_copy_new(struct tool_attach_copies *all,
					      const struct tool_attach_mapping *mapping, int fd,
					      uint64_t size);
/* Makes a copy of memory of the tool. */
struct tool_attach_copy *tool_attach_copy_of_memory(struct tool_attach_copies *all,
						    const void *memory, uint64_t size);
/* A user is gone. The last one takes the copy with it. */
void tool_attach_copy_free(struct tool_attach_copy *copy); /* also null */
/* Copies the bytes at a place of the object. Returns false if they cannot be had. If the file is
 * shorter than its headers say, nothing more can be had of the object. */
bool tool_attach_copy_get(struct tool_attach_copy *copy, uint64_t at, uint64_t bytes);
/* Reads from the file itself. Returns false if it has less. */
bool tool_attach_copy_read(struct tool_attach_copy *copy, uint64_t offset, void *data,
			   size_t bytes);

#endif
