/* SPDX-License-Identifier: MIT
 *
 * The partial calling context tree. A sample goes up from its top to the youngest frame that an
 * earlier sample visited, then down again, along the edges between the frames that it passed
 * (Whaley 2000, figure 7). In the paper, a bit in the return slot marks a frame as visited, and
 * a new activation clears the bit. Here, a table by frame address has these marks, and the core
 * reports which activations are new.
 *
 * add_trace() adds one sample. If the contexts that the sample needs do not fit, all contexts are
 * purged, and the way up begins anew. The visits stay, but the contexts that they name are gone.
 */
#include <stdbool.h>
#include <stdlib.h>

#include <incstack/pcct.h>

#include "cct.h"
#include "ranking.h"

struct context {
	uint64_t function;
	uint32_t parent;
	int32_t call_site;
};

/* The last visit at a frame address. It stands for the bit of figure 7 and the result of
 * get_node. */
struct visit {
	uintptr_t address;
	uint64_t function; /* of the frame itself, not of an inlined one */
	uint32_t caller;   /* context */
	bool there;        /* false: the activation has ended, or was passed over */
	uint64_t purges;   /* purges before the visit; `caller` is valid until the next purge */
};

/* A frame on the way up. `visit` is NONE if the frame is inlined into its caller. */
struct step {
	const struct incstack_frame_object *object;
	uint32_t visit;
};

/* The end of the way up. */
struct way {
	const struct incstack_frame_object *caller; /* of its last frame; null: none */
	uint32_t context;                           /* of the caller; NONE if unknown */
	bool unconnected;                           /* cut by `depth`; the caller becomes a root */
	size_t fresh;   /* new activations, up to the first visit; counted in `activations` */
	size_t counted; /* `fresh`, and the frame of the first visit; counted in `calls` */
};

struct incstack_pcct {
	struct incstack_pcct_stats stats;
	uint32_t room, depth; /* most contexts; most captured frames of a sample */
	struct context *contexts;
	/* By the number of the context. */
	struct incstack__ranking time, calls, activations;
	struct incstack__table table;
	uint64_t total;
	struct visit *visits;
	size_t visits_used, visits_room;
	struct incstack__table visit_table;
	struct step *path; /* youngest first */
	size_t path_used, path_room;
};

static int init(struct incstack_pcct *pcct)
{
	int error = incstack__ranking_init(&pcct->time, pcct->room);

	if (!error)
		error = incstack__ranking_init(&pcct->calls, pcct->room);
	if (!error)
		error = incstack__ranking_init(&pcct->activations, pcct->room);
	if (!error)
		error = incstack__table_init_for(&pcct->table, pcct->room);
	if (!error)
		error = incstack__table_init(&pcct->visit_table);
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
	made->stats.size = sizeof(made->stats);
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
	incstack__ranking_free(&pcct->activations);
	free(pcct->contexts);
	free(pcct->table.slots);
	free(pcct->visits);
	free(pcct->visit_table.slots);
	free(pcct->path);
	free(pcct);
}

/* Removes all contexts. */
static void purge(struct incstack_pcct *pcct)
{
	for (uint32_t i = 0; i < pcct->stats.contexts; i++)
		pcct->stats.purged_time += pcct->time.weight[i];
	pcct->stats.purges++;
	pcct->stats.contexts = 0;
	incstack__ranking_clear(&pcct->time);
	incstack__ranking_clear(&pcct->calls);
	incstack__ranking_clear(&pcct->activations);
	incstack__table_clear(&pcct->table);
}

/* ---- contexts ---- */

static uint32_t hash_of(uint32_t parent, int32_t call_site, uint64_t function)
{
	return incstack__hash_pair((uint64_t)parent << 32 | (uint32_t)call_site, function);
}

/* Returns the number of a context, or NONE if there is no such context. */
static uint32_t find(const struct incstack_pcct *pcct, uint32_t parent, int32_t call_site,
		     uint64_t function)
{
	uint32_t hash = hash_of(parent, call_site, function), at;
	size_t cursor = hash;

	while ((at = incstack__table_probe(&pcct->table, hash, &cursor)) != INCSTACK__NONE) {
		const struct context *c = &pcct->contexts[at];

		if (c->parent == parent && c->call_site == call_site && c->function == function)
			break;
	}
	return at;
}

