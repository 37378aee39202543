/* SPDX-License-Identifier: MIT
 *
 * Reports on every process image that one run has recorded: the whole text for the one with the
 * most bytes, a line for each other one, and one sum of all.
 */
#include <errno.h>
#include <fcntl.h>
#include <glob.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "tracefile/notes.h"
#include "record.h"
#include "tool/files.h"
#include "tool/foreign.h"
#include "tool/names.h"
#include "tool/report/report.h"
#include "tool/report/trace_map.h"

struct image {
	char *file;
	char *text; /* its report */
	size_t text_bytes;
	struct tool_sum sum;
	struct tool_resolved names;
};

/* Whether this run began the file. Anybody may have made it, if anybody may write to its directory, and a
 * program that has changed its user makes files of that user. */
static int is_ours(const char *file, uint64_t start_ns)
{
	static struct incstack__tracefile_header header;
	const struct tool_foreign terms = {.flags = TOOL_FOREIGN_NO_LINK};
	struct stat status;
	const char *why;
	const int fd = tool_foreign_open(file, &terms, &status, &why);
	const ssize_t got = fd < 0 ? -1 : pread(fd, &header, sizeof(header), 0);

	if (fd >= 0)
		close(fd);
	if (got != (ssize_t)sizeof(header) || header.magic != INCSTACK__TRACEFILE_MAGIC ||
	    header.start_ns < start_ns)
		return 0;
	if (status.st_uid == geteuid() || status.st_uid == 0)
		return 1;
	fprintf(stderr,
		"incstack: %s belongs to another user, so it is left out; "
		"incstack report shows it\n",
		tool_name(file));
	return 0;
}

/* Whether the suffix is .PID.N with two numbers. */
static int is_image_name(const char *suffix)
{
	const size_t pid = strspn(suffix, "0123456789");
	const size_t number = suffix[pid] == '.' ? strspn(suffix + pid + 1, "0123456789") : 0;

	return pid > 0 && number > 0 && suffix[pid + 1 + number] == 0;
}

/* Escapes the characters that have a meaning in patterns. */
static char *escaped(const char *file)
{
	char *pattern = malloc(2 * strlen(file) + sizeof(".*.*"));
	char *at = pattern;

	for (; pattern != NULL && *file != 0; *at++ = *file++)
		if (strchr("*?[\\", *file) != NULL)
			*at++ = '\\';
	if (pattern != NULL)
		memcpy(at, ".*.*", sizeof(".*.*"));
	return pattern;
}

/* Returns how many images there are more. */
static size_t take_image(struct image *image, const char *file)
{
	image->file = strdup(file);
	return image->file != NULL;
}

static size_t find_images(const char *file, uint64_t start_ns, struct image **images)
{
	const size_t length = strlen(file);
	char *pattern = escaped(file);
	size_t count = 0;
	glob_t found = {0};

	if (pattern == NULL || glob(pattern, 0, NULL, &found) != 0)
		found.gl_pathc = 0;
	*images = calloc(found.gl_pathc + 1, sizeof(**images));
	if (*images != NULL && is_ours(file, start_ns))
		count += take_image(&(*images)[count], file);
	for (size_t i = 0; *images != NULL && i < found.gl_pathc; i++)
		if (is_image_name(found.gl_pathv[i] + length + 1) &&
		    is_ours(found.gl_pathv[i], start_ns))
			count += take_image(&(*images)[count], found.gl_pathv[i]);
	globfree(&found);
	free(pattern);
	return count;
}

/* Whether the process of that image executed another program, of which there is no image. */
static int lacks_next(const struct image *images, size_t count, const struct image *image)
{
	const uint32_t ends = image->sum.flags &
			      (INCSTACK__TRACEFILE_TALLY_EXEC | INCSTACK__TRACEFILE_TALLY_PROCESS);
	size_t i = 0;

	while (i < count && (&images[i] == image || images[i].sum.pid != image->sum.pid ||
			     images[i].sum.start_ns < image->sum.start_ns))
		i++;
	return ends == INCSTACK__TRACEFILE_TALLY_EXEC && i == count;
}

/* The recorder may have left a better reason in the file. Returns whether the file has a new note. */
static int note_next(const struct image *image)
{
	const uint64_t known = UINT64_C(1) << INCSTACK__NOTE_NO_RECORDER |
			       UINT64_C(1) << INCSTACK__NOTE_NEXT_UNRECORDED |
			       UINT64_C(1) << INCSTACK__NOTE_UNRECORDED |
			       UINT64_C(1) << INCSTACK__NOTE_UNRECORDED_FULL |
			       UINT64_C(1) << INCSTACK__NOTE_UNRECORDED_LIMIT |
			       UINT64_C(1) << INCSTACK__NOTE_UNRECORDED_RIGHTS |
			       UINT64_C(1) << INCSTACK__NOTE_UNRECORDED_MEMORY |
			       UINT64_C(1) << INCSTACK__NOTE_UNRECORDED_OPEN;
	int fd;

	if ((image->sum.notes & known) != 0)
		return 0;
	fd = tool_files_input(image->file);
	if (fd < 0)
		return 0;
	tool_record_note(fd, image->sum.pid, INCSTACK__NOTE_NEXT_UNRECORDED);
	close(fd);
	return 1;
}

