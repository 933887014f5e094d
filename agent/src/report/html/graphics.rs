//! The graphics of the page: SVG, each in a figure with its title and the table of its numbers.

use std::fmt::Write;

use super::{escape, tables::table};
use crate::{
    cli::words::{self, seconds},
    core::verdict::Nodes,
    report::{Report, bins::merged, course::About, text},
};

/// How wide a graphic is, and where its plot begins and ends.
const WIDTH: u64 = 960;
const LEFT: u64 = 150;
const RIGHT: u64 = 900;

/// How many bins a lane is drawn with at most, and as many rows its table has.
const COLUMNS: usize = 120;

/// How high the stack of the nodes is.
const STACK: u64 = 90;

/// The time that a graphic shows, and how far down it goes.
struct Plot {
    until: u64,
    drawn: String,
    height: u64,
}

impl Plot {
    fn new(report: &Report) -> Self {
        Self { until: report.until_ms().max(1), drawn: String::new(), height: 0 }
    }

    /// The place of a time, in tenths of a unit.
    fn tenths(&self, at: u64) -> u64 {
        LEFT * 10 + (RIGHT - LEFT) * 10 * at.min(self.until) / self.until
    }

    fn x(&self, at: u64) -> String {
        tenths(self.tenths(at))
    }

    /// A lane with its name, of a height.
    fn lane(&mut self, name: &str, height: u64) -> u64 {
        let base = self.height + height;
        self.draw(format_args!("<text x=\"0\" y=\"{}\">{}</text>", base - 6, escape(name)));
        self.draw(format_args!("<path class=\"rule\" d=\"M{LEFT} {base}H{RIGHT}\"/>"));
        self.height = base;
        base
    }

    fn draw(&mut self, what: std::fmt::Arguments<'_>) {
        // Writing to a string does not fail.
        self.drawn.write_fmt(what).ok();
    }

    /// The figure: an axis of time below, and the end of the drain across.
    fn figure(mut self, id: &str, title: &str, report: &Report, table: &str) -> String {
        let end = self.x(report.verdict.duration_ms);
        let height = self.height;
        self.draw(format_args!(
            "<path d=\"M{end} 0V{height}\" stroke=\"var(--text)\" stroke-dasharray=\"4 3\"/>\
             <text class=\"soft\" x=\"{end}\" y=\"{}\" text-anchor=\"middle\">end</text>",
            height + 30
        ));
        let step = step(self.until);
        for at in (0..=self.until / step).map(|tick| tick * step) {
            let x = self.x(at);
            self.draw(format_args!(
                "<path class=\"rule\" d=\"M{x} {height}v4\"/><text class=\"soft\" x=\"{x}\" y=\"{}\" text-anchor=\"middle\">{}</text>",
                height + 16,
                seconds(at)
            ));
        }
        format!(
            "<figure>\n<figcaption>{title}</figcaption>\n<svg role=\"img\" aria-labelledby=\"{id}\" viewBox=\"0 0 {WIDTH} {}\">\
             <title id=\"{id}\">{title}, over the time since the hook's call; the table below has its numbers</title>{}</svg>\n\
             {table}</figure>\n",
            height + 36,
            self.drawn
        )
    }
}

/// Between two ticks of an axis: 1, 2 or 5 of a power of ten milliseconds, so that there are three to seven.
fn step(until: u64) -> u64 {
    let mut power = 1_u64;
    loop {
        if let Some(step) = [1, 2, 5].map(|of| power.saturating_mul(of)).into_iter().find(|step| until / step <= 6) {
            return step;
        }
        power = power.saturating_mul(10);
    }
}

