/* SPDX-License-Identifier: MIT
 *
 * Frees the children of a recorded process from its breakpoints. A fork copies them, and a link does not
 * remove them from a child that it does not report. But whenever probes are removed, the kernel looks
 * through all processes for breakpoints that nobody wants. So probes are added and removed again.
 */
#include "children.h"
#include "links.h"

static void *run(void *context)
{
	struct tool_attach_children *children = context;
	int fds[TOOL_ATTACH_PROBES];
	const size_t count =
		tool_attach_links_of_calls(children->pid, children->probes, children->count, fds);

	tool_attach_links_close(fds, count);
	atomic_store(&children->is_done, true);
	return NULL;
}

void tool_attach_children_end(struct tool_attach_children *children)
{
	if (children->is_running)
		pthread_join(children->thread, NULL);
	children->is_running = false;
}

void tool_attach_children_free(struct tool_attach_children *children)
{
	if (children->is_running && !atomic_load(&children->is_done))
		return;
	tool_attach_children_end(children);
	if (!children->has_new)
		return;
	atomic_store(&children->is_done, false);
	children->is_running = pthread_create(&children->thread, NULL, run, children) == 0;
	children->has_new = !children->is_running;
}
