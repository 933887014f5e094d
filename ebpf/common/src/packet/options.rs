//! The options of a SYN (RFC 9293 section 3.1), as far as needed to tell a connection from a further subflow of one: the
//! MPTCP option `MP_JOIN` (RFC 8684 section 3.2).

use core::hint::black_box;

use super::{Bytes, Packet};

const OFFSET_OF_DATA_OFFSET: usize = 12;
const HEADER_WITHOUT_OPTIONS: usize = 20;
/// In 32-bit words.
const MOST_WORDS_OF_OPTIONS: usize = 10;

const END: u16 = 0;
const NO_OPERATION: u16 = 1;
const MPTCP: u16 = 30;
/// The subtype is the upper half of the third byte.
const JOIN: u16 = 1;
/// A SYN's `MP_JOIN` has this length; with another one the kernel takes no notice of it (`mptcp_parse_option`).
const JOIN_LENGTH: u16 = 12;

/// Whether a SYN whose TCP header begins at `tcp` asks to join a connection that is there already.
///
/// `fixed` says that `tcp` is known when the program is built: then one look at the near bytes spares nearly every SYN the
/// walk over its options.
#[inline(always)]
pub fn joins<N, F>(packet: &Packet<'_, N, F>, tcp: usize, fixed: bool) -> bool
where
    N: Bytes + ?Sized,
    F: Bytes + ?Sized,
{
    if fixed && !may_speak_mptcp(packet.near, tcp) {
        return false;
    }
    let options = header_length(packet.far, tcp).saturating_sub(HEADER_WITHOUT_OPTIONS);
    let mut done = 0;
    // As many as can begin before an `MP_JOIN` that still has room.
    for _ in 0..=MOST_WORDS_OF_OPTIONS * 4 - JOIN_LENGTH as usize {
        if done + JOIN_LENGTH as usize > options {
            return false;
        }
        let at = tcp + HEADER_WITHOUT_OPTIONS + done;
        let option = packet.far.u16(at);
        if option.is_absent() {
            return false;
        }
        let (kind, length) = (option.value() >> 8, option.value() & 0xff);
        if kind == MPTCP && length == JOIN_LENGTH && packet.far.u8(at + 2).value() >> 4 == JOIN {
            return true;
        }
        let step = if kind == NO_OPERATION { 1 } else { length };
        if kind == END || step == 0 || (step == 1 && kind != NO_OPERATION) {
            return false; // the kernel, too, reads no further
        }
        // The sum is below 512 anyway. The mask, which LLVM is kept from dropping, makes the verifier forget how large it
        // is at least: it would follow every way to the end of the options, to find that none goes beyond.
        done = black_box(done + usize::from(step)) & 0x1ff;
    }
    false
}

/// Whether any byte of the options is the kind MPTCP, or not all of them are near.
#[inline(always)]
fn may_speak_mptcp<B: Bytes + ?Sized>(near: &B, tcp: usize) -> bool {
    let header = header_length(near, tcp);
    for word in 0..MOST_WORDS_OF_OPTIONS {
        let at = HEADER_WITHOUT_OPTIONS + word * 4;
        if at >= header {
            return false;
        }
        let bytes = near.u32(tcp + at);
        if bytes.is_absent() || has_byte(bytes.four(), u32::from(MPTCP)) {
            return true;
        }
    }
    false
}

/// The length of the TCP header with its options.
#[inline(always)]
fn header_length<B: Bytes + ?Sized>(bytes: &B, tcp: usize) -> usize {
    usize::from((bytes.u8(tcp + OFFSET_OF_DATA_OFFSET).value() >> 4) & 0x0f) * 4
}

/// Whether one of the four bytes has this value.
#[inline(always)]
const fn has_byte(bytes: u32, value: u32) -> bool {
    let zero_where_equal = bytes ^ (value * 0x0101_0101);
    zero_where_equal.wrapping_sub(0x0101_0101) & !zero_where_equal & 0x8080_8080 != 0
}
