//! The promises that hold whatever the cluster says, in whatever order.

use std::sync::Arc;

use proptest::prelude::*;

use super::{
    cluster_steps::{Drain, MAX_WAIT, Outcome, Step, any_settings, step},
    truth::ms,
};
use crate::core::{settings::Settings, verdict::Reason};

/// A drain through these steps, restarted after some of them.
fn play(settings: &Settings, steps: &[Step], restart_after: Option<usize>) -> Drain {
    let mut drain = Drain::new(settings.clone(), true);
    if let Some(after) = restart_after {
        let (before, rest) = steps.split_at(after.min(steps.len()));
        for step in before {
            drain = drain.play_one(*step);
        }
        drain.restart();
        return drain.play(rest);
    }
    drain.play(steps)
}

/// Whether taking this away is taking evidence away.
fn is_evidence(step: Step) -> bool {
    matches!(step, Step::Health { .. } | Step::Fence { .. })
}

/// A drain with less to go by claims nothing earlier than the one with more.
fn claims_no_earlier(less: Outcome, more: Outcome) -> Result<(), TestCaseError> {
    prop_assert!(!less.claims() || less.lasted >= more.lasted, "{less:?} with less, {more:?} with more");
    Ok(())
}

proptest! {
    #![proptest_config(ProptestConfig { failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn whatever_the_cluster_says_the_promises_hold(
        settings in any_settings(),
        steps in prop::collection::vec(step(true), 1..100),
    ) {
        let drain = Drain::new(settings.clone(), false).play(&steps);
        let outcome = drain.outcome();
        let verdict = Arc::clone(&drain.world.answers.first().expect("an answer").verdict);
        prop_assert!(outcome.lasted >= settings.min_wait, "S1: {outcome:?}");
        let jumped = steps.iter().map(|step| if let Step::Jump(millis) = step { *millis } else { 0 }).max();
        prop_assert!(outcome.lasted <= MAX_WAIT + ms(jumped.unwrap_or(0)), "S1: {outcome:?}");
        prop_assert_eq!(outcome.reason == Reason::Bound, outcome.lasted >= MAX_WAIT, "S1: {:?}", outcome);
        match outcome.reason {
            Reason::RoutedAway | Reason::Synced => {
                let nodes = verdict.routing.clone().expect("what was known of the cluster").nodes;
                prop_assert!(verdict.not_observed.is_empty(), "{:?}", verdict.not_observed);
                prop_assert!(!verdict.assumes.is_empty());
                prop_assert_eq!((nodes.pending, nodes.waited, nodes.unobservable), (0, 0, 0));
                prop_assert_eq!(nodes.assumed == 0, outcome.reason == Reason::RoutedAway);
            }
            Reason::Unverified => prop_assert!(!verdict.not_observed.is_empty()),
            Reason::Bound => prop_assert!(!verdict.holding.is_empty()),
            reason => prop_assert!(false, "{reason:?} with routing watched and no guard"),
        }
        if outcome.reason == Reason::RoutedAway {
            // C4, by what the script knows: each node has shown markers that were asked for after the last thing that
            // may have routed to the pod.
            for shown in &drain.shown {
                let after = |request| drain.fences.iter().any(|(asked, at)| asked == request && *at >= drain.routed);
                prop_assert!(shown.iter().any(after), "shown {shown:?} of {:?}, routed at {:?}", drain.fences, drain.routed);
            }
        }
        let replayed = drain.world.core.recording().expect("a recording").replay();
        prop_assert_eq!(replayed, Some(verdict), "what is recorded gives the same verdict");
    }

    #[test]
    fn less_evidence_claims_nothing_earlier(
        settings in any_settings(),
        steps in prop::collection::vec(step(false), 1..100),
        which in any::<prop::sample::Index>(),
    ) {
        let evidence: Vec<_> = (0..steps.len()).filter(|index| is_evidence(steps[*index])).collect();
        prop_assume!(!evidence.is_empty());
        let mut fewer = steps.clone();
        fewer.remove(evidence[which.index(evidence.len())]);
        let (more, less) = (play(&settings, &steps, None).outcome(), play(&settings, &fewer, None).outcome());
        claims_no_earlier(less, more)?;
    }

    #[test]
    fn what_comes_twice_or_late_claims_nothing_earlier(
        settings in any_settings(),
        steps in prop::collection::vec(step(false), 1..100),
        which in any::<prop::sample::Index>(),
        late in any::<bool>(),
    ) {
        let evidence: Vec<_> = (0..steps.len()).filter(|index| is_evidence(steps[*index])).collect();
        prop_assume!(!evidence.is_empty());
        let index = evidence[which.index(evidence.len())];
        let mut other = steps.clone();
        if !late {
            let again = match steps[index] {
                // The same answer, to the same request.
                Step::Health { node, sent_before, .. } => Step::Health { node, sync: false, sent_before },
                step => step,
            };
            other.insert(index + 1, again);
        } else if let Some(Step::Wait(millis)) = steps.get(index + 1) {
            other[index] = match steps[index] {
                // The same answer, that comes later.
                Step::Health { node, sync, sent_before } => {
                    Step::Health { node, sync, sent_before: sent_before + millis }
                }
                step => step,
            };
            // What a fence sees later is another thing: its connection has stood for longer.
            if !matches!(steps[index], Step::Fence { .. }) {
                other.swap(index, index + 1);
            }
        }
        let (more, less) = (play(&settings, &steps, None).outcome(), play(&settings, &other, None).outcome());
        claims_no_earlier(less, more)?;
    }

    #[test]
    fn s2_a_restart_at_any_point_claims_nothing_earlier(
        settings in any_settings(),
        steps in prop::collection::vec(step(false), 1..100),
        after in 0_usize..100,
    ) {
        // A node that went before the restart is in no list any more: who was not there then has never heard of it.
        let goes_before = |index: usize, step: &Step| index < after && matches!(step, Step::Leaves);
        let steps: Vec<_> =
            steps.iter().enumerate().filter(|(index, step)| !goes_before(*index, step)).map(|(_, step)| *step).collect();
        let (more, less) = (play(&settings, &steps, None).outcome(), play(&settings, &steps, Some(after)).outcome());
        claims_no_earlier(less, more)?;
    }
}
