/* SPDX-License-Identifier: MIT
 *
 * What is made of traces: a calling context tree (CCT) with weights of several
 * kinds, its exchange with the file formats that people open, and the numbers
 * by which two profiles are compared.
 *
 * A profile belongs to one thread at a time. Memory comes from malloc. No
 * function may be called from a signal handler. "Text" is a pointer and a
 * length; texts handed out stay valid until the profile is next added to.
 *
 * Conventions as in incstack.h: 0 or a negative INCSTACK_E*.
 */
#ifndef INCSTACK_PROFILE_H
#define INCSTACK_PROFILE_H

#include <stdio.h>

#include <incstack/incstack.h>

INCSTACK_BEGIN_C

/* Errors of this library beside those of incstack.h. */
enum incstack_profile_error {
	INCSTACK_EFORMAT = -32, /* the input is not in the format; see the fault */
	INCSTACK_EIO = -33,     /* the stream failed; errno says why */
};

/* The text of an error of either header; never null.
 * Thread: any. Signal: yes. Allocates: never. Blocks: never. */
INCSTACK_API const char *incstack_profile_error_text(int error);

#define INCSTACK_PROFILE_KINDS_MAX 16

/* Node 0 of every profile is the root: it stands for no frame. */
#define INCSTACK_PROFILE_ROOT 0u
#define INCSTACK_PROFILE_NONE UINT32_MAX

struct incstack_profile;

/* What one weight of a node counts: {"samples", "count"}, {"alloc", "bytes"}. */
struct incstack_profile_kind {
	const char *name;
	const char *unit;
};

/* Flag of a frame that stands for a label of samples, see INCSTACK_KEEP_LABELS. */
#define INCSTACK_PROFILE_LABEL (1u << 31)

/* A frame as nodes refer to it: every distinct frame exists once. */
struct incstack_profile_frame {
	const char *name; /* not terminated; null while nothing has named it */
	size_t name_length;
	const char *file; /* of the source, terminated; null if unknown */
	uint64_t method; /* as in the frame object; 0 for frames made from a name */
	int32_t bci;
	uint32_t flags; /* INCSTACK_OBJECT_SIGNAL, _RAW, _EXACT (of RAW); _VIRTUAL: this frame
	                 * is inlined into its caller (in a frame object, its callee is);
	                 * INCSTACK_PROFILE_LABEL */
};

/* Makes an empty profile with 1..INCSTACK_PROFILE_KINDS_MAX kinds of weight.
 * Errors: EINVAL, ENOMEM.
 * Thread: any. Signal: no. Allocates: malloc. Blocks: never. */
INCSTACK_API int incstack_profile_create(const struct incstack_profile_kind *kinds, uint32_t count,
					 struct incstack_profile **profile);

/* Frees it; null is nothing to do.
 * Thread: owner. Signal: no. Allocates: never. Blocks: never. */
INCSTACK_API void incstack_profile_destroy(struct incstack_profile *profile);

/* Where a profile comes from. Zero and null mean unknown. */
struct incstack_profile_meta {
	const char *program;  /* the command that was profiled */
	const char *mode;     /* how samples were taken */
	uint64_t time_ns;     /* when that began, since 1970; up to INT64_MAX */
	uint64_t duration_ns; /* up to INT64_MAX */
	uint64_t lost;        /* samples that were asked for and not taken */
	uint64_t truncated;   /* samples whose outer callers are unknown */
	uint64_t pruned;      /* contexts that were added to their callers */
};

/* Copies *meta into the profile. Errors: EINVAL, ENOMEM, ERANGE, EFORMAT (not UTF-8).
 * Thread: owner. Signal: no. Allocates: malloc. Blocks: never. */
INCSTACK_API int incstack_profile_set_meta(struct incstack_profile *profile,
					   const struct incstack_profile_meta *meta);

/* Errors: EINVAL. Thread: owner. Signal: no. Allocates: never. Blocks: never. */
INCSTACK_API int incstack_profile_meta(const struct incstack_profile *profile,
				       struct incstack_profile_meta *meta);

/* ---- adding ------------------------------------------------------------------ */

/* Says what a trace weighs: writes one number per kind. */
typedef void incstack_profile_weigh_fn(void *context, const struct incstack_trace *trace,
				       uint64_t *weights);

