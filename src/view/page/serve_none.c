/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/* The server where it was built without libmicrohttpd: see serve.h. */
#include "view/page/serve.h"

int as_server_start(const struct as_serve_request *q, struct as_server **ret,
		    struct as_error *err)
{
	(void)q;
	(void)ret;
	return as_fail(err, AS_E_UNSUPPORTED, 0,
		       "this assay was built without a server (libmicrohttpd)\n"
		       "the page as a file needs none: assay view");
}

const char *as_server_url(const struct as_server *s)
{
	(void)s;
	return "";
}

void as_server_stop(struct as_server *s)
{
	(void)s;
}
