/* SPDX-License-Identifier: MIT
 *
 * How mirrors are made, found and freed, and how a name finds its method.
 */
#include "mirrors.h"

#include <stdlib.h>

bool incstack__mirrors_init(struct mirrors *mirrors)
{
	*mirrors = (struct mirrors){.visit = 0};
	if (incstack__links_init(&mirrors->classes) && incstack__links_init(&mirrors->methods) &&
	    incstack__links_init(&mirrors->calls))
		return true;
	incstack__mirrors_free(mirrors);
	return false;
}

static void free_contents(struct mirror *mirror)
{
	free(mirror->supers);
	free(mirror->edges);
	free(mirror->methods);
	free(mirror->sites);
}

void incstack__mirrors_free(struct mirrors *mirrors)
{
	struct links *classes = &mirrors->classes;

	if (mirrors->calls.buckets)
		incstack__calls_forget(mirrors);
	for (size_t i = 0; classes->buckets && i <= classes->mask; i++)
		for (struct linked *at = classes->buckets[i], *next; at; at = next) {
			next = at->next;
			free_contents((struct mirror *)at);
			free(at);
		}
	free(classes->buckets);
	free(mirrors->methods.buckets);
	free(mirrors->calls.buckets);
}

struct mirror *incstack__mirror_find(const struct mirrors *mirrors, uint64_t class_id)
{
	return (struct mirror *)incstack__links_first(&mirrors->classes, class_id);
}

struct mirror *incstack__mirror_use(struct mirrors *mirrors, uint64_t class_id)
{
	struct mirror *mirror = incstack__mirror_find(mirrors, class_id);

	if (!mirror) {
		mirror = calloc(1, sizeof(*mirror));
		if (!mirror || !incstack__links_reserve(&mirrors->classes, 1)) {
			free(mirror);
			return NULL;
		}
		incstack__links_add(&mirrors->classes, &mirror->linked, class_id);
	}
	mirror->uses++;
	return mirror;
}

static void free_calls(struct mirrors *mirrors, struct mirror *mirror)
{
	for (struct call *at = mirror->calls, *next; at; at = next) {
		next = at->next;
		incstack__links_remove(&mirrors->calls, &at->linked);
		free(at);
	}
	mirror->calls = NULL;
}

void incstack__mirror_release(struct mirrors *mirrors, struct mirror *mirror)
{
	if (--mirror->uses || mirror->is_loaded)
		return;
	free_calls(mirrors, mirror);
	incstack__links_remove(&mirrors->classes, &mirror->linked);
	free(mirror);
}

/* ---- what a loaded class has ----------------------------------------------------------------- */

static void release_sites(struct mirrors *mirrors, struct site *sites, size_t count)
{
	for (size_t i = 0; i < count; i++)
		incstack__mirror_release(mirrors, sites[i].mirror);
}

static size_t count_sites(const struct incstack_class *added)
{
	size_t count = 0;

	for (uint32_t i = 0; i < added->method_count; i++)
		count += added->methods[i].call_count;
	return count;
}

/* Fills the sites of all methods, one after the other. */
static bool fill_sites(struct mirrors *mirrors, const struct incstack_class *added,
		       struct site *sites)
{
	size_t count = 0;

	for (uint32_t i = 0; i < added->method_count; i++)
		for (uint32_t k = 0; k < added->methods[i].call_count; k++) {
			const struct incstack_call_site *from = &added->methods[i].calls[k];
			struct mirror *named = incstack__mirror_use(mirrors, from->class_id);

			if (!named) {
				release_sites(mirrors, sites, count);
				return false;
			}
			sites[count++] = (struct site){named, from->name, from->kind};
		}
	return true;
}

static void fill_methods(struct mirrors *mirrors, struct mirror *mirror,
			 const struct incstack_class *added)
{
	struct site *sites = mirror->sites;

	for (uint32_t i = 0; i < added->method_count; i++) {
		const struct incstack_method *from = &added->methods[i];
		struct method *method = &mirror->methods[i];

		*method = (struct method){.name = from->name,
					  .flags = from->flags,
					  .sites = sites,
					  .site_count = from->call_count};
		sites += from->call_count;
		incstack__links_add(&mirrors->methods, &method->linked, from->method);
	}
	mirrors->method_count += added->method_count;
}

