/* SPDX-License-Identifier: MIT
 *
 * Writes the parts of a thread that all threads in the Firefox Profiler's processed format have.
 * The profiler wants more columns than a profile has. The additional columns have the same value in
 * each row.
 */
#include <inttypes.h>

#include "firefox_thread.h"
#include "writer.h"

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
	incstack__json_same("address", rows, "-1", stream);
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
	incstack__json_same("resource", rows, "-1", stream);
	incstack__json_same("lineNumber", rows, "null", stream);
	incstack__json_same("columnNumber", rows, "null", stream);
	putc_unlocked('}', stream);
}

void incstack__firefox_end(FILE *stream)
{
	fputs(",\n\"resourceTable\":{\"length\":0,\"lib\":[],\"name\":[],\"host\":[],\"type\":[]},"
	      "\"nativeSymbols\":{\"length\":0,\"libIndex\":[],\"address\":[],\"name\":[],"
	      "\"functionSize\":[]},\"markers\":{\"length\":0,\"data\":[],\"name\":[],"
	      "\"startTime\":[],\"endTime\":[],\"phase\":[],\"category\":[]}}",
	      stream);
}
