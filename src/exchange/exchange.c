/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/* The table of formats, and what several of them need. */
#include <string.h>
#include "exchange/exchange_priv.h"
#include "model/profile/selection.h"

const struct as_exporter as_exporters[] = {
#define X(name, suffix, readable, kinds, summary)                                              \
	{#name, suffix, readable, AS_EXPORT_##kinds, summary, as_export_write_##name},
	AS_EXPORTERS(X)
#undef X
};
const size_t as_nexporters = AS_ARRAY_LEN(as_exporters);

const struct as_exporter *as_exporter_find(const char *name)
{
	for (size_t i = 0; i < as_nexporters; i++) {
		if (strcmp(as_exporters[i].name, name) == 0)
			return &as_exporters[i];
	}
	return NULL;
}

static bool ends_in(const char *s, size_t n, const char *end)
{
	size_t k = strlen(end);

	return n > k && memcmp(s + n - k, end, k) == 0;
}

bool as_exporter_packs(const struct as_exporter *e, const char *path)
{
	/* pprof is gzip by itself */
	return ends_in(path, strlen(path), ".gz") &&
	       !ends_in(e->suffix, strlen(e->suffix), ".gz");
}

static const struct as_exporter *of_path(const char *path, size_t n)
{
	const struct as_exporter *best = NULL;

	/* ".speedscope.json" also ends in ".json": the longest wins */
	for (size_t i = 0; i < as_nexporters; i++) {
		const char *suffix = as_exporters[i].suffix;

		if (ends_in(path, n, suffix) &&
		    (!best || strlen(suffix) > strlen(best->suffix)))
			best = &as_exporters[i];
	}
	return best;
}

const struct as_exporter *as_exporter_of_path(const char *path)
{
	size_t n = strlen(path);
	const struct as_exporter *e = of_path(path, n);

	return !e && ends_in(path, n, ".gz") ? of_path(path, n - 3) : e;
}

const char **as_export_files(const struct as_selection *s)
{
	const struct as_model *m = s->model;
	const char **file = as_xcalloc(m->functions.n + 1, sizeof *file);

	for (size_t i = 0; i < m->functions.n; i++)
		file[i] = m->functions.v[i].file;
	for (uint32_t i = 0; i < m->frames.n; i++) {
		const struct as_m_place *const *p;
		uint32_t n = as_selection_places(s, i, &p);

		for (uint32_t c = 0; c < n; c++) {
			if (!file[p[c]->function][0])
				file[p[c]->function] = p[c]->file;
		}
	}
	return file;
}
