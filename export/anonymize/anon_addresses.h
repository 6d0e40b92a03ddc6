/* SPDX-License-Identifier: GPL-2.0-or-later */
/* anon_addresses.h - addresses of hosts in the Internet. */
#ifndef WALLPROF_ANON_ADDRESSES_H
#define WALLPROF_ANON_ADDRESSES_H

#include "anon_names.h"

/*
 * Replaces an address of AF_INET or AF_INET6, as struct rec_socket has it, by one that no host has:
 * 240.0.0.1, 240.0.0.2, … (RFC 1112, section 4: reserved), or 2001:db8::1, … (RFC 3849: for
 * documentation). The unspecified address, 127.0.0.1 and ::1 say nothing and are kept; others of
 * 127.0.0.0/8 are chosen by users. An address of IPv4 has the same replacement within IPv6.
 */
void anon_addresses_replace(AnonNames *names, uint16_t family, uint8_t address[16]);

#endif