/* Adds a context. Returns NONE if there is no room. */
static uint32_t make(struct incstack_pcct *pcct, uint32_t parent, int32_t call_site,
		     uint64_t function)
{
	uint32_t number = pcct->stats.contexts;

	if (number == pcct->room)
		return INCSTACK_PCCT_NONE;
	pcct->contexts[number] =
		(struct context){.function = function, .parent = parent, .call_site = call_site};
	(void)incstack__ranking_push(&pcct->time);
	(void)incstack__ranking_push(&pcct->calls);
	(void)incstack__ranking_push(&pcct->activations);
	(void)incstack__table_insert(&pcct->table, hash_of(parent, call_site, function), number);
	pcct->stats.contexts++;
	return number;
}

/* ---- visited frames ---- */

/* Returns the object of the physical frame: the frame that o is inlined into, or o itself. */
static const struct incstack_frame_object *frame_of(const struct incstack_frame_object *o)
{
	while (o->parent && (o->parent->flags & INCSTACK_OBJECT_VIRTUAL))
		o = o->parent;
	return o;
}

/* Returns the visit of a frame, or NONE. */
static uint32_t visit_find(const struct incstack_pcct *pcct,
			   const struct incstack_frame_object *frame)
{
	uint32_t hash = incstack__hash_pair(frame->address, 0), at;
	size_t cursor = hash;

	while ((at = incstack__table_probe(&pcct->visit_table, hash, &cursor)) != INCSTACK__NONE)
		if (pcct->visits[at].address == frame->address)
			break;
	return at;
}

/* Finds or adds the visit of a frame. */
static int visit_get(struct incstack_pcct *pcct, const struct incstack_frame_object *frame,
		     uint32_t *at)
{
	int error;

	*at = visit_find(pcct, frame);
	if (*at != INCSTACK__NONE)
		return 0;
	*at = (uint32_t)pcct->visits_used;
	error = incstack__reserve((void **)&pcct->visits, &pcct->visits_room, pcct->visits_used + 1,
				  sizeof(*pcct->visits));
	if (!error)
		error = incstack__table_insert(&pcct->visit_table,
					       incstack__hash_pair(frame->address, 0), *at);
	if (!error)
		pcct->visits[pcct->visits_used++] = (struct visit){.address = frame->address};
	return error;
}

/* ---- a sample ---- */

static int push(struct incstack_pcct *pcct, const struct incstack_frame_object *object)
{
	uint32_t visit = INCSTACK__NONE;
	int error = incstack__reserve((void **)&pcct->path, &pcct->path_room, pcct->path_used + 1,
				      sizeof(*pcct->path));

	if (!error && frame_of(object) == object)
		error = visit_get(pcct, object, &visit);
	if (!error)
		pcct->path[pcct->path_used++] = (struct step){.object = object, .visit = visit};
	return error;
}

/* Returns the first captured object from o towards the base. */
static const struct incstack_frame_object *filled(const struct incstack_frame_object *o)
{
	while (o && !(o->flags & INCSTACK_OBJECT_FILLED))
		o = o->parent;
	return o;
}

/* Whether the frame was called by the frame of the trace's old object. Then it is also an old
 * activation, because there was a barrier on its return. The base has no caller. It counts as old
 * if the trace has no old object. */
static bool above_old(const struct incstack_trace *trace, const struct incstack_frame_object *frame)
{
	if (frame->parent)
		return frame->parent == trace->old;
	return !trace->old && (frame->flags & INCSTACK_OBJECT_BASE);
}

/* The sample does not visit the frames from o to the trace's old object, which are new activations.
 * Marks the visits at their addresses as gone, because these were visits of frames that have
 * ended. */
static void pass_over(struct incstack_pcct *pcct, const struct incstack_trace *trace,
		      const struct incstack_frame_object *o)
{
	for (; o && o != trace->old; o = o->parent) {
		uint32_t at = INCSTACK__NONE;

		if (frame_of(o) == o && !above_old(trace, o))
			at = visit_find(pcct, o);
		if (at != INCSTACK__NONE)
			pcct->visits[at].there = false;
	}
}

/* Returns the visit of the frame of the last step, or null if no sample visited this activation.
 * `old` is set if the frame is the trace's old object or a caller of it. */
