/* SPDX-License-Identifier: MIT
 *
 * The state of the parser, which parse.c and compile.c share.
 */
#ifndef TOYVM_PARSE_H
#define TOYVM_PARSE_H

#include <setjmp.h>

#include "program.h"

enum { TOKEN_END = -1, TOKEN_NUMBER = 0x100, TOKEN_NAME, TOKEN_WITH_EQUALS = 0x200 };
enum { NAMES_MAX = 128 };

struct names {
	char name[NAMES_MAX][NAME_MAX_TOY];
	int count;
};

struct parser {
	const char *begin, *at, *end, *line_start;
	int line, token_line, token_column;
	int name_line, name_column; /* of the name that was read last */
	int token;
	int64_t number;
	char name[NAME_MAX_TOY];
	bool bodies; /* the second pass */
	struct program *program;
	struct method *method;
	struct names selectors, classes, fields, globals, locals;
	int32_t field_index[FIELDS_MAX];
	uint32_t depth; /* of the operand stack */
	int nesting;    /* of statements and expressions */
	struct parse_error *error;
	jmp_buf out;
};

_Noreturn void parse_fail(struct parser *p, const char *format, ...)
	__attribute__((format(printf, 2, 3)));
/* The same for the name that was read last. */
_Noreturn void parse_refuse(struct parser *p, const char *what);
void parse_next(struct parser *p);
bool parse_word(struct parser *p, const char *word);
bool parse_maybe(struct parser *p, int token);
void parse_expect(struct parser *p, int token);
void parse_name(struct parser *p, char *name);
int parse_find(const struct names *names, const char *name);
int parse_add(struct parser *p, struct names *names, const char *name);
int parse_selector(struct parser *p, const char *name);
struct method *parse_method(struct parser *p, const char *name);

/* compile.c: compiles the block of m. */
void compile_body(struct parser *p, struct method *m);

#endif
