/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/* Reports as documents: see report.h. */
#include "view/report/report.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/wait.h>

#include "base/sys.h"
#include "view/memory/alloc_time.h"
#include "view/memory/leaks.h"
#include "view/memory/memory.h"
#include "view/report/next.h"
#include "view/report/trust.h"

enum { TOP_FLAT = 20, TOP_TREE = 200, SAME_RUN = 3 };

static const double NO_NEWS = 0.0005; /* "0.0 %" */

const char *as_report_by_word(enum as_by by, bool plural)
{
	static const char *const one[] = {"function", "line",   "file",   "module",
					  "crate",    "thread", "process"};
	static const char *const many[] = {"functions", "lines",   "files",    "modules",
					   "crates",    "threads", "processes"};

	return plural ? many[by] : one[by];
}

const char *as_report_name(const struct as_row *row, const struct as_style *style)
{
	if (style->full_names && row->full_name && *row->full_name)
		return row->full_name;
	return row->name && *row->name ? row->name : "?";
}

double as_report_more_seconds(const struct as_row *a, const struct as_row *b, double duration_s)
{
	double ha = as_style_half(&a->self), hb = as_style_half(&b->self);
	double gap = fabs(a->self.value - b->self.value);
	double needed = (ha * ha + hb * hb) / (gap * gap); /* times the present recording */

	if (!(gap > 0) || !isfinite(needed) || needed <= 1 || !(duration_s > 0))
		return 0;
	return duration_s * (needed - 1);
}

/* ---- header ---- */

static double cpu_seconds(const struct as_model *m)
{
	struct as_trust t;

	as_model_trust(m, &t);
	return t.cpu_s;
}

/* The status told is that of the first run that failed. */
static void add_failed_run(const struct as_model *m, struct as_buf *out)
{
	for (size_t i = 0; i < m->trials.n; i++) {
		if (!m->trials.v[i].exit)
			continue;
		as_buf_adds(out, " in run ");
		as_fmt_count(out, i + 1);
		return;
	}
}

static void header_end(const struct as_model *m, struct as_buf *out)
{
	uint64_t status = m->summary.exit;

	if (!m->has_summary)
		as_buf_adds(out, ", recording cut short");
	else if (m->recording.flags & 1)
		as_buf_adds(out, ", attached");
	else if (status == UINT64_MAX)
		as_buf_adds(out, ", still running");
	else if (WIFSIGNALED((int)status))
		as_buf_addf(out, ", killed by signal %d (%s)", WTERMSIG((int)status),
			    strsignal(WTERMSIG((int)status)));
	else
		as_buf_addf(out, ", exit %d", WEXITSTATUS((int)status));
	if (m->trials.n > 1 && status && status != UINT64_MAX)
		add_failed_run(m, out);
}

void as_report_program(const struct as_model *m, struct as_buf *out)
{
	const char *name = m->args.n        ? m->args.v[0]
			   : m->processes.n ? m->processes.v[0].name
					    : "";
	const char *slash = strrchr(name, '/');

	name = slash && slash[1] ? slash + 1 : name;
	as_fmt_quoted(out, *name ? name : "session", *name ? strlen(name) : 7);
}

void as_report_header(const struct as_model *m, const struct as_style *style,
		      struct as_buf *out)
{
	struct as_buf left = {0}, right = {0};
	double cpu = cpu_seconds(m);
	struct stat st;

	as_report_program(m, &left);
	as_buf_adds(&left, ": ");
	if (m->trials.n) {
		as_fmt_count(&left, m->trials.n);
		as_buf_adds(&left, m->trials.n == 1 ? " run, " : " runs, ");
	}
	if (m->has_summary) {
		as_fmt_duration(&left, m->summary.wall_ns);
		as_buf_adds(&left, " wall, ");
	}
	if (isfinite(cpu)) {
		as_fmt_duration(&left, (uint64_t)(cpu * 1e9));
		as_buf_adds(&left, " CPU on ");
	}
	as_fmt_count(&left, m->threads.n);
	as_buf_adds(&left, m->threads.n == 1 ? " thread" : " threads");
	if (m->processes.n > 1) {
		as_buf_adds(&left, " of ");
		as_fmt_count(&left, m->processes.n);
		as_buf_adds(&left, " processes");
	}
	header_end(m, &left);
	if (m->path) {
		as_fmt_quoted(&right, m->path, strlen(m->path));
		if (stat(m->path, &st) == 0) {
			as_buf_adds(&right, " (");
			as_fmt_bytes(&right, (uint64_t)st.st_size);
			as_buf_addc(&right, ')');
		}
	}

