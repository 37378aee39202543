/* SPDX-License-Identifier: MIT
 *
 * Meters, methods and threads: how they are made and freed.
 */
#include "meter.h"

#include <stdlib.h>

enum {
	DEFAULT_CONTEXTS = 1 << 16,
	CONTEXTS_MAX = 1 << 28,
	DEFAULT_DEPTH = 10000,
	DEPTH_MAX = 1 << 24,
	DEFAULT_METHODS = 1 << 20,
};

static bool is_valid(const struct incstack_meter_options *options)
{
	return options && options->size == sizeof(*options) &&
	       (!options->clock || options->ticks_per_second > 0) &&
	       options->contexts <= CONTEXTS_MAX && options->depth <= DEPTH_MAX &&
	       !(options->flags & ~(uint32_t)INCSTACK_METER_FRAMES_DESCEND);
}

static void set_options(struct incstack_meter *meter, const struct incstack_meter_options *options)
{
	meter->options = *options;
	if (!meter->options.contexts)
		meter->options.contexts = DEFAULT_CONTEXTS;
	if (!meter->options.depth)
		meter->options.depth = DEFAULT_DEPTH;
	if (!meter->options.method_limit)
		meter->options.method_limit = DEFAULT_METHODS;
	meter->clock = (struct clock){options->clock, options->clock_context};
	if (!options->clock && !clock_has_counter())
		meter->clock.read = clock_ns;
	meter->began = clock_read(&meter->clock);
	meter->began_ns = clock_ns(NULL);
}

int incstack_meter_create(const struct incstack_meter_options *options,
			  struct incstack_meter **created)
{
	struct incstack_meter *meter;
	int error;

	if (!is_valid(options) || !created)
		return INCSTACK_EINVAL;
	meter = calloc(1, sizeof(*meter));
	if (!meter)
		return INCSTACK_ENOMEM;
	set_options(meter, options);
	error = incstack__copy_init(&meter->ended);
	if (!error && pthread_mutex_init(&meter->lock, NULL) != 0)
		error = INCSTACK_ENOMEM;
	if (!error) {
		error = incstack_meter_calibrate(meter, NULL, NULL);
		if (error)
			pthread_mutex_destroy(&meter->lock);
	}
	if (error) {
		incstack__copy_free(&meter->ended);
		free(meter);
		return error;
	}
	*created = meter;
	return 0;
}

void incstack_meter_destroy(struct incstack_meter *meter)
{
	if (!meter)
		return;
	for (struct incstack_meter_thread *at = meter->threads, *next; at; at = next) {
		next = at->older;
		incstack__meter_thread_free(at);
	}
	for (struct incstack_meter_method *at = meter->methods, *next; at; at = next) {
		next = at->older;
		free(at);
	}
	incstack__copy_free(&meter->ended);
	pthread_mutex_destroy(&meter->lock);
	free(meter);
}

/* ---- methods --------------------------------------------------------------------------------- */

int incstack_meter_method_create(struct incstack_meter *meter, uint64_t function,
				 struct incstack_meter_method **created)
{
	struct incstack_meter_method *method;
	int error = 0;

	if (!meter || !created)
		return INCSTACK_EINVAL;
	method = calloc(1, sizeof(*method));
	if (!method)
		return INCSTACK_ENOMEM;
	method->function = function;
	meter_lock(meter);
	if (meter->method_count == meter->options.method_limit) {
		error = INCSTACK_ELIMIT;
	} else {
		method->older = meter->methods;
		meter->methods = method;
		meter->method_count++;
	}
	meter_unlock(meter);
	if (error)
		free(method);
	else
		*created = method;
	return error;
}

int incstack_meter_method_set_root(struct incstack_meter_method *method, int on)
{
	if (!method || on < 0 || on > 1)
		return INCSTACK_EINVAL;
	atomic_store_explicit(&method->is_root, on, memory_order_relaxed);
	return 0;
}

int incstack_meter_method_set_mode(struct incstack_meter_method *method, uint32_t mode)
{
	if (!method || mode > INCSTACK_METER_OFF)
		return INCSTACK_EINVAL;
	atomic_store_explicit(&method->has_run, false, memory_order_relaxed);
	atomic_store_explicit(&method->mode, (uint8_t)mode, memory_order_relaxed);
	return 0;
}

int incstack_meter_method_mode(const struct incstack_meter_method *method)
{
	if (!method)
		return INCSTACK_EINVAL;
	return atomic_load_explicit(&method->mode, memory_order_relaxed);
}

