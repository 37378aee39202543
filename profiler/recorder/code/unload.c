/* SPDX-License-Identifier: MIT
 *
 * Determines to which module the addresses in a batch belong if code is loaded and unloaded.
 *
 * An epoch is the time between two unloads. In one epoch an address belongs to at most one
 * module, so the newest list of an epoch, to which modules are only added, describes all of
 * it. A batch names the epoch in which its events were recorded, and a thread ends its
 * batch before its first event of a new epoch (record->epoch is compared on the slow path;
 * recording.changes leads there).
 *
 * The dynamic linker does not announce the removal of a module. It counts what it has added and
 * removed, and dl_iterate_phdr reports the counts. `look` compares these counts with the counts of
 * the newest list, unless the linker's own counters show that nothing has changed
 * (linker.c, D79). If a module was removed, `look` forgets the unwind rules of the module's
 * code and begins a new epoch. `look` holds no lock of the recorder while it waits for the linker's
 * lock, because the thread that has the linker's lock may be inside a callback that allocates.
 *
 * Events between the removal of a module (T1) and the next look must not contain frames of code
 * that was loaded at the same place (T2). So the unload is announced before it (T0, D78): the
 * interposed dlclose opens a window until it returns. If libc unloads by itself (iconv, NSS),
 * the module's destructors call __cxa_finalize, which opens a window until the module is gone.
 * While a window is open, no event takes the fast path, and each looks before it is recorded.
 * This is exact:
 * - Before T1 the event's stack may hold frames of the old module. The look finds nothing,
 *   and the event belongs to the old epoch. While such a frame is live the module stays.
 * - After T2 an event with frames of the new module happens after its dlopen, hence after
 *   T0. Its thread sees the window (or its end, with the new epoch), looks before it walks,
 *   ends its batch, and has no old rule.
 * - An event whose stack has frames of neither may be recorded in either epoch.
 *
 * The unload of a module is not announced if libc closes the module and the module was linked
 * without crtbegin or opened with RTLD_DEEPBIND. The next look notices such an unload; a look
 * precedes every batch. Events between the unload and the look may have frames of both modules.
 * The look ends the epoch. Epochs have even numbers. The batches of the ended epoch that were not
 * written before the look are written with the next odd number. The list with this number lacks the
 * removed modules. Frames of doubtful code lose their callers, which counts as truncated, and the
 * report says so.
 *
 * Locks: see docs/invariants.md. `modules` is under LOCK_MODULES.
 */
#include <stdatomic.h>
#include <string.h>

#include "modules.h"
#include "recorder/output/output.h"
#include "recorder/system/system.h"

enum { ANNOUNCED_MAX = 256 };

struct span {
	uint64_t low;
	uint64_t high;
	uint32_t epoch;
	/* 0: in this epoch, the code in the span is in doubt. 1: all code outside of the epoch's
	 * spans is. All spans of an epoch have the same value. */
	uint32_t sure;
};

struct spans {
	struct span *span;
	size_t count;
	size_t bytes;
};

static struct {
	struct incstack__record_list known; /* the newest list of the epoch */
	struct {
		_Atomic uint64_t adds, subs;
	} newest;             /* its counts; read without the lock */
	uint64_t first;       /* how many of its modules existed at the start */
	struct spans blurred; /* code in doubt, by epoch */
	uint32_t lost; /* up to this epoch all code is in doubt: there was no memory for spans */
	uint64_t announced[ANNOUNCED_MAX]; /* `low` of the modules whose destructors ran */
	uint32_t announced_count;
	uint32_t closing; /* threads inside dlclose */
} modules;

/* ---- spans of addresses --------------------------------------------------------------- */

