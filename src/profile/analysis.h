/* SPDX-License-Identifier: MIT
 *
 * Ranks functions, compares profiles and averages them. For the program incstack only.
 * Conventions as in profile.h.
 */
#ifndef INCSTACK_PROFILE_ANALYSIS_H
#define INCSTACK_PROFILE_ANALYSIS_H

#include <stdbool.h>

#include <incstack/profile.h>

/* A function, summed over all its contexts. */
struct incstack__profile_function {
	const char *name;  /* null-terminated; null if it has none: use function */
	uint64_t function; /* as in the frame object; 0 if the frame was made from a name */
	uint64_t self;     /* without callees */
	uint64_t total;    /* with callees; recursion counts once */
};

/* Writes up to *count functions, ordered by self and then by total, largest first. Sets
 * *count to how many it wrote. Errors: EINVAL, ENOMEM.
 * Thread: owner. Signal: no. Allocates: malloc. Blocks: never. */
int incstack__profile_functions(const struct incstack_profile *profile, uint32_t kind,
				struct incstack__profile_function *functions, size_t *count);

/* The weights of a function of all kinds, summed over all its contexts. */
struct incstack__profile_sum {
	const char *name;                           /* as above */
	uint64_t function;                          /* as above */
	uint64_t own[INCSTACK_PROFILE_KINDS_MAX];   /* without callees */
	uint64_t total[INCSTACK_PROFILE_KINDS_MAX]; /* with callees; recursion counts once */
};

struct incstack__profile_sums {
	struct incstack__profile_sum *rows; /* the caller frees them */
	size_t count;
};

/* Sums the weights of each function that has a context, in the order in which functions were added.
 * Errors: EINVAL, ENOMEM.
 * Thread: owner. Signal: no. Allocates: malloc. Blocks: never. */
int incstack__profile_sums(const struct incstack_profile *profile,
			   struct incstack__profile_sums *sums);

/* Creates a profile with only one kind of `profile`, without its meta data. If `as` is not
 * null, it gives that kind a new name and unit. Errors: EINVAL, ENOMEM.
 * Thread: owner. Signal: no. Allocates: malloc. Blocks: never. */
int incstack__profile_select(const struct incstack_profile *profile, uint32_t kind,
			     const struct incstack_profile_kind *as, struct incstack_profile **one);

/* Creates the average of `count` profiles with the same kinds. All profiles count equally:
 * the relative weights of the result are the averages of the relative weights. For each
 * kind, every profile is scaled up to a common total. This is the least common multiple of
 * the totals, without any rounding, if `count` times it is at most 2^53. Otherwise it is
 * the largest multiple of the largest total for which this holds, or the largest total
 * itself if the sum fits. So the result may weigh much more than each profile. Gnedt 2014,
 * section 5.3, compares runs with such an average.
 * Errors: EINVAL, ENOMEM, ELIMIT, ERANGE.
 * Thread: owner of all. Signal: no. Allocates: malloc. Blocks: never. */
int incstack__profile_average(const struct incstack_profile *const *profiles, size_t count,
			      struct incstack_profile **average);

/* What the weight of an edge of the tree means. An edge has the weight of the node to which
 * it leads. */
enum incstack__profile_measure {
	INCSTACK__MEASURE_SELF = 0, /* without callees */
	INCSTACK__MEASURE_TOTAL,    /* with all callees */
	INCSTACK__MEASURE_BOTH,     /* self of the nodes and totals of the edges, as one set */
};

/* How similar two profiles are. */
struct incstack__profile_difference {
	double overlap;     /* degree of overlap, 0..1 (Gnedt 2014, figure 5.5) */
	double cover_a;     /* hot-edge coverage of a over b (figure 5.6); NAN: b has no hot edge */
	double cover_b;     /* hot-edge coverage of b over a; NAN: a has no hot edge */
	double correlation; /* Pearson's, over nodes with a weight; NAN: undefined */
	uint64_t common;    /* nodes with a weight in both */
	uint64_t only_a;    /* nodes with a weight only in a */
	uint64_t only_b;    /* nodes with a weight only in b */
};

/* Compares one kind of two profiles. `kind` is its number; its unit must be the same in both.
 * Two contexts are the same if the names along them are equal; lines are ignored. Weights are
 * relative to the sum over all edges. An edge is hot if it weighs at least threshold (0..1,
 * 15 decimals) times the heaviest edge. For two empty profiles all results are 1. If one
 * side has no variance, the correlation is 1 if the relative weights are equal, else NAN.
 * Errors: EINVAL, ENOMEM. Algorithm: Gnedt 2014, figures 5.5 and 5.6.
 * Thread: owner of both. Signal: no. Allocates: malloc. Blocks: never. */
int incstack__profile_compare(const struct incstack_profile *a, const struct incstack_profile *b,
			      uint32_t kind, enum incstack__profile_measure measure,
			      double threshold, struct incstack__profile_difference *difference);

/* Creates a profile that combines one kind of two profiles, as the kinds {"a", unit} and
 * {"b", unit}. Contexts are matched as in compare. Errors: EINVAL, ENOMEM, ELIMIT.
 * Thread: owner of both. Signal: no. Allocates: malloc. Blocks: never. */
int incstack__profile_overlay(const struct incstack_profile *a, const struct incstack_profile *b,
			      uint32_t kind, struct incstack_profile **both);

/* The quartiles of one value over several runs. */
struct incstack__profile_quartiles {
	double low;    /* the first quartile */
	double median; /* the second quartile */
	double high;   /* the third quartile */
};

/* How similar several runs are: each is compared with the average of all. */
struct incstack__profile_stability {
	struct incstack__profile_quartiles overlap;     /* degree of overlap */
	struct incstack__profile_quartiles cover;       /* coverage of the run over the average */
	struct incstack__profile_quartiles correlation; /* Pearson's correlation */
};

/* Compares each of `count` profiles with their average (Gnedt 2014, figure 5.7). The average
 * is exact if `count` times the least common multiple of the totals has at most 512 bits.
 * Values that are undefined for a run are left out; if none is left, the result is NAN.
 * The arguments are those of incstack__profile_average and incstack__profile_compare.
 * Errors: EINVAL, ENOMEM, ELIMIT.
 * Thread: owner of all. Signal: no. Allocates: malloc. Blocks: never. */
int incstack__profile_stability(const struct incstack_profile *const *profiles, size_t count,
				uint32_t kind, enum incstack__profile_measure measure,
				double threshold, struct incstack__profile_stability *stability);

/* Writes the flame graph of the difference in an overlay (incstack__profile_overlay). Widths
 * are those of one side; colours show which side has more. With `shares`, weights count relative to the total
 * of their side. Errors: EINVAL, ENOMEM, EIO.
 * Thread: owner. Signal: no. Allocates: malloc. Blocks: on the stream. */
int incstack__profile_write_difference(const struct incstack_profile *both, bool shares,
				       FILE *stream);

#endif
