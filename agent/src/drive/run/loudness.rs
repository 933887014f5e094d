//! How loud each entry of the journal is in the log: at most ten lines of level info a drain, from the hook's call to the agent's end, and
//! no flood at any other time. What is not said aloud is said at level debug, and stands in the report and in `GET /v1/status`. Pure.

use std::time::Duration;

use crate::core::{clock::Monotonic, journal::Transition};

/// How many warnings a drain has beside the one at its end.
const WARNINGS: u32 = 6;
/// The phases that a drain has, at the most: clients are asked to leave, readiness fails.
const PHASES: u32 = 2;
/// How many lines there are while no drain runs, within [`WINDOW`].
const AT_REST: u32 = 30;
/// See [`AT_REST`].
const WINDOW: Duration = Duration::from_mins(1);
/// What comes within this time after a drain's end is of it.
const AFTER_END: Duration = Duration::from_mins(1);

/// How loud one entry is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Loudness {
    Warn,
    Info,
    Debug,
}

/// What has been said already.
#[derive(Debug, Default)]
pub(super) struct Said {
    drain: Option<OfDrain>,
    window: Option<Monotonic>,
    at_rest: u32,
    /// Entries that would have been loud, and were not for their number, since this was last asked.
    held_back: u64,
}

#[derive(Debug, Default)]
struct OfDrain {
    ended: Option<Monotonic>,
    warnings: u32,
    phases: u32,
    withdrawn: bool,
    closed: bool,
}

impl Said {
    /// How loud an entry is to be said. `routed`: whether something still leads to the pod after it.
    pub(super) fn loudness(&mut self, what: &Transition, at: Monotonic, routed: bool) -> Loudness {
        if matches!(what, Transition::DrainStarted(_)) {
            self.drain = Some(OfDrain::default());
            return Loudness::Info;
        }
        let over = |drain: &OfDrain| drain.ended.is_some_and(|ended| at.since(ended) > AFTER_END);
        if self.drain.as_ref().is_some_and(over) {
            self.drain = None;
        }
        match what {
            Transition::Terminating => return Loudness::Info,
            // The agent's last line says it.
            Transition::Stopping => return Loudness::Debug,
            _ => {}
        }
        let loud = match &mut self.drain {
            Some(drain) => drain.loudness(what, at, routed),
            None => Some(if is_trouble(what) { Loudness::Warn } else { Loudness::Info }).filter(|_| self.has_room(at)),
        };
        loud.unwrap_or_else(|| {
            self.held_back = self.held_back.saturating_add(1);
            Loudness::Debug
        })
    }

    /// How many entries were not said aloud for their number, since this was last asked.
    pub(super) fn held_back(&mut self) -> u64 {
        std::mem::take(&mut self.held_back)
    }

    fn has_room(&mut self, at: Monotonic) -> bool {
        if self.window.is_none_or(|begun| at.since(begun) > WINDOW) {
            (self.window, self.at_rest) = (Some(at), 0);
        }
        self.at_rest = self.at_rest.saturating_add(1);
        self.at_rest <= AT_REST
    }
}

impl OfDrain {
    /// `None` where it would be loud, and there have been too many.
    fn loudness(&mut self, what: &Transition, at: Monotonic, routed: bool) -> Option<Loudness> {
        let first = |said: &mut bool| if std::mem::replace(said, true) { Loudness::Debug } else { Loudness::Info };
        Some(match what {
            // The line with the verdict says it.
            Transition::DrainEnded(_) => {
                self.ended = Some(at);
                Loudness::Debug
            }
            Transition::Told(_) if self.phases < PHASES => {
                self.phases += 1;
                Loudness::Info
            }
            Transition::Withdrawn(..) if !routed => first(&mut self.withdrawn),
            Transition::ListenerClosed(_) => first(&mut self.closed),
            trouble if is_trouble(trouble) => {
                if self.warnings == WARNINGS {
                    return None;
                }
                self.warnings += 1;
                Loudness::Warn
            }
            _ => Loudness::Debug,
        })
    }
}

