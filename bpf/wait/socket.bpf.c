/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * socket.bpf.c - the addresses of sockets.
 *
 * A socket is read without its lock: one that is being connected may be sent incomplete, and is
 * then sent again.
 */
#include "object.bpf.h"

#define AF_UNIX	    1
#define AF_INET	    2
#define AF_INET6    10
#define TCP_LISTEN  10	/* net/tcp_states.h; AF_UNIX uses these, too */
#define PATH_OFFSET 2	/* offset of the path in struct sockaddr_un, bytes */
#define PATH_MAX    108 /* length of the path, bytes */
#define PATH_SIZE   112 /* the path padded to whole words */

static __always_inline struct sock *sock_of(struct file *file)
{
	struct socket *socket = BPF_CORE_READ(file, private_data);

	return BPF_CORE_READ(socket, sk);
}

static __always_inline void describe_inet(struct sock *sk, struct rec_socket *record)
{
	struct sock_common *common = &sk->__sk_common;

	record->local_port = BPF_CORE_READ(sk, __sk_common.skc_num);
	record->remote_port = __builtin_bswap16(BPF_CORE_READ(sk, __sk_common.skc_dport));
	if (record->family == AF_INET) {
		bpf_core_read(record->local, 4, &common->skc_rcv_saddr);
		bpf_core_read(record->remote, 4, &common->skc_daddr);
	} else if (bpf_core_field_exists(common->skc_v6_daddr)) {
		bpf_core_read(record->local, 16, &common->skc_v6_rcv_saddr);
		bpf_core_read(record->remote, 16, &common->skc_v6_daddr);
	}
}

/*
 * Reads the address that this end is bound to, if any. Only `length` bytes are read, because the
 * memory after them is not the address's.
 */
static __always_inline bool read_path(struct unix_sock *end, struct rec_socket *record)
{
	struct unix_address *address = BPF_CORE_READ(end, addr);
	u32 length = address ? BPF_CORE_READ(address, len) : 0;

	length -= PATH_OFFSET;
	barrier_var(length);
	if (length == 0 || length > PATH_MAX)
		return false;
	if (bpf_core_read(record->text, length, &address->name[0].sun_path))
		return false;
	record->size = length;
	if (record->text[0] == '\0')
		record->h.flags |= SOCKET_ABSTRACT;
	return true;
}

static __always_inline u32 pid_number(struct pid *pid)
{
	int number = 0;

	if (pid)
		bpf_probe_read_kernel(&number, sizeof(number),
				      (void *)pid + bpf_core_field_offset(struct pid, numbers) +
					      bpf_core_field_offset(struct upid, nr));
	return number;
}

static __always_inline void describe_unix(struct unix_sock *end, struct rec_socket *record)
{
	struct unix_sock *peer;
	struct socket *socket;

	record->peer_tgid = pid_number(BPF_CORE_READ((struct sock *)end, sk_peer_pid));
	if (!bpf_core_type_exists(struct unix_sock))
		return;
	peer = (struct unix_sock *)BPF_CORE_READ(end, peer);
	socket = peer ? BPF_CORE_READ((struct sock *)peer, sk_socket) : NULL;
	if (socket)
		record->peer_inode = BPF_CORE_READ((struct socket_alloc *)socket, vfs_inode.i_ino);
	if (!read_path(end, record) && peer && read_path(peer, record))
		record->h.flags |= SOCKET_PEER_PATH;
}

static __always_inline int emit_socket(struct stack_slot *slot, struct sock *sk,
				       struct inode *inode)
{
	struct rec_socket *record = (struct rec_socket *)slot->buffer;

	__builtin_memset(record, 0, sizeof(*record) + PATH_SIZE);
	record_init(&record->h, REC_SOCKET, 0, sizeof(*record) + PATH_SIZE, bpf_ktime_get_ns());
	record->device = BPF_CORE_READ(inode, i_sb, s_dev);
	record->generation = BPF_CORE_READ(inode, i_generation);
	record->inode = BPF_CORE_READ(inode, i_ino);
	record->family = BPF_CORE_READ(sk, __sk_common.skc_family);
	record->type = BPF_CORE_READ(sk, sk_type);
	record->protocol = BPF_CORE_READ(sk, sk_protocol);
	if (BPF_CORE_READ(sk, __sk_common.skc_state) == TCP_LISTEN)
		record->h.flags |= SOCKET_LISTENS;
	if (record->family == AF_UNIX) {
		describe_unix((struct unix_sock *)sk, record);
		return emit(RING_BULK, &record->h, sizeof(*record) + PATH_SIZE);
	}
	record->h.len = sizeof(*record);
	if (record->family == AF_INET || record->family == AF_INET6)
		describe_inet(sk, record);
	return emit(RING_BULK, &record->h, sizeof(*record));
}

__noinline int socket_emit(u64 address)
{
	struct file *file = (struct file *)address;
	struct stack_slot *slot;
	struct inode *inode;
	u64 mark = fd_socket_mark(address), *sent = sent_slot(mark);

	if (!mark || *sent == mark)
		return 0;
	inode = BPF_CORE_READ(file, f_inode);
	slot = slot_acquire_accounted(bpf_ktime_get_ns());
	if (!slot)
		return 0;
	if (!emit_socket(slot, sock_of(file), inode))
		*sent = mark;
	slot_release(slot);
	return 0;
}

