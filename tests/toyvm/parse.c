/* SPDX-License-Identifier: MIT
 *
 * Parses the toy language in one pass: tokens, declarations, and the tables of names. Statements
 * and expressions are in compile.c.
 */
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "parse.h"

void parse_fail(struct parser *p, const char *format, ...)
{
	va_list list;
	if (!p->error->line) {
		p->error->line = p->token_line;
		p->error->column = p->token_column;
		va_start(list, format);
		vsnprintf(p->error->what, sizeof(p->error->what), format, list);
		va_end(list);
	}
	longjmp(p->out, 1);
}

void parse_refuse(struct parser *p, const char *what)
{
	p->token_line = p->name_line;
	p->token_column = p->name_column;
	parse_fail(p, "%s", what);
}

static bool letter(int c)
{
	return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || c == '_';
}

static bool digit(int c)
{
	return c >= '0' && c <= '9';
}

static int look(const struct parser *p)
{
	return p->at < p->end ? (unsigned char)*p->at : -1;
}

static void skip_space(struct parser *p)
{
	for (int c = look(p); c == ' ' || c == '\t' || c == '\n' || c == '\r' || c == '#';
	     c = look(p)) {
		if (c == '#')
			while (look(p) != '\n' && look(p) >= 0)
				p->at++;
		else if (*p->at++ == '\n') {
			p->line++;
			p->line_start = p->at;
		}
	}
}

static void read_number(struct parser *p)
{
	p->number = 0;
	while (digit(look(p))) {
		p->number = p->number * 10 + (*p->at++ - '0');
		if (p->number > INT32_MAX)
			parse_fail(p, "the number is too large");
	}
	p->token = TOKEN_NUMBER;
}

static void read_name(struct parser *p)
{
	size_t n = 0;
	while (letter(look(p)) || digit(look(p))) {
		if (n == NAME_MAX_TOY - 1)
			parse_fail(p, "the name is too long");
		p->name[n++] = *p->at++;
	}
	p->name[n] = 0;
	p->token = TOKEN_NAME;
}

void parse_next(struct parser *p)
{
	skip_space(p);
	p->token_line = p->line;
	p->token_column = (int)(p->at - p->line_start) + 1;
	int c = look(p);
	if (c < 0) {
		p->token = TOKEN_END;
	} else if (digit(c)) {
		read_number(p);
	} else if (letter(c)) {
		read_name(p);
	} else {
		p->at++;
		int second = look(p);
		p->token = c;
		if (second == '=' && (c == '<' || c == '>' || c == '=' || c == '!')) {
			p->at++;
			p->token = c | TOKEN_WITH_EQUALS;
		} else if (!strchr("+-*/%&|^<>=!(){}[],;.:", c) || c == 0) {
			parse_fail(p, "a character that no token begins with");
		}
	}
}

bool parse_word(struct parser *p, const char *word)
{
	if (p->token != TOKEN_NAME || strcmp(p->name, word) != 0)
		return false;
	parse_next(p);
	return true;
}

bool parse_maybe(struct parser *p, int token)
{
	if (p->token != token)
		return false;
	parse_next(p);
	return true;
}

void parse_expect(struct parser *p, int token)
{
	if (!parse_maybe(p, token))
		parse_fail(p, "expected '%c'", token);
}

void parse_name(struct parser *p, char *name)
{
	if (p->token != TOKEN_NAME)
		parse_fail(p, "expected a name");
	strcpy(name, p->name);
	p->name_line = p->token_line;
	p->name_column = p->token_column;
	parse_next(p);
}

int parse_find(const struct names *names, const char *name)
{
	for (int i = 0; i < names->count; i++)
		if (!strcmp(names->name[i], name))
			return i;
	return -1;
}

int parse_add(struct parser *p, struct names *names, const char *name)
{
	if (names->count == NAMES_MAX)
		parse_fail(p, "too many names");
	strcpy(names->name[names->count], name);
	return names->count++;
}

int parse_selector(struct parser *p, const char *name)
{
	int i = parse_find(&p->selectors, name);
	if (i < 0)
		i = parse_add(p, &p->selectors, name);
	if (i >= SELECTORS_MAX)
		parse_fail(p, "too many names of methods");
	return i;
}

struct method *parse_method(struct parser *p, const char *name)
{
	for (int i = 0; i < p->program->method_count; i++)
		if (!strcmp(p->program->methods[i]->name, name))
			return p->program->methods[i];
	return NULL;
}

static struct method *add_method(struct parser *p, const char *name)
{
	struct program *program = p->program;
	if (parse_method(p, name))
		parse_refuse(p, "this exists already");
	if (program->method_count == METHODS_MAX)
		parse_fail(p, "too many methods");
	struct method *m = calloc(1, sizeof(*m));
	m->id = (uint32_t)program->method_count;
	strcpy(m->name, name);
	program->methods[program->method_count++] = m;
	return m;
}

/* Skips a body. The first pass reads only the heads of methods, so that bodies may call methods
 * that follow. */
static void skip_body(struct parser *p)
{
	int depth = 0;
	do {
		if (p->token == TOKEN_END)
			parse_fail(p, "a block is not closed");
		depth += (p->token == '{') - (p->token == '}');
		parse_next(p);
	} while (depth);
}

