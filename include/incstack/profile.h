/* SPDX-License-Identifier: MIT
 *
 * Profiles: calling context trees (CCT) with several kinds of weights, made from
 * traces. Reads and writes common file formats, and compares profiles.
 *
 * A profile belongs to one thread at a time, its owner. Memory comes from malloc. No
 * function may be called from a signal handler, except where stated. Strings that
 * point into a profile are valid until something is added to it.
 *
 * Conventions as in incstack.h. Part of libincstack_profile.a.
 */
#ifndef INCSTACK_PROFILE_H
#define INCSTACK_PROFILE_H

#include <stdio.h>

#include <incstack/incstack.h>

INCSTACK_BEGIN_C

/* The maximum number of kinds of weight in one profile. */
#define INCSTACK_PROFILE_KINDS_MAX 16

/* Node 0 of every profile is the root. It represents no frame. */
#define INCSTACK_PROFILE_ROOT 0u
/* The number that stands for no node. */
#define INCSTACK_PROFILE_NONE UINT32_MAX

/* A calling context tree with weights. */
struct incstack_profile;

/* A kind of weight, for example {"samples", "count"} or {"alloc", "bytes"}. */
struct incstack_profile_kind {
	const char *name; /* what is counted: "samples" */
	const char *unit; /* in which unit: "count", "bytes", "nanoseconds" */
};

/* Flag of a frame that represents a label of samples; see INCSTACK_KEEP_LABELS. */
#define INCSTACK_PROFILE_LABEL (1u << 31)

/* A frame. Nodes refer to frames; every distinct frame exists once in a profile. */
struct incstack_profile_frame {
	const char *name;   /* not null-terminated; null until the frame is named */
	size_t name_length; /* in bytes */
	const char *file;   /* source file, null-terminated; null if unknown */
	int32_t line;       /* in the file, from 1; 0: unknown */
	int32_t position;   /* as in the frame object; -1: unknown, or the frame has a name */
	uint64_t function;  /* as in the frame object; 0 for frames made from a name */
	uint32_t kind;      /* enum incstack_frame_kind */
	uint32_t flags; /* INCSTACK_OBJECT_SIGNAL, _RAW, _EXACT (of RAW); INCSTACK_PROFILE_LABEL;
	                 * _VIRTUAL: this frame is inlined into its caller (in a frame object it
	                 * means that the callee is inlined) */
};

/* Creates an empty profile with 1..INCSTACK_PROFILE_KINDS_MAX kinds of weight.
 * Errors: EINVAL, ENOMEM.
 * Thread: any. Signal: no. Allocates: malloc. Blocks: never. */
INCSTACK_API int incstack_profile_create(const struct incstack_profile_kind *kinds, uint32_t count,
					 struct incstack_profile **profile);

/* Frees the profile; null is allowed.
 * Thread: owner. Signal: no. Allocates: never. Blocks: never. */
INCSTACK_API void incstack_profile_destroy(struct incstack_profile *profile);

/* The origin of a profile. Zero and null mean unknown. */
struct incstack_profile_meta {
	const char *program;  /* the command that was profiled */
	const char *mode;     /* how samples were taken */
	uint64_t time_ns;     /* start of sampling, ns since 1970; up to INT64_MAX */
	uint64_t duration_ns; /* duration of sampling; up to INT64_MAX */
	uint64_t lost;        /* samples that were requested but not taken */
	uint64_t truncated;   /* samples whose outer callers are unknown */
	uint64_t pruned;      /* contexts that prune has removed */
};

/* Copies *meta into the profile. Errors: EINVAL, ENOMEM, ERANGE, EFORMAT (not UTF-8).
 * Thread: owner. Signal: no. Allocates: malloc. Blocks: never. */
INCSTACK_API int incstack_profile_set_meta(struct incstack_profile *profile,
					   const struct incstack_profile_meta *meta);

/* Copies the meta data to *meta. Errors: EINVAL.
 * Thread: owner. Signal: no. Allocates: never. Blocks: never. */
