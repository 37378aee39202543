/* SPDX-License-Identifier: MIT
 *
 * Reads the options of the subcommands on profiles. All have the same table; an option that would have no
 * effect is refused.
 */
#include <stdlib.h>
#include <string.h>

#include "names.h"
#include "option.h"
#include "profile_io.h"
#include "profile/amount.h"

static const struct option names[] = {{"output", required_argument, NULL, 'o'},
				      {"html", required_argument, NULL, 'o'},
				      {"kind", required_argument, NULL, 'k'},
				      {"format", required_argument, NULL, 'f'},
				      {"input-format", required_argument, NULL, 'F'},
				      {"threshold", required_argument, NULL, 'T'},
				      {"hot", required_argument, NULL, 'H'},
				      {"fail-if", required_argument, NULL, 'X'},
				      {"normalize", no_argument, NULL, 'N'},
				      {"similarity", no_argument, NULL, 'S'},
				      {"skip", required_argument, NULL, 'K'},
				      {"focus", required_argument, NULL, 'O'},
				      {"allocators", no_argument, NULL, 'A'},
				      {"suppressions", required_argument, NULL, 'E'},
				      {"top", required_argument, NULL, 'n'},
				      {"average", no_argument, NULL, 'a'},
				      {"threads", no_argument, NULL, 't'},
				      {"fold-recursion", no_argument, NULL, 'r'},
				      {"max-output", required_argument, NULL, 'M'},
				      {"json", no_argument, NULL, 'J'},
				      {"full", no_argument, NULL, 'U'},
				      {"folded", no_argument, NULL, 'L'},
				      {"help", no_argument, NULL, 'h'},
				      {NULL, 0, NULL, 0}};

static const char short_names[] = ":o:k:f:F:T:n:atrh";

static int format_option(const char *name, int *format)
{
	*format = incstack_profile_format_of(name);
	if (*format && !strchr(name, '.'))
		return TOOL_DONE;
	fprintf(stderr,
		"incstack: unknown format '%s'; known are folded, pprof, speedscope, firefox, "
		"otlp, html, perf-script, heaptrack, massif, dhat\n",
		tool_name(name));
	return TOOL_USAGE;
}

static int number_option(const char *text, double low, double high, double *number)
{
	char *end;

	*number = strtod(text, &end);
	if (*text && !*end && *number >= low && *number <= high)
		return TOOL_DONE;
	fprintf(stderr, "incstack: '%s' is not a number from %g to %g\n", tool_name(text), low,
		high);
	return TOOL_USAGE;
}

static int threshold_option(const char *text, struct tool_options *options)
{
	options->threshold = text;
	if (tool_amount_is_one(text))
		return TOOL_DONE;
	fprintf(stderr,
		"incstack: --threshold takes an amount, for example 64k, 10ms, 100 or 5%%, not "
		"'%s'\n",
		tool_name(text));
	return TOOL_USAGE;
}

/* Returns the amount of a limit. It is the next argument, or follows the kind in the same one: 'live at exit
 * +1M'. *kind_length becomes the length of the kind. */
static const char *limit_amount(int argc, char **argv, size_t *kind_length)
{
	const char *plus = strrchr(optarg, '+');

	*kind_length = plus ? (size_t)(plus - optarg) : strlen(optarg);
	while (*kind_length && optarg[*kind_length - 1] == ' ')
		--*kind_length;
	if (plus)
		return plus + 1;
	return optind < argc && argv[optind][0] == '+' ? argv[optind++] + 1 : "";
}

static int limit_option(int argc, char **argv, struct tool_options *options)
{
	struct tool_limit *limit = &options->limits[options->limit_count];
	const char *kind = optarg;
	size_t length;

	if (options->limit_count == TOOL_LIMITS_MAX) {
		fprintf(stderr, "incstack: more than %d --fail-if\n", TOOL_LIMITS_MAX);
		return TOOL_USAGE;
	}
	limit->amount = limit_amount(argc, argv, &length);
	if (!length || length >= sizeof(limit->kind) || !tool_amount_is_one(limit->amount)) {
		fprintf(stderr,
			"incstack: --fail-if takes a kind of weight and by how much it may grow, "
			"for example: --fail-if 'live at exit' +1M\n");
		return TOOL_USAGE;
	}
	memcpy(limit->kind, kind, length);
	options->limit_count++;
	return TOOL_DONE;
}

