/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Names are those of kernels 6.1 to 7.3. A function that a kernel does not have, or has inlined, is
 * found by its caller, which is therefore listed, too. Callers of synchronize_rcu() and the like
 * are not listed: they are in the stack.
 */
#include "kernel_rules.h"
#include "futex_kinds.h"
#include "util.h"
#include <string.h>

/* It calls the function that a kernel thread was made for (kernel/kthread.c). */
#define KERNEL_THREAD_FUNCTION "kthread"

const KernelRule kernel_rules[] = {
	/* kernel/futex: operation and value show which kind it is */
	{"futex_do_wait", REASON_FUTEX, LEVEL_WAIT},
	{"futex_wait_queue", REASON_FUTEX, LEVEL_WAIT},
	{"__futex_wait", REASON_FUTEX, LEVEL_WAIT},
	{"futex_wait", REASON_FUTEX, LEVEL_WAIT},
	{"futex_wait_multiple", REASON_FUTEX, LEVEL_WAIT},
	{"futex_lock_pi", REASON_MUTEX, LEVEL_WAIT},
	{"futex_wait_requeue_pi", REASON_CONDVAR, LEVEL_WAIT},
	/* kernel/locking */
	{"__mutex_lock", REASON_KERNEL_MUTEX, LEVEL_WAIT},
	{"__mutex_lock_slowpath", REASON_KERNEL_MUTEX, LEVEL_WAIT},
	{"__mutex_lock_killable_slowpath", REASON_KERNEL_MUTEX, LEVEL_WAIT},
	{"__mutex_lock_interruptible_slowpath", REASON_KERNEL_MUTEX, LEVEL_WAIT},
	{"__ww_mutex_lock", REASON_KERNEL_MUTEX, LEVEL_WAIT},
	{"rwsem_down_read_slowpath", REASON_KERNEL_RWSEM, LEVEL_WAIT},
	{"rwsem_down_write_slowpath", REASON_KERNEL_RWSEM, LEVEL_WAIT},
	{"rwbase_write_lock", REASON_KERNEL_RWSEM, LEVEL_WAIT},
	{"__rwbase_read_lock", REASON_KERNEL_RWSEM, LEVEL_WAIT},
	{"ldsem_down_read", REASON_KERNEL_RWSEM, LEVEL_WAIT},
	{"ldsem_down_write", REASON_KERNEL_RWSEM, LEVEL_WAIT},
	{"btrfs_drew_read_lock", REASON_KERNEL_RWSEM, LEVEL_WAIT},
	{"btrfs_drew_write_lock", REASON_KERNEL_RWSEM, LEVEL_WAIT},
	/* The lock of one mapping: an rwsem up to 6.14, then a count. */
	{"__vma_enter_locked", REASON_KERNEL_RWSEM, LEVEL_WAIT},
	{"__vma_start_write", REASON_KERNEL_RWSEM, LEVEL_WAIT},
	{"__percpu_down_read", REASON_KERNEL_PERCPU_RWSEM, LEVEL_WAIT},
	{"percpu_down_write", REASON_KERNEL_PERCPU_RWSEM, LEVEL_WAIT},
	{"percpu_rwsem_wait", REASON_KERNEL_PERCPU_RWSEM, LEVEL_WAIT},
	{"__down", REASON_KERNEL_SEMAPHORE, LEVEL_PRIMITIVE},
	{"__down_common", REASON_KERNEL_SEMAPHORE, LEVEL_PRIMITIVE},
	{"__down_interruptible", REASON_KERNEL_SEMAPHORE, LEVEL_PRIMITIVE},
	{"__down_killable", REASON_KERNEL_SEMAPHORE, LEVEL_PRIMITIVE},
	{"__down_timeout", REASON_KERNEL_SEMAPHORE, LEVEL_PRIMITIVE},
	{"__lock_sock", REASON_SOCKET_LOCK, LEVEL_WAIT},
	{"lock_sock_nested", REASON_SOCKET_LOCK, LEVEL_WAIT},
	/* kernel/rcu */
	{"synchronize_rcu", REASON_RCU, LEVEL_WAIT},
	{"synchronize_rcu_normal", REASON_RCU, LEVEL_WAIT},
	{"synchronize_rcu_expedited", REASON_RCU, LEVEL_WAIT},
	{"synchronize_rcu_tasks", REASON_RCU, LEVEL_WAIT},
	{"synchronize_rcu_tasks_generic", REASON_RCU, LEVEL_WAIT},
	{"synchronize_rcu_tasks_trace", REASON_RCU, LEVEL_WAIT},
	{"synchronize_srcu", REASON_RCU, LEVEL_WAIT},
	{"__synchronize_srcu", REASON_RCU, LEVEL_WAIT},
	{"rcu_barrier", REASON_RCU, LEVEL_WAIT},
	{"rcu_barrier_tasks", REASON_RCU, LEVEL_WAIT},
	{"rcu_barrier_tasks_trace", REASON_RCU, LEVEL_WAIT},
	{"rcu_sync_enter", REASON_RCU, LEVEL_WAIT},
	{"__wait_rcu_gp", REASON_RCU, LEVEL_PRIMITIVE},
	/* fs/jbd2, and the logs of XFS and Btrfs */
	{"jbd2_log_wait_commit", REASON_JOURNAL, LEVEL_WAIT},
	{"wait_transaction_locked", REASON_JOURNAL, LEVEL_WAIT},
	{"wait_transaction_switching", REASON_JOURNAL, LEVEL_WAIT},
	{"add_transaction_credits", REASON_JOURNAL, LEVEL_WAIT},
	{"start_this_handle", REASON_JOURNAL, LEVEL_WAIT},
	{"do_get_write_access", REASON_JOURNAL, LEVEL_WAIT},
	{"jbd2_journal_lock_updates", REASON_JOURNAL, LEVEL_WAIT},
	{"__jbd2_log_wait_for_space", REASON_JOURNAL, LEVEL_WAIT},
	{"jbd2_log_do_checkpoint", REASON_JOURNAL, LEVEL_WAIT},
	{"xlog_grant_head_wait", REASON_JOURNAL, LEVEL_WAIT},
	{"xlog_force_lsn", REASON_JOURNAL, LEVEL_WAIT},
	{"xfs_log_force_seq", REASON_JOURNAL, LEVEL_WAIT},
	{"wait_current_trans", REASON_JOURNAL, LEVEL_WAIT},
	{"btrfs_commit_transaction", REASON_JOURNAL, LEVEL_PLACE},
	{"jbd2_journal_wait_updates", REASON_JOURNAL, LEVEL_WAIT},
	{"jbd2_fc_begin_commit", REASON_JOURNAL, LEVEL_WAIT},
	{"jbd2_journal_release_jbd_inode", REASON_JOURNAL, LEVEL_WAIT},
	{"jbd2_journal_stop", REASON_JOURNAL, LEVEL_WAIT},
	{"jbd2_journal_commit_transaction", REASON_JOURNAL, LEVEL_PLACE},
	{"ext4_fc_submit_inode_data_all", REASON_JOURNAL, LEVEL_WAIT},
	{"ext4_fc_wait_committing_inode", REASON_JOURNAL, LEVEL_WAIT},
	{"xlog_wait_on_iclog", REASON_JOURNAL, LEVEL_WAIT},
	{"xlog_state_get_iclog_space", REASON_JOURNAL, LEVEL_WAIT},
	{"xlog_cil_order_write", REASON_JOURNAL, LEVEL_WAIT},
	{"xlog_cil_push_background", REASON_JOURNAL, LEVEL_WAIT},
	{"xfs_buf_wait_unpin", REASON_JOURNAL, LEVEL_WAIT},
	{"__xfs_iunpin_wait", REASON_JOURNAL, LEVEL_WAIT},
	{"xfs_qm_dqunpin_wait", REASON_JOURNAL, LEVEL_WAIT},
	{"xfs_extent_busy_flush", REASON_JOURNAL, LEVEL_WAIT},
	{"xfs_extent_busy_wait_all", REASON_JOURNAL, LEVEL_WAIT},
	{"xfs_ail_push_all_sync", REASON_JOURNAL, LEVEL_WAIT},
	{"wait_for_commit", REASON_JOURNAL, LEVEL_WAIT},
	{"btrfs_commit_transaction_async", REASON_JOURNAL, LEVEL_WAIT},
	{"cleanup_transaction", REASON_JOURNAL, LEVEL_WAIT},
	{"btrfs_sync_log", REASON_JOURNAL, LEVEL_WAIT},
	{"wait_log_commit", REASON_JOURNAL, LEVEL_WAIT},
	{"wait_for_writer", REASON_JOURNAL, LEVEL_WAIT},
	{"f2fs_issue_checkpoint", REASON_JOURNAL, LEVEL_WAIT},
	{"flush_remained_ckpt_reqs", REASON_JOURNAL, LEVEL_WAIT},
	/* mm, block: throttled because too much was written */
	{"balance_dirty_pages", REASON_DIRTY_THROTTLE, LEVEL_WAIT},
	{"balance_dirty_pages_ratelimited_flags", REASON_DIRTY_THROTTLE, LEVEL_WAIT},
	{"rq_qos_wait", REASON_REQUEST_THROTTLE, LEVEL_WAIT},
	{"wbt_wait", REASON_REQUEST_THROTTLE, LEVEL_WAIT},
	{"blk_mq_get_tag", REASON_REQUEST_SLOT, LEVEL_WAIT},
	{"blk_crypto_get_keyslot", REASON_REQUEST_SLOT, LEVEL_WAIT},
	/* mm: pages and requests; the system call shows which kind it is */
	{"folio_wait_bit_common", REASON_DISK_OTHER, LEVEL_IO},
	{"folio_wait_bit", REASON_DISK_OTHER, LEVEL_IO},
	{"folio_wait_bit_killable", REASON_DISK_OTHER, LEVEL_IO},
	{"__folio_lock", REASON_DISK_OTHER, LEVEL_IO},
	{"__folio_lock_killable", REASON_DISK_OTHER, LEVEL_IO},
	{"__folio_lock_or_retry", REASON_DISK_OTHER, LEVEL_IO},
	{"folio_wait_writeback", REASON_DISK_OTHER, LEVEL_IO},
	{"folio_wait_stable", REASON_DISK_OTHER, LEVEL_IO},
	{"filemap_get_pages", REASON_DISK_OTHER, LEVEL_IO},
	{"filemap_fault", REASON_FAULT, LEVEL_IO},
	{"__wait_on_buffer", REASON_DISK_OTHER, LEVEL_IO},
	{"__lock_buffer", REASON_DISK_OTHER, LEVEL_IO},
	{"submit_bio_wait", REASON_DISK_OTHER, LEVEL_IO},
	{"bio_await", REASON_DISK_OTHER, LEVEL_IO},
	{"blk_wait_io", REASON_DISK_OTHER, LEVEL_IO},
	{"blk_execute_rq", REASON_DISK_OTHER, LEVEL_IO},
	{"__iomap_dio_rw", REASON_DISK_OTHER, LEVEL_IO},
	{"iomap_dio_rw", REASON_DISK_OTHER, LEVEL_IO},
	{"__blkdev_direct_IO_simple", REASON_DISK_OTHER, LEVEL_IO},
	{"__blkdev_direct_IO", REASON_DISK_OTHER, LEVEL_IO},
	{"blkdev_direct_IO", REASON_DISK_OTHER, LEVEL_IO},
	{"__blockdev_direct_IO", REASON_DISK_OTHER, LEVEL_IO},
	{"inode_dio_wait", REASON_DISK_OTHER, LEVEL_IO},
	{"wb_wait_for_completion", REASON_DISK_SYNC, LEVEL_IO},
	{"inode_wait_for_writeback", REASON_DISK_SYNC, LEVEL_IO},
	{"__inode_wait_for_writeback", REASON_DISK_SYNC, LEVEL_IO},
	{"blk_mq_freeze_queue_wait", REASON_DISK_OTHER, LEVEL_IO},
	{"blk_queue_enter", REASON_DISK_OTHER, LEVEL_IO},
	{"__bio_queue_enter", REASON_DISK_OTHER, LEVEL_IO},
	{"read_events", REASON_AIO, LEVEL_WAIT},
	{"__do_sys_io_destroy", REASON_AIO, LEVEL_WAIT},
	{"__x64_sys_io_destroy", REASON_AIO, LEVEL_WAIT},
	/* fs/xfs: metadata, which another thread may be reading or writing */
	{"xfs_buf_iowait", REASON_DISK_OTHER, LEVEL_IO},
	{"xfs_buf_lock", REASON_DISK_OTHER, LEVEL_IO},
	/* fs/btrfs: a range of a file, or room, held by I/O in flight; extents being written */
	{"wait_extent_bit", REASON_DISK_OTHER, LEVEL_IO},
	{"btrfs_start_ordered_extent", REASON_DISK_OTHER, LEVEL_IO},
	{"btrfs_wait_ordered_extents", REASON_DISK_OTHER, LEVEL_IO},
	{"start_delalloc_inodes", REASON_DISK_OTHER, LEVEL_IO},
	{"shrink_delalloc", REASON_DISK_OTHER, LEVEL_IO},
	{"wait_reserve_ticket", REASON_DISK_OTHER, LEVEL_IO},
	{"try_flush_qgroup", REASON_DISK_OTHER, LEVEL_IO},
	{"btrfs_balance_delayed_items", REASON_DISK_OTHER, LEVEL_IO},
	{"btrfs_caching_ctl_wait_done", REASON_DISK_OTHER, LEVEL_IO},
	{"btrfs_wait_block_group_cache_progress", REASON_DISK_OTHER, LEVEL_IO},
	{"rmw_rbio", REASON_DISK_OTHER, LEVEL_IO},
	{"scrub_rbio", REASON_DISK_OTHER, LEVEL_IO},
	{"submit_read_wait_bio_list", REASON_DISK_OTHER, LEVEL_IO},
	{"wait_scrub_stripe_io", REASON_DISK_OTHER, LEVEL_IO},
	{"flush_scrub_stripes", REASON_DISK_OTHER, LEVEL_IO},
	{"scrub_raid56_parity_stripe", REASON_DISK_OTHER, LEVEL_IO},
	{"read_extent_buffer_pages", REASON_DISK_OTHER, LEVEL_IO},
	{"wait_on_extent_buffer_writeback", REASON_DISK_OTHER, LEVEL_IO},
	/* fs/f2fs, fs, block */
	{"f2fs_balance_fs", REASON_DISK_OTHER, LEVEL_IO},
	{"f2fs_issue_flush", REASON_DISK_SYNC, LEVEL_IO},
	{"inode_sleep_on_writeback", REASON_DISK_SYNC, LEVEL_IO},
	{"inode_dio_wait_interruptible", REASON_DISK_OTHER, LEVEL_IO},
	{"blk_mq_freeze_queue_wait_timeout", REASON_DISK_OTHER, LEVEL_IO},
	{"blkcg_maybe_throttle_current", REASON_DISK_OTHER, LEVEL_IO},
	{"blkcg_maybe_throttle_blkg", REASON_DISK_OTHER, LEVEL_IO},
	{"blkdev_issue_discard", REASON_DISCARD, LEVEL_PURPOSE},
	{"blkdev_issue_secure_erase", REASON_DISCARD, LEVEL_PURPOSE},
	{"blk_ioctl_discard", REASON_DISCARD, LEVEL_PURPOSE},
	{"__wait_one_discard_bio", REASON_DISCARD, LEVEL_PURPOSE},
	{"__wait_discard_cmd_range", REASON_DISCARD, LEVEL_PURPOSE},
	{"io_schedule", REASON_DISK_OTHER, LEVEL_PRIMITIVE},
	{"io_schedule_timeout", REASON_DISK_OTHER, LEVEL_PRIMITIVE},
	/* fs: another thread is working on the inode or the entry */
	{"__wait_on_freeing_inode", REASON_INODE, LEVEL_WAIT},
	{"find_inode", REASON_INODE, LEVEL_WAIT},
	{"find_inode_fast", REASON_INODE, LEVEL_WAIT},
	{"d_alloc_parallel", REASON_INODE, LEVEL_WAIT},
	{"iget_locked", REASON_INODE, LEVEL_WAIT},
	{"iget5_locked", REASON_INODE, LEVEL_WAIT},
	{"iget5_locked_rcu", REASON_INODE, LEVEL_WAIT},
	{"ilookup", REASON_INODE, LEVEL_WAIT},
	{"ilookup5", REASON_INODE, LEVEL_WAIT},
	{"inode_insert5", REASON_INODE, LEVEL_WAIT},
	{"insert_inode_locked", REASON_INODE, LEVEL_WAIT},
	{"inode_wait_for_lru_isolating", REASON_INODE, LEVEL_WAIT},
	{"get_unlocked_entry", REASON_INODE, LEVEL_WAIT},
	{"wait_entry_unlocked", REASON_INODE, LEVEL_WAIT},
	{"mb_cache_entry_wait_unused", REASON_INODE, LEVEL_WAIT},
	{"erofs_init_inode_xattrs", REASON_INODE, LEVEL_WAIT},
	{"z_erofs_fill_inode_lazy", REASON_INODE, LEVEL_WAIT},
	{"shmem_falloc_wait", REASON_INODE, LEVEL_WAIT},
	/* other file systems */
	{"request_wait_answer", REASON_FUSE, LEVEL_WAIT},
	{"fuse_file_read_iter", REASON_FUSE, LEVEL_PURPOSE},
	{"fuse_file_write_iter", REASON_FUSE, LEVEL_PURPOSE},
	{"fuse_splice_read", REASON_FUSE, LEVEL_PURPOSE},
	{"fuse_fsync", REASON_FUSE, LEVEL_PURPOSE},
	{"fuse_flush", REASON_FUSE, LEVEL_PURPOSE},
	{"fuse_wait_on_page_writeback", REASON_FUSE, LEVEL_WAIT},
	{"fuse_wait_on_folio_writeback", REASON_FUSE, LEVEL_WAIT},
	{"fuse_get_req", REASON_FUSE, LEVEL_WAIT},
	{"fuse_set_nowrite", REASON_FUSE, LEVEL_WAIT},
	{"fuse_sync_fs_writes", REASON_FUSE, LEVEL_WAIT},
	{"fuse_wait_aborted", REASON_FUSE, LEVEL_WAIT},
	{"fuse_direct_IO", REASON_FUSE, LEVEL_WAIT},
	{"fuse_file_cached_io_open", REASON_FUSE, LEVEL_WAIT},
	{"alloc_dax_mapping_reclaim", REASON_FUSE, LEVEL_WAIT},
	{"__fuse_dax_fault", REASON_FUSE, LEVEL_WAIT},
	{"virtio_fs_drain_queue", REASON_FUSE, LEVEL_WAIT},
	{"fuse_dev_do_read", REASON_EVENT, LEVEL_WAIT},
	{"nfs_file_read", REASON_NETWORK_FS, LEVEL_PURPOSE},
	{"nfs_file_write", REASON_NETWORK_FS, LEVEL_PURPOSE},
	{"nfs_file_fsync", REASON_NETWORK_FS, LEVEL_PURPOSE},
	{"nfs_file_splice_read", REASON_NETWORK_FS, LEVEL_PURPOSE},
	{"nfs_wb_all", REASON_NETWORK_FS, LEVEL_PURPOSE},
	{"cifs_strict_readv", REASON_NETWORK_FS, LEVEL_PURPOSE},
	{"cifs_loose_read_iter", REASON_NETWORK_FS, LEVEL_PURPOSE},
	{"cifs_fsync", REASON_NETWORK_FS, LEVEL_PURPOSE},
	{"cifs_strict_fsync", REASON_NETWORK_FS, LEVEL_PURPOSE},
	{"netfs_buffered_read_iter", REASON_NETWORK_FS, LEVEL_PURPOSE},
	{"netfs_file_read_iter", REASON_NETWORK_FS, LEVEL_PURPOSE},
	{"ceph_read_iter", REASON_NETWORK_FS, LEVEL_PURPOSE},
	{"ceph_fsync", REASON_NETWORK_FS, LEVEL_PURPOSE},
	{"ceph_mdsc_wait_request", REASON_NETWORK_FS, LEVEL_WAIT},
	{"v9fs_file_read_iter", REASON_NETWORK_FS, LEVEL_PURPOSE},
	{"v9fs_file_fsync", REASON_NETWORK_FS, LEVEL_PURPOSE},
	{"nfs_wait_bit_killable", REASON_NETWORK_FS, LEVEL_WAIT},
	{"rpc_wait_bit_killable", REASON_NETWORK_FS, LEVEL_WAIT},
	{"__rpc_wait_for_completion_task", REASON_NETWORK_FS, LEVEL_WAIT},
	{"rpc_wait_for_completion_task", REASON_NETWORK_FS, LEVEL_WAIT},
	{"p9_client_rpc", REASON_NETWORK_FS, LEVEL_WAIT},
	{"wait_for_response", REASON_NETWORK_FS, LEVEL_WAIT},
	{"compound_send_recv", REASON_NETWORK_FS, LEVEL_WAIT},
	{"netfs_wait_for_read", REASON_NETWORK_FS, LEVEL_WAIT},
	{"netfs_wait_for_in_progress_stream", REASON_NETWORK_FS, LEVEL_WAIT},
	{"netfs_unbuffered_read", REASON_NETWORK_FS, LEVEL_WAIT},
	{"netfs_unbuffered_write", REASON_NETWORK_FS, LEVEL_WAIT},
	{"netfs_unbuffered_write_iter_locked", REASON_NETWORK_FS, LEVEL_WAIT},
	{"netfs_retry_writes", REASON_NETWORK_FS, LEVEL_WAIT},
	{"netfs_end_writethrough", REASON_NETWORK_FS, LEVEL_WAIT},
	/* A network file system's cache on a local disk. */
	{"fscache_begin_operation", REASON_NETWORK_FS, LEVEL_WAIT},
	{"fscache_wait_for_operation", REASON_NETWORK_FS, LEVEL_WAIT},
	{"__fscache_use_cookie", REASON_NETWORK_FS, LEVEL_WAIT},
	{"fscache_wait_on_collision", REASON_NETWORK_FS, LEVEL_WAIT},
	{"fscache_create_volume", REASON_NETWORK_FS, LEVEL_WAIT},
	{"fscache_wait_on_volume_collision", REASON_NETWORK_FS, LEVEL_WAIT},
	{"v9fs_evict_inode", REASON_NETWORK_FS, LEVEL_WAIT},
	{"ceph_evict_inode", REASON_NETWORK_FS, LEVEL_WAIT},
	{"cifs_evict_inode", REASON_NETWORK_FS, LEVEL_WAIT},
	{"cifs_setsize", REASON_NETWORK_FS, LEVEL_WAIT},
	{"cifs_unlink", REASON_NETWORK_FS, LEVEL_WAIT},
	{"cifs_rename2", REASON_NETWORK_FS, LEVEL_WAIT},
	{"cifs_fallocate", REASON_NETWORK_FS, LEVEL_WAIT},
	{"cifs_remap_file_range", REASON_NETWORK_FS, LEVEL_WAIT},
	{"cifs_file_copychunk_range", REASON_NETWORK_FS, LEVEL_WAIT},
	/* fs/nfs: a server that is slow, asks to wait, or is being searched for */
	{"nfs_wait_on_request", REASON_NETWORK_FS, LEVEL_WAIT},
	{"nfs_page_set_headlock", REASON_NETWORK_FS, LEVEL_WAIT},
	{"nfs_iocounter_wait", REASON_NETWORK_FS, LEVEL_WAIT},
	{"nfs_writepages", REASON_NETWORK_FS, LEVEL_WAIT},
	{"wait_on_commit", REASON_NETWORK_FS, LEVEL_WAIT},
	{"nfs_direct_wait", REASON_NETWORK_FS, LEVEL_WAIT},
	{"nfs_local_commit", REASON_NETWORK_FS, LEVEL_WAIT},
	{"handle_async_copy", REASON_NETWORK_FS, LEVEL_WAIT},
	{"nfs_clear_invalid_mapping", REASON_NETWORK_FS, LEVEL_WAIT},
	{"__nfs_lookup_revalidate", REASON_NETWORK_FS, LEVEL_WAIT},
	{"nfs_vm_page_mkwrite", REASON_NETWORK_FS, LEVEL_WAIT},
	{"nfs_wait_client_init_complete", REASON_NETWORK_FS, LEVEL_WAIT},
	{"nfs_cache_wait_for_upcall", REASON_NETWORK_FS, LEVEL_WAIT},
	{"bl_resolve_deviceid", REASON_NETWORK_FS, LEVEL_WAIT},
	{"nfs3_rpc_wrapper", REASON_NETWORK_FS, LEVEL_WAIT},
	{"nfs4_delay_interruptible", REASON_NETWORK_FS, LEVEL_WAIT},
	{"nfs4_delay_killable", REASON_NETWORK_FS, LEVEL_WAIT},
	{"nfs4_wait_clnt_recover", REASON_NETWORK_FS, LEVEL_WAIT},
	{"nfs4_drain_slot_tbl", REASON_NETWORK_FS, LEVEL_WAIT},
	{"nfs4_slot_wait_on_seqid", REASON_NETWORK_FS, LEVEL_WAIT},
	{"nfs4_wait_ds_connect", REASON_NETWORK_FS, LEVEL_WAIT},
	{"nfs4_refresh_open_old_stateid", REASON_NETWORK_FS, LEVEL_WAIT},
	{"nfs_set_open_stateid_locked", REASON_NETWORK_FS, LEVEL_WAIT},
	{"pnfs_update_layout", REASON_NETWORK_FS, LEVEL_WAIT},
	{"pnfs_prepare_to_retry_layoutget", REASON_NETWORK_FS, LEVEL_WAIT},
	{"pnfs_layoutcommit_inode", REASON_NETWORK_FS, LEVEL_WAIT},
	{"pnfs_roc", REASON_NETWORK_FS, LEVEL_WAIT},
	{"_pnfs_return_layout", REASON_NETWORK_FS, LEVEL_WAIT},
	{"pnfs_destroy_layout_final", REASON_NETWORK_FS, LEVEL_WAIT},
	/* fs/ceph, fs/smb/client */
	{"ceph_netfs_check_write_begin", REASON_NETWORK_FS, LEVEL_WAIT},
	{"ceph_page_mkwrite", REASON_NETWORK_FS, LEVEL_WAIT},
	{"__ceph_get_caps", REASON_NETWORK_FS, LEVEL_WAIT},
	{"ceph_write_inode", REASON_NETWORK_FS, LEVEL_WAIT},
	{"__do_request", REASON_NETWORK_FS, LEVEL_WAIT},
	{"ceph_mdsc_submit_request", REASON_NETWORK_FS, LEVEL_WAIT},
	{"ceph_mdsc_close_sessions", REASON_NETWORK_FS, LEVEL_WAIT},
	{"ceph_wait_on_conflict_unlink", REASON_NETWORK_FS, LEVEL_WAIT},
	{"flush_mdlog_and_wait_mdsc_unsafe_requests", REASON_NETWORK_FS, LEVEL_WAIT},
	{"flush_dirty_session_caps", REASON_NETWORK_FS, LEVEL_WAIT},
	{"wait_caps_flush", REASON_NETWORK_FS, LEVEL_WAIT},
	{"wait_requests", REASON_NETWORK_FS, LEVEL_WAIT},
	{"wait_for_free_credits", REASON_NETWORK_FS, LEVEL_WAIT},
	{"smb2_wait_mtu_credits", REASON_NETWORK_FS, LEVEL_WAIT},
	{"SendReceiveBlockingLock", REASON_NETWORK_FS, LEVEL_WAIT},
	{"cifs_wait_for_server_reconnect", REASON_NETWORK_FS, LEVEL_WAIT},
	{"cifs_sb_tlink", REASON_NETWORK_FS, LEVEL_WAIT},
	{"cifs_get_writer", REASON_NETWORK_FS, LEVEL_WAIT},
	{"cifs_wait_bit_killable", REASON_NETWORK_FS, LEVEL_WAIT},
	{"cifs_revalidate_mapping", REASON_NETWORK_FS, LEVEL_WAIT},
	{"smbd_send", REASON_NETWORK_FS, LEVEL_WAIT},
	{"smbd_recv", REASON_NETWORK_FS, LEVEL_WAIT},
	{"smbd_post_send_iter", REASON_NETWORK_FS, LEVEL_WAIT},
	{"smbd_negotiate", REASON_NETWORK_FS, LEVEL_WAIT},
	{"get_mr", REASON_NETWORK_FS, LEVEL_WAIT},
	/* net/9p, net/ceph, net/sunrpc */
	{"p9_virtio_request", REASON_NETWORK_FS, LEVEL_WAIT},
	{"p9_virtio_zc_request", REASON_NETWORK_FS, LEVEL_WAIT},
	{"p9_get_mapped_pages", REASON_NETWORK_FS, LEVEL_WAIT},
	{"p9_xen_request", REASON_NETWORK_FS, LEVEL_WAIT},
	{"p9_usbg_request", REASON_NETWORK_FS, LEVEL_WAIT},
	{"__ceph_open_session", REASON_NETWORK_FS, LEVEL_WAIT},
	{"ceph_monc_wait_osdmap", REASON_NETWORK_FS, LEVEL_WAIT},
	{"wait_generic_request", REASON_NETWORK_FS, LEVEL_WAIT},
	{"ceph_osdc_sync", REASON_NETWORK_FS, LEVEL_WAIT},
	{"linger_notify_finish_wait", REASON_NETWORK_FS, LEVEL_WAIT},
	{"linger_reg_commit_wait", REASON_NETWORK_FS, LEVEL_WAIT},
	{"wait_request_timeout", REASON_NETWORK_FS, LEVEL_WAIT},
	{"gss_create_upcall", REASON_NETWORK_FS, LEVEL_WAIT},
	{"rpc_shutdown_client", REASON_NETWORK_FS, LEVEL_WAIT},
	{"__rpc_execute", REASON_NETWORK_FS, LEVEL_WAIT},
	/* mm: memory */
	{"handle_userfault", REASON_USERFAULT, LEVEL_WAIT},
	{"userfaultfd_event_wait_completion", REASON_USERFAULT, LEVEL_WAIT},
	{"reclaim_throttle", REASON_RECLAIM, LEVEL_WAIT},
	{"throttle_direct_reclaim", REASON_RECLAIM, LEVEL_WAIT},
	{"should_reclaim_retry", REASON_RECLAIM, LEVEL_WAIT},
	{"__alloc_pages_may_oom", REASON_RECLAIM, LEVEL_WAIT},
	{"try_to_free_pages", REASON_RECLAIM, LEVEL_MEMORY},
	{"try_to_free_mem_cgroup_pages", REASON_RECLAIM, LEVEL_MEMORY},
	{"__alloc_pages_direct_compact", REASON_RECLAIM, LEVEL_MEMORY},
	{"mem_cgroup_handle_over_high", REASON_MEMORY_THROTTLE, LEVEL_WAIT},
	{"__mem_cgroup_handle_over_high", REASON_MEMORY_THROTTLE, LEVEL_WAIT},
	{"mem_cgroup_oom_synchronize", REASON_MEMORY_THROTTLE, LEVEL_WAIT},
	{"do_swap_page", REASON_SWAP, LEVEL_MEMORY},
	{"migration_entry_wait_on_locked", REASON_PAGE_MIGRATION, LEVEL_WAIT},
	/* fs/pipe.c, fs/splice.c */
	{"anon_pipe_read", REASON_PIPE_READ, LEVEL_WAIT},
	{"pipe_read", REASON_PIPE_READ, LEVEL_WAIT},
	{"fifo_pipe_read", REASON_PIPE_READ, LEVEL_WAIT},
	{"pipe_wait_readable", REASON_PIPE_READ, LEVEL_WAIT},
	{"splice_from_pipe_next", REASON_PIPE_READ, LEVEL_WAIT},
	{"ipipe_prep", REASON_PIPE_READ, LEVEL_WAIT},
	{"anon_pipe_write", REASON_PIPE_WRITE, LEVEL_WAIT},
	{"pipe_write", REASON_PIPE_WRITE, LEVEL_WAIT},
	{"fifo_pipe_write", REASON_PIPE_WRITE, LEVEL_WAIT},
	{"pipe_wait_writable", REASON_PIPE_WRITE, LEVEL_WAIT},
	{"wait_for_space", REASON_PIPE_WRITE, LEVEL_WAIT},
	{"opipe_prep", REASON_PIPE_WRITE, LEVEL_WAIT},
	{"wait_for_partner", REASON_PIPE_OPEN, LEVEL_WAIT},
	{"fifo_open", REASON_PIPE_OPEN, LEVEL_WAIT},
	/* net */
	{"unix_stream_data_wait", REASON_UNIX_RECEIVE, LEVEL_WAIT},
	{"unix_stream_read_generic", REASON_UNIX_RECEIVE, LEVEL_WAIT},
	{"__unix_dgram_recvmsg", REASON_UNIX_RECEIVE, LEVEL_WAIT},
	{"unix_dgram_recvmsg", REASON_UNIX_RECEIVE, LEVEL_WAIT},
	{"unix_stream_sendmsg", REASON_UNIX_SEND, LEVEL_WAIT},
	{"unix_dgram_sendmsg", REASON_UNIX_SEND, LEVEL_WAIT},
	{"unix_stream_connect", REASON_UNIX_CONNECT, LEVEL_WAIT},
	{"unix_accept", REASON_ACCEPT, LEVEL_WAIT},
	{"sk_wait_data", REASON_NETWORK_RECEIVE, LEVEL_WAIT},
	{"tcp_recvmsg_locked", REASON_NETWORK_RECEIVE, LEVEL_WAIT},
	{"__skb_recv_udp", REASON_NETWORK_RECEIVE, LEVEL_WAIT},
	{"udp_recvmsg", REASON_NETWORK_RECEIVE, LEVEL_WAIT},
	{"udpv6_recvmsg", REASON_NETWORK_RECEIVE, LEVEL_WAIT},
	{"raw_recvmsg", REASON_NETWORK_RECEIVE, LEVEL_WAIT},
	{"rawv6_recvmsg", REASON_NETWORK_RECEIVE, LEVEL_WAIT},
	{"ping_recvmsg", REASON_NETWORK_RECEIVE, LEVEL_WAIT},
	{"packet_recvmsg", REASON_NETWORK_RECEIVE, LEVEL_WAIT},
	{"tun_ring_recv", REASON_NETWORK_RECEIVE, LEVEL_WAIT},
	{"tun_do_read", REASON_NETWORK_RECEIVE, LEVEL_WAIT},
	{"tls_rx_rec_wait", REASON_NETWORK_RECEIVE, LEVEL_WAIT},
	{"vsock_connectible_recvmsg", REASON_NETWORK_RECEIVE, LEVEL_WAIT},
	{"sk_stream_wait_memory", REASON_NETWORK_SEND, LEVEL_WAIT},
	{"tcp_sendmsg_locked", REASON_NETWORK_SEND, LEVEL_WAIT},
	{"udp_sendmsg", REASON_NETWORK_SEND, LEVEL_WAIT},
	{"udpv6_sendmsg", REASON_NETWORK_SEND, LEVEL_WAIT},
	{"packet_sendmsg", REASON_NETWORK_SEND, LEVEL_WAIT},
	{"vsock_connectible_sendmsg", REASON_NETWORK_SEND, LEVEL_WAIT},
	{"sk_stream_wait_close", REASON_NETWORK_SEND, LEVEL_WAIT},
	{"inet_wait_for_connect", REASON_NETWORK_CONNECT, LEVEL_WAIT},
	{"__inet_stream_connect", REASON_NETWORK_CONNECT, LEVEL_WAIT},
	{"sk_stream_wait_connect", REASON_NETWORK_CONNECT, LEVEL_WAIT},
	{"vsock_connect", REASON_NETWORK_CONNECT, LEVEL_WAIT},
	{"inet_csk_wait_for_connect", REASON_ACCEPT, LEVEL_WAIT},
	{"inet_csk_accept", REASON_ACCEPT, LEVEL_WAIT},
	{"vsock_accept", REASON_ACCEPT, LEVEL_WAIT},
	{"netlink_recvmsg", REASON_IPC, LEVEL_WAIT},
	{"netlink_attachskb", REASON_IPC, LEVEL_WAIT},
	/* many descriptors: the descriptors show what they are */
	{"ep_poll", REASON_POLL, LEVEL_WAIT},
	{"do_epoll_wait", REASON_POLL, LEVEL_WAIT},
	{"do_poll", REASON_POLL, LEVEL_WAIT},
	{"do_sys_poll", REASON_POLL, LEVEL_WAIT},
	{"do_select", REASON_POLL, LEVEL_WAIT},
	{"core_sys_select", REASON_POLL, LEVEL_WAIT},
	/* kernel/signal.c */
	{"do_sigtimedwait", REASON_SIGNAL, LEVEL_WAIT},
	{"__do_sys_rt_sigtimedwait", REASON_SIGNAL, LEVEL_WAIT},
	{"__x64_sys_rt_sigtimedwait", REASON_SIGNAL, LEVEL_WAIT},
	{"sigsuspend", REASON_SIGNAL, LEVEL_WAIT},
	{"__x64_sys_rt_sigsuspend", REASON_SIGNAL, LEVEL_WAIT},
	{"__do_sys_pause", REASON_SIGNAL, LEVEL_WAIT},
	{"__x64_sys_pause", REASON_SIGNAL, LEVEL_WAIT},
	{"signalfd_dequeue", REASON_EVENT, LEVEL_WAIT},
	{"signalfd_read_iter", REASON_EVENT, LEVEL_WAIT},
	{"signalfd_read", REASON_EVENT, LEVEL_WAIT},
	{"do_signal_stop", REASON_STOPPED, LEVEL_WAIT},
	{"ptrace_stop", REASON_TRACED, LEVEL_WAIT},
	{"do_freezer_trap", REASON_FROZEN, LEVEL_WAIT},
	{"cgroup_enter_frozen", REASON_FROZEN, LEVEL_WAIT},
	{"__refrigerator", REASON_FROZEN, LEVEL_WAIT},
	/* kernel/exit.c, kernel/fork.c, fs/exec.c */
	{"do_wait", REASON_CHILD, LEVEL_WAIT},
	{"kernel_wait4", REASON_CHILD, LEVEL_WAIT},
	{"wait_for_vfork_done", REASON_VFORK, LEVEL_WAIT},
	{"kernel_clone", REASON_VFORK, LEVEL_PRIMITIVE},
	{"coredump_wait", REASON_CORE_DUMP, LEVEL_WAIT},
	{"coredump_task_exit", REASON_CORE_DUMP, LEVEL_WAIT},
	{"wait_for_dump_helpers", REASON_CORE_DUMP, LEVEL_WAIT},
	{"vfs_coredump", REASON_CORE_DUMP, LEVEL_PLACE},
	{"do_coredump", REASON_CORE_DUMP, LEVEL_PLACE},
	{"de_thread", REASON_EXEC, LEVEL_WAIT},
	{"begin_new_exec", REASON_EXEC, LEVEL_PLACE},
	{"do_exit", REASON_EXIT, LEVEL_PLACE},
	/* kernel/time */
	{"do_nanosleep", REASON_SLEEP, LEVEL_WAIT},
	{"hrtimer_nanosleep", REASON_SLEEP, LEVEL_WAIT},
	{"alarm_timer_nsleep", REASON_SLEEP, LEVEL_WAIT},
	{"do_cpu_nanosleep", REASON_SLEEP, LEVEL_WAIT},
	{"timerfd_read_iter", REASON_TIMER, LEVEL_WAIT},
	{"timerfd_read", REASON_TIMER, LEVEL_WAIT},
	{"msleep", REASON_KERNEL_TIMER, LEVEL_PRIMITIVE},
	{"msleep_interruptible", REASON_KERNEL_TIMER, LEVEL_PRIMITIVE},
	{"usleep_range_state", REASON_KERNEL_TIMER, LEVEL_PRIMITIVE},
	{"ext4_multi_mount_protect", REASON_KERNEL_TIMER, LEVEL_WAIT},
	{"schedule_timeout_uninterruptible", REASON_KERNEL_TIMER, LEVEL_PRIMITIVE},
	/* io_uring */
	{"io_cqring_wait", REASON_IO_URING, LEVEL_WAIT},
	{"io_cqring_schedule_timeout", REASON_IO_URING, LEVEL_WAIT},
	{"__do_sys_io_uring_enter", REASON_IO_URING, LEVEL_PLACE},
	{"__x64_sys_io_uring_enter", REASON_IO_URING, LEVEL_PLACE},
	{"io_uring_cancel_generic", REASON_IO_URING, LEVEL_WAIT},
	{"io_wq_worker", REASON_IDLE_WORKER, LEVEL_PLACE},
	{"io_wqe_worker", REASON_IDLE_WORKER, LEVEL_PLACE},
	{"io_sq_thread", REASON_IDLE_WORKER, LEVEL_PLACE},
	{"worker_thread", REASON_IDLE_WORKER, LEVEL_PLACE},
	{"kthread_worker_fn", REASON_IDLE_WORKER, LEVEL_PLACE},
	{"smpboot_thread_fn", REASON_IDLE_WORKER, LEVEL_PLACE},
	{"kjournald2", REASON_IDLE_WORKER, LEVEL_PLACE},
	{"rcu_gp_fqs_loop", REASON_IDLE_WORKER, LEVEL_PLACE},
	{"nocb_gp_wait", REASON_IDLE_WORKER, LEVEL_PLACE},
	{"nocb_cb_wait", REASON_IDLE_WORKER, LEVEL_PLACE},
	{"rcu_tasks_one_gp", REASON_IDLE_WORKER, LEVEL_PLACE},
	{"kswapd_try_to_sleep", REASON_IDLE_WORKER, LEVEL_PLACE},
	{"irq_wait_for_interrupt", REASON_IDLE_WORKER, LEVEL_PLACE},
	{"devtmpfs_work_loop", REASON_IDLE_WORKER, LEVEL_PLACE},
	{"svc_thread_wait_for_work", REASON_IDLE_WORKER, LEVEL_PLACE},
	{"khugepaged_wait_work", REASON_IDLE_WORKER, LEVEL_PLACE},
	{"kdamond_usleep", REASON_IDLE_WORKER, LEVEL_PLACE},
	{"kthreadd", REASON_IDLE_WORKER, LEVEL_PLACE},
	{KERNEL_THREAD_FUNCTION, REASON_IDLE_WORKER, LEVEL_PLACE},
	/* events and queues */
	{"inotify_read", REASON_FILE_EVENT, LEVEL_WAIT},
	{"fanotify_read", REASON_FILE_EVENT, LEVEL_WAIT},
	{"fanotify_get_response", REASON_FILE_PERMISSION, LEVEL_WAIT},
	{"fanotify_handle_event", REASON_FILE_PERMISSION, LEVEL_WAIT},
	{"eventfd_read", REASON_EVENT, LEVEL_WAIT},
	{"eventfd_write", REASON_EVENT, LEVEL_WAIT},
	{"userfaultfd_read_iter", REASON_EVENT, LEVEL_WAIT},
	{"userfaultfd_read", REASON_EVENT, LEVEL_WAIT},
	{"userfaultfd_ctx_read", REASON_EVENT, LEVEL_WAIT},
	{"seccomp_do_user_notification", REASON_SUPERVISOR, LEVEL_WAIT},
	{"__seccomp_filter", REASON_SUPERVISOR, LEVEL_PLACE},
	{"seccomp_notify_ioctl", REASON_EVENT, LEVEL_WAIT},
	{"devkmsg_read", REASON_EVENT, LEVEL_WAIT},
	{"do_syslog", REASON_EVENT, LEVEL_WAIT},
	{"ring_buffer_wait", REASON_EVENT, LEVEL_WAIT},
	{"tracing_wait_pipe", REASON_EVENT, LEVEL_WAIT},
	{"evdev_read", REASON_EVENT, LEVEL_WAIT},
	{"do_msgrcv", REASON_IPC, LEVEL_WAIT},
	{"do_msgsnd", REASON_IPC, LEVEL_WAIT},
	{"__do_semtimedop", REASON_IPC, LEVEL_WAIT},
	{"do_semtimedop", REASON_IPC, LEVEL_WAIT},
	{"wq_sleep", REASON_IPC, LEVEL_WAIT},
	{"do_mq_timedreceive", REASON_IPC, LEVEL_WAIT},
	{"do_mq_timedsend", REASON_IPC, LEVEL_WAIT},
	/* fs/locks.c */
	{"flock_lock_inode_wait", REASON_FILE_LOCK, LEVEL_WAIT},
	{"posix_lock_inode_wait", REASON_FILE_LOCK, LEVEL_WAIT},
	{"locks_lock_inode_wait", REASON_FILE_LOCK, LEVEL_WAIT},
	{"do_lock_file_wait", REASON_FILE_LOCK, LEVEL_WAIT},
	{"fcntl_setlk", REASON_FILE_LOCK, LEVEL_WAIT},
	{"__break_lease", REASON_FILE_LOCK, LEVEL_WAIT},
	{"v9fs_file_do_lock", REASON_FILE_LOCK, LEVEL_WAIT},
	{"ceph_lock_wait_for_completion", REASON_FILE_LOCK, LEVEL_WAIT},
	{"nfs4_retry_setlk", REASON_FILE_LOCK, LEVEL_WAIT},
	{"nfs4_retry_setlk_simple", REASON_FILE_LOCK, LEVEL_WAIT},
	{"cifs_lock_add_if", REASON_FILE_LOCK, LEVEL_WAIT},
	/* drivers */
	{"n_tty_read", REASON_TERMINAL, LEVEL_WAIT},
	{"n_tty_write", REASON_TERMINAL, LEVEL_WAIT},
	{"tty_wait_until_sent", REASON_TERMINAL, LEVEL_WAIT},
	{"dma_fence_wait_timeout", REASON_DEVICE, LEVEL_WAIT},
	{"dma_fence_default_wait", REASON_DEVICE, LEVEL_WAIT},
	{"dma_resv_wait_timeout", REASON_DEVICE, LEVEL_WAIT},
	{"drm_syncobj_array_wait_timeout", REASON_DEVICE, LEVEL_WAIT},
	{"drm_read", REASON_DEVICE, LEVEL_WAIT},
	{"wait_for_avail", REASON_DEVICE, LEVEL_WAIT},
	{"snd_pcm_drain", REASON_DEVICE, LEVEL_WAIT},
	{"usb_start_wait_urb", REASON_DEVICE, LEVEL_WAIT},
	{"hidraw_read", REASON_DEVICE, LEVEL_WAIT},
	{"virtballoon_free_page_report", REASON_DEVICE, LEVEL_WAIT},
	{"tell_host", REASON_DEVICE, LEVEL_WAIT},
	{"virtio_mem_send_request", REASON_DEVICE, LEVEL_WAIT},
	{"virtqueue_exec_admin_cmd", REASON_DEVICE, LEVEL_WAIT},
	{"page_reporting_process", REASON_DEVICE, LEVEL_PLACE},
	{"kvm_vcpu_block", REASON_IDLE_GUEST, LEVEL_WAIT},
	{"kvm_vcpu_halt", REASON_IDLE_GUEST, LEVEL_WAIT},
	/* the kernel's own work */
	{"idempotent_wait_for_completion", REASON_MODULE, LEVEL_WAIT},
	{"load_module", REASON_MODULE, LEVEL_PLACE},
	{"__do_sys_finit_module", REASON_MODULE, LEVEL_PLACE},
	{"__do_sys_init_module", REASON_MODULE, LEVEL_PLACE},
	{"__do_sys_delete_module", REASON_MODULE, LEVEL_PLACE},
	{"__request_module", REASON_MODULE, LEVEL_PLACE},
	{"call_usermodehelper_exec", REASON_MODULE, LEVEL_WAIT},
	{"__sys_bpf", REASON_BPF, LEVEL_PLACE},
	{"stop_one_cpu", REASON_CPU_STOP, LEVEL_WAIT},
	{"stop_two_cpus", REASON_CPU_STOP, LEVEL_WAIT},
	{"__stop_cpus", REASON_CPU_STOP, LEVEL_WAIT},
	{"stop_cpus", REASON_CPU_STOP, LEVEL_WAIT},
	{"affine_move_task", REASON_CPU_STOP, LEVEL_WAIT},
	{"wait_task_inactive", REASON_CPU_STOP, LEVEL_WAIT},
	{"wait_for_random_bytes", REASON_RANDOM, LEVEL_WAIT},
	{"__flush_work", REASON_KERNEL_WORK, LEVEL_PLACE},
	{"flush_work", REASON_KERNEL_WORK, LEVEL_PLACE},
	{"__flush_workqueue", REASON_KERNEL_WORK, LEVEL_PLACE},
	{"drain_workqueue", REASON_KERNEL_WORK, LEVEL_PLACE},
	{"__lru_add_drain_all", REASON_KERNEL_WORK, LEVEL_PLACE},
	{"kthread_stop", REASON_KERNEL_WORK, LEVEL_PLACE},
	{"kthread_park", REASON_KERNEL_WORK, LEVEL_PLACE},
	{"__kthread_create_on_node", REASON_KERNEL_WORK, LEVEL_PLACE},
	{"io_ring_exit_work", REASON_KERNEL_WORK, LEVEL_PLACE},
	{"btrfs_wait_on_delayed_iputs", REASON_KERNEL_WORK, LEVEL_PLACE},
	{"xfs_btree_split", REASON_KERNEL_WORK, LEVEL_PLACE},
	{"jbd2_journal_start_thread", REASON_KERNEL_WORK, LEVEL_PLACE},
	{"journal_kill_thread", REASON_KERNEL_WORK, LEVEL_PLACE},
	{"wait_for_completion", REASON_COMPLETION, LEVEL_PRIMITIVE},
	{"wait_for_completion_state", REASON_COMPLETION, LEVEL_PRIMITIVE},
	{"wait_for_completion_killable", REASON_COMPLETION, LEVEL_PRIMITIVE},
	{"wait_for_completion_interruptible", REASON_COMPLETION, LEVEL_PRIMITIVE},
	{"wait_for_completion_timeout", REASON_COMPLETION, LEVEL_PRIMITIVE},
	{"wait_for_completion_io", REASON_DISK_OTHER, LEVEL_PRIMITIVE},
};
const size_t kernel_rule_count = ARRAY_LEN(kernel_rules);

