/* SPDX-License-Identifier: MIT
 *
 * Makes random programs as text. Every program ends: recursion decreases d and stops without fuel,
 * and all loops are counted.
 */
#include <stdio.h>
#include <stdlib.h>

#include "program.h"

struct generator {
	FILE *out;
	uint64_t random;
	uint32_t functions, classes;
	int loops, temporaries; /* numbers of the names in use */
	int nesting;
};

static uint32_t below(struct generator *g, uint32_t n)
{
	return random_below(&g->random, n);
}

static void amount(struct generator *g)
{
	static const char *const amounts[] = {"s + 1",  "s - x",     "(s ^ x) + d",
					      "s % 97", "s * 3 + x", "x"};
	fputs(amounts[below(g, 6)], g->out);
}

static void call(struct generator *g)
{
	uint32_t kind = below(g, 16), target = below(g, g->functions);
	if (kind < 9) {
		fprintf(g->out, "s = s + f%u(d - 1, ", target);
		amount(g);
		fputs(");\n", g->out);
	} else if (kind < 13) {
		uint32_t class = below(g, g->classes);
		fprintf(g->out, "var o = new C%u();\no.value = s;\ns = s + o.v%u(d - 1, x);\n",
			class, below(g, 2));
	} else if (kind < 15) {
		/* A fiber with native frames stays on its thread. So most native calls
		 * are made near the top. */
		fprintf(g->out,
			"if (d < %u) { s = s + %s(&g%u, d - 1); }\nelse { s = s + f%u(d - 1, x); "
			"}\n",
			below(g, 4) ? 16 : 40, kind == 13 ? "apply" : "guard", target, target);
	} else {
		fprintf(g->out, "if (3 < d) { s = s + each(&g%u, 2 + d %% 2); }\n", target);
	}
}

static void statements(struct generator *g);

static void loop(struct generator *g)
{
	int i = g->loops++;
	fprintf(g->out, "var i%d = 0;\nwhile (i%d < %u) {\n", i, i, 1 + below(g, 4));
	statements(g);
	fprintf(g->out, "i%d = i%d + 1;\n}\n", i, i);
	g->loops--;
}

static void array(struct generator *g)
{
	int i = g->temporaries++ % 4;
	fprintf(g->out, "var a%d = array(%u);\n", i, 1 + below(g, 6));
	call(g);
	fprintf(g->out, "a%d[%u] = s;\ns = s + a%d[0];\n", i, below(g, 5) ? 0 : 3, i);
}

static void statement(struct generator *g)
{
	bool deep = g->nesting > 2;
	switch (below(g, 12)) {
	case 0:
	case 1:
		if (!deep)
			loop(g);
		break;
	case 2:
		if (!deep) {
			fputs("try {\n", g->out);
			statements(g);
			fputs("} catch (e) {\n", g->out);
			statements(g);
			fputs("}\n", g->out);
		}
		break;
	case 3:
		fprintf(g->out, "if (s %% %u == 0) { throw s; }\n", 5 + below(g, 30));
		break;
	case 4:
		array(g);
		break;
	case 5:
		fputs(below(g, 4) ? "s = s + x;\n" : "yield();\n", g->out);
		break;
	case 6:
		fprintf(g->out, "s = s / (x %% %u + 1);\n", 3 + below(g, 20));
		break;
	case 7:
		if (!deep) {
			fputs("if (s % 2 == 0) {\n", g->out);
			statements(g);
			fputs("} else {\n", g->out);
			call(g);
			fputs("}\n", g->out);
		}
		break;
	default:
		call(g);
	}
}

static void statements(struct generator *g)
{
	g->nesting++;
	for (uint32_t i = 1 + below(g, 3); i > 0; i--)
		statement(g);
	g->nesting--;
}

static void body(struct generator *g)
{
	fputs("if (d < 1) { return x; }\nif (fuel() < 1) { return x; }\nvar s = x;\n", g->out);
	g->nesting = g->loops = g->temporaries = 0;
	statements(g);
	if (below(g, 2))
		call(g);
	fputs("return s;\n}\n", g->out);
}

static void functions(struct generator *g, uint32_t i)
{
	fprintf(g->out, "def f%u(d, x) {\n", i);
	body(g);
	fprintf(g->out, "def g%u(d) { return f%u(d, %u); }\n", i, i, below(g, 50));
	fprintf(g->out, "def h%u(i) {\nif (fuel() < 1) { return i; }\nreturn g%u(6 + i * 5);\n}\n",
		i, below(g, g->functions));
}

static void class(struct generator *g, uint32_t i)
{
	fprintf(g->out, "class C%u%s {\n", i, i ? " : C0" : "");
	if (!i)
		fputs("field value;\n", g->out);
	for (uint32_t v = 0; v < 2; v++) {
		if (i && below(g, 3) == 0)
			continue;
		fprintf(g->out, "def v%u(d, x) {\n", v);
		body(g);
	}
	fputs("}\n", g->out);
}

char *program_generate(uint64_t seed)
{
	char *text = NULL;
	size_t size = 0;
	struct generator g = {.random = seed};
	g.out = open_memstream(&text, &size);
	if (!g.out)
		return NULL;
	g.functions = 2 + below(&g, 8);
	g.classes = 1 + below(&g, 4);
	for (uint32_t i = 0; i < g.classes; i++)
		class(&g, i);
	for (uint32_t i = 0; i < g.functions; i++)
		functions(&g, i);
	fputs("def start(n) {\nwhile (0 < fuel()) {\n", g.out);
	for (int i = 0; i < 4; i++)
		fprintf(g.out, "try { print(f%u(n, %d)); } catch (e) { print(e); }\n",
			below(&g, g.functions), i);
	fputs("}\nreturn 0;\n}\ndef main(n) {\n", g.out);
	for (uint32_t i = 3 + below(&g, 4); i > 0; i--)
		fprintf(g.out, "spawn(&start, n - %u);\n", 2 * i);
	fputs("return start(n);\n}\n", g.out);
	fclose(g.out);
	return text;
}
