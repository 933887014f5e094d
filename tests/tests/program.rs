//! The program in the kernel reads every packet as the same code does in user space: real object, real verifier, packets
//! through the kernel's test run.

#![expect(clippy::indexing_slicing, clippy::panic, clippy::unwrap_used, reason = "a failing helper fails its test")]

use std::{
    collections::BTreeMap,
    net::{SocketAddr, TcpListener},
};

use anyhow::{Context, Result, ensure};
use aya::{
    Ebpf, EbpfLoader,
    maps::{Array, MapData, PerCpuArray},
    programs::{LinkOrder, SchedClassifier, TcAttachType, TestRun, TestRunOptions, tc::TcAttachOptions},
};
use lastsyn_common::{
    counters::{self, Class, PORT_PAGES, PORTS_PER_PAGE, PortPage, UNATTRIBUTED_SLOT, Witness, counter_index},
    packet::{ETHERNET_HEADER, EtherType, Ipv4, Ipv6, Kind, Packet, Verdict, ether_type, joins},
};
use lastsyn_tests::{
    Host, Lab,
    raw::{ACK, ExtensionHeader, SYN, Segment},
    tap::Tap,
    tcx::OBJECT,
};

/// The programs in the kernel, with a slot for every port but those that [`slot_of`] leaves out.
struct Kernel {
    ebpf: Ebpf,
    counters: PerCpuArray<MapData, counters::Tally>,
    witness: PerCpuArray<MapData, Witness>,
}

/// How often each counter moved, by its index in the map.
type Moved = BTreeMap<u32, u64>;

/// What a number of packets moved.
#[derive(Debug, PartialEq, Eq)]
struct Tallied {
    counters: Moved,
    witness: u64,
}

/// A packet, and how many of its bytes lie in one piece at its beginning.
#[derive(Clone, Debug)]
struct Sample {
    frame: Vec<u8>,
    in_first_piece: usize,
}

/// How a packet gets to the program.
#[derive(Clone, Copy)]
enum Way<'a> {
    /// The kernel's test run, in one piece.
    TestRun,
    /// Received by an interface, in two.
    Tap(&'a Tap),
}

#[test]
fn kernel_and_user_space_read_a_packet_alike() {
    let lab = Lab::new().unwrap();
    let pod = lab.host("pod").unwrap();
    let _listeners = listen(&pod).unwrap();
    let mut kernel = Kernel::load().unwrap();
    let corpus = corpus();
    for (_, frame) in &corpus {
        pod.run(|| agree(&mut kernel, Way::TestRun, &[whole(frame.clone())]));
    }

    let mut random = Random(0x5eed_1a60_a8eb_0001);
    let samples: Vec<Sample> = (0..20_000).map(|_| whole(random.mutated(&corpus))).collect();
    // The packets are of all kinds, or nothing would be shown.
    let all = expected(&samples);
    let seen = |class| -> u64 {
        let of_class = |index: &u32| index % counters::CLASSES == class as u32;
        all.counters.iter().filter(|(index, _)| of_class(index)).map(|(_, count)| count).sum()
    };
    let [new, join, refused, opaque] = [Class::New, Class::Join, Class::Refused, Class::Opaque].map(seen);
    let hidden = [false, true].map(|v6| counter_index(UNATTRIBUTED_SLOT, v6, Class::Opaque));
    let hidden: u64 = hidden.iter().filter_map(|index| all.counters.get(index)).sum();
    let elsewhere = all.witness - new - join - refused - opaque;
    let kinds = [new, join, refused, opaque - hidden, hidden, elsewhere];
    println!("of {}: {kinds:?} new, join, refused, opaque with and without port, to unwatched ports", samples.len());
    assert!(kinds.iter().all(|count| *count >= 100), "too few of a kind: {kinds:?}");
    assert!(all.counters.len() > 100, "only {} counters were to move", all.counters.len());
    pod.run(|| agree(&mut kernel, Way::TestRun, &samples));
}

