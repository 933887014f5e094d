//! How long a drain may last, by the pod's grace period. Pure.

use std::time::Duration;

use super::{
    Drain, MaxWait,
    duration::{LONGEST, format},
    model::DEFAULT_GRACE,
};

impl Drain {
    /// How long a drain lasts at most: `maxWait`, or what the pod's grace period leaves over `stopReserve`. [`DEFAULT_GRACE`]
    /// is taken for a grace period that is not known.
    pub fn bound_within(&self, grace: Option<Duration>) -> Duration {
        match self.max_wait {
            MaxWait::Fixed(bound) => bound,
            MaxWait::Auto => {
                let grace = grace.unwrap_or(DEFAULT_GRACE).min(LONGEST);
                let left = self.left_of(grace);
                // A drain that can only end at its bound, and at once, would be worse than a server that has to hurry.
                if left < self.shortest() { left.max(grace / 2) } else { left }
            }
        }
    }

    /// [`bound_within`](Self::bound_within), as long as the pod's grace period is not known.
    pub fn bound(&self) -> Duration {
        self.bound_within(None)
    }

    /// What of the configuration does not fit a pod's grace period, a sentence each.
    pub fn grace_warnings(&self, grace: Duration) -> Vec<String> {
        let (reserve, whole) = (format(self.stop_reserve), format(grace));
        match self.max_wait {
            MaxWait::Fixed(bound) if bound.saturating_add(self.stop_reserve) > grace => vec![format!(
                "drain.maxWait ({}) and drain.stopReserve ({reserve}) are longer than the pod's \
                 terminationGracePeriodSeconds ({whole}): kubelet kills the server before a drain that reaches its bound is \
                 over, or before its last connections are; raise the grace period, or use maxWait: auto",
                format(bound),
            )],
            MaxWait::Auto if self.left_of(grace) < self.shortest() => vec![format!(
                "drain.stopReserve ({reserve}) leaves less of the pod's terminationGracePeriodSeconds ({whole}) than the \
                 shortest drain takes ({}): drains end after {}, at the bound; raise the grace period",
                format(self.shortest()),
                format(self.bound_within(Some(grace))),
            )],
            _ => Vec::new(),
        }
    }

    /// No drain that ends by evidence is shorter.
    pub(super) fn shortest(&self) -> Duration {
        self.quiet_period.max(self.min_wait)
    }

    pub(super) fn left_of(&self, grace: Duration) -> Duration {
        grace.saturating_sub(self.stop_reserve)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const fn s(seconds: u64) -> Duration {
        Duration::from_secs(seconds)
    }

    fn drain(max_wait: MaxWait, stop_reserve: u64) -> Drain {
        Drain { max_wait, stop_reserve: s(stop_reserve), ..Drain::default() }
    }

    #[test]
    fn auto_is_the_grace_period_less_the_reserve_and_never_nothing() {
        for (grace, reserve, bound) in [
            (None, 10, s(20)),
            (Some(s(30)), 10, s(20)),
            (Some(s(120)), 10, s(110)),
            (Some(s(12)), 10, s(2)),
            (Some(s(11)), 10, Duration::from_millis(5500)),
            (Some(s(5)), 10, Duration::from_millis(2500)),
            (Some(s(0)), 10, s(0)),
            (None, 60, s(15)),
            (Some(s(300)), 60, s(240)),
            (Some(Duration::MAX), 10, LONGEST.saturating_sub(s(10))),
        ] {
            assert_eq!(drain(MaxWait::Auto, reserve).bound_within(grace), bound, "{grace:?} less {reserve} s");
        }
        assert_eq!(drain(MaxWait::Fixed(s(7)), 10).bound_within(Some(s(120))), s(7));
    }

    #[test]
    fn what_does_not_fit_the_grace_period_is_warned_of() {
        for (max_wait, grace, part) in [
            (MaxWait::Fixed(s(21)), 30, Some("drain.maxWait (21s)")),
            (MaxWait::Fixed(s(20)), 30, None),
            (MaxWait::Auto, 30, None),
            (MaxWait::Auto, 12, None),
            (MaxWait::Auto, 11, Some("drains end after 5s500ms")),
        ] {
            let warnings = drain(max_wait, 10).grace_warnings(s(grace));
            assert_eq!(warnings.len(), usize::from(part.is_some()), "{warnings:?}");
            assert!(part.is_none_or(|part| warnings[0].contains(part)), "{warnings:?}");
        }
    }
}
