/* SPDX-License-Identifier: MIT
 *
 * gdb's JIT interface: a list of object files in memory and a function where gdb
 * has a breakpoint. Each object has one symbol and says where its code is.
 */
#include <elf.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>

#include <incstack/jit.h>

enum { NO_ACTION, REGISTER, UNREGISTER }; /* gdb's numbers */

/* gdb knows the layout of these two structs and the names of the two symbols below. */
struct jit_code_entry {
	struct jit_code_entry *next, *previous;
	const void *object;
	uint64_t size;
};

struct jit_descriptor {
	uint32_t version;
	uint32_t action;
	struct jit_code_entry *relevant, *first;
};

/* Weak: a program may have them only once, and another code generator may define them. */
INCSTACK_API void __jit_debug_register_code(void);
INCSTACK_API extern struct jit_descriptor __jit_debug_descriptor;

__attribute__((noinline, weak)) void __jit_debug_register_code(void)
{
	__asm__ volatile("" ::: "memory");
}

__attribute__((weak)) struct jit_descriptor __jit_debug_descriptor = {.version = 1};

enum { TEXT = 1, SYMBOLS, STRINGS, SECTION_NAMES, SECTIONS };

static const char section_names[] = "\0.text\0.symtab\0.strtab\0.shstrtab";

/* The object file in memory; the string table follows. */
struct object {
	Elf64_Ehdr header;
	Elf64_Shdr sections[SECTIONS];
	Elf64_Sym symbols[2];
	char names[sizeof(section_names)];
};

struct incstack_jit_code {
	struct jit_code_entry entry;
	struct object object;
	char strings[]; /* an empty string and the name */
};

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;

static void fill_header(Elf64_Ehdr *header)
{
	memcpy(header->e_ident, ELFMAG, SELFMAG);
	header->e_ident[EI_CLASS] = ELFCLASS64;
	header->e_ident[EI_DATA] = ELFDATA2LSB;
	header->e_ident[EI_VERSION] = EV_CURRENT;
	header->e_type = ET_EXEC; /* symbols are addresses; nothing is relocated */
	header->e_machine = EM_X86_64;
	header->e_version = EV_CURRENT;
	header->e_shoff = offsetof(struct object, sections);
	header->e_ehsize = sizeof(Elf64_Ehdr);
	header->e_shentsize = sizeof(Elf64_Shdr);
	header->e_shnum = SECTIONS;
	header->e_shstrndx = SECTION_NAMES;
}

static void fill_object(struct object *object, uintptr_t address, size_t size, size_t strings)
{
	fill_header(&object->header);
	memcpy(object->names, section_names, sizeof(section_names));
	object->sections[TEXT] =
		(Elf64_Shdr){.sh_name = 1,
			     .sh_type = SHT_NOBITS, /* gdb reads the code from the program */
			     .sh_flags = SHF_ALLOC | SHF_EXECINSTR,
			     .sh_addr = address,
			     .sh_size = size,
			     .sh_addralign = 1};
	object->sections[SYMBOLS] = (Elf64_Shdr){.sh_name = 7,
						 .sh_type = SHT_SYMTAB,
						 .sh_offset = offsetof(struct object, symbols),
						 .sh_size = sizeof(object->symbols),
						 .sh_link = STRINGS,
						 .sh_info = 1,
						 .sh_addralign = 8,
						 .sh_entsize = sizeof(Elf64_Sym)};
	object->sections[STRINGS] = (Elf64_Shdr){.sh_name = 15,
						 .sh_type = SHT_STRTAB,
						 .sh_offset = sizeof(struct object),
						 .sh_size = strings,
						 .sh_addralign = 1};
	object->sections[SECTION_NAMES] = (Elf64_Shdr){.sh_name = 23,
						       .sh_type = SHT_STRTAB,
						       .sh_offset = offsetof(struct object, names),
						       .sh_size = sizeof(section_names),
						       .sh_addralign = 1};
	object->symbols[1] = (Elf64_Sym){.st_name = 1,
					 .st_info = ELF64_ST_INFO(STB_GLOBAL, STT_FUNC),
					 .st_shndx = TEXT,
					 .st_value = address,
					 .st_size = size};
}

static void tell(uint32_t action, struct jit_code_entry *entry)
{
	__jit_debug_descriptor.action = action;
	__jit_debug_descriptor.relevant = entry;
	__jit_debug_register_code();
	__jit_debug_descriptor.action = NO_ACTION;
}

static void link_entry(struct jit_code_entry *entry)
{
	entry->next = __jit_debug_descriptor.first;
	if (entry->next)
		entry->next->previous = entry;
	__jit_debug_descriptor.first = entry;
}

static void unlink_entry(struct jit_code_entry *entry)
{
	if (entry->next)
		entry->next->previous = entry->previous;
	if (entry->previous)
		entry->previous->next = entry->next;
	else
		__jit_debug_descriptor.first = entry->next;
}

int incstack_jit_register(uintptr_t address, size_t size, const char *name,
			  struct incstack_jit_code **code)
{
	struct incstack_jit_code *made;
	size_t strings;

	if (!size || size > UINTPTR_MAX - address || !name || !*name || !code)
		return INCSTACK_EINVAL;
	strings = strlen(name) + 2;
	made = calloc(1, sizeof(*made) + strings);
	if (!made)
		return INCSTACK_ENOMEM;
	memcpy(made->strings + 1, name, strings - 1);
	fill_object(&made->object, address, size, strings);
	made->entry.object = &made->object;
	made->entry.size = sizeof(made->object) + strings;
	pthread_mutex_lock(&lock);
	link_entry(&made->entry);
	tell(REGISTER, &made->entry);
	pthread_mutex_unlock(&lock);
	*code = made;
	return 0;
}

void incstack_jit_unregister(struct incstack_jit_code *code)
{
	if (!code)
		return;
	pthread_mutex_lock(&lock);
	unlink_entry(&code->entry);
	tell(UNREGISTER, &code->entry);
	pthread_mutex_unlock(&lock);
	free(code);
}

_Static_assert(offsetof(struct incstack_jit_code, strings) ==
		       offsetof(struct incstack_jit_code, object) + sizeof(struct object),
	       "the string table follows the object");
