"""The system calls that a sandbox knows: their numbers, and which of them a program may make.

Numbers are the kernel's: for x86-64 arch/x86/entry/syscalls/syscall_64.tbl, for arm64
include/uapi/asm-generic/unistd.h, both as of Linux 6.17. What is newer than these tables is absent
inside (ENOSYS), and so is what `ABSENT` names, upon which programs take their older way. What is in
the tables and in neither list is refused with EPERM.
"""


def numbered(table: str) -> dict[str, int]:
    """Name -> number: names count up from 0, and a number in between sets the count."""
    found, count = {}, 0
    for word in table.split():
        if word.isdigit():
            count = int(word)
        else:
            found[word], count = count, count + 1
    return found


def names(*groups: str) -> frozenset[str]:
    return frozenset(name for group in groups for name in group.split())


X86_64_NUMBERS = numbered("""
    read write open close stat fstat lstat poll lseek mmap mprotect munmap brk rt_sigaction
    rt_sigprocmask rt_sigreturn ioctl pread64 pwrite64 readv writev access pipe select
    sched_yield mremap msync mincore madvise shmget shmat shmctl dup dup2 pause nanosleep
    getitimer alarm setitimer getpid sendfile socket connect accept sendto recvfrom sendmsg
    recvmsg shutdown bind listen getsockname getpeername socketpair setsockopt getsockopt clone
    fork vfork execve exit wait4 kill uname semget semop semctl shmdt msgget msgsnd msgrcv
    msgctl fcntl flock fsync fdatasync truncate ftruncate getdents getcwd chdir fchdir rename
    mkdir rmdir creat link unlink symlink readlink chmod fchmod chown fchown lchown umask
    gettimeofday getrlimit getrusage sysinfo times ptrace getuid syslog getgid setuid setgid
    geteuid getegid setpgid getppid getpgrp setsid setreuid setregid getgroups setgroups
    setresuid getresuid setresgid getresgid getpgid setfsuid setfsgid getsid capget capset
    rt_sigpending rt_sigtimedwait rt_sigqueueinfo rt_sigsuspend sigaltstack utime mknod uselib
    personality ustat statfs fstatfs sysfs getpriority setpriority sched_setparam sched_getparam
    sched_setscheduler sched_getscheduler sched_get_priority_max sched_get_priority_min
    sched_rr_get_interval mlock munlock mlockall munlockall vhangup modify_ldt pivot_root
    _sysctl prctl arch_prctl adjtimex setrlimit chroot sync acct settimeofday mount umount2
    swapon swapoff reboot sethostname setdomainname iopl ioperm create_module init_module
    delete_module get_kernel_syms query_module quotactl nfsservctl getpmsg putpmsg afs_syscall
    tuxcall security gettid readahead setxattr lsetxattr fsetxattr getxattr lgetxattr fgetxattr
    listxattr llistxattr flistxattr removexattr lremovexattr fremovexattr tkill time futex
    sched_setaffinity sched_getaffinity set_thread_area io_setup io_destroy io_getevents
    io_submit io_cancel get_thread_area lookup_dcookie epoll_create epoll_ctl_old epoll_wait_old
    remap_file_pages getdents64 set_tid_address restart_syscall semtimedop fadvise64
    timer_create timer_settime timer_gettime timer_getoverrun timer_delete clock_settime
    clock_gettime clock_getres clock_nanosleep exit_group epoll_wait epoll_ctl tgkill utimes
    vserver mbind set_mempolicy get_mempolicy mq_open mq_unlink mq_timedsend mq_timedreceive
    mq_notify mq_getsetattr kexec_load waitid add_key request_key keyctl ioprio_set ioprio_get
    inotify_init inotify_add_watch inotify_rm_watch migrate_pages openat mkdirat mknodat
    fchownat futimesat newfstatat unlinkat renameat linkat symlinkat readlinkat fchmodat
    faccessat pselect6 ppoll unshare set_robust_list get_robust_list splice tee sync_file_range
    vmsplice move_pages utimensat epoll_pwait signalfd timerfd_create eventfd fallocate
    timerfd_settime timerfd_gettime accept4 signalfd4 eventfd2 epoll_create1 dup3 pipe2
    inotify_init1 preadv pwritev rt_tgsigqueueinfo perf_event_open recvmmsg fanotify_init
    fanotify_mark prlimit64 name_to_handle_at open_by_handle_at clock_adjtime syncfs sendmmsg
    setns getcpu process_vm_readv process_vm_writev kcmp finit_module sched_setattr
    sched_getattr renameat2 seccomp getrandom memfd_create kexec_file_load bpf execveat
    userfaultfd membarrier mlock2 copy_file_range preadv2 pwritev2 pkey_mprotect pkey_alloc
    pkey_free statx io_pgetevents rseq 424 pidfd_send_signal io_uring_setup io_uring_enter
    io_uring_register open_tree move_mount fsopen fsconfig fsmount fspick pidfd_open clone3
    close_range openat2 pidfd_getfd faccessat2 process_madvise epoll_pwait2 mount_setattr
    quotactl_fd landlock_create_ruleset landlock_add_rule landlock_restrict_self memfd_secret
    process_mrelease futex_waitv set_mempolicy_home_node cachestat fchmodat2 map_shadow_stack
    futex_wake futex_wait futex_requeue statmount listmount lsm_get_self_attr lsm_set_self_attr
    lsm_list_modules mseal setxattrat getxattrat listxattrat removexattrat open_tree_attr
    file_getattr file_setattr
""")

