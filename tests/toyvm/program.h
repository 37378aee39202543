/* SPDX-License-Identifier: MIT
 *
 * A program of the toy language after parsing: methods of bytecode, classes with
 * their dispatch tables. README.md describes the language.
 */
#ifndef TOYVM_PROGRAM_H
#define TOYVM_PROGRAM_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* Odd: an integer, shifted left by one. Even: a reference. 0: null. */
typedef uint64_t value;
static inline value value_of(int64_t i)
{
	return (uint64_t)i << 1 | 1;
}
static inline int64_t int_of(value v)
{
	return (int64_t)v >> 1;
}
static inline bool is_int(value v)
{
	return v & 1;
}

enum op {
	OP_CONST, /* a: the integer */
	OP_NULL,
	OP_LOAD, /* a: local */
	OP_STORE,
	OP_POP,
	OP_GLOAD, /* a: global */
	OP_GSTORE,
	OP_ADD,
	OP_SUB,
	OP_MUL,
	OP_DIV,
	OP_MOD,
	OP_AND,
	OP_OR,
	OP_XOR,
	OP_LT,
	OP_LE,
	OP_EQ,
	OP_NE,
	OP_NOT,
	OP_NEW,   /* a: class */
	OP_ARRAY, /* length -> array */
	OP_LEN,
	OP_ALOAD,
	OP_ASTORE,
	OP_FLOAD, /* a: field */
	OP_FSTORE,
	OP_FUEL,  /* -> what is left of the fiber's fuel, after taking one */
	OP_SPAWN, /* method, argument -> 0: starts a fiber */
	OP_PRINT,
	OP_JMP, /* a: target, forward */
	OP_JZ,
	OP_LOOP,  /* a: target, backward; polls */
	OP_CALL,  /* a: method, b: arguments */
	OP_CALLV, /* a: selector, b: arguments, the receiver first */
	OP_YIELD, /* -> 0: polls, and lets other fibers run */
	OP_RET,   /* polls */
	OP_THROW,
	OP_ENTER, /* only of instrumented methods: reports that the method begins */
	OP_EXIT,  /* that it returns */
};

struct instruction {
	uint8_t op;
	uint8_t b;
	uint16_t depth; /* values on the operand stack before it */
	int32_t a;
};

/* Thrown in [from, to): the value goes to a local, control to target. */
struct handler {
	int32_t from, to, target, local;
};

enum {
	PARAMS_MAX = 4,
	NAME_MAX_TOY = 32,
	METHODS_MAX = 256,
	CLASSES_MAX = 64,
	SELECTORS_MAX = 64,
	FIELDS_MAX = 128,
	GLOBALS_MAX = 64,
	SLOTS_MAX = 64, /* of one frame: locals and operand stack */
};

struct fiber;
struct blob;

struct method {
	_Atomic uintptr_t entry_interpreted; /* arguments in fiber->args */
	_Atomic uintptr_t entry_compiled;    /* arguments in registers */
	_Atomic uintptr_t code;              /* the compiled body, behind both */
	_Atomic(struct blob *) blob;         /* 0: interpreted */
	value (*native)(struct fiber *f);    /* its arguments are in its frame */
	uint32_t id;                         /* index; 0 is the frame at the base of a fiber */
	uint32_t params, locals, slots;
	_Atomic uint32_t calls;
	struct instruction *body;
	int32_t count;
	struct handler *handlers; /* inner before outer */
	int32_t handler_count;
	char name[NAME_MAX_TOY];
	/* The meter's method, if this version of the method is instrumented. */
	struct incstack_meter_method *meter;
	_Atomic uint64_t frames, events; /* of an instrumented version: they must be equal */
	uint64_t frozen; /* frames when another version took its place: no more may come */
};

struct class
{
	char name[NAME_MAX_TOY];
	uint32_t fields;
	int16_t table[SELECTORS_MAX]; /* method by selector, -1: none */
	bool own[SELECTORS_MAX];      /* the class itself has the method */
	int16_t super;                /* -1: none */
	_Atomic bool
		is_loaded; /* an object of it or of a subclass was made, while methods are instrumented */
	_Atomic bool is_seen; /* an object of just this class was made */
};

struct program {
	struct method *methods[METHODS_MAX];
	int32_t method_count;
	struct class classes[CLASSES_MAX];
	int32_t class_count;
	int32_t globals;
	struct method *main;
};

struct parse_error {
	int line, column; /* from 1 */
	char what[96];
};

/* The program in a text; null after an error. */
struct program *program_parse(const char *text, size_t length, struct parse_error *error);
void program_free(struct program *p);

/* A random program that ends, from a seed; the caller frees the text. */
char *program_generate(uint64_t seed);

/* The native methods of the language, in a table that ends with a null name. */
struct native {
	const char *name;
	uint32_t params;
	value (*function)(struct fiber *f);
};
extern const struct native natives[];

static inline uint64_t random_next(uint64_t *state)
{
	*state += 0x9e3779b97f4a7c15u;
	uint64_t z = *state;
	z = (z ^ z >> 30) * 0xbf58476d1ce4e5b9u;
	z = (z ^ z >> 27) * 0x94d049bb133111ebu;
	return z ^ z >> 31;
}
static inline uint32_t random_below(uint64_t *state, uint32_t n)
{
	return (uint32_t)((random_next(state) >> 32) * n >> 32);
}

#endif
