/* SPDX-License-Identifier: MIT
 *
 * The reports on one replayed trace file.
 */
#ifndef INCSTACK_TOOL_REPORT_H
#define INCSTACK_TOOL_REPORT_H

#include <stdbool.h>
#include <stdio.h>

#include <incstack/profile.h>

#include "tracefile/replay.h"
#include "places.h"
#include "resolve.h"
#include "symbols.h"
#include "tool/filter.h"
#include "profile/analysis.h"

/* As many contexts of each kind as leave the report on a page. */
#define TOOL_CONTEXTS_OF_PAGE SIZE_MAX

/* What the user wants to see. */
struct tool_report_wish {
	int by_thread;                    /* contexts begin with the name of their thread */
	const char *kind;                 /* only this kind of weight; null: all */
	const struct tool_filter *filter; /* what is taken out; null: the default */
	bool is_full;                     /* everything that a reader may want, instead of a page */
	bool is_json;                   /* a document of JSON instead of text, and no other file */
	size_t functions;               /* how many to print at most */
	size_t contexts;                /* of each kind, or TOOL_CONTEXTS_OF_PAGE */
	size_t places;                  /* lines of the source, of each kind */
	size_t threads;                 /* how many to print at most */
	size_t frames;                  /* of a context */
	unsigned columns;               /* of the terminal */
	const char *prefix;             /* of the files PREFIX.html and PREFIX.folded */
	bool folded;                    /* whether PREFIX.folded is written */
	struct tool_resolved *resolved; /* not null: what the trace file shall have of names */
};
/* The default: no kind, and what fits on a page. */
struct tool_report_wish tool_report_wish_of(const char *prefix, int by_thread, unsigned columns);
/* All sections, and more of each. */
void tool_report_wish_full(struct tool_report_wish *wish);

struct tool_report_form;

struct tool_report {
	const struct tool_report_form *form; /* what is special about what was recorded */
	const struct incstack__tracefile_reader *reader;
	const struct incstack__replay *replay;
	struct tool_symbols *symbols;
	const struct tool_report_wish *wish;
	const struct incstack_profile
		*profile;                   /* its contexts, merged by the names of their frames */
	uint32_t kind;                      /* of the profile, by which functions are ordered */
	struct incstack__profile_sums sums; /* by function */
	struct tool_places places;          /* by line */
};

/* A list of the report: the contexts, or the lines, that weigh most of a kind. */
struct tool_report_section {
	const char *kind;
	const char *title;
	bool is_on_page; /* and not only in the full report */
};

struct tool_report_sections {
	const struct tool_report_section *all;
	size_t count;
};

/* What was recorded. What a report has of all profiles follows from their kinds of weight; the rest is here. */
struct tool_report_form {
	const char *name;       /* for programs */
	const char *title;      /* of the report */
	const char *event;      /* what a trace was taken of */
	const char *dropped;    /* events of which none may have been written */
	const char *expected;   /* what the counts of enum incstack__tick count */
	const char *unfinished; /* why an expected event has no record; null: as for all profiles */
	/* Of a thread: its weight in `unit`, the number of its events; their names for programs. */
	const char *unit, *weight, *weight_name, *calls, *calls_name;
	bool has_time;   /* events are intervals of time */
	bool has_states; /* the states of a thread are kinds of weight, from TOOL_KIND_STATES on */
	bool has_memory; /* events have sizes, and blocks live */
	bool shows_callers; /* also functions that weigh nothing by themselves */
	struct tool_report_sections contexts, lines;
	const char *(*why_empty)(const struct tool_report *report);
	void (*print_totals)(const struct tool_report *report, FILE *out);
};
extern const struct tool_report_form tool_report_heap, tool_report_cpu, tool_report_wall;
/* Returns the form of a trace file. */
const struct tool_report_form *tool_report_form_of(const struct incstack__tracefile_reader *reader);

int tool_report_is_cpu(const struct tool_report *report);
/* Whether the process was recorded from outside, while it ran. */
int tool_report_is_attached(const struct tool_report *report);
/* Whether the time in which threads wait was sampled, too. */
int tool_report_is_wall(const struct tool_report *report);

/* Prints the report for programs. */
int tool_report_json(const struct tool_report *report, FILE *out);
/* Prints the report for people: totals, then the functions, contexts and lines that weigh most. */
void tool_report_print(const struct tool_report *report, FILE *out);

/* pointers.c: says how much of the profile depends on frame pointers. */
void tool_report_pointers(const struct tool_report *report, FILE *out);
/* Parts of it: what was recorded, and what is wrong with it; the hottest contexts by a kind of weight;
 * how the process ended; a context of the tree, or of the profile, innermost frame first. */
void tool_report_head(const struct tool_report *report, const char *title, FILE *out);
void tool_report_contexts(const struct tool_report *report, const char *title, uint32_t kind,
			  FILE *out);
void tool_report_end(const struct tool_report *report, FILE *out);
void tool_report_frames(const struct tool_report *report, uint32_t node, FILE *out);
void tool_report_context(const struct tool_report *report, uint32_t number, FILE *out);
/* Prints a line: a function, and if it is known where in the source. */
void tool_report_place(const char *name, size_t length, const char *file, int32_t line,
		       size_t columns, FILE *out);
/* Returns how many contexts of each kind are shown at most. */
size_t tool_report_contexts_most(const struct tool_report *report);
/* Returns the frames of a context of the profile, innermost first; null if there is no memory. The caller
 * frees them. */
