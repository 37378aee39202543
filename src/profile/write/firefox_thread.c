/* SPDX-License-Identifier: MIT
 *
 * Writes the parts of a thread that all threads in the Firefox Profiler's processed format have.
 * The profiler wants more columns than a profile has. The additional columns have the same value in
 * each row.
 */
#include <ctype.h>
#include <inttypes.h>
#include <string.h>

#include "firefox_thread.h"
#include "profile/module.h"
#include "writer.h"

#define NANOSECONDS UINT64_C(1000000) /* of a millisecond */

static bool is_time(const char *unit)
{
	return !strcmp(unit, "nanoseconds");
}

const char *incstack__firefox_weight_type(const char *unit)
{
	if (is_time(unit))
		return "tracing-ms";
	return strcmp(unit, "bytes") ? "samples" : "bytes";
}

void incstack__firefox_weight(const char *unit, uint64_t weight, FILE *stream)
{
	if (!is_time(unit)) {
		incstack__json_number(weight, stream);
		return;
	}
	incstack__json_number(weight / NANOSECONDS, stream);
	if (weight % NANOSECONDS)
		fprintf(stream, ".%06" PRIu64, weight % NANOSECONDS);
}

/* ---- modules ------------------------------------------------------------------- */

static const char *base_name(const char *path)
{
	const char *slash = strrchr(path, '/');

	return slash ? slash + 1 : path;
}

/* Makes the identifier that servers of symbols know a file by: the first 16 bytes of the build-id as a GUID,
 * whose first three numbers have the other byte order, and an age, which is 0. */
static void put_breakpad_id(const char *build_id, FILE *stream)
{
	static const unsigned char order[] = {3, 2, 1, 0, 5, 4, 7, 6, 8, 9, 10, 11, 12, 13, 14, 15};

	if (strlen(build_id) < 2 * sizeof(order) ||
	    strspn(build_id, "0123456789abcdefABCDEF") != strlen(build_id))
		return;
	for (size_t i = 0; i < sizeof(order); i++)
		for (size_t k = 0; k < 2; k++)
			putc_unlocked(toupper(build_id[2 * order[i] + k]), stream);
	putc_unlocked('0', stream);
}

static void put_member(const char *key, const char *text, FILE *stream)
{
	fprintf(stream, ",\"%s\":", key);
	incstack__json_string(text, stream);
}

static void put_lib(const char *path, const char *build_id, FILE *stream)
{
	fputs("\n{\"arch\":\"\"", stream);
	put_member("name", base_name(path), stream);
	put_member("path", path, stream);
	put_member("debugName", base_name(path), stream);
	put_member("debugPath", path, stream);
	put_member("codeId", build_id, stream);
	fputs(",\"breakpadId\":\"", stream);
	put_breakpad_id(build_id, stream);
	fputs("\"}", stream);
}

/* Returns the texts of a module. What is unknown is empty. */
static struct incstack__code texts_of(const struct incstack_profile *profile, size_t module)
{
	const struct incstack__frame frame = {.module = (uint32_t)module + 1};
	struct incstack__code code;

	incstack__code_of(profile, &frame, &code);
	code.module = code.module ? code.module : "";
	code.build_id = code.build_id ? code.build_id : "";
	return code;
}

void incstack__firefox_libs(const struct incstack_profile *profile, FILE *stream)
{
	fputs("\"libs\":[", stream);
	for (size_t i = 0; i < profile->modules.modules_used; i++) {
		const struct incstack__code code = texts_of(profile, i);

		fputs(i ? "," : "", stream);
		put_lib(code.module, code.build_id, stream);
	}
	putc_unlocked(']', stream);
}

void incstack__firefox_lib_names(const struct incstack_profile *profile, FILE *stream)
{
	for (size_t i = 0; i < profile->modules.modules_used; i++) {
		fputs(",\n", stream);
		incstack__json_string(base_name(texts_of(profile, i).module), stream);
	}
}