	size_t wl = as_text_width(as_buf_str(&left), left.len);
	size_t wr = as_text_width(as_buf_str(&right), right.len);

	if (wl > (size_t)style->width) { /* ends its line, the name follows on its own */
		as_block_words(out, style, 2, left.p);
		out->p[--out->len] = 0;
	} else {
		as_buf_adds(out, left.p);
	}
	if (wr && wl + 2 + wr <= (size_t)style->width) {
		as_buf_fill(out, ' ',
			    AS_MIN((size_t)style->width, 110u) > wl + wr
				    ? AS_MIN((size_t)style->width, 110u) - wl - wr
				    : 2);
		as_buf_adds(out, right.p);
	} else if (wr) {
		as_buf_adds(out, "\n  ");
		as_buf_adds(out, right.p);
	}
	as_buf_addc(out, '\n');
	as_buf_clear(&left);
	as_buf_clear(&right);
}

/* ---- flat tables ---- */

/* Columns of every report; the numbers are their indices. */
enum {
	C_NAME,
	C_FULL,
	C_MODULE,
	C_CRATE,
	C_FILE,
	C_LINE,
	C_DEPTH,
	C_PARENT,
	C_FIRST, /* these two have the amount before them in a session of memory */
	C_SECOND,
	C_SHOWN,
	C_WHERE,
	C_NOTE,
	C_MORE, /* runs, or all figures of memory */
};
/* Of ALLOC_TIME behind the shares: what was allocated there, and what the time was spent on. */
enum { A_ALLOCS = C_SECOND + 1, A_BYTES, A_SPLIT, A_COLUMNS = 3 };

static bool is_memory(const struct as_report_request *q)
{
	return as_model_is_counted(q->model);
}

static bool is_alloc_time(const struct as_report_request *q)
{
	return q->model->measure == AS_MEASURE_ALLOC_TIME && q->query.shape == AS_SHAPE_FLAT;
}

static size_t at(const struct as_report_request *q, size_t column)
{
	if (is_alloc_time(q))
		return column > C_SECOND ? column + A_COLUMNS : column;
	if (!is_memory(q) || column < C_FIRST)
		return column;
	return column == C_FIRST ? C_FIRST + 1 : column + 2;
}

static size_t amount_of(const struct as_report_request *q, size_t column)
{
	return at(q, column) - 1;
}

/* Figures of memory that stand in JSON and CSV beside the measure; those of a row itself. */
static const struct {
	const char *key;
	enum as_heap_value value;
} figures[] = {
	{"allocs", AS_HEAP_ALLOCS},
	{"reallocs", AS_HEAP_REALLOCS},
	{"frees", AS_HEAP_FREES},
	{"bytes", AS_HEAP_BYTES},
	{"live_blocks", AS_HEAP_LIVE_BLOCKS},
	{"live_bytes", AS_HEAP_LIVE_BYTES},
	{"peak_blocks", AS_HEAP_PEAK_BLOCKS},
	{"peak_bytes", AS_HEAP_PEAK_BYTES},
	{"churn_blocks", AS_HEAP_CHURN_BLOCKS},
	{"growth_bytes", AS_HEAP_GROWTH_BYTES},
	{"copied_bytes", AS_HEAP_COPIED_BYTES},
};

/* The amount takes the heading of the share behind it. On a narrow terminal the second share makes room for
 * names: it says what the amount says. */
static void share_column(const struct as_report_request *q, struct as_column c,
			 struct as_table *t)
{
	bool bytes = as_measure_is_bytes(q->model->measure), self = strcmp(c.key, "self") == 0;
	bool second = t->columns.n > C_FIRST;

