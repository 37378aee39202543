/* SPDX-License-Identifier: MIT
 *
 * What the subcommands on profiles share: opening and closing files with messages
 * that help, progress, options, and text that fits the terminal.
 */
#ifndef INCSTACK_TOOL_PROFILE_IO_H
#define INCSTACK_TOOL_PROFILE_IO_H

#include <getopt.h>
#include <stdio.h>

#include <incstack/profile.h>

enum { TOOL_DONE = 0, TOOL_FAILED = 1, TOOL_USAGE = 2 };

/* The options of all of them; each says in its help which it takes. */
struct tool_options {
	const char *output, *kind;
	int format, input_format; /* enum incstack_profile_format; 0: by extension */
	double threshold;
	unsigned long top;
	int average, help;
};

/* Reads options up to the first argument that is none (optind). */
int tool_options_read(int argc, char **argv, struct tool_options *options);

/* "-" is stdin, which is folded unless a format is given. What cannot be read is
 * said on stderr. input may be null; its progress is set here. */
int tool_profile_read(const char *path, int format, struct incstack_profile_input *input,
		      struct incstack_profile **profile);

/* The format of a path to write, or 0 after saying what is wrong. */
int tool_output_format(const char *path, int format);
FILE *tool_output_open(const char *path);
/* Closes; on error says so and removes what was written. */
int tool_output_close(const char *path, FILE *stream, int error);
int tool_profile_write(const struct incstack_profile *profile, const char *path, int format,
		       uint32_t kind);

/* One line that says what a file could not carry (INCSTACK_LOSS_*); none if nothing. */
void tool_tell_losses(uint32_t losses);

/* The number of the kind with this name, of the first if name is null. */
int tool_kind_number(const struct incstack_profile *profile, const char *name, uint32_t *kind);
/* As this; if there is none, says so and which there are. */
int tool_kind_find(const struct incstack_profile *profile, const char *name, uint32_t *kind);

/* For readers: prunes a profile that became too large, for writers that need it whole. */
int tool_prune_full(void *context, struct incstack_profile *profile);
/* Nodes that take half a GiB. */
uint32_t tool_nodes_max(int format);

/* ---- text ---- */

/* Up to width columns of a text; cut at its start ('<') or end ('>'). */
void tool_put_clipped(const char *text, size_t width, char cut, FILE *out);
/* "12.3 MiB", "1.5 s", "1234". */
const char *tool_amount(uint64_t value, const char *unit, char *text, size_t size);
/* The names of a node's frames, outermost first, joined by " > "; to be freed. */
char *tool_context_text(const struct incstack_profile *profile, uint32_t node);

#endif
