//! One look at what goes on: a frame for a terminal of 80 columns and 24 rows, or one line.

use std::time::Duration;

use lastsyn::{
    cli::words,
    core::verdict::{FamilyCounts, Listener},
    server::status::Status,
};

use super::{
    play::{Happening, Phase},
    scenario::{PACE, Plan},
    text::{Palette, wrap},
};
use crate::{Pod, Summary};

/// What lines are filled to.
pub(super) const WIDTH: usize = 79;

/// Everything that is shown while it goes on.
#[derive(Debug)]
pub(super) struct View<'a> {
    pub(super) plan: &'a Plan,
    pub(super) phase: Phase,
    /// Nothing before the pod's deletion.
    pub(super) since_deletion: Option<Duration>,
    /// Where new connections go.
    pub(super) target: Pod,
    pub(super) status: &'a Status,
    pub(super) client: &'a Summary,
    /// How many SYNs the storm has sent, where there is one.
    pub(super) storm: Option<u64>,
    pub(super) happenings: &'a [Happening],
}

/// What it is.
pub(super) fn title(plan: &Plan, palette: Palette) -> String {
    let without = if plan.hook { "" } else { ", without the hook" };
    let title = format!("lastsyn demo: {}{without}", plan.scenario.name());
    let pace = format!("{PACE} connections/s over IPv4 and IPv6");
    format!("{}  {}", palette.bold(&title), palette.dim(&pace))
}

/// What it is, and what it shows.
pub(super) fn heading(plan: &Plan, palette: Palette) -> Vec<String> {
    [title(plan, palette)].into_iter().chain(wrap(&plan.about(), WIDTH, "")).collect()
}

/// A frame.
pub(super) fn lines(view: &View<'_>, palette: Palette) -> Vec<String> {
    let mut lines = heading(view.plan, palette);
    lines.push(String::new());
    let pod = match view.target {
        Pod::A => palette.waiting("pod a"),
        Pod::B => palette.good("pod b"),
    };
    let storm = view.storm.map(|sent| format!("storm       {sent} SYNs from forged sources"));
    lines.extend(phase(view, palette));
    lines.push(format!("forwarding  client -> node -> {pod}"));
    lines.push(client(view, palette));
    lines.extend(storm);
    lines.push(String::new());
    let (listeners, since) = counts(view.status);
    lines.push(
        palette.dim(&format!("  port   family       new  retransmit  refused     last attempt   quiet  {since}")),
    );
    for listener in listeners {
        lines.extend(listener.families.iter().map(|counts| row(listener, counts, palette)));
    }
    lines.push(String::new());
    lines.extend(view.happenings.iter().map(|happening| self::happening(happening, palette)));
    lines
}

/// The same as one line, for a log.
pub(super) fn line(view: &View<'_>) -> String {
    let mut parts = vec![moment(view.since_deletion)];
    parts.extend(counts(view.status).0.iter().map(|listener| {
        let families = listener.families.iter().map(|counts| match counts.last_attempt_ago_ms {
            Some(ago) => format!("{} {} ({} ago)", counts.family, counted(counts.new), age(ago)),
            None => format!("{} {}", counts.family, counted(counts.new)),
        });
        format!("{}: {}", listener.port, families.collect::<Vec<_>>().join(", "))
    }));
    parts.push(format!("{} tried, {} lost", view.client.tried, view.client.lost()));
    parts.join("   ")
}

/// What happened when.
pub(super) fn happening(happening: &Happening, palette: Palette) -> String {
    format!("{}   {}", palette.dim(&moment(happening.at)), happening.what)
}

/// What is going on, and what holds it.
fn phase(view: &View<'_>, palette: Palette) -> [String; 2] {
    let time = view.since_deletion.map(|time| format!("{:.1} s since the pod's deletion", time.as_secs_f64()));
    let time = time.unwrap_or_else(|| "until the pod is deleted".to_owned());
    match view.phase {
        Phase::Serving => [format!("{}     {time}", palette.good("serving")), "held by     -".to_owned()],
        Phase::Draining => {
            let holding = view.status.drain.as_ref().map(|drain| words::holding(&drain.holding));
            let holding = holding.filter(|text| !text.is_empty()).unwrap_or_else(|| "-".to_owned());
            [format!("{}    {time}", palette.waiting("draining")), format!("held by     {holding}")]
        }
        Phase::Stopped => {
            [format!("{}     {time}", palette.good("stopped")), "held by     nothing any more".to_owned()]
        }
    }
}

fn client(view: &View<'_>, palette: Palette) -> String {
    let Summary { tried, outstanding, .. } = view.client;
    let [a, b] = ["a", "b"].map(|name| view.client.served_by(name));
    let lost = format!("{} lost", view.client.lost());
    let lost = if view.client.lost() == 0 { palette.good(&lost) } else { palette.bad(&lost) };
    format!("client      {tried} tried, {a} served by a, {b} by b, {outstanding} under way, {lost}")
}

/// What has reached the pod, and since when. When its server has gone nothing is watched, so the verdict's counts stay.
fn counts(status: &Status) -> (&[Listener], &'static str) {
    match (&status.drain, &status.verdict) {
        (Some(_), _) => (&status.listeners, "since the hook"),
        (None, Some(verdict)) => (&verdict.listeners, "at the verdict"),
        (None, None) => (&status.listeners, "since the start"),
    }
}

fn row(listener: &Listener, counts: &FamilyCounts, palette: Palette) -> String {
    let ago = counts.last_attempt_ago_ms.map_or_else(|| "never".to_owned(), |ago| format!("{} ago", age(ago)));
    let quiet = if counts.quiet { palette.good("yes") } else { palette.waiting("no") };
    let (port, family) = (listener.port.number(), counts.family.name());
    let [new, again, refused] = [counts.new, counts.retransmit, counts.refused].map(counted);
    format!("{port:>6}   {family}   {new:>8}  {again:>10}  {refused:>7} {ago:>16}   {quiet}")
}

/// Without eBPF nothing counts SYNs.
fn counted(count: Option<u64>) -> String {
    count.map_or_else(|| "-".to_owned(), |count| count.to_string())
}

fn age(millis: u64) -> String {
    format!("{:.2} s", Duration::from_millis(millis).as_secs_f64())
}

fn moment(since_deletion: Option<Duration>) -> String {
    since_deletion.map_or_else(|| "   before".to_owned(), |time| format!("{:>7.3} s", time.as_secs_f64()))
}
