/* SPDX-License-Identifier: MIT
 *
 * The partial calling context tree. A sample goes up from its top to the youngest
 * frame that is old, then down again along the edges of what is new (Whaley 2000,
 * figure 7). Which frames are old the core knows, so nothing is marked.
 */
#include <stdlib.h>
#include <string.h>

#include <incstack/pcct.h>

#include "cct.h"
#include "ranking.h"

struct context {
	uint64_t method;
	uint32_t parent;
	int32_t call_site;
};

struct memo {
	const struct incstack_frame_object *object;
	uint32_t context;
};

struct incstack_pcct {
	struct incstack_pcct_stats stats;
	uint32_t room, depth;
	struct context *contexts;
	struct incstack__ranking time, calls; /* by number of the context */
	struct incstack__table table;
	uint64_t total;
	/* While a tree is added: the contexts of the objects that were looked at. */
	struct memo *memos;
	size_t memos_used, memos_room;
	struct incstack__table memo_table;
	const struct incstack_frame_object **path; /* still to go down */
	size_t path_used, path_room;
};

static int init(struct incstack_pcct *pcct)
{
	int error = incstack__ranking_init(&pcct->time, pcct->room);

	if (!error)
		error = incstack__ranking_init(&pcct->calls, pcct->room);
	if (!error)
		error = incstack__table_init_for(&pcct->table, pcct->room);
	if (!error)
		error = incstack__table_init(&pcct->memo_table);
	pcct->contexts = malloc(pcct->room * sizeof(*pcct->contexts));
	return pcct->contexts ? error : INCSTACK_ENOMEM;
}

int incstack_pcct_create(const struct incstack_pcct_options *options, struct incstack_pcct **pcct)
{
	struct incstack_pcct *made;
	int error;

	if (!options || options->size != sizeof(*options) || !options->contexts ||
	    options->contexts >= INCSTACK_PCCT_NONE || !pcct)
		return INCSTACK_EINVAL;
	made = calloc(1, sizeof(*made));
	if (!made)
		return INCSTACK_ENOMEM;
	made->room = options->contexts;
	made->depth = options->depth ? options->depth : UINT32_MAX;
	error = init(made);
	if (error)
		incstack_pcct_destroy(made);
	else
		*pcct = made;
	return error;
}

void incstack_pcct_destroy(struct incstack_pcct *pcct)
{
	if (!pcct)
		return;
	incstack__ranking_free(&pcct->time);
	incstack__ranking_free(&pcct->calls);
	free(pcct->contexts);
	free(pcct->table.slots);
	free(pcct->memos);
	free(pcct->memo_table.slots);
	free(pcct->path);
	free(pcct);
}

static void forget_objects(struct incstack_pcct *pcct)
{
	pcct->memos_used = 0;
	incstack__table_clear(&pcct->memo_table);
}

int incstack_pcct_purge(struct incstack_pcct *pcct)
{
	if (!pcct)
		return INCSTACK_EINVAL;
	for (uint32_t i = 0; i < pcct->stats.contexts; i++)
		pcct->stats.purged_time += pcct->time.weight[i];
	pcct->stats.purges++;
	pcct->stats.contexts = 0;
	incstack__ranking_clear(&pcct->time);
	incstack__ranking_clear(&pcct->calls);
	incstack__table_clear(&pcct->table);
	forget_objects(pcct);
	return 0;
}

/* ---- contexts ---- */

static uint32_t hash_of(uint32_t parent, int32_t call_site, uint64_t method)
{
	return incstack__hash_pair((uint64_t)parent << 32 | (uint32_t)call_site, method);
}

