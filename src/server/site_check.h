/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * site_check.h - whether this machine reaches a site, found out beside other work: a name server or
 * a firewall that does not answer may take minutes.
 */
#ifndef WALLPROF_SITE_CHECK_H
#define WALLPROF_SITE_CHECK_H

/*
 * Begins to connect to the host's port 443 in a thread. Nothing is begun where a proxy is set
 * (https_proxy, all_proxy): a browser uses it. The host must be valid as long as the program runs.
 */
void site_check_begin(const char *host);

/* Returns why the site cannot be reached, once; NULL: it can be, or it is not known yet. */
const char *site_check_take(void);

#endif