/* net/tcp_states.h, net/sock.h */
#define TCP_FIN_WAIT1 4
#define TCP_LAST_ACK  9
#define TCP_CLOSING   11
#define SOCK_LINGER   4 /* a bit of sk_flags */

/*
 * Whether a close waits until the sent data has arrived: sk_stream_wait_close(), net/core/stream.c.
 */
static __always_inline bool state_lingers(u32 state)
{
	return state == TCP_FIN_WAIT1 || state == TCP_LAST_ACK || state == TCP_CLOSING;
}

static __always_inline bool lingers(struct sock *sk)
{
	return BPF_CORE_READ(sk, __sk_common.skc_flags) & 1UL << SOCK_LINGER &&
	       BPF_CORE_READ(sk, sk_lingertime) &&
	       state_lingers(BPF_CORE_READ(sk, __sk_common.skc_state));
}

/* The socket does not have the new state yet. */
SEC("tp_btf/inet_sock_set_state")
int BPF_PROG(on_socket_state, struct sock *sk, int old_state, int new_state)
{
	struct task_struct *task = bpf_get_current_task_btf();
	struct closing_socket *closing = &closing_sockets[task->pid & (CLOSING_SLOTS - 1)];

	if (!state_lingers(new_state) || !is_target(task))
		return 0;
	closing->tid = task->pid;
	closing->socket = (u64)sk;
	return 0;
}

__noinline int socket_emit_closing(struct object_key *ret_key)
{
	struct task_struct *task = bpf_get_current_task_btf();
	struct closing_socket *closing = &closing_sockets[task->pid & (CLOSING_SLOTS - 1)];
	struct sock *sk = (struct sock *)closing->socket;
	struct socket *socket;
	struct stack_slot *slot;
	struct inode *inode;

	if (!ret_key || closing->tid != (u32)task->pid || !lingers(sk))
		return FD_NONE;
	socket = BPF_CORE_READ(sk, sk_socket);
	slot = socket ? slot_acquire_accounted(bpf_ktime_get_ns()) : NULL;
	if (!slot)
		return FD_NONE;
	inode = (void *)socket + bpf_core_field_offset(struct socket_alloc, vfs_inode);
	emit_socket(slot, sk, inode);
	slot_release(slot);
	ret_key->inode = BPF_CORE_READ(inode, i_ino);
	ret_key->device = BPF_CORE_READ(inode, i_sb, s_dev);
	ret_key->generation = BPF_CORE_READ(inode, i_generation);
	return FD_INET;
}

/*
 * Sends the record of a destination; its path or name is already in the slot, as the record's text.
 */
static __always_inline int emit_destination(struct stack_slot *slot, struct file *file, u16 size)
{
	struct rec_socket *record = (struct rec_socket *)slot->buffer;
	struct inode *inode = BPF_CORE_READ(file, f_inode);

	__builtin_memset(record, 0, sizeof(*record));
	record_init(&record->h, REC_SOCKET,
		    SOCKET_PEER_PATH | (record->text[0] == '\0' ? SOCKET_ABSTRACT : 0),
		    sizeof(*record) + PATH_SIZE, bpf_ktime_get_ns());
	record->device = BPF_CORE_READ(inode, i_sb, s_dev);
	record->generation = BPF_CORE_READ(inode, i_generation);
	record->inode = BPF_CORE_READ(inode, i_ino);
	record->family = AF_UNIX;
	record->type = BPF_CORE_READ(sock_of(file), sk_type);
	record->size = size;
	return emit(RING_BULK, &record->h, sizeof(*record) + PATH_SIZE);
}

/* Identifies a socket and a destination, so that a repeated wait does not send the record again. */
static __always_inline u64 destination_mark(u64 file, const u64 *text)
{
	u64 mark = fd_socket_mark(file);

	for (u32 i = 0; i < PATH_SIZE / sizeof(*text); i++)
		mark = mix(mark, text[i]);
	return mark | 1;
}

__noinline int socket_emit_destination(u64 address, u64 wanted, u32 length)
{
	struct stack_slot *slot;
	u64 mark, *sent, *text;
	u16 family = 0;

	length -= PATH_OFFSET;
	barrier_var(length);
	if (length == 0 || length > PATH_MAX ||
	    bpf_probe_read_user(&family, sizeof(family), (void *)wanted) || family != AF_UNIX)
		return 0;
	slot = slot_acquire_accounted(bpf_ktime_get_ns());
	if (!slot)
		return 0;
	text = (u64 *)(slot->buffer + sizeof(struct rec_socket));
	__builtin_memset(text, 0, PATH_SIZE);
	if (!bpf_probe_read_user(text, length, (void *)(wanted + PATH_OFFSET))) {
		mark = destination_mark(address, text);
		sent = sent_slot(mark);
		if (*sent != mark && !emit_destination(slot, (struct file *)address, length))
			*sent = mark;
	}
	slot_release(slot);
	return 0;
}

char LICENSE[] SEC("license") = "GPL";
