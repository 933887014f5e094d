//! Every page is in the book, and every link leads somewhere.

use std::{collections::BTreeSet, path::Path};

use crate::markdown::{Page, pages, root};

#[test]
fn every_page_is_in_the_summary_once() {
    let summary = Page::read(Path::new("docs/SUMMARY.md")).unwrap();
    let listed: Vec<_> = summary.links().map(|link| Path::new("docs").join(link)).collect();
    let pages: BTreeSet<_> = pages().unwrap().into_iter().filter(|page| page.starts_with("docs")).collect();
    let wanted: BTreeSet<_> = pages.into_iter().filter(|page| !page.ends_with("SUMMARY.md")).collect();
    assert_eq!(listed.iter().cloned().collect::<BTreeSet<_>>(), wanted);
    assert_eq!(listed.len(), wanted.len(), "a page is listed twice");
}

#[test]
fn every_relative_link_leads_to_a_file_and_a_heading() {
    let (mut broken, mut followed) = (Vec::new(), 0);
    for path in pages().unwrap() {
        let page = Page::read(&path).unwrap();
        for link in page.links().filter(|link| !link.contains("://")) {
            followed += 1;
            if let Some(why) = wrong(&page, link) {
                broken.push(format!("{}: {link}: {why}", path.display()));
            }
        }
    }
    assert!(broken.is_empty(), "{broken:#?}");
    assert!(followed > 50, "{followed} links: are they read at all?");
}

fn wrong(page: &Page, link: &str) -> Option<&'static str> {
    let (file, anchor) = link.split_once('#').unwrap_or((link, ""));
    let to = match file {
        "" => page.path.clone(),
        file => page.path.parent().unwrap_or(Path::new("")).join(file),
    };
    if !root().join(&to).exists() {
        return Some("no such file");
    }
    if anchor.is_empty() {
        return None;
    }
    match Page::read(&to) {
        Ok(to) if to.has(anchor) => None,
        Ok(_) => Some("no such heading"),
        Err(_) => Some("an anchor of what is no page"),
    }
}

#[test]
fn a_link_that_leads_nowhere_is_found() {
    let page = Page::read(Path::new("docs/README.md")).unwrap();
    assert_eq!(wrong(&page, "nowhere.md"), Some("no such file"));
    assert_eq!(wrong(&page, "servers.md#nothing-of-this-name"), Some("no such heading"));
    assert_eq!(wrong(&page, "servers.md#haproxy"), None);
}
