/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/* The page's container and its packing; that a browser's side reads it is tested in web and cli. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <cmocka.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <zlib.h>

#include "fixture.h"
#include "session/session.h"
#include "view/page/page_priv.h"

#define START 7000000000ull

struct sizes {
	uint64_t samples;
	uint64_t kernel_addr;
};

/* Two functions, main -> work, samples on work; a frame of the kernel. */
static struct as_model *make(const struct sizes *z)
{
	struct as_session_writer *w;
	struct as_model *m;
	struct as_error err;

	assert_int_equal(as_session_writer_open(fx_path("a.assay"), &w, &err), 0);
	as_write_info(w, &(struct as_rec_info){AS_STR("engine"), AS_STR("ring")});
	as_write_arg(w, &(struct as_rec_arg){AS_STR("/bin/</title><b>")});
	as_write_recording(
		w, &(struct as_rec_recording){.start_ns = START, .rate_hz = 997, .ncpus = 1});
	as_write_module(
		w, &(struct as_rec_module){.id = 0, .path = as_session_string(w, "/bin/a", 6)});
	as_write_process(w, &(struct as_rec_process){.id = 0, .pid = 7, .start_ns = START - 5});
	as_write_thread(w, &(struct as_rec_thread){.id = 0, .tid = 7, .start_ns = START - 5});
	for (uint64_t i = 0; i < 2; i++) {
		uint32_t name = as_session_string(w, i ? "work" : "main", 4);

		as_write_function(w, &(struct as_rec_function){.id = i,
							       .module = 1,
							       .linkage = name,
							       .full = name,
							       .brief = name,
							       .line = 10 * (i + 1)});
		as_write_frame(w, &(struct as_rec_frame){
					  .id = i,
					  .module = 1,
					  .addr = i ? z->kernel_addr : 0x1234,
					  .flags = i ? AS_FRAME_KERNEL : 0,
				  });
		as_write_symbol(
			w, &(struct as_rec_symbol){
				   .frame = i, .chain = {(uint64_t[]){i, 0, 11 + i, 0}, 4}});
		as_write_stack(w, &(struct as_rec_stack){.id = i, .parent = i, .frame = i});
	}
	for (uint64_t i = 0; i < z->samples; i++)
		as_write_sample(w, &(struct as_rec_sample){.time_rel = START + i * 1000000,
							   .stack = 2,
							   .weight = 1000003});
	as_write_summary(w, &(struct as_rec_summary){.end_ns = START + 1000000000,
						     .wall_ns = 1000000000,
						     .cpu_ns = 900000000,
						     .samples = z->samples});
	assert_int_equal(as_session_writer_finish(w, &err), 0);
	as_session_writer_close(w);
	assert_int_equal(as_model_load(fx_path("a.assay"), &m, &err), 0);
	return m;
}

static void container_of(const struct as_page_request *q, struct as_buf *out)
{
	struct as_error err;

	assert_int_equal(as_page_container(q, out, &err), 0);
	assert_true(out->len > 16);
	assert_memory_equal(out->p, "ASVIEW1\n", 8);
}

static size_t area_at(const struct as_buf *b)
{
	return (12 + as_get_le32(b->p + 8) + 7u) & ~(size_t)7;
}

/* The number behind "key": after `from`. */
static uint64_t number_after(const char *from, const char *key)
{
	const char *at = strstr(from, key);
	uint64_t v = 0;

	assert_non_null(at);
	for (at += strlen(key); *at >= '0' && *at <= '9'; at++)
		v = v * 10 + (uint64_t)(*at - '0');
	return v;
}

static struct as_rd column(const struct as_buf *b, const char *name)
{
	const char *at = strstr(b->p + 12, name);

	assert_non_null(at);

	uint64_t from = area_at(b) + number_after(at, "\"at\":");
	uint64_t n = number_after(at, "\"bytes\":");

	assert_true(from + n <= b->len);
	return AS_RD(b->p + from, n);
}