#[test]
fn a_packet_in_pieces_is_read_like_one_in_one_piece() {
    let lab = Lab::new().unwrap();
    let pod = lab.host("pod").unwrap();
    let _listeners = listen(&pod).unwrap();
    let tap = Tap::open(&pod, "tap0").unwrap();
    let mut kernel = Kernel::load().unwrap();
    kernel.attach(&pod, "tap0").unwrap();
    for (name, frame) in corpus() {
        let pieces = |frame: &Vec<u8>, in_first_piece| Sample { frame: frame.clone(), in_first_piece };
        let samples: Vec<Sample> = (ETHERNET_HEADER..frame.len()).map(|first| pieces(&frame, first)).collect();
        agree(&mut kernel, Way::Tap(&tap), &samples);
        // Cut short anywhere, so that what is looked for may be in the second piece or nowhere.
        let cut: Vec<Sample> = (ETHERNET_HEADER + 1..frame.len())
            .flat_map(|length| [ETHERNET_HEADER, length - 1].map(|first| pieces(&frame[..length].to_vec(), first)))
            .collect();
        agree(&mut kernel, Way::Tap(&tap), &cut);
        println!("{name}: {} ways", samples.len() + cut.len());
    }
}

/// Looks for the packet that is read differently, by halves.
fn agree(kernel: &mut Kernel, way: Way<'_>, samples: &[Sample]) {
    let (here, there) = (expected(samples), kernel.run(way, samples).unwrap());
    if here == there {
        return;
    }
    if let [Sample { frame, in_first_piece }] = samples {
        panic!("user space: {here:?}, kernel: {there:?}; {in_first_piece} bytes in the first piece of {frame:02x?}");
    }
    let (first, second) = samples.split_at(samples.len() / 2);
    agree(kernel, way, first);
    agree(kernel, way, second);
    panic!("together {} packets are counted otherwise than one by one", samples.len());
}

