//! The rule as the design words it, and the simpler ones that the search broke: the oracle must break each of them
//! again, or it proves nothing of `Routing`.

use super::{
    mixtures::{Content, Since, in_force, may_route, mixture_that_routes},
    scene::Conditions,
};

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Rule {
    AsWorded,
    /// The other endpoint is ready in *any* slice; every write is relevant.
    V1AnySliceForTheState,
    /// One slice lists the witness ready throughout, whatever the others say of it.
    V3OtherCopiesIgnored,
    /// Only versions after the last relevant change count.
    V4VersionsInForceThenNotCounted,
    /// The witness is ready in *some* slice each time.
    V5SomeSliceEachTime,
    /// (a) asks only whether a slice lists the pod serving *now*.
    V6NotServingNow,
    /// Only what routes to the pod again is relevant.
    V8OnlyUnWithdrawals,
    /// Under `Local` a witness on another node counts.
    V9WitnessOnAnotherNode,
}

/// One rule over one history. Costs as much as the history is long.
#[derive(Clone, Debug)]
pub(super) struct Simpler {
    rule: Rule,
    local: bool,
    since: Since,
    /// The versions in force after each write since the last relevant change.
    moments: Vec<Vec<Content>>,
}

impl Simpler {
    pub(super) fn start(rule: Rule, since: &Since, local: bool) -> Self {
        Self { rule, local, since: since.clone(), moments: vec![in_force(since)] }
    }

    /// Whether the write is relevant; the caller starts anew then.
    pub(super) fn write(&mut self, slice: usize, content: Content) -> bool {
        let was_routed = !self.is_withdrawn();
        self.since[slice].push(content);
        self.moments.push(in_force(&self.since));
        match self.rule {
            Rule::V1AnySliceForTheState => true,
            Rule::V8OnlyUnWithdrawals => was_routed || !self.is_withdrawn(),
            _ => self.can_route_by_the_words(),
        }
    }

    fn is_withdrawn(&self) -> bool {
        let held = in_force(&self.since);
        if self.rule != Rule::V1AnySliceForTheState {
            return !may_route(&held, self.local);
        }
        let lists = |who: usize, is: fn(Conditions) -> bool| held.iter().any(|held| held.0[who].is_some_and(is));
        let ready = |[ready, ..]: Conditions| ready;
        let other = lists(1, ready) || (!self.local && lists(2, ready));
        !(lists(0, ready) || (lists(0, |[_, serving, terminating]| serving && terminating) && !other))
    }

    fn can_route_by_the_words(&self) -> bool {
        let skip = usize::from(self.rule == Rule::V4VersionsInForceThenNotCounted);
        let versions: Since = self.since.iter().map(|versions| versions.iter().copied().skip(skip).collect()).collect();
        let lists = |is: fn(Conditions) -> bool| versions.iter().flatten().any(|version| version.0[0].is_some_and(is));
        let serving = |[_, serving, _]: Conditions| serving;
        let serves = if self.rule == Rule::V6NotServingNow {
            in_force(&self.since).iter().any(|held| held.0[0].is_some_and(serving))
        } else {
            lists(serving)
        };
        let peers = if self.local && self.rule != Rule::V9WitnessOnAnotherNode { 1..=1 } else { 1..=2 };
        let witnessed = peers.into_iter().any(|who| self.is_witness(who, &versions));
        lists(|[ready, ..]| ready) || (serves && !witnessed)
    }

    fn is_witness(&self, who: usize, versions: &Since) -> bool {
        let ready = |content: &Content| content.0[who].is_some_and(|[ready, ..]| ready);
        let unready = |content: &Content| content.0[who].is_some_and(|[ready, ..]| !ready);
        let one_slice = versions.iter().any(|versions| !versions.is_empty() && versions.iter().all(ready));
        let each_time = self.moments.iter().all(|held| held.iter().any(ready));
        let contradicted = versions.iter().flatten().any(unready);
        match self.rule {
            Rule::V3OtherCopiesIgnored => one_slice,
            Rule::V5SomeSliceEachTime => each_time && !contradicted,
            _ => one_slice && !contradicted,
        }
    }
}

/// The first history of two slices and so many writes in which the rule says withdrawn and some mixture routes.
fn counterexample(rule: Rule, local: bool, peers: usize, writes: u32) -> Option<Vec<(usize, Content)>> {
    fn search(judge: &Simpler, contents: &[Content], writes: u32, told: &mut Vec<(usize, Content)>) -> bool {
        if writes == 0 {
            return judge.is_withdrawn() && mixture_that_routes(&judge.since, judge.local).is_some();
        }
        for slice in 0..2 {
            for content in contents {
                let mut next = judge.clone();
                if next.write(slice, *content) {
                    let held = in_force(&next.since).into_iter().map(|held| vec![held]).collect();
                    next = Simpler::start(next.rule, &held, next.local);
                }
                told.push((slice, *content));
                if search(&next, contents, writes - 1, told) {
                    return true;
                }
                told.pop();
            }
        }
        false
    }
    let contents = Content::all(peers);
    for first in &contents {
        for second in &contents {
            let mut told = vec![(0, *first), (1, *second)];
            let judge = Simpler::start(rule, &vec![vec![*first], vec![*second]], local);
            if search(&judge, &contents, writes, &mut told) {
                return Some(told);
            }
        }
    }
    None
}

#[test]
fn the_oracle_breaks_every_simpler_rule() {
    for (rule, local, peers, writes) in [
        (Rule::V1AnySliceForTheState, false, 1, 0),
        (Rule::V3OtherCopiesIgnored, false, 1, 1),
        (Rule::V4VersionsInForceThenNotCounted, false, 1, 1),
        (Rule::V5SomeSliceEachTime, false, 1, 2),
        (Rule::V6NotServingNow, false, 1, 1),
        (Rule::V8OnlyUnWithdrawals, false, 1, 2),
        (Rule::V9WitnessOnAnotherNode, true, 2, 2),
    ] {
        let shortest = (0..=writes).find_map(|writes| counterexample(rule, local, peers, writes));
        println!("{rule:?}: {shortest:?}");
        assert!(shortest.is_some(), "{rule:?} was not broken");
    }
}

#[test]
fn the_oracle_does_not_break_the_rule_as_worded() {
    for local in [false, true] {
        for writes in 0..=2 {
            assert_eq!(counterexample(Rule::AsWorded, local, 1, writes), None);
        }
    }
}
