//! The program in the kernel reads every packet as the same code does in user space: real object, real verifier.
//! `cargo xtask prove parser` asks with a million packets of chance.

mod corpus;
mod kernel;

use std::{
    io::Write,
    net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr, TcpListener},
};

use anyhow::{Result, bail, ensure};
use lastsyn_common::{
    counters::{self, Class, FIRST_PORT_SLOT, UNATTRIBUTED_SLOT, counter_index},
    packet::{ETHERNET_HEADER, EtherType, Ipv4, Ipv6, Kind, Packet, Verdict, ether_type, joins},
};
use serde_json::json;

pub use self::{
    corpus::{Sample, corpus, mutated},
    kernel::{Kernel, Tallied, Way},
};
use super::{Dice, Record};
use crate::{Host, Lab};

const PACKETS: usize = 1_000_000;
/// So many are compared in one go.
const AT_ONCE: usize = 50_000;
const RECORD: &str = "parser.jsonl";
const DATAGRAM_SLOT: u8 = 63;

/// Where something listens in a scene that [`listen`] has prepared. Not on every address, so that a wrong one is noticed.
pub const LISTENING: [SocketAddr; 2] = [
    SocketAddr::new(IpAddr::V4(Ipv4Addr::new(192, 0, 2, 2)), 8081),
    SocketAddr::new(IpAddr::V6(Ipv6Addr::new(0x2001, 0xdb8, 0, 0, 0, 0, 0, 2)), 8081),
];

/// Compares a million packets.
///
/// # Errors
///
/// When a packet is read differently, or the scene cannot be made.
pub fn run(arguments: impl Iterator<Item = String>) -> Result<()> {
    let mut record = Record::asked_for(RECORD, arguments)?;
    if record.lines().is_empty() {
        let kinds = compare(PACKETS, 1)?;
        record.add(json!({ "packets": PACKETS, "readDifferently": 0, "kinds": kinds.0 }))?;
    }
    for line in record.lines() {
        writeln!(std::io::stdout().lock(), "{line}")?;
    }
    Ok(())
}