/// What user space reads in packets.
fn expected(samples: &[Sample]) -> Tallied {
    let mut tallied = Tallied { counters: Moved::new(), witness: 0 };
    for Sample { frame, .. } in samples {
        // A test run is done in the name of the loopback device, whose address is all zeros.
        if frame[..6] != [0; 6] {
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
    let half = |word: u32, at: usize| u16::from_be_bytes([word.to_ne_bytes()[at], word.to_ne_bytes()[at + 1]]);
    let destination: SocketAddr = if v6 {
        let read = Ipv6::read(frame, ETHERNET_HEADER, tcp);
        let octets: Vec<u8> = read.destination.iter().flat_map(|word| word.to_ne_bytes()).collect();
        (<[u8; 16]>::try_from(octets).unwrap(), half(read.ports, 2)).into()
    } else {
        let read = Ipv4::read(frame, ETHERNET_HEADER, tcp);
        (read.destination.to_ne_bytes(), half(read.ports, 2)).into()
    };
    let taken = LISTENING.iter().any(|text| text.parse::<SocketAddr>().unwrap() == destination);
    match (taken, joins(&Packet { near: frame, far: frame }, tcp, false)) {
        (false, _) => Class::Refused,
        (true, false) => Class::New,
        (true, true) => Class::Join,
    }
}

/// Where something listens. Not on every address, so that a wrong one is noticed.
const LISTENING: [&str; 2] = ["192.0.2.2:8081", "[2001:db8::2]:8081"];

fn listen(host: &Host) -> Result<Vec<TcpListener>> {
    host.ip("address add 192.0.2.2 dev lo\naddress add 2001:db8::2 dev lo nodad\n")?;
    host.run(|| LISTENING.iter().map(|address| Ok(TcpListener::bind(address)?)).collect())
}

fn whole(frame: Vec<u8>) -> Sample {
    Sample { in_first_piece: frame.len(), frame }
}

/// Every port has a slot but each third, so that neighbours are told apart and some ports are not watched.
fn slot_of(port: u16) -> u8 {
    if port.is_multiple_of(3) { UNATTRIBUTED_SLOT } else { 2 + u8::try_from(port % 61).unwrap() }
}

// === impl Kernel ===

impl Kernel {
    fn load() -> Result<Self> {
        // As the agent does: nothing of the kernel's own type information is needed.
        let mut ebpf = EbpfLoader::new().btf(None).load(OBJECT)?;
        program(&mut ebpf)?.load()?;
        let mut ports: Array<MapData, PortPage> = ebpf.take_map("PORTS").context("no map PORTS")?.try_into()?;
        for page in 0..PORT_PAGES {
            let mut slots = [UNATTRIBUTED_SLOT; PORTS_PER_PAGE];
            for (place, slot) in slots.iter_mut().enumerate() {
                *slot = slot_of(u16::try_from(page as usize * PORTS_PER_PAGE + place)?);
            }
            ports.set(page, PortPage { slots }, 0)?;
        }
        Ok(Self {
            counters: ebpf.take_map("COUNTERS").context("no map COUNTERS")?.try_into()?,
            witness: ebpf.take_map("WITNESS").context("no map WITNESS")?.try_into()?,
            ebpf,
        })
    }

    fn run(&mut self, way: Way<'_>, samples: &[Sample]) -> Result<Tallied> {
        let before = self.tallied()?;
        let program = program(&mut self.ebpf)?;
        for Sample { frame, in_first_piece } in samples {
            match way {
                Way::TestRun => {
                    let options = TestRunOptions { data_in: Some(frame), ..TestRunOptions::new() };
                    let result = program.test_run(options).with_context(|| format!("no test run of {frame:02x?}"))?;
                    ensure!(result.return_value.cast_signed() == TCX_NEXT, "packets do not pass: {result:?}");
                }
                Way::Tap(tap) => {
                    let addressed = [&tap.hardware(), &frame[6..]].concat();
                    tap.receive_in_two(&addressed, *in_first_piece)?;
                }
            }
        }
        Ok(self.tallied()?.since(&before))
    }

    /// Puts the program on an interface of a host. It goes when it is dropped.
    fn attach(&mut self, host: &Host, interface: &str) -> Result<()> {
        let options = TcAttachOptions::TcxOrder(LinkOrder::first());
        let program = program(&mut self.ebpf)?;
        host.run(|| program.attach_with_options(interface, TcAttachType::Ingress, options))?;
        Ok(())
    }

    fn tallied(&self) -> Result<Tallied> {
        let mut counters = Moved::new();
        for index in 0..counters::COUNTERS {
            counters.insert(index, self.counters.get(&index, 0)?.iter().map(|cpu| cpu.count).sum());
        }
        Ok(Tallied { counters, witness: self.witness.get(&0, 0)?.iter().map(|cpu| cpu.attempts).sum() })
    }
}

/// What lets the next program see the packet (`linux/bpf.h`).
const TCX_NEXT: i32 = -1;

fn program(ebpf: &mut Ebpf) -> Result<&mut SchedClassifier> {
    Ok(ebpf.program_mut("ingress").context("no program ingress")?.try_into()?)
}

// === impl Tallied ===

impl Tallied {
    fn since(mut self, before: &Self) -> Self {
        for (key, count) in &mut self.counters {
            *count -= before.counters[key];
        }
        self.counters.retain(|_, count| *count > 0);
        self.witness -= before.witness;
        self
    }
}

// === the packets ===

fn corpus() -> Vec<(&'static str, Vec<u8>)> {
    let [v4, v6] = [("192.0.2.1:40000", "192.0.2.2:8081"), ("[2001:db8::1]:40000", "[2001:db8::2]:8081")]
        .map(|(from, to)| Segment::syn(from.parse::<SocketAddr>().unwrap(), to.parse().unwrap()));
    let header = |kind, length| ExtensionHeader { kind, body: vec![0; length] };
    let fragment = |field: u16| ExtensionHeader { kind: 44, body: [&field.to_be_bytes()[..], &[0, 0, 0, 9]].concat() };
    let behind = |extension_headers| Segment { extension_headers, ..v6.clone() }.to_frame();
    // MP_JOIN (RFC 8684 section 3.2), alone and behind what Linux puts before it.
    let join = [30, 12, 0x10, 1, 2, 3, 4, 5, 6, 7, 8, 9];
    let behind_others = |option: &[u8]| [&[2, 4, 5, 0xb4, 4, 2, 1, 1, 3, 3, 7, 1][..], option].concat();
    let cut = |mut frame: Vec<u8>, length| {
        frame.truncate(length);
        frame
    };
    vec![
        ("IPv4", v4.to_frame()),
        ("IPv6", v6.to_frame()),
        ("data over IPv4", Segment { flags: ACK, payload: vec![7; 60], ..v4.clone() }.to_frame()),
        ("data over IPv6", Segment { flags: ACK, payload: vec![7; 60], ..v6.clone() }.to_frame()),
        ("a SYN with data", Segment { payload: vec![7; 60], ..v4.clone() }.to_frame()),
        ("a join", Segment { tcp_options: join.to_vec(), ..v4.clone() }.to_frame()),
        ("a join behind other options", Segment { tcp_options: behind_others(&join), ..v6.clone() }.to_frame()),
        (
            "a join behind IPv4 options",
            Segment { ip_options: vec![1; 8], tcp_options: behind_others(&join), ..v4.clone() }.to_frame(),
        ),
        (
            "a join behind an extension header",
            Segment { extension_headers: vec![header(60, 6)], tcp_options: join.to_vec(), ..v6.clone() }.to_frame(),
        ),
        ("ECN", Segment { flags: 0xc2, ..v4.clone() }.to_frame()),
        ("SYN and ACK", Segment { flags: SYN | ACK, ..v6.clone() }.to_frame()),
        ("IPv4 options", Segment { ip_options: vec![1; 12], ..v4.clone() }.to_frame()),
        ("40 bytes of IPv4 options", Segment { ip_options: vec![1; 40], ..v4.clone() }.to_frame()),
        ("a first fragment", Segment { fragment: 0x2000, ..v4.clone() }.to_frame()),
        ("a tiny first fragment", cut(Segment { fragment: 0x2000, ..v4.clone() }.to_frame(), 14 + 20 + 8)),
        ("a first fragment without ports", cut(Segment { fragment: 0x2000, ..v4.clone() }.to_frame(), 14 + 20 + 2)),
        ("a later fragment", Segment { fragment: 0x2007, ..v4.clone() }.to_frame()),
        ("a tag", Segment { vlans: vec![5], ..v4 }.to_frame()),
        ("hop-by-hop options", behind(vec![header(0, 6)])),
        ("destination options", behind(vec![header(60, 22)])),
        ("a routing header", behind(vec![header(43, 14)])),
        ("an atomic fragment", behind(vec![fragment(0)])),
        ("a first fragment over IPv6", behind(vec![fragment(1)])),
        ("a tiny first fragment over IPv6", cut(behind(vec![fragment(1)]), 14 + 40 + 8 + 8)),
        ("a later fragment over IPv6", behind(vec![fragment(0x0008)])),
        ("a chain of five", behind(vec![header(0, 6), header(60, 6), header(43, 6), fragment(0), header(60, 14)])),
        ("a chain of six", behind(vec![header(60, 6); 6])),
        ("authentication", behind(vec![header(51, 22)])),
        ("no next header", behind(vec![header(59, 6)])),
    ]
}

/// A small generator with a fixed seed: the same packets in every run.
struct Random(u64);

impl Random {
    fn next(&mut self) -> u64 {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        self.0
    }

    fn below(&mut self, limit: usize) -> usize {
        usize::try_from(self.next() % u64::try_from(limit).unwrap()).unwrap()
    }

    fn byte(&mut self) -> u8 {
        self.next().to_le_bytes()[3]
    }

    /// A packet of the corpus, changed in a few places, mostly where it matters, and maybe cut short.
    fn mutated(&mut self, corpus: &[(&str, Vec<u8>)]) -> Vec<u8> {
        let mut frame = corpus[self.below(corpus.len())].1.clone();
        for _ in 0..self.below(4) {
            let at = match self.below(8) {
                0 => self.below(ETHERNET_HEADER),
                _ => ETHERNET_HEADER + self.below(frame.len() - ETHERNET_HEADER),
            };
            frame[at] = match self.below(3) {
                0 => self.byte(),
                1 => [0, 6, 43, 44, 51, 60][self.below(6)],
                _ => frame[at] ^ (1 << self.below(8)),
            };
        }
        // The destination port, wherever it is, or something else.
        if self.below(2) == 0 {
            let at = frame.len() - self.below(24).min(frame.len() - ETHERNET_HEADER - 1) - 1;
            frame[at] = self.byte();
        }
        if self.below(4) == 0 {
            // The kernel makes no test packet without the whole IP header.
            let least = ETHERNET_HEADER + if frame[12] == 0x08 { 20 } else { 40 };
            frame.truncate(least + self.below(frame.len().saturating_sub(least).max(1)));
        }
        frame
    }
}
