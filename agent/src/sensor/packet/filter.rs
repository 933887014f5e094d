//! The classic BPF program that lets a packet socket have SYNs alone, so that other packets cost the pod a few
//! instructions and no copy. What it cannot tell it lets through: the agent reads it as exactly as the programs in the
//! kernel do.

use lastsyn_common::packet::{FLAGS_MASK, SYN};
use socket2::SockFilter;

/// A frame of this many bytes stands for an attempt on the loopback, of which nothing but their number is of interest.
pub(super) const ON_LOOPBACK: usize = 1;
/// A frame of this many bytes stands for the agent's own test: a SYN to port 0 on the loopback.
pub(super) const OWN_TEST: usize = 2;

/// Ancillary data (`SKF_AD_OFF` and what follows it in `linux/filter.h`).
const PROTOCOL: u32 = 0xffff_f000;
const PACKET_TYPE: u32 = PROTOCOL + 4;
const INTERFACE: u32 = PROTOCOL + 8;
const VLAN_TAG: u32 = PROTOCOL + 44;
const VLAN_PRESENT: u32 = PROTOCOL + 48;

/// `LOOPBACK_IFINDEX` in `include/net/net_namespace.h`: the loopback device of every namespace.
const LOOPBACK: u32 = 1;
const IPV4: u32 = 0x0800;
const IPV6: u32 = 0x86dd;
const TCP: u32 = 6;
/// The IPv6 headers that others follow, or whose end the agent does not look for either: hop-by-hop options, routing,
/// fragment, authentication, destination options.
const EXTENSIONS: [u32; 5] = [0, 43, FRAGMENT, 51, 60];
const FRAGMENT: u32 = 44;
/// An IPv4 header of version 4 without options.
const PLAIN: u32 = 0x45;
/// The whole packet.
const WHOLE: u32 = 0x0004_0000;

/// An instruction whose way on is a name.
#[derive(Clone, Copy)]
enum Step {
    /// A load or a computation.
    Do(u16, u32),
    /// Goes to the first name if the comparison holds, to the second if not.
    Branch(u16, u32, At, At),
    /// Lets so many bytes through.
    Return(u32),
    /// Names what follows.
    Here(At),
}

/// A place in the program.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum At {
    Next,
    Tagged,
    Network,
    Ipv4,
    Ipv6,
    Ipv6Tcp,
    Extension,
    Take,
    TakeOnLoopback,
    Counted,
    Drop,
}

// Operations (`linux/bpf_common.h`).
const LOAD_BYTE: u16 = 0x30;
const LOAD_HALF: u16 = 0x28;
const LOAD_WORD: u16 = 0x20;
const LOAD_BYTE_BEHIND: u16 = 0x50; // at an offset from X
const LOAD_IPV4_LENGTH: u16 = 0xb1; // X = 4 * (byte & 0x0f)
const AND: u16 = 0x54;
const IF_EQUAL: u16 = 0x15;
const IF_ANY: u16 = 0x45;
const RETURN: u16 = 0x06;

/// The program, for a socket that has packets without their link header (`SOCK_DGRAM`).
pub(super) fn program() -> Vec<SockFilter> {
    assemble(&steps())
}