INCSTACK_API int incstack_profile_meta(const struct incstack_profile *profile,
				       struct incstack_profile_meta *meta);

/* ---- adding ------------------------------------------------------------------ */

/* Writes the weights of a trace: one number for each kind. */
typedef void incstack_profile_weigh_fn(void *context, const struct incstack_trace *trace,
				       uint64_t *weights);

/* Adds the traces of one retrieve to the profile. A frame object that several traces share
 * is processed once, provided that the traces are in the order of the samples and the
 * frames lie on one stack, as in the tree of a retrieve. If weigh is null, each trace adds 1
 * to kind 0, and its weight to kind 1 if that exists. Virtual frames are separate frames,
 * and recursion is kept. A trace whose callers are unknown is added below a frame named
 * "[truncated]". The tree is only read and may be released afterwards.
 * Errors: EINVAL, ENOMEM; ELIMIT: 2^32 nodes; ERANGE: a total beyond INT64_MAX. After an
 * error the traces before it remain added.
 * Thread: owner. Signal: no. Allocates: malloc. Blocks: never. */
INCSTACK_API int incstack_profile_add_tree(struct incstack_profile *profile,
					   const struct incstack_tree *tree,
					   incstack_profile_weigh_fn *weigh, void *context);

/* As add_tree, but below a frame that only has this name, for example the name of a thread.
 * Errors: as add_tree; EFORMAT: the name is not UTF-8.
 * Thread: owner. Signal: no. Allocates: malloc. Blocks: never. */
INCSTACK_API int incstack_profile_add_tree_below(struct incstack_profile *profile, const char *name,
						 const struct incstack_tree *tree,
						 incstack_profile_weigh_fn *weigh, void *context);

/* Finds the node below `parent` with this frame, or adds it, for contexts that are not frame
 * objects. A frame without a name is identified by its function, position, kind and flags; name_frames
 * can name it later, like the frames of add_tree. A frame with a name is identified by its name, file,
 * line, kind and flags.
 * Errors: EINVAL, also for an empty name, an unknown kind, and the flag INCSTACK_PROFILE_LABEL; ENOMEM;
 * ELIMIT: 2^32 nodes; EFORMAT: the name or file is not UTF-8.
 * Thread: owner. Signal: no. Allocates: malloc. Blocks: never. */
INCSTACK_API int incstack_profile_add_node(struct incstack_profile *profile, uint32_t parent,
					   const struct incstack_profile_frame *frame,
					   uint32_t *node);

/* Adds to the weights of a node, except the root: one number for each kind.
 * Errors: EINVAL; ERANGE: a total beyond INT64_MAX, and nothing was added.
 * Thread: owner. Signal: no. Allocates: never. Blocks: never. */
INCSTACK_API int incstack_profile_add_weights(struct incstack_profile *profile, uint32_t node,
					      const uint64_t *weights);

/* What a frame is called, and where it is in the source. Strings are UTF-8; they are copied at once. */
struct incstack_profile_source {
	const char *name; /* null: the frame keeps its name */
	const char *file; /* null: unknown */
	int32_t line;     /* 0 or less: unknown */
	uint32_t kind;    /* enum incstack_frame_kind; before the call that of the frame */
};

/* Looks up the source of a frame. *source has the kind of the frame, and otherwise null and 0, before
 * the call. With INCSTACK_OBJECT_RAW, frame->function is a pc that was not decoded; without EXACT it is
 * a return address, so look up function - 1, which lies inside the call. A result other than 0 ends
 * incstack_profile_name_frames, which returns it. */
typedef int incstack_profile_source_fn(void *context, const struct incstack_profile_frame *frame,
				       struct incstack_profile_source *source);

/* Creates a profile with the meta data and weights of `profile`, whose frames have names, files, lines
 * and kinds. Frames that are equal in all of these become one frame, and so do contexts that differ in
 * nothing else. The name of a frame that remains without one is its function in hexadecimal digits.
 * `find` is called once for each frame that is not a label. `profile` does not change, so more traces
 * can be added to it. Errors: EINVAL, also for an unknown kind; ENOMEM, EFORMAT (not UTF-8).
 * Thread: owner. Signal: no. Allocates: malloc. Blocks: never. */