static void columns_hold_the_model(void **state)
{
	struct as_model *m = make(&(struct sizes){50, 0x5000});
	struct as_page_request q = {.model = m};
	struct as_buf b = {0};

	container_of(&q, &b);

	struct as_rd times = column(&b, "\"samples.time\":"); /* deltas of 1 ms, zigzag */

	assert_int_equal(as_rd_uleb(&times), 0);
	for (size_t i = 1; i < 50; i++)
		assert_int_equal(as_rd_uleb(&times), 2000000);
	assert_int_equal(as_rd_left(&times), 0);
	assert_false(times.bad);

	struct as_rd parents =
		column(&b, "\"stacks.parent\":"); /* -1, 0: stored + 1 or zigzag */

	assert_int_equal(as_rd_left(&parents), 2);
	as_buf_clear(&b);
	as_model_free(m);
}

static void the_area_ends_where_the_columns_end(void **state)
{
	struct as_model *m = make(&(struct sizes){3, 0x5000});
	struct as_page_request q = {.model = m};
	struct as_buf b = {0};
	size_t sum = 0;

	container_of(&q, &b);
	for (const char *at = strstr(b.p + 12, "\"columns\":"); (at = strstr(at, "\"bytes\":"));
	     at++)
		sum += number_after(at, "\"bytes\":");
	assert_int_equal(area_at(&b) + sum, b.len);
	as_buf_clear(&b);
	as_model_free(m);
}

static void kernel_addresses_fit_into_a_double(void **state)
{
	struct as_model *m = make(&(struct sizes){3, 0xffffffff81000010});
	struct as_page_request q = {.model = m};
	struct as_buf b = {0};

	container_of(&q, &b);

	struct as_rd r = column(&b, "\"frames.addr\":");
	const char *code = strstr(strstr(b.p + 12, "\"frames.addr\":"), "\"code\":\"");
	uint64_t first = as_rd_uleb(&r), second = as_rd_uleb(&r);

	if (strncmp(code, "\"code\":\"uleb\"", 13) != 0) { /* zigzag differences */
		first >>= 1;
		second = first + (second >> 1);
	}
	assert_int_equal(first, 0x1234);
	assert_int_equal(second, 0xffff81000010);
	as_buf_clear(&b);
	as_model_free(m);
}

static void what_began_before_the_recording_begins_with_it(void **state)
{
	struct as_model *m = make(&(struct sizes){3, 0x5000});
	struct as_page_request q = {.model = m};
	struct as_buf b = {0};

	container_of(&q, &b);

	const char *threads = strstr(b.p + 12, "\"threads\":[");

	assert_non_null(threads);
	assert_int_equal(number_after(threads, "\"start\":"), 0);
	assert_non_null(strstr(threads, "\"end\":-1"));
	as_buf_clear(&b);
	as_model_free(m);
}

/* Decodes base64 in place; returns the bytes. */
static size_t from_base64(char *s, size_t n)
{
	uint32_t v = 0;
	size_t out = 0, bits = 0;

	for (size_t i = 0; i < n && s[i] != '='; i++) {
		char c = s[i];
		uint32_t d = c >= 'A' && c <= 'Z'   ? (uint32_t)(c - 'A')
			     : c >= 'a' && c <= 'z' ? (uint32_t)(c - 'a' + 26)
			     : c >= '0' && c <= '9' ? (uint32_t)(c - '0' + 52)
			     : c == '+'             ? 62
						    : 63;

		assert_true(d != 63 || c == '/');
		v = v << 6 | d;
		bits += 6;
		if (bits >= 8) {
			bits -= 8;
			s[out++] = (char)(v >> bits);
		}
	}
	return out;
}