static const struct visit *visited(const struct incstack_pcct *pcct,
				   const struct incstack_trace *trace, bool old)
{
	const struct step *last = &pcct->path[pcct->path_used - 1];
	const struct visit *visit;

	if (last->visit == INCSTACK__NONE || (!old && !above_old(trace, last->object)))
		return NULL;
	visit = &pcct->visits[last->visit];
	return visit->there && visit->function == last->object->function ? visit : NULL;
}

/* Goes up from the top to a frame that was visited and whose caller has a context in this tree,
 * or to the base, or to the depth limit. A purge removes the context of the caller, but the frame
 * of an earlier visit is no new activation. So the way then goes on, and the count of new
 * activations ends. */
static int go_up(struct incstack_pcct *pcct, const struct incstack_trace *trace, struct way *way)
{
	const struct incstack_frame_object *o = trace->top;
	bool old = false, met = false;

	pcct->path_used = 0;
	*way = (struct way){.context = INCSTACK_PCCT_NONE};
	for (; o; o = o->parent) {
		const struct visit *visit;
		int error;

		if (pcct->path_used == pcct->depth && filled(o)) {
			if (!old)
				pass_over(pcct, trace, o);
			way->unconnected = true;
			break;
		}
		old = old || o == trace->old;
		if (!(o->flags & INCSTACK_OBJECT_FILLED))
			continue;
		error = push(pcct, o);
		if (error)
			return error;
		visit = visited(pcct, trace, old);
		way->fresh += !met && !visit;
		way->counted += !met;
		met = met || visit;
		if (visit && visit->purges == pcct->stats.purges) {
			way->context = visit->caller;
			o = o->parent;
			break;
		}
	}
	way->caller = filled(o);
	return 0;
}

static int32_t site_in(const struct incstack_frame_object *caller, uint32_t context)
{
	return caller && context != INCSTACK_PCCT_NONE ? caller->position : -1;
}

/* Returns how many contexts the way down needs that the tree does not have. */
static size_t missing(const struct incstack_pcct *pcct, const struct way *way)
{
	const struct incstack_frame_object *caller = way->caller;
	uint32_t context = way->context;
	size_t left = pcct->path_used;

	if (way->unconnected) {
		context = find(pcct, INCSTACK_PCCT_NONE, -1, caller->function);
		if (context == INCSTACK_PCCT_NONE)
			return left + 1;
	}
	for (; left; left--) {
		const struct incstack_frame_object *o = pcct->path[left - 1].object;

		context = find(pcct, context, site_in(caller, context), o->function);
		if (context == INCSTACK_PCCT_NONE)
			break;
		caller = o;
	}
	return left;
}

static uint32_t find_or_make(struct incstack_pcct *pcct, uint32_t parent, int32_t call_site,
			     uint64_t function)
{
	uint32_t found = find(pcct, parent, call_site, function);

	return found == INCSTACK_PCCT_NONE ? make(pcct, parent, call_site, function) : found;
}

/* Goes down again and counts. There must be room. Returns the context of the top. */
static uint32_t go_down(struct incstack_pcct *pcct, const struct way *way, uint64_t weight)
{
	const struct incstack_frame_object *caller = way->caller;
	uint32_t context = way->context;

	if (way->unconnected)
		context = find_or_make(pcct, INCSTACK_PCCT_NONE, -1, caller->function);
	for (size_t left = pcct->path_used; left--;) {
		const struct step *step = &pcct->path[left];
		const struct incstack_frame_object *frame = frame_of(step->object);

		if (step->visit != INCSTACK__NONE)
			pcct->visits[step->visit] = (struct visit){.address = frame->address,
								   .function = frame->function,
								   .caller = context,
								   .there = true,
								   .purges = pcct->stats.purges};
		context = find_or_make(pcct, context, site_in(caller, context),
				       step->object->function);
		if (left < way->counted)
			incstack__ranking_add(&pcct->calls, context, weight);
		if (left < way->fresh)
			incstack__ranking_add(&pcct->activations, context, weight);
		caller = step->object;
	}
	return context;
}

/* Returns how many contexts the sample would need in an empty tree. The count ends once it exceeds
 * the room. */
