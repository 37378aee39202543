/* SPDX-License-Identifier: MIT
 *
 * Profiles: calling context trees (CCT) with several kinds of weights. They are made from
 * traces, and written to files. Five calls suffice for a profile of a program:
 *
 *   incstack_profile_create       an empty profile, with its kinds of weights
 *   incstack_profile_add_tree     adds the traces of a retrieve; as often as you like
 *   incstack_profile_name_frames  makes a profile with the names of the frames
 *   incstack_profile_write        writes a file: a flame graph, pprof, and others
 *   incstack_profile_destroy      frees a profile
 *
 * For example, if the `function` of a frame points to a method of yours:
 *
 *   static int name(void *context, const struct incstack_profile_frame *frame,
 *                   struct incstack_profile_source *source)
 *   {
 *           const struct method *method = (const struct method *)frame->function;
 *
 *           source->name = method->name;
 *           source->file = method->file;
 *           source->line = line_of(method, frame->position);
 *           return 0;
 *   }
 *
 *   int write_flame_graph(const struct incstack_tree *tree, FILE *stream)
 *   {
 *           const struct incstack_profile_kind samples = {"samples", "count"};
 *           struct incstack_profile *profile, *named = NULL;
 *           int error = incstack_profile_create(&samples, 1, &profile);
 *
 *           if (error)
 *                   return error;
 *           error = incstack_profile_add_tree(profile, INCSTACK_PROFILE_ROOT, tree, NULL, NULL);
 *           if (!error)
 *                   error = incstack_profile_name_frames(profile, name, NULL, &named);
 *           if (!error)
 *                   error = incstack_profile_write(named, INCSTACK_FORMAT_HTML, 0, stream);
 *           incstack_profile_destroy(named);
 *           incstack_profile_destroy(profile);
 *           return error;
 *   }
 *
 * The other calls say where a profile is from, build one without traces, look at its nodes,
 * sum profiles, and read files. The program incstack compares files and makes them smaller.
 *
 * A profile belongs to one thread at a time, its owner. Memory comes from malloc. No
 * function may be called from a signal handler, except where stated. Pointers
 * into a profile are valid until something is added to it. A structure that has a
 * member `size` gets it from the caller; another size is EINVAL.
 *
 * Conventions as in incstack.h. Part of libincstack_profile.a.
 */
#ifndef INCSTACK_PROFILE_H
#define INCSTACK_PROFILE_H

#include <stdio.h>

#include <incstack/incstack.h>

INCSTACK_BEGIN_C

/* ---- a profile ----------------------------------------------------------------- */

/* A calling context tree with weights. */
struct incstack_profile;

/* A kind of weight, for example {"samples", "count"} or {"alloc", "bytes"}. */
struct incstack_profile_kind {
	const char *name; /* what is counted: "samples" */
	const char *unit; /* in which unit: "count", "bytes", "nanoseconds" */
};

/* The maximum number of kinds of weight in one profile. */
#define INCSTACK_PROFILE_KINDS_MAX 16

/* Creates an empty profile with 1..INCSTACK_PROFILE_KINDS_MAX kinds of weight.
 * Errors: EINVAL, ENOMEM.
 * Thread: any. Signal: no. Allocates: malloc. Blocks: never. */
INCSTACK_API int incstack_profile_create(const struct incstack_profile_kind *kinds, uint32_t count,
					 struct incstack_profile **profile);

/* Frees the profile; null is allowed.
 * Thread: owner. Signal: no. Allocates: never. Blocks: never. */
INCSTACK_API void incstack_profile_destroy(struct incstack_profile *profile);

/* Copies the name and unit of a kind, null-terminated, to *description. Kinds are numbered from
 * 0. Errors: EINVAL, also for a number beyond the last kind, which ends a loop over all kinds.
 * Thread: owner. Signal: no. Allocates: never. Blocks: never. */
INCSTACK_API int incstack_profile_kind(const struct incstack_profile *profile, uint32_t kind,
				       struct incstack_profile_kind *description);

/* The origin of a profile. Zero and null mean unknown. */
struct incstack_profile_meta {
	size_t size;          /* sizeof(struct incstack_profile_meta), set by the caller */
	const char *program;  /* the command that was profiled */
	const char *mode;     /* how samples were taken */
	uint64_t time_ns;     /* start of sampling, ns since 1970; up to INT64_MAX */
	uint64_t duration_ns; /* duration of sampling; up to INT64_MAX */
	uint64_t lost;        /* samples that were requested but not taken */
	uint64_t truncated;   /* samples whose outer callers are unknown */
	uint64_t pruned;      /* light contexts that were removed to save memory */
};

