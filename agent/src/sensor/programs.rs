//! The sensors that run our program in the kernel, wherever it runs there.

use std::{
    collections::{BTreeMap, BTreeSet},
    net::Ipv6Addr,
    time::Duration,
};

use lastsyn_common::counters::UNATTRIBUTED_SLOT;

use super::{
    counts::{Around, Counts, ProgramRuns, Sensor, Uncounted, datagrams_unseen},
    hook::{AttachError, Hook, Look},
    kubelet::{self, Asker, Kubelet, ProbeStatus},
    maps,
    object::Loaded,
    program_log::ProgramLog,
    select::Setting,
    self_test::{self, SelfTestError},
    slots::Slots,
    sources::{Kept, SourceMap},
};
use crate::{
    config::Network,
    core::{
        class::Class,
        clock::Monotonic,
        event::{ByFamily, PortAttempts, SensorState},
        listener::{Family, Port, Protocol},
        probe::ProbePort,
        verdict::{NotObserved, Strategy},
    },
    drive::clock,
};

/// The sensor.
pub(super) struct Programs {
    hook: Box<dyn Hook>,
    loaded: Loaded,
    log: ProgramLog,
    slots: Slots,
    kubelet: Kubelet,
    sources: SourceMap,
    uncounted: Uncounted,
    reattach: bool,
    /// Since when every SYN is sure to be seen.
    proven_since: Option<Monotonic>,
    /// Just before the last look at the interfaces: what it found in place had been so until then.
    looked_at: Monotonic,
    /// For how long, in all, an interface may have been up and not watched.
    blind: Duration,
}

