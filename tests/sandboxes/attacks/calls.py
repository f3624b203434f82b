"""Numbers of system calls, as an attacker takes them from the kernel's own tables.

Not those of the filter: a call that the filter has forgotten must be found by its attempt. From
arch/x86/entry/syscalls/syscall_64.tbl and include/uapi/asm-generic/unistd.h (arm64).
"""

import platform

NEW = {"cachestat": 451, "statmount": 457, "listmount": 458}
"""Calls with one number everywhere."""

X86_64 = {
    "acct": 163, "add_key": 248, "bpf": 321, "capset": 126, "chroot": 161, "clock_adjtime": 305,
    "clone": 56, "clone3": 435, "delete_module": 176, "execveat": 322, "fanotify_init": 300,
    "finit_module": 313, "fsopen": 430, "get_robust_list": 274, "init_module": 175,
    "io_uring_setup": 425, "iopl": 172, "io_destroy": 207, "io_setup": 206, "ioprio_get": 252, "ioprio_set": 251, "kcmp": 312, "kexec_load": 246,
    "keyctl": 250, "landlock_create_ruleset": 444, "lookup_dcookie": 212, "mbind": 237, "memfd_create": 319,
    "memfd_secret": 447, "migrate_pages": 256, "mknodat": 259, "modify_ldt": 154, "mount": 165,
    "mount_setattr": 442, "move_mount": 429, "move_pages": 279, "name_to_handle_at": 303,
    "nfsservctl": 180, "open_by_handle_at": 304, "open_tree": 428, "perf_event_open": 298,
    "personality": 135, "pidfd_getfd": 438, "pidfd_send_signal": 424, "pivot_root": 155,
    "prctl": 157, "prlimit64": 302, "process_madvise": 440, "process_mrelease": 448,
    "process_vm_readv": 310, "process_vm_writev": 311, "ptrace": 101, "quotactl": 179,
    "reboot": 169, "request_key": 249, "rt_sigqueueinfo": 129, "rt_tgsigqueueinfo": 297,
    "sched_setaffinity": 203, "sched_setattr": 314, "sched_setscheduler": 144, "seccomp": 317,
    "sethostname": 170, "setns": 308, "settimeofday": 164, "swapoff": 168, "swapon": 167,
    "syslog": 103, "tgkill": 234, "umount2": 166, "unshare": 272, "userfaultfd": 323,
    "vhangup": 153,
}  # fmt: skip

ARM64 = {
    "acct": 89, "add_key": 217, "bpf": 280, "capset": 91, "chroot": 51, "clock_adjtime": 266,
    "clone": 220, "clone3": 435, "delete_module": 106, "execveat": 281, "fanotify_init": 262,
    "finit_module": 273, "fsopen": 430, "get_robust_list": 100, "init_module": 105,
    "io_uring_setup": 425, "io_destroy": 1, "io_setup": 0, "ioprio_get": 31, "ioprio_set": 30, "kcmp": 272, "kexec_load": 104, "keyctl": 219,
    "landlock_create_ruleset": 444, "lookup_dcookie": 18, "mbind": 235, "memfd_create": 279,
    "memfd_secret": 447, "migrate_pages": 238, "mknodat": 33, "mount": 40, "mount_setattr": 442,
    "move_mount": 429, "move_pages": 239, "name_to_handle_at": 264, "nfsservctl": 42,
    "open_by_handle_at": 265, "open_tree": 428, "perf_event_open": 241, "personality": 92,
    "pidfd_getfd": 438, "pidfd_send_signal": 424, "pivot_root": 41, "prctl": 167,
    "prlimit64": 261, "process_madvise": 440, "process_mrelease": 448, "process_vm_readv": 270,
    "process_vm_writev": 271, "ptrace": 117, "quotactl": 60, "reboot": 142, "request_key": 218,
    "rt_sigqueueinfo": 138, "rt_tgsigqueueinfo": 240, "sched_setaffinity": 122,
    "sched_setattr": 274, "sched_setscheduler": 119, "seccomp": 277, "sethostname": 161,
    "setns": 268, "settimeofday": 170, "swapoff": 225, "swapon": 224, "syslog": 116,
    "tgkill": 131, "umount2": 39, "unshare": 97, "userfaultfd": 282, "vhangup": 58,
}  # fmt: skip

NUMBERS = NEW | {"x86_64": X86_64, "aarch64": ARM64}.get(platform.machine(), {})
"""Of this machine; on others attempts by numbers are not played, since a filter is not there."""
