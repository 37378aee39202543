/* SPDX-License-Identifier: MIT
 *
 * The data of a profile: names and frames, each distinct one once, and the nodes of the calling
 * context tree. Each is an array with a hash table of indices.
 */
#ifndef INCSTACK_PROFILE_CCT_H
#define INCSTACK_PROFILE_CCT_H

#include <stdbool.h>

#include <incstack/profile.h>

#include "nodes.h"
#include "base/table.h"
#include "curve.h"
#include "timeline.h"

struct incstack__name {
	size_t offset; /* into texts */
	uint32_t length;
	uint32_t hash;
};

/* `key` is the name that the frame was made from. It is NONE for frames of traces: their name
 * becomes known later and must not change how they are found. */
struct incstack__frame {
	uint64_t function;
	int32_t position; /* -1: unknown */
	int32_t line;     /* 0: unknown */
	uint32_t kind;
	uint32_t flags;
	uint32_t key;
	uint32_t name;
	uint32_t file;   /* the source file: the number of a name + 1; 0: unknown */
	uint32_t module; /* that has the code: its number + 1; 0: unknown */
	uint32_t
		place; /* of the code: its number + 1; 0: unknown. Frames that differ only in it are
	                  * one frame, unless the profile has places_apart: it is the first one seen. */
};

/* What a frame of a trace was found by, and its number. */
struct incstack__seen {
	uint64_t function;
	int32_t position;
	uint32_t flags;
	uint32_t frame_plus_one; /* 0: nothing */
};

enum { INCSTACK__SEEN = 64 };

struct incstack__node {
	uint32_t parent;
	uint32_t frame;
};

/* A file that contains code. A name is stored as its number + 1; 0: unknown. */
struct incstack__module {
	uint32_t file, build_id;
};

/* Addresses where a module was mapped; all 0: addresses are those in the module. */
struct incstack__mapping {
	uint64_t start, limit, offset;
	uint32_t module; /* its number + 1; 0: unknown */
	uint32_t has;    /* bits of pprof that tell what a symbolizer has added */
};

/* Where the code of a frame lies. */
struct incstack__place {
	uint64_t address;
	uint32_t mapping; /* its number + 1; 0: unknown */
	uint32_t folded;  /* 1: several functions share the code */
};

struct incstack__modules {
	struct incstack__module *modules;
	size_t modules_used, modules_room;
	struct incstack__table module_table;
	struct incstack__mapping *mappings;
	size_t mappings_used, mappings_room;
	struct incstack__table mapping_table;
	struct incstack__place *places;
	size_t places_used, places_room;
	struct incstack__table place_table;
};

/* A label of samples, with a text or a number. Its index is the function of its frame. */
struct incstack__label {
	uint64_t number;
	uint32_t key, text, unit;
};

/* Details that only pprof files contain. A name is stored as its number + 1; 0: none. */
struct incstack__extra {
	struct incstack__label *labels;
	size_t labels_used, labels_room;
	struct incstack__table label_table;
	uint32_t *comments;
	size_t comments_used, comments_room;
	uint32_t period_name, period_unit, default_kind;
	uint64_t period;
};

struct incstack_profile {
	uint32_t kinds;
	uint32_t kind_name[INCSTACK_PROFILE_KINDS_MAX];
	uint32_t kind_unit[INCSTACK_PROFILE_KINDS_MAX];
	uint64_t total[INCSTACK_PROFILE_KINDS_MAX];

	char *texts;
	size_t texts_used, texts_room;

	struct incstack__name *names;
	size_t names_used, names_room;
	struct incstack__table name_table;

	struct incstack__frame *frames;
	size_t frames_used, frames_room;
	struct incstack__table frame_table;
	/* The frames of traces that were looked up lately. Emptied with the table. */
	struct incstack__seen seen[INCSTACK__SEEN];

	struct incstack__node *nodes;
	uint64_t *weights; /* kinds numbers for each node */
	size_t nodes_used, nodes_room, weights_room;
	struct incstack__table node_table;

	char *program, *mode;
	struct incstack_profile_meta meta; /* the rest of the meta data */
	struct incstack__modules modules;
	bool places_apart; /* frames with different places are different (INCSTACK_KEEP_MAPPINGS) */
	struct incstack__extra extra;
	struct incstack__timeline *timeline;   /* or null */
	struct incstack__profile_curve *curve; /* or null */
	uint32_t losses; /* INCSTACK__LOSS_*: what the file had and the profile lacks */
};