static uint32_t needs(const struct incstack_pcct *pcct, const struct incstack_trace *trace)
{
	uint32_t count = 0, most = pcct->depth == UINT32_MAX ? UINT32_MAX : pcct->depth + 1;

	for (const struct incstack_frame_object *o = filled(trace->top);
	     o && count < most && count <= pcct->room; o = filled(o->parent))
		count++;
	return count;
}

static int drop_sample(struct incstack_pcct *pcct, const struct incstack_trace *trace, int error)
{
	pcct->stats.dropped++;
	pass_over(pcct, trace, trace->top);
	return error;
}

/* Adds a sample. If its contexts do not fit, all contexts are purged first. If they would not fit
 * into an empty tree either, the sample is dropped. */
static int add_trace(struct incstack_pcct *pcct, const struct incstack_trace *trace)
{
	struct way way;
	uint32_t context;
	int error;

	if (!trace->top)
		return INCSTACK_EINVAL;
	if (trace->weight > UINT64_MAX - pcct->total)
		return drop_sample(pcct, trace, INCSTACK_ERANGE);
	error = go_up(pcct, trace, &way);
	if (!error && missing(pcct, &way) > pcct->room - pcct->stats.contexts) {
		if (needs(pcct, trace) > pcct->room)
			return drop_sample(pcct, trace, INCSTACK_ELIMIT);
		purge(pcct);
		error = go_up(pcct, trace, &way);
	}
	if (error)
		return drop_sample(pcct, trace, error);
	pcct->total += trace->weight;
	if (!pcct->path_used) /* nothing was captured */
		return 0;
	pcct->stats.unconnected += way.unconnected;
	context = go_down(pcct, &way, trace->weight);
	incstack__ranking_add(&pcct->time, context, trace->weight);
	pcct->stats.samples++;
	return 0;
}

int incstack_pcct_add_tree(struct incstack_pcct *pcct, const struct incstack_tree *tree)
{
	int first = 0, error = 0;

	if (!pcct || !tree)
		return INCSTACK_EINVAL;
	for (const struct incstack_trace *t = tree->traces; t; t = t->next) {
		error = error == INCSTACK_ENOMEM ? drop_sample(pcct, t, error) : add_trace(pcct, t);
		first = first ? first : error;
	}
	return first;
}

/* ---- looking ---- */

/* Returns the number of the context at a place of an order, or NONE if there is none. */
static uint32_t number_at(const struct incstack_pcct *pcct, enum incstack_pcct_order order,
			  uint32_t place)
{
	const struct incstack__ranking *ranking;

	if (place >= pcct->stats.contexts || (unsigned)order > INCSTACK_PCCT_BY_ACTIVATIONS)
		return INCSTACK_PCCT_NONE;
	if (order == INCSTACK_PCCT_BY_NUMBER)
		return place;
	ranking = order == INCSTACK_PCCT_BY_TIME    ? &pcct->time
		  : order == INCSTACK_PCCT_BY_CALLS ? &pcct->calls
						    : &pcct->activations;
	return ranking->weight[ranking->order[place]] ? ranking->order[place] : INCSTACK_PCCT_NONE;
}

int incstack_pcct_context(const struct incstack_pcct *pcct, enum incstack_pcct_order order,
			  uint32_t place, struct incstack_pcct_context *context)
{
	uint32_t number;

	if (!pcct || !context || context->size != sizeof(*context))
		return INCSTACK_EINVAL;
	number = number_at(pcct, order, place);
	if (number == INCSTACK_PCCT_NONE)
		return INCSTACK_EINVAL;
	*context = (struct incstack_pcct_context){.size = sizeof(*context),
						  .number = number,
						  .parent = pcct->contexts[number].parent,
						  .call_site = pcct->contexts[number].call_site,
						  .function = pcct->contexts[number].function,
						  .time = pcct->time.weight[number],
						  .calls = pcct->calls.weight[number],
						  .activations = pcct->activations.weight[number]};
	return 0;
}

int incstack_pcct_stats(const struct incstack_pcct *pcct, struct incstack_pcct_stats *stats)
{
	if (!pcct || !stats || stats->size != sizeof(*stats))
		return INCSTACK_EINVAL;
	*stats = pcct->stats;
	stats->size = sizeof(*stats);
	return 0;
}
