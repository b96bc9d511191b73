/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/* PMUs as the kernel describes them: see pmu.h. */
#include "measure/pmu.h"

#include <dirent.h>
#include <stdlib.h>
#include <string.h>

#include "base/sys.h"

#define DEVICES         "/sys/bus/event_source/devices"
#define FILE_MAX        4096
#define ENTRIES_MAX     20000 /* files of one folder */
#define DEFAULT_MUX_S   0.004
#define CPUINFO_MAX     (64u << 10)
#define BITS_OF_A_WORD  64
#define FORMAT_WORD_LEN 6 /* "config" */

/* ---- files ---- */

/* First line of a file; NULL: not there. Caller frees. */
static char *read_line(const char *folder, const char *name)
{
	AS_CLEANUP(as_free_autop) char *path = as_xasprintf("%s/%s", folder, name);
	AS_CLEANUP(as_buf_clear) struct as_buf b = {0};

	if (as_read_file(path, FILE_MAX, &b, NULL) < 0)
		return NULL;
	return as_xstrndup(as_buf_str(&b), strcspn(as_buf_str(&b), "\n"));
}

static bool read_number(const char *folder, const char *name, uint64_t *ret)
{
	AS_CLEANUP(as_free_autop) char *text = read_line(folder, name);

	return text && as_parse_u64(text, ret);
}

static bool exists(const char *folder, const char *name)
{
	AS_CLEANUP(as_free_autop) char *text = read_line(folder, name);

	return text != NULL;
}

static int by_name(const void *a, const void *b)
{
	return strcmp(*(char *const *)a, *(char *const *)b);
}

typedef AS_VEC(char *) names_t;

/* Entries of a folder in order. False: there is no such folder. */
static bool list(const char *folder, names_t *ret)
{
	DIR *d = opendir(folder);

	if (!d)
		return false;
	for (const struct dirent *e; (e = readdir(d)) && ret->n < ENTRIES_MAX;) {
		if (e->d_name[0] != '.')
			as_vec_push(ret, as_xstrdup(e->d_name));
	}
	closedir(d);
	if (ret->n)
		qsort(ret->v, ret->n, sizeof *ret->v, by_name);
	return true;
}

static void free_names(names_t *n)
{
	as_vec_foreach (name, n)
		free(*name);
	as_vec_clear(n);
}

/* ---- one PMU ---- */

/* "0-7,32-35" */
static bool parse_bits(const char *p, uint64_t *ret)
{
	*ret = 0;
	while (*p) {
		uint64_t at[2] = {0, 0};
		int n = 0;

		for (; n < 2; n++) {
			size_t digits = strspn(p, "0123456789");
			AS_CLEANUP(as_free_autop) char *number = as_xstrndup(p, digits);

			if (!as_parse_u64(number, &at[n]) || at[n] >= BITS_OF_A_WORD)
				return false;
			p += digits;
			if (*p != '-' || n == 1)
				break;
			p++;
		}
		if (n == 0)
			at[1] = at[0];
		for (uint64_t bit = at[0]; bit <= at[1]; bit++)
			*ret |= (uint64_t)1 << bit;
		if (*p && *p++ != ',')
			return false;
	}
	return *ret != 0;
}

static void load_format(struct as_pmu *p, const char *folder, const char *name)
{
	AS_CLEANUP(as_free_autop) char *text = read_line(folder, name);
	struct as_pmu_format f = {0};
	const char *colon;

	if (!text || strncmp(text, "config", FORMAT_WORD_LEN) != 0)
		return;
	colon = strchr(text, ':');
	if (!colon || colon - text > FORMAT_WORD_LEN + 1)
		return;
	if (text[FORMAT_WORD_LEN] >= '1' && text[FORMAT_WORD_LEN] < '0' + AS_PMU_CONFIGS)
		f.config = text[FORMAT_WORD_LEN] - '0';
	else if (text[FORMAT_WORD_LEN] != ':')
		return;
	if (!parse_bits(colon + 1, &f.mask))
		return;
	f.name = as_xstrdup(name);
	as_vec_push(&p->formats, f);
}