int tool_texts_take(struct tool_texts *texts, const char *option, const char *argument)
{
	if (*argument && tool_texts_add(texts, argument))
		return TOOL_DONE;
	if (*argument)
		fprintf(stderr, "incstack: more than %d %s\n", TOOL_FILTER_TEXTS,
			tool_name(option));
	else
		fprintf(stderr, "incstack: %s takes a text that is not empty\n", tool_name(option));
	return TOOL_USAGE;
}

static int take_option(int option, int argc, char **argv, struct tool_options *options)
{
	double number = 0;
	int status = TOOL_DONE;

	switch (option) {
	case 'o':
		options->output = optarg;
		return TOOL_DONE;
	case 'k':
		options->kind = optarg;
		return TOOL_DONE;
	case 'f':
		return format_option(optarg, &options->format);
	case 'F':
		return format_option(optarg, &options->input_format);
	case 'T':
		return threshold_option(optarg, options);
	case 'H':
		return number_option(optarg, 0, 1, &options->hot);
	case 'X':
		return limit_option(argc, argv, options);
	case 'K':
		return tool_texts_take(&options->filter.skip, "--skip", optarg);
	case 'O':
		return tool_texts_take(&options->filter.focus, "--focus", optarg);
	case 'E':
		return tool_texts_take(&options->filter.files, "--suppressions", optarg);
	case 'A':
		options->filter.shows_allocators = true;
		return TOOL_DONE;
	case 'N':
		options->normalize = 1;
		return TOOL_DONE;
	case 'S':
		options->similarity = 1;
		return TOOL_DONE;
	case 'n':
		status = number_option(optarg, 0, 1000000, &number);
		options->top = (unsigned long)number;
		return status;
	case 'a':
		options->average = 1;
		return TOOL_DONE;
	case 't':
		options->threads = 1;
		return TOOL_DONE;
	case 'r':
		options->fold_recursion = 1;
		return TOOL_DONE;
	case 'M':
		return number_option(optarg, 1, 1e18, &options->output_most);
	case 'J':
		options->json = 1;
		return TOOL_DONE;
	case 'U':
		options->full = 1;
		return TOOL_DONE;
	case 'L':
		options->folded = 1;
		return TOOL_DONE;
	case 'h':
		options->help = 1;
		return TOOL_DONE;
	default:
		return TOOL_USAGE;
	}
}

static uint64_t bit_of(int option)
{
	return option >= 'A' ? UINT64_C(1) << (option - 'A') : 0;
}

int tool_options_read(int argc, char **argv, struct tool_options *options)
{
	int option, status = TOOL_DONE;

	*options = (struct tool_options){.hot = 0.1, .top = 10};
	while (!status && (option = tool_option_next(argc, argv, short_names, names)) != -1) {
		options->given |= bit_of(option);
		status = take_option(option, argc, argv, options);
	}
	if (status)
		fprintf(stderr, "incstack: see incstack %s --help\n", tool_name(argv[0]));
	return status;
}

int tool_options_given(const struct tool_options *options, char option)
{
	return (options->given & bit_of(option)) != 0;
}

int tool_options_refuse(const struct tool_options *options, const char *without, const char *where)
{
	for (const struct option *o = names; o->name; o++) {
		if (!strchr(without, o->val) || !tool_options_given(options, (char)o->val))
			continue;
		if (strchr(short_names, o->val))
			fprintf(stderr, "incstack: --%s (-%c) has no effect %s; leave it out\n",
				o->name, o->val, where);
		else
			fprintf(stderr, "incstack: --%s has no effect %s; leave it out\n", o->name,
				where);
		return TOOL_USAGE;
	}
	return TOOL_DONE;
}