bool kernel_is_function(const char *known, const char *function)
{
	size_t length = strcspn(function, ".");

	return !strncmp(known, function, length) && known[length] == '\0';
}

const KernelRule *kernel_rule_of(const char *function)
{
	for (size_t i = 0; i < kernel_rule_count; i++)
		if (kernel_is_function(kernel_rules[i].function, function))
			return &kernel_rules[i];
	return NULL;
}

bool kernel_is_fault(const char *function)
{
	return !strcmp(function, "handle_mm_fault") || !strcmp(function, "exc_page_fault") ||
	       !strcmp(function, "asm_exc_page_fault") || !strcmp(function, "do_user_addr_fault");
}

size_t kernel_idle_depth(const KernelRule *rule)
{
	return !strcmp(rule->function, KERNEL_THREAD_FUNCTION);
}

bool kernel_is_scheduling(const char *function)
{
	return !strncmp(function, "schedule", 8) || !strncmp(function, "__schedule", 10);
}

bool kernel_rule_replaces(const KernelRule *rule, const KernelRule *found)
{
	if (!found)
		return true;
	if (found->level == LEVEL_IO)
		return rule->level == LEVEL_MEMORY || rule->level == LEVEL_PURPOSE;
	return found->level == LEVEL_PRIMITIVE && rule->level != LEVEL_PRIMITIVE;
}

