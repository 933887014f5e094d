//! The `tcx` sensor: our program first at the TCX ingress of every interface (Linux 6.6).

use std::{collections::BTreeMap, time::Duration};

use lastsyn_common::counters::UNATTRIBUTED_SLOT;

use super::{
    attach::{AttachError, Attachments, Look},
    interfaces::Interface,
    maps,
    object::Loaded,
    program_log::ProgramLog,
    self_test::{self, SelfTestError},
    slots::Slots,
};
use crate::{
    config::Network,
    core::{
        class::Class,
        clock::Monotonic,
        event::{ByFamily, PortAttempts, SensorState, Tally},
        listener::Port,
        verdict::{NotObserved, Strategy},
    },
    drive::clock,
};

/// The sensor.
pub struct Tcx {
    loaded: Loaded,
    log: ProgramLog,
    attachments: Attachments,
    slots: Slots,
    /// Ports that could not be had, and why.
    uncounted: BTreeMap<Port, String>,
    reattach: bool,
    /// Since when every SYN is sure to be seen.
    proven_since: Option<Monotonic>,
    /// Just before the last look at the interfaces: what it found in place had been so until then.
    looked_at: Monotonic,
    /// For how long, in all, an interface may have been up and not watched.
    blind: Duration,
}

/// What the sensor shows at one time.
#[derive(Debug)]
pub(crate) struct Counts {
    pub(crate) state: SensorState,
    pub(crate) attempts_anywhere: Option<u64>,
    pub(crate) attempts: BTreeMap<Port, PortAttempts>,
    pub(crate) unattributed: ByFamily<Tally>,
    pub(crate) not_observed: Vec<NotObserved>,
    pub(crate) blind: Duration,
}

/// The sensor cannot begin.
#[derive(Debug, thiserror::Error)]
pub enum TcxError {
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
    /// Not testable.
    #[error(transparent)]
    SelfTest(#[from] SelfTestError),
}

impl Tcx {
    /// Puts the programs in place on all interfaces there are.
    ///
    /// # Errors
    ///
    /// If the kernel has no TCX or does not let the agent attach.
    pub fn start(
        mut loaded: Loaded,
        interfaces: &[Interface],
        ignored: &[Network],
        reattach: bool,
    ) -> Result<Self, TcxError> {
        let log = ProgramLog::open(&mut loaded.ebpf);
        self_test::prepare(&mut loaded)?;
        for network in ignored {
            maps::ignore(&mut loaded, *network).map_err(|source| TcxError::Ignore { network: *network, source })?;
        }
        let mut attachments = Attachments::default();
        attachments.look(&mut loaded, interfaces, true)?;
        Ok(Self {
            loaded,
            log,
            attachments,
            slots: Slots::default(),
            uncounted: BTreeMap::new(),
            reattach,
            proven_since: None,
            looked_at: clock::now(),
            blind: Duration::ZERO,
        })
    }

    /// Counts a port from now on.
    ///
    /// # Errors
    ///
    /// In words, if every slot is taken or the map cannot be written.
    pub(crate) fn watch(&mut self, port: Port) -> Result<(), String> {
        let assigned = self.slots.assign(port, clock::now()).map_err(|error| error.to_string());
        let counted = assigned.and_then(|assigned| {
            maps::set_slot(&mut self.loaded, port.number(), assigned.slot)
                .map_err(|error| format!("port {port} is not counted: {error}"))
        });
        match &counted {
            Ok(()) => drop(self.uncounted.remove(&port)),
            Err(why) => drop(self.uncounted.insert(port, why.clone())),
        }
        counted
    }

    /// The names of the watched interfaces.
    pub(crate) fn interfaces(&self) -> Vec<String> {
        self.attachments.names()
    }

    /// For how long, in all, an interface may have been up and not watched: never less than it was.
    pub(crate) fn blind(&self) -> Duration {
        self.blind
    }

    /// Looks after the programs, then reads what they counted. The interfaces were listed after `listed_at`; `None` if
    /// they could not be.
    pub(crate) fn read(&mut self, interfaces: Option<&[Interface]>, listed_at: Monotonic, deep: bool) -> Counts {
        let mut not_observed: Vec<_> = self
            .uncounted
            .iter()
            .map(|(port, why)| NotObserved {
                what: "listener".to_owned(),
                name: Some(port.to_string()),
                family: None,
                why: why.clone(),
            })
            .collect();
        let state = self.state(interfaces, listed_at, deep, &mut not_observed);
        self.log.forward();
        match self.counts(state, not_observed) {
            Ok(counts) => counts,
            Err(error) => {
                self.proven_since = None;
                Counts {
                    state: SensorState::Unproven {
                        strategy: Strategy::Tcx,
                        why: format!("the sensor's counters cannot be read: {error}"),
                    },
                    attempts_anywhere: None,
                    attempts: BTreeMap::new(),
                    unattributed: ByFamily::default(),
                    not_observed: Vec::new(),
                    blind: self.blind,
                }
            }
        }
    }

    /// Proven: in place and first on every interface, the self-test passed, without a break since then.
    fn state(
        &mut self,
        interfaces: Option<&[Interface]>,
        listed_at: Monotonic,
        test: bool,
        not_observed: &mut Vec<NotObserved>,
    ) -> SensorState {
        let looked = match interfaces {
            Some(interfaces) => self.attachments.look(&mut self.loaded, interfaces, self.reattach),
            None => Err(AttachError::Unlisted),
        };
        if !matches!(&looked, Ok(Look { broken: None, unwatched }) if unwatched.is_empty()) {
            // When it began is not known: at the earliest right after the last look.
            self.blind = self.blind.saturating_add(clock::now().since(self.looked_at));
        }
        self.looked_at = listed_at;
        let why = match looked {
            Err(error) => Some(error.to_string()),
            Ok(Look { broken, unwatched }) => {
                if let Some(why) = broken {
                    // The journal tells that the sensor is proven anew, and not why it had to be.
                    tracing::info!(%why, "not every SYN was sure to be seen until now");
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
            (test || self.proven_since.is_none())
                .then(|| self_test::run(&mut self.loaded).err().map(|error| error.to_string()))
                .flatten()
        });
        match why {
            Some(why) => {
                self.proven_since = None;
                SensorState::Unproven { strategy: Strategy::Tcx, why }
            }
            None => SensorState::Proven {
                strategy: Strategy::Tcx,
                since: *self.proven_since.get_or_insert_with(clock::now),
            },
        }
    }

    fn counts(&self, state: SensorState, not_observed: Vec<NotObserved>) -> Result<Counts, aya::maps::MapError> {
        let mut attempts = BTreeMap::new();
        for (port, assigned) in self.slots.iter() {
            let families = maps::attempts(&self.loaded, assigned.slot)?;
            attempts.insert(port, PortAttempts { watched_since: assigned.since, families });
        }
        let unattributed = maps::attempts(&self.loaded, UNATTRIBUTED_SLOT)?;
        // The self-test's packets are in the witness's total. Its own count is read after the total, so that the
        // difference is never too large: that could hide a SYN that was missed.
        let anywhere = maps::attempts_anywhere(&self.loaded.witness)?;
        let self_tests = self_test::tested(&self.loaded)?.count;
        Ok(Counts {
            state,
            attempts_anywhere: Some(anywhere.saturating_sub(self_tests)),
            attempts,
            unattributed: ByFamily { v4: unattributed.v4.get(Class::Opaque), v6: unattributed.v6.get(Class::Opaque) },
            not_observed,
            blind: self.blind,
        })
    }
}
