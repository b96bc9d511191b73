/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/* Ends of processes: see exits.h. */
#include "measure/exits.h"

#include <errno.h>
#include <linux/genetlink.h>
#include <linux/netlink.h>
#include <linux/taskstats.h>
#include <math.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "base/map.h"
#include "base/mem.h"

#define MESSAGE_MAX  8192
#define BUFFER_BYTES (4 << 20)
#define HAS_TGID     12 /* version of struct taskstats from which ac_tgid is in it */

struct request {
	struct nlmsghdr n;
	struct genlmsghdr g;
	struct nlattr a;
	char text[32];
};

static bool ask(int fd, uint16_t family, uint8_t command, uint16_t attribute, const char *text)
{
	struct sockaddr_nl kernel = {.nl_family = AF_NETLINK};
	struct request q = {.g = {.cmd = command, .version = 1}};
	size_t n = strlen(text) + 1;

	if (n > sizeof q.text)
		return false;
	memcpy(q.text, text, n);
	q.a.nla_type = attribute;
	q.a.nla_len = (uint16_t)(NLA_HDRLEN + n);
	q.n.nlmsg_type = family;
	q.n.nlmsg_flags = NLM_F_REQUEST | NLM_F_ACK;
	q.n.nlmsg_len = (uint32_t)(NLMSG_LENGTH(GENL_HDRLEN) + NLA_ALIGN(q.a.nla_len));
	return sendto(fd, &q, q.n.nlmsg_len, 0, (struct sockaddr *)&kernel, sizeof kernel) ==
	       (ssize_t)q.n.nlmsg_len;
}

/* The attribute of that type among the n bytes at p; NULL: it is not there. */
static const struct nlattr *find(const void *p, size_t n, uint16_t type)
{
	const char *at = p;

	while (n >= sizeof(struct nlattr)) {
		const struct nlattr *a = (const void *)at;
		size_t len = NLA_ALIGN(a->nla_len);

		if (a->nla_len < NLA_HDRLEN || a->nla_len > n)
			return NULL;
		if ((a->nla_type & NLA_TYPE_MASK) == type)
			return a;
		if (len >= n)
			return NULL;
		at += len;
		n -= len;
	}
	return NULL;
}

/* What follows the generic header of a message; NULL: it is none, or too short. */
static const void *attributes(const struct nlmsghdr *h, size_t *ret_n)
{
	size_t head = NLMSG_LENGTH(GENL_HDRLEN);

	if (h->nlmsg_type < NLMSG_MIN_TYPE || h->nlmsg_len < head)
		return NULL;
	*ret_n = h->nlmsg_len - head;
	return (const char *)h + head;
}

/* The answer to CTRL_CMD_GETFAMILY; 0: there is none. */
static uint16_t family_of(int fd)
{
	char buffer[MESSAGE_MAX] __attribute__((aligned(8)));
	ssize_t n;

	if (!ask(fd, GENL_ID_CTRL, CTRL_CMD_GETFAMILY, CTRL_ATTR_FAMILY_NAME,
		 TASKSTATS_GENL_NAME))
		return 0;
	n = recv(fd, buffer, sizeof buffer, 0);
	if (n < (ssize_t)NLMSG_HDRLEN || !NLMSG_OK((struct nlmsghdr *)buffer, (size_t)n))
		return 0;
	size_t len;
	const void *p = attributes((struct nlmsghdr *)buffer, &len);
	const struct nlattr *a = p ? find(p, len, CTRL_ATTR_FAMILY_ID) : NULL;
	uint16_t id = 0;

	if (a && a->nla_len >= NLA_HDRLEN + sizeof id)
		memcpy(&id, (const char *)a + NLA_HDRLEN, sizeof id);
	return id;
}

/* The acknowledgement: 0 when it was granted. Others are skipped. */
static bool granted(int fd)
{
	char buffer[MESSAGE_MAX] __attribute__((aligned(8)));

	for (int i = 0; i < 16; i++) {
		ssize_t n = recv(fd, buffer, sizeof buffer, MSG_DONTWAIT);
		const struct nlmsghdr *h = (const void *)buffer;
		int error;

		if (n < (ssize_t)(NLMSG_HDRLEN + sizeof error))
			return false;
		if (h->nlmsg_type != NLMSG_ERROR)
			continue;
		memcpy(&error, buffer + NLMSG_HDRLEN, sizeof error);
		return error == 0;
	}
	return false;
}

