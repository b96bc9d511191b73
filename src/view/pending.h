/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/* Until model, exchange and collect stand: their functions may be missing at link time. */
#pragma weak as_model_load
#pragma weak as_model_free
#pragma weak as_model_info
#pragma weak as_model_trust
#pragma weak as_profile_make
#pragma weak as_profile_free
#pragma weak as_profile_name
#pragma weak as_export_folded
#pragma weak as_record
