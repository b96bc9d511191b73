/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/* Errors as values: see err.h. */
#include "base/err.h"

#include <stdarg.h>
#include <stdio.h>
#include <string.h>

/* Drops a UTF-8 sequence that truncation cut in two, so that a message stays valid text. */
static void trim_partial_utf8(char *s, size_t n)
{
	size_t i = n;

	while (i > 0 && n - i < 3 && ((unsigned char)s[i - 1] & 0xc0) == 0x80)
		i--;
	if (i == 0)
		return;

	unsigned char lead = (unsigned char)s[i - 1];
	size_t need = lead >= 0xf0 ? 4 : lead >= 0xe0 ? 3 : lead >= 0xc0 ? 2 : 1;

	if (need > 1 && n - (i - 1) < need)
		s[i - 1] = '\0';
}

static void format_into(char *out, size_t size, const char *fmt, va_list ap)
	__attribute__((format(printf, 3, 0)));
static void format_into(char *out, size_t size, const char *fmt, va_list ap)
{
	int n = vsnprintf(out, size, fmt, ap);

	if (n < 0)
		out[0] = '\0';
	else if ((size_t)n >= size)
		trim_partial_utf8(out, size - 1);
}

int as_fail(struct as_error *err, enum as_status status, int sys_errno, const char *fmt, ...)
{
	if (!err)
		return status;

	/* A message may quote the one it replaces: as_fail(err, …, "%s", err->msg). */
	char msg[sizeof err->msg];
	va_list ap;

	va_start(ap, fmt);
	format_into(msg, sizeof msg, fmt, ap);
	va_end(ap);
	err->status = status;
	err->sys_errno = sys_errno;
	memcpy(err->msg, msg, sizeof msg);
	return status;
}

int as_wrap(struct as_error *err, const char *fmt, ...)
{
	if (!err)
		return AS_E_IO;

	char context[sizeof err->msg];
	va_list ap;

	va_start(ap, fmt);
	format_into(context, sizeof context, fmt, ap);
	va_end(ap);

	/* The cause is worth more than the context: the context is cut first, to half the room. */
	size_t cause_len = strlen(err->msg), context_len = strlen(context);
	size_t room = sizeof err->msg - 1;

	if (context_len + 2 + cause_len > room) {
		size_t keep = cause_len + 2 < room / 2 ? room - 2 - cause_len : room / 2;

		if (context_len > keep) {
			context[keep] = '\0';
			trim_partial_utf8(context, keep);
			context_len = strlen(context);
		}
	}

	char cause[sizeof err->msg];

	memcpy(cause, err->msg, cause_len + 1);
	memcpy(err->msg, context, context_len);
	memcpy(err->msg + context_len, ": ", 2);
	if (cause_len > room - context_len - 2) {
		cause_len = room - context_len - 2;
		cause[cause_len] = '\0';
		trim_partial_utf8(cause, cause_len);
		cause_len = strlen(cause);
	}
	memcpy(err->msg + context_len + 2, cause, cause_len + 1);
	return err->status;
}
