/* SPDX-License-Identifier: MIT
 *
 * What is known of classes and methods: mirrors of them (Dmitriev 2003, section 6.1). A class has a mirror while
 * it is loaded, or while code of loaded classes names it.
 */
#ifndef INCSTACK__INSTRUMENT_MIRRORS_H
#define INCSTACK__INSTRUMENT_MIRRORS_H

#include <stdbool.h>

#include <incstack/instrument.h>

/* The part of an object that a hash table needs. */
struct linked {
	struct linked *next; /* in the bucket */
	uint64_t key;
};

/* A hash table of objects that it does not own. */
struct links {
	struct linked **buckets;
	size_t mask, used;
};

bool incstack__links_init(struct links *links);
/* Makes room, so that the next `count` additions cannot fail. */
bool incstack__links_reserve(struct links *links, size_t count);
void incstack__links_add(struct links *links, struct linked *added, uint64_t key);
void incstack__links_remove(struct links *links, struct linked *removed);

/* Returns the first object with a key, or the next one in its bucket; null after the last. */
struct linked *incstack__links_first(const struct links *links, uint64_t key);
struct linked *incstack__links_next(const struct linked *at);

struct mirror;

/* A call that the subgraph makes: each distinct one once. */
struct call {
	struct linked linked;
	struct call *next; /* of the same mirror */
	struct mirror *mirror;
	uint64_t name;
	uint32_t kind; /* INCSTACK_CALL_* */
};

struct site {
	struct mirror *mirror;
	uint64_t name;
	uint32_t kind;
};

struct method {
	struct linked linked;    /* by its number */
	struct method *work;     /* the next one whose callees must be found */
	struct method *changing; /* the next one in the queue of changes */
	uint64_t name;
	uint32_t flags;
	bool is_reached;
	bool is_wanted;   /* it shall be instrumented */
	bool is_made;     /* it is instrumented */
	bool is_entered;  /* it has run since */
	bool is_working;  /* it is in the list of work */
	bool is_changing; /* it is in the queue of changes */
	struct site *sites;
	uint32_t site_count;
};

/* An edge from a class to one of its direct subclasses. */
struct subclass {
	struct subclass *next;
	struct mirror *mirror;
};

struct mirror {
	struct linked linked; /* by its class_id */
	struct call *calls;   /* of the subgraph, that name this class */
	size_t uses;          /* sites and roots that name it */
	bool is_loaded;
	bool is_seen;
	uint32_t visit;          /* number of the last walk that came here */
	struct mirror *to_visit; /* the next one of this walk */
	uint32_t search;         /* number of the last search for a name that came here */
	struct mirror *to_search;
	/* While it is loaded: */
	struct mirror **supers;
	struct subclass *edges; /* one for each of its superclasses */
	struct subclass *subclasses;
	struct method *methods;
	struct site *sites;
	uint32_t super_count, method_count;
};

struct mirrors {
	struct links classes, methods, calls;
	uint64_t class_count, method_count;
	uint32_t visit, search;
};

bool incstack__mirrors_init(struct mirrors *mirrors);
void incstack__mirrors_free(struct mirrors *mirrors);

struct mirror *incstack__mirror_find(const struct mirrors *mirrors, uint64_t class_id);
/* Finds a mirror or makes one, and counts one more use of it. Returns null without memory. */
struct mirror *incstack__mirror_use(struct mirrors *mirrors, uint64_t class_id);
/* Counts one use less. Frees the mirror and its calls if nothing names it and it is not loaded. */
void incstack__mirror_release(struct mirrors *mirrors, struct mirror *mirror);

/* Fills the mirror of a class that was loaded. Nothing changes after an error. */
int incstack__mirror_load(struct mirrors *mirrors, const struct incstack_class *added,
			  struct mirror **loaded);
/* The methods of the class must not be in any list. */
void incstack__mirror_unload(struct mirrors *mirrors, struct mirror *mirror);

struct method *incstack__mirrors_method(const struct mirrors *mirrors, uint64_t number);

/* Finds the method that a name means in a loaded class: its own one, or one of its superclasses; null: none. */
struct method *incstack__mirrors_resolve(struct mirrors *mirrors, struct mirror *mirror,
					 uint64_t name);

/* Lists a loaded class and all its loaded subclasses, or all its superclasses, by their to_visit. */
struct mirror *incstack__mirror_subclasses(struct mirrors *mirrors, struct mirror *from);
struct mirror *incstack__mirror_superclasses(struct mirrors *mirrors, struct mirror *from);

/* Notes a call of the subgraph. Returns the call if it is new; null if it is known or there is no memory,
 * which *error tells apart. */
struct call *incstack__call_add(struct mirrors *mirrors, struct mirror *mirror, uint64_t name,
				uint32_t kind, int *error);
void incstack__calls_forget(struct mirrors *mirrors);

#endif
