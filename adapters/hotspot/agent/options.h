/* SPDX-License-Identifier: MIT
 *
 * The options of the agent: a list like "interval=1ms,mode=partial,file=profile.html". Knows
 * nothing of the JVM.
 */
#ifndef AGENT_OPTIONS_H
#define AGENT_OPTIONS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum agent_mode {
	AGENT_MODE_BEST = 0, /* the best that the JVM can do */
	AGENT_MODE_JVMTI,
	AGENT_MODE_PARTIAL,
	AGENT_MODE_INCREMENTAL,
	AGENT_MODE_PARTIAL_INCREMENTAL,
	AGENT_MODE_COUNT
};

enum agent_command {
	AGENT_START = 0, /* also if no command is given */
	AGENT_STOP,      /* ends sampling and writes the profile */
	AGENT_DUMP,      /* writes what there is so far, and continues */
	AGENT_NEXT,      /* writes this part, and begins the next */
	AGENT_STATUS,
	AGENT_COMMAND_COUNT
};

enum { AGENT_FILE_MAX = 4096, AGENT_ERROR_MAX = 256 };

struct agent_options {
	enum agent_command command;
	enum agent_mode mode;
	uint64_t interval_ns;
	uint64_t duration_ns; /* 0: until the JVM ends */
	uint64_t split_ns;    /* 0: one part */
	uint64_t memory;      /* bytes that the agent may use, about */
	uint32_t samples;     /* for each tick; 0: the number of processors */
	uint32_t depth;       /* the most frames of a trace if JVMTI walks the stacks */
	int format;           /* enum incstack_profile_format */
	bool threads;         /* thread names as roots */
	bool waiting;         /* waiting threads, too */
	bool lines;           /* contexts with line numbers */
	bool realtime;        /* the sampler has a real-time priority, if that is allowed */
	bool stats;
	bool check;
	char file[AGENT_FILE_MAX]; /* a template: see names.h */
};

/* Reads the list; null is the empty one. Returns whether it is valid; if not, `error` has the
 * reason, without a newline. */
bool agent_options_read(const char *text, struct agent_options *options,
			char error[AGENT_ERROR_MAX]);

/* The name of a mode: "partial-incremental"; for BEST "best". */
const char *agent_mode_name(enum agent_mode mode);

/* A time as people write it: "10 ms", "0.25 s"; uses one of the larger units. */
const char *agent_time_text(uint64_t ns, char text[32]);

#endif
