/* SPDX-License-Identifier: MIT
 *
 * Opens and closes the files of the subcommands on profiles.
 */
#include "names.h"
#include "profile_io.h"

#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include "files.h"
#include "profile/files.h"
#include "profile/reduce.h"

/* ---- progress ---- */

static struct {
	uint64_t size, last;
	struct timespec next;
	int shown;
} progress;

static void show(uint64_t bytes)
{
	static const char full[] = "########################################";
	unsigned part = (unsigned)(40 * bytes / progress.size);

	fprintf(stderr, "\rincstack: [%-40.*s] %3u%% of %.0f MB", (int)part, full,
		(unsigned)(100 * bytes / progress.size), (double)progress.size / 1e6);
	progress.shown = 1;
}

/* Shows the progress ten times a second; not at all if reading ends before that. */
static void on_progress(void *context, uint64_t bytes)
{
	struct timespec now;

	(void)context;
	if (!progress.size || bytes > progress.size)
		return;
	clock_gettime(CLOCK_MONOTONIC, &now);
	if (now.tv_sec < progress.next.tv_sec ||
	    (now.tv_sec == progress.next.tv_sec && now.tv_nsec < progress.next.tv_nsec))
		return;
	if (progress.next.tv_sec)
		show(bytes);
	progress.next = now;
	progress.next.tv_nsec += 100000000;
	if (progress.next.tv_nsec >= 1000000000) {
		progress.next.tv_sec++;
		progress.next.tv_nsec -= 1000000000;
	}
}

static void progress_start(FILE *stream)
{
	struct stat status;

	memset(&progress, 0, sizeof(progress));
	if (isatty(STDERR_FILENO) && !fstat(fileno(stream), &status) && S_ISREG(status.st_mode))
		progress.size = (uint64_t)status.st_size;
}

static void progress_end(void)
{
	if (progress.shown)
		fprintf(stderr, "\r%80s\r", "");
}

/* ---- files ---- */

static const char *shown_path(const char *path)
{
	return strcmp(path, "-") ? tool_name(path) : "(stdin)";
}

static void complain(const char *path, int error, const struct incstack_profile_problem *problem)
{
	fprintf(stderr, "incstack: %s: ", shown_path(path));
	if (error == INCSTACK_EIO) {
		fprintf(stderr, "%s: %s\n", incstack_error_text(error), strerror(errno));
		return;
	}
	fprintf(stderr, "%s", problem->why ? tool_name(problem->why) : incstack_error_text(error));
	if (error == INCSTACK_EFORMAT || error == INCSTACK_ERANGE) {
		if (problem->line)
			fprintf(stderr, " (line %" PRIu64 ", byte %" PRIu64 ")", problem->line,
				problem->offset);
		else
			fprintf(stderr, " (byte %" PRIu64 ")", problem->offset);
	}
	fputc('\n', stderr);
}

/* Returns the format that is given, or that the name shows; 0: neither. */
static int named_format(const char *path, int format)
{
	const int found = format ? format : incstack_profile_format_of(path);

	return !found && !strcmp(path, "-") ? INCSTACK_FORMAT_FOLDED : found;
}

static int guess_format(const char *path, FILE *stream)
{
	int found = 0;

	if (lseek(fileno(stream), 0, SEEK_CUR) >= 0)
		found = incstack__profile_format_guess(stream);
	if (!found)
		fprintf(stderr,
			"incstack: %s: neither its suffix nor its content shows its format; use "
			"--input-format\n",
			shown_path(path));
	return found;
}

static FILE *open_input(const char *path)
{
	const int fd = tool_files_input(path);

	return fd < 0 ? NULL : fdopen(fd, "r");
}

static void close_input(FILE *stream)
{
	if (stream != stdin)
		fclose(stream);
}

int tool_profile_read(const char *path, int format, struct incstack__profile_input *input,
		      struct incstack_profile **profile)
{
	struct incstack__profile_input plain = {0};
	struct incstack_profile_problem problem = {.size = sizeof(problem)};
	FILE *stream = stdin;
	int error;

