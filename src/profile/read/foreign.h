/* SPDX-License-Identifier: MIT
 *
 * What the readers of other programs' files share.
 */
#ifndef INCSTACK_PROFILE_FOREIGN_H
#define INCSTACK_PROFILE_FOREIGN_H

#include "lines.h"

int incstack__read_perf_script(struct incstack__reader *reader);
int incstack__read_heaptrack(struct incstack__reader *reader);
int incstack__read_massif(struct incstack__reader *reader);
int incstack__read_dhat(struct incstack__reader *reader);

/* Whether a line is the head of one of perf script's samples. */
bool incstack__perf_script_head(struct incstack__line line);

/* The kinds of a heap profile, in their order. */
enum {
	INCSTACK__FOREIGN_ALLOCATED,
	INCSTACK__FOREIGN_ALLOCATIONS,
	INCSTACK__FOREIGN_PEAK,
	INCSTACK__FOREIGN_LIVE,
	INCSTACK__FOREIGN_KINDS,
};
int incstack__foreign_heap(struct incstack__reader *reader);

/* A frame, as a file of another program describes it. */
struct incstack__foreign_frame {
	struct incstack__line name; /* empty: unknown */
	struct incstack__line file; /* the source file; empty: unknown */
	int32_t line;               /* 0: unknown */
	uint32_t flags;
};

/* Reads a frame of valgrind: "0x109170: main (a.c:3)", or with "(in /usr/lib/libc.so.6)" at its end. */
struct incstack__foreign_frame incstack__foreign_valgrind(struct incstack__line text);
/* Splits "a.c:3" into the file and the line. False: the text does not end with a line. */
bool incstack__foreign_position(struct incstack__line text, struct incstack__foreign_frame *frame);
/* Interns the texts of a frame. A frame without a name is "[unknown]". */
int incstack__foreign_names(struct incstack__reader *reader,
			    const struct incstack__foreign_frame *described,
			    struct incstack__frame_info *info);
/* Finds or adds the frame. */
int incstack__foreign_intern(struct incstack__reader *reader,
			     const struct incstack__foreign_frame *described, uint32_t *frame);
/* Says which program was profiled, if its name is UTF-8. It may be null. */
int incstack__foreign_program(struct incstack__reader *reader, const char *program);

#endif