INCSTACK_API int incstack_profile_name_frames(const struct incstack_profile *profile,
					      incstack_profile_source_fn *find, void *context,
					      struct incstack_profile **named);

/* ---- reading ----------------------------------------------------------------- */

/* Returns the number of kinds.
 * Thread: owner. Signal: no. Allocates: never. Blocks: never. */
INCSTACK_API uint32_t incstack_profile_kinds(const struct incstack_profile *profile);

/* Copies the name and unit of a kind, null-terminated, to *description. Errors: EINVAL.
 * Thread: owner. Signal: no. Allocates: never. Blocks: never. */
INCSTACK_API int incstack_profile_kind(const struct incstack_profile *profile, uint32_t kind,
				       struct incstack_profile_kind *description);

/* Returns the number of nodes. Nodes are numbered from 0, the root. The number of a parent is
 * smaller than that of its child.
 * Thread: owner. Signal: no. Allocates: never. Blocks: never. */
INCSTACK_API uint32_t incstack_profile_nodes(const struct incstack_profile *profile);

/* Returns the parent of a node; INCSTACK_PROFILE_NONE for the root and for a node that does
 * not exist.
 * Thread: owner. Signal: no. Allocates: never. Blocks: never. */
INCSTACK_API uint32_t incstack_profile_parent(const struct incstack_profile *profile,
					      uint32_t node);

/* Copies the frame of a node, except the root, to *frame. Errors: EINVAL.
 * Thread: owner. Signal: no. Allocates: never. Blocks: never. */
INCSTACK_API int incstack_profile_frame(const struct incstack_profile *profile, uint32_t node,
					struct incstack_profile_frame *frame);

/* Returns the weight of a node without its callees; 0 if the node or kind does not exist.
 * Thread: owner. Signal: no. Allocates: never. Blocks: never. */
INCSTACK_API uint64_t incstack_profile_self(const struct incstack_profile *profile, uint32_t node,
					    uint32_t kind);

/* Writes to totals[0..nodes) the weight of each node with its callees. totals[0] is the
 * weight of the whole profile. Errors: EINVAL.
 * Thread: owner. Signal: no. Allocates: never. Blocks: never. */
INCSTACK_API int incstack_profile_totals(const struct incstack_profile *profile, uint32_t kind,
					 uint64_t *totals);

/* A function, summed over all its contexts. */
struct incstack_profile_function {
	const char *name;  /* null-terminated; null if it has none: use function */
	uint64_t function; /* as in the frame object; 0 if the frame was made from a name */
	uint64_t self;     /* without callees */
	uint64_t total;    /* with callees; recursion counts once */
};

/* Writes up to *count functions, ordered by self and then by total, largest first. Sets
 * *count to how many it wrote. Errors: EINVAL, ENOMEM.
 * Thread: owner. Signal: no. Allocates: malloc. Blocks: never. */
INCSTACK_API int incstack_profile_functions(const struct incstack_profile *profile, uint32_t kind,
					    struct incstack_profile_function *functions,
					    size_t *count);

/* ---- time ---------------------------------------------------------------------- */

/* A thread of a timeline. */
struct incstack_profile_thread {
	const char *name; /* may be empty */
	uint64_t id;      /* the system's id of the thread; 0: unknown */
};

/* A part of a context's weight, and when it was added. */
struct incstack_profile_sample {
	uint64_t time_ns; /* when the sample was taken, in ns since an arbitrary moment */
	uint64_t weight;  /* of kind 0; if that is a time, the time before the sample */
	uint32_t thread;  /* its index in the list of threads */
	uint32_t node;    /* the node of the profile */
};

/* The threads of a profile, and their samples. */
struct incstack_profile_timeline {
	const struct incstack_profile_thread *threads; /* in the order of Firefox files */
	const struct incstack_profile_sample *samples; /* in any order */
	size_t thread_count;                           /* the number of threads */
	size_t sample_count;                           /* the number of samples */
};

