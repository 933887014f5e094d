//! Which sensor runs: chosen by trying, best first, with the reason why a better one could not be had.

use std::{collections::BTreeMap, time::Duration};

use super::{
    interfaces::Interface,
    object::{LoadError, Loaded},
    tcx::{Counts, Tcx, TcxError},
};
use crate::{
    config::Network,
    core::{
        clock::Monotonic,
        event::{ByFamily, SensorState},
        listener::Port,
        verdict::Strategy,
    },
};

/// What the operator wants.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Choice {
    /// The best that works.
    Auto,
    /// This, or nothing.
    Only(Strategy),
}

/// The sensor that runs.
pub enum Sensor {
    /// eBPF at TCX ingress.
    Tcx(Box<Tcx>),
    /// The namespace's counters alone, and why.
    Counters {
        /// Why nothing better.
        why: String,
    },
}

/// The sensor that was asked for cannot be had.
#[derive(Debug, thiserror::Error)]
pub enum SelectError {
    /// Not loaded.
    #[error("sensor.strategy is tcx, but {0}")]
    Load(#[from] LoadError),
    /// Not attached.
    #[error("sensor.strategy is tcx, but {0}")]
    Tcx(#[from] TcxError),
}

impl Sensor {
    /// Tries.
    ///
    /// # Errors
    ///
    /// If the operator wants one strategy only and it cannot be had.
    pub fn select(
        choice: Choice,
        interfaces: &[Interface],
        ignored: &[Network],
        reattach: bool,
    ) -> Result<Self, SelectError> {
        match choice {
            Choice::Only(Strategy::Counters) => Ok(Self::counters("sensor.strategy is counters")),
            Choice::Only(Strategy::Tcx) => Self::tcx(interfaces, ignored, reattach),
            Choice::Auto => Ok(Self::tcx(interfaces, ignored, reattach).unwrap_or_else(|error| {
                let why = match error {
                    SelectError::Load(error) => error.to_string(),
                    SelectError::Tcx(error) => error.to_string(),
                };
                Self::counters(&why)
            })),
        }
    }

    fn counters(why: &str) -> Self {
        Self::Counters { why: format!("SYNs are not counted one by one: {why}") }
    }

    fn tcx(interfaces: &[Interface], ignored: &[Network], reattach: bool) -> Result<Self, SelectError> {
        let loaded = Loaded::load()?;
        Ok(Self::Tcx(Box::new(Tcx::start(loaded, interfaces, ignored, reattach)?)))
    }

    /// Where the counts come from.
    pub fn strategy(&self) -> Strategy {
        match self {
            Self::Tcx(_) => Strategy::Tcx,
            Self::Counters { .. } => Strategy::Counters,
        }
    }

    /// The names of the watched interfaces.
    pub fn interfaces(&self) -> Vec<String> {
        match self {
            Self::Tcx(tcx) => tcx.interfaces(),
            Self::Counters { .. } => Vec::new(),
        }
    }

    /// For how long, in all, an interface may have been up and not watched; `None` where nothing is watched one by one.
    pub fn blind(&self) -> Option<Duration> {
        match self {
            Self::Tcx(tcx) => Some(tcx.blind()),
            Self::Counters { .. } => None,
        }
    }

    /// Counts a port from now on.
    ///
    /// # Errors
    ///
    /// In words, if it cannot.
    pub(crate) fn watch(&mut self, port: Port) -> Result<(), String> {
        match self {
            Self::Tcx(tcx) => tcx.watch(port),
            // They know no ports.
            Self::Counters { .. } => Ok(()),
        }
    }

    /// Looks after the sensor, then reads it; `test` runs its self-test too.
    pub(crate) fn read(&mut self, interfaces: Option<&[Interface]>, listed_at: Monotonic, test: bool) -> Counts {
        match self {
            Self::Tcx(tcx) => tcx.read(interfaces, listed_at, test),
            Self::Counters { why } => Counts {
                state: SensorState::Unproven { strategy: Strategy::Counters, why: why.clone() },
                attempts_anywhere: None,
                attempts: BTreeMap::new(),
                unattributed: ByFamily::default(),
                not_observed: Vec::new(),
                blind: Duration::ZERO,
            },
        }
    }
}
