/*
 * The functions of libarchive that are used, from a library that is loaded when it is first needed.
 *
 * libarchive brings some 40 MiB of other libraries (libxml2, ICU) into a process: every start of the command would be
 * three times as long for what two verbs need. Its functions keep their names here, as macros; the table behind
 * them is written once, by library_load.
 */
#ifndef ARCHIVE_LIBRARY_H
#define ARCHIVE_LIBRARY_H

#include <archive.h>
#include <archive_entry.h>

#include "base/error.h"

#define LIBRARY_FUNCTIONS(X) \
	X(archive_entry_acl_add_entry) \
	X(archive_entry_acl_next) \
	X(archive_entry_acl_reset) \
	X(archive_entry_acl_types) \
	X(archive_entry_atime) \
	X(archive_entry_atime_is_set) \
	X(archive_entry_atime_nsec) \
	X(archive_entry_clear) \
	X(archive_entry_free) \
	X(archive_entry_gid) \
	X(archive_entry_hardlink) \
	X(archive_entry_mode) \
	X(archive_entry_mtime) \
	X(archive_entry_mtime_is_set) \
	X(archive_entry_mtime_nsec) \
	X(archive_entry_new) \
	X(archive_entry_pathname) \
	X(archive_entry_set_gid) \
	X(archive_entry_set_hardlink) \
	X(archive_entry_set_mode) \
	X(archive_entry_set_mtime) \
	X(archive_entry_set_pathname) \
	X(archive_entry_set_size) \
	X(archive_entry_set_symlink) \
	X(archive_entry_set_uid) \
	X(archive_entry_size) \
	X(archive_entry_size_is_set) \
	X(archive_entry_sparse_add_entry) \
	X(archive_entry_symlink) \
	X(archive_entry_uid) \
	X(archive_entry_xattr_add_entry) \
	X(archive_entry_xattr_count) \
	X(archive_entry_xattr_next) \
	X(archive_entry_xattr_reset) \
	X(archive_errno) \
	X(archive_error_string) \
	X(archive_filter_bytes) \
	X(archive_filter_count) \
	X(archive_format) \
	X(archive_read_data_block) \
	X(archive_read_free) \
	X(archive_read_new) \
	X(archive_read_next_header) \
	X(archive_read_open1) \
	X(archive_read_set_callback_data) \
	X(archive_read_set_read_callback) \
	X(archive_read_set_seek_callback) \
	X(archive_read_support_filter_bzip2) \
	X(archive_read_support_filter_compress) \
	X(archive_read_support_filter_gzip) \
	X(archive_read_support_filter_lz4) \
	X(archive_read_support_filter_lzip) \
	X(archive_read_support_filter_lzma) \
	X(archive_read_support_filter_xz) \
	X(archive_read_support_filter_zstd) \
	X(archive_read_support_format_7zip) \
	X(archive_read_support_format_cpio) \
	X(archive_read_support_format_iso9660) \
	X(archive_read_support_format_tar) \
	X(archive_read_support_format_zip) \
	X(archive_set_error) \
	X(archive_write_close) \
	X(archive_write_data) \
	X(archive_write_free) \
	X(archive_write_header) \
	X(archive_write_new) \
	X(archive_write_open) \
	X(archive_write_set_bytes_per_block) \
	X(archive_write_set_format_option) \
	X(archive_write_set_format_pax) \
	X(archive_write_set_format_zip)

struct library {
#define LIBRARY_MEMBER(name) __typeof__(name) *name##_;
	LIBRARY_FUNCTIONS(LIBRARY_MEMBER)
#undef LIBRARY_MEMBER
};

extern struct library library;

/* Loads it, if that was not done. Before any other function is called. Any thread. -ENOENT: it is not installed, or
 * lacks a function. */
int library_load(struct error *err);