static void parameters(struct parser *p, struct method *m)
{
	char name[NAME_MAX_TOY];
	parse_expect(p, '(');
	while (p->token != ')') {
		parse_name(p, name);
		m->params++;
		parse_add(p, &p->locals, name);
		if (m->params > PARAMS_MAX)
			parse_fail(p, "more than %d parameters", PARAMS_MAX);
		if (p->token != ')')
			parse_expect(p, ',');
	}
	parse_next(p);
}

static void define(struct parser *p, struct class *class)
{
	char name[NAME_MAX_TOY], full[NAME_MAX_TOY];
	parse_name(p, name);
	p->locals.count = 0;
	if (class && snprintf(full, sizeof(full), "%.15s.%.15s", class->name, name) < 0)
		parse_fail(p, "bad name");
	struct method *m = p->bodies ? parse_method(p, class ? full : name)
				     : add_method(p, class ? full : name);
	if (!m)
		parse_fail(p, "unknown method");
	m->params = 0;
	if (class) {
		m->params = 1;
		parse_add(p, &p->locals, "this");
		class->own[parse_selector(p, name)] = true;
		class->table[parse_selector(p, name)] = (int16_t)m->id;
	}
	parameters(p, m);
	if (p->bodies)
		compile_body(p, m);
	else
		skip_body(p);
}

static void fields(struct parser *p, struct class *class)
{
	char name[NAME_MAX_TOY];
	do {
		parse_name(p, name);
		if (!p->bodies) {
			int i = parse_add(p, &p->fields, name);
			if (i >= FIELDS_MAX)
				parse_fail(p, "too many fields");
			p->field_index[i] = (int32_t) class->fields++;
		}
	} while (parse_maybe(p, ','));
	parse_expect(p, ';');
}

static void inherit(struct parser *p, struct class *class)
{
	char name[NAME_MAX_TOY];
	parse_name(p, name);
	int super = parse_find(&p->classes, name);
	if (super < 0 || &p->program->classes[super] == class)
		parse_refuse(p, "unknown class");
	if (p->bodies)
		return;
	class->super = (int16_t)super;
	class->fields = p->program->classes[super].fields;
	memcpy(class->table, p->program->classes[super].table, sizeof(class->table));
}

static void define_class(struct parser *p)
{
	char name[NAME_MAX_TOY];
	parse_name(p, name);
	int i = parse_find(&p->classes, name);
	if (i >= 0 && !p->bodies)
		parse_refuse(p, "this exists already");
	if (i < 0)
		i = parse_add(p, &p->classes, name);
	if (i >= CLASSES_MAX)
		parse_fail(p, "too many classes");
	struct class *class = &p->program->classes[i];
	if (!p->bodies) {
		strcpy(class->name, name);
		memset(class->table, -1, sizeof(class->table));
		class->super = -1;
		p->program->class_count = i + 1;
	}
	if (parse_maybe(p, ':'))
		inherit(p, class);
	parse_expect(p, '{');
	while (!parse_maybe(p, '}')) {
		if (parse_word(p, "field"))
			fields(p, class);
		else if (parse_word(p, "def"))
			define(p, class);
		else
			parse_fail(p, "expected 'field' or 'def'");
	}
}

static void define_global(struct parser *p)
{
	char name[NAME_MAX_TOY];
	do {
		parse_name(p, name);
		if (!p->bodies && parse_add(p, &p->globals, name) >= GLOBALS_MAX)
			parse_fail(p, "too many globals");
	} while (parse_maybe(p, ','));
	parse_expect(p, ';');
}

static void whole(struct parser *p, bool bodies)
{
	p->bodies = bodies;
	p->at = p->line_start = p->begin;
	p->line = 1;
	parse_next(p);
	while (p->token != TOKEN_END) {
		if (parse_word(p, "def"))
			define(p, NULL);
		else if (parse_word(p, "class"))
			define_class(p);
		else if (parse_word(p, "global"))
			define_global(p);
		else
			parse_fail(p, "expected 'def', 'class' or 'global'");
	}
}

static void add_natives(struct parser *p)
{
	add_method(p, "(base)");
	for (const struct native *n = natives; n->name; n++) {
		struct method *m = add_method(p, n->name);
		m->native = n->function;
		m->params = m->locals = m->slots = n->params;
	}
}

struct program *program_parse(const char *text, size_t length, struct parse_error *error)
{
	*error = (struct parse_error){0};
	struct parser *p = calloc(1, sizeof(*p));
	struct program *program = p->program = calloc(1, sizeof(*program));
	p->begin = text;
	p->end = text + length;
	p->error = error;
	if (!setjmp(p->out)) {
		add_natives(p);
		whole(p, false);
		whole(p, true);
		program->main = parse_method(p, "main");
		if (!program->main || program->main->params != 1 || program->main->native)
			parse_fail(p, "no 'def main(n)'");
		program->globals = p->globals.count;
	}
	free(p);
	if (error->line) {
		program_free(program);
		return NULL;
	}
	return program;
}

void program_free(struct program *p)
{
	for (int i = 0; i < p->method_count; i++) {
		free(p->methods[i]->body);
		free(p->methods[i]->handlers);
		free(p->methods[i]);
	}
	free(p);
}