/* Folds the traces of one retrieve into the profile. Each frame object is folded
 * once however many traces share it, as long as the traces come in the order of the
 * samples and the frames lie on one stack, as retrieve has them. With a null weigh,
 * kind 0 counts 1 and kind 1, if there is one, the trace's weight. Virtual frames are
 * frames of their own and recursion is kept. A trace whose callers are unknown hangs under a
 * frame named "[truncated]". The tree is only read and may be released after.
 * Errors: EINVAL, ENOMEM, ELIMIT (2^32 nodes), ERANGE (a total beyond INT64_MAX);
 * after an error the traces before it remain added.
 * Thread: owner. Signal: no. Allocates: malloc. Blocks: never. */
INCSTACK_API int incstack_profile_add_tree(struct incstack_profile *profile,
					   const struct incstack_tree *tree,
					   incstack_profile_weigh_fn *weigh, void *context);

/* The same for a single trace, frame by frame: the yardstick of add_tree.
 * Thread: owner. Signal: no. Allocates: malloc. Blocks: never. */
INCSTACK_API int incstack_profile_add_trace(struct incstack_profile *profile,
					    const struct incstack_trace *trace,
					    const uint64_t *weights);

/* Writes the name of a method, not terminated, to text and returns its length;
 * 0 where it knows none. Flags are those of the frame: for RAW without EXACT,
 * method is a return address and the call lies before it. */
typedef size_t incstack_profile_name_fn(void *context, uint64_t method, int32_t bci, uint32_t flags,
					char *text, size_t size);

/* Asks for the name of every frame that has none yet. Frames that stay without
 * one are written as their method in hexadecimal.
 * Errors: EINVAL, ENOMEM, EFORMAT (a name that is not UTF-8, or contains NUL).
 * Thread: owner. Signal: no. Allocates: malloc. Blocks: never. */
INCSTACK_API int incstack_profile_name_frames(struct incstack_profile *profile,
					      incstack_profile_name_fn *name, void *context);

/* ---- looking ----------------------------------------------------------------- */

/* Thread: owner. Signal: no. Allocates: never. Blocks: never. */
INCSTACK_API uint32_t incstack_profile_kinds(const struct incstack_profile *profile);

/* The name and unit of a kind, terminated. Errors: EINVAL.
 * Thread: owner. Signal: no. Allocates: never. Blocks: never. */
INCSTACK_API int incstack_profile_kind(const struct incstack_profile *profile, uint32_t kind,
				       struct incstack_profile_kind *description);

/* Nodes are numbered from the root up to here; a parent's number is smaller.
 * Thread: owner. Signal: no. Allocates: never. Blocks: never. */
INCSTACK_API uint32_t incstack_profile_nodes(const struct incstack_profile *profile);

/* The parent of a node; NONE for the root and for a node that does not exist.
 * Thread: owner. Signal: no. Allocates: never. Blocks: never. */
INCSTACK_API uint32_t incstack_profile_parent(const struct incstack_profile *profile,
					      uint32_t node);

/* The frame of a node other than the root. Errors: EINVAL.
 * Thread: owner. Signal: no. Allocates: never. Blocks: never. */
INCSTACK_API int incstack_profile_frame(const struct incstack_profile *profile, uint32_t node,
					struct incstack_profile_frame *frame);

/* What a node weighs itself, without its callees; 0 for what does not exist.
 * Thread: owner. Signal: no. Allocates: never. Blocks: never. */
INCSTACK_API uint64_t incstack_profile_self(const struct incstack_profile *profile, uint32_t node,
					    uint32_t kind);

/* Writes to totals[0..nodes) what each node weighs with its callees: totals[0]
 * is the weight of the profile. Errors: EINVAL.
 * Thread: owner. Signal: no. Allocates: never. Blocks: never. */
INCSTACK_API int incstack_profile_totals(const struct incstack_profile *profile, uint32_t kind,
					 uint64_t *totals);

/* A function in all its contexts. */
struct incstack_profile_function {
	const char *name; /* terminated; null if it has none, then see method */
	uint64_t method;
	uint64_t self;
	uint64_t total; /* recursion counts once */
};

/* Writes up to *count functions, heaviest self first, then by total, and how many to
 * *count. Errors: EINVAL, ENOMEM.
 * Thread: owner. Signal: no. Allocates: malloc. Blocks: never. */
INCSTACK_API int incstack_profile_functions(const struct incstack_profile *profile, uint32_t kind,
					    struct incstack_profile_function *functions,
					    size_t *count);

/* ---- several profiles ---------------------------------------------------------- */

/* Adds `from`, which has the same kinds, to `into`. Frames are the same when
 * their names and bci are. Errors: EINVAL, ENOMEM, ELIMIT, ERANGE.
 * Thread: owner of both. Signal: no. Allocates: malloc. Blocks: never. */
