//! Kubelet's probes where nothing tells who sends them: the marks that the program keeps of SYNs that may be probes, told by
//! their pace. Each mark is told once; what cannot be told is a client's.

use aya::maps::{MapError, PerCpuArray};
use lastsyn_common::counters::{MARKS_KEPT, MOST_PACED, Mark, mark_index, mark_list};

use super::object::Loaded;
use crate::core::{
    clock::Monotonic,
    event::{ByFamily, Tally},
    listener::{Family, Port},
    pace::{Candidate, Pace, Source},
    probe::ProbePort,
    verdict::NotObserved,
};

/// What the pace of a port's probes has told.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Told {
    /// Probes.
    pub(super) probes: Tally,
    /// Clients, as far as is known.
    pub(super) others: Tally,
}

/// The ports whose probes are told so. A port never loses its number: its counts stay.
#[derive(Debug, Default)]
pub(super) struct Paced {
    ports: Vec<PacedPort>,
}

#[derive(Debug)]
struct PacedPort {
    port: Port,
    families: ByFamily<Side>,
}

#[derive(Debug)]
struct Side {
    pace: Pace,
    /// What has been read of each CPU.
    read: Vec<ReadUpTo>,
    told: Told,
    /// How many were taken for probes since the drain began.
    in_drain: u64,
}

#[derive(Clone, Copy, Debug, Default)]
struct ReadUpTo {
    count: u64,
    at: u64,
}

/// The marks of one CPU at one time: their number before and after they were read, and where each was.
struct Marks {
    before: u64,
    after: u64,
    kept: Vec<Mark>,
}

impl Paced {
    /// The number of a port, if it can have one. A port with two probes, or with one of another period than before, has
    /// none: their paces cannot be told from each other.
    pub(super) fn number(&mut self, port: Port, ports: &[ProbePort]) -> Option<u8> {
        let mut periods = ports.iter().filter(|probe| probe.port == port).map(|probe| probe.period);
        let period = periods.next().filter(|_| periods.next().is_none())?;
        let known = self.ports.iter().position(|paced| paced.port == port);
        if let Some(known) = known {
            let same = self.ports.get(known).is_some_and(|paced| paced.families.v4.pace.period() == period);
            return u8::try_from(known).ok().filter(|_| same);
        }
        let number = u8::try_from(self.ports.len()).ok().filter(|number| u32::from(*number) < MOST_PACED)?;
        let side = || Side { pace: Pace::new(period), read: Vec::new(), told: Told::default(), in_drain: 0 };
        self.ports.push(PacedPort { port, families: ByFamily { v4: side(), v6: side() } });
        Some(number)
    }

    /// Whether the phase of any port's probes is known.
    pub(super) fn any_known(&self) -> bool {
        self.ports.iter().any(|paced| Family::ALL.iter().any(|family| paced.families.get(*family).pace.is_known()))
    }

    /// Reads the marks that have come, and tells them. During a drain nothing is learnt from those since its beginning.
    pub(super) fn read(
        &mut self,
        loaded: &Loaded,
        draining_since: Option<Monotonic>,
        now: Monotonic,
    ) -> Result<(), MapError> {
        for (number, paced) in (0..).zip(&mut self.ports) {
            for family in Family::ALL {
                let list = mark_list(number, family == Family::V6);
                let cpus = marks(&loaded.mark_counts, &loaded.marks, list)?;
                paced.families.get_mut(family).take(&cpus, draining_since, now);
            }
        }
        Ok(())
    }

    /// What has been told of a port over one family.
    pub(super) fn told(&self, port: Port, family: Family) -> Told {
        let paced = self.ports.iter().find(|paced| paced.port == port);
        paced.map_or_else(Told::default, |paced| paced.families.get(family).told)
    }

