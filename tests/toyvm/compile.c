/* SPDX-License-Identifier: MIT
 *
 * Compiles statements and expressions of the toy language to bytecode while they are read. Jumps
 * only leave statements, so the operand stack is empty at each label.
 */
#include <stdlib.h>
#include <string.h>

#include "parse.h"

enum { NESTING_MAX = 64 };

static void expression(struct parser *p);
static void block(struct parser *p);

static int32_t here(const struct parser *p)
{
	return p->method->count;
}

/* Appends an instruction. `change` is how it changes the depth of the operand stack. */
static int32_t emit(struct parser *p, enum op op, int64_t a, uint32_t b, int change)
{
	struct method *m = p->method;
	if (m->count == INT16_MAX)
		parse_fail(p, "the method is too long");
	if (!(m->count & (m->count + 1)))
		m->body = realloc(m->body, sizeof(*m->body) * 2 * (size_t)(m->count + 1));
	m->body[m->count] =
		(struct instruction){(uint8_t)op, (uint8_t)b, (uint16_t)p->depth, (int32_t)a};
	p->depth += (uint32_t)change;
	if (m->slots < p->depth)
		m->slots = p->depth; /* the locals are added at the end */
	return m->count++;
}

static void land(struct parser *p, int32_t jump)
{
	p->method->body[jump].a = here(p);
}

static uint32_t arguments(struct parser *p, uint32_t count)
{
	while (p->token != ')') {
		expression(p);
		if (++count > PARAMS_MAX)
			parse_fail(p, "more than %d arguments", PARAMS_MAX);
		if (p->token != ')')
			parse_expect(p, ',');
	}
	parse_next(p);
	return count;
}

static bool built_in(struct parser *p, const char *name)
{
	static const struct {
		const char *name;
		enum op op;
		uint32_t params;
	} table[] = {{"array", OP_ARRAY, 1}, {"len", OP_LEN, 1},     {"fuel", OP_FUEL, 0},
		     {"spawn", OP_SPAWN, 2}, {"print", OP_PRINT, 1}, {"yield", OP_YIELD, 0}};
	for (size_t i = 0; i < sizeof(table) / sizeof(table[0]); i++) {
		if (strcmp(table[i].name, name) != 0)
			continue;
		if (arguments(p, 0) != table[i].params)
			parse_fail(p, "'%s' takes %u arguments", name, table[i].params);
		emit(p, table[i].op, 0, 0, 1 - (int)table[i].params);
		return true;
	}
	return false;
}

static void call(struct parser *p, const char *name)
{
	if (built_in(p, name))
		return;
	const struct method *m = parse_method(p, name);
	if (!m)
		parse_refuse(p, "unknown method");
	uint32_t count = arguments(p, 0);
	if (count != m->params)
		parse_fail(p, "'%s' takes %u arguments", name, m->params);
	emit(p, OP_CALL, m->id, count, 1 - (int)count);
}

static void variable(struct parser *p, const char *name)
{
	int i = parse_find(&p->locals, name);
	if (i >= 0) {
		emit(p, OP_LOAD, i, 0, 1);
		return;
	}
	i = parse_find(&p->globals, name);
	if (i < 0)
		parse_refuse(p, "unknown variable");
	emit(p, OP_GLOAD, i, 0, 1);
}

static void method_number(struct parser *p)
{
	char name[NAME_MAX_TOY];
	parse_name(p, name);
	const struct method *m = parse_method(p, name);
	if (!m || m->native)
		parse_refuse(p, "unknown method");
	if (m->params != 1)
		parse_fail(p, "'%s' must take one argument", name);
	emit(p, OP_CONST, m->id, 0, 1);
}

static void new_object(struct parser *p)
{
	char name[NAME_MAX_TOY];
	parse_name(p, name);
	int i = parse_find(&p->classes, name);
	if (i < 0)
		parse_refuse(p, "unknown class");
	parse_expect(p, '(');
	parse_expect(p, ')');
	emit(p, OP_NEW, i, 0, 1);
}

