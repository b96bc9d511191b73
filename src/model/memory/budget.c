/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/* Budgets of memory: see budget.h. */
#include "model/memory/budget.h"

#include <ctype.h>
#include <stdlib.h>
#include <string.h>

#include "base/mem.h"
#include "base/sys.h"
#include "model/model_priv.h"

#define TEXT_MAX 400u /* longer ones are not shown with a mark */

static const char *const whats[AS_BUDGET_WHATS] = {
	[AS_BUDGET_ALLOCS] = "allocs",     [AS_BUDGET_FREES] = "frees",
	[AS_BUDGET_REALLOCS] = "reallocs", [AS_BUDGET_CHURN] = "churn",
	[AS_BUDGET_FAILED] = "failed",     [AS_BUDGET_BYTES] = "bytes",
	[AS_BUDGET_LIVE] = "live",         [AS_BUDGET_PEAK] = "peak",
	[AS_BUDGET_GROWTH] = "growth",     [AS_BUDGET_COPIED] = "copied",
	[AS_BUDGET_MAPPED] = "mapped",     [AS_BUDGET_LEAKED] = "leaked",
};
static const char *const scopes[AS_BUDGET_SCOPES] = {"in", "thread", "process", "module"};
static const struct {
	const char *sign, *words;
} compares[AS_BUDGET_COMPARES] = {
	[AS_BUDGET_ABOVE] = {">", "more than"}, [AS_BUDGET_AT_LEAST] = {">=", "at least"},
	[AS_BUDGET_BELOW] = {"<", "less than"}, [AS_BUDGET_AT_MOST] = {"<=", "at most"},
	[AS_BUDGET_EQUAL] = {"==", "just"},     [AS_BUDGET_UNEQUAL] = {"!=", "not"},
};

static bool is_bytes(const struct as_heap_budget *b)
{
	return b->what >= AS_BUDGET_BYTES;
}

/* ---- parsing ---- */

struct parser {
	const char *text, *p;
	struct as_heap_budget *b;
	struct as_error *err;
};

static int wrong(const struct parser *s, const char *at, const char *why)
{
	size_t column = as_text_width(s->text, (size_t)(at - s->text));
	AS_CLEANUP(as_buf_clear) struct as_buf shown = {0};

	as_fmt_quoted(&shown, s->text, strlen(s->text));
	if (shown.len > TEXT_MAX)
		return as_fail(s->err, AS_E_USAGE, 0, "--fail-if: this is no budget: %s", why);
	/* Two blanks: what cli/ puts before the lines that follow the first is the same for both. */
	return as_fail(s->err, AS_E_USAGE, 0,
		       "--fail-if: %s\n  %s\n  %*s^\n"
		       "  like 'peak > 50MiB' or 'allocs(in=parse) > 0'",
		       why, as_buf_str(&shown), (int)column, "");
}

static void skip_blanks(struct parser *s)
{
	s->p += strspn(s->p, " \t");
}

static size_t word_length(const char *p)
{
	size_t n = 0;

	while (isalnum((unsigned char)p[n]) || p[n] == '_' || p[n] == '-')
		n++;
	return n;
}

static int find_word(const char *const *words, size_t n, const char *p, size_t length)
{
	for (size_t i = 0; i < n; i++) {
		if (strlen(words[i]) == length && memcmp(words[i], p, length) == 0)
			return (int)i;
	}
	return -1;
}

static void add_words(struct as_buf *b, const char *const *words, size_t n)
{
	for (size_t i = 0; i < n; i++)
		as_buf_addf(b, "%s%s", i == 0 ? "" : i + 1 == n ? " or " : ", ", words[i]);
}

/* One of the words, with what there is when it is none. */
static int take_word(struct parser *s, const char *kind, const char *const *words, size_t n)
{
	size_t length = word_length(s->p);
	int word = find_word(words, n, s->p, length);
	AS_CLEANUP(as_buf_clear) struct as_buf why = {0};

	if (word >= 0) {
		s->p += length;
		return word;
	}
	if (length)
		as_buf_addf(&why, "'%.*s' is no %s: ", (int)AS_MIN(length, 40u), s->p, kind);
	else
		as_buf_addf(&why, "here a %s is missing: ", kind);
	add_words(&why, words, n);
	return wrong(s, s->p, as_buf_str(&why));
}

