/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/* A flame graph while it is drawn: svg.c, and diff.c and memory_diff.c, which show two sides in one. */
#ifndef AS_VIEW_FLAME_PRIV_H
#define AS_VIEW_FLAME_PRIV_H

#include "base/map.h"
#include "view/flame/flame.h"

enum { AS_FLAME_WIDTH = 1200, AS_FLAME_SIDE = 10, AS_FLAME_LEGEND_Y = 58 };
#define AS_FLAME_CHAR 6.63 /* width of a letter of the monospace font at 11 px */

struct as_picture;

/* What a picture shows that is not a plain profile; nodes of pic->p are its own. */
struct as_flame_skin {
	void (*name)(const struct as_picture *pic, uint32_t key, struct as_row *ret);
	void (*fill)(const struct as_picture *pic, const struct as_box *b, char ret[8]);
	/* Appends plain text below the name. */
	void (*details)(const struct as_picture *pic, const struct as_box *b,
			struct as_buf *out);
	void (*subtitle)(const struct as_picture *pic, struct as_buf *out);
	void (*legend)(const struct as_picture *pic); /* to pic->out, as SVG */
	const void *data;
};

/* What is drawn for a key: its texts are made once. */
struct as_face {
	struct as_buf name, where;
	uint32_t group;
	char fill[8];
};
struct as_face_group { /* crate or module: what colours stand for */
	uint32_t hash; /* of the name: hue and saturation */
	bool kernel, unknown;
	double self;
};

struct as_picture {
	const struct as_flame_request *q;
	const struct as_profile *p;
	const struct as_flame_skin *skin; /* NULL: a plain profile */
	struct as_flame flame;
	struct as_map64 face_of; /* key -> index into faces */
	AS_VEC(struct as_face) faces;
	struct as_intern group_names;
	AS_VEC(struct as_face_group) groups;
	struct as_buf *out;
};

/* q, p, skin and out are set; the rest is used up. */
void as_flame_draw(struct as_picture *pic);
/* Bytes that XML cannot carry become \xNN, the rest is escaped. */
void as_flame_xml(struct as_buf *out, const char *s);
/* Pictures of two sides: more is red, less is blue, the stronger the nearer to scale; else grey. */
extern const char as_flame_grey[8];
void as_flame_change_fill(double change, double scale, char ret[8]);
/* The colours with what the strongest of each stands for, and what is grey. */
void as_flame_change_legend(const struct as_picture *pic, const char *up, const char *down,
			    const char *grey);
/* p: the tree of both sides, whose keys are its nodes; self as total, which is made what it has itself. */
void as_flame_sides_draw(struct as_picture *pic, struct as_profile *p);
/* "#rrggbb" of hue (degrees), saturation and lightness (0..1). */
void as_flame_hsl(double h, double s, double l, char ret[8]);

#endif