ARM64_NUMBERS = numbered("""
    io_setup io_destroy io_submit io_cancel io_getevents setxattr lsetxattr fsetxattr getxattr
    lgetxattr fgetxattr listxattr llistxattr flistxattr removexattr lremovexattr fremovexattr
    getcwd lookup_dcookie eventfd2 epoll_create1 epoll_ctl epoll_pwait dup dup3 fcntl
    inotify_init1 inotify_add_watch inotify_rm_watch ioctl ioprio_set ioprio_get flock mknodat
    mkdirat unlinkat symlinkat linkat renameat umount2 mount pivot_root nfsservctl statfs
    fstatfs truncate ftruncate fallocate faccessat chdir fchdir chroot fchmod fchmodat fchownat
    fchown openat close vhangup pipe2 quotactl getdents64 lseek read write readv writev pread64
    pwrite64 preadv pwritev sendfile pselect6 ppoll signalfd4 vmsplice splice tee readlinkat
    newfstatat fstat sync fsync fdatasync sync_file_range timerfd_create timerfd_settime
    timerfd_gettime utimensat acct capget capset personality exit exit_group waitid
    set_tid_address unshare futex set_robust_list get_robust_list nanosleep getitimer setitimer
    kexec_load init_module delete_module timer_create timer_gettime timer_getoverrun
    timer_settime timer_delete clock_settime clock_gettime clock_getres clock_nanosleep syslog
    ptrace sched_setparam sched_setscheduler sched_getscheduler sched_getparam sched_setaffinity
    sched_getaffinity sched_yield sched_get_priority_max sched_get_priority_min
    sched_rr_get_interval restart_syscall kill tkill tgkill sigaltstack rt_sigsuspend
    rt_sigaction rt_sigprocmask rt_sigpending rt_sigtimedwait rt_sigqueueinfo rt_sigreturn
    setpriority getpriority reboot setregid setgid setreuid setuid setresuid getresuid setresgid
    getresgid setfsuid setfsgid times setpgid getpgid getsid setsid getgroups setgroups uname
    sethostname setdomainname getrlimit setrlimit getrusage umask prctl getcpu gettimeofday
    settimeofday adjtimex getpid getppid getuid geteuid getgid getegid gettid sysinfo mq_open
    mq_unlink mq_timedsend mq_timedreceive mq_notify mq_getsetattr msgget msgctl msgrcv msgsnd
    semget semctl semtimedop semop shmget shmctl shmat shmdt socket socketpair bind listen
    accept connect getsockname getpeername sendto recvfrom setsockopt getsockopt shutdown
    sendmsg recvmsg readahead brk munmap mremap add_key request_key keyctl clone execve mmap
    fadvise64 swapon swapoff mprotect msync mlock munlock mlockall munlockall mincore madvise
    remap_file_pages mbind get_mempolicy set_mempolicy migrate_pages move_pages
    rt_tgsigqueueinfo perf_event_open accept4 recvmmsg 260 wait4 prlimit64 fanotify_init
    fanotify_mark name_to_handle_at open_by_handle_at clock_adjtime syncfs setns sendmmsg
    process_vm_readv process_vm_writev kcmp finit_module sched_setattr sched_getattr renameat2
    seccomp getrandom memfd_create bpf execveat userfaultfd membarrier mlock2 copy_file_range
    preadv2 pwritev2 pkey_mprotect pkey_alloc pkey_free statx io_pgetevents rseq kexec_file_load
    424 pidfd_send_signal io_uring_setup io_uring_enter io_uring_register open_tree move_mount
    fsopen fsconfig fsmount fspick pidfd_open clone3 close_range openat2 pidfd_getfd faccessat2
    process_madvise epoll_pwait2 mount_setattr quotactl_fd landlock_create_ruleset
    landlock_add_rule landlock_restrict_self memfd_secret process_mrelease futex_waitv
    set_mempolicy_home_node cachestat fchmodat2 map_shadow_stack futex_wake futex_wait
    futex_requeue statmount listmount lsm_get_self_attr lsm_set_self_attr lsm_list_modules mseal
    setxattrat getxattrat listxattrat removexattrat open_tree_attr file_getattr file_setattr
""")