INCSTACK_API int incstack_profile_merge(struct incstack_profile *into,
					const struct incstack_profile *from);

/* Makes a profile of one kind of another, without its meta. `as`, if not null, is what
 * that kind is called there. Errors: EINVAL, ENOMEM.
 * Thread: owner. Signal: no. Allocates: malloc. Blocks: never. */
INCSTACK_API int incstack_profile_select(const struct incstack_profile *profile, uint32_t kind,
					 const struct incstack_profile_kind *as,
					 struct incstack_profile **one);

/* Makes of `count` profiles with the same kinds one in which each has an equal
 * say: its relative weights are the averages of the relative weights. For that, every
 * kind of every profile is scaled up to one total: the least common multiple of the
 * totals, so that nothing is rounded, if `count` times that is at most 2^53; else the
 * largest multiple of the largest total for which this holds, or the largest total if
 * the sum fits. So the result may weigh much more than each of them.
 * Errors: EINVAL, ENOMEM, ELIMIT, ERANGE.
 * Thread: owner of all. Signal: no. Allocates: malloc. Blocks: never. */
INCSTACK_API int incstack_profile_average(const struct incstack_profile *const *profiles,
					  size_t count, struct incstack_profile **average);

/* The weight of an edge of the tree, which is that of the node it leads to. */
enum incstack_profile_measure {
	INCSTACK_MEASURE_SELF = 0, /* where samples landed */
	INCSTACK_MEASURE_TOTAL,    /* with all callees */
	INCSTACK_MEASURE_BOTH,     /* the nodes' self and the edges' totals as one set */
};

struct incstack_profile_difference {
	double overlap;     /* degree of overlap, 0..1 (thesis figure 5.5) */
	double cover_a;     /* hot-edge coverage of a over b (figure 5.6); NAN: b has none */
	double cover_b;     /* and of b over a; NAN: a has none */
	double correlation; /* Pearson over the nodes that weigh anything; NAN: n/a */
	uint64_t common;    /* nodes that weigh something in both */
	uint64_t only_a;
	uint64_t only_b;
};

/* Compares one kind, by its number, of two profiles; its unit must be the same in both.
 * Contexts are the same when the names along
 * them are (bci is ignored). Relative weights are of the sum over all edges. An
 * edge is hot when it weighs at least threshold (0..1, 15 decimals) times the heaviest.
 * Two empty profiles are identical: 1 everywhere. Without variance on a side the
 * correlation is 1 if the relative weights are equal, else NAN.
 * Errors: EINVAL, ENOMEM.
 * Thread: owner of both. Signal: no. Allocates: malloc. Blocks: never. */
INCSTACK_API int incstack_profile_compare(const struct incstack_profile *a,
					  const struct incstack_profile *b, uint32_t kind,
					  enum incstack_profile_measure measure, double threshold,
					  struct incstack_profile_difference *difference);

/* Lays two profiles over one tree: a new profile with the kinds {"a", unit} and
 * {"b", unit}. Contexts are the same as in compare. Errors: EINVAL, ENOMEM, ELIMIT.
 * Thread: owner of both. Signal: no. Allocates: malloc. Blocks: never. */
INCSTACK_API int incstack_profile_overlay(const struct incstack_profile *a,
					  const struct incstack_profile *b, uint32_t kind,
					  struct incstack_profile **both);

/* Quartiles of one number over several runs. */
struct incstack_profile_quartiles {
	double low, median, high;
};

/* How alike the runs of a set are: each compared with the average of all. */
struct incstack_profile_stability {
	struct incstack_profile_quartiles overlap;
	struct incstack_profile_quartiles cover; /* of the run over the average */
	struct incstack_profile_quartiles correlation;
};

/* Compares each of `count` profiles with their average (thesis figure 5.7), which is exact
 * if `count` times the least common multiple of the totals has at most 512 bits. What is
 * n/a for a run is left out; NAN if that leaves none. Arguments as of average and compare.
 * Errors: EINVAL, ENOMEM, ELIMIT.
 * Thread: owner of all. Signal: no. Allocates: malloc. Blocks: never. */
INCSTACK_API int incstack_profile_stability(const struct incstack_profile *const *profiles,
					    size_t count, uint32_t kind,
					    enum incstack_profile_measure measure, double threshold,
					    struct incstack_profile_stability *stability);

/* ---- less of a profile ----------------------------------------------------------- */

/* Adds every context whose total is below the profile's total divided by parts,
 * in every kind, to its caller, and counts it in meta.pruned. Totals stay.
 * Errors: EINVAL, ENOMEM.
 * Thread: owner. Signal: no. Allocates: malloc. Blocks: never. */