static void packing_is_gzip_in_base64_for_every_length(void **state)
{
	static const size_t lengths[] = {0, 1, 2, 3, 4, 5, 1000, 49151, 49152, 49153, 300000};
	uint64_t seed = 1;

	for (size_t k = 0; k < AS_ARRAY_LEN(lengths); k++) {
		size_t n = lengths[k];
		unsigned char *data = as_xmalloc(n + 1), *back = as_xmalloc(n + 1);
		struct as_buf b = {0};
		z_stream z = {0};

		for (size_t i = 0; i < n; i++) {
			seed = seed * 6364136223846793005u + 1442695040888963407u;
			data[i] = (unsigned char)(seed >> 56);
		}
		as_page_pack(data, n, &b);
		assert_int_equal(b.len % 4, 0);
		z.avail_in = (uInt)from_base64(b.p, b.len);
		z.next_in = (Bytef *)b.p;
		z.next_out = back;
		z.avail_out = (uInt)n + 1;
		assert_int_equal(inflateInit2(&z, 15 + 16), Z_OK);
		assert_int_equal(inflate(&z, Z_FINISH), Z_STREAM_END);
		assert_int_equal(z.total_out, n);
		assert_int_equal(z.avail_in, 0);
		assert_memory_equal(back, data, n);
		inflateEnd(&z);
		as_buf_clear(&b);
		free(data);
		free(back);
	}
}

static void the_title_is_escaped_and_nothing_else_stands_in_the_markup(void **state)
{
	struct as_model *m = make(&(struct sizes){3, 0x5000});
	struct as_page_request q = {.model = m};
	struct as_buf b = {0};
	struct as_error err;

	as_buf_adds(&b, "before");
	assert_int_equal(as_page_make(&q, &b, &err), 0);
	assert_memory_equal(b.p, "before<!doctype html>", 21);
	assert_non_null(strstr(b.p, "<title>title&gt;&lt;b&gt; · assay</title>"));
	assert_null(strstr(b.p, "<b>"));
	assert_non_null(strstr(b.p, "connect-src 'none'\">"));
	assert_null(strstr(b.p, "profile-base\">"));
	as_buf_reset(&b);
	q.served = true;
	q.base = m;
	assert_int_equal(as_page_make(&q, &b, &err), 0);
	assert_non_null(strstr(b.p, "connect-src 'self'\">"));
	assert_non_null(strstr(b.p, "id=\"profile-base\">"));
	as_buf_clear(&b);
	as_model_free(m);
}

static void a_bad_filter_leaves_the_output_as_it_was(void **state)
{
	struct as_model *m = make(&(struct sizes){3, 0x5000});
	struct as_page_request q = {.model = m, .query = {.focus = "("}};
	struct as_buf b = {0};
	struct as_error err;

	as_buf_adds(&b, "before");
	assert_int_equal(as_page_make(&q, &b, &err), AS_E_USAGE);
	assert_string_equal(b.p, "before");
	q.query = (struct as_query){.thread = "nobody"};
	assert_int_equal(as_page_make(&q, &b, &err), AS_E_NOTFOUND);
	assert_string_equal(b.p, "before");
	as_buf_clear(&b);
	as_model_free(m);
}

static void the_policy_for_the_header_is_the_pages_own(void **state)
{
	struct as_model *m = make(&(struct sizes){1, 0x5000});
	struct as_page_request q = {.model = m, .served = true};
	struct as_buf page = {0}, policy = {0};
	struct as_error err;

	assert_int_equal(as_page_make(&q, &page, &err), 0);
	as_page_policy(true, &policy);
	assert_memory_equal(policy.p, "default-src 'none'; ", 20);
	assert_non_null(strstr(page.p, policy.p));
	assert_null(strchr(policy.p, '"'));
	as_buf_clear(&page);
	as_buf_clear(&policy);
	as_model_free(m);
}

/* ---- listings ---- */

enum { INSNS = 5000, CODE = 0x10000 };

