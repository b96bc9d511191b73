/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/* Drawings as SVG: see chart.h. Every coordinate is finite, whatever the data: ranges without width are
 * widened, logarithmic ones begin above 0, and what is not finite is not drawn. */
#include "chart/chart.h"

#include <math.h>
#include <string.h>

#include "base/mem.h"
#include "base/sys.h"

#define WIDTH     420.0
#define HEIGHT    190.0
#define LEFT      64.0
#define RIGHT     12.0
#define TOP       10.0
#define BOTTOM    34.0
#define TICKS     5
#define LOG_LEAST 1e-250 /* of a logarithmic axis; room for its margin */
#define LOG_MOST  1e250

void as_chart_text(struct as_buf *out, const char *text)
{
	AS_CLEANUP(as_buf_clear) struct as_buf clean = {0};

	as_fmt_text(&clean, text, strlen(text));
	as_fmt_markup(out, as_buf_str(&clean));
}

void as_chart_include(double range[2], double v)
{
	if (!isfinite(v))
		return;
	range[0] = fmin(range[0], v);
	range[1] = fmax(range[1], v);
}

/* ---- places ---- */

static void mend(double range[2], bool logarithmic)
{
	double pad;

	if (!isfinite(range[0]) || !isfinite(range[1]) || !(range[1] >= range[0])) {
		range[0] = logarithmic ? 1 : 0;
		range[1] = logarithmic ? 10 : 1;
	}
	if (logarithmic) { /* in logarithms: the ratio of the ends may be no number */
		range[0] = fmin(fmax(range[0], LOG_LEAST), LOG_MOST);
		range[1] = fmin(fmax(range[1], range[0]), LOG_MOST);
		pad = log(range[1]) - log(range[0]);
		pad = exp(pad > 0.01 ? 0.06 * pad : M_LN2);
		range[0] /= pad;
		range[1] *= pad;
		return;
	}
	range[0] = fmax(range[0], -1e300);
	range[1] = fmin(range[1], 1e300);
	pad = (range[1] - range[0]) * 0.06;
	/* the same value again and again, or differences that are none: a hundredth of it around */
	if (!(pad > fabs(range[1]) * 1e-9))
		pad = fabs(range[1]) > 0 ? fabs(range[1]) / 100 : 1;
	range[0] -= pad;
	range[1] += pad;
}

static double share_of(const double range[2], bool logarithmic, double v)
{
	if (logarithmic)
		return (log(fmax(v, LOG_LEAST)) - log(range[0])) /
		       (log(range[1]) - log(range[0]));
	return (v - range[0]) / (range[1] - range[0]);
}

static double place_x(const struct as_chart *c, double v)
{
	return LEFT + share_of(c->x, c->log_x, v) * (WIDTH - LEFT - RIGHT);
}

static double place_y(const struct as_chart *c, double v)
{
	return HEIGHT - BOTTOM - share_of(c->y, c->log_y, v) * (HEIGHT - TOP - BOTTOM);
}

static bool drawable(const struct as_chart *c, double x, double y)
{
	return isfinite(x) && isfinite(y) && !(c->log_x && x <= 0) && !(c->log_y && y <= 0);
}

/* ---- axes ---- */

static void tick_text(const struct as_chart *c, const char *unit, double v)
{
	if (unit && strcmp(unit, "%") == 0)
		as_buf_addf(c->out, "%+.3g %%", v);
	else if (unit && c->value) /* a long unit would not fit beside the axis */
		c->value(c->out, strlen(unit) < 3 ? unit : "1", v);
	else
		as_buf_addf(c->out, "%g", v);
}