	if (is_memory(q)) {
		as_table_column(
			t, (struct as_column){self ? "self_amount" : "total_amount", c.head,
					      bytes ? AS_CELL_BYTES : AS_CELL_COUNT, c.flags});
		c.head = "";
		c.flags |= second ? AS_COL_SPARE : 0;
	}
	as_table_column(t, c);
}

static void alloc_time_columns(struct as_table *t)
{
	as_table_column(
		t, (struct as_column){"allocs", "allocs", AS_CELL_COUNT, AS_COL_HIDE_EMPTY});
	as_table_column(t,
			(struct as_column){"bytes", "bytes", AS_CELL_BYTES, AS_COL_HIDE_EMPTY});
	as_table_column(t, (struct as_column){"split", "", AS_CELL_TEXT,
					      AS_COL_TEXT_ONLY | AS_COL_SPARE});
}

static const struct {
	const char *key;
	enum as_heap_value value;
	enum as_cell_type type;
} alloc_figures[] = {
	{"alloc_s", AS_HEAP_NEW_NS, AS_CELL_DURATION},
	{"realloc_s", AS_HEAP_REALLOC_NS, AS_CELL_DURATION},
	{"free_s", AS_HEAP_FREE_NS, AS_CELL_DURATION},
	{"fault_s", AS_HEAP_FAULT_NS, AS_CELL_DURATION},
	{"reallocs", AS_HEAP_REALLOCS, AS_CELL_COUNT},
	{"copied_bytes", AS_HEAP_COPIED_BYTES, AS_CELL_COUNT},
};

/* What was allocated is known for the whole run only. */
static void add_alloc_time(const struct as_report_request *q, const struct as_row *row,
			   struct as_table *t)
{
	bool knows = q->model->heap.is && !q->query.from_ns && !q->query.to_ns;
	uint64_t ns[AS_ALLOC_KINDS] = {0};
	struct as_buf split = {0};

	if (!is_alloc_time(q) || !row->self_values)
		return;
	for (int k = AS_ALLOC_NEW; k < AS_ALLOC_KINDS; k++)
		ns[k] = row->self_values[AS_HEAP_NEW_NS + k - 1];
	as_alloc_time_split(ns, &split);
	as_table_text(t, A_SPLIT, as_buf_str(&split));
	as_buf_clear(&split);
	if (knows) {
		as_table_value(t, A_ALLOCS, row->self_values[AS_HEAP_ALLOCS]);
		as_table_value(t, A_BYTES, row->self_values[AS_HEAP_BYTES]);
	}
	for (size_t i = 0; i < AS_ARRAY_LEN(alloc_figures); i++) {
		if (knows || alloc_figures[i].type == AS_CELL_DURATION)
			as_table_value(t, at(q, C_MORE) + i,
				       row->self_values[alloc_figures[i].value]);
	}
}

static void columns(const struct as_report_request *q, struct as_table *t, bool tree,
		    bool total_is_news)
{
	unsigned no_tree = tree ? AS_COL_DATA_ONLY : AS_COL_DATA_ONLY | AS_COL_TEXT_ONLY;
	unsigned second = tree ? AS_COL_HIDE_EMPTY : total_is_news ? 0 : AS_COL_DATA_ONLY;
	struct as_column self = {"self", "self", AS_CELL_SHARE, 0};
	struct as_column total = {"total", "total", AS_CELL_SHARE, 0};

	as_table_column(t, (struct as_column){"name", "", AS_CELL_TEXT, AS_COL_DATA_ONLY});
	as_table_column(t, (struct as_column){"full_name", "", AS_CELL_TEXT, AS_COL_DATA_ONLY});
	as_table_column(t, (struct as_column){"module", "", AS_CELL_TEXT, AS_COL_DATA_ONLY});
	as_table_column(t, (struct as_column){"crate", "", AS_CELL_TEXT, AS_COL_DATA_ONLY});
	as_table_column(t, (struct as_column){"file", "", AS_CELL_TEXT, AS_COL_DATA_ONLY});
	as_table_column(t, (struct as_column){"line", "", AS_CELL_COUNT, AS_COL_DATA_ONLY});
	as_table_column(t, (struct as_column){"depth", "", AS_CELL_COUNT, no_tree});
	as_table_column(t, (struct as_column){"parent", "", AS_CELL_COUNT, no_tree});
	self.flags = tree ? second : 0;
	total.flags = tree ? 0 : second;
	share_column(q, tree ? total : self, t);
	share_column(q, tree ? self : total, t);
	if (is_alloc_time(q))
		alloc_time_columns(t);
	as_table_column(t, (struct as_column){"shown", as_report_by_word(q->query.by, false),
					      AS_CELL_TEXT, AS_COL_FLEX | AS_COL_TEXT_ONLY});
	as_table_column(t, (struct as_column){"where", "", AS_CELL_TEXT,
					      AS_COL_FLEX | AS_COL_TEXT_ONLY |
						      AS_COL_HIDE_EMPTY | AS_COL_FAINT});
	as_table_column(
		t, (struct as_column){"note", "", AS_CELL_TEXT,
				      AS_COL_TEXT_ONLY | AS_COL_HIDE_EMPTY | AS_COL_SPARE});
}

