/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/*
 * Demangling by libiberty: Rust v0 (_R…), Rust legacy (_ZN…17h<16 hex>E), Itanium C++ (_Z…).
 *
 * Both manglings can blow up exponentially through back references. Output stops at 1 MiB: the
 * callback then jumps out of libiberty (which holds at most one small buffer at that point) and
 * the linkage name stands. libiberty refuses C++ names over 1,024 bytes unless its recursion
 * limit is off; it is off up to 4 KiB, where the stack it needs stays below 1 MiB.
 */
#include "symbol/demangle.h"

#include <libiberty/demangle.h>
#include <setjmp.h>
#include <stdint.h>
#include <string.h>
#include "base/mem.h"
#include "symbol/demangle_priv.h"

#define MAX_OUTPUT   (1u << 20)
#define MAX_LINKAGE  (256u << 10)
#define MAX_CXX_DEEP 4096
#define LEGACY_HASH  20 /* 17h, 16 digits, E */

static bool is_hex(char c)
{
	return (c >= '0' && c <= '9') || (c >= 'a' && c <= 'f') || (c >= 'A' && c <= 'F');
}

static bool is_legacy_end(const char *end)
{
	if (strncmp(end - LEGACY_HASH, "17h", 3) != 0 || end[-1] != 'E')
		return false;
	for (int i = 2; i <= 17; i++) {
		if (!is_hex(end[-i]))
			return false;
	}
	return true;
}

/* Rust legacy names hold dots ("..": "::" inside generics); its end is the hash. */
static size_t legacy_length(const char *s)
{
	for (const char *p = s + 3; (p = strstr(p, "17h")) != NULL; p++) {
		if (strnlen(p, LEGACY_HASH) == LEGACY_HASH && is_legacy_end(p + LEGACY_HASH) &&
		    (!p[LEGACY_HASH] || p[LEGACY_HASH] == '.'))
			return (size_t)(p - s) + LEGACY_HASH;
	}
	return 0;
}

/* Does one clone suffix start at this dot? Returns its length without the dot that follows. */
static size_t clone_suffix(const char *s)
{
	static const char *const words[] = {
		"llvm",       "cold",    "part",   "constprop",   "isra",   "lto_priv",
		"localalias", "warm",    "clone",  "specialized", "__uniq", "resolver",
		"ifunc",      "destroy", "resume", "cleanup",     "actor",
	};
	size_t n = strcspn(s + 1, "."), k;

	for (size_t i = 0; i < AS_ARRAY_LEN(words); i++) {
		if (strlen(words[i]) == n && strncmp(s + 1, words[i], n) == 0)
			return n + 1;
	}
	for (k = 1; k <= n && (is_hex(s[k]) || s[k] == '_'); k++)
		;
	return n && k > n ? n + 1 : 0;
}

static bool all_suffixes(const char *s)
{
	while (*s == '.') {
		size_t n = clone_suffix(s);

		if (!n)
			return false;
		s += n;
	}
	return !*s;
}

size_t as_linkage_stem(const char *linkage, bool *ret_cold)
{
	size_t n = strlen(linkage), at = 0;
	const char *cold;

	if (strncmp(linkage, "_ZN", 3) == 0)
		at = legacy_length(linkage);
	if (!at && (strncmp(linkage, "_R", 2) == 0 || strncmp(linkage, "_Z", 2) == 0)) {
		at = strcspn(linkage, "."); /* neither mangling holds a dot */
	} else if (!at) {
		at = n;
		for (const char *p = linkage; (p = strchr(p + !!*p, '.')) != NULL;) {
			if (p > linkage && all_suffixes(p)) {
				at = (size_t)(p - linkage);
				break;
			}
		}
	}
	cold = strstr(linkage + at, ".cold");
	*ret_cold = cold && (!cold[5] || cold[5] == '.');
	return at;
}

struct sink {
	struct as_buf *out;
	size_t start;
	jmp_buf full;
};

