/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/* Inside the model: what load.c hands to names.c. */
#ifndef AS_MODEL_MODEL_PRIV_H
#define AS_MODEL_MODEL_PRIV_H

#include "model/model.h"

/* Completes a loaded model: one function per meaning (cold parts and repeated records join), a
 * chain of at least one place for every frame, and the markers. */
void as_model_complete(struct as_model *m);

#endif
