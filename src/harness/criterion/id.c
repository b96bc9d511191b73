/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/* Names of benchmarks and the folders they become: see docs/formats/criterion-files.md. */
#include <stdlib.h>
#include <string.h>

#include "harness/criterion/criterion_priv.h"

#define FOLDER_BYTES 64 /* of a part of the name */
#define TITLE_BYTES  100

/* At most max bytes of s, not within a character. */
static size_t cut(const char *s, size_t max)
{
	size_t n = strlen(s);

	if (n <= max)
		return n;
	for (n = max; n > 0 && ((unsigned char)s[n] & 0xc0) == 0x80; n--)
		;
	return n;
}

/* The part as a folder's name. "." and ".." would be other folders. */
static bool add_part(struct as_buf *b, const char *part)
{
	size_t n = cut(part, FOLDER_BYTES);

	if (b->len)
		as_buf_addc(b, '/');
	for (size_t i = 0; i < n; i++)
		as_buf_addc(b, strchr("?\"/\\*<>:|^", part[i]) ? '_' : part[i]);
	if (strcmp(part, ".") == 0 || strcmp(part, "..") == 0)
		as_buf_addc(b, '_');
	return part[n] != '\0';
}

void as_criterion_id_make(const char *group, const char *function, const char *value,
			  struct as_criterion_id *ret)
{
	const char *const parts[] = {group, function, value};
	struct as_buf full = {0}, folder = {0}, title = {0};
	bool shorter = false;

	for (size_t i = 0; i < AS_ARRAY_LEN(parts); i++) {
		if (!parts[i])
			continue;
		if (i)
			as_buf_addc(&full, '/');
		as_buf_adds(&full, parts[i]);
		/* An empty part is no folder: the name without it would be another benchmark's. */
		shorter |= add_part(&folder, parts[i][0] || !i ? parts[i] : "_");
	}

	size_t n = cut(as_buf_str(&full), TITLE_BYTES);

	as_buf_add(&title, full.p, n);
	if (n < full.len)
		as_buf_adds(&title, "...");
	*ret = (struct as_criterion_id){.full = as_buf_detach(&full),
					.title = as_buf_detach(&title),
					.folder = as_buf_detach(&folder),
					.cut = shorter};
}

static bool has(char *const *v, size_t n, const char *s)
{
	for (size_t i = 0; i < n; i++)
		if (strcmp(v[i], s) == 0)
			return true;
	return false;
}

void as_criterion_id_hashed(struct as_criterion_id *id)
{
	char *folder = as_xasprintf("%s-%08x", id->folder,
				    (unsigned)as_hash64(id->full, strlen(id->full)));

	free(id->folder);
	id->folder = folder;
	id->cut = false;
}

void as_criterion_id_unique(struct as_criterion_id *id, struct as_criterion_names *n)
{
	if (has(n->folders.v, n->folders.n, id->folder) && id->cut)
		as_criterion_id_hashed(id);

	char *folder = as_xstrdup(id->folder), *title = as_xstrdup(id->title);

	for (unsigned i = 2; has(n->folders.v, n->folders.n, folder); i++) {
		free(folder);
		folder = as_xasprintf("%s_%u", id->folder, i);
	}
	for (unsigned i = 2; has(n->titles.v, n->titles.n, title); i++) {
		free(title);
		title = as_xasprintf("%s #%u", id->title, i);
	}
	free(id->folder);
	free(id->title);
	id->folder = folder;
	id->title = title;
	as_vec_push(&n->folders, as_xstrdup(folder));
	as_vec_push(&n->titles, as_xstrdup(title));
}

void as_criterion_id_clear(struct as_criterion_id *id)
{
	free(id->full);
	free(id->title);
	free(id->folder);
	*id = (struct as_criterion_id){0};
}

void as_criterion_names_clear(struct as_criterion_names *n)
{
	as_vec_foreach (s, &n->titles)
		free(*s);
	as_vec_foreach (s, &n->folders)
		free(*s);
	as_vec_clear(&n->titles);
	as_vec_clear(&n->folders);
}
