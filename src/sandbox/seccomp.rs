//! Filters on system calls, put on the program itself by every isolating back end.

use std::collections::BTreeMap;
use std::io;

use seccompiler::{
    SeccompAction, SeccompCmpArgLen, SeccompCmpOp, SeccompCondition, SeccompFilter, SeccompRule, TargetArch,
    sock_filter,
};

type Rules = BTreeMap<i64, Vec<SeccompRule>>;

/// The filters as hexadecimal text of their instructions, in the order in which they must be installed.
pub(super) fn compile_filters(allow_affinity: bool) -> Result<Vec<String>, String> {
    let arch = TargetArch::try_from(std::env::consts::ARCH).map_err(|e| e.to_string())?;
    // The flags of clone3 lie in memory, where no filter can look: libc falls back on clone.
    let no_clone3 = compile(BTreeMap::from([(libc::SYS_clone3, Vec::new())]), libc::ENOSYS, arch)?;
    let deny = compile(denied(allow_affinity)?, libc::EPERM, arch)?;
    let mut programs = vec![no_clone3, deny];
    if cfg!(target_arch = "x86_64") {
        programs.push(refuse_x32());
    }
    Ok(programs.iter().map(|program| to_hex(program)).collect())
}

fn compile(rules: Rules, errno: i32, arch: TargetArch) -> Result<Vec<sock_filter>, String> {
    SeccompFilter::new(rules, SeccompAction::Allow, SeccompAction::Errno(errno as u32), arch)
        .and_then(TryInto::try_into)
        .map_err(|e| e.to_string())
}

/// The 32-bit interface of x86-64 carries the same architecture tag but other call numbers.
fn refuse_x32() -> Vec<sock_filter> {
    const X32_BIT: u32 = 0x4000_0000;
    let statement = |code: u32, jt, jf, k| sock_filter {
        code: code as u16,
        jt,
        jf,
        k,
    };
    vec![
        statement(libc::BPF_LD | libc::BPF_W | libc::BPF_ABS, 0, 0, 0),
        statement(libc::BPF_JMP | libc::BPF_JGE | libc::BPF_K, 0, 1, X32_BIT),
        statement(libc::BPF_RET | libc::BPF_K, 0, 0, libc::SECCOMP_RET_KILL_PROCESS),
        statement(libc::BPF_RET | libc::BPF_K, 0, 0, libc::SECCOMP_RET_ALLOW),
    ]
}

fn when(conditions: &[(u8, SeccompCmpOp, u64)]) -> Result<SeccompRule, String> {
    let conditions = conditions
        .iter()
        .map(|(argument, op, value)| SeccompCondition::new(*argument, SeccompCmpArgLen::Dword, op.clone(), *value))
        .collect::<Result<Vec<_>, _>>()
        .map_err(|e| e.to_string())?;
    SeccompRule::new(conditions).map_err(|e| e.to_string())
}