/* Copies a timeline into the profile, in place of an earlier one; null: the profile has none.
 * HTML and Firefox files contain it. So do profiles that name_frames and fold_recursion make from this
 * one, but not those that select, average and overlay make. It is dropped when nodes are removed (prune,
 * shrink, clear).
 * Errors: EINVAL, ENOMEM, ELIMIT (2^32 threads), EFORMAT (a name is not UTF-8).
 * Thread: owner. Signal: no. Allocates: malloc. Blocks: never. */
INCSTACK_API int incstack_profile_set_timeline(struct incstack_profile *profile,
					       const struct incstack_profile_timeline *timeline);

/* ---- several profiles ---------------------------------------------------------- */

/* Adds `from`, which must have the same kinds, to `into`. Two frames are the same if their
 * names, files, lines and kinds are equal. Errors: EINVAL, ENOMEM, ELIMIT, ERANGE.
 * Thread: owner of both. Signal: no. Allocates: malloc. Blocks: never. */
INCSTACK_API int incstack_profile_merge(struct incstack_profile *into,
					const struct incstack_profile *from);

/* Creates a profile with only one kind of `profile`, without its meta data. If `as` is not
 * null, it gives that kind a new name and unit. Errors: EINVAL, ENOMEM.
 * Thread: owner. Signal: no. Allocates: malloc. Blocks: never. */
INCSTACK_API int incstack_profile_select(const struct incstack_profile *profile, uint32_t kind,
					 const struct incstack_profile_kind *as,
					 struct incstack_profile **one);

/* Creates the average of `count` profiles with the same kinds. All profiles count equally:
 * the relative weights of the result are the averages of the relative weights. For each
 * kind, every profile is scaled up to a common total. This is the least common multiple of
 * the totals, without any rounding, if `count` times it is at most 2^53. Otherwise it is
 * the largest multiple of the largest total for which this holds, or the largest total
 * itself if the sum fits. So the result may weigh much more than each profile. Gnedt 2014,
 * section 5.3, compares runs with such an average.
 * Errors: EINVAL, ENOMEM, ELIMIT, ERANGE.
 * Thread: owner of all. Signal: no. Allocates: malloc. Blocks: never. */
INCSTACK_API int incstack_profile_average(const struct incstack_profile *const *profiles,
					  size_t count, struct incstack_profile **average);

/* What the weight of an edge of the tree means. An edge has the weight of the node to which
 * it leads. */
enum incstack_profile_measure {
	INCSTACK_MEASURE_SELF = 0, /* without callees */
	INCSTACK_MEASURE_TOTAL,    /* with all callees */
	INCSTACK_MEASURE_BOTH,     /* self of the nodes and totals of the edges, as one set */
};

/* How similar two profiles are. */
struct incstack_profile_difference {
	double overlap;     /* degree of overlap, 0..1 (Gnedt 2014, figure 5.5) */
	double cover_a;     /* hot-edge coverage of a over b (figure 5.6); NAN: b has no hot edge */
	double cover_b;     /* hot-edge coverage of b over a; NAN: a has no hot edge */
	double correlation; /* Pearson's, over nodes with a weight; NAN: undefined */
	uint64_t common;    /* nodes with a weight in both */
	uint64_t only_a;    /* nodes with a weight only in a */
	uint64_t only_b;    /* nodes with a weight only in b */
};

/* Compares one kind of two profiles. `kind` is its number; its unit must be the same in both.
 * Two contexts are the same if the names along them are equal; lines are ignored. Weights are
 * relative to the sum over all edges. An edge is hot if it weighs at least threshold (0..1,
 * 15 decimals) times the heaviest edge. For two empty profiles all results are 1. If one
 * side has no variance, the correlation is 1 if the relative weights are equal, else NAN.
 * Errors: EINVAL, ENOMEM. Algorithm: Gnedt 2014, figures 5.5 and 5.6.
 * Thread: owner of both. Signal: no. Allocates: malloc. Blocks: never. */