INCSTACK_API int incstack_profile_prune(struct incstack_profile *profile, uint64_t parts);

/* Drops all nodes and weights. Frames, names and their numbers stay.
 * Thread: owner. Signal: no. Allocates: never. Blocks: never. */
INCSTACK_API int incstack_profile_clear(struct incstack_profile *profile);

/* ---- files --------------------------------------------------------------------- */

enum incstack_profile_format {
	INCSTACK_FORMAT_FOLDED = 1, /* "main;f;g 42" a line; carries one kind, no meta */
	INCSTACK_FORMAT_PPROF,      /* gzipped protobuf; bare protobuf is read, too */
	INCSTACK_FORMAT_SPEEDSCOPE, /* JSON of speedscope */
	INCSTACK_FORMAT_FIREFOX,    /* JSON of the Firefox Profiler, processed form */
	INCSTACK_FORMAT_HTML,       /* a flame graph; written only */
};

/* The format that the end of a path says (.folded, .pb.gz, .speedscope.json,
 * .firefox.json, .html), or that a bare name says ("pprof"); 0 if none.
 * Thread: any. Signal: yes. Allocates: never. Blocks: never. */
INCSTACK_API int incstack_profile_format_of(const char *path);

/* Where and why a file was refused. */
struct incstack_profile_fault {
	uint64_t line;   /* from 1; 0 in formats that are not made of lines */
	uint64_t offset; /* of the line, or of the byte or field after inflating */
	const char *why; /* a constant; null without fault */
};

/* What is read only if it is asked for, because it tells contexts apart that are the same
 * without it. Files of pprof say it, and a profile that has it can be written to pprof again. */
enum incstack_profile_keep {
	/* Labels of samples: each is a frame "key=value" beneath the frames of the sample. In
	 * other formats, and in what is made of the profile (merge, select, average, overlay),
	 * they are frames like others. */
	INCSTACK_KEEP_LABELS = 1u << 0,
	/* Mappings, and the mapping and address of each location: frames with different
	 * addresses differ. What is made of the profile does not have them. */
	INCSTACK_KEEP_MAPPINGS = 1u << 1,
};

/* How a file is read; null means all zero. */
struct incstack_profile_input {
	/* With nodes_max above 0, full is called between two records once the profile
	 * has so many nodes: it prunes the profile or writes and clears it. An error
	 * that it returns ends the reading. Only folded and pprof call it. */
	uint32_t nodes_max;
	int (*full)(void *context, struct incstack_profile *profile);
	/* Called now and then with the bytes read from the stream so far; may be null. */
	void (*progress)(void *context, uint64_t bytes);
	void *context;
	uint32_t keep; /* INCSTACK_KEEP_* */
};

/* Reads a file into a new profile with the kinds that the file has; for folded
 * {"samples", "count"}. pprof, if the stream cannot seek, goes through a temporary
 * file. In JSON of others, times become nanoseconds, weights that are fractions are
 * rounded so that their sum stays, and profiles or threads of one unit are one kind.
 * fault may be null. Errors: EINVAL, ENOMEM, ELIMIT, ERANGE, EIO, EFORMAT.
 * Thread: any. Signal: no. Allocates: malloc. Blocks: on the stream. */
INCSTACK_API int incstack_profile_read(FILE *stream, enum incstack_profile_format format,
				       const struct incstack_profile_input *input,
				       struct incstack_profile **profile,
				       struct incstack_profile_fault *fault);

/* What may be lost between a file and another; the profile's weights and names are not. */
enum incstack_profile_loss {
	INCSTACK_LOSS_LABELS = 1u << 0,    /* pprof: labels of samples (INCSTACK_KEEP_LABELS) */
	INCSTACK_LOSS_MAPPINGS = 1u << 1,  /* mappings and addresses (INCSTACK_KEEP_MAPPINGS) */
	INCSTACK_LOSS_FUNCTIONS = 1u << 2, /* system names, start lines, columns, filters, URL */
	INCSTACK_LOSS_FILES = 1u << 3,     /* names of source files */
	INCSTACK_LOSS_LINES = 1u << 4,     /* line numbers; when reading, those beyond 2^31 - 1 */
	INCSTACK_LOSS_INLINING = 1u << 5,  /* which frames are inlined */
	INCSTACK_LOSS_KINDS = 1u << 6,     /* all kinds of weight but one */
	INCSTACK_LOSS_UNIT = 1u << 7,      /* the kind's name and unit: "samples" and "count" */
	INCSTACK_LOSS_META = 1u << 8,      /* struct incstack_profile_meta */
	INCSTACK_LOSS_COMMENTS = 1u << 9,  /* pprof: comments of others */
	INCSTACK_LOSS_PERIOD = 1u << 10,   /* pprof: period and default sample type */
	INCSTACK_LOSS_NAMES = 1u << 11,    /* folded: ';' and newlines in names */
	INCSTACK_LOSS_FRACTIONS = 1u << 12, /* JSON: contexts are rounded so that the sum stays */
	INCSTACK_LOSS_THREADS = 1u << 13,   /* JSON of others: which thread, or profile, and its name */
};