static size_t value_length(const char *p)
{
	size_t n = as_heap_name_length(p, ')');

	while (n && (p[n - 1] == ' ' || p[n - 1] == '\t'))
		n--;
	return n;
}

static int parse_value(struct parser *s, char **ret)
{
	const char *start = s->p;
	char quote = *start;

	if (quote == '"' || quote == '\'') {
		const char *end = strchr(start + 1, quote);

		if (!end)
			return wrong(s, start, "this quote has no end");
		*ret = as_xstrndup(start + 1, (size_t)(end - start - 1));
		s->p = end + 1;
	} else {
		size_t n = value_length(start);

		*ret = as_xstrndup(start, n);
		s->p = start + n;
	}
	if (**ret)
		return AS_OK;
	return wrong(s, start, "here a name is missing");
}

static int parse_scope(struct parser *s)
{
	const char *start;
	int scope, r;

	skip_blanks(s);
	start = s->p;
	scope = take_word(s, "scope", scopes, AS_BUDGET_SCOPES);
	if (scope < 0)
		return scope;
	if (s->b->scope[scope])
		return wrong(s, start, "this is said twice");
	skip_blanks(s);
	if (*s->p != '=')
		return wrong(s, s->p, "here '=' is missing");
	s->p++;
	skip_blanks(s);
	r = parse_value(s, &s->b->scope[scope]);
	skip_blanks(s);
	return r;
}

static int parse_scopes(struct parser *s)
{
	int r = AS_OK;

	skip_blanks(s);
	if (*s->p != '(')
		return AS_OK;
	do {
		s->p++;
		r = parse_scope(s);
	} while (r == AS_OK && *s->p == ',');
	if (r < 0)
		return r;
	if (*s->p != ')')
		return wrong(s, s->p, "here ')' is missing");
	s->p++;
	return AS_OK;
}

static int parse_compare(struct parser *s)
{
	skip_blanks(s);
	for (size_t longest = 2; longest; longest--) {
		for (int i = 0; i < AS_BUDGET_COMPARES; i++) {
			const char *sign = compares[i].sign;

			if (strlen(sign) != longest || strncmp(s->p, sign, longest) != 0)
				continue;
			s->b->compare = (enum as_budget_compare)i;
			s->p += longest;
			return AS_OK;
		}
	}
	return wrong(s, s->p, "here a comparison is missing: > >= < <= == or !=");
}

/* 10, 1.5k, 2M: thousands */
static bool parse_count(const char *text, uint64_t *ret)
{
	static const char units[] = "kMG";
	size_t n = strlen(text);
	const char *unit = n && text[n - 1] ? strchr(units, text[n - 1]) : NULL;
	AS_CLEANUP(as_free_autop) char *number = as_xstrndup(text, unit ? n - 1 : n);
	double v, factor = 1;

	for (const char *u = units; unit && u <= unit; u++)
		factor *= 1000;
	if (!unit && as_parse_u64(number, ret))
		return true;
	if (!as_parse_double(number, &v) || v < 0 || v * factor >= 0x1p63)
		return false;
	*ret = (uint64_t)(v * factor + 0.5);
	return (double)*ret == v * factor || unit;
}

/* "64 KiB" and "64B" beside what sizes of options may look like. */
static bool parse_bytes(const char *text, uint64_t *ret)
{
	AS_CLEANUP(as_buf_clear) struct as_buf b = {0};
	size_t n;

	for (; *text; text++) {
		if (*text != ' ')
			as_buf_addc(&b, *text);
	}
	n = b.len;
	if (n > 1 && b.p[n - 1] == 'B' && isdigit((unsigned char)b.p[n - 2]))
		b.p[n - 1] = '\0';
	return as_parse_size(as_buf_str(&b), ret);
}

int as_heap_parse_amount(const char *text, bool bytes, uint64_t *ret)
{
	return (bytes ? parse_bytes(text, ret) : parse_count(text, ret)) ? AS_OK : AS_E_USAGE;
}

bool as_heap_budget_is_bytes(const struct as_heap_budget *b)
{
	return is_bytes(b);
}

