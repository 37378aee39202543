/* SPDX-License-Identifier: MIT
 *
 * The limits of --fail-if: by how much a kind of weight may grow.
 */
#include <stdio.h>
#include <string.h>

#include "amount.h"
#include "compare.h"
#include "tool/names.h"

static bool is_of(const struct tool_limit *limit, const struct incstack_profile_kind *kind)
{
	return !strcmp(kind->name, limit->kind);
}

static bool is_exceeded(const struct tool_limit *limit, const struct incstack_profile_kind *kind,
			uint64_t before, uint64_t after)
{
	char grown[32];
	double most;

	if (!tool_amount_read(limit->amount, kind->unit, before, &most) || after <= before ||
	    !((double)(after - before) > most))
		return false;
	fprintf(stderr, "incstack: '%s' grew by %s, more than %s\n", tool_name(kind->name),
		tool_amount(after - before, kind->unit, grown, sizeof(grown)),
		tool_name(limit->amount));
	return true;
}

int tool_limits_check(const struct tool_options *options, const struct incstack_profile_kind *kind,
		      uint64_t before, uint64_t after)
{
	int found = -1;

	for (size_t i = 0; i < options->limit_count; i++) {
		if (!is_of(&options->limits[i], kind))
			continue;
		if (found < 0)
			found = 0;
		found |= is_exceeded(&options->limits[i], kind, before, after);
	}
	return found;
}

static int refuse_kind(const struct tool_limit *limit, const struct incstack_profile_kind *kinds,
		       size_t count)
{
	fprintf(stderr,
		"incstack: --fail-if: no kind of weight that is compared is called '%s'; there "
		"are:",
		tool_name(limit->kind));
	for (size_t i = 0; i < count; i++)
		fprintf(stderr, " '%s'", tool_name(kinds[i].name));
	fputc('\n', stderr);
	return TOOL_USAGE;
}

static int refuse(const struct tool_limit *limit, const struct incstack_profile_kind *kinds,
		  size_t count)
{
	double most;

	for (size_t i = 0; i < count; i++) {
		if (!is_of(limit, &kinds[i]))
			continue;
		if (tool_amount_read(limit->amount, kinds[i].unit, 0, &most))
			return TOOL_DONE;
		fprintf(stderr, "incstack: --fail-if: '%s' is no amount of %s\n",
			tool_name(limit->amount), tool_name(kinds[i].unit));
		return TOOL_USAGE;
	}
	return refuse_kind(limit, kinds, count);
}

int tool_limits_refuse(const struct tool_options *options,
		       const struct incstack_profile_kind *kinds, size_t count)
{
	int status = TOOL_DONE;

	for (size_t i = 0; i < options->limit_count && !status; i++)
		status = refuse(&options->limits[i], kinds, count);
	return status;
}