INCSTACK_API int incstack_profile_compare(const struct incstack_profile *a,
					  const struct incstack_profile *b, uint32_t kind,
					  enum incstack_profile_measure measure, double threshold,
					  struct incstack_profile_difference *difference);

/* Creates a profile that combines one kind of two profiles, as the kinds {"a", unit} and
 * {"b", unit}. Contexts are matched as in compare. Errors: EINVAL, ENOMEM, ELIMIT.
 * Thread: owner of both. Signal: no. Allocates: malloc. Blocks: never. */
INCSTACK_API int incstack_profile_overlay(const struct incstack_profile *a,
					  const struct incstack_profile *b, uint32_t kind,
					  struct incstack_profile **both);

/* The quartiles of one value over several runs. */
struct incstack_profile_quartiles {
	double low;    /* the first quartile */
	double median; /* the second quartile */
	double high;   /* the third quartile */
};

/* How similar several runs are: each is compared with the average of all. */
struct incstack_profile_stability {
	struct incstack_profile_quartiles overlap;     /* degree of overlap */
	struct incstack_profile_quartiles cover;       /* coverage of the run over the average */
	struct incstack_profile_quartiles correlation; /* Pearson's correlation */
};

/* Compares each of `count` profiles with their average (Gnedt 2014, figure 5.7). The average
 * is exact if `count` times the least common multiple of the totals has at most 512 bits.
 * Values that are undefined for a run are left out; if none is left, the result is NAN.
 * The arguments are those of incstack_profile_average and incstack_profile_compare.
 * Errors: EINVAL, ENOMEM, ELIMIT.
 * Thread: owner of all. Signal: no. Allocates: malloc. Blocks: never. */
INCSTACK_API int incstack_profile_stability(const struct incstack_profile *const *profiles,
					    size_t count, uint32_t kind,
					    enum incstack_profile_measure measure, double threshold,
					    struct incstack_profile_stability *stability);

/* ---- reducing a profile ----------------------------------------------------------- */

/* Creates a profile without recursion: a call of a function that is already among its callers becomes
 * a part of the youngest such caller. So no context has a function twice, the own weight of each
 * function stays, and a profile of deep recursion becomes small. The functions in between, which led to
 * the call, no longer have its weight among their callees. Functions are the same if their names are
 * equal. Errors: EINVAL, ENOMEM.
 * Thread: owner. Signal: no. Allocates: malloc. Blocks: never. */
INCSTACK_API int incstack_profile_fold_recursion(const struct incstack_profile *profile,
						 struct incstack_profile **folded);

/* Removes every context whose total is, in every kind, below the profile's total divided by
 * `parts`. Their weights go to a frame "[smaller contexts]" below the caller that stays, so no
 * other function's own weight changes. meta.pruned counts them.
 * Errors: EINVAL, ENOMEM, ELIMIT.
 * Thread: owner. Signal: no. Allocates: malloc. Blocks: never. */
INCSTACK_API int incstack_profile_prune(struct incstack_profile *profile, uint64_t parts);

/* Makes the profile have at most `nodes` nodes (3 or more). Light contexts are replaced by one frame
 * "[smaller contexts]" below their caller, which has their weights. So no other context changes its weight,
 * with or without callees. A context is light if its total is, in every kind, below a part of the
 * profile's total; the part is the smallest one that suffices, or up to twice as large. If even the
 * heaviest contexts are too many, those that were added last are replaced. Errors: EINVAL, ENOMEM.
 * Thread: owner. Signal: no. Allocates: malloc. Blocks: never. */
INCSTACK_API int incstack_profile_shrink(struct incstack_profile *profile, uint32_t nodes);

/* Removes all nodes and weights. Frames, names and their numbers stay. Errors: EINVAL.
 * Thread: owner. Signal: no. Allocates: never. Blocks: never. */
INCSTACK_API int incstack_profile_clear(struct incstack_profile *profile);

/* ---- files --------------------------------------------------------------------- */