static void memory_columns(const struct as_report_request *q, struct as_table *t)
{
	for (size_t i = 0; is_alloc_time(q) && i < AS_ARRAY_LEN(alloc_figures); i++)
		as_table_column(t, (struct as_column){alloc_figures[i].key, "",
						      alloc_figures[i].type, AS_COL_DATA_ONLY});
	if (!is_memory(q))
		return;
	for (size_t i = 0; i < AS_ARRAY_LEN(figures); i++)
		as_table_column(t, (struct as_column){figures[i].key, "", AS_CELL_COUNT,
						      AS_COL_DATA_ONLY});
	as_table_column(
		t, (struct as_column){"leaked_bytes", "", AS_CELL_COUNT, AS_COL_DATA_ONLY});
}

static void add_amount(const struct as_report_request *q, const struct as_profile *p,
		       size_t column, double share, struct as_table *t)
{
	if (is_memory(q))
		as_table_value(t, amount_of(q, column), as_memory_whole(share * p->weight));
}

/* leaked_bytes stays null where nobody looked. */
static void add_memory(const struct as_report_request *q, const struct as_row *row,
		       struct as_table *t)
{
	for (size_t i = 0; is_memory(q) && row->self_values && i < AS_ARRAY_LEN(figures); i++)
		as_table_value(t, at(q, C_MORE) + i, row->self_values[figures[i].value]);
	if (is_memory(q) && row->self_values && q->model->heap.look.leaks.n)
		as_table_value(t, at(q, C_MORE) + AS_ARRAY_LEN(figures),
			       row->self_values[AS_HEAP_LEAKED_BYTES]);
}

/* All cells of a row but shares and tree columns. */
static void describe(const struct as_report_request *q, const struct as_row *row,
		     const struct as_style *style, struct as_table *t)
{
	struct as_buf where = {0}, shown = {0};

	as_table_text(t, C_NAME, row->name);
	as_table_text(t, C_FULL,
		      row->full_name && *row->full_name ? row->full_name : row->name);
	if (row->module && *row->module)
		as_table_text(t, C_MODULE, row->module);
	if (row->crate && *row->crate)
		as_table_text(t, C_CRATE, row->crate);
	if (row->file && *row->file)
		as_table_text(t, C_FILE, row->file);
	if (row->line)
		as_table_value(t, C_LINE, row->line);
	if (q->query.by == AS_BY_FUNCTION) {
		as_style_where(&where, q->model, row);
	} else if ((q->query.by == AS_BY_LINE || q->query.by == AS_BY_FILE) && row->file &&
		   *row->file) {
		as_style_file(&shown, q->model, row);
		if (q->query.by == AS_BY_LINE)
			as_buf_addf(&shown, ":%u", row->line);
		as_buf_adds(&where, q->query.by == AS_BY_LINE ? as_report_name(row, style)
				    : row->crate              ? row->crate
							      : "");
	}
	as_table_text(t, at(q, C_SHOWN), shown.len ? shown.p : as_report_name(row, style));
	as_table_text(t, at(q, C_WHERE), as_buf_str(&where));
	as_buf_clear(&where);
	as_buf_clear(&shown);
}

