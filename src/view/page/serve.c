/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/* The server of the page, on libmicrohttpd: see serve.h. */
#include "view/page/serve.h"

#include <errno.h>
#include <microhttpd.h>
#include <netinet/in.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <sys/random.h>
#include <sys/socket.h>
#include <unistd.h>

#include "base/mem.h"
#include "base/sys.h"
#include "view/page/page.h"

enum {
	TOKEN_BYTES = 16,
	PREFIX = 2 * TOKEN_BYTES + 2, /* "/TOKEN/" */
	CONNECTIONS = 64,
	IDLE_S = 60,
	BACKLOG = 16
};

struct as_server {
	struct as_serve_request q;
	struct MHD_Daemon *daemon;
	struct MHD_Response *page;
	struct as_listing_files *files; /* only the server's thread uses it */
	char prefix[PREFIX + 1];
	char *url, *policy; /* owned */
	uint16_t port;
};

/* ---- answers ---- */

static void add_headers(const struct as_server *s, struct MHD_Response *r, const char *type)
{
	const struct {
		const char *name, *value;
	} headers[] = {
		{"Content-Type", type},
		{"Content-Security-Policy", s->policy},
		{"X-Content-Type-Options", "nosniff"},
		{"X-Frame-Options", "DENY"},
		{"Referrer-Policy", "no-referrer"}, /* the address is the key */
		{"Cross-Origin-Resource-Policy", "same-origin"},
		{"Cross-Origin-Opener-Policy", "same-origin"},
		{"Cache-Control", "no-store"},
	};

	for (size_t i = 0; i < AS_ARRAY_LEN(headers); i++)
		(void)MHD_add_response_header(r, headers[i].name, headers[i].value);
}

static enum MHD_Result send_text(const struct as_server *s, struct MHD_Connection *c,
				 unsigned status, const char *text)
{
	struct MHD_Response *r = MHD_create_response_from_buffer(
		strlen(text), (void *)(uintptr_t)text, MHD_RESPMEM_PERSISTENT);
	enum MHD_Result sent;

	if (!r)
		return MHD_NO;
	add_headers(s, r, "text/plain; charset=utf-8");
	if (status == MHD_HTTP_METHOD_NOT_ALLOWED)
		(void)MHD_add_response_header(r, "Allow", "GET, HEAD");
	sent = MHD_queue_response(c, status, r);
	MHD_destroy_response(r);
	return sent;
}

static enum MHD_Result send_listing(const struct as_server *s, struct MHD_Connection *c)
{
	const char *wanted = MHD_lookup_connection_value(c, MHD_GET_ARGUMENT_KIND, "function");
	struct as_listing *l;
	struct as_error why;
	struct as_buf out = {0};
	uint64_t function;

	if (!wanted || !as_parse_u64(wanted, &function) || function >= s->q.model->functions.n)
		return send_text(s, c, MHD_HTTP_BAD_REQUEST, "no such function\n");
	if (s->q.no_listing)
		return send_text(s, c, MHD_HTTP_NOT_FOUND, "started without source\n");

	struct as_listing_request q = {.model = s->q.model,
				       .function = (uint32_t)function,
				       .cache_dir = s->q.cache_dir,
				       .files = s->files};

	if (as_listing_make(&q, &l, &why) < 0)
		return send_text(s, c, MHD_HTTP_INTERNAL_SERVER_ERROR, "no listing\n");
	as_page_listing(s->q.model, l, &out);
	as_listing_free(l);

	size_t n = out.len;
	struct MHD_Response *r =
		MHD_create_response_from_buffer(n, as_buf_detach(&out), MHD_RESPMEM_MUST_FREE);
	enum MHD_Result sent;

	if (!r)
		return MHD_NO;
	add_headers(s, r, "application/json");
	sent = MHD_queue_response(c, MHD_HTTP_OK, r);
	MHD_destroy_response(r);
	return sent;
}

/* ---- who may ask ---- */

/* A page of another site that had its name resolve to 127.0.0.1 would send that name here. */
static bool is_host_ours(const struct as_server *s, struct MHD_Connection *c)
{
	static const char *const names[] = {"127.0.0.1", "localhost", "[::1]"};
	const char *host = MHD_lookup_connection_value(c, MHD_HEADER_KIND, "Host");
	char port[8];

	if (!host)
		return false;
	snprintf(port, sizeof port, ":%u", s->port);
	for (size_t i = 0; i < AS_ARRAY_LEN(names); i++) {
		size_t n = strlen(names[i]);

		if (strncasecmp(host, names[i], n) == 0 &&
		    (strcmp(host + n, port) == 0 || (s->port == 80 && !host[n])))
			return true;
	}
	return false;
}

/* The same time whatever is wrong with it. */
static bool has_token(const struct as_server *s, const char *url)
{
	unsigned char wrong = 0;

	if (strlen(url) < PREFIX)
		return false;
	for (size_t i = 0; i < PREFIX; i++)
		wrong |= (unsigned char)(url[i] ^ s->prefix[i]);
	return !wrong;
}

