//! Pages of Markdown: which there are, and what of each a reader takes for headings and links.

use std::{
    fs, io,
    path::{Path, PathBuf},
};

/// The repository's root.
pub(crate) fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("..")
}

/// One page.
pub(crate) struct Page {
    /// Its path below the root.
    pub(crate) path: PathBuf,
    /// Its text, without what is in fences and between backticks.
    prose: String,
    /// The targets of its headings.
    anchors: Vec<String>,
}

impl Page {
    /// Reads a page.
    pub(crate) fn read(path: &Path) -> io::Result<Self> {
        let text = fs::read_to_string(root().join(path))?;
        let (mut prose, mut anchors) = (String::new(), Vec::<String>::new());
        let mut fenced = false;
        for line in text.lines() {
            if line.trim_start().starts_with("```") {
                fenced = !fenced;
                continue;
            }
            if fenced {
                continue;
            }
            if let Some(heading) = line.strip_prefix('#') {
                let anchor = anchor(heading.trim_start_matches('#').trim());
                let same = anchors.iter().filter(|other| **other == anchor).count();
                anchors.push(if same == 0 { anchor } else { format!("{anchor}-{same}") });
            }
            // Every second part of a line is code.
            let plain: Vec<_> = line.split('`').step_by(2).collect();
            prose.push_str(&plain.join(" "));
            prose.push('\n');
        }
        Ok(Self { path: path.to_owned(), prose, anchors })
    }

    /// Whether a link may end in `#anchor`.
    pub(crate) fn has(&self, anchor: &str) -> bool {
        self.anchors.iter().any(|own| own == anchor)
    }

    /// The targets of its links.
    pub(crate) fn links(&self) -> impl Iterator<Item = &str> {
        self.prose.split("](").skip(1).filter_map(|rest| rest.split(')').next())
    }
}

/// What GitHub and mdBook make of a heading.
fn anchor(heading: &str) -> String {
    let kept = heading.to_lowercase();
    kept.chars()
        .filter(|c| c.is_alphanumeric() || matches!(c, ' ' | '-' | '_'))
        .map(|c| if c == ' ' { '-' } else { c })
        .collect()
}

/// The pages of the book, and those beside it.
pub(crate) fn pages() -> io::Result<Vec<PathBuf>> {
    let mut pages: Vec<_> =
        ["README.md", "ARCHITECTURE.md", "CONTRIBUTING.md", "CHANGELOG.md", "charts/lastsyn/README.md"]
            .map(PathBuf::from)
            .to_vec();
    below(Path::new("docs"), &mut pages)?;
    Ok(pages)
}

fn below(directory: &Path, pages: &mut Vec<PathBuf>) -> io::Result<()> {
    for entry in fs::read_dir(root().join(directory))? {
        let path = directory.join(entry?.file_name());
        if root().join(&path).is_dir() {
            below(&path, pages)?;
        } else if path.extension().is_some_and(|extension| extension == "md") {
            pages.push(path);
        }
    }
    Ok(())
}

#[test]
fn an_anchor_is_what_readers_make_of_a_heading() {
    assert_eq!(anchor("When the agent itself is broken"), "when-the-agent-itself-is-broken");
    assert_eq!(anchor("Kubelet's probes"), "kubelets-probes");
    assert_eq!(anchor("`server.hookFrom`: node"), "serverhookfrom-node");
}