/* The size of a buffer for a function in hexadecimal digits, with its prefix. */
enum { INCSTACK__FRAME_TEXT = 24 };

/* Makes room for `need` elements, at least doubling. */
int incstack__reserve(void **array, size_t *room, size_t need, size_t element);

bool incstack__text_valid(const char *text, size_t length);
/* The same for a string; null, which means none, is valid, too. */
bool incstack__string_valid(const char *string);
int incstack__name_intern(struct incstack_profile *profile, const char *text, size_t length,
			  uint32_t *name);
int incstack__frame_intern(struct incstack_profile *profile, const struct incstack__frame *key,
			   uint32_t *frame);
/* Finds or adds the frame that is only a name. */
int incstack__frame_named(struct incstack_profile *profile, const char *text, size_t length,
			  uint32_t *frame);
/* The same, with a source file (null: unknown), and with the line, kind, flags, module and place of `rest`. */
int incstack__frame_at(struct incstack_profile *profile, const char *text, size_t length,
		       const char *file, const struct incstack__frame *rest, uint32_t *frame);
/* Finds or adds the frame of a label. */
int incstack__label_frame(struct incstack_profile *profile, const struct incstack__label *label,
			  uint32_t *frame);
int incstack__modules_init(struct incstack__modules *modules);
void incstack__modules_free(struct incstack__modules *modules);
/* Gives `into` the default kind and the period of `from`. */
int incstack__extra_copy(const struct incstack_profile *from, struct incstack_profile *into);
/* Returns the number of the default kind, or 0. */
uint32_t incstack__default_kind(const struct incstack_profile *profile);
int incstack__extra_init(struct incstack__extra *extra);
void incstack__extra_free(struct incstack__extra *extra);
/* Rebuilds the table after keys were changed. */
int incstack__frame_table_renew(struct incstack_profile *profile);
int incstack__node_child(struct incstack_profile *profile, uint32_t parent, uint32_t frame,
			 uint32_t *node);
/* Rebuilds the table after nodes were removed or renumbered. */
void incstack__node_table_renew(struct incstack_profile *profile);
int incstack__node_weigh(struct incstack_profile *profile, uint32_t node, uint32_t kind,
			 uint64_t weight);

/* Returns a name as a string, which is valid until the next name is added. */
static inline const char *incstack__text(const struct incstack_profile *profile, uint32_t name)
{
	return profile->texts + profile->names[name].offset;
}

/* Returns the text of a frame: its name, or its function, which is written to `buffer`. */
const char *incstack__frame_text(const struct incstack_profile *profile, uint32_t frame,
				 char buffer[INCSTACK__FRAME_TEXT], size_t *length);

/* Describes a frame as the public interface does. */
void incstack__frame_public(const struct incstack_profile *profile, uint32_t number,
			    struct incstack_profile_frame *frame);

/* Makes an array with a number for each frame, which frames have in common that are of one function: those
 * with the same name, and those without a name that have the same function. Numbers are below
 * names_used + frames_used. */
int incstack__frame_functions(const struct incstack_profile *profile, uint32_t **functions);

/* What a node of a tree is: a call of the function by the parent. */
struct incstack__call {
	uint32_t parent, function;
};

/* What is done at each node of a tree: before its children, and after them. */
struct incstack__visitor {
	int (*enter)(void *context, uint32_t node); /* an error ends the visit */
	void (*leave)(void *context, uint32_t node);
	void *context;
};

/* Visits all nodes but the root, which is node 0. A node comes after its parent. */
int incstack__calls_visit(const struct incstack__call *calls, size_t nodes,
			  const struct incstack__visitor *visitor);

/* Finds, for each node of a tree, whether one of its callers is of the node's function. Node 0 is the root; a
 * node comes after its parent. Numbers of functions are below `functions`. */
int incstack__inside_itself(const struct incstack__call *calls, size_t nodes, size_t functions,
			    bool *inside);

/* Writes the frames of a node to *path, innermost first, and their number to *depth. */
int incstack__node_path(const struct incstack_profile *profile, uint32_t node, uint32_t **path,
			size_t *room, size_t *depth);

/* The first function creates a profile without kinds, for readers that learn the kinds last. The
 * second one adds the kinds. */
int incstack__profile_blank(struct incstack_profile **profile);
int incstack__profile_set_kinds(struct incstack_profile *profile,
				const struct incstack_profile_kind *kinds, uint32_t count);

#endif
