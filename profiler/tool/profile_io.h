/* SPDX-License-Identifier: MIT
 *
 * What the subcommands on profiles share: opening and closing files with helpful messages,
 * progress, options, and text that fits the terminal.
 */
#ifndef INCSTACK_TOOL_PROFILE_IO_H
#define INCSTACK_TOOL_PROFILE_IO_H

#include <getopt.h>
#include <stdio.h>

#include <incstack/profile.h>

#include "filter.h"
#include "profile/files.h"

enum { TOOL_DONE = 0, TOOL_FAILED = 1, TOOL_USAGE = 2 };

/* By how much a kind of weight may grow (--fail-if). */
struct tool_limit {
	char kind[128];
	const char *amount; /* see profile/amount.h */
};
enum { TOOL_LIMITS_MAX = 32 };

/* The options of all subcommands. The help of each lists those that it takes. */
struct tool_options {
	const char *output, *kind;
	int format, input_format; /* enum incstack_profile_format; 0: by extension */
	const char *threshold;    /* an amount; null: none */
	double hot;               /* the part of the hottest edge's weight that makes an edge hot */
	unsigned long top;
	int average, threads, fold_recursion, folded, help, json, full, normalize, similarity;
	struct tool_limit limits[TOOL_LIMITS_MAX];
	size_t limit_count;
	struct tool_filter filter;
	double output_most; /* bytes of an output that repeats callers; 0: by the inputs */
	uint64_t given;     /* which options were given; see tool_options_given() */
};

/* Reads options up to the first argument that is no option (optind). */
int tool_options_read(int argc, char **argv, struct tool_options *options);
int tool_options_given(const struct tool_options *options, char option);
/* Refuses the options whose letters are in `without`, because they have no effect; `where` ends the
 * sentence that says so. Returns TOOL_DONE or TOOL_USAGE. */
int tool_options_refuse(const struct tool_options *options, const char *without, const char *where);

/* Reads a profile. "-" is stdin, which is folded unless a format is given. Errors are reported on
 * stderr. `input` may be null; its progress is set here. */
int tool_profile_read(const char *path, int format, struct incstack__profile_input *input,
		      struct incstack_profile **profile);

/* Returns the format of a path to write, or 0 after an error message. */
int tool_output_format(const char *path, int format);
/* "-" is stdout. */
FILE *tool_output_open(const char *path);
/* Closes the output. After an error it prints a message and removes what was written. */
int tool_output_close(const char *path, FILE *stream, int error);
int tool_profile_write(const struct incstack_profile *profile, const char *path, int format,
		       uint32_t kind);

/* Prints one line about what a file could not contain (INCSTACK__LOSS_*), if there is anything. */
void tool_tell_losses(uint32_t losses);

/* Finds the kind with this name, or the first one if `name` is null. */
int tool_kind_number(const struct incstack_profile *profile, const char *name, uint32_t *kind);
/* The same. If there is none, it prints a message that lists the kinds. */
int tool_kind_find(const struct incstack_profile *profile, const char *name, uint32_t *kind);

/* A `full` function for readers: prunes a profile that is too large for a writer that needs all of
 * it. */
int tool_prune_full(void *context, struct incstack_profile *profile);
/* Returns how many nodes take half a GiB. */
uint32_t tool_nodes_max(int format);

/* ---- text ---- */

/* Writes an amount with its unit: "12.3 MiB", "1.5 s", "1234". */
const char *tool_amount(uint64_t value, const char *unit, char *text, size_t size);
/* Returns the names of a node's frames as they are printed, outermost first, joined by " > ". The caller
 * frees it. */
char *tool_context_text(const struct incstack_profile *profile, uint32_t node);

#endif
