/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/* Until exchange and collect stand: their functions may be missing at link time. */
#ifndef AS_CLI_PENDING_H
#define AS_CLI_PENDING_H

#pragma weak as_export_folded
#pragma weak as_record

#endif