void incstack__firefox_resource(const struct incstack_profile *profile, uint32_t frame,
				uint64_t row, FILE *stream)
{
	const uint32_t module = profile->frames[frame].module;

	fputs(row ? "," : "", stream);
	if (module)
		incstack__json_number(module - 1, stream);
	else
		fputs("-1", stream);
}

static void put_address(const struct incstack_profile *profile, const struct incstack__frame *frame,
			uint64_t row, FILE *stream)
{
	struct incstack__code code;

	incstack__code_of(profile, frame, &code);
	fputs(row ? "," : "", stream);
	if (frame->module && code.address && code.address <= INT64_MAX)
		incstack__json_number(code.address, stream);
	else
		fputs("-1", stream);
}

static void put_resources(const struct incstack_profile *profile, uint64_t names, FILE *stream)
{
	const uint64_t rows = profile->modules.modules_used;

	fprintf(stream, ",\n\"resourceTable\":{\"length\":%" PRIu64, rows);
	incstack__json_counting("lib", rows, stream);
	fputs(",\"name\":[", stream);
	for (uint64_t i = 0; i < rows; i++) {
		fputs(i ? "," : "", stream);
		incstack__json_number(names + i, stream);
	}
	putc_unlocked(']', stream);
	incstack__json_same("host", rows, "null", stream);
	incstack__json_same("type", rows, "1", stream); /* a library */
	putc_unlocked('}', stream);
}

/* ---- threads ------------------------------------------------------------------- */

void incstack__firefox_head(int is_main, uint64_t tid, FILE *stream)
{
	fprintf(stream,
		",\"processType\":\"default\",\"processName\":\"profile\","
		"\"processStartupTime\":0,\"processShutdownTime\":null,\"registerTime\":0,"
		"\"unregisterTime\":null,\"pausedRanges\":[],\"isMainThread\":%s,"
		"\"pid\":\"1\",\"tid\":%" PRIu64,
		is_main ? "true" : "false", tid);
}

void incstack__firefox_frames(const struct incstack_profile *profile, const uint32_t *frames,
			      uint64_t rows, FILE *stream)
{
	fputs(",\"line\":[", stream);
	for (uint64_t i = 0; i < rows; i++) {
		int32_t line = profile->frames[frames ? frames[i] : i].line;

		fprintf(stream, line > 0 ? "%s%d" : "%snull", i ? "," : "", (int)line);
	}
	fputs("],\"inlineDepth\":[", stream);
	for (uint64_t i = 0; i < rows; i++) {
		uint32_t flags = profile->frames[frames ? frames[i] : i].flags;

		fprintf(stream, "%s%d", i ? "," : "", flags & INCSTACK_OBJECT_VIRTUAL ? 1 : 0);
	}
	putc_unlocked(']', stream);
	fputs(",\"address\":[", stream);
	for (uint64_t i = 0; i < rows; i++)
		put_address(profile, &profile->frames[frames ? frames[i] : i], i, stream);
	putc_unlocked(']', stream);
	incstack__json_same("category", rows, "0", stream);
	incstack__json_same("subcategory", rows, "0", stream);
	incstack__json_same("nativeSymbol", rows, "null", stream);
	incstack__json_same("innerWindowID", rows, "null", stream);
	incstack__json_same("column", rows, "null", stream);
	putc_unlocked('}', stream);
}

void incstack__firefox_functions(uint64_t rows, FILE *stream)
{
	incstack__json_same("isJS", rows, "false", stream);
	incstack__json_same("relevantForJS", rows, "false", stream);
	incstack__json_same("lineNumber", rows, "null", stream);
	incstack__json_same("columnNumber", rows, "null", stream);
	putc_unlocked('}', stream);
}

void incstack__firefox_end(const struct incstack_profile *profile, uint64_t names, FILE *stream)
{
	put_resources(profile, names, stream);
	fputs(",\"nativeSymbols\":{\"length\":0,\"libIndex\":[],\"address\":[],\"name\":[],"
	      "\"functionSize\":[]},\"markers\":{\"length\":0,\"data\":[],\"name\":[],"
	      "\"startTime\":[],\"endTime\":[],\"phase\":[],\"category\":[]}}",
	      stream);
}