static void tick(const struct as_chart *c, double v, bool vertical)
{
	double x = place_x(c, v), y = place_y(c, v);

	if (vertical)
		as_buf_addf(c->out,
			    "<line class=\"grid\" x1=\"%.1f\" x2=\"%.1f\" y1=\"%.1f\" "
			    "y2=\"%.1f\"/><text x=\"%.1f\" y=\"%.1f\" text-anchor=\"end\">",
			    LEFT, WIDTH - RIGHT, y, y, LEFT - 6, y + 4);
	else
		as_buf_addf(c->out,
			    "<line class=\"grid\" x1=\"%.1f\" x2=\"%.1f\" y1=\"%.1f\" "
			    "y2=\"%.1f\"/><text x=\"%.1f\" y=\"%.1f\" text-anchor=\"middle\">",
			    x, x, TOP, HEIGHT - BOTTOM, x, HEIGHT - BOTTOM + 15);
	tick_text(c, vertical ? c->y_unit : c->x_unit, v);
	as_buf_adds(c->out, "</text>");
}

/* 1, 2 or 5 times a power of ten, so that some TICKS fit. */
static double step_of(const double range[2])
{
	double raw = (range[1] - range[0]) / TICKS, power = pow(10, floor(log10(raw)));
	double f = raw / power;

	return power * (f > 5 ? 10 : f > 2 ? 5 : f > 1 ? 2 : 1);
}

/* The number of ticks is bounded by itself, not by the data's steps adding up. */
static void linear_ticks(const struct as_chart *c, const double range[2], bool vertical)
{
	double step = step_of(range), first = ceil(range[0] / step) * step;

	if (!isfinite(step) || !(step > 0) || !isfinite(first))
		return;
	for (int i = 0; i <= 2 * TICKS; i++) {
		double v = first + i * step;

		if (v > range[1])
			break;
		tick(c, fabs(v) < step * 1e-9 ? 0 : v, vertical);
	}
}

static void log_ticks(const struct as_chart *c, const double range[2], bool vertical)
{
	int first = (int)ceil(log10(range[0]) - 1e-9),
	    last = (int)floor(log10(range[1]) + 1e-9);
	int every = AS_MAX(1, (last - first) / TICKS);

	if (last <= first) { /* less than a decade: its ends */
		tick(c, range[0], vertical);
		tick(c, range[1], vertical);
		return;
	}
	for (int i = 0; i <= 2 * TICKS && first + i * every <= last; i++)
		tick(c, pow(10, first + i * every), vertical);
}

void as_chart_begin(struct as_chart *c, struct as_buf *out)
{
	c->out = out;
	mend(c->x, c->log_x);
	mend(c->y, c->log_y);
	as_buf_addf(out, "<figure><svg viewBox=\"0 0 %.0f %.0f\" role=\"img\" aria-label=\"",
		    WIDTH, HEIGHT);
	as_chart_text(out, c->title);
	as_buf_adds(out, "\">");
	if (c->log_y)
		log_ticks(c, c->y, true);
	else if (c->y_unit)
		linear_ticks(c, c->y, true);
	if (c->log_x)
		log_ticks(c, c->x, false);
	else if (!c->x_unit || *c->x_unit)
		linear_ticks(c, c->x, false);
	as_buf_addf(out, "<path class=\"axis\" d=\"M%.1f %.1fV%.1fH%.1f\"/>", LEFT, TOP,
		    HEIGHT - BOTTOM, WIDTH - RIGHT);
	if (!c->x_name)
		return;
	as_buf_addf(out, "<text x=\"%.1f\" y=\"%.1f\" text-anchor=\"end\">", WIDTH - RIGHT,
		    HEIGHT - 4);
	as_chart_text(out, c->x_name);
	as_buf_adds(out, "</text>");
}

void as_chart_end(const struct as_chart *c)
{
	as_buf_adds(c->out, "</svg><figcaption>");
	as_chart_text(c->out, c->title);
	as_buf_adds(c->out, "</figcaption></figure>");
}

/* ---- shapes ---- */

static void tip_of(const struct as_chart *c, const char *tip)
{
	if (!tip)
		return;
	as_buf_adds(c->out, "<title>");
	as_chart_text(c->out, tip);
	as_buf_adds(c->out, "</title>");
}