/// The sensor cannot begin.
#[derive(Debug, thiserror::Error)]
pub enum ProgramsError {
    /// Not attached.
    #[error(transparent)]
    Attach(#[from] AttachError),
    /// A network cannot be ignored.
    #[error(
        "SYNs from {network} cannot be ignored, as the kernel did not take it ({source}); see listeners.ignoreSources"
    )]
    Ignore {
        /// Which.
        network: Network,
        /// The kernel's word.
        #[source]
        source: aya::maps::MapError,
    },
    /// The agent's own port cannot be put into the map.
    #[error("who asks the agent cannot be told, as the kernel did not take its port ({0}); see listeners.probes")]
    Probes(#[source] aya::maps::MapError),
    /// Not testable.
    #[error(transparent)]
    SelfTest(#[from] SelfTestError),
}

impl Programs {
    /// Puts the programs in place on all interfaces there are.
    ///
    /// # Errors
    ///
    /// If the kernel lacks the place or does not let the agent attach.
    pub(super) fn start(
        mut loaded: Loaded,
        mut hook: Box<dyn Hook>,
        setting: Setting<'_>,
    ) -> Result<Self, ProgramsError> {
        let Setting { interfaces, ignored, reattach, .. } = setting;
        let log = ProgramLog::open(&mut loaded.ebpf);
        self_test::prepare(&mut loaded)?;
        for network in ignored {
            maps::ignore(&mut loaded, *network)
                .map_err(|source| ProgramsError::Ignore { network: *network, source })?;
        }
        let kubelet =
            Kubelet::begin(&mut loaded, setting.own_port, hook.is_on_interfaces()).map_err(ProgramsError::Probes)?;
        hook.look(&mut loaded, interfaces, true)?;
        Ok(Self {
            hook,
            loaded,
            log,
            slots: Slots::default(),
            kubelet,
            sources: SourceMap::default(),
            uncounted: Uncounted::default(),
            reattach,
            proven_since: None,
            looked_at: clock::now(),
            blind: Duration::ZERO,
        })
    }

    /// Proven: in place and first on every interface, the self-test passed, without a break since then.
    fn state(&mut self, around: Around<'_>, not_observed: &mut Vec<NotObserved>) -> SensorState {
        let looked = match around.interfaces {
            Some(interfaces) => self.hook.look(&mut self.loaded, interfaces, self.reattach),
            None => Err(AttachError::Unlisted),
        };
        if !matches!(&looked, Ok(Look { broken: None, unwatched }) if unwatched.is_empty()) {
            // When it began is not known: at the earliest right after the last look.
            self.blind = self.blind.saturating_add(clock::now().since(self.looked_at));
        }
        self.looked_at = around.listed_at;
        let why = match looked {
            Err(error) => Some(error.to_string()),
            Ok(Look { broken, unwatched }) => {
                if let Some(why) = broken {
                    // The journal tells that the sensor is proven anew, and not why it had to be.
                    tracing::debug!(%why, "not every SYN was sure to be seen until now");
                    self.proven_since = None;
                }
                not_observed.extend(unwatched.iter().map(|(name, why)| NotObserved {
                    what: "interface".to_owned(),
                    name: Some(name.clone()),
                    family: None,
                    why: why.clone(),
                }));
                unwatched.first().map(|(name, why)| format!("interface {name} is not watched: {why}"))
            }
        };
        let why = why.or_else(|| {
            let due = around.test || self.proven_since.is_none();
            let tested = if due { self.hook.self_test(&mut self.loaded, &self.slots) } else { Ok(()) };
            tested.err().map(|error| error.to_string())
        });
        let strategy = self.strategy();
        match why {
            Some(why) => {
                self.proven_since = None;
                SensorState::Unproven { strategy, why }
            }
            None => SensorState::Proven { strategy, since: *self.proven_since.get_or_insert_with(clock::now) },
        }
    }

    fn count(&mut self, port: Port) -> Result<(), String> {
        let set_slot = match port.protocol() {
            Protocol::Tcp => maps::set_slot,
            Protocol::Udp if self.hook.is_on_interfaces() => maps::set_datagram_slot,
            Protocol::Udp => return Err(datagrams_unseen(port)),
        };
        let assigned = self.slots.assign(port, clock::now()).map_err(|error| error.to_string())?;
        set_slot(&mut self.loaded, port.number(), assigned.slot)
            .map_err(|error| format!("port {port} is not counted: {error}"))
    }

    fn attempts(&self) -> Result<BTreeMap<Port, PortAttempts>, aya::maps::MapError> {
        let mut attempts = BTreeMap::new();
        for (port, assigned) in self.slots.iter() {
            let mut families = maps::attempts(&self.loaded, assigned.slot)?;
            for family in Family::ALL {
                let told = self.kubelet.told(port, family);
                for (class, more) in [(Class::Probe, told.probes), (Class::New, told.others)] {
                    if let Some(tally) = families.get_mut(family).get_mut(class) {
                        tally.count += more.count;
                        tally.last = tally.last.max(more.last);
                    }
                }
            }
            attempts.insert(port, PortAttempts { watched_since: assigned.since, families });
        }
        Ok(attempts)
    }

    fn counts(&self, state: SensorState, not_observed: Vec<NotObserved>) -> Result<Counts, aya::maps::MapError> {
        let attempts = self.attempts()?;
        let unattributed = maps::attempts(&self.loaded, UNATTRIBUTED_SLOT)?;
        // The self-test's packets are in the witness's total. Its own count is read after the total, so that the
        // difference is never too large: that could hide a SYN that was missed.
        let anywhere = maps::attempts_anywhere(&self.loaded.witness)?;
        let self_tests = self_test::tested(&self.loaded)?.count;
        Ok(Counts {
            state,
            attempts_anywhere: self.hook.has_witness().then_some(anywhere.saturating_sub(self_tests)),
            attempts,
            unattributed: ByFamily { v4: unattributed.v4.get(Class::Opaque), v6: unattributed.v6.get(Class::Opaque) },
            not_observed,
            blind: self.blind,
        })
    }
}

impl Sensor for Programs {
    fn strategy(&self) -> Strategy {
        self.hook.strategy()
    }

    fn interfaces(&self) -> Vec<String> {
        self.hook.interfaces()
    }

    fn blind(&self) -> Option<Duration> {
        Some(self.blind)
    }

    fn probes(&self) -> ProbeStatus {
        if self.knows_senders() { self.kubelet.status() } else { ProbeStatus::unsupported() }
    }

    fn probe_at(&mut self, ports: &[ProbePort]) -> Result<(), String> {
        self.kubelet.probe_at(&mut self.loaded, ports).map_err(|error| error.to_string())
    }

    fn kubelet_asked(&mut self, asker: Asker) -> Result<bool, String> {
        self.kubelet.asked(&mut self.loaded, asker).map_err(|error| error.to_string())
    }

    fn keep_sources(&mut self, wanted: bool) -> Result<bool, String> {
        self.sources.keep(&mut self.loaded, wanted).map(|()| true).map_err(|error| error.to_string())
    }

    fn keep_whole(&mut self, addresses: &BTreeSet<Ipv6Addr>) -> Result<(), String> {
        self.sources.keep_whole(&mut self.loaded, addresses).map_err(|error| error.to_string())
    }

    fn sources(&self) -> Result<Kept, String> {
        self.sources.read(&self.loaded, &self.slots).map_err(|error| error.to_string())
    }

    fn knows_senders(&self) -> bool {
        self.hook.is_on_interfaces()
    }

    fn is_of_this_node(&self, asker: Asker) -> Result<bool, String> {
        kubelet::is_of_this_node(&self.loaded, asker).map_err(|error| error.to_string())
    }

    fn totals(&self) -> Option<BTreeMap<Port, PortAttempts>> {
        self.attempts().ok()
    }

    fn runs(&self) -> Vec<ProgramRuns> {
        // A program that is not loaded has no account, and one that cannot be asked is left out: nobody decides by it.
        let accounts = self.loaded.ebpf.programs().filter_map(|(name, program)| Some((name, program.info().ok()?)));
        let runs = accounts.map(|(name, info)| ProgramRuns {
            program: name.to_owned(),
            runs: info.run_count(),
            time: info.run_time(),
        });
        runs.filter(|runs| runs.runs > 0).collect()
    }

    fn watch(&mut self, port: Port) -> Result<(), String> {
        let counted = self.count(port);
        self.uncounted.note(port, &counted);
        counted
    }

    fn read(&mut self, around: Around<'_>) -> Counts {
        let mut not_observed: Vec<_> = self.uncounted.not_observed().collect();
        let state = self.state(around, &mut not_observed);
        self.log.forward();
        let marks = self.kubelet.read(&self.loaded, around.draining_since, clock::now());
        not_observed.extend(self.kubelet.not_observed());
        marks.and_then(|()| self.counts(state, not_observed)).unwrap_or_else(|error| {
            self.proven_since = None;
            let why = format!("the sensor's counters cannot be read: {error}");
            Counts::none(self.strategy(), why, self.blind)
        })
    }
}
