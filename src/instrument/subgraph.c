/* SPDX-License-Identifier: MIT
 *
 * The calls of an embedder for a subgraph: checks, roots, and changes.
 */
#include <stdlib.h>

#include "reach.h"

enum { DEFAULT_METHODS = 1 << 20 };

static bool is_valid(const struct incstack_subgraph_options *options)
{
	return options && options->size == sizeof(*options) &&
	       options->scheme <= INCSTACK_SUBGRAPH_CALLED &&
	       !(options->flags & ~(uint32_t)INCSTACK_SUBGRAPH_RECEIVERS);
}

int incstack_subgraph_create(const struct incstack_subgraph_options *options,
			     struct incstack_subgraph **subgraph)
{
	struct incstack_subgraph *s;

	if (!is_valid(options) || !subgraph)
		return INCSTACK_EINVAL;
	s = calloc(1, sizeof(*s));
	if (!s || !incstack__mirrors_init(&s->mirrors)) {
		free(s);
		return INCSTACK_ENOMEM;
	}
	s->options = *options;
	if (!s->options.method_limit)
		s->options.method_limit = DEFAULT_METHODS;
	*subgraph = s;
	return 0;
}

void incstack_subgraph_destroy(struct incstack_subgraph *s)
{
	if (!s)
		return;
	for (struct root *at = s->roots, *next; at; at = next) {
		next = at->next;
		free(at);
	}
	incstack__mirrors_free(&s->mirrors);
	free(s);
}

/* ---- classes --------------------------------------------------------------------------------- */

static bool is_valid_method(const struct incstack_subgraph *s, const struct incstack_method *method)
{
	enum { KNOWN = INCSTACK_METHOD_FIXED | INCSTACK_METHOD_ABSTRACT | INCSTACK_METHOD_OPAQUE };

	if ((method->flags & ~(uint32_t)KNOWN) || (method->call_count && !method->calls) ||
	    incstack__mirrors_method(&s->mirrors, method->method))
		return false;
	for (uint32_t i = 0; i < method->call_count; i++)
		if (method->calls[i].kind > INCSTACK_CALL_VIRTUAL)
			return false;
	return true;
}

static int by_number(const void *a, const void *b)
{
	const uint64_t left = *(const uint64_t *)a, right = *(const uint64_t *)b;

	return left < right ? -1 : left > right;
}

/* Whether the numbers of the methods differ from each other. */
static int check_numbers(const struct incstack_class *added)
{
	uint64_t *numbers = calloc(added->method_count + 1u, sizeof(*numbers));
	int error = numbers ? 0 : INCSTACK_ENOMEM;

	for (uint32_t i = 0; i < added->method_count && numbers; i++)
		numbers[i] = added->methods[i].method;
	if (numbers)
		qsort(numbers, added->method_count, sizeof(*numbers), by_number);
	for (uint32_t i = 1; i < added->method_count && !error; i++)
		if (numbers[i - 1] == numbers[i])
			error = INCSTACK_EINVAL;
	free(numbers);
	return error;
}

static int check_class(const struct incstack_subgraph *s, const struct incstack_class *added)
{
	const struct mirror *known;

	if (!s || !added || added->size != sizeof(*added) ||
	    (added->super_count && !added->supers) || (added->method_count && !added->methods))
		return INCSTACK_EINVAL;
	known = incstack__mirror_find(&s->mirrors, added->class_id);
	if (known && known->is_loaded)
		return INCSTACK_EINVAL;
	for (uint32_t i = 0; i < added->super_count; i++) {
		known = incstack__mirror_find(&s->mirrors, added->supers[i]);
		if (!known || !known->is_loaded)
			return INCSTACK_EINVAL;
	}
	for (uint32_t i = 0; i < added->method_count; i++)
		if (!is_valid_method(s, &added->methods[i]))
			return INCSTACK_EINVAL;
	if (added->method_count > s->options.method_limit - s->mirrors.method_count)
		return INCSTACK_ELIMIT;
	return check_numbers(added);
}

static void unload(struct incstack_subgraph *s, struct mirror *mirror)
{
	incstack__reach_forget(s, mirror);
	incstack__mirror_unload(&s->mirrors, mirror);
}

int incstack_subgraph_add_class(struct incstack_subgraph *s, const struct incstack_class *added)
{
	struct mirror *mirror;
	int error = check_class(s, added);

	if (!error)
		error = incstack__mirror_load(&s->mirrors, added, &mirror);
	if (!error) {
		incstack__reach_class(s, mirror);
		error = incstack__reach_go_on(s);
		if (error)
			unload(s, mirror);
	}
	if (s && (error == INCSTACK_ENOMEM || error == INCSTACK_ELIMIT))
		s->refused++;
	return error;
}

static struct mirror *find_loaded(const struct incstack_subgraph *s, uint64_t class_id)
{
	struct mirror *mirror = s ? incstack__mirror_find(&s->mirrors, class_id) : NULL;