/* Copies *meta into the profile. Errors: EINVAL, ENOMEM, ERANGE, EFORMAT (not UTF-8).
 * Thread: owner. Signal: no. Allocates: malloc. Blocks: never. */
INCSTACK_API int incstack_profile_set_meta(struct incstack_profile *profile,
					   const struct incstack_profile_meta *meta);

/* Copies the meta data to *meta. Errors: EINVAL.
 * Thread: owner. Signal: no. Allocates: never. Blocks: never. */
INCSTACK_API int incstack_profile_meta(const struct incstack_profile *profile,
				       struct incstack_profile_meta *meta);

/* ---- traces -------------------------------------------------------------------- */

/* Writes the weights of a trace: one number for each kind. */
typedef void incstack_profile_weigh_fn(void *context, const struct incstack_trace *trace,
				       uint64_t *weights);

/* Node 0 of every profile is the root. It represents no frame. */
#define INCSTACK_PROFILE_ROOT 0u

/* Adds the traces of one retrieve below the node `parent`: the root, or a node of add_node, for
 * example one with the name of the thread. A frame object that several traces share is processed
 * once, provided that the traces are in the order of the samples and the frames lie on one stack,
 * as in the tree of a retrieve. If weigh is null, each trace adds 1 to kind 0, and its weight to
 * kind 1 if that exists. Virtual frames are separate frames, and recursion is kept. A trace whose
 * callers are unknown is added below a frame named "[truncated]". The tree is only read and may be
 * released afterwards.
 * Errors: EINVAL, also for a parent that does not exist; ENOMEM; ELIMIT: 2^32 nodes; ERANGE: a
 * total beyond INT64_MAX. After an error the traces before it remain added.
 * Thread: owner. Signal: no. Allocates: malloc. Blocks: never. */
INCSTACK_API int incstack_profile_add_tree(struct incstack_profile *profile, uint32_t parent,
					   const struct incstack_tree *tree,
					   incstack_profile_weigh_fn *weigh, void *context);

/* Adds `from`, which must have the same kinds, to `into`. Two frames are the same if their
 * names, files, lines, modules with build-ids, and kinds are equal; of their addresses, the first one
 * is kept. Errors: EINVAL, ENOMEM, ELIMIT, ERANGE.
 * Thread: owner of both. Signal: no. Allocates: malloc. Blocks: never. */
INCSTACK_API int incstack_profile_merge(struct incstack_profile *into,
					const struct incstack_profile *from);

/* ---- names --------------------------------------------------------------------- */

/* Flag of a frame that represents a label of samples; see INCSTACK_KEEP_LABELS. */
#define INCSTACK_PROFILE_LABEL (1u << 31)

/* A frame. Nodes refer to frames; every distinct frame exists once in a profile. */
struct incstack_profile_frame {
	size_t size;        /* sizeof(struct incstack_profile_frame), set by the caller */
	const char *name;   /* not null-terminated; null until the frame is named */
	size_t name_length; /* in bytes */
	const char *file;   /* source file, null-terminated; null if unknown */
	int32_t line;       /* in the file, from 1; 0: unknown */
	int32_t position;   /* as in the frame object; -1: unknown, or the frame has a name */
	uint64_t function;  /* as in the frame object; 0 for frames made from a name */
	const char *module; /* path of the file that has the code, null-terminated; null if unknown */
	const char *build_id; /* of the module, hexadecimal, null-terminated; null if unknown */
	uint64_t address;     /* of the code, as the module's symbols count (addr2line), or as in the
	                       * pprof file that was read; 0: unknown */
	uint32_t kind;        /* enum incstack_frame_kind */
	uint32_t flags; /* INCSTACK_OBJECT_SIGNAL, _RAW, _EXACT (of RAW); INCSTACK_PROFILE_LABEL;
	                 * _VIRTUAL: this frame is inlined into its caller (in a frame object it
	                 * means that the callee is inlined) */
};

/* What a frame is called, and where it is in the source and in a module. Strings are UTF-8 and copied at
 * once. If module, build_id and address are null and 0, the frame keeps its own. The address of a caller
 * lies inside the call. */
