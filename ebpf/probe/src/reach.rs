//! The two ways to read a packet: by direct access, and through a helper.

use aya_ebpf::programs::TcContext;
use lastsyn_common::packet::{Bytes, Field};

/// How much of a packet is brought into one piece when its headers are not: Ethernet, the longest IP header without
/// options or extensions, and TCP.
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

    /// Brings more of the packet into one piece; `None` where all of it is already, or nothing more could be had.
    #[inline(always)]
    pub(crate) fn pull(context: &TcContext) -> Option<Self> {
        if Self::is_all_of(context) {
            return None;
        }
        let length = context.len();
        context.pull_data(if length < PULLED { length } else { PULLED }).ok()?;
        Some(Self::of(context))
    }

    /// Whether the whole packet lies in one piece.
    #[inline(always)]
    pub(crate) fn is_all_of(context: &TcContext) -> bool {
        (context.data_end() - context.data()) as u32 >= context.len()
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
}

/// Any byte of the packet, copied by a helper (`bpf_skb_load_bytes`, Linux 4.5).
pub(crate) struct Copied<'a>(pub(crate) &'a TcContext);

impl Bytes for Copied<'_> {
    #[inline(always)]
    fn u8(&self, offset: usize) -> Field {
        self.0.load(offset).map_or(Field::ABSENT, |byte: u8| Field::of(u16::from(byte)))
    }

    #[inline(always)]
    fn u16(&self, offset: usize) -> Field {
        self.0.load(offset).map_or(Field::ABSENT, |bytes| Field::of(u16::from_be_bytes(bytes)))
    }
}