/* Returns false if there is no memory. */
static bool add_span(struct spans *spans, const struct incstack__tracefile_module *module,
		     uint32_t epoch)
{
	const size_t used = spans->count * sizeof(*spans->span);

	if (used + sizeof(*spans->span) > spans->bytes) {
		const size_t more = spans->bytes != 0 ? 2 * spans->bytes : 4096;
		void *memory = spans->span ? incstack__record_remap(spans->span, spans->bytes, more)
					   : incstack__record_map(more);

		if (!memory)
			return false;
		spans->span = memory;
		spans->bytes = more;
	}
	spans->span[spans->count++] = (struct span){module->low, module->high, epoch, 0};
	return true;
}

static bool overlaps(const struct spans *spans, const struct incstack__tracefile_module *module)
{
	for (size_t i = 0; i < spans->count; i++)
		if (module->low < spans->span[i].high && spans->span[i].low < module->high)
			return true;
	return false;
}

/* ---- announcements; the lock is held ------------------------------------------------ */

/* While a window is open, no event takes the fast path. The release of the addition publishes
 * `unloading`: see struct incstack__recording. */
static void update_windows(void)
{
	struct incstack__recording *r = &incstack__recording;

	atomic_store_explicit(&r->unloading, modules.closing + modules.announced_count,
			      memory_order_seq_cst);
	atomic_fetch_add_explicit(&r->changes, 1, memory_order_release);
}

static bool is_announced(uint64_t low)
{
	for (uint32_t i = 0; i < modules.announced_count; i++)
		if (modules.announced[i] == low)
			return true;
	return false;
}

static void withdraw(uint64_t low)
{
	for (uint32_t i = 0; i < modules.announced_count; i++)
		if (modules.announced[i] == low)
			modules.announced[i--] = modules.announced[--modules.announced_count];
}

/* Finds the known module that contains the address. Returns true if the announcement of its
 * unload is news. It is no news for a module that existed at the start, whose destructors run when
 * the process ends. Returns true, with *low = 0, if no known module contains the address. */
static bool is_news(uint64_t address, uint64_t *low)
{
	struct incstack__record_entry entry;
	uint64_t index = 0;

	*low = 0;
	for (size_t at = 0; incstack__record_list_next(&modules.known, &at, &entry); index++) {
		if (address < entry.module.low || address >= entry.module.high)
			continue;
		*low = entry.module.low;
		return index >= modules.first && !is_announced(*low);
	}
	return true;
}

static void announce(uint64_t address)
{
	uint64_t low;

	if (!is_news(address, &low) || low == 0 || modules.announced_count == ANNOUNCED_MAX)
		return;
	modules.announced[modules.announced_count++] = low;
	update_windows();
}

/* ---- from one list to the next; the lock is held -------------------------------------- */

struct difference {
	struct spans gone;
	size_t added;   /* offset in the new list of the first module that is not in the old list */
	bool announced; /* whether all removals were announced */
	bool complete;  /* whether `gone` has everything that was removed between the lists */
	uint64_t sure;  /* of the modules in both lists, so many of the oldest were never removed */
};

/* Compares the new list with the known list. The linker appends to its list and removes from
 * anywhere. A module that was removed and loaded again between two looks is in both lists, but it
 * is behind all modules that stayed. The linker has counted its removal, which no list shows. So of
 * the modules in both lists, the last `unseen` are not sure. Withdraws the announcements of what is
 * gone. */
static struct difference compare(const struct incstack__record_list *fresh)
{
	const struct incstack__record_list *known = &modules.known;
	struct difference difference = {.announced = 1};
	struct incstack__record_entry old;
	struct incstack__record_entry new;
	size_t next = 0;
	uint64_t gone = 0;
	uint64_t stayed = 0;
	uint64_t before_lost = UINT64_MAX; /* modules before one whose span has no memory */
	uint64_t unseen;
	int have = incstack__record_list_next(fresh, &next, &new);

