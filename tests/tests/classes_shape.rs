//! The class of a SYN by the shape of its packet: one test for each row of the table of stimuli where that decides.

#![expect(clippy::indexing_slicing, clippy::unwrap_used, reason = "a failing helper fails its test")]

use lastsyn_tests::{
    Counted, Server, ServerConfig,
    agent::Counts,
    pair::{CLIENT_HARDWARE, POD_HARDWARE},
    raw::{ACK, Checksum, ExtensionHeader, FIN, RST, SYN, Segment},
};

/// Options that ask for nothing: `PadN` over 4 bytes (RFC 8200 section 4.2).
const PADDING: [u8; 6] = [1, 4, 0, 0, 0, 0];
const OPAQUE: Counts = Counts { new: 0, retransmit: 0, refused: 0, join: 0, opaque: 1, stray: 0, ignored: 0, probe: 0 };

struct Scene {
    counted: Counted,
    _server: Server,
}

impl Scene {
    fn start() -> Self {
        let counted = Counted::start().unwrap();
        let server = Server::start(&counted.pair.pod, ServerConfig::default()).unwrap();
        Self { counted, _server: server }
    }

    /// A SYN over IPv4 as `shape` makes it, three times from different ports, each counted as `expected`.
    fn v4(&self, shape: impl Fn(Segment) -> Vec<Vec<u8>>, expected: Counts) {
        self.of(0, shape, expected);
    }

    fn v6(&self, shape: impl Fn(Segment) -> Vec<Vec<u8>>, expected: Counts) {
        self.of(1, shape, expected);
    }

    fn of(&self, family: usize, shape: impl Fn(Segment) -> Vec<Vec<u8>>, expected: Counts) {
        for port in 40_000..40_003 {
            let [v4, v6] = self.counted.syns(port);
            let counted = self.counted.frames(&shape(if family == 0 { v4 } else { v6 })).unwrap();
            let mut both = [Counts::default(); 2];
            both[family] = expected;
            assert_eq!(counted, both, "from port {port}");
        }
    }
}

/// One frame.
fn one(segment: &Segment) -> Vec<Vec<u8>> {
    vec![segment.to_frame()]
}

fn flags(flags: u8) -> impl Fn(Segment) -> Vec<Vec<u8>> {
    move |syn| one(&Segment { flags, ..syn })
}

fn options(options: &[u8]) -> impl Fn(Segment) -> Vec<Vec<u8>> {
    move |syn| one(&Segment { ip_options: options.to_vec(), ..syn })
}

/// Behind IPv6 extension headers.
fn behind(headers: &[(u8, &[u8])]) -> impl Fn(Segment) -> Vec<Vec<u8>> {
    let header = |(kind, body): &(u8, &[u8])| ExtensionHeader { kind: *kind, body: body.to_vec() };
    let headers: Vec<ExtensionHeader> = headers.iter().map(header).collect();
    move |syn| one(&Segment { extension_headers: headers.clone(), ..syn })
}

#[test]
fn an_ecn_syn_is_new() {
    let scene = Scene::start();
    scene.v4(flags(0xc2), Counts::new(1));
    scene.v6(flags(0xc2), Counts::new(1));
}

#[test]
fn a_syn_with_fin_is_nothing() {
    Scene::start().v4(flags(SYN | FIN), Counts::default());
}

#[test]
fn a_syn_with_rst_is_nothing() {
    Scene::start().v4(flags(SYN | RST), Counts::default());
}

#[test]
fn the_answer_to_a_syn_is_nothing() {
    Scene::start().v4(flags(SYN | ACK), Counts::default());
}

#[test]
fn a_syn_with_a_bad_checksum_is_new() {
    let wrong = |syn| one(&Segment { checksum: Checksum::Wrong, ..syn });
    let scene = Scene::start();
    scene.v4(wrong, Counts::new(1));
    // The kernel drops it, and so it begins no handshake: sent again, it is new again.
    scene.v4(wrong, Counts::new(1));
    scene.v6(wrong, Counts::new(1));
}

#[test]
fn a_syn_for_another_hardware_address_is_nothing() {
    let elsewhere = |syn: Segment| one(&syn.between(CLIENT_HARDWARE, [2, 0, 0, 0, 0, 9]));
    Scene::start().v4(elsewhere, Counts::default());
}