struct incstack_profile_source {
	const char *name;     /* null: the frame keeps its name */
	const char *file;     /* null: unknown */
	int32_t line;         /* 0 or less: unknown */
	uint32_t kind;        /* enum incstack_frame_kind; before the call that of the frame */
	const char *module;   /* as in a frame */
	const char *build_id; /* as in a frame */
	uint64_t address;     /* as in a frame */
};

/* Looks up the source of a frame. *source has the kind of the frame, and otherwise null and 0,
 * before the call. With INCSTACK_OBJECT_RAW, frame->function is a pc that was not decoded; without
 * EXACT it is a return address, so look up function - 1, which lies inside the call. A result other
 * than 0 ends incstack_profile_name_frames, which returns it. */
typedef int incstack_profile_source_fn(void *context, const struct incstack_profile_frame *frame,
				       struct incstack_profile_source *source);

/* Creates a profile with the meta data and weights of `profile`, whose frames have names, files,
 * lines, modules and kinds. Frames that are equal in all of these become one frame, with
 * the address of the first one, and so do contexts that differ in nothing else. The name of a frame that
 * remains without one is its function in hexadecimal digits. `find` is called once for each frame that is not a label. `profile` does not
 * change, so more traces can be added to it.
 * Errors: EINVAL, also for an unknown kind; ENOMEM, EFORMAT (not UTF-8).
 * Thread: owner. Signal: no. Allocates: malloc. Blocks: never. */
INCSTACK_API int incstack_profile_name_frames(const struct incstack_profile *profile,
					      incstack_profile_source_fn *find, void *context,
					      struct incstack_profile **named);

/* ---- files --------------------------------------------------------------------- */

/* The file formats. */
enum incstack_profile_format {
	INCSTACK_FORMAT_FOLDED = 1, /* lines like "main;f;g 42"; has one kind, no meta */
	INCSTACK_FORMAT_PPROF,      /* gzipped protobuf; plain protobuf is read, too */
	INCSTACK_FORMAT_SPEEDSCOPE, /* JSON of speedscope */
	INCSTACK_FORMAT_FIREFOX,    /* JSON of the Firefox Profiler, processed form */
	INCSTACK_FORMAT_HTML,       /* a flame graph; can be written, but not read */
	/* Files of other programs, which can be read, but not written: */
	INCSTACK_FORMAT_PERF_SCRIPT, /* the text of perf script */
	INCSTACK_FORMAT_HEAPTRACK,   /* heaptrack's data, as its commands leave them */
	INCSTACK_FORMAT_MASSIF,      /* of valgrind's massif: what was live at the peak */
	INCSTACK_FORMAT_DHAT,        /* of valgrind's DHAT in its mode heap */
	/* Profiles of OpenTelemetry (OTLP, v1development of proto 1.11.0), read and written. */
	INCSTACK_FORMAT_OTLP,
};

/* Returns the format for a path by its suffix (.folded, .pb.gz, .speedscope.json,
 * .firefox.json, .html, .otlp.pb), or for the name of a format ("pprof", "otlp", "perf-script", "heaptrack",
 * "massif", "dhat"); 0 if there is none. A suffix .gz or .zst may follow.
 * Thread: any. Signal: yes. Allocates: never. Blocks: never. */
INCSTACK_API int incstack_profile_format_of(const char *path);

/* The maximum length of a line in a folded file, in bytes. */
#define INCSTACK_FOLDED_LINE_MAX (16u << 20)

/* Writes a profile. A folded file contains only the kind `kind`. It has one line for each
 * distinct stack, callers before callees. In names ';' becomes ':', and a newline becomes a
 * space. Errors: EINVAL, ENOMEM, EIO; ELIMIT: a folded line is longer than
 * INCSTACK_FOLDED_LINE_MAX.
 * Thread: owner. Signal: no. Allocates: malloc. Blocks: on the stream. */
INCSTACK_API int incstack_profile_write(const struct incstack_profile *profile,
					enum incstack_profile_format format, uint32_t kind,
					FILE *stream);

/* Optional details of pprof files. They are read only on request, because they split contexts
 * that are equal otherwise. A profile that has them can be written to pprof again. */