#ifndef LIBRARY_WITHOUT_NAMES
#define archive_entry_acl_add_entry (*library.archive_entry_acl_add_entry_)
#define archive_entry_acl_next (*library.archive_entry_acl_next_)
#define archive_entry_acl_reset (*library.archive_entry_acl_reset_)
#define archive_entry_acl_types (*library.archive_entry_acl_types_)
#define archive_entry_atime (*library.archive_entry_atime_)
#define archive_entry_atime_is_set (*library.archive_entry_atime_is_set_)
#define archive_entry_atime_nsec (*library.archive_entry_atime_nsec_)
#define archive_entry_clear (*library.archive_entry_clear_)
#define archive_entry_free (*library.archive_entry_free_)
#define archive_entry_gid (*library.archive_entry_gid_)
#define archive_entry_hardlink (*library.archive_entry_hardlink_)
#define archive_entry_mode (*library.archive_entry_mode_)
#define archive_entry_mtime (*library.archive_entry_mtime_)
#define archive_entry_mtime_is_set (*library.archive_entry_mtime_is_set_)
#define archive_entry_mtime_nsec (*library.archive_entry_mtime_nsec_)
#define archive_entry_new (*library.archive_entry_new_)
#define archive_entry_pathname (*library.archive_entry_pathname_)
#define archive_entry_set_gid (*library.archive_entry_set_gid_)
#define archive_entry_set_hardlink (*library.archive_entry_set_hardlink_)
#define archive_entry_set_mode (*library.archive_entry_set_mode_)
#define archive_entry_set_mtime (*library.archive_entry_set_mtime_)
#define archive_entry_set_pathname (*library.archive_entry_set_pathname_)
#define archive_entry_set_size (*library.archive_entry_set_size_)
#define archive_entry_set_symlink (*library.archive_entry_set_symlink_)
#define archive_entry_set_uid (*library.archive_entry_set_uid_)
#define archive_entry_size (*library.archive_entry_size_)
#define archive_entry_size_is_set (*library.archive_entry_size_is_set_)
#define archive_entry_sparse_add_entry (*library.archive_entry_sparse_add_entry_)
#define archive_entry_symlink (*library.archive_entry_symlink_)
#define archive_entry_uid (*library.archive_entry_uid_)
#define archive_entry_xattr_add_entry (*library.archive_entry_xattr_add_entry_)
#define archive_entry_xattr_count (*library.archive_entry_xattr_count_)
#define archive_entry_xattr_next (*library.archive_entry_xattr_next_)
#define archive_entry_xattr_reset (*library.archive_entry_xattr_reset_)
#define archive_errno (*library.archive_errno_)
#define archive_error_string (*library.archive_error_string_)
#define archive_filter_bytes (*library.archive_filter_bytes_)
#define archive_filter_count (*library.archive_filter_count_)
#define archive_format (*library.archive_format_)
#define archive_read_data_block (*library.archive_read_data_block_)
#define archive_read_free (*library.archive_read_free_)
#define archive_read_new (*library.archive_read_new_)
#define archive_read_next_header (*library.archive_read_next_header_)
#define archive_read_open1 (*library.archive_read_open1_)
#define archive_read_set_callback_data (*library.archive_read_set_callback_data_)
#define archive_read_set_read_callback (*library.archive_read_set_read_callback_)
#define archive_read_set_seek_callback (*library.archive_read_set_seek_callback_)
#define archive_read_support_filter_bzip2 (*library.archive_read_support_filter_bzip2_)
#define archive_read_support_filter_compress (*library.archive_read_support_filter_compress_)
#define archive_read_support_filter_gzip (*library.archive_read_support_filter_gzip_)
#define archive_read_support_filter_lz4 (*library.archive_read_support_filter_lz4_)
#define archive_read_support_filter_lzip (*library.archive_read_support_filter_lzip_)
#define archive_read_support_filter_lzma (*library.archive_read_support_filter_lzma_)
#define archive_read_support_filter_xz (*library.archive_read_support_filter_xz_)
#define archive_read_support_filter_zstd (*library.archive_read_support_filter_zstd_)
#define archive_read_support_format_7zip (*library.archive_read_support_format_7zip_)
#define archive_read_support_format_cpio (*library.archive_read_support_format_cpio_)
#define archive_read_support_format_iso9660 (*library.archive_read_support_format_iso9660_)
#define archive_read_support_format_tar (*library.archive_read_support_format_tar_)
#define archive_read_support_format_zip (*library.archive_read_support_format_zip_)
#define archive_set_error (*library.archive_set_error_)
#define archive_write_close (*library.archive_write_close_)
#define archive_write_data (*library.archive_write_data_)
#define archive_write_free (*library.archive_write_free_)
#define archive_write_header (*library.archive_write_header_)
#define archive_write_new (*library.archive_write_new_)
#define archive_write_open (*library.archive_write_open_)
#define archive_write_set_bytes_per_block (*library.archive_write_set_bytes_per_block_)
#define archive_write_set_format_option (*library.archive_write_set_format_option_)
#define archive_write_set_format_pax (*library.archive_write_set_format_pax_)
#define archive_write_set_format_zip (*library.archive_write_set_format_zip_)
#endif

#endif
