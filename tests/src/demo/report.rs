//! The last word: what happened, the verdict in words, the numbers, and whether it is what was expected.

use std::time::Duration;

use lastsyn::{cli::words, core::verdict::Verdict};

use super::{
    account::Account,
    expectation,
    frame::{WIDTH, happening, title},
    text::{Palette, millis, wrap},
};

/// Lines for people.
pub(super) fn lines(account: &Account, disappointments: &[String], palette: Palette) -> Vec<String> {
    let mut lines = vec![title(&account.plan, palette)];
    lines.extend(account.happenings.iter().map(|one| happening(one, palette)));
    lines.push(String::new());
    if let Some(answer) = &account.answer {
        lines.extend(verdict(&answer.verdict, palette));
        lines.push(String::new());
    }
    lines.extend(numbers(account, palette));
    lines.push(String::new());
    let expected = expectation::of(&account.plan);
    if disappointments.is_empty() {
        lines.extend(wrap(&format!("as expected: {expected}"), WIDTH, "").iter().map(|line| palette.good(line)));
    } else {
        lines.extend(wrap(&format!("expected: {expected}"), WIDTH, ""));
        let otherwise = disappointments.iter().flat_map(|why| wrap(&format!("but {why}"), WIDTH, ""));
        lines.extend(otherwise.map(|line| palette.bad(&line)));
    }
    lines
}

/// The verdict as `lastsyn drain` prints it, a line for each of its parts.
fn verdict(verdict: &Verdict, palette: Palette) -> Vec<String> {
    let text = words::verdict(verdict);
    let mut parts = text.split("; ").map(|part| wrap(part, WIDTH, "  "));
    let reason = parts.next().unwrap_or_default();
    reason.iter().map(|line| palette.bold(line)).chain(parts.flatten()).collect()
}

/// The numbers, two in a line where they are short.
fn numbers(account: &Account, palette: Palette) -> Vec<String> {
    let summary = account.summary();
    let broken = summary.reset + summary.closed + summary.timed_out + summary.other;
    let mut cells = vec![
        ("connections tried", summary.tried),
        ("served by pod a", summary.served_by("a")),
        ("refused", summary.refused),
        ("served by pod b", summary.served_by("b")),
        ("lost otherwise", broken),
    ];
    cells.extend(account.syns_counted().map(|counted| ("SYNs counted in the drain", counted)));
    if let Some(storm) = account.storm {
        cells.extend([("SYNs of the storm", storm.sent), ("SYN cookies sent by pod a", storm.cookies)]);
    }
    let cells: Vec<String> = cells
        .into_iter()
        .map(|(what, number)| {
            let cell = format!("{what:<25} {number:>7}");
            if number > 0 && ["refused", "lost otherwise"].contains(&what) { palette.bad(&cell) } else { cell }
        })
        .collect();
    let mut lines: Vec<String> = cells.chunks(2).map(|pair| pair.join("      ")).collect();
    let answer = account.answer.as_ref();
    let times = [
        (answer.map(|answer| answer.verdict.duration_ms), "the drain"),
        (account.last_syn_to_verdict_ms(), "from the last SYN to the verdict (kernel's stamp)"),
        (
            account.last_connection_to_answer().map(millis),
            "from the last connection to pod a to the hook's end (client's record)",
        ),
    ];
    lines.extend(times.into_iter().filter_map(|(time, what)| {
        let time = format!("{:.3} s", Duration::from_millis(time?).as_secs_f64());
        Some(format!("{time:>9}  {what}"))
    }));
    lines
}
