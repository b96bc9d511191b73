/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/*
 * The page of `assay view --serve`: one session shown to this machine's browser, with the source
 * and assembly of any function on demand.
 *
 *	struct as_serve_request q = {.model = m, .page = html.p, .page_bytes = html.len};
 *	r = as_server_start(&q, &s, err);
 *	puts(as_server_url(s));		http://127.0.0.1:40123/6f0c…/
 *	…				wait for a signal
 *	as_server_stop(s);
 *
 * What keeps other users and other web pages out (docs/design/0006-serving-the-page.md):
 *	- it listens on 127.0.0.1 only;
 *	- the path begins with 128 random bits, new for each run: 404 without them;
 *	- the Host header must name this machine and port (DNS rebinding): 403;
 *	- GET and HEAD only (405), no request body is read, nothing is changed by a request;
 *	- a request names a function by its number. No path of a file comes from a request.
 *
 *	GET /TOKEN/			the page
 *	GET /TOKEN/listing?function=N	JSON of one listing with its sources (docs/formats/view.md)
 *
 * Threads: requests are answered by one thread of the server's own, one after the other; the
 * model and the page must live until as_server_stop, and nobody else may make listings of the
 * model in between. Signals that the caller waits for must be blocked before the start.
 */
#ifndef AS_VIEW_SERVE_H
#define AS_VIEW_SERVE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include "base/err.h"
#include "model/model.h"

struct as_serve_request {
	const struct as_model *model;
	const char *page; /* as_page_make with `served` */
	size_t page_bytes;
	uint16_t port;         /* 0: a free one */
	bool no_listing;       /* without source and assembly */
	const char *cache_dir; /* of symbol indexes; NULL: none */
};

struct as_server;
/* AS_E_IO when the port is taken, AS_E_UNSUPPORTED when built without libmicrohttpd. */
int as_server_start(const struct as_serve_request *q, struct as_server **ret,
		    struct as_error *err);
const char *as_server_url(const struct as_server *s);
void as_server_stop(struct as_server *s); /* ends open connections; frees */

#endif
