/* SPDX-License-Identifier: MIT
 *
 * The headers of an ELF file.
 */
#ifndef INCSTACK__ELF_FILE_H
#define INCSTACK__ELF_FILE_H

#include <elf.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct incstack__elf_file {
	/* Reads bytes of the file. Returns false if it does not have them all. */
	bool (*read)(int fd, void *to, size_t bytes, uint64_t offset);
	int fd;
	Elf64_Ehdr header;
};

/* Reads the header. Returns false if that is no ELF file. */
static inline bool incstack__elf_file_open(struct incstack__elf_file *file)
{
	const unsigned char *ident = file->header.e_ident;
	return file->read(file->fd, &file->header, sizeof(file->header), 0) &&
	       ident[EI_MAG0] == ELFMAG0 && ident[EI_MAG1] == ELFMAG1 &&
	       ident[EI_MAG2] == ELFMAG2 && ident[EI_MAG3] == ELFMAG3;
}

static inline bool incstack__elf_file_is_x86_64(const struct incstack__elf_file *file)
{
	return file->header.e_ident[EI_CLASS] == ELFCLASS64 && file->header.e_machine == EM_X86_64;
}

/* Read some program headers or section headers, which the header of the file says are there. Return false
 * if the file is cut off, or has headers of another size. */
static inline bool incstack__elf_file_segments(const struct incstack__elf_file *file,
					       unsigned first, unsigned count, Elf64_Phdr *to)
{
	return file->header.e_phentsize == sizeof(*to) &&
	       file->read(file->fd, to, count * sizeof(*to),
			  file->header.e_phoff + first * sizeof(*to));
}

static inline bool incstack__elf_file_sections(const struct incstack__elf_file *file,
					       unsigned first, unsigned count, Elf64_Shdr *to)
{
	return file->header.e_shentsize == sizeof(*to) &&
	       file->read(file->fd, to, count * sizeof(*to),
			  file->header.e_shoff + first * sizeof(*to));
}

#endif
