/* SPDX-License-Identifier: MIT
 *
 * What the kernel reports.
 */
#ifndef INCSTACK_TOOL_ATTACH_REPORT_H
#define INCSTACK_TOOL_ATTACH_REPORT_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

#include "tool/attach/process/functions.h"
#include "tool/attach/process/mapping.h"
#include "tool/attach/process/walk.h"

enum tool_attach_report_kind {
	TOOL_ATTACH_TICK,      /* the thread has used CPU time for an interval */
	TOOL_ATTACH_LEFT,      /* the thread has left its processor, with this stack */
	TOOL_ATTACH_OFF,       /* the thread has left its processor */
	TOOL_ATTACH_ON,        /* the thread is on a processor again */
	TOOL_ATTACH_HIT,       /* the thread has come to a breakpoint */
	TOOL_ATTACH_LOST,      /* reports had no room */
	TOOL_ATTACH_HITS_LOST, /* hits of a kind had no room */
	TOOL_ATTACH_MAPPED,    /* the process has mapped code */
	TOOL_ATTACH_EXECUTED,  /* the process runs another program; its mappings follow */
	TOOL_ATTACH_ENDED,     /* the thread has ended */
};

struct tool_attach_hit {
	struct tool_attach_stack stack;
	enum tool_attach_hit_kind kind;
	uint32_t probe; /* its number */
	uint64_t arguments[3];
	uint64_t result;
	uint64_t value; /* of the word in which posix_memalign has stored its result */
};

/* Copies and paths are valid while the report is handled. */
struct tool_attach_report {
	enum tool_attach_report_kind kind;
	pid_t tid;
	uint64_t time; /* CLOCK_MONOTONIC */
	union {
		struct tool_attach_stack stack; /* TICK, LEFT */
		bool is_preempted; /* OFF: the thread could go on, but another one runs */
		struct tool_attach_hit hit;
		struct {
			uint64_t count;
			uint64_t since; /* the time of the last report before the loss */
		} lost;
		struct {
			uint64_t count;
			enum tool_attach_hit_kind kind;
		} hits_lost;
		struct tool_attach_mapping mapping;
	};
};

typedef void tool_attach_handle(void *context, const struct tool_attach_report *report);

#endif