fn denied(allow_affinity: bool) -> Result<Rules, String> {
    let always: &[i64] = &[
        // Mounts, namespaces and roots.
        libc::SYS_mount,
        libc::SYS_umount2,
        libc::SYS_move_mount,
        libc::SYS_open_tree,
        libc::SYS_fsopen,
        libc::SYS_fsconfig,
        libc::SYS_fsmount,
        libc::SYS_fspick,
        libc::SYS_mount_setattr,
        libc::SYS_pivot_root,
        libc::SYS_chroot,
        libc::SYS_unshare,
        libc::SYS_setns,
        libc::SYS_open_by_handle_at,
        libc::SYS_name_to_handle_at,
        libc::SYS_mknodat,
        libc::SYS_quotactl,
        libc::SYS_quotactl_fd,
        libc::SYS_swapon,
        libc::SYS_swapoff,
        libc::SYS_acct,
        libc::SYS_fanotify_init,
        // Other processes.
        libc::SYS_ptrace,
        libc::SYS_process_vm_readv,
        libc::SYS_process_vm_writev,
        libc::SYS_pidfd_getfd,
        libc::SYS_kcmp,
        libc::SYS_process_madvise,
        libc::SYS_migrate_pages,
        libc::SYS_move_pages,
        // Kernel surface that a program of this kind never needs.
        libc::SYS_bpf,
        libc::SYS_perf_event_open,
        libc::SYS_userfaultfd,
        libc::SYS_io_uring_setup,
        libc::SYS_io_uring_enter,
        libc::SYS_io_uring_register,
        libc::SYS_keyctl,
        libc::SYS_add_key,
        libc::SYS_request_key,
        libc::SYS_kexec_load,
        libc::SYS_init_module,
        libc::SYS_finit_module,
        libc::SYS_delete_module,
        libc::SYS_reboot,
        libc::SYS_syslog,
        libc::SYS_vhangup,
        libc::SYS_personality,
        libc::SYS_lookup_dcookie,
        libc::SYS_clock_settime,
        libc::SYS_clock_adjtime,
        libc::SYS_settimeofday,
        libc::SYS_adjtimex,
        libc::SYS_sethostname,
        libc::SYS_setdomainname,
        // Memory that no limit of ours can see.
        libc::SYS_shmget,
        libc::SYS_memfd_secret,
        #[cfg(target_arch = "x86_64")]
        libc::SYS_mknod,
        #[cfg(target_arch = "x86_64")]
        libc::SYS_iopl,
        #[cfg(target_arch = "x86_64")]
        libc::SYS_ioperm,
        #[cfg(target_arch = "x86_64")]
        libc::SYS_modify_ldt,
        #[cfg(target_arch = "x86_64")]
        libc::SYS_kexec_file_load,
    ];
    let mut rules: Rules = always.iter().map(|call| (*call, Vec::new())).collect();
    // mknod makes named pipes too, and those are harmless; everything else it makes is refused below.
    let fifo_or_file = |argument| {
        [libc::S_IFCHR, libc::S_IFBLK]
            .into_iter()
            .map(|kind| {
                when(&[(
                    argument,
                    SeccompCmpOp::MaskedEq(u64::from(libc::S_IFMT)),
                    u64::from(kind),
                )])
            })
            .collect::<Result<Vec<_>, _>>()
    };
    rules.insert(libc::SYS_mknodat, fifo_or_file(2)?);
    #[cfg(target_arch = "x86_64")]
    rules.insert(libc::SYS_mknod, fifo_or_file(1)?);
    let namespaces = [
        libc::CLONE_NEWUSER,
        libc::CLONE_NEWNS,
        libc::CLONE_NEWPID,
        libc::CLONE_NEWNET,
        libc::CLONE_NEWIPC,
        libc::CLONE_NEWUTS,
        libc::CLONE_NEWCGROUP,
    ];
    let with_flag = |flag: i32| when(&[(0, SeccompCmpOp::MaskedEq(flag as u64), flag as u64)]);
    rules.insert(
        libc::SYS_clone,
        namespaces.into_iter().map(with_flag).collect::<Result<_, _>>()?,
    );
    let not_local = [(0, SeccompCmpOp::Ne, libc::AF_UNIX as u64)];
    rules.insert(libc::SYS_socket, vec![when(&not_local)?]);
    rules.insert(libc::SYS_socketpair, vec![when(&not_local)?]);
    let terminal = [libc::TIOCSTI, libc::TIOCLINUX, libc::TIOCSETD];
    let request = |request: libc::c_ulong| when(&[(1, SeccompCmpOp::Eq, request & 0xffff_ffff)]);
    rules.insert(
        libc::SYS_ioctl,
        terminal.into_iter().map(request).collect::<Result<_, _>>()?,
    );
    // Limits of others, also of the jail's init.
    rules.insert(libc::SYS_prlimit64, vec![when(&[(0, SeccompCmpOp::Ne, 0)])?]);
    if !allow_affinity {
        rules.insert(libc::SYS_sched_setaffinity, Vec::new());
    }
    Ok(rules)
}

fn to_hex(program: &[sock_filter]) -> String {
    let bytes = program.iter().flat_map(|i| {
        let [c0, c1] = i.code.to_ne_bytes();
        let [k0, k1, k2, k3] = i.k.to_ne_bytes();
        [c0, c1, i.jt, i.jf, k0, k1, k2, k3]
    });
    hex::encode(bytes.collect::<Vec<u8>>())
}

fn from_hex(text: &str) -> Option<Vec<sock_filter>> {
    let bytes = hex::decode(text).ok()?;
    let instruction = |b: &[u8]| sock_filter {
        code: u16::from_ne_bytes([b[0], b[1]]),
        jt: b[2],
        jf: b[3],
        k: u32::from_ne_bytes([b[4], b[5], b[6], b[7]]),
    };
    Some(bytes.chunks_exact(8).map(instruction).collect())
}

/// Puts the calling process under the filters.
pub(super) fn install_filters(filters: &[String]) -> io::Result<()> {
    for text in filters {
        let program = from_hex(text).ok_or_else(|| io::Error::other("a filter is no hexadecimal text"))?;
        seccompiler::apply_filter(&program).map_err(|e| io::Error::other(e.to_string()))?;
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;

    #[test]
    fn filters_compile_and_survive_their_text_form() {
        for text in compile_filters(true).unwrap() {
            let program = from_hex(&text).unwrap();
            assert!(!program.is_empty());
            assert_eq!(to_hex(&program), text);
        }
    }

    #[test]
    fn affinity_is_a_choice() {
        assert_ne!(compile_filters(true).unwrap(), compile_filters(false).unwrap());
    }
}
