/* SPDX-License-Identifier: MIT
 *
 * An interpreter that instruments the methods which a root calls, while its program runs. The program draws shapes;
 * the root is Page.draw. Circle.draw is instrumented when Page.draw has run, Square.draw when its class is loaded.
 * Log.write is never instrumented, because the root does not reach it.
 *
 * Build: cc 9_instrument.c $(pkg-config --cflags --libs incstack)
 */
#include <stdio.h>
#include <stdlib.h>

#include <incstack/instrument.h>

enum { PAGE = 1, SHAPE, CIRCLE, SQUARE, LOG }; /* classes */
enum { DRAW, WRITE };                          /* names of methods */

struct method {
	const char *name;
	uint64_t class_id, method_name;
	struct incstack_meter_method *meter;
	int instrumented;
};

static struct method methods[] = {
	{"Page.draw", PAGE, DRAW, NULL, 0},
	{"Circle.draw", CIRCLE, DRAW, NULL, 0},
	{"Square.draw", SQUARE, DRAW, NULL, 0},
	{"Log.write", LOG, WRITE, NULL, 0},
};
enum { METHODS = sizeof(methods) / sizeof(methods[0]) };

static struct incstack_subgraph *subgraph;
static struct incstack_meter *meter;
static struct incstack_meter_thread *thread;

static void check(int error)
{
	if (error < 0) {
		fprintf(stderr, "%s\n", incstack_error_text(error));
		exit(EXIT_FAILURE);
	}
}

/* ---- instrumentation ---- */

/* A real VM changes the code of the method here. */
static void make_changes(void)
{
	struct incstack_subgraph_change change;

	while (incstack_subgraph_next_change(subgraph, &change) == 1) {
		struct method *m = &methods[change.method];

		m->instrumented = change.action == INCSTACK_CHANGE_INSTRUMENT;
		printf("%s %s\n", m->instrumented ? "instrument" : "restore", m->name);
	}
}

/* The class has the methods of the table; its methods call draw() of a shape if `draws`. */
static void load_class(uint64_t class_id, uint64_t super, int draws)
{
	const struct incstack_call_site site = {SHAPE, DRAW, INCSTACK_CALL_VIRTUAL};
	struct incstack_method list[METHODS];
	struct incstack_class added = {.size = sizeof(added),
				       .class_id = class_id,
				       .supers = &super,
				       .super_count = super != 0,
				       .methods = list};

	for (uint64_t i = 0; i < METHODS; i++)
		if (methods[i].class_id == class_id)
			list[added.method_count++] =
				(struct incstack_method){.method = i,
							 .name = methods[i].method_name,
							 .call_count = (uint32_t)draws,
							 .calls = &site};
	check(incstack_subgraph_add_class(subgraph, &added));
	make_changes();
}

/* ---- the interpreter ---- */

static void enter(struct method *m, uintptr_t frame)
{
	if (!m->instrumented || incstack_meter_enter(thread, m->meter, frame) != 1)
		return;
	check(incstack_subgraph_method_entered(subgraph, (uint64_t)(m - methods)));
	make_changes();
}

static void leave(struct method *m, uintptr_t frame)
{
	if (m->instrumented)
		incstack_meter_exit(thread, m->meter, frame);
}

static void call(struct method *m, int depth)
{
	const uintptr_t frame = (uintptr_t)(100 - depth);

	enter(m, frame);
	if (m->class_id == PAGE)
		for (int i = 0; i < 3; i++)
			call(&methods[i == 2 ? 2 : 1], depth + 1);
	leave(m, frame);
}

int main(void)
{
	const struct incstack_subgraph_options by_need = {.size = sizeof(by_need),
							  .scheme = INCSTACK_SUBGRAPH_CALLED};
	const struct incstack_meter_options options = {.size = sizeof(options)};
	struct incstack_meter_context context = {.size = sizeof(context)};
	struct incstack_meter_snapshot *snapshot;

	check(incstack_subgraph_create(&by_need, &subgraph));
	check(incstack_meter_create(&options, &meter));
	check(incstack_meter_thread_create(meter, 1, &thread));
	for (uint64_t i = 0; i < METHODS; i++)
		check(incstack_meter_method_create(meter, i, &methods[i].meter));
	load_class(SHAPE, 0, 0);
	load_class(PAGE, 0, 1);
	load_class(CIRCLE, SHAPE, 0);
	load_class(LOG, 0, 0);
	check(incstack_meter_method_set_root(methods[0].meter, 1));
	check(incstack_subgraph_add_root(subgraph, PAGE, DRAW));
	make_changes();
	call(&methods[0], 0);
	load_class(SQUARE, SHAPE, 0);
	call(&methods[0], 0);
	call(&methods[3], 0);
	check(incstack_meter_snapshot_create(meter, 0, &snapshot));
	for (uint32_t i = 0; incstack_meter_snapshot_context(snapshot, i, &context) == 0; i++)
		printf("%s%s: %d calls\n", context.parent == INCSTACK_METER_NONE ? "" : "  ",
		       methods[context.function].name, (int)context.calls);
	incstack_meter_snapshot_destroy(snapshot);
	incstack_meter_destroy(meter);
	incstack_subgraph_destroy(subgraph);
	return EXIT_SUCCESS;
}
