/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/* The state file of --fix: see fix.h. */
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/sys.h"
#include "doctor/fix_priv.h"

#define HEAD "assay-doctor-state 1\n"

enum { STATE_MAX_BYTES = 4 << 20 };

static char *state_path(const struct as_fix_env *e)
{
	return as_xasprintf("%s/doctor.state", e->state_dir);
}

static void boot_id(const struct as_fix_env *e, char *ret, size_t n)
{
	if (!as_doctor_line(ret, n, e->d->proc, "sys/kernel/random/boot_id"))
		ret[0] = 0;
}

/* ---- reading ---- */

static bool plain_value(const char *s)
{
	return *s && s[strspn(s, "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz"
				 "0123456789_-")] == 0;
}

/* NAME PATH FOUND SET, separated by tabs; false for a line this version does not know. */
static bool parse_entry(char *line, struct as_fix_entry *ret)
{
	char *field[4];

	for (int i = 0; i < 4; i++) {
		field[i] = line;
		line += strcspn(line, "\t");
		if (i < 3 && !*line)
			return false;
		if (*line)
			*line++ = 0;
	}
	*ret = (struct as_fix_entry){.fix = as_fixable_find(field[0])};
	if (!ret->fix || !plain_value(field[2]) || !plain_value(field[3]) ||
	    strlen(field[2]) >= sizeof ret->found || strlen(field[3]) >= sizeof ret->set)
		return false;
	memcpy(ret->found, field[2], strlen(field[2]) + 1);
	memcpy(ret->set, field[3], strlen(field[3]) + 1);
	ret->path = as_xstrdup(field[1]);
	return true;
}

static void take_damaged(struct as_fix_state *s, size_t number, const char *line, size_t n)
{
	AS_CLEANUP(as_buf_clear) struct as_buf b = {0};

	if (s->damaged)
		return;
	s->damaged = number;
	as_fmt_quoted(&b, line, AS_MIN(n, sizeof s->damaged_text / 2));
	(void)snprintf(s->damaged_text, sizeof s->damaged_text, "'%s'", as_buf_str(&b));
}

int as_fix_state_parse(char *p, size_t n, const char *boot, struct as_fix_state *ret,
		       struct as_error *err)
{
	char *line = p + AS_MIN(strlen(HEAD), n), *end = p + n;
	size_t len = strcspn(line, "\n"), number = 2;

	line[len] = 0;
	if (strncmp(line, "boot ", 5) != 0)
		return as_fail(err, AS_E_FORMAT, 0, "its second line is damaged");
	ret->stale = strcmp(line + 5, boot) != 0;
	for (line += len + 1; line < end; line += len + 1) {
		char *newline = memchr(line, '\n', (size_t)(end - line));
		struct as_fix_entry entry;

		len = newline ? (size_t)(newline - line) : (size_t)(end - line);
		line[len] = 0;
		number++;
		if (strlen(line) == len && parse_entry(line, &entry))
			as_vec_push(&ret->entries, entry);
		else
			take_damaged(ret, number, line, len);
	}
	return 0;
}

/* Whole lines only: what is behind them was being written when it ended, and never acted on. */
static int cut_torn(int fd, struct as_buf *b, const char *path, struct as_error *err)
{
	const char *last = b->len ? memrchr(b->p, '\n', b->len) : NULL;
	size_t whole = last ? (size_t)(last + 1 - b->p) : 0;

	if (whole == b->len)
		return 0;
	if (ftruncate(fd, (off_t)whole) != 0 || fsync(fd) != 0)
		return as_fail(err, AS_E_IO, errno, "cannot write '%s': %s", path,
			       strerror(errno));
	b->len = whole;
	if (b->p)
		b->p[whole] = 0;
	return 0;
}

static int head_lines(const struct as_buf *b)
{
	int n = 0;

	for (size_t i = 0; i < b->len && n < 2; i++)
		n += b->p[i] == '\n';
	return n;
}

