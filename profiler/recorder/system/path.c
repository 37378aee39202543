/* SPDX-License-Identifier: MIT
 *
 * Finds the path of a mapped file, as the kernel knows it. The dynamic linker knows a module by
 * the name that the program gave, which may be relative to a directory that the program has
 * left since.
 */
#include <fcntl.h>
#include <string.h>
#include <unistd.h>

#include "kernel.h"
#include "system.h"

struct text {
	int fd;
	size_t at;
	size_t end;
	char bytes[512];
};

/* Reads the next character. Returns 0 at the end. */
static int take(struct text *text)
{
	if (text->at == text->end) {
		const ssize_t got =
			incstack__kernel_read(text->fd, text->bytes, sizeof(text->bytes));

		text->at = 0;
		text->end = got > 0 ? (size_t)got : 0;
	}
	return text->at < text->end ? (unsigned char)text->bytes[text->at++] : 0;
}

/* Reads the next number. *end is the character after it. */
static uint64_t take_hex(struct text *text, int *end)
{
	uint64_t number = 0;

	for (;;) {
		const int c = take(text);

		*end = c;
		if (c >= '0' && c <= '9')
			number = number << 4 | (uint64_t)(c - '0');
		else if (c >= 'a' && c <= 'f')
			number = number << 4 | (uint64_t)(c - 'a' + 10);
		else
			return number;
	}
}

/* Reads the rest of the line from its first slash on. The path is empty if there is no slash or if
 * it is too long. */
static void take_path(struct text *text, char *path, size_t size)
{
	size_t length = 0;
	int c = take(text);

	while (c != '/' && c != '\n' && c != 0)
		c = take(text);
	for (; c != '\n' && c != 0; c = take(text))
		if (length < size)
			path[length++] = (char)c;
	path[length < size ? length : 0] = '\0';
}

void incstack__record_cut_deleted(char *path)
{
	static const char deleted[] = " (deleted)";
	const size_t length = strlen(path);

	if (length > sizeof(deleted) - 1 &&
	    strcmp(path + length - (sizeof(deleted) - 1), deleted) == 0)
		path[length - (sizeof(deleted) - 1)] = '\0';
}

bool incstack__record_path(uint64_t address, char *path, size_t size)
{
	struct text text = {
		.fd = incstack__kernel_open("/proc/self/maps", O_RDONLY | O_CLOEXEC, 0)};
	int end = '\n';

	*path = '\0';
	while (text.fd >= 0 && end != 0) {
		const uint64_t low = take_hex(&text, &end);
		const uint64_t high = take_hex(&text, &end);

		if (address >= low && address < high) {
			take_path(&text, path, size);
			break;
		}
		while (end != '\n' && end != 0)
			end = take(&text);
	}
	if (text.fd >= 0)
		incstack__kernel_close(text.fd);
	incstack__record_cut_deleted(path);
	return *path != '\0';
}