static int parse_bound(struct parser *s)
{
	size_t n;

	skip_blanks(s);
	n = strlen(s->p);
	while (n && (s->p[n - 1] == ' ' || s->p[n - 1] == '\t'))
		n--;

	AS_CLEANUP(as_free_autop) char *text = as_xstrndup(s->p, n);

	if (!n)
		return wrong(s, s->p, "here a bound is missing");
	if (is_bytes(s->b) ? parse_bytes(text, &s->b->bound) : parse_count(text, &s->b->bound))
		return AS_OK;
	return wrong(s, s->p,
		     is_bytes(s->b) ? "this is no amount of bytes: 4096, 64KiB, 50MiB, 1.5GiB"
				    : "this is no count: 0, 1500, 10k, 2M");
}

static int parse(const char *text, struct as_heap_budget *b, struct as_error *err)
{
	struct parser s = {.text = text, .p = text, .b = b, .err = err};
	int r;

	b->text = as_xstrdup(text);
	skip_blanks(&s);
	r = take_word(&s, "figure", whats, AS_BUDGET_WHATS);
	if (r < 0)
		return r;
	b->what = (enum as_budget_what)r;
	r = parse_scopes(&s);
	if (r == AS_OK)
		r = parse_compare(&s);
	return r < 0 ? r : parse_bound(&s);
}

int as_heap_budgets_parse(const char *const *texts, size_t n, struct as_heap_budgets *ret,
			  struct as_error *err)
{
	*ret = (struct as_heap_budgets){.v = as_xcalloc(n + 1, sizeof *ret->v)};
	for (; ret->n < n; ret->n++) {
		int r = parse(texts[ret->n], &ret->v[ret->n], err);

		if (r == AS_OK)
			continue;
		ret->n++;
		as_heap_budgets_clear(ret);
		return r;
	}
	return AS_OK;
}

void as_heap_budgets_clear(struct as_heap_budgets *b)
{
	for (size_t i = 0; i < b->n; i++) {
		free(b->v[i].text);
		for (int s = 0; s < AS_BUDGET_SCOPES; s++)
			free(b->v[i].scope[s]);
	}
	free(b->v);
	*b = (struct as_heap_budgets){0};
}

/* ---- scopes ---- */

static bool is_name_byte(char c)
{
	return isalnum((unsigned char)c) || c == '_' || (unsigned char)c >= 0x80;
}

static bool has_part(const char *full, const char *name)
{
	size_t n = strlen(name);

	for (const char *at = strstr(full, name); at; at = strstr(at + 1, name)) {
		bool begins = at == full || !is_name_byte(at[-1]) || !is_name_byte(name[0]);

		if (begins && (!is_name_byte(at[n]) || !is_name_byte(name[n - 1])))
			return true;
	}
	return false;
}

bool as_heap_function_matches(const struct as_m_function *f, const char *name, bool exactly)
{
	if (exactly)
		return strcmp(f->brief, name) == 0 || strcmp(f->full, name) == 0 ||
		       strcmp(f->linkage, name) == 0;
	return has_part(f->full, name) || has_part(f->brief, name);
}

struct scope {
	const struct as_model *m;
	const struct as_heap_budget *b;
	uint8_t *function; /* 1: meant by `in`; NULL: not asked */
	uint8_t *stack;    /* 1: it passes one of them */
};

static void mark_functions(struct scope *s, const char *name)
{
	const struct as_model *m = s->m;
	bool found = false;

	s->function = as_xcalloc(m->functions.n + 1, 1);
	for (int exactly = 1; exactly >= 0 && !found; exactly--) {
		for (size_t i = 0; i < m->functions.n; i++) {
			const struct as_m_function *f = &m->functions.v[i];

			s->function[i] = !(f->flags & AS_FUNCTION_MARKER) &&
					 as_heap_function_matches(f, name, exactly);
			found |= s->function[i];
		}
	}
}