/* ---- threads --------------------------------------------------------------------------------- */

void incstack__meter_thread_free(struct incstack_meter_thread *thread)
{
	if (!thread)
		return;
	free(thread->opens);
	free(thread->nodes);
	free(thread->table);
	free(thread);
}

static uint32_t slots_for(uint32_t contexts)
{
	uint32_t slots = 64;

	while (slots < contexts * 2)
		slots *= 2;
	return slots;
}

int incstack__meter_thread_make(struct incstack_meter *meter, uint32_t contexts, uint32_t depth,
				struct incstack_meter_thread **made)
{
	struct incstack_meter_thread *thread = calloc(1, sizeof(*thread));

	if (!thread)
		return INCSTACK_ENOMEM;
	thread->meter = meter;
	thread->clock = meter->clock;
	thread->flags = meter->options.flags;
	thread->depth_limit = depth;
	thread->node_limit = contexts + 1;
	thread->mask = slots_for(thread->node_limit) - 1;
	thread->opens = calloc((size_t)depth + 1, sizeof(*thread->opens));
	thread->nodes = calloc(thread->node_limit, sizeof(*thread->nodes));
	thread->table = calloc((size_t)thread->mask + 1, sizeof(*thread->table));
	if (!thread->opens || !thread->nodes || !thread->table) {
		incstack__meter_thread_free(thread);
		return INCSTACK_ENOMEM;
	}
	thread->clocked = thread->nodes;
	thread->opens[0] = (struct open){.node = thread->nodes, .clocked = thread->nodes};
	atomic_init(&thread->top, thread->opens);
	atomic_init(&thread->node_count, 1);
	thread->stamp = clock_read(&thread->clock);
	*made = thread;
	return 0;
}

int incstack_meter_thread_create(struct incstack_meter *meter, uint64_t id,
				 struct incstack_meter_thread **created)
{
	struct incstack_meter_thread *thread;
	int error;

	if (!meter || !created)
		return INCSTACK_EINVAL;
	error = incstack__meter_thread_make(meter, meter->options.contexts, meter->options.depth,
					    &thread);
	if (error)
		return error;
	thread->id = id;
	meter_lock(meter);
	thread->older = meter->threads;
	if (meter->threads)
		meter->threads->younger = thread;
	meter->threads = thread;
	meter->thread_count++;
	meter_unlock(meter);
	*created = thread;
	return 0;
}

static void unlink_thread(struct incstack_meter *meter, const struct incstack_meter_thread *thread)
{
	if (thread->younger)
		thread->younger->older = thread->older;
	else
		meter->threads = thread->older;
	if (thread->older)
		thread->older->younger = thread->younger;
	meter->thread_count--;
}

void incstack__meter_add_counters(struct incstack_meter_stats *to,
				  const struct incstack_meter_thread *thread, double tick_ns)
{
	to->unseen += value_of(&thread->unseen);
	to->unmatched += value_of(&thread->unmatched);
	to->nested += value_of(&thread->nested);
	to->too_deep += value_of(&thread->too_deep);
	to->no_room += value_of(&thread->no_room);
	to->paused_ns += (uint64_t)((double)value_of(&thread->paused) * tick_ns);
}

void incstack_meter_thread_end(struct incstack_meter_thread *thread)
{
	struct incstack_meter *meter;
	uint64_t lost;

	if (!thread)
		return;
	meter = thread->meter;
	incstack__meter_thread_finish(thread);
	meter_lock(meter);
	unlink_thread(meter, thread);
	(void)incstack__copy_add_thread(&meter->ended, thread, 0, &lost);
	incstack__meter_add_counters(&meter->gone, thread, incstack__meter_tick_ns(meter));
	meter->gone.lost += lost;
	meter_unlock(meter);
	incstack__meter_thread_free(thread);
}

int incstack__meter_sum(struct incstack_meter *meter, bool per_thread, struct copy *sum)
{
	int error = incstack__copy_init(sum);
	uint64_t lost;

	if (error)
		return error;
	error = incstack__copy_add(sum, &meter->ended);
	for (const struct incstack_meter_thread *at = meter->threads; at && !error; at = at->older)
		error = incstack__copy_add_thread(sum, at, per_thread ? at->id : 0, &lost);
	if (error)
		incstack__copy_free(sum);
	return error;
}