static void link_supers(struct mirrors *mirrors, struct mirror *mirror,
			const struct incstack_class *added)
{
	for (uint32_t i = 0; i < added->super_count; i++) {
		struct mirror *above = incstack__mirror_find(mirrors, added->supers[i]);

		mirror->supers[i] = above;
		mirror->edges[i] = (struct subclass){above->subclasses, mirror};
		above->subclasses = &mirror->edges[i];
	}
}

static void *array_of(size_t count, size_t bytes)
{
	return calloc(count ? count : 1, bytes);
}

int incstack__mirror_load(struct mirrors *mirrors, const struct incstack_class *added,
			  struct mirror **loaded)
{
	struct mirror *mirror = incstack__mirror_use(mirrors, added->class_id);
	struct mirror filled = {
		.supers = array_of(added->super_count, sizeof(*filled.supers)),
		.edges = array_of(added->super_count, sizeof(*filled.edges)),
		.methods = array_of(added->method_count, sizeof(*filled.methods)),
		.sites = array_of(count_sites(added), sizeof(*filled.sites)),
	};

	if (!mirror || !filled.supers || !filled.edges || !filled.methods || !filled.sites ||
	    !incstack__links_reserve(&mirrors->methods, added->method_count) ||
	    !fill_sites(mirrors, added, filled.sites)) {
		free_contents(&filled);
		if (mirror)
			incstack__mirror_release(mirrors, mirror);
		return INCSTACK_ENOMEM;
	}
	mirror->uses--; /* being loaded keeps it */
	mirror->is_loaded = true;
	mirror->supers = filled.supers;
	mirror->edges = filled.edges;
	mirror->methods = filled.methods;
	mirror->sites = filled.sites;
	mirror->super_count = added->super_count;
	mirror->method_count = added->method_count;
	fill_methods(mirrors, mirror, added);
	link_supers(mirrors, mirror, added);
	mirrors->class_count++;
	*loaded = mirror;
	return 0;
}

static void unlink_edge(struct mirror *above, const struct subclass *edge)
{
	struct subclass **at = &above->subclasses;

	while (*at && *at != edge)
		at = &(*at)->next;
	if (*at)
		*at = edge->next;
}

/* Classes of one loader are unloaded in any order, so the subclasses may still be there. */
static void unlink_all(struct mirror *mirror)
{
	for (uint32_t i = 0; i < mirror->super_count; i++)
		if (mirror->supers[i])
			unlink_edge(mirror->supers[i], &mirror->edges[i]);
	for (struct subclass *at = mirror->subclasses; at; at = at->next)
		for (uint32_t i = 0; i < at->mirror->super_count; i++)
			if (at->mirror->supers[i] == mirror)
				at->mirror->supers[i] = NULL;
}

void incstack__mirror_unload(struct mirrors *mirrors, struct mirror *mirror)
{
	size_t sites = 0;

	unlink_all(mirror);
	for (uint32_t i = 0; i < mirror->method_count; i++) {
		incstack__links_remove(&mirrors->methods, &mirror->methods[i].linked);
		sites += mirror->methods[i].site_count;
	}
	release_sites(mirrors, mirror->sites, sites);
	free_contents(mirror);
	mirrors->class_count--;
	mirrors->method_count -= mirror->method_count;
	*mirror = (struct mirror){
		.linked = mirror->linked, .calls = mirror->calls, .uses = mirror->uses + 1};
	incstack__mirror_release(mirrors, mirror);
}

/* ---- finding methods ------------------------------------------------------------------------- */

struct method *incstack__mirrors_method(const struct mirrors *mirrors, uint64_t number)
{
	return (struct method *)incstack__links_first(&mirrors->methods, number);
}

static struct method *own_method(const struct mirror *mirror, uint64_t name)
{
	for (uint32_t i = 0; i < mirror->method_count; i++)
		if (mirror->methods[i].name == name)
			return &mirror->methods[i];
	return NULL;
}