static size_t rows_shown(const struct as_report_request *q, const struct as_profile *p)
{
	uint64_t top = q->top ? q->top : q->format == AS_REPORT_TEXT ? TOP_FLAT : UINT64_MAX;
	size_t n = 0;

	while (n < p->rows.n && n < top) {
		const struct as_row *row = &p->rows.v[n];

		if (row->self.value < q->min_share && row->total.value < q->min_share)
			break;
		/* of memory: what allocates has a row also where nothing of it counts */
		if (q->format == AS_REPORT_TEXT && row->total.value <= 0)
			break;
		/* likewise: what only calls what allocates stands in trees; its rows would be most of a
		 * small program's, all of them with the whole in `total` */
		if (is_memory(q) && q->format == AS_REPORT_TEXT && !q->top && n &&
		    row->self.value < NO_NEWS)
			break;
		n++;
	}
	return n;
}

static void mark_runs(const struct as_report_request *q, const struct as_row *row,
		      struct as_table *t)
{
	size_t more = is_alloc_time(q) ? AS_ARRAY_LEN(alloc_figures) : 0;
	struct as_buf b = {0};

	as_table_value(t, at(q, C_MORE) + more, row->total.runs);
	if (row->one_run) {
		as_buf_adds(&b, "in one run of ");
		as_fmt_count(&b, q->model->trials.n);
		as_table_text(t, at(q, C_NOTE), b.p);
	}
	as_buf_clear(&b);
}

void as_report_flat(const struct as_report_request *q, const struct as_profile *p,
		    const struct as_style *style, struct as_table *t)
{
	size_t n = rows_shown(q, p);
	bool total_is_news = false;

	for (size_t i = 0; i < n; i++)
		total_is_news |= p->rows.v[i].total.value > p->rows.v[i].self.value + 1e-9;
	columns(q, t, false, total_is_news);
	memory_columns(q, t);
	if (q->model->trials.n)
		as_table_column(
			t, (struct as_column){"runs", "", AS_CELL_COUNT, AS_COL_DATA_ONLY});
	for (size_t i = 0; i < n; i++) {
		const struct as_row *row = &p->rows.v[i];
		bool up = i > 0 && p->rows.v[i - 1].tied_with_next && row->self.value > 0;
		bool down = i + 1 < n && row->tied_with_next && row[1].self.value > 0;

		as_table_row(t);
		describe(q, row, style, t);
		as_table_share(t, at(q, C_FIRST), &row->self);
		as_table_share(t, at(q, C_SECOND), &row->total);
		add_amount(q, p, C_FIRST, row->self.value, t);
		add_amount(q, p, C_SECOND, row->total.value, t);
		add_memory(q, row, t);
		add_alloc_time(q, row, t);
		if (up || down)
			as_table_mark(t, at(q, C_FIRST), up && down ? "│" : up ? "┘" : "┐");
		if (q->model->trials.n)
			mark_runs(q, row, t);
	}
}

/* ---- trees ---- */

struct branch {
	uint32_t node;
	size_t parent_row;        /* SIZE_MAX: none */
	const char *lead, *below; /* before this line, before its children */
	uint32_t depth;
};

struct walk {
	const struct as_report_request *q;
	const struct as_profile *p;
	const struct as_style *style;
	struct as_table *t;
	struct as_arena arena;
	AS_VEC(struct branch) todo;
	uint64_t top;
};

static double node_share(const struct as_profile *p, const struct as_node *n)
{
	return p->weight > 0 ? n->total / p->weight : 0;
}

static const char *joined(struct walk *w, const char *a, const char *b)
{
	AS_CLEANUP(as_free_autop) char *s = as_xasprintf("%s%s", a, b);

	return as_arena_strdup(&w->arena, s);
}

static void node_name(const struct walk *w, const struct as_node *n, struct as_row *ret)
{
	*ret = (struct as_row){.name = "all", .full_name = "all"};
	if (n->key != AS_NONE)
		as_profile_name(w->p, n->key, ret);
}