/// When each condition held the end.
pub(super) fn held(report: &Report) -> String {
    let mut plot = Plot::new(report);
    let mut rows = Vec::new();
    for held in &report.conditions {
        let base = plot.lane(words::condition_name(held.condition), 24);
        let mut path = String::new();
        for (from, to) in &held.spans {
            let (x, width) = (plot.x(*from), tenths(plot.tenths(*to).saturating_sub(plot.tenths(*from)).max(10)));
            write!(path, "M{x} {}h{width}v14h-{width}z", base - 18).ok();
            rows.push(vec![
                words::condition_name(held.condition).to_owned(),
                seconds(*from),
                seconds(*to),
                seconds(to - from),
            ]);
        }
        plot.draw(format_args!("<path fill=\"var(--holds)\" d=\"{path}\"/>"));
    }
    if report.conditions.is_empty() {
        plot.lane("nothing held it", 24);
    }
    plot.figure("held", "What held the drain", report, &table(&["condition", "from", "to", "for"], rows))
}

/// Attempts, a lane for each listener and family.
pub(super) fn attempts(report: &Report) -> String {
    let mut plot = Plot::new(report);
    let lanes = &report.attempts.lanes;
    let longest = lanes.iter().map(|lane| lane.counting.len()).max().unwrap_or(0);
    let by = longest.div_ceil(COLUMNS).max(1);
    let every = report.attempts.every_ms.saturating_mul(by as u64).max(1);
    let drawn: Vec<_> =
        lanes.iter().map(|lane| (lane, merged(&lane.counting, by), merged(&lane.refused, by))).collect();
    let width = tenths((plot.tenths(every).saturating_sub(LEFT * 10) * 9 / 10).max(5));
    for (lane, counting, refused) in &drawn {
        let base = plot.lane(&format!("{} {}", lane.port, lane.family), 34);
        let most = counting.iter().copied().max().unwrap_or(0).max(1);
        for (bins, colour) in [(counting, "attempt"), (refused, "refused")] {
            let mut path = String::new();
            for (bin, count) in bins.iter().enumerate().filter(|(_, count)| **count > 0) {
                let middle = plot.tenths((bin as u64 * every).saturating_add(every / 2));
                write!(path, "M{} {base}v-{}", tenths(middle), tenths((count * 280 / most).max(40))).ok();
            }
            if !path.is_empty() {
                plot.draw(format_args!("<path stroke=\"var(--{colour})\" stroke-width=\"{width}\" d=\"{path}\"/>"));
            }
        }
        let all: u64 = counting.iter().sum();
        plot.draw(format_args!("<text x=\"{}\" y=\"{}\">{all}</text>", RIGHT + 6, base - 6));
    }
    if lanes.is_empty() {
        plot.lane("no listener", 34);
    }
    let names: Vec<String> = lanes.iter().map(|lane| format!("{} {}", lane.port, lane.family)).collect();
    let headings: Vec<&str> = ["from", "to"].into_iter().chain(names.iter().map(String::as_str)).collect();
    let of = |bins: &[u64], bin: usize| bins.get(bin).copied().unwrap_or(0);
    let some = |bin: &usize| drawn.iter().any(|(_, counting, _)| of(counting, *bin) > 0);
    let rows = (0..longest.div_ceil(by)).filter(some).map(|bin| {
        let from = bin as u64 * every;
        let cells = drawn.iter().map(|(_, counting, refused)| match (of(counting, bin), of(refused, bin)) {
            (count, 0) => count.to_string(),
            (count, refused) => format!("{count}, {refused} refused"),
        });
        [seconds(from), seconds(from + every)].into_iter().chain(cells).collect()
    });
    let title = format!("New connections, {} a bar; refused ones in a colour of their own", seconds(every));
    plot.figure("attempts", &title, report, &table(&headings, rows))
}

/// Name, colour, and how many of a state.
type State = (&'static str, &'static str, fn(&Nodes) -> u64);

const STATES: [State; 5] = [
    ("confirmed", "confirmed", |nodes| nodes.confirmed),
    ("assumed", "assumed", |nodes| nodes.assumed),
    ("waited for", "holds", |nodes| nodes.waited),
    ("pending", "pending", |nodes| nodes.pending),
    ("show nothing", "soft", |nodes| nodes.unobservable),
];

