/* SPDX-License-Identifier: MIT
 *
 * Knows functions that hand out memory: those of libraries and of large programs, by patterns, and others by the words
 * of their names.
 */
#include "allocators.h"

#include <string.h>

#include "pattern.h"

static const char *const known[] = {
	/* C */
	"malloc",
	"calloc",
	"realloc",
	"reallocarray",
	"memalign",
	"aligned_alloc",
	"posix_memalign",
	"valloc",
	"pvalloc",
	"strdup",
	"strndup",
	"__strdup",
	"__strndup",
	"wcsdup",
	"asprintf",
	"vasprintf",
	"__asprintf*",
	"__vasprintf*",
	"_IO_vasprintf",
	/* what programs call their own */
	"xmalloc*",
	"xcalloc*",
	"xzalloc*",
	"xrealloc*",
	"x2realloc",
	"x2nrealloc",
	"xnmalloc",
	"xnrealloc",
	"xpalloc",
	"ximalloc",
	"xicalloc",
	"xirealloc",
	"xstrdup",
	"xstrndup",
	"xmemdup*",
	"xasprintf",
	"xvasprintf",
	"sh_xmalloc",
	"sh_xrealloc",
	"safe_malloc",
	"safe_calloc",
	"safe_realloc",
	/* C++ */
	"operator new*",
	"*::operator new",
	"*::operator new(*",
	"*::operator new[]*",
	"*std::allocator<*>::allocate*",
	"*std::allocator_traits<*>::allocate*",
	"*__gnu_cxx::new_allocator<*>::allocate*",
	"*std::__new_allocator<*>::allocate*",
	"*std::__allocate_guarded<*",
	"*std::_Vector_base<*>::_M_allocate*",
	"*std::_Deque_base<*>::_M_allocate_*",
	"*std::_Rb_tree<*>::_M_get_node*",
	"*std::__cxx11::_List_base<*>::_M_get_node*",
	"*std::__detail::_Hashtable_alloc<*>::_M_allocate_*",
	"std::__cxx11::basic_string<*>::_M_create*",
	/* Rust */
	"alloc::alloc::*",
	"<alloc::alloc::Global as *",
	"std::alloc::*",
	"__rust_alloc*",
	"__rust_realloc",
	"__rdl_alloc*",
	"__rdl_realloc",
	"alloc::raw_vec::*",
	/* Go */
	"runtime.mallocgc*",
	"runtime.newobject",
	"runtime.newarray",
	"runtime.makeslice*",
	"runtime.growslice",
	"runtime.rawstring*",
	"runtime.rawbyteslice",
	/* other allocators */
	"je_*alloc*",
	"je_*memalign",
	"mi_*alloc*",
	"mi_*dup",
	"tc_*alloc*",
	"tc_new*",
	/* glib */
	"g_malloc*",
	"g_realloc*",
	"g_try_malloc*",
	"g_try_realloc*",
	"g_strdup*",
	"g_strndup",
	"g_memdup*",
	"g_slice_alloc*",
	"g_aligned_alloc*",
	/* Python */
	"PyMem_*",
	"_PyMem_*",
	"PyObject_Malloc",
	"PyObject_Calloc",
	"PyObject_Realloc",
	"_PyObject_Malloc",
	"_PyObject_Calloc",
	"_PyObject_Realloc",
	"pymalloc_alloc",
	"_PyObject_GC_*",
	"PyType_GenericAlloc",
	"_PyType_AllocNoTrack",
	/* Perl, Ruby, PHP */
	"Perl_safesysmalloc",
	"Perl_safesyscalloc",
	"Perl_safesysrealloc",
	"ruby_x*alloc*",
	"rb_x*alloc*",
	"objspace_x*alloc*",
	"_emalloc*",
	"_ecalloc",
	"_erealloc*",
	"_safe_*malloc",
	"_estrdup",
	"_estrndup",
	"__zend_*alloc",
	/* HotSpot, V8, node */
	"os::malloc",
	"os::realloc",
	"os::strdup*",
	"AllocateHeap",
	"ReallocateHeap",
	"ArrayAllocator<*>::*allocate*",
	"MallocArrayAllocator<*>::*allocate*",
	"node::*alloc<*",
	"v8::base::*alloc",
	"v8::internal::AllocWithRetry*",
	"uv__*alloc",
	"uv__str*dup",
	/* redis, sqlite, gcc, OpenSSL, nginx, PostgreSQL, Lua */
	"zmalloc*",
	"zcalloc*",
	"zrealloc*",
	"ztrymalloc*",
	"ztrycalloc*",
	"ztryrealloc*",
	"zstrdup",
	"sqlite3*Malloc*",
	"sqlite3*Realloc*",
	"sqlite3_malloc*",
	"sqlite3_realloc*",
	"ggc_*alloc*",
	"CRYPTO_*alloc*",
	"CRYPTO_*dup",
	"ngx_alloc",
	"ngx_calloc",
	"ngx_memalign",
	"palloc*",
	"repalloc*",
	"pstrdup",
	"MemoryContextAlloc*",
	"l_alloc",
	"luaM_*alloc*",
};

bool incstack__is_allocator(const char *name, size_t length)
{
	for (size_t i = 0; i < sizeof(known) / sizeof(known[0]); i++)
		if ((known[i][0] == *name || known[i][0] == '*') &&
		    incstack__pattern_function(known[i], name, length))
			return true;
	return false;
}

/* ---- words ----------------------------------------------------------------------------- */

static bool is_lower(char c)
{
	return c >= 'a' && c <= 'z';
}

static bool is_upper(char c)
{
	return c >= 'A' && c <= 'Z';
}

/* Whether a word is one of those, after up to two letters such as the x of xmalloc. */
static bool is_word(const char *text, size_t length)
{
	static const char *const words[] = {"alloc",  "malloc",   "calloc",    "realloc",
					    "zalloc", "strdup",   "strndup",   "memalign",
					    "memdup", "allocate", "reallocate"};

	for (size_t i = 0; i < sizeof(words) / sizeof(words[0]); i++) {
		const size_t size = strlen(words[i]);

		if (length < size || length > size + 2 ||
		    memcmp(text + length - size, words[i], size) != 0)
			continue;
		return length != size + 2 || memcmp(text, "de", 2) != 0; /* dealloc */
	}
	return false;
}

/* Returns where the last part of a name begins: behind the namespaces, and the type that a template returns. */
static size_t last_part(const char *name, size_t length)
{
	size_t depth = 0, start = 0;

	for (size_t i = 0; i < length; i++) {
		depth += name[i] == '<';
		depth -= name[i] == '>' && depth;
		if (!depth && (name[i] == ':' || name[i] == ' ' || name[i] == '.'))
			start = i + 1;
	}
	return start;
}

bool incstack__sounds_like_allocator(const char *name, size_t length)
{
	char word[16];
	size_t used = 0;

	length = incstack__function_base(name, length);
	for (size_t i = last_part(name, length); i <= length; i++) {
		const char c = i < length && name[i] != '<' ? name[i] : '\0';
		const bool begins = is_upper(c) && i && is_lower(name[i - 1]);

		if (begins || (!is_lower(c) && !is_upper(c))) {
			if (is_word(word, used < sizeof(word) ? used : 0))
				return true;
			used = 0;
		}
		if (!c)
			return false;
		if (used < sizeof(word) && (is_lower(c) || is_upper(c)))
			word[used] = is_upper(c) ? (char)(c - 'A' + 'a') : c;
		used += is_lower(c) || is_upper(c);
	}
	return false;
}
