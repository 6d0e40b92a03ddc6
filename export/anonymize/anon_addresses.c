/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "anon_addresses.h"
#include <arpa/inet.h>
#include <sys/socket.h>

void anon_addresses_replace(AnonNames *names, uint16_t family, uint8_t address[16])
{
	static const uint8_t mapped[12] = {[10] = 0xff, [11] = 0xff}, zeros[16];
	static const uint8_t loopback4[4] = {127, 0, 0, 1}, loopback6[16] = {[15] = 1};
	static const uint8_t documentation[4] = {0x20, 0x01, 0x0d, 0xb8};
	bool is_mapped = family == AF_INET6 && !memcmp(address, mapped, sizeof(mapped));
	bool is_ipv4 = family == AF_INET || is_mapped;
	uint8_t *at = is_mapped ? address + sizeof(mapped) : address;
	char text[INET6_ADDRSTRLEN] = "", key[INET6_ADDRSTRLEN + 8];
	uint32_t number;

	if (!memcmp(at, zeros, is_ipv4 ? 4 : 16) ||
	    !memcmp(at, is_ipv4 ? loopback4 : loopback6, is_ipv4 ? 4 : 16))
		return;
	inet_ntop(is_ipv4 ? AF_INET : AF_INET6, at, text, sizeof(text));
	/* No word of a capture is this key: only paths have slashes, and none begins with \001. */
	snprintf(key, sizeof(key), "\001ip/%s", text);
	number = anon_names_number(names, key, ANON_HOST);
	if (!is_ipv4) {
		memset(at, 0, 16);
		memcpy(at, documentation, sizeof(documentation));
	}
	number = htonl(is_ipv4 ? 240U << 24 | (number & 0xffffff) : number);
	memcpy(is_ipv4 ? at : at + 12, &number, sizeof(number));
}
