/* SPDX-License-Identifier: MIT
 *
 * Reads the options of the agent.
 */
#include "options.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <incstack/profile.h>

#include "names.h"

#define NS_PER_S UINT64_C(1000000000)
#define INTERVAL_MIN UINT64_C(10000)
#define TIME_MAX (24 * 3600 * NS_PER_S)
#define MEMORY_MIN (UINT64_C(8) << 20)
#define MEMORY_MAX (UINT64_C(1) << 40)

enum { SAMPLES_MAX = 4096, DEPTH_MAX = 1 << 16, DEPTH_USUAL = 2048, SHOWN = 40 };

static const char *const modes[AGENT_MODE_COUNT] = {"best", "jvmti", "partial", "incremental",
						    "partial-incremental"};
static const char *const commands[AGENT_COMMAND_COUNT] = {"start", "stop", "dump", "next",
							  "status"};

struct reading {
	struct agent_options *options;
	char *error;
	bool lines_said;
};

/* One option while it is read. `value` is null for an option without "=". */
struct item {
	char name[SHOWN + 1];
	char *value;
	bool *flag;
};

/* ---- complaints ---- */

/* Returns what the user typed, shortened and safe to print. */
static const char *shown(const char *text, char copy[SHOWN + 4])
{
	size_t i = 0;

	for (; text[i] && i < SHOWN; i++)
		copy[i] = text[i] >= ' ' && text[i] <= '~' ? text[i] : '?';
	snprintf(copy + i, 4, "%s", text[i] ? "..." : "");
	return copy;
}

static bool complain(struct reading *reading, const char *before, const char *text,
		     const char *after)
{
	char copy[SHOWN + 4];

	snprintf(reading->error, AGENT_ERROR_MAX, "%s'%s'%s", before, shown(text, copy), after);
	return false;
}

static bool refuse_value(struct reading *reading, const struct item *item, const char *known)
{
	char before[80];

	snprintf(before, sizeof(before), "option %s is ", item->name);
	return complain(reading, before, item->value ? item->value : "", known);
}

/* ---- values ---- */

/* Reads a number with a unit. Without a unit it is in ns, as in other agents. */
static bool time_value(const char *text, uint64_t *ns)
{
	static const struct {
		const char *name;
		double ns;
	} units[] = {{"", 1}, {"ns", 1}, {"us", 1e3}, {"ms", 1e6}, {"s", 1e9}, {"m", 6e10}};
	char *end = NULL;
	double number = *text >= '0' && *text <= '9' ? strtod(text, &end) : -1;

	if (number < 0 || strspn(text, "0123456789.") != (size_t)(end - text))
		return false;
	for (size_t i = 0; i < sizeof(units) / sizeof(units[0]); i++)
		if (!strcmp(end, units[i].name) && number * units[i].ns <= (double)TIME_MAX) {
			*ns = (uint64_t)(number * units[i].ns + 0.5);
			return true;
		}
	return false;
}

/* Reads a number of bytes, with a unit or without one. */
static bool size_value(const char *text, uint64_t *bytes)
{
	static const char units[] = "kmg";
	char *end = NULL;
	unsigned long long number = *text >= '0' && *text <= '9' ? strtoull(text, &end, 10) : 0;
	const char *unit;

	if (!number || number > MEMORY_MAX)
		return false;
	*bytes = number;
	if (!*end)
		return true;
	unit = strchr(units, *end | 0x20);
	if (!unit || end[1] || number > MEMORY_MAX >> 10 * (unit - units + 1))
		return false;
	*bytes <<= 10 * (unit - units + 1);
	return true;
}

static bool read_size(struct reading *reading, struct item *item, uint64_t *bytes)
{
	if (item->value && size_value(item->value, bytes) && *bytes >= MEMORY_MIN &&
	    *bytes <= MEMORY_MAX)
		return true;
	return refuse_value(reading, item, ", but must be a size from 8m to 1024g");
}

static bool read_time(struct reading *reading, struct item *item, uint64_t least, uint64_t *ns)
{
	if (item->value && time_value(item->value, ns) && *ns >= least)
		return true;
	return refuse_value(reading, item,
			    least == INTERVAL_MIN ? ", but must be a time from 10us to 24 hours"
						  : ", but must be a time from 1ms to 24 hours");
}

static bool read_number(struct reading *reading, struct item *item, unsigned long most,
			uint32_t *number)
{
	char text[64];
	char *end = item->value;
	unsigned long value = 0;

	if (item->value && *item->value >= '0' && *item->value <= '9')
		value = strtoul(item->value, &end, 10);
	if (value > 0 && value <= most && !*end) {
		*number = (uint32_t)value;
		return true;
	}
	snprintf(text, sizeof(text), ", but must be a number from 1 to %lu", most);
	return refuse_value(reading, item, text);
}

static bool read_flag(struct reading *reading, struct item *item)
{
	static const char *const yes[] = {"yes", "true", "on", "1"};
	static const char *const no[] = {"no", "false", "off", "0"};

	*item->flag = true;
	for (size_t i = 0; item->value && i < sizeof(yes) / sizeof(yes[0]); i++) {
		if (!strcmp(item->value, no[i])) {
			*item->flag = false;
			return true;
		}
		if (!strcmp(item->value, yes[i]))
			return true;
	}
	return !item->value || refuse_value(reading, item, ", but must be yes or no");
}

static bool read_mode(struct reading *reading, struct item *item)
{
	for (int mode = AGENT_MODE_JVMTI; item->value && mode < AGENT_MODE_COUNT; mode++)
		if (!strcmp(item->value, modes[mode])) {
			reading->options->mode = (enum agent_mode)mode;
			return true;
		}
	return refuse_value(reading, item,
			    "; known are jvmti, partial, incremental, partial-incremental");
}

