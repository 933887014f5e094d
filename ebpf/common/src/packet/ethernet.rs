//! The link layer. A VLAN tag is stripped before TCX sees the frame, so the network header always begins at the same
//! place (`skb_vlan_untag` in `__netif_receive_skb_core`).

use super::{Bytes, Field};

/// Bytes of an Ethernet header without a VLAN tag.
pub const ETHERNET_HEADER: usize = 14;

const OFFSET_OF_TYPE: usize = 12;

/// The network protocol that a frame carries.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum EtherType {
    /// IPv4.
    Ipv4,
    /// IPv6.
    Ipv6,
    /// Neither, or a frame too short to say.
    Other,
}

/// The network protocol of an Ethernet frame.
#[inline(always)]
pub fn ether_type<B: Bytes + ?Sized>(frame: &B) -> EtherType {
    let field = frame.u16(OFFSET_OF_TYPE);
    if field == Field::of(0x0800) {
        EtherType::Ipv4
    } else if field == Field::of(0x86dd) {
        EtherType::Ipv6
    } else {
        EtherType::Other
    }
}
