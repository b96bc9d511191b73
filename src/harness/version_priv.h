/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/* The version, where the build does not give it: the library is compiled by other build systems, too. */
#ifndef AS_HARNESS_VERSION_PRIV_H
#define AS_HARNESS_VERSION_PRIV_H

#ifndef ASSAY_VERSION
#define ASSAY_VERSION "0.1.0"
#endif

#endif
