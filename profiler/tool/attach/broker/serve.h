/* SPDX-License-Identifier: MIT
 *
 * What the broker of an attachment does for the worker.
 */
#ifndef INCSTACK_TOOL_ATTACH_SERVE_H
#define INCSTACK_TOOL_ATTACH_SERVE_H

#include "tool/attach/kernel/probes.h"
#include "tool/attach/process/ask.h"
#include "tool/attach/process/launch.h"
#include "tool/attach/process/source.h"
#include "tool/jail/jail.h"
#include "tool/record/record.h"

struct tool_attach_broker {
	struct tool_attach_target target;
	struct tool_record_options *options;
	struct tool_attach_child *child; /* the program that is run; pid -1: none */
	struct tool_attach_probes probes;
	bool has_output;
};

enum { TOOL_ATTACH_ROWS = TOOL_ATTACH_REQUESTS - 1 };

/* Their context is a struct tool_attach_broker. */
extern const struct tool_jail_row tool_attach_rows[TOOL_ATTACH_ROWS];

#endif
