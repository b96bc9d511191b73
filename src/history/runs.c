/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/* Benchmarks over time: see runs.h. */
#include "history/runs.h"

#include <math.h>
#include <sqlite3.h>
#include <stdlib.h>
#include <string.h>
#include <sys/utsname.h>
#include <unistd.h>

#include "base/sys.h"
#include "history/history_priv.h"

#define NAMES_MAX 10000

const char as_history_runs_schema[] =
	"CREATE TABLE IF NOT EXISTS run ("
	" id INTEGER PRIMARY KEY AUTOINCREMENT, time_s INTEGER NOT NULL, name TEXT NOT NULL,"
	" suite TEXT NOT NULL, machine TEXT NOT NULL, toolchain TEXT NOT NULL,"
	" revision TEXT NOT NULL, tool TEXT NOT NULL, result TEXT NOT NULL);"
	"CREATE TABLE IF NOT EXISTS point ("
	" run INTEGER NOT NULL REFERENCES run (id), bench TEXT NOT NULL, side TEXT NOT NULL,"
	" metric TEXT NOT NULL, unit TEXT NOT NULL, value REAL, low REAL, high REAL);"
	"CREATE INDEX IF NOT EXISTS run_name ON run (name, id);"
	"CREATE INDEX IF NOT EXISTS point_bench ON point (bench, run);";

#define RUN_COLUMNS "name, suite, machine, toolchain, revision, tool, result, id, time_s"
enum { RUN_TEXTS = 7 };

static char **run_text(struct as_history_run *r, int i)
{
	char **const texts[RUN_TEXTS] = {&r->name,     &r->suite, &r->machine, &r->toolchain,
					 &r->revision, &r->tool,  &r->result};

	return texts[i];
}

static int failed(struct as_history *h, const char *what, struct as_error *err)
{
	return as_fail(err, AS_E_IO, 0, "cannot %s the history '%s': %s", what, h->path,
		       sqlite3_errmsg(h->db));
}

static void bind_text(sqlite3_stmt *s, int at, const char *text)
{
	sqlite3_bind_text(s, at, text ? text : "", -1, SQLITE_TRANSIENT);
}

/* NaN becomes NULL: SQLite has no other word for it. */
static void bind_number(sqlite3_stmt *s, int at, double v)
{
	if (isfinite(v))
		sqlite3_bind_double(s, at, v);
	else
		sqlite3_bind_null(s, at);
}

static char *column_text(sqlite3_stmt *s, int at)
{
	const char *text = (const char *)sqlite3_column_text(s, at);

	return as_xstrdup(text ? text : "");
}

static double column_number(sqlite3_stmt *s, int at)
{
	return sqlite3_column_type(s, at) == SQLITE_NULL ? NAN : sqlite3_column_double(s, at);
}

/* ---- writing ---- */

static bool insert_run(struct as_history *h, const struct as_history_run *run)
{
	struct as_history_run copy = *run;
	sqlite3_stmt *s = NULL;
	bool done;

	if (sqlite3_prepare_v2(
		    h->db,
		    "INSERT INTO run (name, suite, machine, toolchain, revision, tool,"
		    " result, time_s) VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8)",
		    -1, &s, NULL) != SQLITE_OK)
		return false;
	for (int i = 0; i < RUN_TEXTS; i++)
		bind_text(s, i + 1, *run_text(&copy, i));
	sqlite3_bind_int64(s, RUN_TEXTS + 1, (sqlite3_int64)run->time_s);
	done = sqlite3_step(s) == SQLITE_DONE;
	sqlite3_finalize(s);
	return done;
}

static bool insert_points(struct as_history *h, int64_t id, const struct as_history_point *p,
			  size_t n)
{
	sqlite3_stmt *s = NULL;
	bool done =
		sqlite3_prepare_v2(h->db,
				   "INSERT INTO point (run, bench, side, metric, unit, value,"
				   " low, high) VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8)",
				   -1, &s, NULL) == SQLITE_OK;

	for (size_t i = 0; done && i < n; i++) {
		sqlite3_bind_int64(s, 1, id);
		bind_text(s, 2, p[i].bench);
		bind_text(s, 3, p[i].side);
		bind_text(s, 4, p[i].metric);
		bind_text(s, 5, p[i].unit);
		bind_number(s, 6, p[i].value);
		bind_number(s, 7, p[i].low);
		bind_number(s, 8, p[i].high);
		done = sqlite3_step(s) == SQLITE_DONE;
		sqlite3_reset(s);
	}
	sqlite3_finalize(s);
	return done;
}