	for (size_t at = 0; incstack__record_list_next(known, &at, &old);) {
		if (have && incstack__record_list_same(&old, &new)) {
			difference.added = next;
			stayed++;
			have = incstack__record_list_next(fresh, &next, &new);
			continue;
		}
		gone++;
		if (!add_span(&difference.gone, &old.module, incstack__recording.epoch) &&
		    stayed < before_lost)
			before_lost = stayed;
		difference.announced &= modules.closing != 0 || is_announced(old.module.low);
		withdraw(old.module.low);
	}
	difference.complete =
		gone == difference.gone.count && gone == fresh->counts.subs - known->counts.subs;
	unseen = fresh->counts.subs - known->counts.subs - gone;
	difference.sure = stayed > unseen ? stayed - unseen : 0;
	if (difference.sure < modules.first)
		difference.sure = modules.first;
	if (difference.sure > before_lost)
		difference.sure = before_lost;
	return difference;
}

static void invalidate_rules(const struct difference *difference)
{
	struct incstack_runtime *runtime = incstack__recording.runtime;

	if (!difference->complete)
		incstack_runtime_code_unloading(runtime, NULL, 0, UINTPTR_MAX);
	for (size_t i = 0; difference->complete && i < difference->gone.count; i++)
		incstack_runtime_code_unloading(runtime, NULL, difference->gone.span[i].low,
						difference->gone.span[i].high);
}

/* Whether the next module of the old list was loaded all the time. *stayed counts the modules that
 * are in both lists. */
static bool is_sure(const struct difference *difference,
		    const struct incstack__tracefile_module *module, uint64_t *stayed)
{
	return !overlaps(&difference->gone, module) && (*stayed)++ < difference->sure;
}

/* Writes the list that describes the batches of the ending epoch from now on. It includes what was
 * loaded since the last look. If `exact` is 0, it excludes what is not sure, and has the odd
 * number. */
static void write_last(const struct incstack__record_list *fresh,
		       const struct difference *difference, bool exact)
{
	struct incstack__record_list last = {0};
	struct incstack__record_entry entry;
	size_t added = difference->added;
	uint64_t stayed = 0;
	int error = 0;

	for (size_t at = 0; incstack__record_list_next(&modules.known, &at, &entry);)
		if (exact || is_sure(difference, &entry.module, &stayed))
			error |= incstack__record_list_add(&last, &entry);
	while (difference->complete && incstack__record_list_next(fresh, &added, &entry))
		if (!overlaps(&difference->gone, &entry.module))
			error |= incstack__record_list_add(&last, &entry);
	if (error == 0)
		incstack__record_list_write(&last, incstack__recording.epoch + !exact);
	else
		incstack__record_note(INCSTACK__NOTE_MODULES);
	incstack__record_list_free(&last);
}

/* Records the code that an unannounced change leaves in doubt. This is the code of the removed
 * modules. If other modules were also removed between the looks, it is all code except the code of
 * the modules that are sure to have stayed, of which there are some: those of the start stay, and no
 * span of a removed module overlaps them. */
static void blur(const struct difference *difference)
{
	struct incstack__record_entry entry;
	const bool sure = !difference->complete;
	uint64_t stayed = 0;
	bool all = true;

	for (size_t at = 0; incstack__record_list_next(&modules.known, &at, &entry);) {
		const size_t count = modules.blurred.count;

		if (is_sure(difference, &entry.module, &stayed) != sure)
			continue;
		if (add_span(&modules.blurred, &entry.module, incstack__recording.epoch))
			modules.blurred.span[count].sure = (uint32_t)sure;
		else
			all = false;
	}
	if (!all)
		modules.lost = incstack__recording.epoch;
	incstack__record_note(INCSTACK__NOTE_UNLOADED);
}

/* Ends the epoch, because a module was removed. The rules are forgotten first. The release of the
 * new epoch then makes sure that a thread that loads it with acquire finds none of these rules. */
