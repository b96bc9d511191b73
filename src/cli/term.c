/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/* The terminal and standard output: see commands.h. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <unistd.h>

#include "base/mem.h"
#include "base/sys.h"
#include "cli/commands.h"

enum { WIDTH_DEFAULT = 100, WIDTH_MIN = 40, WIDTH_MAX = 10000, EXIT_SIGPIPE = 141 };

int as_term_width(int fd)
{
	struct winsize ws;
	const char *columns = getenv("COLUMNS");
	uint64_t v;

	if (isatty(fd) && ioctl(fd, TIOCGWINSZ, &ws) == 0 && ws.ws_col >= WIDTH_MIN)
		return ws.ws_col;
	if (columns && as_parse_u64(columns, &v) && v >= WIDTH_MIN && v <= WIDTH_MAX)
		return (int)v;
	return WIDTH_DEFAULT;
}

bool as_term_color(int fd, enum as_color when)
{
	const char *no = getenv("NO_COLOR"), *term = getenv("TERM");

	if (when != AS_COLOR_AUTO)
		return when == AS_COLOR_ALWAYS;
	return isatty(fd) && !(no && *no) && !(term && strcmp(term, "dumb") == 0);
}

int as_out_write(const struct as_buf *b, struct as_error *err)
{
	struct as_error why;

	if (!b->len || as_write_all(STDOUT_FILENO, b->p, b->len, &why) == 0)
		return 0;
	if (why.sys_errno == EPIPE)
		_exit(EXIT_SIGPIPE);
	return as_fail(err, AS_E_IO, why.sys_errno, "cannot write to standard output: %s",
		       strerror(why.sys_errno));
}

void as_err_print(const struct as_error *err, enum as_color when)
{
	struct as_buf b = {0};
	bool color = as_term_color(STDERR_FILENO, when);
	const char *p = err->msg;

	as_buf_adds(&b, color ? "\033[31massay:\033[0m " : "assay: ");
	while (*p) {
		size_t n = strcspn(p, "\n");

		as_fmt_quoted(&b, p, n);
		as_buf_addc(&b, '\n');
		p += n;
		if (!*p)
			break;
		p++;
		/* Up to two blanks are how messages are written; more of them mean something. */
		p += AS_MIN(strspn(p, " "), 2u);
		if (*p)
			as_buf_fill(&b, ' ', 7);
	}
	(void)as_write_all(STDERR_FILENO, b.p, b.len, NULL); /* nowhere left to tell */
	as_buf_clear(&b);
}
