//! The program in the kernel reads every packet as the same code does in user space: real object, real verifier, packets
//! through the kernel's test run and in pieces over an interface. `cargo xtask prove parser` does it with a million.

use lastsyn_common::packet::ETHERNET_HEADER;
use lastsyn_tests::{
    Lab,
    prove::parser::{Kernel, Sample, Way, agree, compare, corpus, listen},
    tap::Tap,
};

#[test]
fn kernel_and_user_space_read_a_packet_alike() {
    let lab = Lab::new().unwrap();
    let pod = lab.host("pod").unwrap();
    let _listeners = listen(&pod).unwrap();
    let mut kernel = Kernel::load().unwrap();
    for (name, frame) in corpus() {
        let agreed = pod.run(|| agree(&mut kernel, Way::TestRun, &[Sample::whole(frame)]));
        agreed.unwrap_or_else(|error| panic!("{name}: {error:#}"));
    }
}

#[test]
fn kernel_and_user_space_read_packets_of_chance_alike() {
    println!("{:?}", compare(30_000, 7).unwrap());
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
        agree(&mut kernel, Way::Tap(&tap), &samples).unwrap();
        // Cut short anywhere, so that what is looked for may be in the second piece or nowhere.
        let cut: Vec<Sample> = (ETHERNET_HEADER + 1..frame.len())
            .flat_map(|length| [ETHERNET_HEADER, length - 1].map(|first| pieces(&frame[..length].to_vec(), first)))
            .collect();
        agree(&mut kernel, Way::Tap(&tap), &cut).unwrap();
        println!("{name}: {} ways", samples.len() + cut.len());
    }
}
