//! The kernel programs: they count the SYNs that reach a pod. Thin shells over `lastsyn-common`, which holds the
//! predicate and the layouts and is tested in user space.

#![no_std]
#![no_main]
#![expect(
    clippy::inline_always,
    reason = "the verifier looks at one function at a time: a call in between loses what it knows of the packet"
)]

mod cgroup;
mod count;
mod maps;
mod pace;
mod reach;
mod sender;
mod socket;
mod sources;
mod tcx;

/// The kernel lends helpers such as `bpf_ktime_get_ns` to GPL-compatible programs only.
#[unsafe(no_mangle)]
#[unsafe(link_section = "license")]
#[expect(unsafe_code, reason = "the loader finds the licence by its section")]
static LICENSE: [u8; 13] = *b"Dual MIT/GPL\0";

#[cfg(target_arch = "bpf")]
#[panic_handler]
fn panic(_info: &core::panic::PanicInfo<'_>) -> ! {
    // Never reached: the verifier refuses a program that could. A loop, as there is nobody to tell.
    loop {}
}
