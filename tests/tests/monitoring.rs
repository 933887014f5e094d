//! The rules and the dashboard: every query is about metrics and labels that are served, and every alert says what to do.

#![expect(clippy::unwrap_used, clippy::indexing_slicing, reason = "a failing helper fails its test")]

use std::collections::{BTreeMap, BTreeSet};

use lastsyn_tests::openmetrics::{Documented, documented};
use serde_json::Value;

/// What Prometheus gives every sample of a pod, and what a histogram's samples have of themselves.
const GIVEN: [&str; 5] = ["namespace", "pod", "container", "job", "le"];

/// Every metric by every name that a query may have for it, with its labels.
fn served() -> BTreeMap<String, BTreeSet<String>> {
    let families = ["The agent", "The fence"].into_iter().flat_map(|heading| documented(heading).unwrap());
    let names = |family: Documented| {
        let ends: &[&str] = if family.kind == "histogram" { &["_bucket", "_sum", "_count"] } else { &[""] };
        ends.iter().map(|end| (format!("{}{end}", family.name), family.labels.clone())).collect::<Vec<_>>()
    };
    families.flat_map(names).collect()
}

/// The metrics that a query names, each with the labels that it selects by; and the labels that it groups by.
fn named(query: &str) -> (Vec<(String, Vec<String>)>, Vec<String>) {
    let is_word = |character: char| character.is_ascii_alphanumeric() || character == '_' || character == ':';
    let (mut metrics, mut grouped) = (Vec::new(), Vec::new());
    let mut rest = query;
    while let Some(at) = rest.find(is_word) {
        rest = &rest[at..];
        let end = rest.find(|character| !is_word(character)).unwrap_or(rest.len());
        let (word, behind) = rest.split_at(end);
        rest = behind;
        let behind = behind.trim_start();
        if word.starts_with("lastsyn_") || word.starts_with("process_") {
            let selectors =
                behind.strip_prefix('{').and_then(|behind| behind.split_once('}')).map(|(inside, _)| inside);
            let labels = selectors.unwrap_or_default().split(',').filter_map(|part| part.split_once(['=', '!']));
            metrics.push((word.to_owned(), labels.map(|(label, _)| label.trim().to_owned()).collect()));
        } else if word == "by"
            && let Some((inside, _)) = behind.strip_prefix('(').and_then(|behind| behind.split_once(')'))
        {
            grouped.extend(inside.split(',').map(|label| label.trim().to_owned()));
        }
    }
    (metrics, grouped)
}

fn ensure_served(query: &str) {
    let served = served();
    let (metrics, grouped) = named(query);
    assert!(!metrics.is_empty(), "`{query}` names no metric");
    let mut known: BTreeSet<&str> = GIVEN.into();
    for (metric, labels) in &metrics {
        assert!(served.contains_key(metric), "{metric} in `{query}` is not served");
        let of = &served[metric];
        for label in labels {
            assert!(of.contains(label) || GIVEN.contains(&label.as_str()), "{metric} has no label {label}: `{query}`");
        }
        known.extend(of.iter().map(String::as_str));
    }
    for label in grouped {
        assert!(known.contains(label.as_str()), "nothing in `{query}` has the label {label}");
    }
    let count = |character| query.matches(character).count();
    assert!(
        [('(', ')'), ('{', '}'), ('[', ']')].iter().all(|(open, close)| count(*open) == count(*close)),
        "`{query}`"
    );
}

#[test]
fn every_rule_is_about_what_is_served_and_every_alert_says_what_to_do() {
    let rules: Value = serde_saphyr::from_str(include_str!("../../charts/lastsyn/rules/lastsyn.yaml")).unwrap();
    let groups = rules["groups"].as_array().unwrap();
    let mut alerts = BTreeSet::new();
    for rule in groups.iter().flat_map(|group| group["rules"].as_array().unwrap()) {
        ensure_served(rule["expr"].as_str().unwrap());
        if let Some(alert) = rule["alert"].as_str() {
            alerts.insert(alert);
            for annotation in ["summary", "description"] {
                assert!(rule["annotations"][annotation].as_str().is_some_and(|text| text.len() > 20), "{rule:#}");
            }
            assert!(["info", "warning"].contains(&rule["labels"]["severity"].as_str().unwrap()), "{rule:#}");
        } else {
            assert!(rule["record"].as_str().unwrap().starts_with("lastsyn:"), "{rule:#}");
        }
    }
    for needed in ["LastsynConnectionsRefusedAfterDrain", "LastsynSensorBlind", "LastsynNodesNeverConfirmed"] {
        assert!(alerts.contains(needed), "{alerts:?}");
    }
}

#[test]
fn every_panel_is_about_what_is_served() {
    let dashboard: Value = serde_json::from_str(include_str!("../../charts/lastsyn/dashboards/lastsyn.json")).unwrap();
    let panels = dashboard["panels"].as_array().unwrap();
    for panel in panels {
        let is_row = panel["type"] == "row";
        assert!(is_row || panel["description"].is_string() && panel["targets"].is_array(), "{panel:#}");
        for target in panel["targets"].as_array().into_iter().flatten() {
            ensure_served(target["expr"].as_str().unwrap());
        }
    }
    let titles: BTreeSet<_> = panels.iter().map(|panel| panel["title"].as_str().unwrap()).collect();
    assert!(titles.len() == panels.len() && titles.contains("Drains by reason"), "{titles:?}");
}

#[test]
#[should_panic(expected = "lastsyn_drain_total in")]
fn a_metric_that_is_not_served_is_noticed() {
    ensure_served(r#"sum by (reason) (rate(lastsyn_drain_total{reason="bound"}[5m]))"#);
}

#[test]
#[should_panic(expected = "has no label why")]
fn a_label_that_is_not_served_is_noticed() {
    ensure_served(r#"sum(lastsyn_drains_total{why="bound"})"#);
}
