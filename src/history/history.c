/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/* The table of what was measured: see history.h. */
#include "history/history.h"

#include <sqlite3.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/mem.h"
#include "base/sys.h"
#include "history/history_priv.h"

#define BUSY_MS 5000
#define VERSION 2 /* of the schema, in user_version */

static const char schema[] =
	"CREATE TABLE IF NOT EXISTS entry ("
	" id INTEGER PRIMARY KEY, name TEXT NOT NULL, kind TEXT NOT NULL, time_s INTEGER NOT "
	"NULL,"
	" machine TEXT NOT NULL, program TEXT NOT NULL, copy TEXT NOT NULL,"
	" arguments TEXT NOT NULL, result TEXT NOT NULL);"
	"CREATE INDEX IF NOT EXISTS entry_name ON entry (name, id);";

/* Columns of the two statements below, in the order of the struct's texts. */
static const char insert[] =
	"INSERT INTO entry (name, kind, machine, program, copy, arguments, result, time_s)"
	" VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8)";
static const char select_newest[] =
	"SELECT name, kind, machine, program, copy, arguments, result, time_s FROM entry"
	" WHERE name = ?1 ORDER BY id DESC LIMIT 1";
enum { TEXTS = 7 };

static char **text_at(struct as_history_entry *e, int i)
{
	char **const texts[TEXTS] = {&e->name, &e->kind,      &e->machine, &e->program,
				     &e->copy, &e->arguments, &e->result};

	return texts[i];
}

static int failed(struct as_history *h, const char *what, struct as_error *err)
{
	return as_fail(err, AS_E_IO, 0, "cannot %s the history '%s': %s", what, h->path,
		       h->db ? sqlite3_errmsg(h->db) : "out of memory");
}

static char *default_folder(void)
{
	const char *xdg = getenv("XDG_DATA_HOME"), *home = getenv("HOME");

	if (xdg && xdg[0] == '/')
		return as_xasprintf("%s/assay", xdg);
	return home && home[0] == '/' ? as_xasprintf("%s/.local/share/assay", home) : NULL;
}

static int check_version(struct as_history *h, struct as_error *err)
{
	sqlite3_stmt *s = NULL;
	int version = -1;

	if (sqlite3_prepare_v2(h->db, "PRAGMA user_version", -1, &s, NULL) == SQLITE_OK &&
	    sqlite3_step(s) == SQLITE_ROW)
		version = sqlite3_column_int(s, 0);
	sqlite3_finalize(s);
	if (version < 0)
		return failed(h, "read", err);
	if (version > VERSION)
		return as_fail(
			err, AS_E_UNSUPPORTED, 0,
			"the history '%s' is of a newer assay (version %d, this one knows %d)",
			h->path, version, VERSION);
	if (version == VERSION)
		return AS_OK;
	/* in one: another process that opens it meanwhile waits, and finds all of it */
	if (sqlite3_exec(h->db, "BEGIN IMMEDIATE", NULL, NULL, NULL) != SQLITE_OK ||
	    sqlite3_exec(h->db, schema, NULL, NULL, NULL) != SQLITE_OK ||
	    sqlite3_exec(h->db, as_history_runs_schema, NULL, NULL, NULL) != SQLITE_OK ||
	    sqlite3_exec(h->db, "PRAGMA user_version = 2", NULL, NULL, NULL) != SQLITE_OK ||
	    sqlite3_exec(h->db, "COMMIT", NULL, NULL, NULL) != SQLITE_OK)
		return failed(h, "make", err);
	return AS_OK;
}

