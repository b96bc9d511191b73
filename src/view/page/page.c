/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/* The page put together: see page.h. */
#include "view/page/page_priv.h"

#include <stdlib.h>
#include <string.h>

#include "base/sys.h"
#include "view/report/report.h"
#include "view/page/web_page.h"

/* ---- small tables ---- */

static void span(struct as_page *p, uint64_t start_ns, uint64_t end_ns)
{
	uint64_t zero = p->m->recording.start_ns;

	/* What ran before the recording began starts with it. */
	as_json_u64(&p->j, "start", start_ns > zero ? start_ns - zero : 0);
	if (end_ns)
		as_json_u64(&p->j, "end", end_ns > zero ? end_ns - zero : 0);
	else
		as_json_i64(&p->j, "end", -1);
}

static void modules(struct as_page *p)
{
	as_json_arr(&p->j, "modules");
	as_vec_foreach (m, &p->m->modules) {
		struct as_buf id = {0};

		for (size_t i = 0; i < m->build_id_len && i < sizeof m->build_id; i++)
			as_buf_addf(&id, "%02x", m->build_id[i]);
		as_json_obj(&p->j, NULL);
		as_json_str(&p->j, "path", m->path ? m->path : "");
		as_json_str(&p->j, "name", m->name ? m->name : "");
		as_json_str(&p->j, "buildId", as_buf_str(&id));
		as_json_u64(&p->j, "kind", m->kind);
		as_json_end(&p->j);
		as_buf_clear(&id);
	}
	as_json_end(&p->j);
}

static void tasks(struct as_page *p)
{
	as_json_arr(&p->j, "processes");
	as_vec_foreach (x, &p->m->processes) {
		as_json_obj(&p->j, NULL);
		as_json_u64(&p->j, "pid", x->pid);
		as_json_i64(&p->j, "parent", x->parent == AS_NONE ? -1 : (int64_t)x->parent);
		as_json_str(&p->j, "name", x->name ? x->name : "");
		span(p, x->start_ns, x->end_ns);
		as_json_end(&p->j);
	}
	as_json_end(&p->j);
	as_json_arr(&p->j, "threads");
	as_vec_foreach (x, &p->m->threads) {
		as_json_obj(&p->j, NULL);
		as_json_u64(&p->j, "tid", x->tid);
		as_json_u64(&p->j, "process", x->process);
		as_json_str(&p->j, "name", x->name ? x->name : "");
		span(p, x->start_ns, x->end_ns);
		as_json_end(&p->j);
	}
	as_json_end(&p->j);
}

static void strings(struct as_page *p)
{
	as_json_arr(&p->j, "strings");
	as_vec_foreach (s, &p->strings.str)
		as_json_strn(&p->j, NULL, s->p, s->len);
	as_json_end(&p->j);
}

/* ---- container ---- */

/* The rows under the query, and those of the whole session: the same object when it asks for all. */
static int profiles(const struct as_page_request *q, struct as_profile **ret_flat,
		    struct as_profile **ret_whole, struct as_error *err)
{
	struct as_query scope = q->query, nothing = {0};
	int r;

	scope.by = AS_BY_FUNCTION;
	scope.shape = AS_SHAPE_FLAT;
	scope.of = NULL;
	r = as_profile_make(q->model, &scope, ret_flat, err);
	if (r < 0)
		return r;
	if (memcmp(&scope, &nothing, sizeof scope) == 0) {
		*ret_whole = *ret_flat;
		return 0;
	}
	r = as_profile_make(q->model, &nothing, ret_whole, err);
	if (r < 0)
		as_profile_free(*ret_flat);
	return r;
}

static void contents(struct as_page *p, const struct as_profile *flat,
		     const struct as_profile *whole)
{
	as_json_obj(&p->j, NULL);
	as_page_meta(p, whole);
	modules(p);
	tasks(p);
	as_page_columns(p);
	strings(p);
	as_page_listings(p, flat, whole);
	as_json_end(&p->j);
}

static void container(const struct as_page *p, const struct as_buf *header, struct as_buf *out)
{
	as_buf_reserve(out, header->len + p->area.len + 24);
	as_buf_adds(out, "ASVIEW1\n");
	as_buf_le32(out, (uint32_t)header->len);
	as_buf_add(out, header->p, header->len);
	as_buf_fill(out, '\0', -(header->len + 12) & 7);
	as_buf_add(out, p->area.p ? p->area.p : "", p->area.len);
}

int as_page_container(const struct as_page_request *q, struct as_buf *out, struct as_error *err)
{
	struct as_buf header = {0};
	struct as_page p = {.q = q, .m = q->model, .j = {.out = &header}};
	struct as_profile *flat, *whole;
	int r = profiles(q, &flat, &whole, err);

	if (r < 0)
		return r;
	(void)as_intern_str(&p.strings, ""); /* is 0 */
	r = as_page_marks_make(&p, err);
	if (r == 0) {
		contents(&p, flat, whole);
		container(&p, &header, out);
	}
	as_buf_clear(&header);
	as_buf_clear(&p.area);
	as_intern_clear(&p.strings);
	as_page_marks_clear(&p.marks);
	as_map64_clear(&p.string_of);
	if (whole != flat)
		as_profile_free(whole);
	as_profile_free(flat);
	return r;
}

/* ---- page ---- */

static int data_element(const struct as_page_request *q, const char *id, struct as_buf *out,
			struct as_error *err)
{
	struct as_buf container = {0};
	int r = as_page_container(q, &container, err);

	if (r < 0)
		return r;
	as_buf_addf(out, "<script type=\"text/plain\" id=\"%s\">", id);
	as_page_pack(container.p, container.len, out);
	as_buf_adds(out, "</script>\n");
	as_buf_clear(&container);
	return 0;
}

static const char *connect_to(bool served)
{
	return served ? "'self'" : "'none'";
}

void as_page_policy(bool served, struct as_buf *out)
{
	static const char before[] = "content=\"";
	const char *at = as_web_page_head, *last = at;

	while ((at = strstr(at, before)))
		last = at += sizeof before - 1;
	as_buf_adds(out, last);
	as_buf_adds(out, connect_to(served));
}

int as_page_make(const struct as_page_request *q, struct as_buf *out, struct as_error *err)
{
	struct as_page_request base = {
		.model = q->base, .served = q->served, .no_listing = true};
	size_t before = out->len;
	struct as_buf name = {0};
	int r;

	as_report_program(q->model, &name); /* control characters and broken UTF-8 are gone */
	as_buf_add(out, as_web_page_head, as_web_page_head_len);
	as_buf_adds(out, connect_to(q->served));
	as_buf_add(out, as_web_page_policy_end, as_web_page_policy_end_len);
	as_fmt_markup(out, as_buf_str(&name));
	as_buf_adds(out, " · assay");
	as_buf_add(out, as_web_page_body, as_web_page_body_len);
	as_buf_clear(&name);
	r = data_element(q, "profile", out, err);
	if (r == 0 && q->base)
		r = data_element(&base, "profile-base", out, err);
	if (r < 0) {
		out->len = before;
		out->p[before] = '\0';
		return r;
	}
	as_buf_add(out, as_web_page_tail, as_web_page_tail_len);
	return 0;
}
