/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/*
 * Drawings as SVG within an HTML page that stands alone: points, bars and lines in one frame with axes, and
 * the page's style (light or dark as the reader's system is).
 *
 *	struct as_chart c = {.title = "Runs", .y_unit = "s", .value = write_value, .x = {1, 9},
 *			     .y = AS_CHART_EMPTY};
 *	as_chart_include(c.y, …);
 *	as_chart_begin(&c, out);
 *	as_chart_point(&c, x, y, 0, NULL);
 *	as_chart_end(&c);
 *
 * Every coordinate is finite, whatever the data. Compiled into bench programs, too: it needs base only.
 * Thread rule: pure.
 */
#ifndef AS_CHART_CHART_H
#define AS_CHART_CHART_H

#include <stdbool.h>
#include <stddef.h>

#include "base/buf.h"

extern const char as_chart_style[];

/* Text of an element or attribute. */
void as_chart_text(struct as_buf *out, const char *text);

struct as_chart {
	const char *title;  /* what it shows, for those who do not see it too */
	const char *x_name; /* below the axis; NULL: none */
	const char *y_unit; /* of `value`; "%" for ratios as change */
	const char *x_unit; /* likewise; NULL: plain numbers; "": no ticks */
	/* v with its unit, as short as it goes; NULL: plain numbers */
	void (*value)(struct as_buf *out, const char *unit, double v);
	bool log_x, log_y;
	double x[2], y[2]; /* range of the data; empty and infinite ones are mended */
	struct as_buf *out;
};
/* begin widens the ranges; then shapes in order; end closes. */
void as_chart_begin(struct as_chart *c, struct as_buf *out);
/* shape: 0 circle, 1 square: sides are told by more than colour. tip: on hover; NULL: none */
void as_chart_point(const struct as_chart *c, double x, double y, int shape, const char *tip);
void as_chart_interval(const struct as_chart *c, double x, double low, double high, int side);
void as_chart_bar(const struct as_chart *c, const double x[2], double y, int side);
void as_chart_line(const struct as_chart *c, const double *x, const double *y, size_t n,
		   const char *kind); /* class: "fit", "course" */
void as_chart_rule_y(const struct as_chart *c, double y, const char *kind); /* across */
void as_chart_rule_x(const struct as_chart *c, double x, const char *tip);
void as_chart_band(const struct as_chart *c, double low, double high);
void as_chart_end(const struct as_chart *c);

/* Makes [*low, *high] hold v. */
void as_chart_include(double range[2], double v);
#define AS_CHART_EMPTY                                                                         \
	{                                                                                      \
		INFINITY, -INFINITY                                                            \
	}

#endif
