/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/*
 * The page of `assay view` without its data, made from web/ by tools/pack-web. What is written, in
 * order:
 *
 *	as_web_page_head		up to the end of the policy's connect-src
 *	"'none'", or "'self'" for a page that asks its server
 *	as_web_page_policy_end		up to the inside of <title>
 *	the title, escaped
 *	as_web_page_body
 *	the data elements: <script type="text/plain" id="profile">…</script>, and "profile-base"
 *	as_web_page_tail
 *
 * The page's only script stands in the text with its hash in the policy: another one does not run.
 * UTF-8; the lengths are without the closing 0.
 */
#ifndef AS_VIEW_WEB_PAGE_H
#define AS_VIEW_WEB_PAGE_H

#include <stddef.h>

extern const char as_web_page_head[], as_web_page_policy_end[], as_web_page_body[],
	as_web_page_tail[];
extern const size_t as_web_page_head_len, as_web_page_policy_end_len, as_web_page_body_len,
	as_web_page_tail_len;

#endif