	format = named_format(path, format);
	if (format == INCSTACK_FORMAT_HTML) {
		fprintf(stderr, "incstack: %s: HTML can be written, but not read\n",
			shown_path(path));
		return TOOL_USAGE;
	}
	if (strcmp(path, "-") != 0)
		stream = open_input(path);
	if (!stream) {
		fprintf(stderr, "incstack: cannot read %s: %s\n", tool_name(path), strerror(errno));
		return TOOL_FAILED;
	}
	format = format ? format : guess_format(path, stream);
	if (!format) {
		close_input(stream);
		return TOOL_USAGE;
	}
	input = input ? input : &plain;
	input->progress = on_progress;
	progress_start(stream);
	error = incstack__profile_read(stream, (enum incstack_profile_format)format, input, profile,
				       &problem);
	progress_end();
	if (error)
		complain(path, error, &problem);
	close_input(stream);
	return error ? TOOL_FAILED : TOOL_DONE;
}

int tool_output_format(const char *path, int format)
{
	int found = format ? format : incstack_profile_format_of(path);

	if (!found)
		fprintf(stderr, "incstack: %s: its suffix names no format; use --format\n",
			strcmp(path, "-") ? tool_name(path) : "(stdout)");
	if (found && !format && incstack__profile_format_packed(path)) {
		fprintf(stderr,
			"incstack: %s: profiles are read packed, but written plain; leave out the "
			"suffix, and pack the file afterwards\n",
			tool_name(path));
		return 0;
	}
	if (!found || incstack__profile_format_writes(found))
		return found;
	fprintf(stderr, "incstack: this format can be read, but not written\n");
	return 0;
}

int tool_profile_write(const struct incstack_profile *profile, const char *path, int format,
		       uint32_t kind)
{
	FILE *stream;

	format = tool_output_format(path, format);
	if (!format)
		return TOOL_USAGE;
	stream = tool_output_open(path);
	if (!stream)
		return TOOL_FAILED;
	return tool_output_close(path, stream,
				 incstack_profile_write(profile,
							(enum incstack_profile_format)format, kind,
							stream));
}

void tool_tell_losses(uint32_t losses)
{
	const char *before = "incstack: not kept: ";

	for (uint32_t bits = losses; bits; bits &= bits - 1) {
		const char *text = incstack__profile_loss_text(bits & -bits);

		if (!text)
			continue;
		fprintf(stderr, "%s%s", before, text);
		before = ", ";
	}
	if (losses)
		fputc('\n', stderr);
}

int tool_kind_number(const struct incstack_profile *profile, const char *name, uint32_t *kind)
{
	struct incstack_profile_kind known;

	for (*kind = 0; !incstack_profile_kind(profile, *kind, &known); ++*kind)
		if (!name || !strcmp(known.name, name))
			return TOOL_DONE;
	return TOOL_USAGE;
}

int tool_kind_find(const struct incstack_profile *profile, const char *name, uint32_t *kind)
{
	struct incstack_profile_kind known;

	if (!tool_kind_number(profile, name, kind))
		return TOOL_DONE;
	fprintf(stderr, "incstack: no kind of weight is called '%s'; there are:", tool_name(name));
	for (*kind = 0; !incstack_profile_kind(profile, *kind, &known); ++*kind)
		fprintf(stderr, " '%s'", tool_name(known.name));
	fputc('\n', stderr);
	return TOOL_USAGE;
}

/* Removes at least half of the nodes; otherwise the next call would come too soon. */
int tool_prune_full(void *context, struct incstack_profile *profile)
{
	uint32_t target = incstack_profile_nodes(profile) / 2;
	int error = 0;

	(void)context;
	for (uint64_t parts = 1000000; !error && parts >= 10; parts /= 10) {
		error = incstack__profile_prune(profile, parts);
		if (incstack_profile_nodes(profile) <= target)
			break;
	}
	return error;
}

uint32_t tool_nodes_max(int format)
{
	const uint32_t kinds = format == INCSTACK_FORMAT_FOLDED ? 1 : INCSTACK_PROFILE_KINDS_MAX;

	return (512u << 20) / (24 + 8 * kinds);
}