uint32_t incstack_pcct_find(const struct incstack_pcct *pcct, uint32_t parent, int32_t call_site,
			    uint64_t method)
{
	uint32_t hash = hash_of(parent, call_site, method), at;
	size_t cursor = hash;

	if (!pcct)
		return INCSTACK_PCCT_NONE;
	while ((at = incstack__table_probe(&pcct->table, hash, &cursor)) != INCSTACK__NONE) {
		const struct context *c = &pcct->contexts[at];

		if (c->parent == parent && c->call_site == call_site && c->method == method)
			break;
	}
	return at;
}

/* NONE if there is no room. */
static uint32_t make(struct incstack_pcct *pcct, uint32_t parent, int32_t call_site,
		     uint64_t method)
{
	uint32_t number = pcct->stats.contexts;

	if (number == pcct->room)
		return INCSTACK_PCCT_NONE;
	pcct->contexts[number] =
		(struct context){.method = method, .parent = parent, .call_site = call_site};
	(void)incstack__ranking_push(&pcct->time);
	(void)incstack__ranking_push(&pcct->calls);
	(void)incstack__table_insert(&pcct->table, hash_of(parent, call_site, method), number);
	pcct->stats.contexts++;
	return number;
}

/* ---- objects that were looked at ---- */

static uint32_t memo_find(const struct incstack_pcct *pcct,
			  const struct incstack_frame_object *object)
{
	uint32_t hash = incstack__hash_pair((uintptr_t)object, 0), at;
	size_t cursor = hash;

	while ((at = incstack__table_probe(&pcct->memo_table, hash, &cursor)) != INCSTACK__NONE)
		if (pcct->memos[at].object == object)
			return pcct->memos[at].context;
	return INCSTACK_PCCT_NONE;
}

static int memo_put(struct incstack_pcct *pcct, const struct incstack_frame_object *object,
		    uint32_t context)
{
	int error = incstack__reserve((void **)&pcct->memos, &pcct->memos_room,
				      pcct->memos_used + 1, sizeof(*pcct->memos));

	if (!error)
		error = incstack__table_insert(&pcct->memo_table,
					       incstack__hash_pair((uintptr_t)object, 0),
					       (uint32_t)pcct->memos_used);
	if (!error)
		pcct->memos[pcct->memos_used++] =
			(struct memo){.object = object, .context = context};
	return error;
}

/* ---- a sample ---- */

static int push(struct incstack_pcct *pcct, const struct incstack_frame_object *object)
{
	int error = incstack__reserve((void **)&pcct->path, &pcct->path_room, pcct->path_used + 1,
				      sizeof(*pcct->path));

	if (!error)
		pcct->path[pcct->path_used++] = object;
	return error;
}

/* Goes up from the top until the context of an object is known. *caller is that
 * object, null if the way ended at the base, at the depth limit or at what nobody
 * knows. *fresh is how many of the path are new activations. */
static int go_up(struct incstack_pcct *pcct, const struct incstack_trace *trace,
		 const struct incstack_frame_object **caller, size_t *fresh)
{
	const struct incstack_frame_object *o = trace->top;
	bool old = false;

	pcct->path_used = 0;
	*fresh = 0;
	*caller = NULL;
	for (; o; o = o->parent) {
		int error;

		old = old || o == trace->old;
		if (old && memo_find(pcct, o) != INCSTACK_PCCT_NONE) {
			*caller = o;
			return 0;
		}
		if (pcct->path_used == pcct->depth) {
			pcct->stats.unconnected++;
			return 0;
		}
		if (!(o->flags & INCSTACK_OBJECT_FILLED))
			continue;
		error = push(pcct, o);
		if (error)
			return error;
		*fresh += !old;
	}
	return 0;
}