struct incstack_profile_frame *tool_report_path(const struct incstack_profile *profile,
						uint32_t number, size_t *count);
/* functions.c: the table of functions, whose columns are the kinds of weight. */
void tool_report_functions(const struct tool_report *report, FILE *out);
/* sections.c: the lists of contexts and of lines. */
void tool_report_sections(const struct tool_report *report, FILE *out);
/* shares.c: the share of each thread; how many allocations had which size. */
void tool_report_threads(const struct tool_report *report, FILE *out);
void tool_report_sizes(const struct tool_report *report, FILE *out);
/* memory.c: the memory of the process, which is more than what malloc handed out. */
void tool_report_memory(const struct tool_report *report, FILE *out);
/* resident.c: which memory was resident, if somebody has looked. */
void tool_report_resident(const struct tool_report *report, FILE *out);
/* Returns how more of it can be seen, or null. */
const char *tool_report_hint(const struct tool_report *report);
/* Whether the user wants to see this kind. */
int tool_report_wants(const struct tool_report *report, uint32_t kind);
/* Makes the profile that is written in other formats; the caller destroys it. Returns 0 or
 * INCSTACK_E*. A context with more than TOOL_DEPTH_MAX frames has its outermost and innermost
 * frames there, and one frame "[frames left out]" in between. */
#define TOOL_DEPTH_MAX 512
int tool_report_profile(const struct tool_report *report, struct incstack_profile **profile);
enum { TOOL_KIND_STATES = 2 };
/* Returns the kind of weight that the time in a state is in the profile; 0: states are not told apart. */
uint32_t tool_report_kind_of(const struct tool_report *report, enum incstack__state state);

/* Gives the profile its timeline. nodes[i] is the node of context i. Without memory for it, or if its
 * stamps are no times, there is none. Returns 0 or INCSTACK_E*. */
int tool_report_timeline(const struct tool_report *report, const uint32_t *nodes,
			 struct incstack_profile *profile);
/* The same for the curve of a heap profile. */
int tool_report_curve(const struct tool_report *report, const uint32_t *nodes,
		      struct incstack_profile *profile);
/* Returns how many contexts are deeper than that. */
uint64_t tool_report_deep(const struct tool_report *report);

uint64_t tool_report_lost(const struct incstack__tracefile_totals *totals);
/* Whether recording stopped before the process ended; a note tells why. */
int tool_report_has_stopped(const struct incstack__tracefile_totals *totals);
const char *tool_mode_name(uint32_t mode);

/* The content of the last line; for several files it is the sum. */
struct tool_sum {
	uint64_t traces;
	uint64_t crosschecked;
	uint64_t mismatches;
	uint64_t lost;
	uint64_t truncated;
	uint64_t returns;
	uint64_t stale;
	uint64_t depth_sum;
	uint64_t popped_sum;
	uint64_t popped_count;
	uint64_t bytes;
	uint64_t pid; /* of one file: its process, when it began, and what is known of its end */
	uint64_t start_ns;
	uint64_t notes;
	uint32_t flags;
	uint64_t mode_traces; /* of the file whose mode is shown: the one with the most traces */
	uint32_t mode;
	bool has_time;                   /* see struct tool_report_form */
	bool has_ticks;                  /* `ticks` counts what was expected */
	uint64_t cpu_ns;                 /* that the samples stand for */
	uint64_t ticks[INCSTACK__TICKS]; /* of a CPU profile, or of -p */
};

void tool_sum_add(struct tool_sum *sum, const struct tool_sum *one);
/* Prints the last line; for a CPU profile and for -p the last two lines. */
void tool_sum_print(const struct tool_sum *sum, FILE *out);
/* What became of the ticks. */
struct tool_ticks {
	uint64_t expected, failed, merged;
};
struct tool_ticks tool_ticks_of(const uint64_t ticks[INCSTACK__TICKS]);

/* ticks.c: prints a line on all of them and one for each reason. */
void tool_report_ticks(const struct tool_report *report, FILE *out);

/* Returns the width of the terminal that a stream writes to, else $COLUMNS, else 100; at least
 * 50. */
unsigned tool_columns(FILE *out);

/* What is added to the prefix of a report. */
#define TOOL_REPORT_PAGE ".html"
#define TOOL_REPORT_FOLDED ".folded"

/* run.c: runs work that reads traces, in a jail, and `more` files after them. Of each prefix it may write the files of
 * a report. If the
 * files are derived, the tool has chosen their names, and may complete them. */
int tool_report_run(const char *const *files, size_t count, size_t more,
		    const char *const *prefixes, bool are_derived, int (*work)(void *context),
		    void *context);

/* ---- in a jail: */

/* Whether a file begins like a trace file. A pipe is none. */
int tool_trace_is_one(const char *file);
/* Makes the profile of a trace file; the caller destroys it. *is_whole becomes whether nothing of the file is missing.
 * Returns an exit status. */
int tool_trace_profile(const char *file, int by_thread, struct incstack_profile **profile,
		       bool *is_whole);

/* Makes the names of a trace file. Returns an exit status. */
int tool_trace_resolve(const char *file, struct tool_resolved *resolved);

/* Reads `file`, prints the text report to `out`, and writes PREFIX.html and, if it is wished,
 * PREFIX.folded. sum may be null. Returns an exit status. */
int tool_report_make(const char *file, const struct tool_report_wish *wish, FILE *out,
		     struct tool_sum *sum);

#endif