fn steps() -> Vec<Step> {
    use Step::{Branch, Do, Here, Return};
    let mut steps = vec![
        // For this host, and not overheard or sent by it.
        Do(LOAD_BYTE, PACKET_TYPE),
        Branch(IF_EQUAL, 0, At::Next, At::Drop),
        // A frame with a VLAN tag comes again on the VLAN's own interface. VLAN 0 is a priority tag, and no VLAN.
        Do(LOAD_BYTE, VLAN_PRESENT),
        Branch(IF_EQUAL, 0, At::Network, At::Tagged),
        Here(At::Tagged),
        Do(LOAD_HALF, VLAN_TAG),
        Do(AND, 0x0fff),
        Branch(IF_EQUAL, 0, At::Network, At::Drop),
        Here(At::Network),
        Do(LOAD_HALF, PROTOCOL),
        Branch(IF_EQUAL, IPV4, At::Ipv4, At::Next),
        Branch(IF_EQUAL, IPV6, At::Ipv6, At::Drop),
        Here(At::Ipv4),
        Do(LOAD_BYTE, 9),
        Branch(IF_EQUAL, TCP, At::Next, At::Drop),
        Do(LOAD_HALF, 6),
        Branch(IF_ANY, 0x1fff, At::Drop, At::Next), // a later fragment
        Branch(IF_ANY, 0x2000, At::Take, At::Next), // a first one: its flags may be in the next
        Do(LOAD_IPV4_LENGTH, 0),
        Do(LOAD_BYTE_BEHIND, 13),
        Do(AND, FLAGS_MASK.into()),
        Branch(IF_EQUAL, SYN.into(), At::Take, At::Drop),
        Here(At::Ipv6),
        Do(LOAD_BYTE, 6),
        Branch(IF_EQUAL, TCP, At::Ipv6Tcp, At::Next),
        Branch(IF_EQUAL, FRAGMENT, At::Next, At::Extension),
        Do(LOAD_HALF, 42),
        Branch(IF_ANY, 0xfff8, At::Drop, At::Next), // a later fragment
        Do(LOAD_BYTE, 40),
        Branch(IF_EQUAL, TCP, At::Take, At::Extension),
        Here(At::Extension),
    ];
    steps.extend(EXTENSIONS.map(|kind| Branch(IF_EQUAL, kind, At::Take, At::Next)));
    steps.extend([
        Return(0),
        Here(At::Ipv6Tcp),
        Do(LOAD_BYTE, 53),
        Do(AND, FLAGS_MASK.into()),
        Branch(IF_EQUAL, SYN.into(), At::Take, At::Drop),
        Here(At::Take),
        Do(LOAD_WORD, INTERFACE),
        Branch(IF_EQUAL, LOOPBACK, At::TakeOnLoopback, At::Next),
        Return(WHOLE),
        Here(At::TakeOnLoopback),
        Do(LOAD_HALF, PROTOCOL),
        Branch(IF_EQUAL, IPV4, At::Next, At::Counted),
        Do(LOAD_BYTE, 0),
        Branch(IF_EQUAL, PLAIN, At::Next, At::Counted),
        Do(LOAD_HALF, 22),
        Branch(IF_EQUAL, 0, At::Next, At::Counted),
        Return(bytes(OWN_TEST)),
        Here(At::Counted),
        Return(bytes(ON_LOOPBACK)),
        Here(At::Drop),
        Return(0),
    ]);
    steps
}

fn assemble(steps: &[Step]) -> Vec<SockFilter> {
    let length = |steps: &[Step]| steps.iter().filter(|step| !matches!(step, Step::Here(_))).count();
    let place = |name: At, from: usize| {
        let names = |step: &Step| matches!(step, Step::Here(named) if *named == name);
        let at = steps.iter().position(names).map(|at| length(steps.get(..at).unwrap_or_default()));
        let distance = if name == At::Next { Some(0) } else { at.and_then(|at| at.checked_sub(from + 1)) };
        distance.and_then(|distance| u8::try_from(distance).ok()).unwrap_or(u8::MAX)
    };
    let mut program = Vec::new();
    for step in steps {
        match *step {
            Step::Do(operation, value) => program.push(SockFilter::new(operation, 0, 0, value)),
            Step::Return(value) => program.push(SockFilter::new(RETURN, 0, 0, value)),
            Step::Branch(operation, value, holds, fails) => {
                let here = program.len();
                program.push(SockFilter::new(operation, place(holds, here), place(fails, here), value));
            }
            Step::Here(_) => {}
        }
    }
    program
}

const fn bytes(count: usize) -> u32 {
    #[expect(clippy::cast_possible_truncation, reason = "1 or 2")]
    {
        count as u32
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_jump_goes_forward_to_a_place_that_is_there() {
        let steps = steps();
        let mut branches = 0;
        for (at, step) in steps.iter().enumerate() {
            let Step::Branch(_, _, holds, fails) = *step else { continue };
            for name in [holds, fails].into_iter().filter(|name| *name != At::Next) {
                let behind = steps[at..].iter().any(|step| matches!(step, Step::Here(named) if *named == name));
                assert!(behind, "{name:?} does not lie behind step {at}");
                branches += 1;
            }
        }
        assert!(branches > 20);
        // A distance that did not fit would be the largest one.
        assert!(program().len() < usize::from(u8::MAX));
    }
}
