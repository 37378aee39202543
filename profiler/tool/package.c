/* SPDX-License-Identifier: MIT
 *
 * dpkg keeps a list of the files of each installed package. Reading them all takes ten milliseconds, and unlike
 * dpkg-query it starts no program.
 */
#include "package.h"

#include <ctype.h>
#include <dirent.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static const char folder[] = "/var/lib/dpkg/info";
static const char suffix[] = ".list";

/* Whether the list has one of the two lines. */
static bool lists(const char *list, const char *line, const char *other)
{
	char *path = NULL;
	char *text = NULL;
	size_t room = 0;
	bool found = false;
	FILE *stream;

	if (asprintf(&path, "%s/%s", folder, list) < 0)
		return false;
	stream = fopen(path, "re");
	while (stream != NULL && !found && getline(&text, &room, stream) > 0) {
		text[strcspn(text, "\n")] = 0;
		found = strcmp(text, line) == 0 || strcmp(text, other) == 0;
	}
	if (stream != NULL)
		fclose(stream);
	free(text);
	free(path);
	return found;
}

/* Since the folders of / have become links to those of /usr, a package may know a file by its other path. */
static char *find_list(const char *path)
{
	static const char usr[] = "/usr";
	char *merged = NULL;
	char *found = NULL;
	DIR *directory = opendir(folder);
	struct dirent *entry;

	if (directory != NULL && asprintf(&merged, "%s%s", usr, path) >= 0) {
		const bool has_usr = strncmp(path, "/usr/", sizeof("/usr/") - 1) == 0;
		const char *other = has_usr ? path + sizeof(usr) - 1 : merged;

		while (found == NULL && (entry = readdir(directory)) != NULL) {
			const char *dot = strrchr(entry->d_name, '.');

			if (dot != NULL && strcmp(dot, suffix) == 0 &&
			    lists(entry->d_name, path, other))
				found = strndup(entry->d_name, (size_t)(dot - entry->d_name));
		}
		free(merged);
	}
	if (directory != NULL)
		closedir(directory);
	return found;
}

/* The packages whose symbols are not in one named NAME-dbgsym. Those of Python say so with their version:
 * libpython3.11-minimal, python3.11-dbg. */
static size_t write_name(const char *package, size_t length, char name[TOOL_PACKAGE_MOST])
{
	static const struct {
		const char *prefix;
		bool has_version;
	} rows[] = {{"libc6", false}, {"libpython3.", true}, {"python3.", true}};
	int written = 0;

	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]) && written == 0; i++) {
		size_t kept = strlen(rows[i].prefix);

		if (length < kept || strncmp(package, rows[i].prefix, kept) != 0)
			continue;
		while (rows[i].has_version && kept < length &&
		       isdigit((unsigned char)package[kept]))
			kept++;
		if (kept == length || package[kept] == '-')
			written = snprintf(name, TOOL_PACKAGE_MOST, "%.*s-dbg", (int)kept, package);
	}
	if (written == 0)
		written = snprintf(name, TOOL_PACKAGE_MOST, "%.*s-dbgsym", (int)length, package);
	return written > 0 && written < TOOL_PACKAGE_MOST ? (size_t)written : 0;
}

size_t tool_package_find(const char *path, char name[TOOL_PACKAGE_MOST])
{
	char *list = find_list(path);
	const size_t length =
		list != NULL ? write_name(list, strcspn(list, ":"), name) : 0; /* NAME:amd64 */

	free(list);
	return length;
}