/* Upwards, what a node has beyond its children is where stacks begin: no self time. */
static bool calls_downwards(const struct as_report_request *q)
{
	return q->query.shape == AS_SHAPE_TREE || q->query.shape == AS_SHAPE_CALLEES;
}

static size_t emit(struct walk *w, const struct branch *b)
{
	const struct as_node *n = &w->p->nodes.v[b->node];
	struct as_share total = {.value = node_share(w->p, n),
				 .low = n->low,
				 .high = n->high,
				 .samples = n->total_samples};
	struct as_share self = {.value = w->p->weight > 0 ? n->self / w->p->weight : 0,
				.low = NAN,
				.high = NAN,
				.samples = n->self_samples};
	struct as_row row;
	size_t line = as_table_row(w->t);

	node_name(w, n, &row);
	describe(w->q, &row, w->style, w->t);
	as_table_lead(w->t, at(w->q, C_SHOWN), b->lead);
	as_table_value(w->t, C_DEPTH, b->depth);
	if (b->parent_row != SIZE_MAX)
		as_table_value(w->t, C_PARENT, b->parent_row);
	as_table_share(w->t, at(w->q, C_FIRST), &total);
	add_amount(w->q, w->p, C_FIRST, total.value, w->t);
	if (calls_downwards(w->q) && (w->q->format != AS_REPORT_TEXT || self.value >= 0.0005)) {
		as_table_share(w->t, at(w->q, C_SECOND), &self);
		add_amount(w->q, w->p, C_SECOND, self.value, w->t);
	}
	return line;
}

/* Text only: a run of one function calling itself, as one line. Returns where the run ends. */
static uint32_t skip_recursion(struct walk *w, const struct branch *b)
{
	const struct as_node *nodes = w->p->nodes.v;
	uint32_t last = b->node, next = nodes[last].first_child, run = 0;

	while (next != AS_NONE && nodes[next].key == nodes[b->node].key &&
	       nodes[next].total >= nodes[last].total * 0.98) {
		last = next;
		next = nodes[last].first_child;
		run++;
	}
	if (run < SAME_RUN || w->q->format != AS_REPORT_TEXT)
		return b->node;

	struct as_buf text = {0};

	as_buf_adds(&text, "… ");
	as_fmt_count(&text, run);
	as_buf_adds(&text, " more frames of itself");
	as_table_row(w->t);
	as_table_text(w->t, at(w->q, C_SHOWN), text.p);
	as_table_lead(w->t, at(w->q, C_SHOWN), b->below);
	as_buf_clear(&text);
	return last;
}

static size_t visible_children(const struct walk *w, uint32_t node)
{
	const struct as_node *nodes = w->p->nodes.v;
	size_t n = 0;

	for (uint32_t c = nodes[node].first_child; c != AS_NONE; c = nodes[c].next_sibling)
		n += node_share(w->p, &nodes[c]) >= w->q->min_share;
	return n;
}

/* Children go onto the stack last first, so that the heaviest is taken next. */
static void push_children(struct walk *w, const struct branch *b, uint32_t node, size_t row)
{
	const struct as_node *nodes = w->p->nodes.v;
	size_t visible = visible_children(w, node), first = w->todo.n, i = 0;
	bool alone = visible == 1 &&
		     nodes[nodes[node].first_child].total >= nodes[node].total * 0.97;
	const char *below = b->below;

	if (as_text_width(below, strlen(below)) > (size_t)w->style->width / 3)
		below = joined(w, "… ", ""); /* too far right to draw: the guides start again */
	for (uint32_t c = nodes[node].first_child; c != AS_NONE; c = nodes[c].next_sibling) {
		struct branch child = {.node = c, .parent_row = row, .depth = b->depth + 1};

		if (node_share(w->p, &nodes[c]) < w->q->min_share)
			continue;
		i++;
		child.lead = alone ? below : joined(w, below, i == visible ? "└─ " : "├─ ");
		child.below = alone ? below : joined(w, below, i == visible ? "   " : "│  ");
		as_vec_push(&w->todo, child);
	}
	for (size_t lo = first, hi = w->todo.n; lo + 1 < hi; lo++, hi--) {
		struct branch swap = w->todo.v[lo];

		w->todo.v[lo] = w->todo.v[hi - 1];
		w->todo.v[hi - 1] = swap;
	}
}

