//! The programs in the kernel, with packets through its test run or an interface.

use std::collections::BTreeMap;

use anyhow::{Context, Result, ensure};
use aya::{
    Ebpf, EbpfLoader,
    maps::{Array, MapData, PerCpuArray},
    programs::{LinkOrder, SchedClassifier, TcAttachType, TestRun, TestRunOptions, tc::TcAttachOptions},
};
use lastsyn_common::counters::{self, PORT_PAGES, PORTS_PER_PAGE, PortPage, UNATTRIBUTED_SLOT, Witness};

use super::{Sample, datagram_slot_of, slot_of};
use crate::{Host, tap::Tap, tcx::OBJECT};

/// What lets the next program see the packet (`linux/bpf.h`).
const TCX_NEXT: i32 = -1;

/// What a number of packets moved.
#[derive(Debug, Default, PartialEq, Eq)]
pub struct Tallied {
    /// How often each counter moved, by its index in the map.
    pub counters: BTreeMap<u32, u64>,
    /// By how much the witness's total grew.
    pub witness: u64,
}

/// How a packet gets to the program.
#[derive(Clone, Copy, Debug)]
pub enum Way<'a> {
    /// The kernel's test run, in one piece.
    TestRun,
    /// Received by an interface, in two.
    Tap(&'a Tap),
}

/// The programs in the kernel, with a slot for every port but those that [`slot_of`] and [`datagram_slot_of`] leave out.
pub struct Kernel {
    ebpf: Ebpf,
    counters: PerCpuArray<MapData, counters::Tally>,
    witness: PerCpuArray<MapData, Witness>,
}

// === impl Kernel ===

impl Kernel {
    /// Loads the object that the agent embeds.
    ///
    /// # Errors
    ///
    /// When the kernel refuses it.
    pub fn load() -> Result<Self> {
        // As the agent does: nothing of the kernel's own type information is needed.
        let mut ebpf = EbpfLoader::new().btf(None).load(OBJECT)?;
        program(&mut ebpf)?.load()?;
        watch(&mut ebpf, "PORTS", slot_of)?;
        watch(&mut ebpf, "PORTS_UDP", datagram_slot_of)?;
        Ok(Self {
            counters: ebpf.take_map("COUNTERS").context("no map COUNTERS")?.try_into()?,
            witness: ebpf.take_map("WITNESS").context("no map WITNESS")?.try_into()?,
            ebpf,
        })
    }

    /// Has the program see packets, in the namespace of the calling thread, and tells what they moved.
    ///
    /// # Errors
    ///
    /// When the kernel does not run it, or the program keeps a packet from those behind it.
    pub fn run(&mut self, way: Way<'_>, samples: &[Sample]) -> Result<Tallied> {
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
                    let addressed = [&tap.hardware(), frame.get(6..).unwrap_or_default()].concat();
                    tap.receive_in_two(&addressed, *in_first_piece)?;
                }
            }
        }
        Ok(self.tallied()?.since(&before))
    }

    /// Puts the program on an interface of a host. It goes when it is dropped.
    ///
    /// # Errors
    ///
    /// When the kernel refuses.
    pub fn attach(&mut self, host: &Host, interface: &str) -> Result<()> {
        let options = TcAttachOptions::TcxOrder(LinkOrder::first());
        let program = program(&mut self.ebpf)?;
        host.run(|| program.attach_with_options(interface, TcAttachType::Ingress, options))?;
        Ok(())
    }

    fn tallied(&self) -> Result<Tallied> {
        let mut counters = BTreeMap::new();
        for index in 0..counters::COUNTERS {
            counters.insert(index, self.counters.get(&index, 0)?.iter().map(|cpu| cpu.count).sum());
        }
        Ok(Tallied { counters, witness: self.witness.get(&0, 0)?.iter().map(|cpu| cpu.attempts).sum() })
    }
}

/// Gives every port its slot in one of the port maps.
fn watch(ebpf: &mut Ebpf, map: &str, slot_of: impl Fn(u16) -> u8) -> Result<()> {
    let mut ports: Array<MapData, PortPage> =
        ebpf.take_map(map).with_context(|| format!("no map {map}"))?.try_into()?;
    for page in 0..PORT_PAGES {
        let mut slots = [UNATTRIBUTED_SLOT; PORTS_PER_PAGE];
        for (place, slot) in slots.iter_mut().enumerate() {
            *slot = slot_of(u16::try_from(page as usize * PORTS_PER_PAGE + place)?);
        }
        ports.set(page, PortPage { slots }, 0)?;
    }
    Ok(())
}

fn program(ebpf: &mut Ebpf) -> Result<&mut SchedClassifier> {
    Ok(ebpf.program_mut("ingress").context("no program ingress")?.try_into()?)
}

// === impl Tallied ===

impl Tallied {
    fn since(mut self, before: &Self) -> Self {
        for (index, count) in &mut self.counters {
            *count -= before.counters.get(index).copied().unwrap_or(0);
        }
        self.counters.retain(|_, count| *count > 0);
        self.witness -= before.witness;
        self
    }
}
