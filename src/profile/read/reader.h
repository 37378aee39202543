/* SPDX-License-Identifier: MIT
 *
 * The state and the functions that all readers share.
 */
#ifndef INCSTACK_PROFILE_READER_H
#define INCSTACK_PROFILE_READER_H

#include "profile/cct.h"
#include "profile/files.h"

struct incstack__reader {
	FILE *stream;
	const struct incstack__profile_input *input; /* never null */
	struct incstack_profile *profile;            /* made by the format's reader */
	struct incstack_profile_problem at;
};

int incstack__read_folded(struct incstack__reader *reader);
int incstack__read_pprof(struct incstack__reader *reader);
int incstack__read_speedscope(struct incstack__reader *reader);
int incstack__read_firefox(struct incstack__reader *reader);
int incstack__read_otlp(struct incstack__reader *reader);

/* Stores the reason and returns EFORMAT. */
int incstack__refuse(struct incstack__reader *reader, const char *why);
void incstack__progress(const struct incstack__reader *reader, uint64_t bytes);
/* Calls `full` if the profile has as many nodes as the caller of the reader wants at most, or `most`. To be
 * called between two records only. */
int incstack__room(struct incstack__reader *reader, uint32_t most);
/* Finds or adds the node for a weight without frames. */
int incstack__unknown_node(struct incstack_profile *profile, uint32_t *node);
/* Adds to a weight. A weight that the profile cannot hold is a fault of the input. */
int incstack__weigh(struct incstack__reader *reader, uint32_t node, uint32_t kind, uint64_t weight);

/* Makes a frame whose name is not known yet. Its number in the file represents it. */
int incstack__frame_placeholder(struct incstack_profile *profile, uint64_t number, uint32_t *frame);
/* The description of a frame in a file. */
struct incstack__frame_info {
	uint32_t name; /* of the profile */
	uint32_t file; /* likewise, + 1; 0: unknown */
	int32_t line;  /* 0: unknown */
	uint32_t kind; /* enum incstack_frame_kind */
	uint32_t flags;
};

/* Gives all placeholder frames their descriptions, by their numbers. A number that is not below
 * `count` is EFORMAT. */
int incstack__frames_settle(struct incstack_profile *profile,
			    const struct incstack__frame_info *infos, size_t count);

#endif