/* 5,000 instructions of 4 bytes on two chains that each stand there twice. */
static void fill_listing(struct as_listing *l)
{
	static const char *const names[] = {"outer", "inner", "outer", "inner"};

	*l = (struct as_listing){.function = 0, .module = 0};
	for (uint32_t i = 0; i < AS_ARRAY_LEN(names); i++)
		as_vec_push(&l->places, (struct as_listing_place){.function = names[i],
								  .key = AS_NONE,
								  .file = "a.c",
								  .line = 10 + i % 2});
	as_vec_push(&l->files,
		    (struct as_listing_file){.path = "a.c", .first = 9, .total = 12});
	as_vec_push(&l->files.v[0].lines, "int a;");
	as_vec_push(&l->files.v[0].lines, as_listing_left_out);
	as_vec_push(&l->files.v[0].lines, "");
	for (uint32_t i = 0; i < INSNS; i++)
		as_vec_push(&l->insns, (struct as_listing_insn){.svma = CODE + 4 * i,
								.text = "nop",
								.len = 4,
								.place = i % 4,
								.nplaces = 1});
}

static void clear_listing(struct as_listing *l)
{
	as_vec_clear(&l->files.v[0].lines);
	as_vec_clear(&l->files);
	as_vec_clear(&l->places);
	as_vec_clear(&l->insns);
}

static void of_a_large_function_what_was_sampled_stays(void **state)
{
	struct as_model *m =
		make(&(struct sizes){3, CODE + 4 * 3000 + 4}); /* a return address */
	struct as_listing l;
	uint8_t keep[INSNS];
	size_t sum = 0;

	fill_listing(&l);
	assert_int_equal(as_page_pick(m, &l, INSNS, keep), INSNS);
	assert_int_equal(keep[INSNS - 1], 1);
	m->frames.v[1].flags = 0;

	size_t kept = as_page_pick(m, &l, 1500, keep);

	for (size_t i = 0; i < INSNS; i++)
		sum += keep[i];
	assert_int_equal(kept, sum);
	assert_int_equal(kept, 16 + 64 + 1 + 64); /* the entry, and around the call */
	assert_int_equal(keep[0], 1);
	assert_int_equal(keep[3000 - 64], 1);
	assert_int_equal(keep[3000 + 64], 1);
	assert_int_equal(keep[3000 - 65], 0);
	assert_int_equal(keep[3000 + 65], 0);
	assert_true(as_page_pick(m, &l, 20, keep) <= 20);
	clear_listing(&l);
	as_model_free(m);
}

static void a_listing_holds_each_chain_once_and_says_what_is_left_out(void **state)
{
	struct as_model *m = make(&(struct sizes){3, CODE});
	struct as_listing l;
	struct as_buf b = {0};
	size_t places = 0;

	fill_listing(&l);
	as_page_listing(m, &l, &b);
	for (const char *at = b.p; (at = strstr(at, "\"column\":")); at++)
		places++;
	assert_int_equal(places, 2);
	assert_non_null(strstr(b.p, "\"lines\":[\"int a;\",null,\"\"]"));
	assert_non_null(strstr(b.p, "\"sources\":[{\"path\":\"a.c\""));
	assert_null(strstr(b.p, "left out")); /* served: up to 20,000 */
	as_buf_clear(&b);
	clear_listing(&l);
	as_model_free(m);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(columns_hold_the_model),
		cmocka_unit_test(the_area_ends_where_the_columns_end),
		cmocka_unit_test(kernel_addresses_fit_into_a_double),
		cmocka_unit_test(what_began_before_the_recording_begins_with_it),
		cmocka_unit_test(packing_is_gzip_in_base64_for_every_length),
		cmocka_unit_test(the_title_is_escaped_and_nothing_else_stands_in_the_markup),
		cmocka_unit_test(a_bad_filter_leaves_the_output_as_it_was),
		cmocka_unit_test(the_policy_for_the_header_is_the_pages_own),
		cmocka_unit_test(of_a_large_function_what_was_sampled_stays),
		cmocka_unit_test(a_listing_holds_each_chain_once_and_says_what_is_left_out),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