static bool ends_with(const char *text, const char *end)
{
	size_t n = strlen(text), k = strlen(end);

	return n > k && strcmp(text + n - k, end) == 0;
}

static void load_event(struct as_pmu *p, const char *folder, const char *name)
{
	struct as_pmu_event e = {.scale = 1};

	if (ends_with(name, ".scale") || ends_with(name, ".unit") ||
	    ends_with(name, ".per-pkg") || ends_with(name, ".snapshot"))
		return;
	e.terms = read_line(folder, name);
	if (!e.terms)
		return;
	AS_CLEANUP(as_free_autop) char *scale_name = as_xasprintf("%s.scale", name);
	AS_CLEANUP(as_free_autop) char *unit_name = as_xasprintf("%s.unit", name);
	AS_CLEANUP(as_free_autop) char *scale = read_line(folder, scale_name);

	if (!scale || !as_parse_double(scale, &e.scale) || !(e.scale > 0))
		e.scale = 1;
	e.unit = read_line(folder, unit_name);
	e.name = as_xstrdup(name);
	as_vec_push(&p->events, e);
}

static void load_folder(struct as_pmu *p, const char *pmu_folder, const char *sub,
			void (*load)(struct as_pmu *, const char *, const char *))
{
	AS_CLEANUP(as_free_autop) char *folder = as_xasprintf("%s/%s", pmu_folder, sub);
	names_t names = {0};

	if (list(folder, &names)) {
		as_vec_foreach (name, &names)
			load(p, folder, *name);
	}
	free_names(&names);
}

static void load_pmu(struct as_pmus *all, const char *folder, const char *name, bool cores_only)
{
	struct as_pmu p = {.mux_seconds = DEFAULT_MUX_S};
	uint64_t number;

	if (!read_number(folder, "type", &number) || number > UINT32_MAX)
		return;
	p.type = (uint32_t)number;
	p.core = strcmp(name, "cpu") == 0 || exists(folder, "cpus");
	p.whole_machine = exists(folder, "cpumask");
	if (read_number(folder, "caps/slots", &number) && number < 64)
		p.slots = (unsigned)number;
	if (read_number(folder, "perf_event_mux_interval_ms", &number) && number > 0)
		p.mux_seconds = (double)number / 1e3;
	p.name = as_xstrdup(name);
	if (p.core || !cores_only) {
		load_folder(&p, folder, "format", load_format);
		load_folder(&p, folder, "events", load_event);
	}
	all->cores += p.core;
	as_vec_push(&all->v, p);
}

static unsigned cpuinfo_number(const char *text, const char *name)
{
	const char *p = strstr(text, name);
	unsigned v = 0;

	p = p ? strchr(p, ':') : NULL;
	for (p = p ? p + 2 : ""; *p >= '0' && *p <= '9' && v < 100000; p++)
		v = v * 10 + (unsigned)(*p - '0');
	return v;
}

void as_pmus_load(const char *root, bool cores_only, struct as_pmus *ret)
{
	AS_CLEANUP(as_free_autop) char *devices = as_xasprintf("%s%s", root, DEVICES);
	AS_CLEANUP(as_free_autop) char *cpuinfo = as_xasprintf("%s/proc/cpuinfo", root);
	AS_CLEANUP(as_buf_clear) struct as_buf text = {0};
	names_t names = {0};

	*ret = (struct as_pmus){0};
	ret->known = list(devices, &names);
	as_vec_foreach (name, &names) {
		AS_CLEANUP(as_free_autop) char *folder = as_xasprintf("%s/%s", devices, *name);

		load_pmu(ret, folder, *name, cores_only);
	}
	free_names(&names);
	/* the first processor is enough; what is beyond the limit is not read */
	if (as_read_file(cpuinfo, CPUINFO_MAX, &text, NULL) == AS_OK || text.len) {
		ret->amd = strstr(as_buf_str(&text), "AuthenticAMD") != NULL;
		ret->family = cpuinfo_number(as_buf_str(&text), "cpu family");
		ret->model = cpuinfo_number(as_buf_str(&text), "model\t");
	}
}

