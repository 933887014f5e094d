//! Reading a packet as far as needed to know whether it opens a connection, of TCP or of QUIC, and to which port.
//!
//! The functions are pure and total: any bytes give a [`Verdict`]. They run in the kernel over the packet itself and in
//! tests over byte vectors. They are written for the verifier: offsets are bounded before they are added, and every
//! result fits one register.

mod ethernet;
mod ipv4;
mod ipv6;
mod options;
mod quic;
mod tcp;

pub use ethernet::{ETHERNET_HEADER, EtherType, ether_type};
pub use ipv4::Ipv4;
pub use ipv6::Ipv6;
pub use options::joins;
pub use tcp::{FLAGS_MASK, SYN};

/// Bytes that can be read at an offset from the packet's start.
pub trait Bytes {
    /// The byte at `offset`; absent past the end of what is there.
    fn u8(&self, offset: usize) -> Field;

    /// Two bytes at `offset`, in network order; absent unless both are there.
    fn u16(&self, offset: usize) -> Field;

    /// Four bytes at `offset`, in network order; absent unless all are there.
    fn u32(&self, offset: usize) -> Field;
}

/// A field of a packet that may be absent, in one register.
///
/// An `Option` takes two, of which the second is undefined for `None`: LLVM may compute with it before it looks at the
/// first, and the verifier refuses a program that reads an undefined register.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Field(u64);

impl Field {
    /// Bytes that are not there.
    pub const ABSENT: Self = Self(u64::MAX);

    /// A field of one or two bytes.
    #[inline(always)]
    pub const fn of(value: u16) -> Self {
        Self(value as u64)
    }

    /// A field of four bytes.
    #[inline(always)]
    pub const fn of_four(value: u32) -> Self {
        Self(value as u64)
    }

    #[inline(always)]
    const fn is_absent(self) -> bool {
        self.0 == Self::ABSENT.0
    }

    /// The value of a field of one or two bytes; all ones if it is absent.
    #[inline(always)]
    #[expect(clippy::cast_possible_truncation, reason = "the field has two bytes at most")]
    const fn value(self) -> u16 {
        self.0 as u16
    }

    /// The value of a field of four bytes; all ones if it is absent.
    #[inline(always)]
    #[expect(clippy::cast_possible_truncation, reason = "the field has four bytes")]
    pub const fn four(self) -> u32 {
        self.0 as u32
    }
}

/// What a packet is for us: a [`Kind`], and a port where it was found, in one register (see [`Field`]).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Verdict(u32);

/// What a packet can be.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u16)]
pub enum Kind {
    /// It opens no connection.
    Other = 0,
    /// A SYN to the verdict's port, whose TCP header is at the usual place: right behind an IP header without options or
    /// extensions.
    Syn = 1,
    /// Perhaps a SYN to the verdict's port: its flags are not in this fragment.
    OpaquePort = 2,
    /// Perhaps a SYN: its ports could not be reached.
    Opaque = 3,
    /// What can be read by direct access ends before the answer.
    Short = 4,
    /// A SYN to the verdict's port, whose TCP header is elsewhere ([`Packet::tcp_behind_ipv4`],
    /// [`Packet::tcp_behind_ipv6`]).
    SynBehind = 5,
    /// A datagram to the verdict's port that opens a QUIC connection.
    Initial = 6,
    /// Perhaps such a datagram: of a version that is not known, or its beginning is not in this fragment.
    OpaqueDatagram = 7,
}

impl Verdict {
    /// [`Kind::Other`].
    pub const OTHER: Self = Self::of(Kind::Other, 0);
    /// [`Kind::Opaque`].
    pub const OPAQUE: Self = Self::of(Kind::Opaque, 0);
    /// [`Kind::Short`].
    pub const SHORT: Self = Self::of(Kind::Short, 0);

    /// [`Kind::Syn`].
    #[inline(always)]
    pub const fn syn(port: u16) -> Self {
        Self::of(Kind::Syn, port)
    }