static void end_epoch(const struct incstack__record_list *fresh)
{
	struct incstack__recording *r = &incstack__recording;
	struct difference difference = compare(fresh);
	const bool exact = difference.complete && difference.announced;

	invalidate_rules(&difference);
	incstack__record_host_clear();
	if (!exact)
		blur(&difference);
	if (!exact || difference.added < fresh->block.used)
		write_last(fresh, &difference, exact);
	incstack__record_unmap(difference.gone.span, difference.gone.bytes);
	atomic_store_explicit(&r->epoch, r->epoch + 2, memory_order_release);
	update_windows();
}

/* Whether a is newer than b. Two threads may look at once. With objects in other namespaces, subs
 * can decrease. */
static bool is_newer(struct incstack__record_counts a, struct incstack__record_counts b)
{
	return a.adds != b.adds ? a.adds > b.adds : (int64_t)(a.subs - b.subs) > 0;
}

/* Loads the counts. One count may be older than the other. Then the linker's counters differ from
 * them. */
static struct incstack__record_counts newest_counts(void)
{
	return (struct incstack__record_counts){
		.adds = atomic_load_explicit(&modules.newest.adds, memory_order_acquire),
		.subs = atomic_load_explicit(&modules.newest.subs, memory_order_acquire),
	};
}

/* Makes a list the known list, and ends the epoch if a module was removed. The counts are stored
 * last, with release. A thread that loads them with acquire (newest_counts) also sees the rest. */
static void publish(struct incstack__record_list *fresh)
{
	if (!is_newer(fresh->counts, newest_counts()))
		return;
	if (!modules.known.block.data) {
		incstack__recording.epoch = 2;
		modules.first = fresh->block.count;
	} else if (fresh->counts.subs != modules.known.counts.subs) {
		end_epoch(fresh);
	}
	incstack__record_list_write(fresh, incstack__recording.epoch);
	incstack__record_list_free(&modules.known);
	modules.known = *fresh;
	memset(fresh, 0, sizeof(*fresh));
	atomic_store_explicit(&modules.newest.adds, modules.known.counts.adds,
			      memory_order_release);
	atomic_store_explicit(&modules.newest.subs, modules.known.counts.subs,
			      memory_order_release);
}

/* ---- the interface --------------------------------------------------------------------- */

bool incstack__record_modules_are(struct incstack__record_counts *counts)
{
	const struct incstack__record_counts newest = newest_counts();
	const bool same = newest.adds == counts->adds && newest.subs == counts->subs;

	*counts = newest;
	return same && incstack__record_linker_shows(newest);
}

bool incstack__record_modules_unchanged(void)
{
	return incstack__record_linker_shows(newest_counts());
}

static void look(void)
{
	const struct incstack__record_counts newest = newest_counts();
	struct incstack__record_list fresh = {0};
	int found;

	incstack__lock_may_wait();
	if (incstack__record_linker_shows(newest))
		return;
	found = incstack__record_list_collect(&fresh, newest);
	if (found < 0)
		incstack__record_note(INCSTACK__NOTE_MODULES);
	if (found <= 0)
		return;
	incstack__lock_take(INCSTACK__LOCK_MODULES);
	publish(&fresh);
	incstack__lock_give(INCSTACK__LOCK_MODULES);
	incstack__record_list_free(&fresh);
	incstack__record_host_look();
}

/* Mostly nothing has changed, and signals need not be blocked to see that. */
void incstack__record_modules(void)
{
	struct incstack__protection before;

	incstack__lock_may_wait();
	if (incstack__record_modules_unchanged())
		return;
	incstack__record_protect(&before);
	look();
	incstack__record_unprotect(&before);
}

/* Whether the announcement changes nothing. At the end of the process each module is announced. A
 * module that existed at the start, or that was announced before, needs no look. Any other module
 * needs a look, because it may have replaced, without an announcement, the module that the last
 * look found at the address. */