ALLOWED = names(
    # files and folders
    """
    read write open close stat fstat lstat lseek ioctl pread64 pwrite64 readv writev access pipe
    pipe2 dup dup2 dup3 sendfile fcntl flock fsync fdatasync truncate ftruncate getdents getdents64
    getcwd chdir fchdir rename renameat renameat2 mkdir mkdirat rmdir creat link linkat unlink
    unlinkat symlink symlinkat readlink readlinkat chmod fchmod fchmodat fchmodat2 chown fchown
    lchown fchownat umask utime utimes futimesat utimensat mknod mknodat statfs fstatfs readahead
    fadvise64 openat openat2 newfstatat faccessat faccessat2 statx close_range fallocate
    sync_file_range splice tee vmsplice copy_file_range preadv pwritev preadv2 pwritev2 memfd_create
    setxattr lsetxattr fsetxattr getxattr lgetxattr fgetxattr listxattr llistxattr flistxattr
    removexattr lremovexattr fremovexattr
    """,
    # waiting for events
    """
    poll ppoll select pselect6 epoll_create epoll_create1 epoll_ctl epoll_wait epoll_pwait
    epoll_pwait2 eventfd eventfd2 signalfd signalfd4 timerfd_create timerfd_settime timerfd_gettime
    inotify_init inotify_init1 inotify_add_watch inotify_rm_watch
    """,
    # memory
    """
    mmap mprotect munmap brk mremap msync mincore madvise mlock mlock2 munlock mlockall munlockall
    membarrier pkey_mprotect pkey_alloc pkey_free map_shadow_stack mseal
    """,
    # processes and threads
    """
    clone fork vfork execve execveat exit exit_group wait4 waitid getpid getppid gettid getpgrp
    getpgid setpgid getsid setsid pidfd_open prctl arch_prctl set_tid_address set_robust_list futex
    futex_waitv rseq restart_syscall getcpu sched_yield sched_getaffinity sched_setaffinity
    sched_getparam sched_setparam sched_getscheduler sched_setscheduler sched_getattr sched_setattr
    sched_get_priority_max sched_get_priority_min sched_rr_get_interval getpriority setpriority
    ioprio_get ioprio_set getrlimit setrlimit prlimit64 getrusage times sysinfo uname personality
    """,
    # signals
    """
    rt_sigaction rt_sigprocmask rt_sigreturn rt_sigpending rt_sigtimedwait rt_sigqueueinfo
    rt_tgsigqueueinfo rt_sigsuspend sigaltstack pause kill tkill tgkill
    """,
    # users, without the right to become another
    """
    getuid geteuid getgid getegid getresuid getresgid getgroups setuid setgid setreuid setregid
    setresuid setresgid setgroups setfsuid setfsgid capget capset
    """,
    # time and chance
    """
    nanosleep clock_nanosleep clock_gettime clock_getres gettimeofday time alarm getitimer setitimer
    timer_create timer_settime timer_gettime timer_getoverrun timer_delete getrandom
    """,
    # sockets, and what else processes talk through
    """
    socket socketpair connect accept accept4 bind listen shutdown getsockname getpeername setsockopt
    getsockopt sendto recvfrom sendmsg recvmsg sendmmsg recvmmsg shmget shmat shmctl shmdt semget
    semop semtimedop semctl msgget msgsnd msgrcv msgctl mq_open mq_unlink mq_timedsend
    mq_timedreceive mq_notify mq_getsetattr
    """,
)
"""Some of them for some arguments alone: `sandboxes.local.seccomp`."""

DONE = frozenset(("sync", "syncfs"))
"""Answered with success and not carried out: nothing of a sandbox is on a disk, and they would
write out what other programs of the machine have changed."""

ABSENT = names(
    # structures in memory, which a filter cannot look at
    """
    clone3 io_uring_setup io_uring_enter io_uring_register
    """,
    # counted for the whole machine, or charged to nobody
    """
    io_setup io_destroy io_getevents io_submit io_cancel io_pgetevents memfd_secret
    """,
    # aimed at process 1 through a folder of /proc, which a filter cannot see; kill does the same
    """
    pidfd_send_signal
    """,
    # walls that a program puts up round itself, which it can do without
    """
    seccomp landlock_create_ruleset landlock_add_rule landlock_restrict_self lsm_get_self_attr
    lsm_set_self_attr lsm_list_modules
    """,
    # what the page cache or the mounts of others could tell, with an older way for all honest uses
    """
    cachestat statmount listmount
    """,
    # where memory lies in a machine of several nodes: as on a kernel without nodes
    """
    mbind get_mempolicy set_mempolicy set_mempolicy_home_node
    """,
    # too new for programs to need them
    """
    futex_wake futex_wait futex_requeue setxattrat getxattrat listxattrat removexattrat file_getattr
    file_setattr remap_file_pages
    """,
)