/* "all" says nothing above the one function that callers or callees were asked of. */
static uint32_t first_node(const struct as_report_request *q, const struct as_profile *p)
{
	uint32_t child = p->nodes.v[0].first_child;

	if (!q->query.of || child == AS_NONE || p->nodes.v[child].next_sibling != AS_NONE)
		return 0;
	return child;
}

void as_report_tree(const struct as_report_request *q, const struct as_profile *p,
		    const struct as_style *style, struct as_table *t)
{
	struct walk w = {.q = q, .p = p, .style = style, .t = t};

	w.top = q->top ? q->top : q->format == AS_REPORT_TEXT ? TOP_TREE : UINT64_MAX;
	columns(q, t, true, true);
	if (p->nodes.n)
		as_vec_push(&w.todo, (struct branch){.node = first_node(q, p),
						     .parent_row = SIZE_MAX,
						     .lead = "",
						     .below = ""});
	while (w.todo.n && t->nrows < w.top) {
		struct branch b = w.todo.v[--w.todo.n];
		size_t row = emit(&w, &b);

		push_children(&w, &b, skip_recursion(&w, &b), row);
	}
	as_vec_clear(&w.todo);
	as_arena_clear(&w.arena);
}

/* ---- the whole document ---- */

static void add_filter(struct as_buf *b, const char *word, const char *value)
{
	if (!value)
		return;
	as_buf_addf(b, "%s%s '", b->len ? ", " : "", word);
	as_fmt_quoted(b, value, strlen(value));
	as_buf_addc(b, '\'');
}

static void add_time(struct as_buf *b, const struct as_query *q)
{
	if (!q->from_ns && !q->to_ns)
		return;
	as_buf_addf(b, "%stime ", b->len ? ", " : "");
	as_fmt_duration(b, q->from_ns);
	as_buf_adds(b, "..");
	if (q->to_ns != UINT64_MAX && q->to_ns)
		as_fmt_duration(b, q->to_ns);
}

void as_report_filters(const struct as_query *q, struct as_buf *out)
{
	add_filter(out, "focus", q->focus);
	add_filter(out, "ignore", q->ignore);
	add_filter(out, "hide", q->hide);
	add_filter(out, "thread", q->thread);
	add_filter(out, "module", q->module);
	add_time(out, q);
}

/* What was asked, when it was more than the plain table: "callers of 'x' · focus 'y': 34.2 % of …" */
static void question(const struct as_report_request *q, const struct as_profile *p,
		     const struct as_style *style, struct as_buf *out)
{
	static const char *const shape[] = {NULL, "calls, from the thread's start down",
					    "calls, from the innermost function up",
					    "callers of", "callees of"};
	struct as_buf b = {0};

	as_report_filters(&q->query, &b);
	if (b.len && p->weight > 0)
		as_buf_addf(&b, ": %.1f %% of %s", p->kept_weight / p->weight * 100,
			    q->query.thread || q->query.from_ns || q->query.to_ns
				    ? "the samples in scope"
			    : is_memory(q) ? "the whole"
					   : "all samples");
	if (shape[q->query.shape] || b.len) {
		struct as_buf line = {0};

		if (shape[q->query.shape])
			as_buf_adds(&line, shape[q->query.shape]);
		if (q->query.of)
			as_buf_addf(&line, " %s", q->query.of);
		if (line.len && b.len)
			as_buf_adds(&line, " · ");
		as_buf_adds(&line, as_buf_str(&b));
		as_block_words(out, style, 0, line.p);
		as_buf_clear(&line);
	}
	as_buf_clear(&b);
}