static bool is_known_already(uintptr_t address)
{
	uint64_t low;
	bool known;

	incstack__lock_take(INCSTACK__LOCK_MODULES);
	known = !is_news(address, &low);
	incstack__lock_give(INCSTACK__LOCK_MODULES);
	return known;
}

void incstack__record_modules_unload(enum incstack__unload what, const void *address)
{
	struct incstack__protection before;

	incstack__record_protect(&before);
	if (what == INCSTACK__UNLOAD_ANNOUNCED && is_known_already((uintptr_t)address)) {
		incstack__record_unprotect(&before);
		return;
	}
	look();
	incstack__lock_take(INCSTACK__LOCK_MODULES);
	if (what == INCSTACK__UNLOAD_ANNOUNCED) {
		announce((uintptr_t)address);
	} else if (what == INCSTACK__UNLOAD_BEGINS) {
		modules.closing++;
		update_windows();
	} else if (modules.closing > 0) {
		modules.closing--;
		update_windows();
	}
	incstack__lock_give(INCSTACK__LOCK_MODULES);
	incstack__record_unprotect(&before);
}

/* Returns the blurred spans of an epoch, which are adjacent. */
static struct spans blurred_in(uint32_t epoch)
{
	static struct span all_code = {.sure = 1};
	struct spans found = {.span = modules.blurred.span};
	const struct span *end = found.span + modules.blurred.count;

	if (modules.lost > 0 && epoch <= modules.lost)
		return (struct spans){.span = &all_code, .count = 1};
	while (found.span < end && found.span->epoch != epoch)
		found.span++;
	while (found.span + found.count < end && found.span[found.count].epoch == epoch)
		found.count++;
	return found;
}

static bool is_doubtful(const struct spans *blurred, uintptr_t pc)
{
	/* A return address may be the first address behind its module. */
	const struct incstack__tracefile_module at = {.low = pc - 1, .high = pc + 1};

	return overlaps(blurred, &at) != (blurred->span->sure != 0);
}

/* Cuts off the callers of frames of doubtful code, because nothing beyond such a frame is sure.
 * Returns how many frames were cut. */
static uint64_t cut_trace(const struct spans *blurred, const struct incstack_trace *trace)
{
	struct incstack_frame_object *next;
	uint64_t cut = 0;
	struct incstack_frame_object *o = (struct incstack_frame_object *)(uintptr_t)trace->top;

	for (; o; o = next) {
		next = (struct incstack_frame_object *)(uintptr_t)o->parent;
		if (!is_doubtful(blurred, o->function))
			continue;
		cut += (o->flags & INCSTACK_OBJECT_TRUNCATED) == 0;
		o->flags &= ~(uint32_t)INCSTACK_OBJECT_BASE;
		o->flags |= INCSTACK_OBJECT_TRUNCATED;
		o->parent = NULL;
	}
	return cut;
}

/* A handler of ticks already holds the lock if the batch was of an older epoch when the handler
 * began to write it (renew.c), and takes it once more here. If the handler cannot take the lock,
 * the epoch has changed since then, and the batch is written as if it had changed later. */
uint32_t incstack__record_modules_settle(uint32_t epoch, const struct incstack_tree *tree,
					 uint64_t *truncated)
{
	struct spans blurred;

	if (epoch == atomic_load_explicit(&incstack__recording.epoch, memory_order_acquire) ||
	    !incstack__record_lock(INCSTACK__LOCK_MODULES))
		return epoch;
	blurred = blurred_in(epoch);
	for (const struct incstack_trace *i = tree->traces; blurred.count != 0 && i; i = i->next)
		*truncated += cut_trace(&blurred, i);
	incstack__lock_give(INCSTACK__LOCK_MODULES);
	return blurred.count != 0 ? epoch + 1 : epoch;
}

void incstack__record_modules_forked(void)
{
	if (incstack__recording.on && modules.known.block.data)
		incstack__record_list_write(&modules.known, incstack__recording.epoch);
}