void as_chart_point(const struct as_chart *c, double x, double y, int shape, const char *tip)
{
	if (!drawable(c, x, y))
		return;
	if (shape)
		as_buf_addf(
			c->out,
			"<rect class=\"s1\" x=\"%.1f\" y=\"%.1f\" width=\"5\" height=\"5\">",
			place_x(c, x) - 2.5, place_y(c, y) - 2.5);
	else
		as_buf_addf(c->out, "<circle class=\"s0\" cx=\"%.1f\" cy=\"%.1f\" r=\"2.7\">",
			    place_x(c, x), place_y(c, y));
	tip_of(c, tip);
	as_buf_adds(c->out, shape ? "</rect>" : "</circle>");
}

void as_chart_interval(const struct as_chart *c, double x, double low, double high, int side)
{
	if (!drawable(c, x, low) || !drawable(c, x, high))
		return;
	as_buf_addf(c->out,
		    "<line class=\"bar%d\" x1=\"%.1f\" x2=\"%.1f\" y1=\"%.1f\" y2=\"%.1f\"/>",
		    side, place_x(c, x), place_x(c, x), place_y(c, low), place_y(c, high));
}

void as_chart_bar(const struct as_chart *c, const double x[2], double y, int side)
{
	double left = place_x(c, x[0]), right = place_x(c, x[1]);

	if (!drawable(c, x[0], y) || !drawable(c, x[1], y))
		return;
	as_buf_addf(
		c->out,
		"<rect class=\"h%d\" x=\"%.1f\" y=\"%.1f\" width=\"%.1f\" height=\"%.1f\"/>",
		side, left, place_y(c, y), fmax(right - left - 1, 1),
		fmax(HEIGHT - BOTTOM - place_y(c, y), 0));
}

void as_chart_line(const struct as_chart *c, const double *x, const double *y, size_t n,
		   const char *kind)
{
	bool begun = false;

	as_buf_addf(c->out, "<path class=\"%s\" d=\"", kind);
	for (size_t i = 0; i < n; i++) {
		if (!drawable(c, x[i], y[i]))
			continue;
		as_buf_addf(c->out, "%s%.1f %.1f", begun ? "L" : "M", place_x(c, x[i]),
			    place_y(c, y[i]));
		begun = true;
	}
	as_buf_adds(c->out, "\"/>");
}

void as_chart_rule_y(const struct as_chart *c, double y, const char *kind)
{
	if (isfinite(y) && y >= c->y[0] && y <= c->y[1])
		as_buf_addf(
			c->out,
			"<line class=\"%s\" x1=\"%.1f\" x2=\"%.1f\" y1=\"%.1f\" y2=\"%.1f\"/>",
			kind, LEFT, WIDTH - RIGHT, place_y(c, y), place_y(c, y));
}

void as_chart_rule_x(const struct as_chart *c, double x, const char *tip)
{
	if (!isfinite(x))
		return;
	as_buf_addf(c->out,
		    "<line class=\"step\" x1=\"%.1f\" x2=\"%.1f\" y1=\"%.1f\" y2=\"%.1f\">",
		    place_x(c, x), place_x(c, x), TOP, HEIGHT - BOTTOM);
	tip_of(c, tip);
	as_buf_adds(c->out, "</line>");
}

void as_chart_band(const struct as_chart *c, double low, double high)
{
	double top = place_y(c, fmin(high, c->y[1])), bottom = place_y(c, fmax(low, c->y[0]));

	if (isfinite(top) && isfinite(bottom))
		as_buf_addf(c->out,
			    "<rect class=\"band\" x=\"%.1f\" y=\"%.1f\" width=\"%.1f\" "
			    "height=\"%.1f\"/>",
			    LEFT, top, WIDTH - LEFT - RIGHT, fmax(bottom - top, 1));
}
