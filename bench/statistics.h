/* SPDX-License-Identifier: MIT
 *
 * Intervals of confidence, for the benchmarks.
 */
#ifndef BENCH_STATISTICS_H
#define BENCH_STATISTICS_H

#include <math.h>
#include <stdint.h>
#include <stdlib.h>

struct interval {
	double mean, half;
};

/* Returns the probability that Student's t lies between -t and t (Abramowitz and Stegun, 26.7.3 and
 * 26.7.4). */
static inline double student_within(double t, int freedom)
{
	double angle = atan(t / sqrt(freedom)), c = cos(angle), s = sin(angle);
	double sum = 0, term = freedom % 2 ? c : 1;
	for (int k = freedom % 2; k <= freedom - 2; k += 2) {
		sum += term;
		term *= c * c * (k + 1) / (k + 2);
	}
	return freedom % 2 ? 2 / 3.14159265358979323846 * (angle + s * sum) : s * sum;
}

/* Returns the t for which this part of the values lies between -t and t. */
static inline double student(int freedom, double confidence)
{
	double low = 0, high = 1e6;
	for (int i = 0; i < 100; i++) {
		double middle = (low + high) / 2;
		if (student_within(middle, freedom) < confidence)
			low = middle;
		else
			high = middle;
	}
	return high;
}

static inline struct interval interval_of(const double *values, int count, double confidence)
{
	double sum = 0, squares = 0;
	for (int i = 0; i < count; i++)
		sum += values[i];
	double mean = sum / count;
	for (int i = 0; i < count; i++)
		squares += (values[i] - mean) * (values[i] - mean);
	if (count < 2)
		return (struct interval){mean, INFINITY};
	return (struct interval){mean, student(count - 1, confidence) *
					       sqrt(squares / (count - 1) / count)};
}

static inline int compare_times(const void *a, const void *b)
{
	uint32_t x = *(const uint32_t *)a, y = *(const uint32_t *)b;
	return (x > y) - (x < y);
}

/* A percentile, and the values between which it lies with a confidence of 95 %. The number of
 * values below a percentile has a binomial distribution, whatever the distribution of the values. */
struct percentile {
	double value, low, high;
};

static inline double value_at(const uint32_t *sorted, uint32_t count, double place)
{
	return sorted[place < 0 ? 0 : place > count - 1 ? count - 1 : (uint32_t)(place + 0.5)];
}

/* Sorts the values. */
static inline struct percentile percentile_of(uint32_t *values, uint32_t count, double part)
{
	if (count == 0)
		return (struct percentile){0, 0, 0};
	qsort(values, count, sizeof(*values), compare_times);
	double place = part * (count - 1), off = 1.96 * sqrt(count * part * (1 - part));
	return (struct percentile){value_at(values, count, place),
				   value_at(values, count, floor(place - off)),
				   value_at(values, count, ceil(place + off))};
}

#endif