static bool read_format(struct reading *reading, struct item *item)
{
	int format = 0;

	if (item->value && !strchr(item->value, '.'))
		format = strcmp(item->value, "collapsed") ? incstack_profile_format_of(item->value)
							  : INCSTACK_FORMAT_FOLDED;
	reading->options->format = format;
	return format || refuse_value(reading, item,
				      "; known are html, folded, collapsed, pprof, speedscope, "
				      "firefox");
}

static bool read_file(struct reading *reading, struct item *item)
{
	char letter[3] = "%";

	if (!item->value || !*item->value || strlen(item->value) >= AGENT_FILE_MAX)
		return refuse_value(reading, item, ", but must be the name of a file");
	if (!agent_name_valid(item->value, &letter[1]))
		return complain(reading, "option file has ", letter,
				"; known are %p (process), %t (time), %n (part), %%");
	memcpy(reading->options->file, item->value, strlen(item->value) + 1);
	return true;
}

/* ---- the list ---- */

static bool *flag_of(struct reading *reading, const char *name)
{
	struct agent_options *o = reading->options;

	if (!strcmp(name, "threads"))
		return &o->threads;
	if (!strcmp(name, "waiting"))
		return &o->waiting;
	if (!strcmp(name, "realtime"))
		return &o->realtime;
	if (!strcmp(name, "stats"))
		return &o->stats;
	if (!strcmp(name, "check"))
		return &o->check;
	if (strcmp(name, "lines") != 0)
		return NULL;
	reading->lines_said = true;
	return &o->lines;
}

static bool read_command(struct reading *reading, const struct item *item)
{
	for (int command = 0; !item->value && command < AGENT_COMMAND_COUNT; command++)
		if (!strcmp(item->name, commands[command])) {
			reading->options->command = (enum agent_command)command;
			return true;
		}
	return complain(
		reading, "unknown option ", item->name,
		"; known are interval, mode, file, format, duration, split, samples, "
		"depth, memory, threads, waiting, lines, realtime, stats, check, and the commands "
		"start, stop, dump, next, status");
}

static bool read_item(struct reading *reading, struct item *item)
{
	struct agent_options *o = reading->options;

	item->flag = flag_of(reading, item->name);
	if (item->flag)
		return read_flag(reading, item);
	if (!strcmp(item->name, "interval"))
		return read_time(reading, item, INTERVAL_MIN, &o->interval_ns);
	if (!strcmp(item->name, "duration"))
		return read_time(reading, item, 1000000, &o->duration_ns);
	if (!strcmp(item->name, "split"))
		return read_time(reading, item, 1000000, &o->split_ns);
	if (!strcmp(item->name, "memory"))
		return read_size(reading, item, &o->memory);
	if (!strcmp(item->name, "samples"))
		return read_number(reading, item, SAMPLES_MAX, &o->samples);
	if (!strcmp(item->name, "depth"))
		return read_number(reading, item, DEPTH_MAX, &o->depth);
	if (!strcmp(item->name, "mode"))
		return read_mode(reading, item);
	if (!strcmp(item->name, "format"))
		return read_format(reading, item);
	if (!strcmp(item->name, "file"))
		return read_file(reading, item);
	return read_command(reading, item);
}

static bool read_list(struct reading *reading, char *list)
{
	char *rest = list;

	for (char *text = strsep(&rest, ","); text; text = strsep(&rest, ",")) {
		struct item item = {.value = strchr(text, '=')};

		if (!*text)
			continue;
		if (item.value)
			*item.value++ = 0;
		snprintf(item.name, sizeof(item.name), "%s", text);
		if (strlen(text) > SHOWN)
			return complain(reading, "unknown option ", text, "");
		if (!read_item(reading, &item))
			return false;
	}
	return true;
}

/* Sets options that follow from others. */
static bool complete(struct reading *reading)
{
	struct agent_options *o = reading->options;

	if (!*o->file)
		snprintf(o->file, sizeof(o->file), "incstack-%%p%s",
			 agent_name_ending(o->format ? o->format : INCSTACK_FORMAT_HTML));
	if (!o->format)
		o->format = agent_name_format(o->file);
	if (!o->format)
		return complain(reading, "the name ", o->file,
				" does not show the format; end it in .html, .folded, .pb.gz, "
				".speedscope.json or .json, or use the option format");
	if (!reading->lines_said)
		o->lines = o->format != INCSTACK_FORMAT_HTML && o->format != INCSTACK_FORMAT_FOLDED;
	return true;
}

bool agent_options_read(const char *text, struct agent_options *options,
			char error[AGENT_ERROR_MAX])
{
	struct reading reading = {.options = options, .error = error};
	char *list = strdup(text ? text : "");
	bool valid;

	*options = (struct agent_options){
		.interval_ns = 10000000, .depth = DEPTH_USUAL, .memory = UINT64_C(256) << 20};
	snprintf(error, AGENT_ERROR_MAX, "out of memory");
	if (!list)
		return false;
	valid = read_list(&reading, list) && complete(&reading);
	free(list);
	return valid;
}

const char *agent_mode_name(enum agent_mode mode)
{
	return modes[mode];
}

const char *agent_time_text(uint64_t ns, char text[32])
{
	if (ns >= NS_PER_S)
		snprintf(text, 32, "%g s", (double)ns / 1e9);
	else if (ns >= 1000000)
		snprintf(text, 32, "%g ms", (double)ns / 1e6);
	else
		snprintf(text, 32, "%g us", (double)ns / 1e3);
	return text;
}