enum incstack_profile_keep {
	/* Labels of samples. Each becomes a frame "key=value" below the frames of the sample.
	 * In other formats, and in the result of merge, they are ordinary frames. */
	INCSTACK_KEEP_LABELS = 1u << 0,
	/* The mapping and address of each location: frames with different addresses are different.
	 * Else a frame has its module, and the first of its addresses. So has the result of merge. */
	INCSTACK_KEEP_MAPPINGS = 1u << 1,
};

/* Where and why reading a file failed. */
struct incstack_profile_problem {
	size_t size;     /* sizeof(struct incstack_profile_problem), set by the caller */
	uint64_t line;   /* from 1; 0 in formats without lines */
	uint64_t offset; /* of the line, or of the byte or field in the uncompressed data */
	const char *why; /* a constant string; null if there was none */
};

/* Reads a file, which may be packed by gzip or zstd, into a new profile, with the details that `keep` names (INCSTACK_KEEP_*; 0: none).
 * The profile gets the kinds of the file; for folded files {"samples", "count"}. If the stream of a
 * pprof file cannot seek, a temporary file is used. In JSON files of other programs, times are
 * converted to nanoseconds, fractional weights are rounded so that their sum does not change, and
 * profiles or threads with the same unit become one kind. problem may be null.
 * Errors: EINVAL, ENOMEM, ELIMIT, ERANGE, EIO, EFORMAT.
 * Thread: any. Signal: no. Allocates: malloc. Blocks: on the stream. */
INCSTACK_API int incstack_profile_read(FILE *stream, enum incstack_profile_format format,
				       uint32_t keep, struct incstack_profile **profile,
				       struct incstack_profile_problem *problem);

/* ---- nodes --------------------------------------------------------------------- */

/* The number that stands for no node. */
#define INCSTACK_PROFILE_NONE UINT32_MAX

/* Returns the number of nodes. Nodes are numbered from 0, the root. The number of a parent is
 * smaller than that of its child.
 * Thread: owner. Signal: no. Allocates: never. Blocks: never. */
INCSTACK_API uint32_t incstack_profile_nodes(const struct incstack_profile *profile);

/* A node: a frame in the context of its callers. */
struct incstack_profile_node {
	size_t size;             /* sizeof(struct incstack_profile_node), set by the caller */
	const uint64_t *weights; /* without its callees; one number for each kind */
	uint32_t parent;         /* INCSTACK_PROFILE_NONE: the node is the root */
	struct incstack_profile_frame frame; /* of the root: all 0 but its size */
};

/* Copies the parent, the frame and the place of the weights of node `number` to *node.
 * Errors: EINVAL.
 * Thread: owner. Signal: no. Allocates: never. Blocks: never. */
INCSTACK_API int incstack_profile_node(const struct incstack_profile *profile, uint32_t number,
				       struct incstack_profile_node *node);

/* Writes to totals[0..nodes) the weight of each node with its callees. totals[0] is the
 * weight of the whole profile. Errors: EINVAL.
 * Thread: owner. Signal: no. Allocates: never. Blocks: never. */
INCSTACK_API int incstack_profile_totals(const struct incstack_profile *profile, uint32_t kind,
					 uint64_t *totals);

/* Finds the node below `parent` with this frame, or adds it, for contexts that are not frame
 * objects. A frame without a name is identified by its function, position, module, kind and
 * flags; name_frames can name it later, like the frames of add_tree. A frame with a name is identified
 * by its name, file, line, module, kind and flags. Of the addresses of a frame, the first one is kept.
 * Errors: EINVAL, also for an empty name, an unknown kind, and the flag INCSTACK_PROFILE_LABEL;
 * ENOMEM; ELIMIT: 2^32 nodes; EFORMAT: a string is not UTF-8.
 * Thread: owner. Signal: no. Allocates: malloc. Blocks: never. */
INCSTACK_API int incstack_profile_add_node(struct incstack_profile *profile, uint32_t parent,
					   const struct incstack_profile_frame *frame,
					   uint32_t *node);

/* Adds to the weights of a node, except the root: one number for each kind.
 * Errors: EINVAL; ERANGE: a total beyond INT64_MAX, and nothing was added.
 * Thread: owner. Signal: no. Allocates: never. Blocks: never. */
INCSTACK_API int incstack_profile_add_weights(struct incstack_profile *profile, uint32_t node,
					      const uint64_t *weights);

INCSTACK_END_C

#endif