static int read_state(const struct as_fix_env *e, const char *path, struct as_fix_state *s,
		      struct as_error *err)
{
	AS_CLEANUP(as_buf_clear) struct as_buf b = {0};
	size_t n = strlen(HEAD);
	char boot[64];
	int r = as_read_fd(s->fd, STATE_MAX_BYTES, &b, err);

	if (r < 0)
		return as_wrap(err, "cannot read '%s'", path);
	/* a head that is cut short: nothing was changed under it */
	if (b.len && strncmp(b.p, HEAD, AS_MIN(n, b.len)) != 0)
		return as_fail(err, AS_E_FORMAT, 0,
			       "'%s' is no state of assay doctor; it is left as it is", path);
	r = cut_torn(s->fd, &b, path, err);
	if (r < 0)
		return r;
	if (head_lines(&b) < 2) {
		if (ftruncate(s->fd, 0) != 0)
			return as_fail(err, AS_E_IO, errno, "cannot write '%s': %s", path,
				       strerror(errno));
		return 0;
	}
	boot_id(e, boot, sizeof boot);
	r = as_fix_state_parse(b.p, b.len, boot, s, err);
	return r < 0 ? as_wrap(err, "'%s' is left as it is", path) : r;
}

/* ---- writing ---- */

static int sync_dir(const char *dir)
{
	int fd = open(dir, O_RDONLY | O_DIRECTORY | O_CLOEXEC), r;

	if (fd < 0)
		return -1;
	r = fsync(fd);
	close(fd);
	return r;
}

static int append(const struct as_fix_env *e, int fd, const char *p, size_t n,
		  struct as_error *err)
{
	if (lseek(fd, 0, SEEK_END) < 0)
		return as_fail(err, AS_E_IO, errno, "cannot write the state: %s",
			       strerror(errno));
	int r = as_write_all(fd, p, n, err);

	if (r < 0)
		return as_wrap(err, "cannot write the state");
	as_fix_step(e);
	if (fsync(fd) != 0)
		return as_fail(err, AS_E_IO, errno, "cannot bring the state to the disk: %s",
			       strerror(errno));
	return 0;
}

static int write_head(const struct as_fix_env *e, int fd, struct as_error *err)
{
	AS_CLEANUP(as_buf_clear) struct as_buf b = {0};
	char id[64];
	int r;

	boot_id(e, id, sizeof id);
	as_buf_addf(&b, HEAD "boot %s\n", id);
	r = append(e, fd, b.p, b.len, err);
	if (r == 0 && sync_dir(e->state_dir) != 0)
		return as_fail(err, AS_E_IO, errno, "cannot bring '%s' to the disk: %s",
			       e->state_dir, strerror(errno));
	return r;
}

/* Another doctor is done in milliseconds, unless it is stopped. */
static int lock(const struct as_fix_env *e, int fd, const char *path, struct as_error *err)
{
	enum { TRIES = 300, PAUSE_NS = 10000000 };

	for (int i = 0; flock(fd, LOCK_EX | LOCK_NB) != 0; i++) {
		if (errno != EWOULDBLOCK && errno != EINTR)
			return as_fail(err, AS_E_IO, errno, "cannot lock '%s': %s", path,
				       strerror(errno));
		if (i >= TRIES)
			return as_fail(err, AS_E_IO, 0,
				       "another assay doctor is at work on '%s'\n  fuser -v %s",
				       path, path);
		e->d->sleep_ns(PAUSE_NS);
	}
	return 0;
}

static int open_file(const struct as_fix_env *e, bool create, const char *path, int *ret_fd,
		     struct as_error *err)
{
	int flags = O_RDWR | O_CLOEXEC | O_NOFOLLOW | (create ? O_CREAT : 0);

