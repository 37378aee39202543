/* SPDX-License-Identifier: MIT
 *
 * Finds the methods of the subgraph, by schemes A and B (Dmitriev 2003, section 6). Every call that the
 * subgraph makes is noted with the class that it names, so that classes that are loaded later are covered.
 */
#include "reach.h"

static void queue_change(struct incstack_subgraph *s, struct method *method)
{
	if (method->is_changing || method->is_wanted == method->is_made)
		return;
	method->is_changing = true;
	method->changing = NULL;
	if (s->last_change)
		s->last_change->changing = method;
	else
		s->first_change = method;
	s->last_change = method;
}

static void queue_work(struct incstack_subgraph *s, struct method *method)
{
	if (method->is_working)
		return;
	method->is_working = true;
	method->work = s->work;
	s->work = method;
}

/* Whether what a method calls is reached, too. */
static bool is_followed(const struct incstack_subgraph *s, const struct method *method)
{
	if (method->flags & INCSTACK_METHOD_OPAQUE)
		return false;
	return s->options.scheme == INCSTACK_SUBGRAPH_REACHABLE || method->is_entered ||
	       (method->flags & INCSTACK_METHOD_FIXED);
}

void incstack__reach_method(struct incstack_subgraph *s, struct method *method)
{
	if (method->is_reached)
		return;
	method->is_reached = true;
	if (!(method->flags & (INCSTACK_METHOD_FIXED | INCSTACK_METHOD_OPAQUE))) {
		method->is_wanted = true;
		queue_change(s, method);
	}
	if (is_followed(s, method))
		queue_work(s, method);
}

void incstack__reach_entered(struct incstack_subgraph *s, struct method *method)
{
	if (method->is_reached && is_followed(s, method))
		queue_work(s, method);
}

static bool may_receive(const struct incstack_subgraph *s, const struct mirror *mirror)
{
	return mirror->is_seen || !(s->options.flags & INCSTACK_SUBGRAPH_RECEIVERS);
}

static bool reach_in(struct incstack_subgraph *s, struct mirror *mirror, uint64_t name)
{
	struct method *method = incstack__mirrors_resolve(&s->mirrors, mirror, name);

	if (method)
		incstack__reach_method(s, method);
	return method;
}

void incstack__reach_call(struct incstack_subgraph *s, const struct call *call)
{
	bool is_found = false;

	if (!call->mirror->is_loaded)
		return;
	if (call->kind == INCSTACK_CALL_STATIC) {
		is_found = reach_in(s, call->mirror, call->name);
	} else {
		is_found = s->options.flags & INCSTACK_SUBGRAPH_RECEIVERS;
		for (struct mirror *at = incstack__mirror_subclasses(&s->mirrors, call->mirror); at;
		     at = at->to_visit)
			if (may_receive(s, at))
				is_found |= reach_in(s, at, call->name);
	}
	s->unresolved += !is_found;
}

void incstack__reach_class(struct incstack_subgraph *s, struct mirror *mirror)
{
	for (struct mirror *at = incstack__mirror_superclasses(&s->mirrors, mirror); at;
	     at = at->to_visit)
		for (const struct call *call = at->calls; call; call = call->next) {
			if (call->kind == INCSTACK_CALL_VIRTUAL && may_receive(s, mirror))
				(void)reach_in(s, mirror, call->name);
			if (call->kind == INCSTACK_CALL_STATIC && at == mirror)
				(void)reach_in(s, mirror, call->name);
		}
}

/* Notes the calls of a method. */
static int follow(struct incstack_subgraph *s, const struct method *method)
{
	int error = 0;

	for (uint32_t i = 0; i < method->site_count && !error; i++) {
		const struct site *site = &method->sites[i];
		const struct call *call = incstack__call_add(&s->mirrors, site->mirror, site->name,
							     site->kind, &error);

		if (call)
			incstack__reach_call(s, call);
	}
	return error;
}

static int find_callees(struct incstack_subgraph *s)
{
	while (s->work) {
		struct method *method = s->work;

		/* Out of the list first: a method that calls itself may come in again. */
		s->work = method->work;
		method->is_working = false;
		if (follow(s, method)) {
			queue_work(s, method);
			return INCSTACK_ENOMEM;
		}
	}
	return 0;
}

int incstack__reach_go_on(struct incstack_subgraph *s)
{
	return s->must_restart ? incstack__reach_again(s) : find_callees(s);
}

/* ---- from the beginning ---------------------------------------------------------------------- */

typedef void method_fn(struct incstack_subgraph *s, struct method *method);

static void for_each_method(struct incstack_subgraph *s, method_fn *function)
{
	const struct links *methods = &s->mirrors.methods;

	for (size_t i = 0; i <= methods->mask; i++)
		for (struct linked *at = methods->buckets[i]; at; at = at->next)
			function(s, (struct method *)at);
}

static void forget_method(struct incstack_subgraph *s, struct method *method)
{
	(void)s;
	method->is_reached = method->is_wanted = method->is_working = false;
}

static int reach_root(struct incstack_subgraph *s, const struct root *root)
{
	int error;
	const struct call *call = incstack__call_add(&s->mirrors, root->mirror, root->name,
						     INCSTACK_CALL_STATIC, &error);

	if (call)
		incstack__reach_call(s, call);
	return error;
}

int incstack__reach_root(struct incstack_subgraph *s, const struct root *root)
{
	const int error = reach_root(s, root);

	return error ? error : incstack__reach_go_on(s);
}

int incstack__reach_again(struct incstack_subgraph *s)
{
	int error = 0;

	s->must_restart = true;
	s->work = NULL;
	s->unresolved = 0;
	for_each_method(s, forget_method);
	incstack__calls_forget(&s->mirrors);
	for (const struct root *root = s->roots; root && !error; root = root->next)
		error = reach_root(s, root);
	if (!error)
		error = find_callees(s);
	if (error)
		return error;
	s->must_restart = false;
	for_each_method(s, queue_change);
	return 0;
}

/* ---- classes that go ------------------------------------------------------------------------- */

static bool is_of(const struct mirror *mirror, const struct method *method)
{
	return (uintptr_t)method >= (uintptr_t)mirror->methods &&
	       (uintptr_t)method < (uintptr_t)(mirror->methods + mirror->method_count);
}

static void forget_work(struct incstack_subgraph *s, const struct mirror *mirror)
{
	for (struct method **at = &s->work; *at;)
		if (is_of(mirror, *at))
			*at = (*at)->work;
		else
			at = &(*at)->work;
}

static void forget_changes(struct incstack_subgraph *s, const struct mirror *mirror)
{
	s->last_change = NULL;
	for (struct method **at = &s->first_change; *at;)
		if (is_of(mirror, *at)) {
			*at = (*at)->changing;
		} else {
			s->last_change = *at;
			at = &(*at)->changing;
		}
}

void incstack__reach_forget(struct incstack_subgraph *s, struct mirror *mirror)
{
	forget_work(s, mirror);
	forget_changes(s, mirror);
	for (uint32_t i = 0; i < mirror->method_count; i++) {
		s->instrumented -= mirror->methods[i].is_made;
		s->entered -= mirror->methods[i].is_entered;
	}
}