/* Goes down again. ELIMIT: there was no room for a context. */
static int go_down(struct incstack_pcct *pcct, const struct incstack_frame_object *caller,
		   size_t fresh, uint64_t weight, uint32_t *context)
{
	bool made = false;

	*context = caller ? memo_find(pcct, caller) : INCSTACK_PCCT_NONE;
	while (pcct->path_used) {
		const struct incstack_frame_object *o = pcct->path[--pcct->path_used];
		int32_t site = caller ? caller->bci : -1;
		uint32_t next = INCSTACK_PCCT_NONE;
		int error;

		if (!made) /* below a new context all are new */
			next = incstack_pcct_find(pcct, *context, site, o->method);
		made = next == INCSTACK_PCCT_NONE;
		if (made)
			next = make(pcct, *context, site, o->method);
		if (next == INCSTACK_PCCT_NONE)
			return INCSTACK_ELIMIT;
		error = memo_find(pcct, o) == next ? 0 : memo_put(pcct, o, next);
		if (error)
			return error;
		if (pcct->path_used < fresh)
			incstack__ranking_add(&pcct->calls, next, weight);
		*context = next;
		caller = o;
	}
	return 0;
}

static int add_sample(struct incstack_pcct *pcct, const struct incstack_trace *trace)
{
	const struct incstack_frame_object *caller;
	uint32_t context;
	size_t fresh;
	int error = go_up(pcct, trace, &caller, &fresh);

	if (!error)
		error = go_down(pcct, caller, fresh, trace->weight, &context);
	if (error || context == INCSTACK_PCCT_NONE)
		return error;
	incstack__ranking_add(&pcct->time, context, trace->weight);
	pcct->stats.samples++;
	return 0;
}

/* When the contexts do not fit, all go and the sample is added to an empty tree. */
static int add_trace(struct incstack_pcct *pcct, const struct incstack_trace *trace)
{
	const uint64_t unconnected = pcct->stats.unconnected;
	int error;

	if (!trace->top)
		return INCSTACK_EINVAL;
	if (trace->weight > UINT64_MAX - pcct->total)
		return INCSTACK_ERANGE;
	error = add_sample(pcct, trace);
	if (error == INCSTACK_ELIMIT) {
		(void)incstack_pcct_purge(pcct);
		pcct->stats.unconnected = unconnected; /* or this sample would count twice */
		error = add_sample(pcct, trace);
	}
	if (!error)
		pcct->total += trace->weight;
	return error;
}

int incstack_pcct_add_tree(struct incstack_pcct *pcct, const struct incstack_tree *tree)
{
	int error = 0;

	if (!pcct || !tree)
		return INCSTACK_EINVAL;
	for (const struct incstack_trace *t = tree->traces; t && !error; t = t->next)
		error = add_trace(pcct, t);
	forget_objects(pcct);
	return error;
}

/* ---- looking ---- */

int incstack_pcct_hottest(const struct incstack_pcct *pcct, enum incstack_pcct_order order,
			  uint32_t *numbers, int max)
{
	const struct incstack__ranking *ranking;
	int count = 0;

	if (!pcct || !numbers || max < 0 || (unsigned)order > INCSTACK_PCCT_BY_CALLS)
		return INCSTACK_EINVAL;
	ranking = order == INCSTACK_PCCT_BY_TIME ? &pcct->time : &pcct->calls;
	for (; count < max && (uint32_t)count < ranking->count; count++) {
		numbers[count] = ranking->order[count];
		if (!ranking->weight[numbers[count]])
			break;
	}
	return count;
}

int incstack_pcct_context(const struct incstack_pcct *pcct, uint32_t number,
			  struct incstack_pcct_context *context)
{
	if (!pcct || !context || number >= pcct->stats.contexts)
		return INCSTACK_EINVAL;
	*context = (struct incstack_pcct_context){.parent = pcct->contexts[number].parent,
						  .call_site = pcct->contexts[number].call_site,
						  .method = pcct->contexts[number].method,
						  .time = pcct->time.weight[number],
						  .calls = pcct->calls.weight[number]};
	return 0;
}

int incstack_pcct_stats(const struct incstack_pcct *pcct, struct incstack_pcct_stats *stats)
{
	if (!pcct || !stats)
		return INCSTACK_EINVAL;
	*stats = pcct->stats;
	return 0;
}
