/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/* What a session's samples say about how it was sampled. By physical function of the innermost frame,
 * without a profile. O(samples). */
#ifndef AS_MODEL_SAMPLING_H
#define AS_MODEL_SAMPLING_H

#include "model/model.h"

/* The advice: a function of this share, known to +- this. */
#define AS_ADVICE_SHARE 0.01
#define AS_ADVICE_HALF  0.003

struct as_sampling {
	double deff;         /* of a usual function: the median of those from 0.5 to 30 % */
	double need_samples; /* for a function of AS_ADVICE_SHARE to be known to +- AS_ADVICE_HALF */
	/* Samples at equal intervals, of which a function comes and goes every `beat`; 0: no. */
	size_t beat;
	uint32_t beat_function;
};
void as_model_sampling(const struct as_model *m, struct as_sampling *ret);

#endif