static void on_text(const char *p, size_t n, void *ctx)
{
	struct sink *s = ctx;

	if (s->out->len - s->start + n > MAX_OUTPUT)
		longjmp(s->full, 1);
	as_buf_add(s->out, p, n);
}

static bool run(struct sink *s, const char *name, bool rust)
{
	size_t n = strlen(name);
	const int deep = n > 1000 ? DMGL_NO_RECURSE_LIMIT : 0;
	int ok;

	if (n > MAX_LINKAGE || (!rust && n > MAX_CXX_DEEP))
		return false;
	if (name[0] == '_' && name[1] == 'R' && !as_rust_v0_is_bounded(name, n))
		return false;
	if (setjmp(s->full)) {
		s->out->len = s->start;
		return false;
	}
	ok = rust ? rust_demangle_callback(name, DMGL_NO_OPTS, on_text, s)
		  : cplus_demangle_v3_callback(name, DMGL_PARAMS | DMGL_ANSI | deep, on_text,
					       s);
	if (!ok || s->out->len == s->start) {
		s->out->len = s->start;
		return false;
	}
	return true;
}

/*
 * libiberty prints integer constants of more than 16 digits (i128) shifted by one: 0x0000_ for
 * 0x80000. The digits are in the mangled name, followed by the same underscore.
 */
static void repair_wide_constants(const char *mangled, struct as_buf *out, size_t start)
{
	size_t i = start;

	while (i + 2 < out->len) {
		const char *at;
		char word[64];
		size_t n = 0;

		if (out->p[i] != '0' || out->p[i + 1] != 'x') {
			i++;
			continue;
		}
		i += 2;
		while (i + n < out->len && is_hex(out->p[i + n]))
			n++;
		if (n < 16 || n + 2 > sizeof word || i + n >= out->len ||
		    out->p[i + n] != '_') {
			i += n;
			continue;
		}
		memcpy(word, out->p + i, n + 1);
		word[n + 1] = '\0';
		at = strstr(mangled, word);
		if (at && at > mangled && is_hex(at[-1])) {
			memmove(out->p + i + 1, out->p + i, n);
			out->p[i] = at[-1];
		}
		i += n + 1;
	}
}

static enum as_lang demangle(const char *name, struct as_buf *out)
{
	struct sink s = {.out = out, .start = out->len};
	size_t n = strlen(name);
	bool v0 = strncmp(name, "_R", 2) == 0;

	if (v0 ||
	    (n > LEGACY_HASH + 3 && strncmp(name, "_ZN", 3) == 0 && is_legacy_end(name + n))) {
		if (run(&s, name, true)) {
			if (v0)
				repair_wide_constants(name, out, s.start);
			return AS_LANG_RUST;
		}
	}
	if (strncmp(name, "_Z", 2) == 0 && run(&s, name, false))
		return AS_LANG_CXX;
	as_buf_add(out, name, n);
	return AS_LANG_C;
}

/* The name of a PLT stub or a slot of the GOT: both are made here, behind any mangled name. */
static bool has_mark(const char *linkage, size_t n)
{
	return n > 4 && (memcmp(linkage + n - 4, "@plt", 4) == 0 ||
			 memcmp(linkage + n - 4, "@got", 4) == 0);
}

enum as_lang as_demangle(const char *linkage, struct as_buf *out, bool *ret_cold)
{
	bool cold;
	size_t n = as_linkage_stem(linkage, &cold);
	enum as_lang lang;

	if (ret_cold)
		*ret_cold = cold;
	if (has_mark(linkage, n)) {
		AS_CLEANUP(as_free_autop) char *stem = as_xstrndup(linkage, n - 4);

		lang = demangle(stem, out);
		as_buf_add(out, linkage + n - 4, 4);
	} else if (linkage[n]) {
		AS_CLEANUP(as_free_autop) char *stem = as_xstrndup(linkage, n);

		lang = demangle(stem, out);
	} else {
		lang = demangle(linkage, out);
	}
	return lang;
}
