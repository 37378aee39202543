/* SPDX-License-Identifier: MIT
 *
 * Applies what the user wants to be taken out. Suppressions and the focus come first, so that they may name functions
 * that are looked through.
 */
#include "filter.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "names.h"
#include "profile_io.h"
#include "suppressions.h"
#include "profile/nodes.h"

#define LEAKS "live at exit"

bool tool_filter_is_given(const struct tool_filter *filter)
{
	return filter && (filter->skip.count || filter->focus.count || filter->files.count);
}

const char **tool_filter_inputs(const char *const *inputs, size_t count,
				const struct tool_filter *filter)
{
	const char **all = calloc(count + filter->files.count + 1, sizeof(*all));

	if (!all) {
		fprintf(stderr, "incstack: out of memory\n");
		return NULL;
	}
	memcpy(all, inputs, count * sizeof(*all));
	memcpy(all + count, filter->files.at, filter->files.count * sizeof(*all));
	return all;
}

static struct incstack__patterns patterns_of(const struct tool_texts *texts)
{
	return (struct incstack__patterns){texts->at, texts->count};
}

static bool has_bytes(const struct incstack_profile *profile)
{
	struct incstack_profile_kind kind;

	for (uint32_t i = 0; !incstack_profile_kind(profile, i, &kind); i++)
		if (!strcmp(kind.unit, "bytes"))
			return true;
	return false;
}

static int failed(int error)
{
	fprintf(stderr, "incstack: cannot filter the profile: %s\n", incstack_error_text(error));
	return TOOL_FAILED;
}

static void name_kind(const struct incstack_profile *profile, struct tool_filtered *done)
{
	struct incstack_profile_kind first = {"", ""};

	(void)incstack_profile_kind(profile, 0, &first);
	(void)snprintf(done->kind, sizeof(done->kind), "%s", first.name);
	(void)snprintf(done->unit, sizeof(done->unit), "%s", first.unit);
}

/* ---- suppressions -------------------------------------------------------------------- */

static int take_leaks(const struct tool_suppressions *list, struct incstack_profile *profile,
		      struct tool_filtered *done)
{
	const struct incstack__patterns patterns = {(const char *const *)list->patterns,
						    list->count};
	uint32_t kind;
	int error;

	if (tool_kind_number(profile, LEAKS, &kind)) {
		fprintf(stderr,
			"incstack: --suppressions has no effect on a profile without the kind "
			"of weight '" LEAKS "'; leave it out\n");
		return TOOL_USAGE;
	}
	error = incstack__profile_suppress(profile, kind, &patterns, &done->contexts,
					   &done->leaked);
	return error ? failed(error) : TOOL_DONE;
}

static int suppress(const struct tool_texts *files, struct incstack_profile *profile,
		    struct tool_filtered *done)
{
	struct tool_suppressions list = {0};
	int status = TOOL_DONE;

	for (size_t i = 0; i < files->count && !status; i++)
		status = tool_suppressions_read(&list, files->at[i]);
	if (!status && files->count) {
		done->is_suppressed = true;
		status = take_leaks(&list, profile, done);
	}
	tool_suppressions_free(&list);
	return status;
}

/* ---- focus --------------------------------------------------------------------------- */

static int focus(const struct tool_texts *functions, struct incstack_profile *profile,
		 struct tool_filtered *done)
{
	const struct incstack__patterns patterns = patterns_of(functions);
	uint64_t left_out[INCSTACK_PROFILE_KINDS_MAX];
	int error;

	if (!functions->count)
		return TOOL_DONE;
	error = incstack__profile_focus(profile, &patterns, false, left_out);
	if (error)
		return failed(error);
	done->is_focused = true;
	done->left_out = left_out[0];
	for (uint32_t i = 1; i < incstack_profile_nodes(profile); i++)
		done->kept += incstack__profile_self(profile, i, 0);
	done->is_empty = incstack_profile_nodes(profile) == 1;
	return TOOL_DONE;
}

/* ---- all of it ----------------------------------------------------------------------- */

/* Takes out contexts, then looks through functions that were found before. */
static int take_out(const struct tool_filter *filter, const struct incstack__allocators *functions,
		    struct incstack_profile *profile, struct tool_filtered *done)
{
	int status = suppress(&filter->files, profile, done), error = 0;

	if (!status)
		status = focus(&filter->focus, profile, done);
	if (!status && functions)
		error = incstack__profile_look_through(profile, functions, &done->looked);
	return error ? failed(error) : status;
}

int tool_filter_apply(const struct tool_filter *filter, bool is_answer,
		      struct incstack_profile *profile, struct tool_filtered *done)
{
	static const struct tool_filter none;
	const bool known = is_answer && !(filter && filter->shows_allocators) && has_bytes(profile);
	struct incstack__allocators *functions = NULL;
	struct incstack__patterns skip;
	int status, error = 0;

	*done = (struct tool_filtered){.is_focused = false};
	filter = filter ? filter : &none;
	skip = patterns_of(&filter->skip);
	name_kind(profile, done);
	if (known || skip.count)
		error = incstack__allocators_find(profile, known, &skip, &functions);
	if (error)
		return failed(error);
	status = take_out(filter, functions, profile, done);
	incstack__allocators_free(functions);
	return status;
}

/* ---- telling ------------------------------------------------------------------------- */

static void tell_looked(const struct incstack__looked *looked, FILE *out)
{
	const size_t most =
		looked->count < INCSTACK__LOOKED_MAX ? looked->count : INCSTACK__LOOKED_MAX;

	fputs("looked through ", out);
	for (size_t i = 0; i < most; i++) {
		fputs(i ? ", " : "", out);
		tool_name_put(looked->at[i].name, strlen(looked->at[i].name), out);
		fputs(looked->at[i].is_guessed ? " (guessed)" : "", out);
	}
	if (most < looked->count)
		fprintf(out, " and %zu more", looked->count - most);
	fputs("; --allocators shows them\n", out);
}

static void begin(const char *prefix, const char *path, FILE *out)
{
	fputs(prefix, out);
	if (path)
		fprintf(out, "%s: ", tool_name(path));
}

void tool_filter_say_empty(const struct tool_filter *filter)
{
	fputs("incstack: no context has a function that matches --focus", stderr);
	for (size_t i = 0; i < filter->focus.count; i++)
		fprintf(stderr, "%s '%s'", i ? " or" : "", tool_name(filter->focus.at[i]));
	fputs("; a name is matched as a whole, * stands for any text\n", stderr);
}

static void tell_focus(const struct tool_filtered *done, FILE *out)
{
	char amount[32];

	fprintf(out, "in focus: %s of '%s'; ",
		tool_amount(done->kept, done->unit, amount, sizeof(amount)), tool_name(done->kind));
	fprintf(out, "outside, and left out: %s%s\n",
		tool_amount(done->left_out, done->unit, amount, sizeof(amount)),
		done->kept ? "" : " (names are matched as a whole; * stands for any text)");
}

void tool_filter_tell(const struct tool_filtered *done, const char *prefix, const char *path,
		      FILE *out)
{
	char amount[32];

	if (done->is_suppressed) {
		begin(prefix, path, out);
		fprintf(out, "suppressed %" PRIu64 " context%s, %s of '" LEAKS "'\n",
			done->contexts, done->contexts == 1 ? "" : "s",
			tool_amount(done->leaked, "bytes", amount, sizeof(amount)));
	}
	if (done->is_focused) {
		begin(prefix, path, out);
		tell_focus(done, out);
	}
	if (done->looked.count) {
		begin(prefix, path, out);
		tell_looked(&done->looked, out);
	}
}
