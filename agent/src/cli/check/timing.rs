//! The arithmetic of the grace period.

use std::time::Duration;

use super::table::Line;
use crate::config::{Config, DEFAULT_GRACE, MaxWait, format_duration};

/// `grace` is the pod's own, where it could be read.
pub(super) fn lines(config: &Config, grace: Option<Duration>) -> Vec<Line> {
    let bound = config.drain.bound_within(grace);
    let reserve = config.drain.stop_reserve;
    let needed = bound.saturating_add(reserve);
    let sum = format!(
        "a drain lasts {} to {}, and {} are left to stop",
        format_duration(config.drain.quiet_period.max(config.drain.min_wait).min(bound)),
        format_duration(bound),
        format_duration(reserve)
    );
    let least = format!("terminationGracePeriodSeconds must be at least {}", needed.as_secs_f64().ceil());
    let mut lines = vec![match (grace, config.drain.max_wait) {
        // What does not fit is among the warnings.
        (Some(grace), _) => Line::ok("grace", format!("{sum}, of the pod's {}", format_duration(grace))),
        (None, MaxWait::Auto) => Line::note(
            "grace",
            sum,
            format!("{least}; the pod's own could not be read, and Kubernetes' default is taken for it"),
        ),
        (None, MaxWait::Fixed(_)) if needed > DEFAULT_GRACE => {
            Line::note("grace", sum, format!("{least}: Kubernetes' default of 30 is too little"))
        }
        (None, MaxWait::Fixed(_)) => Line::ok("grace", sum),
    }];
    lines.extend(
        config
            .warnings(grace)
            .into_iter()
            .map(|warning| Line::warning("configuration", warning, "see `lastsyn run --help`")),
    );
    lines
}

#[cfg(test)]
mod tests {
    use super::{super::table::Table, *};

    #[test]
    fn the_arithmetic_is_that_of_the_pod_s_own_grace_period() {
        let mut config = Config::default();
        let text =
            |config: &Config, grace: Option<u64>| Table(lines(config, grace.map(Duration::from_secs))).to_string();
        assert!(text(&config, Some(120)).starts_with("ok    grace  a drain lasts 2s to 1m50s, and 10s are left"));
        assert!(text(&config, None).contains("2s to 20s") && text(&config, None).contains("could not be read"));
        config.drain.max_wait = MaxWait::Fixed(Duration::from_secs(25));
        assert!(
            text(&config, Some(30)).contains("warn  configuration  drain.maxWait (25s)"),
            "{}",
            text(&config, Some(30))
        );
        assert!(!text(&config, Some(35)).contains("warn"));
    }
}