/// How the nodes stood; nothing where none was awaited.
pub(super) fn nodes(report: &Report) -> String {
    let Some(most) = report.nodes.iter().map(|at| at.nodes.total).max().filter(|most| *most > 0) else {
        return String::new();
    };
    let mut plot = Plot::new(report);
    let base = plot.lane(&format!("{most} in all"), STACK);
    let mut paths = STATES.map(|_| String::new());
    let ends = report.nodes.iter().skip(1).map(|at| at.at_ms).chain([report.verdict.duration_ms]);
    for (at, to) in report.nodes.iter().zip(ends) {
        let (x, from) = (plot.x(at.at_ms), plot.tenths(at.at_ms));
        let width = tenths(plot.tenths(to).saturating_sub(from).max(5));
        let mut below = 0;
        for ((_, _, count), path) in STATES.iter().zip(&mut paths) {
            let height = count(&at.nodes) * (STACK - 8) * 10 / most;
            if height > 0 {
                let height_of = tenths(height);
                write!(path, "M{x} {}h{width}v-{height_of}h-{width}z", tenths(base * 10 - below)).ok();
                below += height;
            }
        }
    }
    for (index, ((name, colour, _), path)) in STATES.iter().zip(&paths).enumerate() {
        if !path.is_empty() {
            plot.draw(format_args!("<path fill=\"var(--{colour})\" d=\"{path}\"/>"));
        }
        let (x, y) = (10, 14 + index as u64 * 13);
        plot.draw(format_args!(
            "<path fill=\"var(--{colour})\" d=\"M0 {}h8v8h-8z\"/><text class=\"soft\" x=\"{}\" y=\"{y}\">{name}</text>",
            y - 8,
            x + 3
        ));
    }
    let rows = report.nodes.iter().map(|at| {
        let counts = STATES.iter().map(|(_, _, count)| count(&at.nodes).to_string());
        [seconds(at.at_ms), at.nodes.total.to_string()].into_iter().chain(counts).collect()
    });
    let headings: Vec<&str> = ["from", "all"].into_iter().chain(STATES.iter().map(|(name, ..)| *name)).collect();
    plot.figure("nodes", "Nodes, by what each has shown", report, &table(&headings, rows))
}

/// What happened, a mark for each thing.
pub(super) fn happened(report: &Report) -> String {
    const LANES: [About; 7] =
        [About::Hook, About::Server, About::Service, About::Node, About::Listener, About::Sensor, About::Other];
    let mut plot = Plot::new(report);
    for about in LANES {
        let entries: Vec<_> = report.entries.iter().filter(|entry| entry.about == about).collect();
        if entries.is_empty() {
            continue;
        }
        let base = plot.lane(text::about(about), 24);
        let mut path = String::new();
        for entry in entries {
            write!(path, "M{} {}l5 -12h-10z", plot.x(entry.at_ms), base - 3).ok();
        }
        plot.draw(format_args!("<path fill=\"var(--attempt)\" d=\"{path}\"/>"));
    }
    if report.entries.is_empty() {
        plot.lane("nothing is known", 24);
    }
    let rows = report
        .entries
        .iter()
        .map(|entry| vec![seconds(entry.at_ms), text::about(entry.about).to_owned(), escape(&entry.what)]);
    plot.figure("happened", "What happened", report, &table(&["at", "about", "what"], rows))
}

/// A number of tenths as a number.
fn tenths(tenths: u64) -> String {
    match tenths % 10 {
        0 => (tenths / 10).to_string(),
        rest => format!("{}.{rest}", tenths / 10),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ticks_are_at_round_times_and_few() {
        for (until, expected) in
            [(1, 1), (3758, 1000), (600_000, 100_000), (7000, 2000), (700, 200), (u64::MAX, u64::MAX)]
        {
            assert!(step(until) <= expected, "{until}: {}", step(until));
            assert!(until / step(until) <= 6, "{until}: {}", step(until));
        }
        assert_eq!([step(3758), step(600_000), step(7000), step(30_000)], [1000, 100_000, 2000, 5000]);
    }
}