	if (create && as_mkdir_parents(e->state_dir, err) < 0)
		return as_wrap(err, "cannot keep what was found, so nothing is changed");
	if (create && e->d->uid == 0)
		(void)chmod(e->state_dir, 0755); /* others may see that there is a state */
	*ret_fd = open(path, flags, 0644);
	if (*ret_fd < 0 && errno == ENOENT && !create)
		return 0;
	if (*ret_fd < 0)
		return as_fail(err, errno == EACCES ? AS_E_ACCESS : AS_E_IO, errno,
			       "cannot open '%s': %s%s", path, strerror(errno),
			       errno == EACCES ? "\n  sudo assay doctor …" : "");
	return lock(e, *ret_fd, path, err);
}

/* The file that was locked may have been removed by the doctor that held it: then a new one. */
static bool still_there(int fd, const char *path)
{
	struct stat a, b;

	return fstat(fd, &a) == 0 && stat(path, &b) == 0 && a.st_ino == b.st_ino &&
	       a.st_dev == b.st_dev;
}

int as_fix_state_open(const struct as_fix_env *e, bool create, struct as_fix_state *ret,
		      struct as_error *err)
{
	enum { TRIES = 10 };
	AS_CLEANUP(as_free_autop) char *path = state_path(e);
	int r = 0;

	*ret = (struct as_fix_state){.fd = -1};
	for (int i = 0; i < TRIES; i++) {
		r = open_file(e, create, path, &ret->fd, err);
		if (r < 0 || ret->fd < 0)
			return r;
		if (still_there(ret->fd, path))
			break;
		close(ret->fd);
		ret->fd = -1;
	}
	if (ret->fd < 0)
		return as_fail(err, AS_E_IO, 0, "another assay doctor is at work on '%s'",
			       path);
	r = read_state(e, path, ret, err);
	if (r == 0 && ret->damaged && create && !ret->stale)
		r = as_fail(err, AS_E_FORMAT, 0,
			    "line %zu of '%s' is damaged, so nothing is changed: %s\n  assay "
			    "doctor --restore puts back what can be read",
			    ret->damaged, path, ret->damaged_text);
	if (r == 0 && ret->stale && create) {
		/* those settings went with the start of the machine */
		as_vec_foreach (it, &ret->entries)
			free(it->path);
		ret->entries.n = 0;
		if (ftruncate(ret->fd, 0) != 0)
			r = as_fail(err, AS_E_IO, errno, "cannot write '%s': %s", path,
				    strerror(errno));
	}
	if (r == 0 && create && lseek(ret->fd, 0, SEEK_END) == 0)
		r = write_head(e, ret->fd, err);
	if (r < 0)
		as_fix_state_close(ret);
	return r;
}

int as_fix_state_add(const struct as_fix_env *e, struct as_fix_state *s,
		     const struct as_fix_entry *entry, struct as_error *err)
{
	AS_CLEANUP(as_buf_clear) struct as_buf b = {0};
	int r;

	as_buf_addf(&b, "%s\t%s\t%s\t%s\n", entry->fix->name, entry->path, entry->found,
		    entry->set);
	r = append(e, s->fd, b.p, b.len, err);
	if (r < 0)
		return r;
	struct as_fix_entry kept = *entry;

	kept.path = as_xstrdup(entry->path);
	as_vec_push(&s->entries, kept);
	return 0;
}

int as_fix_state_remove(const struct as_fix_env *e, struct as_fix_state *s,
			struct as_error *err)
{
	AS_CLEANUP(as_free_autop) char *path = state_path(e);

	if (unlink(path) != 0 && errno != ENOENT)
		return as_fail(err, AS_E_IO, errno, "cannot remove '%s': %s", path,
			       strerror(errno));
	as_fix_step(e);
	(void)sync_dir(e->state_dir); /* a state that comes back is restored again */
	return 0;
}

bool as_fix_state_has(const struct as_fix_state *s, const char *path)
{
	as_vec_foreach (it, &s->entries) {
		if (strcmp(it->path, path) == 0)
			return true;
	}
	return false;
}

void as_fix_state_close(struct as_fix_state *s)
{
	as_vec_foreach (it, &s->entries)
		free(it->path);
	as_vec_clear(&s->entries);
	if (s->fd >= 0)
		close(s->fd);
	s->fd = -1;
}
