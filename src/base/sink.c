/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/* Output as a stream: see sink.h. */
#include "base/sink.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>
#include <zlib.h>

#include "base/mem.h"
#include "base/sys.h"

struct as_gzip {
	z_stream z;
	uint8_t packed[64 << 10];
};

/* The status stays in the sink. */
static void fail(struct as_sink *s, int e)
{
	if (s->path)
		(void)as_fail(&s->failed, AS_E_IO, e, "cannot write '%s': %s", s->path,
			      strerror(e));
	else
		(void)as_fail(&s->failed, AS_E_IO, e, "cannot write: %s", strerror(e));
}

static void write_out(struct as_sink *s, const void *p, size_t n)
{
	if (s->failed.status || !n)
		return;
	s->bytes += n;
	if (s->fd < 0)
		as_buf_add(s->to, p, n);
	else if (as_write_all(s->fd, p, n, &s->failed) < 0)
		fail(s, s->failed.sys_errno);
}

static void pack(struct as_sink *s, int flush)
{
	z_stream *z = &s->gz->z;
	int r;

	do {
		z->next_out = s->gz->packed;
		z->avail_out = sizeof s->gz->packed;
		r = deflate(z, flush); /* fails only for a stream that was misused */
		write_out(s, s->gz->packed, sizeof s->gz->packed - z->avail_out);
	} while (r == Z_OK && z->avail_out == 0);
}

void as_sink_pass_(struct as_sink *s)
{
	s->text_bytes += s->out.len;
	if (s->gz) {
		/* A piece is far below 4 GiB, but one record in it may not be. */
		for (size_t at = 0; at < s->out.len;) {
			size_t n = AS_MIN(s->out.len - at, (size_t)1 << 30);

			s->gz->z.next_in = (uint8_t *)s->out.p + at;
			s->gz->z.avail_in = (unsigned)n;
			pack(s, Z_NO_FLUSH);
			at += n;
		}
	} else {
		write_out(s, s->out.p, s->out.len);
	}
	as_buf_reset(&s->out);
}

void as_sink_init_fd(struct as_sink *s, int fd)
{
	*s = (struct as_sink){.fd = fd};
}

void as_sink_init_buf(struct as_sink *s, struct as_buf *to)
{
	*s = (struct as_sink){.fd = -1, .to = to};
}

int as_sink_open(struct as_sink *s, const char *path, struct as_error *err)
{
	struct stat st;
	bool in_place;

	as_sink_init_fd(s, STDOUT_FILENO);
	if (!path || strcmp(path, "-") == 0)
		return AS_OK;
	in_place = lstat(path, &st) == 0 && !S_ISREG(st.st_mode);
	s->path = as_xstrdup(path);
	if (!in_place)
		s->temp = as_xasprintf("%s.tmp.%ld", path, (long)getpid());
	s->fd = open(in_place ? path : s->temp, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0666);
	if (s->fd < 0) {
		int e = errno;

		free(AS_STEAL(s->temp));
		as_sink_clear(s);
		return as_fail(err, AS_E_IO, e, "cannot write '%s': %s", path, strerror(e));
	}
	return AS_OK;
}

void as_sink_gzip(struct as_sink *s)
{
	/* 6 packs profiles 15 % smaller than 1 and still passes 50 MB/s; +16: gzip's own frame */
	enum { LEVEL = 6, WINDOW = MAX_WBITS + 16, MEMORY = 8 };

	s->gz = as_xcalloc(1, sizeof *s->gz);
	if (deflateInit2(&s->gz->z, LEVEL, Z_DEFLATED, WINDOW, MEMORY, Z_DEFAULT_STRATEGY) !=
	    Z_OK)
		as_oom(); /* the one reason left with constant arguments */
}

static void finish_file(struct as_sink *s)
{
	int e = 0;

	if (s->failed.status)
		return;
	if (s->temp && fsync(s->fd) < 0 && errno != EINVAL && errno != EROFS)
		e = errno;
	if (close(s->fd) < 0 && !e)
		e = errno;
	s->fd = -1;
	if (!e && s->temp && rename(s->temp, s->path) < 0)
		e = errno;
	if (e)
		fail(s, e);
	else
		free(AS_STEAL(s->temp));
}

int as_sink_finish(struct as_sink *s, struct as_error *err)
{
	as_sink_pass_(s);
	if (s->gz)
		pack(s, Z_FINISH);
	if (s->path)
		finish_file(s);
	if (!s->failed.status)
		return AS_OK;
	if (err)
		*err = s->failed;
	return s->failed.status;
}

void as_sink_clear(struct as_sink *s)
{
	as_buf_clear(&s->out);
	if (s->gz)
		(void)deflateEnd(&s->gz->z); /* tells only whether data was thrown away */
	free(s->gz);
	if (s->path && s->fd >= 0)
		(void)close(s->fd); /* what mattered was checked in as_sink_finish */
	if (s->temp)
		(void)unlink(s->temp);
	free(s->temp);
	free(s->path);
	*s = (struct as_sink){.fd = -1};
}