static void primary(struct parser *p)
{
	char name[NAME_MAX_TOY];
	if (p->token == TOKEN_NUMBER) {
		emit(p, OP_CONST, p->number, 0, 1);
		parse_next(p);
	} else if (parse_maybe(p, '(')) {
		expression(p);
		parse_expect(p, ')');
	} else if (parse_maybe(p, '&')) {
		method_number(p);
	} else if (parse_word(p, "new")) {
		new_object(p);
	} else if (parse_word(p, "null")) {
		emit(p, OP_NULL, 0, 0, 1);
	} else {
		if (p->token != TOKEN_NAME)
			parse_fail(p, "expected an expression");
		parse_name(p, name);
		if (parse_maybe(p, '('))
			call(p, name);
		else
			variable(p, name);
	}
}

static int32_t field(struct parser *p, const char *name)
{
	int i = parse_find(&p->fields, name);
	if (i < 0)
		parse_refuse(p, "unknown field");
	return p->field_index[i];
}

static void postfix(struct parser *p)
{
	char name[NAME_MAX_TOY];
	primary(p);
	for (;;) {
		if (parse_maybe(p, '[')) {
			expression(p);
			parse_expect(p, ']');
			emit(p, OP_ALOAD, 0, 0, -1);
		} else if (parse_maybe(p, '.')) {
			parse_name(p, name);
			if (parse_maybe(p, '(')) {
				uint32_t count = arguments(p, 1);
				emit(p, OP_CALLV, parse_selector(p, name), count, 1 - (int)count);
			} else {
				emit(p, OP_FLOAD, field(p, name), 0, 0);
			}
		} else {
			return;
		}
	}
}

static void unary(struct parser *p)
{
	if (++p->nesting > NESTING_MAX)
		parse_fail(p, "nested too deeply");
	if (parse_maybe(p, '!')) {
		unary(p);
		emit(p, OP_NOT, 0, 0, 0);
	} else if (parse_maybe(p, '-')) {
		emit(p, OP_CONST, 0, 0, 1);
		unary(p);
		emit(p, OP_SUB, 0, 0, -1);
	} else {
		postfix(p);
	}
	p->nesting--;
}

struct operator
{
	int token, level;
	enum op op;
	bool negated;
};

static const struct operator* find_operator(int token)
{
	static const struct operator table[] = {
		{'*', 4, OP_MUL, false},
		{'/', 4, OP_DIV, false},
		{'%', 4, OP_MOD, false},
		{'+', 3, OP_ADD, false},
		{'-', 3, OP_SUB, false},
		{'&', 2, OP_AND, false},
		{'|', 2, OP_OR, false},
		{'^', 2, OP_XOR, false},
		{'<', 1, OP_LT, false},
		{'>', 1, OP_LE, true},
		{'<' | TOKEN_WITH_EQUALS, 1, OP_LE, false},
		{'>' | TOKEN_WITH_EQUALS, 1, OP_LT, true},
		{'=' | TOKEN_WITH_EQUALS, 1, OP_EQ, false},
		{'!' | TOKEN_WITH_EQUALS, 1, OP_NE, false},
	};
	for (size_t i = 0; i < sizeof(table) / sizeof(table[0]); i++)
		if (table[i].token == token)
			return &table[i];
	return NULL;
}

static void binary(struct parser *p, int level)
{
	unary(p);
	const struct operator* o;
	while ((o = find_operator(p->token)) && o->level >= level) {
		parse_next(p);
		binary(p, o->level + 1);
		emit(p, o->op, 0, 0, -1);
		if (o->negated)
			emit(p, OP_NOT, 0, 0, 0);
	}
}

static void expression(struct parser *p)
{
	binary(p, 1);
}

static int declare(struct parser *p, const char *name)
{
	int i = parse_find(&p->locals, name);
	if (i < 0)
		i = parse_add(p, &p->locals, name);
	return i;
}