int as_history_run_save(struct as_history *h, const struct as_history_run *run,
			const struct as_history_point *points, size_t n, int64_t *ret_id,
			struct as_error *err)
{
	int64_t id;
	int r = AS_OK;

	/* the lock first: a transaction that begins with reading can be refused when it comes to write */
	if (sqlite3_exec(h->db, "BEGIN IMMEDIATE", NULL, NULL, NULL) != SQLITE_OK)
		return failed(h, "write to", err);
	if (!insert_run(h, run)) {
		r = failed(h, "write to", err);
	} else {
		id = sqlite3_last_insert_rowid(h->db);
		if (!insert_points(h, id, points, n))
			r = failed(h, "write to", err);
		else if (ret_id)
			*ret_id = id;
	}
	if (r == AS_OK && sqlite3_exec(h->db, "COMMIT", NULL, NULL, NULL) != SQLITE_OK)
		r = failed(h, "write to", err);
	if (r < 0)
		(void)sqlite3_exec(h->db, "ROLLBACK", NULL, NULL, NULL); /* already failed */
	return r;
}

/* ---- reading ---- */

static int no_such_run(struct as_history *h, const char *name, struct as_error *err)
{
	AS_CLEANUP(as_buf_clear) struct as_buf names = {0};
	sqlite3_stmt *s = NULL;

	if (sqlite3_prepare_v2(h->db,
			       "SELECT name FROM run WHERE name != '' GROUP BY name"
			       " ORDER BY max(id) DESC LIMIT 10",
			       -1, &s, NULL) == SQLITE_OK) {
		while (sqlite3_step(s) == SQLITE_ROW) {
			const char *text = (const char *)sqlite3_column_text(s, 0);

			as_buf_adds(&names, names.len ? ", '" : "; saved were '");
			as_fmt_quoted(&names, text, strnlen(text, 60));
			as_buf_addc(&names, '\'');
		}
	}
	sqlite3_finalize(s);
	return as_fail(err, AS_E_NOTFOUND, 0,
		       "there is no file and no saved benchmark '%s'%s\n"
		       "  assay bench history     what was run here",
		       name, as_buf_str(&names));
}

int as_history_run_find(struct as_history *h, const char *name, const char *suite,
			struct as_history_run *ret, struct as_error *err)
{
	bool last = strcmp(name, "last") == 0, number = name[0] == '#';
	const char *sql = number ? "SELECT " RUN_COLUMNS " FROM run WHERE id = ?1"
			  : last ? "SELECT " RUN_COLUMNS " FROM run WHERE ?2 = '' OR suite = ?2"
				   " ORDER BY id DESC LIMIT 1"
				 : "SELECT " RUN_COLUMNS
				   " FROM run WHERE name = ?1 ORDER BY id DESC LIMIT 1";
	sqlite3_stmt *s = NULL;
	int step;

	*ret = (struct as_history_run){0};
	if (sqlite3_prepare_v2(h->db, sql, -1, &s, NULL) != SQLITE_OK)
		return failed(h, "read", err);
	bind_text(s, 1, number ? name + 1 : name);
	if (last)
		bind_text(s, 2, suite);
	step = sqlite3_step(s);
	if (step == SQLITE_ROW) {
		for (int i = 0; i < RUN_TEXTS; i++)
			*run_text(ret, i) = column_text(s, i);
		ret->id = sqlite3_column_int64(s, RUN_TEXTS);
		ret->time_s = (uint64_t)sqlite3_column_int64(s, RUN_TEXTS + 1);
	}
	sqlite3_finalize(s);
	if (step == SQLITE_ROW)
		return AS_OK;
	return step == SQLITE_DONE ? no_such_run(h, name, err) : failed(h, "read", err);
}

void as_history_run_clear(struct as_history_run *r)
{
	for (int i = 0; i < RUN_TEXTS; i++)
		free(*run_text(r, i));
	*r = (struct as_history_run){0};
}

/* One row per run: of several sides the one that was stored last, as the newer stands last. */
static const char series_sql[] =
	"SELECT r.id, r.time_s, r.machine, r.revision, p.unit, p.value, p.low, p.high,"
	" max(p.rowid) FROM point p JOIN run r ON r.id = p.run"
	" WHERE p.bench = ?1 AND (?2 IS NULL OR p.side = ?2) AND (?3 IS NULL OR r.suite = ?3)"
	" AND (?4 IS NULL OR r.machine = ?4) GROUP BY r.id ORDER BY r.id";