static void mark_stacks(struct scope *s)
{
	const struct as_model *m = s->m;

	s->stack = as_xcalloc(m->stacks.n + 1, 1);
	for (size_t i = 0; i < m->stacks.n; i++) {
		const struct as_m_stack *k = &m->stacks.v[i];
		const struct as_m_frame *f = &m->frames.v[k->frame];

		if (k->parent != AS_NONE && s->stack[k->parent])
			s->stack[i] = 1;
		for (uint32_t c = 0; c < f->nchain && !s->stack[i]; c++)
			s->stack[i] = s->function[m->places.v[f->chain + c].function];
	}
}

static bool number_or_part(const char *name, uint32_t number, const char *want)
{
	uint64_t n;

	return strstr(name, want) || (as_parse_u64(want, &n) && n == number);
}

static bool is_in_module(const struct as_model *m, const struct as_m_heap_row *row,
			 const char *want)
{
	uint32_t stack = row->folded, module;

	if (stack == AS_NONE)
		return false;
	module = m->frames.v[m->stacks.v[stack].frame].module;
	return module != AS_NONE && strstr(m->modules.v[module].path, want);
}

static bool is_in_scope(const struct scope *s, const struct as_m_heap_row *row)
{
	const struct as_m_process *process = &s->m->processes.v[row->r.process];
	const struct as_m_thread *thread = &s->m->threads.v[row->r.thread];
	char *const *want = s->b->scope;

	if (s->stack && (row->stack == AS_NONE || !s->stack[row->stack]))
		return false;
	if (want[AS_BUDGET_THREAD] &&
	    !number_or_part(thread->name, thread->tid, want[AS_BUDGET_THREAD]))
		return false;
	if (want[AS_BUDGET_PROCESS] &&
	    !number_or_part(process->name, process->pid, want[AS_BUDGET_PROCESS]))
		return false;
	return !want[AS_BUDGET_MODULE] || is_in_module(s->m, row, want[AS_BUDGET_MODULE]);
}

/* ---- figures ---- */

static uint64_t figure(const struct as_rec_heap_stack *r, enum as_budget_what what)
{
	switch (what) {
	case AS_BUDGET_ALLOCS:
		return r->allocs;
	case AS_BUDGET_FREES:
		return r->frees;
	case AS_BUDGET_REALLOCS:
		return r->reallocs;
	case AS_BUDGET_CHURN:
		return r->churn_blocks;
	case AS_BUDGET_FAILED:
		return r->failed;
	case AS_BUDGET_BYTES:
		return r->bytes;
	case AS_BUDGET_LIVE:
		return r->live_bytes;
	case AS_BUDGET_GROWTH:
		return r->growth_bytes > 0 ? (uint64_t)r->growth_bytes : 0;
	case AS_BUDGET_COPIED:
		return r->copied_bytes;
	default: /* PEAK; MAPPED, in its own domain */
		return r->peak_bytes;
	}
}

static uint64_t leaked(const struct as_model *m, uint32_t row)
{
	uint64_t values[AS_HEAP_VALUES] = {0};

	as_heap_add_values(m, row, values);
	return values[AS_HEAP_LEAKED_BYTES];
}

static bool holds(const struct as_heap_budget *b, uint64_t amount)
{
	switch (b->compare) {
	case AS_BUDGET_ABOVE:
		return amount > b->bound;
	case AS_BUDGET_AT_LEAST:
		return amount >= b->bound;
	case AS_BUDGET_BELOW:
		return amount < b->bound;
	case AS_BUDGET_AT_MOST:
		return amount <= b->bound;
	case AS_BUDGET_EQUAL:
		return amount == b->bound;
	default:
		return amount != b->bound;
	}
}

static int check(const struct as_heap_budget *b, const struct as_model *m, struct as_error *err)
{
	if (!m->heap.is)
		return as_fail(err, AS_E_USAGE, 0,
			       "--fail-if '%s': this session is of time, it has no memory",
			       b->text);
	if (b->what == AS_BUDGET_LEAKED && as_model_has_measure(m, AS_MEASURE_LEAKED, err) < 0)
		return as_wrap(err, "--fail-if '%s'", b->text);
	return AS_OK;
}