/* Makes a report. If what the user wants to be left out cannot be, nothing is, because the recording is not
 * to be repeated. */
static int make_report(struct image *image, struct tool_report_wish *wish)
{
	FILE *text = open_memstream(&image->text, &image->text_bytes);
	int status;

	if (text == NULL) {
		fprintf(stderr, "incstack: out of memory\n");
		return 1;
	}
	status = tool_report_make(image->file, wish, text, &image->sum);
	fclose(text);
	if (status == 0 || !tool_filter_is_given(wish->filter))
		return status;
	fprintf(stderr, "incstack: so the report leaves out nothing\n");
	free(image->text);
	image->text = NULL;
	wish->filter = NULL;
	return make_report(image, wish);
}

static int report_image(struct image *image, const struct tool_record_options *options)
{
	struct tool_report_wish wish =
		tool_report_wish_of(image->file, options->by_thread, tool_columns(stderr));

	wish.filter = &options->filter;
	wish.folded = options->folded;
	wish.resolved = options->resolves ? &image->names : NULL;
	return make_report(image, &wish);
}

/* Prints the lines of a report that tell what is missing in it. */
static void print_losses(const char *text)
{
	for (; *text != 0; text += strcspn(text, "\n"), text += *text != 0)
		if (strncmp(text, "note: ", 6) == 0 || strncmp(text, "warning: ", 9) == 0)
			fprintf(stderr, "  %.*s\n", (int)strcspn(text, "\n"), text);
}

static void print_image(const struct image *image, int whole)
{
	const char *text = image->text != NULL ? image->text : "";

	if (whole) {
		fprintf(stderr, "%s\n", text);
		return;
	}
	fprintf(stderr, "%.*s; incstack report %s\n", (int)strcspn(text, "\n"), text,
		tool_name(image->file));
	print_losses(text);
}

static void print_all(const struct image *images, size_t count, bool folded)
{
	size_t most = 0;

	for (size_t i = 0; i < count; i++)
		if (images[i].sum.bytes > images[most].sum.bytes)
			most = i;
	for (size_t i = 0; i < count; i++)
		if (i != most)
			print_image(&images[i], 0);
	print_image(&images[most], 1);
	fprintf(stderr, "more: incstack report --full %s\nflame graph: %s" TOOL_REPORT_PAGE "\n",
		tool_name(images[most].file), tool_name(images[most].file));
	if (folded)
		fprintf(stderr, "folded stacks: %s" TOOL_REPORT_FOLDED "\n",
			tool_name(images[most].file));
}

/* The last line. */
static void print_sum(const struct image *images, size_t count)
{
	struct tool_sum sum = {0};

	for (size_t i = 0; i < count; i++)
		tool_sum_add(&sum, &images[i].sum);
	tool_sum_print(&sum, stderr);
}

/* Packs the file, with its names if they are wished. */
static int pack_image(struct image *image, const struct tool_record_options *options)
{
	const bool has_names = image->names.block != NULL;
	const bool is_packed = tool_trace_pack(image->file, has_names ? &image->names : NULL);

	free(image->names.block);
	if (!options->resolves || (has_names && is_packed))
		return 0;
	fprintf(stderr,
		"incstack: %s has no names yet; when no process writes it any more: "
		"incstack resolve %s\n",
		tool_name(image->file), tool_name(image->file));
	return 1;
}

/* What the reports are of. */
struct images {
	struct image *all;
	size_t count;
	const struct tool_record_options *options;
};

static int report_images(void *context)
{
	const struct images *images = context;
	int failed = 0;

	for (size_t i = 0; i < images->count; i++)
		tool_trace_settle(images->all[i].file);
	for (size_t i = 0; i < images->count; i++)
		failed |= report_image(&images->all[i], images->options);
	for (size_t i = 0; i < images->count; i++)
		if (lacks_next(images->all, images->count, &images->all[i]) &&
		    note_next(&images->all[i])) {
			free(images->all[i].text);
			free(images->all[i].names.block);
			failed |= report_image(&images->all[i], images->options);
		}
	print_all(images->all, images->count, images->options->folded);
	for (size_t i = 0; i < images->count; i++)
		failed |= pack_image(&images->all[i], images->options);
	print_sum(images->all, images->count);
	return failed;
}

static int run_reports(struct images *images)
{
	const struct tool_filter *filter = &images->options->filter;
	const char **files = calloc(images->count, sizeof(*files));
	const char **all = NULL;
	int failed = 1;

	for (size_t i = 0; files != NULL && i < images->count; i++)
		files[i] = images->all[i].file;
	if (files != NULL)
		all = tool_filter_inputs(files, images->count, filter);
	if (all != NULL)
		failed = tool_report_run(all, images->count, filter->files.count, files, true,
					 report_images, images);
	free(all);
	free(files);
	return failed;
}

int tool_record_report(const struct tool_record_options *options, uint64_t start_ns,
		       const struct tool_record_end *end)
{
	const char *file = options->file;
	struct images images = {.options = options};
	int failed = 1;

	images.count = find_images(file, start_ns, &images.all);
	if (images.count > 0)
		failed = run_reports(&images);
	else
		tool_record_say_nothing(file, end);
	for (size_t i = 0; i < images.count; i++)
		free(images.all[i].file);
	free(images.all);
	return failed;
}
