/* SPDX-License-Identifier: MIT
 *
 * Tests random unwind tables: the reader of .eh_frame and libunwind must agree at each address of
 * a function whose CIE and FDE are made from a seed.
 *
 * test_cfi_random COUNT [SEED]: compares only that many tables.
 */
#include <incstack/native.h>

#include "cfi_made.h"
#include "../unit/run_suite.h"

/* ---- the comparison --------------------------------------------------------------- */

struct sums {
	unsigned long asked, refused; /* refused: by our reader alone */
	unsigned long kinds[INCSTACK_RULE_END + 1];
};

/* Whether our reader finds what libunwind finds, or no rule where that is allowed. */
static bool agree(size_t at, bool may_refuse, struct sums *sums)
{
	struct incstack_rule own, other;
	bool other_knows;
	const bool known = ask_both(at, &own, &other, &other_knows);

	sums->asked++;
	sums->refused += !known && other_knows;
	if (known) {
		sums->kinds[own.kind]++;
		/* libunwind does not report that a function changes its return address. */
		own.flags &= ~(uint32_t)INCSTACK_RULE_RETURN_CHANGES;
	}
	if (known ? other_knows && memcmp(&own, &other, sizeof(own)) == 0
		  : may_refuse || !other_knows)
		return true;
	fprintf(stderr, "at %zu\n", at);
	show("own", known, &own);
	show("libunwind", other_knows, &other);
	dump("CIE", &cie);
	dump("FDE", &fde);
	return false;
}

static bool compare(bool may_refuse, struct sums *sums)
{
	put_length(&fde);
	for (size_t i = 0; i < CODE_BYTES; i++)
		if (!agree(i, may_refuse, sums))
			return false;
	return true;
}

/* ---- random tables ------------------------------------------------------------------ */

static uint64_t random_state;
/* Anything that libunwind may know; otherwise only what the reader must know, too. */
static bool wild;
static bool computed; /* the CFA was computed, so it is always defined as a whole again */
static struct form form;

static uint64_t draw(uint64_t limit)
{
	random_state = random_state * 6364136223846793005u + 1442695040888963407u;
	return (random_state >> 20) % limit;
}

/* Mostly those that a rule is made of. */
static unsigned any_register(void)
{
	static const unsigned char registers[] = {FP, FP, FP, RA, RA, 3, 12, 15, 0, 10, SP};

	if (draw(200) == 0)
		return 17 + (unsigned)draw(16);
	return registers[draw(sizeof(registers) - !wild)];
}

static unsigned any_base(void)
{
	return wild && draw(40) == 0 ? 10 : draw(2) ? SP : FP;
}

static int64_t any_offset(void)
{
	switch (draw(12)) {
	case 0:
		return 65528 + 8 * (int64_t)draw(3);
	case 1:
		return (int64_t)draw(1 << 20);
	case 2:
		return INT64_C(0x7ffffff8) + 8 * (int64_t)draw(2);
	default:
		return 8 * (int64_t)draw(64);
	}
}

/* In data units, of either sign now and then. */
static int64_t any_factored(void)
{
	switch (draw(wild ? 16 : 15)) {
	case 0:
		return 8190 + (int64_t)draw(4);
	case 15:
		return -(int64_t)draw(20);
	default:
		return (int64_t)draw(20);
	}
}

static void put_expression(struct code *c, unsigned kind)
{
	struct code e = {(unsigned char[32]){0}, NULL};

	e.at = e.start;
	if (kind == 3) { /* of a PLT entry */
		static const unsigned char plt[] = {0x77, 8,    0x80, 0,    0x3f, 0x1a,
						    0x3b, 0x2a, 0x33, 0x24, 0x22};
		put_bytes(&e, plt, sizeof(plt));
	} else {
		put(&e, 0x70 + any_base());
		put_signed(&e, 8 * (int64_t)draw(40) - 160);
		if (kind == 1) /* what is stored there */
			put(&e, 0x06);
		if (kind == 2) {
			put(&e, 0x23);
			put_unsigned(&e, 8 * draw(100));
		}
	}
	put_unsigned(c, (uint64_t)(e.at - e.start));
	put_bytes(c, e.start, (size_t)(e.at - e.start));
}

static void put_cfa(struct code *c)
{
	switch (draw(wild ? 7 : computed ? 2 : 6)) {
	case 0:
		put(c, DEF_CFA);
		put_unsigned(c, any_base());
		put_unsigned(c, (uint64_t)any_offset());
		break;
	case 1:
		put(c, DEF_CFA_SIGNED);
		put_unsigned(c, any_base());
		put_signed(c, form.data_unit < 0 ? -any_factored() : any_factored());
		break;
	case 2:
		put(c, DEF_CFA_REGISTER);
		put_unsigned(c, any_base());
		break;
	case 3:
		put(c, DEF_CFA_OFFSET_SIGNED);
		put_signed(c, form.data_unit < 0 ? -any_factored() : any_factored());
		break;
	case 6:
		put(c, DEF_CFA_EXPRESSION);
		put_expression(c, (unsigned)draw(4));
		break;
	default:
		put(c, DEF_CFA_OFFSET);
		put_unsigned(c, (uint64_t)any_offset());
	}
}