bool as_exits_open(struct as_exits *x)
{
	char cpus[32];
	int bytes = BUFFER_BYTES;
	uint16_t family;

	x->fd = socket(AF_NETLINK, SOCK_RAW | SOCK_CLOEXEC, NETLINK_GENERIC);
	if (x->fd < 0)
		return false;
	family = family_of(x->fd);
	(void)granted(x->fd); /* of the first question; its answer is what counts */
	(void)setsockopt(x->fd, SOL_SOCKET, SO_RCVBUFFORCE, &bytes, sizeof bytes); /* or less */
	snprintf(cpus, sizeof cpus, "0-%ld", sysconf(_SC_NPROCESSORS_CONF) - 1);
	if (family &&
	    ask(x->fd, family, TASKSTATS_CMD_GET, TASKSTATS_CMD_ATTR_REGISTER_CPUMASK, cpus) &&
	    granted(x->fd))
		return true;
	as_exits_close(x);
	return false;
}

void as_exits_close(struct as_exits *x)
{
	if (x->fd >= 0)
		close(x->fd);
	x->fd = -1;
}

struct ended {
	pid_t pid, parent;
	double peak_bytes;
	bool is_ours;
};
typedef AS_VEC(struct ended) ended_t;

static void take(const struct nlmsghdr *h, ended_t *out)
{
	size_t n;
	const void *p = attributes(h, &n);
	const struct nlattr *a = p ? find(p, n, TASKSTATS_TYPE_AGGR_PID) : NULL;
	struct taskstats s = {0};

	if (!a)
		return;
	a = find((const char *)a + NLA_HDRLEN, a->nla_len - NLA_HDRLEN, TASKSTATS_TYPE_STATS);
	if (!a || a->nla_len < NLA_HDRLEN + offsetof(struct taskstats, hiwater_vm))
		return;
	memcpy(&s, (const char *)a + NLA_HDRLEN,
	       AS_MIN(sizeof s, (size_t)a->nla_len - NLA_HDRLEN));
	as_vec_push(out, (struct ended){
				 .pid = (pid_t)(s.version >= HAS_TGID ? s.ac_tgid : s.ac_pid),
				 .parent = (pid_t)s.ac_ppid,
				 .peak_bytes = (double)s.hiwater_rss * 1024,
			 });
}

/* False: some were lost. */
static bool drain(int fd, ended_t *out)
{
	char buffer[MESSAGE_MAX] __attribute__((aligned(8)));

	for (;;) {
		ssize_t n = recv(fd, buffer, sizeof buffer, MSG_DONTWAIT);
		struct nlmsghdr *h = (struct nlmsghdr *)buffer;

		if (n < 0)
			return errno == EAGAIN || errno == EWOULDBLOCK;
		for (size_t left = (size_t)n; NLMSG_OK(h, left); h = NLMSG_NEXT(h, left))
			take(h, out);
	}
}

void as_exits_peaks(struct as_exits *x, pid_t root, double *ret_own_bytes,
		    double *ret_children_bytes)
{
	struct as_map64 ours = {0};
	ended_t all = {0};
	bool complete = drain(x->fd, &all), more = complete;

	*ret_own_bytes = *ret_children_bytes = NAN;
	(void)as_map64_put(&ours, (uint64_t)root, NULL);
	while (more) { /* once per generation at most */
		more = false;
		as_vec_foreach (e, &all) {
			if (e->is_ours || (!as_map64_get(&ours, (uint64_t)e->parent) &&
					   !as_map64_get(&ours, (uint64_t)e->pid)))
				continue;
			(void)as_map64_put(&ours, (uint64_t)e->pid, NULL);
			e->is_ours = more = true;
		}
	}
	as_map64_clear(&ours);
	as_vec_foreach (e, &all) {
		double *ret = e->pid == root ? ret_own_bytes : ret_children_bytes;

		if (e->is_ours && !(*ret >= e->peak_bytes))
			*ret = e->peak_bytes;
	}
	as_vec_clear(&all);
}