static enum MHD_Result answer(void *cls, struct MHD_Connection *c, const char *url,
			      const char *method, const char *version, const char *body,
			      size_t *body_bytes, void **request)
{
	const struct as_server *s = cls;

	(void)version;
	(void)body;
	(void)body_bytes;
	(void)request;
	if (!is_host_ours(s, c))
		return send_text(s, c, MHD_HTTP_FORBIDDEN, "wrong host\n");
	if (strcmp(method, MHD_HTTP_METHOD_GET) != 0 &&
	    strcmp(method, MHD_HTTP_METHOD_HEAD) != 0)
		return send_text(s, c, MHD_HTTP_METHOD_NOT_ALLOWED, "GET and HEAD only\n");
	if (!has_token(s, url))
		return send_text(s, c, MHD_HTTP_NOT_FOUND, "not here\n");
	if (!url[PREFIX])
		return MHD_queue_response(c, MHD_HTTP_OK, s->page);
	if (strcmp(url + PREFIX, "listing") == 0)
		return send_listing(s, c);
	return send_text(s, c, MHD_HTTP_NOT_FOUND, "not here\n");
}

/* ---- life ---- */

static int listen_on(uint16_t port, uint16_t *ret_port, int *ret_fd, struct as_error *err)
{
	struct sockaddr_in a = {.sin_family = AF_INET,
				.sin_port = htons(port),
				.sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
	socklen_t n = sizeof a;
	int on = 1;
	AS_CLEANUP(as_close_autop)
	int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);

	if (fd < 0)
		return as_fail(err, AS_E_IO, errno, "cannot make a socket: %s",
			       strerror(errno));
	/* Connections of an earlier run that are still closing are no reason to refuse. */
	(void)setsockopt(fd, SOL_SOCKET, SO_REUSEADDR, &on, sizeof on);
	if (bind(fd, (struct sockaddr *)&a, n) < 0 || listen(fd, BACKLOG) < 0) {
		int e = errno;

		if (e == EADDRINUSE)
			return as_fail(err, AS_E_IO, e,
				       "port %u of 127.0.0.1 is taken\n"
				       "any free one: assay view --serve",
				       port);
		return as_fail(err, e == EACCES ? AS_E_ACCESS : AS_E_IO, e,
			       "cannot listen on port %u of 127.0.0.1: %s", port, strerror(e));
	}
	if (getsockname(fd, (struct sockaddr *)&a, &n) < 0)
		return as_fail(err, AS_E_IO, errno, "cannot listen: %s", strerror(errno));
	*ret_port = ntohs(a.sin_port);
	*ret_fd = fd;
	fd = -1;
	return 0;
}

static int make_token(struct as_server *s, struct as_error *err)
{
	uint8_t random[TOKEN_BYTES];
	char *at = s->prefix;

	if (getrandom(random, sizeof random, 0) != (ssize_t)sizeof random)
		return as_fail(err, AS_E_IO, errno, "no random numbers: %s", strerror(errno));
	*at++ = '/';
	for (size_t i = 0; i < sizeof random; i++, at += 2)
		snprintf(at, 3, "%02x", random[i]);
	*at++ = '/';
	*at = '\0';
	return 0;
}

static bool make_page(struct as_server *s)
{
	struct as_buf policy = {0};

	as_page_policy(true, &policy);
	as_buf_adds(&policy, "; frame-ancestors 'none'"); /* a <meta> cannot say that */
	s->policy = as_buf_detach(&policy);
	s->page = MHD_create_response_from_buffer(s->q.page_bytes, (void *)(uintptr_t)s->q.page,
						  MHD_RESPMEM_PERSISTENT);
	if (!s->page)
		return false;
	add_headers(s, s->page, "text/html; charset=utf-8");
	return true;
}

int as_server_start(const struct as_serve_request *q, struct as_server **ret,
		    struct as_error *err)
{
	struct as_server *s = as_xcalloc(1, sizeof *s);
	int fd = -1, r;

	s->q = *q;
	s->files = as_listing_files_new(q->cache_dir);
	r = make_token(s, err);
	if (r == 0)
		r = listen_on(q->port, &s->port, &fd, err);
	if (r < 0) {
		as_server_stop(s);
		return r;
	}
	if (make_page(s))
		s->daemon = MHD_start_daemon(
			MHD_USE_AUTO_INTERNAL_THREAD | MHD_USE_ITC, 0, NULL, NULL, answer, s,
			MHD_OPTION_LISTEN_SOCKET, fd, MHD_OPTION_CONNECTION_LIMIT,
			(unsigned)CONNECTIONS, MHD_OPTION_CONNECTION_TIMEOUT, (unsigned)IDLE_S,
			MHD_OPTION_END);
	if (!s->daemon) {
		close(fd);
		as_server_stop(s);
		return as_fail(err, AS_E_IO, errno, "cannot start the server");
	}
	s->url = as_xasprintf("http://127.0.0.1:%u%s", s->port, s->prefix);
	*ret = s;
	return 0;
}

const char *as_server_url(const struct as_server *s)
{
	return s->url;
}

void as_server_stop(struct as_server *s)
{
	if (!s)
		return;
	if (s->daemon)
		MHD_stop_daemon(s->daemon); /* and closes the socket */
	if (s->page)
		MHD_destroy_response(s->page);
	as_listing_files_free(s->files);
	free(s->url);
	free(s->policy);
	free(s);
}
