//! Metrics as a scraper understands them, and as `docs/metrics.md` documents them.

use std::collections::{BTreeMap, BTreeSet};

use anyhow::{Context, Result, bail, ensure};

/// What a scraper understood.
#[derive(Clone, Debug)]
pub struct Metrics {
    /// Values by name and labels, as written.
    pub samples: BTreeMap<String, f64>,
    /// The families that were declared, each with its samples' labels.
    pub families: BTreeSet<Documented>,
}

/// A family, as a table documents it.
#[derive(Clone, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub struct Documented {
    /// The name that a query has: with the suffix of a counter or an info.
    pub name: String,
    /// `counter`, `gauge`, `histogram` or `info`.
    pub kind: String,
    /// `seconds` or `bytes`; empty without one.
    pub unit: String,
    /// The names of its labels, a bucket's own aside.
    pub labels: BTreeSet<String>,
}

// === impl Metrics ===

impl Metrics {
    /// Reads OpenMetrics text as strictly as its specification: families are declared once, before their samples, and not
    /// interleaved; names end as their types say; no sample twice; a last line.
    ///
    /// # Errors
    ///
    /// Names the line that breaks a rule.
    pub fn parse(text: &str) -> Result<Self> {
        let body = text.strip_suffix("# EOF\n").context("the last line is not `# EOF`")?;
        let (mut samples, mut declared) = (BTreeMap::new(), BTreeMap::<&str, Documented>::new());
        let mut current = "";
        for line in body.lines() {
            if let Some(rest) = line.strip_prefix("# ") {
                let (keyword, rest) = rest.split_once(' ').context("a comment that says nothing")?;
                let (name, what) = rest.split_once(' ').with_context(|| format!("`{line}`"))?;
                let unit = |unit: &str| name.ends_with(&format!("_{unit}"));
                match keyword {
                    "TYPE" => {
                        let (name_of, kind) = (format!("{name}{}", suffix(what)), what.to_owned());
                        let family = Documented { name: name_of, kind, ..Documented::default() };
                        ensure!(declared.insert(name, family).is_none(), "{name} is declared twice");
                        current = name;
                    }
                    "HELP" => ensure!(!what.is_empty(), "{name} is not explained"),
                    "UNIT" => {
                        ensure!(unit(what), "the name {name} lacks its unit {what}");
                        what.clone_into(&mut declared.get_mut(name).context("a unit before its type")?.unit);
                    }
                    _ => bail!("`{line}`"),
                }
                continue;
            }
            let (sample, value) = line.rsplit_once(' ').with_context(|| format!("`{line}` is no sample"))?;
            let family = declared.get_mut(current).with_context(|| format!("`{line}` before any family"))?;
            take(sample, current, family)?;
            let value: f64 = value.parse().with_context(|| format!("`{line}`"))?;
            ensure!(samples.insert(sample.to_owned(), value).is_none(), "{sample} is there twice");
        }
        Ok(Self { samples, families: declared.into_values().collect() })
    }

    /// The value of a sample.
    pub fn value(&self, sample: &str) -> Option<f64> {
        self.samples.get(sample).copied()
    }

    /// That a table has these families, and no other.
    ///
    /// # Errors
    ///
    /// Names what is served and not documented so, and what is documented and not served so.
    pub fn ensure_documented(&self, documented: &BTreeSet<Documented>) -> Result<()> {
        let undocumented: Vec<_> = self.families.difference(documented).collect();
        let unserved: Vec<_> = documented.difference(&self.families).collect();
        ensure!(
            undocumented.is_empty() && unserved.is_empty(),
            "docs/metrics.md lacks {undocumented:#?}, and has {unserved:#?}, which is not served so"
        );
        Ok(())
    }
}

/// What a query's name ends with, beyond the family's.
fn suffix(kind: &str) -> &'static str {
    match kind {
        "counter" => "_total",
        "info" => "_info",
        _ => "",
    }
}

/// Takes a sample into its family.
fn take(sample: &str, of: &str, family: &mut Documented) -> Result<()> {
    let (name, labels) = sample.split_once('{').unwrap_or((sample, "}"));
    let end = name.strip_prefix(of).with_context(|| format!("{name} is not of the family {of}"))?;
    let ends: &[&str] = match family.kind.as_str() {
        "counter" => &["_total", "_created"],
        "gauge" => &[""],
        "info" => &["_info"],
        "histogram" => &["_bucket", "_count", "_sum", "_created"],
        other => bail!("the type {other} of {of}"),
    };
    ensure!(ends.contains(&end), "{name} is no name for a {}", family.kind);
    let labels = labels.strip_suffix('}').with_context(|| format!("`{sample}` does not end"))?;
    // No value has a comma or an equals sign: a label's value is one of a few words.
    for label in labels.split(',').filter(|label| !label.is_empty()) {
        let (label, _) = label.split_once('=').with_context(|| format!("`{sample}`"))?;
        if label != "le" {
            family.labels.insert(label.to_owned());
        }
    }
    Ok(())
}

/// What `docs/metrics.md` has below a heading: `The agent`, `The fence`.
///
/// # Errors
///
/// When there is no such table, or a row is not as it is to be.
pub fn documented(heading: &str) -> Result<BTreeSet<Documented>> {
    let text = include_str!("../../docs/metrics.md");
    let below = text.split_once(&format!("\n## {heading}\n")).with_context(|| format!("no heading {heading}"))?.1;
    let rows = below.split("\n## ").next().unwrap_or_default().lines().filter(|line| line.starts_with("| `"));
    let mut documented = BTreeSet::new();
    for row in rows {
        let cells: Vec<&str> = row.split('|').map(str::trim).collect();
        let ["", name, kind, unit, labels, what, ""] = cells[..] else { bail!("`{row}` has not five cells") };
        let word = |cell: &str| cell.trim().trim_matches('`').to_owned();
        let labels = labels.split(',').map(word).filter(|label| !label.is_empty()).collect();
        let family = Documented { name: word(name), kind: kind.to_owned(), unit: unit.to_owned(), labels };
        ensure!(!what.is_empty(), "{} is not explained", family.name);
        ensure!(documented.insert(family), "{name} is there twice");
    }
    ensure!(!documented.is_empty(), "nothing is documented below {heading}");
    Ok(documented)
}