/* The file formats. */
enum incstack_profile_format {
	INCSTACK_FORMAT_FOLDED = 1, /* lines like "main;f;g 42"; has one kind, no meta */
	INCSTACK_FORMAT_PPROF,      /* gzipped protobuf; plain protobuf is read, too */
	INCSTACK_FORMAT_SPEEDSCOPE, /* JSON of speedscope */
	INCSTACK_FORMAT_FIREFOX,    /* JSON of the Firefox Profiler, processed form */
	INCSTACK_FORMAT_HTML,       /* a flame graph; can be written, but not read */
};

/* Returns the format for a path by its suffix (.folded, .pb.gz, .speedscope.json,
 * .firefox.json, .html), or for the name of a format ("pprof"); 0 if there is none.
 * Thread: any. Signal: yes. Allocates: never. Blocks: never. */
INCSTACK_API int incstack_profile_format_of(const char *path);

/* Where and why reading a file failed. */
struct incstack_profile_problem {
	uint64_t line;   /* from 1; 0 in formats without lines */
	uint64_t offset; /* of the line, or of the byte or field in the uncompressed data */
	const char *why; /* a constant string; null if there was none */
};

/* Optional details of pprof files. They are read only on request, because they split contexts
 * that are equal otherwise. A profile that has them can be written to pprof again. */
enum incstack_profile_keep {
	/* Labels of samples. Each becomes a frame "key=value" below the frames of the sample.
	 * In other formats, and in the results of merge, select, average and overlay, they are
	 * ordinary frames. */
	INCSTACK_KEEP_LABELS = 1u << 0,
	/* Mappings, and the mapping and address of each location. Frames with different
	 * addresses are different. The results of merge and the others lack them. */
	INCSTACK_KEEP_MAPPINGS = 1u << 1,
};

/* Options for reading a file; a null pointer means all zero. */
struct incstack_profile_input {
	uint32_t nodes_max; /* how many nodes the profile may have before full is called; 0: any */
	/* Called between two records once the profile has nodes_max nodes. It must prune the
	 * profile, or write and clear it. If it returns an error, reading ends with it. Only
	 * folded and pprof files call it. */
	int (*full)(void *context, struct incstack_profile *profile);
	/* Called from time to time with the number of bytes read so far. May be null. */
	void (*progress)(void *context, uint64_t bytes);
	void *context; /* passed to both */
	uint32_t keep; /* INCSTACK_KEEP_* */
};

/* Reads a file into a new profile, which gets the kinds of the file; for folded files
 * {"samples", "count"}. If the stream of a pprof file cannot seek, a temporary file is
 * used. In JSON files of other programs, times are converted to nanoseconds, fractional
 * weights are rounded so that their sum does not change, and profiles or threads with the
 * same unit become one kind. problem may be null.
 * Errors: EINVAL, ENOMEM, ELIMIT, ERANGE, EIO, EFORMAT.
 * Thread: any. Signal: no. Allocates: malloc. Blocks: on the stream. */
INCSTACK_API int incstack_profile_read(FILE *stream, enum incstack_profile_format format,
				       const struct incstack_profile_input *input,
				       struct incstack_profile **profile,
				       struct incstack_profile_problem *problem);