#[test]
fn a_syn_for_a_foreign_address_is_new() {
    // A listener on all addresses would take it; that the pod does not have this one is decided later.
    let foreign = |syn: Segment| {
        let mut destination = syn.destination;
        destination.set_ip([10, 0, 0, 99].into());
        one(&Segment { destination, ..syn })
    };
    Scene::start().v4(foreign, Counts::new(1));
}

#[test]
fn a_syn_with_a_source_route_is_new() {
    // LSRR (RFC 791 section 3.1) over one address, which the kernel drops (`accept_source_route` is off).
    Scene::start().v4(options(&[131, 7, 4, 10, 0, 0, 1, 0]), Counts::new(1));
}

#[test]
fn a_syn_with_ipv4_options_is_new() {
    let scene = Scene::start();
    scene.v4(options(&[1; 4]), Counts::new(1));
    // These have had their answer.
    scene.v4(options(&[1; 40]), Counts { retransmit: 1, ..Counts::default() });
}

#[test]
fn a_tiny_fragment_of_a_syn_is_opaque() {
    Scene::start().v4(|syn: Segment| syn.in_fragments(8), OPAQUE);
}

#[test]
fn a_syn_whose_last_bytes_are_in_a_second_fragment_is_new_once() {
    let scene = Scene::start();
    let with_data = |syn: Segment| Segment { payload: vec![7; 4], tcp_options: Vec::new(), ..syn }.in_fragments(24);
    // The listener would not take its data; with options in their place it is a plain SYN of 24 bytes.
    let split = |syn: Segment| Segment { tcp_options: vec![2, 4, 5, 0xb4, 1, 1, 1, 1], ..syn }.in_fragments(24);
    scene.v4(split, Counts::new(1));
    scene.v4(with_data, Counts { retransmit: 1, ..Counts::default() });
}

#[test]
fn a_tiny_fragment_over_ipv6_is_opaque() {
    let tiny = |syn| {
        let fragment = ExtensionHeader { kind: 44, body: vec![0, 1, 0, 0, 0, 7] };
        let mut frame = Segment { extension_headers: vec![fragment], ..syn }.to_frame();
        frame.truncate(14 + 40 + 8 + 8);
        vec![frame]
    };
    Scene::start().v6(tiny, OPAQUE);
}

#[test]
fn a_syn_behind_hop_by_hop_options_is_new() {
    Scene::start().v6(behind(&[(0, &PADDING)]), Counts::new(1));
}

#[test]
fn a_syn_behind_destination_options_is_new() {
    Scene::start().v6(behind(&[(60, &PADDING)]), Counts::new(1));
}

#[test]
fn a_syn_in_an_atomic_fragment_is_new() {
    Scene::start().v6(behind(&[(44, &[0, 0, 0, 0, 0, 7])]), Counts::new(1));
}

#[test]
fn a_syn_behind_many_extension_headers_is_new_and_behind_too_many_opaque() {
    let scene = Scene::start();
    let padding = (60, &PADDING[..]);
    scene.v6(behind(&[(0, &PADDING), padding, padding, padding, padding]), Counts::new(1));
    scene.v6(behind(&[(0, &PADDING), padding, padding, padding, padding, padding]), OPAQUE);
}

#[test]
fn data_behind_extension_headers_is_nothing() {
    let data = |syn| {
        let padding = ExtensionHeader { kind: 60, body: PADDING.to_vec() };
        one(&Segment { flags: ACK, extension_headers: vec![padding], ..syn })
    };
    Scene::start().v6(data, Counts::default());
}

#[test]
fn a_syn_in_a_vlan_that_the_pod_is_not_in_is_nothing() {
    Scene::start().v4(|syn| one(&Segment { vlans: vec![5], ..syn }), Counts::default());
}

#[test]
fn a_syn_with_a_priority_tag_is_new() {
    let scene = Scene::start();
    scene.v4(|syn| one(&Segment { vlans: vec![0x6000], ..syn }), Counts::new(1));
    scene.v6(|syn| one(&Segment { vlans: vec![0], ..syn }), Counts::new(1));
    assert_eq!(scene.counted.pair.pod.hardware_address("eth0").unwrap(), POD_HARDWARE);
}
