/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/* What pictures of two sides have in common, of time and of memory. */
#include <math.h>
#include <string.h>

#include "base/sys.h"
#include "view/flame/flame_priv.h"

enum { STEPS = 5 };

const char as_flame_grey[8] = "#d5d8dc";

/* Light enough for dark letters. Red and blue: not for the colour-blind to mix. */
void as_flame_change_fill(double change, double scale, char ret[8])
{
	double strength = AS_MIN(1, sqrt(fabs(change) / scale));

	as_flame_hsl(change > 0 ? 12 : 212, change > 0 ? 0.80 : 0.72, 0.90 - 0.28 * strength,
		     ret);
}

static double swatch(struct as_buf *out, double x, const char *colour, const char *text)
{
	as_buf_addf(out, "<rect x=\"%.1f\" y=\"%d\" width=\"14\" height=\"11\" fill=\"%s\"/>",
		    x, AS_FLAME_LEGEND_Y - 10, colour);
	x += 14;
	if (!*text)
		return x;
	as_buf_addf(out, "<text class=\"faint\" fill=\"#5b636d\" x=\"%.1f\" y=\"%d\">", x + 4,
		    AS_FLAME_LEGEND_Y);
	as_flame_xml(out, text);
	as_buf_adds(out, "</text>");
	return x + 4 + AS_FLAME_CHAR * (double)as_text_width(text, strlen(text)) + 14;
}

void as_flame_change_legend(const struct as_picture *pic, const char *up, const char *down,
			    const char *grey)
{
	double x = AS_FLAME_SIDE;

	as_buf_adds(pic->out, "<g id=\"legend\">");
	for (int sign = 1; sign >= -1; sign -= 2) {
		for (int i = 1; i <= STEPS; i++) {
			double strength = i / (double)STEPS;
			char colour[8];

			as_flame_change_fill(sign * strength * strength, 1, colour);
			x = swatch(pic->out, x, colour, i < STEPS ? "" : sign > 0 ? up : down);
		}
	}
	(void)swatch(pic->out, x, as_flame_grey, grey);
	as_buf_adds(pic->out, "</g>\n");
}

void as_flame_sides_draw(struct as_picture *pic, struct as_profile *p)
{
	/* what a box has beyond its callees: folded stacks are counted by it */
	for (uint32_t i = 1; i < p->nodes.n; i++) {
		struct as_node *up = &p->nodes.v[p->nodes.v[i].parent];

		up->self = AS_MAX(0, up->self - p->nodes.v[i].total);
	}
	p->weight = p->nodes.v[0].total;
	pic->p = p;
	as_flame_draw(pic);
}