/* Peaks of processes are at different times: the largest counts, all else is summed. */
static void add_up(const struct scope *s, struct as_heap_spent *ret)
{
	bool is_peak = s->b->what == AS_BUDGET_PEAK || s->b->what == AS_BUDGET_MAPPED;
	uint64_t domain = s->b->what == AS_BUDGET_MAPPED;
	AS_CLEANUP(as_free_autop)
	uint64_t *of = as_xcalloc(s->m->processes.n + 1, sizeof *of);

	for (uint32_t i = 0; i < s->m->heap.rows.n; i++) {
		const struct as_m_heap_row *row = &s->m->heap.rows.v[i];

		if (row->r.domain != domain || !is_in_scope(s, row))
			continue;
		ret->seen = true;
		of[row->r.process] += s->b->what == AS_BUDGET_LEAKED
					      ? leaked(s->m, i)
					      : figure(&row->r, s->b->what);
	}
	for (size_t i = 0; i < s->m->processes.n; i++)
		ret->amount = is_peak ? AS_MAX(ret->amount, of[i]) : ret->amount + of[i];
}

int as_heap_budget_spend(const struct as_heap_budget *b, const struct as_model *m,
			 struct as_heap_spent *ret, struct as_error *err)
{
	struct scope s = {.m = m, .b = b};
	int r = check(b, m, err);

	*ret = (struct as_heap_spent){0};
	if (r < 0)
		return r;
	if (b->scope[AS_BUDGET_IN]) {
		mark_functions(&s, b->scope[AS_BUDGET_IN]);
		mark_stacks(&s);
	}
	add_up(&s, ret);
	ret->broken = holds(b, ret->amount);
	free(s.function);
	free(s.stack);
	return AS_OK;
}

/* ---- words ---- */

static void add_amount(const struct as_heap_budget *b, uint64_t amount, struct as_buf *out)
{
	if (is_bytes(b))
		as_fmt_bytes(out, amount);
	else
		as_fmt_count(out, amount);
}

static void add_scope(const struct as_heap_budget *b, struct as_buf *out)
{
	static const char *const words[AS_BUDGET_SCOPES] = {"in", "of thread", "of process",
							    "in module"};

	for (int s = 0; s < AS_BUDGET_SCOPES; s++) {
		if (!b->scope[s])
			continue;
		as_buf_addf(out, " %s ", words[s]);
		as_fmt_quoted(out, b->scope[s], strlen(b->scope[s]));
	}
}

/* "peak is 61.2 MiB, more than 50.0 MiB (64,172,032 > 52,428,800 bytes)" */
static void add_broken(const struct as_heap_budget *b, const struct as_heap_spent *spent,
		       struct as_buf *out)
{
	as_buf_adds(out, whats[b->what]);
	add_scope(b, out);
	as_buf_adds(out, " is ");
	add_amount(b, spent->amount, out);
	as_buf_addf(out, ", %s ", compares[b->compare].words);
	add_amount(b, b->bound, out);
	if (is_bytes(b) && (spent->amount >= 1024 || b->bound >= 1024)) {
		as_buf_adds(out, " (");
		as_fmt_count(out, spent->amount);
		as_buf_addf(out, " %s ", compares[b->compare].sign);
		as_fmt_count(out, b->bound);
		as_buf_adds(out, " bytes)");
	}
	as_buf_addc(out, '\n');
}

static void add_unseen(const struct as_heap_budget *b, struct as_buf *out)
{
	as_buf_adds(out, whats[b->what]);
	add_scope(b, out);
	as_buf_adds(out, " is 0: no allocation was seen there, maybe its name is another\n");
}

int as_heap_budgets_check(const struct as_heap_budgets *b, const struct as_model *m,
			  struct as_buf *out, bool *ret_broken, struct as_error *err)
{
	bool broken = false;

	for (size_t i = 0; i < b->n; i++) {
		struct as_heap_spent spent;
		int r = as_heap_budget_spend(&b->v[i], m, &spent, err);
		bool scoped = false;

		if (r < 0)
			return r;
		for (int s = 0; s < AS_BUDGET_SCOPES; s++)
			scoped |= b->v[i].scope[s] != NULL;
		if (spent.broken)
			add_broken(&b->v[i], &spent, out);
		if (scoped && !spent.seen)
			add_unseen(&b->v[i], out);
		broken |= spent.broken;
	}
	*ret_broken = broken;
	return AS_OK;
}