int as_history_open(const char *folder, struct as_history **ret, struct as_error *err)
{
	struct as_history *h = as_xcalloc(1, sizeof *h);
	int r;

	h->folder = folder ? as_xstrdup(folder) : default_folder();
	if (!h->folder) {
		free(h);
		return as_fail(err, AS_E_NOTFOUND, 0,
			       "no place for a history: set HOME or XDG_DATA_HOME");
	}
	h->path = as_xasprintf("%s/history.db", h->folder);
	r = as_mkdir_parents(h->folder, err);
	if (r == AS_OK && sqlite3_open(h->path, &h->db) != SQLITE_OK)
		r = failed(h, "open", err);
	if (r == AS_OK) {
		sqlite3_busy_timeout(h->db, BUSY_MS);
		/* other processes read while one writes; without it (network file systems) they wait */
		(void)sqlite3_exec(h->db, "PRAGMA journal_mode = WAL", NULL, NULL, NULL);
		r = check_version(h, err);
	}
	if (r < 0) {
		as_history_close(h);
		return r;
	}
	*ret = h;
	return AS_OK;
}

void as_history_close(struct as_history *h)
{
	if (!h)
		return;
	(void)sqlite3_close(h->db); /* no statement is open */
	free(h->path);
	free(h->folder);
	free(h);
}

int as_history_save(struct as_history *h, const struct as_history_entry *e,
		    struct as_error *err)
{
	struct as_history_entry copy = *e;
	sqlite3_stmt *s = NULL;
	bool done;

	if (sqlite3_prepare_v2(h->db, insert, -1, &s, NULL) != SQLITE_OK)
		return failed(h, "write to", err);
	for (int i = 0; i < TEXTS; i++) {
		const char *text = *text_at(&copy, i);

		sqlite3_bind_text(s, i + 1, text ? text : "", -1, SQLITE_TRANSIENT);
	}
	sqlite3_bind_int64(s, TEXTS + 1, (sqlite3_int64)e->time_s);
	done = sqlite3_step(s) == SQLITE_DONE;
	sqlite3_finalize(s);
	return done ? AS_OK : failed(h, "write to", err);
}

static int no_such_name(struct as_history *h, const char *name, struct as_error *err)
{
	AS_CLEANUP(as_buf_clear) struct as_buf names = {0};
	sqlite3_stmt *s = NULL;

	if (sqlite3_prepare_v2(
		    h->db,
		    "SELECT name FROM entry GROUP BY name ORDER BY max(id) DESC LIMIT 10", -1,
		    &s, NULL) == SQLITE_OK) {
		while (sqlite3_step(s) == SQLITE_ROW) {
			const char *text = (const char *)sqlite3_column_text(s, 0);

			as_buf_adds(&names, names.len ? ", '" : "; there are '");
			as_fmt_quoted(&names, text, strnlen(text, 60));
			as_buf_addc(&names, '\'');
		}
	}
	sqlite3_finalize(s);
	return as_fail(err, AS_E_NOTFOUND, 0, "nothing was saved as '%s'%s", name,
		       as_buf_str(&names));
}

int as_history_find(struct as_history *h, const char *name, struct as_history_entry *ret,
		    struct as_error *err)
{
	sqlite3_stmt *s = NULL;
	int step;

	*ret = (struct as_history_entry){0};
	if (sqlite3_prepare_v2(h->db, select_newest, -1, &s, NULL) != SQLITE_OK)
		return failed(h, "read", err);
	sqlite3_bind_text(s, 1, name, -1, SQLITE_TRANSIENT);
	step = sqlite3_step(s);
	if (step == SQLITE_ROW) {
		for (int i = 0; i < TEXTS; i++) {
			const char *text = (const char *)sqlite3_column_text(s, i);

			*text_at(ret, i) = as_xstrdup(text ? text : "");
		}
		ret->time_s = (uint64_t)sqlite3_column_int64(s, TEXTS);
	}
	sqlite3_finalize(s);
	if (step == SQLITE_ROW)
		return AS_OK;
	return step == SQLITE_DONE ? no_such_name(h, name, err) : failed(h, "read", err);
}

void as_history_entry_clear(struct as_history_entry *e)
{
	for (int i = 0; i < TEXTS; i++)
		free(*text_at(e, i));
	*e = (struct as_history_entry){0};
}