bool reason_of_poll(enum reason reason)
{
	switch (reason) {
	case REASON_POLL:
	case REASON_SLEEP:
	case REASON_TERMINAL:
	case REASON_DEVICE:
	case REASON_EVENT:
	case REASON_PIPE_POLL:
	case REASON_UNIX_POLL:
	case REASON_NETWORK_POLL:
	case REASON_ACCEPT:
	case REASON_EPOLL:
		return true;
	default:
		return false;
	}
}

/* Returns whether the call's reason is one of the kinds that a rule cannot distinguish. */
static bool confirms(enum reason by_stack, enum reason by_call)
{
	switch (by_stack) {
	case REASON_FUTEX:
		return futex_kind_reason(by_call);
	case REASON_DISK_OTHER:
	case REASON_FAULT:
		return by_call == REASON_DISK_READ || by_call == REASON_DISK_WRITE ||
		       by_call == REASON_DISK_SYNC || by_call == REASON_FAULT;
	case REASON_JOURNAL:
		return by_call == REASON_DISK_SYNC;
	case REASON_POLL:
		return reason_of_poll(by_call);
	default:
		return false;
	}
}

/* Returns whether the reason rests only on the state that the thread slept in. */
bool reason_unexplained(enum reason reason)
{
	return reason == REASON_OTHER || reason == REASON_UNINTERRUPTIBLE ||
	       reason == REASON_UNSEEN;
}

enum reason kernel_reason(const KernelRule *rule, enum reason by_call, bool in_fault,
			  enum reason_rule *ret_rule)
{
	*ret_rule = RULE_KERNEL;
	if (in_fault && (rule->reason == REASON_DISK_OTHER || rule->reason == REASON_FAULT))
		return REASON_FAULT;
	if (rule->reason == by_call)
		return by_call;
	*ret_rule = RULE_KERNEL_AND_CALL;
	if (confirms(rule->reason, by_call))
		return by_call;
	/* The purpose of the call is more specific than how the thread sleeps. */
	if (rule->level == LEVEL_PRIMITIVE && !reason_unexplained(by_call))
		return by_call;
	*ret_rule = RULE_KERNEL;
	return rule->reason;
}
