/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/* Signals that are meant for what is recorded. */
#include <fcntl.h>
#include <signal.h>
#include <unistd.h>

#include "base/mem.h"
#include "collect/collect.h"

#define GRACE_NS 1500000000ull /* of a target that was told to end */

/* True when the terminal sends its signals to the target as well. */
static bool terminal_signals_target(void)
{
	AS_CLEANUP(as_close_autop) int tty = open("/dev/tty", O_RDONLY | O_CLOEXEC | O_NOCTTY);

	return tty >= 0 && tcgetpgrp(tty) == getpgrp();
}

/* What the target has to be sent for the interrupt; 0: it has it already. */
static int signal_to_pass_on(const struct as_interrupt *i)
{
	if (i->signal)
		return AS_MAX(*i->signal, 0);
	return terminal_signals_target() ? 0 : SIGINT;
}

bool as_target_interrupt(const struct as_target *t, struct as_interrupt *i, uint64_t now_ns)
{
	int level = i->count ? *i->count : 0, sig;

	if (!level)
		return false;
	if (level > 1 || t->attached)
		return true;
	if (!i->since_ns) {
		i->since_ns = now_ns;
		sig = signal_to_pass_on(i);
		if (sig)
			kill(t->pid, sig);
	}
	return now_ns > i->since_ns + GRACE_NS;
}
