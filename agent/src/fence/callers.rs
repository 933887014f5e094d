//! How much each caller may ask, and all together. Pure but for the clock that comes in.

use std::{
    collections::BTreeMap,
    net::IpAddr,
    sync::{Arc, Mutex, MutexGuard, PoisonError},
    time::Duration,
};

use crate::core::clock::Monotonic;

/// How many answers one address may have under way.
const ANSWERS: u32 = 4;

/// How many answers may be under way in all: some ten drains at once on each of a hundred nodes.
const ANSWERS_IN_ALL: u32 = 1024;

/// How many questions an address may ask at once, and how long it takes for another.
const QUESTIONS: Rate = Rate { at_once: 20, every: Duration::from_millis(250) };

/// How many requests for what a pod may see an address may have under way: two watches, and what else a drain asks.
const READS: u32 = 12;

/// How many of them an address may send at once, and how long it takes for another.
const READ_RATE: Rate = Rate { at_once: 60, every: Duration::from_millis(100) };

/// How many of them may be under way in all.
const READS_IN_ALL: u32 = 4 * ANSWERS_IN_ALL;

/// How many addresses are remembered. Those with nothing under way are forgotten first.
const REMEMBERED: usize = 4096;

/// Who asks. Copies share what they know.
#[derive(Clone, Debug, Default)]
pub(super) struct Callers(Arc<Mutex<Known>>);

#[derive(Debug, Default)]
struct Known {
    all: BTreeMap<IpAddr, Caller>,
    answers: u32,
    reads: u32,
}

#[derive(Clone, Copy, Debug)]
struct Caller {
    answers: u32,
    questions: Allowance,
    reads: u32,
    may_read: Allowance,
}

/// One request under way. Dropped, it has ended.
#[derive(Debug)]
pub(super) struct Pass {
    callers: Callers,
    address: IpAddr,
}

/// So many at once, and another after some time.
#[derive(Clone, Copy, Debug)]
struct Rate {
    at_once: u32,
    every: Duration,
}

/// How many are left of them.
#[derive(Clone, Copy, Debug)]
struct Allowance {
    left: u32,
    since: Monotonic,
}

/// Why a question is not taken.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub(super) enum TooMany {
    #[error("this address asks too often; it may ask four times a second")]
    Questions,
    #[error("this address has {ANSWERS} answers under way already")]
    Answers,
    #[error("the fence has {ANSWERS_IN_ALL} answers under way, and takes no more")]
    InAll,
    #[error("this address reads too often; it may read ten times a second")]
    Reads,
    #[error("this address has {READS} requests under way already")]
    ReadsUnderWay,
    #[error("the fence has {READS_IN_ALL} requests under way, and takes no more")]
    ReadsInAll,
}

impl Callers {
    /// Whether an address may ask now. Nothing is done for one that may not.
    pub(super) fn ask(&self, address: IpAddr, now: Monotonic) -> Result<(), TooMany> {
        let asked = self.known().caller(address, now).questions.take(QUESTIONS, now);
        if asked { Ok(()) } else { Err(TooMany::Questions) }
    }

    /// An answer to an address begins, or does not.
    pub(super) fn enter(&self, address: IpAddr, now: Monotonic) -> Result<(), TooMany> {
        let mut known = self.known();
        if known.answers >= ANSWERS_IN_ALL {
            return Err(TooMany::InAll);
        }
        let caller = known.caller(address, now);
        if caller.answers >= ANSWERS {
            return Err(TooMany::Answers);
        }
        caller.answers += 1;
        known.answers += 1;
        Ok(())
    }

    /// One of its answers has ended.
    pub(super) fn leave(&self, address: IpAddr) {
        let mut known = self.known();
        known.answers = known.answers.saturating_sub(1);
        if let Some(caller) = known.all.get_mut(&address) {
            caller.answers = caller.answers.saturating_sub(1);
        }
    }

    /// A request of an address for what it may see begins, or does not.
    pub(super) fn read(&self, address: IpAddr, now: Monotonic) -> Result<Pass, TooMany> {
        let mut known = self.known();
        if known.reads >= READS_IN_ALL {
            return Err(TooMany::ReadsInAll);
        }
        let caller = known.caller(address, now);
        if !caller.may_read.take(READ_RATE, now) {
            return Err(TooMany::Reads);
        }
        if caller.reads >= READS {
            return Err(TooMany::ReadsUnderWay);
        }
        caller.reads += 1;
        known.reads += 1;
        Ok(Pass { callers: self.clone(), address })
    }

