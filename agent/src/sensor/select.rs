//! Which sensor runs: the best that can be had, by trying.

use std::time::Duration;

use super::{
    attach::Attachments,
    cgroup::{Cgroup, PodGroupError},
    clsact::Clsact,
    counts::{Around, Counts, Sensor},
    hook::Hook,
    interfaces::Interface,
    object::{LoadError, Loaded, Wanted},
    packet::{Packet, PacketError},
    programs::{Programs, ProgramsError},
    scope::{Scope, Unscoped},
    tcx::Tcx,
};
use crate::{
    config::Network,
    core::{listener::Port, verdict::Strategy},
};

/// What the operator wants.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Choice {
    /// The best that works.
    Auto,
    /// This, or nothing.
    Only(Strategy),
}

/// What a sensor is begun with.
#[derive(Clone, Copy, Debug)]
pub struct Setting<'a> {
    /// What the operator wants.
    pub choice: Choice,
    /// Whose network the agent is in.
    pub scope: Scope,
    /// The interfaces that there are.
    pub interfaces: &'a [Interface],
    /// Networks whose SYNs are ignored.
    pub ignored: &'a [Network],
    /// The port at which the agent answers.
    pub own_port: u16,
    /// Put the program back where another takes it away.
    pub reattach: bool,
}

/// The sensor that runs, and the better ones that could not be had.
pub struct Selected {
    /// It.
    pub sensor: Box<dyn Sensor>,
    /// Best first: each with the reason.
    pub passed_over: Vec<(Strategy, String)>,
}

/// The sensor that was asked for cannot be had.
#[derive(Debug, thiserror::Error)]
#[error("sensor.strategy is {}, but {why}", strategy.name())]
pub struct SelectError {
    /// Which.
    pub strategy: Strategy,
    /// Why not.
    #[source]
    pub why: StartError,
}

/// A sensor cannot be begun.
#[derive(Debug, thiserror::Error)]
pub enum StartError {
    /// Not loaded.
    #[error(transparent)]
    Load(#[from] LoadError),
    /// No control group of a pod.
    #[error(transparent)]
    PodGroup(#[from] PodGroupError),
    /// Not attached.
    #[error(transparent)]
    Programs(#[from] ProgramsError),
    /// No packet socket.
    #[error(transparent)]
    Packet(#[from] PacketError),
}

/// The order in which they are tried.
pub fn in_order(scope: Scope) -> &'static [Strategy] {
    match scope {
        Scope::Pod => &[Strategy::Tcx, Strategy::Clsact, Strategy::Packet],
        Scope::Node => &[Strategy::Cgroup, Strategy::Tcx, Strategy::Clsact, Strategy::Packet],
    }
}

impl Selected {
    /// Tries.
    ///
    /// # Errors
    ///
    /// If the operator wants one strategy only and it cannot be had.
    pub fn select(setting: Setting<'_>) -> Result<Self, SelectError> {
        if let Choice::Only(strategy) = setting.choice {
            let sensor = start(strategy, setting).map_err(|why| SelectError { strategy, why })?;
            return Ok(Self { sensor, passed_over: Vec::new() });
        }
        let mut passed_over = Vec::new();
        for strategy in in_order(setting.scope) {
            match start(*strategy, setting) {
                Ok(sensor) => return Ok(Self { sensor, passed_over }),
                Err(error) => passed_over.push((*strategy, error.to_string())),
            }
        }
        let sensor = Box::new(Counters { why: told(&passed_over) });
        Ok(Self { sensor, passed_over })
    }
}

fn start(strategy: Strategy, setting: Setting<'_>) -> Result<Box<dyn Sensor>, StartError> {
    let programs = |wanted, hook: Box<dyn Hook>| -> Result<Box<dyn Sensor>, StartError> {
        let loaded = Loaded::load(wanted)?;
        Ok(Box::new(Programs::start(loaded, hook, setting)?))
    };
    let sensor = match strategy {
        Strategy::Cgroup => return programs(Wanted::OnGroup, Box::new(Cgroup::find()?)),
        Strategy::Tcx => programs(Wanted::OnInterfaces, Box::new(Attachments::new(Tcx)))?,
        Strategy::Clsact => {
            let clsact = Clsact::open().map_err(ProgramsError::from)?;
            programs(Wanted::OnInterfaces, Box::new(Attachments::new(clsact)))?
        }
        Strategy::Packet => Box::new(Packet::start(setting.ignored)?),
        Strategy::Counters => return Ok(Box::new(Counters { why: "sensor.strategy is counters".to_owned() })),
    };
    Ok(match setting.scope {
        Scope::Pod => sensor,
        Scope::Node => Box::new(Unscoped(sensor)),
    })
}

/// Reasons in words, each once, with all the strategies that it is the reason for.
pub fn told(passed_over: &[(Strategy, String)]) -> String {
    let mut reasons: Vec<(Vec<&str>, &str)> = Vec::new();
    for (strategy, why) in passed_over {
        match reasons.iter_mut().find(|(_, known)| known == why) {
            Some((strategies, _)) => strategies.push(strategy.name()),
            None => reasons.push((vec![strategy.name()], why)),
        }
    }
    let reasons = reasons.into_iter().map(|(strategies, why)| format!("{}: {why}", strategies.join(", ")));
    reasons.collect::<Vec<_>>().join("; ")
}

/// The namespace's counters alone, which the core reads in any case.
struct Counters {
    /// Why nothing better.
    why: String,
}

impl Sensor for Counters {
    fn strategy(&self) -> Strategy {
        Strategy::Counters
    }

    fn interfaces(&self) -> Vec<String> {
        Vec::new()
    }

    fn blind(&self) -> Option<Duration> {
        None
    }

    /// They know no ports.
    fn watch(&mut self, _port: Port) -> Result<(), String> {
        Ok(())
    }

    fn read(&mut self, _around: Around<'_>) -> Counts {
        let why = format!("SYNs are not counted one by one: {}", self.why);
        Counts::none(Strategy::Counters, why, Duration::ZERO)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_reason_of_several_is_told_once() {
        let passed_over = [
            (Strategy::Tcx, "the container lacks BPF".to_owned()),
            (Strategy::Clsact, "the container lacks BPF".to_owned()),
            (Strategy::Packet, "the container lacks NET_RAW".to_owned()),
        ];
        assert_eq!(told(&passed_over), "tcx, clsact: the container lacks BPF; packet: the container lacks NET_RAW");
    }
}