/* Details that conversion between files can lose. Weights and names are never lost. */
enum incstack_profile_loss {
	INCSTACK_LOSS_LABELS = 1u << 0,    /* pprof: labels of samples (INCSTACK_KEEP_LABELS) */
	INCSTACK_LOSS_MAPPINGS = 1u << 1,  /* mappings and addresses (INCSTACK_KEEP_MAPPINGS) */
	INCSTACK_LOSS_FUNCTIONS = 1u << 2, /* system names, start lines, columns, filters, URL */
	INCSTACK_LOSS_FILES = 1u << 3,     /* names of source files */
	INCSTACK_LOSS_LINES = 1u << 4,     /* line numbers; when reading, those beyond 2^31 - 1 */
	INCSTACK_LOSS_INLINING = 1u << 5,  /* which frames are inlined */
	INCSTACK_LOSS_KINDS = 1u << 6,     /* all kinds of weight but one */
	INCSTACK_LOSS_UNIT = 1u << 7,     /* the kind's name and unit, read as "samples", "count" */
	INCSTACK_LOSS_META = 1u << 8,     /* struct incstack_profile_meta */
	INCSTACK_LOSS_COMMENTS = 1u << 9, /* pprof: comments of other programs */
	INCSTACK_LOSS_PERIOD = 1u << 10,  /* pprof: period and default sample type */
	INCSTACK_LOSS_NAMES = 1u << 11,   /* folded: ';' and newlines in names */
	INCSTACK_LOSS_FRACTIONS = 1u
				  << 12, /* JSON: weights are rounded; their sum does not change */
	INCSTACK_LOSS_THREADS = 1u
				<< 13, /* JSON of other programs: the thread or profile, its name */
	INCSTACK_LOSS_FRAME_KINDS = 1u << 14, /* enum incstack_frame_kind */
};

/* Returns INCSTACK_LOSS_*: the details of the source file that the profile does not have, and
 * those of the profile that a file of `format` cannot have. format 0: only the former.
 * Thread: owner. Signal: no. Allocates: never. Blocks: never. */
INCSTACK_API uint32_t incstack_profile_losses(const struct incstack_profile *profile,
					      enum incstack_profile_format format, uint32_t kind);

/* Returns the description of one bit, for messages; null if the bit is unknown.
 * Thread: any. Signal: yes. Allocates: never. Blocks: never. */
INCSTACK_API const char *incstack_profile_loss_text(uint32_t loss);

/* Writes a profile. A folded file contains only the kind `kind`. It has one line for each
 * distinct stack, callers before callees. In names ';' becomes ':', and a newline becomes a
 * space. Errors: EINVAL, ENOMEM, EIO; ELIMIT: a folded line is longer than
 * INCSTACK_FOLDED_LINE_MAX.
 * Thread: owner. Signal: no. Allocates: malloc. Blocks: on the stream. */
INCSTACK_API int incstack_profile_write(const struct incstack_profile *profile,
					enum incstack_profile_format format, uint32_t kind,
					FILE *stream);

/* Writes the flame graph of the difference in an overlay (incstack_profile_overlay). Widths
 * are those of one side; colours show which side has more. Errors: EINVAL, ENOMEM, EIO.
 * Thread: owner. Signal: no. Allocates: malloc. Blocks: on the stream. */
INCSTACK_API int incstack_profile_write_difference(const struct incstack_profile *both,
						   FILE *stream);

/* Writes a profile in parts, if it does not fit into memory: call begin, then add for each
 * part, then finish. All parts use the same profile, which is cleared between them. A
 * context that occurs in several parts occurs several times in the file; readers sum its
 * weights. HTML has one part only. The caller keeps the stream and closes it. */
struct incstack_profile_writer;

/* Writes the beginning of the file and creates the writer. Errors: EINVAL, ENOMEM, EIO.
 * Thread: owner. Signal: no. Allocates: malloc. Blocks: on the stream. */
INCSTACK_API int incstack_profile_writer_begin(const struct incstack_profile *profile,
					       enum incstack_profile_format format, uint32_t kind,
					       FILE *stream,
					       struct incstack_profile_writer **writer);

/* Writes the current content of the profile as one part. Errors: as write.
 * Thread: owner. Signal: no. Allocates: malloc. Blocks: on the stream. */
INCSTACK_API int incstack_profile_writer_add(struct incstack_profile_writer *writer);

/* Completes the file and frees the writer, also after an error. If `complete` is 0, it only
 * frees the writer. Errors: as write.
 * Thread: owner. Signal: no. Allocates: malloc. Blocks: on the stream. */
INCSTACK_API int incstack_profile_writer_finish(struct incstack_profile_writer *writer,
						int complete);

/* The maximum length of a line in a folded file, in bytes. */
#define INCSTACK_FOLDED_LINE_MAX (16u << 20)

INCSTACK_END_C

#endif