void as_pmus_clear(struct as_pmus *p)
{
	as_vec_foreach (pmu, &p->v) {
		as_vec_foreach (f, &pmu->formats)
			free(f->name);
		as_vec_foreach (e, &pmu->events) {
			free(e->name);
			free(e->terms);
			free(e->unit);
		}
		as_vec_clear(&pmu->formats);
		as_vec_clear(&pmu->events);
		free(pmu->name);
	}
	as_vec_clear(&p->v);
}

const struct as_pmu *as_pmus_find(const struct as_pmus *p, const char *name)
{
	as_vec_foreach (pmu, &p->v) {
		if (strcmp(pmu->name, name) == 0)
			return pmu;
	}
	return NULL;
}

bool as_event_name_equal(const char *a, const char *b)
{
	for (; *a && *b; a++, b++) {
		if ((*a == '-' ? '_' : *a) != (*b == '-' ? '_' : *b))
			return false;
	}
	return *a == *b;
}

const struct as_pmu_event *as_pmu_find_event(const struct as_pmu *p, const char *name)
{
	as_vec_foreach (e, &p->events) {
		if (as_event_name_equal(e->name, name))
			return e;
	}
	return NULL;
}

/* ---- terms ---- */

uint64_t as_pmu_spread(uint64_t mask, uint64_t value)
{
	uint64_t out = 0;

	for (int bit = 0; bit < BITS_OF_A_WORD; bit++) {
		if (!(mask >> bit & 1))
			continue;
		out |= (value & 1) << bit;
		value >>= 1;
	}
	return out;
}

static int no_such_term(const struct as_pmu *p, const char *name, struct as_error *err)
{
	AS_CLEANUP(as_buf_clear) struct as_buf names = {0};

	as_vec_foreach (f, &p->formats)
		as_buf_addf(&names, " %s", f->name);
	return as_fail(err, AS_E_USAGE, 0, "the PMU '%s' has no parameter '%s'; it has%s",
		       p->name, name, names.len ? as_buf_str(&names) : " none");
}

static int encode_term(const struct as_pmu *p, const char *name, const char *value,
		       uint64_t *config, struct as_error *err)
{
	uint64_t v = 1;

	if (value && strcmp(value, "?") == 0)
		return as_fail(err, AS_E_USAGE, 0, "the event needs a value: %s=…", name);
	if (value && !as_parse_u64(value, &v))
		return as_fail(err, AS_E_USAGE, 0, "'%s' is no number for '%s'", value, name);
	if (strncmp(name, "config", FORMAT_WORD_LEN) == 0 && strlen(name) <= 7) {
		int word = name[FORMAT_WORD_LEN] ? name[FORMAT_WORD_LEN] - '0' : 0;

		if (word >= 0 && word < AS_PMU_CONFIGS) {
			config[word] = v;
			return AS_OK;
		}
	}
	as_vec_foreach (f, &p->formats) {
		if (strcmp(f->name, name) != 0)
			continue;
		int room = __builtin_popcountll(f->mask);

		if (room < BITS_OF_A_WORD && v >> room)
			return as_fail(err, AS_E_USAGE, 0,
				       "'%s' of the PMU '%s' has %d bits: %s is too much", name,
				       p->name, room, value);
		config[f->config] &= ~f->mask;
		config[f->config] |= as_pmu_spread(f->mask, v);
		return AS_OK;
	}
	return no_such_term(p, name, err);
}

int as_pmu_encode(const struct as_pmu *p, const char *terms, uint64_t *config,
		  struct as_error *err)
{
	int r = AS_OK;

	while (*terms && r == AS_OK) {
		size_t n = strcspn(terms, ",");
		AS_CLEANUP(as_free_autop) char *term = as_xstrndup(terms, n);
		char *value = strchr(term, '=');

		if (value)
			*value++ = 0;
		if (*term)
			r = encode_term(p, term, value, config, err);
		terms += n + (terms[n] == ',');
	}
	return r;
}
