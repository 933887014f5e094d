//! The arithmetic of the grace period.

use super::table::Line;
use crate::config::{Config, DEFAULT_GRACE, MaxWait, format_duration};

pub(super) fn lines(config: &Config) -> Vec<Line> {
    let bound = config.drain.bound();
    let reserve = config.drain.stop_reserve;
    let needed = bound + reserve;
    let sum = format!(
        "a drain lasts {} to {}, and {} are left to stop",
        format_duration(config.drain.quiet_period.max(config.drain.min_wait)),
        format_duration(bound),
        format_duration(reserve)
    );
    let grace = format!("terminationGracePeriodSeconds must be at least {}", needed.as_secs_f64().ceil());
    let mut lines = vec![match config.drain.max_wait {
        MaxWait::Auto => Line::note(
            "grace",
            sum,
            format!("{grace}, which is Kubernetes' default; set drain.maxWait where the pod's is another"),
        ),
        MaxWait::Fixed(_) if needed > DEFAULT_GRACE => {
            Line::note("grace", sum, format!("{grace}: Kubernetes' default of 30 is too little"))
        }
        MaxWait::Fixed(_) => Line::ok("grace", sum),
    }];
    lines.extend(
        config
            .warnings()
            .into_iter()
            .map(|warning| Line::warning("configuration", warning, "see `lastsyn run --help`")),
    );
    lines
}