/// How many packets were of which kind.
#[derive(Debug)]
pub struct Kinds(pub Vec<(&'static str, u64)>);

/// Compares packets of chance, and tells of which kinds they were.
///
/// # Errors
///
/// When one is read differently, there are too few of a kind to show anything, or the scene cannot be made.
pub fn compare(packets: usize, seed: u64) -> Result<Kinds> {
    let lab = Lab::new()?;
    let pod = lab.host("pod")?;
    let _listeners = listen(&pod)?;
    let mut kernel = Kernel::load()?;
    let (corpus, mut dice) = (corpus(), Dice::seeded(seed));
    let mut all = Tallied::default();
    for first in (0..packets).step_by(AT_ONCE) {
        let samples: Vec<Sample> = (first..packets.min(first + AT_ONCE)).map(|_| mutated(&corpus, &mut dice)).collect();
        pod.run(|| agree(&mut kernel, Way::TestRun, &samples))?;
        let expected = expected(&samples);
        all.witness += expected.witness;
        for (index, count) in expected.counters {
            *all.counters.entry(index).or_default() += count;
        }
    }
    let counted = |class| -> u64 {
        let of_class = |index: &u32| index % counters::CLASSES == class as u32 && !is_of_datagrams(*index);
        all.counters.iter().filter(|(index, _)| of_class(index)).map(|(_, count)| count).sum()
    };
    let [new, join, refused, opaque] = [Class::New, Class::Join, Class::Refused, Class::Opaque].map(counted);
    let datagrams: u64 =
        all.counters.iter().filter(|(index, _)| is_of_datagrams(**index)).map(|(_, count)| count).sum();
    let hidden = [false, true].map(|v6| counter_index(UNATTRIBUTED_SLOT, v6, Class::Opaque));
    let hidden: u64 = hidden.iter().filter_map(|index| all.counters.get(index)).sum();
    let kinds = vec![
        ("new", new),
        ("join", join),
        ("refused", refused),
        ("opaque", opaque - hidden),
        ("opaque, without a port", hidden),
        ("to a port that is not watched", all.witness - new - join - refused - opaque),
        ("beginning of a QUIC connection", datagrams),
    ];
    // The packets are of all kinds, or nothing would be shown.
    ensure!(kinds.iter().all(|(_, count)| *count >= 100), "too few of a kind: {kinds:?}");
    ensure!(all.counters.len() > 100, "only {} counters were to move", all.counters.len());
    Ok(Kinds(kinds))
}

/// Has something listen at [`LISTENING`] in a host, and nowhere else.
///
/// # Errors
///
/// When the addresses cannot be had.
pub fn listen(host: &Host) -> Result<Vec<TcpListener>> {
    let [v4, v6] = LISTENING.map(|address| address.ip());
    host.ip(&format!("address add {v4} dev lo\naddress add {v6} dev lo nodad\n"))?;
    host.run(|| LISTENING.iter().map(|address| Ok(TcpListener::bind(address)?)).collect())
}

/// Holds the kernel to what user space reads, and looks for the packet that is read differently, by halves.
///
/// # Errors
///
/// With that packet.
pub fn agree(kernel: &mut Kernel, way: Way<'_>, samples: &[Sample]) -> Result<()> {
    let (here, there) = (expected(samples), kernel.run(way, samples)?);
    if here == there {
        return Ok(());
    }
    if let [Sample { frame, in_first_piece }] = samples {
        bail!("user space: {here:?}, kernel: {there:?}; {in_first_piece} bytes in the first piece of {frame:02x?}");
    }
    let (first, second) = samples.split_at(samples.len() / 2);
    agree(kernel, way, first)?;
    agree(kernel, way, second)?;
    bail!("together {} packets are counted otherwise than one by one", samples.len())
}

/// What user space reads in packets.
pub fn expected(samples: &[Sample]) -> Tallied {
    let mut tallied = Tallied::default();
    for Sample { frame, .. } in samples {
        // A test run is done in the name of the loopback device, whose address is all zeros.
        if !frame.starts_with(&[0; 6]) {
            continue;
        }
        let packet = Packet { near: frame.as_slice(), far: frame.as_slice() };
        let (v6, verdict) = match ether_type(frame.as_slice()) {
            EtherType::Ipv4 => (false, packet.ipv4(ETHERNET_HEADER)),
            EtherType::Ipv6 => (true, packet.ipv6(ETHERNET_HEADER)),
            EtherType::Other => (false, Verdict::OTHER),
        };
        if verdict.is(Kind::Other) || verdict.is(Kind::Short) {
            continue;
        }
        if verdict.is_datagram() {
            let slot = datagram_slot_of(verdict.port());
            if slot != UNATTRIBUTED_SLOT {
                // Nothing takes datagrams in the scene.
                let class = if verdict.is(Kind::Initial) { Class::Refused } else { Class::Opaque };
                *tallied.counters.entry(counter_index(slot, v6, class)).or_default() += 1;
            }
            continue;
        }
        tallied.witness += 1;
        let hidden = verdict.is(Kind::Opaque);
        let slot = if hidden { UNATTRIBUTED_SLOT } else { slot_of(verdict.port()) };
        if hidden || slot != UNATTRIBUTED_SLOT {
            let tcp = match (verdict.is(Kind::SynBehind), v6) {
                (false, false) => Ipv4::TCP_WITHOUT_OPTIONS,
                (false, true) => Ipv6::TCP_WITHOUT_EXTENSIONS,
                (true, false) => packet.tcp_behind_ipv4(ETHERNET_HEADER),
                (true, true) => packet.tcp_behind_ipv6(ETHERNET_HEADER),
            };
            let is_syn = verdict.is(Kind::Syn) || verdict.is(Kind::SynBehind);
            let class = if is_syn { class(frame, v6, tcp) } else { Class::Opaque };
            *tallied.counters.entry(counter_index(slot, v6, class)).or_default() += 1;
        }
    }
    tallied
}

/// The class of a SYN, where nothing but [`LISTENING`] has a socket.
fn class(frame: &[u8], v6: bool, tcp: usize) -> Class {
    let port = |ports: u32| {
        let [_, _, high, low] = ports.to_ne_bytes();
        u16::from_be_bytes([high, low])
    };
    let destination: SocketAddr = if v6 {
        let Ipv6 { destination, ports, .. } = Ipv6::read(frame, ETHERNET_HEADER, tcp);
        let address = destination.iter().fold(0, |address, word| address << 32 | u128::from(u32::from_be(*word)));
        (Ipv6Addr::from_bits(address), port(ports)).into()
    } else {
        let Ipv4 { destination, ports, .. } = Ipv4::read(frame, ETHERNET_HEADER, tcp);
        (Ipv4Addr::from_bits(u32::from_be(destination)), port(ports)).into()
    };
    match (LISTENING.contains(&destination), joins(&Packet { near: frame, far: frame }, tcp, false)) {
        (false, _) => Class::Refused,
        (true, false) => Class::New,
        (true, true) => Class::Join,
    }
}

/// Every port has a slot but each third, so that neighbours are told apart and some ports are not watched.
pub fn slot_of(port: u16) -> u8 {
    match u8::try_from(port % 60) {
        Ok(number) if !port.is_multiple_of(3) => FIRST_PORT_SLOT + number,
        _ => UNATTRIBUTED_SLOT,
    }
}

/// The last slot is that of all UDP ports, but each third.
pub fn datagram_slot_of(port: u16) -> u8 {
    if port.is_multiple_of(3) { UNATTRIBUTED_SLOT } else { DATAGRAM_SLOT }
}

fn is_of_datagrams(index: u32) -> bool {
    index >= counter_index(DATAGRAM_SLOT, false, Class::New)
}