int as_history_series(struct as_history *h, const struct as_history_wanted *q,
		      struct as_history_series *ret, struct as_error *err)
{
	const char *const texts[] = {q->bench, q->side, q->suite, q->machine};
	sqlite3_stmt *s = NULL;
	int step;

	*ret = (struct as_history_series){0};
	if (sqlite3_prepare_v2(h->db, series_sql, -1, &s, NULL) != SQLITE_OK)
		return failed(h, "read", err);
	for (int i = 0; i < (int)AS_ARRAY_LEN(texts); i++) {
		if (texts[i])
			bind_text(s, i + 1, texts[i]);
	}
	while ((step = sqlite3_step(s)) == SQLITE_ROW)
		as_vec_push(&ret->v, (struct as_history_entry_of){
					     .run = sqlite3_column_int64(s, 0),
					     .time_s = (uint64_t)sqlite3_column_int64(s, 1),
					     .machine = column_text(s, 2),
					     .revision = column_text(s, 3),
					     .unit = column_text(s, 4),
					     .value = column_number(s, 5),
					     .low = column_number(s, 6),
					     .high = column_number(s, 7),
				     });
	sqlite3_finalize(s);
	return step == SQLITE_DONE ? AS_OK : failed(h, "read", err);
}

void as_history_series_clear(struct as_history_series *s)
{
	as_vec_foreach (e, &s->v) {
		free(e->machine);
		free(e->revision);
		free(e->unit);
	}
	as_vec_clear(&s->v);
}

int as_history_benches(struct as_history *h, const char *suite, struct as_history_names *ret,
		       struct as_error *err)
{
	sqlite3_stmt *s = NULL;
	int step;

	*ret = (struct as_history_names){0};
	if (sqlite3_prepare_v2(h->db,
			       "SELECT p.bench FROM point p JOIN run r ON r.id = p.run"
			       " WHERE ?1 IS NULL OR r.suite = ?1"
			       " GROUP BY p.bench ORDER BY max(p.run) DESC, min(p.rowid)",
			       -1, &s, NULL) != SQLITE_OK)
		return failed(h, "read", err);
	if (suite)
		bind_text(s, 1, suite);
	while ((step = sqlite3_step(s)) == SQLITE_ROW && ret->v.n < NAMES_MAX)
		as_vec_push(&ret->v, column_text(s, 0));
	sqlite3_finalize(s);
	return step == SQLITE_DONE || ret->v.n == NAMES_MAX ? AS_OK : failed(h, "read", err);
}

void as_history_names_clear(struct as_history_names *n)
{
	as_vec_foreach (name, &n->v)
		free(*name);
	as_vec_clear(&n->v);
}

/* ---- machines ---- */

/* The first line "key : value" as it is; "" when there is none. */
static char *cpu_field(const char *cpuinfo, const char *key)
{
	size_t n = strlen(key);

	for (const char *p = cpuinfo; p && *p; p = strchr(p, '\n'), p += p != NULL) {
		const char *colon;

		if (strncmp(p, key, n) != 0 || !strchr(" \t:", p[n]))
			continue;
		colon = p + n + strspn(p + n, " \t");
		if (*colon != ':')
			continue;
		colon += 1 + strspn(colon + 1, " \t");
		return as_xstrndup(colon, strcspn(colon, "\n"));
	}
	return as_xstrdup("");
}

char *as_history_fingerprint_of(const char *cpuinfo, long cpus, const char *architecture)
{
	/* x86, s390 …; then what Arm has in place of a name */
	static const char *const keys[] = {"model name", "stepping",    "CPU implementer",
					   "CPU part",   "CPU variant", "cpu",
					   "uarch"};
	struct as_buf out = {0};

	for (size_t i = 0; i < AS_ARRAY_LEN(keys); i++) {
		AS_CLEANUP(as_free_autop) char *value = cpu_field(cpuinfo, keys[i]);

		if (!*value)
			continue;
		as_buf_addf(&out, out.len ? " %s %s" : "%.0s%s", i == 0 ? "" : keys[i], value);
	}
	as_buf_addf(&out, "%s%ld CPUs, %s", out.len ? ", " : "", cpus, architecture);
	return as_buf_detach(&out);
}

char *as_history_fingerprint(void)
{
	AS_CLEANUP(as_buf_clear) struct as_buf cpus = {0};
	struct utsname u;

	if (uname(&u) < 0)
		memset(&u, 0, sizeof u);
	/* without it only the count is known */
	(void)as_read_file("/proc/cpuinfo", 4 << 20, &cpus, NULL);
	return as_history_fingerprint_of(as_buf_str(&cpus), sysconf(_SC_NPROCESSORS_ONLN),
					 u.machine);
}