/* Turns the expression that was just compiled into the left side of '=': its load becomes a
 * store. */
static void assign(struct parser *p)
{
	struct method *m = p->method;
	struct instruction last = m->body[m->count - 1];
	if (last.op != OP_LOAD && last.op != OP_GLOAD && last.op != OP_ALOAD && last.op != OP_FLOAD)
		parse_fail(p, "this cannot be assigned to");
	m->count--;
	p->depth = last.depth;
	parse_next(p);
	expression(p);
	parse_expect(p, ';');
	enum op op = (enum op)(last.op + 1);
	emit(p, op, last.a, 0, last.op == OP_ALOAD ? -3 : last.op == OP_FLOAD ? -2 : -1);
}

static void branch(struct parser *p)
{
	parse_expect(p, '(');
	expression(p);
	parse_expect(p, ')');
	int32_t otherwise = emit(p, OP_JZ, 0, 0, -1);
	block(p);
	if (parse_word(p, "else")) {
		int32_t end = emit(p, OP_JMP, 0, 0, 0);
		land(p, otherwise);
		if (parse_word(p, "if"))
			branch(p);
		else
			block(p);
		land(p, end);
	} else {
		land(p, otherwise);
	}
}

static void loop(struct parser *p)
{
	int32_t start = here(p);
	parse_expect(p, '(');
	expression(p);
	parse_expect(p, ')');
	int32_t end = emit(p, OP_JZ, 0, 0, -1);
	block(p);
	emit(p, OP_LOOP, start, 0, 0);
	land(p, end);
}

static void try(struct parser *p)
{
	char name[NAME_MAX_TOY];
	struct handler h = {.from = here(p)};
	block(p);
	int32_t end = emit(p, OP_JMP, 0, 0, 0);
	h.to = h.target = here(p);
	if (!parse_word(p, "catch"))
		parse_fail(p, "expected 'catch'");
	parse_expect(p, '(');
	parse_name(p, name);
	parse_expect(p, ')');
	h.local = declare(p, name);
	struct method *m = p->method;
	m->handlers = realloc(m->handlers, sizeof(h) * (size_t)(m->handler_count + 1));
	m->handlers[m->handler_count++] = h;
	block(p);
	land(p, end);
}

static void simple(struct parser *p)
{
	char name[NAME_MAX_TOY];
	if (parse_word(p, "var")) {
		parse_name(p, name);
		parse_expect(p, '=');
		expression(p);
		emit(p, OP_STORE, declare(p, name), 0, -1);
	} else if (parse_word(p, "return")) {
		expression(p);
		emit(p, OP_RET, 0, 0, -1);
	} else if (parse_word(p, "throw")) {
		expression(p);
		emit(p, OP_THROW, 0, 0, -1);
	} else {
		expression(p);
		if (p->token == '=') {
			assign(p);
			return;
		}
		emit(p, OP_POP, 0, 0, -1);
	}
	parse_expect(p, ';');
}

static void statement(struct parser *p)
{
	if (++p->nesting > NESTING_MAX)
		parse_fail(p, "nested too deeply");
	if (parse_word(p, "if"))
		branch(p);
	else if (parse_word(p, "while"))
		loop(p);
	else if (parse_word(p, "try"))
		try(p);
	else
		simple(p);
	p->nesting--;
}

static void block(struct parser *p)
{
	parse_expect(p, '{');
	while (!parse_maybe(p, '}'))
		statement(p);
}

void compile_body(struct parser *p, struct method *m)
{
	p->method = m;
	p->depth = 0;
	block(p);
	emit(p, OP_CONST, 0, 0, 1);
	emit(p, OP_RET, 0, 0, -1);
	m->locals = (uint32_t)p->locals.count;
	m->slots += m->locals;
	if (m->slots > SLOTS_MAX)
		parse_fail(p, "the method needs too large a frame");
}