static void put_saved(struct code *c)
{
	const unsigned number = any_register();
	const unsigned restores = c == &cie ? 0 : 3; /* the data of a CIE */

	switch (draw(7 + restores)) {
	case 0:
		put(c, OFFSET_EXTENDED);
		put_unsigned(c, number);
		put_unsigned(c, draw(20) ? draw(20) : 8190 + draw(4));
		break;
	case 1:
		put(c, OFFSET_EXTENDED_SIGNED);
		put_unsigned(c, number);
		put_signed(c, any_factored());
		break;
	case 2:
		put(c, draw(3) ? SAME_VALUE : UNDEFINED);
		put_unsigned(c, number);
		break;
	case 3:
		put(c, EXPRESSION);
		put_unsigned(c, number);
		put_expression(c, (unsigned)draw(4));
		break;
	case 4:
		put(c, draw(2) ? IN_REGISTER : VAL_EXPRESSION);
		put_unsigned(c, wild ? number : 3);
		if (c->at[-2] == IN_REGISTER)
			put_unsigned(c, any_register());
		else
			put_expression(c, 0);
		break;
	case 7:
		put(c, RESTORE_EXTENDED);
		put_unsigned(c, number);
		break;
	case 8:
	case 9:
		put(c, RESTORE | (number & 0x3f));
		break;
	default:
		put(c, OFFSET | (number & 0x3f));
		put_unsigned(c, draw(20) ? draw(20) : 8190 + draw(4));
	}
}

/* As compilers do where they align the stack: the CFA is stored in the frame. */
static void put_realigned(struct code *c)
{
	static const unsigned char saved[] = {EXPRESSION, FP, 2, 0x76, 0};

	put_bytes(c, saved, sizeof(saved));
	put(c, OFFSET | RA);
	put_unsigned(c, 1);
	put(c, DEF_CFA_EXPRESSION);
	put_expression(c, 1);
	computed = true;
}

static void put_advance(struct code *c)
{
	const unsigned units = 1 + (unsigned)draw(8);

	switch (draw(5)) {
	case 0:
		put(c, ADVANCE_1);
		put(c, units);
		break;
	case 1:
		put(c, ADVANCE_2);
		put_bytes(c, &(uint16_t){(uint16_t)units}, 2);
		break;
	case 2:
		put(c, ADVANCE_4);
		put_bytes(c, &(uint32_t){units}, 4);
		break;
	default:
		put(c, ADVANCE | units);
	}
}

static struct form any_form(void)
{
	static const char *const letters[] = {"zR", "zR", "zR", "zPLR", "zRS", "zLR", "z", ""};
	static const unsigned char encodings[] = {FROM_HERE_4, FROM_HERE_8, ABSOLUTE};
	static const signed char units[] = {-8, -8, -8, -4, 8, -1};

	return (struct form){letters[draw(8)], draw(4) ? 1 : 3, encodings[draw(3)],
			     draw(4) ? 1 : (unsigned)draw(4) + 1, units[draw(6)]};
}

static void put_state(struct code *c, unsigned *depth)
{
	const bool restores = *depth > 0 && (*depth == 8 || draw(3) == 0);

	put(c, restores ? RESTORE_STATE : REMEMBER_STATE);
	*depth += restores ? -1U : 1;
}

static void put_nothing(struct code *c)
{
	if (draw(2)) {
		put(c, NOP);
		return;
	}
	put(c, ARGUMENTS_SIZE);
	put_unsigned(c, draw(1000));
}

static void put_any(struct code *c, unsigned *depth)
{
	const uint64_t what = draw(64);

	if (what < 20)
		put_advance(c);
	else if (what < 32)
		put_cfa(c);
	else if (what < 48)
		put_saved(c);
	else if (what < 60)
		put_state(c, depth);
	else if (what < 61)
		put_realigned(c);
	else
		put_nothing(c);
}

static void make_random(void)
{
	unsigned depth = 0;

	form = any_form();
	computed = false;
	begin_cie(&form);
	put(&cie, DEF_CFA);
	put_unsigned(&cie, SP);
	put_unsigned(&cie, 8);
	put(&cie, OFFSET_EXTENDED_SIGNED);
	put_unsigned(&cie, RA);
	put_signed(&cie, -8 / form.data_unit);
	for (uint64_t i = draw(3); i > 0; i--)
		put_saved(&cie);
	begin_fde(&form);
	for (uint64_t i = 1 + draw(30); i > 0; i--)
		put_any(&fde, &depth);
}

static bool random_tables(unsigned long count, uint64_t seed, struct sums *sums)
{
	for (uint64_t i = seed; i < seed + count; i++) {
		random_state = i;
		wild = i % 2 == 0;
		make_random();
		if (!compare(wild, sums)) {
			fprintf(stderr, "the table of seed %lu\n", (unsigned long)i);
			return false;
		}
	}
	return true;
}

START_TEST(many_random_tables)
{
	struct sums sums = {0};

	ck_assert(random_tables(3000, 1, &sums));
	/* Each kind is among them, and the reader is not silent where it may be. */
	ck_assert_uint_gt(sums.kinds[INCSTACK_RULE_SP], sums.asked / 4);
	ck_assert_uint_gt(sums.kinds[INCSTACK_RULE_FP], sums.asked / 20);
	ck_assert_uint_gt(sums.kinds[INCSTACK_RULE_FP_DEREF], 100);
	ck_assert_uint_gt(sums.kinds[INCSTACK_RULE_END], 1000);
	ck_assert_uint_lt(sums.refused, sums.asked / 8);
}
END_TEST

static Suite *suite(void)
{
	Suite *suite = suite_create("random CFI");
	TCase *tables = tcase_create("tables");

	tcase_add_test(tables, many_random_tables);
	suite_add_tcase(suite, tables);
	return suite;
}

int main(int argc, char **argv)
{
	struct sums sums = {0};

	find_entries();
	if (argc < 2)
		return run_suite(suite());
	if (!random_tables(strtoul(argv[1], NULL, 0), argc > 2 ? strtoul(argv[2], NULL, 0) : 1,
			   &sums))
		return EXIT_FAILURE;
	printf("addresses: %lu, refused alone: %lu\n", sums.asked, sums.refused);
	return EXIT_SUCCESS;
}