/* Of memory also what is left out for want of any: callers, whose totals may be what is asked for. */
static void rest_line(const struct as_report_request *q, const struct as_profile *p,
		      size_t shown, struct as_buf *out)
{
	double rest = 0;
	size_t n = 0, callers = 0;

	if (q->query.shape != AS_SHAPE_FLAT)
		return;
	for (size_t i = shown; i < p->rows.n; i++) {
		const struct as_row *row = &p->rows.v[i];

		rest += row->self.value;
		n += row->self.value > 0;
		callers += is_memory(q) && row->self.value <= 0 && row->total.value > 0;
	}
	if (!n && !callers)
		return;
	as_buf_adds(out, "   … ");
	if (n) {
		as_fmt_count(out, n);
		as_buf_addf(out, " more %s, together %.1f %% (--top N)",
			    as_report_by_word(q->query.by, n != 1), rest * 100);
	}
	if (callers) {
		as_buf_adds(out, n ? "; " : "");
		as_fmt_count(out, callers);
		as_buf_addf(out, "%s%s only call%s these (--tree)", n ? "" : " more ",
			    n ? "" : as_report_by_word(q->query.by, callers != 1),
			    callers == 1 ? "s" : "");
	}
	as_buf_addc(out, '\n');
}

/* The unfiltered table by function that next steps are drawn from. */
static int next_steps(const struct as_report_request *q, const struct as_profile *p,
		      const struct as_style *style, struct as_buf *out, struct as_error *err)
{
	struct as_query plain = {.by = AS_BY_FUNCTION};
	struct as_profile *flat = NULL;

	if (is_memory(q)) {
		as_memory_next(q, style, out);
		return 0;
	}

	bool same = memcmp(&plain, &q->query, sizeof plain) == 0;
	int r = same ? 0 : as_profile_make(q->model, &plain, &flat, err);

	if (r < 0)
		return r;

	struct as_next_request next = {.model = q->model,
				       .flat = same ? p : flat,
				       .file = q->file,
				       .asked = &q->query};

	as_next_text(&next, style, out);
	as_profile_free(flat);
	return 0;
}

static int text_document(const struct as_report_request *q, const struct as_profile *p,
			 const struct as_table *t, const struct as_style *style,
			 struct as_buf *out, struct as_error *err)
{
	as_report_header(q->model, style, out);
	if (q->model->heap.is || q->model->measure == AS_MEASURE_ALLOC_TIME)
		as_memory_header(q->model, style, out);
	as_buf_addc(out, '\n');
	question(q, p, style, out);
	if (t->nrows) {
		as_table_print(t, style, out);
		rest_line(q, p, t->nrows, out);
	} else if (p->samples) {
		as_buf_adds(out, is_memory(q) && p->rows.n ? "   nothing\n"
							   : "   nothing matches\n");
	}
	as_buf_addc(out, '\n');
	if (q->model->measure == AS_MEASURE_LEAKED)
		as_leaks_text(q->model, style, out);
	if (q->model->measure == AS_MEASURE_LIVE || q->model->measure == AS_MEASURE_MAPPED)
		as_resident_text(q->model, style, out);
	if (is_memory(q) && q->query.by == AS_BY_THREAD)
		as_memory_flows_text(q->model, style, out);
	if (is_memory(q) && q->query.shape == AS_SHAPE_FLAT)
		as_memory_shape(q->model, style, out);
	if (q->alloc_time)
		as_alloc_time_text(q->model, q->alloc_time, style, out);
	as_trust_text(q->model, style, out);
	return next_steps(q, p, style, out, err);
}

int as_report_make(const struct as_report_request *q, const struct as_style *style,
		   struct as_buf *out, struct as_error *err)
{
	struct as_profile *p;
	struct as_table t = {0};
	int r;

	if (q->table)
		return as_memory_table_make(q, style, out, err);
	r = as_profile_make(q->model, &q->query, &p, err);
	if (r < 0)
		return r;
	if (q->query.shape == AS_SHAPE_FLAT)
		as_report_flat(q, p, style, &t);
	else
		as_report_tree(q, p, style, &t);
	if (q->format == AS_REPORT_JSON)
		as_report_json(q, p, &t, out);
	else if (q->format == AS_REPORT_CSV)
		as_table_csv(&t, out);
	else
		r = text_document(q, p, &t, style, out, err);
	as_table_clear(&t);
	as_profile_free(p);
	return r;
}