	return mirror && mirror->is_loaded ? mirror : NULL;
}

int incstack_subgraph_remove_class(struct incstack_subgraph *s, uint64_t class_id)
{
	struct mirror *mirror = find_loaded(s, class_id);

	if (!mirror)
		return INCSTACK_EINVAL;
	unload(s, mirror);
	return 0;
}

int incstack_subgraph_class_seen(struct incstack_subgraph *s, uint64_t class_id)
{
	struct mirror *mirror = find_loaded(s, class_id);

	if (!mirror)
		return INCSTACK_EINVAL;
	if (!mirror->is_seen) {
		mirror->is_seen = true;
		incstack__reach_class(s, mirror);
	}
	return incstack__reach_go_on(s);
}

/* ---- roots ----------------------------------------------------------------------------------- */

static void free_root(struct incstack_subgraph *s, struct root *root)
{
	incstack__mirror_release(&s->mirrors, root->mirror);
	free(root);
}

int incstack_subgraph_add_root(struct incstack_subgraph *s, uint64_t class_id, uint64_t name)
{
	struct root *root;
	int error;

	if (!s)
		return INCSTACK_EINVAL;
	root = malloc(sizeof(*root));
	if (!root)
		return INCSTACK_ENOMEM;
	*root = (struct root){s->roots, incstack__mirror_use(&s->mirrors, class_id), name};
	if (!root->mirror) {
		free(root);
		return INCSTACK_ENOMEM;
	}
	s->roots = root;
	error = incstack__reach_root(s, root);
	if (error) {
		s->must_restart = true;
		s->roots = root->next;
		free_root(s, root);
	}
	return error;
}

int incstack_subgraph_remove_root(struct incstack_subgraph *s, uint64_t class_id, uint64_t name)
{
	struct root **at;
	struct root *root;

	if (!s)
		return INCSTACK_EINVAL;
	for (at = &s->roots;
	     *at && !((*at)->mirror->linked.key == class_id && (*at)->name == name);)
		at = &(*at)->next;
	root = *at;
	if (!root)
		return INCSTACK_EINVAL;
	*at = root->next;
	if (incstack__reach_again(s)) {
		*at = root;
		return INCSTACK_ENOMEM;
	}
	free_root(s, root);
	return 0;
}

/* ---- methods --------------------------------------------------------------------------------- */

int incstack_subgraph_method_entered(struct incstack_subgraph *s, uint64_t number)
{
	struct method *method = s ? incstack__mirrors_method(&s->mirrors, number) : NULL;

	if (!s)
		return INCSTACK_EINVAL;
	if (method && method->is_made && method->is_wanted && !method->is_entered) {
		method->is_entered = true;
		s->entered++;
		incstack__reach_entered(s, method);
	}
	return incstack__reach_go_on(s);
}

int incstack_subgraph_method_called(struct incstack_subgraph *s, uint64_t number)
{
	struct method *method = s ? incstack__mirrors_method(&s->mirrors, number) : NULL;

	if (!s)
		return INCSTACK_EINVAL;
	if (method && s->roots)
		incstack__reach_method(s, method);
	return incstack__reach_go_on(s);
}

/* ---- changes --------------------------------------------------------------------------------- */

/* The next time that it is instrumented it starts as one that has not run. */
static void forget_run(struct incstack_subgraph *s, struct method *method)
{
	s->entered -= method->is_entered;
	method->is_entered = false;
}

static struct method *take_change(struct incstack_subgraph *s)
{
	struct method *method = s->first_change;

	s->first_change = method->changing;
	if (!s->first_change)
		s->last_change = NULL;
	method->is_changing = false;
	return method;
}

int incstack_subgraph_next_change(struct incstack_subgraph *s,
				  struct incstack_subgraph_change *change)
{
	if (!s || !change)
		return INCSTACK_EINVAL;
	if (s->must_restart)
		return 0;
	while (s->first_change) {
		struct method *method = take_change(s);

		if (method->is_wanted == method->is_made)
			continue;
		method->is_made = method->is_wanted;
		if (!method->is_made)
			forget_run(s, method);
		if (method->is_made)
			s->instrumented++;
		else
			s->instrumented--;
		*change = (struct incstack_subgraph_change){
			method->linked.key,
			method->is_made ? INCSTACK_CHANGE_INSTRUMENT : INCSTACK_CHANGE_RESTORE};
		return 1;
	}
	return 0;
}

int incstack_subgraph_stats(const struct incstack_subgraph *s,
			    struct incstack_subgraph_stats *stats)
{
	if (!s || !stats || stats->size != sizeof(*stats))
		return INCSTACK_EINVAL;
	*stats = (struct incstack_subgraph_stats){.size = sizeof(*stats),
						  .classes = s->mirrors.class_count,
						  .methods = s->mirrors.method_count,
						  .instrumented = s->instrumented,
						  .entered = s->entered,
						  .unresolved = s->unresolved,
						  .refused = s->refused};
	return 0;
}