/// What costs evidence, or time.
fn is_trouble(what: &Transition) -> bool {
    matches!(
        what,
        Transition::SensorUnproven(_)
            | Transition::SensorBlind(_)
            | Transition::SocketsUnreadable(_)
            | Transition::CountersUnreadable(_)
            | Transition::SlicesUnreadable(_)
            | Transition::NotTold(..)
            | Transition::Contradicted(..)
            | Transition::WatchBehind
            | Transition::FenceFails(_)
    )
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::core::{
        cluster::{NodeName, PortName, ServiceName},
        event::CallerId,
        listener::{Family, Port},
        phase::Phase,
        verdict::Reason,
    };

    fn at(seconds: u64) -> Monotonic {
        Monotonic::from_nanos((1000 + seconds) * 1_000_000_000)
    }

    fn port(number: u16) -> Port {
        Port::try_from(number).unwrap()
    }

    #[test]
    fn the_busiest_drain_has_ten_lines_at_most() {
        let mut said = Said::default();
        let route = |number: usize| (ServiceName(format!("web-{number}")), PortName("http".to_owned()), Family::V4);
        let mut course = vec![Transition::DrainStarted(CallerId(0))];
        for number in 0..100 {
            let (service, name, family) = route(number);
            course.push(Transition::Routed(service.clone(), name.clone(), family));
            course.push(Transition::CallerJoined(CallerId(9)));
            course.push(Transition::RelevantChange(family));
            course.push(Transition::Withdrawn(service, name, family));
            course.push(Transition::Contradicted(NodeName("a".to_owned()), family));
            course.push(Transition::SynsDropped(3));
            course.push(Transition::Told(Phase::Announce));
            course.push(Transition::ListenerFound(port(81)));
            course.push(Transition::NodesSettled);
            course.push(Transition::ReadAgrees);
        }
        course.push(Transition::DrainEnded(Reason::Synced));
        course.extend((1..100).map(|number| Transition::ListenerClosed(port(number))));
        course.push(Transition::Terminating);
        course.push(Transition::Stopping);
        let loud: Vec<_> = course.iter().map(|what| said.loudness(what, at(1), false)).collect();
        let count = |of| loud.iter().filter(|loudness| **loudness == of).count();
        // Beside them: the verdict, the report, and the report when the agent stops.
        assert!(count(Loudness::Info) + 3 <= 10, "{}", count(Loudness::Info));
        assert_eq!(count(Loudness::Warn), 6);
        assert_eq!((said.held_back(), said.held_back()), (94, 0), "the other contradictions");
    }

    #[test]
    fn the_last_route_that_goes_is_told_of_and_the_next_drain_begins_anew() {
        let mut said = Said::default();
        let gone = || Transition::Withdrawn(ServiceName("web".to_owned()), PortName(String::new()), Family::V4);
        for _ in 0..2 {
            assert_eq!(said.loudness(&Transition::DrainStarted(CallerId(0)), at(0), true), Loudness::Info);
            assert_eq!(said.loudness(&gone(), at(1), true), Loudness::Debug, "something else leads to it");
            assert_eq!(said.loudness(&gone(), at(2), false), Loudness::Info);
            assert_eq!(said.loudness(&gone(), at(3), false), Loudness::Debug);
            assert_eq!(said.loudness(&Transition::DrainEnded(Reason::Quiet), at(4), false), Loudness::Debug);
        }
        // Long after it the agent serves again.
        assert_eq!(said.loudness(&Transition::ListenerFound(port(80)), at(5), false), Loudness::Debug);
        assert_eq!(said.loudness(&Transition::ListenerFound(port(80)), at(70), false), Loudness::Info);
    }

    #[test]
    fn at_rest_there_is_no_flood_either() {
        let mut said = Said::default();
        let mut loud = |seconds| {
            let count = |number| said.loudness(&Transition::ListenerFound(port(number)), at(seconds), false);
            (1..3000).map(count).filter(|loudness| *loudness == Loudness::Info).count()
        };
        assert_eq!((loud(0), loud(50), loud(61)), (30, 0, 30));
        assert_eq!(said.held_back(), 2999 * 3 - 60);
        assert_eq!(said.loudness(&Transition::SensorBlind(1), at(200), false), Loudness::Warn);
    }
}