    /// [`Kind::SynBehind`].
    #[inline(always)]
    pub const fn syn_behind(port: u16) -> Self {
        Self::of(Kind::SynBehind, port)
    }

    /// [`Kind::OpaquePort`].
    #[inline(always)]
    pub const fn opaque_port(port: u16) -> Self {
        Self::of(Kind::OpaquePort, port)
    }

    /// [`Kind::Initial`].
    #[inline(always)]
    pub const fn initial(port: u16) -> Self {
        Self::of(Kind::Initial, port)
    }

    /// [`Kind::OpaqueDatagram`].
    #[inline(always)]
    pub const fn opaque_datagram(port: u16) -> Self {
        Self::of(Kind::OpaqueDatagram, port)
    }

    /// Whether it is a datagram that opens a connection, or may.
    #[inline(always)]
    pub const fn is_datagram(self) -> bool {
        self.is(Kind::Initial) || self.is(Kind::OpaqueDatagram)
    }

    #[inline(always)]
    const fn of(kind: Kind, port: u16) -> Self {
        Self((kind as u32) << 16 | port as u32)
    }

    /// Whether it is of this kind.
    #[inline(always)]
    pub const fn is(self, kind: Kind) -> bool {
        self.0 >> 16 == kind as u32
    }

    /// The destination port; 0 where none was found.
    #[inline(always)]
    #[expect(clippy::cast_possible_truncation, reason = "the port is the lower half")]
    pub const fn port(self) -> u16 {
        self.0 as u16
    }
}

/// A packet, as two ways to read it.
///
/// Nearly every packet has its TCP header at a fixed place, and is read by direct access. Behind IPv4 options and IPv6
/// extension headers the place varies, and the verifier of kernels before 6.16 refuses direct access there to a loader
/// without `CAP_PERFMON`: those few are read by a helper, which costs some 50 ns more.
#[derive(Clone, Copy)]
pub struct Packet<'a, N: ?Sized, F: ?Sized> {
    /// Reads at offsets that are known when the program is built.
    pub near: &'a N,
    /// Reads at any offset, to the packet's end.
    pub far: &'a F,
}

impl<N: Bytes + ?Sized, F: Bytes + ?Sized> Packet<'_, N, F> {
    /// Reads an IPv4 packet whose header begins at `offset`.
    #[inline(always)]
    pub fn ipv4(&self, offset: usize) -> Verdict {
        ipv4::verdict(self, offset)
    }

    /// Reads an IPv6 packet whose header begins at `offset`.
    #[inline(always)]
    pub fn ipv6(&self, offset: usize) -> Verdict {
        ipv6::verdict(self, offset)
    }

    /// Where the TCP (or UDP) header of an IPv4 packet is that is a [`Kind::SynBehind`].
    ///
    /// It is found anew, and not handed on with the verdict: what the verifier has to compare there it then follows
    /// through every way in which the header can be reached.
    #[inline(always)]
    pub fn tcp_behind_ipv4(&self, offset: usize) -> usize {
        ipv4::tcp(self.near, offset)
    }

    /// The same for IPv6.
    #[inline(always)]
    pub fn tcp_behind_ipv6(&self, offset: usize) -> usize {
        ipv6::tcp(self.far, offset)
    }
}

impl Bytes for [u8] {
    fn u8(&self, offset: usize) -> Field {
        self.get(offset).map_or(Field::ABSENT, |byte| Field::of(u16::from(*byte)))
    }

    fn u16(&self, offset: usize) -> Field {
        let bytes = offset.checked_add(2).and_then(|end| self.get(offset..end)?.try_into().ok());
        bytes.map_or(Field::ABSENT, |bytes| Field::of(u16::from_be_bytes(bytes)))
    }

    fn u32(&self, offset: usize) -> Field {
        let bytes = offset.checked_add(4).and_then(|end| self.get(offset..end)?.try_into().ok());
        bytes.map_or(Field::ABSENT, |bytes| Field::of_four(u32::from_be_bytes(bytes)))
    }
}

#[cfg(test)]
mod tests;