/* Takes a class out of those that are to be searched. */
static struct mirror *without(struct mirror *rest, const struct mirror *removed)
{
	for (struct mirror **at = &rest; *at; at = &(*at)->to_search)
		if (*at == removed) {
			*at = removed->to_search;
			break;
		}
	return rest;
}

/* Puts the superclasses of a class before all others that are to be searched, in their order. */
static struct mirror *search_supers(const struct mirrors *mirrors, const struct mirror *mirror,
				    struct mirror *rest)
{
	for (uint32_t i = mirror->super_count; i-- > 0;) {
		struct mirror *above = mirror->supers[i];

		if (!above || above->search == mirrors->search)
			continue;
		rest = without(rest, above);
		above->to_search = rest;
		rest = above;
	}
	return rest;
}

/* The superclass comes first among the superclasses, and its own ones before the interfaces. Each class is searched
 * once, however often the interfaces meet. */
struct method *incstack__mirrors_resolve(struct mirrors *mirrors, struct mirror *mirror,
					 uint64_t name)
{
	struct mirror *rest = mirror;

	mirrors->search++;
	mirror->to_search = NULL;
	while (rest) {
		struct mirror *at = rest;
		struct method *found = own_method(at, name);

		if (found && !(found->flags & INCSTACK_METHOD_ABSTRACT))
			return found;
		at->search = mirrors->search;
		rest = search_supers(mirrors, at, at->to_search);
	}
	return NULL;
}

/* Adds a class to the end of a walk, once. */
static struct mirror *visit(const struct mirrors *mirrors, struct mirror *last, struct mirror *next)
{
	if (!next || next->visit == mirrors->visit)
		return last;
	next->visit = mirrors->visit;
	next->to_visit = NULL;
	last->to_visit = next;
	return next;
}

static void begin_walk(struct mirrors *mirrors, struct mirror *from)
{
	from->visit = ++mirrors->visit;
	from->to_visit = NULL;
}

struct mirror *incstack__mirror_subclasses(struct mirrors *mirrors, struct mirror *from)
{
	struct mirror *last = from;

	begin_walk(mirrors, from);
	for (struct mirror *at = from; at; at = at->to_visit)
		for (struct subclass *edge = at->subclasses; edge; edge = edge->next)
			last = visit(mirrors, last, edge->mirror);
	return from;
}

struct mirror *incstack__mirror_superclasses(struct mirrors *mirrors, struct mirror *from)
{
	struct mirror *last = from;

	begin_walk(mirrors, from);
	for (struct mirror *at = from; at; at = at->to_visit)
		for (uint32_t i = 0; i < at->super_count; i++)
			last = visit(mirrors, last, at->supers[i]);
	return from;
}

/* ---- calls of the subgraph ------------------------------------------------------------------- */

static uint64_t key_of(const struct mirror *mirror, uint64_t name, uint32_t kind)
{
	return (mirror->linked.key * 0xbf58476d1ce4e5b9u ^ name) * 2 + kind;
}

struct call *incstack__call_add(struct mirrors *mirrors, struct mirror *mirror, uint64_t name,
				uint32_t kind, int *error)
{
	const uint64_t key = key_of(mirror, name, kind);
	struct call *call;

	*error = 0;
	for (struct linked *at = incstack__links_first(&mirrors->calls, key); at;
	     at = incstack__links_next(at)) {
		call = (struct call *)at;
		if (call->mirror == mirror && call->name == name && call->kind == kind)
			return NULL;
	}
	call = malloc(sizeof(*call));
	if (!call || !incstack__links_reserve(&mirrors->calls, 1)) {
		free(call);
		*error = INCSTACK_ENOMEM;
		return NULL;
	}
	*call = (struct call){.next = mirror->calls, .mirror = mirror, .name = name, .kind = kind};
	mirror->calls = call;
	incstack__links_add(&mirrors->calls, &call->linked, key);
	return call;
}

void incstack__calls_forget(struct mirrors *mirrors)
{
	struct links *calls = &mirrors->calls;

	for (size_t i = 0; i <= calls->mask; i++) {
		for (struct linked *at = calls->buckets[i], *next; at; at = next) {
			next = at->next;
			((struct call *)at)->mirror->calls = NULL;
			free(at);
		}
		calls->buckets[i] = NULL;
	}
	calls->used = 0;
}
