//! The two ways to read a packet: by direct access, and through a helper.

use aya_ebpf::{bindings::__sk_buff, helpers::generated::bpf_skb_load_bytes, programs::TcContext};
use lastsyn_common::packet::{Bytes, Field};

/// How much of a packet is brought into one piece when its headers are not: Ethernet, the longest IP header without
/// options or extensions, and TCP; the beginning of QUIC behind UDP is shorter.
const PULLED: u32 = 14 + 40 + 20;

/// Direct access: the bytes between `data` and `data_end`, the part of the packet that lies in one piece.
pub(crate) struct Linear {
    start: usize,
    end: usize,
}

impl Linear {
    #[inline(always)]
    pub(crate) fn of(context: &TcContext) -> Self {
        Self { start: context.data(), end: context.data_end() }
    }

    /// Brings the headers into one piece; `None` where they cannot be. (Whether they are already could be told from
    /// `data_end - data`, but the verifier lets only `CAP_PERFMON` subtract pointers.)
    #[inline(always)]
    pub(crate) fn pull(context: &TcContext) -> Option<Self> {
        let length = context.len();
        context.pull_data(if length < PULLED { length } else { PULLED }).ok()?;
        Some(Self::of(context))
    }
}

impl Bytes for Linear {
    #[inline(always)]
    fn u8(&self, offset: usize) -> Field {
        let at = self.start + offset;
        if at + 1 > self.end {
            return Field::ABSENT;
        }
        // SAFETY: one byte at `at` is inside the packet, which the comparison with `data_end` has just shown to the
        // verifier too.
        #[expect(unsafe_code, reason = "direct packet access")]
        Field::of(u16::from(unsafe { *(at as *const u8) }))
    }

    #[inline(always)]
    fn u16(&self, offset: usize) -> Field {
        let at = self.start + offset;
        if at + 2 > self.end {
            return Field::ABSENT;
        }
        // SAFETY: two bytes at `at` are inside the packet, as above; an array of bytes has no alignment.
        #[expect(unsafe_code, reason = "direct packet access")]
        Field::of(u16::from_be_bytes(unsafe { *(at as *const [u8; 2]) }))
    }

    #[inline(always)]
    fn u32(&self, offset: usize) -> Field {
        let at = self.start + offset;
        if at + 4 > self.end {
            return Field::ABSENT;
        }
        // SAFETY: four bytes at `at` are inside the packet, as above.
        #[expect(unsafe_code, reason = "direct packet access")]
        Field::of_four(u32::from_be_bytes(unsafe { *(at as *const [u8; 4]) }))
    }
}

/// Any byte of the packet, copied by a helper (`bpf_skb_load_bytes`, Linux 4.5).
pub(crate) struct Copied(pub(crate) *mut __sk_buff);

impl Copied {
    /// Copies into a buffer that is set from the start: LLVM reads it before it looks at the helper's result, and the
    /// verifier lets only `CAP_PERFMON` read a stack that is not.
    #[inline(always)]
    fn copy<const N: usize>(&self, offset: usize, mut buffer: [u8; N]) -> Option<[u8; N]> {
        let skb = self.0;
        // SAFETY: the kernel passes a valid context, and the helper writes at most `N` bytes to `buffer`.
        #[expect(unsafe_code, reason = "helpers are foreign functions")]
        #[expect(clippy::cast_possible_truncation, reason = "offsets in a packet and sizes of its fields are small")]
        let result = unsafe { bpf_skb_load_bytes(skb.cast(), offset as u32, buffer.as_mut_ptr().cast(), N as u32) };
        if result == 0 { Some(buffer) } else { None }
    }
}

impl Bytes for Copied {
    #[inline(always)]
    fn u8(&self, offset: usize) -> Field {
        match self.copy(offset, [0]) {
            Some([byte]) => Field::of(u16::from(byte)),
            None => Field::ABSENT,
        }
    }

    #[inline(always)]
    fn u16(&self, offset: usize) -> Field {
        match self.copy(offset, [0, 0]) {
            Some(bytes) => Field::of(u16::from_be_bytes(bytes)),
            None => Field::ABSENT,
        }
    }

    #[inline(always)]
    fn u32(&self, offset: usize) -> Field {
        match self.copy(offset, [0; 4]) {
            Some(bytes) => Field::of_four(u32::from_be_bytes(bytes)),
            None => Field::ABSENT,
        }
    }
}