    /// How many answers are under way.
    pub(super) fn under_way(&self) -> u32 {
        self.known().answers
    }

    fn known(&self) -> MutexGuard<'_, Known> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Known {
    fn caller(&mut self, address: IpAddr, now: Monotonic) -> &mut Caller {
        if self.all.len() >= REMEMBERED && !self.all.contains_key(&address) {
            self.all.retain(|_, caller| caller.answers + caller.reads > 0);
        }
        let full = |rate: Rate| Allowance { left: rate.at_once, since: now };
        let new = Caller { answers: 0, questions: full(QUESTIONS), reads: 0, may_read: full(READ_RATE) };
        self.all.entry(address).or_insert(new)
    }
}

impl Drop for Pass {
    fn drop(&mut self) {
        let mut known = self.callers.known();
        known.reads = known.reads.saturating_sub(1);
        if let Some(caller) = known.all.get_mut(&self.address) {
            caller.reads = caller.reads.saturating_sub(1);
        }
    }
}

impl Allowance {
    /// Takes one, if there is one left.
    fn take(&mut self, rate: Rate, now: Monotonic) -> bool {
        let more = now.since(self.since).as_millis() / rate.every.as_millis().max(1);
        let more = u32::try_from(more).unwrap_or(u32::MAX);
        self.since = self.since + rate.every.saturating_mul(more);
        self.left = self.left.saturating_add(more).min(rate.at_once);
        let any = self.left > 0;
        self.left = self.left.saturating_sub(1);
        any
    }
}

#[cfg(test)]
mod tests {
    use std::net::Ipv4Addr;

    use super::*;

    fn at(millis: u64) -> Monotonic {
        Monotonic::from_nanos(millis * 1_000_000)
    }

    fn address(number: u32) -> IpAddr {
        Ipv4Addr::from(number).into()
    }

    #[test]
    fn one_address_takes_nothing_from_others() {
        let callers = Callers::default();
        for _ in 0..ANSWERS {
            callers.enter(address(1), at(0)).expect("its own");
        }
        assert_eq!(callers.enter(address(1), at(0)), Err(TooMany::Answers));
        callers.leave(address(1));
        assert_eq!(callers.enter(address(2), at(0)), Ok(()));
        assert_eq!(callers.enter(address(1), at(0)), Ok(()));
        assert_eq!(callers.under_way(), ANSWERS + 1);
    }

    #[test]
    fn one_that_asks_too_often_waits_for_its_turn() {
        let callers = Callers::default();
        for _ in 0..QUESTIONS.at_once {
            callers.ask(address(1), at(0)).expect("its own");
        }
        assert_eq!(callers.ask(address(1), at(249)), Err(TooMany::Questions));
        assert_eq!(callers.ask(address(2), at(249)), Ok(()));
        assert_eq!(callers.ask(address(1), at(250)), Ok(()));
        assert_eq!(callers.ask(address(1), at(250)), Err(TooMany::Questions));
        for _ in 0..QUESTIONS.at_once {
            callers.ask(address(1), at(60_000)).expect("after a rest, as at first");
        }
        assert_eq!(callers.ask(address(1), at(60_000)), Err(TooMany::Questions));
    }

    #[test]
    fn a_request_under_way_takes_a_place_until_it_ends() {
        let callers = Callers::default();
        let passes: Vec<_> = (0..READS).map(|_| callers.read(address(1), at(0)).expect("its own")).collect();
        assert_eq!(callers.read(address(1), at(0)).err(), Some(TooMany::ReadsUnderWay));
        assert!(callers.read(address(2), at(0)).is_ok());
        drop(passes);
        for _ in 0..READ_RATE.at_once - READS - 1 {
            drop(callers.read(address(1), at(0)).expect("one after the other"));
        }
        assert_eq!(callers.read(address(1), at(99)).err(), Some(TooMany::Reads));
        assert!(callers.read(address(1), at(100)).is_ok());
        assert_eq!(callers.known().reads, 0);
    }

    #[test]
    fn what_is_remembered_is_bounded() {
        let callers = Callers::default();
        for number in 0..10_000 {
            callers.ask(address(number), at(0)).expect("one each");
            callers.enter(address(number), at(0)).expect("one each");
            callers.leave(address(number));
        }
        assert!(callers.known().all.len() <= REMEMBERED);
        for number in 0..ANSWERS_IN_ALL {
            callers.enter(address(number), at(60_000)).expect("room");
        }
        assert_eq!(callers.enter(address(20_000), at(60_000)), Err(TooMany::InAll));
    }
}