    /// That SYNs of this drain were taken for probes by nothing that a client could not do.
    pub(super) fn not_observed(&self) -> impl Iterator<Item = NotObserved> {
        let sides = self.ports.iter().flat_map(|paced| Family::ALL.map(|family| (paced, family)));
        sides.filter_map(|(paced, family)| {
            let count = paced.families.get(family).in_drain;
            (count > 0).then(|| NotObserved {
                what: "probe".to_owned(),
                name: Some(paced.port.to_string()),
                family: Some(family),
                why: format!(
                    "who sent {count} SYNs that came at the ticks of kubelet's probe, from its address, is not known"
                ),
            })
        })
    }
}

/// Every CPU's marks of a list. A mark that is overwritten meanwhile shows by the number afterwards.
fn marks(
    counts: &PerCpuArray<impl std::borrow::Borrow<aya::maps::MapData>, u64>,
    marks: &PerCpuArray<impl std::borrow::Borrow<aya::maps::MapData>, Mark>,
    list: u32,
) -> Result<Vec<Marks>, MapError> {
    let before = counts.get(&list, 0)?;
    let mut cpus: Vec<_> =
        before.iter().map(|before| Marks { before: *before, after: *before, kept: Vec::new() }).collect();
    if cpus.iter().all(|cpu| cpu.before == 0) {
        return Ok(cpus);
    }
    for number in 0..u64::from(MARKS_KEPT) {
        for (cpu, mark) in cpus.iter_mut().zip(marks.get(&mark_index(list, number), 0)?.iter()) {
            cpu.kept.push(*mark);
        }
    }
    for (cpu, after) in cpus.iter_mut().zip(counts.get(&list, 0)?.iter()) {
        cpu.after = *after;
    }
    Ok(cpus)
}

impl Marks {
    /// The mark of this number, if it was surely still there, and not before `after`.
    fn get(&self, number: u64, after: u64) -> Option<Mark> {
        let kept = u64::from(MARKS_KEPT);
        let place = usize::try_from(number % kept).ok()?;
        // The next one takes the place of the oldest, and may be just being written.
        let still_there = number + kept > self.after;
        self.kept.get(place).copied().filter(|mark| still_there && mark.at_ns > after)
    }
}

impl Side {
    fn take(&mut self, cpus: &[Marks], draining_since: Option<Monotonic>, now: Monotonic) {
        self.read.resize(cpus.len().max(self.read.len()), ReadUpTo::default());
        let mut candidates = Vec::new();
        let mut lost = 0;
        for (cpu, read) in cpus.iter().zip(&mut self.read) {
            for number in read.count..cpu.before {
                match cpu.get(number, read.at) {
                    Some(mark) => {
                        read.at = mark.at_ns;
                        candidates
                            .push(Candidate { at: Monotonic::from_nanos(mark.at_ns), source: Source(mark.source) });
                    }
                    None => lost += 1,
                }
            }
            read.count = cpu.before;
        }
        if lost > 0 {
            // They may have come at any time up to now, and in between the others.
            self.pace.forget();
            add(&mut self.told.others, lost, now);
        }
        if draining_since.is_none() {
            self.in_drain = 0;
        }
        candidates.sort_by_key(|candidate| candidate.at);
        for candidate in candidates {
            let learn = draining_since.is_none_or(|since| candidate.at < since);
            let tally = if self.pace.take(candidate, learn) {
                self.in_drain += u64::from(!learn);
                &mut self.told.probes
            } else {
                &mut self.told.others
            };
            add(tally, 1, candidate.at);
        }
    }
}

