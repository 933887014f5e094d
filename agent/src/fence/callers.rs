//! How much each caller may ask, and all together. Pure but for the clock that comes in.

use std::{collections::BTreeMap, net::IpAddr, time::Duration};

use crate::core::clock::Monotonic;

/// How many answers one address may have under way.
const ANSWERS: u32 = 4;

/// How many answers may be under way in all: some ten drains at once on each of a hundred nodes.
const ANSWERS_IN_ALL: u32 = 1024;

/// How many questions an address may ask at once, and how long it takes for another.
const QUESTIONS: u32 = 20;
const QUESTION_EVERY: Duration = Duration::from_millis(250);

/// How many addresses are remembered. Those with nothing under way are forgotten first.
const REMEMBERED: usize = 4096;

/// Who asks.
#[derive(Debug, Default)]
pub(super) struct Callers {
    all: BTreeMap<IpAddr, Caller>,
    under_way: u32,
}

#[derive(Clone, Copy, Debug)]
struct Caller {
    under_way: u32,
    questions: u32,
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
}

impl Callers {
    /// Takes a question from an address, or does not.
    pub(super) fn enter(&mut self, address: IpAddr, now: Monotonic) -> Result<(), TooMany> {
        if self.under_way >= ANSWERS_IN_ALL {
            return Err(TooMany::InAll);
        }
        if self.all.len() >= REMEMBERED && !self.all.contains_key(&address) {
            self.all.retain(|_, caller| caller.under_way > 0);
        }
        let new = Caller { under_way: 0, questions: QUESTIONS, since: now };
        let caller = self.all.entry(address).or_insert(new);
        let more = now.since(caller.since).as_millis() / QUESTION_EVERY.as_millis();
        let more = u32::try_from(more).unwrap_or(u32::MAX);
        caller.since = caller.since + QUESTION_EVERY.saturating_mul(more);
        caller.questions = caller.questions.saturating_add(more).min(QUESTIONS);
        if caller.questions == 0 {
            return Err(TooMany::Questions);
        }
        caller.questions -= 1;
        if caller.under_way >= ANSWERS {
            return Err(TooMany::Answers);
        }
        caller.under_way += 1;
        self.under_way += 1;
        Ok(())
    }

    /// One of its answers has ended.
    pub(super) fn leave(&mut self, address: IpAddr) {
        self.under_way = self.under_way.saturating_sub(1);
        if let Some(caller) = self.all.get_mut(&address) {
            caller.under_way = caller.under_way.saturating_sub(1);
        }
    }

    /// How many answers are under way.
    pub(super) fn under_way(&self) -> u32 {
        self.under_way
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
        let mut callers = Callers::default();
        for _ in 0..ANSWERS {
            callers.enter(address(1), at(0)).expect("its own");
        }
        assert_eq!(callers.enter(address(1), at(0)), Err(TooMany::Answers));
        for _ in 0..QUESTIONS - ANSWERS - 1 {
            assert_eq!(callers.enter(address(1), at(0)), Err(TooMany::Answers));
        }
        callers.leave(address(1));
        assert_eq!(callers.enter(address(1), at(249)), Err(TooMany::Questions));
        assert_eq!(callers.enter(address(2), at(249)), Ok(()));
        assert_eq!(callers.enter(address(1), at(250)), Ok(()));
        assert_eq!(callers.under_way(), ANSWERS + 1);
    }

    #[test]
    fn what_is_remembered_is_bounded() {
        let mut callers = Callers::default();
        for number in 0..10_000 {
            callers.enter(address(number), at(0)).expect("one each");
            callers.leave(address(number));
        }
        assert!(callers.all.len() <= REMEMBERED);
        for number in 0..ANSWERS_IN_ALL {
            callers.enter(address(number), at(60_000)).expect("room");
        }
        assert_eq!(callers.enter(address(20_000), at(60_000)), Err(TooMany::InAll));
    }
}