/* INCSTACK_LOSS_*: what the file said that this profile was read from, and the profile
 * does not; and what it says and a file of the format cannot. format 0: only the first.
 * Thread: owner. Signal: no. Allocates: never. Blocks: never. */
INCSTACK_API uint32_t incstack_profile_losses(const struct incstack_profile *profile,
					      enum incstack_profile_format format, uint32_t kind);

/* What one bit stands for, for a message; null if nothing.
 * Thread: any. Signal: yes. Allocates: never. Blocks: never. */
INCSTACK_API const char *incstack_profile_loss_text(uint32_t loss);

/* Writes a profile. kind is the one that folded files carry. Errors: EINVAL,
 * ENOMEM, EIO, ELIMIT (folded: a line beyond INCSTACK_FOLDED_LINE_MAX).
 * Thread: owner. Signal: no. Allocates: malloc. Blocks: on the stream. */
INCSTACK_API int incstack_profile_write(const struct incstack_profile *profile,
					enum incstack_profile_format format, uint32_t kind,
					FILE *stream);

/* Writes the flame graph of a difference: of an overlay (incstack_profile_overlay).
 * Widths are those of one side, colours say which side has more. Errors: EINVAL,
 * ENOMEM, EIO.
 * Thread: owner. Signal: no. Allocates: malloc. Blocks: on the stream. */
INCSTACK_API int incstack_profile_write_difference(const struct incstack_profile *both,
						   FILE *stream);

/* Writing in parts, for profiles that do not fit into memory: begin, then add for
 * each part, then finish. All parts are of one profile, cleared in between. A
 * context that occurs in several parts occurs several times in the file; its
 * weights count together. HTML has one part. The stream stays the caller's. */
struct incstack_profile_writer;

/* Errors: EINVAL, ENOMEM, EIO. Thread: owner. Signal: no. Allocates: malloc. Blocks: on streams. */
INCSTACK_API int incstack_profile_writer_begin(const struct incstack_profile *profile,
					       enum incstack_profile_format format, uint32_t kind,
					       FILE *stream,
					       struct incstack_profile_writer **writer);

/* Errors: as begin. Thread: owner. Signal: no. Allocates: malloc. Blocks: on streams. */
INCSTACK_API int incstack_profile_writer_add(struct incstack_profile_writer *writer);

/* Completes the file and frees the writer, also after an error; with complete 0 it
 * only frees. Errors: as begin.
 * Thread: owner. Signal: no. Allocates: malloc. Blocks: on streams. */
INCSTACK_API int incstack_profile_writer_finish(struct incstack_profile_writer *writer,
						int complete);

/* The longest line of a folded file, in bytes. */
#define INCSTACK_FOLDED_LINE_MAX (16u << 20)

/* Reads folded stacks ("main;f;g 42", outermost first, one a line) into one kind
 * of a profile, with memory for one line. A name is any UTF-8 without ';', NUL
 * and newline, and not empty; the weight follows the last space. A last line
 * without newline is refused as cut off. Lines before a fault remain added.
 * fault may be null. Errors: EINVAL, ENOMEM, ELIMIT, ERANGE, EIO, EFORMAT.
 * Thread: owner. Signal: no. Allocates: malloc. Blocks: on the stream. */
INCSTACK_API int incstack_profile_read_folded(struct incstack_profile *profile, uint32_t kind,
					      FILE *stream, struct incstack_profile_fault *fault);

/* Writes a line for every node that weighs something in this kind, callers
 * before callees. In names ';' becomes ':' and newline a space. Nodes that
 * differ only in bci give lines with the same stack.
 * Errors: EINVAL, ENOMEM, EIO, ELIMIT (a line beyond INCSTACK_FOLDED_LINE_MAX).
 * Thread: owner. Signal: no. Allocates: malloc. Blocks: on the stream. */
INCSTACK_API int incstack_profile_write_folded(const struct incstack_profile *profile,
					       uint32_t kind, FILE *stream);

INCSTACK_END_C

#endif