fn add(tally: &mut Tally, count: u64, at: Monotonic) {
    tally.count += count;
    tally.last = tally.last.max(Some(at));
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;

    const SECOND: u64 = 1_000_000_000;

    fn side() -> Side {
        let pace = Pace::new(Duration::from_secs(1));
        Side { pace, read: Vec::new(), told: Told::default(), in_drain: 0 }
    }

    /// What a CPU's list looks like after marks at these times.
    fn cpu(times: &[u64]) -> Marks {
        let mut kept = vec![Mark::default(); MARKS_KEPT as usize];
        for (number, at_ns) in times.iter().enumerate() {
            kept[number % MARKS_KEPT as usize] = Mark { at_ns: *at_ns, source: 7 };
        }
        Marks { before: times.len() as u64, after: times.len() as u64, kept }
    }

    fn time(seconds: u64) -> Monotonic {
        Monotonic::from_nanos(seconds * SECOND)
    }

    fn counts(side: &Side) -> (u64, u64) {
        (side.told.probes.count, side.told.others.count)
    }

    #[test]
    fn marks_of_several_cpus_are_one_pace() {
        let mut side = side();
        let (even, odd) = ([2, 4, 6].map(|at| at * SECOND), [1, 3, 5].map(|at| at * SECOND));
        side.take(&[cpu(&even), cpu(&odd)], None, time(6));
        assert_eq!(counts(&side), (1, 5), "five to learn from");
        side.take(
            &[cpu(&[&even[..], &[8 * SECOND]].concat()), cpu(&[&odd[..], &[7 * SECOND]].concat())],
            Some(time(6)),
            time(8),
        );
        assert_eq!(counts(&side), (3, 5));
        assert_eq!((side.in_drain, side.told.probes.last), (2, Some(time(8))));
    }

    #[test]
    fn nothing_is_told_twice() {
        let mut side = side();
        for _ in 0..3 {
            side.take(&[cpu(&[1, 2, 3].map(|at| at * SECOND))], None, time(3));
        }
        assert_eq!(counts(&side), (0, 3));
    }

    #[test]
    fn marks_that_went_round_are_of_clients_and_what_was_learnt_is_forgotten() {
        let mut side = side();
        let mut times: Vec<_> = (1..=6).map(|at| at * SECOND).collect();
        side.take(&[cpu(&times)], None, time(6));
        assert!(side.pace.is_known());
        times.extend((0..40).map(|at| 6 * SECOND + at * SECOND / 10 + 1));
        side.take(&[cpu(&times)], Some(time(6)), time(10));
        assert_eq!(side.told.probes.count, 1, "only the one before the drain");
        assert_eq!(side.told.probes.count + side.told.others.count, 46);
        assert_eq!(side.told.others.last, Some(time(10)), "the lost ones may have come just now");
        assert!(!side.pace.is_known());
    }

    #[test]
    fn a_mark_that_is_overwritten_while_it_is_read_is_lost() {
        let mut read = cpu(&(1..=16).map(|at| at * SECOND).collect::<Vec<_>>());
        read.after = 20;
        let told: Vec<_> = (0..16).map(|number| read.get(number, 0).is_some()).collect();
        let sure = told.iter().filter(|sure| **sure).count();
        assert_eq!(sure, 11, "those of 0 to 3 are gone, and the next may be just being written");
        // An old one in the place of a new one.
        assert_eq!(read.get(15, 16 * SECOND), None);
    }

    #[test]
    fn a_port_with_two_probes_has_no_pace() {
        let mut paced = Paced::default();
        let probe = |port: u16, seconds| ProbePort {
            port: Port::try_from(port).unwrap(),
            period: Duration::from_secs(seconds),
        };
        let ports = [probe(80, 1), probe(81, 1), probe(81, 10), probe(82, 3)];
        let numbers = [80, 81, 82, 80].map(|port: u16| paced.number(Port::try_from(port).unwrap(), &ports));
        assert_eq!(numbers, [Some(0), None, Some(1), Some(0)]);
        assert_eq!(paced.number(ports[0].port, &[probe(80, 2)]), None, "another period");
        let many: Vec<_> = (100..120).map(|port| probe(port, 1)).collect();
        assert_eq!(many.iter().filter(|one| paced.number(one.port, &many).is_some()).count(), 6, "8 in all");
    }
}
